"""A cluster from the files of `--from`, read like an API server. A kind that no file has is
unknown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from eurekube_sync.adapters.kubernetes.calls import CORE, METADATA_ONLY
from eurekube_sync.adapters.kubernetes.connection import Answer, Call
from eurekube_sync.adapters.tries import AnswerTime
from eurekube_sync.model.errors import ClusterRejected

# Path and plural by kind; the group matters, because another one may have a kind of the same name
_PLACES = {
    "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "EurekaSyncer": ("/apis/eurekube.io/v1", "eurekasyncers"),
    "EndpointSlice": ("/apis/discovery.k8s.io/v1", "endpointslices"),
    "Endpoints": (CORE, "endpoints"),
    "Service": (CORE, "services"),
    "Pod": (CORE, "pods"),
    "Node": (CORE, "nodes"),
    "Namespace": (CORE, "namespaces"),
}


class DumpedConnection:
    server = "the files of --from"

    def __init__(self, objects: Sequence[Mapping[str, Any]]) -> None:
        self._objects = objects
        versions = {kind: re.sub("^/apis?/", "", prefix) for kind, (prefix, _) in _PLACES.items()}
        self._known = [one for one in objects if versions.get(one["kind"]) == one["apiVersion"]]

    @property
    def namespaces(self) -> frozenset[str] | None:
        """The namespaces in the files. None if there are none, so that the syncers are unknown, not
        absent."""
        found = (one["metadata"].get("namespace") for one in self._objects)
        return frozenset(name for name in found if isinstance(name, str) and name) or None

    def send(self, call: Call, within: AnswerTime) -> Answer:
        """Answer the GET of a list or of one object; raise ClusterRejected for anything else."""
        if call.method != "GET":
            raise ClusterRejected(f"{call}: files are only read")
        for kind, (prefix, plural) in _PLACES.items():
            if place := re.fullmatch(
                f"{prefix}(?:/namespaces/([^/]+))?/{plural}(?:/([^/]+))?", call.path
            ):
                body = (
                    self._one(kind, place[2])
                    if place[2]
                    else self._list(kind, plural, place[1], call)
                )
                return Answer(status=200, body=msgspec.json.encode(body))
        raise ClusterRejected(f"no file of --from has {call.path}")

    def renew(self, within: AnswerTime) -> None:
        """There are no credentials."""

    def _list(self, kind: str, plural: str, namespace: str | None, call: Call) -> Mapping[str, Any]:
        found = [one for one in self._known if one["kind"] == kind]
        if not found:
            raise ClusterRejected(
                f"no file of --from has any {kind}: add what kubectl get {plural} -A -o json writes"
            )
        items = [one for one in found if namespace in (None, one["metadata"].get("namespace"))]
        as_ = METADATA_ONLY if METADATA_ONLY in call.accept else f"{kind}List"
        return {"kind": as_, "metadata": {"resourceVersion": "1"}, "items": items}

    def _one(self, kind: str, name: str) -> Mapping[str, Any]:
        for one in self._known:
            if (one["kind"], one["metadata"]["name"]) == (kind, name):
                return one
        raise ClusterRejected(f"no file of --from has the {kind} {name}")
