"""The readiness gates of pods. A gate opens once, and is never closed again.

A gate opens when an uncached read shows the pod's instance UP in Eureka, so that a rolling update
waits for it. It also opens if the pod is deliberately not registered, or if Eureka could not be
read for five minutes. To close a gate again would make the pod unready inside the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct

from eurekube_sync.apply.eureka import Applier, Reading
from eurekube_sync.apply.kubernetes import failure
from eurekube_sync.apply.leases import in_turn
from eurekube_sync.desired.claims import (
    Claim,
    Deleting,
    Desired,
    NotServed,
    OverLimit,
    Serving,
    Wanted,
    wanted_in,
)
from eurekube_sync.desired.spec import selected_namespace
from eurekube_sync.model.actions import Register
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.errors import ClusterError, ClusterUnavailable
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import ClusterView, PodReadiness, SyncerObject
from eurekube_sync.model.ownership import Ownership, pod_uid_of
from eurekube_sync.model.ports import Cluster, Workers
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import one_or_more
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.value import Obstacle, Plan

_LONGEST_UNKNOWN = 300  # seconds that a rollout waits for a registry that cannot be read


class Opening(Struct, frozen=True, kw_only=True):
    """A gate to open."""

    pod: PodReadiness
    reason: Reason
    message: str
    confirm: tuple[InstanceKey, ...] = ()  # instances that have to be UP first, by uncached reads


def openings(
    desired: Desired,
    view: ClusterView,
    registry: Complete[Observed] | Unknown,
    plan: Plan,
    *,
    now: float,
) -> tuple[Opening, ...]:
    """Return the gates that may open after a pass, each once; `now` in Unix seconds. The gate of a
    pod with several syncers waits for all that have something to wait for."""
    shut_in = _shut_gates(view)
    themselves = _registered_by_themselves(plan)
    asked: dict[str, list[Opening | None]] = {}
    for claim in desired.claims.values():
        # Only syncers that select the pod count.
        shut = shut_in.get(selected_namespace(claim.syncer))
        if not shut:
            continue
        for uid, opening in _asked_by(claim, shut, registry, themselves, now):
            asked.setdefault(uid, []).append(opening)
    wished: list[Opening] = []
    for uid in sorted(asked):  # the same order in each pass
        together = _together(asked[uid])
        if together is not None:
            wished.append(together)
    return tuple(wished)


def _asked_by(
    claim: Claim,
    shut: Mapping[str, PodReadiness],
    registry: Complete[Observed] | Unknown,
    themselves: Mapping[InstanceKey, str],
    now: float,
) -> Iterator[tuple[str, Opening | None]]:
    """Yield the UID of each pod that the syncer has with a shut gate, and the opening that it
    allows; None if it waits."""
    match claim:
        case Deleting():
            message = "its syncer is being deleted"
            for uid in claim.gated & shut.keys():
                pod = shut[uid]
                yield uid, Opening(pod=pod, reason=Reason.SYNCER_DELETED, message=message)
        case NotServed():
            for uid in _refused_pods(claim) & shut.keys():
                pod = shut[uid]
                yield uid, Opening(pod=pod, reason=claim.reason, message=claim.message)
        case Serving():
            for key, wanted, pod in _gated_pods(claim, shut):
                itself = themselves.get(key)
                opening = _opening(claim, key, wanted, pod, registry, itself, now)
                yield pod.uid, opening


def _shut_gates(view: ClusterView) -> dict[str, dict[str, PodReadiness]]:
    """Return the pods whose gate is shut, by namespace and UID, where the pods could be read."""
    shut_in: dict[str, dict[str, PodReadiness]] = {}
    sources = view.readiness.by_namespace if view.readiness else {}
    for namespace, source in sources.items():
        if not isinstance(source, Complete):
            continue
        shut = {}
        for pod in source.data:
            if not pod.registered:
                shut[pod.uid] = pod
        shut_in[namespace] = shut
    return shut_in


def _registered_by_themselves(plan: Plan) -> dict[InstanceKey, str]:
    """Return why the pod's own instance is enough, by the key of ours."""
    coming = {register.key for register in plan.of(Register)}
    themselves: dict[InstanceKey, str] = {}
    for blocked in plan.blocked:
        # A pod that callers do not reach by its own instance gets ours as well.
        if blocked.obstacle is Obstacle.DUPLICATE and blocked.key not in coming:
            themselves[blocked.key] = blocked.why
    return themselves


def _refused_pods(claim: NotServed) -> set[str]:
    """Return the UIDs of the pods that the syncer would register with a gate if its Namespace
    granted it."""
    refused = claim.refused
    if refused is None or not refused.spec.readiness_gate:
        return set()
    uids = set()
    for wanted in refused.wanted.values():
        uid = pod_uid_of(wanted.instance)
        if uid is not None:
            uids.add(uid)
    return uids


def _gated_pods(
    claim: Serving, shut: Mapping[str, PodReadiness]
) -> Iterator[tuple[InstanceKey, Wanted, PodReadiness]]:
    """Yield the instance of each pod with a shut gate, whether it is to be registered or not."""
    if not claim.spec.readiness_gate:
        return
    for key, verdict in claim.verdicts.items():
        wanted = wanted_in(verdict)
        if wanted is None:
            continue
        pod = shut.get(pod_uid_of(wanted.instance) or "")
        if pod is not None:
            yield key, wanted, pod


def _together(openings: Sequence[Opening | None]) -> Opening | None:
    """Combine what the syncers of one pod ask for; None if one of them waits."""
    agreed = [opening for opening in openings if opening is not None]
    if len(agreed) < len(openings):
        return None
    # What has to be confirmed comes first, and gives the reason.
    agreed.sort(key=lambda opening: not opening.confirm)
    keys: list[InstanceKey] = []
    for opening in agreed:
        keys.extend(opening.confirm)
    message = agreed[0].message
    if keys:
        names = " and ".join(str(key) for key in keys)
        are = one_or_more(len(keys), "is", "are")
        message = f"{names} {are} UP in Eureka"
    return replace(agreed[0], message=message, confirm=tuple(keys))


def _opening(
    claim: Serving,
    key: InstanceKey,
    wanted: Wanted,
    pod: PodReadiness,
    registry: Complete[Observed] | Unknown,
    itself: str | None,
    now: float,
) -> Opening | None:
    """Return the opening that one syncer allows; None if it waits. `itself` says why the pod's own
    instance is enough.

    | the pod                                           | its gate                             |
    |---------------------------------------------------|--------------------------------------|
    | is left out on purpose: another syncer has its    | opens                                |
    | address; suspended; over the limit; drained;      |                                      |
    | its own instance is enough                        |                                      |
    | is wanted UP, and Eureka can be read              | opens if an uncached read shows that |
    | is wanted UP or DOWN, and Eureka cannot be read   | opens after five minutes             |
    | is wanted DOWN                                    | waits                                |
    """
    verdict = claim.verdicts[key]
    if key in claim.rivals:
        reason = Reason.CONFLICT
        ours = f"so syncer {claim.syncer.ref} does not register the pod"
        message = f"another syncer has the address of the pod, {ours}"
    elif claim.spec.suspend:
        reason = Reason.SUSPENDED
        message = "its syncer is suspended"
    elif isinstance(verdict, OverLimit):
        reason = Reason.OVER_LIMIT
        message = verdict.why
    elif claim.spec.claims_nothing:
        reason = Reason.OVER_LIMIT
        message = wanted.why
    elif wanted.drained:
        reason = Reason.DRAINED
        message = wanted.why
    elif itself is not None:
        reason = Reason.REGISTERS_ITSELF
        message = itself
    elif isinstance(registry, Unknown):
        waited = _unread_for(claim.syncer, now)
        if waited < _LONGEST_UNKNOWN:
            return None
        reason = Reason.REGISTRY_UNKNOWN
        message = f"Eureka could not be read for {waited:.0f} s: {registry.message}"
    elif wanted.instance.status is InstanceStatus.UP:
        return Opening(pod=pod, reason=Reason.REGISTERED, message="", confirm=(key,))
    else:
        return None
    return Opening(pod=pod, reason=reason, message=message)


def _unread_for(syncer: SyncerObject, now: float) -> float:
    """Return for how many seconds Eureka could not be read. The syncer's status has it, because a
    CronJob's process remembers nothing."""
    since = syncer.status.eureka_unknown_since if syncer.status else None
    if since is not None:
        return now - since
    return 0


def open_gates(
    cluster: Cluster,
    applier: Applier,
    workers: Workers,
    deadline: Deadline,
    ownership: Ownership,
    wished: Sequence[Opening],
    *,
    share: float,
    now: float,
) -> tuple[ClusterError, ...]:
    """Open the gates until that `share` of the pass is over, after uncached reads where they are
    needed; these take at most half of the time. The next pass opens those that failed."""
    deadline.stage(share, part_of_rest=0.5)

    def open_gate(opening: Opening) -> ClusterError | None:
        pod = opening.pod
        if deadline.passed:
            gate = f"the gate of {pod.namespace}/{pod.name}"
            return ClusterUnavailable(f"{gate} was not opened, because the pass had ended")
        reason = opening.reason
        message = opening.message
        return failure(partial(cluster.open_gate, pod, reason=reason, message=message, at=now))

    confirmed = _confirmed(applier, ownership, wished)
    turns = in_turn(confirmed, lambda opening: (opening.pod.namespace, opening.pod.name))
    deadline.stage(share)
    errors = workers.each(open_gate, turns)
    return tuple(error for error in errors if error)


def _confirmed(
    applier: Applier, ownership: Ownership, wished: Sequence[Opening]
) -> Iterator[Opening]:
    """Yield the openings whose instances are all UP, by uncached reads."""
    keys: list[InstanceKey] = []
    for opening in wished:
        keys.extend(opening.confirm)
    readings = applier.read(keys)
    for opening in wished:
        uid = opening.pod.uid
        if all(_shows_up(readings.get(key), uid, ownership) for key in opening.confirm):
            yield opening


def _shows_up(reading: Reading, pod_uid: str, ownership: Ownership) -> bool:
    """Say whether an uncached read shows our instance of the pod UP. A person sets OUT_OF_SERVICE
    on purpose, so a rollout must not wait for UP."""
    return (
        isinstance(reading, ObservedInstance)
        and ownership.holds(reading)
        and pod_uid_of(reading) == pod_uid
        and reading.status in (InstanceStatus.UP, InstanceStatus.OUT_OF_SERVICE)
    )
