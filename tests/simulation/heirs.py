"""Stories in which a syncer gives way to an heir that alone needs a list, and just that list fails;
and the promise about heirs.

heir        while a living syncer selects the living pod of an instance, the instance is not
            cancelled because the syncer of its mark is deleted, is gone or has the limit 0,
            whatever lists failed

A syncer is renamed as docs/suspend.md says: the new one is made, then the old one is deleted, or
its limit becomes 0. Only the new one reads labels or gates of pods; or the grants of Namespaces
decide about both. In some stories the new one also asks for a port that the Service gets later.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.embedded.instances import Listed

from . import events as e
from .ambiguous import ServicePortsSet
from .asked import PLAIN, Asked, Limit
from .story import QUIET, Story
from .troubles import Call, Kind, Trouble
from .truth import Ref, SyncerTruth
from .view import PassView, Violation, change, named, pod_of, syncer_of
from .world import OF_THE_FIRST_TEAM, PORT, SERVICE_PORT, Key

if TYPE_CHECKING:
    from .judge import Judge

_NEEDS: dict[str, tuple[Asked, Call]] = {
    "labels": (Asked(pod_label=True), Call.PODS),
    "gates": (Asked(readiness_gate=True), Call.PODS),
    "grants": (PLAIN, Call.NAMESPACES),
}
"""What the heir asks for, and the kind of call that it needs."""
_KINDS = (
    Kind.FORBIDDEN,
    Kind.FORBIDDEN,
    Kind.ERROR_500_AFTER,
    Kind.ERROR_503,
    Kind.TIMEOUT_BEFORE,
    Kind.CUT,
    Kind.PAGE,
)
_WEB = ("web", SERVICE_PORT, PORT)
_DETACHED = Asked(limit=Limit(kind="count", value=0))


class Heirs:
    """Sees every removal of an instance of ours."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def judge_removal(self, view: PassView, key: Key, was: Listed, stands: Listed | None) -> None:
        """Judges that a pass cancelled an instance, or turned it DOWN."""
        truth, ref = self._judge.truth, syncer_of(was[0])
        claim = truth.eligible.get(key)
        if claim is None or claim.holder == ref or not self._gives_way(view, ref):
            return
        heir = truth.syncers[claim.holder]
        known = max(claim.since, *heir.since.values()) <= min(view.specs, view.moment)
        if not known or heir.asked.limit is not None or self._judge.is_taken(key):
            return
        if pod_of(was[0]) not in claim.pods:
            return  # it is of a pod that had the address before
        told = f"{named(claim.holder)}, which selects its pod, is its heir"
        raise Violation("heir", f"{key} of {named(ref)} was {change(was, stands)}, and {told}")

    def judge_pass(self, view: PassView) -> None:
        """Counts the instances that wait for an heir that could not be read."""
        truth = self._judge.truth
        for key, claim in truth.eligible.items():
            heir = truth.syncers[claim.holder]
            if not self.is_unread(view, heir):
                continue
            standing = (state[key] for state in self._judge.known if key in state)
            if any(syncer_of(listed[0]) != claim.holder for listed in standing):
                self._judge.reached["an instance whose heir could not be read"] += 1

    def is_unread(self, view: PassView, heir: SyncerTruth) -> bool:
        """Whether a list failed in this pass that only some syncers need, and this one does."""
        granted = self._judge.story.installation.granted
        return bool(view.failed & needed_by(heir.asked, granted=granted))

    def _gives_way(self, view: PassView, ref: Ref) -> bool:
        syncer = self._judge.truth.syncers.get(ref)
        if syncer is None or syncer.deleting:
            return True
        limit = syncer.asked.limit
        return limit is not None and limit.value == 0 and syncer.since["limit"] <= view.specs


def needed_by(asked: Asked, *, granted: bool) -> set[Call]:
    """Gives the calls that a syncer needs beside the lists of syncers, Services and slices."""
    needed: set[Call] = set()
    if asked.pod_label or asked.readiness_gate:
        needed.add(Call.PODS)
    if granted:
        needed.add(Call.NAMESPACES)
    return needed


def with_an_heir(base: Story) -> Story:
    """Adds an app whose syncer is renamed while a list fails that only its heir needs."""
    dice = random.Random(f"heirs {base.seed}")
    app = dice.choice(OF_THE_FIRST_TEAM)
    need = dice.choice(tuple(_NEEDS))
    asked, call = _NEEDS[need]
    goes = round(dice.uniform(40, max(45.0, base.ends - QUIET)), 1)
    made = round(goes - dice.choice((0.0, 0.0, 5.0, 25.0)), 1)
    port: list[e.Event] = []
    ports = random.Random(f"the port of an heir {base.seed}")
    if ports.random() < 0.3:
        # The release renames the Service's port, too, and the Service changes last.
        asked = replace(asked, port=_WEB[0])
        has_it = round(goes + ports.choice((0.5, 15.0, 40.0, 90.0)), 1)
        port.append(ServicePortsSet(at=has_it, app=app, ports=(_WEB,)))
    old = Asked(readiness_gate=True) if need == "gates" and dice.random() < 0.2 else PLAIN
    pods = range(dice.choice((1, 2, 3, 4)))
    events: list[e.Event] = [
        *base.events,
        e.ServiceApplied(at=0.0, app=app),
        e.SyncerApplied(at=0.0, name=app, app=app, asked=old),
        *(
            e.PodStarted(at=0.0, app=app, number=number, ip=f"10.0.4.{1 + number}")
            for number in pods
        ),
        e.SyncerApplied(at=made, name=f"{app}-next", app=app, asked=asked),
        _end_of_the_old_one(dice, app, goes),
        *port,
    ]
    fails = round(goes - dice.choice((0.1, 0.1, 15.0)), 1)
    lasts = dice.choice((12.0, 25.0, 60.0, 150.0, 400.0))
    trouble = Trouble(
        at=fails, until=round(goes + lasts, 1), calls=frozenset({call}), kind=dice.choice(_KINDS)
    )
    for _ in range(dice.choice((0, 0, 1, 2))):
        at = round(goes + dice.uniform(0, min(lasts, 60.0)), 1)
        events.append(_of_a_pod(dice, app, at))
    return replace(
        base,
        installation=replace(base.installation, granted=need == "grants"),
        events=tuple(sorted(events, key=lambda event: event.at)),
        troubles=(*base.troubles, trouble),
        ends=max(base.ends, trouble.until, *(event.over for event in events)) + QUIET,
    )


def _end_of_the_old_one(dice: random.Random, app: str, at: float) -> e.Event:
    if dice.random() < 0.7:
        return e.SyncerDeleted(at=at, name=app, app=app)
    return e.SyncerApplied(at=at, name=app, app=app, asked=_DETACHED)


def _of_a_pod(dice: random.Random, app: str, at: float) -> e.Event:
    number = dice.randint(0, 3)
    return dice.choice(
        (
            e.PodEnds(at=at, app=app, number=number, grace=dice.choice((0.0, 5.0))),
            e.PodMoves(at=at, app=app, number=number, ip=f"10.0.4.{11 + number}"),
            e.PodStarted(at=at, app=app, number=number, ip=f"10.0.4.{21 + number}"),
            e.PodTurns(at=at, app=app, number=number, ready=False),
        )
    )
