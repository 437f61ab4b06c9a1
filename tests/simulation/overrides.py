"""Stories in which a person puts instances out of service, and the promise about them.

override    no instance is out of service unless a person put it there; such an instance is
            cancelled only when its syncer is deleted or gives it another name, or its pod ends,
            because a cancel would lose the override: never for an unready pod, for a limit, or
            because no Service selects the pod for a while
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from . import events as e
from .asked import PLAIN, Asked
from .story import QUIET, Story
from .truth import SyncerTruth, Truth
from .view import OUT, PassView, State, Violation, named, pod_of, status_of, syncer_of
from .wishes import random_limit
from .world import Key

_CONFIRMED = 60.0
"""Seconds in which two apps may lose their last UP instance one after the other: a released
instance may be UP."""
_Place = tuple[Key, str, str]
"""A key, the UID of its pod, and the UID of the syncer that claims it."""


def with_overrides(base: Story) -> Story:
    """Adds an app of which some instances are put out of service, turn unready, are over a limit,
    or end."""
    dice = random.Random(f"overrides {base.seed}")
    begins = base.ends - QUIET
    out = round(begins + dice.uniform(25, 40), 1)
    app = dice.choice(
        sorted({event.app for event in base.events if isinstance(event, e.ServiceApplied)})
    )
    asked = dice.choice(
        (PLAIN, Asked(not_ready="Cancel"), Asked(not_ready="Cancel"), Asked(terminating="Cancel"))
    )
    numbers = range(5, 5 + dice.choice((2, 3)))
    events: list[e.Event] = [
        *base.events,
        e.ServiceApplied(at=begins, app=app),
        e.SyncerApplied(at=begins, name=app, app=app, asked=asked),
        *(
            e.PodStarted(at=begins, app=app, number=number, ip=f"10.0.0.{number + 2}")
            for number in numbers
        ),
        *(e.PersonOverrides(at=out, which=which) for which in range(dice.choice((2, 3, 5)))),
    ]
    for number in numbers:
        at = round(out + dice.uniform(1, 40), 1)
        turns = e.PodTurns(at=at, app=app, number=number, ready=False)
        ends = e.PodEnds(at=at, app=app, number=number, grace=dice.choice((0.0, 5.0)))
        events += dice.choice(((), (turns,), (turns,), (ends,)))
    later = round(out + dice.uniform(1, 40), 1)
    if dice.random() < 0.5:
        limited = replace(asked, limit=random_limit(dice))
        events.append(e.SyncerApplied(at=later, name=app, app=app, asked=limited))
    elif dice.random() < 0.2:
        events.append(e.SyncerDeleted(at=later, name=app, app=app))
    if dice.random() < 0.3:
        events.append(e.PersonReleases(at=round(later + 20, 1)))
    return replace(
        base,
        events=tuple(sorted(events, key=lambda event: event.at)),
        ends=max(event.over for event in events) + _CONFIRMED + QUIET,
    )


class Overrides:
    """Remembers which instances a person put out of service."""

    def __init__(self, truth: Truth, reached: Counter[str]) -> None:
        self._truth = truth
        self._reached = reached
        self.out: set[Key] = set()
        """The instances that a person put out of service, and did not put back."""
        self._ever: dict[Key, float] = {}
        """When a person last put each out of service."""
        self._places: dict[_Place, float] = {}
        """Since when each of them has a place, ready or not."""

    def asked_out(self, key: Key, now: float) -> None:
        """Notes that a person put it out of service now. Eureka keeps this by id, so for one app
        alone if ids differ by app."""
        self.out.add(key)
        self._ever[key] = now

    def ever(self, key: Key) -> bool:
        """Whether a person ever put it out of service."""
        return key in self._ever

    def since_looked(self, view: PassView, app: str) -> bool:
        """Whether a person put an instance of the app out of service after the pass had read it as
        UP."""
        looked = view.eureka if view.eureka is not None else view.begun
        return any(
            key.app == app and when > view.looked.get(key, looked)
            for key, when in self._ever.items()
        )

    def look(self, now: float) -> None:
        """Notes which of them have a pod and a syncer."""
        if self._ever:
            found = {
                place
                for syncer in self._truth.syncers.values()
                for place in self._places_of(syncer)
            }
            self._places = {place: self._places.get(place, now) for place in found}

    def _places_of(self, syncer: SyncerTruth) -> list[_Place]:
        if syncer.deleting or not syncer.served or syncer.asked.mode != "pod":
            return []
        where = (syncer.ref[0], syncer.app)
        keys = {
            uid: self._truth.key(syncer.ref[0], syncer.app_name, self._truth.addresses[uid])
            for uid, at in self._truth.labels.items()
            if at == where
        }
        return [(key, uid, syncer.uid) for uid, key in keys.items() if key in self._ever]

    def judge_states(self, ours: list[Key], now: State) -> None:
        """Judges a write to Eureka."""
        for key in ours:
            if status_of(now[key]) == OUT and key not in self._ever:
                raise Violation("override", f"{key} is out of service, and nobody put it there")

    def judge_cancel(self, view: PassView, key: Key, was: State) -> None:
        """Judges the cancel of one of ours; `was` is the state before."""
        if status_of(was[key]) != OUT:
            return
        ref = syncer_of(was[key][0])
        syncer = self._truth.syncers.get(ref)
        since = self._places.get((key, pod_of(was[key][0]), syncer.uid)) if syncer else None
        self._reached["a cancel of what a person put out of service"] += 1
        ends = self._truth.terminated_since(key, min(view.moment, view.begun))
        if since is not None and since <= min(view.specs, view.moment) and not ends:
            told = f"{named(ref)} and its pod are there since {since:.1f} s"
            raise Violation(
                "override", f"{key}, which a person put out of service, was cancelled, and {told}"
            )
