"""What should stand in Eureka: every syncer, with its Services and slices, becomes a claim.

A claim is one of three. `Serving`: these instances, no others. `Frozen`: what stands is renewed, nothing is added or
removed. `Deleting`: nothing is wanted, and these keys may have been written. Only a complete catalog makes a claim that
could remove anything: `_serve` and `_delete` take `Complete`, and the type checker holds callers to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias, TypeVar

from eurekube_sync.desired.catalog import Catalog, Catalogs, Sockets, SourceUnknown
from eurekube_sync.desired.instance import Builder, Naming
from eurekube_sync.desired.pods import serve_pods
from eurekube_sync.desired.policy import Conduct, Policy, policy_asked
from eurekube_sync.desired.presentation import Presentation
from eurekube_sync.desired.rivals import Bid, Right, Rival, Socket, outdone, sockets_of
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.services import serve_services
from eurekube_sync.desired.spec import Mode, Syncer, parse, selected_namespace
from eurekube_sync.desired.verdicts import (
    Found,
    Incomplete,
    Kept,
    Leaving,
    OverLimit,
    Taken,
    Unplaced,
    Verdict,
    Wanted,
    better,
    rival_of,
)
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import ClusterView, SyncerObject, SyncerRef
from eurekube_sync.model.ownership import pod_uid_of
from eurekube_sync.model.sources import Complete, Listed, Proof, Source, Unknown

V = TypeVar("V", bound=Verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A syncer in order."""

    syncer: SyncerObject
    proof: Proof
    """Of its Services and slices."""
    verdicts: Mapping[InstanceKey, Verdict] = field(default_factory=dict)
    """Of each instance that its endpoints could give."""
    unplaced: Mapping[str, str] = field(default_factory=dict)
    """By pod UID, or bare address: why whatever is registered of it stays."""
    incomplete: tuple[Incomplete, ...] = ()
    """Why what has no verdict stays none the less."""
    services: tuple[str, ...] = ()
    """That it selects, by name."""
    apps: tuple[str, ...] = ()
    vip_address: str = ""
    max_removal_percent: int | None = None
    """Of its own brake."""
    warnings: tuple[str, ...] = ()
    conduct: Conduct = Conduct()  # noqa: RUF009 - immutable
    notes: tuple[str, ...] = ()
    """What its limit comes to."""

    @property
    def wanted(self) -> Mapping[InstanceKey, Wanted]:
        """What should be registered."""
        return self.of(Wanted)

    def of(self, kind: type[V]) -> Mapping[InstanceKey, V]:
        """The verdicts of one kind."""
        return {key: one for key, one in self.verdicts.items() if isinstance(one, kind)}

    def wanted_at(self, key: InstanceKey) -> Wanted | None:
        """What should be registered under the key."""
        one = self.verdicts.get(key)
        return one if isinstance(one, Wanted) else None

    @property
    def rivals(self) -> Mapping[InstanceKey, Rival]:
        """Which other syncer has the address of a key."""
        return {key: rival for key, one in sorted(self.verdicts.items()) if (rival := rival_of(one))}

    @property
    def unready(self) -> Mapping[InstanceKey, str]:
        """Why each endpoint that nobody drains or ends is not ready."""
        found = {}
        for key, one in self.verdicts.items():
            match one:
                case Wanted(instance=instance) if instance.status is not InstanceStatus.UP and not one.drained:
                    found[key] = one.why
                case Leaving(terminating=False):
                    found[key] = one.why
        return found

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

    @property
    def doubts(self) -> bool:
        """Whether anything that stands may stay although it is not wanted."""
        return bool(self.unplaced or self.incomplete or self.of(Kept))

    def keeps(self, instance: ObservedInstance) -> str | None:
        """Why an instance that it does not want stays none the less; None when it goes."""
        if isinstance(self.verdicts.get(instance.key), Leaving | Taken | OverLimit):
            return None
        return self._unsure_of(instance) or (self.incomplete[0].message if self.incomplete else None)

    def outdone_by(self, rivals: Mapping[InstanceKey, Rival | None]) -> Serving:
        """The same, where another syncer has these addresses, or None has."""
        changed = {
            key: replace(one, rival=rivals[key])
            for key, one in self.verdicts.items()
            if key in rivals and isinstance(one, Wanted)
        }
        return replace(self, verdicts={**self.verdicts, **changed})

    def holds(self, instance: ObservedInstance) -> bool:
        """Whether a younger syncer may not take it over, for nobody can tell what this one wants of it."""
        return not self.conduct.detached and self._keeps_unwanted(instance)

    def keeps_unseen(self, instance: ObservedInstance) -> bool:
        """Whether it stays for no other reason than that a slice or an address is awaited: it goes when its pod is
        gone."""
        return self.heeds_pods and self._keeps_unwanted(instance) and not self._unsure_of(instance)

    @property
    def heeds_pods(self) -> bool:
        """Whether a slice or an address is awaited, so that the list of pods may tell more."""
        return any(one.heeds_pods for one in self.incomplete)

    def _keeps_unwanted(self, instance: ObservedInstance) -> bool:
        if not self.incomplete or self.wanted_at(instance.key) is not None:
            return False
        return self.keeps(instance) is not None

    def _unsure_of(self, one: ObservedInstance) -> str | None:
        verdict = self.verdicts.get(one.key)
        if isinstance(verdict, Kept):
            return verdict.why
        return self.unplaced.get(pod_uid_of(one) or one.instance.ip_addr) if self.unplaced else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """A syncer that cannot be served now: it is wrong, or a source of its is Unknown."""

    syncer: SyncerObject
    reason: str
    message: str
    unknown: bool = False
    """True when a source is Unknown."""

    @property
    def heeds_pods(self) -> bool:
        """Whether what stands of it goes when the list of pods shows that its pod is gone."""
        return not self.unknown

    def holds(self, _instance: ObservedInstance) -> bool:
        """Whether a younger syncer may not take over what stands."""
        return True

    def keeps_unseen(self, _instance: ObservedInstance) -> bool:
        """Whether it goes when its pod is gone."""
        return self.heeds_pods


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleting:
    """A syncer that a person deletes. `keys` are what its endpoints would have given, listed in Eureka or not."""

    syncer: SyncerObject
    proof: Proof
    """Of the CRD that lives: the deletion is a person's."""
    keys: frozenset[InstanceKey] = frozenset()
    policy: Policy = Policy.SYNC
    """As its spec has it, when that can be read."""
    gated: frozenset[str] = frozenset()
    """UIDs of the pods whose readiness gate waits for it."""


Claim: TypeAlias = Serving | Frozen | Deleting


@dataclass(frozen=True, slots=True, kw_only=True)
class Desired:
    """All claims of a pass, and what else the cluster proves."""

    claims: Mapping[SyncerRef, Claim]
    wanted_by: Mapping[InstanceKey, SyncerRef]
    syncers: Listed[SyncerObject]
    """Where a syncer's absence proves that it was deleted."""
    living_pods: Mapping[str, Complete[frozenset[str]]] = field(default_factory=dict)
    """UIDs of all pods, for each namespace whose pods were listed completely."""
    sockets: Sockets = field(default_factory=Sockets, compare=False)
    """Where another pod than an instance's own listens by now."""
    crd_installed: float = 0.0
    """When the CRD that lives was installed, in Unix seconds; 0 when nobody asked."""

    def wanted(self, key: InstanceKey) -> Wanted | None:
        """What should stand under the key."""
        claim = self.server_of(key)
        return claim.wanted_at(key) if claim else None

    def server_of(self, key: InstanceKey) -> Serving | None:
        """The claim that wants something under the key."""
        syncer = self.wanted_by.get(key)
        claim = self.claims[syncer] if syncer else None
        return claim if isinstance(claim, Serving) else None


def claim_all(view: ClusterView, naming: Naming, scope: Scope) -> Desired:
    """One claim per syncer that was listed and is in scope. One that is broken freezes alone; what several claim one
    of them holds."""
    catalogs = Catalogs(view)
    made = {
        syncer.ref: _claim(syncer, view, catalogs, naming, scope)
        for syncer in every(view.syncers)
        if scope.takes(syncer)
    }
    claims, wanted_by = _shared_out(made)
    return Desired(
        claims=claims,
        wanted_by=wanted_by,
        syncers=_proven(view),
        sockets=Sockets(view),
        crd_installed=view.crd_installed,
    )


def _shared_out(
    made: Mapping[SyncerRef, Claim],
) -> tuple[Mapping[SyncerRef, Claim], Mapping[InstanceKey, SyncerRef]]:
    """The claims, and who wants what.

    Of two that select in one namespace, and claim one address and port for one app, one holds it: a syncer of that
    namespace before one of another, then the older, then by name. The other registers nothing there, and keeps what
    stands of it while the first does not register it. A detached one holds nothing that another wants: what stands of
    it changes hands, and is UP all the while. Between namespaces nothing changes hands (see `rivals`)."""
    claims = dict(made)
    wanted_by: dict[InstanceKey, SyncerRef] = {}
    holders: dict[_Place, _Holder] = {}
    bids: list[Bid] = []
    for claim in sorted((c for c in made.values() if isinstance(c, Serving)), key=_precedence):
        ref, namespace, wanted = claim.syncer.ref, selected_namespace(claim.syncer), claim.wanted
        sockets = {key: sockets_of(one.instance) for key, one in wanted.items()}
        places = {key: _places(key, namespace, taken) for key, taken in sockets.items()}
        held = {key: holders[place] for key, taken in places.items() for place in reversed(taken) if place in holders}
        idle = {key: one.against(claim) for key, one in held.items() if one.idle and key not in wanted_by}
        if held and not claim.conduct.detached:  # its limit takes all of that out, and that is no conflict
            taken_away = {
                key: replace(wanted[key], rival=idle[key])
                if key in idle
                else Taken(wanted=wanted[key], rival=one.against(claim))
                for key, one in held.items()
            }
            claims[ref] = replace(claim, verdicts={**claim.verdicts, **taken_away})
        for key, taken in places.items():
            if key not in held or key in idle:
                wanted_by[key] = ref
            if key not in held:
                holders.update(dict.fromkeys(taken, _Holder(claim.syncer, idle=claim.conduct.suspend)))
                if not claim.conduct.detached:
                    bids.append(Bid(key, ref, namespace, sockets[key], allotted=wanted[key].allotted))
        for key, one in claim.verdicts.items():
            if isinstance(one, Kept):
                for place in _places(key, namespace, ((key.app, one.host, one.port),)):
                    holders.setdefault(place, _Holder(claim.syncer, idle=True))
    rivals: dict[SyncerRef, dict[InstanceKey, Rival]] = {}
    for bid, rival in outdone(bids):
        rivals.setdefault(bid.syncer, {})[bid.key] = rival
    for ref, theirs in rivals.items():
        outbid = claims[ref]
        assert isinstance(outbid, Serving)  # no other bids
        claims[ref] = outbid.outdone_by(theirs)
    return claims, wanted_by


def every(syncers: Listed[SyncerObject]) -> Iterator[SyncerObject]:
    """The syncers that were listed, by namespace and name."""
    for namespace in sorted(syncers.by_namespace):
        source = syncers.of(namespace)
        if isinstance(source, Complete):
            yield from sorted(source.data, key=lambda syncer: syncer.name)


def _proven(view: ClusterView) -> Listed[SyncerObject]:
    # While the CRD goes, or may go, a syncer that is not there was perhaps deleted by nobody.
    if isinstance(view.crd_live, Unknown):
        return Listed(by_namespace={}, elsewhere=view.crd_live)
    return view.syncers


_Place: TypeAlias = tuple[str, Socket] | InstanceKey
"""What one syncer holds: a socket among those that select in a namespace, and a key."""


def _places(key: InstanceKey, namespace: str, sockets: Iterable[Socket]) -> tuple[_Place, ...]:
    return (*((namespace, socket) for socket in sockets), key)


class _Holder(NamedTuple):
    """Who holds a place."""

    syncer: SyncerObject
    idle: bool
    """It does not register there, so that nothing that stands goes for it."""

    def against(self, claim: Serving) -> Rival:
        """What the claim that comes later is told."""
        at_home = _away(claim.syncer) and not _away(self.syncer)
        return Rival(self.syncer.ref, Right.HOME if at_home else Right.AGE)


def _away(syncer: SyncerObject) -> bool:
    """Whether it selects in another namespace than its own."""
    return selected_namespace(syncer) != syncer.namespace


def seniority(claim: Claim) -> tuple[float, SyncerRef]:
    """The order in which syncers hold what several claim: the older first, of equal age by name."""
    return (claim.syncer.created, claim.syncer.ref)


def _precedence(claim: Serving) -> tuple[bool, bool, tuple[float, SyncerRef]]:
    return (claim.conduct.detached, _away(claim.syncer), seniority(claim))


def _claim(syncer: SyncerObject, view: ClusterView, catalogs: Catalogs, naming: Naming, scope: Scope) -> Claim:
    catalog = catalogs.of(selected_namespace(syncer)) if scope.may_select(syncer) else None
    if syncer.deleted is not None:
        return _delete(syncer, catalog, view.crd_live, naming)
    if catalog is None:
        return _forbidden(syncer)
    if isinstance(catalog, Unknown):
        return _unknown(syncer, "SourceUnknown", catalog)
    try:
        return _serve(syncer, parse(syncer), catalog, naming)
    except InvalidSyncer as error:
        return Frozen(syncer=syncer, reason=error.reason, message=str(error))
    except SourceUnknown as error:
        return _unknown(syncer, "SourceUnknown", error.unknown)


def _unknown(syncer: SyncerObject, reason: str, source: Unknown) -> Frozen:
    return Frozen(syncer=syncer, reason=reason, message=source.message, unknown=True)


def _forbidden(syncer: SyncerObject) -> Frozen:
    """Its Services must not be looked at."""
    pair = f"{syncer.namespace}:{selected_namespace(syncer)}"
    return Frozen(
        syncer=syncer,
        reason="NamespaceNotAllowed",
        message=f"spec.selector.namespace: syncers of this namespace may not select Services of namespace "
        f"{selected_namespace(syncer)}; the operator may allow it with --allow-namespace {pair}",
    )


def _delete(
    syncer: SyncerObject, catalog: Complete[Catalog] | Unknown | None, crd_live: Source[bool], naming: Naming
) -> Deleting | Frozen:
    """`catalog` None: its Services must not be looked at any more, and what stands tells all that is known."""
    if isinstance(crd_live, Unknown):
        return _unknown(syncer, crd_live.cause.value, crd_live)
    if isinstance(catalog, Unknown):
        return _unknown(syncer, "SourceUnknown", catalog)
    try:
        # Only the keys count, and what an instance looks like has no part in them.
        asked = parse(syncer)
        bare = replace(asked.conduct, readiness_gate=False)
        spec = replace(asked, presentation=Presentation(), conduct=bare) if catalog else None
        served = _serve(syncer, spec, catalog, naming) if catalog and spec else None
    except InvalidSyncer:
        served = None
    except SourceUnknown as error:
        return _unknown(syncer, "SourceUnknown", error.unknown)
    keys = frozenset(served.verdicts) if served else frozenset()
    gated = _pods(served.wanted) if served and asked.conduct.readiness_gate else frozenset()
    return Deleting(syncer=syncer, proof=crd_live.proof, keys=keys, policy=policy_asked(syncer.spec), gated=gated)


def _pods(wanted: Mapping[InstanceKey, Wanted]) -> frozenset[str]:
    return frozenset(uid for one in wanted.values() if (uid := pod_uid_of(one.instance)))


def _serve(syncer: SyncerObject, spec: Syncer, catalog: Complete[Catalog], naming: Naming) -> Serving:
    services = catalog.data.matching(spec.selector)
    if not services:
        raise InvalidSyncer(
            "NoMatchingService",
            f"no Service in namespace {spec.namespace} matches {spec.selector}: create it, or correct spec.selector",
        )
    builder = Builder(spec, naming)
    serve = serve_pods if spec.mode is Mode.POD else serve_services
    verdicts: dict[InstanceKey, Found] = {}
    incomplete: list[Incomplete] = []
    unplaced: dict[str, str] = {}
    for one in serve(spec, services, catalog.data, builder):
        match one:
            case Incomplete():
                incomplete.append(one)
            case Unplaced():
                unplaced[one.identity] = one.why
            case _:
                key, found = one
                verdicts[key] = better(verdicts[key], found) if key in verdicts else found
    return Serving(
        syncer=syncer,
        proof=catalog.proof,
        verdicts=_marked(verdicts, spec.conduct),
        unplaced=unplaced,
        incomplete=tuple(incomplete),
        services=tuple(sorted(service.name for service in services)),
        apps=builder.apps,
        vip_address=builder.vip_address,
        max_removal_percent=spec.max_removal_percent,
        warnings=builder.warnings(),
        conduct=spec.conduct,
    )


def _marked(verdicts: Mapping[InstanceKey, Found], conduct: Conduct) -> Mapping[InstanceKey, Found]:
    if not conduct.marks:
        return verdicts
    return {
        key: replace(one, instance=replace(one.instance, metadata={**one.instance.metadata, **conduct.marks}))
        if isinstance(one, Wanted)
        else one
        for key, one in verdicts.items()
    }
