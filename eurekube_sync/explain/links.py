"""An explanation as values: one link for each thing that has to hold, and what they come to."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Any

from eurekube_sync.model.values import dataclass


class Mark(StrEnum):
    """How a link is."""

    OK = "ok"
    BROKEN = "broken"
    """It keeps something from being registered."""
    UNKNOWN = "unknown"
    """It could not be looked at."""
    NOTE = "note"
    """It keeps nothing from being registered, and is good to know."""


class Part(StrEnum):
    """What a link is about, in the order of the chain."""

    SYNCER = "syncer"
    SPEC = "spec"
    SERVED = "served"
    """By an installation: class, scope and shard."""
    SERVICES = "services"
    PORT = "port"
    ENDPOINTS = "endpoints"
    PODS = "pods"
    LIMIT = "limit"
    DRAIN = "drain"
    SUSPEND = "suspend"
    POLICY = "policy"
    RIVALS = "rivals"
    """Other syncers of the same address."""
    DUPLICATE = "duplicate"
    """The pod registers itself."""
    BRAKE = "brake"
    OWNER = "owner"
    EUREKA = "eureka"
    CALLERS = "callers"
    STATUS = "status"
    """What the last pass wrote of it."""
    LAST_PASS = "lastPass"


class Why(StrEnum):
    """Reasons of links that no condition has. docs/troubleshooting.md has each."""

    NO_SYNCER = "NoSyncer"
    NOTHING_FOUND = "NothingFound"
    NOT_LOOKED_AT = "NotLookedAt"
    NOT_SELECTED = "NotSelected"
    OWNER_CLASH = "OwnerClash"
    NOT_YET = "NotYetRegistered"
    EXPIRED = "Expired"
    NOT_RENEWED = "NotRenewed"
    OUT_OF_SERVICE = "OutOfService"
    ANOTHER_STATUS = "AnotherStatus"
    TERMINATING = "Terminating"


@dataclass(frozen=True, slots=True)
class Link:
    """One thing that has to hold."""

    part: Part
    mark: Mark
    text: str
    """One sentence without its end."""
    reason: str = ""
    """A machine word where it does not hold, as in conditions; else empty."""
    details: tuple[str, ...] = ()
    """More lines, such as what was nearly right."""
    cause: str = ""
    """Of a broken one: the same for the last line, such as `its pod is not ready`."""
    fix: str = ""
    """Of a broken one: the one thing to do, a command where there is one."""

    @property
    def broken(self) -> bool:
        """Whether it keeps something from being registered."""
        return self.mark is Mark.BROKEN


def holds(part: Part, text: str) -> Link:
    """What is as it should be."""
    return Link(part, Mark.OK, text)


def noted(part: Part, text: str, *details: str) -> Link:
    """What is good to know."""
    return Link(part, Mark.NOTE, text, details=details)


def unseen(part: Part, text: str, reason: str = Why.NOT_LOOKED_AT) -> Link:
    """What could not be looked at."""
    return Link(part, Mark.UNKNOWN, text, reason)


def breaks(part: Part, reason: str, text: str, *details: str, cause: str = "", fix: str = "", if_: bool = True) -> Link:
    """What keeps something from being registered; a mere note where `if_` is false."""
    return Link(part, Mark.BROKEN, text, reason, details, cause or text, fix) if if_ else noted(part, text, *details)


def and_more(number: int) -> str:
    """What follows a sentence about the first of so many."""
    return f" (and {number - 1} more)" if number > 1 else ""


class Outcome(StrEnum):
    """What the links come to."""

    REGISTERED = "registered"
    PARTLY = "partlyRegistered"
    NOT_REGISTERED = "notRegistered"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Of one syncer, or of what no syncer selects."""

    about: str
    """What it explains, such as `svc/s5/orders`."""
    links: tuple[Link, ...]
    outcome: Outcome
    syncer: str = ""
    """Its `namespace/name`; empty where there is none."""
    sentence: str = ""
    """The last line."""
    fix: str = ""
    """The one thing to do; empty where nothing is to be done."""
    up: int | None = None
    """Instances UP now; None where nobody could tell."""
    of: int = 0
    """Endpoints that could be registered."""
    apps: tuple[str, ...] = ()
    manifest: dict[str, Any] = field(default_factory=dict)
    """The smallest syncer that would help; empty where none is missing."""

    @property
    def broken(self) -> Link | None:
        """The first link that breaks."""
        return next((link for link in self.links if link.broken), None)

    @property
    def reason(self) -> str:
        """The machine word of what is wrong; empty where nothing is."""
        return self.broken.reason if self.broken else ""
