"""Manifests from files, folders and standard input."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from eurekube_sync.manifests import files as manifest_files
from eurekube_sync.manifests.documents import Report, Severity
from eurekube_sync.manifests.files import validate_paths

GOOD = (
    "apiVersion: eurekube.io/v1\nkind: EurekaSyncer\nmetadata: {name: rating}\nspec: "
    "{selector: {app: rating}}\n"
)
OTHER = "apiVersion: v1\nkind: ConfigMap\n"
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


def check(*paths: Path | str, stdin: bytes = b"", allow_empty: bool = False) -> Report:
    """The result of `validate` for some paths."""
    return validate_paths(
        [str(path) for path in paths], stdin=io.BytesIO(stdin), allow_empty=allow_empty
    )


def said(report: Report) -> list[str]:
    """Findings with the last part of their file's name."""
    return [f"{Path(f.file).name} {f.line} {f.severity} {f.reason}" for f in report.findings]


def test_folders_are_searched(tmp_path: Path) -> None:
    """YAML and JSON files are read at any depth. Other files and hidden ones are left out."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "..data").mkdir()
    for name in ("a.yaml", "deep/b.yml", "deep/c.json", "d.txt", ".e.yaml", "..data/a.yaml"):
        (tmp_path / name).write_text(GOOD if not name.endswith("json") else "{}")
    (tmp_path / "link").symlink_to(tmp_path)
    report = check(tmp_path)
    assert (report.files, report.documents, report.syncers) == (3, 3, 2)
    assert said(report) == ["c.json 1 error no Kubernetes object: apiVersion and kind are needed"]
    assert not report.ok


def test_only_files_are_read_in_a_folder(tmp_path: Path) -> None:
    """A pipe without a writer, and a link to a device or a folder, are findings in the place of a
    manifest. A link to a file is read, as in a ConfigMap."""
    os.mkfifo(tmp_path / "a.yaml")
    (tmp_path / "b.yaml").symlink_to("/dev/zero")
    (tmp_path / "good").write_text(GOOD)
    (tmp_path / "c.yaml").symlink_to(tmp_path / "good")
    (tmp_path / "d.yaml").symlink_to(tmp_path)
    report = check(tmp_path)
    odd = "None error cannot be read: it is a folder, a pipe or a device"
    assert (said(report), report.syncers) == (
        [f"a.yaml {odd}", f"b.yaml {odd}", f"d.yaml {odd}"],
        1,
    )


def test_a_file_without_end_is_too_large(tmp_path: Path) -> None:
    """At most the allowed size is read."""
    with (tmp_path / "sparse.yaml").open("wb") as file:
        file.truncate(10 * 2**30)
    assert said(check(tmp_path / "sparse.yaml")) == ["sparse.yaml None error is larger than 32 MiB"]


def test_manifests_may_come_from_the_shell() -> None:
    """The shell gives `validate <(helm template chart)`, or `/dev/stdin`."""
    read, write = os.pipe()
    os.write(write, GOOD.encode())
    os.close(write)
    assert check(f"/dev/fd/{read}").syncers == 1
    os.close(read)


def test_a_place_without_a_syncer(tmp_path: Path) -> None:
    """Beside others it is counted, without a finding."""
    (tmp_path / "a.yaml").write_text(OTHER)
    beside = check(tmp_path / "a.yaml", "-", stdin=GOOD.encode())
    assert (beside.findings, beside.files, beside.syncers, beside.others) == ((), 2, 1, 1)
    (tmp_path / "b.yaml").write_text(GOOD)
    report = check(tmp_path)
    assert (report.findings, report.others, report.ok, report.warnings) == ((), 1, True, 0)


@pytest.mark.parametrize(
    ("content", "there"),
    [
        (None, "nothing at all"),
        ("", "nothing at all"),
        ("# nothing\n---\n", "nothing at all"),
        (OTHER, "only 1 object of other kinds"),
    ],
)
def test_no_syncer_anywhere_is_an_error(tmp_path: Path, content: str | None, there: str) -> None:
    """An empty folder, an empty file and one of other kinds fail with one sentence, unless that is
    allowed."""
    if content is not None:
        (tmp_path / "a.yaml").write_text(content)
    name = tmp_path if content is None else tmp_path / "a.yaml"
    report = check(name)
    reason = (
        f"no EurekaSyncer or EurekaImport was found, {there}; if that is right, give --allow-empty"
    )
    assert said(report) == [f"{name.name} None error {reason}"]
    assert not report.ok
    allowed = check(name, allow_empty=True)
    assert (allowed.ok, allowed.warnings) == (True, 0)


def test_nothing_on_standard_input_is_an_error(tmp_path: Path) -> None:
    """The pipe of a failed command is empty, and must not pass."""
    (finding,) = check("-").findings
    assert (finding.file, finding.severity) == ("<stdin>", Severity.ERROR)
    (tmp_path / "empty").touch()
    (finding,) = check("-", tmp_path / "empty").findings
    assert str(finding).startswith("error: $: no EurekaSyncer or EurekaImport was found")


def test_standard_input() -> None:
    """`-` means standard input. It is read once, even if it is given twice."""
    report = check("-", "-", stdin=GOOD.encode())
    assert (report.findings, report.files, report.syncers) == ((), 1, 1)


def test_unreadable_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is missing, not UTF-8 or too large is a finding. The others are still read."""
    (tmp_path / "good.yaml").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: \xe9\n")
    (tmp_path / "large.yaml").write_text("#" * 1000)
    monkeypatch.setattr(manifest_files, "MAX_BYTES", 500)
    report = check(tmp_path / "missing.yaml", tmp_path, "a\0b")
    with pytest.raises(ValueError, match="null") as refused:
        os.open("a\0b", os.O_RDONLY)
    assert said(report) == [
        "missing.yaml None error cannot be read: No such file or directory",
        "large.yaml None error is larger than 0 MiB",
        "latin.yaml 2 error is not UTF-8 text",
        f"a\0b None error cannot be read: {refused.value}",
    ]
    assert (report.files, report.syncers, report.errors) == (5, 1, 4)


def test_examples_are_valid() -> None:
    """The examples of the documentation have neither an error nor a warning."""
    report = check(EXAMPLES)
    assert report.findings == ()
    assert report.syncers >= 4
