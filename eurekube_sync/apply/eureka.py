"""Carry out a plan in Eureka: renewals, then adds and other changes, then removals.

A pass may be repeated or cut off: between any two calls Eureka is no worse than before. Each call
may fail without the others; after many failures in a row, or at the deadline, the rest is not
tried. Where Eureka takes batches, renewals, first registrations and cancels go in batches first,
and singly if the batch gives no clear answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from operator import attrgetter
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from eurekube_sync.apply.leases import (
    RenewalLedger,
    by_turns,
    chunks,
    keys_in_turn,
    oldest_first,
    rotated,
)
from eurekube_sync.model.actions import Action, Cancel, Outcome, Register, Renew, Result, Update
from eurekube_sync.model.deadline import FAILURES_IN_A_ROW, Deadline, Streak
from eurekube_sync.model.errors import RegistryError, RegistryRejected, RegistryUnavailable
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ports import Batched, Batches, Clock, Dated, Registry, Workers
from eurekube_sync.model.sources import Cause
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Unread

A = TypeVar("A")
R = TypeVar("R")
C = TypeVar("C", bound=Action)
Reading: TypeAlias = (
    ObservedInstance | Unread | None
)  # the result of an uncached read; None: Eureka has no such instance
_ANOTHERS = "another owner's instance is registered with the id that ours needs"


class Applier:
    """The calls of one pass to Eureka. Its only state are the failures in a row."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        workers: Workers,
        renewals: RenewalLedger,
        ours: Callable[[ObservedInstance], bool] | None,
        deadline: Deadline,
    ) -> None:
        """`ours` says whether an instance that is registered under our id is ours; None: nothing
        may be changed."""
        self._registry = registry
        self._clock = clock
        self._workers = workers
        self._renewals = renewals
        self._ours = ours
        self._deadline = deadline
        self._reads = Streak()
        self._changes = Streak()
        self._renewing = Streak(most=inf)  # renewals go on to the deadline

    def read(
        self,
        keys: Iterable[InstanceKey],
        may_be_absent: Sequence[InstanceKey] = (),
        in_the_way_of: Mapping[InstanceKey, InstanceKey] = MappingProxyType({}),
        renewable: Sequence[InstanceKey] = (),
    ) -> dict[InstanceKey, Reading]:
        """Read each key uncached, in turn, from another start each time; a failure is an `Unread`.
        Keys that `may_be_absent` are read on every server; a batch may show that they are. Another
        owner's instance is read together with the instance that it is `in_the_way_of`. Many
        instances that are `renewable` are read in batches, which renew them."""
        free = frozenset(may_be_absent)
        readable = self._readable(renewable)

        def alone(key: InstanceKey) -> tuple[InstanceKey, Reading]:
            return key, self._read(key, everywhere=key in free)

        def together(
            batches: Batches, chunk: Sequence[InstanceKey]
        ) -> list[tuple[InstanceKey, Reading] | None]:
            readings = self._read_many(batches, chunk, free, readable)
            results: list[tuple[InstanceKey, Reading] | None] = []
            for key in chunk:
                if key in readings:
                    results.append((key, readings[key]))
                else:
                    results.append(None)
            return results

        distinct = list(dict.fromkeys(keys))  # each once, in their order
        rotation = rotated(distinct, self._clock.now())
        wanted = keys_in_turn(rotation, lambda key: in_the_way_of.get(key, key))
        in_batches = free | readable
        readings = self._shortened(
            wanted, in_batches.__contains__, together, alone, self._reads, as_given=True
        )
        return dict(readings)

    def _read(self, key: InstanceKey, *, everywhere: bool) -> Reading:
        """Read a key by a call of its own, on one server or on every one."""
        if why := self._give_up(self._reads):
            return Unread(why=why, late=self._deadline.passed)
        try:
            if everywhere:
                reading = self._registry.read_everywhere(key)
            else:
                reading = self._registry.read_instance(key)
        except RegistryError as error:
            self._reads.note(unreachable=isinstance(error, RegistryUnavailable))
            return Unread(why=str(error))
        self._reads.note(unreachable=False)
        return reading

    def _read_many(
        self,
        batches: Batches,
        chunk: Sequence[InstanceKey],
        free: Collection[InstanceKey],
        readable: Collection[InstanceKey],
    ) -> dict[InstanceKey, Reading]:
        """Read what batches can read: whether a key is free, and an instance by its renewal."""
        readings: dict[InstanceKey, Reading] = {}
        asked = [key for key in chunk if key in free]
        if asked:
            for key in batches.absent(asked):
                readings[key] = None
        ours = [key for key in chunk if key in readable]
        if ours:
            readings.update(batches.read(ours))
            for key in ours:
                self._renewals.note_reading(key, self._deadline.begun)
        return readings

    def _readable(self, keys: Sequence[InstanceKey]) -> frozenset[InstanceKey]:
        """Return the instances to be read by renewals: those that this process renews anyway. Fewer
        than fill a batch are left to single reads, which renew nothing and cost little."""
        batches = self._registry.batches()
        readable = self._renewals.readable(keys, self._deadline.begun)
        if batches is None or len(readable) < batches.size:
            return frozenset()
        return frozenset(readable)

    def renew(
        self, renewals: Sequence[Renew], listed: Iterable[ObservedInstance] = ()
    ) -> list[Outcome]:
        """Renew each lease that is due, up to the deadline, whatever fails; the others have no
        outcome. The oldest renewal in the list comes first, of any namespace: with a rotation, or
        with turns, passes that are cut off could always miss the same leases. A lease counts as
        renewed when the pass began, so that a slow pass does not make it look too fresh."""
        due = frozenset(self.due(action.key for action in renewals))
        if not due:
            return []
        if len(due) < len(renewals):
            renewals = [action for action in renewals if action.key in due]
        in_order = oldest_first(renewals, listed, self._clock.now())
        return self.renew_now(in_order)

    def due(self, keys: Iterable[InstanceKey]) -> list[InstanceKey]:
        """Return the leases that are due in this pass."""
        self._renewals.forget(self._deadline.begun)
        return self._renewals.due(keys, self._deadline.begun)

    def renew_now(self, renewals: Sequence[Renew]) -> list[Outcome]:
        """Renew each of these leases, due or not."""

        def renew(action: Renew) -> Outcome:
            return self._guard(action, self._renew, action.status, self._renewing)

        # As given, so that the lease with the oldest renewal stays the first.
        return self._shortened(
            renewals, lambda _: True, self._renew_many, renew, self._renewing, as_given=True
        )

    def change(
        self, actions: Sequence[Register | Update | Renew], barred: Mapping[SyncerRef, str]
    ) -> list[Outcome]:
        """Register and update; a Renew here met a 404 and is registered again. `barred` are syncers
        that must not register, with the reason: their finalizer could not be set."""

        def change(action: Register | Update | Renew) -> Outcome:
            before = None
            if isinstance(action, Update):
                before = action.was
            if action.syncer and action.syncer in barred:
                result = Result.NOT_TRIED if self._deadline.passed else Result.FAILED
                why = barred[action.syncer]
                return Outcome(action=action, result=result, detail=why, status=before)
            return self._guard(action, self._change, before, self._changes)

        free: frozenset[InstanceKey] = frozenset()
        if self._registry.batches() is not None:
            may = [action for action in actions if action.syncer not in barred]
            free = self._free_keys(may)
        return self._shortened(
            actions, lambda action: action.key in free, self._register_many, change, self._changes
        )

    def _free_keys(self, actions: Sequence[Register | Update | Renew]) -> frozenset[InstanceKey]:
        """Return the keys under which no instance is registered. Those of a 404 are read again, on
        every server."""
        free = set()
        gone = []
        for action in actions:
            if isinstance(action, Register):
                free.add(action.key)
            elif isinstance(action, Renew):
                gone.append(action.key)
        for key, reading in self.read(gone, may_be_absent=gone).items():
            if reading is None:
                free.add(key)
        return frozenset(free)

    def ask_returned_servers(
        self, renewals: Sequence[Renew], done: Iterable[Outcome]
    ) -> list[Outcome]:
        """Return outcomes for leases that were not due, and that a Eureka server lacks that was
        unreachable. A new instance must be on that server before the old one is cancelled there.
        Only that server is asked."""
        batches = self._registry.batches()
        if batches is None or not batches.returned():
            return []
        known = {outcome.action.key for outcome in done}
        asked = {}
        for action in renewals:
            if action.key not in known:
                asked[action.key] = action
        lacking = sorted(batches.lacking(list(asked)))
        return [_outcome_of_renewal(asked[key], lacking=True) for key in lacking]

    def register_where_lacking(
        self, renewed: Sequence[Outcome], barred: Mapping[SyncerRef, str]
    ) -> list[Outcome]:
        """Register renewed instances on the Eureka servers that lack them, if the pass wants them;
        return the outcomes that change. An instance with an override is renewed singly, because its
        server then replicates it unchanged (`PeerEurekaNode.heartbeat`). The next pass renews the
        rest again, and sees the result."""
        batches = self._registry.batches()
        ours = self._ours
        wanted = _wanted_where_lacking(renewed, barred)
        if batches is None or ours is None or not wanted:
            return []

        wanted = keys_in_turn(wanted, lambda pair: pair[1].key)
        instances = [instance for _, instance in wanted]
        answers = self._level(batches, ours, instances)
        changed: list[Outcome] = []
        again: list[InstanceKey] = []
        overridden: list[Renew] = []
        for (outcome, instance), answer in zip(wanted, answers, strict=True):
            leveled = replace(outcome, lacking=False)
            if answer is Batched.DONE:
                changed.append(leveled)
                continue
            if answer is Batched.CONFLICT:
                changed.append(replace(leveled, result=Result.CONFLICT, detail=_ANOTHERS))
                continue
            again.append(instance.key)
            action = outcome.action
            if answer is Batched.PARTLY and isinstance(action, Renew):
                overridden.append(action)

        def renew(action: Renew) -> Outcome:
            return self._guard(action, self._renew, action.status, self._changes)

        self._workers.each(renew, overridden)
        # These renewals would else count for the next pass.
        for key in again:
            self._renewals.again(key)
        return changed

    def _level(
        self,
        batches: Batches,
        ours: Callable[[ObservedInstance], bool],
        instances: Sequence[Instance],
    ) -> list[Batched]:
        """Register the instances where a server lacks them, in batches; return an answer for
        each."""

        def level(chunk: Sequence[Instance]) -> list[Batched]:
            if self._give_up(self._changes):
                return [Batched.UNSETTLED] * len(chunk)
            dated = [self.dated(instance) for instance in chunk]
            return batches.level(dated, ours=ours)

        parts = chunks(instances, batches.size)
        answers: list[Batched] = []
        for answered in self._workers.each(level, parts):
            answers += answered
        return answers

    def remove(
        self, actions: Sequence[Update | Cancel], blocked: Mapping[InstanceKey, str]
    ) -> list[Outcome]:
        """Cancel, and update from UP to DOWN. `blocked` are keys that must stay, with the
        reason."""

        def remove(action: Update | Cancel) -> Outcome:
            before = action.was
            if action.key in blocked:
                why = blocked[action.key]
                held_back = Result.HELD_BACK
                return Outcome(action=action, result=held_back, detail=why, status=before)
            if isinstance(action, Cancel):
                return self._guard(action, self._cancel, before, self._changes)
            return self._guard(action, self._change, before, self._changes)

        def cancels(action: Update | Cancel) -> bool:
            return isinstance(action, Cancel) and action.key not in blocked

        cancels_first = sorted(actions, key=cancels, reverse=True)
        return self._shortened(cancels_first, cancels, self._cancel_many, remove, self._changes)

    def _shortened(
        self,
        items: Sequence[A],
        fits: Callable[[A], bool],
        many: Callable[[Batches, Sequence[Any]], Sequence[R | None]],
        single: Callable[[A], R],
        streak: Streak,
        *,
        as_given: bool = False,
    ) -> list[R]:
        """Return the result of each item, in turn or `as_given`: by `many` for items that `fit`
        into batches, and by a `single` call for all others, and where a batch gives None. Batches
        and single calls alternate."""

        def ordered(unordered: Sequence[A]) -> Sequence[A]:
            if as_given:
                return unordered
            return keys_in_turn(unordered, attrgetter("key"))

        def together(chunk: Sequence[A]) -> list[tuple[A, R | None]]:
            results: Sequence[R | None] = [None] * len(chunk)
            if not self._give_up(streak) and (batches := self._registry.batches()):
                results = many(batches, chunk)
            return list(zip(chunk, results, strict=True))

        def alone(item: A) -> list[tuple[A, R | None]]:
            return [(item, single(item))]

        batches = self._registry.batches()
        if batches is None:
            return self._workers.each(single, ordered(items))
        fitting: list[A] = []
        others: list[A] = []
        for item in items:
            if fits(item):
                fitting.append(item)
            else:
                others.append(item)
        parts = chunks(ordered(fitting), batches.size)
        batched = [partial(together, chunk) for chunk in parts]
        singles = [partial(alone, item) for item in ordered(others)]
        calls = by_turns(batched, singles)
        results: list[R] = []
        left: list[A] = []
        for ended in self._workers.each(lambda call: call(), calls):
            for item, result in ended:
                if result is None:
                    left.append(item)
                else:
                    results.append(result)
        results.extend(self._workers.each(single, left))
        return results

    def _renew_many(self, batches: Batches, chunk: Sequence[Renew]) -> list[Outcome | None]:
        answers = batches.renew([action.key for action in chunk])
        outcomes: list[Outcome | None] = []
        for action, answer in zip(chunk, answers, strict=True):
            outcome = None  # it is renewed by a call of its own
            if answer is Batched.ABSENT:
                outcome = _outcome_of_404(action)
            elif answer is Batched.DONE:
                outcome = self._renewed(action)
            elif answer is Batched.PARTLY:
                outcome = self._renewed(action, lacking=True)
            outcomes.append(outcome)
        return outcomes

    def _register_many(
        self, batches: Batches, chunk: Sequence[Register | Renew]
    ) -> list[Outcome | None]:
        wanted: list[Dated] = []
        for action in chunk:
            instance = action.instance if isinstance(action, Register) else action.if_gone
            assert instance is not None  # only such renewals are registered again
            wanted.append(self.dated(instance))
        answers = batches.register(wanted)
        outcomes: list[Outcome | None] = []
        for action, answer in zip(chunk, answers, strict=True):
            outcome = None  # it is registered by a call of its own
            if answer is Batched.DONE:
                self._renewals.note(action.key, self._deadline.begun)
                outcome = _outcome_of_registration(action)
            outcomes.append(outcome)
        return outcomes

    def _cancel_many(self, batches: Batches, chunk: Sequence[Cancel]) -> list[Outcome | None]:
        assert self._ours is not None  # a pass that does not know its cluster only renews
        for action in chunk:
            self._renewals.drop(action.key)
        keys = [action.key for action in chunk]
        answers = batches.cancel(keys, ours=self._ours)
        outcomes: list[Outcome | None] = []
        for action, answer in zip(chunk, answers, strict=True):
            outcome = None  # it is cancelled by a call of its own
            if answer is Batched.DONE:
                outcome = Outcome(action=action, result=Result.DONE)
            outcomes.append(outcome)
        return outcomes

    # --- One call for one instance ----------------------------------------------------------------

    def dated(self, instance: Instance, *, stored: int = 0) -> Dated:
        """Return the instance with a timestamp of now, or one newer than the `stored` one."""
        now = int(self._clock.now() * 1000)
        return Dated(instance, max(now, stored + 1))

    def _give_up(self, streak: Streak) -> str | None:
        """Return why no further call is made; None if one is."""
        if self._deadline.passed:
            return "no time was left for it in this pass"
        if streak.broken:
            return f"Eureka did not answer {FAILURES_IN_A_ROW} calls in a row"
        return None

    def _guard(
        self, action: C, call: Callable[[C], Outcome], before: InstanceStatus | None, streak: Streak
    ) -> Outcome:
        """Make the call, and return its outcome; if it fails or is not made, with the status from
        `before`."""
        if why := self._give_up(streak):
            cause = None if self._deadline.passed else Cause.UNAVAILABLE
            return Outcome(
                action=action, result=Result.NOT_TRIED, detail=why, status=before, cause=cause
            )
        try:
            outcome = call(action)
        except RegistryError as error:
            streak.note(unreachable=isinstance(error, RegistryUnavailable))
            return Outcome(
                action=action,
                result=Result.FAILED,
                detail=str(error),
                status=before,
                cause=error.cause,
            )
        streak.note(unreachable=False)
        return outcome

    def _renew(self, action: Renew) -> Outcome:
        if self._registry.renew(action.key):
            return self._renewed(action)
        return _outcome_of_404(action)

    def _renewed(self, action: Renew, *, lacking: bool = False) -> Outcome:
        """Note that a server renewed the lease in this pass."""
        self._renewals.note(action.key, self._deadline.begun)
        return _outcome_of_renewal(action, lacking=lacking)

    def _change(self, action: Register | Update | Renew) -> Outcome:
        if isinstance(action, Renew):
            return self._register_again(action)
        stored = 0
        if isinstance(action, Update):
            stored = action.stored_timestamp
        self._register(action.instance, stored=stored)
        return _outcome_of_registration(action)

    def _register_again(self, action: Renew) -> Outcome:
        """Register the instance if an uncached read shows no instance, or ours."""
        assert action.if_gone is not None  # only such renewals are registered again
        try:
            registered = self._registry.read_everywhere(action.key)
        except RegistryError:
            if action.status is not None:
                raise
            # Eureka cannot be read at all, but the 404 of the renewal was an uncached answer, too
            registered = None
        stored = 0
        if registered is not None:
            if self._ours is None or not self._ours(registered):
                return Outcome(action=action, result=Result.CONFLICT, detail=_ANOTHERS)
            stored = registered.last_dirty_timestamp
        self._register(action.if_gone, stored=stored)
        return _outcome_of_registration(action)

    def _register(self, instance: Instance, *, stored: int) -> None:
        dated = self.dated(instance, stored=stored)
        self._registry.register(instance, dirty_timestamp=dated.dirty_timestamp)
        self._renewals.note(instance.key, self._deadline.begun)
        # The renewal makes the lease last twice its duration (Lease.renew), and proves that the
        # instance is registered.
        if not self._registry.renew(instance.key):
            raise RegistryRejected(
                "Eureka accepted the registration, but did not show the instance a moment later"
            )

    def _cancel(self, action: Cancel) -> Outcome:
        assert self._ours is not None  # a pass that does not know its cluster only renews
        self._renewals.drop(action.key)
        self._registry.cancel(action.key, ours=self._ours)  # a 404 counts as cancelled
        return Outcome(action=action, result=Result.DONE)


def _wanted_where_lacking(
    renewed: Sequence[Outcome], barred: Mapping[SyncerRef, str]
) -> list[tuple[Outcome, Instance]]:
    """Return the instances that the pass wants and some Eureka server lacks, with their renewals'
    outcomes."""
    wanted: list[tuple[Outcome, Instance]] = []
    for outcome in renewed:
        action = outcome.action
        if not outcome.lacking or not isinstance(action, Renew):
            continue  # nearly always
        if action.if_gone is not None and action.syncer not in barred:
            wanted.append((outcome, action.if_gone))
    return wanted


def _outcome_of_404(action: Renew) -> Outcome:
    return Outcome(
        action=action,
        result=Result.GONE,
        detail="its renewal was answered with 404; the next pass looks again",
    )


def _outcome_of_renewal(action: Renew, *, lacking: bool) -> Outcome:
    status = action.status
    if status is None and action.if_gone is not None:
        status = action.if_gone.status
    return Outcome(action=action, result=Result.DONE, status=status, lacking=lacking)


def _outcome_of_registration(action: Register | Update | Renew) -> Outcome:
    if isinstance(action, Renew):
        assert action.if_gone is not None  # only such renewals are registered again
        return Outcome(action=action, result=Result.REGISTERED_AGAIN, status=action.if_gone.status)
    status = action.instance.status
    if isinstance(action, Update):
        status = action.becomes
    return Outcome(action=action, result=Result.DONE, status=status)
