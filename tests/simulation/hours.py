"""Long stories: Eureka cannot be read for minutes.

The long part of each is quiet, and a pass comes each half minute.
"""

from __future__ import annotations

import random
from dataclasses import replace

from . import events as e
from .story import QUIET, Installation, Mode, Story
from .troubles import EUREKA_CALLS, Call, Kind, Trouble
from .wishes import theme

_KINDS = (Kind.ERROR_503, Kind.TIMEOUT_BEFORE, Kind.EMPTY, Kind.CUT, Kind.PAGE, Kind.REFUSED)


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
