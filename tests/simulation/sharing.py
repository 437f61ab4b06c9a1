"""Stories in which two syncers serve the same pods behind a gate, each under a name of its own; and
the promise.

shared gate the gate of a pod that two syncers serve opens only when an uncached read showed the
instance of each UP, or when one gets no instance on purpose
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from . import events as e
from .asked import Asked, Limit
from .rollout import Rollout
from .story import QUIET, Story
from .troubles import Call, Kind, Trouble
from .truth import SyncerTruth, Truth
from .view import PassView, Violation, named
from .world import Key

_KINDS = (Kind.ERROR_503, Kind.TIMEOUT_BEFORE, Kind.REFUSED, Kind.FORBIDDEN)
_GATED = Asked(readiness_gate=True)


def with_shared_pods(base: Story) -> Story:
    """Adds an app whose pods are two apps in Eureka, behind gates, while some calls fail."""
    dice = random.Random(f"shared gates {base.seed}")
    begins = base.ends - QUIET
    app = dice.choice(
        sorted({event.app for event in base.events if isinstance(event, e.ServiceApplied)})
    )
    at = round(begins + dice.uniform(45, 60), 1)
    second = dice.choice(
        (_GATED, _GATED, _GATED, Asked(readiness_gate=True, suspend=True), _of_limit(dice))
    )
    events: list[e.Event] = [
        *base.events,
        e.ServiceApplied(at=begins, app=app),
        e.SyncerApplied(at=begins, name=app, app=app, asked=_GATED),
        e.SyncerApplied(at=begins, name=f"{app}-next", app=app, app_name="fresh", asked=second),
        *(
            e.PodStarted(at=at, app=app, number=number, ip=f"10.0.2.{number}", gated=True)
            for number in range(11, 11 + dice.randint(1, 3))
        ),
        Rollout(at=round(at + dice.uniform(10, 30), 1), app=app, ip="10.0.2.30", gated=True),
    ]
    if dice.random() < 0.3:
        events.append(
            e.SyncerDeleted(at=round(at + dice.uniform(0, 60), 1), name=f"{app}-next", app=app)
        )
    until = round(at + dice.uniform(20, 80), 1)
    calls = dice.choice(
        (frozenset({Call.REGISTER}), frozenset({Call.REGISTER}), frozenset({Call.READ}))
    )
    trouble = Trouble(
        at=at,
        until=until,
        calls=calls,
        kind=dice.choice(_KINDS),
        skip=dice.choice((0, 1, 2, 3)),
        strikes=dice.choice((1, 2, 4)),
    )
    return replace(
        base,
        events=tuple(sorted(events, key=lambda event: event.at)),
        troubles=(*base.troubles, trouble),
        ends=max(until, *(event.over for event in events)) + QUIET,
    )


def _of_limit(dice: random.Random) -> Asked:
    return Asked(readiness_gate=True, limit=Limit(kind="count", value=dice.choice((0, 1, 2))))


class SharedGates:
    """Sees every gate that a pass opens."""

    def __init__(
        self, truth: Truth, serves_itself: Callable[[Key], bool], reached: Counter[str]
    ) -> None:
        self._truth = truth
        self._serves_itself = serves_itself
        self._reached = reached

    def judge(self, view: PassView, before: Mapping[str, bool]) -> None:
        """Judges a write to a pod's status."""
        for uid, is_open in self._truth.gates.items():
            if (
                is_open
                and not before.get(uid, True)
                and view.eureka is not None
                and uid not in self._truth.drained
            ):
                self._judge_open(view, uid)

    def _judge_open(self, view: PassView, uid: str) -> None:
        where = self._truth.labels.get(uid, ("", ""))
        syncers = [one for one in self._truth.syncers.values() if (one.ref[0], one.app) == where]
        serving = {self._key(one, uid): one for one in syncers if self._waits(view, one, uid)}
        if len(serving) < 2:
            return
        self._reached["a gate of two syncers opened"] += 1
        for key, syncer in sorted(serving.items()):
            if key not in view.looked_up_keys and not self._serves_itself(key):
                raise Violation(
                    "shared gate",
                    f"a gate was opened, and no read showed {key} of {named(syncer.ref)} UP",
                )

    def _waits(self, view: PassView, syncer: SyncerTruth, uid: str) -> bool:
        """Whether the syncer should register the pod, and the pass must have seen so."""
        asked = syncer.asked
        held = self._truth.eligible.get(self._key(syncer, uid))
        return (
            asked.readiness_gate
            and asked.mode == "pod"
            and asked.limit is None
            and not asked.suspend
            and not syncer.deleting
            and syncer.served
            and max(syncer.since.values()) <= view.specs
            and held is not None
            and held.holder == syncer.ref
            and held.since <= view.moment
        )

    def _key(self, syncer: SyncerTruth, uid: str) -> Key:
        return self._truth.key(syncer.ref[0], syncer.app_name, self._truth.addresses[uid])
