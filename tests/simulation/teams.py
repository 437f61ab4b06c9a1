"""Stories of many apps, of which a team takes several away at once, and of what goes on beside a
hold.

A namespace or several syncers are deleted, a release is uninstalled, apps are scaled to nothing for
a night, every syncer is deleted or gets the limit 0, all pods turn unready. Meanwhile other teams'
pods are replaced, and addresses pass to other apps.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from . import events as e
from .asked import Asked, Limit
from .decisions import DeletionAbandoned, NamespaceDeleted, RemovalsReleased
from .story import QUIET, Story, over
from .troubles import Call, Kind, Trouble
from .world import APPS, FEW, MANY, NAMESPACES

_KINDS = (
    "syncers",
    "syncers",
    "release",
    "namespace",
    "night",
    "night",
    "night",
    "all syncers",
    "unready",
    "unready",
)
_DETACHED = Asked(limit=Limit(kind="count", value=0))
_AFTER = 110.0
"""Seconds that such a story lasts after its last event: several passes of each kind of
installation."""


def with_teams(base: Story) -> Story:
    """The story, with so many apps that a team has several, and what the team and its neighbours
    do.

    One in which Eureka takes seconds for each call, for as long as a lease lasts, stays as it is:
    there is no time to renew so many.
    """
    if any(
        trouble.kind is Kind.SLOW and trouble.until - trouble.at > 2 * base.installation.lease
        for trouble in base.troubles
    ):
        return base
    dice = random.Random(f"teams {base.seed}")
    reuse = random.Random(f"reused addresses {base.seed}")  # the dice of all else stay as they are
    apps = sorted({event.app for event in base.events if isinstance(event, e.ServiceApplied)})
    apps += dice.sample(MANY, dice.choice((2, 5, 8, len(MANY))))
    pods = {app: dice.choice((1, 1, 2, 3)) for app in apps}
    begins = round(dice.uniform(40, max(41.0, base.ends - QUIET)), 1)
    events: list[e.Event] = [*base.events, *_deployed(apps, pods, at=0.0)]
    for _ in range(dice.choice((1, 1, 2))):
        kind = dice.choice(_KINDS)
        events += _taken_away(kind, dice, apps, pods, begins)
        events += _beside(dice, apps, begins)
        events += _reused(reuse, apps, pods, begins)
        begins = round(begins + dice.uniform(20, 90), 1)
    troubles = (*base.troubles, *_unlisted(dice, begins))
    ends = max(base.ends, over(events, troubles)) + dice.choice((0.0, _AFTER))
    return replace(
        base, events=tuple(sorted(events, key=lambda event: event.at)), troubles=troubles, ends=ends
    )


def _unlisted(dice: random.Random, ends: float) -> Iterator[Trouble]:
    """A trouble in which Pods cannot be listed, as if the right was taken away."""
    if dice.random() < 0.3:
        at, kind = (
            dice.uniform(30, ends),
            dice.choice((Kind.FORBIDDEN, Kind.ERROR_503, Kind.CUT, Kind.TIMEOUT_BEFORE)),
        )
        lasts = dice.uniform(20, 120)
        yield Trouble(
            at=round(at, 1), until=round(at + lasts, 1), calls=frozenset({Call.PODS}), kind=kind
        )


def _deployed(apps: list[str], pods: dict[str, int], *, at: float) -> Iterator[e.Event]:
    for app in apps:
        yield e.ServiceApplied(at=at, app=app)
        yield e.SyncerApplied(at=at, name=app, app=app)
        yield from _pods(app, pods[app], at)


def _pods(app: str, count: int, at: float) -> Iterator[e.Event]:
    return (
        e.PodStarted(at=at, app=app, number=number, ip=_ip(app, number)) for number in range(count)
    )


def _ip(app: str, number: int) -> str:
    """Gives each pod of these stories an address of its own."""
    return f"10.0.2.{10 * (1 + (*FEW, *MANY).index(app)) + number}"


def _taken_away(
    kind: str, dice: random.Random, apps: list[str], pods: dict[str, int], at: float
) -> Iterator[e.Event]:
    """Gives the events that remove several apps at once, and those that follow."""
    some = dice.sample(apps, min(len(apps), dice.choice((2, 2, 3, 4, len(apps) // 2))))
    grace = dice.choice((0.0, 0.0, 5.0, 30.0))
    back = round(at + dice.uniform(5, 120), 1)
    match kind:
        case "syncers" | "release" | "all syncers":
            gone = apps if kind == "all syncers" else some
            if (
                kind == "all syncers" and round(at) % 2
            ):  # a chart's fault, and the dice of other stories stay
                yield from (
                    e.SyncerApplied(at=at, name=app, app=app, asked=_DETACHED) for app in gone
                )
                return
            yield from (e.SyncerDeleted(at=at, name=app, app=app) for app in gone)
            if kind == "release":
                yield from (e.ServiceDeleted(at=at, app=app) for app in gone)
            if kind == "release" or dice.random() < 0.3:
                yield from _ended(gone, pods, round(at + dice.choice((0.0, 0.0, 25.0)), 1), grace)
            if dice.random() < 0.3:
                later = round(at + dice.uniform(1, 60), 1)
                yield from (DeletionAbandoned(at=later, name=app, app=app) for app in gone)
            if dice.random() < 0.3:
                yield from _deployed(gone, pods, at=back)
        case "namespace":
            yield NamespaceDeleted(
                at=at, namespace=dice.choice(NAMESPACES), lasts=dice.uniform(60, 120)
            )
        case "night":
            gone = apps if dice.random() < 0.2 else some
            yield from _ended(gone, pods, at, grace)
            if dice.random() < 0.6:
                yield from (event for app in gone for event in _pods(app, pods[app], back))
        case "unready":
            yield e.AllPodsTurn(at=at, ready=False)
            if dice.random() < 0.6:
                yield e.AllPodsTurn(at=back, ready=True)
    if dice.random() < 0.15:
        later = round(at + dice.uniform(5, 40), 1)
        yield from (RemovalsReleased(at=later, name=app, app=app, lasts=600.0) for app in some)


def _ended(apps: list[str], pods: dict[str, int], at: float, grace: float) -> Iterator[e.Event]:
    return (
        e.PodEnds(at=at, app=app, number=n, grace=grace) for app in apps for n in range(pods[app])
    )


def _reused(
    dice: random.Random, apps: list[str], pods: dict[str, int], begins: float
) -> Iterator[e.Event]:
    """Gives, now and then, the pods of an app that vanish, and pods of another app of its namespace
    that get their addresses at once, while the removals of the first may wait."""
    app = dice.choice(apps)
    neighbours = [other for other in apps if APPS[other] == APPS[app] and other != app]
    if not neighbours or dice.random() < 0.6:
        return
    other = dice.choice(neighbours)
    at = round(begins + dice.uniform(0, 20), 1)
    for number in range(pods[app]):
        yield e.PodEnds(at=at, app=app, number=number)
        yield e.PodStarted(at=round(at + 0.5, 1), app=other, number=8 + number, ip=_ip(app, number))


def _beside(dice: random.Random, apps: list[str], begins: float) -> Iterator[e.Event]:
    """Gives events of other teams: pods end and are replaced, and now and then another app's pod
    gets an old address."""
    for _ in range(dice.choice((0, 1, 2, 4))):
        app, other = dice.sample(apps, 2)
        at, number = round(begins + dice.uniform(0, 45), 1), dice.randint(0, 2)
        if dice.random() < 0.5:
            yield e.PodMoves(at=at, app=app, number=number, ip=f"10.0.3.{dice.randint(1, 200)}")
        else:
            yield e.PodEnds(at=at, app=app, number=number)
        if dice.random() < 0.6:  # the address is free by then
            later = round(at + dice.uniform(0.1, 20), 1)
            yield e.PodStarted(
                at=later, app=other, number=5 + dice.randint(0, 3), ip=_ip(app, number)
            )
    if dice.random() < 0.1:
        yield e.EurekaRestarts(at=round(begins + dice.uniform(0, 45), 1))
