"""`owner release`: instances that are ours become nobody's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from eurekube_sync.desired.claims import claim_all
from eurekube_sync.desired.scope import ANY, Scope
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.outcomes import Result
from eurekube_sync.model.ownership import CLASS, CLUSTER, OWNER, RELEASED, Ownership, syncer_of
from eurekube_sync.observe.kubernetes import unknown_sources
from eurekube_sync.owner.moves import Move, in_order
from eurekube_sync.owner.report import OwnerReport, counted, lives, planned, troubles
from eurekube_sync.owner.world import OwnerWorld, identity, listed, naming, nothing_there, of_scope, view_of, whose

RENEWAL_INTERVAL = 30.0
"""Seconds between two renewals of what `release` keeps alive."""


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
    standing = listed(world)
    moves = release_moves(of_scope(standing, scope), ownership, apps=apps, syncers=syncers)
    if dry_run or not moves:
        none = nothing_there(world, ownership, standing)
        nothing = none or f"no instance{_chosen(apps, syncers)} is of {whose(ownership, scope)}"
        report = planned("owner release", moves, None, nothing=f"nothing to release: {nothing}")
        more = _would(world, ownership, moves, keepalive) if moves else ()
        return replace(report, dry_run=dry_run, sentences=more)
    affected = world.transfer.move(moves)
    released = [one for one in affected if one.result is Result.DONE]
    done = {one.instance.key for one in released}
    moved = [move for move in moves if move.target in done]
    more = _wanted_still(world, ownership, moved) if moved else ()
    if keepalive is not None and moved:
        more = (*more, *_keep_alive(world, moved, keepalive))
    until = (lives([one.instance for one in released]),) if released else ()
    return OwnerReport(
        command="owner release",
        dry_run=False,
        summary=counted(affected, "released"),
        affected=tuple(affected),
        sentences=(*troubles(affected), *more, *until),
        stopped=keepalive is not None and world.clock.stopping(),
    )


def _chosen(apps: frozenset[str], syncers: frozenset[SyncerRef]) -> str:
    parts = [f" of app {' or '.join(sorted(apps))}"] if apps else []
    parts += [f" of syncer {' or '.join(map(str, sorted(syncers)))}"] if syncers else []
    return "".join(parts)


def _would(world: OwnerWorld, ownership: Ownership, moves: Sequence[Move], keepalive: float | None) -> tuple[str, ...]:
    """What a dry run says of what comes after."""
    first = f"it would go on renewing them for {keepalive:.0f} s, and then: " if keepalive is not None else ""
    return (*_wanted_still(world, ownership, moves), first + lives([move.source for move in moves]))


def release_moves(
    registry: Iterable[ObservedInstance],
    ownership: Ownership,
    *,
    apps: frozenset[str] = frozenset(),
    syncers: frozenset[SyncerRef] = frozenset(),
) -> tuple[Move, ...]:
    """Ours, of these apps and syncers when some are given, are to be nobody's; those released before are among them, so
    that they can be renewed again."""
    moves = []
    for one in in_order(registry):
        released = one.metadata.get(RELEASED) == ownership.released and OWNER not in one.metadata
        chosen = (not apps or one.key.app in apps) and (not syncers or syncer_of(one) in syncers)
        if chosen and (released or ownership.holds(one)):
            marks = {OWNER: None, CLUSTER: None} if released else {OWNER: ownership.owner, CLUSTER: ownership.cluster}
            moves.append(
                Move(
                    source=one,
                    target=one.key,
                    expects=marks,
                    put={RELEASED: ownership.released},
                    drop=frozenset({OWNER, CLUSTER}),
                    why="it was released before" if released else f"owner {ownership.owner} gives it up",
                )
            )
    return tuple(moves)


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
    sentences = (
        ["a signal ended the keepalive before its time: given again it goes on"] if world.clock.stopping() else []
    )
    sentences += [f"{lost} of them went meanwhile, or are somebody else's by now"] if lost else []
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
        view = view_of(world.cluster, ownership, scope)
        if next(unknown_sources(view), None) is not None:
            return ("what `run` will make of it is not known: the cluster cannot be read",)
        desired = claim_all(view, naming(ownership), scope)
        wanted += [desired.wanted_by[move.target] for move in moves if move.target in desired.wanted_by]
    return tuple(
        f"syncer {ref} still wants {number} of them: `run` reports a Conflict while they stand, and registers its own "
        "when they have lapsed. Delete the syncer before that."
        for ref, number in sorted(Counter(wanted).items())
    )
