"""The demo's two servers with what only tests ask of them."""

from __future__ import annotations

import base64
import time
from typing import Self

import yaml

from eurekube_sync.embedded.http import Handler, LoopbackServer, Request, Response
from eurekube_sync.embedded.playground import Playground
from eurekube_sync.manifests.crd import load_crd
from eurekube_sync.manifests.validation import refusal
from tests import planted
from tests.embedded.eureka import FullEureka
from tests.embedded.kubernetes import FullKubernetes


class TestedPlayground(Playground):
    """Both servers on loopback."""

    kubernetes: FullKubernetes
    eureka: FullEureka

    def __init__(self, *, cache_seconds: float) -> None:
        super().__init__(
            FullKubernetes(time.time, definitions=[load_crd()], validate=refusal),
            FullEureka(time.time, response_cache_seconds=cache_seconds),
        )
        self.calls: list[Request] = []
        """Every request that came over HTTP, in order."""

    def __enter__(self) -> Self:
        super().__enter__()
        document = yaml.safe_load(self.kubeconfig.read_text())
        document["users"][0]["user"] = {"token": planted.KUBERNETES_TOKEN}
        key = base64.b64encode(planted.CLIENT_KEY.encode()).decode()
        document["users"].append({"name": "planted", "user": {"client-key-data": key}})
        self.kubeconfig.write_text(yaml.safe_dump(document))
        return self

    def delete(
        self, kind: str, namespace: str, name: str, *, grace_seconds: int | None = None
    ) -> None:
        """A pod with a grace period stays, terminating."""
        path = f"/api/v1/namespaces/{namespace}/{kind.lower()}s/{name}"
        if grace_seconds is None:
            super().delete(kind, namespace, name)
        else:
            status, answer = self.kubernetes.call(
                "DELETE", path, gracePeriodSeconds=str(grace_seconds)
            )
            assert status == 200, answer

    def served(self, handler: Handler) -> LoopbackServer:
        """Every call is searched for secrets, and kept."""

        def searched(request: Request) -> Response:
            planted.search_call(request)
            self.calls.append(request)
            return handler(request)

        return super().served(searched)
