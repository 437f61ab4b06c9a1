"""What an `owner` command works on, and what it asks first: which cluster is meant, what is registered, and whether
somebody still renews it. Eureka does not say that, so it is watched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.errors import ConfigurationError, Refused, SourceUnknown
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.ownership import Ownership, syncer_of
from eurekube_sync.model.ports import Clock, Cluster, Registry, Workers
from eurekube_sync.model.sources import Server, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.observe.other_owner import nothing_of
from eurekube_sync.owner.moves import DEFAULT_PERIOD, Move, duration_of, names
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


def observation_time(moves: Sequence[Move], observe: float | None) -> float:
    """Seconds in which whoever renews one of these instances would have done so: two periods of the slowest, or what
    was asked for."""
    if observe is not None:
        return observe
    sources = [move.source for move in moves]
    periods = [min(one.instance.lease.renewal or DEFAULT_PERIOD, duration_of(one)) for one in sources]
    return 2.0 * max(periods, default=DEFAULT_PERIOD) + 5


def watch_all(
    world: OwnerWorld, find: Callable[[Sequence[ObservedInstance]], Sequence[Move]], observe: float | None, way_out: str
) -> Sequence[Move]:
    """What `find` makes of the list, once all of it was watched: a list may be old, and who registers one anew
    renews it, too."""
    watched: set[InstanceKey] = set()
    while True:
        moves = find(listed(world))
        fresh = [move for move in moves if move.source.key not in watched]
        if not fresh:
            return moves
        watch(world, fresh, observe, way_out)
        watched |= {move.source.key for move in fresh}


def watch(world: OwnerWorld, moves: Sequence[Move], observe: float | None, way_out: str) -> None:
    """Raises Refused, with the way out, when somebody renews one of them."""
    seconds = observation_time(moves, observe)
    renewed = world.transfer.renewed_by_others([move.source.key for move in moves], seconds)
    if renewed:
        raise Refused(f"somebody still renews {names(renewed)}: {way_out}. Nothing was changed.")
