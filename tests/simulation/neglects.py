"""Defects that lose nothing at once: needless writes, too many registrations by a rough count,
gates that open too soon, work that never gets its turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.apply import gates, status
from eurekube_sync.apply.gates import Opening
from eurekube_sync.desired.claims import Serving
from eurekube_sync.desired.limit import Limit, Measure
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.errors import ClusterDenied, ClusterUnavailable
from eurekube_sync.model.eureka import InstanceStatus

from .defect import Defect


def _with_the_minute(condition: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(type_: str, aspect: Any, old: Any, generation: int, now: int) -> Any:
        told = aspect._replace(message=f"{aspect.message} ({now // 60} min)")
        return condition(type_, told, old, generation, now)

    return wrong


def _ready_pods_of(claim: Serving) -> int:
    return sum(wanted.instance.status is InstanceStatus.UP for wanted in claim.wanted.values())


def _rounded_down(places: Callable[..., int | None]) -> Callable[..., int | None]:
    def wrong(self: Limit, *, pods: int, others: int) -> int | None:
        if self.measure is Measure.SHARE and self.value < 100:
            return self.value * others // (100 - self.value)
        return places(self, pods=pods, others=others)

    return wrong


def _one_is_enough(together: Callable[..., Opening | None]) -> Callable[..., Opening | None]:
    def wrong(openings: Sequence[Opening | None]) -> Opening | None:
        return together([one for one in openings if one][:1]) if any(openings) else None

    return wrong


def _all_the_time(stage: Callable[..., None]) -> Callable[..., None]:
    return lambda self, share, part_of_rest=1.0: stage(self, 1.0)


def _unreachable_when_refused(record_event: Callable[..., None]) -> Callable[..., None]:
    def wrong(self: KubernetesCluster, event: Any, *, at: float) -> None:
        try:
            record_event(self, event, at=at)
        except ClusterDenied as error:
            raise ClusterUnavailable(str(error)) from error

    return wrong


def neglects() -> tuple[Defect, ...]:
    """All of these defects, in the order of the table."""
    stage = Deadline.stage
    return (
        Defect(
            name="a status changes each minute",
            about="an expiry",
            patches=((status, "as_condition", _with_the_minute(vars(status)["as_condition"])),),
        ),
        Defect(
            name="a percentage is of the ready pods",
            about="a share",
            patches=((Serving, "endpoints", property(_ready_pods_of)),),
        ),
        Defect(
            name="a share rounds down",
            about="a share",
            patches=((Limit, "places", _rounded_down(Limit.places)),),
        ),
        Defect(
            name="a gate opens when one of two syncers is done",
            about="shared gates",
            patches=((gates, "_together", _one_is_enough(vars(gates)["_together"])),),
        ),
        Defect(
            name="a refused event is read as an unreachable Kubernetes API",
            about="refused events",
            patches=(
                (
                    KubernetesCluster,
                    "record_event",
                    _unreachable_when_refused(KubernetesCluster.record_event),
                ),
            ),
        ),
        Defect(
            name="a stage may take all the time of a pass",
            about="a slow stage",
            patches=((Deadline, "stage", _all_the_time(stage)),),
        ),
    )
