"""Dates in HTTP headers."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from eurekube_sync.adapters.clock import unix_time


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose local time is nine hours ahead of UTC."""
    monkeypatch.setenv("TZ", "JST-9")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("far_east")
@pytest.mark.parametrize("zone", [" GMT", " +0000", " -0000", ""])
def test_a_date_is_in_greenwich_time_unless_it_says_otherwise(zone: str) -> None:
    """If it were local time, a `Retry-After` date would be hours too early or too late."""
    assert unix_time(f"Thu, 01 Jan 1970 00:01:00{zone}") == 60


@pytest.mark.parametrize(
    "text", ["", "x", "3", "Thu, 01 Jan 1970 25:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 +999999"]
)
def test_a_text_that_is_no_date_gives_none(text: str) -> None:
    assert unix_time(text) is None
