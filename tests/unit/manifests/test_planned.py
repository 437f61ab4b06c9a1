"""Manifests as the API server would store them, for a plan before they are applied."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from eurekube_sync.manifests.documents import Report
from eurekube_sync.manifests.planned import PlannedObject, read_planned

SYNCER = """\
apiVersion: eurekube.io/v1
kind: EurekaSyncer
metadata: {name: NAME}
spec: {selector: {app: NAME}}
"""
DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: rating}\n"


def read(text: str, **more: Any) -> tuple[Report, tuple[PlannedObject, ...]]:
    given = {"namespace": "here", **more}
    return read_planned(["-"], stdin=io.BytesIO(text.encode()), **given)


def syncer(name: str) -> str:
    return SYNCER.replace("NAME", name)


def test_an_object_has_the_defaults_of_the_crd_and_a_namespace() -> None:
    """Other fields of its metadata are the server's, such as a UID that kubectl wrote."""
    text = syncer("rating").replace(
        "{name: rating}", "{name: rating, uid: x, labels: {a: b}, annotations: {c: d}}"
    )
    report, planned = read(text)
    assert report.ok
    assert planned == (
        PlannedObject(
            kind="EurekaSyncer",
            namespace="here",
            name="rating",
            labels={"a": "b"},
            annotations={"c": "d"},
            spec={"mode": "pod", "selector": {"app": "rating"}},
        ),
    )
    assert str(planned[0]) == "EurekaSyncer here/rating"


def test_a_namespace_that_is_given_stays() -> None:
    (only,) = read(syncer("a").replace("{name: a}", "{name: a, namespace: there}"))[1]
    assert only.namespace == "there"


def test_the_rendering_of_a_chart_has_other_kinds() -> None:
    """They are counted, and not planned. A list is its items."""
    listed = (
        "apiVersion: v1\nkind: List\nitems:\n- " + syncer("c").replace("\n", "\n  ").rstrip() + "\n"
    )
    report, planned = read("---\n".join([syncer("a"), DEPLOYMENT, syncer("b"), listed]))
    assert report.others == 1
    assert [thing.name for thing in planned] == ["a", "b", "c"]


def test_of_two_with_one_name_the_last_counts() -> None:
    """As if one was applied after the other."""
    report, planned = read(f"{syncer('a')}---\n{syncer('a').replace('app: a', 'app: b')}")
    assert report.ok
    assert [thing.spec["selector"] for thing in planned] == [{"app": "b"}]


def test_folders_files_and_standard_input_are_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(syncer("a"))
    (tmp_path / "notes.txt").write_text("no manifest")
    more = tmp_path / "more.json"
    more.write_text('{"apiVersion": "eurekube.io/v1", "kind": "EurekaImport", "metadata": '
                    '{"name": "b"}, "spec": {"app": "B"}}')  # fmt: skip
    report, planned = read_planned(
        [str(tmp_path / "a.yaml"), str(more), "-"],
        stdin=io.BytesIO(syncer("c").encode()),
        namespace="here",
    )
    assert report.ok, report.findings
    assert [str(thing) for thing in planned] == [
        "EurekaSyncer here/a",
        "EurekaImport here/b",
        "EurekaSyncer here/c",
    ]
    found, planned = read_planned([str(tmp_path)], stdin=io.BytesIO(), namespace="x")
    assert (found.files, len(planned)) == (2, 2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (syncer("a").replace("app: a", "ap: a"), "unknown field"),
        (syncer("a").replace("{name: a}", "{generateName: a-}"), "a plan needs a name"),
        (f"{syncer('a')}---\n{syncer('{{ .Values.name }}')}", "this is a Helm template"),
        ("a: [", "document 1"),
    ],
)
def test_what_validate_refuses_is_refused(text: str, words: str) -> None:
    report, _ = read(text)
    assert not report.ok
    assert words in "\n".join(map(str, report.findings))
