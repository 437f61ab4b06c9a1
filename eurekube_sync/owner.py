"""What the `owner` commands do, step by step: adopt, release, rename, purge. Each ends in an `OwnerReport`, or raises.

    list Eureka -> (ask the cluster) -> moves -> watch whether somebody renews -> list again -> add, confirm, cancel

A refusal is an error, raised before anything was changed. A dry run ends before the watch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from eurekube_sync.actions import Register
from eurekube_sync.deadline import Deadline
from eurekube_sync.desired import Desired, claim_all
from eurekube_sync.errors import ClusterError, ConfigurationError, StillRenewed
from eurekube_sync.exit_codes import ExitCode, cluster_error, of_error, of_failures, registry_error
from eurekube_sync.instance import Naming
from eurekube_sync.model import (
    Cause,
    ClusterView,
    InstanceKey,
    LeaseTimes,
    ObservedInstance,
    SyncerObject,
    SyncerRef,
    Unknown,
)
from eurekube_sync.moves import (
    Address,
    Adoption,
    Affected,
    Move,
    adopt,
    adopt_cluster,
    duration_of,
    names,
    observation_time,
    refuse_clash,
    release,
    rename,
)
from eurekube_sync.outcome import Result
from eurekube_sync.ownership import CLASS, CLUSTER, OWNER, Ownership, syncer_of
from eurekube_sync.ports import Clock, Cluster, Registry, Workers
from eurekube_sync.scope import ANY, Scope
from eurekube_sync.settle import put_finalizers_on
from eurekube_sync.syncer import CLEANUP_FINALIZER
from eurekube_sync.transfer import Tell, Transfer, silent
from eurekube_sync.view import read_cluster, read_syncers, unknown_sources

RENEWAL_INTERVAL = 30.0
"""Seconds between two renewals of what `release` keeps alive."""
_LATELY = 90.0
"""Seconds: whoever renewed within them may go on, also a CronJob of each minute."""
_CACHE = 45.0
"""Seconds for which a list may hide what was registered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerWorld:
    """All that an `owner` command touches."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerReport:
    """What an `owner` command found and did."""

    command: str
    dry_run: bool
    summary: str
    """The one line."""
    affected: tuple[Affected, ...] = ()
    sentences: tuple[str, ...] = ()
    """What a person should know or see to."""
    errors: tuple[ClusterError, ...] = ()
    """Writes to Kubernetes that failed."""
    stopped: bool = False
    unreached: tuple[str, ...] = ()
    """Eureka servers on which something may stand that was not seen, or not cancelled."""

    @property
    def code(self) -> ExitCode:
        """What a person has to see to first."""
        failures = [one for one in self.affected if one.failed]
        if self.stopped or any(one.result is Result.NOT_TRIED for one in failures):
            return ExitCode.CUT_SHORT
        if failures:
            return of_failures([one.cause for one in failures], succeeded=len(self.affected) - len(failures))
        if self.errors:
            return of_error(self.errors[0])
        return ExitCode.ACTIONS_FAILED if self.unreached and not self.dry_run else ExitCode.OK


def told_whole(world: OwnerWorld, report: OwnerReport) -> OwnerReport:
    """The same with what no peer that was called can tell: which were away."""
    away = world.registry.unreached()
    if not away:
        return report
    sentence = (
        f"{', '.join(away)} could not be reached: what stands there is left until it lapses; give the command again "
        "when it is back"
    )
    return replace(report, unreached=away, sentences=(*report.sentences, sentence))


# --- adopt -----------------------------------------------------------------------------------------------------------


def adopt_instances(
    world: OwnerWorld,
    *,
    owner: str,
    app: str,
    addresses: Sequence[Address],
    syncer: SyncerRef | None,
    scope: Scope,
    observe: float | None,
    dry_run: bool,
) -> OwnerReport:
    """Takes over instances that a person or another tool registered, and a syncer wants."""
    ownership = Ownership(owner=owner, cluster=identity(world))
    listed = _list(world)
    refuse_clash(listed, ownership)

    def plan(registry: Sequence[ObservedInstance]) -> tuple[Adoption, Desired]:
        desired = _desired(world, ownership, scope)
        return adopt(registry, desired, ownership, app=app, addresses=addresses, syncer=syncer), desired

    adoption, _ = plan(listed)
    ours = adoption.already
    already = (f"{len(ours)} of them are ours already: {names(ours)}",) if ours else ()
    if dry_run or not adoption.moves:
        report = _planned("owner adopt", adoption.moves, observe, nothing="nothing to adopt")
        return replace(report, sentences=(*already, *report.sentences), dry_run=dry_run)
    _watch(world, adoption.moves, observe, "turn its Eureka client off, or let whoever registered it stop")
    watched = {move.source.key for move in adoption.moves}
    adoption, desired = plan(_list(world))  # the cluster may want something else by now
    moves = [move for move in adoption.moves if move.source.key in watched]
    barred, errors = _put_finalizers_on(world, desired, moves)
    affected = world.transfer.move(moves, barred)
    return OwnerReport(
        command="owner adopt",
        dry_run=False,
        summary=_counted(affected, "adopted"),
        affected=tuple(affected),
        sentences=(*already, *_troubles(affected)),
        errors=errors,
    )


def adopt_old_cluster(
    world: OwnerWorld, *, owner: str, old: str, scope: Scope, observe: float | None, dry_run: bool
) -> OwnerReport:
    """Takes over all that the owner has, in a scope that goes by names, in a cluster whose place this one takes."""
    new = identity(world)
    if old == new:
        raise ConfigurationError(f"--cluster {old} is this very cluster: give the id of the one whose place it takes.")
    moves = adopt_cluster(_list_of(world, scope), owner=owner, old=old, new=new)
    if dry_run or not moves:
        nothing = f"nothing to adopt: no instance is of {_whose(Ownership(owner=owner, cluster=old), scope)}"
        return replace(_planned("owner adopt", moves, observe, nothing=nothing), dry_run=dry_run)
    _watch(world, moves, observe, f"cluster {old} lives: end its eurekube-sync, or give it another owner")
    affected = world.transfer.move(adopt_cluster(_list_of(world, scope), owner=owner, old=old, new=new))
    return OwnerReport(
        command="owner adopt",
        dry_run=False,
        summary=_counted(affected, "adopted"),
        affected=tuple(affected),
        sentences=tuple(_troubles(affected)),
    )


# --- rename ----------------------------------------------------------------------------------------------------------


def rename_owner(
    world: OwnerWorld, *, old: str, new: str, cluster: str | None, scope: Scope, observe: float | None, dry_run: bool
) -> OwnerReport:
    """Moves all of the old owner's instances, in a scope that goes by names, to the new one, add-first."""
    if old == new:
        raise ConfigurationError(f"the old owner and the new one are both {old}.")
    uid = cluster or identity(world)
    before, after = Ownership(owner=old, cluster=uid), Ownership(owner=new, cluster=uid)
    listed = _list(world)
    refuse_clash(listed, after)
    moves = rename(_of(listed, scope), before, after)
    if dry_run or not moves:
        there = sum(after.holds(one) for one in listed)
        nothing = f"nothing to rename: no instance is of {_whose(before, scope)}; owner {new} has {there}"
        return replace(_planned("owner rename", moves, observe, nothing=nothing), dry_run=dry_run)
    _watch(world, moves, observe, f"stop `run` and `keepalive` of owner {old} first")
    affected = world.transfer.move(rename(_list_of(world, scope), before, after))
    lives = _lives([one.instance for one in affected])
    return OwnerReport(
        command="owner rename",
        dry_run=False,
        summary=_counted(affected, "renamed"),
        affected=tuple(affected),
        sentences=(*_troubles(affected), f"start `run` with --owner {new} now: {lives}"),
    )


# --- release ---------------------------------------------------------------------------------------------------------


def release_instances(
    world: OwnerWorld,
    *,
    owner: str,
    cluster: str | None,
    scope: Scope,
    apps: frozenset[str],
    syncers: frozenset[SyncerRef],
    keepalive: float | None,
    dry_run: bool,
) -> OwnerReport:
    """Gives instances up: `run` touches them no more, and they live as long as their lease, or as `keepalive` says."""
    ownership = Ownership(owner=owner, cluster=cluster or identity(world))
    moves = release(_list_of(world, scope), ownership, apps=apps, syncers=syncers)
    if dry_run or not moves:
        nothing = f"nothing to release: no such instance is of {_whose(ownership, scope)}"
        report = _planned("owner release", moves, None, nothing=nothing)
        more = _wanted_still(world, ownership, moves) if moves else ()
        return replace(report, dry_run=dry_run, sentences=more)
    affected = world.transfer.move(moves)
    released = [one for one in affected if one.result is Result.DONE]
    more = _wanted_still(world, ownership, moves)
    if keepalive is not None and released:
        done = {one.instance.key for one in released}
        more = (*more, *_keep_alive(world, [move for move in moves if move.target in done], keepalive))
    lives = (_lives([one.instance for one in released]),) if released else ()
    return OwnerReport(
        command="owner release",
        dry_run=False,
        summary=_counted(affected, "released"),
        affected=tuple(affected),
        sentences=(*_troubles(affected), *more, *lives),
        stopped=keepalive is not None and world.clock.stopping(),
    )


def _keep_alive(world: OwnerWorld, moves: Sequence[Move], seconds: float) -> list[str]:
    """Renews until the time is over what is still nobody's; gives what went wrong."""
    begun = world.clock.monotonic()
    transfer, standing = world.transfer, list(moves)
    failed: list[tuple[InstanceKey, str]] = []
    while standing and (left := begun + seconds - world.clock.monotonic()) > 0 and not world.clock.stopping():
        world.tell("keeping them alive", seconds - left, seconds)
        world.clock.sleep(min(left, RENEWAL_INTERVAL))
        if world.clock.stopping():
            break
        answers = list(zip(standing, transfer.renew_made(standing), strict=True))
        failed = [(move.target, str(answer)) for move, answer in answers if isinstance(answer, Exception)]
        standing = [move for move, answer in answers if answer is not False]
    lost = len(moves) - len(standing)
    sentences = [f"{lost} of them went meanwhile, or are somebody else's by now"] if lost else []
    if failed:
        key, why = failed[0]
        sentences.append(f"{len(failed)} could not be renewed the last time, such as {key}: {why}")
    return sentences


def _wanted_still(world: OwnerWorld, ownership: Ownership, moves: Sequence[Move]) -> tuple[str, ...]:
    """What `run` will make of it, as far as the cluster was asked and answers."""
    if world.cluster is None:
        return ()
    classes = {move.source.metadata.get(CLASS) for move in moves}
    wanted: list[SyncerRef] = []
    for syncer_class in sorted(classes, key=str):
        scope = Scope(syncer_class=syncer_class, allowed=frozenset({(ANY, ANY)}))
        view = _view(world, scope)
        if next(unknown_sources(view), None) is not None:
            return ("what `run` will make of it is not known: the cluster cannot be read",)
        desired = claim_all(view, _naming(ownership), scope)
        wanted += [desired.wanted_by[move.target] for move in moves if move.target in desired.wanted_by]
    return tuple(
        f"syncer {ref} still wants {number} of them: `run` reports a Conflict while they stand, and registers its own "
        "when they have lapsed. Delete the syncer before that."
        for ref, number in sorted(Counter(wanted).items())
    )


# --- purge -----------------------------------------------------------------------------------------------------------


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
        return _whose(self.ownership, self.scope)

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
    listed = tuple(_list(world))
    ours = (one for one in _of(listed, scope) if ownership.holds(one))
    standing = tuple(sorted(ours, key=lambda one: one.key))
    ago = _renewed_ago(world, standing)
    return Purge(ownership=ownership, scope=scope, standing=standing, listed=listed, renewed_ago=ago)


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
        summary=_counted(affected, "cancelled") if affected else nothing,
        affected=tuple(affected),
        sentences=(*_troubles(affected), *warning, *_elsewhere(found), *finalizers),
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
    listed = read_syncers(cluster, found.scope)
    sources = [listed.elsewhere, *listed.by_namespace.values()]
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


# --- What they share -------------------------------------------------------------------------------------------------


def identity(world: OwnerWorld) -> str:
    """UID of the cluster that we are asked to work for; raises what keeps it from being known."""
    if world.cluster is None:
        raise ConfigurationError("it is not known which cluster is meant: give --cluster, or a kubeconfig.")
    found = world.cluster.identity()
    if isinstance(found, Unknown):
        raise cluster_error(found)
    return found.data


def _list(world: OwnerWorld) -> Sequence[ObservedInstance]:
    listed = world.registry.list_instances()
    if isinstance(listed, Unknown):
        raise registry_error(listed)
    return listed.data


def _list_of(world: OwnerWorld, scope: Scope) -> Sequence[ObservedInstance]:
    return _of(_list(world), scope)


def _of(listed: Sequence[ObservedInstance], scope: Scope) -> Sequence[ObservedInstance]:
    """Those whose syncer's name lies in the scope; what names no syncer is of the whole alone."""
    if scope.namespaces is None and scope.shard is None:
        return listed
    return [one for one in listed if (syncer := syncer_of(one)) and scope.covers(syncer)]


def _whose(ownership: Ownership, scope: Scope) -> str:
    parts = [f"owner {ownership.owner} and cluster {ownership.cluster}"]
    parts += [f"namespace {name}" for name in sorted(scope.namespaces or ())]
    parts += [f"shard {scope.shard}"] if scope.shard else []
    return ", ".join(parts)


def _view(world: OwnerWorld, scope: Scope) -> ClusterView:
    assert world.cluster is not None  # asked before for its identity
    return read_cluster(world.cluster, world.cluster.identity(), scope)


def _desired(world: OwnerWorld, ownership: Ownership, scope: Scope) -> Desired:
    view = _view(world, scope)
    unknown = next(unknown_sources(view), None)
    if unknown is not None:
        raise cluster_error(unknown[1])
    return claim_all(view, _naming(ownership), scope)


def _naming(ownership: Ownership) -> Naming:
    return Naming(ownership=ownership, lease=LeaseTimes(30, 300))  # only keys and marks are taken


def _watch(world: OwnerWorld, moves: Sequence[Move], observe: float | None, way_out: str) -> None:
    seconds = observation_time(move.source for move in moves) if observe is None else observe
    renewed = world.transfer.renewed_by_others([move.source.key for move in moves], seconds)
    if renewed:
        raise StillRenewed(f"somebody still renews {names(renewed)}: {way_out}. Nothing was changed.")


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


def _planned(command: str, moves: Sequence[Move], observe: float | None, *, nothing: str) -> OwnerReport:
    """What would be done."""
    seconds = observation_time(move.source for move in moves) if observe is None else observe
    return OwnerReport(
        command=command,
        dry_run=True,
        summary=f"dry run: {len(moves)} to {command.split()[1]}" if moves else nothing,
        affected=tuple(
            Affected(instance=move.source, target=move.target, syncer=move.syncer, why=move.why) for move in moves
        ),
        sentences=(f"it would first watch for {seconds:.0f} s whether somebody renews them",) if moves else (),
    )


def _counted(affected: Sequence[Affected], done: str) -> str:
    counts = [
        (sum(one.result is Result.DONE for one in affected), done),
        (sum(one.result is Result.GONE for one in affected), "gone before"),
        (sum(one.result is Result.CONFLICT for one in affected), "in conflict"),
        (sum(one.result is Result.FAILED for one in affected), "failed"),
        (sum(one.result is Result.NOT_TRIED for one in affected), "not tried"),
    ]
    return ", ".join(f"{number} {what}" for number, what in counts if number) or f"nothing {done}"


def _troubles(affected: Sequence[Affected]) -> list[str]:
    """One sentence for each way in which some failed."""
    first: dict[str, list[Affected]] = {}
    for one in affected:
        if one.failed:
            first.setdefault(one.detail, []).append(one)
    more = {why: f" (and {len(some) - 1} more)" if len(some) > 1 else "" for why, some in first.items()}
    return [f"{some[0].instance.key}: {why}{more[why]}" for why, some in first.items()]


def _lives(instances: Sequence[ObservedInstance]) -> str:
    """How long they stand when nobody renews them: twice the duration after a renewal, until the next eviction."""
    seconds = 2 * max((duration_of(one) for one in instances), default=0)
    shown = f"{seconds // 60} minutes" if seconds >= 120 and seconds % 60 == 0 else f"{seconds} s"
    return f"unless something renews them they lapse in {shown}"
