"""Stories in which one kind of call is so slow that it takes all the time of its stage, and the
promise about them.

starved     while one kind of call is slow, all due work is done within some passes: ready pods
            are registered, ended ones are removed, and each syncer gets its status
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

from . import events as e
from .asked import Asked
from .story import QUIET, Installation, Mode, Story
from .troubles import Call, Kind, Trouble
from .view import PassView, Violation, is_up, named
from .world import APPS

if TYPE_CHECKING:
    from .judge import Judge

_PASS = 30.0
_BEGINS = 65.0
_LASTS = 900.0
_MOST = 16
"""Passes that a piece of work may wait. Each pass begins elsewhere, so it is done by then."""
_SLOW = (
    Call.IDENTITY,
    Call.LIST,
    Call.RENEW,
    Call.RENEW,
    Call.RENEW,
    Call.SYNCERS,
    Call.SERVICES,
    Call.SLICES,
    Call.READ,
    Call.REGISTER,
    Call.CANCEL,
    Call.STATUS,
    Call.EVENT,
    Call.FINALIZER,
)
_WHOLE = frozenset({Call.IDENTITY, Call.LIST, Call.SYNCERS, Call.SERVICES, Call.SLICES})
"""Kinds of calls that mean nothing without the others of their stage."""


def a_slow_stage(base: Story) -> Story:
    """A story of its own: one kind of call takes seconds while pods come and go and syncers
    change."""
    dice = random.Random(f"a slow stage {base.seed}")
    apps = dice.sample(sorted(APPS), dice.choice((2, 3, 4)))
    events: list[e.Event] = []
    for app in apps:
        events += [e.ServiceApplied(at=0.0, app=app), e.SyncerApplied(at=0.0, name=app, app=app)]
        events += [
            e.PodStarted(at=0.0, app=app, number=number, ip=f"10.0.0.{1 + number}")
            for number in range(dice.choice((1, 2, 3)))
        ]
    last = _BEGINS + _LASTS - 2 * _MOST * _PASS
    for _ in range(dice.choice((2, 4, 6))):
        app, at = dice.choice(apps), round(dice.uniform(_BEGINS, max(_BEGINS + 60, last)), 1)
        number = dice.randint(0, 4)
        events.append(
            dice.choice(
                (
                    e.PodStarted(at=at, app=app, number=number, ip=f"10.0.0.{10 + number}"),
                    e.PodStarted(at=at, app=app, number=number, ip=f"10.0.0.{20 + number}"),
                    e.PodEnds(at=at, app=app, number=number),
                    e.SyncerApplied(at=at, name=app, app=app, asked=Asked(version=str(number))),
                    e.SyncerApplied(at=at, name=f"{app}-next", app=app, app_name="fresh"),
                )
            )
        )
    call = dice.choice(_SLOW)
    slow = Trouble(
        at=_BEGINS,
        until=_BEGINS + _LASTS,
        calls=frozenset({call}),
        kind=Kind.SLOW,
        # A list that does not come in time is Unknown, in each pass anew.
        seconds=round(dice.uniform(1, 2.5) if call in _WHOLE else dice.uniform(3, 7), 1),
    )
    return Story(
        seed=base.seed,
        installation=Installation(mode=Mode.ONCE, interval=_PASS, pass_seconds=_PASS),
        events=tuple(sorted(events, key=lambda event: event.at)),
        troubles=(slow,),
        ends=slow.until + QUIET,
    )


class Starving:
    """Counts the passes that each piece of work waits."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._waited: Counter[str] = Counter()
        troubles = judge.story.troubles
        self._watches = judge.story.installation.pass_seconds == _PASS and len(troubles) == 1
        self._watches = self._watches and all(
            one.kind is Kind.SLOW and len(one.calls) == 1 for one in troubles
        )

    def pass_ended(self, view: PassView) -> None:
        """Judges the end of a pass: work that was due when it began, and is not done, has waited
        one pass more."""
        if not self._watches:
            return
        due = self._due(view)
        self._waited = Counter({what: self._waited[what] + 1 for what in due})
        if view.troubled:
            self._judge.reached["a pass with a slow stage"] += 1
            self._judge.reached["a thing to do that waited in it"] += len(due)
        for what, passes in self._waited.items():
            if passes > _MOST:
                raise Violation("starved", f"{what} for {passes} passes")

    def _due(self, view: PassView) -> list[str]:
        truth, held = self._judge.truth, self._judge.held
        due = []
        for state in self._judge.known:
            for key, wanted in truth.up.items():
                if wanted.since <= view.begun and not is_up(state.get(key)):
                    due.append(f"{key} is ready, and not UP")
            for key in self._judge.ours_of(state):
                known = key in truth.eligible or key in truth.frozen or key in truth.down
                if (
                    not known
                    and key not in held
                    and truth.eligible_until.get(key, 0.0) < view.begun
                ):
                    due.append(f"{key} stands, and nothing wants it")
        due += [
            f"{named(ref)} is told nothing"
            for ref, syncer in truth.syncers.items()
            if not syncer.conditions and max(syncer.since.values()) <= view.begun
        ]
        return due
