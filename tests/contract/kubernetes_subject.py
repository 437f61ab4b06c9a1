"""A Kubernetes API under test: the embedded one and the real one behind one interface."""

from __future__ import annotations

import base64
import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from eurekube_sync.embedded.http import LoopbackServer
from tests.embedded.kubernetes import FullKubernetes

SERVERS = ["embedded", pytest.param("real", marks=pytest.mark.servers)]
CRDS = sorted((Path(__file__).parents[2] / "crds").glob("*.yaml"))
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
CORE, SLICES, SYNCERS = "/api/v1", "/apis/discovery.k8s.io/v1", "/apis/eurekube.io/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

Json = dict[str, Any]
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesSubject:
    """A server under test, called as its administrator."""

    url: str
    token: str
    verify: str | bool
    session: requests.Session
    expired: Callable[[str], str]
    """Makes a `continue` token expire, and returns it as it is then."""

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content: str = "application/json",
        accept: str = "",
        **query: Any,
    ) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content}
        if accept:
            headers["Accept"] = accept
        data = None if body is None else json.dumps(body)
        url = f"{self.url}{path}"
        return self.session.request(
            method, url, data=data, headers=headers, params=query, verify=self.verify, timeout=30
        )

    def get(self, path: str, **query: Any) -> Json:
        answer = self.call("GET", path, **query)
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    def post(self, path: str, body: Json, **query: Any) -> Json:
        answer = self.call("POST", path, body, **query)
        assert answer.status_code == 201, answer.text
        created: Json = answer.json()
        return created

    def patch(self, path: str, body: Any, content: str = MERGE) -> Json:
        answer = self.call("PATCH", path, body, content=content)
        assert answer.status_code == 200, answer.text
        patched: Json = answer.json()
        return patched


def eventually(probe: Callable[[], bool], seconds: float = 180.0) -> None:
    """Wait until `probe` holds: a real server's controllers take their time."""
    deadline = time.monotonic() + seconds
    while not probe():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def install(subject: KubernetesSubject, definition: Json, path: str) -> None:
    answer = subject.call("POST", DEFINITIONS, definition)
    assert answer.status_code in (201, 409), answer.text
    eventually(lambda: subject.call("GET", path).status_code == 200)


def _expiring(embedded: FullKubernetes) -> Callable[[str], str]:
    def expired(token: str) -> str:
        embedded.expire_continue_tokens()
        return token

    return expired


def _compacting(etcd: str) -> Callable[[str], str]:
    """The real one forgets a revision when etcd is compacted, which it asks for each five
    minutes."""

    def expired(token: str) -> str:
        fields = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        answer = requests.post(
            f"{etcd}/v3/kv/compaction", json={"revision": str(fields["rv"])}, timeout=60
        )
        assert answer.ok, answer.text
        fields["rv"] = (
            # Before the API server's own cache of our CRD began: its snapshots outlive a compaction
            2
        )
        return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")

    return expired


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[KubernetesSubject]:
    """A server with our CustomResourceDefinitions."""
    with requests.Session() as session:
        if request.param == "embedded":
            embedded = FullKubernetes(
                time.time, tokens={"secret": "admin"}, families=("IPv4", "IPv6")
            )
            with LoopbackServer(embedded.handle) as loopback:
                subject = KubernetesSubject(
                    url=loopback.url,
                    token="secret",
                    verify=True,
                    session=session,
                    expired=_expiring(embedded),
                )
                _install_ours(subject)
                yield subject
        else:
            real = request.getfixturevalue("kubernetes_servers")
            subject = KubernetesSubject(
                url=real.url,
                token=real.admin_token,
                verify=str(real.ca_file),
                session=session,
                expired=_compacting(real.etcd.url),
            )
            _install_ours(subject)
            yield subject


def _install_ours(subject: KubernetesSubject) -> None:
    for file in CRDS:
        definition = yaml.safe_load(file.read_text())
        install(subject, definition, f"{SYNCERS}/{definition['spec']['names']['plural']}")


@pytest.fixture
def namespace(server: KubernetesSubject) -> str:
    """A new namespace."""
    name = f"contract-{next(_numbers)}"
    server.post(f"{CORE}/namespaces", {"metadata": {"name": name}})
    return name


@pytest.fixture
def node(server: KubernetesSubject) -> Iterator[str]:
    """A new node in zone-a."""
    name = f"node-{next(_numbers)}"
    server.post(
        f"{CORE}/nodes",
        {"metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": "zone-a"}}},
    )
    yield name
    server.call("DELETE", f"{CORE}/nodes/{name}")


def syncers(namespace: str, name: str = "", sub: str = "") -> str:
    return "/".join(
        part for part in (f"{SYNCERS}/namespaces/{namespace}/eurekasyncers", name, sub) if part
    )


def services(namespace: str, name: str = "") -> str:
    return "/".join(part for part in (f"{CORE}/namespaces/{namespace}/services", name) if part)


def pods(namespace: str, name: str = "", sub: str = "") -> str:
    return "/".join(part for part in (f"{CORE}/namespaces/{namespace}/pods", name, sub) if part)


def slices(namespace: str, name: str = "") -> str:
    return "/".join(
        part for part in (f"{SLICES}/namespaces/{namespace}/endpointslices", name) if part
    )


def syncer(name: str = "rating", **metadata: Any) -> Json:
    head = {"apiVersion": "eurekube.io/v1", "kind": "EurekaSyncer"}
    return {
        **head,
        "metadata": {"name": name, **metadata},
        "spec": {"mode": "pod", "selector": {"app": "rating"}},
    }


def service(name: str = "rating", labels: Json | None = None, **spec: Any) -> Json:
    body: Json = {
        "selector": {"app": "rating"},
        "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
        **spec,
    }
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {k: v for k, v in body.items() if v is not None},
    }


def create_pod(
    server: KubernetesSubject, namespace: str, name: str, node: str, ip: str, *, ready: bool = True
) -> Json:
    container = {
        "name": "app",
        "image": "example.invalid/app",
        "ports": [{"name": "web", "containerPort": 8080}],
    }
    server.post(
        pods(namespace),
        {
            "metadata": {"name": name, "labels": {"app": "rating"}},
            "spec": {"nodeName": node, "containers": [container]},
        },
    )
    return set_pod_status(server, namespace, name, ip, ready=ready)


def set_pod_status(
    server: KubernetesSubject, namespace: str, name: str, ip: str, *, ready: bool
) -> Json:
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    status = {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": [condition]}
    return server.patch(pods(namespace, name, "status"), {"status": status})


def endpoints(server: KubernetesSubject, namespace: str, name: str = "rating") -> list[Json]:
    found = server.get(slices(namespace), labelSelector=f"kubernetes.io/service-name={name}")[
        "items"
    ]
    return [endpoint for each in found for endpoint in each["endpoints"] or []]


def conditions(server: KubernetesSubject, namespace: str) -> list[tuple[bool, bool, bool]]:
    return [
        (
            each["conditions"]["ready"],
            each["conditions"]["serving"],
            each["conditions"]["terminating"],
        )
        for each in endpoints(server, namespace)
    ]


def names(answer: Json) -> list[str]:
    return [item["metadata"]["name"] for item in answer["items"]]
