"""A Kubernetes API under test, called by our client: the embedded one and the real one."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from msgspec import Struct

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.connection import ClientConnection, ConnectionSettings
from eurekube_sync.embedded.http import LoopbackServer
from tests.contract.kubernetes_subject import CRDS, DEFINITIONS, SERVERS, SYNCERS, eventually
from tests.embedded.kubernetes import FullKubernetes

_numbers = itertools.count(1)
_SERVICE_CIDRS = "/apis/networking.k8s.io/v1/servicecidrs"
_FIRST_CIDR = {
    "metadata": {"name": "kubernetes"},
    "spec": {"cidrs": ["10.96.0.0/16", "fd00:10:96::/112"]},
}
"""A real API server makes it from its options."""


class Subject(Struct, frozen=True, kw_only=True):
    """A server, and how to reach it."""

    url: str
    token: str
    ca_file: str
    directory: Path

    def kubeconfig(self, *, token: str = "", user: dict[str, Any] | None = None) -> str:
        """A kubeconfig of one context, `test`."""
        cluster = {"server": self.url} | (
            {"certificate-authority": self.ca_file} if self.ca_file else {}
        )
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user or {"token": token or self.token}}],
            "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "test",
        }
        path = self.directory / f"kubeconfig-{next(_numbers)}"
        path.write_text(json.dumps(content))
        return str(path)

    def cluster(self, kubeconfig: str = "", **options: Any) -> KubernetesCluster:
        """Our client."""
        settings = ConnectionSettings(kubeconfig=kubeconfig or self.kubeconfig(), **options)
        return KubernetesCluster(
            ClientConnection(settings, {}), clock=SystemClock(), random=random.Random(1), tries=2
        )

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """A call as the administrator."""
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        answer = requests.request(
            method,
            f"{self.url}{path}",
            data=None if body is None else json.dumps(body),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": content},
            verify=self.ca_file or True,
            timeout=30,
        )
        return answer.status_code, answer.json() if "json" in answer.headers[
            "Content-Type"
        ] else answer.text


@pytest.fixture(scope="module", params=SERVERS)
def subject(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Subject]:
    directory = tmp_path_factory.mktemp("kubeconfigs")
    definitions = [yaml.safe_load(file.read_text()) for file in CRDS]
    if request.param == "embedded":
        server = FullKubernetes(time.time, tokens={"secret": "admin"}, definitions=definitions)
        server.call("POST", _SERVICE_CIDRS, _FIRST_CIDR)
        with LoopbackServer(server.handle) as loopback:
            yield Subject(url=loopback.url, token="secret", ca_file="", directory=directory)
    else:
        real = request.getfixturevalue("kubernetes_servers")
        found = Subject(
            url=real.url, token=real.admin_token, ca_file=str(real.ca_file), directory=directory
        )
        for definition in definitions:
            assert found.call("POST", DEFINITIONS, definition)[0] in (201, 409)
            path = f"{SYNCERS}/{definition['spec']['names']['plural']}"
            eventually(lambda path=path: found.call("GET", path)[0] == 200)  # type: ignore[misc]
        yield found
