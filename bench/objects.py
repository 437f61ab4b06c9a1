"""What the benchmark puts into a Kubernetes API: syncers of ten pods each, their Services and
EndpointSlices.

Writes over plain HTTP to any Kubernetes API. The slices are written here and not by a controller,
and there are no Pod objects: what a pass reads of a cluster whose lists succeed is the same.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import requests

from eurekube_sync.manifests.crd import load_crds

PODS = 10
"""Instances of one syncer."""
_SYNCERS_IN_A_NAMESPACE = 10
_WRITERS = 12
_CALLERS = "callers"
_OF_IMPORTS = {
    "imports": f"/apis/eurekube.io/v1/namespaces/{_CALLERS}/eurekaimports",
    "Services": f"/api/v1/namespaces/{_CALLERS}/services",
    "slices": f"/apis/discovery.k8s.io/v1/namespaces/{_CALLERS}/endpointslices",
}
"""What imports have, all in one namespace, which has nothing else."""
Json = dict[str, Any]


class Objects:
    """The objects of `instances` instances in one API."""

    def __init__(
        self, url: str, instances: int, *, token: str = "", ca_file: Path | None = None
    ) -> None:
        """`ca_file` None: the API is served without TLS."""
        self.instances = instances
        self._url = url
        self._token = token
        self._verify: str | bool = str(ca_file) if ca_file else True
        self._session = threading.local()
        self._generation = [0] * (instances // PODS)

    def create(self) -> None:
        """The CRDs, and all objects."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for definition in load_crds():
            self._send("POST", path, dict(definition), known=True)
        numbers = range(self.instances // PODS)
        self._each(self._create_namespace, range((len(numbers) - 1) // _SYNCERS_IN_A_NAMESPACE + 1))
        self._each(self._create_app, numbers)

    def replace_half(self) -> None:
        """Every other pod of each app becomes another one, at another address."""

        def replace(number: int) -> None:
            self._generation[number] += 1
            self._send("PUT", f"{_slices(number)}/app-{number}-x", self._slice(number))

        self._each(replace, range(self.instances // PODS))

    def delete_syncers(self) -> None:
        """As a person who deletes them all: they stay until their finalizers are removed."""
        self._each(
            lambda number: self._send("DELETE", f"{_syncers(number)}/app-{number}"), self._numbers
        )

    def create_syncers(self) -> None:
        """All of them anew."""
        self._each(self._create_syncer, self._numbers)

    def forget_syncers(self) -> None:
        """As before anybody wrote to them: without finalizer and status."""

        def forget(number: int) -> None:
            path = f"{_syncers(number)}/app-{number}"
            self._send("PATCH", path, {"metadata": {"finalizers": None}})
            self._send("PATCH", f"{path}/status", {"status": None})

        self._each(forget, self._numbers)

    def create_imports(self, apps: Sequence[str]) -> None:
        """An import of each of these apps, in a namespace of their own."""
        self._send("POST", "/api/v1/namespaces", {"metadata": {"name": _CALLERS}})

        def create(app: str) -> None:
            body = {
                "apiVersion": "eurekube.io/v1",
                "kind": "EurekaImport",
                "metadata": {"name": app},
                "spec": {"app": app},
            }
            self._send("POST", _OF_IMPORTS["imports"], body)

        self._each(create, apps)

    def import_versions(self) -> dict[tuple[str, str], str]:
        """The resource version of each import, and of each Service and slice of one, by kind and
        name."""
        versions = {}
        for kind, path in _OF_IMPORTS.items():
            for item in self._send("GET", path)["items"]:
                metadata = item["metadata"]
                versions[kind, metadata["name"]] = metadata["resourceVersion"]
        return versions

    def left(self) -> int:
        """How many syncers there are."""
        return len(self._send("GET", "/apis/eurekube.io/v1/eurekasyncers")["items"])

    @property
    def _numbers(self) -> Sequence[int]:
        return range(self.instances // PODS)

    def _create_namespace(self, number: int) -> None:
        self._send("POST", "/api/v1/namespaces", {"metadata": {"name": f"team-{number}"}})

    def _create_app(self, number: int) -> None:
        labels = {"app": f"app-{number}"}
        ports = [{"name": "http", "port": 80, "targetPort": 8080}]
        service = {"metadata": {"name": f"app-{number}", "labels": labels}}
        self._send(
            "POST",
            f"/api/v1/namespaces/{_namespace(number)}/services",
            service | {"spec": {"ports": ports, "selector": labels}},
        )
        self._send("POST", _slices(number), self._slice(number))
        self._create_syncer(number)

    def _create_syncer(self, number: int) -> None:
        syncer = {
            "apiVersion": "eurekube.io/v1",
            "kind": "EurekaSyncer",
            "metadata": {"name": f"app-{number}"},
            "spec": {"selector": {"app": f"app-{number}"}},
        }
        self._send("POST", _syncers(number), syncer)

    def _slice(self, number: int) -> Json:
        name = f"app-{number}"
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": f"{name}-x",
                "labels": {"app": name, "kubernetes.io/service-name": name},
            },
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            "endpoints": [_endpoint(number, pod, self._generation[number]) for pod in range(PODS)],
        }

    def _each(self, call: Any, items: Iterable[Any]) -> None:
        with ThreadPoolExecutor(_WRITERS) as pool:
            list(pool.map(call, items))

    def _send(
        self, method: str, path: str, body: Json | None = None, *, known: bool = False
    ) -> Json:
        if not hasattr(self._session, "open"):
            self._session.open = requests.Session()
            self._session.open.trust_env = False
            self._session.open.verify = self._verify
            if self._token:
                self._session.open.headers["Authorization"] = f"Bearer {self._token}"
        answer = self._session.open.request(
            method,
            self._url + path,
            data=None if body is None else json.dumps(body),
            headers={
                "Content-Type": f"application/{'merge-patch+' if method == 'PATCH' else ''}json"
            },
            timeout=120,
        )
        if not answer.ok and not (known and answer.status_code == 409):
            raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.text[:300]}")
        found: Json = answer.json()
        return found


def _endpoint(number: int, pod: int, generation: int) -> Json:
    """Odd pods are those that are replaced; each generation has addresses of its own."""
    born = generation if pod % 2 else 0
    name = f"app-{number}-{pod}-{born}"
    return {
        "addresses": [f"10.{number // 250}.{number % 250}.{pod + 1 + PODS * born}"],
        "conditions": {"ready": True, "serving": True, "terminating": False},
        "nodeName": f"node-{pod}",
        "zone": "zone-a",
        "targetRef": {
            "kind": "Pod",
            "namespace": _namespace(number),
            "name": name,
            "uid": f"{number:08x}-{pod:04x}-4000-8000-{born:012x}",
        },
    }


def _namespace(number: int) -> str:
    return f"team-{number // _SYNCERS_IN_A_NAMESPACE}"


def _slices(number: int) -> str:
    return f"/apis/discovery.k8s.io/v1/namespaces/{_namespace(number)}/endpointslices"


def _syncers(number: int) -> str:
    return f"/apis/eurekube.io/v1/namespaces/{_namespace(number)}/eurekasyncers"
