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
    """Nothing that selects it, or of that name."""
    NOTHING_FOUND = "NothingFound"
    """No Service, pod, app or instance of that name."""
    NOT_LOOKED_AT = "NotLookedAt"
    """A right or an option is missing, or a server gave no answer."""
    NOT_SELECTED = "NotSelected"
    """The pod is behind no Service of the syncer."""
    OWNER_CLASH = "OwnerClash"
    NOT_YET = "NotYetRegistered"
    """The next pass registers it."""
    EXPIRED = "Expired"
    """It was registered, and is not any more: nobody renewed it."""
    NOT_RENEWED = "NotRenewed"
    """It is registered, and nobody renews it."""
    OUT_OF_SERVICE = "OutOfService"
    """A person set a status in Eureka."""
    ANOTHER_STATUS = "AnotherStatus"
    """Eureka shows another status than the pass wants."""
    TERMINATING = "Terminating"
    """The pod is being deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
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


def holds(part: Part, text: str, *, details: tuple[str, ...] = ()) -> Link:
    """What is as it should be."""
    return Link(part=part, mark=Mark.OK, text=text, details=details)


def noted(part: Part, text: str, *, details: tuple[str, ...] = ()) -> Link:
    """What is good to know."""
    return Link(part=part, mark=Mark.NOTE, text=text, details=details)


def unseen(part: Part, text: str, *, reason: str = Why.NOT_LOOKED_AT, details: tuple[str, ...] = ()) -> Link:
    """What could not be looked at."""
    return Link(part=part, mark=Mark.UNKNOWN, text=text, reason=reason, details=details)


def breaks(
    part: Part, reason: str, text: str, *, cause: str, fix: str = "", details: tuple[str, ...] = (), if_: bool = True
) -> Link:
    """What keeps something from being registered; a mere note where `if_` is false."""
    if not if_:
        return noted(part, text, details=details)
    return Link(part=part, mark=Mark.BROKEN, reason=reason, text=text, details=details, cause=cause, fix=fix)


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
