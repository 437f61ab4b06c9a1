"""What is too much for one pass: the losses of its removals, and the three rules that weigh
them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

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


class Scales(Struct, frozen=True, kw_only=True, dict=True):
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
        return self.gained - by_app(self.unweighed)

    @cached_property
    def now(self) -> Counter[str]:
        """UP instances by app, without those that move to another app."""
        return by_app(self.up - self.in_other_app)

    def emptied(self, removals: Iterable[Removal]) -> frozenset[str]:
        """Return the apps that would lose their last UP instance."""
        lost = by_app(self.unread)
        for removal in removals:
            # The pod of a duplicate stays in Eureka by its own instance.
            if removal.grounds is not Grounds.DUPLICATE:
                lost[removal.key.app] += 1
        net = lost - self.gained
        emptied = set()
        for app, number in self.now.items():
            if net[app] >= number:
                emptied.add(app)
        return frozenset(emptied)


def by_app(keys: Iterable[InstanceKey]) -> Counter[str]:
    """Count instances by app."""
    return Counter(key.app for key in keys)


def loss_of(
    removals: Collection[Removal], unread: Collection[InstanceKey], gained: Mapping[str, int]
) -> tuple[Counter[str], Counter[str]]:
    """Return each app's net loss of UP instances, and the part of it without evidence. New
    instances replace removals with evidence first, such as terminating pods in a rollout."""
    lost = by_app(unread)
    doubted = lost.copy()  # nothing says why an instance cannot be read
    for removal in removals:
        app = removal.key.app
        lost[app] += 1
        if not removal.grounds.positive:
            doubted[app] += 1
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
    asked: list[Removal] = []
    unasked: list[Removal] = []
    for removal in removals:
        # A dead pod serves nobody: it empties no app.
        if removal.key.app not in emptied or removal.key in scales.dead:
            continue
        if removal.grounds in _ASKED_FOR:
            asked.append(removal)
        else:
            unasked.append(removal)
    yield from _emptied(scales, unasked, emptied, limits)
    yield from _asked_for(scales, asked, limits)


def _is_over(lost: int, total: int, percent: float, floor: float) -> bool:
    """Say whether a loss is more than this percentage of the total, and more than the floor."""
    return lost > floor and lost * 100 > percent * total


def _over_the_share(
    scales: Scales,
    removals: Collection[Removal],
    limits: BrakeLimits,
) -> Iterator[Hold]:
    """Hold what is too much of all our instances, or of one app. Dead pods count: after a restore of
    etcd, all pods may seem dead."""
    net, doubted = loss_of(removals, scales.unread, scales.replacing)
    unexplained: list[Removal] = []
    of_app: dict[str, list[Removal]] = {}
    for removal in removals:
        app = removal.key.app
        if app not in net or removal.grounds.positive:
            continue
        unexplained.append(removal)
        of_app.setdefault(app, []).append(removal)
    instance = scales.nouns.instance
    percent = limits.loss_percent
    than = f"more than {percent:g} %"

    # Too much of all.
    lost = doubted.total()
    total = len(scales.up)
    if _is_over(lost, total, percent, limits.loss_floor):
        of_all = counted(total, instance)
        why = f"this installation would lose {lost} of its {of_all}, {than}"
        yield hold_for(why, unexplained)

    # Too much of one app, which another team's many instances must not hide.
    for app, lost in sorted(doubted.items()):
        total = scales.now[app]
        if _is_over(lost, total, percent, limits.app_loss_floor):
            of_all = counted(total, instance)
            why = f"{scales.nouns.app} {app} would lose {lost} of its {of_all}, {than}"
            yield hold_for(why, of_app.get(app, ()))


def _emptied(
    scales: Scales, unasked: Collection[Removal], emptied: Collection[str], limits: BrakeLimits
) -> Iterator[Hold]:
    """Hold the last instances of several apps, for which no person asked. One app alone waits for a
    second pass instead: see `confirm`."""
    apps = _apps_of(unasked)
    # An unread instance may be the last that is left of its app.
    for app in by_app(scales.unread):
        if app in emptied:
            apps.add(app)
    if _is_over(len(apps), len(scales.now), limits.apps_percent, limits.apps_floor):
        yield hold_for(_last_ones(apps, scales), unasked)


def _asked_for(scales: Scales, asked: Collection[Removal], limits: BrakeLimits) -> Iterator[Hold]:
    """Hold the last instances of many apps that a person asked for: of a whole team they may go,
    but not of everything. A chart's fault asks for it as well, such as a limit of 0 for each
    syncer."""
    apps = _apps_of(asked)
    if not _is_over(len(apps), len(scales.now), limits.asked_percent, limits.asked_floor):
        return
    grounds = {removal.grounds for removal in asked}
    clauses = []
    for ground, clause in _ASKED_FOR.items():
        if ground in grounds:
            clauses.append(clause.format(syncer=scales.nouns.syncer))
    because = " or ".join(clauses)
    last = _last_ones(apps, scales)
    yield hold_for(f"{last}, because {because}", asked)


def _apps_of(removals: Iterable[Removal]) -> set[str]:
    return {removal.key.app for removal in removals}


def _last_ones(apps: Collection[str], scales: Scales) -> str:
    """Return what the apps would lose, as a sentence without its end."""
    of_all = counted(len(scales.now), scales.nouns.app)
    return f"{len(apps)} of {of_all} would have no {scales.nouns.instance} left"


def hold_for(
    why: str,
    removals: Iterable[Removal],
    reason: Reason = Reason.TOO_MANY_REMOVALS,
) -> Hold:
    """Hold removals, except at another pod's address: there callers would reach another app."""
    kept = []
    for removal in removals:
        if removal.grounds is not Grounds.REPLACED:
            kept.append(removal)
    return Hold(reason=reason, why=why, removals=tuple(kept))
