"""What `explain` and `check` say, as values: the links of an explanation, and the findings of a check."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Any

from eurekube_sync.model.values import dataclass


class Mark(StrEnum):
    OK = "ok"
    BROKEN = "broken"  # it keeps something from being registered
    UNKNOWN = "unknown"  # it could not be looked at
    NOTE = "note"  # it keeps nothing from being registered, and is good to know


class Part(StrEnum):
    """What a link is about, in the order of the chain."""

    SYNCER = "syncer"
    SPEC = "spec"
    SERVED = "served"  # by an installation: class, scope and shard
    SERVICES = "services"
    PORT = "port"
    ENDPOINTS = "endpoints"
    PODS = "pods"
    LIMIT = "limit"
    DRAIN = "drain"
    SUSPEND = "suspend"
    POLICY = "policy"
    RIVALS = "rivals"  # other syncers of the same address
    DUPLICATE = "duplicate"  # the pod registers itself
    BRAKE = "brake"
    OWNER = "owner"
    EUREKA = "eureka"
    CALLERS = "callers"
    STATUS = "status"  # what the last pass wrote of it
    LAST_PASS = "lastPass"


@dataclass(frozen=True, slots=True)
class Link:
    """One thing that has to hold."""

    part: Part
    mark: Mark
    text: str  # one sentence without its end
    reason: str = ""
    """A machine word where it does not hold, as in conditions; docs/troubleshooting.md has each. Else empty."""
    details: tuple[str, ...] = ()  # more lines, such as what was nearly right
    cause: str = ""  # of a broken one: the same for the last line, such as `its pod is not ready`
    fix: str = ""  # the one thing to do, a command where there is one

    @property
    def broken(self) -> bool:
        return self.mark is Mark.BROKEN


def unseen(part: Part, text: str, *details: str, reason: str = "", fix: str = "") -> Link:
    """What could not be looked at."""
    return Link(part, Mark.UNKNOWN, text, reason=reason or "NotLookedAt", details=details, fix=fix)


def breaks(part: Part, reason: str, text: str, *details: str, cause: str = "", fix: str = "", if_: bool = True) -> Link:
    """What keeps something from being registered; a mere note where `if_` is false."""
    broken = Link(part, Mark.BROKEN, text, reason, details, cause or text, fix)
    return broken if if_ else Link(part, Mark.NOTE, text, details=details)


class Outcome(StrEnum):
    """What the links come to, the worst first."""

    NOT_REGISTERED = "notRegistered"
    PARTLY = "partlyRegistered"
    UNKNOWN = "unknown"
    REGISTERED = "registered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Of one syncer, or of what no syncer selects."""

    about: str  # what it explains, such as `svc/s5/orders`
    links: tuple[Link, ...]
    outcome: Outcome
    syncer: str = ""  # its `namespace/name`; empty where there is none
    sentence: str = ""  # the last line
    fix: str = ""  # the one thing to do; empty where nothing is to be done
    up: int | None = None  # instances UP now; None where nobody could tell
    of: int = 0  # endpoints that could be registered
    apps: tuple[str, ...] = ()
    manifest: dict[str, Any] = field(default_factory=dict)  # the smallest syncer that would help; empty for none

    @property
    def broken(self) -> Link | None:
        return next((link for link in self.links if link.broken), None)

    @property
    def reason(self) -> str:
        return self.broken.reason if self.broken else ""


class Grade(StrEnum):
    OK = "ok"
    WARNING = "warning"  # it works, and a person should look at it; or it could not be looked at
    FAILED = "failed"  # a pass cannot do its work


class Check(StrEnum):
    """What was looked at. docs/troubleshooting.md has each, in this order."""

    KUBERNETES = "Kubernetes"
    RIGHTS = "Rights"
    CRD = "Crd"
    EUREKA_READ = "EurekaRead"
    EUREKA_WRITE = "EurekaWrite"
    REPLICAS = "Replicas"
    SELF_PRESERVATION = "SelfPreservation"
    CLOCK = "Clock"
    OWNER = "Owner"
    HEARTBEAT = "Heartbeat"
    DRAIN_TIME = "DrainTime"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a check."""

    check: Check
    grade: Grade
    text: str  # one sentence without its end
    fix: str = ""  # the one thing to do; empty where all is well
    manifest: str = ""  # lines of YAML to add; empty for none

    @property
    def docs(self) -> str:
        return "" if self.grade is Grade.OK else f"docs/troubleshooting.md#{self.check.value.lower()}"
