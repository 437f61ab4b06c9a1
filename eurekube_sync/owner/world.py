"""What an `owner` command works on, and what it asks first: which cluster is meant, and what is registered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.errors import ConfigurationError, SourceUnknown
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.ownership import Ownership, syncer_of
from eurekube_sync.model.ports import Clock, Cluster, Registry, Workers
from eurekube_sync.model.sources import Server, Unknown
from eurekube_sync.observe.other_owner import nothing_of
from eurekube_sync.owner.transfer import Tell, Transfer, silent


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerWorld:
    registry: Registry
    clock: Clock
    workers: Workers
    cluster: Cluster | None = None
    """None when --cluster says which one is meant."""
    tell: Tell = silent

    @property
    def transfer(self) -> Transfer:
        """The calls to Eureka."""
        return Transfer(registry=self.registry, clock=self.clock, workers=self.workers, tell=self.tell)


def identity(world: OwnerWorld) -> str:
    """UID of the cluster that we are asked to work for; raises what keeps it from being known."""
    if world.cluster is None:
        raise ConfigurationError("it is not known which cluster is meant: give --cluster, or a kubeconfig.")
    found = world.cluster.identity()
    if isinstance(found, Unknown):
        raise SourceUnknown(Server.KUBERNETES, found)
    return found.data


def listed(world: OwnerWorld) -> Sequence[ObservedInstance]:
    """All that Eureka lists; raises what keeps it from being known."""
    answer = world.registry.list_instances()
    if isinstance(answer, Unknown):
        raise SourceUnknown(Server.EUREKA, answer)
    return answer.data


def of_scope(instances: Sequence[ObservedInstance], scope: Scope) -> Sequence[ObservedInstance]:
    """Those whose syncer's name lies in the scope; what names no syncer is of the whole alone."""
    if scope.namespaces is None and scope.shard is None:
        return instances
    return [one for one in instances if (syncer := syncer_of(one)) and scope.covers(syncer)]


def whose(ownership: Ownership, scope: Scope) -> str:
    parts = [f"owner {ownership.owner} and cluster {ownership.cluster}"]
    parts += [f"namespace {name}" for name in sorted(scope.namespaces or ())]
    parts += [f"shard {scope.shard}"] if scope.shard else []
    return ", ".join(parts)


def nothing_there(
    world: OwnerWorld, ownership: Ownership, registered: Iterable[ObservedInstance], to_read: str = "--owner"
) -> str | None:
    """See `nothing_of`."""
    where = "this cluster" if world.cluster is not None else f"cluster {ownership.cluster}"
    return nothing_of(ownership, registered, where=where, to_read=to_read)
