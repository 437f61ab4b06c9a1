"""The Kubernetes API's JSON: nil rules, null lists, times, and absent fields."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from eurekube_sync.adapters.kubernetes import objects, syncers
from eurekube_sync.model.kubernetes import (
    Condition,
    ConditionStatus,
    EndpointPort,
    EndpointSlice,
    PodRef,
    ServedPort,
    ServicePort,
    SyncerStatus,
)
from tests.unit.adapters.kubernetes.world import START, World

CREATED = "2026-01-02T03:04:05Z"


def endpoint_slice(**fields: Any) -> EndpointSlice | None:
    metadata = {
        "name": "s",
        "namespace": "shop",
        "labels": {"kubernetes.io/service-name": "rating"},
    }
    body = {"metadata": metadata, "addressType": "IPv4", **fields}
    return msgspec.json.decode(msgspec.json.encode(body), type=objects.SliceItem).read()


def service(**spec: Any) -> Any:
    body = {"metadata": {"name": "rating", "namespace": "shop"}, "spec": spec}
    return msgspec.json.decode(msgspec.json.encode(body), type=objects.ServiceItem).read()


def syncer(**fields: Any) -> Any:
    metadata = {"name": "rating", "namespace": "shop", "uid": "u", "creationTimestamp": CREATED}
    return msgspec.json.decode(
        msgspec.json.encode({"metadata": metadata, **fields}), type=syncers.SyncerItem
    ).read()


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (None, (True, True, False)),
        ({}, (True, True, False)),
        ({"ready": None, "serving": None, "terminating": None}, (True, True, False)),
        ({"ready": False}, (False, True, False)),
        ({"ready": False, "serving": False}, (False, False, False)),
        ({"ready": False, "serving": True, "terminating": True}, (False, True, True)),
    ],
)
def test_the_nil_rules_of_endpoint_conditions(
    conditions: Any, expected: tuple[bool, bool, bool]
) -> None:
    """A nil ready or serving is true. A nil terminating is false (discovery/v1
    EndpointConditions)."""
    found = endpoint_slice(endpoints=[{"addresses": ["10.0.0.1"], "conditions": conditions}])
    assert found is not None
    (endpoint,) = found.endpoints
    assert (endpoint.ready, endpoint.serving, endpoint.terminating) == expected


@pytest.mark.parametrize(
    ("ready", "since", "gate", "expected"),
    [
        ("True", "2026-01-02T03:05:00Z", "True", True),
        ("False", "2026-01-02T03:05:00Z", "True", False),
        ("Unknown", "2026-01-02T03:05:00Z", "True", False),
        ("False", "2026-01-02T03:03:00Z", "True", True),
        ("False", "2026-01-02T03:04:05Z", "True", True),
        ("False", None, "True", True),
        ("False", "2026-01-02T03:05:00Z", "False", True),
        ("False", "2026-01-02T03:05:00Z", None, True),
        (None, None, "True", True),
    ],
)
def test_a_pod_of_a_lost_node_is_not_ready_whatever_its_containers_were(
    ready: str | None, since: str | None, gate: str | None, expected: bool
) -> None:
    """The node controller sets only Ready to false. Until the kubelet sees our open gate, Ready was
    never true."""
    conditions: list[dict[str, str | None]] = [
        {"type": "ContainersReady", "status": "True"},
        {"type": "Ready", "status": ready, "lastTransitionTime": since},
        {"type": objects.REGISTERED, "status": gate, "lastTransitionTime": CREATED},
    ]
    body: dict[str, Any] = {
        "metadata": {"name": "rating-1", "namespace": "shop", "uid": "u"},
        "spec": {"readinessGates": [{"conditionType": objects.REGISTERED}]},
        "status": {"conditions": [one for one in conditions if one["status"]]},
    }
    found = msgspec.json.decode(msgspec.json.encode(body), type=objects.ReadinessItem).read()
    assert (found.ready, found.registered) == (expected, gate == "True")


LOAD_BALANCER, MESH = "cloud.example.com/load-balancer", "mesh.example.com/proxy"


@pytest.mark.parametrize(
    ("true", "unknown", "expected"),
    [
        (("ContainersReady", LOAD_BALANCER, MESH), (), True),
        (("ContainersReady", LOAD_BALANCER, MESH, "Other"), (), True),
        (("ContainersReady", LOAD_BALANCER), (), False),
        (("ContainersReady", LOAD_BALANCER), (MESH,), False),
        (("ContainersReady",), (), False),
        ((LOAD_BALANCER, MESH), (), False),
        ((LOAD_BALANCER, MESH), ("ContainersReady",), False),
        ((), (), False),
    ],
)
def test_a_pod_is_ready_when_its_containers_and_all_its_other_gates_are(
    true: tuple[str, ...], unknown: tuple[str, ...], expected: bool
) -> None:
    """As the kubelet judges it, but for our own gate. A condition that is missing or Unknown is not
    true."""
    of_status = {**dict.fromkeys(true, "True"), **dict.fromkeys(unknown, "Unknown")}
    body: dict[str, Any] = {
        "metadata": {"name": "rating-1", "namespace": "shop", "uid": "u"},
        "spec": {
            "readinessGates": [
                {"conditionType": one} for one in (LOAD_BALANCER, objects.REGISTERED, MESH)
            ]
        },
        "status": {
            "conditions": [{"type": type_, "status": status} for type_, status in of_status.items()]
        },
    }
    found = msgspec.json.decode(msgspec.json.encode(body), type=objects.ReadinessItem).read()
    assert (found.ready, found.registered) == (expected, False)


OWNERS: list[dict[str, Any]] = [
    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "other"},
    {"apiVersion": "eurekube.io/v1", "kind": "EurekaImport", "name": "i", "uid": "9c41"}
    | {"controller": True},
]


def test_a_service_names_its_controller() -> None:
    """Other owners own it as well, and do not control it."""
    metadata = {"name": "review", "namespace": "shop", "uid": "u", "resourceVersion": "7"}

    def owned_by(owners: list[dict[str, Any]] | None) -> Any:
        body = {"metadata": {**metadata, "ownerReferences": owners}, "spec": {}}
        return msgspec.json.decode(msgspec.json.encode(body), type=objects.ServiceItem).read()

    found = owned_by(OWNERS)
    assert (found.controller, found.owner_uid) == ("EurekaImport", "9c41")
    assert (found.uid, found.resource_version) == ("u", "7")
    for owners in (None, OWNERS[:1]):
        plain = owned_by(owners)
        assert (plain.controller, plain.owner_uid) == ("", "")


@pytest.mark.parametrize(
    ("managed_by", "expected"),
    [("import.eurekube.io", ("u", "7", "9c41")), ("hand.example.com", ("", "", ""))],
)
def test_only_a_slice_of_an_import_keeps_what_its_writes_need(
    managed_by: str, expected: tuple[str, str, str]
) -> None:
    """There are many others, and they are never written."""
    labels = {
        "kubernetes.io/service-name": "review",
        "endpointslice.kubernetes.io/managed-by": managed_by,
    }
    metadata = {"name": "review-1", "namespace": "shop", "uid": "u", "resourceVersion": "7"}
    found = endpoint_slice(metadata={**metadata, "labels": labels, "ownerReferences": OWNERS})
    assert found is not None
    assert (found.uid, found.resource_version, found.owner_uid) == expected


def test_an_empty_slice_has_null_lists() -> None:
    """`endpoints: null, ports: null` is an empty slice, not a broken one."""
    found = endpoint_slice(endpoints=None, ports=None)
    assert found is not None
    assert (found.endpoints, found.ports) == ((), ())


def test_a_port_whose_name_is_null_has_none() -> None:
    """An error here would make the list of its namespace Unknown."""
    found = endpoint_slice(ports=[{"name": None, "port": 80}])
    assert found is not None
    assert found.ports == (EndpointPort(name="", port=80),)


def test_only_the_first_address_counts() -> None:
    """The API says to use addresses[0]. A port may lack a name and a number."""
    target = {"kind": "Pod", "name": "p", "uid": "u", "namespace": "shop"}
    entry = {
        "addresses": ["10.0.0.1", "10.0.0.2"],
        "targetRef": target,
        "nodeName": "n",
        "zone": "z",
    }
    found = endpoint_slice(endpoints=[entry], ports=[{"name": "", "port": 80}, {"port": None}])
    assert found is not None
    assert [each.address for each in found.endpoints] == ["10.0.0.1"]
    assert (found.endpoints[0].pod, found.endpoints[0].node, found.endpoints[0].zone) == (
        PodRef("p", "u"),
        "n",
        "z",
    )
    assert found.ports == (EndpointPort(name="", port=80), EndpointPort(name="", port=None))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("010.0.0.1", "10.0.0.1"),
        ("10.00.0.010", "10.0.0.10"),
        ("2001:db8::1", "2001:db8::1"),
        ("2001:DB8:0::1", "2001:db8::1"),
        ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("db-01.example.com", "db-01.example.com"),
        ("01.example.com", "01.example.com"),
        ("10.0.0.1\0", "10.0.0.1\0"),
        ("fd00::\0", "fd00::\0"),
    ],
)
def test_an_address_is_read_in_its_canonical_form(written: str, read: str) -> None:
    """An older API server takes other forms, also in a slice written by hand. As texts they would
    be other addresses than those of the pods."""
    piece = endpoint_slice(endpoints=[{"addresses": [written]}])
    assert piece is not None
    assert [endpoint.address for endpoint in piece.endpoints] == [read]
    assert service(externalIPs=[written]).external_ips == (read,)


def test_a_target_that_is_no_pod_is_none() -> None:
    """Mirrored and hand-written slices may refer to any object."""
    found = endpoint_slice(
        endpoints=[{"addresses": ["10.0.0.1"], "targetRef": {"kind": "Node", "name": "n"}}]
    )
    assert found is not None
    assert found.endpoints[0].pod is None


@pytest.mark.parametrize(("namespace", "counts"), [("shop", True), ("", True), ("bank", False)])
def test_a_reference_to_a_pod_of_another_namespace_is_ignored(namespace: str, counts: bool) -> None:
    """A slice in the namespace `shop`, even a hand-written one, says nothing about another team's
    pods."""
    target = {"kind": "Pod", "name": "p", "uid": "u", "namespace": namespace}
    found = endpoint_slice(endpoints=[{"addresses": ["10.0.0.1"], "targetRef": target}])
    assert found is not None
    assert found.endpoints[0].pod == (PodRef("p", "u") if counts else None)


@pytest.mark.parametrize("uid", [{}, {"uid": ""}])
def test_a_pod_without_a_uid_is_none(uid: Any) -> None:
    """Two endpoints without UIDs must not count as one pod."""
    targets = [
        {"addresses": [f"10.0.0.{n}"], "targetRef": {"kind": "Pod", "name": "p", **uid}}
        for n in (1, 2)
    ]
    found = endpoint_slice(endpoints=targets)
    assert found is not None
    assert [each.pod for each in found.endpoints] == [None, None]


def test_a_slice_of_no_service_is_not_ours_to_see() -> None:
    """A slice without the label belongs to no Service."""
    assert endpoint_slice(metadata={"name": "s", "namespace": "shop"}) is None


def test_the_ports_of_a_service() -> None:
    """A target port is a number, a name, or none if it equals the port."""
    found = service(
        ports=[
            {"port": 80, "targetPort": 80},
            {"name": "a", "port": 81, "targetPort": "web"},
            {"port": 82, "targetPort": 9},
        ]
    )
    assert found.ports == (
        ServicePort(name="", port=80, target=None),
        ServicePort(name="a", port=81, target="web"),
        ServicePort(name="", port=82, target=9),
    )


def test_a_headless_service() -> None:
    """A Service with clusterIPs ["None"] is headless. An ExternalName has no cluster IPs."""
    assert service(clusterIP="None", clusterIPs=["None"], ipFamilies=["IPv6"]).headless
    assert service(type="ExternalName").cluster_ips == ()
    assert service(clusterIP="10.96.0.1", clusterIPs=["10.96.0.1", "fd00::1"]).cluster_ips == (
        "10.96.0.1",
        "fd00::1",
    )


def test_a_syncer_with_all_its_metadata() -> None:
    """Times become Unix seconds. A syncer that is not deleted has None as its deletion time."""
    found = syncer(spec={"mode": "pod"})
    assert (found.created, found.deleted, found.spec, found.status) == (
        START - 2.0 + 2.0,
        None,
        {"mode": "pod"},
        None,
    )


@pytest.mark.parametrize("spec", [None, [], "x", 3])
def test_a_spec_that_is_no_object_is_empty(spec: Any) -> None:
    """An empty spec makes this syncer invalid, and no other syncer."""
    assert syncer(spec=spec).spec == {}


@pytest.mark.parametrize(
    "status",
    [
        7,
        [],
        {"ports": [{"port": 1}]},
        {"ports": [{"service": "rating", "port": "http"}]},
        {"conditions": "x"},
        {"conditions": [{"type": "Ready", "status": "Perhaps"}]},
        {"up": "many"},
    ],
)
def test_a_status_that_cannot_be_read_is_none(status: Any) -> None:
    """What it remembers is lost, and it is written again."""
    assert syncer(status=status).status is None


@pytest.mark.parametrize(
    "time", ["0001-01-01T00:00:00Z", "1000-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]
)
@pytest.mark.parametrize("field", ["lastTransitionTime", "unconfirmedSince", "eurekaUnknownSince"])
def test_a_status_with_a_time_that_cannot_be_written_again_is_none(field: str, time: str) -> None:
    """The API accepts and returns such a time. A pass that copies it would fail, or its write would
    be refused."""
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": time}
    assert (
        syncer(
            status={"conditions": [condition]} if field == "lastTransitionTime" else {field: time}
        ).status
        is None
    )


def test_a_status_survives_the_api() -> None:
    """A status is read back as the same value. A field that becomes empty is removed."""
    world = World()
    made = world.make_syncer()
    condition = Condition(
        type="Ready",
        status=ConditionStatus.FALSE,
        reason="NoService",
        message="none",
        observed_generation=1,
        last_transition=1_767_323_045,
    )
    full = SyncerStatus(
        observed_generation=1,
        conditions=(condition,),
        ready="1/2",
        desired=2,
        registered=2,
        up=1,
        down=1,
        app_name="RATING",
        vip_address="rating",
        apps=("RATING",),
        ports=(
            ServedPort("rating", 8080),
            ServedPort("secure", secure_port=8443),
            ServedPort("two", 8080, 8443),
        ),
        errors=("one",),
        unconfirmed_removal="0123456789ab",
        unconfirmed_since=1700000000,
        eureka_unknown_since=1700000001,
    )
    world.cluster.write_status(made, full)
    assert world.read().status == full
    empty = SyncerStatus(observed_generation=2)
    world.cluster.write_status(world.read(), empty)
    assert world.read().status == empty
    revision = world.server.revision
    world.cluster.write_status(world.read(), empty)
    assert world.server.revision == revision


def test_only_tcp_ports_can_be_registered() -> None:
    """TCP is the default of a Service's port and of a slice's port (core/v1 ServicePort,
    discovery/v1 EndpointPort)."""
    ports = [
        {"name": "quic", "port": 443, "protocol": "UDP"},
        {"name": "tls", "port": 443, "protocol": "TCP"},
        {"name": "plain", "port": 80},
        {"name": "diameter", "port": 3868, "protocol": "SCTP"},
    ]
    read = service(ports=ports)
    assert [port.name for port in read.ports] == ["tls", "plain"]
    assert read.other_ports == ("443/UDP", "3868/SCTP")
    piece = endpoint_slice(ports=[*ports, {"name": "nil", "port": 81, "protocol": None}])
    assert piece is not None
    assert [port.name for port in piece.ports] == ["tls", "plain", "nil"]
