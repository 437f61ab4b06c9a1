"""Stories in which only one kind of call fails for long: the list of Eureka while a syncer and its
pods go, or the events of Kubernetes; and a promise about the latter.

told        while only writes of events are refused, each syncer gets its conditions in the first
            whole pass

What the others are to show: `deletions` says that no finalizer goes while an instance is left,
which no list shows.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from . import events as e
from .story import QUIET, Story
from .troubles import Call, Kind, Trouble
from .view import PassView, Violation, named
from .world import OF_THE_FIRST_TEAM, TEAMS

if TYPE_CHECKING:
    from .judge import Judge

_KINDS = (Kind.ERROR_503, Kind.TIMEOUT_BEFORE, Kind.CUT, Kind.EMPTY, Kind.PAGE, Kind.FORBIDDEN)


def with_an_unlisted_deletion(base: Story) -> Story:
    """Adds an app that goes with all its pods while Eureka cannot be listed."""
    dice = random.Random(f"unlisted {base.seed}")
    app = dice.choice(OF_THE_FIRST_TEAM)
    goes = round(dice.uniform(35, max(45.0, base.ends - QUIET)), 1)
    pods = range(dice.choice((1, 2, 3)))
    events: list[e.Event] = [
        *base.events,
        e.ServiceApplied(at=0.0, app=app),
        e.SyncerApplied(at=0.0, name=app, app=app),
        *(
            e.PodStarted(at=0.0, app=app, number=number, ip=f"10.0.8.{1 + number}")
            for number in pods
        ),
        e.SyncerDeleted(at=goes, name=app, app=app),
        *(e.PodEnds(at=goes, app=app, number=number) for number in pods),
    ]
    if dice.random() < 0.5:
        events.append(e.ServiceDeleted(at=goes, app=app))
    trouble = Trouble(
        at=round(goes - 1, 1),
        until=round(goes + dice.uniform(60, 150), 1),
        calls=frozenset({Call.LIST}),
        kind=dice.choice(_KINDS),
    )
    return replace(
        base,
        events=tuple(sorted(events, key=lambda event: event.at)),
        troubles=(*base.troubles, trouble),
        ends=max(base.ends, trouble.until) + QUIET,
    )


def with_refused_events(base: Story) -> Story:
    """Adds a missing right to write events, for the whole story."""
    refused = Trouble(at=0.0, until=base.ends, calls=frozenset({Call.EVENT}), kind=Kind.FORBIDDEN)
    return replace(base, troubles=(refused, *base.troubles))


class Told:
    """Sees the end of every pass of the program."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        kinds = {trouble.kind for trouble in judge.story.troubles if Call.EVENT in trouble.calls}
        self._only_refused = kinds == {Kind.FORBIDDEN}

    def judge_pass(self, view: PassView, *, in_time: bool) -> None:
        """Judges the end of a pass; `in_time` says whether it had time for everything."""
        judge = self._judge
        changed = view.older or view.strayed or judge.refused(view) or view.eureka is None
        if (
            view.failed != {Call.EVENT}
            or not self._only_refused
            or changed
            or not in_time
            or not judge.truth.crd_lives
        ):
            return
        judge.reached["a pass in which only events were refused"] += 1
        for ref, syncer in sorted(judge.truth.syncers.items()):
            if judge.story.installation.halves and TEAMS[syncer.app] != "one":
                continue
            known = max(syncer.since.values()) <= view.begun and not syncer.going
            if known and not syncer.conditions:
                raise Violation(
                    "told", f"{named(ref)} has no condition, and only events were refused"
                )
