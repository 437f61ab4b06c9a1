"""What syncers never wait for, and never lose, because of imports in the same pass."""

from __future__ import annotations

import pytest

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.loop import Schedule, run_passes
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.errors import LockLost
from eurekube_sync.model.eureka import InstanceKey
from tests.unit.worlds.build import endpoint, piece, service, syncer
from tests.unit.worlds.imports import ImportWorld, dc, import_object

OTHERS = [dc(number, app="other") for number in range(100, 103)]


def world(number: int = 1) -> ImportWorld:
    """A syncer whose pods are not registered yet, and so many imports that have nothing yet."""
    there = ImportWorld(*(import_object(f"app-{index}") for index in range(number)))
    there.daemon = True
    there.cluster.apply(service(), piece(endpoint(1), endpoint(2)), syncer())
    there.lists(*OTHERS, *(dc(index, app=f"app-{index}") for index in range(number)))
    return there


def test_all_that_syncers_need_comes_before_the_first_call_for_imports() -> None:
    """Also their statuses, for which a rollout may wait."""
    there = world()
    there.run()
    verbs = there.wire.verbs()
    assert verbs.index("write_status") < verbs.index("list_imports")


def test_imports_take_a_part_of_the_pass_however_many_are_new() -> None:
    """The next pass, with its renewals and new pods, waits for them. It continues with the rest."""
    there = world(200)

    def slow() -> None:
        if there.wire.calls[-1].startswith(("create", "add_import", "write_import")):
            there.clock.sleep(1)

    there.wire.then = slow
    begun = there.clock.monotonic()
    report = there.run()
    assert report.imports is not None
    assert 15 < there.clock.monotonic() - begun < 60
    made = len(there.cluster.services)
    there.run()
    assert len(there.cluster.services) > made


def broken(there: ImportWorld, error: Exception) -> None:
    """Let the step of imports raise an error that nobody expects."""

    def fail() -> None:
        if there.wire.calls[-1] == "list_imports":
            raise error

    there.wire.then = fail


def test_a_bug_in_imports_ends_only_their_step(caplog: pytest.LogCaptureFixture) -> None:
    """The syncers' part is done and told, leases are renewed until the next pass, and the bug is
    in the log. After the last pass the caller gets it."""
    there = world()
    broken(there, ZeroDivisionError())
    renewed: list[int] = []
    told: list[PassReport] = []

    def between(to_renew: tuple[InstanceKey, ...], _: float) -> int:
        renewed.append(len(to_renew))
        return 0

    def tell(report: PassReport, _: ExitCode) -> None:
        told.append(report)

    with pytest.raises(ZeroDivisionError):
        run_passes(there.run, there.clock, Schedule(passes=2), tell, between)
    assert renewed == [2]
    assert [bool(report.all_statuses) for report in told] == [True, True]
    assert "ZeroDivisionError" in caplog.text


def test_a_lost_lock_ends_the_pass_in_the_step_of_imports_as_well() -> None:
    there = world()
    broken(there, LockLost("another copy has it"))
    with pytest.raises(LockLost):
        there.run()


def test_a_dry_run_raises_a_bug_at_once() -> None:
    """A person looks at its imports, and must not take them for none."""
    there = world()
    broken(there, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        there.run(dry_run=True)
