"""The results of `explain` and `check`: the links of an explanation, and the findings of a
check."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Any

from eurekube_sync.model.values import dataclass


class Mark(StrEnum):
    OK = "ok"
    BROKEN = "broken"  # the link prevents a registration
    UNKNOWN = "unknown"  # the link could not be checked
    NOTE = "note"  # the link prevents no registration, and is worth knowing


class Part(StrEnum):
    """The subjects of links, in the order of the chain."""

    SYNCER = "syncer"
    SPEC = "spec"
    SERVED = "served"  # by an installation: class and scope
    SERVICES = "services"
    PORT = "port"
    ENDPOINTS = "endpoints"
    PODS = "pods"
    LIMIT = "limit"
    DRAIN = "drain"
    SUSPEND = "suspend"
    POLICY = "policy"
    RIVALS = "rivals"  # other syncers with the same address
    DUPLICATE = "duplicate"  # the pod registers itself
    BRAKE = "brake"
    OWNER = "owner"
    EUREKA = "eureka"
    CALLERS = "callers"
    STATUS = "status"  # of the syncer, as the last pass wrote it
    LAST_PASS = "lastPass"


@dataclass(frozen=True, slots=True)
class Link:
    """One requirement of a registration."""

    part: Part
    mark: Mark
    text: str  # one sentence without its full stop
    # A word as in conditions, of docs/troubleshooting.md; empty for a requirement that is met
    reason: str = ""
    details: tuple[str, ...] = ()  # more lines, such as similar names
    cause: str = (
        ""  # of a broken link, in few words for the last line, such as `its pod is not ready`
    )
    fix: str = ""  # what to do, preferably a command

    @property
    def broken(self) -> bool:
        return self.mark is Mark.BROKEN


def unseen(part: Part, text: str, *details: str, reason: str = "", fix: str = "") -> Link:
    """Make a link that could not be checked."""
    return Link(part, Mark.UNKNOWN, text, reason=reason or "NotLookedAt", details=details, fix=fix)


def breaks(
    part: Part,
    reason: str,
    text: str,
    *details: str,
    cause: str = "",
    fix: str = "",
    if_: bool = True,
) -> Link:
    """Make a broken link, or a note if `if_` is false."""
    broken = Link(part, Mark.BROKEN, text, reason, details, cause or text, fix)
    return broken if if_ else Link(part, Mark.NOTE, text, details=details)


class Outcome(StrEnum):
    """The result of all links, the worst first."""

    NOT_REGISTERED = "notRegistered"
    PARTLY = "partlyRegistered"
    UNKNOWN = "unknown"
    REGISTERED = "registered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The explanation of one syncer, or of something that no syncer selects."""

    about: str  # such as `svc/s5/orders`
    links: tuple[Link, ...]
    outcome: Outcome
    syncer: str = ""  # its `namespace/name`; empty if there is none
    sentence: str = ""  # the last line
    fix: str = ""  # what to do; empty for nothing
    up: int | None = None  # instances UP now; None if unknown
    of: int = 0  # endpoints that could be registered
    apps: tuple[str, ...] = ()
    manifest: dict[str, Any] = field(
        default_factory=dict
    )  # the smallest syncer that would help; empty for none

    @property
    def broken(self) -> Link | None:
        return next((link for link in self.links if link.broken), None)

    @property
    def reason(self) -> str:
        return self.broken.reason if self.broken else ""


class Grade(StrEnum):
    OK = "ok"
    WARNING = "warning"  # it works but needs attention, or it could not be checked
    FAILED = "failed"  # a pass cannot do its work


class Check(StrEnum):
    """The subjects of findings. docs/troubleshooting.md has each, in this order."""

    KUBERNETES = "Kubernetes"
    RIGHTS = "Rights"
    CRD = "Crd"
    EUREKA_READ = "EurekaRead"
    EUREKA_WRITE = "EurekaWrite"
    REPLICAS = "Replicas"
    SELF_PRESERVATION = "SelfPreservation"
    CLOCK = "Clock"
    OWNER = "Owner"
    LAST_PASS = "LastPass"
    POD_END = "PodEnd"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a check."""

    check: Check
    grade: Grade
    text: str  # one sentence without its full stop
    fix: str = ""  # what to do; empty if all is well
    manifest: str = ""  # lines of YAML to add

    @property
    def docs(self) -> str:
        return (
            "" if self.grade is Grade.OK else f"docs/troubleshooting.md#{self.check.value.lower()}"
        )
