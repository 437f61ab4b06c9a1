"""The readiness gates of pods. A gate opens once, and is never closed again.

A gate opens when an uncached read shows the pod's instance UP in Eureka, so that a rolling update
waits for it. It also opens if the pod is deliberately not registered, or if Eureka could not be
read for five minutes. To close a gate again would make the pod unready inside the cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.apply.kubernetes import failure
from eurekube_sync.apply.leases import in_turn
from eurekube_sync.desired.claims import (
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
from eurekube_sync.model.kubernetes import ClusterView, PodReadiness
from eurekube_sync.model.ownership import Ownership, pod_uid_of
from eurekube_sync.model.ports import Cluster, Workers
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import one_or_more
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.value import Obstacle, Plan

_LONGEST_UNKNOWN = 300  # seconds that a rollout waits for a registry that cannot be read


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
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
    sources = view.readiness.by_namespace if view.readiness else {}
    shut_in = {
        namespace: {pod.uid: pod for pod in source.data if not pod.registered}
        for namespace, source in sources.items()
        if isinstance(source, Complete)
    }
    coming = {action.key for action in plan.changes if isinstance(action, Register)}
    duplicates = (one for one in plan.blocked if one.obstacle is Obstacle.DUPLICATE)
    themselves = {one.key: one.why for one in duplicates if one.key not in coming}
    found: dict[str, list[Opening | None]] = defaultdict(list)
    for claim in desired.claims.values() if shut_in else ():
        shut = shut_in.get(
            selected_namespace(claim.syncer), {}
        )  # only syncers that select the pod count
        if isinstance(claim, Deleting):
            for uid in claim.gated & shut.keys():
                found[uid].append(
                    Opening(
                        pod=shut[uid],
                        reason=Reason.SYNCER_DELETED,
                        message="its syncer is being deleted",
                    )
                )
        if isinstance(claim, NotServed) and claim.refused and claim.refused.conduct.readiness_gate:
            uids = {pod_uid_of(wanted.instance) or "" for wanted in claim.refused.wanted.values()}
            for uid in uids & shut.keys():
                found[uid].append(
                    Opening(pod=shut[uid], reason=claim.reason, message=claim.message)
                )
        if isinstance(claim, Serving) and claim.conduct.readiness_gate:
            for key, verdict in claim.verdicts.items():
                wanted = wanted_in(verdict)
                if wanted and (pod := shut.get(pod_uid_of(wanted.instance) or "")):
                    found[pod.uid].append(
                        _opening(claim, key, wanted, pod, registry, themselves.get(key), now)
                    )
    return tuple(opening for uid in sorted(found) if (opening := _together(found[uid])))


def _together(openings: Sequence[Opening | None]) -> Opening | None:
    """Combine what the syncers of one pod ask for; None if one of them waits."""
    agreed = sorted((one for one in openings if one), key=lambda one: not one.confirm)
    if len(agreed) < len(openings):
        return None
    keys = tuple(key for one in agreed for key in one.confirm)
    names = " and ".join(map(str, keys))
    message = (
        f"{names} {one_or_more(len(keys), 'is', 'are')} UP in Eureka" if keys else agreed[0].message
    )
    return replace(agreed[0], message=message, confirm=keys)


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
    instance is enough."""
    because, verdict = partial(Opening, pod=pod), claim.verdicts[key]
    if key in claim.rivals:
        ours = f"so syncer {claim.syncer.ref} does not register the pod"
        return because(
            reason=Reason.CONFLICT, message=f"another syncer has the address of the pod, {ours}"
        )
    if claim.conduct.suspend:
        return because(reason=Reason.SUSPENDED, message="its syncer is suspended")
    if isinstance(verdict, OverLimit):
        return because(reason=Reason.OVER_LIMIT, message=verdict.why)
    if claim.conduct.claims_nothing:
        return because(reason=Reason.OVER_LIMIT, message=wanted.why)
    if wanted.drained:
        return because(reason=Reason.DRAINED, message=wanted.why)
    if itself is not None:
        return because(reason=Reason.REGISTERS_ITSELF, message=itself)
    if isinstance(registry, Unknown):
        # From the syncer's status, because a CronJob's process remembers nothing.
        since = claim.syncer.status.eureka_unknown_since if claim.syncer.status else None
        waited = now - since if since is not None else 0
        why = f"Eureka could not be read for {waited:.0f} s: {registry.message}"
        return (
            because(reason=Reason.REGISTRY_UNKNOWN, message=why)
            if waited >= _LONGEST_UNKNOWN
            else None
        )
    up = wanted.instance.status is InstanceStatus.UP
    return Opening(pod=pod, reason=Reason.REGISTERED, message="", confirm=(key,)) if up else None


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
    deadline.stage_of_rest(0.5, share)

    def open_one(opening: Opening) -> ClusterError | None:
        pod = opening.pod
        if deadline.passed:
            return ClusterUnavailable(
                f"the gate of {pod.namespace}/{pod.name} was not opened, because the pass had ended"
            )
        return failure(
            partial(cluster.open_gate, pod, reason=opening.reason, message=opening.message, at=now)
        )

    confirmed = in_turn(
        _confirmed(applier, ownership, wished), lambda one: (one.pod.namespace, one.pod.name)
    )
    deadline.stage(share)
    errors = workers.each(open_one, confirmed)
    return tuple(error for error in errors if error)


def _confirmed(
    applier: Applier, ownership: Ownership, wished: Sequence[Opening]
) -> Iterator[Opening]:
    readings = applier.read([key for opening in wished for key in opening.confirm])
    for opening in wished:
        found = [readings.get(key) for key in opening.confirm]
        # A person sets OUT_OF_SERVICE on purpose, so a rollout must not wait for UP.
        if all(
            isinstance(one, ObservedInstance)
            and ownership.holds(one)
            and pod_uid_of(one) == opening.pod.uid
            and one.status in (InstanceStatus.UP, InstanceStatus.OUT_OF_SERVICE)
            for one in found
        ):
            yield opening
