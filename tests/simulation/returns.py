"""Stories in which one of two Eureka servers is away while pods move, so that it comes back with
what went and without what came.

What they are to show: `losses` says that nothing goes before its successor is there, on each server
by itself.
"""

from __future__ import annotations

import random
from dataclasses import replace

from . import events as e
from .story import QUIET, Installation, Mode, Story
from .troubles import EUREKA_CALLS, Call, Kind, Trouble

_KINDS = (Kind.REFUSED, Kind.REFUSED, Kind.TIMEOUT_BEFORE, Kind.ERROR_503)


def with_a_peer_that_returns(base: Story) -> Story:
    """Adds a second server and an app whose pods move or are replaced while one server is away."""
    dice = random.Random(f"returns {base.seed}")
    app = dice.choice(
        sorted({event.app for event in base.events if isinstance(event, e.ServiceApplied)})
    )
    begins = base.ends - QUIET
    at = round(begins + dice.uniform(40, 70), 1)
    away = Trouble(
        at=at,
        until=round(at + dice.choice((8, 15, 25, 40, 60)) * dice.uniform(0.7, 1.3), 1),
        calls=EUREKA_CALLS | {Call.OTHER},
        kind=dice.choice(_KINDS),
        peer=dice.choice((0, 1, 1, 1)),
    )
    pods = range(5, 5 + dice.choice((1, 1, 2, 3)))
    events: list[e.Event] = [
        *base.events,
        e.ServiceApplied(at=begins, app=app),
        e.SyncerApplied(at=begins, name=app, app=app),
        *(e.PodEnds(at=begins, app=app, number=number) for number in range(5)),
        *(
            e.PodStarted(at=begins, app=app, number=number, ip=f"10.0.0.{number + 2}")
            for number in pods
        ),
    ]
    for number in pods:
        moment = round(dice.uniform(at, away.until), 1)
        events += [
            e.PodMoves(at=moment, app=app, number=number, ip=f"10.0.0.{number + 20}"),
            *(
                [e.PodTurns(at=moment + 5, app=app, number=number, ready=False)]
                if dice.random() < 0.1
                else []
            ),
        ]
    return replace(
        base,
        installation=_of_two(base.installation, batches=dice.random() < 0.8),
        events=tuple(sorted(events, key=lambda event: event.at)),
        troubles=(*base.troubles, away),
        ends=max(away.until, *(event.over for event in events)) + QUIET,
    )


def _of_two(installation: Installation, *, batches: bool) -> Installation:
    """Gives the installation two servers, and a daemon in place of single passes: these renew
    everything each time, so no lease waits for its turn."""
    if installation.mode is Mode.ONCE:
        installation = replace(installation, mode=Mode.DAEMON, interval=10)
    return replace(installation, peers=2, batches=batches)
