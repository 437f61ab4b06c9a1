"""Stories in which the program does what a promise seems to forbid, and the contract demands it.

Random ones meet them once in thousands.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from eurekube_sync.adapters.kubernetes.objects import ReadinessItem
from eurekube_sync.desired import limit as limits
from eurekube_sync.desired import resolve
from eurekube_sync.desired.spec import Syncer
from eurekube_sync.model.kubernetes import PodReadiness, SyncerObject
from eurekube_sync.plan import left_out

from . import decisions as d
from . import events as e
from .addresses import ServiceGetsAddresses
from .asked import Asked, Limit
from .defect import made_wrong
from .defects import defects
from .elsewhere import AddressLeadsElsewhere, Twin
from .imports import data_centre as dc
from .imports import wishes as w
from .imports.stories import NETWORKS
from .machines import MachinesListen, MachinesServed
from .run import run
from .story import Installation, Mode, Story
from .test_stories import assert_kept, plain, setting
from .troubles import EUREKA_CALLS, KUBERNETES_CALLS, Call, Kind, Trouble

Contenders: Any = vars(left_out)["_Contenders"]
group_of = vars(Contenders)["_group_of"]


def _out_of_service_first(contenders: Any, key: Any, limit: Any, observed: Any) -> Any:
    """Take those out of service before those that callers reach."""
    group = group_of(contenders, key, limit, observed)
    if group is contenders.served:
        return contenders.put_out_before
    return contenders.served if group is contenders.put_out_before else group


GATED = Asked(readiness_gate=True)
NONE = Asked(limit=Limit(kind="count", value=0))
ONE = Asked(limit=Limit(kind="count", value=1))
HALF = Asked(limit=Limit(kind="pods", value=50))
SHARE = Asked(limit=Limit(kind="share", value=20))
PART = Asked(limit=Limit(kind="pods", value=40))
WITHOUT_A_PLACE = 1
"""The pod of `rating` that this limit leaves out of three."""
WITH_THE_PLACE = 0
"""The pod of `rating` that a limit of one lets in."""
IN_A_PASS = 30.5
"""A moment of a pass that has listed the slices, and asks again for pods, whose list fails."""


def unready_by_the_same_lists(*, interval: float) -> Story:
    """A process that is new has no lists yet. So its first pass gets true ones, and each later pass
    the same again."""
    return replace(
        plain(
            (
                *setting("rating", "cart"),
                *(e.PodTurns(at=52, app="rating", number=number, ready=False) for number in (0, 1)),
            ),
            Trouble(
                at=49, until=52, calls=frozenset({Call.SYNCERS}), kind=Kind.KILL_BEFORE, strikes=1
            ),
            Trouble(at=52, until=90, calls=KUBERNETES_CALLS, kind=Kind.OLDER),
        ),
        installation=Installation(interval=interval),
        ends=105,
    )


def restarts_while_paused_after(call: Call) -> Story:
    """A pod turns unready. The pass that sees it is paused after this call, and Eureka restarts
    meanwhile."""
    paused = Trouble(
        at=16, until=30, calls=frozenset({call}), kind=Kind.PAUSE_AFTER, strikes=1, seconds=7
    )
    return plain(
        (
            *setting("rating"),
            e.PodTurns(at=15, app="rating", number=0, ready=False),
            e.EurekaRestarts(at=24),
        ),
        paused,
    )


def cancelled_while_a_second_copy_registers(kind: Kind, until: float) -> Story:
    """The only pod is not ready, so its instance is DOWN, and it ends. A second copy registers the
    next pod at its address before a cancel of the first copy arrives. By that copy's uncached read,
    the cancel takes nothing UP."""
    return replace(
        plain(
            (
                *setting("rating"),
                e.PodTurns(at=5, app="rating", number=0, ready=False),
                e.PodEnds(at=12, app="rating", number=1),
                e.PodEnds(at=155, app="rating", number=0),
                e.PodStarted(at=161, app="rating", number=2, ip="10.0.0.10"),
                e.SecondCopyRuns(at=until - 2),
            ),
            Trouble(at=159, until=until, calls=frozenset({Call.CANCEL}), kind=kind, seconds=8),
        ),
        ends=200,
    )


def gate_of_a_taken_id(*names: str) -> Story:
    """A pod waits behind a gate for two syncers, with these app names, oldest first. A stranger has
    the id that the pod would have in app `rating`."""
    return plain(
        (
            e.ServiceApplied(at=0, app="rating"),
            *(
                e.SyncerApplied(at=at, name=name, app="rating", app_name=name, asked=GATED)
                for at, name in enumerate(names)
            ),
            e.StrangerRegisters(at=5, who="id", app="rating", ip="10.0.0.12"),
            e.PodStarted(at=15, app="rating", number=2, ip="10.0.0.12", gated=True),
        )
    )


def eureka_away_again(*, back: float) -> Story:
    """Eureka's lists fail, are good for so many seconds, and fail again. Then a pod waits behind a
    gate, until the second outage is five minutes old."""
    lists = frozenset({Call.LIST})
    events = (
        e.ServiceApplied(at=0, app="rating"),
        e.SyncerApplied(at=0, name="rating", app="rating", asked=GATED),
        e.PodStarted(at=60 + back, app="rating", number=0, ip="10.0.0.10", gated=True),
    )
    return replace(
        plain(
            events,
            Trouble(at=8, until=38, calls=lists, kind=Kind.ERROR_503),
            Trouble(at=38 + back, until=420, calls=lists, kind=Kind.ERROR_503),
        ),
        ends=450,
    )


def unready_and_cancelled_by_nobody(value: int, kind: str) -> Story:
    """An installation that cancels nothing has a syncer that is to register nothing. One of its
    pods then turns unready."""
    nothing = Asked(limit=Limit(kind=kind, value=value))
    return replace(
        plain(
            (
                *setting("rating"),
                e.SyncerApplied(at=12, name="rating", app="rating", asked=nothing),
                e.PodTurns(at=25, app="rating", number=0, ready=False),
            )
        ),
        installation=Installation(upsert_only=True),
    )


def renamed_by_a_late_registration(unready: float) -> Story:
    """A syncer gets another app name. The registration of its first pod times out three times, and
    Eureka's cached list does not show yet that it took effect. All pods turn unready meanwhile."""
    events = (
        *setting("rating", "cart", "pay"),
        e.SyncerApplied(at=12, name="rating", app="rating", app_name="fresh"),
        e.AllPodsTurn(at=unready, ready=False),
    )
    late = Trouble(
        at=13, until=72, calls=frozenset({Call.REGISTER}), kind=Kind.LATE, strikes=3, seconds=11
    )
    return replace(plain(events, late), ends=130)


def unready_while_a_cancel_is_replicated() -> Story:
    """A second syncer of one app gets the name of the first. The pass that cancels the instances of
    its former name reads slowly, from the second peer. The next pass reads the first peer before it
    hears of the cancels, and all pods are unready by then."""
    events = (
        *setting("rating", "cart", "pay", "stock"),
        e.SyncerApplied(at=12, name="rating-next", app="rating", app_name="fresh"),
        e.SyncerApplied(at=57, name="rating-next", app="rating"),
        e.AllPodsTurn(at=123, ready=False),
    )
    away = Trouble(at=80, until=101, calls=EUREKA_CALLS, kind=Kind.TIMEOUT_AFTER)
    slow = Trouble(at=101, until=124, calls=frozenset({Call.READ}), kind=Kind.SLOW, seconds=8)
    return replace(
        plain(events, away, slow),
        installation=Installation(mode=Mode.TWICE, interval=60, peers=2),
        ends=160,
    )


def older_than_the_spec(*events: e.Event) -> Story:
    """A Service is deleted, and its syncer's spec is changed after that. The next pass reads that
    spec, and lists that still show the Service."""
    return plain(
        (*setting("rating", "cart"), *events, e.ServiceDeleted(at=11, app="rating")),
        Trouble(at=19, until=25, calls=frozenset({Call.SERVICES, Call.SLICES}), kind=Kind.OLDER),
    )


def served_on_one_server(pods: int) -> Story:
    """The first Eureka server warms up, and hears nothing of new pods. Then a limit lets one of all
    pods in. A new process lists both servers, of which neither shows the new pods yet."""
    events = (
        *setting("rating"),
        e.EurekaRestarts(at=34, peer=0, warm_up=17),
        *(
            e.PodStarted(at=37, app="rating", number=2 + number, ip=f"10.0.0.{12 + number}")
            for number in range(pods)
        ),
        e.SyncerApplied(at=45, name="rating", app="rating", asked=ONE),
    )
    ends = Trouble(at=48, until=70, calls=frozenset({Call.SLICES}), kind=Kind.STOP, strikes=1)
    return replace(plain(events, ends), installation=Installation(peers=2, batches=True), ends=100)


def followed_before_its_heir_is_read(heir: Asked, *, ends: float) -> Story:
    """A syncer is renamed, and its heir needs a list that fails. Meanwhile the only pod that is
    registered ends, and nobody can register the one beside it."""
    events = (
        *setting("rating")[:3],
        e.SyncerApplied(at=12, name="rating-next", app="rating", asked=heir),
        e.SyncerDeleted(at=25, name="rating", app="rating"),
        e.PodStarted(at=26, app="rating", number=1, ip="10.0.0.11"),
        e.PodEnds(at=ends, app="rating", number=0),
    )
    unread = Trouble(at=24, until=60, calls=frozenset({Call.PODS}), kind=Kind.ERROR_500_AFTER)
    return replace(plain(events, unread), ends=90)


def ungated_after_old_slices(later: Asked) -> Story:
    """A pod waits behind a gate, which opens when it is registered. A pass reads a spec from after
    that, and the slices from before it, in which the pod is not ready."""
    events = (
        e.ServiceApplied(at=0, app="rating"),
        e.SyncerApplied(at=0, name="rating", app="rating", asked=GATED),
        e.PodStarted(at=0, app="rating", number=0, ip="10.0.0.10"),
        e.PodStarted(at=0, app="rating", number=1, ip="10.0.0.11", gated=True),
        e.SyncerApplied(at=8, name="rating", app="rating", asked=later),
    )
    older = Trouble(at=9, until=15, calls=frozenset({Call.SLICES}), kind=Kind.OLDER)
    return plain(events, older)


def ready_after_its_service(trouble: Trouble, *later: e.Event, starts: float = 0) -> Story:
    """A pod waits behind a gate, and is not ready before its Service is deleted. A pass is shown
    the Service, and lists the pod after that."""
    events = (
        *setting("rating", "cart"),
        asks("rating", 0, GATED),
        e.PodStarted(at=starts, app="rating", number=2, ip="10.0.0.12", ready=False, gated=True),
        e.ServiceDeleted(at=12, app="rating"),
        *later,
    )
    return plain(events, trouble)


TURNS_READY = e.PodTurns(at=13, app="rating", number=2, ready=True)
SHOWN_BY_OLD_LISTS = Trouble(
    at=19, until=25, calls=frozenset({Call.SERVICES, Call.SLICES}), kind=Kind.OLDER
)
SHOWN_BEFORE_A_PAUSE = Trouble(
    at=9, until=20, calls=frozenset({Call.SLICES}), kind=Kind.PAUSE_AFTER, strikes=1, seconds=5
)


def over_its_limit(*events: e.Event) -> Story:
    """Two of three pods have the places of a limit, and then the third one ends. Both stay UP,
    although the limit allows one of two."""
    limited = asks("rating", 0, PART)
    return replace(
        plain(
            (
                *setting("rating", "cart"),
                limited,
                e.PodStarted(at=0, app="rating", number=2, ip="10.0.0.12"),
                e.PodEnds(at=35, app="rating", number=WITHOUT_A_PLACE),
                *events,
            )
        ),
        ends=150,
    )


def one_server_younger_than_the_other() -> Story:
    """An app of the data centre ends while both Eureka servers are young. Time alone ends three
    waits of its import, one after the other: for each server's age, and for a second look."""
    review = [
        dc.InstanceStarts(at=0, app="review", number=number, address=f"10.20.0.{number + 1}")
        for number in range(2)
    ]
    return Story(
        seed=1,
        installation=Installation(peers=2, halves=True, networks=NETWORKS),
        events=(
            *setting("rating"),
            *review,
            dc.InstanceStarts(at=0, app="order", number=0, address="10.20.0.9"),
            w.ImportApplied(at=0, namespace="shop", name="review", team="two"),
            e.EurekaRestarts(at=150, peer=1),
            dc.AppStops(at=200, app="review"),
        ),
        ends=600,
    )


def asks(name: str, at: float, asked: Asked) -> e.SyncerApplied:
    """A syncer of `rating` gets this spec."""
    return e.SyncerApplied(at=at, name=name, app="rating", asked=asked)


FOLLOWED = {
    "a syncer is over its limit, and is created again after its CRD": over_its_limit(
        e.CrdDeleted(at=62, lasts=24, empty_for=17)
    ),
    "a syncer is over its limit, and is created again with a higher one": over_its_limit(
        e.CrdDeleted(at=62, lasts=24, empty_for=17),
        asks("rating", 105, HALF),
    ),
    "a syncer is over its limit, and has an heir with the same one": over_its_limit(
        asks("rating-next", 62, PART),
        e.SyncerDeleted(at=75, name="rating", app="rating"),
    ),
    "a syncer is over its limit, which is gone for a moment that no pass sees": over_its_limit(
        asks("rating", 62, Asked()),
        asks("rating", 65, PART),
    ),
}
"""Its successor keeps what it let in, by the mark of the limit."""


def left_out_before_a_peer_hears_of_down(*before: e.Event) -> Story:
    """One of two pods has the one place of a limit, turns unready, and is ready again when the pass
    that it loses its place in ends. Writes take seconds, so the next pass begins at once: it
    removes the instance that is DOWN, and the second server still has it UP."""
    return replace(
        plain(
            (
                *setting("rating", "cart"),
                *before,
                *(
                    e.PodTurns(at=at, app="rating", number=WITH_THE_PLACE, ready=ready)
                    for at, ready in ((35, False), (45, True))
                ),
            ),
            Trouble(
                at=36,
                until=70,
                calls=frozenset({Call.REGISTER}),
                kind=Kind.SLOW,
                strikes=2,
                seconds=8,
            ),
        ),
        installation=Installation(peers=2),
        ends=110,
    )


def reached_at(kind: str, at: float) -> e.Event:
    """The Service itself is to be the instance, at this kind of its addresses."""
    asked = Asked(mode="service", address=kind)
    return e.SyncerApplied(at=at, name="rating", app="rating", asked=asked)


CORNERS: dict[str, Story] = {
    **FOLLOWED,
    "a pod behind a gate turns ready after its Service is gone, which old lists have": (
        ready_after_its_service(SHOWN_BY_OLD_LISTS, TURNS_READY)
    ),
    "a pod behind a gate turns ready after its Service is gone, which a paused pass has listed": (
        ready_after_its_service(SHOWN_BEFORE_A_PAUSE, TURNS_READY)
    ),
    "a pod without a place of a limit any more is UP on a server that does not know yet that it is "
    "DOWN": left_out_before_a_peer_hears_of_down(asks("rating", 0, HALF)),
    "a pod without a place of a limit that was set since is UP on a server that does not know yet "
    "that it is DOWN": left_out_before_a_peer_hears_of_down(
        asks("rating", 0, ONE), asks("rating", 37, HALF)
    ),
    "a syncer gets a limit after its Service is gone, which old lists still "
    "show": older_than_the_spec(
        e.SyncerApplied(
            at=15, name="rating", app="rating", asked=Asked(limit=Limit(kind="count", value=1))
        )
    ),
    **{
        f"a lowered limit keeps one of {pods} pods that only one of two servers has": (
            served_on_one_server(pods)
        )
        for pods in (1, 2, 3)
    },
    **{
        f"the last pod ends at {ends} s, and its syncer's heir cannot be read ({name})": (
            followed_before_its_heir_is_read(heir, ends=ends)
        )
        for name, heir in (("a gate", GATED), ("a label", Asked(pod_label=True)))
        for ends in (IN_A_PASS, 34)
    },
    "a syncer waits for no gate any more, and old slices show a pod before its gate was open": (
        ungated_after_old_slices(Asked())
    ),
    "a syncer is detached after its Service is gone, which old lists still "
    "show": older_than_the_spec(e.SyncerApplied(at=15, name="rating", app="rating", asked=NONE)),
    "a syncer asks for another address after its Service is gone, which old lists still "
    "show": older_than_the_spec(
        ServiceGetsAddresses(at=0, app="rating", hosts=("192.0.2.1",), external=True),
        reached_at("ClusterIP", at=0),
        reached_at("ExternalIP", at=15),
    ),
    "all pods turn unready while a registration under another name is late": (
        renamed_by_a_late_registration(23)
    ),
    "all pods turn unready before a late registration under another name is listed": (
        renamed_by_a_late_registration(35)
    ),
    "all pods turn unready while a peer does not know yet of a cancel": (
        unready_while_a_cancel_is_replicated()
    ),
    "a pod turns unready whose syncer is to register nothing, and nothing is cancelled": (
        unready_and_cancelled_by_nobody(0, "count")
    ),
    "a pod turns unready whose syncer is to have no share, and nothing is cancelled": (
        unready_and_cancelled_by_nobody(0, "share")
    ),
    "a stranger has the id of a pod in the older of two apps, and the pod waits behind a gate": (
        gate_of_a_taken_id("rating", "fresh")
    ),
    "a stranger has the id of a pod in the younger of two apps, and the pod waits behind a gate": (
        gate_of_a_taken_id("fresh", "rating")
    ),
    "Eureka could be read once between two outages, and a pod waits behind a gate": (
        eureka_away_again(back=10)
    ),
    "Eureka could be read twice between two outages, and a pod waits behind a gate": (
        eureka_away_again(back=20)
    ),
    "a cancel is late on its way, and a second copy registers a new pod under the same id": (
        cancelled_while_a_second_copy_registers(Kind.LATE, until=165)
    ),
    "a cancel without an answer is repeated, and a second copy has registered a new pod under the "
    "same id": (cancelled_while_a_second_copy_registers(Kind.TIMEOUT_AFTER, until=175)),
    "another cluster uses our owner's name, and a deletion that a person abandoned waits for it "
    "to go": replace(
        plain(
            (
                *setting("rating"),
                e.StrangerRegisters(at=5, who="cluster", app="rating", ip="10.0.0.2"),
                e.SyncerDeleted(at=45, name="rating", app="rating"),
                d.DeletionAbandoned(at=47, name="rating", app="rating"),
                e.StrangerLeaves(at=85, who="cluster", app="rating", ip="10.0.0.2"),
            )
        ),
        ends=100,
    ),
    "another cluster's instance goes while the program is paused, and the cached list shows it "
    "after that": replace(
        plain(
            (
                *setting("rating"),
                e.StrangerRegisters(at=5, who="cluster", app="rating", ip="10.0.0.2"),
                e.SyncerDeleted(at=45, name="rating", app="rating"),
                d.DeletionAbandoned(at=47, name="rating", app="rating"),
                e.StrangerLeaves(at=98, who="cluster", app="rating", ip="10.0.0.2"),
            ),
            Trouble(
                at=48,
                until=60,
                calls=frozenset({Call.LIST}),
                kind=Kind.PAUSE_BEFORE,
                strikes=1,
                seconds=49,
            ),
        ),
        ends=130,
    ),
    "a CRD and its syncers are restored, and the Service of machines is gone": replace(
        plain(
            (
                *setting("stock"),
                MachinesServed(at=0, app="cart", how="slices"),
                MachinesListen(at=0, app="cart", sockets=(("203.0.113.1", 8080, True),)),
                e.CrdDeleted(at=12, lasts=20, empty_for=10),
                d.NamespaceDeleted(at=13, namespace="shop", lasts=10),
            )
        ),
        ends=100,
    ),
    "the successor of an abandoned syncer loses its Service before a pass has seen it": replace(
        plain(
            (
                *setting("rating", "cart"),
                e.SyncerDeleted(at=45, name="rating", app="rating"),
                d.DeletionAbandoned(at=45, name="rating", app="rating"),
                e.SyncerApplied(at=65, name="rating-next", app="rating"),
                e.ServiceDeleted(at=65.5, app="rating"),
            ),
            Trouble(at=44, until=62, calls=frozenset({Call.CANCEL}), kind=Kind.REFUSED),
        ),
        ends=150,
    ),
    "all pods end while the uncached reads of the first pass that misses them take "
    "seconds": replace(
        plain(
            (
                *setting("rating", "cart"),
                *(
                    e.PodEnds(at=17.2, app=app, number=number, grace=5)
                    for app in ("rating", "cart")
                    for number in (0, 1)
                ),
            ),
            Trouble(
                at=18.9,
                until=38.7,
                calls=frozenset({Call.READ}),
                kind=Kind.SLOW,
                strikes=1,
                seconds=7,
            ),
        ),
        ends=60,
    ),
    "a person takes a limit of 0 back when a pass has read it": replace(
        plain(
            (
                *setting("cart", "pay"),
                e.SyncerApplied(
                    at=14, name="cart", app="cart", asked=Asked(limit=Limit(kind="share", value=0))
                ),
                e.SyncerApplied(at=30.03, name="cart", app="cart"),
            )
        ),
        installation=Installation(mode=Mode.TWICE, interval=60, scoped=True, batches=True),
        ends=60,
    ),
    "by a clock that is far ahead a deletion is older than the list that does not show its "
    "instance yet": replace(
        plain(
            (
                e.ServiceApplied(at=0, app="stock"),
                *setting("cart")[:3],
                e.SyncerApplied(at=0, name="stock", app="stock"),
                d.NamespaceDeleted(at=3.6, namespace="shop", lasts=28),
                e.ClockJumps(at=5.3, by=3600, lasts=70),
                e.PodStarted(at=9.7, app="stock", number=2, ip="10.0.0.3"),
            ),
            Trouble(
                at=7.7,
                until=48,
                calls=EUREKA_CALLS,
                kind=Kind.KILL_AFTER,
                skip=5,
                strikes=1,
                seconds=12,
            ),
        ),
        installation=Installation(batches=True),
        ends=91,
    ),
    "a cached list tells of another cluster after the last trouble, to half of an "
    "installation": replace(
        plain(
            (
                *setting("rating", "cart"),
                e.StrangerRegisters(at=140, who="cluster", app="rating", ip="10.0.0.2"),
                e.SyncerDeleted(at=165, name="cart", app="cart"),
                e.StrangerLeaves(at=181, who="cluster", app="rating", ip="10.0.0.2"),
            )
        ),
        installation=Installation(halves=True),
        ends=196,
    ),
    "Eureka loses an instance while the program is paused, which has read it to turn it "
    "DOWN": restarts_while_paused_after(Call.READ),
    "Eureka loses what a suspended syncer has of pods that are not ready": replace(
        plain(
            (
                *setting("rating"),
                e.AllPodsTurn(at=3, ready=False),
                e.SyncerApplied(at=6, name="rating", app="rating", asked=Asked(suspend=True)),
                e.EurekaRestarts(at=20),
            )
        ),
        installation=Installation(interval=30),
    ),
    "a syncer gives its gate up after a pass has read it, and before it reads the pods": plain(
        (
            *setting("rating"),
            e.SyncerApplied(at=0, name="rating", app="rating", asked=GATED),
            e.PodStarted(at=9, app="rating", number=2, ip="10.0.0.12", gated=True),
            e.SyncerApplied(at=12, name="rating", app="rating"),
        ),
        Trouble(
            at=9,
            until=20,
            calls=frozenset({Call.SYNCERS}),
            kind=Kind.PAUSE_AFTER,
            strikes=1,
            seconds=5,
        ),
    ),
    "the last one that is UP waits for a pod whose own client says that it is not": plain(
        (
            *setting("rating", "cart"),
            e.PodEnds(at=4, app="rating", number=1),
            e.StrangerRegisters(at=5, who="itself", app="rating", ip="10.0.0.12"),
            e.ClientTurns(at=6, app="rating", ip="10.0.0.12", up=False),
            e.PodStarted(at=40, app="rating", number=2, ip="10.0.0.12"),
            e.PodTurns(at=40, app="rating", number=0, ready=False),
        )
    ),
    "a Service goes after a pass has read that its syncer is detached, and before it "
    "cancels": plain(
        (
            *setting("rating", "cart"),
            e.SyncerApplied(at=12, name="rating", app="rating", asked=NONE),
            e.ServiceDeleted(at=22, app="rating"),
        ),
        Trouble(
            at=19,
            until=30,
            calls=frozenset({Call.READ}),
            kind=Kind.PAUSE_AFTER,
            strikes=1,
            seconds=5,
        ),
    ),
    "a syncer is renamed beside one of its old name that has lost its Service": plain(
        (
            *setting("rating", "cart"),
            e.SyncerApplied(at=0, name="rating", app="rating", app_name="fresh"),
            e.SyncerApplied(at=0, name="cart", app="cart", app_name="fresh"),
            e.ServiceDeleted(at=12, app="rating"),
            e.SyncerApplied(at=25, name="cart", app="cart"),
        )
    ),
    "a successor tells what is held of a syncer that was renamed": replace(
        plain(
            (
                *setting("rating"),
                e.SyncerApplied(at=5, name="rating-next", app="rating"),
                e.AllPodsTurn(at=12, ready=False),
                e.SyncerApplied(at=35, name="rating", app="rating", app_name="fresh"),
            )
        ),
        ends=60,
    ),
    "a pod is replaced at its address, and older lists tell of its gate, shut": plain(
        (
            *setting("rating"),
            e.SyncerApplied(at=0, name="rating", app="rating", asked=GATED),
            e.PodStarted(at=0, app="rating", number=2, ip="10.0.0.12", gated=True),
            e.PodMoves(at=14, app="rating", number=2, ip="10.0.0.12"),
        ),
        Trouble(
            at=18,
            until=25,
            calls=frozenset({Call.SYNCERS, Call.SERVICES, Call.SLICES}),
            kind=Kind.OLDER,
        ),
    ),
    "what a person put out of service has the one place of a limit, and the last pod that was UP "
    "dies": replace(
        plain(
            (
                *setting("rating"),
                e.PodStarted(at=0, app="rating", number=2, ip="10.0.0.12"),
                e.SyncerApplied(at=0, name="rating", app="rating", asked=HALF),
                e.PersonOverrides(at=15, which=0),
                e.PodEnds(at=34, app="rating", number=2),
            )
        ),
        ends=80,
    ),
    "a person puts out of service what a paused pass leaves UP, and a second copy lets the other "
    "in": replace(
        plain(
            (
                *setting("rating", "cart"),
                e.SyncerApplied(at=12, name="rating", app="rating", asked=HALF),
                e.PersonOverrides(at=23, which=2),
                e.SecondCopyRuns(at=25),
            ),
            Trouble(
                at=19,
                until=30,
                calls=frozenset({Call.READ}),
                kind=Kind.PAUSE_AFTER,
                skip=1,
                strikes=1,
                seconds=25,
            ),
        ),
        ends=90,
    ),
    "Eureka loses what a suspended syncer has, which asks for another version since, while its "
    "CRD is deleted": replace(
        plain(
            (
                *setting("rating"),
                e.SyncerApplied(
                    at=12, name="rating", app="rating", asked=Asked(version="2", suspend=True)
                ),
                e.CrdDeleted(at=13, lasts=20, empty_for=10),
                e.EurekaRestarts(at=26),
            )
        ),
        ends=90,
    ),
    "what is held has another name by its syncer, and that is held, too": plain(
        (
            *setting("rating", "cart"),
            e.SyncerApplied(at=12, name="rating", app="rating", app_name="fresh"),
            e.SyncerApplied(at=25, name="rating", app="rating", app_name="fresh", asked=NONE),
        ),
        Trouble(at=15, until=28, calls=frozenset({Call.CANCEL}), kind=Kind.ERROR_503),
    ),
    "a suspended syncer goes at once, after a pass has read it, and its pod waits behind a "
    "gate": plain(
        (
            *setting("rating"),
            *setting("cart")[:2],
            e.SyncerApplied(
                at=0, name="cart", app="cart", asked=Asked(suspend=True, readiness_gate=True)
            ),
            e.PodStarted(at=19, app="cart", number=0, ip="10.0.0.50", gated=True),
            e.SyncerDeleted(at=22, name="cart", app="cart"),
        ),
        Trouble(
            at=19,
            until=30,
            calls=frozenset({Call.SYNCERS}),
            kind=Kind.PAUSE_AFTER,
            strikes=1,
            seconds=5,
        ),
    ),
    "a release ends right after the program came to rest": plain(
        (
            *setting("rating", "cart"),
            d.RemovalsReleased(at=12, name="rating", app="rating", lasts=92),
        )
    ),
    "an API server shows a new process the same lists in both passes that see an app unready": (
        unready_by_the_same_lists(interval=25)
    ),
    "Eureka restarts, empty, while a pass that took one instance is paused": (
        restarts_while_paused_after(Call.STATUS)
    ),
    "a pod that registers itself has the one place of a limit, and the last other one ends": (
        replace(
            plain(
                (
                    *setting("rating"),
                    e.PodStarted(at=0, app="rating", number=2, ip="10.0.0.12"),
                    e.SyncerApplied(at=0, name="rating", app="rating", asked=HALF),
                    e.StrangerRegisters(at=5, who="itself", app="rating", ip="10.0.0.10"),
                    e.PodEnds(at=54, app="rating", number=2),
                )
            ),
            ends=100,
        )
    ),
    "a late renewal of one server brings back on the other what is DOWN, and was removed with its "
    "CRD": replace(
        plain(
            (
                *setting("rating"),
                e.PodEnds(at=1, app="rating", number=1),
                e.PodTurns(at=35, app="rating", number=0, ready=False),
                e.CrdDeleted(at=101, lasts=39, empty_for=17),
            ),
            Trouble(
                at=149,
                until=179,
                calls=frozenset({Call.READ}),
                kind=Kind.ERROR_500_AFTER,
                strikes=1,
            ),
        ),
        installation=Installation(mode=Mode.ONCE, interval=30, peers=2),
        ends=480,
    ),
    "single passes hold a removal for so long at rest that its first sight counts no more": replace(
        plain(
            (
                *setting("rating", "cart"),
                e.AllPodsTurn(at=5, ready=False),
            )
        ),
        installation=Installation(mode=Mode.ONCE, interval=30),
        ends=560,
    ),
    "a person takes an override back, and the server that was told starts again at once": replace(
        plain(
            (
                *setting("rating"),
                e.PersonOverrides(at=5, which=0),
                e.PodTurns(at=8, app="rating", number=0, ready=False),
                e.PersonReleases(at=25),
                e.EurekaRestarts(at=25.3, peer=0),
            )
        ),
        installation=Installation(peers=2),
    ),
    "removals from an import of the other half wait for two young servers, and then for a second "
    "look": one_server_younger_than_the_other(),
    "an unready pod is ready again after a limit let another in, and one of two servers has not yet "
    "heard that it was DOWN": replace(
        plain(
            (
                *setting("rating"),
                e.StrangerRegisters(at=5, who="service", app="rating", ip="10.0.0.50"),
                asks("rating", 8, SHARE),
                e.PodTurns(at=9, app="rating", number=0, ready=False),
                e.PodTurns(at=22, app="rating", number=0, ready=True),
            ),
            Trouble(at=9, until=40, calls=frozenset({Call.REGISTER}), kind=Kind.SLOW, seconds=8.2),
        ),
        installation=Installation(peers=2),
    ),
    "the address leads home again before the pass asks whose its slices are": plain(
        (
            *setting("rating"),
            AddressLeadsElsewhere(
                at=15, lasts=10, skip=1, calls=2, twins=(Twin(app="rating", ips=("10.0.0.5",)),)
            ),
        ),
    ),
}


def test_an_address_is_free_when_its_pod_is_gone() -> None:
    """While a pod terminates, it keeps its address, and its instance may stay. As soon as it is
    gone, another app's pod may have the address."""
    last = Asked(terminating="KeepWhileServing")
    ends = e.PodEnds(at=12, app="rating", number=1, grace=40)
    events = (*setting("rating"), e.SyncerApplied(at=0, name="rating", app="rating", asked=last))
    starts = [
        e.PodStarted(at=at, app="cart", number=number, ip="10.0.0.11")
        for at, number in ((15, 2), (60, 3))
    ]
    cart = (e.ServiceApplied(at=0, app="cart"), e.SyncerApplied(at=0, name="cart", app="cart"))
    verdict = run(replace(plain((*events, *cart, ends, *starts)), ends=90), telling=True)
    assert_kept(verdict)
    told = [what for _, what in verdict.tale]
    assert "pod cart-2 starts at 10.0.0.12, ready" in told
    assert "pod cart-3 starts at 10.0.0.11, ready" in told


@pytest.mark.parametrize("name", CORNERS)
def test_no_promise_is_broken(name: str) -> None:
    """Each of these stories was once judged as broken, by mistake."""
    assert_kept(run(CORNERS[name]))


def test_the_way_home_was_excused() -> None:
    """The lists of another cluster led to a removal, and no client can know."""
    (reached,) = (
        run(story).reached for name, story in CORNERS.items() if "leads home again" in name
    )
    assert reached["what a pass did that asked when its address led home"]


def test_machines_of_a_service_that_is_gone_stayed() -> None:
    """The syncer is not served, and says why."""
    (reached,) = (
        run(story).reached
        for name, story in CORNERS.items()
        if "Service of machines is gone" in name
    )
    assert reached["what stays of a syncer machine that is not served"]


def test_a_spec_from_after_the_service_was_excused() -> None:
    """By what each pass read, the instances were too many, or at the wrong address."""
    stories = [story for name, story in CORNERS.items() if "which old lists still show" in name]
    assert len(stories) == 3
    for story in stories:
        assert run(story).reached[
            "a removal by a spec from after the Service that the pass was shown"
        ]


def test_a_spec_without_a_limit_excuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The spec changes in another field, and the program reads a limit of 0 in it."""
    story = older_than_the_spec(
        e.SyncerApplied(at=15, name="rating", app="rating", asked=Asked(version="2"))
    )
    assert_kept(run(story))
    parse = vars(resolve)["parse"]

    def detached(syncer: SyncerObject) -> Syncer:
        spec: Syncer = parse(syncer)
        limit = limits.Limit(measure=limits.Measure.COUNT, value=0)
        return msgspec.structs.replace(spec, limit=limit) if spec.metadata else spec

    monkeypatch.setattr(resolve, "parse", detached)
    assert run(story).promise == "removed"


def test_a_spec_without_a_gate_was_excused() -> None:
    """By the slices that the pass was shown, the pod was not ready."""
    verdict = run(ungated_after_old_slices(Asked()))
    assert verdict.reached["a removal by slices from before a gate was open"] == 1


def test_old_slices_alone_excuse_nothing() -> None:
    """While the spec has a gate, a pod counts that waits for nothing else."""
    verdict = run(ungated_after_old_slices(replace(GATED, version="2")))
    assert_kept(verdict)
    assert "a removal by slices from before a gate was open" not in verdict.reached


@pytest.mark.parametrize("ends", [IN_A_PASS, 34])
def test_an_heir_that_cannot_be_read_cannot_follow_a_dead_pod(ends: float) -> None:
    """The slices show that the pod of the last instance is gone, so no caller loses it."""
    verdict = run(followed_before_its_heir_is_read(GATED, ends=ends))
    assert verdict.reached["a last UP instance that went dead before its heir could be read"]


def test_an_heir_that_cannot_be_read_excuses_no_removal_of_what_the_slices_show() -> None:
    """Its pod ends in the pass that removes it, after the slices were listed."""
    (hasty,) = (
        defect
        for defect in defects()
        if defect.name == "the heir of a deleted syncer is not waited for"
    )
    with made_wrong(hasty):
        verdict = run(followed_before_its_heir_is_read(GATED, ends=IN_A_PASS))
    assert verdict.promise == "emptied"
    assert verdict.seconds < 40


@pytest.mark.parametrize("pods", [1, 2, 3])
def test_one_that_only_one_server_had_came_to_the_other(pods: int) -> None:
    """The limit lets it in by the same order on each server, so the others go there."""
    verdict = run(served_on_one_server(pods))
    assert verdict.reached["an instance that one server had UP, and comes to another"] == 1


def test_the_cancel_was_replicated_late() -> None:
    """The story has a held instance that an earlier pass cancelled."""
    verdict = run(unready_while_a_cancel_is_replicated())
    assert verdict.reached["a held instance that is gone when its pass ends"]


def test_the_race_for_an_id_was_excused() -> None:
    """No client can win it while two copies work: Eureka has no condition for a cancel."""
    stories = [story for name, story in CORNERS.items() if "under the same id" in name]
    assert len(stories) == 2
    for story in stories:
        assert run(story).reached[
            "a removal of an instance that another copy brought UP after the look"
        ]


def test_the_limit_had_no_place_for_the_last_one() -> None:
    """A substitute for the dead pod would be one too many when the person puts the other back, or
    beside the pod that registers itself."""
    stories = [story for name, story in CORNERS.items() if "one place of a limit" in name]
    assert len(stories) == 2
    for story in stories:
        assert run(story).reached["a last UP instance that went beside a place that is kept"]


def test_a_wait_began_anew_at_rest() -> None:
    """Its status says so, every ten minutes."""
    (reached,) = (run(story).reached for name, story in CORNERS.items() if "first sight" in name)
    assert reached["a wait of a held removal that began anew at rest"]


def test_the_waits_of_the_other_half_excuse_no_needless_write() -> None:
    """Its statuses are written in each pass, long before the app ends."""
    (busy,) = (
        defect
        for defect in defects()
        if defect.name == "the status of an import is written in each pass"
    )
    with made_wrong(busy):
        assert run(one_server_younger_than_the_other()).promise == "churn"


def test_old_lists_make_no_wait_shorter() -> None:
    """The second pass comes 10 s after the first, which is too early, and its lists are old."""
    assert_kept(run(unready_by_the_same_lists(interval=10)))
    (hasty,) = (
        defect for defect in defects() if defect.name == "the second look may follow at once"
    )
    with made_wrong(hasty):
        assert run(unready_by_the_same_lists(interval=10)).promise == "confirmed"


def test_a_limit_that_is_lowered_may_still_empty_no_app(monkeypatch: pytest.MonkeyPatch) -> None:
    """An instance out of service has a place, too, and the one that is removed could still
    serve."""
    monkeypatch.setattr(Contenders, "_group_of", _out_of_service_first)
    lowered = Asked(limit=Limit(kind="count", value=1))
    for which in range(2):
        verdict = run(
            plain(
                (
                    *setting("rating", "cart"),
                    e.PersonOverrides(at=8, which=2 + which),
                    e.SyncerApplied(at=12, name="rating", app="rating", asked=lowered),
                )
            )
        )
        assert verdict.promise == "emptied"


@pytest.mark.parametrize(
    "lower",
    [Limit(kind="pods", value=30), Limit(kind="count", value=1)],
    ids=["a lower one", "a number"],
)
def test_an_heir_with_a_lower_limit_has_to_keep_to_it(
    monkeypatch: pytest.MonkeyPatch, lower: Limit
) -> None:
    """It may remove what the syncer before let in, and the program does not."""
    story = over_its_limit(
        asks("rating-next", 62, Asked(limit=lower)),
        e.SyncerDeleted(at=75, name="rating", app="rating"),
    )
    assert_kept(run(story))
    monkeypatch.setattr(limits.Limit, "may_remove", lambda limit, mark: False)
    assert run(story).promise == "limit"


def test_what_no_limit_let_in_has_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit was gone for some passes, which registered all pods, and wrote all instances
    anew."""
    gone, back = asks("rating", 62, Asked()), asks("rating", 95, PART)
    story = over_its_limit(gone, back)
    assert_kept(run(story))
    monkeypatch.setattr(limits.Limit, "may_remove", lambda limit, mark: False)
    assert run(story).promise == "limit"


READY_AFTER_ITS_SERVICE = "a pod behind a gate that is ready after its Service"


@pytest.mark.parametrize("trouble", [SHOWN_BY_OLD_LISTS, SHOWN_BEFORE_A_PAUSE])
def test_a_pod_that_is_ready_after_its_service_was_excused(trouble: Trouble) -> None:
    """By what the pass read, the pod waited for nothing but its gate."""
    verdict = run(ready_after_its_service(trouble, TURNS_READY))
    assert verdict.reached[READY_AFTER_ITS_SERVICE] == 1


def test_a_service_that_was_shown_alone_excuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod was not ready when the pass listed it."""
    story = ready_after_its_service(SHOWN_BEFORE_A_PAUSE, starts=5)
    assert_kept(run(story))
    read = ReadinessItem.read
    monkeypatch.setattr(
        ReadinessItem, "read", lambda item: msgspec.structs.replace(read(item), ready=True)
    )
    assert run(story).promise == "unwanted"


def test_the_next_pod_at_the_address_is_not_excused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was never behind the Service. The program takes it for the one that it has the name of."""
    moves = e.PodMoves(at=13, app="rating", number=2, ip="10.0.0.12", gated=True)
    story = ready_after_its_service(SHOWN_BY_OLD_LISTS, moves)
    assert_kept(run(story))
    read = ReadinessItem.read
    first_uids: dict[str, str] = {}

    def by_name(item: ReadinessItem) -> PodReadiness:
        pod = read(item)
        return msgspec.structs.replace(pod, uid=first_uids.setdefault(pod.name, pod.uid))

    monkeypatch.setattr(ReadinessItem, "read", by_name)
    assert run(story).promise == "unwanted"
