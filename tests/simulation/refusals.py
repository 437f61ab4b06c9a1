"""Stories in which Eureka refuses registrations while pods are replaced, get another name, or are
over a limit.

What they are to show: `losses` says that nothing goes before its successor is there.
"""

from __future__ import annotations

import random
from dataclasses import replace

from . import events as e
from .asked import PLAIN, Asked, Limit
from .rollout import Rollout
from .story import QUIET, Story
from .troubles import Call, Kind, Trouble

_KINDS = (
    Kind.ERROR_503,
    Kind.ERROR_503,
    Kind.TIMEOUT_BEFORE,
    Kind.REFUSED,
    Kind.FORBIDDEN,
    Kind.PAGE,
)
_REGISTRATIONS = frozenset({Call.REGISTER})


def with_refused_registrations(base: Story) -> Story:
    """Adds an app whose pods change while registrations fail, all or some."""
    dice = random.Random(f"refusals {base.seed}")
    begins = base.ends - QUIET
    app = dice.choice(
        sorted({event.app for event in base.events if isinstance(event, e.ServiceApplied)})
    )
    at = round(begins + dice.uniform(40, 60), 1)
    old = range(5, 5 + dice.choice((1, 1, 2, 3)))
    events: list[e.Event] = [
        *base.events,
        e.ServiceApplied(at=begins, app=app),
        e.SyncerApplied(at=begins, name=app, app=app),
        *(e.PodEnds(at=begins, app=app, number=number) for number in range(5)),
        *(
            e.PodStarted(at=begins, app=app, number=number, ip=f"10.0.0.{number + 2}")
            for number in old
        ),
        *_change(dice, app, at, old),
    ]
    some = dice.random() < 0.4
    trouble = Trouble(
        at=at - 1,
        until=round(at + dice.uniform(30, 120), 1),
        calls=_REGISTRATIONS,
        kind=dice.choice(_KINDS),
        skip=dice.choice((0, 1)) if some else 0,
        strikes=dice.randint(1, 9) if some else 10**6,
    )
    return replace(
        base,
        events=tuple(sorted(events, key=lambda event: event.at)),
        troubles=(*base.troubles, trouble),
        ends=max(trouble.until, *(event.over for event in events)) + QUIET,
    )


def _change(dice: random.Random, app: str, at: float, old: range) -> list[e.Event]:
    """Gives the events that replace the old pods."""
    later = round(at + dice.uniform(0, 10), 1)
    match dice.choice(("replaced", "replaced", "rollout", "renamed", "limited")):
        case "rollout":
            return [
                Rollout(at=at, app=app, ip="10.0.0.20", gated=False, grace=dice.choice((0.0, 20.0)))
            ]
        case "renamed":
            return [e.SyncerApplied(at=at, name=app, app=app, app_name="fresh")]
        case "limited":
            turns = [e.PodTurns(at=at, app=app, number=number, ready=False) for number in old[1:]]
            limited = Asked(limit=Limit(kind="count", value=1))
            comes = e.PodStarted(at=later, app=app, number=9, ip="10.0.0.20")
            return [
                *turns,
                comes,
                e.SyncerApplied(at=later, name=app, app=app, asked=dice.choice((PLAIN, limited))),
            ]
    grace = dice.choice((20.0, 60.0, 60.0))
    return [
        *(
            e.PodStarted(at=at, app=app, number=number + 10, ip=f"10.0.0.{number + 20}")
            for number in old
        ),
        *(e.PodEnds(at=later, app=app, number=number, grace=grace) for number in old),
    ]
