"""Small stories of bugs that random stories met once in tens of thousands. Each broke a promise
before the bug was fixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from . import decisions as d
from . import events as e
from .ambiguous import ServicePortsSet
from .asked import Asked, Limit
from .run import run
from .story import Installation, Mode, Story
from .test_stories import assert_kept, plain, setting
from .troubles import EUREKA_CALLS, Call, Kind, Trouble
from .world import PORT, SERVICE_PORT


def deleted_while_the_second_peer_is_away(mode: Mode, interval: float) -> Story:
    """Batches of cancels reach only the first server. When the second is back, nothing names their
    ids any more."""
    away = Trouble(at=135, until=178, calls=EUREKA_CALLS | {Call.OTHER}, kind=Kind.REFUSED, peer=1)
    gone = (
        e.ServiceDeleted(at=160, app="rating"),
        *(e.PodEnds(at=160, app="rating", number=n) for n in (0, 1)),
    )
    return replace(
        plain(
            (
                *setting("rating", "cart"),
                e.SyncerDeleted(at=132, name="rating", app="rating"),
                *gone,
            ),
            away,
        ),
        installation=Installation(mode=mode, interval=interval, peers=2, batches=True),
        ends=195,
    )


def moved_while_the_second_peer_is_away(at: float, lasts: float) -> Story:
    """Its pod's new address is registered only with the first server. The second comes back with
    the old one, before the new lease is due."""
    away = Trouble(
        at=at, until=at + lasts, calls=EUREKA_CALLS | {Call.OTHER}, kind=Kind.REFUSED, peer=1
    )
    moves = e.PodMoves(at=at + 2, app="rating", number=0, ip="10.0.0.77")
    return replace(
        plain((*setting("rating")[:3], *setting("cart"), moves), away),
        installation=Installation(peers=2, batches=True),
        ends=at + lasts + 30,
    )


def put_out_of_service_where_it_is() -> Story:
    """A single pass is killed when its batch of registrations has reached only the first of two
    servers. Before the next pass a person puts an instance out of service there."""
    killed = Trouble(
        at=0, until=9, calls=frozenset({Call.REGISTER}), kind=Kind.KILL_AFTER, strikes=1
    )
    return replace(
        plain((*setting("rating"), e.PersonOverrides(at=15, which=0)), killed),
        installation=Installation(mode=Mode.ONCE, interval=30, peers=2, batches=True),
        ends=31,
    )


def too_slow_for_a_pass(apps: Mapping[str, int], seconds: float) -> Story:
    """Single passes renew about half of the leases of so many pods, for a quarter of an hour."""
    slow = Trouble(at=65, until=965, calls=EUREKA_CALLS, kind=Kind.SLOW, seconds=seconds)
    pods = (
        e.PodStarted(at=0, app=app, number=number, ip=f"10.0.{place}.{number}")
        for place, app in enumerate(apps)
        for number in range(apps[app])
    )
    events = (*(event for app in apps for event in setting(app)[:2]), *pods)
    return replace(
        plain(events, slow),
        installation=Installation(mode=Mode.ONCE, interval=30, pass_seconds=30),
        ends=980,
    )


def an_old_list_of_an_earlier_crd() -> Story:
    """The old list shows every syncer being deleted, and the CRD that is read beside it is the next
    one."""
    older = Trouble(at=78, until=88, calls=frozenset({Call.SYNCERS}), kind=Kind.OLDER)
    story = plain((*setting("rating"), e.CrdDeleted(at=15, lasts=63, empty_for=1)), older)
    return replace(story, ends=100)


def moved_while_a_single_pass_is_late() -> Story:
    """The pass registers the new address when Eureka answers again. The next process begins in the
    same second, and remembers no registration."""
    silent = Trouble(at=2.8, until=62.8, calls=EUREKA_CALLS, kind=Kind.TIMEOUT_BEFORE)
    return replace(
        plain(
            (*setting("cart")[:3], e.PodMoves(at=34.1, app="cart", number=0, ip="10.0.0.6")), silent
        ),
        installation=Installation(mode=Mode.ONCE, interval=30, peers=2),
        ends=78,
    )


def copied_at_a_restart() -> Story:
    """The first server restarts and registers what the second one holds. The first list since shows
    a stranger's renewal and none of ours, and is minutes old later."""
    return replace(
        plain(
            (
                *setting("rating", "cart"),
                e.StrangerRegisters(at=60, who="service", app="rating", ip="10.0.0.30"),
                e.EurekaRestarts(at=202, peer=0, warm_up=20),
            )
        ),
        installation=Installation(mode=Mode.ONCE, interval=30, peers=2, batches=True, halves=True),
        ends=320,
    )


def beside_an_instance_whose_client_ended() -> Story:
    """The pod's own client ended long ago, so ours stays. Then the first server restarts, and
    registers what the second one holds, also the instance that nobody renews."""
    return replace(
        plain(
            (
                *setting("rating"),
                e.SyncerApplied(
                    at=1, name="rating", app="rating", asked=Asked(on_duplicate="Warn")
                ),
                e.StrangerRegisters(at=12, who="itself", app="rating", ip="10.0.0.10"),
                e.ClientEnds(at=45, app="rating", ip="10.0.0.10"),
                e.SyncerApplied(
                    at=260, name="rating", app="rating", asked=Asked(on_duplicate="Skip")
                ),
                e.EurekaRestarts(at=300, peer=0, warm_up=0),
            )
        ),
        installation=Installation(peers=2),
        ends=420,
    )


def dead_while_its_syncer_was_away() -> Story:
    """The CRD is installed again. A pass sees that the instance's pod is gone, and before the
    second look its syncer is back."""
    pod, rating = setting("pay")[:3], setting("rating")[:3]
    gone = (
        e.ServiceDeleted(at=29.5, app="pay"),
        e.PodMoves(at=50, app="pay", number=0, ip="10.0.0.5"),
    )
    story = plain((*pod, *rating, *gone, e.CrdDeleted(at=67.8, lasts=24.4, empty_for=17.9)))
    return replace(story, ends=180)


def handed_over_before_the_port(asked: Asked) -> Story:
    """The old syncer is detached in the release that makes its heir, and the Service gets the port
    that the heir asks for half a minute later."""
    none = Asked(limit=Limit(kind="count", value=0))
    web = (("web", SERVICE_PORT, PORT),)
    return replace(
        plain(
            (
                *setting("rating", "cart"),
                e.SyncerApplied(at=12, name="rating-next", app="rating", asked=asked),
                e.SyncerApplied(at=12, name="rating", app="rating", asked=none),
                ServicePortsSet(at=45, app="rating", ports=web),
            )
        ),
        ends=70,
    )


def paused_in_the_second_look(installation: Installation) -> Story:
    """The pass after the one that first sees an app unready is paused, when it has read that."""
    begins = 60 + installation.interval
    return replace(
        plain(
            (
                *setting("rating", "cart"),
                *(e.PodTurns(at=52, app="rating", number=number, ready=False) for number in (0, 1)),
            ),
            Trouble(
                at=begins - 1,
                until=begins + 5,
                calls=frozenset({Call.SLICES}),
                kind=Kind.PAUSE_AFTER,
                strikes=1,
                seconds=16,
            ),
        ),
        installation=installation,
        ends=140,
    )


def suspended_where_a_deletion_ended(name: str, *, after: float) -> Story:
    """A second copy cancels what a deleted syncer had. The first copy has seen that UP, and then
    meets a suspended syncer of the same pods, so many seconds later."""
    return replace(
        plain(
            (
                *setting("rating", "cart"),
                e.SyncerDeleted(at=21, name="rating", app="rating"),
                d.DeletionAbandoned(at=21, name="rating", app="rating"),
                e.SecondCopyRuns(at=22),
                e.SyncerApplied(at=22 + after, name=name, app="rating", asked=Asked(suspend=True)),
            )
        ),
        ends=90,
    )


def dead_before_another_of_its_app_is_back() -> Story:
    """One of two pods is gone, and the other one's instance is out of service. Before the second
    look, a person takes that back, and its pod is not ready."""
    return replace(
        plain(
            (
                *setting("rating", "cart"),
                e.SyncerApplied(at=1, name="rating", app="rating", asked=Asked(not_ready="Cancel")),
                e.PersonOverrides(at=46, which=3),
                e.PodTurns(at=50, app="rating", number=1, ready=False),
                e.PodEnds(at=65, app="rating", number=0),
                e.PersonReleases(at=80.8),
            )
        ),
        ends=140,
    )


def replaced_while_the_first_peer_fails(*, turn: bool, calls: Call, skip: int) -> Story:
    """The only pods of two apps are replaced, or turn unready beside new ones. The first of two
    peers takes a registration and fails a later call, so the next calls go to the second one, which
    may not have the new pod yet."""
    replaced: list[e.Event] = []
    for number, app in enumerate(("rating", "cart")):
        replaced.append(e.PodStarted(at=65, app=app, number=2, ip=f"10.0.0.7{number}"))
        if turn:
            replaced.append(e.PodTurns(at=65, app=app, number=0, ready=False))
        else:
            replaced.append(e.PodEnds(at=65, app=app, number=0))
    fails = Trouble(
        at=65, until=80, calls=frozenset({calls}), kind=Kind.PAGE, skip=skip, strikes=1, peer=0
    )
    return replace(
        plain((*setting("rating")[:3], *setting("cart")[:3], *replaced), fails),
        installation=Installation(peers=2),
        ends=140,
    )


MENDED: dict[str, Story] = {
    "a pod is gone, and before the second look another of its app is "
    "back": dead_before_another_of_its_app_is_back(),
    "pods go, and one of two peers took one of their two successors": (
        replaced_while_the_first_peer_fails(turn=False, calls=Call.REGISTER, skip=1)
    ),
    "pods turn unready, and one of two peers took one of their two successors": (
        replaced_while_the_first_peer_fails(turn=True, calls=Call.REGISTER, skip=1)
    ),
    "pods go, and the peer that took their successors refuses a "
    "cancel": replaced_while_the_first_peer_fails(turn=False, calls=Call.CANCEL, skip=0),
    "pods turn unready, and the peer that took their successors refuses to turn one "
    "DOWN": replaced_while_the_first_peer_fails(turn=True, calls=Call.REGISTER, skip=2),
    "a suspended syncer of the same name follows one whose instances were "
    "cancelled": suspended_where_a_deletion_ended("rating", after=9),
    "a suspended syncer of another name follows one whose instances were "
    "cancelled": suspended_where_a_deletion_ended("rating-next", after=9),
    "a suspended syncer follows one whose instances an old list still "
    "shows": suspended_where_a_deletion_ended("rating-next", after=3),
    "a daemon is paused between the lists that it confirms a removal by and the "
    "removal": paused_in_the_second_look(Installation()),
    "a single pass is paused between the lists that it confirms a removal by and the "
    "removal": paused_in_the_second_look(Installation(mode=Mode.ONCE, interval=15)),
    "the old syncer is detached before its heir can be served": handed_over_before_the_port(
        Asked(port="web")
    ),
    "the old syncer is detached before its heir with a gate can be served": (
        handed_over_before_the_port(Asked(port="web", readiness_gate=True))
    ),
    "a pod is seen dead, and its syncer is back before the second "
    "look": dead_while_its_syncer_was_away(),
    "ours does not give way to an instance that nobody renews, which a restarted server has "
    "registered": (beside_an_instance_whose_client_ended()),
    "an instance that a server copied at its restart is not one that nobody "
    "renews": copied_at_a_restart(),
    "every lease has its turn, though each pass takes a little longer than the "
    "interval": too_slow_for_a_pass({"cart": 3, "pay": 3, "rating": 3, "stock": 2}, 5.3),
    "an old list tells of an earlier CRD's end": an_old_list_of_an_earlier_crd(),
    "a pod registers itself after us": plain(
        (*setting("rating"), e.StrangerRegisters(at=12, who="itself", app="rating", ip="10.0.0.10"))
    ),
    "a pod registers itself after us under a name that nobody resolves": plain(
        (
            *setting("rating"),
            e.StrangerRegisters(at=12, who="itself", app="rating", ip="10.0.0.10", by_name=True),
        )
    ),
    "a pod registers itself before us under a name that nobody resolves": plain(
        (
            e.StrangerRegisters(at=0, who="itself", app="rating", ip="10.0.0.10", by_name=True),
            *setting("rating"),
        )
    ),
    "one of two peers refuses a batch of a new address, and each single call": replace(
        plain(
            (
                *setting("rating")[:3],
                *setting("cart"),
                e.PodMoves(at=34, app="rating", number=0, ip="10.0.0.77"),
            ),
            Trouble(
                at=34,
                until=45,
                calls=frozenset({Call.REGISTER}),
                kind=Kind.FORBIDDEN,
                skip=1,
                strikes=6,
            ),
        ),
        installation=Installation(peers=2, batches=True),
    ),
    "a daemon ends a deletion, and one of two peers was "
    "away": deleted_while_the_second_peer_is_away(Mode.DAEMON, 10),
    "a peer is away for 12 s while an app's only pod moves": moved_while_the_second_peer_is_away(
        40, 12
    ),
    "a peer is away for 18 s while an app's only pod moves": moved_while_the_second_peer_is_away(
        60, 18
    ),
    "a person puts out of service what the first of two peers has "
    "alone": put_out_of_service_where_it_is(),
    "an app's only pod moves, and a single pass begins as soon as the one before it has "
    "registered it": (moved_while_a_single_pass_is_late()),
    "a CronJob ends a deletion, and one of two peers was "
    "away": deleted_while_the_second_peer_is_away(Mode.TWICE, 60),
}


@pytest.mark.parametrize("name", MENDED)
def test_no_promise_is_broken_any_more(name: str) -> None:
    """The present program keeps every promise."""
    assert_kept(run(MENDED[name]))
