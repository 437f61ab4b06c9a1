"""The calls to Eureka for one instance each, and what became of them. Batches leave to them what they do not settle."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, assert_never

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.desired.conduct import GONE
from eurekube_sync.model.actions import Action, Cancel, Outcome, Register, Renew, Result, Update
from eurekube_sync.model.deadline import FAILURES_IN_A_ROW, Deadline, Streak
from eurekube_sync.model.errors import RegistryError, RegistryRejected, RegistryUnavailable
from eurekube_sync.model.eureka import Instance, InstanceStatus, ObservedInstance
from eurekube_sync.model.ports import Clock, Dated, Registry
from eurekube_sync.model.sources import Cause

ANOTHERS = "another owner's instance is registered under our id"

A = TypeVar("A", bound=Action)


class SingleCalls:
    """The single calls of one pass."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        renewals: RenewalLedger,
        ours: Callable[[ObservedInstance], bool] | None,
        deadline: Deadline,
    ) -> None:
        """As those of an `Applier`."""
        self._registry = registry
        self._clock = clock
        self._renewals = renewals
        self._ours = ours
        self._deadline = deadline

    def dated(self, instance: Instance, *, stored: int = 0) -> Dated:
        """With a timestamp of now, or one newer than what is `stored`."""
        return Dated(instance, max(int(self._clock.now() * 1000), stored + 1))

    def give_up(self, streak: Streak | None) -> str | None:
        """Why no further call is made; None: it is."""
        if self._deadline.passed:
            return "the pass ended first"
        broken = streak is not None and streak.broken
        return f"Eureka did not answer {FAILURES_IN_A_ROW} calls in a row" if broken else None

    def guard(
        self, action: A, call: Callable[[A], Outcome], standing: InstanceStatus | None, streak: Streak | None
    ) -> Outcome:
        """What became of the action. `standing` is what is registered if the call fails or is not made."""
        if why := self.give_up(streak):
            cause = None if self._deadline.passed else Cause.UNAVAILABLE
            return Outcome(action=action, result=Result.NOT_TRIED, detail=why, status=standing, cause=cause)
        try:
            outcome = call(action)
        except RegistryError as error:
            if streak is not None:
                streak.note(unreachable=isinstance(error, RegistryUnavailable))
            return Outcome(action=action, result=Result.FAILED, detail=str(error), status=standing, cause=error.cause)
        if streak is not None:
            streak.note(unreachable=False)
        return outcome

    def renew(self, action: Renew) -> Outcome:
        """PUT."""
        return self.renewed(action) if self._registry.renew(action.key) else outcome_of_404(action)

    def renewed(self, action: Renew, *, lacking: bool = False) -> Outcome:
        """Of a renewal that a server took: the lease has been renewed in this pass."""
        self._renewals.note(action.key, self._deadline.begun)
        return outcome_of_renewal(action, lacking=lacking)

    def change(self, action: Register | Update | Renew) -> Outcome:
        """POST; of a Renew only where an uncached read shows nothing, or ours."""
        match action:
            case Register():
                self._register(action.instance, stored=0)
                return outcome_of_registration(action)
            case Update():
                self._register(action.instance, stored=action.stored_timestamp)
                return Outcome(action=action, result=Result.DONE, status=action.becomes)
            case Renew():
                return self._register_again(action)
            case _:  # pragma: no cover
                assert_never(action)

    def _register_again(self, action: Renew) -> Outcome:
        assert action.if_gone is not None  # only such renewals are handed back
        try:
            registered = self._registry.read_everywhere(action.key)
        except RegistryError:
            if action.status is not None:
                raise
            registered = None  # the registry cannot be read at all; the 404 of the renewal is an uncached answer too
        if registered is not None and not (self._ours and self._ours(registered)):
            return Outcome(action=action, result=Result.CONFLICT, detail=ANOTHERS)
        self._register(action.if_gone, stored=registered.last_dirty_timestamp if registered else 0)
        return outcome_of_registration(action)

    def _register(self, instance: Instance, *, stored: int) -> None:
        # The renewal right after makes the lease last twice its duration (Lease.renew), and proves that it is there.
        self._registry.register(instance, dirty_timestamp=self.dated(instance, stored=stored).dirty_timestamp)
        self._renewals.note(instance.key, self._deadline.begun)
        if GONE in instance.metadata:
            self._renewals.drop(instance.key)  # its policy leaves it to expire
        if not self._registry.renew(instance.key):
            raise RegistryRejected("Eureka accepted the registration, but did not show the instance a moment later")

    def cancel(self, action: Cancel) -> Outcome:
        """DELETE."""
        assert self._ours is not None  # a pass that does not know who it is plans renewals alone
        self._renewals.drop(action.key)
        self._registry.cancel(action.key, ours=self._ours)  # a 404 is as good
        return Outcome(action=action, result=Result.DONE)


def outcome_of_404(action: Renew) -> Outcome:
    return Outcome(action=action, result=Result.GONE, detail="Eureka holds no such lease")


def outcome_of_renewal(action: Renew, *, lacking: bool) -> Outcome:
    status = action.status or (action.if_gone.status if action.if_gone else None)
    return Outcome(action=action, result=Result.DONE, status=status, lacking=lacking)


def outcome_of_registration(action: Register | Renew) -> Outcome:
    """Of a Renew: it was expired, and is registered again."""
    if isinstance(action, Register):
        return Outcome(action=action, result=Result.DONE, status=action.instance.status)
    assert action.if_gone is not None  # only such renewals are handed back
    return Outcome(action=action, result=Result.REGISTERED_AGAIN, status=action.if_gone.status)
