"""The demo's cluster: a Service `rating` of two pods, two more Services of the same pods, and the syncer."""

from __future__ import annotations

from typing import Any

NAMESPACE = "rating"
LABELS = {"app": "rating"}

SYNCER: dict[str, Any] = {
    "apiVersion": "eurekube.io/v1",
    "kind": "EurekaSyncer",
    "metadata": {"name": "rating", "namespace": NAMESPACE},
    "spec": {"mode": "pod", "selector": {"app": "rating"}, "port": "http"},
}


def world() -> tuple[dict[str, Any], ...]:
    http = {"name": "http", "port": 80, "targetPort": "http"}
    metrics = {"name": "metrics", "port": 9100, "targetPort": 9100}
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        _service("rating", {"ports": [http]}),
        _service("rating-headless", {"ports": [http], "clusterIP": "None"}),
        _service("rating-metrics", {"ports": [metrics]}),
    )


def _service(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": LABELS},
        "spec": {"selector": LABELS, **spec},
    }
