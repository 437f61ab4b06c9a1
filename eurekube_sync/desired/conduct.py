"""How a syncer treats what it registers: how much of it, under which policy, and what it leaves alone.

The marks in an instance tell under which limit it was let in, and which policy holds after its syncer is gone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

import msgspec

from eurekube_sync.model.errors import Faults
from eurekube_sync.model.eureka import InstanceStatus, ObservedInstance
from eurekube_sync.model.values import dataclass

LIMIT = "eurekube.limit"  # the limit that was in force when the instance was last written
POLICY = "eurekube.policy"  # the policy, unless it is Sync
GONE = "eurekube.gone"  # `true` where it was turned DOWN instead of cancelled. Nobody renews it, and it expires.

_MOST = 100_000


class Measure(StrEnum):
    """What a limit counts in: instances, percent of our pods, or of all UP instances of the VIP. The mark's forms."""

    COUNT = "{}"
    PODS = "{}%"
    SHARE = "share {}%"


_FORMS = {int: (Measure.COUNT, _MOST), str: (Measure.PODS, 100), dict: (Measure.SHARE, 100)}
"""How a spec says each, and the highest value."""


class Policy(StrEnum):
    """What may be done to what is registered."""

    SYNC = "Sync"
    UPSERT_ONLY = "UpsertOnly"  # nothing is cancelled
    CREATE_ONLY = "CreateOnly"  # what is registered is renewed and follows UP and DOWN; nothing else is changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How many instances may be UP: a number, or a percentage."""

    measure: Measure
    value: int

    def __str__(self) -> str:
        return self.measure.format(self.value)

    def places(self, *, pods: int, others: int) -> int | None:
        """How many instances may be UP; None: all. `pods` are ours, ready or not, `others` the UP instances of the VIP
        that are not. Percentages round up, and one above zero gives one place at least: it asks for something."""
        if self.measure is Measure.COUNT:
            return self.value
        if self.measure is Measure.PODS:
            return -(-self.value * pods // 100)
        if self.value == 100:
            return None
        return max(-(-self.value * others // (100 - self.value)), min(self.value, 1))  # n of n + others

    def lowered_since(self, mark: str) -> bool:
        """Whether an instance with this mark was let in under a higher limit, one of another kind, or none. What a
        percentage comes to may fall by itself, when pods go, and takes nothing out; a number always counts."""
        return self.measure is Measure.COUNT or not self.let_in(mark)

    def let_in(self, mark: str) -> bool:
        """Whether an instance with this mark was let in under this limit, or a lower one of its kind."""
        before = read_mark(mark)
        return before is not None and before.measure is self.measure and before.value <= self.value


class Conduct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What a spec says of it."""

    limit: Limit | None = None
    policy: Policy = Policy.SYNC
    suspend: bool = False
    on_duplicate: Literal["Skip", "Warn"] = "Skip"
    """What registers itself is not registered a second time, or with a warning."""
    readiness_gate: bool = False

    @property
    def claims_nothing(self) -> bool:
        """Whether it lets nothing in, so that what it selects is free for another syncer."""
        return self.limit is not None and self.limit.value == 0 and not self.suspend

    @property
    def marks(self) -> Mapping[str, str]:
        """What is written into each instance."""
        marks = {LIMIT: str(self.limit)} if self.limit else {}
        return marks if self.policy is Policy.SYNC else {**marks, POLICY: self.policy.value}


def parse_limit(limit: Any, wrong: Faults) -> Limit | None:
    """`spec.limit`: a number, `20%`, or `{share: 10%}`."""
    if limit is None:
        return None
    share = limit.get("share") if isinstance(limit, dict) and len(limit) == 1 else None
    asked = read_mark(f"share {share}" if isinstance(share, str) else str(limit))
    measure, most = _FORMS.get(type(limit), (None, 0))
    if asked and asked.measure is measure and asked.value <= most:
        return asked
    wrong.add(("limit",), f"{limit!r} is not a number in 0..{_MOST}, a percentage such as 20%, or {{share: 10%}}")
    return None


def read_mark(mark: str) -> Limit | None:
    """The limit that a mark names; None for none that we could have written."""
    found = re.search("[0-9]{1,6}", mark)
    value = int(found[0]) if found else 0
    return next((Limit(measure=one, value=value) for one in Measure if one.format(value) == mark), None)


def policy_of(marked: Mapping[str, Any], name: str = POLICY) -> Policy:
    """The policy that an instance's mark or a raw spec names. One of a later version counts as never cancelling."""
    named = marked.get(name, Policy.SYNC)
    return next((one for one in Policy if one == named), Policy.UPSERT_ONLY)


def is_gone(instance: ObservedInstance) -> bool:
    """Whether it was turned DOWN instead of cancelled, and is left to expire."""
    return GONE in instance.metadata and instance.status is not InstanceStatus.UP
