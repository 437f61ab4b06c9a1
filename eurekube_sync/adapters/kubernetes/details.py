"""The `Details` port on the Kubernetes API, for `explain` and `check`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from typing import Any

import msgspec

from eurekube_sync.adapters.clock import ahead
from eurekube_sync.adapters.kubernetes import objects
from eurekube_sync.adapters.kubernetes.calls import CORE, Calls, Kind, decoded, unusable, writing
from eurekube_sync.adapters.kubernetes.client import SYNCERS
from eurekube_sync.adapters.kubernetes.connection import Connection
from eurekube_sync.adapters.kubernetes.custom import CustomKind
from eurekube_sync.adapters.kubernetes.imports import IMPORTS
from eurekube_sync.adapters.tries import Tries
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import ClusterError, unknown_from
from eurekube_sync.model.imports import IMPORT
from eurekube_sync.model.kubernetes import PodCondition, PodDetail, Right, ServiceSelector
from eurekube_sync.model.ports import Clock, Random
from eurekube_sync.model.sanitize import excerpt
from eurekube_sync.model.sources import Complete, Source, Unknown

_LONGEST = 160  # characters of a kubelet's message
_SLEEPS = re.compile(
    r"(?:(?:/bin/)?(?:ba|da|a)?sh -c )?(?:/bin/|/usr/bin/)?"
    r"sleep (\d+(?:\.\d+)?)s?;?",
)


class _Owner(objects.Wire):
    kind: str
    name: str
    controller: bool | None = None


class _Meta(objects.Meta):
    owner_references: list[_Owner] | None = None

    def controller(self) -> str:
        for owner in self.owner_references or ():
            if owner.controller:
                return f"{owner.kind} {owner.name}"
        return ""


class _Sleep(objects.Wire):
    seconds: float = 0.0


class _Exec(objects.Wire):
    command: list[str] | None = None


class _Hook(objects.Wire):
    sleep: _Sleep | None = None
    exec: _Exec | None = None

    def seconds(self) -> float | None:
        """Return the seconds of a hook that only sleeps; None for any other hook."""
        if self.sleep is not None:
            return self.sleep.seconds
        command = self.exec.command if self.exec else None
        only_sleeps = _SLEEPS.fullmatch(" ".join(command or ()).strip())
        if only_sleeps:
            return float(only_sleeps[1])
        return None


class _Lifecycle(objects.Wire):
    pre_stop: _Hook | None = None


class _Port(objects.Wire):
    container_port: int
    protocol: str | None = None


class _Container(objects.Wire):
    name: str
    ports: list[_Port] | None = None
    lifecycle: _Lifecycle | None = None


class _Spec(objects.Wire):
    node_name: str | None = None
    containers: list[_Container] | None = None
    termination_grace_period_seconds: float | None = None

    def pre_stops(self) -> tuple[float | None, ...]:
        lifecycles = [container.lifecycle for container in self.containers or ()]
        hooks = [lifecycle.pre_stop for lifecycle in lifecycles if lifecycle]
        return tuple([hook.seconds() for hook in hooks if hook])

    def tcp_ports(self) -> tuple[int, ...]:
        """Return the TCP ports that the containers declare, each once."""
        numbers: list[int] = []
        for container in self.containers or ():
            for port in container.ports or ():
                if port.protocol in (None, "TCP") and port.container_port not in numbers:
                    numbers.append(port.container_port)
        return tuple(numbers)

    def grace(self) -> float:
        """Return the seconds that the pod has to end. 30 is the API's default; 0 is legal."""
        seconds = self.termination_grace_period_seconds
        if seconds is None:
            return 30.0
        return seconds


class _Waiting(objects.Wire):
    reason: str | None = None


class _State(objects.Wire):
    waiting: _Waiting | None = None


class _ContainerStatus(objects.Wire):
    name: str
    state: _State | None = None


class _Address(objects.Wire):
    ip: str | None = None


class _Condition(objects.Condition):
    reason: str | None = None
    message: str | None = None

    def read(self) -> PodCondition:
        return PodCondition(
            type=self.type,
            true=self.status == "True",
            since=objects.seconds_or_none(self.last_transition_time),
            reason=excerpt(self.reason or "", most=_LONGEST),
            message=excerpt(self.message or "", most=_LONGEST),
        )


class _Status(objects.Wire):
    phase: str | None = None
    pod_ips: list[_Address] | None = msgspec.field(name="podIPs", default=None)
    conditions: list[_Condition] | None = None
    container_statuses: list[_ContainerStatus] | None = None

    def addresses(self) -> tuple[str, ...]:
        return tuple([address.ip for address in self.pod_ips or () if address.ip])

    def waiting(self) -> tuple[str, ...]:
        """Return each container that waits, with the kubelet's reason."""
        waiting: list[str] = []
        for container in self.container_statuses or ():
            state = container.state.waiting if container.state else None
            if state and state.reason:
                waiting.append(excerpt(f"{container.name}: {state.reason}", most=_LONGEST))
        return tuple(waiting)


class PodItem(objects.Wire):
    metadata: _Meta
    spec: _Spec | None = None
    status: _Status | None = None

    def read(self) -> PodDetail:
        meta = self.metadata
        spec = self.spec or _Spec()
        status = self.status or _Status()
        return PodDetail(
            name=meta.name,
            uid=meta.uid,
            labels=meta.labels or {},
            addresses=status.addresses(),
            node=spec.node_name or "",
            phase=status.phase or "",
            terminating=meta.deletion_timestamp is not None,
            conditions=tuple([condition.read() for condition in status.conditions or ()]),
            waiting=status.waiting(),
            controller=meta.controller(),
            containers=tuple([container.name for container in spec.containers or ()]),
            ports=spec.tcp_ports(),
            grace=spec.grace(),
            pre_stops=spec.pre_stops(),
        )


class _ServiceSpec(objects.Wire):
    selector: dict[str, str] | None = None


class _ServiceItem(objects.OwnedItem):
    spec: _ServiceSpec = msgspec.field(default_factory=_ServiceSpec)

    def read(self) -> ServiceSelector:
        meta = self.metadata
        return ServiceSelector(
            name=meta.name,
            labels=meta.labels or {},
            selector=self.spec.selector or {},
            controller=meta.controller().kind,
        )


class _Version(objects.Wire):
    git_version: str


class _Schema(msgspec.Struct):
    whole: dict[str, Any] = msgspec.field(name="openAPIV3Schema")


class _ServedVersion(objects.Wire):
    schema: _Schema
    storage: bool


class _DefinitionSpec(objects.Wire):
    versions: list[_ServedVersion]


class _Definition(objects.Wire):
    spec: _DefinitionSpec


_VERSION = msgspec.json.Decoder(_Version)
_DEFINITION = msgspec.json.Decoder(_Definition)


def _version(body: bytes) -> str:
    return _VERSION.decode(body).git_version


def _stored_schema(body: bytes) -> Mapping[str, Any]:
    for version in _DEFINITION.decode(body).spec.versions:
        if version.storage:
            return version.schema.whole
    raise ValueError("it stores no version")


class _Allowed(msgspec.Struct):
    allowed: bool


class _Review(msgspec.Struct):
    status: _Allowed


class _CidrSpec(objects.Wire):
    cidrs: list[str] | None = None


class ServiceCidrItem(objects.Item):
    spec: _CidrSpec

    def read(self) -> tuple[str, ...]:
        return tuple(self.spec.cidrs or ())


_REVIEW = msgspec.json.Decoder(_Review)
_CUSTOM: Mapping[str, CustomKind[Any]] = {"EurekaSyncer": SYNCERS, IMPORT: IMPORTS}
_SERVICE_CIDRS = Kind(
    "/apis/networking.k8s.io/v1",
    "servicecidrs",
    "ServiceCIDRList",
    msgspec.json.Decoder(ServiceCidrItem),
    namespaced=False,
)
_PODS = Kind(CORE, "pods", "PodList", msgspec.json.Decoder(PodItem))
_SERVICES = Kind(CORE, "services", "ServiceList", msgspec.json.Decoder(_ServiceItem))


class KubernetesDetails:
    def __init__(
        self,
        connection: Connection,
        *,
        clock: Clock,
        random: Random,
        limit: TimeLimit,
    ) -> None:
        self._clock = clock
        self._calls = Calls(connection, Tries(clock, random, limit, answer_seconds=60.0, most=2))

    def list_pod_details(self, namespace: str) -> Source[tuple[PodDetail, ...]]:
        return self._calls.list_all(_PODS, [namespace]).of(namespace)

    def list_service_selectors(self, namespace: str) -> Source[tuple[ServiceSelector, ...]]:
        return self._calls.list_all(_SERVICES, [namespace]).of(namespace)

    def server(self) -> Source[str]:
        absent = unusable("the Kubernetes API does not say its version (404)")
        what = "the version of the Kubernetes API"
        return self._calls.read_object("/version", _version, what, absent=absent)

    def schema(self, kind: str = "EurekaSyncer") -> Source[Mapping[str, Any]]:
        what, custom = "the CustomResourceDefinition", _CUSTOM[kind]
        return self._calls.read_object(
            custom.crd_path, _stored_schema, what, absent=custom.listed.when_absent
        )

    def service_networks(self) -> Source[tuple[str, ...]]:
        listed = self._calls.list_all(_SERVICE_CIDRS, None).of("")
        if isinstance(listed, Unknown):
            return listed
        return Complete(data=tuple(chain.from_iterable(listed.data)))

    def may(self, right: Right, namespace: str) -> Source[bool]:
        """Ask by a SelfSubjectAccessReview, a POST that stores nothing."""
        resource, _, subresource = right.resource.partition("/")
        asked = {
            "verb": right.verb,
            "group": right.group,
            "resource": resource,
            "namespace": namespace,
        }
        if subresource:
            asked["subresource"] = subresource
        if right.name:
            asked["name"] = right.name
        head = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
        review = {**head, "spec": {"resourceAttributes": asked}}
        call = writing("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        try:
            answer = self._calls.expect(call, 200, 201)
            answered = decoded(call, answer, _REVIEW, "a SelfSubjectAccessReview")
            return Complete(data=answered.status.allowed)
        except ClusterError as error:
            return unknown_from(error)

    def ahead(self) -> Source[float]:
        begun = self._clock.now()
        answer = self._calls.read_one("/version")
        if isinstance(answer, Unknown):
            return answer
        seconds = ahead(answer.date, begun, self._clock.now())
        if seconds is None:
            return unusable("the Kubernetes API answers without the time (Date)")
        return Complete(data=seconds)
