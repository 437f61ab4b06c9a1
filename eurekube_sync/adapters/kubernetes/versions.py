"""`KubernetesVersions`: the `Installable` port. Which version a cluster has, which schema its CRD, what we may do
there, and what time it is there: for a person who asks. Nothing raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from eurekube_sync.adapters.clock import ahead
from eurekube_sync.adapters.kubernetes.calls import Calls, refusal
from eurekube_sync.adapters.kubernetes.client import CRD_MISSING, DEFINITION
from eurekube_sync.adapters.kubernetes.connection import Call, Connection
from eurekube_sync.adapters.kubernetes.walks import read_object, read_one
from eurekube_sync.adapters.no_answer import UNREADABLE
from eurekube_sync.adapters.tries import Tries
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.details import Right
from eurekube_sync.model.errors import ClusterError, unknown_from
from eurekube_sync.model.ports import Clock, Random
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown


class _Version(msgspec.Struct, rename="camel"):
    git_version: str


class _Schema(msgspec.Struct):
    openAPIV3Schema: dict[str, Any]


class _DefinitionVersion(msgspec.Struct):
    storage: bool
    schema: _Schema


class _Spec(msgspec.Struct):
    versions: list[_DefinitionVersion]


class _Definition(msgspec.Struct):
    spec: _Spec


class _ReviewStatus(msgspec.Struct):
    allowed: bool


class _Review(msgspec.Struct):
    status: _ReviewStatus


class KubernetesVersions:
    """Single calls, each tried twice at most."""

    def __init__(self, connection: Connection, *, clock: Clock, random: Random, limit: TimeLimit) -> None:
        self._clock = clock
        self._calls = Calls(connection, Tries(clock=clock, random=random, limit=limit, answer_seconds=10.0, most=2))

    def server(self) -> Source[str]:
        """Such as `v1.36.0`."""
        found = read_object(self._calls, "/version", _Version, "the version of the Kubernetes API")
        if found is None:
            return Unknown(cause=Cause.UNUSABLE, message="the Kubernetes API does not say its version (404)")
        return found if isinstance(found, Unknown) else Complete(data=found.git_version)

    def schema(self) -> Source[Mapping[str, Any]]:
        """The schema of the stored version of the CRD; Unknown(CRD_MISSING) where there is none."""
        found = read_object(self._calls, DEFINITION, _Definition, "the CustomResourceDefinition")
        if found is None:
            return CRD_MISSING
        if isinstance(found, Unknown):
            return found
        stored = [one.schema.openAPIV3Schema for one in found.spec.versions if one.storage]
        return Complete(data=stored[0] if stored else {})

    def may(self, right: Right, namespace: str) -> Source[bool]:
        """By a SelfSubjectAccessReview, which is a POST and stores nothing."""
        resource, _, subresource = right.resource.partition("/")
        asked = {"verb": right.verb, "group": right.group, "resource": resource, "namespace": namespace}
        asked |= {"subresource": subresource} if subresource else {}
        asked |= {"name": right.name} if right.name else {}
        head = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
        body = msgspec.json.encode({**head, "spec": {"resourceAttributes": asked}})
        call = Call(method="POST", path="/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=body)
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
        answer = read_one(self._calls, Call(method="GET", path="/version"))
        if isinstance(answer, Unknown):
            return answer
        found = ahead(answer.date, begun, self._clock.now())
        if found is None:
            return Unknown(cause=Cause.UNUSABLE, message="the Kubernetes API answers without the time (Date)")
        return Complete(data=found)
