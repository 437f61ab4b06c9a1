"""The CRD as a text: its bounds, descriptions and columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from eurekube_sync.manifests.crd import (
    API_VERSION,
    FILE_NAMES,
    GROUP,
    KIND,
    crd_text,
    crd_texts,
    load_crd,
    load_crds,
    object_schema,
)
from eurekube_sync.manifests.documents import read_documents
from eurekube_sync.manifests.schema import lacking_fields
from eurekube_sync.manifests.validation import faults
from eurekube_sync.model.imports import IMPORT
from tests.cases import all_cases


def nodes(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each schema below a schema, with its path."""
    yield path, schema
    for name, sub in schema.get("properties", {}).items():
        yield from nodes(sub, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from nodes(schema["additionalProperties"], f"{path}{{}}")


def nodes_of(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each schema of a kind, with its path below the object."""
    for part in ("spec", "status"):
        yield from nodes(object_schema(kind)["properties"][part], part)


NODES = [*nodes_of(KIND), *nodes_of(IMPORT)]
WHOLE = [object_schema(kind) for kind in FILE_NAMES]
RULES = [
    rule
    for node in (*WHOLE, *(node for _, node in NODES))
    for rule in node.get("x-kubernetes-validations", ())
]
FIELDS = [(path, node) for path, node in NODES if path.startswith("spec.") and path[-1] not in "]}"]


@pytest.mark.parametrize(("path", "node"), NODES, ids=[path for path, _ in NODES])
def test_everything_is_bounded(path: str, node: dict[str, Any]) -> None:
    """Each string, list, mapping and number has an upper bound, also to limit the cost of the
    rules."""
    kind = node.get("type")
    if kind == "string":
        assert {"maxLength", "enum", "format"} & node.keys()
    if kind == "array":
        assert {"maxItems", "x-kubernetes-list-type"} <= node.keys()
    if kind == "integer":
        assert "minimum" in node
        assert path.startswith("status") or "maximum" in node
    if "additionalProperties" in node:
        assert "maxProperties" in node


@pytest.mark.parametrize(("path", "node"), FIELDS, ids=[path for path, _ in FIELDS])
def test_each_field_is_described(path: str, node: dict[str, Any]) -> None:
    """A description says what the field is and its default, and gives an example."""
    description = node["description"]
    assert description.endswith("`.")
    assert "Example: `" in description
    optional = path.count(".") == 1 and path != "spec.selector"
    assert "Default: " in description or not optional


@pytest.mark.parametrize(
    "node", [node for _, node in NODES if "pattern" in node], ids=lambda node: node["pattern"]
)
def test_patterns_mean_the_same_in_go_and_python(node: dict[str, Any]) -> None:
    """Each pattern is anchored, and uses no class that Python reads as Unicode."""
    pattern = node["pattern"]
    assert pattern.startswith("^")
    assert pattern.endswith("$")
    assert not {"\\d", "\\w", "\\s", "\\b", "(?"} & {
        pattern[at : at + 2] for at in range(len(pattern))
    }


def test_only_mode_has_a_default() -> None:
    """A default that the API server stores can never be corrected. All but one are the
    program's."""
    assert [path for path, node in NODES if "default" in node] == ["spec.mode"]


@pytest.mark.parametrize(
    "message", sorted({rule["message"] for rule in RULES if "oldSelf" not in rule["rule"]})
)
def test_the_parse_refuses_in_the_words_of_the_crds_rule(message: str) -> None:
    """The API server runs the rule, and `validate` and `run` parse. The table of cases has a
    manifest for each. A rule about two versions has a test of its own."""
    assert re.fullmatch(r"\S.{,138}[^.\s]", message)
    assert any(reason.startswith(message) for reason in refused_reasons())


@cache
def refused_reasons() -> list[str]:
    """The reason of each fault in the table of cases."""
    reasons = []
    for case in all_cases():
        reasons += [reason for _, reason in faults(case.manifest)]
    return reasons


@pytest.mark.parametrize(
    ("kind", "narrow", "wide"),
    [
        (KIND, ["App", "Mode", "Ready", "Reason", "Age"], ["VIP", "Up", "Down"]),
        (IMPORT, ["App", "Service", "Ready", "Reason", "Age"], []),
    ],
)
def test_columns(kind: str, narrow: list[str], wide: list[str]) -> None:
    """What `kubectl get` prints, and what `-o wide` adds."""
    (version,) = load_crd(kind)["spec"]["versions"]
    columns = version["additionalPrinterColumns"]
    assert [column["name"] for column in columns if not column.get("priority")] == narrow
    assert [column["name"] for column in columns if column.get("priority")] == wide


@pytest.mark.parametrize(("kind", "short"), [("EurekaSyncer", "esync"), ("EurekaImport", "eimp")])
def test_the_kind_and_its_short_name(kind: str, short: str) -> None:
    """A kind of eurekube.io/v1, with a short name and a status subresource."""
    spec = load_crd(kind)["spec"]
    (version,) = spec["versions"]
    assert f"{spec['group']}/{version['name']}" == API_VERSION == "eurekube.io/v1"
    names = spec["names"]
    assert (spec["group"], names["kind"], names["shortNames"]) == (GROUP, kind, [short])
    assert version["subresources"] == {"status": {}}
    assert crd_text(kind).startswith("#")


def test_both_are_one_stream() -> None:
    """`eurekube-sync crd` prints it for `kubectl apply`."""
    assert [document.value for document in read_documents(crd_texts(), file="")] == load_crds()


@pytest.mark.parametrize(
    ("stored", "lacking"),
    [
        ({}, ("spec", "status")),
        ({"x-kubernetes-preserve-unknown-fields": True}, ()),
        ({"properties": {"spec": {}, "status": {}}}, ("spec.map", "status.list")),
        (
            {
                "properties": {
                    "spec": {"properties": {"map": {}}},
                    "status": {"properties": {"list": {"items": {"properties": {"old": {}}}}}},
                }
            },
            ("spec.map", "status.list.new"),
        ),
    ],
    ids=["empty", "keeps all", "fields", "within"],
)
def test_the_fields_that_an_older_crd_drops(
    stored: dict[str, Any], lacking: tuple[str, ...]
) -> None:
    """Only the outermost are named; nothing is lacking of the same schema."""
    expected = {
        "properties": {
            "metadata": {"properties": {"name": {}}},
            "spec": {"properties": {"map": {"additionalProperties": {"type": "string"}}}},
            "status": {"properties": {"list": {"items": {"properties": {"new": {}}}}}},
        }
    }
    assert lacking_fields(stored, expected) == lacking
    assert lacking_fields(expected, expected) == ()


def test_our_own_crds_lack_nothing_of_themselves() -> None:
    for kind in FILE_NAMES:
        assert lacking_fields(object_schema(kind), object_schema(kind)) == ()
        assert lacking_fields({}, object_schema(kind)) == ("spec", "status")
