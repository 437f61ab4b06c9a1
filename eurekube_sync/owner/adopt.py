"""`owner adopt`: what a person, a tool or an old cluster registered becomes ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from shlex import quote

from eurekube_sync.apply.kubernetes import put_finalizers_on
from eurekube_sync.desired.claims import Desired, NotServed
from eurekube_sync.desired.instance import Naming
from eurekube_sync.desired.resolve import claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.verdicts import Wanted
from eurekube_sync.model.actions import Register
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.errors import ClusterError, ConfigurationError, Refused, SourceUnknown
from eurekube_sync.model.eureka import OUR_LEASE, Instance, InstanceKey, ObservedInstance
from eurekube_sync.model.ownership import CLASS, CLUSTER, OWNER, POD, SYNCER, Ownership
from eurekube_sync.model.sources import Complete, Server
from eurekube_sync.observe.kubernetes import read_cluster, unknown_sources
from eurekube_sync.observe.other_owner import nothing_of
from eurekube_sync.owner.moves import SHOWN, Address, Move, in_order, names, refuse_clash
from eurekube_sync.owner.report import OwnerReport, moved, planned
from eurekube_sync.owner.world import OwnerWorld, identity, listed, of_scope, watch, watch_all, whose


def adopt_instances(
    world: OwnerWorld,
    *,
    owner: str,
    app: str,
    addresses: Sequence[Address],
    scope: Scope,
    observe: float | None,
    dry_run: bool,
) -> OwnerReport:
    """Takes over instances that a person or another tool registered, and a syncer wants."""
    ownership = Ownership(owner=owner, cluster=identity(world))
    registered = listed(world)
    refuse_clash(registered, ownership)

    desired = _desired(world, ownership, scope)
    moves, ours = moves_of(registered, desired, ownership, app=app, addresses=addresses)
    are = "1 instance is" if len(ours) == 1 else f"{len(ours)} instances are"
    already = (f"{are} ours already: {names(ours)}",) if ours else ()
    if dry_run or not moves:
        nothing = "nothing to adopt"
        return planned("owner adopt", moves, observe, nothing=nothing, dry_run=dry_run, before=already)
    watch(world, moves, observe, "turn its Eureka client off, or stop what registers it")
    watched = {move.source.key for move in moves}
    registered, desired = listed(world), _desired(world, ownership, scope)  # the cluster may want something else now
    moves, _ = moves_of(registered, desired, ownership, app=app, addresses=addresses)
    moves = [move for move in moves if move.source.key in watched]
    barred, errors = _put_finalizers_on(world, desired, moves)
    affected = world.transfer.move(moves, barred)
    return moved("owner adopt", "adopted", affected, before=already, errors=errors)


def adopt_old_cluster(
    world: OwnerWorld, *, owner: str, old: str, scope: Scope, observe: float | None, dry_run: bool
) -> OwnerReport:
    """Takes over all that the owner has, in a scope of names alone, in a cluster that this one replaces."""
    new = identity(world)
    if old == new:
        raise ConfigurationError(f"--cluster {old} is this cluster: give the UID of the old cluster.")
    registered = listed(world)

    def find(registry: Sequence[ObservedInstance]) -> tuple[Move, ...]:
        return cluster_moves(of_scope(registry, scope), owner=owner, old=old, new=new)

    moves = find(registered)
    if dry_run or not moves:
        before, after = Ownership(owner=owner, cluster=old), Ownership(owner=owner, cluster=new)
        done_before = any(map(after.holds, registered)) and not any(map(after.clashes, registered))
        if not done_before and (none := nothing_of(before, registered, where=f"cluster {old}", to_read="--cluster")):
            raise Refused(none)
        nothing = f"nothing to adopt: no instance belongs to {whose(before, scope)}"
        return planned("owner adopt", moves, observe, nothing=nothing, dry_run=dry_run)
    way_out = f"cluster {old} is still in use: stop its eurekube-sync, or give it another owner"
    return moved("owner adopt", "adopted", world.transfer.move(watch_all(world, find, observe, way_out)))


# --- Which instances -------------------------------------------------------------------------------------------------


def moves_of(
    registry: Iterable[ObservedInstance],
    desired: Desired,
    ownership: Ownership,
    *,
    app: str,
    addresses: Sequence[Address] = (),
) -> tuple[list[Move], list[ObservedInstance]]:
    """The app's instances at these addresses, or without addresses all that nobody owns and a syncer wants, become ours
    under the id that `run` would give them. Then those that are ours already.

    Only what a syncer wants: `run` would cancel anything else in its next pass. Raises Refused, a sentence each.
    """
    registered = [one for one in in_order(registry) if one.key.app == app.upper()]
    if not registered:
        raise Refused(f"Eureka lists no app {app.upper()}.")
    wanted = {_socket(one.instance): one for key in desired.wanted_by if (one := desired.wanted(key))}
    if addresses:
        chosen = {one.key: one for address in addresses for one in _at(address, registered)}
    else:
        free = [one for one in registered if OWNER not in one.metadata and _socket(one.instance) in wanted]
        chosen = {one.key: one for one in (*free, *filter(ownership.holds, registered))}
    moves, already = [], []
    for instance in chosen.values():
        if ownership.holds(instance):
            already.append(instance)
            continue
        _refuse_owned(instance, ownership)
        moves.append(_adopted(instance, wanted.get(_socket(instance.instance)), desired))
    if not moves and not already:
        raise Refused(f"{app.upper()} has no instance to adopt: each has an owner, or no syncer wants its address.")
    return moves, already


def cluster_moves(registry: Iterable[ObservedInstance], *, owner: str, old: str, new: str) -> tuple[Move, ...]:
    """All of the owner's in the cluster `old` become the cluster `new`'s. The id names no cluster, and stays."""
    before = Ownership(owner=owner, cluster=old)
    return tuple(
        Move(
            source=one,
            target=one.key,
            expects={OWNER: owner, CLUSTER: old},
            put={CLUSTER: new},
            why=f"cluster {new} replaces {old}",
        )
        for one in in_order(registry)
        if before.holds(one)
    )


def _at(address: Address, registered: Sequence[ObservedInstance]) -> list[ObservedInstance]:
    found = [one for one in registered if address.fits(one.instance)]
    if not found:
        raise Refused(f"{registered[0].key.app} has no instance at {address}; it has {names(registered)}.")
    return found


def _socket(instance: Instance) -> tuple[str, str, int]:
    return (instance.key.app, instance.ip_addr, instance.main_port)


def _refuse_owned(instance: ObservedInstance, ownership: Ownership) -> None:
    owner = instance.metadata.get(OWNER)
    if owner is not None:
        raise Refused(
            f"{instance.key} is of owner {owner}: move all of its instances with "
            f"eurekube-sync owner rename {quote(owner)} {ownership.owner}"
        )


def _adopted(instance: ObservedInstance, wanted: Wanted | None, desired: Desired) -> Move:
    if wanted is None:
        not_served = sorted(ref for ref, one in desired.claims.items() if isinstance(one, NotServed))
        hint = f" (syncers that cannot be served now: {', '.join(map(str, not_served[:SHOWN]))})" if not_served else ""
        raise Refused(f"{instance.key} stays as it is: no syncer wants it, and `run` would cancel it{hint}")
    marks = wanted.instance.metadata
    return Move(
        source=instance,
        target=wanted.instance.key,
        expects={OWNER: None},
        put={mark: marks[mark] for mark in (OWNER, CLUSTER, SYNCER, CLASS, POD) if mark in marks},
        why=wanted.why,
    )


# --- What it asks of the cluster --------------------------------------------------------------------------------------


def _desired(world: OwnerWorld, ownership: Ownership, scope: Scope) -> Desired:
    assert world.cluster is not None  # asked before for its identity
    view = read_cluster(world.cluster, Complete(data=ownership.cluster), scope)
    unknown = next(unknown_sources(view), None)
    if unknown is not None:
        raise SourceUnknown(Server.KUBERNETES, unknown[1])
    # Only keys and marks are taken.
    return claim_all(view, Naming(ownership=ownership, lease=OUR_LEASE), scope)


def _put_finalizers_on(
    world: OwnerWorld, desired: Desired, moves: Sequence[Move]
) -> tuple[dict[InstanceKey, str], tuple[ClusterError, ...]]:
    assert world.cluster is not None  # asked before for its identity
    adds = [
        Register(instance=move.made_of(move.source), syncer=move.syncer, why=move.why) for move in moves if move.syncer
    ]
    deadline = Deadline(world.clock, inf)
    barred, errors = put_finalizers_on(world.cluster, world.workers, deadline, desired, adds)
    return {move.source.key: barred[move.syncer] for move in moves if move.syncer in barred}, errors
