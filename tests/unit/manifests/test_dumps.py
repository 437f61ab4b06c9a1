"""Files that `kubectl get` wrote: each is read completely, or refused in one sentence."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest
import yaml

from eurekube_sync.manifests import dumps
from eurekube_sync.manifests.dumps import read_dumps
from eurekube_sync.model.errors import ConfigurationError

NOTHING = io.BytesIO(b"")
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "shop"}}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "b", "creationTimestamp": "2026-11-23T03:12:04Z"},
}
LIST = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [SERVICE, POD],
    "metadata": {"resourceVersion": ""},
}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(LIST, indent=4),
        yaml.safe_dump(LIST),
        f"---\n{yaml.safe_dump(SERVICE)}---\n{yaml.safe_dump(POD)}",
        json.dumps(SERVICE) + "\n" + json.dumps(POD),
        "\ufeff" + json.dumps(LIST),
    ],
    ids=["json", "yaml", "several documents", "a stream of json", "a byte order mark"],
)
def test_each_form_gives_the_same_objects(tmp_path: Path, text: str) -> None:
    """The file holds a list, one object or several. Times stay strings."""
    file = tmp_path / "dump"
    file.write_text(text, encoding="utf-8")
    assert list(read_dumps([str(file), str(file)], stdin=NOTHING)) == [SERVICE, POD]
    assert list(read_dumps(["-"], stdin=io.BytesIO(text.encode()))) == [SERVICE, POD]


def test_the_items_of_a_typed_list_have_its_kind(tmp_path: Path) -> None:
    """`kubectl get --raw` writes such a list."""
    file = tmp_path / "dump"
    file.write_text(
        json.dumps(
            {"apiVersion": "v1", "kind": "ServiceList", "items": [{"metadata": {"name": "a"}}]}
        )
    )
    (found,) = read_dumps([str(file)], stdin=NOTHING)
    assert found == {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}}


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefg", "bcdefgh", strict=True)
)
REFUSED = {
    "empty": ("", "has no object: check whether kubectl get failed"),
    "an empty list": (
        json.dumps({"kind": "List", "items": []}),
        "has no object: check whether kubectl get failed",
    ),
    "a table": (
        "NAME   READY\nrating 2/2\n",
        "is not the whole output of kubectl get -o json or -o yaml: it has no kind",
    ),
    "cut": (json.dumps(LIST)[:100], "line 1: not "),
    "a list without items": ('{"kind": "List"}', "is a list without items: it is cut"),
    "cut yaml": (
        yaml.safe_dump(LIST)[:100],
        "is not the whole output of kubectl get -o json or -o yaml: it has no kind",
    ),
    "a page": (json.dumps(LIST | {"metadata": {"continue": "abc"}}), "is only a part of a list"),
    "a counted page": (
        json.dumps(LIST | {"metadata": {"remainingItemCount": 3}}),
        "is only a part of a list",
    ),
    "no object": (
        '{"kind": "List", "items": [7]}',
        "has an item without apiVersion, kind or metadata.name",
    ),
    "no name": (
        '{"kind": "Pod", "metadata": {}}',
        "has an item without apiVersion, kind or metadata.name",
    ),
    "no kind": (
        '{"kind": "List", "items": [{"metadata": {"name": "a"}}]}',
        "has an item without apiVersion, kind or metadata.name",
    ),
    "a bomb": (BOMB, "aliases make this more than 200000 values"),
    "deep": ("[" * 900, "nested deeper than 100 levels"),
    "deeper": (
        "[" * 5000,
        "nest",
    ),  # the libyaml in PyYAML 6.0.4 refuses 1000 levels in its own words
    "deep json": ('{"a":' * 100_000 + "1" + "}" * 100_000, "nest"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_no_dump_gives_one_sentence(tmp_path: Path, name: str) -> None:
    """It names the file."""
    text, expected = REFUSED[name]
    file = tmp_path / "dump"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as refused:
        read_dumps([str(file)], stdin=NOTHING)
    assert expected in str(refused.value)
    assert str(refused.value).startswith(f"--from {file}")
    assert "\n" not in str(refused.value)


def test_a_file_descriptor_of_the_shell_is_read(tmp_path: Path) -> None:
    """The shell makes one for `--from <(kubectl get pods -o json)`."""
    content = json.dumps(LIST).encode()
    reader, writer = os.pipe()
    os.write(writer, content)
    os.close(writer)
    (tmp_path / "file").write_bytes(content)
    try:
        assert read_dumps([f"/dev/fd/{reader}"], stdin=NOTHING) == read_dumps(
            [str(tmp_path / "file")], stdin=NOTHING
        )
    finally:
        os.close(reader)


def test_a_path_that_is_no_plain_file_is_not_read(tmp_path: Path) -> None:
    """It is a link, a folder, an endless pipe, nothing, or bytes that are no text."""
    file = tmp_path / "file"
    file.write_bytes(b"\xff\xfe")
    (tmp_path / "link").symlink_to(file)
    os.mkfifo(tmp_path / "pipe")
    for name, expected in {
        "link": "is a symbolic link",
        "pipe": "cannot be read: it is a folder, a pipe or a device",
        "none": "cannot be read: No such file",
        ".": "cannot be read: it is a folder, a pipe or a device",
        "file": "is not UTF-8 text",
    }.items():
        with pytest.raises(ConfigurationError, match=expected):
            read_dumps([str(tmp_path / name)], stdin=NOTHING)


@pytest.mark.parametrize(
    ("text", "more"), [("{" + " " * 200, ""), ("a: " + "b" * 200, "JSON may be larger")]
)
def test_a_dump_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, more: str
) -> None:
    """The limit for YAML is lower than that for JSON. It holds for standard input too."""
    monkeypatch.setattr(dumps, "MAX_JSON_BYTES", 150)
    monkeypatch.setattr(dumps, "MAX_YAML_BYTES", 100)
    file = tmp_path / "dump"
    file.write_text(text)
    for path in (str(file), "-"):
        with pytest.raises(ConfigurationError, match=f"is larger than 0 MiB.*{more}"):
            read_dumps([path], stdin=io.BytesIO(text.encode()))
