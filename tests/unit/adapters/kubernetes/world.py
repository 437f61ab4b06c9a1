"""A small world for tests of the Kubernetes adapter: an embedded API, a counting clock, and faults
on demand."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.model.kubernetes import SyncerObject
from tests.embedded.kubernetes import FullKubernetes
from tests.in_process.kubernetes import InProcessConnection
from tests.unit.worlds.clock import Clock

DEFINITION: Any = yaml.safe_load(
    (Path(__file__).parents[4] / "crds" / "eurekasyncer.yaml").read_text()
)
START = 1_767_323_045.0  # 2026-01-02T03:04:05Z
SYNCERS = "/apis/eurekube.io/v1/namespaces/shop/eurekasyncers"

Fault = Callable[[Request, int], Response | None]
"""It gets a request and its number from 1. It returns another answer, or None to let the request
pass. It may raise."""


class Half:
    """A random source that always gives the middle."""

    def random(self) -> float:
        return 0.5


class World:
    """An API server and our client of it."""

    def __init__(self, without: Sequence[str] = (), **options: Any) -> None:
        """`without` is the path of a field that the CRD's schema of the status lacks."""
        self.clock = Clock(START)
        definition = deepcopy(DEFINITION)
        if without:
            schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            within = schema["properties"]["status"]["properties"]
            for name in without[:-1]:
                within = within[name]
            del within[without[-1]]
        self.server = FullKubernetes(self.clock.now, definitions=[definition], **options)
        self.requests: list[Request] = []
        self.fault: Fault = lambda request, number: None
        token = next(iter(options.get("tokens") or {}), "")
        self.connection = InProcessConnection(self.handle, token=token)
        self.cluster = KubernetesCluster(self.connection, clock=self.clock, random=Half())
        self.make("/api/v1/namespaces", {"metadata": {"name": "shop"}})

    def handle(self, request: Request) -> Response:
        self.requests.append(request)
        instead = self.fault(request, len(self.requests))
        return self.server.handle(request) if instead is None else instead

    def make(self, path: str, body: Any) -> Any:
        status, made = self.server.call("POST", path, body)
        assert status == 201, made
        return made

    def patch(self, path: str, body: Any) -> Any:
        status, patched = self.server.call("PATCH", path, body)
        assert status == 200, patched
        return patched

    def make_service(self, name: str, namespace: str = "shop") -> None:
        spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}
        self.make(
            f"/api/v1/namespaces/{namespace}/services", {"metadata": {"name": name}, "spec": spec}
        )

    def make_syncer(self, name: str = "rating", **metadata: Any) -> SyncerObject:
        head = {
            "apiVersion": "eurekube.io/v1",
            "kind": "EurekaSyncer",
            "metadata": {"name": name, **metadata},
        }
        self.make(SYNCERS, {**head, "spec": {"selector": {"app": name}}})
        return self.read(name)

    def read(self, name: str = "rating") -> SyncerObject:
        listed = self.cluster.list_syncers(["shop"]).of("shop")
        return next(syncer for syncer in listed.data if syncer.name == name)  # type: ignore[union-attr]

    def methods(self, since: int = 0) -> list[str]:
        return [request.method for request in self.requests[since:]]


def answer(status: int, body: Any = None, **headers: str) -> Response:
    """A response with a JSON body, or with this text."""
    raw = body.encode() if isinstance(body, str) else json.dumps(body or {}).encode()
    return Response(
        status=status,
        body=raw,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )
