"""How a syncer wants its instances handled: limit, policy, suspend, duplicates and readiness gate.

The marks in an instance have the limit under which it was registered, and the policy that holds
after its syncer's deletion.
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

LIMIT = "eurekube.limit"  # the limit when the instance was last registered
POLICY = "eurekube.policy"  # the policy, unless it is Sync
# `true` if it was turned DOWN instead of cancelled. It is not renewed, and expires.
GONE = "eurekube.gone"

_MOST = 100_000


class Measure(StrEnum):
    """The unit of a limit: instances, percent of our pods, or percent of all UP instances of the
    VIP. Each value is the format of the mark."""

    COUNT = "{}"
    PODS = "{}%"
    SHARE = "share {}%"


_FORMS = {int: (Measure.COUNT, _MOST), str: (Measure.PODS, 100), dict: (Measure.SHARE, 100)}
"""By the type of `spec.limit`, the unit and the highest value."""


class Policy(StrEnum):
    """Which changes of registered instances are allowed."""

    SYNC = "Sync"  # all
    UPSERT_ONLY = "UpsertOnly"  # all but cancels
    CREATE_ONLY = "CreateOnly"  # only from UP to DOWN and back


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
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
            return -(-self.value * pods // 100)
        if self.value == 100:
            return None
        return max(
            -(-self.value * others // (100 - self.value)), min(self.value, 1)
        )  # n of n + others

    def lowered_since(self, mark: str) -> bool:
        """Whether a person lowered the limit after an instance with this mark was registered. An
        instance that is over an unchanged percentage stays, because there may be fewer pods now; a
        number always counts as lowered."""
        return self.measure is Measure.COUNT or not self.let_in(mark)

    def let_in(self, mark: str) -> bool:
        """Whether an instance with this mark was registered under this limit, or a lower one with
        the same unit."""
        before = read_mark(mark)
        return before is not None and before.measure is self.measure and before.value <= self.value


class Conduct(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """The fields of a spec that say how its instances are handled."""

    limit: Limit | None = None
    policy: Policy = Policy.SYNC
    suspend: bool = False
    on_duplicate: Literal["Skip", "Warn"] = (
        "Skip"  # whether a pod that registers itself is registered twice
    )
    readiness_gate: bool = False

    @property
    def claims_nothing(self) -> bool:
        """Whether the limit is 0, so that another syncer may register the same endpoints."""
        return self.limit is not None and self.limit.value == 0 and not self.suspend

    @property
    def marks(self) -> Mapping[str, str]:
        """The marks that are written into each instance."""
        marks = {LIMIT: str(self.limit)} if self.limit else {}
        return marks if self.policy is Policy.SYNC else {**marks, POLICY: self.policy.value}


def parse_limit(limit: Any, wrong: Faults) -> Limit | None:
    """Read `spec.limit`: a number, `20%`, or `{share: 10%}`."""
    if limit is None:
        return None
    share = limit.get("share") if isinstance(limit, dict) and len(limit) == 1 else None
    found = read_mark(f"share {share}" if isinstance(share, str) else str(limit))
    measure, most = _FORMS.get(type(limit), (None, 0))
    if found and found.measure is measure and found.value <= most:
        return found
    wrong.add(
        ("limit",),
        f"{limit!r} is not a number in 0..{_MOST}, a percentage such as 20%, or {{share: 10%}}",
    )
    return None


def read_mark(mark: str) -> Limit | None:
    """Return the limit in a mark, or None if the mark is not one of ours."""
    found = re.search("[0-9]{1,6}", mark)
    value = int(found[0]) if found else 0
    return next(
        (Limit(measure=one, value=value) for one in Measure if one.format(value) == mark), None
    )


def policy_of(marked: Mapping[str, Any], name: str = POLICY) -> Policy:
    """Return the policy in an instance's marks or in a raw spec. An unknown one counts as
    UpsertOnly."""
    named = marked.get(name, Policy.SYNC)
    return next((one for one in Policy if one == named), Policy.UPSERT_ONLY)


def is_gone(instance: ObservedInstance) -> bool:
    """Whether the instance was turned DOWN instead of cancelled, and is to expire."""
    return GONE in instance.metadata and instance.status is not InstanceStatus.UP
