"""Makes the claims of a pass: every syncer, with its Services and slices, becomes one.

Only a complete catalog makes a claim that could remove anything: `_serve` and `_delete` take `Complete`.

A claim of the pass before is taken again where it would be made of the same objects. All was listed anew, and an object
is the same one only while its bytes are (`adapters/kubernetes/calls`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cache

import msgspec

from eurekube_sync.desired.catalog import Catalog, Catalogs, Drains, SourceUnknown, pods_by_socket, same
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
from eurekube_sync.desired.conduct import policy_of
from eurekube_sync.desired.instance import Builder, Naming
from eurekube_sync.desired.pods import serve_pods
from eurekube_sync.desired.rivals import Shares, shared_out
from eurekube_sync.desired.scope import Scope, refusal
from eurekube_sync.desired.services import serve_services
from eurekube_sync.desired.spec import CLEANUP_FINALIZER, NO_PATHS, NO_ZONE, Syncer, parse, selected_namespace
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, LeaseTimes
from eurekube_sync.model.kubernetes import ClusterView, Service, SyncerObject, SyncerRef
from eurekube_sync.model.ownership import Ownership, pod_uid_of
from eurekube_sync.model.sources import Complete, Listed, Source, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted


@dataclass(frozen=True, slots=True)
class Made:
    """A claim, and all that it was made of."""

    syncer: SyncerObject
    spec: Syncer | NotServed
    all_services: Sequence[Service]  # of its namespace, among which its selector was looked for
    services: tuple[Service, ...]
    objects: Sequence[object]  # its Services and their slices, in the order in which they were read
    claim: Serving | NotServed

    def of_the_same(self, objects: Sequence[object]) -> bool:
        """Whether it would be made of these."""
        return same(self.objects, objects)


@dataclass(slots=True)
class EarlierClaims:
    """Changed by each pass, which takes out of `made` what it takes again or makes anew, and puts in what it made."""

    made: dict[SyncerRef, Made] = field(default_factory=dict)
    anew: bool = False  # whether any was made anew since they were weighed against each other
    marks: tuple[Ownership, LeaseTimes] | None = None
    _shared: tuple[Mapping[SyncerRef, Mapping[InstanceKey, Verdict]], Mapping[InstanceKey, SyncerRef]] = ({}, {})
    """What they came to beside each other, and who wanted what."""
    services: Mapping[str, Sequence[Service]] = field(default_factory=dict)  # by namespace, as of `Catalogs`

    def end(self, made: Mapping[SyncerRef, Claim]) -> Shares:
        """Forget what is no claim any more. What the claims come to beside each other, as before if each is."""
        for ref in self.made.keys() - made.keys():
            del self.made[ref]
        after, wanted_by = self._shared
        serving = {ref: claim for ref, claim in made.items() if isinstance(claim, Serving)}
        if not self.anew and after.keys() == serving.keys():
            changed = {ref: claim for ref, claim in serving.items() if after[ref] is not claim.verdicts}
            return {**made, **{ref: replace(claim, verdicts=after[ref]) for ref, claim in changed.items()}}, wanted_by
        claims, wanted_by = shared_out(made)
        after = {ref: claim.verdicts for ref, claim in claims.items() if isinstance(claim, Serving)}
        self._shared, self.anew = (after, wanted_by), False
        return claims, wanted_by


def claim_all(view: ClusterView, naming: Naming, scope: Scope, earlier: EarlierClaims | None = None) -> Desired:
    """One claim for each syncer that was listed and is in scope; a broken one does not affect the others. What the pass
    before made of the same objects is taken from `earlier`."""
    earlier = earlier if earlier is not None else EarlierClaims()
    catalogs = Catalogs(view, earlier.services)
    marks = (naming.ownership, naming.lease)
    if marks != earlier.marks:  # a pass that gives its instances others takes nothing again
        earlier.made.clear()
        earlier.marks = marks
    over_quota = scope.over_quota(view.syncers)
    made = {
        syncer.ref: _over_quota(syncer, scope)
        if syncer.ref in over_quota
        else _claim(syncer, view, catalogs, naming, scope, earlier)
        for syncer in every(view.syncers)
        if scope.takes(syncer)
    }
    claims, wanted_by = earlier.end(made)
    earlier.services = catalogs.services()
    syncers = view.syncers
    if isinstance(view.crd_live, Unknown):
        # While the CRD goes, or may go, a syncer that is not there was perhaps deleted by nobody.
        syncers = Listed(by_namespace={}, elsewhere=view.crd_live)
    return Desired(
        claims=claims,
        wanted_by=wanted_by,
        syncers=syncers,
        sockets=cache(lambda: pods_by_socket(view)),
        crd_installed=view.crd_installed,
    )


def _over_quota(syncer: SyncerObject, scope: Scope) -> NotServed:
    """It is not even read, so that any number of them costs nothing."""
    gated = "; readiness gates of this syncer's pods stay closed" if syncer.spec.get("readinessGate") is True else ""
    return NotServed(
        syncer=syncer,
        reason="OverQuota",
        message=f"namespace {syncer.namespace} may have at most {counted(scope.most_syncers, 'syncer')}, so only its "
        f"oldest are served; the operator may allow more with --max-syncers-per-namespace{gated}",
    )


def _claim(
    syncer: SyncerObject, view: ClusterView, catalogs: Catalogs, naming: Naming, scope: Scope, earlier: EarlierClaims
) -> Claim:
    namespace = selected_namespace(syncer)
    catalog = catalogs.of(namespace) if scope.may_select(syncer) else None
    try:
        if syncer.deleted is not None:
            return _delete(syncer, catalog, view.crd_live, naming, earlier)
        if catalog is None:  # its Services must not be looked at
            return NotServed(
                syncer=syncer,
                reason="NamespaceNotAllowed",
                message=f"spec.selector.namespace: syncers of this namespace may not select Services of namespace "
                f"{namespace}; the operator may allow it with --allow-namespace {syncer.namespace}:{namespace}",
            )
        if isinstance(catalog, Unknown):
            return _unknown(syncer, catalog.message)
        return _granted(_serve_again(syncer, catalog, naming, earlier), view)
    except SourceUnknown as error:
        return _unknown(syncer, error.unknown.message)


def _unknown(syncer: SyncerObject, message: str, reason: str = "SourceUnknown") -> NotServed:
    return NotServed(syncer=syncer, reason=reason, message=message, unknown=True)


def _granted(claim: Serving | NotServed, view: ClusterView) -> Serving | NotServed:
    """The claim, where its Namespace grants it or need not. What is registered of another one stays: an annotation
    that is lost must not take an app out."""
    if view.namespaces is None or isinstance(claim, NotServed):
        return claim
    syncer, found = claim.syncer, view.namespaces.of(claim.syncer.namespace)
    if isinstance(found, Unknown):
        return _unknown(syncer, found.message)
    if not found.data:
        why = f"Namespace {syncer.namespace} was not found, although it has a syncer: its grants are unknown"
        return _unknown(syncer, why)
    annotations = found.data[0].annotations
    if refused := refusal(claim, annotations):
        return NotServed(syncer=syncer, reason="NotGranted", message=refused, refused=claim)
    return replace(claim, granted_by=annotations)


def _delete(
    syncer: SyncerObject,
    catalog: Complete[Catalog] | Unknown | None,
    crd_live: Source[bool],
    naming: Naming,
    earlier: EarlierClaims,
) -> Deleting | NotServed:
    """`catalog` None: its Services must not be looked at any more, and what is registered tells all that is known.
    Raises SourceUnknown."""
    if isinstance(crd_live, Unknown):
        return _unknown(syncer, crd_live.message, crd_live.cause.value)
    if isinstance(catalog, Unknown):
        return _unknown(syncer, catalog.message)
    served = _serve_again(syncer, catalog, naming, earlier) if catalog else None
    verdicts, wanted = (served.verdicts, served.wanted) if isinstance(served, Serving) else ({}, {})
    pods = frozenset(uid for one in wanted.values() if (uid := pod_uid_of(one.instance)))
    return Deleting(
        syncer=syncer,
        proof=crd_live.proof,
        keys=frozenset(verdicts if CLEANUP_FINALIZER in syncer.finalizers else ()),
        policy=policy_of(syncer.spec, "policy"),
        gated=pods if syncer.spec.get("readinessGate") is True else frozenset(),
    )


def _serve_again(
    syncer: SyncerObject, catalog: Complete[Catalog], naming: Naming, earlier: EarlierClaims
) -> Serving | NotServed:
    """As `_serve`, spared where the claim was made of the same syncer, Services and slices, and of nothing else. Raises
    SourceUnknown."""
    known = earlier.made.pop(syncer.ref, None)
    if known is not None and known.syncer is not syncer:
        known = None
    spec = known.spec if known is not None else _spec(syncer)
    if isinstance(spec, NotServed):
        earlier.made[syncer.ref] = Made(syncer, spec, (), (), (), spec)
        return spec
    all_services = catalog.data.services
    if known is not None and known.all_services is all_services:
        services = known.services
    else:
        services = catalog.data.matching(spec.selector)
    objects = [*services, *(piece for service in services for piece in catalog.data.slices_of(service))]
    undrained, asked = catalog.data.drains == Drains(), catalog.data.asked
    claim: Serving | NotServed
    if known is not None and undrained and known.of_the_same(objects):
        claim = known.claim.proven_by(catalog.proof) if isinstance(known.claim, Serving) else known.claim
    else:
        earlier.anew = True
        try:
            claim = _serve(syncer, spec, services, catalog, naming)
        except InvalidSyncer as error:
            claim = NotServed(syncer=syncer, reason=error.reason, message=str(error))
    if undrained and catalog.data.asked == asked:
        earlier.made[syncer.ref] = Made(syncer, spec, all_services, services, objects, claim)
    return claim


def _spec(syncer: SyncerObject) -> Syncer | NotServed:
    """What it asks for. Of one that is being deleted only the keys count, and whose they are."""
    try:
        asked = parse(syncer)
    except InvalidSyncer as error:
        return NotServed(syncer=syncer, reason=error.reason, message=str(error))
    if syncer.deleted is None:
        return asked
    plain = {"host_name": "ip", "paths": NO_PATHS, "zone": NO_ZONE, "metadata": {}, "metadata_from": ()}
    return msgspec.structs.replace(asked, **plain, not_ready="Down", readiness_gate=False)


def _serve(
    syncer: SyncerObject, spec: Syncer, services: tuple[Service, ...], catalog: Complete[Catalog], naming: Naming
) -> Serving:
    """Raises InvalidSyncer, SourceUnknown."""
    if not services:
        raise InvalidSyncer(
            "NoMatchingService",
            f"no Service in namespace {spec.namespace} matches {spec.selector}: create it, or correct spec.selector",
        )
    builder = Builder(spec, naming)
    serve = serve_pods if spec.mode == "pod" else serve_services
    verdicts: dict[InstanceKey, Found] = {}
    for key, found in serve(spec, services, catalog.data, builder):
        verdicts[key] = better(verdicts[key], found) if key in verdicts else found
    apps = tuple(sorted(builder.apps))
    vip_address = spec.vip_address or apps[0].lower()
    return Serving(
        syncer=syncer,
        proof=catalog.proof,
        verdicts=verdicts,
        unplaced=builder.unplaced,
        incomplete=tuple(builder.incomplete),
        services=tuple(sorted(service.name for service in services)),
        apps=apps,
        vip_address=vip_address,
        max_removal_percent=spec.max_removal_percent,
        warnings=builder.warnings(vip_address),
        conduct=spec,
    )


def better(one: Found, other: Found) -> Found:
    """The one to keep where two endpoints give one key, as while a new pod takes over an address: wanted before not
    known before leaving; of two wanted ones the UP one, then by pod: slices have no order. Of two others the later."""
    if isinstance(one, Wanted) and isinstance(other, Wanted):
        up = InstanceStatus.UP
        return min(one, other, key=lambda w: (w.instance.status is not up, w.why, sorted(w.instance.metadata.items())))
    return min(other, one, key=lambda found: (Wanted, Kept, Leaving).index(type(found)))
