"""What a person released: a plan by its id, a saved dry run, or one syncer's removals for some
time. A release that cannot be meant for this pass (of another cluster, too old, malformed) releases
nothing, and is reported. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from eurekube_sync.model.actions import Removal
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import SyncerObject
from eurekube_sync.model.ownership import Ownership
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import cut
from eurekube_sync.plan.value import removal_id

APPROVE_ANNOTATION = "eurekube.io/approve-removals-until"
# Seconds: how far ahead an annotation may release, and how old a saved dry run or a plan id may be
LONGEST = 3600

_CLOCKS_APART = 60
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_PLAN_ID = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class PlanId:
    """Releases exactly the set of removals with this checksum: all held ones, or all planned
    ones."""

    value: str
    given: float | None = None
    """Unix seconds; a daemon must not keep the release for another day's outage of the same
    pods."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedDryRun:
    """Releases the removals that it showed, if this pass would do the same to the same
    instances."""

    name: str  # the file's
    owner: str
    cluster: str
    at: float  # Unix seconds
    removals: frozenset[tuple[str, InstanceKey]]  # `cancel` or `update`, and the instance's key

    def __str__(self) -> str:
        return self.name


Approval: TypeAlias = PlanId | SavedDryRun


def approve_command(plan_id: str, options: Sequence[str]) -> str:
    """Return the command that releases a plan. It names the scope, because another scope has
    another plan."""
    return shlex.join(["eurekube-sync", "run", *options, "--approve", plan_id])


def is_plan_id(text: str) -> bool:
    """Say whether the value of `--approve` is a plan id; else it is a file."""
    return _PLAN_ID.fullmatch(text) is not None


def from_dry_run(data: Any, name: str) -> SavedDryRun:
    """Read a saved dry run. Raises ConfigurationError with the end of a sentence about the file."""
    if not isinstance(data, Mapping) or data.get("dryRun") is not True:
        raise ConfigurationError("is not a dry run: save one with run --dry-run -o json")
    lists = (data.get("actions"), data.get("held"))
    shown = [one for found in lists if isinstance(found, list) for one in found]
    try:
        removals = frozenset(
            (str(one["action"]), InstanceKey(str(one["app"]), str(one["id"])))
            for one in shown
            if one["removal"]
        )
        owner, cluster, at = data["owner"], data["cluster"], _time(data["at"])
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError("is not a dry run of this version: save a new one") from error
    if not removals:
        raise ConfigurationError("shows no removal, so there is nothing to release")
    return SavedDryRun(name=name, owner=str(owner), cluster=str(cluster), at=at, removals=removals)


def refusal(approval: Approval | None, ownership: Ownership, now: float) -> str | None:
    """Return why a pass of this owner and cluster refuses the release, as the end of a sentence.
    `now` in Unix seconds."""
    if (
        isinstance(approval, PlanId)
        and approval.given is not None
        and now - approval.given > LONGEST
    ):
        ago = f"{(now - approval.given) / 60:.0f} minutes ago"
        return f"was given {ago}, and is valid for {LONGEST // 60} minutes: see what is held now"
    if not isinstance(approval, SavedDryRun):
        return None
    if (approval.owner, approval.cluster) != (ownership.owner, ownership.cluster):
        this = f"this is owner {ownership.owner} in cluster {ownership.cluster}"
        return f"is a dry run of owner {approval.owner} in cluster {approval.cluster}, and {this}"
    if now - approval.at > LONGEST:
        return (
            f"is {(now - approval.at) / 60:.0f} minutes old, and may be {LONGEST // 60} at "
            "most: save a new one"
        )
    if approval.at - now > _CLOCKS_APART:
        return "was saved in the future: the clocks of both machines differ"
    return None


def released_by(
    approval: Approval | None, planned: Iterable[Removal], held: Iterable[Removal]
) -> frozenset[InstanceKey]:
    """Return the removals that the approval releases."""
    planned, held = tuple(planned), tuple(held)
    if isinstance(approval, SavedDryRun):
        return frozenset(
            w.key for w in planned if (type(w).__name__.lower(), w.key) in approval.removals
        )
    value = approval.value if approval is not None else None
    meant = next((some for some in (held, planned) if some and removal_id(some) == value), ())
    return frozenset(one.key for one in meant)


def annotation_releases(syncer: SyncerObject, now: float) -> bool:
    """Say whether the syncer's annotation releases all its removals now (Unix seconds)."""
    return APPROVE_ANNOTATION in syncer.annotations and annotation_refused(syncer, now) is None


def annotation_refused(syncer: SyncerObject, now: float) -> str | None:
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
    return f"{text} is more than an hour ahead" if until > now + LONGEST else None


def _time(text: Any) -> float:
    """Return the Unix seconds of an RFC 3339 time. Raises ValueError."""
    if not isinstance(text, str) or not _RFC_3339.fullmatch(text.upper()):
        raise ValueError(f"no RFC 3339 time: {text!r}")
    return datetime.fromisoformat(text.upper()).timestamp()
