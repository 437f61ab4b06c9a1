"""Stories with an app of many pods, of which so many go at once that the brake counts them; and the
promise.

sizes       no pass removes more than ten and more than 30 % of all our instances, or of one app,
            without evidence or a person's wish, less the instances that were added to the same
            apps; an instance that gives way to its pod's own counts, and so does a dead pod
            until another pass has seen it dead
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from . import events as e
from .asked import PLAIN, Asked
from .decisions import RemovalsReleased
from .evidence import Evidence
from .story import QUIET, Story
from .view import PassView, Violation
from .world import Key

FLOOR = 10
"""Removals that are always allowed at once."""
_PERCENT = 30
_NEWS = 60.0
"""Seconds in which a pass may not yet see what others did."""


def with_a_crowd(base: Story) -> Story:
    """Adds an app of some forty pods, of which some turn unready, vanish, terminate, get another
    name or register themselves, all at once."""
    dice = random.Random(f"a crowd {base.seed}")
    begins = base.ends - QUIET
    app = dice.choice(
        sorted({event.app for event in base.events if isinstance(event, e.ServiceApplied)})
    )
    asked = dice.choice((PLAIN, PLAIN, Asked(not_ready="Cancel")))
    pods = range(10, 10 + dice.randint(30, 42))
    at = round(begins + dice.uniform(45, 70), 1)
    events: list[e.Event] = [
        *base.events,
        e.ServiceApplied(at=begins, app=app),
        e.SyncerApplied(at=begins, name=app, app=app, asked=asked),
        *(
            e.PodStarted(at=begins, app=app, number=number, ip=f"10.0.1.{number}")
            for number in pods
        ),
    ]
    leaving = dice.sample(pods, dice.choice((8, 13, 18, 25, len(pods) - 1)))
    match dice.choice(("turn", "turn", "vanish", "terminate", "move", "register")):
        case "turn":
            events += [e.PodTurns(at=at, app=app, number=number, ready=False) for number in leaving]
            if dice.random() < 0.5:
                back = round(at + dice.uniform(5, 40), 1)
                events += [
                    e.PodTurns(at=back, app=app, number=number, ready=True) for number in leaving
                ]
        case "vanish":
            events += [e.PodEnds(at=at, app=app, number=number) for number in leaving]
        case "terminate":
            events += [e.PodEnds(at=at, app=app, number=number, grace=30.0) for number in leaving]
        case "move":
            events.append(e.SyncerApplied(at=at, name=app, app=app, app_name="fresh", asked=asked))
        case "register":
            own = [f"10.0.1.{number}" for number in leaving]
            events += [e.StrangerRegisters(at=at, who="itself", app=app, ip=ip) for ip in own]
    if dice.random() < 0.3:
        events.append(
            RemovalsReleased(at=round(at + dice.uniform(5, 40), 1), name=app, app=app, lasts=600.0)
        )
    return replace(
        base,
        events=tuple(sorted(events, key=lambda event: event.at)),
        ends=max(event.over for event in events) + QUIET,
    )


class Sizes:
    """Counts the removals of each pass."""

    def __init__(self, evidence: Evidence, reached: Counter[str]) -> None:
        self._evidence = evidence
        self._reached = reached

    def judge(
        self,
        view: PassView,
        counted: Iterable[Key],
        gave_way: Iterable[Key],
        stands: Iterable[Key],
        lost_up: Mapping[Key, float],
    ) -> None:
        """Judges a call of this pass. `counted` are its removals, without what a person released
        and what is no loss; `gave_way` those beside an instance of the pod itself; `stands` our UP
        instances on any server."""
        doubted = Counter(key.app for key in counted if not self._evidence.of(view, key))
        doubted += Counter(key.app for key in gave_way)
        if doubted.total() <= FLOOR:
            return
        taken = Counter(key.app for key in (*view.taken, *view.gave_way))
        brought = Counter(key.app for key in view.brought)
        loss = doubted & (taken - brought)
        # What others took meanwhile may have stood when this pass looked.
        lost = {key for key, when in lost_up.items() if when > view.begun - _NEWS}
        stood = Counter(
            key.app for key in lost | view.taken.keys() | view.gave_way.keys() | set(stands)
        )
        self._reached["more than ten that went without evidence"] += 1
        for what, went, of in (
            ("all", loss.total(), stood.total()),
            *((app, loss[app], stood[app]) for app in loss),
        ):
            if went > FLOOR and went * 100 > _PERCENT * of:
                raise Violation(
                    "sizes",
                    f"{went} of {of} of {what} went in one pass, and no evidence says that they "
                    "were to go",
                )
