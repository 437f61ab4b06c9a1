"""Both embedded servers on loopback, with a kubeconfig that points at the one and a URL for the other.

For `demo`, `demo --serve` and the tests of the command line: whoever uses it speaks HTTP, as to the real ones.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import msgspec
import yaml

from eurekube_sync.embedded.eureka import EmbeddedEureka
from eurekube_sync.embedded.http import Handler, LoopbackServer, Request
from eurekube_sync.embedded.kubernetes import EmbeddedKubernetes

_PLURALS = {
    "Namespace": "api/v1/namespaces",
    "Node": "api/v1/nodes",
    "Service": "api/v1/services",
    "Pod": "api/v1/pods",
    "EurekaSyncer": "apis/eurekube.io/v1/eurekasyncers",
}

_LEASE_SECONDS = 86_400
"""Of a service of the data centre: nobody renews it here."""


class FolderError(OSError):
    """No folder can be written for the kubeconfig."""


class Playground:
    """A context manager around one server of each kind."""

    def __init__(self, kubernetes: EmbeddedKubernetes, eureka: EmbeddedEureka) -> None:
        self.kubernetes = kubernetes
        self.eureka = eureka
        self.kubernetes.call("POST", "/api/v1/nodes", {"metadata": {"name": "node-1"}})  # pods without one are skipped
        self._stack = ExitStack()
        self.calls: list[Request] = []
        """Every request that came over HTTP, in order."""

    def __enter__(self) -> Self:
        try:
            folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="eurekube-sync-")))
        except OSError as error:
            raise FolderError(error.errno, error.strerror) from error
        kubernetes = LoopbackServer(self._counted(self.kubernetes.handle))
        eureka = LoopbackServer(self._counted(self.eureka.handle))
        self.kubernetes_url = self._stack.enter_context(kubernetes).url
        self.eureka_url = self._stack.enter_context(eureka).url + "/eureka"
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(_kubeconfig(self.kubernetes_url)))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _counted(self, handler: Handler) -> Handler:
        def handle(request: Request) -> Any:
            self.calls.append(request)
            return handler(request)

        return handle

    def create(self, manifest: Mapping[str, Any]) -> None:
        """Creates an object; raises ValueError with the server's words when it is refused."""
        group = _PLURALS[manifest["kind"]]
        namespace = manifest["metadata"].get("namespace")
        self._expect("POST", _path(group, namespace), manifest)
        status = manifest.get("status")
        if status:
            name = manifest["metadata"]["name"]
            self._expect("PATCH", f"{_path(group, namespace)}/{name}/status", {"status": status})

    def delete(self, kind: str, namespace: str, name: str, *, grace_seconds: int | None = None) -> None:
        """Deletes an object; a pod with a grace period stays, terminating."""
        query = {} if grace_seconds is None else {"gracePeriodSeconds": str(grace_seconds)}
        self._expect("DELETE", f"{_path(_PLURALS[kind], namespace)}/{name}", None, **query)

    def change(self, kind: str, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        """Merges into an object."""
        self._expect("PATCH", f"{_path(_PLURALS[kind], namespace)}/{name}", patch)

    def create_pod(self, namespace: str, name: str, ip: str, labels: Mapping[str, str], port: int = 8080) -> None:
        """A pod that is ready at once, with a container port named `http`."""
        spec = {
            "nodeName": "node-1",
            "containers": [{"name": "app", "image": "app", "ports": [{"name": "http", "containerPort": port}]}],
        }
        metadata = {"namespace": namespace, "name": name, "labels": dict(labels)}
        ready = {"type": "Ready", "status": "True"}
        status = {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": [ready]}
        self.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})

    def set_ready(self, namespace: str, name: str, *, ready: bool) -> None:
        """Turns a pod ready or unready."""
        condition = {"type": "Ready", "status": str(ready)}
        self._expect(
            "PATCH", f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": {"conditions": [condition]}}
        )

    def register(self, app: str, id_: str, ip: str, port: int, *, status: str = "UP") -> None:
        """Registers an instance as a service of the data centre does for itself."""
        instance = {
            "instanceId": id_,
            "hostName": ip,
            "ipAddr": ip,
            "app": app,
            "vipAddress": app.lower(),
            "status": status,
            "port": {"$": port, "@enabled": "true"},
            "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": _LEASE_SECONDS},
            "dataCenterInfo": {"@class": "com.netflix.appinfo.MyDataCenterInfo", "name": "MyOwn"},
        }
        request = Request(
            method="POST",
            path=f"/eureka/apps/{app}",
            headers={"content-type": "application/json"},
            body=msgspec.json.encode({"instance": instance}),
        )
        response = self.eureka.handle(request)
        if response.status != 204:
            raise ValueError(response.body.decode())

    def instances(self, vip: str) -> list[tuple[str, str]]:
        """What a Spring client finds under a VIP now: `host:port` and status, sorted."""
        request = Request(method="GET", path=f"/eureka/apps/{vip.upper()}", headers={"accept": "application/json"})
        response = self.eureka.handle(request)
        found = msgspec.json.decode(response.body)["application"]["instance"] if response.status == 200 else []
        return sorted((f"{i['hostName']}:{i['port']['$']}", i["status"]) for i in found)

    def _expect(self, method: str, path: str, body: Any, **query: str) -> None:
        status, answer = self.kubernetes.call(method, path, body, **query)
        if status >= 300:
            raise ValueError(f"{method} {path}: {status} {answer}")


def _path(group: str, namespace: str | None) -> str:
    prefix, _, plural = group.rpartition("/")
    return f"/{prefix}/namespaces/{namespace}/{plural}" if namespace else f"/{group}"


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "embedded", "cluster": {"server": url}}],
        "users": [{"name": "embedded", "user": {}}],
        "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": "embedded"}}],
        "current-context": "embedded",
    }
