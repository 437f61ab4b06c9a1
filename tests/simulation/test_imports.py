"""Imports in the simulation: random stories, and small ones of what they have found."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from eurekube_sync.apply import imports as settle
from eurekube_sync.controller import imports as controller

from . import events as e
from .asked import Asked
from .chance import story
from .defect import Defect, made_wrong
from .defects import defects
from .imports import data_centre as dc
from .imports import wishes as w
from .imports.stories import NETWORKS
from .run import run
from .story import Installation, Mode, Story
from .test_stories import assert_kept, setting
from .troubles import EUREKA_CALLS, KUBERNETES_CALLS, Call, Kind, Trouble

SEEDS = 40
EMPTY = 60.0
"""When Eureka loses its memory in the stories below."""


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_every_promise_is_kept_with_imports(first: int) -> None:
    """Holds in the stories of these seeds."""
    for seed in range(first, first + 10):
        assert_kept(run(story(seed, "imports")))


def test_stories_meet_everything_that_happens_to_imports() -> None:
    """Each event of the data centre and of people."""
    stories = [story(seed, "imports") for seed in range(150)]
    known = {
        kind.__name__
        for kind in e.Event.__subclasses__()
        if kind.__module__ in (dc.__name__, w.__name__)
    }
    met = {type(event).__name__ for one in stories for event in one.events}
    assert known <= met
    assert {one.installation.mode for one in stories} == set(Mode)
    assert {one.installation.peers for one in stories} == {1, 2}


def imported(app: str, *, instances: int = 3, home: int = 0, **spec: object) -> tuple[e.Event, ...]:
    """The events that make an app of the data centre, and an import of it."""
    first = 20 * ("review", "order", "user", "rating").index(app)
    return (
        *(
            dc.InstanceStarts(
                at=0, app=app, number=number, address=f"10.20.0.{first + number}", home=home
            )
            for number in range(instances)
        ),
        w.ImportApplied(at=0, namespace="shop", name=app, **spec),  # type: ignore[arg-type]
    )


def told(*events: e.Event, troubles: tuple[Trouble, ...] = (), **installation: object) -> Story:
    """A story of a daemon beside an old registry."""
    return Story(
        seed=1,
        installation=Installation(networks=NETWORKS, **installation),  # type: ignore[arg-type]
        events=(dc.ElderStarts(at=0), *sorted(events, key=lambda event: event.at)),
        troubles=troubles,
        ends=max([120.0, *(event.over + 15 for event in events)]),
    )


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("warm_up", [0.0, 20.0])
def test_a_eureka_that_fills_up_again_costs_no_endpoint(mode: Mode, warm_up: float) -> None:
    """It comes back empty, and then with more and more instances: no slice is written."""
    fills = dc.EurekaFillsUp(at=EMPTY, lasts=150, warm_up=warm_up)
    interval = {Mode.DAEMON: 10.0, Mode.ONCE: 30.0, Mode.TWICE: 60.0}[mode]
    verdict = run(
        told(*imported("review"), *imported("order"), fills, mode=mode, interval=interval),
        telling=True,
    )
    assert_kept(verdict)
    writes = [what for _, what in verdict.tale if "endpointslices" in what and "GET" not in what]
    assert len(writes) == 2, "one slice of each import, at the beginning"


@pytest.mark.parametrize("down", [95.0, 105.0, 115.0, 119.0, 125.0])
def test_an_instance_that_is_down_right_after_a_restart_is_seen_twice(down: float) -> None:
    """The empty list of before does not count as a look at it (story 4133)."""
    fills = dc.EurekaFillsUp(at=EMPTY, lasts=14)
    turns = dc.InstanceTurns(at=down, app="review", number=0, up=False)
    assert_kept(run(told(*imported("review", instances=1), fills, turns)))


def test_an_instance_counts_from_its_return_to_an_empty_eureka() -> None:
    """The list may be older than that, and show none (story 2860)."""
    events = (
        *imported("review", instances=1),
        dc.InstanceMoves(at=9, app="review", number=0, address="10.20.0.0", port=8081),
        e.EurekaRestarts(at=20),
    )
    away = Trouble(at=18, until=38, calls=KUBERNETES_CALLS, kind=Kind.PAGE, strikes=2)
    assert_kept(run(replace(told(*events, troubles=(away,)), events=events)))


@pytest.mark.parametrize("moment", range(0, 80, 4))
def test_a_service_that_goes_while_a_pass_runs_is_made_by_the_next_one(moment: int) -> None:
    """A pass goes by its list of Services, which shows the Service or not (story 42755)."""
    gone = w.OurServiceChanges(at=70 + moment / 1000, which=0, how="deleted", app="pay")
    verdict = run(told(*imported("review"), *imported("order"), gone))
    assert_kept(verdict)
    assert verdict.reached["OurServiceChanges"]


def test_a_service_that_is_never_made_again_is_told_by_the_next_pass() -> None:
    """The pass that lists Services 2 s after the deletion has seen it."""
    gone = w.OurServiceChanges(at=68.0, which=0, how="deleted", app="pay")
    story = told(*imported("review"), gone)
    (forgetful,) = (
        defect
        for defect in defects()
        if defect.name == "a Service that a person deleted is not made again"
    )
    with made_wrong(forgetful):
        verdict = run(story)
    assert verdict.promise == "callable"
    assert verdict.seconds < 71


def test_a_server_that_warms_up_may_have_what_nobody_could_list() -> None:
    """It refuses lists, although no trouble strikes a call (story 43341)."""
    moves = dc.InstanceMoves(at=65, app="review", number=0, address="10.20.0.9")
    warms_up = dc.EurekaFillsUp(at=66, lasts=0, warm_up=60, peer=1)
    verdict = run(told(*imported("review", instances=1), moves, warms_up, peers=2))
    assert_kept(verdict)
    assert verdict.reached["an endpoint that stays: ServerUnseen"]


@pytest.mark.parametrize("by_plan", [True, False])
def test_a_release_that_stands_lets_nothing_go_that_a_restart_lost(by_plan: bool) -> None:
    """A person released the removals of an import. Within that hour Eureka starts again."""
    released = w.EndpointsReleased(at=40, by_plan=by_plan)
    fills = dc.EurekaFillsUp(at=EMPTY, lasts=150)
    assert_kept(run(told(*imported("review"), released, fills)))


def test_the_end_of_a_release_is_told_at_rest() -> None:
    """The condition says then that the annotation has no effect any more (story 21118)."""
    released = w.EndpointsReleased(at=20)
    verdict = run(replace(told(*imported("review"), released), ends=856))
    assert_kept(verdict)
    assert verdict.reached["a release that ended at rest"]


@pytest.mark.parametrize("kind", [None, Kind.REFUSED, Kind.TIMEOUT_BEFORE])
def test_what_only_another_server_knows_stays(kind: Kind | None) -> None:
    """The servers do not tell each other of the app, and the other one cannot be listed for a
    while. Passes are made again from their records, with what the other server said."""
    cut = dc.ServersAreCut(at=20, app="review", lasts=280)
    away = [
        Trouble(at=230, until=260, calls=EUREKA_CALLS, kind=found, peer=1)
        for found in (kind,)
        if found is not None
    ]
    assert_kept(
        run(told(*imported("review", home=1), cut, troubles=tuple(away), peers=2, interval=10))
    )


def pods_take_an_address_that_only_another_server_knows() -> Story:
    """The first server has lost the app. The slice of a person then has one of its addresses."""
    cut = dc.ServersAreCut(at=20, app="review", lasts=500)
    taken = w.ForeignService(at=330, namespace="bank", name="pods", address="10.20.0.0")
    return told(*imported("review", home=1), cut, taken, peers=2, interval=10)


def test_what_an_import_leaves_out_stays_on_no_server() -> None:
    """The rules for the first server's list are those for the other one's, too."""
    verdict = run(pods_take_an_address_that_only_another_server_knows())
    assert_kept(verdict)


def test_what_another_server_lists_is_judged_as_well() -> None:
    """Else the endpoint stays as long as that server lists it UP."""
    (credulous,) = (
        defect
        for defect in defects()
        if defect.name == "what only another Eureka server lists is not judged"
    )
    with made_wrong(credulous):
        verdict = run(pods_take_an_address_that_only_another_server_knows())
    assert verdict.promise == "gone"


def warms_up_while_an_instance_ends() -> Story:
    """One server refuses its list for a while, and no call is struck by a trouble."""
    stops = dc.InstanceStops(at=45, app="review", number=1)
    restart = e.EurekaRestarts(at=44, peer=1, warm_up=20)
    return replace(told(*imported("review"), restart, stops, peers=2), ends=240)


def test_what_another_server_may_know_stays_while_that_one_warms_up() -> None:
    """It goes when that server gives its list again."""
    verdict = run(warms_up_while_an_instance_ends())
    assert_kept(verdict)
    assert verdict.reached["an endpoint that stays: ServerUnseen"]


def test_a_server_that_is_never_asked_again_keeps_an_endpoint_too_long() -> None:
    """Its warm-up is over, and is no reason any more."""
    never = Defect(name="never asked again", patches=((controller, "_ASKED_AGAIN", inf),))
    with made_wrong(never):
        assert run(warms_up_while_an_instance_ends()).promise == "gone"


def removes_at_rest() -> Story:
    """The pod of an instance ends whose syncer went with the CRD. It is cancelled only in the
    second pass of a process, and an import of its app tells that it is no endpoint."""
    events = (
        e.ServiceApplied(at=0, app="stock"),
        e.SyncerApplied(at=0, name="stock", app="stock"),
        e.PodStarted(at=0, app="stock", number=0, ip="10.0.0.40"),
        w.ImportApplied(at=0, namespace="bank", name="there", app="stock"),
        e.CrdDeleted(at=50, lasts=20, empty_for=1000),
        e.PodEnds(at=125, app="stock", number=0),
    )
    return replace(told(*events, mode=Mode.TWICE, interval=60), ends=140)


def test_an_import_tells_at_rest_that_the_pass_before_cancelled_an_instance() -> None:
    """It tells so once. The list of that pass still had the instance."""
    verdict = run(removes_at_rest())
    assert_kept(verdict)
    assert verdict.reached["an import that tells at rest what went"] == 1


def test_an_import_that_tells_so_in_each_pass_is_not_quiet() -> None:
    """From then on, its status is written though it is the same."""
    worth_writing = vars(settle)["worth_writing"]

    def whenever_empty(before: Any, now: Any, *, words: bool) -> bool:
        worth: bool = worth_writing(before, now, words=words)
        return worth or now.instances == 0

    again = Defect(name="told again", patches=((settle, "worth_writing", whenever_empty),))
    with made_wrong(again):
        assert run(removes_at_rest()).promise == "quiet"


@pytest.mark.parametrize("peers", [1, 2])
def test_the_world_rests_when_eureka_has_evicted_the_last(peers: int) -> None:
    """In one run it evicts at most 15 % of what is registered (story 2981)."""
    dead = dc.AppStops(at=35, app="review", cancels=False)
    assert_kept(run(told(*imported("review", instances=13), dead, peers=peers)))


def empty_for_good(*events: e.Event, mode: Mode = Mode.DAEMON, peers: int = 1) -> Story:
    """The last instance of all ends, and every Eureka server stays empty."""
    stops = dc.InstanceStops(at=40, app="review", number=0)
    story = told(*imported("review", instances=1), stops, *events, mode=mode, peers=peers)
    without_elder = tuple(one for one in story.events if not isinstance(one, dc.ElderStarts))
    return replace(story, events=without_elder)


@pytest.mark.parametrize("peers", [1, 2])
@pytest.mark.parametrize("mode", Mode)
def test_the_world_rests_while_eureka_stays_empty(mode: Mode, peers: int) -> None:
    """An empty list says of no instance that it is gone (story 50140)."""
    verdict = run(empty_for_good(mode=mode, peers=peers))
    assert_kept(verdict)
    assert verdict.reached["an endpoint that stays: RegistryYoung"]
    assert verdict.reached["a hold at rest of a Eureka that stays empty"]


def test_the_world_does_not_rest_while_eureka_fills_up_again() -> None:
    """Its hold ends when its registrations are old."""
    fills = dc.EurekaFillsUp(at=EMPTY, lasts=60)
    stops = dc.InstanceStops(at=EMPTY + 1, app="review", number=1)
    verdict = run(told(*imported("review", instances=2), fills, stops))
    assert_kept(verdict)
    assert verdict.reached["an endpoint that stays: RegistryYoung"]
    assert "a hold at rest of a Eureka that stays empty" not in verdict.reached
    assert verdict.seconds > EMPTY + 300


def test_an_import_may_be_deleted_while_eureka_stays_empty() -> None:
    """Its endpoint goes with it: a person says so, and no list."""
    deleted = w.ImportDeleted(at=80, namespace="shop", name="review")
    verdict = run(empty_for_good(deleted))
    assert_kept(verdict)
    assert verdict.reached["an import that ended"] == 1


def waits_while_a_list_flaps(call: Call) -> Story:
    """An app ends, and a list fails in every second pass."""
    stops = dc.InstanceStops(at=62, app="review", number=0)
    troubles = []
    for at in range(65, 185, 20):
        calls = frozenset({call})
        troubles.append(Trouble(at=at, until=at + 10, calls=calls, kind=Kind.ERROR_503))
    events = imported("review", instances=1)
    story = told(*events, stops, troubles=tuple(troubles), interval=10)
    return replace(story, ends=200)


@pytest.mark.parametrize("call", [Call.IMPORTS, Call.SERVICES, Call.SLICES])
def test_a_list_that_flaps_keeps_no_endpoint(call: Call) -> None:
    """The passes between see twice that the instance is gone."""
    verdict = run(waits_while_a_list_flaps(call))
    assert_kept(verdict)
    assert verdict.reached["a pass that ended no wait, because a list failed"]
    assert verdict.reached["an import that lost its last endpoint"] == 1


def test_a_list_that_lets_the_wait_begin_again_keeps_an_endpoint_too_long() -> None:
    """The endpoint would stay for as long as the list fails in every second pass."""
    (forgetful,) = (
        defect
        for defect in defects()
        if defect.name == "a list that fails lets the wait for a last endpoint begin again"
    )
    with made_wrong(forgetful):
        assert run(waits_while_a_list_flaps(Call.SLICES)).promise == "gone"


def test_one_service_for_pods_and_instances() -> None:
    """The app moves into the cluster: its pods are registered, and its instances go one by one."""
    moved = [
        dc.InstanceStops(at=30.0 + 10 * number, app="rating", number=number) for number in (0, 1)
    ]
    ends = w.ImportDeleted(at=80, namespace="shop", name="rating")
    story = told(*setting("rating"), *imported("rating", instances=2, adopt=True), *moved, ends)
    verdict = run(story)
    assert_kept(verdict)
    assert verdict.reached["an endpoint of an import"] == 2
    assert verdict.reached["an import that ended"] == 1


def test_the_younger_of_two_imports_gets_the_service_when_the_older_goes() -> None:
    """Until then nothing of it is written, and a condition says why."""
    events = (
        *imported("review"),
        w.ImportApplied(at=10, namespace="shop", name="second", app="review", service="review"),
        w.ImportDeleted(at=60, namespace="shop", name="review"),
    )
    verdict = run(told(*events))
    assert_kept(verdict)
    assert verdict.reached["an import whose Service is somebody else's"]
    assert verdict.reached["an endpoint of an import"] == 6


def test_an_import_tells_at_rest_of_what_the_last_change_removed() -> None:
    """Two syncers are lost with their CRD, and pods of one end. Single processes have to see that
    twice, so its instances go when the rest is judged. An import counts them (story 44136)."""
    events = (
        *setting("stock", "cart"),
        w.ImportApplied(at=0, namespace="bank", name="stock-there", app="stock"),
        e.CrdDeleted(at=122, lasts=10, empty_for=5),
        e.CrdDeleted(at=138, lasts=10, empty_for=5),
        *(e.PodEnds(at=182, app="stock", number=number) for number in (0, 1)),
    )
    verdict = run(replace(told(*events, mode=Mode.TWICE, interval=60), ends=200))
    assert_kept(verdict)
    assert verdict.reached["an import that tells at rest what went"] == 1


def test_the_end_of_the_crd_ends_no_import() -> None:
    """Its Service and slices stay until a person strips the finalizers."""
    gone = w.ImportCrdDeleted(at=30, lasts=40, empty_for=10)
    verdict = run(told(*imported("review"), gone))
    assert_kept(verdict)
    assert "an import that ended" not in verdict.reached


def test_several_apps_that_vanish_wait_for_a_person() -> None:
    """Their endpoints stay, until somebody releases just these."""
    vanish = [dc.AppStops(at=40, app=app) for app in ("review", "order")]
    released = w.EndpointsReleased(at=100, by_plan=True)
    verdict = run(told(*imported("review"), *imported("order"), *vanish, released))
    assert_kept(verdict)
    assert verdict.reached["an endpoint that stays: TooManyRemovals"]
    assert verdict.reached["a plan id of imports that released"] == 1


def test_an_import_tells_at_rest_what_went_before_the_list_showed_it() -> None:
    """Eureka's list is half a minute old, so the pass that cancels a dead pod's instance is not the
    last one before the import counts an instance less (story 70469)."""
    events = (
        *setting("stock"),
        w.ImportApplied(at=0, namespace="bank", name="there", app="stock"),
        e.SyncerApplied(at=30, name="stock", app="stock", asked=Asked(not_ready="Cancel")),
        e.PodTurns(at=30, app="stock", number=0, ready=False),
        e.PodEnds(at=52, app="stock", number=1),
    )
    verdict = run(replace(told(*events), ends=60))
    assert_kept(verdict)
    assert verdict.reached["an import that tells at rest what went"] == 1
