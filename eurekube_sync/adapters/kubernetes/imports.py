"""The API's JSON of an EurekaImport, and the writes of its Service and EndpointSlices.

Each write names the version or the UID that it was made for, or creates. There is no server-side
apply, which would merge a port into a foreign Service without a conflict [real 1.36]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from eurekube_sync.adapters.kubernetes import calls, objects, syncers
from eurekube_sync.adapters.kubernetes.calls import CORE, DISCOVERY, Calls, Kind
from eurekube_sync.adapters.kubernetes.connection import Answer, Call
from eurekube_sync.adapters.kubernetes.custom import (
    GROUP,
    CustomKind,
    CustomObjects,
    crd_missing,
)
from eurekube_sync.adapters.no_answer import UNREADABLE
from eurekube_sync.model import imports as model
from eurekube_sync.model.errors import ClusterConflict, ClusterExists
from eurekube_sync.model.kubernetes import CrdAge, Service
from eurekube_sync.model.ports import Clock
from eurekube_sync.model.sources import Listed, Source
from eurekube_sync.model.text import rfc_3339

OF_IMPORT = "eurekube.io/import"  # the label of a Service and its slices: the import's name


_SERVICE = msgspec.json.Decoder(objects.ServiceItem)


class ImportItem(objects.Wire):
    metadata: syncers.WholeMeta
    # The spec is untyped, and the status is decoded apart, so that neither makes a list unreadable.
    spec: Any = None
    status: msgspec.Raw = msgspec.Raw(b"null")

    def read(self) -> model.ImportObject:
        """Return the import. If its spec is not an object, it is empty."""
        return model.ImportObject(**self.metadata.fields(self.spec), status=_status(self.status))


class _LeftOut(objects.Wire):
    reason: str
    instances: int


class _StatusItem(objects.Wire):
    observed_generation: int = 0
    conditions: list[syncers.ConditionItem] | None = None
    owner: str = ""
    syncer_class: str = ""
    ready: str = ""
    app: str = ""
    service: str = ""
    instances: int = 0
    left_out: list[_LeftOut] | None = None
    errors: list[str] | None = None
    unconfirmed_removal: str = ""
    unconfirmed_since: datetime | None = None
    eureka_unknown_since: datetime | None = None


_STATUS: msgspec.json.Decoder[_StatusItem | None] = msgspec.json.Decoder(_StatusItem | None)


def _status(raw: msgspec.Raw) -> model.ImportStatus | None:
    """Decode a status; None if it is unreadable: nothing is decided by it, and the pass writes it
    again."""
    try:
        item = _STATUS.decode(raw)
        if item is None:
            return None
        left_out = {entry.reason: entry.instances for entry in item.left_out or ()}
        return model.ImportStatus(
            observed_generation=item.observed_generation,
            conditions=tuple([condition.read() for condition in item.conditions or ()]),
            owner=item.owner,
            syncer_class=item.syncer_class,
            ready=item.ready,
            app=item.app,
            service=item.service,
            instances=item.instances,
            left_out=left_out,
            errors=tuple(item.errors or ()),
            unconfirmed_removal=item.unconfirmed_removal,
            unconfirmed_since=syncers.whole_seconds(item.unconfirmed_since),
            eureka_unknown_since=syncers.whole_seconds(item.eureka_unknown_since),
        )
    except UNREADABLE:
        return None


def status_fields(status: model.ImportStatus) -> dict[str, Any]:
    """Return a status for a merge patch. It has all our fields; null removes a field (RFC 7386).
    `leftOut` is a list, because a patch of a mapping would keep the reasons of before."""
    left_out = [
        {"reason": reason, "instances": number} for reason, number in status.left_out.items()
    ]
    return {
        "observedGeneration": status.observed_generation,
        "conditions": syncers.condition_fields(status.conditions) or None,
        "owner": status.owner or None,
        "syncerClass": status.syncer_class or None,
        "ready": status.ready or None,
        "app": status.app or None,
        "service": status.service or None,
        "instances": status.instances,
        "leftOut": left_out or None,
        "errors": list(status.errors) or None,
        "unconfirmedRemoval": status.unconfirmed_removal or None,
        "unconfirmedSince": _time(status.unconfirmed_since),
        "eurekaUnknownSince": _time(status.eureka_unknown_since),
    }


def _time(seconds: int | None) -> str | None:
    return None if seconds is None else rfc_3339(seconds)


IMPORTS = CustomKind(
    listed=Kind(
        GROUP,
        "eurekaimports",
        "EurekaImportList",
        msgspec.json.Decoder(ImportItem),
        crd_missing("eurekaimports"),
        remembered=True,
    ),
    noun="import",
    article="an EurekaImport",
    status_fields=status_fields,
)


class Imports:
    """`ImportWrites` on the Kubernetes API. Safe in several threads."""

    def __init__(self, calls_: Calls, clock: Clock) -> None:
        self._calls = calls_
        self._objects = CustomObjects(calls_, clock, IMPORTS)

    def list_imports(self, namespaces: Sequence[str] | None) -> Listed[model.ImportObject]:
        return self._objects.list_all(namespaces)

    def import_crd_live(self) -> Source[CrdAge]:
        return self._objects.crd_live()

    def create_service(self, service: model.ImportService) -> Service:
        call = calls.writing(
            "POST", f"{CORE}/namespaces/{service.owner.namespace}/services", _service(service)
        )
        answer = self._create(call, f"Service {service.owner.namespace}/{service.name}")
        return calls.decoded(call, answer, _SERVICE, "a Service").read()

    def write_service_ports(self, service: model.ImportService, *, resource_version: str) -> None:
        namespace = service.owner.namespace
        body = {
            "metadata": {"resourceVersion": resource_version},
            "spec": {"ports": _ports(service.ports)},
        }
        path = f"{CORE}/namespaces/{namespace}/services/{service.name}"
        self._patch(path, body, f"Service {namespace}/{service.name}")

    def create_slice(self, owner: model.ImportObject, wanted: model.ImportSlice) -> None:
        body = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": wanted.name,
                "labels": {**_labels(wanted.service), OF_IMPORT: owner.name},
                "ownerReferences": [_reference(owner)],
            },
            "addressType": wanted.address_type,
            **_content(wanted),
        }
        path = f"{DISCOVERY}/namespaces/{wanted.namespace}/endpointslices"
        self._create(calls.writing("POST", path, body), _called(wanted))

    def write_slice(self, wanted: model.ImportSlice) -> None:
        body = {
            "metadata": {
                # It is immutable, so another object of that name is not changed [real 1.36]
                "uid": wanted.uid,
                "resourceVersion": wanted.resource_version,
                "labels": _labels(wanted.service),
            },
            **_content(wanted),
        }
        self._patch(_slice_path(wanted), body, _called(wanted))

    def delete_slice(self, slice_: model.ImportSlice) -> None:
        preconditions = {"uid": slice_.uid, "resourceVersion": slice_.resource_version}
        call = calls.writing("DELETE", _slice_path(slice_), {"preconditions": preconditions})
        answer = self._calls.expect(call, 200, 202, 404, 409)
        if answer.status == 409:
            raise ClusterConflict(f"{_called(slice_)} changed; the next pass handles that")

    def add_import_finalizer(self, import_: model.ImportObject) -> model.ImportObject:
        return self._objects.add_finalizer(import_)

    def remove_import_finalizer(self, import_: model.ImportObject) -> None:
        self._objects.remove_finalizer(import_)

    def write_import_status(self, import_: model.ImportObject, status: model.ImportStatus) -> None:
        self._objects.write_status(import_, status)

    def _create(self, call: Call, called: str) -> Answer:
        answer = self._calls.send(call)
        if answer.status == 201:
            return answer
        if answer.status == 409 and calls.exists(answer):
            raise ClusterExists(f"{called} exists already; the next pass handles that")
        if answer.status == 409:  # as of a quota that others use at the same time
            raise ClusterConflict(f"{called} was not created: {calls.said(answer)}")
        if answer.status == 404 or calls.is_terminating(answer):
            raise ClusterConflict(f"{called} was not created, because its namespace is deleted")
        raise calls.refusal(call, answer)

    def _patch(self, path: str, body: Mapping[str, Any], called: str) -> None:
        call = calls.writing("PATCH", path, body, calls.MERGE_PATCH)
        answer = self._calls.send(call)
        if answer.status == 200:
            return
        if answer.status in (404, 409) or _is_another(answer):
            raise ClusterConflict(f"{called} changed or is gone; the next pass handles that")
        raise calls.refusal(call, answer)


def _is_another(answer: Answer) -> bool:
    """Say whether an object of that name, but with another UID, was refused a change."""
    return "metadata.uid" in calls.refused_fields(answer)


def _called(slice_: model.ImportSlice) -> str:
    return f"EndpointSlice {slice_.namespace}/{slice_.name}"


def _slice_path(slice_: model.ImportSlice) -> str:
    return f"{DISCOVERY}/namespaces/{slice_.namespace}/endpointslices/{slice_.name}"


def _reference(owner: model.ImportObject) -> dict[str, Any]:
    """Make a controller reference. `blockOwnerDeletion` would need one more right where the API
    guards owners, as on OpenShift [real 1.36]."""
    return {
        "apiVersion": "eurekube.io/v1",
        "kind": model.IMPORT,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }


def _service(service: model.ImportService) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "type": "ClusterIP",
        "ipFamilyPolicy": "SingleStack",
        "ports": _ports(service.ports),
    }
    if service.family is not None:
        spec["ipFamilies"] = [service.family]
    if service.headless:
        spec["clusterIP"] = "None"
    metadata = {
        "name": service.name,
        "labels": {OF_IMPORT: service.owner.name},
        "ownerReferences": [_reference(service.owner)],
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _labels(service: str) -> dict[str, str]:
    """Return the labels that say whose endpoints a slice has, and that no controller writes it."""
    return {objects.SERVICE_NAME: service, objects.MANAGED_BY: model.MANAGER}


def _content(slice_: model.ImportSlice) -> dict[str, Any]:
    endpoints = [
        {"addresses": [address], "conditions": {"ready": True}} for address in slice_.endpoints
    ]
    return {"endpoints": endpoints, "ports": _ports(slice_.ports)}


def _ports(ports: Sequence[model.ImportPort]) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = []
    for port in ports:
        named = {"name": port.name} if port.name else {}
        fields.append({**named, "port": port.port, "protocol": "TCP"})
    return fields
