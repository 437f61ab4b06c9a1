"""What is too much for one pass: the losses of its removals, and the three rules that weigh
them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from eurekube_sync.brake.holds import BrakeLimits, Hold
from eurekube_sync.model.actions import Grounds, Removal
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.text import counted

_ASKED_FOR = {
    Grounds.SYNCER_DELETED: "their {syncer}s are being deleted",
    Grounds.DRAINED: "they are drained",
    Grounds.OVER_LIMIT: "the limits of their {syncer}s are lower",
}
"""Grounds of removals that a person asked for, each as a clause about the apps."""


class Nouns(NamedTuple):
    """The words of the sentences about what is weighed."""

    instance: str = "UP instance"
    app: str = "app"
    syncer: str = "syncer"


OF_EXPORTS = Nouns()


@dataclass(frozen=True, kw_only=True)  # without slots: it keeps what it counted
class Scales:
    """The numbers against which removals are weighed. Of imports, an app is the import itself, and
    an instance is an endpoint in its slices."""

    gained: Counter[str]  # UP instances that the pass adds, by app
    up: frozenset[InstanceKey]  # UP now, and weighed
    unread: frozenset[InstanceKey]  # UP in the list, and their uncached read failed: they are lost
    unweighed: frozenset[InstanceKey]  # a person released them, or an earlier pass saw them dead
    in_other_app: frozenset[InstanceKey]  # removals whose pods are registered under another app
    dead: frozenset[InstanceKey]  # removals whose pods are gone
    nouns: Nouns = OF_EXPORTS

    @cached_property
    def replacing(self) -> Counter[str]:
        """Those of them that replace weighed removals, by app; unweighed removals are replaced
        first."""
        return self.gained - Counter(key.app for key in self.unweighed)

    @cached_property
    def now(self) -> Counter[str]:
        """UP instances by app, without those that move to another app."""
        return Counter(key.app for key in self.up if key not in self.in_other_app)

    def emptied(self, removals: Iterable[Removal]) -> frozenset[str]:
        """Return the apps that would lose their last UP instance. A duplicate is no loss."""
        lost = Counter(key.app for key in self.unread)
        for removal in removals:
            if removal.grounds is not Grounds.DUPLICATE:
                lost[removal.key.app] += 1
        emptied = set()
        for app, count in self.now.items():
            if lost[app] - self.gained[app] >= count:
                emptied.add(app)
        return frozenset(emptied)


def loss_of(
    removals: Collection[Removal], unread: Collection[InstanceKey], gained: Mapping[str, int]
) -> tuple[Counter[str], Counter[str]]:
    """Return each app's net loss of UP instances, and the part of it without evidence. New
    instances replace removals with evidence first, such as terminating pods in a rollout."""
    lost = Counter(key.app for key in unread)
    doubted = Counter(lost)
    for removal in removals:
        lost[removal.key.app] += 1
        if not removal.grounds.positive:
            doubted[removal.key.app] += 1
    net = lost - Counter(gained)
    return net, doubted & net


def too_much(scales: Scales, removals: Collection[Removal], limits: BrakeLimits) -> Iterator[Hold]:
    """Hold what is too much for one pass, by three rules.

    | rule      | holds                                | counts                               |
    |-----------|--------------------------------------|--------------------------------------|
    | too much  | more than 30 % and more than 10,     | removals without evidence            |
    |           | of all or of one app                 |                                      |
    | emptied   | more than 5 % of our apps and more   | all that may serve, but what a       |
    |           | than one                             | person asked for                     |
    | asked for | more than 20 % of our apps and more  | deletions, drains and lower limits   |
    |           | than 10                              | that may serve                       |
    """
    yield from _over_the_share(scales, removals, limits)
    emptied = scales.emptied(removals)
    # A dead pod serves nobody: it empties no app.
    serving = []
    for removal in removals:
        if removal.key.app in emptied and removal.key not in scales.dead:
            serving.append(removal)
    yield from _emptied(scales, serving, emptied, limits)
    yield from _asked_for(scales, serving, limits)


def _over_the_share(
    scales: Scales,
    removals: Collection[Removal],
    limits: BrakeLimits,
) -> Iterator[Hold]:
    """Hold what is too much of all our instances, or of one app. Dead pods count."""
    net, doubted = loss_of(removals, scales.unread, scales.replacing)
    unexplained = []
    for removal in removals:
        if removal.key.app in net and not removal.grounds.positive:
            unexplained.append(removal)
    than = f"more than {limits.loss_percent:g} %"

    # too much of all
    instance, app_noun, _ = scales.nouns
    total, lost = len(scales.up), doubted.total()
    if lost > limits.loss_floor and lost * 100 > limits.loss_percent * total:
        why = f"this installation would lose {lost} of its {counted(total, instance)}, {than}"
        yield hold_for(why, unexplained)

    # too much of one app, which another team's many instances must not hide
    by_app: dict[str, list[Removal]] = {}
    for removal in unexplained:
        by_app.setdefault(removal.key.app, []).append(removal)
    for app, lost in sorted(doubted.items()):
        total = scales.now[app]
        if lost > limits.app_loss_floor and lost * 100 > limits.loss_percent * total:
            why = f"{app_noun} {app} would lose {lost} of its {counted(total, instance)}, {than}"
            yield hold_for(why, by_app.get(app, ()))


def _emptied(
    scales: Scales, serving: Collection[Removal], emptied: Collection[str], limits: BrakeLimits
) -> Iterator[Hold]:
    """Hold the last instances of several apps, unless a person asked for them. One app alone waits
    for a second pass instead: see `confirm`. An unread instance may be the last that is left of its
    app."""
    unasked = [removal for removal in serving if removal.grounds not in _ASKED_FOR]
    apps = {removal.key.app for removal in unasked}
    apps.update(key.app for key in scales.unread if key.app in emptied)
    total = len(scales.now)
    if len(apps) > max(limits.apps_floor, total * limits.apps_percent / 100):
        yield hold_for(_last_ones(len(apps), total, scales.nouns), unasked)


def _asked_for(scales: Scales, serving: Collection[Removal], limits: BrakeLimits) -> Iterator[Hold]:
    """Hold the last instances of many apps that a person asked for: of a whole team they may go,
    but not of everything. A chart's fault asks for it as well, such as a limit of 0 for each
    syncer."""
    asked = [removal for removal in serving if removal.grounds in _ASKED_FOR]
    apps = {removal.key.app for removal in asked}
    total = len(scales.now)
    if len(apps) > limits.asked_floor and len(apps) * 100 > limits.asked_percent * total:
        grounds = {removal.grounds for removal in asked}
        clauses = [clause for ground, clause in _ASKED_FOR.items() if ground in grounds]
        because = " or ".join(clauses).format(syncer=scales.nouns.syncer)
        last = _last_ones(len(apps), total, scales.nouns)
        yield hold_for(f"{last}, because {because}", asked)


def _last_ones(number: int, apps: int, nouns: Nouns) -> str:
    return f"{number} of {counted(apps, nouns.app)} would have no {nouns.instance} left"


def hold_for(
    why: str,
    removals: Iterable[Removal],
    reason: Reason = Reason.TOO_MANY_REMOVALS,
) -> Hold:
    """Hold removals, except at another pod's address: there callers would reach another app."""
    kept = [removal for removal in removals if removal.grounds is not Grounds.REPLACED]
    return Hold(reason=reason, why=why, removals=tuple(kept))
