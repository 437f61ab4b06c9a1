"""A program that decodes for the first time in two threads at once, in children of a process that
has decoded nothing.

msgspec builds what it keeps of a type at the type's first use. While it does, it calls functions of
Python, and there another thread may run, and meet a type that is built by half. A child stops one
thread at each of these calls in turn, and lets another thread decode to its end there. So the
result does not depend on luck.

It prints what the children of each case did, as JSON: `{"case": ["ready"], ...}`.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import msgspec

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.eureka import answers, replication, wire
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.connection import Answer, Call
from eurekube_sync.adapters.kubernetes.details import KubernetesDetails
from eurekube_sync.adapters.kubernetes.lock_store import LeaseObject
from eurekube_sync.adapters.tries import AnswerTime
from eurekube_sync.desired import import_spec, spec
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import EurekubeError
from eurekube_sync.model.imports import ImportObject, ImportService
from eurekube_sync.model.kubernetes import EventRecord, LockName, Right, SyncerObject, SyncerRef

Decoding: TypeAlias = Callable[[], object]

READY = "ready"  # nothing was built at the first use
BUILT = "built at its first use"
_MSGSPEC = Path(msgspec.__file__).parent
_BUILDING = str(_MSGSPEC / "_utils.py")  # what its C code calls while it builds a type
_META = {"name": "a", "namespace": "b", "uid": "0000000000000000", "resourceVersion": "1"}
_KINDS = {
    "eurekasyncers": "EurekaSyncerList",
    "eurekaimports": "EurekaImportList",
    "servicecidrs": "ServiceCIDRList",
    "services": "ServiceList",
    "endpointslices": "EndpointSliceList",
    "endpoints": "EndpointsList",
    "nodes": "NodeList",
    "pods": "PodList",
}


class _Connection:
    """A Kubernetes API with one object of each kind."""

    server = "https://kubernetes.test"

    def send(self, call: Call, within: AnswerTime) -> Answer:
        plural = call.path.rpartition("/")[2]
        kind = (
            "PartialObjectMetadataList"
            if "PartialObjectMetadata" in call.accept
            else _KINDS.get(plural)
        )
        if kind is not None and call.method == "GET":
            item = {"metadata": _META, "spec": {}, "status": {}}
            return _answer({"kind": kind, "metadata": {"resourceVersion": "1"}, "items": [item]})
        if call.method == "POST" and plural == "services":
            return _answer({"metadata": _META, "spec": {}}, status=201)
        if call.method == "POST" and plural == "events":
            return _answer({"kind": "Status", "message": "it exists"}, status=409)
        if plural == "forbidden":
            return _answer({"kind": "Status", "message": "you may not"}, status=403)
        return _answer({"metadata": _META, "spec": {}, "status": {"allowed": True}})

    def renew(self, within: AnswerTime) -> None: ...


def _answer(body: Any, status: int = 200) -> Answer:
    return Answer(status=status, body=json.dumps(body).encode())


def _syncer(raw: Any) -> SyncerObject:
    return SyncerObject(
        namespace="b", name="a", uid="u", generation=1, resource_version="1", created=0.0, spec=raw
    )


def _import(raw: Any) -> ImportObject:
    return ImportObject(
        namespace="b", name="a", uid="u", generation=1, resource_version="1", created=0.0, spec=raw
    )


def _cases() -> Mapping[str, Decoding]:
    """Return every place that decodes to a type of its own. Nothing is decoded here."""
    clock, chance, connection = SystemClock(), random.Random(0), _Connection()
    limit = TimeLimit(clock)
    cluster = KubernetesCluster(connection, clock=clock, random=chance, limit=limit)
    details = KubernetesDetails(connection, clock=clock, random=chance, limit=limit)
    lock = LeaseObject(connection, LockName(namespace="b", name="a"), clock=clock, random=chance)
    event = EventRecord(
        syncer=SyncerRef(namespace="b", name="a"),
        uid="u",
        reason="Held",
        message="m",
        warning=False,
        key="",
    )
    import_ = _import({"app": "a"})
    right = Right(verb="list", resource="pods")
    instance = b'{"instanceId":"i","app":"A","port":{"$":1},"leaseInfo":{"durationInSecs":90}}'
    malformed = b'{"instanceId":"i","app":"A","port":{"$":[]},"metadata":{}}'
    listed = b'{"applications":{"application":[{"name":"A","instance":[%s]}]}}'
    return {
        "eureka: list": lambda: wire.decode_list(listed % instance),
        "eureka: malformed": lambda: wire.decode_list(listed % malformed),
        "eureka: instance": lambda: wire.decode_instance(b'{"instance":%s}' % instance),
        "eureka: batch": lambda: replication.decode_answers(
            b'{"responseList":[{"statusCode":200}]}', items=1
        ),
        "eureka: refusal": lambda: answers.refusal(
            answers.Answer("POST", "http://e/eureka/apps/A", 400, {}, b'{"error":"odd"}'), None
        ),
        "kubernetes: identity": cluster.identity,
        "kubernetes: definition": cluster.crd_live,
        "kubernetes: syncers": lambda: cluster.list_syncers(None),
        "kubernetes: imports": lambda: cluster.imports.list_imports(None),
        "kubernetes: definition of imports": cluster.imports.import_crd_live,
        "kubernetes: finalizer of an import": lambda: cluster.imports.add_import_finalizer(import_),
        "kubernetes: service of an import": lambda: cluster.imports.create_service(
            ImportService(owner=import_, name="a", ports=())
        ),
        "kubernetes: networks of services": details.service_networks,
        "kubernetes: services": lambda: cluster.list_services(None),
        "kubernetes: slices": lambda: cluster.list_slices(None),
        "kubernetes: nodes": cluster.list_nodes,
        "kubernetes: pods": lambda: cluster.list_pods(None),
        "kubernetes: drained pods": lambda: cluster.list_pod_drains(None),
        "kubernetes: hosts": lambda: cluster.list_hosts(["b"]),
        "kubernetes: ingresses": lambda: cluster.list_ingresses(["b"]),
        "kubernetes: reference grants": lambda: cluster.list_reference_grants(["b"]),
        "kubernetes: routes": lambda: cluster.list_routes(["b"]),
        "kubernetes: gateways": lambda: cluster.list_gateways(["b"]),
        "kubernetes: readiness": lambda: cluster.list_readiness(["b"]),
        "kubernetes: namespaces": lambda: cluster.list_namespaces(None),
        "kubernetes: a namespace": lambda: cluster.list_namespaces(["a"]),
        "kubernetes: finalizer": lambda: cluster.add_finalizer(_syncer({})),
        "kubernetes: event": lambda: cluster.record_event(event, at=clock.now()),
        "kubernetes: lock": lock.read,
        "kubernetes: refusal": lambda: cluster.namespace_exists("forbidden"),
        "kubernetes: right": lambda: details.may(right, "b"),
        "kubernetes: pod in detail": lambda: details.list_pod_details("b"),
        "kubernetes: selectors": lambda: details.list_service_selectors("b"),
        "spec": lambda: spec.parse(_syncer({"selector": {"app": "a"}})),
        "spec of an import": lambda: import_spec.parse(import_),
        "spec of an import: invalid": lambda: import_spec.parse(_import({"service": 1})),
        "spec: invalid": lambda: spec.parse(_syncer({"selector": 1})),
    }


def outcomes(decoding: Decoding) -> list[str]:
    """Return what the children did, each result once. There is a child for each call in which a
    type is built."""
    found: dict[str, None] = {}
    stop_at = 1
    while True:
        child = os.fork()
        if child == 0:
            _decode_twice(decoding, stop_at)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == 0:
            return list(found) or [READY]
        found[BUILT if code == 1 else f"ended by {code}"] = None
        stop_at += 1


def _decode_twice(decoding: Decoding, stop_at: int) -> None:
    """Decode in one thread, and at its call number `stop_at` of msgspec's functions in another.
    Then end the process: with 0 if there were fewer calls."""
    calls, stopped, ended = 0, threading.Event(), threading.Event()

    def watch(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        caller = frame.f_back
        by_python = caller is not None and Path(caller.f_code.co_filename).parent == _MSGSPEC
        if event == "call" and frame.f_code.co_filename == _BUILDING and not by_python:
            calls += 1
            if calls == stop_at:
                stopped.set()
                ended.wait()

    def first() -> None:
        sys.setprofile(watch)
        with suppress(EurekubeError):
            decoding()
        stopped.set()

    def second() -> None:
        stopped.wait()
        with suppress(EurekubeError):
            decoding()
        ended.set()

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os._exit(int(calls >= stop_at))


if __name__ == "__main__":
    json.dump({name: outcomes(decoding) for name, decoding in _cases().items()}, sys.stdout)
