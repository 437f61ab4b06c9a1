"""The `Details` port on the Kubernetes API, for `explain` and `check`. Pods are read without a
struct for each part."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from eurekube_sync.adapters.clock import ahead
from eurekube_sync.adapters.kubernetes import objects
from eurekube_sync.adapters.kubernetes.calls import CORE, Calls, Kind, decoded, unusable, writing
from eurekube_sync.adapters.kubernetes.client import CRD_MISSING, DEFINITION
from eurekube_sync.adapters.kubernetes.connection import Connection
from eurekube_sync.adapters.tries import Tries
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import ClusterError, unknown_from
from eurekube_sync.model.foreign_text import excerpt
from eurekube_sync.model.kubernetes import PodDetail, Right, ServiceSelector
from eurekube_sync.model.ports import Clock, Random
from eurekube_sync.model.sources import Complete, Source, Unknown

_LONGEST = 160  # characters of a kubelet's message
_POD_DETAIL = msgspec.json.Decoder(PodDetail)  # for its type, which is built now
_SLEEPS = re.compile(
    r"(?:(?:/bin/)?(?:ba|da|a)?sh -c )?(?:/bin/|/usr/bin/)?"
    r"sleep (\d+(?:\.\d+)?)s?;?",
)


def _at(value: Any, *keys: str) -> Any:
    """Return the value under nested keys, or None. Raise ValueError if anything on the way is no
    mapping."""
    for key in keys:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise ValueError(f"what holds {key} is not a mapping")
        value = value.get(key)
    return value


def _each(value: Any, *keys: str) -> list[Any]:
    return msgspec.convert(_at(value, *keys) or [], list[Any])


class _Meta(objects.Meta):
    deletion_timestamp: str | None = None
    owner_references: list[dict[str, Any]] | None = None


class PodItem(objects.Wire):
    metadata: _Meta
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None

    def read(self) -> PodDetail:
        """Return the pod. Raise `no_answer.UNREADABLE` if a part is of another type."""
        meta = self.metadata
        containers = _each(self.spec, "containers")
        conditions = _each(self.status, "conditions")
        found = {
            "name": meta.name,
            "uid": meta.uid,
            "labels": meta.labels or {},
            "addresses": _addresses(self.status),
            "node": _at(self.spec, "nodeName") or "",
            "phase": _at(self.status, "phase") or "",
            "terminating": meta.deletion_timestamp is not None,
            "conditions": [_condition(condition) for condition in conditions],
            "waiting": _waiting(self.status),
            "controller": _controller(meta),
            "containers": [_at(container, "name") for container in containers],
            "grace": _grace(self.spec),
            "pre_stops": _pre_stops(containers),
        }
        return msgspec.convert(found, _POD_DETAIL.type)


def _addresses(status: Any) -> list[Any]:
    addresses = [_at(entry, "ip") for entry in _each(status, "podIPs")]
    return [address for address in addresses if address]


def _waiting(status: Any) -> list[str]:
    """Return each container that waits, with the kubelet's reason."""
    waiting = []
    for container in _each(status, "containerStatuses"):
        reason = _at(container, "state", "waiting", "reason")
        if reason:
            waiting.append(excerpt(f"{_at(container, 'name')}: {reason}", most=_LONGEST))
    return waiting


def _controller(meta: _Meta) -> str:
    for owner in meta.owner_references or ():
        if owner.get("controller"):
            return f"{owner.get('kind')} {owner.get('name')}"
    return ""


def _grace(spec: Any) -> Any:
    """Return the seconds that the pod has to end; 30 is the API's default, and 0 is a legal
    value."""
    seconds = _at(spec, "terminationGracePeriodSeconds")
    return 30.0 if seconds is None else seconds


def _pre_stops(containers: list[Any]) -> list[float | None]:
    hooks = [_at(container, "lifecycle", "preStop") for container in containers]
    return [_sleep(hook) for hook in hooks if hook]


def _condition(condition: Any) -> Mapping[str, Any]:
    since = _at(condition, "lastTransitionTime")
    return {
        "type": _at(condition, "type"),
        "true": _at(condition, "status") == "True",
        "since": objects.seconds(msgspec.convert(since, datetime)) if since else None,
        "reason": _text(condition, "reason"),
        "message": _text(condition, "message"),
    }


def _text(condition: Any, name: str) -> str:
    return excerpt(msgspec.convert(_at(condition, name) or "", str), most=_LONGEST)


def _sleep(hook: Any) -> float | None:
    """Return the seconds of a `preStop` hook that only sleeps; None for any other hook."""
    sleep = _at(hook, "sleep")
    if sleep is not None:
        return msgspec.convert(_at(sleep, "seconds") or 0, float)
    command = msgspec.convert(_each(hook, "exec", "command"), list[str])
    only_sleeps = _SLEEPS.fullmatch(" ".join(command).strip())
    return float(only_sleeps[1]) if only_sleeps else None


class _ServiceItem(objects.Item):
    spec: dict[str, Any] = msgspec.field(default_factory=dict)

    def read(self) -> ServiceSelector:
        selector = msgspec.convert(self.spec.get("selector"), dict[str, str] | None) or {}
        meta = self.metadata
        return ServiceSelector(name=meta.name, labels=meta.labels or {}, selector=selector)


def _version(body: bytes) -> str:
    return msgspec.convert(_at(msgspec.json.decode(body), "gitVersion"), str)


def _stored_schema(body: bytes) -> Mapping[str, Any]:
    listed = _at(msgspec.json.decode(body), "spec", "versions")
    stored = None
    for version in msgspec.convert(listed, list[Any]):  # raises for None
        schema = msgspec.convert(_at(version, "schema", "openAPIV3Schema"), dict[str, Any])
        if msgspec.convert(_at(version, "storage"), bool) and stored is None:
            stored = schema
    if stored is None:
        raise ValueError("it stores no version")
    return stored


class _Allowed(msgspec.Struct):
    allowed: bool


class _Review(msgspec.Struct):
    status: _Allowed


_REVIEW = msgspec.json.Decoder(_Review)
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

    def schema(self) -> Source[Mapping[str, Any]]:
        what = "the CustomResourceDefinition"
        return self._calls.read_object(DEFINITION, _stored_schema, what, absent=CRD_MISSING)

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
        found = ahead(answer.date, begun, self._clock.now())
        if found is None:
            return unusable("the Kubernetes API answers without the time (Date)")
        return Complete(data=found)
