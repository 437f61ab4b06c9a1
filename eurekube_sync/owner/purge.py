"""`owner purge`: cancels all of our instances, and removes the finalizers that waited for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from eurekube_sync.desired.claims import every
from eurekube_sync.desired.conduct import Policy, policy_of
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.errors import ClusterError
from eurekube_sync.model.eureka import CACHE_SECONDS, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerObject
from eurekube_sync.model.ownership import CLUSTER, OWNER, Ownership, syncer_of
from eurekube_sync.model.ports import Cluster
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.observe.kubernetes import read_syncers
from eurekube_sync.owner.moves import Move, OwnerReport, in_order
from eurekube_sync.owner.world import OwnerWorld, of_scope, whose

_LATELY = 90.0  # seconds: whoever renewed within them may go on, also a CronJob of each minute
_SAMPLE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """What is to be purged, for a person to look at."""

    ownership: Ownership
    scope: Scope
    instances: tuple[ObservedInstance, ...]
    listed: Sequence[ObservedInstance]
    renewed_ago: float | None  # seconds since somebody renewed one of them; None: there is none

    @property
    def whose(self) -> str:
        return whose(self.ownership, self.scope)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What a person should know before: how much of it `run` would never cancel, and what may undo it.

        A purge is a person's order to cancel all of our instances; a policy is for `run` alone.
        """
        found = []
        counts = Counter(policy_of(one.metadata) for one in self.instances)
        kept = [(counts[policy], policy) for policy in (Policy.UPSERT_ONLY, Policy.CREATE_ONLY) if counts[policy]]
        if kept:
            shown = " and ".join(f"{number} with policy {policy}" for number, policy in kept)
            are = one_or_more(kept[0][0], "is", "are")
            found.append(f"among them {are} {shown}: `run` would never cancel these, a purge does")
        if self.renewed_ago is not None and self.renewed_ago < _LATELY:
            found.append(
                f"they were renewed {self.renewed_ago:.0f} s ago: a `run` that still runs would register them again; "
                "stop it first"
            )
        return tuple(found)


def look_before_purge(world: OwnerWorld, *, owner: str, cluster: str | None, scope: Scope) -> Purge:
    """All that is ours, in a scope of names alone, from Eureka alone."""
    ownership = Ownership(owner=owner, cluster=cluster or world.identity())
    listed = world.listed()
    instances = tuple(filter(ownership.holds, in_order(of_scope(listed, scope))))
    sample = [one.key for one in instances[:: max(1, len(instances) // _SAMPLE)]][:_SAMPLE]
    # The server's stamps: of ours each register is followed by a renewal, which is stamped in the future.
    newest = max((one.renewed for one in world.read(sample).values() if one is not None), default=None)
    ago = None if newest is None else max(0.0, world.clock.now() - newest)
    return Purge(ownership=ownership, scope=scope, instances=instances, listed=listed, renewed_ago=ago)


def purge(world: OwnerWorld, found: Purge, *, dry_run: bool) -> OwnerReport:
    """Cancels all of it, on every peer; then removes the finalizers of syncers that are being deleted."""
    moves = [_cancelled(one, found.ownership) for one in found.instances]
    if not dry_run:
        moves = world.cancel(moves)
    after, errors = list(found.cautions), tuple[ClusterError, ...]()
    known = {one.key for one in found.instances}
    came = [one for one in of_scope(found.listed, found.scope) if found.ownership.holds(one) and one.key not in known]
    if came:
        were = one_or_more(len(came), "was", "were")
        after.append(f"{len(came)} more came meanwhile and {were} left: stop what registers them, and purge again")
    if world.cluster is not None and not any(one.failed for one in moves):
        finalizers, errors = _finish_deletions(world, world.cluster, found, dry_run=dry_run)
        after += finalizers
    none = world.nothing_there(found.ownership, found.listed) or f"no instance belongs to {found.whose}"
    return OwnerReport(
        command="owner purge",
        dry_run=dry_run,
        moves=moves,
        nothing=f"nothing to purge: {none}",
        of=f" of {found.whose}",
        after=after,
        errors=errors,
    )


def _cancelled(one: ObservedInstance, ownership: Ownership) -> Move:
    policy = policy_of(one.metadata)
    despite = "" if policy is Policy.SYNC else f", despite policy {policy}"
    return Move(
        source=one,
        target=one.key,
        expects={OWNER: ownership.owner, CLUSTER: ownership.cluster},
        put={},
        why=f"a purge cancels all of our instances{despite}",
    )


def _deletions(cluster: Cluster, found: Purge, now: float) -> tuple[tuple[SyncerObject, ...], list[str]]:
    """Syncers that are being deleted and wait for nothing but our finalizer: when all of `found` is gone, Eureka holds
    nothing of them, whichever owner registered it. Then why others are not ready, a sentence each."""
    syncers = read_syncers(cluster, found.scope)
    sources = [syncers.elsewhere, *syncers.by_namespace.values()]
    unread = next((one for one in sources if isinstance(one, Unknown) and one.cause is not Cause.NOT_READ), None)
    if unread is not None:
        return (), [f"finalizers are left: {unread.message}"]
    ours = (one for one in every(syncers) if found.scope.covers(one.ref))
    carrying = [syncer for syncer in ours if CLEANUP_FINALIZER in syncer.finalizers]
    gone = {one.key for one in found.instances}
    left = [one for one in found.listed if one.key not in gone and OWNER in one.metadata]
    # Another cluster's syncer may have the same name.
    kept = {syncer_of(one) for one in left if one.metadata.get(CLUSTER) in (None, found.ownership.cluster)}
    deleting = tuple(syncer for syncer in carrying if syncer.deleted is not None and syncer.ref not in kept)
    owners = {one.metadata.get(OWNER) for one in found.listed if one.metadata.get(CLUSTER) == found.ownership.cluster}
    has_some = found.ownership.owner in owners
    living = sum(syncer.deleted is None for syncer in carrying) if has_some else 0  # else perhaps another owner's
    too_early = found.renewed_ago is not None and found.renewed_ago < CACHE_SECONDS
    if owners and not has_some:  # nor is it known when the other owners' were cancelled
        too_early = any(syncer.deleted is not None and now - syncer.deleted < CACHE_SECONDS for syncer in deleting)
    sentences = []
    if living:
        what, it = ("has", "it") if living == 1 else ("have", "them")
        sentences.append(f"{counted(living, 'syncer')} still {what} our finalizer: delete {it}, and purge again")
    if deleting and too_early:
        sentences.append(
            f"our finalizer is left on {counted(len(deleting), 'syncer')} being deleted: Eureka's list may still hide "
            "an instance; purge again in a minute"
        )
        deleting = ()
    return deleting, sentences


def _finish_deletions(
    world: OwnerWorld, cluster: Cluster, found: Purge, *, dry_run: bool
) -> tuple[list[str], tuple[ClusterError, ...]]:
    """Removes our finalizer; what to say of it, and the writes that failed."""
    ready, sentences = _deletions(cluster, found, world.clock.now())
    if dry_run:
        would = f"it would remove our finalizer from {counted(len(ready), 'syncer')} being deleted"
        return [*sentences, *([would] if ready else [])], ()

    def remove(syncer: SyncerObject) -> ClusterError | None:
        try:
            cluster.remove_finalizer(syncer)
        except ClusterError as error:
            return error
        return None

    errors = tuple(error for error in world.workers.each(remove, ready) if error)
    if errors:
        sentences.append(f"our finalizer is left on {counted(len(errors), 'syncer')} being deleted: {errors[0]}")
    if off := len(ready) - len(errors):
        sentences.append(f"our finalizer was removed from {counted(off, 'syncer')} being deleted")
    return sentences, errors
