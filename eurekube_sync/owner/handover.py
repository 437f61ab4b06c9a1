"""`owner adopt` and `owner rename`: what a person, a tool, an old cluster or another owner registered becomes ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf

from eurekube_sync.apply.kubernetes import put_finalizers_on
from eurekube_sync.desired.claims import Desired
from eurekube_sync.desired.instance import Naming
from eurekube_sync.desired.resolve import claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Register
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.errors import ConfigurationError, Refused, SourceUnknown
from eurekube_sync.model.eureka import OUR_LEASE, Instance, InstanceKey, ObservedInstance
from eurekube_sync.model.ownership import CLASS, CLUSTER, OWNER, POD, SYNCER, Ownership, instance_id, syncer_of
from eurekube_sync.model.sources import Complete, Server
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.observe.installations import nothing_of
from eurekube_sync.observe.kubernetes import read_cluster, unknown_sources
from eurekube_sync.owner.moves import Move, OwnerReport, duration_of, in_order, names, refuse_clash
from eurekube_sync.owner.world import OwnerWorld, of_scope, whose


def adopt_old_cluster(
    world: OwnerWorld, *, owner: str, old: str, scope: Scope, observe: float | None, dry_run: bool
) -> OwnerReport:
    """Takes over all that the owner has, in a scope of names alone, in a cluster that this one replaces."""
    new = world.identity()
    if old == new:
        raise ConfigurationError(f"--cluster {old} is this cluster: give the UID of the old cluster.")
    before, after = Ownership(owner=owner, cluster=old), Ownership(owner=owner, cluster=new)
    registered = world.listed()
    find = partial(_all_of, before, after, scope, f"cluster {new} replaces {old}")
    moves = find(registered)
    if dry_run or not moves:
        done_before = any(map(after.holds, registered)) and not any(map(after.clashes, registered))
        if not done_before and (none := nothing_of(before, registered, where=f"cluster {old}", to_read="--cluster")):
            raise Refused(none)
        nothing = f"nothing to adopt: no instance belongs to {whose(before, scope)}"
        return OwnerReport(command="owner adopt", dry_run=dry_run, moves=moves, nothing=nothing, observe=observe)
    way_out = f"cluster {old} is still in use: stop its eurekube-sync, or give it another owner"
    return OwnerReport(command="owner adopt", moves=world.move(world.watch_all(find, observe, way_out)))


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
    find = partial(_all_of, before, after, scope, f"owner {old} becomes {new}")
    moves = find(registered)
    if dry_run or not moves:
        there = sum(after.holds(one) for one in registered)
        if not there and (none := world.nothing_there(before, registered, to_read=old)):
            raise Refused(none)
        nothing = f"nothing to rename: no instance belongs to {whose(before, scope)}"
        nothing += f"; owner {new} has {there}" if there else ""
        return OwnerReport(command="owner rename", dry_run=dry_run, moves=moves, nothing=nothing, observe=observe)
    done = world.move(world.watch_all(find, observe, f"stop `run` and `keepalive` of owner {old} first"))

    # A lease ends twice its duration after a renewal, at the next eviction.
    seconds = 2 * max((duration_of(one.source) for one in done), default=0)
    shown = f"{seconds // 60} minutes" if seconds >= 120 and seconds % 60 == 0 else f"{seconds} s"
    run = f"start `run` with --owner {new}"
    left = sum(one.failed for one in done)
    again = f"{left} {one_or_more(left, 'was', 'were')} not renamed: give the command again, and then {run}"
    sentence = f"{again if left else f'{run} now'}: they expire in {shown} unless something renews them"
    return OwnerReport(command="owner rename", moves=done, after=[sentence])


def _all_of(
    before: Ownership, after: Ownership, scope: Scope, why: str, registry: Sequence[ObservedInstance]
) -> list[Move]:
    """All that `before` holds becomes that of `after`. An id names the owner, and no cluster."""
    return [
        Move(
            source=one,
            target=one.key if before.owner == after.owner else _renamed(one, before.owner, after.owner),
            expects={OWNER: before.owner, CLUSTER: before.cluster},
            put={OWNER: after.owner, CLUSTER: after.cluster},
            why=why,
        )
        for one in in_order(of_scope(registry, scope))
        if before.holds(one)
    ]


def _renamed(one: ObservedInstance, old: str, new: str) -> InstanceKey:
    app, id_ = one.key
    if id_.startswith(f"{old}:"):
        return InstanceKey(app, new + id_.removeprefix(old))
    syncer = syncer_of(one)
    namespace = syncer.namespace if syncer else ""
    address, port = one.instance.ip_addr, one.instance.main_port
    return InstanceKey(app, instance_id(owner=new, namespace=namespace, app=app, address=address, port=port))


def adopt_instances(
    world: OwnerWorld, *, owner: str, app: str, scope: Scope, observe: float | None, dry_run: bool
) -> OwnerReport:
    """Takes over instances that a person or another tool registered, and a syncer wants."""
    ownership = Ownership(owner=owner, cluster=world.identity())
    registered = world.listed()
    refuse_clash(registered, ownership)

    app = app.upper()
    moves, ours = _unowned(registered, _desired(world, ownership, scope), ownership, app)
    are = one_or_more(len(ours), "is", "are")
    already = (f"{counted(len(ours), 'instance')} {are} ours already: {names(ours)}",) if ours else ()
    if dry_run or not moves:
        planned = OwnerReport(command="owner adopt", dry_run=dry_run, moves=moves, observe=observe, before=already)
        return planned if moves else replace(planned, nothing="nothing to adopt")
    world.watch(moves, observe, "turn its Eureka client off, or stop what registers it")
    watched = {move.source.key for move in moves}
    registered, desired = world.listed(), _desired(world, ownership, scope)  # the cluster may want something else now
    moves, _ = _unowned(registered, desired, ownership, app)
    moves = [move for move in moves if move.source.key in watched]

    assert world.cluster is not None  # asked before for its identity
    adds = [
        Register(instance=move.made_of(move.source), syncer=move.syncer, why=move.why) for move in moves if move.syncer
    ]
    deadline = Deadline(world.clock, inf)
    barred, errors = put_finalizers_on(world.cluster, world.workers, deadline, desired, adds)
    moves = world.move(moves, {move.source.key: barred[move.syncer] for move in moves if move.syncer in barred})
    return OwnerReport(command="owner adopt", moves=moves, before=already, errors=errors)


def _desired(world: OwnerWorld, ownership: Ownership, scope: Scope) -> Desired:
    assert world.cluster is not None  # asked before for its identity
    view = read_cluster(world.cluster, Complete(data=ownership.cluster), scope)
    for _, unknown in unknown_sources(view):
        raise SourceUnknown(Server.KUBERNETES, unknown)
    # Only keys and marks are taken.
    return claim_all(view, Naming(ownership=ownership, lease=OUR_LEASE), scope)


def _unowned(
    registry: Sequence[ObservedInstance], desired: Desired, ownership: Ownership, app: str
) -> tuple[list[Move], list[ObservedInstance]]:
    """The app's instances that nobody owns and a syncer wants become ours, under the id that `run` would give them: it
    would cancel anything else in its next pass. Then those that are ours already. Raises Refused where there are none.
    """
    registered = [one for one in in_order(registry) if one.key.app == app]
    if not registered:
        raise Refused(f"Eureka lists no app {app}.")
    wanted = {_socket(w.instance): w for key in desired.wanted_by if (w := desired.wanted(key))}
    already, moves = [one for one in registered if ownership.holds(one)], []
    for one in registered:
        if OWNER not in one.metadata and (wish := wanted.get(_socket(one.instance))):
            marks = wish.instance.metadata
            put = {mark: marks[mark] for mark in (OWNER, CLUSTER, SYNCER, CLASS, POD) if mark in marks}
            moves.append(Move(source=one, target=wish.instance.key, expects={OWNER: None}, put=put, why=wish.why))
    if not moves and not already:
        raise Refused(f"{app} has no instance to adopt: each has an owner, or no syncer wants its address.")
    return moves, already


def _socket(instance: Instance) -> tuple[str, str, int]:
    return (instance.key.app, instance.ip_addr, instance.main_port)
