"""Which instances stay although no syncer wants them: those of an heir, and those put
OUT_OF_SERVICE.

A syncer is renamed as docs/suspend.md says: the new one comes first, then the old one goes. If a
list fails that only the new one needs, or its Service is new and has no slice yet, it claims
nothing. The old one's instances are then no longer wanted by anyone, although their pods serve.
They wait for the heir."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eurekube_sync.desired.catalog import Catalog, Catalogs
from eurekube_sync.desired.claims import (
    Claim,
    Deleting,
    Desired,
    Kept,
    NotServed,
    Serving,
    wanted_in,
)
from eurekube_sync.desired.endpoints import missing_slices
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import Syncer, selected_namespace
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import EndpointSlice, Service, SyncerObject, SyncerRef
from eurekube_sync.model.ownership import (
    address_in,
    as_in_id,
    pod_namespace_of,
    pod_uid_of,
    syncer_of,
)
from eurekube_sync.model.sources import Cause, Complete, Listed, Unknown


class Heirs:
    """The syncers of a pass that may be heirs, by the namespace where they select. An answer takes
    the same time, however many syncers there are."""

    def __init__(
        self,
        claims: Mapping[SyncerRef, Claim],
        catalogs: Catalogs,
        syncers: Listed[SyncerObject],
        scope: Scope,
    ) -> None:
        self._claims = claims
        self._catalogs = catalogs
        self._scope = scope
        self._unread: dict[str, list[NotServed]] = {}
        self._unserved: dict[str, list[NotServed]] = {}
        self._doubtful: dict[tuple[str, str], list[Serving]] = {}  # by namespace and app
        for _, claim in sorted(claims.items()):
            self._add(claim)
        self._unlisted: list[str] = []  # namespaces whose syncers could not be listed
        for namespace, source in sorted(syncers.by_namespace.items()):
            if isinstance(source, Unknown) and source.cause is not Cause.NOT_READ:
                self._unlisted.append(namespace)
        self._unread_in: dict[str, _Claimants] = {}
        self._unserved_in: dict[str, _Claimants] = {}

    def _add(self, claim: Claim) -> None:
        syncer = claim.syncer
        namespace = selected_namespace(syncer)
        if isinstance(claim, Serving):
            if claim.keeps_any and not claim.spec.claims_nothing:
                for app in claim.apps:
                    doubtful = self._doubtful.setdefault((namespace, app), [])
                    doubtful.append(claim)
        elif isinstance(claim, NotServed) and syncer.deleted is None:
            if claim.source is not None:
                unread = self._unread.setdefault(namespace, [])
                unread.append(claim)
            # Without a grant or the right to select there, it must not keep what another deletes.
            elif claim.refused is None and self._scope.may_select(syncer):
                unserved = self._unserved.setdefault(namespace, [])
                unserved.append(claim)

    @property
    def any(self) -> bool:
        """Whether there may be one at all. In nearly every pass every syncer is served."""
        return bool(self._unread or self._unserved or self._doubtful or self._unlisted)

    def of(self, instance: ObservedInstance) -> str | None:
        """Return why an instance is kept that its own syncer has no endpoint for, as a clause; None
        if no syncer may claim it."""
        namespace = self._namespace_of(instance)
        unread = self._in(namespace).may_claim_instance(instance)
        return unread or self._doubtful_of(instance, namespace)

    def _doubtful_of(self, instance: ObservedInstance, namespace: str) -> str | None:
        """Return which syncer may claim an instance although it is served, and why, as a clause:
        it knows too little of the endpoint, or of a Service. Its apps are known, so nothing of
        another app waits for it."""
        key = instance.key
        for claim in self._doubtful.get((namespace, key.app), ()):
            # Where it has decided, it wants the instance, or lets it go.
            undecided = isinstance(claim.verdicts.get(key), Kept | None)
            why = claim.keeps(instance)
            other = claim.syncer.ref
            if undecided and why is not None and other != syncer_of(instance):
                return f"syncer {other} may claim it: {why}"
        return None

    def of_given_up(self, instance: ObservedInstance) -> str | None:
        """Return why an instance is kept whose own syncer is deleted or has limit 0, as a clause;
        None if no syncer may claim it.

        A syncer that was read and is not served counts here, too. While a release is rolled out,
        its Service may have no slice yet, or not yet the port. It does not count for `of`: an
        endpoint that a served syncer lacks is mostly that of a pod which has ended."""
        unread = self.of(instance)
        namespace = self._namespace_of(instance)
        unserved = self._unserved.get(namespace)
        if unread or not unserved:
            return unread
        claimants = self._unserved_in.get(namespace)
        if claimants is None:
            catalog = self._catalogs.of(namespace)
            claimants = _Claimants(unserved, (), catalog)
            self._unserved_in[namespace] = claimants
        return claimants.may_claim_instance(instance)

    def of_id(self, key: InstanceKey, namespace: str) -> str | None:
        """Return why an id that no list shows may be another syncer's by now, as a clause; None if
        all syncers that may register it could be read. Their Services are in `namespace`."""
        claimants = self._in(namespace)
        return claimants.may_claim(key.app, address_in(key), of_a_pod=False)

    def _in(self, namespace: str) -> _Claimants:
        claimants = self._unread_in.get(namespace)
        if claimants is None:
            scope = self._scope
            unlisted = [own for own in self._unlisted if scope.may_reach(own, namespace)]
            unread = self._unread.get(namespace, ())
            # Without such a syncer the Services of the namespace are not needed.
            catalog = self._catalogs.of(namespace) if unread or unlisted else None
            claimants = _Claimants(unread, unlisted, catalog)
            self._unread_in[namespace] = claimants
        return claimants

    def _namespace_of(self, instance: ObservedInstance) -> str:
        """Return the namespace of an instance's pod; without a pod, where its syncer selects."""
        namespace = pod_namespace_of(instance)
        if namespace:
            return namespace
        syncer = syncer_of(instance)
        assert syncer is not None  # `Observed.ours` holds none without
        claim = self._claims.get(syncer)
        if claim:
            return selected_namespace(claim.syncer)
        return syncer.namespace


class _Claimants:
    """What may be claimed in one namespace by syncers that are not served. A syncer of a namespace
    whose syncers could not even be listed may select any Service, and name any app."""

    def __init__(
        self,
        claims: Iterable[NotServed],
        unlisted: Sequence[str],
        catalog: Complete[Catalog] | Unknown | None,
    ) -> None:
        self._unlisted = unlisted[0] if unlisted else None
        self._anything: NotServed | None = None  # it may claim any instance
        self._of_app: dict[str, NotServed] = {}  # it may claim any instance of the app
        self._of_service: dict[tuple[str, str], NotServed] = {}  # by app and Service: its endpoints
        self._services_of: dict[str, list[str]] = {}  # by pod UID, and by address as in an id
        self._incomplete: set[str] = set()  # Services whose slices may not list all of their pods
        known: Catalog | None = None
        if isinstance(catalog, Complete):
            known = catalog.data
            self._look_at(known)
        self._services_known = known is not None
        for claim in claims:
            self._add(claim, known)

    def _look_at(self, catalog: Catalog) -> None:
        """Find out which endpoints the Services have."""
        for service in catalog.services:
            slices = catalog.slices_of(service)
            # No controller updates the slices of a Service that became an ExternalName.
            outdated = service.is_external_name and bool(slices)
            if outdated or missing_slices(service, slices, family=None):
                self._incomplete.add(service.name)
            for place in _places_in(slices):
                services = self._services_of.setdefault(place, [])
                services.append(service.name)

    def _add(self, claim: NotServed, catalog: Catalog | None) -> None:
        """Add what a syncer may claim, as far as its Services are known. Of several, the first
        counts."""
        spec = claim.spec
        # With an invalid one it will not be served when it can be read.
        if spec is None or spec.claims_nothing:
            return
        if catalog is not None:
            for service in catalog.matching(spec.selector):
                self._add_service(claim, spec, service)
        elif spec.app_name:
            self._of_app.setdefault(spec.app_name.upper(), claim)
        else:
            self._anything = self._anything or claim

    def _add_service(self, claim: NotServed, spec: Syncer, service: Service) -> None:
        app = spec.app_of(service)
        name = service.name
        # In `mode: service` it registers addresses that are in no slice.
        if spec.mode == "service" or name in self._incomplete:
            self._of_app.setdefault(app, claim)
        else:
            self._of_service.setdefault((app, name), claim)

    def may_claim_instance(self, instance: ObservedInstance) -> str | None:
        """Return which syncer may claim an instance, as a clause."""
        pod = pod_uid_of(instance)
        place = pod or as_in_id(instance.instance.ip_addr)
        return self.may_claim(instance.key.app, place, of_a_pod=pod is not None)

    def may_claim(self, app: str, place: str, *, of_a_pod: bool) -> str | None:
        """Return which syncer may claim an instance or an id of the app, as a clause. `place` is
        its pod's UID, or its address as in an id."""
        services = self._services_of.get(place, ())
        claimants = [self._anything, self._of_app.get(app)]
        for service in services:
            claimants.append(self._of_service.get((app, service)))
        for claim in claimants:
            if claim is not None:
                return _may_claim(claim)
        if self._unlisted is None:
            return None
        complete = self._services_known and not self._incomplete
        if of_a_pod and complete and not services:
            return None  # a pod in no slice is behind no Service, so nobody could claim it
        return f"a syncer of namespace {self._unlisted} may claim it, and could not be read"


def _may_claim(claim: NotServed) -> str:
    why = "could not be read"
    if claim.source is None:
        why = f"is not served: {claim.reason}"
    return f"syncer {claim.syncer.ref} may claim it, and {why}"


def _places_in(slices: Iterable[EndpointSlice]) -> Iterable[str]:
    """Return the UIDs of pods in slices, and all addresses as in an id, each once."""
    places: dict[str, None] = {}
    for piece in slices:
        for endpoint in piece.endpoints:
            places[as_in_id(endpoint.address)] = None
            if endpoint.pod is not None:
                places[endpoint.pod.uid] = None
    return places


def kept_for(instance: ObservedInstance, desired: Desired) -> str | None:
    """Return why an instance that nobody wants is kept for an heir, as a clause; None if it is not.

    | the syncer in its mark                              | the heir comes from             |
    |-----------------------------------------------------|---------------------------------|
    | is being deleted, or is gone                        | all whose Services, as far as   |
    |                                                     | they are known, have its pod    |
    | has limit 0                                         | the same                        |
    | is served, and its Services lack the endpoint:      | those of them that could not be |
    | its selector, or the Service, was changed           | read, or know too little of it  |
    | is served, and says what to do with the endpoint    | nobody, it decides              |
    | is not served                                       | nobody, it keeps it itself      |
    """
    heirs = desired.heirs
    if heirs is None or not heirs.any:
        return None
    syncer = syncer_of(instance)
    claim = desired.claims.get(syncer) if syncer else None
    if claim is None or isinstance(claim, Deleting):
        return heirs.of_given_up(instance)
    if isinstance(claim, NotServed):  # it keeps the instance itself
        return None
    verdict = claim.verdicts.get(instance.key)
    if verdict is None:  # its Services lack the endpoint
        return heirs.of(instance)
    if claim.spec.claims_nothing and wanted_in(verdict) is not None:
        return heirs.of_given_up(instance)
    return None


def is_put_out_and_left(instance: ObservedInstance, claim: Claim | None) -> bool:
    """Whether a person set an instance OUT_OF_SERVICE for which its served syncer has no endpoint
    any more. A cancel would forget the override, so only the end of its pod lets it go: a selector
    that is wrong for a moment must not bring it back UP."""
    if instance.status is not InstanceStatus.OUT_OF_SERVICE:
        return False
    return isinstance(claim, Serving) and instance.key not in claim.verdicts
