"""Patches of the embedded API: RFC 7386, RFC 6902 and strategic merge. The inputs stay
unchanged."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eurekube_sync.embedded.kubernetes.bodies import json_patch, merge_patch
from eurekube_sync.embedded.kubernetes.errors import ApiError

KEYS = st.sampled_from(["a", "b", "c"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, JSON, max_size=3)


def without_nulls(value: Any) -> Any:
    """A document that can be stored. RFC 7386 cannot write a null member."""
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return value


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_rfc_7386(target: Any, patch: Any, expected: Any) -> None:
    """They are in its appendix A."""
    assert merge_patch(target, patch) == expected


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_applied_twice_is_applied_once(target: Any, patch: Any) -> None:
    """It also leaves both of its arguments unchanged."""
    before = copy.deepcopy((target, patch))
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once
    assert (target, patch) == before


@given(OBJECTS)
def test_a_merge_patch_of_a_whole_document_onto_nothing_is_it(document: Any) -> None:
    """Null members are left out."""
    assert merge_patch({}, document) == without_nulls(document)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/l/-", "value": 3}, {"l": [1, 2, 3], "o": {"x/y": 1}}),
        ({"op": "add", "path": "/l/0", "value": 0}, {"l": [0, 1, 2], "o": {"x/y": 1}}),
        ({"op": "replace", "path": "/o/x~1y", "value": 2}, {"l": [1, 2], "o": {"x/y": 2}}),
        ({"op": "remove", "path": "/l/1"}, {"l": [1], "o": {"x/y": 1}}),
        ({"op": "test", "path": "/absent", "value": None}, {"l": [1, 2], "o": {"x/y": 1}}),
    ],
)
def test_json_patch_operations(operation: Any, expected: Any) -> None:
    """Each of the four operations, with escaped pointers."""
    document = {"l": [1, 2], "o": {"x/y": 1}}
    assert json_patch(document, [operation]) == expected
    assert document == {"l": [1, 2], "o": {"x/y": 1}}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "add", "path": "/l/-", "value": 1},
        {"op": "add", "path": "/absent/a", "value": 1},
        {"op": "remove", "path": "/absent"},
        {"op": "replace", "path": "/absent", "value": 1},
        {"op": "jump", "path": "/a"},
        {"path": "a"},
        "x",
    ],
)
def test_json_patches_that_do_not_fit(operation: Any) -> None:
    """They all give one error, because the server does not say which patch failed."""
    with pytest.raises(ApiError):
        json_patch({"a": 1}, [operation])


def test_strategic_merge_follows_the_merge_keys() -> None:
    """Ports merge by port, and conditions by type. kubectl sends `$patch: delete`."""
    service = {
        "spec": {
            "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}],
            "externalIPs": ["1"],
        }
    }
    patch = {
        "spec": {
            "$setElementOrder/ports": [{"port": 80}, {"port": 82}],
            "ports": [
                {"port": 82, "name": "c"},
                {"port": 80, "nodePort": 1},
                {"port": 81, "$patch": "delete"},
            ],
            "externalIPs": ["2"],
        }
    }
    assert merge_patch(service, patch, strategic=True)["spec"] == {
        "ports": [{"port": 80, "name": "a", "nodePort": 1}, {"port": 82, "name": "c"}],
        "externalIPs": ["2"],
    }
    pod = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    changed = merge_patch(
        pod, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, strategic=True
    )
    assert changed["status"]["conditions"] == [{"type": "Ready", "status": "False"}]
