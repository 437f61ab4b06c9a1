"""What a pass would take from callers, per app: UP now - UP after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from eurekube_sync.model.actions import Grounds, Removal, brings_up
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.plan import Plan


@dataclass(frozen=True, kw_only=True)  # without slots: it keeps what it counted
class Scales:
    """What the removals are weighed against."""

    plan: Plan
    registered: frozenset[InstanceKey]
    """UP now, and weighed."""
    unread: frozenset[InstanceKey]
    """UP in the list, and not to be read again: as good as lost."""
    unweighed: frozenset[InstanceKey]
    """Removals that a person released, or that were seen dead before: they go whatever else does."""
    moved: frozenset[InstanceKey]
    """Removals whose pods are served under another app."""
    dead: frozenset[InstanceKey]
    """Removals that no pod serves any more."""

    @cached_property
    def gained(self) -> Counter[str]:
        """UP instances that come, by app."""
        return Counter(action.key.app for action in self.plan.changes if brings_up(action))

    @cached_property
    def replacing(self) -> Counter[str]:
        """Those of them that may replace what is weighed: what goes unweighed is replaced first."""
        return self.gained - Counter(key.app for key in self.unweighed)

    @cached_property
    def now(self) -> Counter[str]:
        """UP instances by app, but for those that move to another."""
        return Counter(key.app for key in self.registered if key not in self.moved)

    def emptied(self, removals: Iterable[Removal]) -> frozenset[str]:
        """The apps that would lose their last UP instance. Beside a duplicate callers lose nobody: the pod's own
        instance stays."""
        lost = Counter(one.key.app for one in removals if one.grounds is not Grounds.DUPLICATE)
        lost += Counter(key.app for key in self.unread)
        return frozenset(app for app, count in self.now.items() if lost[app] - self.gained[app] >= count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Of each app, UP now - UP after, where that is a loss."""

    net: Counter[str]
    unexplained: Counter[str]
    """Of each app's net loss, what no evidence explains: what comes in a rollout replaces what terminates in it, not
    what turned unready meanwhile."""


def loss_of(removals: Collection[Removal], unread: Collection[InstanceKey], gained: Mapping[str, int]) -> Loss:
    """What these remove, and what replaces it."""
    unread_of = Counter(key.app for key in unread)
    lost = Counter(one.key.app for one in removals) + unread_of
    doubted = Counter(one.key.app for one in removals if not one.grounds.positive) + unread_of
    net = Counter({app: count - gained.get(app, 0) for app, count in lost.items() if count > gained.get(app, 0)})
    return Loss(net=net, unexplained=doubted & net)
