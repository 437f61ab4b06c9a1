"""What a pass decides of each instance that a syncer's endpoints could give: one verdict for each key, with its reason.

Only the types are here. `pods` and `services` make them; `claims` and folder plan add what limits and rivals change.
The plan follows from the verdicts, and so does every sentence about why an instance is registered or not.
"""

from __future__ import annotations

from typing import TypeAlias

from eurekube_sync.desired.drain import Kind
from eurekube_sync.desired.rivals import Right, Rival
from eurekube_sync.model.eureka import Instance, InstanceStatus
from eurekube_sync.model.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """It should be registered, as this instance."""

    instance: Instance
    why: str
    drained: bool = False
    """A person asked for it to be DOWN."""
    drain_unknown: frozenset[Kind] = frozenset()
    """Whether one of these is drained could not be read."""
    allotted: bool = False
    """The cluster gave its address to the namespace (`Site.allotted`)."""
    rival: Rival | None = None
    """Another syncer that has the address and does not register it now. Nothing new is registered here, and what is
    registered is kept up to date."""

    @property
    def elsewhere(self) -> bool:
        """Whether the cluster gave its address to another namespace: what Eureka lost is not registered there again."""
        return self.rival is not None and self.rival.right is Right.ALLOTTED

    @property
    def if_gone(self) -> Instance | None:
        """What a renewal registers that finds no lease. A not-ready endpoint that Eureka lost is not brought back: it
        would be a first registration."""
        return self.instance if self.instance.status is InstanceStatus.UP and not self.elsewhere else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverLimit:
    """It is ready, and its syncer's limit keeps it out."""

    wanted: Wanted
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OverQuota(OverLimit):
    """It is ready, and the quota of its namespace keeps it out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Another syncer has its address, and registers it."""

    wanted: Wanted
    rival: Rival


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """Its endpoint is there, and should not be registered."""

    why: str
    terminating: bool
    """Positive evidence; an endpoint that is merely not ready is none."""
    drain_unknown: frozenset[Kind] = frozenset()
    """Whether one of these is drained could not be read."""
    pod_uid: str | None = None
    """Of one that is not ready; None where the endpoint has no pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Too little is known of its endpoint this time: what is registered is renewed, and nothing new is registered."""

    why: str
    host: str
    port: int


Verdict: TypeAlias = Wanted | OverLimit | Taken | Leaving | Kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaced:
    """An endpoint whose own port is not known this time, and so no key of it: what is registered of it is renewed."""

    identity: str
    """The pod's UID, or the bare address."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incomplete:
    """Why there may be more endpoints than were found: nothing is removed for being absent."""

    reason: str
    """CamelCase."""
    message: str
    unknown: bool = False
    """True when a source is to blame, False when an address or a slice is awaited."""

    @property
    def reads_pods(self) -> bool:
        """Whether an instance whose pod is gone is removed all the same, as of a syncer that is not served."""
        return not self.unknown


Found: TypeAlias = Wanted | Leaving | Kept
"""What an endpoint comes to, before syncers and limits are weighed against each other."""


def better(one: Found, other: Found) -> Found:
    """The one to keep where two endpoints give one key, as while a new pod takes over an address: a wanted one before
    one that is not known, before one that leaves; of two wanted ones the UP one, then by pod, so that the order of
    slices does not matter. Of two others the later."""
    if isinstance(one, Wanted) and isinstance(other, Wanted):
        return min(one, other, key=_standing)
    return min(other, one, key=lambda found: (Wanted, Kept, Leaving).index(type(found)))


def _standing(wanted: Wanted) -> tuple[bool, str, tuple[tuple[str, str], ...]]:
    down = wanted.instance.status is not InstanceStatus.UP
    return (down, wanted.why, tuple(sorted(wanted.instance.metadata.items())))
