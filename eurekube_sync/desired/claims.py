"""The types of claims and verdicts. A pass makes one claim for each syncer, with one verdict for
each of its endpoints.

`pods` and `services` make the verdicts; `rivals` and the folder `plan` change some."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar, cast

from msgspec import Struct, field

from eurekube_sync.desired.catalog import Drainer, Kind, PodSocket
from eurekube_sync.desired.spec import Syncer
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.imports import ImportObject
from eurekube_sync.model.kubernetes import PodRef, ServedPort, SyncerObject, SyncerRef
from eurekube_sync.model.ownership import pod_uid_of
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete, Listed, Proof, Unknown
from eurekube_sync.model.struct import replace

if TYPE_CHECKING:
    from eurekube_sync.desired.heirs import Heirs  # which is made of claims

S = TypeVar("S", SyncerObject, ImportObject)
V = TypeVar("V", bound="Verdict")


class Right(StrEnum):
    """Why another syncer has an address, as a part of a sentence."""

    AGE = "is older and has the address"
    HOME = "lives in the Service's own namespace and has the address"
    ALLOTTED = (
        "selects the pod or Service that has the address, so no other syncer registers a "
        "new instance there"
    )
    FIRST = (
        "of another namespace was first and has the address, so no other syncer registers a "
        "new instance there"
    )
    UNDECIDED = (
        "of another namespace claims the address as well; it is unknown which of the two "
        "syncers has an instance there"
    )


class Rival(NamedTuple):
    """Another syncer that claims the same address and port."""

    syncer: SyncerRef
    right: Right

    def __str__(self) -> str:
        return f"syncer {self.syncer} {self.right}"


class Wanted(Struct, frozen=True, kw_only=True):
    """The endpoint is to be registered as this instance."""

    instance: Instance
    why: str
    pod: PodRef | None = None  # None for an address without a pod
    drained: bool = False
    drainer: Drainer | None = None
    """The object whose annotation drains it; None if it could not be read, so that the mark of the
    registered instance counts."""
    unreadable_drain_kinds: frozenset[Kind] = frozenset()
    """The kinds of objects whose drain annotation could not be read."""
    allotted: bool = False  # the cluster gave its address to the namespace (`Site.allotted`)
    rival: Rival | None = None
    """It has the address, so no new instance is registered, but one that exists is updated."""

    @property
    def elsewhere(self) -> bool:
        """Whether the cluster gave the address to another namespace. A lost instance is then not
        registered again."""
        rival = self.rival
        return rival is not None and rival.right is Right.ALLOTTED

    @property
    def if_gone(self) -> Instance | None:
        """The instance to register if a renewal finds no lease; None if it is not UP, or
        `elsewhere`."""
        up = self.instance.status is InstanceStatus.UP
        if up and not self.elsewhere:
            return self.instance
        return None


class OverLimit(Struct, frozen=True, kw_only=True):
    """The endpoint is ready, but over its syncer's limit."""

    wanted: Wanted
    why: str


class Taken(Struct, frozen=True, kw_only=True):
    """Another syncer has the address and registers it."""

    wanted: Wanted
    rival: Rival


class Leaving(Struct, frozen=True, kw_only=True):
    """The endpoint exists, but is no longer to be registered."""

    why: str
    terminating: bool  # this is evidence; an endpoint that is only not ready is none
    unreadable_drain_kinds: frozenset[Kind] = frozenset()
    pod: PodRef | None = None  # of an endpoint that is not ready; None if it has no pod


class Kept(Struct, frozen=True, kw_only=True):
    """Too little is known of the endpoint: its instance is renewed, and no new one is
    registered."""

    why: str
    host: str
    port: int


Found: TypeAlias = Wanted | Leaving | Kept  # the verdicts before syncers and limits are compared
Verdict: TypeAlias = Found | OverLimit | Taken


class Incomplete(Struct, frozen=True, kw_only=True):
    """Why there may be more endpoints than were found, so that no instance is removed for a missing
    endpoint: an address or a slice does not exist yet."""

    reason: Reason
    message: str


class Serving(Struct, frozen=True, kw_only=True, dict=True):
    """The claim of a syncer that can be served."""

    syncer: SyncerObject
    spec: Syncer
    proof: Proof  # of its Services and slices
    verdicts: Mapping[InstanceKey, Verdict] = field(default_factory=dict)
    unplaced: Mapping[str, str] = field(default_factory=dict)
    """By pod UID, or address without a pod: why its instances are kept although their port and key
    are unknown."""
    incomplete: tuple[Incomplete, ...] = ()  # why instances without a verdict are kept
    services: tuple[str, ...] = ()
    apps: tuple[str, ...] = ()
    ports: tuple[ServedPort, ...] = ()  # for `SyncerStatus.ports`
    vip_address: str = ""
    warnings: tuple[str, ...] = ()
    port_warnings: tuple[str, ...] = ()  # those among them about ports, slices and the app's name
    drains_unread: Unknown | None = None  # why the drain annotations of its pods may not be read
    notes: tuple[str, ...] = ()
    granted_by: Mapping[str, str] | None = None
    """The annotations of its Namespace; None if no grant is needed."""

    @cached_property
    def wanted(self) -> Mapping[InstanceKey, Wanted]:
        wanted = self.of(Wanted)
        if len(wanted) < len(self.verdicts):
            return wanted
        # The usual case: no copy is kept.
        return cast("Mapping[InstanceKey, Wanted]", self.verdicts)

    def of(self, kind: type[V]) -> Mapping[InstanceKey, V]:
        """Return the verdicts of one kind."""
        of_kind: dict[InstanceKey, V] = {}
        for key, verdict in self.verdicts.items():
            if isinstance(verdict, kind):
                of_kind[key] = verdict
        return of_kind

    def wanted_at(self, key: InstanceKey) -> Wanted | None:
        verdict = self.verdicts.get(key)
        if isinstance(verdict, Wanted):
            return verdict
        return None

    @cached_property
    def rivals(self) -> Mapping[InstanceKey, Rival]:
        """The other syncers that have the address of a key."""
        rivals: dict[InstanceKey, Rival] = {}
        for key, verdict in self.verdicts.items():
            rival = rival_of(verdict)
            if rival is not None:
                rivals[key] = rival
        return dict(sorted(rivals.items()))

    @cached_property
    def unready(self) -> Mapping[InstanceKey, Wanted | Leaving]:
        """The verdict of each endpoint that is not ready, and neither drained nor terminating."""
        unready: dict[InstanceKey, Wanted | Leaving] = {}
        for key, verdict in self.verdicts.items():
            if isinstance(verdict, Wanted):
                if verdict.instance.status is not InstanceStatus.UP and not verdict.drained:
                    unready[key] = verdict
            elif isinstance(verdict, Leaving) and not verdict.terminating:
                unready[key] = verdict
        return unready

    @property
    def drain_warnings(self) -> tuple[str, ...]:
        """What is not known of drains. The list that failed is a problem of the whole pass."""
        if self.drains_unread is None:
            return ()
        return (f"drain annotations of Pods are not read: {self.drains_unread.message}",)

    @property
    def endpoints(self) -> int:
        """The number of endpoints, ready or not, without those that terminate."""
        number = len(self.wanted) + len(self.of(OverLimit))
        for leaving in self.of(Leaving).values():
            if not leaving.terminating:
                number += 1
        return number

    @property
    def unclear(self) -> Sequence[str]:
        """Why too little is known of an endpoint, of each such endpoint."""
        whys = [kept.why for kept in self.of(Kept).values()]
        whys += self.unplaced.values()
        return sorted(whys)

    @cached_property
    def keeps_any(self) -> bool:
        """Whether an instance may be kept that is not wanted."""
        return bool(self.unplaced or self.incomplete or self.of(Kept))

    def keeps(self, instance: ObservedInstance) -> str | None:
        """Return why an instance is kept that is not wanted, or None if it is to be removed."""
        verdict = self.verdicts.get(instance.key)
        if isinstance(verdict, Kept):
            return verdict.why
        if isinstance(verdict, Leaving | Taken | OverLimit):
            return None
        unplaced = self._unplaced(instance)
        if unplaced is None and self.incomplete:
            return self.incomplete[0].message
        return unplaced

    def proven_by(self, proof: Proof) -> Serving:
        """Return this claim with another proof, and with its cached properties."""
        proven = replace(self, proof=proof)
        vars(proven).update(vars(self))
        return proven

    def with_verdicts(self, changed: Mapping[InstanceKey, Verdict]) -> Serving:
        """Return this claim with other verdicts for some endpoints."""
        if changed:
            return replace(self, verdicts={**self.verdicts, **changed})
        return self

    def with_rivals(self, rivals: Mapping[InstanceKey, Rival | None]) -> Serving:
        """Return this claim with these rivals, or without a rival where it is None."""
        changed: dict[InstanceKey, Verdict] = {}
        for key, rival in rivals.items():
            if key in self.wanted:
                changed[key] = replace(self.wanted[key], rival=rival)
        return self.with_verdicts(changed)

    def holds(self, instance: ObservedInstance) -> bool:
        """Whether no younger syncer may take over the instance, because this syncer may still want
        it."""
        verdict = self.verdicts.get(instance.key)
        if verdict is None:
            return bool(self.incomplete) and not self.spec.claims_nothing
        return isinstance(verdict, Kept)

    def keeps_until_pod_gone(self, instance: ObservedInstance) -> bool:
        """Whether the instance is kept only for a slice or address that does not exist yet, until
        its pod is gone."""
        if not self.reads_pods or instance.key in self.verdicts:
            return False
        return not self._unplaced(instance)

    @property
    def reads_pods(self) -> bool:
        """Whether the list of pods may be evidence, because a slice or an address does not exist
        yet."""
        return bool(self.incomplete)

    def _unplaced(self, instance: ObservedInstance) -> str | None:
        if not self.unplaced:  # nearly always
            return None
        place = pod_uid_of(instance) or instance.instance.ip_addr
        return self.unplaced.get(place)


class NotServed(Struct, frozen=True, kw_only=True):
    """The claim of a syncer that is invalid, not granted or has an Unknown source. Its instances
    are kept."""

    syncer: SyncerObject
    spec: Syncer | None  # None if it is invalid
    reason: Reason
    message: str
    source: Unknown | None = None  # what it needs and could not be read; None if that is known
    refused: Serving | None = None  # the claim that its Namespace does not grant
    edit: str = ""  # the object to correct, such as `service rating`; empty if it is the syncer

    @property
    def reads_pods(self) -> bool:
        """Whether the list of pods may be evidence."""
        return self.source is None

    def keeps_until_pod_gone(self, _instance: ObservedInstance) -> bool:
        """Whether an instance is kept only until its pod is gone."""
        return self.reads_pods


class Deleting(Struct, frozen=True, kw_only=True):
    """The claim of a syncer that a person deleted. It wants no instance."""

    syncer: SyncerObject
    spec: Syncer | None  # None if it is invalid
    proof: Proof  # that the CRD is not being deleted, so that a person deleted the syncer
    keys: frozenset[InstanceKey] = frozenset()
    """The keys of its endpoints, registered or not; empty after our finalizer was removed."""
    instances_stay: bool = False  # by `--policy upsert-only`, so that there is nothing to wait for
    gated: frozenset[str] = frozenset()
    """UIDs of the pods whose readiness gate waits for this syncer."""


Claim: TypeAlias = Serving | NotServed | Deleting


class Desired(Struct, frozen=True, kw_only=True):
    """All claims of a pass, and further evidence from Kubernetes."""

    claims: Mapping[SyncerRef, Claim]
    wanted_by: Mapping[InstanceKey, SyncerRef]
    syncers: Listed[SyncerObject]  # in a Complete part, an absent syncer was deleted
    living_pods: Mapping[str, Complete[frozenset[str]]] = field(default_factory=dict)
    """UIDs of all pods, for each namespace whose pods were listed completely."""
    sockets: Callable[[], Mapping[PodSocket, Complete[frozenset[str]]]] = dict
    """Which pods listen at which sockets; computed on the first call."""
    heirs: Heirs | None = None
    """The syncers that may want what others give up, and could not be read; None: nobody."""
    crd_installed: float = 0.0  # when the CRD was installed, in Unix seconds; 0 if not read

    def wanted(self, key: InstanceKey) -> Wanted | None:
        claim = self.server_of(key)
        if claim:
            return claim.wanted_at(key)
        return None

    def is_unread(self, syncer: SyncerRef) -> bool:
        """Say whether a source of this syncer, or the list that it is in, could not be read."""
        claim = self.claims.get(syncer)
        if claim is None:
            return isinstance(self.syncers.of(syncer.namespace), Unknown)
        return isinstance(claim, NotServed) and claim.source is not None

    def each_wanted(self) -> Iterator[tuple[InstanceKey, Serving, Wanted]]:
        """Yield each wanted instance with its key, and the claim that wants it."""
        for key in self.wanted_by:
            claim = self.server_of(key)
            if claim is not None and key in claim.wanted:
                yield key, claim, claim.wanted[key]

    def server_of(self, key: InstanceKey) -> Serving | None:
        """Return the claim that wants an instance with this key."""
        syncer = self.wanted_by.get(key)
        claim = self.claims[syncer] if syncer else None
        if isinstance(claim, Serving):
            return claim
        return None

    def with_claims(self, changed: Mapping[SyncerRef, Serving]) -> Desired:
        """Return this with other claims of some syncers, which may want less."""
        if not changed:
            return self
        left_out: list[InstanceKey] = []
        for key, syncer in self.wanted_by.items():
            claim = changed.get(syncer)
            # A key that one syncer leaves out another may want.
            if claim is not None and claim.wanted_at(key) is None:
                left_out.append(key)
        wanted_by = self.wanted_by
        if left_out:
            wanted_by = dict(wanted_by)
            for key in left_out:
                del wanted_by[key]
        claims = {**self.claims, **changed}
        return replace(self, claims=claims, wanted_by=wanted_by)


def every(syncers: Listed[S]) -> Iterator[S]:
    """Yield all listed syncers or imports, sorted by namespace and name."""
    for _, source in sorted(syncers.by_namespace.items()):
        if isinstance(source, Complete):
            yield from sorted(source.data, key=lambda syncer: syncer.name)


def seniority(claim: Claim) -> tuple[float, SyncerRef]:
    """Return the key by which syncers are sorted that claim the same address: by age, then by
    name."""
    return (claim.syncer.created, claim.syncer.ref)


def is_suspended(claim: Claim | None) -> bool:
    """Say whether the syncer is suspended, also if it cannot be served; a deletion never is."""
    if isinstance(claim, Serving):
        return claim.spec.suspend
    if isinstance(claim, NotServed):
        return claim.syncer.spec.get("suspend") is True
    return False


def wanted_in(verdict: Verdict | None) -> Wanted | None:
    """Return the instance of an endpoint, whether it is to be registered or not; None if it is
    unknown."""
    if isinstance(verdict, OverLimit | Taken):
        return verdict.wanted
    if isinstance(verdict, Wanted):
        return verdict
    return None


def rival_of(verdict: Verdict) -> Rival | None:
    """Return the other syncer that has the address of an endpoint, or None."""
    if isinstance(verdict, Taken):
        return verdict.rival
    wanted = wanted_in(verdict)
    if wanted is not None:
        return wanted.rival
    return None
