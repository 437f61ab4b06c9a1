"""`owner rename`: all instances of one owner get another owner's name."""

from __future__ import annotations

from collections.abc import Sequence

from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.errors import ConfigurationError, Refused
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.ownership import Ownership
from eurekube_sync.model.wording import one_or_more
from eurekube_sync.owner.moves import (
    Move,
    OwnerReport,
    carried_out,
    duration_of,
    handed_over,
    planned,
    refuse_clash,
)
from eurekube_sync.owner.world import OwnerWorld, of_scope, whose


def rename_owner(
    world: OwnerWorld, *, old: str, new: str, cluster: str | None, scope: Scope, observe: float | None, dry_run: bool
) -> OwnerReport:
    """Moves all of the old owner's instances, in a scope of names alone, to the new one. Registers come first."""
    if old == new:
        raise ConfigurationError(f"the old owner and the new one are both {old}.")
    uid = cluster or world.identity()
    before, after = Ownership(owner=old, cluster=uid), Ownership(owner=new, cluster=uid)
    registered = world.listed()
    refuse_clash(registered, after)

    def find(registry: Sequence[ObservedInstance]) -> tuple[Move, ...]:
        return handed_over(of_scope(registry, scope), before, after, why=f"owner {old} becomes {new}")

    moves = find(registered)
    if dry_run or not moves:
        there = sum(after.holds(one) for one in registered)
        if not there and (none := world.nothing_there(before, registered, to_read=old)):
            raise Refused(none)
        nothing = f"nothing to rename: no instance belongs to {whose(before, scope)}"
        nothing += f"; owner {new} has {there}" if there else ""
        return planned("owner rename", moves, observe, nothing=nothing, dry_run=dry_run)
    way_out = f"stop `run` and `keepalive` of owner {old} first"
    done = world.move(world.watch_all(find, observe, way_out))
    return carried_out("owner rename", "renamed", done, after=[_next(done, new)])


def _next(moves: Sequence[Move], new: str) -> str:
    """Leases end twice their duration after a renewal, at the next eviction."""
    seconds = 2 * max((duration_of(one.source) for one in moves), default=0)
    shown = f"{seconds // 60} minutes" if seconds >= 120 and seconds % 60 == 0 else f"{seconds} s"
    until = f"they expire in {shown} unless something renews them"
    if left := sum(one.failed for one in moves):
        again = f"{left} {one_or_more(left, 'was', 'were')} not renamed: give the command again, and then"
        return f"{again} start `run` with --owner {new}: {until}"
    return f"start `run` with --owner {new} now: {until}"
