"""What a pass wants: one claim for each syncer, and in it one verdict for each instance that its endpoints could give.

Only the types are here: `pods` and `services` make the verdicts, `rivals` and folder plan change some."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple, TypeAlias, TypeVar, cast

from eurekube_sync.desired.catalog import Kind, PodSocket
from eurekube_sync.desired.conduct import Conduct, Policy
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerObject, SyncerRef
from eurekube_sync.model.ownership import pod_uid_of
from eurekube_sync.model.sources import Complete, Listed, Proof
from eurekube_sync.model.values import dataclass

V = TypeVar("V", bound="Verdict")


class Right(StrEnum):
    """Why another syncer has an address, in words."""

    AGE = "is older and has the address"
    HOME = "lives in the Service's own namespace and has the address"
    ALLOTTED = "selects the pod or Service that has the address; this syncer adds no instance there"
    FIRST = "of another namespace was first and has the address; this syncer adds no instance there"
    UNDECIDED = (
        "of another namespace claims the address as well; it is unknown which of the two has its instance in Eureka"
    )


class Rival(NamedTuple):
    """Another syncer that claims the same address and port."""

    syncer: SyncerRef
    right: Right

    def __str__(self) -> str:
        return f"syncer {self.syncer} {self.right}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """It should be registered, as this instance."""

    instance: Instance
    why: str
    drained: bool = False
    drain_unknown: frozenset[Kind] = frozenset()  # whether one of these is drained could not be read
    allotted: bool = False  # the cluster gave its address to the namespace (`Site.allotted`)
    rival: Rival | None = None
    """It has the address and does not register it now: here nothing new is registered, and the rest kept up to date."""

    @property
    def elsewhere(self) -> bool:
        """Whether the cluster gave its address to another namespace: what Eureka lost is not registered there again."""
        return self.rival is not None and self.rival.right is Right.ALLOTTED

    @property
    def if_gone(self) -> Instance | None:
        """What a renewal registers that finds no lease: no endpoint that is not ready, as if it were seen first."""
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
    terminating: bool  # positive evidence; an endpoint that is merely not ready is none
    drain_unknown: frozenset[Kind] = frozenset()
    pod_uid: str | None = None  # of one that is not ready; None where the endpoint has no pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Too little is known of its endpoint this time: what is registered is renewed, and nothing new is registered."""

    why: str
    host: str
    port: int


Found: TypeAlias = Wanted | Leaving | Kept
"""What an endpoint comes to, before syncers and limits are weighed against each other."""
Verdict: TypeAlias = Found | OverLimit | Taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Incomplete:
    """Why there may be more endpoints than were found: nothing is removed for being absent."""

    reason: str
    message: str
    unknown: bool = False  # True when a source is to blame, False when an address or a slice is awaited


@dataclass(frozen=True, kw_only=True)  # without slots: it keeps what it was asked
class Serving:
    """A syncer in order: these instances, no others."""

    syncer: SyncerObject
    proof: Proof  # of its Services and slices
    verdicts: Mapping[InstanceKey, Verdict] = field(default_factory=dict)
    unplaced: Mapping[str, str] = field(default_factory=dict)
    """By pod UID, or bare address, whose port and key are not known this time: why what is registered of it stays."""
    incomplete: tuple[Incomplete, ...] = ()  # why what has no verdict stays none the less
    services: tuple[str, ...] = ()
    apps: tuple[str, ...] = ()
    vip_address: str = ""
    max_removal_percent: int | None = None
    warnings: tuple[str, ...] = ()
    conduct: Conduct = Conduct()
    notes: tuple[str, ...] = ()
    over_quota: str = ""  # what its namespace has no place for; empty where it has one for all
    granted_by: Mapping[str, str] | None = None
    """The annotations of the Namespace that grants it; None where none has to."""

    @cached_property
    def wanted(self) -> Mapping[InstanceKey, Wanted]:
        """What should be registered."""
        found = self.of(Wanted)
        return found if len(found) < len(self.verdicts) else cast("Mapping[InstanceKey, Wanted]", self.verdicts)

    def of(self, kind: type[V]) -> Mapping[InstanceKey, V]:
        """The verdicts of one kind."""
        return {key: one for key, one in self.verdicts.items() if isinstance(one, kind)}

    def wanted_at(self, key: InstanceKey) -> Wanted | None:
        """What should be registered under the key."""
        one = self.verdicts.get(key)
        return one if isinstance(one, Wanted) else None

    @cached_property
    def rivals(self) -> Mapping[InstanceKey, Rival]:
        """Which other syncer has the address of a key."""
        return dict(sorted((key, rival) for key, one in self.verdicts.items() if (rival := rival_of(one))))

    @cached_property
    def unready(self) -> Mapping[InstanceKey, str]:
        """Why each endpoint that nobody drains or ends is not ready."""
        return {
            key: one.why
            for key, one in self.verdicts.items()
            if (isinstance(one, Wanted) and one.instance.status is not InstanceStatus.UP and not one.drained)
            or (isinstance(one, Leaving) and not one.terminating)
        }

    @property
    def endpoints(self) -> int:
        """How many there are, ready or not, but for those that end."""
        return sum(
            isinstance(one, Wanted | OverLimit) or (isinstance(one, Leaving) and not one.terminating)
            for one in self.verdicts.values()
        )

    @property
    def unclear(self) -> Sequence[str]:
        """Why too little is known of an endpoint, of each that there is."""
        return sorted([*(one.why for one in self.of(Kept).values()), *self.unplaced.values()])

    @cached_property
    def keeps_any(self) -> bool:
        """Whether anything that is registered may stay although it is not wanted."""
        return bool(self.unplaced or self.incomplete or self.of(Kept))

    def keeps(self, instance: ObservedInstance) -> str | None:
        """Why an instance that it does not want stays none the less; None when it goes."""
        verdict = self.verdicts.get(instance.key)
        if isinstance(verdict, Kept):
            return verdict.why
        if isinstance(verdict, Leaving | Taken | OverLimit):
            return None
        return self._unplaced(instance) or (self.incomplete[0].message if self.incomplete else None)

    def proven_by(self, proof: Proof) -> Serving:
        """The same by another proof, with all that it was asked."""
        found = replace(self, proof=proof)
        vars(found).update(vars(self))
        return found

    def outdone_by(self, rivals: Mapping[InstanceKey, Rival | None]) -> Serving:
        """The same, where another syncer has these addresses, or None has."""
        wanted = ((key, self.wanted_at(key), rival) for key, rival in rivals.items())
        changed = {key: replace(one, rival=rival) for key, one, rival in wanted if one is not None}
        return replace(self, verdicts={**self.verdicts, **changed})

    def holds(self, instance: ObservedInstance) -> bool:
        """Whether a younger syncer may not take it over, for nobody knows what this one wants of it."""
        verdict = self.verdicts.get(instance.key)
        unknown = verdict is None and bool(self.incomplete) and not self.conduct.claims_nothing
        return unknown or isinstance(verdict, Kept)

    def keeps_until_pod_gone(self, instance: ObservedInstance) -> bool:
        """Whether it stays for an awaited slice or address alone: it goes when its pod is gone."""
        return self.reads_pods and instance.key not in self.verdicts and not self._unplaced(instance)

    @property
    def reads_pods(self) -> bool:
        """Whether a slice or an address is awaited, so that the list of pods may tell more."""
        return any(not one.unknown for one in self.incomplete)

    def _unplaced(self, one: ObservedInstance) -> str | None:
        return self.unplaced.get(pod_uid_of(one) or one.instance.ip_addr) if self.unplaced else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotServed:
    """A syncer that is wrong, or has an Unknown source: what is registered is renewed; nothing is added or removed."""

    syncer: SyncerObject
    reason: str
    message: str
    unknown: bool = False
    refused: Serving | None = None  # what it would be, had its Namespace granted it

    @property
    def reads_pods(self) -> bool:
        """Whether what is registered of it goes when the list of pods shows that its pod is gone."""
        return not self.unknown

    def keeps_until_pod_gone(self, _instance: ObservedInstance) -> bool:
        """Whether it goes when its pod is gone."""
        return self.reads_pods


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleting:
    """A syncer that a person deletes: nothing is wanted."""

    syncer: SyncerObject
    proof: Proof  # of the CRD that lives: the deletion is a person's
    keys: frozenset[InstanceKey] = frozenset()
    """What its endpoints would have given, listed or not; none once our finalizer is off, for then all was gone."""
    policy: Policy = Policy.SYNC
    gated: frozenset[str] = frozenset()  # UIDs of the pods whose readiness gate waits for it


Claim: TypeAlias = Serving | NotServed | Deleting


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """All claims of a pass, and what else the cluster proves."""

    claims: Mapping[SyncerRef, Claim]
    wanted_by: Mapping[InstanceKey, SyncerRef]
    syncers: Listed[SyncerObject]  # where a syncer's absence proves that it was deleted
    living_pods: Mapping[str, Complete[frozenset[str]]] = field(default_factory=dict)
    """UIDs of all pods, for each namespace whose pods were listed completely."""
    sockets: Callable[[], Mapping[PodSocket, Complete[frozenset[str]]]] = field(default=dict, compare=False)
    """Which pods listen where now; found out for all when first asked."""
    crd_installed: float = 0.0  # when the CRD that lives was installed, in Unix seconds; 0 when nobody asked
    to_read: tuple[InstanceKey, ...] = ()
    """To be read uncached before anything new is registered: the list may not show yet that they are."""

    def wanted(self, key: InstanceKey) -> Wanted | None:
        """What should be registered under the key."""
        claim = self.server_of(key)
        return claim.wanted_at(key) if claim else None

    def server_of(self, key: InstanceKey) -> Serving | None:
        """The claim that wants something under the key."""
        syncer = self.wanted_by.get(key)
        claim = self.claims[syncer] if syncer else None
        return claim if isinstance(claim, Serving) else None


def every(syncers: Listed[SyncerObject]) -> Iterator[SyncerObject]:
    """The syncers that were listed, by namespace and name."""
    for _, source in sorted(syncers.by_namespace.items()):
        if isinstance(source, Complete):
            yield from sorted(source.data, key=lambda syncer: syncer.name)


def seniority(claim: Claim) -> tuple[float, SyncerRef]:
    """The order in which syncers hold what several claim: the older first, of equal age by name."""
    return (claim.syncer.created, claim.syncer.ref)


def wanted_in(verdict: Verdict | None) -> Wanted | None:
    """The instance that it would be, registered or not; None where nobody knows."""
    if isinstance(verdict, OverLimit | Taken):
        return verdict.wanted
    return verdict if isinstance(verdict, Wanted) else None


def rival_of(verdict: Verdict) -> Rival | None:
    """Another syncer that has its address."""
    known = verdict if isinstance(verdict, Taken) else wanted_in(verdict)
    return known.rival if known else None
