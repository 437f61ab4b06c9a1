"""The files in docs/examples, each run against a cluster with the Services that it selects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.desired.claims import Serving
from eurekube_sync.manifests.crd import KIND, load_crd
from tests.cases.fields import look
from tests.embedded.kubernetes import FullKubernetes
from tests.in_process.kubernetes import InProcessConnection
from tests.unit.fields.test_fields import NOW, Clock, Half

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
SYNCERS = [
    (file.stem, document)
    for file in sorted(EXAMPLES.glob("*.yaml"))
    for document in yaml.safe_load_all(file.read_text())
    if document["kind"] == KIND
]
PORTS = [
    {"name": "http", "port": 80, "targetPort": 8080, "nodePort": 30080},
    {"name": "https", "port": 443, "targetPort": 8443, "nodePort": 30443},
]


def world_for(syncer: Any) -> FullKubernetes:
    """A cluster with one selected Service, one ready pod behind it and one node."""
    server = FullKubernetes(lambda: NOW, definitions=[load_crd()])
    spec, namespace = syncer["spec"], syncer["metadata"]["namespace"]
    selector = spec["selector"]
    labels = {
        **selector.get("matchLabels", {}),
        **({"app": selector["app"]} if "app" in selector else {}),
    }
    kind = spec.get("service", {}).get("address", "ClusterIP")
    core = f"/api/v1/namespaces/{namespace}"
    addresses = [{"type": "InternalIP", "address": "192.168.7.1"}]
    conditions = [{"type": name, "status": "True"} for name in ("Ready", "ContainersReady")]
    pod = {"nodeName": "node-a", "containers": [{"name": "app", "image": "app"}]}
    running = {
        "phase": "Running",
        "podIPs": [{"ip": "10.0.0.1"}],
        "podIP": "10.0.0.1",
        "conditions": conditions,
    }
    name = selector.get("service", syncer["metadata"]["name"])
    service = {"type": kind, "selector": {"pod": "yes"}, "ports": PORTS}
    if kind not in ("NodePort", "LoadBalancer"):
        service["ports"] = [
            {key: value for key, value in port.items() if key != "nodePort"} for port in PORTS
        ]
    for method, path, body in (
        ("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}),
        ("POST", "/api/v1/nodes", {"metadata": {"name": "node-a"}}),
        (
            "PATCH",
            "/api/v1/nodes/node-a/status",
            {"status": {"addresses": addresses, "conditions": conditions}},
        ),
        (
            "POST",
            f"{core}/services",
            {"metadata": {"name": name, "labels": labels}, "spec": service},
        ),
        (
            "PATCH",
            f"{core}/services/{name}/status",
            {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.1"}]}}},
        ),
        (
            "POST",
            f"{core}/pods",
            {"metadata": {"name": "pod-1", "labels": {"pod": "yes"}}, "spec": pod},
        ),
        ("PATCH", f"{core}/pods/pod-1/status", {"status": running}),
        ("POST", f"/apis/eurekube.io/v1/namespaces/{namespace}/eurekasyncers", syncer),
    ):
        status, answer = server.call(method, path, body)
        assert status < 300, answer
    return server


@pytest.mark.parametrize(
    ("file", "syncer"), SYNCERS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_an_example_registers_something(file: str, syncer: Any) -> None:
    """It needs one ready pod, or the Service's own address."""
    server = world_for(syncer)
    cluster = KubernetesCluster(InProcessConnection(server.handle), clock=Clock(), random=Half())
    (claim,) = look(cluster, syncer["metadata"]["namespace"]).claims.values()
    assert isinstance(claim, Serving), claim
    assert [one.instance.status for one in claim.wanted.values()] == ["UP"]
