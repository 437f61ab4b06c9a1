"""Which instances stay although no syncer wants them: those of an heir, and those put
OUT_OF_SERVICE.

A syncer is renamed as docs/suspend.md says: the new one comes first, then the old one goes. If a
list fails that only the new one needs, it claims nothing. The old one's instances are then no
longer wanted by anyone who could be read, although their pods serve. They wait for the heir."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eurekube_sync.desired.claims import (
    Claim,
    Deleting,
    Desired,
    Kept,
    NotServed,
    Serving,
    wanted_in,
)
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import selected_namespace
from eurekube_sync.model.eureka import InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import ClusterView, EndpointSlice, SyncerRef
from eurekube_sync.model.ownership import pod_namespace_of, pod_uid_of, syncer_of
from eurekube_sync.model.sources import Cause, Complete, Unknown


class Heirs:
    """The syncers of a pass that may be heirs, by the namespace where they select."""

    def __init__(self, claims: Mapping[SyncerRef, Claim], view: ClusterView, scope: Scope) -> None:
        self._claims = claims
        self._view = view
        self._scope = scope
        self._unread: dict[str, SyncerRef] = {}  # of several, the first by name
        self._doubtful: dict[str, list[Serving]] = {}
        self._listed_pods: dict[str, frozenset[str]] = {}
        for ref, claim in sorted(claims.items()):
            namespace = selected_namespace(claim.syncer)
            if isinstance(claim, NotServed) and claim.unknown and claim.syncer.deleted is None:
                self._unread.setdefault(namespace, ref)
            elif (
                isinstance(claim, Serving) and claim.keeps_any and not claim.conduct.claims_nothing
            ):
                self._doubtful.setdefault(namespace, []).append(claim)
        self._unlisted = [
            namespace
            for namespace, source in sorted(view.syncers.by_namespace.items())
            if isinstance(source, Unknown) and source.cause is not Cause.NOT_READ
        ]

    @property
    def any(self) -> bool:
        """Whether there may be one at all. In nearly every pass every syncer could be read."""
        return bool(self._unread or self._doubtful or self._unlisted)

    def unread_in(self, namespace: str) -> str | None:
        """Return why what is registered in a namespace may be another syncer's soon, as a clause;
        None if all syncers that may select there could be read."""
        could_not = "may claim it, and could not be read"
        if namespace in self._unread:
            return f"syncer {self._unread[namespace]} {could_not}"
        for own in self._unlisted:
            if self._scope.may_reach(own, namespace):
                return f"a syncer of namespace {own} {could_not}"
        return None

    def of(self, instance: ObservedInstance) -> str | None:
        """Return why an instance is kept that its own syncer gives up, as a clause; None if no
        syncer may claim it."""
        namespace, own = self._namespace_of(instance), syncer_of(instance)
        if unread := self.unread_in(namespace):
            return unread
        for claim in self._doubtful.get(namespace, ()):
            verdict = claim.verdicts.get(instance.key)
            # The app of such a syncer is known, so nothing of another app waits for it.
            may = isinstance(verdict, Kept) or (verdict is None and instance.key.app in claim.apps)
            if may and claim.syncer.ref != own and (why := claim.keeps(instance)):
                return f"syncer {claim.syncer.ref} may claim it: {why}"
        return None

    def of_moved(self, instance: ObservedInstance) -> str | None:
        """Return the same of an instance that is no longer behind the Services of its syncer. An
        heir finds its pod in the slices, so a pod that these lack is nobody's."""
        claim = self._claim_of(instance)
        namespace = self._namespace_of(instance)
        listed = self._view.slices.of(namespace)
        of_service = claim is not None and claim.syncer.spec.get("mode") == "service"
        if isinstance(listed, Complete) and not of_service:
            sought = pod_uid_of(instance) or instance.instance.ip_addr
            if sought not in self._behind_services(namespace, listed.data):
                return None
        return self.of(instance)

    def _behind_services(self, namespace: str, slices: Sequence[EndpointSlice]) -> frozenset[str]:
        """Return the UIDs of the pods in these slices, and the addresses."""
        if namespace not in self._listed_pods:
            found: set[str] = set()
            for piece in slices:
                for endpoint in piece.endpoints:
                    found.add(endpoint.address)
                    found.add(endpoint.pod.uid if endpoint.pod else "")
            self._listed_pods[namespace] = frozenset(found)
        return self._listed_pods[namespace]

    def _namespace_of(self, instance: ObservedInstance) -> str:
        """Return the namespace of an instance's pod; without a pod, where its syncer selects."""
        if namespace := pod_namespace_of(instance):
            return namespace
        if claim := self._claim_of(instance):
            return selected_namespace(claim.syncer)
        syncer = syncer_of(instance)
        assert syncer is not None  # `Observed.ours` holds none without
        return syncer.namespace

    def _claim_of(self, instance: ObservedInstance) -> Claim | None:
        syncer = syncer_of(instance)
        return self._claims.get(syncer) if syncer else None


def kept_for(instance: ObservedInstance, desired: Desired) -> str | None:
    """Return why an instance that nobody wants is kept for an heir, as a clause; None if it is not.

    | the syncer in its mark                              | the heir comes from          |
    |-----------------------------------------------------|------------------------------|
    | is being deleted, or is gone                        | all that may select there    |
    | has limit 0                                         | the same                     |
    | is served, and its Services lack the endpoint:      | the same, if slices have the |
    | its selector, or the Service, was changed           | pod                          |
    | is served, and says what to do with the endpoint    | nobody, it decides           |
    | is not served                                       | nobody, it keeps it itself   |
    """
    heirs = desired.heirs
    if heirs is None or not heirs.any:
        return None
    syncer = syncer_of(instance)
    match desired.claims.get(syncer) if syncer else None:
        case None | Deleting():
            return heirs.of(instance)
        case Serving() as claim if instance.key not in claim.verdicts:
            return heirs.of_moved(instance)
        case Serving() as claim if claim.conduct.claims_nothing:
            known = wanted_in(claim.verdicts[instance.key]) is not None
            return heirs.of(instance) if known else None
        case _:
            return None


def is_put_out_and_left(instance: ObservedInstance, claim: Claim | None) -> bool:
    """Whether a person set an instance OUT_OF_SERVICE for which its served syncer has no endpoint
    any more. A cancel would forget the override, so only the end of its pod lets it go: a selector
    that is wrong for a moment must not bring it back UP."""
    put_out = instance.status is InstanceStatus.OUT_OF_SERVICE
    return put_out and isinstance(claim, Serving) and instance.key not in claim.verdicts
