"""The limit of a syncer: how many of its instances may be UP.

A mark in an instance has the limit under which it was registered.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

from msgspec import Struct

from eurekube_sync.model.errors import Faults

LIMIT = "eurekube.limit"  # the limit when the instance was last registered

_MOST = 100_000


class Measure(StrEnum):
    """The unit of a limit: instances, percent of our pods, or percent of all UP instances of the
    VIP. Each value is the format of the mark."""

    COUNT = "{}"
    PODS = "{}%"
    SHARE = "share {}%"


_FORMS = {
    int: (Measure.COUNT, _MOST),
    str: (Measure.PODS, 100),
    dict: (Measure.SHARE, 100),
}
"""By the type of `spec.limit`, the unit and the highest value."""


class Limit(Struct, frozen=True, kw_only=True):
    """How many instances may be UP: a number, or a percentage."""

    measure: Measure
    value: int

    def __str__(self) -> str:
        return self.measure.format(self.value)

    def places(self, *, pods: int, others: int) -> int | None:
        """Return how many instances may be UP; None: all. `pods` is the number of our pods, ready
        or not, `others` that of the VIP's UP instances that are not ours. Percentages round up; a
        share above zero gives at least 1."""
        if self.measure is Measure.COUNT:
            return self.value
        if self.measure is Measure.PODS:
            return _up(self.value * pods, 100)
        if self.value == 100:  # no number of others takes a part of it
            return None
        number = _up(self.value * others, 100 - self.value)  # n of n + others
        if self.value > 0:
            return max(number, 1)
        return number

    def may_remove(self, mark: str) -> bool:
        """Whether an instance with this mark may have to go. A number may always remove one. A
        percentage may only after a person lowered it: an instance that is over an unchanged one
        stays, because there may be fewer pods now."""
        if self.measure is Measure.COUNT:
            return True
        return not self.lets_in(mark)

    def lets_in(self, mark: str) -> bool:
        """Whether an instance with this mark was registered under this limit, or a lower one with
        the same unit."""
        before = read_mark(mark)
        if before is None or before.measure is not self.measure:
            return False
        return before.value <= self.value


def _up(dividend: int, divisor: int) -> int:
    """Divide, and round up."""
    return -(-dividend // divisor)


def parse_limit(limit: Any, wrong: Faults) -> Limit | None:
    """Read `spec.limit`: a number, `20%`, or `{share: 10%}`."""
    if limit is None:
        return None
    mark = str(limit)
    if isinstance(limit, dict) and limit.keys() == {"share"}:
        mark = f"share {limit['share']}"
    known = read_mark(mark)
    form = _FORMS.get(type(limit))
    if known is not None and form is not None:
        measure, most = form
        if known.measure is measure and known.value <= most:
            return known
    fault = f"{limit!r} is not a number in 0..{_MOST}, a percentage such as 20%, or {{share: 10%}}"
    wrong.add(("limit",), fault)
    return None


def read_mark(mark: str) -> Limit | None:
    """Return the limit in a mark, or None if the mark is not one of ours."""
    digits = re.search("[0-9]{1,6}", mark)
    if digits is None:
        return None
    value = int(digits[0])
    for measure in Measure:
        limit = Limit(measure=measure, value=value)
        if str(limit) == mark:  # the whole of it: `10` is in `share 10%` as well
            return limit
    return None
