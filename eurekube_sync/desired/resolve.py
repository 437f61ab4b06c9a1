"""Makes the claims of a pass: one for each syncer, from its Services and slices.

Only a complete catalog gives a claim that can remove an instance: `_serve` and `_delete` take
`Complete`.

A claim of the last pass is used again if the objects behind it are identical. All objects were
listed again, and `adapters/kubernetes/calls` returns the same object only if its bytes did not
change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import msgspec
from msgspec import Struct, field

from eurekube_sync.desired.catalog import Catalog, Catalogs, pods_by_socket, same
from eurekube_sync.desired.claims import (
    Claim,
    Deleting,
    Desired,
    Found,
    Kept,
    Leaving,
    NotServed,
    Serving,
    Verdict,
    Wanted,
    every,
)
from eurekube_sync.desired.endpoints import names_of
from eurekube_sync.desired.heirs import Heirs
from eurekube_sync.desired.instance import Builder, Naming, Registered
from eurekube_sync.desired.pods import serve_pods
from eurekube_sync.desired.rivals import Shares, shared_out
from eurekube_sync.desired.scope import Policy, Scope, annotations_of, refusal
from eurekube_sync.desired.services import serve_services
from eurekube_sync.desired.similar import MOST_COMPARED, near_services
from eurekube_sync.desired.spec import (
    CLEANUP_FINALIZER,
    NO_PATHS,
    NO_ZONE,
    Syncer,
    parse,
    selected_namespace,
)
from eurekube_sync.model.errors import InvalidSyncer, SourceUnknown
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, LeaseTimes
from eurekube_sync.model.kubernetes import ClusterView, Service, SyncerObject, SyncerRef
from eurekube_sync.model.ownership import Ownership, pod_uid_of
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete, Listed, Source, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import one_or_more, some_of


class Made(Struct, frozen=True):
    """A claim, and all objects behind it."""

    syncer: SyncerObject
    all_services: Sequence[Service]  # of the selected namespace
    services: tuple[Service, ...]  # those that match the selector
    objects: Sequence[object]
    """These Services and their slices, in the order in which they were read."""
    registered: frozenset[Registered]  # what it depends on in Eureka
    claim: Serving | NotServed

    def of_the_same(self, objects: Sequence[object], naming: Naming) -> bool:
        """Whether the claim was made of the identical objects, and Eureka's list still gives the
        same answers."""
        if not same(self.objects, objects):
            return False
        for asked in self.registered:
            now = naming.registered(self.syncer.ref, asked.may)
            if now != asked:
                return False
        return True


class EarlierClaims(Struct):
    """The claims of the last pass. Each pass replaces entries of `made` and `specs` as it makes its
    own claims."""

    made: dict[SyncerRef, Made] = field(default_factory=dict)
    specs: dict[SyncerRef, tuple[SyncerObject, Syncer | NotServed]] = field(default_factory=dict)
    """Each syncer as it was listed, and its spec, or its claim if the spec is invalid."""
    anew: bool = False  # whether a claim was made since the last call of `shared_out`
    marks: tuple[Ownership, LeaseTimes] | None = None
    services: Mapping[str, Sequence[Service]] = field(default_factory=dict)
    """Those of `Catalogs`, by namespace."""
    _verdicts: Mapping[SyncerRef, Mapping[InstanceKey, Verdict]] = field(default_factory=dict)
    """The verdicts that `shared_out` gave."""
    _wanted_by: Mapping[InstanceKey, SyncerRef] = field(default_factory=dict)
    """The syncer that wants each key, by `shared_out`."""

    def spec_of(self, syncer: SyncerObject) -> Syncer | NotServed:
        """Return the spec of a syncer, read once as long as the syncer does not change."""
        known = self.specs.get(syncer.ref)
        if known is not None and known[0] is syncer:
            return known[1]
        self.made.pop(syncer.ref, None)  # was made of the syncer as it was
        spec = _read(syncer)
        self.specs[syncer.ref] = (syncer, spec)
        return spec

    def end(self, made: Mapping[SyncerRef, Claim]) -> Shares:
        """Forget the syncers that are gone, and return the result of `shared_out`, without a call
        if none changed."""
        for ref in self.specs.keys() - made.keys():
            del self.specs[ref]
            self.made.pop(ref, None)
        before = _verdicts(made)
        if self.anew or self._verdicts.keys() != before.keys():
            claims, self._wanted_by = shared_out(made)
            self._verdicts = _verdicts(claims)
            self.anew = False
            return claims, self._wanted_by
        # No claim changed, so none gets or loses an address.
        shared = dict(made)
        for ref, claim in made.items():
            if not isinstance(claim, Serving):
                continue
            verdicts = self._verdicts[ref]
            if verdicts is not claim.verdicts:
                shared[ref] = replace(claim, verdicts=verdicts)
        return shared, self._wanted_by


def _verdicts(claims: Mapping[SyncerRef, Claim]) -> dict[SyncerRef, Mapping[InstanceKey, Verdict]]:
    """Return the verdicts of each syncer that is served."""
    verdicts: dict[SyncerRef, Mapping[InstanceKey, Verdict]] = {}
    for ref, claim in claims.items():
        if isinstance(claim, Serving):
            verdicts[ref] = claim.verdicts
    return verdicts


def claim_all(
    view: ClusterView, naming: Naming, scope: Scope, earlier: EarlierClaims | None = None
) -> Desired:
    """Make one claim for each listed syncer in scope. Claims whose objects did not change are taken
    from `earlier`."""
    if earlier is None:
        earlier = EarlierClaims()
    catalogs = Catalogs(view, earlier.services)
    naming = replace(naming, syncers=view.syncers)
    marks = (naming.ownership, naming.lease)  # which each instance bears
    if marks != earlier.marks:
        earlier.made.clear()
        earlier.marks = marks
    made: dict[SyncerRef, Claim] = {}
    for syncer in every(view.syncers):
        if scope.takes(syncer):
            made[syncer.ref] = _claim(syncer, view, catalogs, naming, scope, earlier)
    claims, wanted_by = earlier.end(made)
    earlier.services = catalogs.services()
    syncers = view.syncers
    if isinstance(view.crd_live, Unknown):
        # While the CRD is being deleted, or may be, an absent syncer was perhaps not deleted by a
        # person.
        syncers = Listed(by_namespace={}, elsewhere=view.crd_live)
    return Desired(
        claims=claims,
        wanted_by=wanted_by,
        syncers=syncers,
        sockets=cache(lambda: pods_by_socket(view)),
        heirs=Heirs(claims, catalogs, view.syncers, scope),
        crd_installed=view.crd_installed,
    )


def _claim(
    syncer: SyncerObject,
    view: ClusterView,
    catalogs: Catalogs,
    naming: Naming,
    scope: Scope,
    earlier: EarlierClaims,
) -> Claim:
    namespace = selected_namespace(syncer)
    spec = earlier.spec_of(syncer)
    catalog = None
    if scope.may_select(syncer):
        catalog = catalogs.of(namespace)
    try:
        if syncer.deleted is not None:  # also where it may not select any more
            return _delete(syncer, spec, catalog, view.crd_live, naming, scope, earlier)
        if catalog is None:
            return NotServed(
                syncer=syncer,
                spec=_valid(spec),
                reason=Reason.NAMESPACE_NOT_ALLOWED,
                message="spec.selector.namespace: syncers of this namespace may not select "
                f"Services of namespace {namespace}; the operator may allow it with "
                f"--allow-namespace {syncer.namespace}:{namespace}",
            )
        if isinstance(catalog, Unknown):
            return _unknown(syncer, spec, catalog)
        if isinstance(spec, NotServed):
            return spec
        return _granted(_serve_again(syncer, spec, catalog, naming, earlier), view)
    except SourceUnknown as error:
        return _unknown(syncer, spec, error.unknown)


def _valid(spec: Syncer | NotServed) -> Syncer | None:
    if isinstance(spec, NotServed):
        return None
    return spec


def _unknown(
    syncer: SyncerObject,
    spec: Syncer | NotServed,
    source: Unknown,
    reason: Reason = Reason.SOURCE_UNKNOWN,
) -> NotServed:
    return NotServed(
        syncer=syncer, spec=_valid(spec), reason=reason, message=source.message, source=source
    )


def _granted(claim: Serving | NotServed, view: ClusterView) -> Serving | NotServed:
    """Return the claim if its Namespace grants it, or need not. Otherwise the syncer is not served.
    Its instances are then kept, because a lost annotation must remove no app."""
    if view.namespaces is None or isinstance(claim, NotServed):
        return claim
    syncer = claim.syncer
    annotations = annotations_of(view.namespaces, syncer.namespace, "a syncer")
    if isinstance(annotations, Unknown):
        return _unknown(syncer, claim.spec, annotations)
    refused = refusal(claim, annotations)
    if refused is not None:
        return NotServed(
            syncer=syncer,
            spec=claim.spec,
            reason=Reason.NOT_GRANTED,
            message=refused,
            refused=claim,
        )
    return replace(claim, granted_by=annotations)


def _delete(
    syncer: SyncerObject,
    spec: Syncer | NotServed,
    catalog: Complete[Catalog] | Unknown | None,
    crd_live: Source[bool],
    naming: Naming,
    scope: Scope,
    earlier: EarlierClaims,
) -> Deleting | NotServed:
    """Return the claim of a deleted syncer; `catalog` is None if it may not select there. Raises
    SourceUnknown."""
    if isinstance(crd_live, Unknown):
        return _unknown(syncer, spec, crd_live, Reason(crd_live.cause))
    if isinstance(catalog, Unknown):
        return _unknown(syncer, spec, catalog)
    keys: frozenset[InstanceKey] = frozenset()
    gated: set[str] = set()
    served = None
    if catalog is not None and isinstance(spec, Syncer):
        served = _serve_again(syncer, spec, catalog, naming, earlier)
    if isinstance(served, Serving):
        if CLEANUP_FINALIZER in syncer.finalizers:
            keys = frozenset(served.verdicts)
        # `_read` leaves the gate out of the spec of a deleted syncer.
        if syncer.spec.get("readinessGate") is True:
            gated = _pods_of(served)
    return Deleting(
        syncer=syncer,
        spec=_valid(spec),
        proof=crd_live.proof,
        keys=keys,
        instances_stay=scope.policy is Policy.UPSERT_ONLY,
        gated=frozenset(gated),
    )


def _pods_of(claim: Serving) -> set[str]:
    """Return the UIDs of the pods that a syncer wants."""
    uids = [pod_uid_of(wanted.instance) for wanted in claim.wanted.values()]
    return {uid for uid in uids if uid}


def _serve_again(
    syncer: SyncerObject,
    spec: Syncer,
    catalog: Complete[Catalog],
    naming: Naming,
    earlier: EarlierClaims,
) -> Serving | NotServed:
    """As `_serve`, but use the last pass's claim again if it was made only of this syncer, these
    Services and these slices. Raises SourceUnknown."""
    ref = syncer.ref
    known = earlier.made.pop(ref, None)
    there = catalog.data
    all_services = there.services
    if known is not None and known.all_services is all_services:
        services = known.services
    else:
        services = there.matching(spec.selector)
    objects = _objects_behind(services, there)
    undrained = there.pod_drains is None  # else the claim depends on annotations of pods
    asked = there.asked
    if known is not None and undrained and known.of_the_same(objects, naming):
        claim = known.claim
        registered = known.registered
        if isinstance(claim, Serving):
            claim = claim.proven_by(catalog.proof)
    else:
        earlier.anew = True
        claim, registered = _serve_anew(syncer, spec, services, catalog, naming)
    if undrained and there.asked == asked:  # no other object is behind the claim
        made = Made(syncer, all_services, services, objects, registered, claim)
        earlier.made[ref] = made
    return claim


def _objects_behind(services: Sequence[Service], there: Catalog) -> Sequence[object]:
    """Return the Services and their slices, in the order in which they are read."""
    objects: list[object] = list(services)
    if not services:  # the message may name any of them
        objects += there.services[: MOST_COMPARED + 1]
    for service in services:
        objects += there.slices_of(service)
    return objects


def _serve_anew(
    syncer: SyncerObject,
    spec: Syncer,
    services: tuple[Service, ...],
    catalog: Complete[Catalog],
    naming: Naming,
) -> tuple[Serving | NotServed, frozenset[Registered]]:
    """Return the syncer's claim, and what it depends on in Eureka. Raises SourceUnknown."""
    builder = Builder(spec, naming)
    if syncer.status is not None:
        builder.before = syncer.status
    claim: Serving | NotServed
    try:
        claim = _serve(syncer, spec, services, catalog, builder)
    except InvalidSyncer as error:
        claim = _invalid(syncer, error, spec)
    return claim, frozenset(builder.asked)


def _none_matches(spec: Syncer, services: Sequence[Service]) -> str:
    """Say that no Service is selected, with a label that one has in place of the one selected."""
    text = (
        f"no Service in namespace {spec.namespace} matches {spec.selector}: create it, or correct "
        "spec.selector"
    )
    near = near_services(dict(spec.selector.labels), services)
    if not near:
        return text
    label, names, _ = near[0]
    has = one_or_more(len(names), "Service {} has", "Services {} have")
    having = has.format(some_of(names))
    return f"{text}; {having} {label}"


def _invalid(syncer: SyncerObject, error: InvalidSyncer, spec: Syncer | None) -> NotServed:
    return NotServed(
        syncer=syncer, spec=spec, reason=error.reason, message=str(error), edit=error.edit
    )


def _read(syncer: SyncerObject) -> Syncer | NotServed:
    """Read the spec. Of a deleted syncer, fields are replaced that do not change keys, and could
    make it fail."""
    try:
        spec = parse(syncer)
    except InvalidSyncer as error:
        return _invalid(syncer, error, None)
    if syncer.deleted is None:
        return spec
    plain = {
        "host_name": "ip",
        "paths": NO_PATHS,
        "zone": NO_ZONE,
        "metadata": {},
        "metadata_from": (),
    }
    return msgspec.structs.replace(spec, **plain, not_ready="Down", readiness_gate=False)


def _serve(
    syncer: SyncerObject,
    spec: Syncer,
    services: tuple[Service, ...],
    catalog: Complete[Catalog],
    builder: Builder,
) -> Serving:
    """Make the claim of a syncer with these Services. Raises InvalidSyncer, SourceUnknown."""
    if not services:
        raise InvalidSyncer(Reason.NO_MATCHING_SERVICE, _none_matches(spec, catalog.data.services))
    serve = serve_pods if spec.mode == "pod" else serve_services
    verdicts: dict[InstanceKey, Found] = {}
    for key, verdict in serve(spec, services, catalog.data, builder):
        other = verdicts.get(key)
        if other is not None:
            verdicts[key] = better(other, verdict)
        else:
            verdicts[key] = verdict
    apps = tuple(sorted(builder.apps))
    vip_address = spec.vip_address or apps[0].lower()
    return Serving(
        syncer=syncer,
        spec=spec,
        proof=catalog.proof,
        verdicts=verdicts,
        unplaced=builder.unplaced,
        incomplete=tuple(builder.incomplete),
        services=tuple(names_of(services)),
        apps=apps,
        vip_address=vip_address,
        warnings=builder.warnings(vip_address),
        port_warnings=builder.port_warnings,
        drains_unread=builder.drains_unread,
        ports=builder.served_ports,
    )


def better(first: Found, second: Found) -> Found:
    """Choose between two verdicts of one key, as while a new pod takes over an address: wanted
    before kept before leaving. Of two wanted ones choose the UP one, then the first by pod, because
    slices have no order."""
    ranks = (Wanted, Kept, Leaving)
    if isinstance(first, Wanted) and isinstance(second, Wanted):
        return min(first, second, key=_preference)
    if ranks.index(type(first)) < ranks.index(type(second)):
        return first
    return second


def _preference(wanted: Wanted) -> tuple[bool, str, list[tuple[str, str]]]:
    instance = wanted.instance
    return (
        instance.status is not InstanceStatus.UP,
        wanted.why,
        sorted(instance.metadata.items()),
    )
