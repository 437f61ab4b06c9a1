"""A connection to a living cluster in which some of our objects are as they would be after they
were applied. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol
from uuid import uuid4

import msgspec

from eurekube_sync.adapters.kubernetes.calls import Kind
from eurekube_sync.adapters.kubernetes.client import SYNCERS
from eurekube_sync.adapters.kubernetes.connection import Answer, Call, Connection
from eurekube_sync.adapters.kubernetes.imports import IMPORTS
from eurekube_sync.adapters.no_answer import UNREADABLE
from eurekube_sync.adapters.tries import AnswerTime
from eurekube_sync.model.errors import ClusterRejected
from eurekube_sync.model.imports import IMPORT
from eurekube_sync.model.ports import Clock
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import rfc_3339

_KINDS: Mapping[str, Kind[Any]] = {"EurekaSyncer": SYNCERS.listed, IMPORT: IMPORTS.listed}


class Planned(Protocol):
    """An object of ours as it would be applied."""

    @property
    def kind(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def annotations(self) -> Mapping[str, str]: ...
    @property
    def spec(self) -> Mapping[str, Any]: ...


class PlannedConnection:
    """Answers lists of our objects with the planned ones in their place. An error stays an error."""

    def __init__(self, connection: Connection, planned: Iterable[Planned], clock: Clock) -> None:
        self._connection = connection
        self._created = rfc_3339(clock.now())
        self._planned: dict[str, list[Planned]] = {}
        """By the path of each list that has the object."""
        for thing in planned:
            kind = _KINDS[thing.kind]
            for path in (kind.path(None), kind.path(thing.namespace)):
                self._planned.setdefault(path, []).append(thing)
        self._listed: dict[str, set[tuple[str, str]]] = {}  # by path: what the pages had so far

    @property
    def server(self) -> str:
        return self._connection.server

    def renew(self, within: AnswerTime) -> None:
        self._connection.renew(within)

    def send(self, call: Call, within: AnswerTime) -> Answer:
        """Raises ClusterRejected for a call that could write an object that does not exist."""
        if call.method not in ("GET", "POST"):  # a POST asks for rights
            raise ClusterRejected(f"{call}: a plan writes nothing")
        answer = self._connection.send(call, within)
        planned = self._planned.get(call.path, ())
        if call.method != "GET" or answer.status != 200 or not planned:
            return answer
        try:
            page = msgspec.json.decode(answer.body)
            items, more = page["items"] or [], page.get("metadata", {}).get("continue")
            by_name = {(thing.namespace, thing.name): thing for thing in planned}
            if "continue" not in call.query:
                self._listed[call.path] = set()
            listed = self._listed.setdefault(call.path, set())
            page["items"] = []
            for item in items:
                name = item["metadata"]["namespace"], item["metadata"]["name"]
                listed.add(name)
                page["items"].append(_applied(item, by_name.get(name)))
        except (*UNREADABLE, KeyError, TypeError, AttributeError):
            return answer  # which is no list, and is read as such
        if not more:
            for name, thing in by_name.items():
                if name not in listed:
                    page["items"].append(self._new(thing))
        return replace(answer, body=msgspec.json.encode(page))

    def _new(self, thing: Planned) -> Mapping[str, Any]:
        """Return what the API server would make of a new object."""
        metadata = {
            "namespace": thing.namespace,
            "name": thing.name,
            "uid": str(uuid4()),
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": self._created,
            "labels": thing.labels,
            "annotations": thing.annotations,
        }
        return {"metadata": metadata, "spec": thing.spec}


def _applied(item: Mapping[str, Any], thing: Planned | None) -> Mapping[str, Any]:
    """Return a stored object with the planned spec, labels and annotations. The rest stays, such as
    its UID, its age, its status and its deletion."""
    if thing is None:
        return item
    metadata = {**item["metadata"], "labels": thing.labels, "annotations": thing.annotations}
    if item.get("spec") != thing.spec:
        metadata["generation"] = metadata.get("generation", 0) + 1
    return {**item, "metadata": metadata, "spec": thing.spec}
