"""Duplicates: ours beside the instance that a pod's own Eureka client registers. With `onDuplicate:
Skip` ours is cancelled, and callers lose nothing.

These are whole passes.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.model.actions import Cancel, Grounds
from eurekube_sync.model.errors import RegistryUnavailable, RegistryUnusable
from eurekube_sync.model.eureka import (
    InstanceKey,
    InstanceStatus,
    LeaseTimes,
    ObservedInstance,
    Port,
)
from eurekube_sync.model.kubernetes import EndpointPort, PodRef, ServicePort
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import OwnWrites
from eurekube_sync.plan.duplicates import lacks
from tests.unit.plan.test_left_alone import condition, itself, setting, standing
from tests.unit.worlds.build import (
    DENIED,
    DOWN,
    NS,
    OUT,
    UP,
    changed,
    endpoint,
    instance,
    key,
    piece,
    service,
    stored,
    syncer,
)
from tests.unit.worlds.fakes import FakeWorld

ITS_OWN = itself(1).key


def appears(world: FakeWorld, *numbers: int) -> None:
    """These pods register themselves, and their instances are renewed."""
    for number in numbers:
        world.registry.put(itself(number))
        world.registry.renew(itself(number).key)


def half_a_minute(world: FakeWorld, *numbers: int, times: int = 1) -> None:
    """Make passes, each half a minute after these pods renewed their own instances."""
    for _ in range(times):
        world.later(30)
        for number in numbers:
            world.registry.renew(itself(number).key)
        world.run()


def lone(*pods: int, cache: float = 0) -> FakeWorld:
    """An app that has all our instances. The brake has its defaults."""
    world = FakeWorld(cache=cache)
    world.cluster.apply(service(), syncer(), piece(*map(endpoint, pods)))
    return world


def always_served(world: FakeWorld, ip: str) -> list[str]:
    """The calls after which callers find no UP instance at the address."""
    bare: list[str] = []

    def look() -> None:
        if not any(
            one.instance.ip_addr == ip and one.status is UP for one in world.registry.held.values()
        ):
            bare.append(world.wire.calls[-1])

    world.wire.then = look
    return bare


# --- Our instance is cancelled --------------------------------------------------------------------


def test_a_pod_that_registers_itself_after_us_is_left_with_its_own_instance() -> None:
    """The condition names it, callers find the pod all the time, and later passes change
    nothing."""
    world = setting()
    bare = always_served(world, "10.0.0.1")
    appears(world, 1)
    report = world.run()
    assert standing(world) == {key(2): UP, ITS_OWN: UP}
    assert condition(world, "Conflict").reason == "DuplicateRegistration"
    assert (
        "10.0.0.1:8080: its pod registers itself as rating-1:rating. Turn"
        in condition(world, "Conflict").message
    )
    assert [(one.key, one.was, one.grounds) for one in report.plan.of(Cancel)] == [
        (key(1), UP, Grounds.DUPLICATE)
    ]
    assert report.held is None
    half_a_minute(world, 1)
    assert world.wire.writes() == []
    assert bare == []


def test_a_new_pod_that_an_old_list_does_not_show_is_left_with_its_own_instance() -> None:
    """In a rolling update it registers itself and becomes ready. Eureka's list is up to 30 s
    old."""
    world = lone(1, cache=30)
    world.own_writes = OwnWrites(seconds=60)
    appears(world, 1)
    world.run()
    world.later(1)
    appears(world, 2)
    world.cluster.apply(piece(endpoint(1), endpoint(2)))
    world.run()
    assert standing(world) == {ITS_OWN: UP, itself(2).key: UP, key(2): UP}  # no read could show it
    half_a_minute(world, 1, 2, times=2)
    assert standing(world) == {ITS_OWN: UP, itself(2).key: UP}
    assert "rating-1:rating" in condition(world, "Conflict").message
    assert condition(world, "Conflict").message.endswith(" (and 1 more)")


def test_an_instance_registered_again_without_a_list_is_cancelled_with_the_next_list() -> None:
    """It is all that we own. The brake does not hold the cancel, because callers lose nothing."""
    world = lone(1, 2)
    appears(world, 1, 2)
    world.run()
    good, world.registry._list = world.registry._list, lambda: DENIED  # type: ignore[method-assign]
    world.run()
    assert {key(1), key(2)} <= set(standing(world))
    world.registry._list = good  # type: ignore[method-assign]
    half_a_minute(world, 1, 2)
    assert standing(world) == {ITS_OWN: UP, itself(2).key: UP}
    assert condition(world, "RemovalHeld").status == "False"
    assert condition(world, "Conflict").reason == "DuplicateRegistration"


def test_a_cancel_for_a_duplicate_hides_no_loss_from_the_brake() -> None:
    """Of three apps, one loses its instance to a duplicate. The other two would lose all of theirs,
    and are held."""
    world = lone(1)
    for number, name in ((8, "cart"), (9, "pay")):
        world.cluster.apply(
            service(name, labels={"app": name}), syncer(name, selector={"app": name})
        )
        world.cluster.apply(piece(endpoint(number), service=name))
    world.brake = BrakeLimits(confirm_after=0)
    world.run()
    appears(world, 1)
    for name in ("cart", "pay"):
        world.cluster.apply(piece(service=name))
    world.cluster.pods[NS] = tuple(
        PodRef(f"rating-{number}", f"uid-of-rating-{number}") for number in (8, 9)
    )
    report = world.run()
    assert standing(world) == {ITS_OWN: UP}
    assert report.held is not None
    assert [one.key.app for one in report.held.removals] == ["CART", "PAY"]


def test_our_instance_is_registered_again_when_the_pods_own_is_gone() -> None:
    """Its image has no client any more, and the lease of its own instance expires."""
    world = setting()
    appears(world, 1)
    world.run()
    for _ in range(7):
        half_a_minute(world)
        world.registry.evict()
    half_a_minute(world)
    assert standing(world) == {key(1): UP, key(2): UP}
    assert condition(world, "Conflict").status == "False"


def test_of_several_at_its_address_one_that_is_up_is_enough() -> None:
    """The other one is DOWN, from a pod that was there before."""
    world = setting()
    world.registry.put(changed(itself(1), key=InstanceKey("RATING", "a:rating"), status=DOWN))
    appears(world, 1)
    world.run()
    assert key(1) not in world.registry.held


def test_of_several_at_its_address_one_that_is_renewed_is_enough() -> None:
    """The pod registered the other one before it was started again."""
    world = setting()
    before = InstanceKey("RATING", "a:rating")
    world.registry.put(changed(itself(1), key=before))
    world.registry.renew(before)
    world.later(65)
    appears(world, 1)
    world.run()
    assert key(1) not in world.registry.held


# --- Our instance stays ---------------------------------------------------------------------------


def is_down(world: FakeWorld) -> None:
    """It is DOWN, while an older list shows UP."""
    world.registry.cached_for(30)
    world.registry.held[ITS_OWN] = changed(world.registry.held[ITS_OWN], status=DOWN)


def is_gone(world: FakeWorld) -> None:
    """It is gone, while an older list shows it."""
    world.registry.cached_for(30)
    del world.registry.held[ITS_OWN]


def is_not_to_be_read(world: FakeWorld) -> None:
    """It cannot be read, and only the list shows it."""
    world.registry.refuse_read[ITS_OWN] = RegistryUnavailable("timed out")


def ours_is_not_to_be_read(world: FakeWorld) -> None:
    """Ours cannot be read, and only the list shows it."""
    world.registry.refuse_read[key(1)] = RegistryUnavailable("timed out")


def stands(change: Callable[[ObservedInstance], ObservedInstance]) -> Callable[[FakeWorld], None]:
    """Another instance is in its place."""

    def put(world: FakeWorld) -> None:
        world.registry.held[ITS_OWN] = change(world.registry.held[ITS_OWN])

    return put


def nobody_renews_it(world: FakeWorld) -> None:
    """It is from a pod that ended at this address."""
    world.later(65)


STAYS: dict[str, tuple[Callable[[FakeWorld], None], str]] = {
    "it is DOWN, which the list does not show": (is_down, "the pod's own instance is DOWN"),
    "it cannot be read": (is_not_to_be_read, "one of the two could not be read again"),
    "ours cannot be read": (ours_is_not_to_be_read, "one of the two could not be read again"),
    "another VIP": (
        stands(lambda one: changed(one, vip_address="rating-old")),
        "the pod's own instance lacks the VIP address of ours",
    ),
    "another port as well": (
        stands(lambda one: changed(one, port=Port(80, True), secure_port=Port(8080, True))),
        "the pod's own instance has other ports",
    ),
    "the pod's name": (
        stands(lambda one: changed(one, host_name="rating-1")),
        "callers outside may be unable to resolve rating-1, the host name of the pod's own "
        "instance",
    ),
    "another's address": (
        stands(lambda one: changed(one, host_name="10.0.0.9")),
        "callers outside may be unable to resolve 10.0.0.9, the host name of the pod's own "
        "instance",
    ),
    "nobody renews it": (
        nobody_renews_it,
        "nobody renews the pod's own instance, which can therefore expire",
    ),
    "nobody renews it at its own period": (
        stands(
            lambda one: changed(one, lease=LeaseTimes(1, 90), last_renewal=one.last_renewal - 3000)
        ),
        "nobody renews the pod's own instance, which can therefore expire",
    ),
}


@pytest.mark.parametrize("why", STAYS)
def test_our_instance_stays_where_callers_cannot_use_the_pods_own(why: str) -> None:
    """The condition says why."""
    change, said = STAYS[why]
    world = setting()
    appears(world, 1)
    change(world)
    world.run()
    assert standing(world)[key(1)] is UP
    assert condition(world, "Conflict").reason == "DuplicateRegistration"
    assert (
        f"as rating-1:rating. Ours is registered as well, because {said}. Turn"
        in condition(world, "Conflict").message
    )


COMES: dict[str, tuple[Callable[[ObservedInstance], ObservedInstance], str]] = {
    "the pod's name": (
        lambda one: changed(one, host_name="rating-1"),
        "callers outside may be unable to resolve rating-1, the host name of the pod's own "
        "instance",
    ),
    "another VIP": (
        lambda one: changed(one, vip_address="rating-old"),
        "the pod's own instance lacks the VIP address of ours",
    ),
    "another port as well": (
        lambda one: changed(one, port=Port(80, True), secure_port=Port(8080, True)),
        "the pod's own instance has other ports",
    ),
}


@pytest.mark.parametrize("why", COMES)
def test_our_instance_is_registered_beside_one_that_callers_cannot_use(why: str) -> None:
    """The pod registered itself first, and callers would not find it. Both are registered, and the
    condition says so."""
    change, said = COMES[why]
    world = lone(1)
    appears(world, 1)
    stands(change)(world)
    world.run()
    assert standing(world) == {key(1): UP, ITS_OWN: UP}
    told = condition(world, "Conflict")
    assert (told.status, told.reason) == ("True", "DuplicateRegistration")
    assert f"as rating-1:rating. Ours is registered as well, because {said}. Turn" in told.message
    half_a_minute(world, 1, times=2)
    assert standing(world) == {key(1): UP, ITS_OWN: UP}
    assert world.wire.writes() == []


@pytest.mark.parametrize("status", [DOWN, OUT])
def test_nothing_is_registered_beside_a_pods_own_instance_that_is_not_up(
    status: InstanceStatus,
) -> None:
    """Our instance would send callers to the pod again."""
    world = lone(1)
    appears(world, 1)
    stands(lambda one: changed(one, host_name="rating-1", status=status))(world)
    world.run()
    assert standing(world) == {ITS_OWN: status}
    # Without the syncer, no caller would find the app.
    advice = condition(world, "Conflict").message
    assert "or register ours beside it (spec.onDuplicate: Warn)" in advice
    assert "delete the syncer" not in advice


def test_our_instance_beside_a_pods_own_is_a_successor_once_registered() -> None:
    """In a rolling update the earlier pod's instance is cancelled in the same pass, after ours is
    registered. It stays where ours is refused."""
    for refused in (False, True):
        world = lone(1)
        world.brake = BrakeLimits(confirm_after=0)
        world.run()
        appears(world, 2)
        world.registry.held[itself(2).key] = changed(itself(2), host_name="rating-2")
        world.cluster.apply(piece(endpoint(2)))
        if refused:
            world.registry.refuse[key(2)] = RegistryUnusable("answered 400")
        world.run()
        assert (key(1) in world.registry.held, key(2) in world.registry.held) == (
            refused,
            not refused,
        )


@pytest.mark.parametrize(
    ("lease", "seconds", "lives"),
    [
        (LeaseTimes(30, 90), 60, True),
        (LeaseTimes(30, 90), 61, False),
        (LeaseTimes(10, 90), 21, False),
        (LeaseTimes(30, 10), 20, True),
        (LeaseTimes(30, 10), 21, False),
        (LeaseTimes(0, 0), 60, True),  # Eureka's default times
        (LeaseTimes(0, 0), 61, False),
    ],
)
def test_its_own_lives_while_it_was_renewed_within_two_of_its_periods(
    lease: LeaseTimes, seconds: int, lives: bool
) -> None:
    """The periods count from the last renewal of ours, by the server's clock."""
    ours = changed(stored(instance()), lease=LeaseTimes(30, 90), last_renewal=1_000_000)
    renewed = 1_000_000 - 1000 * seconds + 1000 * ((lease.duration or 90) - 90)
    its = changed(itself(1), lease=lease, last_renewal=renewed)
    assert lacks(its, instance(), ours) == (
        None if lives else "nobody renews the pod's own instance, which can therefore expire"
    )


@pytest.mark.parametrize("duration", [10, 90])
@pytest.mark.parametrize("later", [0, 20, 50, 70])
def test_a_registration_by_a_restarted_server_is_no_renewal(duration: int, later: int) -> None:
    """A server that restarts registers what another server holds, also the instance of a client
    that has ended."""
    restart = 1_000_000_000
    ours = changed(
        stored(instance()),
        registered=restart,
        last_renewal=restart + (later and 1000 * (later + 300)),
    )
    its = changed(
        itself(1), lease=LeaseTimes(30, duration), registered=restart, last_renewal=restart
    )
    assert (
        lacks(its, instance(), ours)
        == "nobody renews the pod's own instance, which can therefore expire"
    )
    again = replace(its, last_renewal=restart + 1000 * (later + duration))
    assert lacks(again, instance(), ours) is None


def test_our_instance_stays_where_only_an_old_list_shows_the_pods_own() -> None:
    """The pod's own instance is gone, so there is nothing to report."""
    world = setting()
    appears(world, 1)
    is_gone(world)
    world.run()
    assert standing(world) == {key(1): UP, key(2): UP}
    assert condition(world, "Conflict").status == "False"


def test_a_vip_in_other_letters_is_the_same() -> None:
    """Eureka's clients ignore case."""
    world = setting()
    appears(world, 1)
    stands(lambda one: changed(one, vip_address="old,Rating"))(world)
    world.run()
    assert key(1) not in world.registry.held


@pytest.mark.parametrize(
    ("host", "left"),
    [
        ("Rating-1.example.com", False),
        ("10.0.0.1", False),
        ("[10.0.0.1]", False),
        ("rating-1", True),
        ("", True),
    ],
)
def test_ours_gives_way_to_the_same_host_name_or_the_address_in_its_place(
    host: str, left: bool
) -> None:
    """Callers call the host name. A caller that cannot resolve names loses nothing by an
    address."""
    world = setting(hostName="podName.example.com")
    assert world.registry.held[key(1)].instance.host_name == "rating-1.example.com"
    appears(world, 1)
    stands(lambda one: changed(one, host_name=host))(world)
    world.run()
    assert (key(1) in world.registry.held) is left


def test_a_host_name_is_compared_whole() -> None:
    """Only the brackets of an IPv6 address do not count."""
    wanted = replace(instance(), host_name="x.example.com")
    for name, lacking in (
        ("X.Example.com", False),
        ("[X.Example.com]", False),
        (".example.com", True),
    ):
        assert (
            lacks(changed(itself(1), host_name=name), wanted, stored(wanted)) is not None
        ) is lacking


@pytest.mark.parametrize(("vip", "left"), [("rating", False), ("", True)])
def test_a_secure_vip_counts_where_the_secure_port_is_on(vip: str, left: bool) -> None:
    """Callers find ours under both VIPs."""
    world = FakeWorld()
    tls = ServicePort(name="https", port=443, target=8443)
    ports = (EndpointPort(name="http", port=8080), EndpointPort(name="https", port=8443))
    world.cluster.apply(
        service("rating", *service().ports, tls),
        syncer(port="http", securePort="https"),
        replace(piece(endpoint(1)), ports=ports),
    )
    world.run()
    appears(world, 1)
    stands(lambda one: changed(one, secure_port=Port(8443, True), secure_vip_address=vip))(world)
    ours = world.registry.held[key(1)]
    assert (ours.instance.secure_port, ours.instance.secure_vip_address) == (
        Port(8443, True),
        "rating",
    )
    world.run()
    assert (key(1) in world.registry.held) is left


@pytest.mark.parametrize("status", [OUT, DOWN])
def test_a_status_that_a_person_set_is_kept(status: InstanceStatus) -> None:
    """A cancel would forget it."""
    world = setting()
    world.registry.override(key(1), status)
    appears(world, 1)
    world.run()
    assert standing(world)[key(1)] is status
    assert (
        f"a person set it {status.value}, and a cancel would delete that"
        in condition(world, "Conflict").message
    )


def test_a_status_that_a_person_set_is_kept_although_the_pod_was_unready() -> None:
    """Eureka still has it, and a cancel would forget it."""
    world = setting()
    world.registry.override(key(1), OUT)
    world.cluster.apply(
        syncer(metadata={"version": "2"}), piece(endpoint(1, ready=False), endpoint(2))
    )
    world.run()
    assert standing(world)[key(1)] is DOWN
    appears(world, 1)
    world.cluster.apply(piece(endpoint(1), endpoint(2)))
    world.run()
    assert standing(world)[key(1)] is OUT


def test_an_unready_pod_with_a_duplicate_is_turned_down_like_any_other() -> None:
    """When the pod is ready again its instance is cancelled. The two are never UP at the same
    time."""
    world = setting()
    world.cluster.apply(piece(endpoint(1, ready=False), endpoint(2)))
    appears(world, 1)
    world.run()
    assert standing(world) == {key(1): DOWN, key(2): UP, ITS_OWN: UP}
    assert (
        "Ours is registered as well, because the pod is not ready or is drained, so ours is to be "
        "DOWN. Turn" in condition(world, "Conflict").message
    )
    world.cluster.apply(piece(endpoint(1), endpoint(2)))
    half_a_minute(world, 1)
    assert standing(world) == {key(2): UP, ITS_OWN: UP}


def test_with_warn_both_stay_registered() -> None:
    """The condition says so, and nothing is cancelled."""
    world = setting(onDuplicate="Warn")
    appears(world, 1)
    half_a_minute(world, 1, times=2)
    assert standing(world) == {key(1): UP, key(2): UP, ITS_OWN: UP}
    assert (
        "registers itself as rating-1:rating as well, and gets twice the calls"
        in condition(world, "Ready").message
    )


def test_a_suspended_syncer_keeps_both() -> None:
    """It changes nothing, and its condition reports both."""
    world = setting()
    world.cluster.apply(syncer(suspend=True))
    world.run()
    appears(world, 1)
    half_a_minute(world, 1)
    assert standing(world) == {key(1): UP, key(2): UP, ITS_OWN: UP}
    assert condition(world, "Conflict").reason == "DuplicateRegistration"


def test_another_installations_instance_is_none_of_the_pods_own() -> None:
    """Two owners may register one pod, each for its own callers."""
    world = setting()
    world.registry.put(changed(itself(1), metadata={"eurekube.owner": "other"}))
    world.run()
    assert standing(world)[key(1)] is UP
    assert condition(world, "Conflict").status == "False"


def test_no_removal_waits_for_our_instance_beside_a_pods_own() -> None:
    """An instance without an endpoint is removed, because nothing is to be registered in its
    place."""
    world = setting()
    world.registry.override(key(1), OUT)
    appears(world, 1)
    stands(lambda one: changed(one, status=DOWN))(world)
    world.cluster.apply(piece(endpoint(1)))
    world.run()
    assert standing(world) == {key(1): OUT, ITS_OWN: DOWN}
