"""`owner rename`: all instances of one owner get another owner's name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.errors import ConfigurationError, Refused
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.ownership import CLUSTER, OWNER, Ownership, instance_id, syncer_of
from eurekube_sync.model.wording import one_or_more
from eurekube_sync.owner.moves import Affected, Move, in_order, refuse_clash
from eurekube_sync.owner.report import OwnerReport, lives, moved, planned
from eurekube_sync.owner.world import OwnerWorld, identity, listed, nothing_there, of_scope, watch_all, whose


def rename_owner(
    world: OwnerWorld, *, old: str, new: str, cluster: str | None, scope: Scope, observe: float | None, dry_run: bool
) -> OwnerReport:
    """Moves all of the old owner's instances, in a scope of names alone, to the new one. Registers come first."""
    if old == new:
        raise ConfigurationError(f"the old owner and the new one are both {old}.")
    uid = cluster or identity(world)
    before, after = Ownership(owner=old, cluster=uid), Ownership(owner=new, cluster=uid)
    registered = listed(world)
    refuse_clash(registered, after)

    def find(registry: Sequence[ObservedInstance]) -> tuple[Move, ...]:
        return rename_moves(of_scope(registry, scope), before, after)

    moves = find(registered)
    if dry_run or not moves:
        there = sum(after.holds(one) for one in registered)
        if not there and (none := nothing_there(world, before, registered, to_read=old)):
            raise Refused(none)
        nothing = f"nothing to rename: no instance belongs to {whose(before, scope)}"
        nothing += f"; owner {new} has {there}" if there else ""
        return planned("owner rename", moves, observe, nothing=nothing, dry_run=dry_run)
    way_out = f"stop `run` and `keepalive` of owner {old} first"
    affected = world.transfer.move(watch_all(world, find, observe, way_out))
    return moved("owner rename", "renamed", affected, after=[_next(affected, new)])


def _next(affected: Sequence[Affected], new: str) -> str:
    until = lives([one.instance for one in affected])
    if left := sum(one.failed for one in affected):
        again = f"{left} {one_or_more(left, 'was', 'were')} not renamed: give the command again, and then"
        return f"{again} start `run` with --owner {new}: {until}"
    return f"start `run` with --owner {new} now: {until}"


def rename_moves(registry: Iterable[ObservedInstance], old: Ownership, new: Ownership) -> tuple[Move, ...]:
    """All instances of the old owner get the new one's name and ids."""
    return tuple(
        Move(
            source=one,
            target=_renamed(one, old.owner, new.owner),
            expects={OWNER: old.owner, CLUSTER: old.cluster},
            put={OWNER: new.owner, CLUSTER: new.cluster},
            why=f"owner {old.owner} becomes {new.owner}",
        )
        for one in in_order(registry)
        if old.holds(one)
    )


def _renamed(one: ObservedInstance, old: str, new: str) -> InstanceKey:
    app, id_ = one.key
    if id_.startswith(f"{old}:"):
        return InstanceKey(app, new + id_.removeprefix(old))
    syncer = syncer_of(one)
    namespace = syncer.namespace if syncer else ""
    address, port = one.instance.ip_addr, one.instance.main_port
    return InstanceKey(app, instance_id(owner=new, namespace=namespace, app=app, address=address, port=port))
