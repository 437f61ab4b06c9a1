"""Nodes, Namespaces and Pods, as the Kubernetes adapter reads them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from eurekube_sync.adapters.kubernetes import objects
from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.model.kubernetes import Namespace, Node, Pod
from eurekube_sync.model.sources import Cause, Complete, Unknown
from tests.unit.adapters.kubernetes.world import World


@pytest.fixture
def world() -> World:
    """An API server and our client of it."""
    return World()


def test_nodes_are_listed_with_what_calls_need(world: World) -> None:
    """A node has its addresses by type, readiness, and whether it is excluded from external load
    balancers."""
    exclude = "node.kubernetes.io/exclude-from-external-load-balancers"
    world.make("/api/v1/nodes", {"metadata": {"name": "bare"}})
    world.make("/api/v1/nodes", {"metadata": {"name": "full", "labels": {exclude: ""}}})
    addresses = [
        {"type": "Hostname", "address": "full"},
        {"type": "InternalIP", "address": "192.168.0.1"},
        {"type": "InternalIP", "address": "fd00::1"},
        {"type": "ExternalIP", "address": "203.0.113.1"},
    ]
    conditions = [
        {"type": "MemoryPressure", "status": "False"},
        {"type": "Ready", "status": "True"},
    ]
    world.patch(
        "/api/v1/nodes/full/status", {"status": {"addresses": addresses, "conditions": conditions}}
    )
    full = Node(
        name="full",
        internal=("192.168.0.1", "fd00::1"),
        external=("203.0.113.1",),
        labels={exclude: ""},
        leaves=f"has the label {exclude}",
    )
    assert world.cluster.list_nodes() == Complete(data=(Node(name="bare", ready=False), full))


def test_namespaces_are_read_with_their_annotations(world: World) -> None:
    """One list reads all of them, or one read each. A Namespace that does not exist is an empty
    result."""
    world.make("/api/v1/namespaces", {"metadata": {"name": "granted", "annotations": {"a": "b"}}})
    granted = Complete(data=(Namespace("granted", {"a": "b"}),))
    found = world.cluster.list_namespaces(None)
    assert (found.of("granted"), found.of("absent")) == (granted, Complete(data=()))
    found = world.cluster.list_namespaces(["granted", "absent"])
    assert (found.of("granted"), found.of("absent")) == (granted, Complete(data=()))
    assert isinstance(found.of("kube-system"), Unknown)


@pytest.mark.parametrize(("verb", "names"), [("list", None), ("get", ["granted"])])
def test_namespaces_that_may_not_be_read_are_unknown(
    world: World, verb: str, names: list[str] | None
) -> None:
    """A 403 does not mean a Namespace without annotations."""
    world.server.deny("namespaces", verb)
    found = world.cluster.list_namespaces(names).of("granted")
    assert isinstance(found, Unknown)
    assert found.cause is Cause.DENIED


def test_a_right_to_namespaces_that_is_missing_can_be_done_without(world: World) -> None:
    """The sentence says which option to leave out."""
    for names in (None, ["granted"]):
        world.server.deny("namespaces", "get" if names else "list")
        found = world.cluster.list_namespaces(names).of("granted")
        assert isinstance(found, Unknown)
        assert found.message.endswith("; grant it, or leave out --require-app-grant")


def test_a_server_that_does_not_answer_for_one_namespace_is_not_asked_for_the_next(
    world: World,
) -> None:
    """Each namespace would need all tries."""
    asked: list[str] = []

    def fault(request: Request, _number: int) -> Response:
        asked.append(request.path)
        return Response(status=503, body=b"busy")

    world.fault = fault
    found = world.cluster.list_namespaces(["first", "second", "third"])
    assert set(asked) == {"/api/v1/namespaces/first"}
    sources = [found.of(name) for name in ("first", "second", "third")]
    assert [one.cause for one in sources if isinstance(one, Unknown)] == [Cause.UNAVAILABLE] * 3


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"metadata":{"name":"granted","annotations":{"a":1}}}',
        b'{"metadata":{"name":"another"}}',
    ],
)
def test_a_namespace_that_is_another_or_none_is_unknown(world: World, body: bytes) -> None:
    """The annotations of another Namespace would grant the wrong apps."""
    world.fault = lambda request, number: Response(status=200, body=body)
    found = world.cluster.list_namespaces(["granted"]).of("granted")
    assert isinstance(found, Unknown)
    assert found.cause is Cause.UNUSABLE


def test_nodes_that_may_not_be_listed_are_unknown(world: World) -> None:
    """A 403 does not mean a cluster without nodes."""
    world.server.deny("nodes", "list")
    found = world.cluster.list_nodes()
    assert isinstance(found, Unknown)
    assert found.cause is Cause.DENIED


def test_one_node_that_cannot_be_read_makes_all_unknown(world: World) -> None:
    """The `node` mode registers an instance for each node, so it needs all of them."""
    world.make("/api/v1/nodes", {"metadata": {"name": "odd"}})
    world.patch("/api/v1/nodes/odd/status", {"status": {"addresses": "none"}})
    found = world.cluster.list_nodes()
    assert isinstance(found, Unknown)
    assert (found.cause, "nodes" in found.message) == (Cause.UNUSABLE, True)


def test_pods_are_listed_with_labels_and_annotations(world: World) -> None:
    """The list is of one namespace, or of all."""
    body = {
        "metadata": {"name": "p", "labels": {"a": "1"}, "annotations": {"b": "2"}},
        "spec": {"containers": [{"name": "c", "image": "c"}]},
    }
    uid = world.make("/api/v1/namespaces/shop/pods", body)["metadata"]["uid"]
    expected = Complete(data=(Pod(name="p", uid=uid, labels={"a": "1"}, annotations={"b": "2"}),))
    assert (
        world.cluster.list_pods(["shop"]).of("shop")
        == world.cluster.list_pods(None).of("shop")
        == expected
    )


def test_a_pod_without_a_uid_makes_its_namespace_unknown() -> None:
    """A drain could not be assigned to a pod."""
    item = msgspec.json.decode(
        b'{"metadata": {"name": "a", "namespace": "b"}}', type=objects.PodDrainItem
    )
    with pytest.raises(ValueError, match="UID"):
        item.read()


@pytest.mark.parametrize(
    ("selector", "selects"), [({"app": "rating"}, True), ({}, False), (None, False)]
)
def test_a_service_says_whether_it_has_a_selector(
    world: World, selector: Any, selects: bool
) -> None:
    """Kubernetes makes no slices for a Service without a selector."""
    spec = {"selector": selector, "ports": [{"port": 80}]}
    world.make("/api/v1/namespaces/shop/services", {"metadata": {"name": "rating"}, "spec": spec})
    found = world.cluster.list_services(["shop"]).of("shop")
    assert isinstance(found, Complete)
    assert [one.selects for one in found.data] == [selects]
