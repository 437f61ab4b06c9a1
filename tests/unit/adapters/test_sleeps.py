"""How long a pod's `preStop` hook sleeps, read from the hook's text."""

from __future__ import annotations

import msgspec
import pytest

from eurekube_sync.adapters.kubernetes.details import PodItem


@pytest.mark.parametrize(
    ("hook", "expected"),
    [
        ({"sleep": {"seconds": 125}}, 125.0),
        ({"exec": {"command": ["sleep", "95"]}}, 95.0),
        ({"exec": {"command": ["/bin/sh", "-c", "sleep 95"]}}, 95.0),
        ({"exec": {"command": ["sh", "-c", "curl localhost/drain; sleep 95"]}}, None),
        ({"httpGet": {"path": "/drain", "port": 8080}}, None),
    ],
)
def test_a_sleep_is_read_and_nothing_else_is_taken_for_one(
    hook: dict[str, object], expected: float | None
) -> None:
    """The duration of a command that does more than sleep is unknown."""
    container = {"name": "app", "lifecycle": {"preStop": hook}}
    spec = {"containers": [container, {"name": "beside"}], "terminationGracePeriodSeconds": 155}
    owner = {"kind": "ReplicaSet", "name": "orders-6c9f", "controller": True}
    body = {"metadata": {"name": "orders-a", "ownerReferences": [owner]}, "spec": spec}
    found = msgspec.convert(body, PodItem).read()
    assert (found.pre_stops, found.grace, found.containers) == ((expected,), 155, ("app", "beside"))
    assert found.controller == "ReplicaSet orders-6c9f"


def test_a_pod_that_says_nothing_has_what_kubernetes_gives() -> None:
    """Kubernetes' defaults are a grace period of 30 s and no `preStop`."""
    found = msgspec.convert({"metadata": {"name": "orders-a"}}, PodItem).read()
    assert (found.pre_stops, found.grace, found.controller) == ((), 30, "")
