"""The calls of the `owner` commands: list, watch whether somebody renews, move, cancel. At any time every moved
instance is registered under its old key, its new key, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import TypeVar

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Result
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.errors import ConfigurationError, Refused, RegistryError, RegistryUnavailable, Stopped
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.ownership import Ownership, syncer_of
from eurekube_sync.model.ports import Clock, Cluster, Registry, Workers
from eurekube_sync.model.sources import Server
from eurekube_sync.model.values import dataclass
from eurekube_sync.observe.eureka import Unread
from eurekube_sync.observe.installations import nothing_of
from eurekube_sync.owner.moves import Move, in_order, known, names, observation_time

T = TypeVar("T")
_AT_ONCE = 200  # instances that are registered twice at a time: all are added before the first is cancelled
_SAMPLE = 20  # instances that are read to see whether somebody renews one of many
_LOOKS = 10  # reads of a sample during a watch, so that a refusal can come before its end
_TAKEN = "it belongs to another owner now, and stays as it is"
_STOPPED = "stopped by a signal"
_BEFORE = f"{_STOPPED}: nothing was changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerWorld:
    """Both servers, without a deadline. A signal ends a command between two calls."""

    registry: Registry
    clock: Clock
    workers: Workers
    cluster: Cluster | None = None  # None if --cluster names it
    tell: Callable[[str], None] = lambda _what: None  # gets what is being done, and how much of it is done

    def identity(self) -> str:
        """Gives the UID of the cluster; raises SourceUnknown if it cannot be read."""
        if self.cluster is None:
            raise ConfigurationError("it is not known which cluster is meant: give --cluster, or a kubeconfig.")
        return known(self.cluster.identity(), Server.KUBERNETES)

    def listed(self) -> Sequence[ObservedInstance]:
        """Gives all instances in Eureka; raises SourceUnknown if it cannot be read."""
        return known(self.registry.list_instances(), Server.EUREKA)

    def nothing_there(
        self, ownership: Ownership, registered: Iterable[ObservedInstance], to_read: str = "--owner"
    ) -> str | None:
        where = "this cluster" if self.cluster is not None else f"cluster {ownership.cluster}"
        return nothing_of(ownership, registered, where=where, to_read=to_read)

    def read(self, keys: Iterable[InstanceKey]) -> dict[InstanceKey, ObservedInstance | None]:
        """Reads each key uncached; raises if one cannot be read."""
        ledger = RenewalLedger(period=0, slack=0)
        applier = Applier(self.registry, self.clock, self.workers, ledger, None, Deadline(self.clock, inf))
        found: dict[InstanceKey, ObservedInstance | None] = {}
        for key, reading in applier.read(keys).items():
            if isinstance(reading, Unread):
                raise Stopped(_BEFORE) if self.clock.stopping() else RegistryUnavailable(f"{key}: {reading.why}")
            found[key] = reading
        return found

    def watch_all(
        self, find: Callable[[Sequence[ObservedInstance]], Sequence[Move]], observe: float | None, way_out: str
    ) -> Sequence[Move]:
        """Watches what `find` makes of Eureka's list, and lists again until all moves were watched, because a list may
        be old."""
        watched: set[InstanceKey] = set()
        while True:
            moves = find(self.listed())
            fresh = [move for move in moves if move.source.key not in watched]
            if not fresh:
                return moves
            self.watch(fresh, observe, way_out)
            watched |= {move.source.key for move in fresh}

    def watch(self, moves: Sequence[Move], observe: float | None, way_out: str) -> None:
        """Raises Refused, with the way out, if somebody renews one of the instances, or registers it again. Compares
        two uncached reads, because a list may be old and the server's clock may differ from ours."""
        seconds = observation_time(moves, observe)
        keys = [move.source.key for move in moves]
        sample = sample_of(keys)
        before = self.read(keys)
        begun = self.clock.monotonic()
        for look in range(1, _LOOKS + 1):
            due = begun + seconds * look / _LOOKS
            while (left := due - self.clock.monotonic()) > 0 and not self.clock.stopping():
                self.tell(f"watching whether somebody renews them ({due - begun - left:.0f} of {seconds:.0f} s)")
                self.clock.sleep(min(1.0, left))
            if self.clock.stopping():
                raise Stopped(_BEFORE)
            now = self.read(sample if look < _LOOKS else keys)
            there = [one for _, one in sorted(now.items()) if one is not None]
            renewed = [one for one in there if not (was := before.get(one.key)) or was.last_renewal != one.last_renewal]
            if renewed:
                raise Refused(f"somebody still renews {names(renewed)}: {way_out}. Nothing was changed.")

    def move(self, moves: Sequence[Move], barred: Mapping[InstanceKey, str] | None = None) -> list[Move]:
        """Registers each target, confirms it uncached, and then cancels its source. `barred` are sources that must
        stay, with the reason. If several have one target, the one that callers reach is moved first."""
        add = partial(self._tried, partial(self._added, barred or {}))
        done: dict[InstanceKey, Move] = {}
        for those in _turns(moves):
            for first in range(0, len(those), _AT_ONCE):
                self.tell(f"moving instances ({len(done)} of {len(moves)})")
                some = those[first : first + _AT_ONCE]
                ended = self.workers.each(self._finish, list(zip(some, self.workers.each(add, some), strict=True)))
                done |= {move.source.key: move for move in ended}
        return [done[move.source.key] for move in moves]

    def cancel(self, moves: Sequence[Move]) -> list[Move]:
        """Cancels each instance on every Eureka server, if it is still ours."""
        done: list[Move] = []
        for first in range(0, len(moves), _AT_ONCE):
            self.tell(f"cancelling instances ({first} of {len(moves)})")
            done += self.workers.each(partial(self._tried, self._cancelled), moves[first : first + _AT_ONCE])
        return done

    def _tried(self, step: Callable[[Move], T], move: Move) -> T | Move:
        if self.clock.stopping():
            return move.ended(Result.NOT_TRIED, _STOPPED)
        try:
            return step(move)
        except RegistryError as error:
            return move.ended(Result.FAILED, str(error), error)

    def _cancelled(self, move: Move) -> Move:
        current = self.registry.read_instance(move.source.key)
        if current is not None and not move.may_take(current):
            return move.ended(Result.CONFLICT, _TAKEN)
        self.registry.cancel(move.source.key, ours=move.may_take)
        return move.ended(Result.DONE if current else Result.GONE)

    def _added(self, barred: Mapping[InstanceKey, str], move: Move) -> Move | ObservedInstance:
        """Registers the target. Gives the source as it was read, which is to be cancelled now, or the ended move."""
        if move.source.key in barred:
            return move.ended(Result.FAILED, barred[move.source.key])
        current = self.registry.read_instance(move.source.key)
        if current is None:
            return move.ended(Result.GONE, "it is gone")
        if move.in_place and move.made(current):
            self.registry.renew(move.target)
            return move.ended(Result.DONE)
        if not move.may_take(current):
            return move.ended(Result.CONFLICT, _TAKEN)
        if current.status is InstanceStatus.UNKNOWN:
            return move.ended(Result.FAILED, "its status is UNKNOWN, and Eureka renews no such lease")
        there = current if move.in_place else self.registry.read_everywhere(move.target)
        if there is not None and not move.in_place and not move.made(there):
            return move.ended(Result.CONFLICT, f"another owner's instance is registered as {move.target.id}")
        # Callers must not lose an UP instance, nor Eureka a status that a person set.
        if there is not None and current.status not in (there.status, InstanceStatus.DOWN, InstanceStatus.STARTING):
            why = f"it is {current.status}, and the instance {move.target.id} is {there.status}: both stay"
            return move.ended(Result.FAILED, why)
        if there is None or move.in_place:
            newer = max(int(self.clock.now() * 1000), current.last_dirty_timestamp + 1)
            self.registry.register(move.made_of(current), dirty_timestamp=newer)
        if not self.registry.renew(move.target):
            return move.ended(Result.FAILED, "Eureka did not show it a moment later")
        now = self.registry.read_instance(move.target)
        if now is None or not move.made(now):
            return move.ended(Result.FAILED, "Eureka did not show it as ours a moment later")
        if there is None and now.status is not current.status:
            why = f"Eureka shows it {now.status}, and it was {current.status}: both stay"
            return move.ended(Result.FAILED, why)
        return move.ended(Result.DONE) if move.in_place else current

    def _finish(self, added: tuple[Move, Move | ObservedInstance]) -> Move:
        """Cancels the source, unless it changed since the target was added."""
        move, before = added
        if isinstance(before, Move):
            return before
        try:
            current = self.registry.read_instance(move.source.key)
            if current is None:
                return move.ended(Result.DONE)
            if not move.may_take(current) or current.last_renewal != before.last_renewal:
                why = "somebody renews it again: it stays as it is, and is registered twice"
                return move.ended(Result.CONFLICT, why)
            self.registry.cancel(move.source.key, ours=move.may_take)
        except RegistryError as error:
            return move.ended(Result.FAILED, f"it is registered twice: {error}", error)
        return move.ended(Result.DONE)


def _turns(moves: Sequence[Move]) -> list[list[Move]]:
    """Groups the moves: the first of each target, then the second of each, and so on. First comes a move that keeps its
    id, then one of an UP instance."""
    by_target: dict[InstanceKey, list[Move]] = {}
    for move in moves:
        by_target.setdefault(move.target, []).append(move)
    for those in by_target.values():
        those.sort(key=lambda move: (not move.in_place, move.source.status is not InstanceStatus.UP))
    longest = max(map(len, by_target.values()), default=0)
    return [[those[turn] for those in by_target.values() if turn < len(those)] for turn in range(longest)]


def sample_of(keys: Sequence[InstanceKey]) -> Sequence[InstanceKey]:
    return keys[:: max(1, len(keys) // _SAMPLE)][:_SAMPLE]


def owned(registry: Iterable[ObservedInstance], ownership: Ownership, scope: Scope) -> list[ObservedInstance]:
    """Gives the instances of this owner and cluster whose syncer's name is in the scope, by key. An instance without
    the mark of a syncer is only in the scope of the whole cluster."""
    whole = scope.namespaces is None
    ours = in_order(filter(ownership.holds, registry))
    return [one for one in ours if whole or ((syncer := syncer_of(one)) and scope.covers(syncer))]


def whose(ownership: Ownership, scope: Scope) -> str:
    parts = [f"owner {ownership.owner} and cluster {ownership.cluster}"]
    parts += [f"namespace {name}" for name in sorted(scope.namespaces or ())]
    return ", ".join(parts)
