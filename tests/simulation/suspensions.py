"""Stories in which Eureka loses instances of a suspended syncer, and the promise about them.

returned    at rest a suspended syncer has the instances that were UP in the first minutes of its
            suspension, if their pods are ready and the process has lived since
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from . import events as e
from .asked import Asked
from .story import QUIET, Story
from .troubles import EUREKA_CALLS, KUBERNETES_CALLS, USUAL_CALLS, Kind, Trouble
from .truth import SyncerTruth, Truth
from .view import PassView, State, Violation, is_up, named, pod_of, syncer_of
from .world import Key

_COUNTED = 150.0
"""Seconds after the last change of its spec by which each earlier pass is over."""
_KINDS = (
    Kind.TIMEOUT_BEFORE,
    Kind.TIMEOUT_AFTER,
    Kind.ERROR_503,
    Kind.RESET_AFTER,
    Kind.KILL_BEFORE,
    Kind.KILL_AFTER,
    Kind.PAUSE_AFTER,
)


def with_a_lost_suspension(base: Story) -> Story:
    """Adds a syncer that is suspended for long, a Eureka that loses its memory, and trouble right
    after."""
    dice = random.Random(f"a lost suspension {base.seed}")
    begins = base.ends - QUIET
    app = dice.choice(
        sorted({event.app for event in base.events if isinstance(event, e.ServiceApplied)})
    )
    suspended = round(begins + dice.uniform(40, 60), 1)
    restart = round(suspended + _COUNTED + dice.uniform(5, 70), 1)
    calm = round(restart + dice.uniform(10, 60), 1)
    pods = range(5, 5 + dice.choice((1, 2, 3)))
    events: list[e.Event] = [
        *base.events,
        e.ServiceApplied(at=begins, app=app),
        e.SyncerApplied(at=begins, name=app, app=app),
        *(
            e.PodStarted(at=begins, app=app, number=number, ip=f"10.0.0.{number + 2}")
            for number in pods
        ),
        e.SyncerApplied(at=suspended, name=app, app=app, asked=Asked(suspend=True)),
        *(
            e.EurekaRestarts(at=restart, peer=peer, warm_up=dice.choice((0.0, 0.0, 20.0)))
            for peer in (0, 1)
        ),
    ]
    if dice.random() < 0.4:
        events += [e.AllPodsTurn(at=restart, ready=False), e.AllPodsTurn(at=calm, ready=True)]
    if dice.random() < 0.3:
        events += [e.ServiceDeleted(at=restart, app=app), e.ServiceApplied(at=calm, app=app)]
    group = dice.choice(
        (EUREKA_CALLS, KUBERNETES_CALLS, frozenset({dice.choice(sorted(USUAL_CALLS))}))
    )
    trouble = Trouble(
        at=restart,
        until=calm,
        calls=group,
        kind=dice.choice(_KINDS),
        skip=dice.choice((0, 0, dice.randint(1, 12))),
        strikes=dice.randint(1, 4),
        seconds=round(dice.uniform(5, 50), 1),
    )
    return replace(
        base,
        events=tuple(sorted(events, key=lambda event: event.at)),
        troubles=(*base.troubles, trouble),
        ends=max(event.over for event in events) + QUIET,
    )


class Suspensions:
    """Remembers which instances each suspended syncer should have, whatever Eureka loses."""

    def __init__(
        self, truth: Truth, ours: Callable[[State], Iterator[Key]], reached: Counter[str]
    ) -> None:
        self._truth = truth
        self._ours = ours
        self._reached = reached
        self._stood: dict[str, tuple[float, frozenset[tuple[Key, str]]]] = {}
        """Since when its spec is the same, and the instances UP in all the time that counts, with
        their pods' UIDs; by UID."""
        self._process: object | None = None

    def judge_pass(self, view: PassView) -> None:
        """Judges the end of a pass. Another process knows nothing of instances from before its
        start."""
        if view.process is not self._process:
            self._stood.clear()
        self._process = view.process

    def look(self, states: Sequence[State], now: float) -> None:
        """Notes the instances of now."""
        for syncer in self._truth.syncers.values():
            since = max(syncer.since.values())
            if not syncer.asked.suspend or now > since + _COUNTED:
                continue
            up = frozenset.intersection(*(self._up(syncer, state) for state in states))
            known, before = self._stood.get(syncer.uid, (since, up))
            self._stood[syncer.uid] = (since, up & before if known == since else up)

    def judge_rest(self, states: Sequence[State], now: float) -> None:
        """Judges the end of a story; raises Violation."""
        for _, syncer in sorted(self._truth.syncers.items()):
            since, stood = self._stood.get(syncer.uid, (0.0, frozenset()))
            counted = since == max(syncer.since.values()) and now > since + _COUNTED
            if not counted or not syncer.asked.suspend or syncer.deleting:
                continue
            self._reached["a suspended syncer at rest"] += 1
            ours = [
                (key, one) for key, one in self._truth.eligible.items() if one.holder == syncer.ref
            ]
            ready = {(key, pod) for key, one in ours for pod in one.pods}
            for key, _ in sorted(stood & ready):
                if any(key not in state for state in states):
                    raise Violation(
                        "returned",
                        f"{key} was UP when {named(syncer.ref)} was suspended, and is ready",
                    )

    def _up(self, syncer: SyncerTruth, state: State) -> frozenset[tuple[Key, str]]:
        """The instances that are UP under the syncer's present limit, with their pods' UIDs. What
        was registered under another one may be more than this one allows, so nothing says that it
        is to come back."""
        limit = "" if syncer.asked.limit is None else str(syncer.asked.limit)
        up: set[tuple[Key, str]] = set()
        for key in self._ours(state):
            instance = state[key][0]
            under_this_limit = (instance.metadata or {}).get("eurekube.limit", "") == limit
            if syncer_of(instance) == syncer.ref and is_up(state[key]) and under_this_limit:
                up.add((key, pod_of(instance)))
        return frozenset(up)
