"""A story as a value: who runs, what happens in the world, what happens to the calls. Equal stories end alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from .troubles import Trouble

if TYPE_CHECKING:
    from .events import Event


class Mode(StrEnum):
    """How the program is run."""

    DAEMON = "a daemon"
    ONCE = "one pass at a time"
    TWICE = "a CronJob of two passes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """How the program and the servers are set up. Times in seconds."""

    mode: Mode = Mode.DAEMON
    interval: float = 10
    """From the start of a pass to the start of the next, or of the next process."""
    peers: int = 1
    lease: int = 300
    pass_seconds: float = 120
    call_seconds: float = 10
    scoped: bool = False
    """Whether the namespaces are named, so that each is listed by itself."""
    batches: bool = False
    """Whether the program writes to Eureka in batches, where that is safe."""
    halves: bool = False
    """Whether it serves one team's syncers, and the second copy, run by itself, the others'."""

    drains: bool = False
    """Whether it looks for drains on pods and nodes, of which there are two."""

    def __str__(self) -> str:
        scope = ", its namespaces named" if self.scoped else ""
        scope += ", in batches" if self.batches else ""
        scope += ", beside another for the other team's syncers" if self.halves else ""
        scope += ", looking for drains" if self.drains else ""
        servers = "one Eureka" if self.peers == 1 else f"{self.peers} Eureka peers"
        return f"{self.mode} each {self.interval:g} s{scope}, {servers}, leases of {self.lease} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One run of the simulation."""

    seed: int
    installation: Installation = field(default_factory=Installation)
    events: tuple[Event, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    ends: float = 120.0
    """When the last trouble is over, the world stands still, and the program has to come to rest; see `over`."""


QUIET = 15.0
"""Seconds before a story's end in which nothing happens any more: what was on its way arrives."""


def over(events: Iterable[Event], troubles: Iterable[Trouble]) -> float:
    """The earliest end of a story of these."""
    return QUIET + max([0.0, *(event.over for event in events), *(trouble.until for trouble in troubles)])
