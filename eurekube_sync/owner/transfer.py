"""Carries the moves of an `owner` command out: watched first, added first, each cancel read again before it is sent.

Safe to repeat and safe to cut: at any time every instance is registered under its old key, its new one, or both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import inf

from eurekube_sync.apply.eureka import Applier
from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.model.deadline import Deadline
from eurekube_sync.model.errors import RegistryError, RegistryUnavailable, Stopped
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.outcomes import Result
from eurekube_sync.model.ownership import Ownership
from eurekube_sync.model.ports import Clock, Registry, Workers
from eurekube_sync.model.values import dataclass
from eurekube_sync.observe.eureka import Unread
from eurekube_sync.owner.moves import Affected, Move

Tell = Callable[[str, float, float], None]
"""What is being done, how much of it is done, and of how much."""

_AT_ONCE = 200
"""Instances that stand twice at a time: all of them are added before the first is cancelled."""
_SAMPLE = 20
_LOOKS = 10
"""How often a sample is read while a watch goes on, so that a refusal need not wait for its end."""
_AGAIN = "somebody renews it again: it stays as it is"


def silent(_what: str, _done: float, _of: float) -> None:
    """Tells nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """The calls of one command, without a deadline: a signal ends them between two."""

    registry: Registry
    clock: Clock
    workers: Workers
    tell: Tell = silent

    def read(self, keys: Iterable[InstanceKey]) -> dict[InstanceKey, ObservedInstance | None]:
        """Reads each key uncached; raises for one that cannot be read, for nothing is known of it then."""
        ledger = RenewalLedger(period=0, slack=0)
        applier = Applier(self.registry, self.clock, self.workers, ledger, None, Deadline(self.clock, inf))
        found: dict[InstanceKey, ObservedInstance | None] = {}
        for key, reading in applier.read(keys).items():
            if isinstance(reading, Unread):
                raise Stopped(_BEFORE) if self.clock.stopping() else RegistryUnavailable(f"{key}: {reading.why}")
            found[key] = reading
        return found

    def renewed_by_others(self, keys: Sequence[InstanceKey], seconds: float) -> tuple[ObservedInstance, ...]:
        """Those whose lease somebody renews, or registers anew, within so many seconds; ends early with the first ones.

        Two uncached reads are compared: the list is too old, and the server's clock is not ours.
        """
        before = self.read(keys)
        begun = self.clock.monotonic()
        sample = list(keys[:: max(1, len(keys) // _SAMPLE)])[:_SAMPLE]
        for look in range(1, _LOOKS + 1):
            due = begun + seconds * look / _LOOKS
            while (left := due - self.clock.monotonic()) > 0 and not self.clock.stopping():
                self.tell("watching whether somebody renews them", seconds - (begun + seconds - due) - left, seconds)
                self.clock.sleep(min(1.0, left))
            if self.clock.stopping():
                raise Stopped(_BEFORE)
            renewed = _renewed(before, self.read(sample if look < _LOOKS else keys))
            if renewed:
                return renewed
        return ()

    def move(self, moves: Sequence[Move], barred: Mapping[InstanceKey, str] | None = None) -> list[Affected]:
        """Adds under the target, confirms it uncached, and then cancels the source. `barred` are sources that must
        stay, with the reason. Of several with one target the one that callers reach makes it, and the others follow."""
        done: dict[InstanceKey, Affected] = {}
        for those in _turns(moves):
            for first in range(0, len(those), _AT_ONCE):
                self.tell("moving instances", len(done), len(moves))
                some = those[first : first + _AT_ONCE]
                added = self.workers.each(partial(self._guard, barred=barred or {}), some)
                for one, affected in zip(added, self.workers.each(self._finish, added), strict=True):
                    done[one.move.source.key] = affected
        return [done[move.source.key] for move in moves]

    def cancel(
        self, instances: Sequence[ObservedInstance], ownership: Ownership, why: Callable[[ObservedInstance], str]
    ) -> list[Affected]:
        """Cancels our instances on every peer; `why` gives the reason of each."""

        def cancel(instance: ObservedInstance) -> Affected:
            move = Move(source=instance, target=instance.key, expects={}, put={}, why=why(instance))
            if self.clock.stopping():
                return _affected(move, Result.NOT_TRIED, _STOPPED, target=None)
            try:
                current = self.registry.read_instance(instance.key)
                if current is not None and not ownership.holds(current):
                    return _affected(
                        move, Result.CONFLICT, "it belongs to another owner now, and stays as it is", target=None
                    )
                self.registry.cancel(instance.key, ours=ownership.holds)
            except RegistryError as error:
                return _affected(move, Result.FAILED, str(error), error, target=None)
            return _affected(move, Result.DONE if current else Result.GONE, target=None)

        done: list[Affected] = []
        for first in range(0, len(instances), _AT_ONCE):
            self.tell("cancelling instances", first, len(instances))
            done += self.workers.each(cancel, instances[first : first + _AT_ONCE])
        return done

    def _guard(self, move: Move, barred: Mapping[InstanceKey, str]) -> _Added:
        if move.source.key in barred:
            return _ended(move, Result.FAILED, barred[move.source.key])
        if self.clock.stopping():
            return _ended(move, Result.NOT_TRIED, _STOPPED)
        try:
            return self._add(move)
        except RegistryError as error:
            return _ended(move, Result.FAILED, str(error), error)

    def _add(self, move: Move) -> _Added:
        current = self.registry.read_instance(move.source.key)
        if current is None:
            return _ended(move, Result.GONE, "it is gone")
        if move.in_place and move.made(current):
            self.registry.renew(move.target)
            return _ended(move, Result.DONE)
        if not move.may_take(current):
            return _ended(move, Result.CONFLICT, "it belongs to another owner now, and stays as it is")
        if current.status is InstanceStatus.UNKNOWN:
            return _ended(move, Result.FAILED, "its status is UNKNOWN, and Eureka renews no such lease")
        there = current if move.in_place else self.registry.read_everywhere(move.target)
        if there is not None and not move.in_place and not move.made(there):
            return _ended(move, Result.CONFLICT, f"another owner's instance is registered as {move.target.id}")
        # Callers must not lose what they reach, and what a person set must not be forgotten.
        if there is not None and current.status not in (there.status, InstanceStatus.DOWN, InstanceStatus.STARTING):
            why = f"it is {current.status}, and the instance {move.target.id} is {there.status}: both stay"
            return _ended(move, Result.FAILED, why)
        made = move.made_of(current)
        if there is None or move.in_place:
            newer = max(int(self.clock.now() * 1000), current.last_dirty_timestamp + 1)
            self.registry.register(made, dirty_timestamp=newer)
        if not self.registry.renew(move.target):
            return _ended(move, Result.FAILED, "Eureka did not show it a moment later")
        now = self.registry.read_instance(move.target)
        if now is None or not move.made(now):
            return _ended(move, Result.FAILED, "Eureka did not show it as ours a moment later")
        if there is None and now.status is not current.status:
            why = f"Eureka shows it {now.status}, and it was {current.status}: both stay"
            return _ended(move, Result.FAILED, why)
        return _ended(move, Result.DONE, source=None if move.in_place else current)

    def _finish(self, added: _Added) -> Affected:
        """Cancels the source, if it is unchanged since the target was added."""
        if added.source is None:
            return added.affected
        move, before = added.move, added.source

        def unchanged(current: ObservedInstance) -> bool:
            return move.may_take(current)

        try:
            current = self.registry.read_instance(move.source.key)
            if current is None:
                return added.affected
            if not unchanged(current) or current.last_renewal != before.last_renewal:
                return _affected(move, Result.CONFLICT, f"{_AGAIN}, and is registered twice")
            self.registry.cancel(move.source.key, ours=unchanged)
        except RegistryError as error:
            return _affected(move, Result.FAILED, f"it is registered twice: {error}", error)
        return added.affected


@dataclass(frozen=True, slots=True)
class _Added:
    """A move half way."""

    move: Move
    affected: Affected
    source: ObservedInstance | None = None
    """To be cancelled now."""


_STOPPED = "stopped by a signal"
_BEFORE = f"{_STOPPED}: nothing was changed"
"""While it is only read."""


def _turns(moves: Sequence[Move]) -> list[list[Move]]:
    """One move of each target, then another one of those that have more, and so on: what keeps its id first, then what
    the list shows UP."""
    by_target: dict[InstanceKey, list[Move]] = {}
    for move in moves:
        by_target.setdefault(move.target, []).append(move)
    for those in by_target.values():
        those.sort(key=lambda move: (not move.in_place, move.source.status is not InstanceStatus.UP))
    longest = max(map(len, by_target.values()), default=0)
    return [[those[turn] for those in by_target.values() if turn < len(those)] for turn in range(longest)]


def _ended(
    move: Move,
    result: Result,
    detail: str = "",
    error: RegistryError | None = None,
    source: ObservedInstance | None = None,
) -> _Added:
    return _Added(move, _affected(move, result, detail, error), source)


def _affected(
    move: Move, result: Result, detail: str = "", error: RegistryError | None = None, *, target: object = ...
) -> Affected:
    return Affected(
        instance=move.source,
        target=move.target if target is ... else None,
        syncer=move.syncer,
        why=move.why,
        result=result,
        detail=detail,
        cause=error.cause if error else None,
    )


def _renewed(
    before: Mapping[InstanceKey, ObservedInstance | None], now: Mapping[InstanceKey, ObservedInstance | None]
) -> tuple[ObservedInstance, ...]:
    """A lease that came to be meanwhile was registered by somebody."""
    return tuple(
        one
        for key, one in sorted(now.items())
        if one is not None and ((was := before.get(key)) is None or was.last_renewal != one.last_renewal)
    )
