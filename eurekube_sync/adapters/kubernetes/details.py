"""`KubernetesDetails`: the `Details` port on the Kubernetes API. Lists of one namespace, read for a person alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from eurekube_sync.adapters.kubernetes.calls import Calls
from eurekube_sync.adapters.kubernetes.connection import Connection
from eurekube_sync.adapters.kubernetes.projection import seconds
from eurekube_sync.adapters.kubernetes.walks import Kind, list_all
from eurekube_sync.adapters.tries import Tries
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.details import PodCondition, PodDetail, ServiceSelector
from eurekube_sync.model.foreign_text import excerpt
from eurekube_sync.model.ports import Clock, Random
from eurekube_sync.model.sources import Source

_LONGEST = 160
"""Characters of what a kubelet says."""


class _Wire(msgspec.Struct, rename="camel"):
    pass


class _Meta(_Wire):
    name: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    deletion_timestamp: datetime | None = None
    owner_references: list[_Owner] | None = None


class _Owner(_Wire):
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class _Sleep(_Wire):
    seconds: float = 0.0


class _Exec(_Wire):
    command: list[str] | None = None


class _PreStop(_Wire):
    sleep: _Sleep | None = None
    exec: _Exec | None = None


class _Lifecycle(_Wire):
    pre_stop: _PreStop | None = None


class _SpecContainer(_Wire):
    name: str = ""
    lifecycle: _Lifecycle | None = None


class _Waiting(_Wire):
    reason: str = ""
    message: str = ""


class _State(_Wire):
    waiting: _Waiting | None = None


class _Container(_Wire):
    name: str = ""
    state: _State | None = None


class _Condition(_Wire):
    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    last_transition_time: datetime | None = None


class _Address(_Wire):
    ip: str = ""


class _PodSpec(_Wire):
    node_name: str = ""
    termination_grace_period_seconds: float | None = None
    containers: list[_SpecContainer] | None = None


class _PodStatus(_Wire):
    phase: str = ""
    pod_ips: list[_Address] | None = msgspec.field(name="podIPs", default=None)
    conditions: list[_Condition] | None = None
    container_statuses: list[_Container] | None = None


class PodItem(_Wire):
    """A Pod, as far as it says why it is not ready, and how it ends."""

    metadata: _Meta
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


class _ServiceSpec(_Wire):
    selector: dict[str, str] | None = None


class ServiceItem(_Wire):
    """A Service, as far as it says which pods it selects."""

    metadata: _Meta
    spec: _ServiceSpec = msgspec.field(default_factory=_ServiceSpec)


class KubernetesDetails:
    """The `Details` port."""

    def __init__(
        self, connection: Connection, *, clock: Clock, random: Random, limit: TimeLimit, answer_seconds: float = 60.0
    ) -> None:
        tries = Tries(clock=clock, random=random, limit=limit, answer_seconds=answer_seconds, most=2)
        self._calls = Calls(connection, tries)

    def list_pod_details(self, namespace: str) -> Source[tuple[PodDetail, ...]]:
        return list_all(self._calls, _PODS, [namespace]).of(namespace)

    def list_service_selectors(self, namespace: str) -> Source[tuple[ServiceSelector, ...]]:
        return list_all(self._calls, _SERVICES, [namespace]).of(namespace)


def _pod(item: PodItem) -> PodDetail:
    containers, grace = item.spec.containers or [], item.spec.termination_grace_period_seconds
    return PodDetail(
        name=item.metadata.name,
        uid=item.metadata.uid,
        labels=item.metadata.labels or {},
        addresses=tuple(one.ip for one in item.status.pod_ips or () if one.ip),
        node=item.spec.node_name,
        phase=item.status.phase,
        terminating=item.metadata.deletion_timestamp is not None,
        conditions=tuple(_condition(one) for one in item.status.conditions or ()),
        waiting=tuple(_waiting(item.status.container_statuses or ())),
        controller=next(
            (f"{one.kind} {one.name}" for one in item.metadata.owner_references or () if one.controller), ""
        ),
        containers=tuple(one.name for one in containers),
        grace=30.0 if grace is None else grace,
        pre_stops=tuple(
            _sleep(one.lifecycle.pre_stop) for one in containers if one.lifecycle and one.lifecycle.pre_stop
        ),
    )


_SLEEPS = re.compile(r"(?:(?:/bin/)?(?:ba|da|a)?sh -c )?(?:/bin/|/usr/bin/)?sleep (\d+(?:\.\d+)?)s?;?")


def _sleep(hook: _PreStop) -> float | None:
    """How long it sleeps, where it does nothing else."""
    if hook.sleep is not None:
        return hook.sleep.seconds
    found = _SLEEPS.fullmatch(" ".join(hook.exec.command or ()).strip()) if hook.exec is not None else None
    return float(found[1]) if found else None


def _condition(item: _Condition) -> PodCondition:
    return PodCondition(
        type=item.type,
        true=item.status == "True",
        reason=excerpt(item.reason or "", most=_LONGEST),
        message=excerpt(item.message or "", most=_LONGEST),
        since=seconds(item.last_transition_time) if item.last_transition_time else None,
    )


def _waiting(containers: Iterable[_Container]) -> Iterator[str]:
    for one in containers:
        waits = one.state.waiting if one.state else None
        if waits is not None and waits.reason:
            yield excerpt(f"{one.name}: {waits.reason}", most=_LONGEST)


def _service(item: ServiceItem) -> ServiceSelector:
    return ServiceSelector(
        name=item.metadata.name, labels=item.metadata.labels or {}, selector=item.spec.selector or {}
    )


_PODS = Kind(plural="pods", list_kind="PodList", item=PodItem, project=_pod)
_SERVICES = Kind(plural="services", list_kind="ServiceList", item=ServiceItem, project=_service)
