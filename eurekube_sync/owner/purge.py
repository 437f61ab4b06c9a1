"""`owner purge`: all that is ours goes, and with it what kept deleted syncers waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from eurekube_sync.errors import ClusterError
from eurekube_sync.model import Cause, ObservedInstance, SyncerObject, Unknown
from eurekube_sync.owner.moves import Affected, duration_of
from eurekube_sync.owner.report import OwnerReport, counted, troubles
from eurekube_sync.owner.world import OwnerWorld, identity, listed, of_scope, whose
from eurekube_sync.ownership import CLUSTER, OWNER, Ownership, syncer_of
from eurekube_sync.ports import Cluster
from eurekube_sync.scope import Scope
from eurekube_sync.syncer import CLEANUP_FINALIZER
from eurekube_sync.view import read_syncers

_LATELY = 90.0
"""Seconds: whoever renewed within them may go on, also a CronJob of each minute."""
_CACHE = 45.0
"""Seconds for which a list may hide what was registered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """What is to be purged, for a person to look at."""

    ownership: Ownership
    scope: Scope
    standing: tuple[ObservedInstance, ...]
    listed: tuple[ObservedInstance, ...]
    renewed_ago: float | None
    """Seconds since somebody renewed one of them; None: there is none."""

    @property
    def whose(self) -> str:
        """In words."""
        return whose(self.ownership, self.scope)

    @property
    def warning(self) -> str | None:
        """What may undo it."""
        if self.renewed_ago is None or self.renewed_ago >= _LATELY:
            return None
        return (
            f"they were renewed {self.renewed_ago:.0f} s ago: a `run` that still goes on registers them again, so stop "
            "it first"
        )


def look_before_purge(world: OwnerWorld, *, owner: str, cluster: str | None, scope: Scope) -> Purge:
    """All that is ours, in a scope that goes by names, from Eureka alone."""
    ownership = Ownership(owner=owner, cluster=cluster or identity(world))
    everything = tuple(listed(world))
    ours = (one for one in of_scope(everything, scope) if ownership.holds(one))
    standing = tuple(sorted(ours, key=lambda one: one.key))
    ago = _renewed_ago(world, standing)
    return Purge(ownership=ownership, scope=scope, standing=standing, listed=everything, renewed_ago=ago)


def purge(world: OwnerWorld, found: Purge, *, dry_run: bool) -> OwnerReport:
    """Cancels all of it, on every peer; then lets go the finalizers of syncers that are being deleted."""
    warning = (found.warning,) if found.warning else ()
    if dry_run:
        affected = [
            Affected(instance=one, target=None, syncer=syncer_of(one), why="all of ours goes") for one in found.standing
        ]
        summary = f"dry run: {len(affected)} to cancel of {found.whose}"
        return OwnerReport(
            command="owner purge",
            dry_run=True,
            summary=summary,
            affected=tuple(affected),
            sentences=(*warning, *_elsewhere(found)),
        )
    affected = world.transfer.cancel(found.standing, found.ownership, "all of ours goes")
    finalizers: tuple[str, ...] = ()
    errors: tuple[ClusterError, ...] = ()
    if world.cluster is not None and not any(one.failed for one in affected):
        finalizers, errors = _let_go(world, world.cluster, found)
    nothing = f"nothing to purge: no instance is of {found.whose}"
    return OwnerReport(
        command="owner purge",
        dry_run=False,
        summary=counted(affected, "cancelled") if affected else nothing,
        affected=tuple(affected),
        sentences=(*troubles(affected), *warning, *_elsewhere(found), *finalizers),
        errors=errors,
    )


def _elsewhere(found: Purge) -> tuple[str, ...]:
    """What stands of other clusters under the name, where nothing stands of the one that was asked for: it may be the
    wrong one."""
    others = Counter(one.metadata[CLUSTER] for one in found.listed if found.ownership.clashes(one))
    if found.standing or not others:
        return ()
    shown = ", ".join(f"{number} of cluster {cluster}" for cluster, number in sorted(others.items()))
    return (f"owner {found.ownership.owner} has {shown}, which were left",)


def _renewed_ago(world: OwnerWorld, standing: Sequence[ObservedInstance]) -> float | None:
    """By the server's stamps: of ours each register is followed by a renewal, which is stamped in the future."""
    sample = [one.key for one in standing[:: max(1, len(standing) // 20)]][:20]
    found = [one for one in world.transfer.read(sample).values() if one is not None]
    newest = max((one.last_renewal / 1000 - duration_of(one) for one in found), default=None)
    return None if newest is None else max(0.0, world.clock.now() - newest)


def _let_go(world: OwnerWorld, cluster: Cluster, found: Purge) -> tuple[tuple[str, ...], tuple[ClusterError, ...]]:
    """Takes our finalizer off syncers that are being deleted and of which nothing stands, whoever registered it."""
    syncers = read_syncers(cluster, found.scope)
    sources = [syncers.elsewhere, *syncers.by_namespace.values()]
    unread = next((one for one in sources if isinstance(one, Unknown) and one.cause is not Cause.NOT_READ), None)
    if unread is not None:
        return (f"finalizers were left: {unread.message}",), ()
    carrying = [
        syncer
        for source in sources
        if not isinstance(source, Unknown)
        for syncer in source.data
        if CLEANUP_FINALIZER in syncer.finalizers and found.scope.covers(syncer.ref)
    ]
    gone = {one.key for one in found.standing}
    kept = {syncer_of(one) for one in found.listed if one.key not in gone and OWNER in one.metadata}
    deleting = [syncer for syncer in carrying if syncer.deleted is not None and syncer.ref not in kept]
    living = sum(syncer.deleted is None for syncer in carrying)
    sentences = [f"{living} syncers still carry our finalizer: delete them, and purge once more"] if living else []
    if deleting and found.renewed_ago is not None and found.renewed_ago < _CACHE:
        why = "Eureka's list may still hide an instance: purge once more in a minute"
        return (*sentences, f"the finalizers of {len(deleting)} deleted syncers were left: {why}"), ()

    def let_go(syncer: SyncerObject) -> ClusterError | None:
        try:
            cluster.remove_finalizer(syncer)
        except ClusterError as error:
            return error
        return None

    errors = tuple(error for error in world.workers.each(let_go, deleting) if error)
    off = len(deleting) - len(errors)
    return (*sentences, *([f"the finalizers of {off} deleted syncers were taken off"] if off else [])), errors
