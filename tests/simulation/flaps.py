"""Stories of what comes and goes each pass: the pods of an app while another app loses its own, and a
list that fails each second time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from . import events as e
from .story import QUIET, Mode, Story
from .troubles import Call, Kind, Trouble
from .world import OF_THE_FIRST_TEAM

_LISTS = (
    frozenset({Call.SLICES}),
    frozenset({Call.SERVICES}),
    frozenset({Call.SYNCERS}),
    frozenset({Call.LIST}),
    frozenset({Call.PODS}),
    frozenset({Call.IDENTITY}),
)
_KINDS = (Kind.ERROR_503, Kind.FORBIDDEN, Kind.CUT, Kind.TIMEOUT_BEFORE, Kind.PAGE)
_LASTS = 160.0
"""Seconds for which an app flaps."""


def with_a_flapping_app(base: Story) -> Story:
    """Adds an app that is ready for one pass and not for the next, and one whose pods die or stay unready."""
    dice = random.Random(f"flaps {base.seed}")
    flapping, losing = dice.sample(OF_THE_FIRST_TEAM, 2)
    begins = round(base.ends - QUIET + dice.uniform(30, 45), 1)
    pods = {flapping: dice.choice((1, 2)), losing: dice.choice((1, 2, 3))}
    events: list[e.Event] = list(base.events)
    for place, (app, count) in enumerate(pods.items()):
        events += [
            e.ServiceApplied(at=0.0, app=app),
            e.SyncerApplied(at=0.0, name=app, app=app),
            *(
                e.PodStarted(at=0.0, app=app, number=number, ip=f"10.0.6.{10 * place + number + 1}")
                for number in range(count)
            ),
        ]
    events += _flapping(base, flapping, pods[flapping], begins)
    lost = round(begins + dice.uniform(0, 2 * _interval(base)), 1)
    vanishes = dice.random() < 0.4
    for number in range(pods[losing]):
        ends = e.PodEnds(at=lost, app=losing, number=number)
        turns = e.PodTurns(at=lost, app=losing, number=number, ready=False)
        events.append(ends if vanishes else turns)
    return replace(
        base,
        events=tuple(sorted(events, key=lambda event: event.at)),
        ends=max(base.ends, *(event.over for event in events)) + QUIET,
    )


def _interval(base: Story) -> float:
    """The seconds between two passes."""
    return 30.0 if base.installation.mode is Mode.TWICE else base.installation.interval


def _flapping(base: Story, app: str, pods: int, begins: float) -> Iterator[e.Event]:
    """Gives the events that turn the pods of an app for each pass: unready before one, ready before the next."""
    turns = int(_LASTS / _interval(base)) // 2 * 2
    for turn in range(turns):
        at = round(begins + turn * _interval(base), 1)
        for number in range(pods):
            yield e.PodTurns(at=at, app=app, number=number, ready=turn % 2 == 1)


def with_a_flapping_list(base: Story) -> Story:
    """Adds a list that fails in every second pass, while the events of the story go on."""
    dice = random.Random(f"flapping lists {base.seed}")
    calls, kind = dice.choice(_LISTS), dice.choice(_KINDS)
    step = _interval(base)
    at = round(dice.uniform(0, 2 * step), 1)
    troubles = list(base.troubles)
    while at < base.ends - QUIET:
        until = round(min(base.ends - QUIET, at + step), 1)
        troubles.append(Trouble(at=at, until=until, calls=calls, kind=kind))
        at = round(at + 2 * step, 1)
    return replace(base, troubles=tuple(troubles))
