"""How one pass is braked: the numbers, and what is known from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from math import inf

from eurekube_sync.brake.approval import Approval
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import Pods, SyncerRef
from eurekube_sync.model.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BrakeLimits:
    """Where the brake takes hold."""

    loss_percent: float = 30.0
    """Of all UP instances that we own, or of those of one app ..."""
    loss_floor: float = 10
    """... and more than this many of all ..."""
    app_loss_floor: float = 10
    """... or of one app; both numbers, without positive evidence. A shard has whole apps: this does not shrink."""
    loss_ceiling: float = 500
    """More than this many, whatever the evidence."""
    apps_percent: float = 5.0
    """Of our apps that have an UP instance, going to none ..."""
    apps_floor: float = 1
    """... or this many, whichever is more."""
    deleted_percent: float = 20
    """Of our apps, going to none because a person deletes their syncers ..."""
    deleted_floor: float = 10
    """... and more than this many; both."""
    confirm_after: float = 20
    """Seconds from the first pass that sees an app lose its last UP instance without evidence, or a dead pod among
    too many removals, to one that may do it; 0: at once."""

    def scaled(self, share: float) -> BrakeLimits:
        """The limits of a pass that serves this share of an installation: absolute numbers shrink with it. One app may
        always go, or no syncer of a small shard could be deleted."""
        return replace(
            self,
            loss_floor=self.loss_floor * share,
            loss_ceiling=self.loss_ceiling * share,
            apps_floor=min(self.apps_floor, max(1.0, self.apps_floor * share)),
            deleted_floor=min(self.deleted_floor, max(1.0, self.deleted_floor * share)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Brake:
    """How one pass is braked: the limits, and what was released, seen before or read beside it."""

    limits: BrakeLimits = field(default_factory=BrakeLimits)
    syncer_limits: Mapping[SyncerRef, int] = field(default_factory=dict)
    """`maxRemovalPercent` of those that have one."""
    freed: frozenset[SyncerRef] = frozenset()
    """Released by an annotation: their removals are neither counted nor held."""
    approval: Approval | None = None
    approved: frozenset[InstanceKey] = frozenset()
    """What an approval released earlier in this pass: counted, and not held."""
    seen: Mapping[tuple[SyncerRef, str], float] = field(default_factory=dict)
    """For each removal that awaited its confirmation, by its mark: seconds since it was first seen."""
    confirm_within: float = inf
    """Seconds in which a pass has to see it again."""
    pods: Pods = field(default_factory=dict)
    """The pods of namespaces where removals would be held; empty until somebody looked."""
