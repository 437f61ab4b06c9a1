"""Carries a plan out against Eureka: renewals, then adds and other changes, then removals.

Safe to repeat and safe to cut: between any two calls the registry is no worse than before. Each call may fail by
itself; after many failures in a row, or when the pass's time is over, the rest is not tried. Where the registry takes
batches, renewals, first registrations and cancels go in these first, and singly where a batch does not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TypeVar

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.apply.single_calls import (
    ANOTHERS,
    SingleCalls,
    outcome_of_404,
    outcome_of_registration,
    outcome_of_renewal,
)
from eurekube_sync.apply.turns import by_turns, chunks, in_turn, keys_in_turn, oldest_first, rotated, whose_action
from eurekube_sync.model.actions import Action, Cancel, Outcome, Register, Renew, Result, Update
from eurekube_sync.model.deadline import Deadline, Streak
from eurekube_sync.model.errors import RegistryError, RegistryUnavailable
from eurekube_sync.model.eureka import Instance, InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ports import Batched, Batches, Clock, Registry, Workers
from eurekube_sync.observe.eureka import Unread

A = TypeVar("A", bound=Action)
B = TypeVar("B", bound=Action)
T = TypeVar("T")


class Applier:
    """One pass's calls to Eureka. Holds no state of its own but the failures in a row."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        workers: Workers,
        renewals: RenewalLedger,
        ours: Callable[[ObservedInstance], bool] | None,
        deadline: Deadline,
    ) -> None:
        """`ours` tells whose an instance is that is registered under an id of ours; None: nothing may be changed."""
        self._registry = registry
        self._renewals = renewals
        self._clock = clock
        self._workers = workers
        self._ours = ours
        self._deadline = deadline
        self._single = SingleCalls(registry, clock, renewals, ours, deadline)
        self._reads, self._changes = Streak(), Streak()

    def read(
        self,
        keys: Iterable[InstanceKey],
        unlisted: Sequence[InstanceKey] = (),
        in_the_way_of: Mapping[InstanceKey, InstanceKey] = MappingProxyType({}),
    ) -> dict[InstanceKey, ObservedInstance | Unread | None]:
        """Reads each key uncached, in turn, beginning somewhere else each time; a failure is an `Unread`. Those that no
        list shows, `unlisted`, are read on every server: most are free, and batches tell which. Another owner's
        instance is read in the turn of the one that it is `in_the_way_of`."""
        free = frozenset(unlisted)

        def read(key: InstanceKey) -> ObservedInstance | Unread | None:
            if why := self._single.give_up(self._reads):
                return Unread(why=why, late=self._deadline.passed)
            try:
                one = self._registry.read_everywhere if key in free else self._registry.read_instance
                reading = one(key)
            except RegistryError as error:
                self._reads.note(unreachable=isinstance(error, RegistryUnavailable))
                return Unread(why=str(error))
            self._reads.note(unreachable=False)
            return reading

        def absent(chunk: Sequence[InstanceKey]) -> list[tuple[InstanceKey, ObservedInstance | Unread | None]]:
            """Which no server holds. The others are read singly."""
            batches = self._registry.batches()
            if batches is None or self._single.give_up(self._reads):
                return []
            found = batches.absent(chunk)
            return [(key, None) for key in chunk if key in found]

        def singly(key: InstanceKey) -> list[tuple[InstanceKey, ObservedInstance | Unread | None]]:
            return [(key, read(key))]

        batches = self._registry.batches()
        wanted = keys_in_turn(rotated(list(dict.fromkeys(keys)), self._clock.now()), in_the_way_of)
        if batches is None:
            return dict(zip(wanted, self._workers.each(read, wanted), strict=True))
        found = dict(
            self._beside(
                [partial(absent, some) for some in chunks([key for key in wanted if key in free], batches.size)],
                [partial(singly, key) for key in wanted if key not in free],
            )
        )
        left = [key for key in wanted if key not in found]
        return found | dict(zip(left, self._workers.each(read, left), strict=True))

    def renew(self, renewals: Sequence[Renew], listed: Iterable[ObservedInstance] = ()) -> list[Outcome]:
        """Renews each lease that is due; the others have no outcome. Begins with what the list says was renewed longest
        ago, whoever owns it, so that passes cut short never starve the same ones. A rotation alone meets the same ones
        again and again where passes take a time that fits it, and turns renew those of a small namespace in every pass
        while those of a large one expire. Goes on to the deadline whatever fails.

        Leases are counted from pass to pass: one that a slow pass renews late must not be found too fresh in the pass
        that is to renew it next, and be left for the one after.
        """
        due = self.due(action.key for action in renewals)
        if not due:
            return []
        if len(due) < len(renewals):
            wanted = frozenset(due)
            renewals = [action for action in renewals if action.key in wanted]
        return self.renew_now(oldest_first(renewals, listed, self._clock.now()))

    def due(self, keys: Iterable[InstanceKey]) -> list[InstanceKey]:
        """Which of these leases are due in this pass."""
        self._renewals.forget(self._deadline.begun)
        return self._renewals.all_due(keys, self._deadline.begun)

    def renew_now(self, renewals: Sequence[Renew]) -> list[Outcome]:
        """Renews each of these leases, due or not."""
        return self._shortened(
            renewals,
            self._renew_many,
            lambda action: self._single.guard(action, self._single.renew, action.status, None),
            None,
            as_given=True,
        )

    def change(self, actions: Sequence[Register | Update | Renew], barred: Mapping[SyncerRef, str]) -> list[Outcome]:
        """Registers and updates; a Renew here is one that met a 404 and is to be registered again. `barred` are
        syncers that must not register, with the reason: their finalizer could not be set."""

        def change(action: Register | Update | Renew) -> Outcome:
            standing = action.was if isinstance(action, Update) else None
            if action.syncer is not None and action.syncer in barred:
                result = Result.NOT_TRIED if self._deadline.passed else Result.FAILED
                return Outcome(action=action, result=result, detail=barred[action.syncer], status=standing)
            return self._single.guard(action, self._single.change, standing, self._changes)

        many: list[Register | Renew] = []
        if self._registry.batches() is not None:
            free = [action for action in actions if not (action.syncer is not None and action.syncer in barred)]
            expired = [action for action in free if isinstance(action, Renew)]
            gone = [action.key for action in expired]
            readings = self.read(gone, unlisted=gone)
            many += [action for action in free if isinstance(action, Register)]
            many += [action for action in expired if readings[action.key] is None]
        chosen = {action.key for action in many}
        rest = [action for action in actions if action.key not in chosen]
        return self._shortened(many, self._register_many, change, self._changes, rest)

    def missed(self, renewals: Sequence[Renew], done: Iterable[Outcome]) -> list[Outcome]:
        """Of what was not renewed in this pass, being not due, what a Eureka server lacks that was away and is written
        to again: an instance that came meanwhile has to be there before the one that it replaced goes there. No other
        server is asked."""
        batches = self._registry.batches()
        if batches is None or not batches.returned():
            return []
        known = {outcome.action.key for outcome in done}
        asked = {action.key: action for action in renewals if action.key not in known}
        return [outcome_of_renewal(asked[key], lacking=True) for key in sorted(batches.lacking(list(asked)))]

    def level(self, renewed: Sequence[Outcome], barred: Mapping[SyncerRef, str]) -> list[Outcome]:
        """Brings what was renewed on some Eureka servers to those that lack it, as far as this pass desires it; gives
        the outcomes that this changes.

        What a person overrode is renewed singly: its server replicates that, and a server that lacks the instance then
        gets it as it is (`PeerEurekaNode.heartbeat`). The next pass renews all again that is not done, and so finds
        whether it has come.
        """
        batches, ours = self._registry.batches(), self._ours
        lacking = [
            (outcome, outcome.action, outcome.action.if_gone)
            for outcome in renewed
            if outcome.lacking
            and isinstance(outcome.action, Renew)
            and outcome.action.if_gone is not None
            and outcome.action.syncer not in barred
        ]
        if batches is None or ours is None or not lacking:
            return []

        def level(chunk: Sequence[Instance]) -> list[Batched]:
            if self._single.give_up(self._changes):
                return [Batched.UNSETTLED] * len(chunk)
            return batches.level([self._single.dated(wanted) for wanted in chunk], ours=ours)

        def replicate(action: Renew) -> None:
            self._single.guard(action, self._single.renew, action.status, self._changes)
            self._renewals.again(action.key)

        lacking = in_turn(lacking, lambda one: whose_action(one[1]))
        chunked = chunks([wanted for _, _, wanted in lacking], batches.size)
        answers = [answer for answers in self._workers.each(level, chunked) for answer in answers]
        changed, overridden = [], []
        for (outcome, action, _), answer in zip(lacking, answers, strict=True):
            if answer is Batched.DONE:
                changed.append(replace(outcome, lacking=False))
            elif answer is Batched.CONFLICT:
                changed.append(replace(outcome, result=Result.CONFLICT, detail=ANOTHERS, lacking=False))
            elif answer is Batched.PARTLY:
                overridden.append(action)
            else:
                self._renewals.again(action.key)
        self._workers.each(replicate, overridden)
        return changed

    def remove(self, actions: Sequence[Update | Cancel], blocked: Mapping[InstanceKey, str]) -> list[Outcome]:
        """Cancels, and updates from UP to DOWN. `blocked` are keys that must stay, with the reason."""

        def remove(action: Update | Cancel) -> Outcome:
            if action.key in blocked:
                return Outcome(action=action, result=Result.HELD_BACK, detail=blocked[action.key], status=action.was)
            if isinstance(action, Cancel):
                return self._single.guard(action, self._single.cancel, action.was, self._changes)
            return self._single.guard(action, self._single.change, action.was, self._changes)

        cancels = [action for action in actions if isinstance(action, Cancel) and action.key not in blocked]
        chosen = {action.key for action in cancels}
        rest = [action for action in actions if action.key not in chosen]
        return self._shortened(cancels, self._cancel_many, remove, self._changes, rest)

    def _shortened(
        self,
        actions: Sequence[A],
        many: Callable[[Batches, Sequence[A]], list[Outcome | None]],
        single: Callable[[A | B], Outcome],
        streak: Streak | None,
        rest: Sequence[B] = (),
        *,
        as_given: bool = False,
    ) -> list[Outcome]:
        """The outcome of each: by batches, while the registry takes them, and by a single call where that is None;
        beside them the `rest`, each by its own. In turn, or in the order given."""

        def ordered(items: Sequence[T], whose: Callable[[T], tuple[str, str]]) -> Sequence[T]:
            return items if as_given else in_turn(items, whose)

        def together(chunk: Sequence[A]) -> list[tuple[A | B, Outcome | None]]:
            batches = self._registry.batches()
            if batches is None or self._single.give_up(streak):
                return [(action, None) for action in chunk]
            return list(zip(chunk, many(batches, chunk), strict=True))

        def alone(action: B) -> list[tuple[A | B, Outcome | None]]:
            return [(action, single(action))]

        batches = self._registry.batches()
        if batches is None:
            every: list[A | B] = [*actions, *rest]
            return self._workers.each(single, ordered(every, whose_action))
        ended = self._beside(
            [partial(together, chunk) for chunk in chunks(ordered(actions, whose_action), batches.size)],
            [partial(alone, action) for action in ordered(rest, whose_action)],
        )
        left = [action for action, outcome in ended if outcome is None]
        return [*(outcome for _, outcome in ended if outcome), *self._workers.each(single, left)]

    def _beside(self, batches: Sequence[Callable[[], list[T]]], others: Sequence[Callable[[], list[T]]]) -> list[T]:
        """What these calls give, made by turns: many batches do not delay a single call."""
        return [one for found in self._workers.each(lambda call: call(), by_turns(batches, others)) for one in found]

    def _renew_many(self, batches: Batches, chunk: Sequence[Renew]) -> list[Outcome | None]:
        ended: list[Outcome | None] = []
        for action, answer in zip(chunk, batches.renew([action.key for action in chunk]), strict=True):
            match answer:
                case Batched.DONE | Batched.PARTLY:
                    ended.append(self._single.renewed(action, lacking=answer is Batched.PARTLY))
                case Batched.ABSENT:
                    ended.append(outcome_of_404(action))
                case _:
                    ended.append(None)
        return ended

    def _register_many(self, batches: Batches, chunk: Sequence[Register | Renew]) -> list[Outcome | None]:
        wanted = [action.instance if isinstance(action, Register) else action.if_gone for action in chunk]
        answers = batches.register([self._single.dated(instance) for instance in wanted if instance is not None])
        ended: list[Outcome | None] = []
        for action, answer in zip(chunk, answers, strict=True):
            if answer is not Batched.DONE:
                ended.append(None)
                continue
            self._renewals.note(action.key, self._deadline.begun)
            ended.append(outcome_of_registration(action))
        return ended

    def _cancel_many(self, batches: Batches, chunk: Sequence[Cancel]) -> list[Outcome | None]:
        assert self._ours is not None  # a pass that does not know who it is plans renewals alone
        for action in chunk:
            self._renewals.drop(action.key)
        answers = batches.cancel([action.key for action in chunk], ours=self._ours)
        return [
            Outcome(action=action, result=Result.DONE) if answer is Batched.DONE else None
            for action, answer in zip(chunk, answers, strict=True)
        ]
