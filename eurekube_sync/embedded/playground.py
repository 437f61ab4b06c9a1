"""Both embedded servers on loopback, with a kubeconfig for the one and a URL for the other.

`demo`, `demo --serve` and the tests of the command line call them over HTTP, as they would call
real servers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from eurekube_sync.embedded.eureka import EmbeddedEureka
from eurekube_sync.embedded.http import Handler, LoopbackServer
from eurekube_sync.embedded.kubernetes.server import EmbeddedKubernetes

_NODE = "node-1"
_KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: embedded, cluster: {{server: "{server}"}}}}]
users: [{{name: embedded, user: {{}}}}]
contexts: [{{name: embedded, context: {{cluster: embedded, user: embedded}}}}]
current-context: embedded
"""


class Playground:
    """A context manager that serves both. Raises OSError if it cannot write a folder for its
    kubeconfig."""

    def __init__(self, kubernetes: EmbeddedKubernetes, eureka: EmbeddedEureka) -> None:
        self.kubernetes = kubernetes
        self.eureka = eureka
        # Without its Node, a pod is no endpoint.
        self.kubernetes.call("POST", "/api/v1/nodes", {"metadata": {"name": _NODE}})
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        enter = self._stack.enter_context
        folder = Path(enter(tempfile.TemporaryDirectory(prefix="eurekube-sync-")))
        self.kubernetes_url = enter(self.served(self.kubernetes.handle)).url
        self.eureka_url = f"{enter(self.served(self.eureka.handle)).url}/eureka"
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(_KUBECONFIG.format(server=self.kubernetes_url))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def served(self, handler: Handler) -> LoopbackServer:
        """Make the server of a handler. The caller enters it."""
        return LoopbackServer(handler)

    def create(self, manifest: Mapping[str, Any]) -> None:
        """Create an object. Raises ValueError with the server's message if it refuses."""
        kind, metadata = manifest["kind"], manifest["metadata"]
        path = _path(kind, metadata.get("namespace"))
        self._expect("POST", path, manifest)
        if "status" in manifest:
            status = {"status": manifest["status"]}
            self._expect("PATCH", f"{path}/{metadata['name']}/status", status)

    def delete(self, kind: str, namespace: str, name: str) -> None:
        self._expect("DELETE", f"{_path(kind, namespace)}/{name}", None)

    def change(self, kind: str, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        """Apply a merge patch to an object."""
        self._expect("PATCH", f"{_path(kind, namespace)}/{name}", patch)

    def create_pod(self, namespace: str, name: str, ip: str, labels: Mapping[str, str]) -> None:
        """Create a ready pod with the container port 8080, named `http`."""
        ports = [{"name": "http", "containerPort": 8080}]
        container = {"name": "app", "image": "app", "ports": ports}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"namespace": namespace, "name": name, "labels": dict(labels)},
            "spec": {"nodeName": _NODE, "containers": [container]},
            "status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]},
        }
        self.create(pod)
        self.set_ready(namespace, name, ready=True)

    def set_ready(self, namespace: str, name: str, *, ready: bool) -> None:
        conditions = [{"type": "Ready", "status": str(ready)}]
        self.change("Pod", namespace, f"{name}/status", {"status": {"conditions": conditions}})

    def register(self, app: str, id_: str, ip: str, port: int) -> None:
        """Register an UP instance of the data centre. Nobody renews it here."""
        now = self.eureka.milliseconds()
        described = {
            "instanceId": id_,
            "hostName": ip,
            "app": app,
            "ipAddr": ip,
            "status": "UP",
            "port": {"$": port, "@enabled": "true"},
            "dataCenterInfo": {"@class": "com.netflix.appinfo.MyDataCenterInfo", "name": "MyOwn"},
            "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": 24 * 60 * 60},
            "vipAddress": app.lower(),
        }
        with self.eureka.lock:
            self.eureka.register(self.eureka.read(described, now), app, now)

    def instances(self, app: str) -> list[tuple[str, str]]:
        """Return `host:port` and status of each instance of an app, sorted, as a Spring client sees
        them."""
        seen: list[tuple[str, str]] = []
        for instance in self.eureka.registry.applications().get(app.upper(), []):
            address = f"{instance['hostName']}:{instance['port']['$']}"
            seen.append((address, instance["status"]))
        return sorted(seen)

    def endpoints(self, service: str) -> list[tuple[str, str]]:
        """Return `address:port` of each endpoint of a Service, sorted, as kube-proxy sees them."""
        _, listed = self.kubernetes.call("GET", "/apis/discovery.k8s.io/v1/endpointslices")
        seen: list[tuple[str, str]] = []
        for piece in listed["items"]:
            if piece["metadata"]["labels"]["kubernetes.io/service-name"] != service:
                continue
            for endpoint in piece["endpoints"]:
                address = f"{endpoint['addresses'][0]}:{piece['ports'][0]['port']}"
                seen.append((address, "UP" if endpoint["conditions"]["ready"] else "not ready"))
        return sorted(seen)

    def _expect(self, method: str, path: str, body: Any) -> None:
        status, answer = self.kubernetes.call(method, path, body)
        if status >= 300:
            raise ValueError(f"{method} {path}: {status} {answer}")


def _path(kind: str, namespace: str | None) -> str:
    group = "/apis/eurekube.io/v1" if kind.startswith("Eureka") else "/api/v1"
    folder = f"/namespaces/{namespace}" if namespace else ""
    return f"{group}{folder}/{kind.lower()}s"
