"""One pass without a cluster: every instance that bears our owner's name is renewed, nothing is added or removed.

list Eureka -> plan the renewals -> renew
"""

from __future__ import annotations

from dataclasses import field

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Renew
from eurekube_sync.model.deadline import Deadline, TimeLimit
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.outcomes import Outcomes
from eurekube_sync.model.ownership import CLUSTER, Ownership
from eurekube_sync.model.ports import Clock, Registry, Workers
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.observe.eureka import held_by_owner, observe
from eurekube_sync.plan import plan_renewals, sorted_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryWorld:
    """All that such a pass touches."""

    registry: Registry
    clock: Clock
    workers: Workers
    renewals: RenewalLedger
    time_limit: TimeLimit
    """The one that the adapter keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepaliveSettings:
    """Whose instances, and how. Times in seconds."""

    owner: str
    cluster: str | None = None
    """None: of every cluster that has the owner's name."""
    scope: Scope = field(default_factory=Scope)
    """Namespaces and shard; labels and classes are the cluster's to tell."""
    dry_run: bool = False
    deadline: float = 120


def keepalive(world: RegistryWorld, settings: KeepaliveSettings) -> PassReport:
    """Renews all that is ours; while Eureka cannot be listed, what this process renewed before."""
    deadline = Deadline(world.clock, settings.deadline, world.time_limit)
    ownership = Ownership(owner=settings.owner, cluster=settings.cluster or "")
    asked, listed = world.clock.now(), world.registry.list_instances()

    def chosen(instance: ObservedInstance) -> bool:
        return settings.cluster is None or instance.metadata.get(CLUSTER) == settings.cluster

    bearing: list[ObservedInstance] = []
    if isinstance(listed, Complete):
        bearing = [one for one in held_by_owner(listed, settings.owner, settings.scope) if chosen(one)]
        plan = plan_renewals(bearing, "it has our owner's name")
    else:
        lately = world.renewals.renewed_lately()
        plan = sorted_plan(Renew(key=key, syncer=None, why="it was registered") for key in lately)
    outcomes = Outcomes(by_key={})
    if not settings.dry_run:
        applier = Applier(world.registry, world.clock, world.workers, world.renewals, None, deadline)
        outcomes = Outcomes.of(applier.renew(plan.renewals, bearing))
    return PassReport(
        owner=settings.owner,
        cluster=ownership.cluster or None,
        scope=settings.scope,
        dry_run=settings.dry_run,
        at=world.clock.now(),
        plan=plan,
        registry=(
            listed
            if isinstance(listed, Unknown)
            else Complete(data=observe(listed, ownership, settings.scope, asked=asked))
        ),
        view=None,
        outcomes=outcomes,
        batching=world.registry.batching(),
        cut_short=deadline.cut_short,
    )
