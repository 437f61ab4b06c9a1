"""The CRD as a text: its bounds, descriptions and columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from eurekube_sync.manifests.crd import API_VERSION, GROUP, KIND, crd_text, load_crd, object_schema
from eurekube_sync.manifests.validation import faults
from tests.cases import syncer_cases

SPEC = object_schema()["properties"]["spec"]


def nodes(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each schema below a schema, with its path."""
    yield path, schema
    for name, sub in schema.get("properties", {}).items():
        yield from nodes(sub, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from nodes(schema["additionalProperties"], f"{path}{{}}")


NODES = [*nodes(SPEC, "spec"), *nodes(object_schema()["properties"]["status"], "status")]
RULES = [rule for _, node in NODES for rule in node.get("x-kubernetes-validations", ())]
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


@pytest.mark.parametrize("message", sorted({rule["message"] for rule in RULES}))
def test_the_parse_refuses_in_the_words_of_the_crds_rule(message: str) -> None:
    """The API server runs the rule, and `validate` and `run` parse. The table of cases has a
    manifest for each."""
    assert re.fullmatch(r"\S.{,138}[^.\s]", message)
    reasons = [fault for case in syncer_cases() for _, fault in faults(case.manifest)]
    assert any(reason.startswith(message) for reason in reasons)


def test_columns() -> None:
    """`kubectl get` prints App, Mode, Ready, Reason and Age. `-o wide` adds VIP, Up and Down."""
    (version,) = load_crd()["spec"]["versions"]
    columns = version["additionalPrinterColumns"]
    assert [c["name"] for c in columns if not c.get("priority")] == [
        "App",
        "Mode",
        "Ready",
        "Reason",
        "Age",
    ]
    assert [c["name"] for c in columns if c.get("priority")] == ["VIP", "Up", "Down"]


def test_the_kind_and_its_short_name() -> None:
    """The kind is EurekaSyncer of eurekube.io/v1, short esync, with a status subresource."""
    spec = load_crd()["spec"]
    assert (
        [f"{spec['group']}/{one['name']}" for one in spec["versions"]]
        == [API_VERSION]
        == ["eurekube.io/v1"]
    )
    assert (spec["group"], spec["names"]["kind"], spec["names"]["shortNames"]) == (
        GROUP,
        KIND,
        ["esync"],
    )
    assert KIND == "EurekaSyncer"
    assert spec["versions"][0]["subresources"] == {"status": {}}
    assert crd_text().startswith("#")
