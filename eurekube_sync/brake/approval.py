"""What a person released: a plan by its id, or one syncer's removals for some time. A release that
cannot be meant for this pass, because it is too old or malformed, releases nothing, and is
reported. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from eurekube_sync.model.actions import Removal
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.text import cut
from eurekube_sync.plan.value import removal_id

APPROVE_ANNOTATION = "eurekube.io/approve-removals-until"
LONGEST = 3600  # seconds: how far ahead an annotation may release, and how old a plan id may be

_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_PLAN_ID = re.compile(r"[0-9a-f]{12}")


class PlanId(Struct, frozen=True):
    """Releases exactly the set of removals with this checksum: all held ones, or all planned
    ones."""

    value: str
    given: float | None = None
    """Unix seconds; a daemon must not keep the release for another day's outage of the same
    pods."""

    def __str__(self) -> str:
        return self.value


def approve_command(plan_id: str, options: Sequence[str]) -> str:
    """Return the command that releases a plan. It names the scope, because another scope has
    another plan."""
    return shlex.join(["eurekube-sync", "run", *options, "--approve", plan_id])


def parse_plan_id(given: str) -> str:
    """Read the value of `--approve`. Raises ValueError with a message for the user."""
    plan_id = given.strip()
    if not _PLAN_ID.fullmatch(plan_id):
        raise ValueError(
            f"{plan_id!r} is not a plan id; write its 12 hex digits, as a report names it"
        )
    return plan_id


def refusal(approval: PlanId | None, now: float) -> str | None:
    """Return why a pass refuses the release, as the end of a sentence. `now` in Unix seconds."""
    if approval is None or approval.given is None:
        return None
    age = now - approval.given
    if age <= LONGEST:
        return None
    ago = f"{age / 60:.0f} minutes ago"
    valid = LONGEST // 60
    return f"was given {ago}, and is valid for {valid} minutes: see what is held now"


def approved_by(
    approval: PlanId | None, planned: Collection[Removal], held: Collection[Removal]
) -> frozenset[InstanceKey]:
    """Return the removals that a person approved: all held ones, or all planned ones."""
    if approval is None:
        return frozenset()
    for removals in (held, planned):
        if removals and removal_id(removals) == approval.value:
            return frozenset(removal.key for removal in removals)
    return frozenset()


class Annotated(Protocol):
    """A syncer or an import."""

    @property
    def annotations(self) -> Mapping[str, str]: ...


def annotation_releases(syncer: Annotated, now: float) -> bool:
    """Say whether the syncer's annotation releases all its removals now (Unix seconds)."""
    if APPROVE_ANNOTATION not in syncer.annotations:
        return False
    return annotation_refused(syncer, now) is None


def annotation_refused(syncer: Annotated, now: float) -> str | None:
    """Return why the syncer's annotation releases nothing now (Unix seconds); None if it does, or
    there is none."""
    text = syncer.annotations.get(APPROVE_ANNOTATION)
    if text is None:
        return None
    try:
        until = _time(text)
    except ValueError:
        return f"{cut(text, 40)!r} is not a time such as 2026-01-31T12:00:00Z"
    if until <= now:
        return f"it expired at {text}"
    if until > now + LONGEST:
        return f"{text} is more than an hour ahead"
    return None


def _time(text: str) -> float:
    """Return the Unix seconds of an RFC 3339 time. Raises ValueError."""
    upper = text.upper()
    if not _RFC_3339.fullmatch(upper):
        raise ValueError(f"no RFC 3339 time: {text!r}")
    return datetime.fromisoformat(upper).timestamp()
