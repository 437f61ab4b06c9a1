"""Limits: how many places a limit gives, and how their marks are read."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.desired.limit import (
    Limit,
    read_mark,
)
from eurekube_sync.desired.spec import parse
from eurekube_sync.model.errors import InvalidSyncer
from tests.unit.worlds.build import syncer


def limit(value: Any) -> Limit:
    """The limit that this value of the spec means."""
    found = parse(syncer(limit=value)).limit
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("value", "pods", "others", "places"),
    [
        (0, 10, 9, 0),
        (3, 10, 9, 3),
        (3.0, 10, 9, 3),
        ("0%", 10, 9, 0),
        ("20%", 10, 9, 2),
        ("20%", 11, 9, 3),
        ("1%", 1, 9, 1),
        ("20%", 0, 9, 0),
        ("100%", 7, 9, 7),
        ("100%", 101, 9, 101),
        ({"share": "0%"}, 10, 9, 0),
        ({"share": "10%"}, 10, 9, 1),
        ({"share": "10%"}, 10, 10, 2),
        ({"share": "50%"}, 10, 9, 9),
        ({"share": "50%"}, 10, 51, 51),
        ({"share": "90%"}, 10, 1, 9),
        ({"share": "10%"}, 10, 0, 1),
        ({"share": "100%"}, 10, 9, None),
        (None, 10, 9, None),
    ],
)
def test_a_limit_is_a_number_of_places(
    value: Any, pods: int, others: int, places: int | None
) -> None:
    """Percentages round up. A share counts all instances, ours and others': 1 of 1 + 9 is 10 %.
    None means no bound."""
    found = parse(syncer(limit=value)).limit
    assert (found.places(pods=pods, others=others) if found else None) == places


@pytest.mark.parametrize(
    "value",
    [
        -1,
        100_001,
        1.5,
        True,
        "3",
        "101%",
        "020%",
        "%",
        "",
        {},
        {"share": 10},
        {"share": "1%", "a": 1},
        [],
        ["1%"],
    ],
)
def test_a_limit_that_means_nothing_is_refused(value: Any) -> None:
    """The message shows all three forms."""
    with pytest.raises(
        InvalidSyncer, match=r"spec.limit: .* not a number in .* 20%, or {share: 10%}"
    ) as caught:
        parse(syncer(limit=value))
    assert caught.value.reason == "InvalidSpec"


@pytest.mark.parametrize(
    "value", [0, 3, 100_000, "20%", "100%", {"share": "10%"}, {"share": "100%"}]
)
def test_a_mark_reads_back_as_the_limit_that_wrote_it(value: Any) -> None:
    """This holds for every form."""
    assert read_mark(str(limit(value))) == limit(value)


@pytest.mark.parametrize("mark", ["", "share 10", "10 %", "share", "-1", "ten", "1234567"])
def test_a_text_that_we_would_not_write_is_no_mark(mark: str) -> None:
    """Somebody else wrote it."""
    assert read_mark(mark) is None


@pytest.mark.parametrize(
    ("value", "mark", "lowered"),
    [
        ({"share": "10%"}, "share 10%", False),
        ({"share": "10%"}, "share 50%", True),
        ({"share": "50%"}, "share 10%", False),
        ({"share": "10%"}, "10%", True),
        ({"share": "10%"}, "3", True),
        ({"share": "10%"}, "", True),
        ("20%", "20%", False),
        ("20%", "30%", True),
        ("20%", "", True),
        (3, "3", True),
        (3, "", True),
    ],
)
def test_only_a_lowered_percentage_may_remove_an_instance(
    value: Any, mark: str, lowered: bool
) -> None:
    """A percentage of something else, or no earlier limit, counts as lowered. A plain number always
    may."""
    assert limit(value).may_remove(mark) is lowered
