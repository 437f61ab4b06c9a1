"""`purge` cancels all of our instances of one cluster, and removes the finalizers that waited for
it.

It lists Eureka, shows a person what it found, reads each instance uncached, and cancels those that
are still ours. A dry run ends before the first cancel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf

from msgspec import Struct

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.apply.kubernetes import failure
from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.controller.exit_codes import ExitCode, of_error, of_failures
from eurekube_sync.desired.claims import every
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.actions import Result
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.errors import (
    ClusterError,
    ConfigurationError,
    EurekubeError,
    RegistryError,
    RegistryUnavailable,
    Stopped,
)
from eurekube_sync.model.eureka import CACHE_SECONDS, InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerObject, SyncerRef
from eurekube_sync.model.ownership import CLUSTER, OWNER, Ownership, syncer_of
from eurekube_sync.model.ports import Clock, Cluster, Registry, Workers
from eurekube_sync.model.sources import Cause, Server, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import and_more, counted, one_or_more
from eurekube_sync.observe.eureka import Unread
from eurekube_sync.observe.former import LATELY
from eurekube_sync.observe.installations import nothing_of
from eurekube_sync.observe.kubernetes import read_syncers
from eurekube_sync.owner.known import in_order, known

_AT_ONCE = 200  # instances that are cancelled between two reports of progress
_STOPPED = "stopped by a signal"


class PurgeWorld(Struct, frozen=True, kw_only=True):
    """Both servers, without a deadline. A signal ends a purge between two calls."""

    registry: Registry
    clock: Clock
    workers: Workers
    cluster: Cluster | None = None  # None if --cluster names it
    tell: Callable[[str], None] = lambda _what: None
    """Gets what is being done, and how much of it is done."""

    def identity(self) -> str:
        """Return the UID of the cluster; raise SourceUnknown if it cannot be read."""
        if self.cluster is None:
            raise ConfigurationError(
                "it is not known which cluster is meant: give --cluster, or a kubeconfig"
            )
        return known(self.cluster.identity(), Server.KUBERNETES)

    def listed(self) -> Sequence[ObservedInstance]:
        """Return all instances in Eureka; raise SourceUnknown if it cannot be read."""
        return known(self.registry.list_instances(), Server.EUREKA)

    def read(self, keys: Iterable[InstanceKey]) -> list[ObservedInstance]:
        """Read each key uncached, and return the instances that are there; raise if one cannot be
        read. Not in a batch, because that would renew what is judged by its last renewal."""
        ledger = RenewalLedger(period=0, slack=0)
        deadline = Deadline(self.clock, inf)
        applier = Applier(self.registry, self.clock, self.workers, ledger, None, deadline)
        instances: list[ObservedInstance] = []
        for key, reading in applier.read(keys).items():
            if isinstance(reading, Unread):
                if self.clock.stopping():
                    raise Stopped(f"{_STOPPED}: nothing was changed")
                raise RegistryUnavailable(f"{key}: {reading.why}")
            if reading is not None:
                instances.append(reading)
        return instances


class Purge(Struct, frozen=True, kw_only=True):
    """What a purge would cancel, for a person to confirm."""

    ownership: Ownership
    scope: Scope
    instances: tuple[ObservedInstance, ...]
    listed: Sequence[ObservedInstance]
    renewed_ago: float | None
    """Seconds since the latest renewal, by Eureka's clock; None if no reading tells it."""
    untimed: bool = False  # whether Eureka does not say of some syncer when it was renewed

    @property
    def whose(self) -> str:
        """The owner, the cluster and the namespaces, for a sentence."""
        ownership = self.ownership
        parts = [f"owner {ownership.owner} and cluster {ownership.cluster}"]
        for name in sorted(self.scope.namespaces or ()):
            parts.append(f"namespace {name}")
        return ", ".join(parts)

    @property
    def cautions(self) -> tuple[str, ...]:
        """Warnings of a `run` that still runs."""
        again = "a `run` that still runs would register them again; stop it first"
        ago = self.renewed_ago
        if ago is not None and ago < LATELY:
            return (f"they were renewed {ago:.0f} s ago: {again}",)
        if self.untimed:
            return (f"Eureka does not say when they were renewed: {again}",)
        return ()


class Purged(Struct, frozen=True, kw_only=True):
    """An instance that is cancelled, and the result."""

    instance: ObservedInstance
    why: str
    result: Result | None = None  # None: it is only planned
    detail: str = ""
    cause: Cause | None = None

    @property
    def failed(self) -> bool:
        """Whether the instance is still there."""
        return self.result in (Result.FAILED, Result.CONFLICT, Result.NOT_TRIED)

    def ended(self, result: Result, detail: str = "", error: EurekubeError | None = None) -> Purged:
        cause = error.cause if error else None
        return replace(self, result=result, detail=detail, cause=cause)


_WORDS = {
    Result.DONE: "cancelled",
    Result.GONE: "already gone",
    Result.CONFLICT: "in conflict",
    Result.FAILED: "failed",
    Result.NOT_TRIED: "not tried",
}


class PurgeReport(Struct, frozen=True, kw_only=True):
    """What a purge did, or would do."""

    of: Purge
    dry_run: bool = False
    purged: Sequence[Purged] = ()
    nothing: str = ""  # the summary if there is no instance
    after: Sequence[str] = ()  # further sentences for a person
    errors: tuple[ClusterError, ...] = ()
    """Writes to Kubernetes that failed; the sentences mention them."""
    unreached: tuple[str, ...] = ()
    """Eureka servers that may hold an instance that was not seen or not cancelled."""

    @property
    def summary(self) -> str:
        if not self.purged:
            return f"nothing to purge: {self.nothing}"
        if self.dry_run:
            return f"dry run: {len(self.purged)} to cancel, of {self.of.whose}"
        counts = Counter([purged.result for purged in self.purged])
        parts: list[str] = []
        for result, word in _WORDS.items():
            if counts[result]:
                parts.append(f"{counts[result]} {word}")
        return ", ".join(parts)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences for a person, with one for each cause for which cancels failed."""
        failed: dict[str, list[Purged]] = {}
        for purged in self.purged:
            if purged.failed:
                failed.setdefault(purged.detail, []).append(purged)
        sentences: list[str] = []
        for why, alike in failed.items():
            first = alike[0].instance.key
            more = and_more(len(alike))
            sentences.append(f"{first}{more}: {why}")
        sentences += self.after
        if self.unreached:
            away = ", ".join(self.unreached)
            until = "the instances there stay until they expire; repeat the command later"
            sentences.append(f"{away} could not be reached: {until}")
        return tuple(sentences)

    @property
    def code(self) -> ExitCode:
        """The exit code. If several things are wrong, the first to see to decides."""
        causes: list[Cause | None] = []
        for purged in self.purged:
            if purged.result is Result.NOT_TRIED:
                return ExitCode.INCOMPLETE
            if purged.failed:
                causes.append(purged.cause)
        if causes:
            succeeded = len(self.purged) - len(causes)
            return of_failures(causes, succeeded=succeeded)
        if self.errors:
            return of_error(self.errors[0])
        if self.unreached and not self.dry_run:
            return ExitCode.INCOMPLETE
        return ExitCode.OK


def look_before_purge(world: PurgeWorld, *, owner: str, cluster: str | None, scope: Scope) -> Purge:
    """Find in Eureka what a purge would cancel. The scope has only names."""
    ownership = Ownership(owner=owner, cluster=cluster or world.identity())
    listed = world.listed()
    instances = tuple(_owned(listed, ownership, scope))
    silences: list[float] = []
    untimed = False
    for reading in _one_of_each_syncer(world, instances, ownership):
        # Both times are of Eureka's clock, because ours may be wrong by minutes.
        if reading.read_at and reading.last_renewal:
            ago = reading.read_at / 1000 - reading.renewed
            silences.append(max(0.0, ago))
        else:
            untimed = True
    return Purge(
        ownership=ownership,
        scope=scope,
        instances=instances,
        listed=listed,
        renewed_ago=min(silences, default=None),
        untimed=untimed,
    )


def _one_of_each_syncer(
    world: PurgeWorld, instances: Sequence[ObservedInstance], ownership: Ownership
) -> list[ObservedInstance]:
    """Read one instance of each syncer, uncached; if it is not ours any more, the others, too.

    An installation renews a syncer whole, and each installation may have its own syncers. The one
    with the latest renewal in the list is the least likely to be gone.
    """
    by_syncer: dict[SyncerRef | None, list[ObservedInstance]] = {}
    for instance in instances:
        alike = by_syncer.setdefault(syncer_of(instance), [])
        alike.append(instance)
    latest: dict[InstanceKey, SyncerRef | None] = {}
    for syncer, alike in by_syncer.items():
        newest = max(alike, key=lambda instance: (instance.renewed, instance.key))
        latest[newest.key] = syncer
    readings: list[ObservedInstance] = []
    for reading in world.read(latest):
        if ownership.holds(reading):
            readings.append(reading)
            syncer = latest[reading.key]
            del by_syncer[syncer]
    others: list[InstanceKey] = []
    for alike in by_syncer.values():
        others += [instance.key for instance in alike if instance.key not in latest]
    readings += [reading for reading in world.read(others) if ownership.holds(reading)]
    return readings


def _owned(
    registry: Iterable[ObservedInstance], ownership: Ownership, scope: Scope
) -> list[ObservedInstance]:
    """Return the instances of this owner and cluster whose syncer's name is in the scope, by key. An
    instance without the mark of a syncer is only in the scope of the whole cluster."""
    owned: list[ObservedInstance] = []
    for instance in in_order(registry):
        syncer = syncer_of(instance)
        in_scope = scope.namespaces is None
        if syncer is not None and not in_scope:
            in_scope = scope.covers(syncer)
        if in_scope and ownership.holds(instance):
            owned.append(instance)
    return owned


def purge(world: PurgeWorld, found: Purge, *, dry_run: bool) -> PurgeReport:
    """Cancel the instances on every Eureka server, and remove the finalizers of syncers that are
    being deleted."""
    why = "a purge cancels all that is ours"
    purged = [Purged(instance=instance, why=why) for instance in found.instances]
    if not dry_run:
        purged = _cancel(world, purged, found.ownership)
    after = [*found.cautions, *_came_meanwhile(found)]
    errors: tuple[ClusterError, ...] = ()
    where = f"cluster {found.ownership.cluster}"
    if world.cluster is not None:
        where = "this cluster"
        # While an instance is left, the finalizers stay.
        if not any(planned.failed for planned in purged):
            finalizers, errors = _finish_deletions(world, world.cluster, found, dry_run=dry_run)
            after += finalizers
    nothing = nothing_of(found.ownership, found.listed, where=where)
    if not nothing:
        nothing = f"no instance belongs to {found.whose}"
    return PurgeReport(
        of=found, dry_run=dry_run, purged=purged, nothing=nothing, after=after, errors=errors
    )


def _came_meanwhile(found: Purge) -> list[str]:
    """Say how many instances appeared while a person was asked. They were not shown, so they
    stay."""
    shown = {instance.key for instance in found.instances}
    owned = _owned(found.listed, found.ownership, found.scope)
    there = {instance.key for instance in owned}
    came = len(there - shown)
    if not came:
        return []
    were = one_or_more(came, "was", "were")
    return [
        f"{came} more came meanwhile and {were} left: stop what registers them, and purge again"
    ]


def _cancel(world: PurgeWorld, purged: Sequence[Purged], ownership: Ownership) -> list[Purged]:
    """Cancel each instance on every Eureka server, if it is still ours."""

    def cancel(planned: Purged) -> Purged:
        if world.clock.stopping():
            return planned.ended(Result.NOT_TRIED, _STOPPED)
        key = planned.instance.key
        try:
            current = world.registry.read_instance(key)
            if current is not None and not ownership.holds(current):
                why = "it belongs to another owner now, and stays as it is"
                return planned.ended(Result.CONFLICT, why)
            # Also if it is gone here: another Eureka server may still have it.
            world.registry.cancel(key, ours=ownership.holds)
        except RegistryError as error:
            return planned.ended(Result.FAILED, str(error), error)
        return planned.ended(Result.DONE if current else Result.GONE)

    done: list[Purged] = []
    for first in range(0, len(purged), _AT_ONCE):
        world.tell(f"cancelling instances ({first} of {len(purged)})")
        batch = purged[first : first + _AT_ONCE]
        done += world.workers.each(cancel, batch)
    return done


# --- Finalizers -----------------------------------------------------------------------------------


def _finish_deletions(
    world: PurgeWorld, cluster: Cluster, found: Purge, *, dry_run: bool
) -> tuple[list[str], tuple[ClusterError, ...]]:
    """Remove our finalizers. Return sentences about that, and the writes that failed."""
    ready, sentences = _deletions(cluster, found, world.clock.now())
    if dry_run:
        if ready:
            syncers = counted(len(ready), "syncer")
            sentences.append(f"it would remove our finalizer from {syncers} being deleted")
        return sentences, ()

    def remove(syncer: SyncerObject) -> ClusterError | None:
        return failure(partial(cluster.remove_finalizer, syncer))

    errors = [error for error in world.workers.each(remove, ready) if error]
    if errors:
        syncers = counted(len(errors), "syncer")
        sentences.append(f"our finalizer is left on {syncers} being deleted: {errors[0]}")
    removed = len(ready) - len(errors)
    if removed:
        syncers = counted(removed, "syncer")
        sentences.append(f"our finalizer was removed from {syncers} being deleted")
    return sentences, tuple(errors)


def _deletions(cluster: Cluster, found: Purge, now: float) -> tuple[list[SyncerObject], list[str]]:
    """Return the deleted syncers that may lose the finalizer, once all of `found` is cancelled; and
    why others keep it, a sentence each."""
    syncers, unread = _with_our_finalizer(cluster, found)
    if unread is not None:
        return [], [f"finalizers are left: {unread.message}"]
    kept = _still_named(found)
    living = 0
    deleting: list[SyncerObject] = []
    for syncer in syncers:
        if syncer.deleted is None:
            living += 1
        elif syncer.ref not in kept:
            deleting.append(syncer)
    sentences: list[str] = []
    # Without an instance of ours, the finalizers of living syncers may be another owner's.
    if living and _has_instances(found):
        number = counted(living, "syncer")
        have = one_or_more(living, "has", "have")
        them = one_or_more(living, "the syncer", "the syncers")
        sentences.append(f"{number} still {have} our finalizer: delete {them}, and purge again")
    if deleting and _list_may_hide(found, deleting, now):
        number = counted(len(deleting), "syncer")
        why = "Eureka's list may still hide an instance; purge again in a minute"
        sentences.append(f"our finalizer is left on {number} being deleted: {why}")
        return [], sentences
    return deleting, sentences


def _with_our_finalizer(
    cluster: Cluster, found: Purge
) -> tuple[list[SyncerObject], Unknown | None]:
    """Return the syncers of the scope that carry our finalizer; and why they could not all be
    listed."""
    listed = read_syncers(cluster, found.scope)
    for source in (listed.elsewhere, *listed.by_namespace.values()):
        if isinstance(source, Unknown) and source.cause is not Cause.NOT_READ:
            return [], source
    carrying: list[SyncerObject] = []
    for syncer in every(listed):
        in_scope = found.scope.covers(syncer.ref)
        if in_scope and CLEANUP_FINALIZER in syncer.finalizers:
            carrying.append(syncer)
    return carrying, None


def _has_instances(found: Purge) -> bool:
    return any(found.ownership.holds(instance) for instance in found.listed)


def _still_named(found: Purge) -> set[SyncerRef | None]:
    """Return the syncers that an instance names which is not cancelled here. Another cluster's
    syncer may have the same name."""
    cancelled = {instance.key for instance in found.instances}
    named: set[SyncerRef | None] = set()
    for instance in found.listed:
        metadata = instance.metadata
        if OWNER not in metadata or instance.key in cancelled:
            continue
        cluster = metadata.get(CLUSTER, found.ownership.cluster)
        if cluster == found.ownership.cluster:
            named.add(syncer_of(instance))
    return named


def _list_may_hide(found: Purge, deleting: Sequence[SyncerObject], now: float) -> bool:
    """Say whether Eureka's list may be too old to show an instance of these syncers."""
    if found.untimed:
        return True
    ago = found.renewed_ago
    if ago is not None and ago < CACHE_SECONDS:
        return True
    if _has_instances(found) or not _other_owners_here(found):
        return False
    # It is unknown when other owners' instances were cancelled.
    latest = max([syncer.deleted or 0.0 for syncer in deleting])
    return now - latest < CACHE_SECONDS


def _other_owners_here(found: Purge) -> bool:
    for instance in found.listed:
        cluster = instance.metadata.get(CLUSTER)
        if OWNER in instance.metadata and cluster == found.ownership.cluster:
            return True
    return False
