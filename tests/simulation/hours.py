"""Long stories: instances that a policy never cancels expire, and Eureka cannot be read for
minutes.

The long part of each is quiet, and a pass comes each half minute.
"""

from __future__ import annotations

import random
from dataclasses import replace

from . import events as e
from .asked import CREATE_ONLY, UPSERT_ONLY, Asked
from .story import QUIET, Installation, Mode, Story
from .troubles import EUREKA_CALLS, Call, Kind, Trouble
from .wishes import theme

_AFTER = 900.0
"""Seconds: two leases, three rounds of Eureka's eviction, and the time before."""
_KINDS = (Kind.ERROR_503, Kind.TIMEOUT_BEFORE, Kind.EMPTY, Kind.CUT, Kind.PAGE, Kind.REFUSED)


def with_an_expiry(base: Story) -> Story:
    """Adds syncers that cancel nothing, and goes on until their last instance has expired."""
    dice = random.Random(f"an expiry {base.seed}")
    last = base.ends - QUIET
    apps = sorted({event.app for event in base.events if isinstance(event, e.ServiceApplied)})
    events = list(base.events)
    for app in apps:
        if dice.random() < 0.8:
            asked = Asked(policy=dice.choice((UPSERT_ONLY, CREATE_ONLY)))
            events.append(e.SyncerApplied(at=0.5, name=app, app=app, asked=asked))
        events += [
            e.PodEnds(at=round(dice.uniform(5, last), 1), app=app, number=number, grace=0.0)
            for number in range(3)
            if dice.random() < 0.6
        ]
        if dice.random() < 0.3:
            events.append(e.SyncerDeleted(at=round(dice.uniform(20, last), 1), name=app, app=app))
    events += _meanwhile(dice, apps, last)
    happened = max(event.over for event in events)
    return replace(
        base,
        installation=_seldom(base),
        events=tuple(sorted(events, key=lambda event: event.at)),
        ends=happened + _AFTER,
    )


def _meanwhile(dice: random.Random, apps: list[str], last: float) -> list[e.Event]:
    """Gives events for DOWN instances before they expire."""
    found: list[e.Event] = []
    for _ in range(dice.choice((0, 1, 2))):
        app, at = dice.choice(apps), round(last + dice.uniform(30, 500), 1)
        found.append(
            dice.choice(
                (
                    e.EurekaRestarts(at=at, peer=dice.randint(0, 1)),
                    e.PodStarted(
                        at=at, app=app, number=dice.randint(0, 4), ip=f"10.0.0.{dice.randint(1, 6)}"
                    ),
                    e.SyncerApplied(at=at, name=app, app=app),
                    e.SyncerDeleted(at=at, name=app, app=app),
                    e.SecondCopyRuns(at=at),
                    e.ServiceDeleted(at=at, app=app),
                )
            )
        )
    return found


def with_a_long_silence(base: Story) -> Story:
    """Adds pods that wait for their gates while Eureka, or its lists, cannot be read for
    minutes."""
    dice = random.Random(f"a long silence {base.seed}")
    begins = round(base.ends - QUIET + dice.uniform(0, 30), 1)
    ends = round(begins + dice.uniform(200, 520), 1)
    app = dice.choice(
        sorted({event.app for event in base.events if isinstance(event, e.ServiceApplied)})
    )
    gated = [event for event in theme("gates", dice, [app], base.ends) if event.at <= begins]
    calls = dice.choice((frozenset({Call.LIST}), frozenset({Call.LIST}), EUREKA_CALLS))
    late = [
        e.PodStarted(
            at=round(begins + dice.uniform(0, 60), 1),
            app=app,
            number=5 + number,
            ip="10.0.0.7",
            gated=True,
        )
        for number in range(dice.choice((1, 1, 2)))
    ]
    events = (*base.events, *gated, e.ServiceApplied(at=begins, app=app), *late)
    return replace(
        base,
        installation=_seldom(base) if dice.random() < 0.5 else base.installation,
        events=tuple(sorted(events, key=lambda event: event.at)),
        troubles=(
            *base.troubles,
            Trouble(at=begins, until=ends, calls=calls, kind=dice.choice(_KINDS)),
        ),
        ends=max(ends, *(event.over for event in events)) + QUIET,
    )


def _seldom(base: Story) -> Installation:
    """Gives the installation with at most one pass each half minute, or a CronJob's two each
    minute."""
    at_least = 60.0 if base.installation.mode is Mode.TWICE else 30.0
    return replace(base.installation, interval=max(base.installation.interval, at_least))
