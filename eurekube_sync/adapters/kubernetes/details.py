"""`KubernetesDetails`: the `Details` port on the Kubernetes API: single calls and lists of one namespace, for a person
who asks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from eurekube_sync.adapters.clock import ahead
from eurekube_sync.adapters.kubernetes import objects
from eurekube_sync.adapters.kubernetes.calls import Calls, refusal, writing
from eurekube_sync.adapters.kubernetes.client import CRD_MISSING, DEFINITION
from eurekube_sync.adapters.kubernetes.connection import Connection
from eurekube_sync.adapters.kubernetes.walks import Kind, list_all
from eurekube_sync.adapters.no_answer import UNREADABLE
from eurekube_sync.adapters.tries import Tries
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.details import PodCondition, PodDetail, Right, ServiceSelector
from eurekube_sync.model.errors import ClusterError, unknown_from
from eurekube_sync.model.foreign_text import excerpt
from eurekube_sync.model.ports import Clock, Random
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown

_LONGEST = 160
"""Characters of what a kubelet says."""
_SLEEPS = re.compile(r"(?:(?:/bin/)?(?:ba|da|a)?sh -c )?(?:/bin/|/usr/bin/)?sleep (\d+(?:\.\d+)?)s?;?")


class _Owner(objects.Wire):
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class _Meta(objects.Meta):
    deletion_timestamp: datetime | None = None
    owner_references: list[_Owner] | None = None


class _Sleep(objects.Wire):
    seconds: float = 0.0


class _Exec(objects.Wire):
    command: list[str] | None = None


class _PreStop(objects.Wire):
    sleep: _Sleep | None = None
    exec: _Exec | None = None

    def seconds(self) -> float | None:
        """How long it sleeps, where it does nothing else."""
        if self.sleep is not None:
            return self.sleep.seconds
        found = _SLEEPS.fullmatch(" ".join(self.exec.command or ()).strip()) if self.exec is not None else None
        return float(found[1]) if found else None


class _Lifecycle(objects.Wire):
    pre_stop: _PreStop | None = None


class _Container(objects.Wire):
    name: str = ""
    lifecycle: _Lifecycle | None = None


class _PodSpec(objects.Wire):
    node_name: str = ""
    termination_grace_period_seconds: float | None = None
    containers: list[_Container] | None = None


class _Waiting(objects.Wire):
    reason: str = ""


class _State(objects.Wire):
    waiting: _Waiting | None = None


class _ContainerStatus(objects.Wire):
    name: str = ""
    state: _State | None = None


class _Condition(objects.Condition):
    reason: str | None = None
    message: str | None = None

    def read(self) -> PodCondition:
        return PodCondition(
            type=self.type,
            true=self.status == "True",
            reason=excerpt(self.reason or "", most=_LONGEST),
            message=excerpt(self.message or "", most=_LONGEST),
            since=objects.seconds(self.last_transition_time) if self.last_transition_time else None,
        )


class _Address(objects.Wire):
    ip: str = ""


class _PodStatus(objects.Wire):
    phase: str = ""
    pod_ips: list[_Address] | None = msgspec.field(name="podIPs", default=None)
    conditions: list[_Condition] | None = None
    container_statuses: list[_ContainerStatus] | None = None


class PodItem(objects.Wire):
    """A Pod, as far as it says why it is not ready, and how it ends."""

    metadata: _Meta
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)

    def read(self) -> PodDetail:
        meta, spec, status = self.metadata, self.spec, self.status
        containers, grace = spec.containers or [], spec.termination_grace_period_seconds
        hooks = [one.lifecycle.pre_stop for one in containers if one.lifecycle and one.lifecycle.pre_stop]
        waiting = [(one.name, one.state.waiting) for one in status.container_statuses or () if one.state]
        owners = meta.owner_references or ()
        return PodDetail(
            name=meta.name,
            uid=meta.uid,
            labels=meta.labels or {},
            addresses=tuple(one.ip for one in status.pod_ips or () if one.ip),
            node=spec.node_name,
            phase=status.phase,
            terminating=meta.deletion_timestamp is not None,
            conditions=tuple(one.read() for one in status.conditions or ()),
            waiting=tuple(
                excerpt(f"{name}: {waits.reason}", most=_LONGEST) for name, waits in waiting if waits and waits.reason
            ),
            controller=next((f"{one.kind} {one.name}" for one in owners if one.controller), ""),
            containers=tuple(one.name for one in containers),
            grace=30.0 if grace is None else grace,
            pre_stops=tuple(hook.seconds() for hook in hooks),
        )


class _ServiceSpec(objects.Wire):
    selector: dict[str, str] | None = None


class _ServiceItem(objects.Item):
    spec: _ServiceSpec = msgspec.field(default_factory=_ServiceSpec)

    def read(self) -> ServiceSelector:
        meta = self.metadata
        return ServiceSelector(name=meta.name, labels=meta.labels or {}, selector=self.spec.selector or {})


_PODS = Kind(plural="pods", list_kind="PodList", item=PodItem)
_SERVICES = Kind(plural="services", list_kind="ServiceList", item=_ServiceItem)


class _Version(objects.Wire):
    git_version: str


class _Schema(msgspec.Struct):
    openAPIV3Schema: dict[str, Any]


class _DefinitionVersion(msgspec.Struct):
    storage: bool
    schema: _Schema


class _DefinitionSpec(msgspec.Struct):
    versions: list[_DefinitionVersion]


class _Definition(msgspec.Struct):
    spec: _DefinitionSpec


class _ReviewStatus(msgspec.Struct):
    allowed: bool


class _Review(msgspec.Struct):
    status: _ReviewStatus


class KubernetesDetails:
    """Each call is tried twice at most."""

    def __init__(self, connection: Connection, *, clock: Clock, random: Random, limit: TimeLimit) -> None:
        self._clock = clock
        self._calls = Calls(connection, Tries(clock=clock, random=random, limit=limit, answer_seconds=60.0, most=2))

    def list_pod_details(self, namespace: str) -> Source[tuple[PodDetail, ...]]:
        return list_all(self._calls, _PODS, [namespace]).of(namespace)

    def list_service_selectors(self, namespace: str) -> Source[tuple[ServiceSelector, ...]]:
        return list_all(self._calls, _SERVICES, [namespace]).of(namespace)

    def server(self) -> Source[str]:
        found = self._calls.read_object("/version", _Version, "the version of the Kubernetes API")
        if found is None:
            return Unknown(cause=Cause.UNUSABLE, message="the Kubernetes API does not say its version (404)")
        return found if isinstance(found, Unknown) else Complete(data=found.git_version)

    def schema(self) -> Source[Mapping[str, Any]]:
        found = self._calls.read_object(DEFINITION, _Definition, "the CustomResourceDefinition")
        if found is None or isinstance(found, Unknown):
            return found or CRD_MISSING
        stored = [one.schema.openAPIV3Schema for one in found.spec.versions if one.storage]
        return Complete(data=stored[0] if stored else {})

    def may(self, right: Right, namespace: str) -> Source[bool]:
        """By a SelfSubjectAccessReview, which is a POST and stores nothing."""
        resource, _, subresource = right.resource.partition("/")
        asked = {"verb": right.verb, "group": right.group, "resource": resource, "namespace": namespace}
        asked |= {"subresource": subresource} if subresource else {}
        asked |= {"name": right.name} if right.name else {}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        call = writing("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        try:
            answer = self._calls.send(call)
            if answer.status not in (200, 201):
                return unknown_from(refusal(call, answer))
            return Complete(data=msgspec.json.decode(answer.body, type=_Review).status.allowed)
        except ClusterError as error:
            return unknown_from(error)
        except UNREADABLE:
            return Unknown(cause=Cause.UNUSABLE, message=f"the answer to {call} cannot be read")

    def ahead(self) -> Source[float]:
        """By the header `Date`."""
        begun = self._clock.now()
        answer = self._calls.read_one("/version")
        if isinstance(answer, Unknown):
            return answer
        found = ahead(answer.date, begun, self._clock.now())
        if found is None:
            return Unknown(cause=Cause.UNUSABLE, message="the Kubernetes API answers without the time (Date)")
        return Complete(data=found)
