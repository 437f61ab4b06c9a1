"""How actions reach Eureka, and what their outcomes tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from eurekube_sync.actions import Cancel, Grounds, Register, Renew, Update
from eurekube_sync.apply import Applier, Deadline, failed_adds
from eurekube_sync.errors import RegistryUnavailable
from eurekube_sync.model import InstanceStatus
from eurekube_sync.outcome import Outcome, Result
from eurekube_sync.renewals import RenewalLedger
from eurekube_sync.workers import InTurn

from .build import DOWN, OWNERSHIP, REF, UP, instance, key, stored
from .fakes import Clock, Registry, Wire

DOWN_AGAIN = RegistryUnavailable("Eureka did not answer")


@dataclass
class Bench:
    """An applier with its registry."""

    clock: Clock = field(default_factory=Clock)
    wire: Wire = field(default_factory=Wire)
    seconds: float = 120

    def __post_init__(self) -> None:
        self.registry = Registry(self.wire, self.clock)
        self.applier = Applier(
            self.registry,
            self.clock,
            InTurn(),
            RenewalLedger(period=0, slack=0),
            OWNERSHIP,
            Deadline(self.clock, self.seconds),
        )

    def status(self, number: int = 1) -> InstanceStatus:
        return self.registry.held[key(number)].status


@pytest.fixture
def bench() -> Bench:
    return Bench()


def renew(number: int = 1, *, heal: bool = False, status: InstanceStatus | None = UP) -> Renew:
    return Renew(key=key(number), syncer=REF, why="", heal=instance(number) if heal else None, status=status)


def register(number: int = 1) -> Register:
    return Register(instance=instance(number), syncer=REF, why="")


def update(number: int = 1, *, was: InstanceStatus = UP, becomes: InstanceStatus = UP, timestamp: int = 1) -> Update:
    wanted = instance(number, status=becomes)
    return Update(instance=wanted, syncer=REF, why="", changes=(), was=was, stored_timestamp=timestamp)


def cancel(number: int = 1, *, was: InstanceStatus | None = UP) -> Cancel:
    return Cancel(key=key(number), syncer=REF, why="", grounds=Grounds.ABSENCE, was=was, vip_address="rating")


def only(outcomes: Sequence[Outcome]) -> Outcome:
    (outcome,) = outcomes
    return outcome


def test_an_update_whose_finalizer_failed_leaves_the_instance_standing(bench: Bench) -> None:
    """A barred syncer changes nothing, so what stood still stands."""
    bench.registry.put(stored(instance(), status=DOWN))
    outcome = only(bench.applier.change([update(was=DOWN)], {REF: "no finalizer"}))
    assert (outcome.result, outcome.status, outcome.detail) == (Result.FAILED, DOWN, "no finalizer")


@pytest.mark.parametrize("barred", [{}, {REF: "no finalizer"}])
def test_a_lapsed_instance_that_could_not_be_healed_does_not_stand(bench: Bench, barred: dict[object, str]) -> None:
    """The renewal met a 404: whatever the list showed, nothing stands there now."""
    bench.registry.refuse[key()] = DOWN_AGAIN
    outcome = only(bench.applier.change([renew(heal=True)], {REF: "no"} if barred else {}))
    assert (outcome.result, outcome.status) == (Result.FAILED, None)


def test_nothing_goes_while_a_lapsed_instance_could_not_be_healed() -> None:
    """An instance whose lease is gone is no UP instance that is left, and its failed return is a failed add."""
    gone = Outcome(action=renew(1, heal=True), result=Result.GONE)
    unhealed = Outcome(action=renew(1, heal=True), result=Result.FAILED)
    standing = {key(n): stored(instance(n)) for n in (1, 2)}
    assert set(failed_adds([cancel(2)], [gone, unhealed], standing)) == {key(2)}
