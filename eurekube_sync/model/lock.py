"""The lock: which one of several copies works, and when the last good pass was.

It is a Lease object of `coordination.k8s.io`. Here the word lease always means an instance's lease in Eureka.
"""

from __future__ import annotations

from eurekube_sync.model.values import dataclass

DURATION = 15.0
"""Seconds without a renewal after which another copy may take the lock; written as `leaseDurationSeconds`."""
RENEW_WITHIN = 10.0
"""Seconds after the beginning of its last renewal for which the holder works. Less than `DURATION`: it stops before
another one begins, however different their clocks go."""
EVERY = 2.0  # seconds from one renewal, or one look of a copy that waits, to the next


@dataclass(frozen=True, slots=True, kw_only=True)
class LockName:
    """Where the object is."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodPass:
    """The last pass that did all that it had to do, as the lock's annotations show it."""

    at: float  # Unix seconds
    holder: str
    owner: str
    scope: str  # `all`, or the options that give it
    result: str  # the summary of its report


@dataclass(frozen=True, slots=True, kw_only=True)
class LockRecord:
    """What the object says, or is to say."""

    holder: str  # who has it; empty when nobody does
    duration: float = DURATION  # seconds, as the holder wrote it, for people to read
    acquired: float | None = None
    """Unix seconds by the holder's clock, for people to read; so is the next. Nothing is decided by them."""
    renewed: float | None = None
    transitions: int = 0  # how often it went from one holder to another
    good: GoodPass | None = None  # None in a record to write: what is there stays
    version: str = ""  # the resourceVersion that was read
