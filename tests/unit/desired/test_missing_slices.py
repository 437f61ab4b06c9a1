"""Services without EndpointSlices, through whole passes: the slices are not made yet, or somebody
deleted them.

The cluster makes a slice per address family for each Service with a selector, even if it has no
endpoints (tests/contract/test_kubernetes.py). A Service without slices therefore shows nothing
about its pods.
"""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.model.kubernetes import Condition, EndpointSlice, PodRef, Service, SyncerRef
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import DENIED, NS, REF, endpoint, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld

TEAM = {"team": "x"}
BY_TEAM: dict[str, Any] = {"selector": {"matchLabels": TEAM}}
A, B, C, D, E = (f"RATING 10.0.0.{number}:8080" for number in (1, 2, 3, 4, 5))
DUAL: dict[str, Any] = {"ip_families": ("IPv4", "IPv6"), "cluster_ips": ("10.96.0.1", "fd00::1")}


def two_services(*slices: EndpointSlice, **spec: Any) -> FakeWorld:
    """One syncer after a first pass, for `blue` with the pods 1 and 2, and `green` with the pods 3
    and 4."""
    found = world(
        service("blue", labels=TEAM, cluster_ips=("10.96.0.1",)),
        service("green", labels=TEAM, cluster_ips=("10.96.0.2",)),
        syncer(**BY_TEAM, appName="rating", **spec),
        *(slices or (blue(1, 2), green(3, 4))),
    )
    lives(found, 1, 2, 3, 4)
    return found


def world(*things: Any) -> FakeWorld:
    """The world after a first pass, with another app, so that no removal concerns all our
    instances."""
    found = FakeWorld()
    found.cluster.apply(
        *things,
        syncer("other", selector={"app": "other"}),
        service("other", labels={"app": "other"}),
        piece(*(endpoint(number) for number in range(90, 99)), service="other"),
    )
    found.run()
    return found


def blue(*numbers: int) -> EndpointSlice:
    return piece(*(endpoint(number) for number in numbers), service="blue")


def green(*numbers: int) -> EndpointSlice:
    return piece(*(endpoint(number) for number in numbers), service="green")


def without(world: FakeWorld, *names: str) -> None:
    """Remove the slices of these Services, or those with these names, from the lists."""
    world.cluster.slices = [
        one for one in world.cluster.slices if not {one.service, one.name} & {*names}
    ]


def lives(world: FakeWorld, *numbers: int) -> None:
    """These pods are in the list of pods, whatever slices show."""
    world.cluster.pods[NS] = tuple(
        PodRef(f"rating-{number}", f"uid-of-rating-{number}") for number in numbers
    )


def ours(world: FakeWorld) -> dict[str, str]:
    """The syncer's instances."""
    return {
        place: status for place, status in world.statuses().items() if not place.startswith("OTHER")
    }


def synced(world: FakeWorld, ref: SyncerRef = REF) -> Condition:
    status = world.cluster.syncers[ref].status
    condition = status.condition("Synced") if status else None
    assert condition is not None
    return condition


def changes(world: FakeWorld) -> list[str]:
    """What the last pass wrote to Eureka."""
    return [call for call in world.wire.writes() if call.split()[0] in ("register", "cancel")]


def test_nothing_is_removed_while_one_of_two_services_has_no_slice() -> None:
    """Every instance is renewed, and the condition names the Service. When its slices are back, all
    is in sync."""
    world = two_services()
    without(world, "green")
    for _ in range(2):
        world.later(30)
        world.run()
        assert ours(world) == dict.fromkeys((A, B, C, D), "UP")
        assert world.wire.verbs().count("renew") == 4 + 9
        assert changes(world) == []
        assert (synced(world).status.value, synced(world).reason) == ("False", "NoEndpointSlices")
        assert "Service green has no EndpointSlice" in synced(world).message
    world.cluster.apply(green(4, 5))
    world.run()
    assert ours(world) == dict.fromkeys((A, B, D, E), "UP")
    assert synced(world).reason == "InSync"


def test_the_other_services_of_the_syncer_are_still_served() -> None:
    """One pod is new, one turns unready, and one terminates."""
    world = two_services()
    without(world, "green")
    world.cluster.apply(
        piece(
            endpoint(1, ready=False),
            endpoint(2, ready=False, terminating=True),
            endpoint(5),
            service="blue",
        )
    )
    world.run()
    assert ours(world) == {A: "DOWN", C: "UP", D: "UP", E: "UP"}


def test_a_pod_that_another_service_also_has_follows_that_service() -> None:
    """Both Services had the pod."""
    world = two_services(blue(1, 2), green(1, 3))
    without(world, "green")
    world.cluster.apply(
        piece(endpoint(1, ready=False, terminating=True), endpoint(2), service="blue")
    )
    world.run()
    assert ours(world) == {B: "UP", C: "UP"}


def test_a_service_whose_selector_matches_nothing_is_empty() -> None:
    """It has a slice, without endpoints."""
    world = two_services()
    world.cluster.apply(replace(green(), ports=()))
    world.run()
    assert ours(world) == dict.fromkeys((A, B), "UP")
    assert synced(world).reason == "InSync"


@pytest.mark.parametrize("gone", [True, False])
def test_an_instance_is_still_removed_when_its_pod_is_gone(gone: bool) -> None:
    """This is as with a syncer that is not served. A complete list of pods proves that the pod is
    gone, so dead pods are not kept for ever. While the pod is alive, its instance stays."""
    world = two_services()
    without(world, "green")
    world.cluster.apply(blue(1))
    lives(world, 1, 3, *(() if gone else (2,)))
    world.run()
    assert ours(world) == dict.fromkeys((A, C) if gone else (A, B, C), "UP")


@pytest.mark.parametrize("gone", [True, False])
def test_a_pods_instance_is_removed_with_it_while_mode_service_awaits_its_address(
    gone: bool,
) -> None:
    """The syncer was of mode pod before. The load balancer has no address yet, and nothing else
    would remove the instance."""
    found = world(syncer(), service(), piece(endpoint(1), endpoint(2)))
    spec = syncer(mode="service", service={"address": "LoadBalancer"})
    found.cluster.apply(spec, service(type="LoadBalancer"), piece())
    lives(found, 1, *(() if gone else (2,)))
    found.run()
    assert ours(found) == dict.fromkeys((A,) if gone else (A, B), "UP")
    assert synced(found).reason == "AddressPending"


def test_nothing_is_removed_while_the_pods_cannot_be_listed() -> None:
    """There is no proof without a list."""
    world = two_services()
    without(world, "green")
    world.cluster.unknown[("pods", NS)] = DENIED
    world.run()
    assert ours(world) == dict.fromkeys((A, B, C, D), "UP")


def test_an_instance_is_removed_when_another_pod_has_its_address() -> None:
    """This also holds if the other pod belongs to another app's Service."""
    world = two_services()
    without(world, "green")
    world.cluster.apply(
        piece(
            endpoint(3, pod="other-1"),
            *(endpoint(number) for number in range(91, 99)),
            service="other",
        )
    )
    world.run()
    assert C not in ours(world)
    assert ours(world)[D] == "UP"


def test_a_limit_counts_the_instances_of_a_service_without_slices() -> None:
    """Otherwise the limit would be exceeded when the slices are back. An instance within a limit
    then stays for good."""
    world = two_services(blue(), green(3, 4), limit=2)
    assert ours(world) == dict.fromkeys((C, D), "UP")
    without(world, "green")
    world.cluster.apply(blue(1, 2))
    world.run()
    assert ours(world) == dict.fromkeys((C, D), "UP")


def test_a_pod_that_is_already_registered_is_not_registered_a_second_time() -> None:
    """Behind two Services of different names it stays under the registered one. Behind one of them
    it belongs to another app."""
    things = (service("blue", labels=TEAM), syncer(**BY_TEAM), blue(1, 2))
    found = world(*things)
    assert ours(found) == dict.fromkeys(("BLUE 10.0.0.1:8080", "BLUE 10.0.0.2:8080"), "UP")
    found.cluster.apply(service("green", labels=TEAM), green(1, 2, 3))
    found.run()
    assert synced(found).reason == "InSync"
    assert ours(found) == dict.fromkeys(("BLUE 10.0.0.1:8080", "BLUE 10.0.0.2:8080"), "UP")
    lives(found, 1, 2, 3)
    without(found, "blue")
    found.run()
    assert ours(found) == dict.fromkeys(
        (*(f"BLUE 10.0.0.{n}:8080" for n in (1, 2)), "GREEN 10.0.0.3:8080"), "UP"
    )


@pytest.mark.parametrize("older", [True, False])
def test_a_younger_syncer_takes_over_nothing_while_slices_are_missing(older: bool) -> None:
    """The slices may be back in a moment, as with a syncer that is not served. An older syncer
    takes over what it wants at any time."""
    found = two_services()
    lives(found, 1, 2, 3, 4)
    found.cluster.apply(
        service("violet", labels={"app": "violet"}),
        piece(endpoint(3), service="violet"),
        syncer(
            "violet", selector={"app": "violet"}, appName="rating", created=500 if older else 2000
        ),
    )
    without(found, "green")
    found.run()
    marks = {
        one.instance.ip_addr: one.metadata["eurekube.syncer"]
        for one in found.registry.held.values()
    }
    assert marks["10.0.0.3"] == ("rating/violet" if older else "rating/rating")
    assert ours(found) == dict.fromkeys((A, B, C, D), "UP")


def test_with_limit_zero_instances_are_left_to_a_younger_syncer() -> None:
    """With or without slices, the syncer holds nothing that another one wants."""
    found = two_services()
    found.cluster.apply(
        service("violet", labels={"app": "violet"}),
        piece(endpoint(3), service="violet"),
        syncer("violet", selector={"app": "violet"}, appName="rating", created=2000),
        syncer(**BY_TEAM, appName="rating", limit=0),
    )
    without(found, "green")
    found.run()
    marks = {
        one.instance.ip_addr: one.metadata["eurekube.syncer"]
        for one in found.registry.held.values()
    }
    assert marks["10.0.0.3"] == "rating/violet"


@pytest.mark.parametrize("not_ready", ["Down", "Cancel"])
def test_an_instance_that_a_service_without_slices_drained_stays_down(not_ready: str) -> None:
    """The pod is behind another Service as well. A pod that was not drained is not drained now,
    because nobody knows."""
    found = two_services(blue(1, 2), green(1), notReady=not_ready)
    found.cluster.apply(
        replace(service("green", labels=TEAM), annotations={"eurekube.io/drain": "true"})
    )
    found.run()
    assert ours(found) == {A: "DOWN", B: "UP"}
    without(found, "green")
    for ready in (True, False, True):
        found.cluster.apply(piece(endpoint(1, ready=ready), endpoint(2), service="blue"))
        found.run()
        assert ours(found) == {A: "DOWN", B: "UP"}
    found.cluster.apply(service("green", labels=TEAM), green(1))
    found.run()
    assert ours(found) == {A: "UP", B: "UP"}


@pytest.mark.parametrize("families", [("IPv4", "IPv6"), ("IPv6", "IPv4")])
def test_a_family_without_a_slice_is_not_taken_for_empty(families: tuple[str, ...]) -> None:
    """A dual-stack Service has a slice of each family with the same pods. Only the second family's
    slice is left."""
    addresses = {"IPv4": "10.0.0.{}", "IPv6": "fd00::1{}"}
    slices = [
        piece(
            *(endpoint(n, address=addresses[one].format(n)) for n in (1, 2)), family=one, name=one
        )
        for one in families
    ]
    found = world(service(**{**DUAL, "ip_families": families}), syncer(), *slices)
    stands = ours(found)
    assert len(stands) == 2
    lives(found, 1, 2)
    without(found, families[0])
    for _ in range(2):
        found.run()
        found.later(30)
    assert ours(found) == stands
    assert synced(found).reason == "NoEndpointSlices"
    assert f"no EndpointSlice of {families[0]}," in synced(found).message


def test_the_family_that_is_not_asked_for_may_be_without_a_slice() -> None:
    """Nothing is read from that family."""
    found = world(service(**DUAL), syncer(), piece(endpoint(1)))
    assert ours(found) == {A: "UP"}
    assert synced(found).reason == "InSync"


def test_a_service_of_another_family_does_not_matter() -> None:
    """It has neither an address nor a slice of the requested family."""
    found = world(
        service("blue", labels=TEAM),
        service("green", labels=TEAM, ip_families=("IPv6",)),
        syncer(**BY_TEAM, appName="rating", addressFamily="IPv4"),
        blue(1),
    )
    assert ours(found) == {A: "UP"}
    assert synced(found).reason == "InSync"


def test_an_external_name_without_slices_blocks_no_other_service() -> None:
    """An ExternalName Service beside others blocks nothing. Alone it serves no pods at all."""
    elsewhere = service("green", labels=TEAM, type="ExternalName", cluster_ips=(), ip_families=())
    found = world(
        service("blue", labels=TEAM), elsewhere, syncer(**BY_TEAM, appName="rating"), blue(1, 2)
    )
    found.cluster.apply(blue(1))
    found.run()
    assert ours(found) == {A: "UP"}
    assert synced(found).reason == "InSync"
    alone = world(elsewhere, syncer(**BY_TEAM, appName="rating"))
    assert synced(alone).reason == "NoEndpointSlices"
    assert "ExternalName" in synced(alone).message


def external(name: str) -> Service:
    """The Service after somebody made it an ExternalName. Its slices stay as they were."""
    return service(name, labels=TEAM, type="ExternalName", cluster_ips=(), ip_families=())


def test_the_slices_of_a_service_that_became_an_external_name_prove_nothing() -> None:
    """No controller updates them any more, so a pod that has ended stays ready there. An instance
    is removed with its pod, and the other Services are still served."""
    green = piece(endpoint(2), endpoint(3), service="green")
    found = world(
        service("blue", labels=TEAM),
        service("green", labels=TEAM),
        syncer(**BY_TEAM, appName="rating"),
    )
    found.cluster.apply(blue(1), green)
    found.run()
    assert ours(found) == dict.fromkeys((A, B, C), "UP")
    found.cluster.apply(external("green"), blue(1, 4))
    found.cluster.ended = {"uid-of-rating-3"}
    found.run()
    assert ours(found) == dict.fromkeys((A, B, "RATING 10.0.0.4:8080"), "UP")
    assert (synced(found).reason, "are left from before" in synced(found).message) == (
        "NoEndpointSlices",
        True,
    )


def test_a_syncer_whose_only_service_became_an_external_name_is_not_served() -> None:
    found = world(service("green", labels=TEAM), syncer(**BY_TEAM, appName="rating"))
    found.cluster.apply(piece(endpoint(1), endpoint(2), service="green"))
    found.run()
    found.cluster.apply(external("green"))
    found.cluster.ended = {"uid-of-rating-2"}
    found.run()
    assert ours(found) == {A: "UP"}
    assert synced(found).reason == "NoEndpointSlices"


def test_old_slices_of_an_external_name_replace_no_pod() -> None:
    """Another pod has the address that its pod had, and the Service of that other pod is missing
    for a moment."""
    found = world(service("blue", labels=TEAM), syncer(**BY_TEAM, appName="rating"))
    found.cluster.apply(blue(1), replace(external("green"), labels={}))
    found.cluster.apply(piece(endpoint(1, pod="long-gone"), service="green"))
    found.run()
    assert ours(found) == {A: "UP"}
    found.cluster.services = [one for one in found.cluster.services if one.name != "blue"]
    found.cluster.slices = [one for one in found.cluster.slices if one.service != "blue"]
    found.cluster.pods = {NS: (PodRef("rating-1", "uid-of-rating-1"),)}
    found.run()
    assert ours(found) == {A: "UP"}


def test_mode_service_serves_an_external_name_whatever_slices_are_left() -> None:
    """Its old slices may have ports that it no longer has."""
    found = world(
        replace(external("green"), external_name="rating.example.com"),
        syncer(**BY_TEAM, mode="service"),
    )
    found.cluster.apply(piece(endpoint(1, ready=False), service="green", port_name="old"))
    found.run()
    assert ours(found) == {"GREEN rating.example.com:80": "UP"}


@pytest.mark.parametrize("family", ["IPv4", "IPv6"])
def test_a_service_without_a_selector_has_the_slices_that_people_write(family: str) -> None:
    """The slices may be of any family. Without slices the instances stay, and the condition says
    what to do."""
    by_hand = replace(service("green", labels=TEAM, **DUAL), selects=False)
    bare = piece(endpoint(3, pod=None), service="green")
    found = world(
        service("blue", labels=TEAM), by_hand, syncer(**BY_TEAM, appName="rating"), blue(1), bare
    )
    without(found, "green")
    found.run()
    assert ours(found) == dict.fromkeys((A, C), "UP")
    assert "write one" in synced(found).message
    found.cluster.apply(piece(service="green", family=family))
    found.run()
    assert ours(found) == {A: "UP"}
    assert synced(found).reason == "InSync"


class TestModeService:
    """Each Service is an instance, which is UP while an endpoint behind it is ready."""

    GREEN = "RATING 10.96.0.2:80"
    BLUE = "RATING 10.96.0.1:80"

    @pytest.mark.parametrize("before", ["UP", "DOWN"])
    def test_a_service_without_slices_keeps_its_status(self, before: str) -> None:
        """The other Service's instance turns DOWN, and is UP again later."""
        found = two_services(mode="service")
        found.cluster.apply(piece(endpoint(3, ready=before == "UP"), service="green"))
        found.run()
        assert ours(found) == {self.BLUE: "UP", self.GREEN: before}
        without(found, "green")
        for status, ready in (("DOWN", False), ("UP", True)):
            found.cluster.apply(piece(endpoint(1, ready=ready), service="blue"))
            for _ in range(2):
                found.later(30)
                found.run()
            assert ours(found) == {self.BLUE: status, self.GREEN: before}
            assert synced(found).reason == "NoEndpointSlices"
            assert "green" in synced(found).message

    def test_without_any_slice_all_keeps_its_status(self) -> None:
        """This also holds at a second look."""
        found = two_services(mode="service")
        without(found, "blue", "green")
        for _ in range(3):
            found.run()
            found.later(30)
        assert ours(found) == {self.BLUE: "UP", self.GREEN: "UP"}

    def test_it_is_not_registered_before_it_has_slices(self) -> None:
        """It is not reported as DOWN either."""
        found = two_services(blue(1), mode="service")
        assert ours(found) == {self.BLUE: "UP"}
        assert synced(found).reason == "NoEndpointSlices"

    def test_a_family_without_a_slice_is_waited_for(self) -> None:
        """Callers may use an address of that family."""
        found = world(
            service(**DUAL),
            syncer(mode="service"),
            piece(endpoint(1)),
            piece(name="v6", family="IPv6"),
        )
        without(found, "rating-abc")
        for _ in range(2):
            found.run()
            found.later(30)
        assert ours(found) == {self.BLUE: "UP"}
        assert synced(found).reason == "NoEndpointSlices"

    def test_an_external_name_serves_without_slices(self) -> None:
        """A Service of type ExternalName has no slices."""
        elsewhere = replace(
            service(type="ExternalName", cluster_ips=(), ip_families=()),
            external_name="rating.example.com",
        )
        found = world(elsewhere, syncer(mode="service", port=80))
        assert ours(found) == {"RATING rating.example.com:80": "UP"}
