"""Stories of what comes and goes each pass: the pods of an app while another app loses its own, and
a list that fails each second time; and the promise about them.

awaited     in a daemon, a removal awaits no second look if the good passes of the last 20 s, at
            least two, all wanted to remove the same of its app, whatever else held it then;
            where pods died meanwhile, or where the passes now look at something else (a syncer
            that is deleted, one that is missing, or the endpoints of one that is there), the
            passes since then count. What was seen of a missing syncer counts for its endpoints,
            unless it may only have gone with its CRD. A pass whose list of syncers, Services or
            slices failed neither counts nor breaks the row. So neither an app nor a list that flaps
            keeps an instance UP
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from eurekube_sync.model.actions import Grounds, Removal

from . import events as e
from .story import QUIET, Mode, Story
from .troubles import Call, Kind, Trouble
from .truth import Ref
from .view import PassView, Violation, pod_of
from .world import OF_THE_FIRST_TEAM, Key, is_apart

if TYPE_CHECKING:
    from eurekube_sync.controller.one_pass import PassReport

    from .judge import Judge

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
_AWAITING = "AwaitingConfirmation"
_CONFIRM = 21.0
"""Seconds after which a second look counts."""
_VALID = 600.0
"""Seconds for which a first look counts, at least."""
_NEEDED_BY_ALL = frozenset({Call.SYNCERS, Call.SERVICES, Call.SLICES})


def with_a_flapping_app(base: Story) -> Story:
    """Adds an app that is ready for one pass and not for the next, and one whose pods die or stay
    unready."""
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
    """Gives the events that turn the pods of an app for each pass: unready before one, ready before
    the next."""
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


class _At(Enum):
    """What a pass looked at when it wanted to remove an instance."""

    ENDPOINTS = "what its Service and its pod say"
    DELETION = "the deletion of its syncer"
    MISSING = "that its syncer is missing"
    MISSING_FOR_NOW = "that its syncer is missing, which may have gone with its CRD"


_OF_GROUNDS = {
    Grounds.SYNCER_DELETED: _At.DELETION,
    Grounds.ORPHANED: _At.MISSING,
    Grounds.SWEPT: _At.MISSING,
}


class _Removal(NamedTuple):
    key: Key
    syncer: Ref
    """An heir's wait begins anew."""
    looked_at: _At


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """What the passes since a moment have held of one app."""

    removals: frozenset[_Removal]
    dead: frozenset[Key]
    """Those whose pods are gone."""
    since: float
    passes: int


class SecondLooks:
    """Remembers since when the removals of each app are held, for any reason."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._held: dict[str, _Held] = {}
        self._process: object | None = None

    def judge_pass(self, view: PassView, report: PassReport) -> None:
        """Judges the end of a pass of the program."""
        if self._judge.story.installation.mode is not Mode.DAEMON:
            return  # of earlier processes a process knows no more than a condition tells
        begins_anew = view.process is not self._process
        self._process = view.process
        if begins_anew:
            self._held = {}
        if not self._judge.dead.is_good(view):
            self._held = self._kept_by_a_blind_pass(view)
            return
        reasons: dict[str, dict[_Removal, str]] = {}
        for hold in report.held.holds if report.held else ():
            for planned in hold.removals:
                removal = _looked_at(planned, hold.reason.value)
                reasons.setdefault(removal.key.app, {})[removal] = hold.reason.value
        self._held = {app: self._with(app, frozenset(held), view) for app, held in reasons.items()}
        for app, held in sorted(self._held.items()):
            awaiting = [
                removal.key for removal, reason in reasons[app].items() if reason == _AWAITING
            ]
            if not awaiting:
                continue
            self._judge.reached["a removal that awaits a second look"] += 1
            if held.passes > 2 and view.begun - held.since >= _CONFIRM:
                told = f"{held.passes} good passes since {held.since:.1f} s wanted to remove it"
                raise Violation("awaited", f"{min(awaiting)} awaits a second look, and {told}")

    def _kept_by_a_blind_pass(self, view: PassView) -> dict[str, _Held]:
        """What a pass leaves as it is that read Eureka and failed to list something of the whole
        cluster: it judged nobody that is served by slices. Any other pass leaves nothing."""
        misled = view.older or view.strayed or view.found_elsewhere or view.last_elsewhere
        failed_lists = view.failed and view.failed <= _NEEDED_BY_ALL - view.lists.keys()
        whole = not self._judge.story.installation.scoped
        if misled or view.eureka is None or not failed_lists or not whole:
            return {}
        kept: dict[str, _Held] = {}
        for app, held in self._held.items():
            apart = any(is_apart(removal.syncer[1]) for removal in held.removals)
            if not apart and view.begun - held.since < _VALID:
                kept[app] = held
                self._judge.reached["a removal that was seen before a list failed"] += 1
        return kept

    def _with(self, app: str, removals: frozenset[_Removal], view: PassView) -> _Held:
        before = self._held.get(app)
        dead = frozenset(removal.key for removal in removals if self._is_dead(removal.key))
        if before is None or not removals <= _seen(before.removals) or not dead <= before.dead:
            return _Held(removals=removals, dead=dead, since=view.begun, passes=1)
        return _Held(removals=removals, dead=dead, since=before.since, passes=before.passes + 1)

    def _is_dead(self, key: Key) -> bool:
        uids = [pod_of(state[key][0]) for state in self._judge.known if key in state]
        return any(self._judge.dead.ended(uid) < inf for uid in uids)


def _looked_at(removal: Removal, reason: str) -> _Removal:
    """What a pass held, and what it looked at for that."""
    looked_at = _OF_GROUNDS.get(removal.grounds, _At.ENDPOINTS)
    if removal.grounds is Grounds.SWEPT and reason != _AWAITING:
        looked_at = _At.MISSING_FOR_NOW
    syncer = removal.syncer.namespace, removal.syncer.name
    return _Removal(Key(*removal.key), syncer, looked_at)


def _seen(removals: Iterable[_Removal]) -> frozenset[_Removal]:
    """What the next pass need not look at for the first time."""
    seen = set(removals)
    for removal in removals:
        if removal.looked_at is _At.MISSING:
            seen.add(removal._replace(looked_at=_At.ENDPOINTS))
    return frozenset(seen)
