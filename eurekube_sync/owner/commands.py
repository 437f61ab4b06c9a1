"""`owner adopt` and `owner rename` make instances ours that a person, a tool, an old cluster or another owner
registered. `owner purge` cancels all of ours, and removes the finalizers that waited for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf

from eurekube_sync.apply.kubernetes import failure, put_finalizers_on
from eurekube_sync.desired.claims import Desired, every
from eurekube_sync.desired.conduct import Policy, policy_of
from eurekube_sync.desired.instance import Naming
from eurekube_sync.desired.resolve import claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.actions import Register
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.errors import ClusterError, ConfigurationError, Refused, SourceUnknown
from eurekube_sync.model.eureka import CACHE_SECONDS, OUR_LEASE, Instance, InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerObject
from eurekube_sync.model.ownership import CLASS, CLUSTER, OWNER, POD, SYNCER, Ownership, instance_id, syncer_of
from eurekube_sync.model.ports import Cluster
from eurekube_sync.model.sources import Cause, Complete, Server, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.observe.installations import nothing_of
from eurekube_sync.observe.kubernetes import read_cluster, read_syncers, unknown_sources
from eurekube_sync.owner.moves import Move, OwnerReport, duration_of, in_order, refuse_clash
from eurekube_sync.owner.world import OwnerWorld, owned, sample_of, whose


def adopt_old_cluster(
    world: OwnerWorld, *, owner: str, old: str, scope: Scope, observe: float | None, dry_run: bool
) -> OwnerReport:
    """Takes over the owner's instances of a cluster that this one replaces. The scope has only names."""
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
    """Moves the old owner's instances to the new owner. The scope has only names."""
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

    # A lease expires twice its duration after a renewal (Lease.renew), at the next eviction.
    seconds = 2 * max((duration_of(one.source) for one in done), default=0)
    shown = f"{seconds // 60} minutes" if seconds >= 120 and seconds % 60 == 0 else f"{seconds} s"
    run = f"start `run` with --owner {new}"
    left = sum(one.failed for one in done)
    again = f"{left} {one_or_more(left, 'was', 'were')} not renamed: give the command again, and then {run}"
    sentence = f"{again if left else f'{run} now'}: else the instances expire in {shown}"
    return OwnerReport(command="owner rename", moves=done, after=[sentence])


def _all_of(
    before: Ownership, after: Ownership, scope: Scope, why: str, registry: Sequence[ObservedInstance]
) -> list[Move]:
    """Moves all that `before` holds to `after`. An id names the owner, and no cluster."""
    return [
        Move(
            source=one,
            target=one.key if before.owner == after.owner else _renamed(one, before.owner, after.owner),
            expects={OWNER: before.owner, CLUSTER: before.cluster},
            put={OWNER: after.owner, CLUSTER: after.cluster},
            why=why,
        )
        for one in owned(registry, before, scope)
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
    """Takes over instances that a person or another tool registered, and that a syncer wants."""
    ownership = Ownership(owner=owner, cluster=world.identity())
    registered = world.listed()
    refuse_clash(registered, ownership)

    app = app.upper()
    moves = _unowned(registered, _desired(world, ownership, scope), ownership, app)
    if dry_run or not moves:
        return OwnerReport(command="owner adopt", dry_run=dry_run, moves=moves, observe=observe)
    world.watch(moves, observe, "turn its Eureka client off, or stop what registers it")
    watched = {move.source.key for move in moves}
    registered, desired = world.listed(), _desired(world, ownership, scope)  # the cluster may want something else now
    moves = [move for move in _unowned(registered, desired, ownership, app) if move.source.key in watched]

    assert world.cluster is not None  # it gave its identity before
    adds = [
        Register(instance=move.made_of(move.source), syncer=move.syncer, why=move.why) for move in moves if move.syncer
    ]
    deadline = Deadline(world.clock, inf)
    barred, errors = put_finalizers_on(world.cluster, world.workers, deadline, desired, adds)
    moves = world.move(moves, {move.source.key: barred[move.syncer] for move in moves if move.syncer in barred})
    return OwnerReport(command="owner adopt", moves=moves, errors=errors)


def _desired(world: OwnerWorld, ownership: Ownership, scope: Scope) -> Desired:
    assert world.cluster is not None  # it gave its identity before
    view = read_cluster(world.cluster, Complete(data=ownership.cluster), scope)
    for _, unknown in unknown_sources(view):
        raise SourceUnknown(Server.KUBERNETES, unknown)
    # Only keys and marks are used.
    return claim_all(view, Naming(ownership=ownership, lease=OUR_LEASE), scope)


def _unowned(registry: Sequence[ObservedInstance], desired: Desired, ownership: Ownership, app: str) -> list[Move]:
    """Moves the app's instances that nobody owns and a syncer wants, to the id that `run` would give them: the next
    pass would cancel any other. Raises Refused if there are none, and none is ours already."""
    registered = [one for one in in_order(registry) if one.key.app == app]
    if not registered:
        raise Refused(f"Eureka lists no app {app}.")
    wanted = {_socket(w.instance): w for key in desired.wanted_by if (w := desired.wanted(key))}
    moves = []
    for one in registered:
        if OWNER not in one.metadata and (wish := wanted.get(_socket(one.instance))):
            marks = wish.instance.metadata
            put = {mark: marks[mark] for mark in (OWNER, CLUSTER, SYNCER, CLASS, POD) if mark in marks}
            moves.append(Move(source=one, target=wish.instance.key, expects={OWNER: None}, put=put, why=wish.why))
    if not moves and not any(map(ownership.holds, registered)):
        raise Refused(f"{app} has no instance to adopt: each has an owner, or no syncer wants its address.")
    return moves


def _socket(instance: Instance) -> tuple[str, str, int]:
    return (instance.key.app, instance.ip_addr, instance.main_port)


_LATELY = 90.0  # seconds: who renewed within them may go on, such as a CronJob that runs each minute


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """What a purge would cancel, for a person to confirm."""

    ownership: Ownership
    scope: Scope
    instances: tuple[ObservedInstance, ...]
    listed: Sequence[ObservedInstance]
    renewed_ago: float | None  # seconds since the last renewal of a sample; None if there is no instance

    @property
    def whose(self) -> str:
        return whose(self.ownership, self.scope)

    @property
    def cautions(self) -> tuple[str, ...]:
        """Warns of instances that `run` would never cancel, because of their policy, and of a `run` that still runs."""
        found = []
        if kept := sum(policy_of(one.metadata) is not Policy.SYNC for one in self.instances):
            have = f"{one_or_more(kept, 'has', 'have')} policy {Policy.UPSERT_ONLY} or {Policy.CREATE_ONLY}"
            them = one_or_more(kept, "it", "them")
            found.append(f"{kept} of them {have}: a purge cancels {them}, `run` never does")
        if self.renewed_ago is not None and self.renewed_ago < _LATELY:
            ago = f"they were renewed {self.renewed_ago:.0f} s ago"
            found.append(f"{ago}: a `run` that still runs would register them again; stop it first")
        return tuple(found)


def look_before_purge(world: OwnerWorld, *, owner: str, cluster: str | None, scope: Scope) -> Purge:
    """Finds in Eureka what a purge would cancel. The scope has only names."""
    ownership = Ownership(owner=owner, cluster=cluster or world.identity())
    listed = world.listed()
    instances = tuple(owned(listed, ownership, scope))
    sample = world.read(sample_of([one.key for one in instances]))
    # By the server's clock. Our registrations are followed by a renewal, whose time Eureka stores in the future.
    newest = max((one.renewed for one in sample.values() if one is not None), default=None)
    ago = None if newest is None else max(0.0, world.clock.now() - newest)
    return Purge(ownership=ownership, scope=scope, instances=instances, listed=listed, renewed_ago=ago)


def purge(world: OwnerWorld, found: Purge, *, dry_run: bool) -> OwnerReport:
    """Cancels the instances on every Eureka server, and removes the finalizers of syncers that are being deleted."""
    marks = {OWNER: found.ownership.owner, CLUSTER: found.ownership.cluster}
    moves = [Move(source=one, target=one.key, expects=marks, put={}, why=_why_purged(one)) for one in found.instances]
    if not dry_run:
        moves = world.cancel(moves)
    after, errors = list(found.cautions), tuple[ClusterError, ...]()
    known = {one.key for one in found.instances}
    if came := [one for one in owned(found.listed, found.ownership, found.scope) if one.key not in known]:
        were = one_or_more(len(came), "was", "were")
        after.append(f"{len(came)} more came meanwhile and {were} left: stop what registers them, and purge again")
    if world.cluster is not None and not any(one.failed for one in moves):
        finalizers, errors = _finish_deletions(world, world.cluster, found, dry_run=dry_run)
        after += finalizers
    none = world.nothing_there(found.ownership, found.listed) or f"no instance belongs to {found.whose}"
    nothing, of = f"nothing to purge: {none}", f", of {found.whose}"
    return OwnerReport(
        command="owner purge", dry_run=dry_run, moves=moves, nothing=nothing, of=of, after=after, errors=errors
    )


def _why_purged(one: ObservedInstance) -> str:
    policy = policy_of(one.metadata)
    return "a purge cancels all that is ours" + (f", despite policy {policy}" if policy is not Policy.SYNC else "")


def _deletions(cluster: Cluster, found: Purge, now: float) -> tuple[list[SyncerObject], list[str]]:
    """Gives the deleted syncers of which Eureka holds no instance, of any owner, once all of `found` is cancelled; and
    why others keep their finalizer, a sentence each."""
    syncers = read_syncers(cluster, found.scope)
    sources = [syncers.elsewhere, *syncers.by_namespace.values()]
    unread = next((one for one in sources if isinstance(one, Unknown) and one.cause is not Cause.NOT_READ), None)
    if unread is not None:
        return [], [f"finalizers are left: {unread.message}"]
    ours = (one for one in every(syncers) if found.scope.covers(one.ref))
    carrying = [syncer for syncer in ours if CLEANUP_FINALIZER in syncer.finalizers]
    gone = {one.key for one in found.instances}
    left = [one for one in found.listed if one.key not in gone and OWNER in one.metadata]
    # Another cluster's syncer may have the same name.
    kept = {syncer_of(one) for one in left if one.metadata.get(CLUSTER) in (None, found.ownership.cluster)}
    deleting = [syncer for syncer in carrying if syncer.deleted is not None and syncer.ref not in kept]
    owners = {one.metadata.get(OWNER) for one in found.listed if one.metadata.get(CLUSTER) == found.ownership.cluster}
    has_some = found.ownership.owner in owners
    living = sum(syncer.deleted is None for syncer in carrying) if has_some else 0  # else they may be another owner's
    too_early = found.renewed_ago is not None and found.renewed_ago < CACHE_SECONDS
    if owners and not has_some:  # it is unknown when other owners' instances were cancelled
        too_early = any(syncer.deleted is not None and now - syncer.deleted < CACHE_SECONDS for syncer in deleting)
    sentences = []
    if living:
        what, it = ("has", "the syncer") if living == 1 else ("have", "the syncers")
        sentences.append(f"{counted(living, 'syncer')} still {what} our finalizer: delete {it}, and purge again")
    if deleting and too_early:
        why = "Eureka's list may still hide an instance; purge again in a minute"
        sentences.append(f"our finalizer is left on {counted(len(deleting), 'syncer')} being deleted: {why}")
    return [] if too_early else deleting, sentences


def _finish_deletions(
    world: OwnerWorld, cluster: Cluster, found: Purge, *, dry_run: bool
) -> tuple[list[str], tuple[ClusterError, ...]]:
    """Removes our finalizers. Gives sentences about that, and the writes that failed."""
    ready, sentences = _deletions(cluster, found, world.clock.now())
    if dry_run:
        would = f"it would remove our finalizer from {counted(len(ready), 'syncer')} being deleted"
        return [*sentences, *([would] if ready else [])], ()
    done = world.workers.each(lambda syncer: failure(partial(cluster.remove_finalizer, syncer)), ready)
    errors = tuple(error for error in done if error)
    if errors:
        sentences.append(f"our finalizer is left on {counted(len(errors), 'syncer')} being deleted: {errors[0]}")
    if off := len(ready) - len(errors):
        sentences.append(f"our finalizer was removed from {counted(off, 'syncer')} being deleted")
    return sentences, errors
