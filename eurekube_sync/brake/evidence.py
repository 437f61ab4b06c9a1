"""What is known of the pods behind held removals, and what it says to the person who decides. Pure.

The brake itself does not weigh it: a pod that is Ready may be a fault of the selector, and one that
is not may be a lost node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum

from msgspec import Struct

from eurekube_sync.model.actions import Grounds, Removal, Update
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import PodReadiness
from eurekube_sync.model.ownership import pod_namespace_of, pod_uid_of
from eurekube_sync.model.sources import Complete, Source
from eurekube_sync.model.text import one_or_more

_ASKED_FOR = frozenset({Grounds.SYNCER_DELETED, Grounds.OVER_LIMIT, Grounds.DRAINED})
SYNCER_MISSING = frozenset({Grounds.ORPHANED, Grounds.SWEPT})
"""Grounds of removals whose syncer is not in a complete list."""


class PodState(StrEnum):
    """The pod of an instance whose removal is held."""

    READY = "ready"  # it runs and is Ready
    NOT_READY = "notReady"  # it exists, and is not Ready or terminates
    GONE = "gone"  # a complete list has neither the pod nor its address
    UNKNOWN = "unknown"  # the pods of its namespace were not read


class Advice(StrEnum):
    """What the pods say about held removals, with its words, and whether an approval is wrong."""

    text: str
    warns: bool

    def __new__(cls, value: str, text: str, warns: bool = False) -> Advice:
        advice = str.__new__(cls, value)
        advice._value_ = value
        advice.text = text
        advice.warns = warns
        return advice

    WRONG_SELECTOR = ("WrongSelector", "this looks like a wrong selector; do not approve", True)
    SLICES_BEHIND = ("SlicesBehind", "their EndpointSlices differ; do not approve", True)
    SYNCER_MISSING = ("SyncerMissing", "this looks like a lost syncer; do not approve", True)
    SOME_RUN = ("SomeRun", "do not approve while these run", True)
    ASKED_FOR = ("AskedFor", "approve only if somebody meant to remove all of this")
    LOOK = ("Look", "see why before you approve; a lost node looks the same")
    GONE = ("Gone", "no caller loses a pod if you approve")
    UNKNOWN = ("Unknown", "look at the pods before you approve")


class Evidence(Struct, frozen=True, kw_only=True):
    """How many pods of some held removals run, and what that says."""

    counts: Mapping[PodState, int]  # of each state; their sum is the number of removals
    advice: Advice

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def sentence(self) -> str:
        """`8 of 8 pods still run and are Ready: this looks like a wrong selector; do not approve`,
        without its end."""
        return f"{self._counted}: {self.advice.text}"

    @property
    def _counted(self) -> str:
        total = self.total
        pods = one_or_more(total, "pod", "pods")
        unknown = self.counts[PodState.UNKNOWN]
        if unknown == total:
            run = one_or_more(total, "runs", "run")
            return f"it is unknown whether the {pods} still {run}"
        ready = self.counts[PodState.READY]
        run = one_or_more(ready, "still runs and is Ready", "still run and are Ready")
        text = f"{ready} of {total} {pods} {run}"
        others = []
        gone = self.counts[PodState.GONE]
        if gone:
            others.append(f"{gone} gone")
        if unknown:
            others.append(f"{unknown} unknown")
        if others:
            return f"{text} ({', '.join(others)})"
        return text


def evidence_of(removals: Collection[Removal], pods: Mapping[InstanceKey, PodState]) -> Evidence:
    """Count the pods of these removals. `pods` lacks what is unknown."""
    counts = dict.fromkeys(PodState, 0)
    for removal in removals:
        state = pods.get(removal.key, PodState.UNKNOWN)
        counts[state] += 1
    return Evidence(counts=counts, advice=_advice(removals, counts))


def _advice(
    removals: Collection[Removal],
    counts: Mapping[PodState, int],
) -> Advice:
    """Say what the pods mean.

    | a person asked for all | pods               | removals with a Ready pod   | advice         |
    |------------------------|--------------------|-----------------------------|----------------|
    | yes                    | any                | any                         | ASKED_FOR      |
    | no                     | all Ready          | a syncer is missing         | SYNCER_MISSING |
    | no                     | all Ready          | endpoints that are not ready| SLICES_BEHIND  |
    | no                     | all Ready          | any other                   | WRONG_SELECTOR |
    | no                     | some Ready         | any                         | SOME_RUN       |
    | no                     | some unknown       | none                        | UNKNOWN        |
    | no                     | some not Ready     | none                        | LOOK           |
    | no                     | all gone           | none                        | GONE           |
    """
    grounds = {removal.grounds for removal in removals}
    if grounds <= _ASKED_FOR:
        return Advice.ASKED_FOR
    ready = counts[PodState.READY]
    if ready == len(removals):
        if grounds & SYNCER_MISSING:
            return Advice.SYNCER_MISSING
        # An endpoint that is listed, and not ready, is no question of the selector.
        listed = all(isinstance(removal, Update) for removal in removals)
        if listed:
            return Advice.SLICES_BEHIND
        return Advice.WRONG_SELECTOR
    if ready:
        return Advice.SOME_RUN
    if counts[PodState.UNKNOWN]:
        return Advice.UNKNOWN
    if counts[PodState.NOT_READY]:
        return Advice.LOOK
    return Advice.GONE


def pod_states(
    removals: Iterable[Removal],
    ours: Mapping[InstanceKey, ObservedInstance],
    pods: Mapping[str, Source[tuple[PodReadiness, ...]]],
) -> dict[InstanceKey, PodState]:
    """Return the state of the pod of each removal; what could not be read is missing. `pods` are
    whole pods by namespace."""
    by_namespace: dict[str, dict[str, PodReadiness]] = {}
    for namespace, listed in pods.items():
        if isinstance(listed, Complete):
            by_namespace[namespace] = _by_uid_and_address(listed.data)
    states: dict[InstanceKey, PodState] = {}
    for removal in removals:
        instance = ours[removal.key]
        namespace = pod_namespace_of(instance) or ""
        if namespace not in by_namespace:
            continue
        index = by_namespace[namespace]
        uid = pod_uid_of(instance) or ""
        pod = index.get(uid) or index.get(instance.instance.ip_addr)
        if pod is None:
            states[removal.key] = PodState.GONE
        elif pod.running:
            states[removal.key] = PodState.READY
        else:
            states[removal.key] = PodState.NOT_READY
    return states


def _by_uid_and_address(pods: Iterable[PodReadiness]) -> dict[str, PodReadiness]:
    """Index the pods by UID and by each address. Of two pods at an address, such as two of the
    host's network, one that runs counts."""
    index: dict[str, PodReadiness] = {}
    for pod in pods:
        for name in (pod.uid, *pod.addresses):
            if name not in index or pod.running:
                index[name] = pod
    return index
