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
    r"(?:(?:/bin/)?(?:ba|da|a)?sh -c )?(?:/bin/|/usr/bin/)?sleep (\d+(?:\.\d+)?)s?;?"
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
        meta, containers = self.metadata, _each(self.spec, "containers")
        owner = next((one for one in meta.owner_references or () if one.get("controller")), None)
        waiting = [
            (one, _at(one, "state", "waiting", "reason"))
            for one in _each(self.status, "containerStatuses")
        ]
        hooks = [_at(one, "lifecycle", "preStop") for one in containers]
        grace = _at(self.spec, "terminationGracePeriodSeconds")
        found = {
            "name": meta.name,
            "uid": meta.uid,
            "labels": meta.labels or {},
            "addresses": [one["ip"] for one in _each(self.status, "podIPs") if _at(one, "ip")],
            "node": _at(self.spec, "nodeName") or "",
            "phase": _at(self.status, "phase") or "",
            "terminating": meta.deletion_timestamp is not None,
            "conditions": [_condition(one) for one in _each(self.status, "conditions")],
            "waiting": [
                excerpt(f"{one.get('name')}: {reason}", most=_LONGEST)
                for one, reason in waiting
                if reason
            ],
            "controller": f"{owner.get('kind')} {owner.get('name')}" if owner else "",
            "containers": [_at(one, "name") for one in containers],
            "grace": 30.0 if grace is None else grace,
            "pre_stops": [_sleep(hook) for hook in hooks if hook],
        }
        return msgspec.convert(found, _POD_DETAIL.type)


def _condition(one: Any) -> Mapping[str, Any]:
    since = _at(one, "lastTransitionTime")
    said = {name: msgspec.convert(_at(one, name) or "", str) for name in ("reason", "message")}
    return {
        "type": _at(one, "type"),
        "true": _at(one, "status") == "True",
        "since": objects.seconds(msgspec.convert(since, datetime)) if since else None,
        **{name: excerpt(text, most=_LONGEST) for name, text in said.items()},
    }


def _sleep(hook: Any) -> float | None:
    """Return the seconds of a `preStop` hook that only sleeps; None for any other hook."""
    if (sleep := _at(hook, "sleep")) is not None:
        return msgspec.convert(_at(sleep, "seconds") or 0, float)
    command = msgspec.convert(_each(hook, "exec", "command"), list[str])
    found = _SLEEPS.fullmatch(" ".join(command).strip())
    return float(found[1]) if found else None


class _ServiceItem(objects.Item):
    spec: dict[str, Any] = msgspec.field(default_factory=dict)

    def read(self) -> ServiceSelector:
        selector = msgspec.convert(self.spec.get("selector"), dict[str, str] | None) or {}
        return ServiceSelector(
            name=self.metadata.name, labels=self.metadata.labels or {}, selector=selector
        )


def _version(body: bytes) -> str:
    return msgspec.convert(_at(msgspec.json.decode(body), "gitVersion"), str)


def _stored_schema(body: bytes) -> Mapping[str, Any]:
    versions = msgspec.convert(
        _at(msgspec.json.decode(body), "spec", "versions"), list[Any]
    )  # raises for None
    schemas = [
        msgspec.convert(_at(one, "schema", "openAPIV3Schema"), dict[str, Any]) for one in versions
    ]
    stored = [msgspec.convert(_at(one, "storage"), bool) for one in versions]
    if True not in stored:
        raise ValueError("it stores no version")
    return schemas[stored.index(True)]


class _Allowed(msgspec.Struct):
    allowed: bool


class _Review(msgspec.Struct):
    status: _Allowed


_REVIEW = msgspec.json.Decoder(_Review)
_PODS = Kind(CORE, "pods", "PodList", msgspec.json.Decoder(PodItem))
_SERVICES = Kind(CORE, "services", "ServiceList", msgspec.json.Decoder(_ServiceItem))


class KubernetesDetails:
    def __init__(
        self, connection: Connection, *, clock: Clock, random: Random, limit: TimeLimit
    ) -> None:
        self._clock = clock
        self._calls = Calls(connection, Tries(clock, random, limit, answer_seconds=60.0, most=2))

    def list_pod_details(self, namespace: str) -> Source[tuple[PodDetail, ...]]:
        return self._calls.list_all(_PODS, [namespace]).of(namespace)

    def list_service_selectors(self, namespace: str) -> Source[tuple[ServiceSelector, ...]]:
        return self._calls.list_all(_SERVICES, [namespace]).of(namespace)

    def server(self) -> Source[str]:
        absent = unusable("the Kubernetes API does not say its version (404)")
        return self._calls.read_object(
            "/version", _version, "the version of the Kubernetes API", absent=absent
        )

    def schema(self) -> Source[Mapping[str, Any]]:
        return self._calls.read_object(
            DEFINITION, _stored_schema, "the CustomResourceDefinition", absent=CRD_MISSING
        )

    def may(self, right: Right, namespace: str) -> Source[bool]:
        """Ask by a SelfSubjectAccessReview, a POST that stores nothing."""
        resource, _, subresource = right.resource.partition("/")
        asked = {
            "verb": right.verb,
            "group": right.group,
            "resource": resource,
            "namespace": namespace,
        }
        asked |= {"subresource": subresource} if subresource else {}
        asked |= {"name": right.name} if right.name else {}
        head = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
        review = {**head, "spec": {"resourceAttributes": asked}}
        call = writing("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        try:
            answer = self._calls.expect(call, 200, 201)
            return Complete(
                data=decoded(call, answer, _REVIEW, "a SelfSubjectAccessReview").status.allowed
            )
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
