"""Defects in reading a syncer's spec, and in reading what people release."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from eurekube_sync.adapters.eureka.everywhere import EverywhereBatches
from eurekube_sync.adapters.eureka.peers import EurekaPeers
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.connection import Call
from eurekube_sync.apply import gates
from eurekube_sync.apply import kubernetes as settle
from eurekube_sync.apply.gates import Opening
from eurekube_sync.brake import approval, braking, removals
from eurekube_sync.controller import steps
from eurekube_sync.desired import resolve as desired
from eurekube_sync.desired import services as service_mode
from eurekube_sync.desired.claims import Claim, Desired, OverLimit, Serving
from eurekube_sync.desired.limit import Limit
from eurekube_sync.desired.services import _Behind, places
from eurekube_sync.desired.spec import ABANDON_ANNOTATION, Syncer
from eurekube_sync.model.actions import Cancel
from eurekube_sync.model.eureka import InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import ClusterView, SyncerObject
from eurekube_sync.model.ownership import syncer_of
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import LastSeen
from eurekube_sync.plan import duplicates, make, ours
from eurekube_sync.plan import left_out as admission
from eurekube_sync.plan.value import Plan

from .defect import Defect
from .world import GATE

_SHUT_AGAIN = Reason.NOT_READY


def _misread(wrong: Callable[[Syncer], Syncer]) -> tuple[tuple[Any, str, Any], ...]:
    parse = vars(desired)["parse"]
    return ((desired, "parse", lambda syncer: wrong(parse(syncer))),)


def _by_any_host_name(unreached: Callable[..., Any]) -> Callable[..., Any]:
    return lambda its, wanted: unreached(replace(its, host_name=wanted.host_name), wanted)


def _as_if_they_went(waits_for: Callable[..., Any]) -> Callable[..., Any]:
    return lambda claim, result: waits_for(replace(claim, instances_stay=False), result)


def _first_alone(found_at: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(*arguments: Any) -> Any:
        found = found_at(*arguments)
        return found if isinstance(found, str) else found[:1]

    return wrong


def _never_pending(found_at: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(*arguments: Any) -> Any:
        found = found_at(*arguments)
        return () if isinstance(found, str) else found

    return wrong


def _one_more(places: Callable[..., int | None]) -> Callable[..., int | None]:
    def wrong(self: Limit, **counts: int) -> int | None:
        found = places(self, **counts)
        return None if found is None else found + 1

    return wrong


def _shutting(openings: Callable[..., tuple[Opening, ...]]) -> Callable[..., tuple[Opening, ...]]:
    def wrong(wanted: Any, view: ClusterView, *rest: Any, **named: Any) -> tuple[Opening, ...]:
        sources = view.readiness.by_namespace.values() if view.readiness else ()
        pods = [pod for source in sources if isinstance(source, Complete) for pod in source.data]
        shut = [
            Opening(pod=pod, reason=_SHUT_AGAIN, message="")
            for pod in pods
            if pod.registered and not pod.ready
        ]
        return (*openings(wanted, view, *rest, **named), *shut)

    return wrong


def _also_shuts(open_gate: Callable[..., None]) -> Callable[..., None]:
    def wrong(self: KubernetesCluster, pod: Any, *, reason: str, **named: Any) -> None:
        if reason != _SHUT_AGAIN:
            open_gate(self, pod, reason=reason, **named)
            return
        body = {"status": {"conditions": [{"type": GATE, "status": "False"}]}}
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
        media = "application/strategic-merge-patch+json"
        self._calls.send(
            Call(method="PATCH", path=path, body=msgspec.json.encode(body), content_type=media)
        )

    return wrong


def _all_of_it(released: Any, planned: Iterable[Any], held: Iterable[Any]) -> frozenset[Any]:
    return frozenset(one.key for one in held) if released is not None else frozenset()


def _without_a_deletion(syncer: SyncerObject) -> bool:
    return syncer.annotations.get(ABANDON_ANNOTATION) == "true"


def _of_this_pass_alone(note: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(memory: Any, *arguments: Any) -> Any:
        memory._up = {}
        return note(memory, *arguments)

    return wrong


def _by_its_key(instance: Any, syncer: Any) -> list[Any]:
    return [(f"syncer {syncer}", f"{instance.key}")]


def _all_that_is_ready(desired: Desired, observed: Any, stood: Any) -> frozenset[Any]:
    return frozenset(
        key for key in desired.wanted_by if key not in observed.ours and key not in observed.others
    )


def _overrides_forgotten(for_unwanted: Callable[..., Any], *, limit: bool) -> Callable[..., Any]:
    def wrong(instance: ObservedInstance, desired: Desired) -> Any:
        there = instance
        syncer = syncer_of(instance)
        claim = desired.claims.get(syncer) if syncer else None
        if (
            isinstance(claim, Serving)
            and isinstance(claim.verdicts.get(instance.key), OverLimit) is limit
        ):
            there = replace(
                instance, instance=replace(instance.instance, status=InstanceStatus.DOWN)
            )
        action = for_unwanted(there, desired)
        return replace(
            action, **{"was" if isinstance(action, Cancel) else "status": instance.status}
        )

    return wrong


def _never(_claim: Claim | None) -> bool:
    return False


def _always(_observed: Any) -> bool:
    return True


def misreadings() -> tuple[Defect, ...]:
    """All of these defects, in the order of the table."""
    return (
        Defect(
            name="upsert-only cancels all the same",
            about="without removals",
            patches=((ours, "may_cancel", _always), (make, "may_cancel", _always)),
        ),
        Defect(
            name="upsert-only waits for the end of what stays",
            about="without removals",
            patches=((settle, "waits_for", _as_if_they_went(settle.waits_for)),),
        ),
        Defect(
            name="a suspended syncer is changed",
            about="suspended",
            patches=((ours, "is_suspended", _never), (make, "is_suspended", _never)),
        ),
        Defect(
            name="nothing comes back to a suspended syncer",
            about="a lost suspension",
            patches=((make, "lost", lambda desired, observed, stood: frozenset()),),
        ),
        Defect(
            name="what Eureka lost of a suspended syncer has one pass to come back",
            about="a lost suspension",
            patches=((LastSeen, "note", _of_this_pass_alone(LastSeen.note)),),
        ),
        Defect(
            name="all that is ready comes back to a suspended syncer",
            about="suspended",
            patches=((make, "lost", _all_that_is_ready),),
        ),
        Defect(
            name="a limit lets one more in",
            about="limits",
            patches=((Limit, "places", _one_more(Limit.places)),),
        ),
        Defect(
            name="a limit lets nobody keep a place",
            about="limits",
            patches=((admission, "_with_place", lambda key, observed: None),),
        ),
        Defect(
            name="a percentage that falls by itself removes instances",
            about="limits",
            patches=((Limit, "may_remove", lambda limit, mark: True),),
        ),
        Defect(
            name="KeepWhileServing is read as Cancel",
            about="last breaths",
            patches=_misread(lambda spec: msgspec.structs.replace(spec, terminating="Cancel")),
        ),
        Defect(
            name="notReady: Cancel is read as Down",
            about="services",
            patches=_misread(lambda spec: msgspec.structs.replace(spec, not_ready="Down")),
        ),
        Defect(
            name="onDuplicate: Warn is read as Skip",
            about="duplicates",
            patches=_misread(lambda spec: msgspec.structs.replace(spec, on_duplicate="Skip")),
        ),
        Defect(
            name="onDuplicate: Skip is read as Warn",
            about="duplicates",
            patches=_misread(lambda spec: msgspec.structs.replace(spec, on_duplicate="Warn")),
        ),
        Defect(
            name="ours stays beside what its pod registers itself later",
            about="duplicates",
            patches=(
                (
                    duplicates,
                    "lacks",
                    lambda other, wanted, ours=None: "it is another" if ours else None,
                ),
            ),
        ),
        Defect(
            name="ours is removed, whatever the pod's own instance says",
            about="duplicates",
            patches=((duplicates, "lacks", lambda other, wanted, ours=None: None),),
        ),
        Defect(
            name="ours goes for a host name that nobody resolves",
            about="duplicates",
            patches=(
                (
                    duplicates,
                    "unreached_by_callers",
                    _by_any_host_name(duplicates.unreached_by_callers),
                ),
            ),
        ),
        Defect(
            name="ours stays away from a host name that nobody resolves",
            about="duplicates",
            patches=((make, "unreached_by_callers", lambda other, wanted: None),),
        ),
        Defect(
            name="a cached list is trusted about a pod's own instance",
            about="duplicates",
            patches=(
                (Plan, "suspects", property(lambda self: tuple(one.key for one in self.changes))),
            ),
        ),
        Defect(
            name="a Service without a ready endpoint is UP",
            about="services",
            patches=((_Behind, "serves", lambda self, service, place: True),),
        ),
        Defect(
            name="a load balancer has one address",
            about="addresses",
            patches=((service_mode, "places", _first_alone(places)),),
        ),
        Defect(
            name="an address that is awaited is none",
            about="addresses",
            patches=((service_mode, "places", _never_pending(places)),),
        ),
        Defect(
            name="a gate opens before Eureka holds the instance",
            about="gates",
            patches=((gates, "_confirmed", lambda applier, ownership, wished: iter(wished)),),
        ),
        Defect(
            name="a gate is shut when its pod is not ready",
            about="gates",
            patches=(
                (steps, "openings", _shutting(gates.openings)),
                (KubernetesCluster, "open_gate", _also_shuts(KubernetesCluster.open_gate)),
            ),
        ),
        Defect(
            name="a gate waits for Eureka though it is shut on purpose",
            about="gates",
            patches=((gates, "_opening", lambda *arguments: None),),
        ),
        Defect(
            name="a gate waits for Eureka for ever",
            about="a long silence",
            patches=((gates, "_LONGEST_UNKNOWN", 10**9),),
        ),
        Defect(
            name="a gate waits for Eureka a minute",
            about="a long silence",
            patches=((gates, "_LONGEST_UNKNOWN", 60),),
        ),
        Defect(
            name="an annotation releases for ever",
            about="held",
            patches=((approval, "LONGEST", 10**9),),
        ),
        Defect(
            name="an annotation releases nothing",
            about="held",
            patches=((steps, "annotation_releases", lambda syncer, now: False),),
        ),
        Defect(
            name="a plan id releases whatever is held",
            about="held",
            patches=((braking, "approved_by", _all_of_it),),
        ),
        Defect(
            name="a plan id releases nothing",
            about="held",
            patches=((braking, "approved_by", lambda *sets: frozenset()),),
        ),
        Defect(
            name="an abandoned deletion waits",
            about="abandoned",
            patches=((settle, "abandoned", lambda syncer: False),),
        ),
        Defect(
            name="abandoning needs no deletion",
            about="abandoned",
            patches=((settle, "abandoned", _without_a_deletion),),
        ),
        Defect(
            name="a person's override is cancelled with a pod that is not ready",
            about="out of service",
            patches=(
                (ours, "_for_unwanted", _overrides_forgotten(ours._for_unwanted, limit=False)),
            ),
        ),
        Defect(
            name="a person's override is cancelled for a limit",
            about="out of service",
            patches=(
                (ours, "_for_unwanted", _overrides_forgotten(ours._for_unwanted, limit=True)),
            ),
        ),
        Defect(
            name="nothing waits for its successor",
            about="refused registrations",
            patches=((removals, "failed_adds", lambda *arguments, **named: {}),),
        ),
        Defect(
            name="an instance is removed before its pod has the new name",
            about="refused registrations",
            patches=(
                (removals, "_names", lambda instance, syncer: removals._called(instance)),
                (removals, "_same", _by_its_key),
            ),
        ),
        Defect(
            name="a server that is back is not asked what it lacks",
            about="a peer that returns",
            patches=((EverywhereBatches, "returned", lambda self: False),),
        ),
        Defect(
            name="with several servers, no lease is renewed",
            patches=((EurekaPeers, "renew", lambda self, key: True),),
        ),
    )
