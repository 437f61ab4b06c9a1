"""`KubernetesDetails`: the `Details` port on the Kubernetes API. Lists of one namespace, read for a person alone."""

from __future__ import annotations

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


class _PodStatus(_Wire):
    phase: str = ""
    pod_ips: list[_Address] | None = msgspec.field(name="podIPs", default=None)
    conditions: list[_Condition] | None = None
    container_statuses: list[_Container] | None = None


class PodItem(_Wire):
    """A Pod, as far as it says why it is not ready."""

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
    )


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
