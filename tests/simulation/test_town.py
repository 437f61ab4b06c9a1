"""Towns of 3, 20 and 100 apps: what is held and what is removed, and after how many passes.

After each pass the town checks that no dead pod is UP for more than three good passes. No instance
may be at the address of another pod.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from eurekube_sync.model.reasons import Reason
from tests.simulation.town import REST, TEAM, App, Town, reasons

TEAMS = {3: 2, 20: 4, 100: 5}
"""The number of the team's apps, by the number of the town's."""
FOR_GOOD = 4
"""The passes after which no instance is removed any more."""
TOO_MANY, AWAITING = Reason.TOO_MANY_REMOVALS, Reason.AWAITING_CONFIRMATION


def team(town: Town) -> list[App]:
    """The team's apps."""
    return [app for app in town.apps if app.namespace == TEAM]


def two(town: Town) -> list[App]:
    """Two apps."""
    return town.apps[:2]


def half(town: Town) -> list[App]:
    """Every second app."""
    return town.apps[::2]


def every(town: Town) -> list[App]:
    """All apps."""
    return town.apps


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An event for some apps of each town, and its result."""

    happens: Callable[[Town, list[App]], None]
    to: Callable[[Town], list[App]]
    gone: dict[int, int] = field(default_factory=dict)
    """The pass that removes all their instances, by the town's size. Without an entry all of them
    stay UP."""
    waits: dict[int, Reason] = field(default_factory=dict)
    """Why the first pass holds all of them, by the town's size. Without an entry it holds none."""
    then: Callable[[Town], None] = lambda town: None
    """A further check at the end."""


def settled(
    happens: Callable[[Town, list[App]], None], seconds: float = 6
) -> Callable[[Town, list[App]], None]:
    """The event, and some seconds until its pods have ended."""

    def later(town: Town, apps: list[App]) -> None:
        happens(town, apps)
        town.clock.sleep(seconds)

    return later


def the_namespace_ends(town: Town) -> None:
    """It takes less than two minutes, because finalizers are removed 45 s after the deletion."""
    for _ in range(3):
        town.good()
    assert not town.namespace_is_there()


def the_morning_after(town: Town) -> None:
    """The first pass registers what was removed at night."""
    for app in half(town):
        town.start(app, "2")
        town.start(app, "3")
    assert reasons(town.good()) == {}
    assert len(town.up()) == 2 * len(town.apps)
    assert not town.dead()


ROWS = {
    "a namespace is deleted": Row(
        happens=lambda town, _: town.delete_namespace(),
        to=team,
        gone=dict.fromkeys(TEAMS, 1),
        then=the_namespace_ends,
    ),
    "all syncers of a team are deleted": Row(
        happens=lambda town, apps: town.delete_syncers(*apps), to=team, gone=dict.fromkeys(TEAMS, 1)
    ),
    "a release is uninstalled": Row(
        happens=lambda town, apps: town.uninstall(*apps), to=team, gone=dict.fromkeys(TEAMS, 1)
    ),
    "two apps are scaled to 0": Row(
        happens=settled(lambda town, apps: town.scale_to_0(*apps)),
        to=two,
        gone=dict.fromkeys(TEAMS, 2),
        waits=dict.fromkeys(TEAMS, AWAITING),
    ),
    "the nightly downscaler": Row(
        happens=settled(lambda town, apps: town.scale_to_0(*apps)),
        to=half,
        gone=dict.fromkeys(TEAMS, 2),
        waits=dict.fromkeys(TEAMS, AWAITING),
        then=the_morning_after,
    ),
    "two apps are scaled to 0 and terminate in the first pass": Row(
        happens=lambda town, apps: town.scale_to_0(*apps),
        to=two,
        gone={3: 2, 20: 2, 100: 1},
        waits={3: TOO_MANY, 20: TOO_MANY},
    ),
    "delete --all -A": Row(
        happens=lambda town, apps: town.delete_syncers(*apps),
        to=every,
        gone={3: 1},
        waits={20: TOO_MANY, 100: TOO_MANY},
    ),
    "all pods turn unready": Row(
        happens=lambda town, apps: town.unready(town.pods(*apps)),
        to=every,
        waits=dict.fromkeys(TEAMS, TOO_MANY),
    ),
    "all slices are gone": Row(happens=lambda town, _: town.delete_slices(), to=every),
    "a node controller is lost": Row(
        happens=lambda town, apps: town.lose_kubelets(*apps),
        to=every,
        waits=dict.fromkeys(TEAMS, TOO_MANY),
    ),
}


def play(row: Row, size: int, *, single: bool) -> None:
    """Let the event happen, and compare each pass with the row."""
    town = Town(size, TEAMS[size], single=single)
    apps = row.to(town)
    before = set(town.up())
    theirs = set(town.up(*apps))
    row.happens(town, apps)
    first = reasons(town.good())
    expected = row.waits.get(size)
    assert first == ({expected: len(theirs)} if expected else {})
    last = row.gone.get(size)
    for passes in range(1, last or FOR_GOOD):
        assert set(town.up()) == before, f"after pass {passes}"
        town.good()
    assert set(town.up()) == (before - theirs if last else before)
    row.then(town)


@pytest.mark.parametrize("size", TEAMS)
@pytest.mark.parametrize("name", ROWS)
def test_each_row_holds_and_removes_what_it_says(name: str, size: int) -> None:
    """One process makes all passes."""
    play(ROWS[name], size, single=False)


@pytest.mark.parametrize("name", ROWS)
def test_single_passes_hold_and_remove_the_same(name: str) -> None:
    """Each pass is a process of its own. The condition keeps what the pass before saw."""
    play(ROWS[name], 20, single=True)


@pytest.mark.parametrize("size", TEAMS)
def test_a_rollout_during_a_hold(size: int) -> None:
    """Two apps are unready and held. Another app is replaced pod by pod, and none of its old
    instances stays. A pod of a held app ends, and is removed with the second pass that sees it."""
    town = Town(size, TEAMS[size])
    hurt, other = two(town), App(REST, town.apps[-1].name)
    town.unready(town.pods(*hurt))
    waiting = 4 if size < 100 else 0
    assert sum(reasons(town.good()).values()) == 4
    for number, pod in enumerate(town.pods(other)):
        town.start(other, f"new{number}")
        town.good()
        town.end([pod])
        town.good()
        assert len(town.up(other)) == 2
        assert not town.dead()
    assert len(town.up(*hurt)) == waiting
    town.end(town.pods(hurt[0])[:1])
    town.good()
    town.good()
    assert not town.dead()
    assert len(town.up(*hurt)) == max(0, waiting - 1)


@pytest.mark.parametrize("size", TEAMS)
def test_an_address_that_passes_to_another_app_during_a_hold(size: int) -> None:
    """All pods of the team are unready, and one of them ends. A pod of another app gets its
    address. After the next pass nobody reaches it under the name of the team's app."""
    town = Town(size, TEAMS[size])
    town.unready(town.pods(*team(town)))
    town.good()
    ended = town.pods(team(town)[0])[0]
    town.end([ended])
    town.start(town.apps[-1], "9", ended["status"]["podIP"])
    assert town.at_anothers_address()
    town.good()
    assert not town.at_anothers_address()
