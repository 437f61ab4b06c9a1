"""Makes the claims of a pass: every syncer, with its Services and slices, becomes one.

Only a complete catalog makes a claim that could remove anything: `_serve` and `_delete` take `Complete`, and the type
checker holds callers to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import msgspec

from eurekube_sync.desired.catalog import Catalog, Catalogs, Sockets, SourceUnknown
from eurekube_sync.desired.claims import Claim, Deleting, Desired, NotServed, Serving, every, seniority
from eurekube_sync.desired.conduct import Conduct, policy_asked
from eurekube_sync.desired.drain import Drains
from eurekube_sync.desired.earlier import EarlierClaims, Made
from eurekube_sync.desired.grants import refusal
from eurekube_sync.desired.instance import Builder, Naming
from eurekube_sync.desired.pods import serve_pods
from eurekube_sync.desired.rivals import Bid, Right, Rival, Socket, outdone, sockets_of
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.services import serve_services
from eurekube_sync.desired.spec import CLEANUP_FINALIZER, NO_PATHS, NO_ZONE, Mode, Syncer, parse, selected_namespace
from eurekube_sync.desired.verdicts import (
    Found,
    Incomplete,
    Kept,
    Taken,
    Unplaced,
    Wanted,
    better,
)
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import ClusterView, Service, SyncerObject, SyncerRef
from eurekube_sync.model.ownership import pod_uid_of
from eurekube_sync.model.sources import Complete, Listed, Source, Unknown
from eurekube_sync.model.wording import counted


def claim_all(view: ClusterView, naming: Naming, scope: Scope, earlier: EarlierClaims | None = None) -> Desired:
    """One claim for each syncer that was listed and is in scope. A broken one does not affect the others. What several
    claim, one of them gets. What the pass before made of the same objects is taken from `earlier`."""
    catalogs = Catalogs(view)
    earlier = earlier if earlier is not None else EarlierClaims()
    earlier.begin(naming)
    over_quota = scope.over_quota(view.syncers)
    made = {
        syncer.ref: _over_quota(syncer, scope)
        if syncer.ref in over_quota
        else _claim(syncer, view, catalogs, naming, scope, earlier)
        for syncer in every(view.syncers)
        if scope.takes(syncer)
    }
    earlier.end(made)
    claims, wanted_by = _shared_out_again(made, earlier)
    return Desired(
        claims=claims,
        wanted_by=wanted_by,
        syncers=_proven(view),
        sockets=Sockets(view),
        crd_installed=view.crd_installed,
    )


def _shared_out_again(
    made: Mapping[SyncerRef, Claim], earlier: EarlierClaims
) -> tuple[Mapping[SyncerRef, Claim], Mapping[InstanceKey, SyncerRef]]:
    """As `_shared_out`, which is spared where each claim is as it was."""
    serving = {ref: claim for ref, claim in made.items() if isinstance(claim, Serving)}
    known = earlier.shared(serving)
    if known is None:
        claims, wanted_by = _shared_out(made)
        earlier.keep(serving, claims, wanted_by)
        return claims, wanted_by
    verdicts, wanted_by = known
    changed = {ref: claim for ref, claim in serving.items() if verdicts[ref] is not claim.verdicts}
    return {**made, **{ref: replace(claim, verdicts=verdicts[ref]) for ref, claim in changed.items()}}, wanted_by


def _shared_out(
    made: Mapping[SyncerRef, Claim],
) -> tuple[Mapping[SyncerRef, Claim], Mapping[InstanceKey, SyncerRef]]:
    """The claims, and who wants what.

    Of two that select in one namespace, and claim one address and port for one app, one holds it: a syncer of that
    namespace before one of another, then the older, then by name. The other registers nothing there, and keeps what
    stands of it while the first does not register it. A syncer with limit 0 holds nothing that another wants: what
    is registered of it changes hands, and is UP all the while. Between namespaces nothing changes hands (see
    `rivals`)."""
    serving = sorted((c for c in made.values() if isinstance(c, Serving)), key=_precedence)
    claims = dict(made)
    if not _claimed_twice(serving):  # so it is nearly always, and nothing has to be weighed
        return claims, {key: claim.syncer.ref for claim in serving for key in claim.wanted}
    wanted_by: dict[InstanceKey, SyncerRef] = {}
    holders: dict[_Place, _Holder] = {}
    bids: list[Bid] = []
    for claim in serving:
        ref, namespace, wanted = claim.syncer.ref, selected_namespace(claim.syncer), claim.wanted
        sockets = {key: sockets_of(one.instance) for key, one in wanted.items()}
        places = {key: _places(key, namespace, taken) for key, taken in sockets.items()}
        held = {key: holders[place] for key, taken in places.items() for place in reversed(taken) if place in holders}
        idle = {key: one.against(claim) for key, one in held.items() if one.idle and key not in wanted_by}
        if held and not claim.conduct.claims_nothing:  # its limit takes all of that out, and that is no conflict
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
                if not claim.conduct.claims_nothing:
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


def _claimed_twice(serving: Iterable[Serving]) -> bool:
    """Whether any key, or any address and port of an app, is claimed or kept more than once."""
    keys: set[InstanceKey] = set()
    sockets: set[Socket] = set()
    claimed = taken = 0
    for claim in serving:
        for key, one in claim.verdicts.items():
            if isinstance(one, Wanted):
                of_this = sockets_of(one.instance)
            elif isinstance(one, Kept):
                of_this = ((key.app, one.host, one.port),)
            else:
                continue
            keys.add(key)
            sockets.update(of_this)
            claimed, taken = claimed + 1, taken + len(of_this)
    return len(keys) < claimed or len(sockets) < taken


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
    """It does not register there, so that nothing that is registered goes for it."""

    def against(self, claim: Serving) -> Rival:
        """What the claim that comes later is reported."""
        at_home = _away(claim.syncer) and not _away(self.syncer)
        return Rival(self.syncer.ref, Right.HOME if at_home else Right.AGE)


def _away(syncer: SyncerObject) -> bool:
    """Whether it selects in another namespace than its own."""
    return selected_namespace(syncer) != syncer.namespace


def _precedence(claim: Serving) -> tuple[bool, bool, tuple[float, SyncerRef]]:
    return (claim.conduct.claims_nothing, _away(claim.syncer), seniority(claim))


def _claim(
    syncer: SyncerObject,
    view: ClusterView,
    catalogs: Catalogs,
    naming: Naming,
    scope: Scope,
    earlier: EarlierClaims,
) -> Claim:
    catalog = catalogs.of(selected_namespace(syncer)) if scope.may_select(syncer) else None
    if syncer.deleted is not None:
        return _delete(syncer, catalog, view.crd_live, naming, earlier)
    if catalog is None:
        return _forbidden(syncer)
    if isinstance(catalog, Unknown):
        return _unknown(syncer, "SourceUnknown", catalog)
    try:
        return _granted(_serve_again(syncer, catalog, naming, earlier), view)
    except SourceUnknown as error:
        return _unknown(syncer, "SourceUnknown", error.unknown)


def _granted(claim: Serving | NotServed, view: ClusterView) -> Serving | NotServed:
    """The claim, where its Namespace grants it or need not. What is registered of another one stays: an annotation
    that is lost must not take an app out."""
    if view.namespaces is None or isinstance(claim, NotServed):
        return claim
    syncer, found = claim.syncer, view.namespaces.of(claim.syncer.namespace)
    if isinstance(found, Unknown):
        return _unknown(syncer, "SourceUnknown", found)
    if not found.data:
        message = f"Namespace {syncer.namespace} was not found, although it has a syncer: its grants are unknown"
        return NotServed(syncer=syncer, reason="SourceUnknown", message=message, unknown=True)
    annotations = found.data[0].annotations
    why = refusal(claim, annotations)
    if why is None:
        return replace(claim, granted_by=annotations)
    return NotServed(syncer=syncer, reason="NotGranted", message=why, refused=claim)


def _unknown(syncer: SyncerObject, reason: str, source: Unknown) -> NotServed:
    return NotServed(syncer=syncer, reason=reason, message=source.message, unknown=True)


def _over_quota(syncer: SyncerObject, scope: Scope) -> NotServed:
    """It is not even read, so that any number of them costs nothing."""
    gated = "; the readiness gates of its pods stay closed" if syncer.spec.get("readinessGate") is True else ""
    return NotServed(
        syncer=syncer,
        reason="OverQuota",
        message=f"namespace {syncer.namespace} may have at most {counted(scope.most_syncers, 'syncer')}, so only its "
        f"oldest are served; the operator may allow more with --max-syncers-per-namespace{gated}",
    )


def _forbidden(syncer: SyncerObject) -> NotServed:
    """Its Services must not be looked at."""
    pair = f"{syncer.namespace}:{selected_namespace(syncer)}"
    return NotServed(
        syncer=syncer,
        reason="NamespaceNotAllowed",
        message=f"spec.selector.namespace: syncers of this namespace may not select Services of namespace "
        f"{selected_namespace(syncer)}; the operator may allow it with --allow-namespace {pair}",
    )


def _delete(
    syncer: SyncerObject,
    catalog: Complete[Catalog] | Unknown | None,
    crd_live: Source[bool],
    naming: Naming,
    earlier: EarlierClaims,
) -> Deleting | NotServed:
    """`catalog` None: its Services must not be looked at any more, and what is registered tells all that is known."""
    if isinstance(crd_live, Unknown):
        return _unknown(syncer, crd_live.cause.value, crd_live)
    if isinstance(catalog, Unknown):
        return _unknown(syncer, "SourceUnknown", catalog)
    try:
        served = _serve_again(syncer, catalog, naming, earlier) if catalog else None
    except SourceUnknown as error:
        return _unknown(syncer, "SourceUnknown", error.unknown)
    verdicts, wanted = (served.verdicts, served.wanted) if isinstance(served, Serving) else ({}, {})
    return Deleting(
        syncer=syncer,
        proof=crd_live.proof,
        keys=frozenset(verdicts if CLEANUP_FINALIZER in syncer.finalizers else ()),
        policy=policy_asked(syncer.spec),
        gated=_pods(wanted) if syncer.spec.get("readinessGate") is True else frozenset(),
    )


def _pods(wanted: Mapping[InstanceKey, Wanted]) -> frozenset[str]:
    return frozenset(uid for one in wanted.values() if (uid := pod_uid_of(one.instance)))


def _serve_again(
    syncer: SyncerObject, catalog: Complete[Catalog], naming: Naming, earlier: EarlierClaims
) -> Serving | NotServed:
    """As `_serve`, which is spared where the syncer, its Services and slices are the same, and the claim was made of
    nothing else. Drains are part of every claim, where they are read."""
    known = earlier.made.pop(syncer.ref, None)
    if known is not None and known.syncer is not syncer:
        known = None
    spec = known.spec if known is not None else _spec(syncer)
    if isinstance(spec, NotServed):
        earlier.made[syncer.ref] = Made(syncer, spec, (), (), (), spec)
        return spec
    all_services = earlier.same_services(selected_namespace(syncer), catalog.data.services)
    if known is not None and known.all_services is all_services:
        services = known.services
    else:
        services = catalog.data.matching(spec.selector)
    objects = [*services, *(piece for service in services for piece in catalog.data.slices_of(service))]
    undrained, asked = catalog.data.drains == Drains(), catalog.data.asked
    if known is not None and undrained and known.of_the_same(objects):
        claim = known.claim.proven_by(catalog.proof)
    else:
        claim = _serve(syncer, spec, services, catalog, naming)
    if undrained and catalog.data.asked == asked:
        earlier.made[syncer.ref] = Made(syncer, spec, all_services, services, objects, claim)
    return claim


def _spec(syncer: SyncerObject) -> Syncer | NotServed:
    """What it asks for. Of one that is being deleted only the keys count, and whose they are: what an instance looks
    like, and when it is UP, has no part in that."""
    try:
        asked = parse(syncer)
    except InvalidSyncer as error:
        return _refused(syncer, error)
    if syncer.deleted is None:
        return asked
    conduct = replace(asked.conduct, readiness_gate=False)
    plain = {"host_name": "ip", "paths": NO_PATHS, "zone": NO_ZONE, "metadata": {}, "metadata_from": ()}
    return msgspec.structs.replace(asked, **plain, not_ready="Down", conduct=conduct)


def _refused(syncer: SyncerObject, error: InvalidSyncer) -> NotServed:
    return NotServed(syncer=syncer, reason=error.reason, message=str(error))


def _serve(
    syncer: SyncerObject, spec: Syncer, services: tuple[Service, ...], catalog: Complete[Catalog], naming: Naming
) -> Serving | NotServed:
    try:
        return _served(syncer, spec, services, catalog, naming)
    except InvalidSyncer as error:
        return _refused(syncer, error)


def _served(
    syncer: SyncerObject, spec: Syncer, services: tuple[Service, ...], catalog: Complete[Catalog], naming: Naming
) -> Serving:
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
