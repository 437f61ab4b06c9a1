"""The order of calls: a syncer or namespace with many instances must not delay one with few."""

from __future__ import annotations

import pytest

from eurekube_sync.apply.leases import by_turns, in_turn, whose_key
from eurekube_sync.model.eureka import InstanceKey


def turns(text: str) -> str:
    """Order items such as `a1`: the letter is a namespace, and the number is a syncer. Equal items
    keep their order."""
    items = [(number, part) for number, part in enumerate(text.split())]
    found = in_turn(items, lambda item: (item[1][0], item[1][1:]))
    for one in {part for _, part in found}:
        own = [number for number, part in found if part == one]
        assert own == sorted(own), "those of one keep their order"
    return " ".join(part for _, part in found)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("a1 a1 a1", "a1 a1 a1"),
        ("a1 a1 a1 b1", "a1 b1 a1 a1"),
        ("a1 a1 a1 b1 b1 c1", "a1 b1 c1 a1 b1 a1"),
        ("a1 a1 a1 a2", "a1 a2 a1 a1"),
        # Many syncers of one namespace get no more turns than a single syncer of another.
        ("a1 a2 a3 a4 b1 b1", "a1 b1 a2 b1 a3 a4"),
        # Syncers of one namespace take turns, too.
        ("a1 a1 a1 a2 b1 b1 b1", "a1 b1 a2 b1 a1 b1 a1"),
    ],
)
def test_one_of_each_and_then_the_next_of_each(before: str, after: str) -> None:
    """Namespaces take turns, and so do the syncers in each namespace."""
    assert turns(before) == after


@pytest.mark.parametrize(
    ("id_", "namespace"),
    [("prod:bank:pay:10.0.0.1:8080", "bank"), ("a:b", "b"), ("stranger", ""), ("", "")],
)
def test_an_id_of_ours_has_the_namespace(id_: str, namespace: str) -> None:
    """For another owner's id, the result may be any text."""
    assert whose_key(InstanceKey("PAY", id_)) == (namespace, "PAY")


@pytest.mark.parametrize(
    ("some", "others", "expected"),
    [("", "", ""), ("abc", "", "abc"), ("", "xy", "xy"), ("abc", "x", "axbc")],
)
def test_two_lists_take_turns(some: str, others: str, expected: str) -> None:
    """The rest of the longer list comes last."""
    assert "".join(by_turns(some, others)) == expected
