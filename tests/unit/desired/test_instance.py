"""The instances that we register in Eureka."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.desired.claims import Kept, Leaving, NotServed, Serving
from eurekube_sync.desired.instance import Builder, Site
from eurekube_sync.desired.resolve import better
from eurekube_sync.desired.spec import parse
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import Instance, InstanceKey, Port
from eurekube_sync.model.kubernetes import PodRef
from eurekube_sync.model.ownership import POD, SYNCER
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import (
    DOWN,
    LEASE,
    NAMING,
    REF,
    UP,
    desired,
    endpoint,
    piece,
    service,
    syncer,
)


def builder(**spec: Any) -> Builder:
    """A builder for this spec."""
    return Builder(parse(syncer(**spec)), NAMING)


def site(host: str = "10.0.0.1", port: int = 80, pod: PodRef | None = None) -> Site:
    """A site with a plain port."""
    return Site(host=host, port=port, secure_port=None, pod=pod)


def made(
    build: Builder, at: Site, *, app: str = "rating", up: bool = True, why: str = ""
) -> Instance:
    """The instance at this site."""
    return build.wanted(build.key(app, at), at, up=up, why=why).instance


def test_an_instance_has_all_that_a_spring_client_reads() -> None:
    """Host, port and VIP give its address. Lease and metadata give its owner and its duration."""
    build = builder(metadata={"version": "2"})
    found = made(
        build, site(port=8080, pod=PodRef("rating-1", "uid-1")), app=build.app_name(service())
    )
    assert found.key == InstanceKey("RATING", "prod:rating:rating:10.0.0.1:8080")
    assert (found.host_name, found.ip_addr, found.port, found.status) == (
        "10.0.0.1",
        "10.0.0.1",
        Port(8080, True),
        UP,
    )
    assert (found.vip_address, found.secure_vip_address) == ("rating", "rating")
    assert (found.secure_port.enabled, found.lease) == (False, LEASE)
    assert (found.metadata["version"], found.metadata[SYNCER]) == ("2", "rating/rating")
    assert found.metadata[POD] == "rating-1/uid-1"


def test_a_plain_port_that_is_off_has_the_number_of_the_secure_one() -> None:
    """Prometheus and py-eureka-client take the plain port even if it is off. At another number,
    another program could answer them."""
    found = made(builder(), Site(host="10.0.0.1", port=None, secure_port=8443))
    assert (found.port, found.secure_port) == (Port(8443, False), Port(8443, True))


def test_an_ipv6_address_is_bracketed_where_clients_make_urls_of_it() -> None:
    """Spring calls hostName. The ipAddr has no brackets."""
    found = made(builder(), site("fd00::1"), up=False)
    assert (found.host_name, found.ip_addr, found.status) == ("[fd00::1]", "fd00::1", DOWN)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, ("rating", "rating")),
        ({"vipAddress": "a,b"}, ("a,b", "a,b")),
        ({"secureVipAddress": "s"}, ("rating", "s")),
        ({"vipAddress": "a", "secureVipAddress": "s"}, ("a", "s")),
    ],
)
def test_a_vip_is_the_specs_or_the_apps_name_in_lower_case(
    spec: dict[str, object], expected: tuple[str, str]
) -> None:
    """The secure VIP follows the plain one."""
    found = made(builder(**spec), site(), app="Rating")
    assert (found.vip_address, found.secure_vip_address) == expected


def test_without_a_name_of_its_own_the_app_is_the_service() -> None:
    """Each Service is then an app of its own."""
    build = builder(selector={"matchLabels": {"team": "a"}})
    assert build.apps == set()
    assert [build.app_name(service(name)) for name in ("web", "db")] == ["web", "db"]
    assert build.apps == {"DB", "WEB"}


def test_a_services_name_that_is_no_app_name_is_refused() -> None:
    """The message names the Service."""
    with pytest.raises(InvalidSyncer, match="Service -x"):
        builder(selector={"service": "-x"}).app_name(service("-x"))


def test_a_setting_that_works_but_may_surprise_is_a_warning() -> None:
    """A VIP that Feign refuses is one. Other warnings appear once each, and a long list is cut."""
    assert builder().warnings("rating") == ()
    build, vips = builder(), "ra_ting,ok,al_so"
    assert len(build.warnings(vips)) == 2
    for warning in "gfedcba":
        build.warn(warning)
        build.warn(warning)
    assert build.warnings(vips)[2:] == (*"abcde", "and 2 more")


def test_of_two_pods_at_one_address_the_ready_one_wins_then_the_first() -> None:
    """The order of slices does not matter while a new pod takes over an address."""
    build = builder()
    key = build.key("rating", site())
    old, new, other = (
        build.wanted(key, site(pod=PodRef(name, name)), up=up, why=why)
        for up, why, name in ((False, "a", "old"), (True, "b", "new"), (True, "b", "other"))
    )
    assert better(old, new) is better(new, old) is new
    assert better(other, new) is better(new, other) is new


def test_of_two_pods_at_one_address_the_one_that_serves_wins() -> None:
    """Wanted before kept before leaving: an unclear one may serve, and one that ends soon will
    not."""
    build = builder()
    wanted = build.wanted(build.key("rating", site()), site(), up=False, why="a")
    kept = Kept(why="not known", host="10.0.0.1", port=8080)
    leaving = Leaving(why="terminates", terminating=True)
    assert better(wanted, kept) is better(kept, wanted) is wanted
    assert better(kept, leaving) is better(leaving, kept) is kept
    assert better(wanted, leaving) is better(leaving, wanted) is wanted


# --- How much metadata ----------------------------------------------------------------------------


def test_an_instance_has_at_most_4_kb_of_metadata() -> None:
    """Every Eureka client downloads the metadata of all instances. Our own marks do not count."""
    full = {f"k{number}": "x" * 1022 for number in range(4)}
    claim = desired([syncer(metadata=full)], [service()], [piece(endpoint())]).claims[REF]
    assert isinstance(claim, Serving)
    assert [len(one.instance.metadata) > 4 for one in claim.wanted.values()] == [True]
    more = desired([syncer(metadata={**full, "k4": ""})], [service()], [piece(endpoint())]).claims[
        REF
    ]
    assert isinstance(more, NotServed)
    assert (more.reason, more.message) == (
        "InvalidMetadata",
        "spec.metadata: metadata has at most 4096 bytes in all, keys and values together",
    )


def test_copied_metadata_is_left_out_where_it_is_too_large() -> None:
    """It is not the syncer's fault. A later entry that still fits is copied, and a letter may have
    two bytes."""
    labelled = replace(
        service(), annotations={"long": "\u00e9" * 1000, "more": "x" * 1024, "short": "y"}
    )
    copied = [{"key": name, "serviceAnnotation": name} for name in ("long", "more", "short")]
    asking = syncer(metadata={"a": "x" * 1023, "b": "x" * 100}, metadataFrom=copied)
    claim = desired([asking], [labelled], [piece(endpoint())]).claims[REF]
    assert isinstance(claim, Serving)
    (one,) = claim.wanted.values()
    assert {"long", "short"} <= set(one.instance.metadata)
    assert "more" not in one.instance.metadata
    assert claim.warnings == (
        "metadata more of pod rating-1 is left out: with it, the metadata has more than 4096 bytes",
    )
