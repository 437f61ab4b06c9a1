"""Which instances are imported: the first row of the table that fits is the reason."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from eurekube_sync.desired.imports import (
    ByName,
    Importing,
    ImportView,
    LeftOut,
    Rules,
    Socket,
    Wanted,
    claim_imports,
    networks_in,
    parsed_networks,
)
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.imports import ImportObject
from eurekube_sync.model.kubernetes import Endpoint, EndpointPort, EndpointSlice, Service
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import CLUSTER, DOWN, listed, service
from tests.unit.worlds.imports import NETWORKS, SHOP, dc, import_object

EVERYWHERE = parsed_networks(["0.0.0.0/0", "::/0"])
CENTRE = parsed_networks(NETWORKS)
OURS = {"eurekube.cluster": CLUSTER}


def taken(address: str = "10.20.0.1", namespace: str = "elsewhere") -> EndpointSlice:
    """A slice of somebody else with this address."""
    return EndpointSlice(
        namespace=namespace,
        name="pods",
        service="pods",
        address_type="IPv4",
        ports=(EndpointPort(name="http", port=8080),),
        endpoints=(Endpoint(address=address),),
    )


def claim(
    *instances: ObservedInstance,
    of: ImportObject | None = None,
    slices: tuple[EndpointSlice, ...] = (),
    services: tuple[Service, ...] = (),
    rules: Rules | None = None,
) -> Importing:
    """The claim of one import."""
    import_ = of or import_object()
    view = ImportView(imports=listed([import_]), services=listed(services), slices=listed(slices))
    rules = rules or Rules(clusters=frozenset({CLUSTER}), networks=CENTRE)
    (found,) = claim_imports(view, ByName(instances), rules).values()
    assert isinstance(found, Importing)
    return found


def reason(instance: ObservedInstance, **fields: Any) -> str:
    """Why it is left out; empty if it is wanted."""
    (verdict,) = claim(instance, **fields).verdicts.values()
    return verdict.reason.value if isinstance(verdict, LeftOut) else ""


def test_an_instance_of_the_data_centre_is_wanted() -> None:
    """Also one of another cluster, and one that names our owner alone."""
    (verdict,) = claim(dc(1)).verdicts.values()
    assert isinstance(verdict, Wanted)
    assert str(verdict.socket) == "10.20.0.1:8080"
    assert [(port.name, port.port) for port in verdict.ports] == [("http", 8080)]
    assert reason(dc(1, metadata={"eurekube.cluster": "another", "eurekube.owner": "prod"})) == ""


WORST = dc(
    1,
    metadata={**OURS, "zone": "b"},
    status=DOWN,
    address="dc-1.example.com",
    plain=False,
)
"""Every reason fits."""


@pytest.mark.parametrize(
    ("mended", "expected"),
    [
        (WORST, "OwnCluster"),
        (dc(1, metadata={"zone": "b"}, status=DOWN, address="dc-1", plain=False), "NotMatching"),
        (dc(1, metadata={"zone": "a"}, status=DOWN, address="dc-1", plain=False), "NotUp"),
        (dc(1, metadata={"zone": "a"}, address="dc-1", plain=False), "NoUsableAddress"),
        (dc(1, metadata={"zone": "a"}, address="10.21.0.1", plain=False), "OutsideNetworks"),
        (dc(1, metadata={"zone": "a"}, plain=False), "InCluster"),
        (dc(2, metadata={"zone": "a"}, plain=False), "NoEnabledPort"),
        (dc(2, metadata={"zone": "a"}), ""),
    ],
)
def test_the_reasons_come_in_this_order(mended: ObservedInstance, expected: str) -> None:
    """Each instance has one fault less than the one before."""
    import_ = import_object(select={"zones": ["a"]})
    slices = (taken(), taken("10.21.0.1"))
    assert reason(mended, of=import_, slices=slices) == expected


@pytest.mark.parametrize(
    "address",
    [
        "",
        "dc-1.example.com",
        "10.20.0.01",
        "010.20.0.1",
        "10.20.1",
        "0x0a140001",
        "10.20.0.1 ",
        "127.0.0.1",
        "0.0.0.0",
        "0.1.2.3",
        "169.254.169.254",
        "224.0.0.1",
        "239.1.2.3",
        "240.0.0.1",
        "255.255.255.255",
        "::ffff:10.20.0.1",
        "::ffff:a14:1",
    ],
)
def test_an_address_that_is_no_one_machine_is_never_written(address: str) -> None:
    """Not even within the networks of the operator. The API server takes some of them."""
    everything = Rules(clusters=frozenset(), networks=EVERYWHERE)
    assert reason(dc(1, address=address), rules=everything) == "NoUsableAddress"


@pytest.mark.parametrize(
    "address",
    [
        "::",
        "::1",
        "fe80::1",
        "fe80::1%eth0",
        "ff02::1",
        "fd00:0::1",
        "FD00::1",
        "::ffff:10.20.0.1",
        "::ffff:a14:1",
        "64:ff9b::7f00:1",
        "fd00:ec2::254",
        "2002:7f00:1::",
        "10.20.0.1",
    ],
)
def test_the_same_holds_for_ipv6(address: str) -> None:
    everything = Rules(clusters=frozenset(), networks=EVERYWHERE)
    import_ = import_object(addressFamily="IPv6")
    assert reason(dc(1, address=address), of=import_, rules=everything) == "NoUsableAddress"
    assert reason(dc(1, address="fd00::1"), of=import_, rules=everything) == ""


def test_the_family_is_that_of_the_spec_then_of_the_service_then_of_the_networks() -> None:
    """Of a Service that is still to be made nobody knows it."""
    both = [dc(1), dc(2, address="fd00::2")]
    rules = Rules(clusters=frozenset(), networks=EVERYWHERE)
    six = Rules(clusters=frozenset(), networks=EVERYWHERE[1:])
    dual = service("review", namespace=SHOP, ip_families=("IPv6", "IPv4"))
    adopt = import_object(service={"adopt": True})
    asked = import_object(addressFamily="IPv4", service={"adopt": True})

    def wanted(**fields: Any) -> list[str]:
        return [str(socket) for socket in claim(*both, **fields).wanted]

    assert wanted(rules=rules) == ["10.20.0.1:8080"]
    assert wanted(rules=six) == ["[fd00::2]:8080"]
    assert wanted(rules=rules, of=adopt, services=(dual,)) == ["[fd00::2]:8080"]
    assert wanted(rules=rules, of=asked, services=(dual,)) == ["10.20.0.1:8080"]
    lacking = claim(*both, of=asked, services=(replace(dual, ip_families=("IPv6",)),), rules=rules)
    why = [refusal.message for refusal in lacking.refusals]
    assert why == ["Service review has no addresses of IPv4: correct addressFamily"]


@pytest.mark.parametrize(
    ("instance", "spec", "expected"),
    [
        (dc(1), {}, [("http", 8080)]),
        (dc(1, secure=8443), {}, [("http", 8080)]),
        (dc(1, secure=8443), {"securePort": 443}, [("http", 8080), ("https", 8443)]),
        (dc(1), {"securePort": 443}, [("http", 8080)]),
        (dc(1, secure=8443, plain=False), {"securePort": 443}, [("https", 8443)]),
        (dc(1, secure=8443, plain=False), {}, []),
        (dc(1, port=0), {}, []),
        (dc(1, port=65536), {}, []),
        (dc(1, port=65535), {}, [("http", 65535)]),
        (dc(1, port=1), {}, [("http", 1)]),
    ],
)
def test_the_ports_are_those_that_the_instance_enables_and_the_service_offers(
    instance: ObservedInstance, spec: dict[str, Any], expected: list[tuple[str, int]]
) -> None:
    (verdict,) = claim(instance, of=import_object(service=spec)).verdicts.values()
    ports = verdict.ports if isinstance(verdict, Wanted) else ()
    assert [(port.name, port.port) for port in ports] == expected


def test_zones_and_metadata_choose_instances() -> None:
    """All entries have to be equal."""
    zones = import_object(select={"zones": ["a", "b"]})
    assert reason(dc(1, metadata={"zone": "b"}), of=zones) == ""
    assert reason(dc(1), of=zones) == "NotMatching"
    metadata = import_object(select={"metadata": {"version": "2", "team": "x"}})
    assert reason(dc(1, metadata={"version": "2", "team": "x", "more": ""}), of=metadata) == ""
    assert reason(dc(1, metadata={"version": "2"}), of=metadata) == "NotMatching"


def test_instances_are_found_by_app_or_by_any_of_their_vips() -> None:
    """In any case, as Eureka's clients do."""
    one, two, three = dc(1, vip="Ratings, reviews"), dc(2, app="other", vip="REVIEWS"), dc(3)
    by_vip = claim(one, two, three, of=import_object(vipAddress="Reviews"))
    assert [str(socket) for socket in by_vip.wanted] == ["10.20.0.1:8080", "10.20.0.2:8080"]
    by_app = claim(one, two, three, of=import_object("any", app="Review"))
    assert [str(socket) for socket in by_app.wanted] == ["10.20.0.1:8080", "10.20.0.3:8080"]


def test_two_instances_at_one_place_are_one_endpoint() -> None:
    """The one that is UP counts, and why the other is left out is told by its own verdict."""
    twice = [dc(1), dc(2, address="10.20.0.1"), dc(3, address="10.20.0.1", status=DOWN)]
    found = claim(*twice)
    assert list(found.wanted) == [Socket("10.20.0.1", (8080,))]
    assert found.left_out == {"NotUp": 1}


def test_the_most_frequent_reason_comes_first() -> None:
    found = claim(dc(1, status=DOWN), dc(2, plain=False), dc(3, plain=False))
    assert list(found.left_out.items()) == [("NoEnabledPort", 2), ("NotUp", 1)]


def test_a_slice_of_an_import_occupies_no_address() -> None:
    """Not even one of another import; only what others wrote does."""
    imported = replace(taken(), managed_by="import.eurekube.io", owner_uid="another")
    assert reason(dc(1), slices=(imported,)) == ""
    assert reason(dc(1), slices=(taken(),)) == "InCluster"


def test_own_slices_are_told_by_the_uid_in_their_namespace() -> None:
    """The owner name of the installation does not matter."""
    own = replace(
        taken(namespace=SHOP), managed_by="import.eurekube.io", owner_uid="uid-of-shop-review"
    )
    elsewhere = replace(own, namespace="elsewhere")
    assert claim(dc(1), slices=(own, elsewhere)).slices == (own,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.20.0.0/16", ["10.20.0.0/16"]),
        ("10.20.0.0/16, fd00::/8", ["10.20.0.0/16", "fd00::/8"]),
        ("10.20.0.7", ["10.20.0.7/32"]),
    ],
)
def test_networks_are_read_from_the_option(text: str, expected: list[str]) -> None:
    assert list(networks_in(text)) == expected


@pytest.mark.parametrize("text", ["", "dc", "10.20.0.1/16", "10.20.0.0/16,"])
def test_what_is_no_network_is_refused(text: str) -> None:
    """A host in a network would be a mistake."""
    with pytest.raises(ValueError, match=r"is no network: write it such as 10.20.0.0/16"):
        networks_in(text)


def test_two_instances_at_one_place_are_one_endpoint_in_any_order() -> None:
    """Eureka's servers list them in orders of their own, and that must write no slice."""
    import_ = import_object(service={"securePort": 443})
    plain = dc(1, port=8443)
    secure = dc(2, address="10.20.0.1", port=8443, secure=8443, plain=False)
    both = dc(3, address="10.20.0.1", port=8443, secure=8443)
    for instances in permutations([plain, secure, both]):
        (wanted,) = claim(*instances, of=import_).wanted.values()
        assert [port.name for port in wanted.ports] == ["http", "https"]
    for instances in permutations([plain, secure]):
        (wanted,) = claim(*instances, of=import_).wanted.values()
        assert [port.name for port in wanted.ports] == ["https"]
