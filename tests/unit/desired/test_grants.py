"""Grants of a Namespace: names, host names and addresses, and what registered instances keep
without a grant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.desired.scope import ALLOWED_APPS, ALLOWED_HOSTS, Scope
from eurekube_sync.model.kubernetes import Node, Service, ServicePort
from eurekube_sync.model.sources import Complete
from eurekube_sync.model.struct import replace
from tests.processor_time import processor_seconds
from tests.unit.worlds.build import DENIED, NS, REF, endpoint, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld

GRANTED = Scope(granted_only=True)


def world_of(
    annotations: Mapping[str, str], *slices: Any, made: Service | None = None, **spec: Any
) -> FakeWorld:
    """A syncer of two pods in a Namespace with these annotations. The operator requires grants."""
    world = FakeWorld()
    world.scope = GRANTED
    world.brake = BrakeLimits(loss_percent=100, apps_floor=10**6, confirm_after=0)
    world.cluster.annotations[NS] = annotations
    world.cluster.apply(
        made or service(), syncer(**spec), *(slices or (piece(endpoint(1), endpoint(2)),))
    )
    return world


def ready(world: FakeWorld) -> tuple[str, str]:
    """Reason and message of the condition Ready."""
    status = world.cluster.syncers[REF].status
    condition = status.condition("Ready") if status else None
    assert condition is not None
    return condition.reason, condition.message


@pytest.mark.parametrize(
    ("apps", "spec"),
    [
        ("rating", {}),
        ("orders, rating", {}),
        ("RATING", {}),
        ("*", {}),
        ("rat*", {}),
        ("*ing", {}),
        ("r*t**g,", {}),
        ("rating,login", {"vipAddress": "rating,login"}),
        ("rating,safe", {"secureVipAddress": "SAFE"}),
        ("x.y,rating", {"appName": "x.y", "vipAddress": "rating"}),
    ],
)
def test_granted_names_are_served(apps: str, spec: dict[str, Any]) -> None:
    """They cover app and VIP addresses, without regard to case. `*` matches any characters."""
    world = world_of({ALLOWED_APPS: apps}, **spec)
    world.run()
    assert len(world.registry.held) == 2
    assert ready(world)[0] == "InSync"


@pytest.mark.parametrize(
    ("annotations", "spec", "refused"),
    [
        ({}, {}, "app RATING"),
        ({ALLOWED_APPS: ""}, {}, "app RATING"),
        ({ALLOWED_APPS: "orders"}, {}, "app RATING"),
        ({ALLOWED_APPS: "ratin, ating, ratings"}, {}, "app RATING"),
        ({ALLOWED_APPS: "r.ting"}, {}, "app RATING"),
        ({ALLOWED_APPS: "rating"}, {"appName": "payment"}, "app PAYMENT"),
        ({ALLOWED_APPS: "rating"}, {"vipAddress": "rating,payment"}, "VIP address payment"),
        (
            {ALLOWED_APPS: "rating"},
            {"vipAddress": "payment", "suspend": True},
            "VIP address payment",
        ),
        ({ALLOWED_APPS: "rating"}, {"secureVipAddress": "payment"}, "secure VIP address payment"),
    ],
)
def test_a_name_that_is_not_granted_is_refused(
    annotations: dict[str, str], spec: dict[str, Any], refused: str
) -> None:
    """The condition names it and the annotation, and an event says the same."""
    world = world_of(annotations, **spec)
    world.run()
    assert world.registry.held == {}
    reason, message = ready(world)
    assert reason == "NotGranted"
    assert message == (
        f"{refused} is not granted to namespace rating: "
        "the operator may add it to the annotation eurekube.io/allowed-apps of the Namespace"
    )
    assert [event.reason for event in world.cluster.events] == ["NotGranted"]


def test_all_refused_names_are_reported_at_once() -> None:
    """A few of each kind are named. An annotation with a misspelt name is noticed."""
    world = world_of({"eurekube.io/allowed-app": "rating"}, vipAddress="a,b,c", hostName="podName")
    world.run()
    assert ready(world)[1] == (
        "app RATING, VIP address a, VIP address b and 1 more are not granted to namespace rating: "
        "the operator may add "
        "them to the annotation eurekube.io/allowed-apps of the Namespace (the Namespace has the "
        "annotation "
        "eurekube.io/allowed-app, which does nothing); host rating-1, host rating-2 are not "
        "granted to namespace "
        "rating: the operator may add them to the annotation eurekube.io/allowed-hosts of the "
        "Namespace"
    )


HOSTNAME: dict[str, Any] = {
    "mode": "service",
    "port": 443,
    "service": {"hostname": "shop.example.com"},
}
EXTERNAL = {"mode": "service", "port": 443}
BY_IP = {"mode": "service", "service": {"address": "ExternalIP"}}
SUFFIX = {"hostName": "ip.pods.example.com"}
NAMED = replace(service(type="ExternalName"), external_name="shop.example.com", cluster_ips=())
WITH_IP = replace(service(), external_ips=("192.0.2.7",))
BALANCED = replace(service(type="LoadBalancer"), load_balancer=("shop.example.com",))
BARE = piece(endpoint(1, pod=None, address="192.0.2.7"))

ROADS: dict[str, tuple[Service | None, dict[str, Any], list[Any], str, str]] = {
    "fixed host name": (None, HOSTNAME, [], "shop.example.com", "*.example.com"),
    "external name": (NAMED, EXTERNAL, [], "shop.example.com", "SHOP.example.com"),
    "external address": (WITH_IP, BY_IP, [], "192.0.2.7", "192.0.2.0/24"),
    # Several cloud controllers copy that name from an annotation of the Service.
    "name of a load balancer": (
        BALANCED,
        {"mode": "service"},
        [],
        "shop.example.com",
        "*.example.com",
    ),
    "bare address in a slice": (None, {}, [BARE], "192.0.2.7", "192.0.2.7"),
    "suffix": (None, SUFFIX, [], "10-0-0-1.pods.example.com", "*.pods.example.com"),
    "name of a pod": (None, {"hostName": "podName"}, [], "rating-1", "rating-*"),
}


@pytest.mark.parametrize("road", ROADS)
def test_an_address_that_the_cluster_did_not_give_needs_its_own_grant(road: str) -> None:
    """A tenant writes it, and could send callers anywhere."""
    made, spec, slices, host, grant = ROADS[road]
    for others in ("", "other.example.com,10.0.0.0/8,nonsense/9"):
        world = world_of(
            {ALLOWED_APPS: "rating", ALLOWED_HOSTS: others}, *slices, made=made, **spec
        )
        world.run()
        assert world.registry.held == {}
        reason, message = ready(world)
        assert (reason, message.startswith(f"host {host}")) == ("NotGranted", True)
        assert "not granted to namespace rating" in message
        assert "eurekube.io/allowed-hosts" in message
    world = world_of({ALLOWED_APPS: "rating", ALLOWED_HOSTS: grant}, *slices, made=made, **spec)
    world.run()
    assert world.registry.held


@pytest.mark.parametrize(
    ("pattern", "granted", "refused"),
    [
        ("*.example.com", "a.b.example.com", "example.org"),
        ("*.EXAMPLE.com", "a.example.com", "a.example.com.evil.com"),
        ("shop-*", "shop-1", "shop-1.evil.com"),
        ("shop.*.example.com", "shop.eu.example.com", "shop.a.b.example.com"),
        ("*.eu-*.example.com", "a.b.eu-1.example.com", "a.eu-1.b.example.com"),
        ("*", "anything.at.all", None),
        ("10.1.*", "10.1.2.3", "10.1.evil.com"),
        ("10.1.0.0/16", "10.1.2.3", "10.2.0.1"),
        ("10.1.2.3", "10.1.2.3", "10.1.2.30"),
        ("f*", "f1", "f.example"),
        ("*", "198.51.100.7", None),
        ("*7", "198.51.100.7", "a7"),
    ],
)
def test_a_pattern_of_hosts_grants_only_matching_hosts(
    pattern: str, granted: str, refused: str | None
) -> None:
    """Only a star at the front matches dots, and numbers match only addresses. The end of a name
    shows whose it is."""
    for host in (granted, refused):
        if host is not None:
            spec = {**HOSTNAME, "service": {"hostname": host}}
            world = world_of({ALLOWED_APPS: "rating", ALLOWED_HOSTS: pattern}, **spec)
            world.run()
            assert len(world.registry.held) == (host == granted), host


def test_a_pattern_of_addresses_grants_those_of_both_families() -> None:
    """An address has one canonical form."""
    made = replace(service(), external_ips=("2001:db8::7",))
    for pattern, granted in (
        ("2001:DB8::*", True),
        ("2001:db8::/32", True),
        ("*::8", False),
        ("f*", False),
    ):
        world = world_of({ALLOWED_APPS: "rating", ALLOWED_HOSTS: pattern}, made=made, **BY_IP)
        world.run()
        assert len(world.registry.held) == granted, (pattern, ready(world))


def test_a_pattern_of_many_stars_takes_no_long_time() -> None:
    """The operator writes the pattern, and a tenant writes the name."""
    world = world_of({ALLOWED_APPS: "*-*-*-*-x,rating"}, vipAddress="a-" * 250 + "a")
    assert processor_seconds(world.run) < 1
    assert ready(world)[0] == "NotGranted"


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "127.0.0.1",
        "0.0.0.0",
        "0.0.0.7",
        "224.0.0.1",
        "255.255.255.255",
        "fe80::1",
        "::1",
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "fd00:ec2::254",
        "FD00:EC2:0:0::254",
        "::FFFF:A9FE:A9FE",
        "0:0:0:0:0:ffff:7f00:1",
    ],
)
@pytest.mark.parametrize("pod", [None, "forged"])
def test_an_address_that_differs_for_each_machine_is_never_registered(
    address: str, pod: str | None
) -> None:
    """Neither the pod in the slice nor a grant of the operator changes that."""
    family = "IPv6" if ":" in address else "IPv4"
    forged = replace(piece(endpoint(1, address=address, pod=pod)), address_type=family)
    made = service(ip_families=(family,))
    world = world_of({ALLOWED_APPS: "*", ALLOWED_HOSTS: "*"}, forged, made=made)
    world.run()
    assert world.registry.held == {}
    reason, message = ready(world)
    assert (reason, message.split(" is a different machine")[0]) == ("NotGranted", address)


ONE_MACHINE = [
    "localhost",
    "payment.localhost",
    "localhost.localdomain",
    "localhost6",
    "ip6-loopback",
]
SHORT = ["127.1", "2130706433", "169.254.43518", "0", "0177.0.0.1", "0x7f.1", "a.0x7f000001"]


@pytest.mark.parametrize("host", ONE_MACHINE + SHORT)
def test_a_name_of_one_machine_is_never_registered(host: str) -> None:
    """RFC 6761 6.3, usual names in /etc/hosts, and short forms of an address."""
    spec = {**HOSTNAME, "service": {"hostname": host}}
    world = world_of({ALLOWED_APPS: "*", ALLOWED_HOSTS: "*"}, **spec)
    world.run()
    assert world.registry.held == {}
    assert ready(world)[0] in ("NotGranted", "InvalidSpec")


@pytest.mark.parametrize("mode", [{"mode": "service", "service": {"address": "ClusterIP"}}, {}])
def test_addresses_that_the_cluster_gave_need_none(mode: dict[str, Any]) -> None:
    """These are addresses of pods and of Services, also of IPv6."""
    ends = piece(replace(endpoint(1), address="2001:db8::7"))
    made = service(ip_families=("IPv6",), cluster_ips=("2001:db8::1",))
    world = world_of(
        {ALLOWED_APPS: "rating"}, replace(ends, address_type="IPv6"), made=made, **mode
    )
    world.run()
    assert len(world.registry.held) == 1


@pytest.mark.parametrize("kind", ["ExternalName", "ClusterIP"])
def test_a_service_without_node_ports_names_no_port_of_a_node(kind: str) -> None:
    """While the type uses no node ports, Kubernetes accepts any number there, such as the kubelet's
    port."""
    port = ServicePort(name="http", port=80, node_port=10250)
    made = replace(service("rating", port, type=kind), external_name="a.example.com")
    world = world_of(
        {ALLOWED_APPS: "rating"}, made=made, mode="service", service={"address": "NodePort"}
    )
    world.cluster.nodes = Complete(data=(Node(name="n", internal=("172.16.0.1",)),))
    world.run()
    assert world.registry.held == {}
    assert ready(world) == ("NoAddress", f"Service rating is of type {kind} and has no node port")


@pytest.mark.parametrize("address", ["203.0.113.9", "2001:db8::9"])
def test_an_address_of_a_load_balancer_needs_no_grant_of_hosts(address: str) -> None:
    """A cloud gives the address. Only a name can come from a tenant."""
    made = replace(service(type="LoadBalancer"), load_balancer=(address,))
    world = world_of({ALLOWED_APPS: "rating"}, made=made, mode="service")
    world.run()
    assert len(world.registry.held) == 1


def test_a_revoked_grant_removes_nothing() -> None:
    """A tool that drops an annotation must not remove an app. Registered instances are renewed and
    none is added. Instances are removed only if their pod is gone, or a person deletes the
    syncer."""
    world = world_of({ALLOWED_APPS: "rating"})
    world.run()
    world.cluster.annotations[NS] = {}
    world.cluster.apply(piece(endpoint(1), endpoint(2), endpoint(3)))
    world.run()
    assert sorted(world.statuses()) == ["RATING 10.0.0.1:8080", "RATING 10.0.0.2:8080"]
    assert world.wire.verbs().count("renew") == 2
    assert ready(world)[0] == "NotGranted"
    world.cluster.apply(piece(endpoint(2), endpoint(3)))
    world.cluster.ended.add("uid-of-rating-1")
    world.run()
    world.run()
    assert sorted(world.statuses()) == ["RATING 10.0.0.2:8080"]
    world.cluster.delete(REF)
    world.later(100)
    world.run()
    world.run()
    assert world.statuses() == {}


def test_an_app_keeps_its_last_instance_while_its_new_pods_are_not_granted() -> None:
    """A rollout follows the loss of an annotation: all pods are new and ready, and may not be
    registered. The hold ends when the operator grants the app again, or a person deletes the
    syncer."""
    world = world_of({ALLOWED_APPS: "rating"})
    world.run()
    world.cluster.annotations[NS] = {}
    world.cluster.apply(piece(endpoint(3), endpoint(4)))
    world.cluster.ended.update({"uid-of-rating-1", "uid-of-rating-2"})
    for _ in range(3):
        world.later(30)
        world.run()
        assert world.statuses() == {"RATING 10.0.0.1:8080": "UP", "RATING 10.0.0.2:8080": "UP"}
    world.cluster.annotations[NS] = {ALLOWED_APPS: "rating"}
    world.run()
    world.run()
    assert world.statuses() == {"RATING 10.0.0.3:8080": "UP", "RATING 10.0.0.4:8080": "UP"}


@pytest.mark.parametrize(
    ("before", "hosts"),
    [
        ({"vipAddress": "payment"}, ""),
        ({"secureVipAddress": "payment"}, ""),
        ({"vipAddress": "rating,payment"}, ""),
        ({"secureVipAddress": "rating,payment"}, ""),
        ({"hostName": "ip.evil.example.com"}, ""),
    ],
)
def test_a_name_that_is_no_longer_granted_is_not_kept(before: dict[str, Any], hosts: str) -> None:
    """The syncer uses its own names again, and asks for no change of registered instances."""
    world = world_of({ALLOWED_APPS: "rating,payment", ALLOWED_HOSTS: "*.example.com"}, **before)
    world.run()
    world.cluster.annotations[NS] = {ALLOWED_APPS: "rating", ALLOWED_HOSTS: hosts}
    world.cluster.apply(syncer(suspend=True))
    for _ in range(2):
        world.run()
        found = [one.instance for one in world.registry.held.values()]
        assert [(one.vip_address, one.secure_vip_address, one.host_name) for one in found] == [
            ("rating", "rating", one.ip_addr) for one in found
        ]


@pytest.mark.parametrize("scope", [GRANTED, Scope()])
@pytest.mark.parametrize("vip", ["payment", "rating,payment"])
def test_a_name_that_is_still_granted_is_kept(vip: str, scope: Scope) -> None:
    """Without required grants every name is kept."""
    world = world_of({ALLOWED_APPS: "rating,payment"}, vipAddress=vip)
    world.scope = scope
    world.run()
    if scope is not GRANTED:
        world.cluster.annotations[NS] = {}
    world.cluster.apply(syncer(suspend=True))
    world.run()
    assert {one.instance.vip_address for one in world.registry.held.values()} == {vip}


def test_who_is_not_granted_an_app_keeps_nobody_elses_instance_of_it() -> None:
    """A tenant names the app of another team, which then removes its own last pod."""
    world = world_of({ALLOWED_APPS: "rating"})
    world.cluster.annotations.update({"evil": {}, "other": {ALLOWED_APPS: "orders"}})
    specs: dict[str, dict[str, Any]] = {"evil": {}, "other": {"appName": "orders"}}
    for name, spec in specs.items():
        ends = piece(endpoint(7 if spec else 8), namespace=name)
        world.cluster.apply(service(namespace=name), syncer(namespace=name, **spec), ends)
    world.run()
    assert len(world.statuses()) == 3
    world.cluster.apply(
        piece(
            endpoint(1, terminating=True, ready=False), endpoint(2, terminating=True, ready=False)
        )
    )
    world.run()
    assert world.statuses() == {"ORDERS 10.0.0.7:8080": "UP"}


@pytest.mark.parametrize("unread", [("namespaces", "*"), ("namespaces", NS)])
@pytest.mark.parametrize("scope", [GRANTED, replace(GRANTED, namespaces=frozenset({NS}))])
def test_a_namespace_that_cannot_be_read_is_unknown(unread: tuple[str, str], scope: Scope) -> None:
    """Nothing counts as granted or refused. Nothing is added or removed, and the report names the
    failed read."""
    world = world_of({ALLOWED_APPS: "rating"})
    world.scope = scope
    world.run()
    world.cluster.unknown[unread] = DENIED
    world.cluster.apply(piece(endpoint(2), endpoint(3)))
    report = world.run()
    assert sorted(world.statuses()) == ["RATING 10.0.0.1:8080", "RATING 10.0.0.2:8080"]
    assert ready(world) == ("SourceUnknown", DENIED.message)
    assert report.view is not None
    assert report.view.namespaces is not None


@pytest.mark.parametrize("scope", [GRANTED, replace(GRANTED, namespaces=frozenset({NS}))])
def test_a_namespace_that_an_answer_lacks_is_unknown(scope: Scope) -> None:
    """Its syncer was listed just before, so the answer cannot be right. No name is refused for
    it."""
    world = world_of({ALLOWED_APPS: "rating"})
    world.scope = scope
    world.run()
    del world.cluster.annotations[NS]
    world.cluster.apply(piece(endpoint(2), endpoint(3)))
    world.cluster.ended.add("uid-of-rating-1")
    world.run()
    world.run()
    assert sorted(world.statuses()) == ["RATING 10.0.0.1:8080", "RATING 10.0.0.2:8080"]
    message = "Namespace rating was not found, although it has a syncer: its grants are unknown"
    assert ready(world) == ("SourceUnknown", message)


def test_without_the_option_nobody_reads_a_namespace() -> None:
    """Reading it takes a right and a call."""
    world = world_of({})
    world.scope = Scope()
    world.run()
    assert len(world.registry.held) == 2
    assert "list_namespaces" not in world.wire.verbs()


def test_the_option_is_part_of_a_command_to_paste() -> None:
    """Without it the command would decide otherwise."""
    assert GRANTED.options == ("--require-app-grant",)
