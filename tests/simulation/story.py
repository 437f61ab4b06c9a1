"""A story as a value: who runs, the events of the world, the troubles of the calls. Equal stories
end alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from .troubles import Trouble

if TYPE_CHECKING:
    from .events import Event


class Mode(StrEnum):
    """How the program runs."""

    DAEMON = "a daemon"
    ONCE = "one pass at a time"
    TWICE = "a CronJob of two passes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The setup of the program and the servers. Times in seconds."""

    mode: Mode = Mode.DAEMON
    interval: float = 10
    """Seconds from the start of a pass to the start of the next, or of the next process."""
    peers: int = 1
    lease: int = 300
    pass_seconds: float = 120
    call_seconds: float = 10
    scoped: bool = False
    """Whether the scope names the namespaces, so that each is listed by itself."""
    batches: bool = False
    """Whether the program writes to Eureka in batches, if that is safe."""
    halves: bool = False
    """Whether it serves one team's syncers, and the second copy, run by itself, those of the
    others."""

    drains: bool = False
    """Whether it looks for drains on pods."""
    upsert_only: bool = False
    """Whether it cancels nothing."""
    granted: bool = False
    """Whether it serves a syncer only if its Namespace grants the app; both Namespaces grant every
    app."""
    networks: tuple[str, ...] = ()
    """The networks of which it imports apps; none: it imports nothing."""

    def __str__(self) -> str:
        scope = ", its namespaces named" if self.scoped else ""
        scope += ", in batches" if self.batches else ""
        scope += ", beside another for the other team's syncers" if self.halves else ""
        scope += ", looking for drains" if self.drains else ""
        scope += ", with grants of Namespaces" if self.granted else ""
        scope += ", which cancels nothing" if self.upsert_only else ""
        scope += f", with imports from {' and '.join(self.networks)}" if self.networks else ""
        servers = "one Eureka" if self.peers == 1 else f"{self.peers} Eureka peers"
        return f"{self.mode} each {self.interval:g} s{scope}, {servers}, leases of {self.lease} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One run of the simulation."""

    seed: int
    subject: str = ""
    """What is added to a random story; empty for nothing."""
    installation: Installation = field(default_factory=Installation)
    events: tuple[Event, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    ends: float = 120.0
    """When the last trouble is over, nothing changes any more, and the program has to come to rest;
    see `over`."""


QUIET = 15.0
"""Seconds without events before a story's end, in which all writes arrive."""


def over(events: Iterable[Event], troubles: Iterable[Trouble]) -> float:
    """Gives the earliest end of a story with these events and troubles."""
    return QUIET + max(
        [0.0, *(event.over for event in events), *(trouble.until for trouble in troubles)]
    )
