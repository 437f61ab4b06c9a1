"""`owner adopt`: what a person, a tool or an old cluster registered becomes ours."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from shlex import quote

from eurekube_sync.apply.kubernetes import put_finalizers_on
from eurekube_sync.desired.claims import Desired, NotServed, Wanted
from eurekube_sync.desired.instance import Naming
from eurekube_sync.desired.resolve import claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Register
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.errors import ConfigurationError, Refused, SourceUnknown
from eurekube_sync.model.eureka import OUR_LEASE, Instance, ObservedInstance
from eurekube_sync.model.ownership import CLASS, CLUSTER, OWNER, POD, SYNCER, Ownership
from eurekube_sync.model.sources import Complete, Server
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.observe.installations import nothing_of
from eurekube_sync.observe.kubernetes import read_cluster, unknown_sources
from eurekube_sync.owner.moves import (
    SHOWN,
    Address,
    Move,
    OwnerReport,
    carried_out,
    handed_over,
    in_order,
    names,
    planned,
    refuse_clash,
)
from eurekube_sync.owner.world import OwnerWorld, of_scope, whose


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
    ownership = Ownership(owner=owner, cluster=world.identity())
    registered = world.listed()
    refuse_clash(registered, ownership)

    app = app.upper()
    moves, ours = _moves(registered, _desired(world, ownership, scope), ownership, app, addresses)
    are = one_or_more(len(ours), "is", "are")
    already = (f"{counted(len(ours), 'instance')} {are} ours already: {names(ours)}",) if ours else ()
    if dry_run or not moves:
        return planned("owner adopt", moves, observe, nothing="nothing to adopt", dry_run=dry_run, before=already)
    world.watch(moves, observe, "turn its Eureka client off, or stop what registers it")
    watched = {move.source.key for move in moves}
    registered, desired = world.listed(), _desired(world, ownership, scope)  # the cluster may want something else now
    moves, _ = _moves(registered, desired, ownership, app, addresses)
    moves = [move for move in moves if move.source.key in watched]

    assert world.cluster is not None  # asked before for its identity
    adds = [
        Register(instance=move.made_of(move.source), syncer=move.syncer, why=move.why) for move in moves if move.syncer
    ]
    deadline = Deadline(world.clock, inf)
    barred, errors = put_finalizers_on(world.cluster, world.workers, deadline, desired, adds)
    moves = world.move(moves, {move.source.key: barred[move.syncer] for move in moves if move.syncer in barred})
    return carried_out("owner adopt", "adopted", moves, before=already, errors=errors)


def adopt_old_cluster(
    world: OwnerWorld, *, owner: str, old: str, scope: Scope, observe: float | None, dry_run: bool
) -> OwnerReport:
    """Takes over all that the owner has, in a scope of names alone, in a cluster that this one replaces."""
    new = world.identity()
    if old == new:
        raise ConfigurationError(f"--cluster {old} is this cluster: give the UID of the old cluster.")
    before, after = Ownership(owner=owner, cluster=old), Ownership(owner=owner, cluster=new)
    registered = world.listed()

    def find(registry: Sequence[ObservedInstance]) -> tuple[Move, ...]:
        return handed_over(of_scope(registry, scope), before, after, why=f"cluster {new} replaces {old}")

    moves = find(registered)
    if dry_run or not moves:
        done_before = any(map(after.holds, registered)) and not any(map(after.clashes, registered))
        if not done_before and (none := nothing_of(before, registered, where=f"cluster {old}", to_read="--cluster")):
            raise Refused(none)
        nothing = f"nothing to adopt: no instance belongs to {whose(before, scope)}"
        return planned("owner adopt", moves, observe, nothing=nothing, dry_run=dry_run)
    way_out = f"cluster {old} is still in use: stop its eurekube-sync, or give it another owner"
    return carried_out("owner adopt", "adopted", world.move(world.watch_all(find, observe, way_out)))


def _desired(world: OwnerWorld, ownership: Ownership, scope: Scope) -> Desired:
    assert world.cluster is not None  # asked before for its identity
    view = read_cluster(world.cluster, Complete(data=ownership.cluster), scope)
    unknown = next(unknown_sources(view), None)
    if unknown is not None:
        raise SourceUnknown(Server.KUBERNETES, unknown[1])
    # Only keys and marks are taken.
    return claim_all(view, Naming(ownership=ownership, lease=OUR_LEASE), scope)


def _moves(
    registry: Sequence[ObservedInstance],
    desired: Desired,
    ownership: Ownership,
    app: str,
    addresses: Sequence[Address],
) -> tuple[list[Move], list[ObservedInstance]]:
    """The app's instances at these addresses, or without addresses all that nobody owns and a syncer wants, become ours
    under the id that `run` would give them. Then those that are ours already.

    Only what a syncer wants: `run` would cancel anything else in its next pass. Raises Refused, a sentence each.
    """
    registered = [one for one in in_order(registry) if one.key.app == app]
    if not registered:
        raise Refused(f"Eureka lists no app {app}.")
    wanted = {_socket(one.instance): one for key in desired.wanted_by if (one := desired.wanted(key))}
    if addresses:
        chosen = {one.key: one for address in addresses for one in _at(address, registered)}
    else:
        free = [one for one in registered if OWNER not in one.metadata and _socket(one.instance) in wanted]
        chosen = {one.key: one for one in (*free, *filter(ownership.holds, registered))}
    if not chosen:
        raise Refused(f"{app} has no instance to adopt: each has an owner, or no syncer wants its address.")
    already = [one for one in chosen.values() if ownership.holds(one)]
    moves = [
        _adopted(one, wanted.get(_socket(one.instance)), desired, ownership)
        for one in chosen.values()
        if not ownership.holds(one)
    ]
    return moves, already


def _at(address: Address, registered: Sequence[ObservedInstance]) -> list[ObservedInstance]:
    found = [one for one in registered if address.fits(one.instance)]
    if not found:
        raise Refused(f"{registered[0].key.app} has no instance at {address}; it has {names(registered)}.")
    return found


def _socket(instance: Instance) -> tuple[str, str, int]:
    return (instance.key.app, instance.ip_addr, instance.main_port)


def _adopted(one: ObservedInstance, wanted: Wanted | None, desired: Desired, ownership: Ownership) -> Move:
    if OWNER in one.metadata:
        owner = one.metadata[OWNER]
        raise Refused(
            f"{one.key} is of owner {owner}: move all of its instances with "
            f"eurekube-sync owner rename {quote(owner)} {ownership.owner}"
        )
    if wanted is None:
        not_served = sorted(ref for ref, claim in desired.claims.items() if isinstance(claim, NotServed))
        hint = f" (syncers that cannot be served now: {', '.join(map(str, not_served[:SHOWN]))})" if not_served else ""
        raise Refused(f"{one.key} stays as it is: no syncer wants it, and `run` would cancel it{hint}")
    marks = wanted.instance.metadata
    return Move(
        source=one,
        target=wanted.instance.key,
        expects={OWNER: None},
        put={mark: marks[mark] for mark in (OWNER, CLUSTER, SYNCER, CLASS, POD) if mark in marks},
        why=wanted.why,
    )
