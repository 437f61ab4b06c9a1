"""What the passes of the installation say of themselves counts as well as what this machine sees."""

from __future__ import annotations

from typing import cast

import pytest
from rich.console import Console

from eurekube_sync.cli.output.answers import overview_data, overview_table
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.look import Deployed
from eurekube_sync.explain.check import of_last_pass
from eurekube_sync.explain.links import RUNS, Grade, Outcome
from eurekube_sync.explain.overview import Overview, code_of_overview
from eurekube_sync.model.kubernetes import FailedPass, GoodPass, LockName, LockRecord
from eurekube_sync.model.ports import LockStore
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.asked import Asked, broken, text
from tests.unit.worlds.build import endpoint, key, piece

LOGS = "kubectl logs -n ops -l app.kubernetes.io/name=eurekube-sync --prefix"
REFUSED = Unknown(cause=Cause.UNAVAILABLE, message="the connection was refused")


class Lease:
    """A lock of the installation, as somebody reads it."""

    def __init__(self, record: LockRecord) -> None:
        self.record = record

    def read(self) -> LockRecord | None:
        return self.record


def installed(minutes: float, *, renewed: float, failed: FailedPass | None = None) -> Asked:
    """A registered syncer, whose last good pass was `minutes` ago. The lock was renewed `renewed`
    seconds ago."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    asked.deployed = Deployed(logs=LOGS)
    good = GoodPass(
        at=asked.fake.clock.now(), holder="a", owner="prod", scope="all", result="in sync"
    )
    asked.fake.later(minutes * 60)
    asked.fake.registry.renew(key(1))
    now = asked.fake.clock.now()
    if failed is not None:
        failed = replace(failed, at=now - 2)
    record = LockRecord(holder="a", good=good, renewed=now - renewed, failed=failed)
    asked.locks.append((LockName(namespace="ops", name="prod"), cast(LockStore, Lease(record))))
    return asked


def screen(found: Overview) -> str:
    console = Console(width=1000)
    with console.capture() as capture:
        console.print(overview_table(found, ["http://eureka-1/eureka"], everything=False))
    return capture.get()


def cannot_read_eureka(asked: Asked) -> None:
    """The passes cannot read Eureka, and this machine can."""
    asked.fake.registry.unreadable = REFUSED
    asked.fake.run()
    asked.fake.registry.unreadable = None


def test_passes_that_cannot_read_eureka_are_not_in_sync() -> None:
    """All leases still live, and this machine reads Eureka: these are the minutes in which to
    act."""
    asked = installed(0.5, renewed=1)
    cannot_read_eureka(asked)
    found = asked.overview()
    (row,) = found.rows
    assert (row.reason, row.explanation.outcome) == ("RegistryUnknown", Outcome.PARTLY)
    shown = screen(found)
    assert "no pass was good for 30 s. " in shown
    assert "the connection was refused. This machine can read Eureka" in shown
    assert LOGS in shown
    assert code_of_overview(found) == ExitCode.NOT_REGISTERED
    explained = asked.why()
    assert broken(explained).reason == "RegistryUnknown"
    assert "the connection was refused" in text(explained)
    assert explained.sentence.startswith("Still registered: 1 of 1 UP")
    assert explained.fix == f"see why no pass is good: {LOGS}"


def test_a_good_pass_ends_what_the_conditions_say() -> None:
    """A daemon keeps the condition until three passes in a row could read Eureka."""
    asked = installed(0.5, renewed=1)
    cannot_read_eureka(asked)
    asked.fake.later(10)
    lease = cast(Lease, asked.locks[0][1])
    assert lease.record.good is not None
    good = replace(lease.record.good, at=asked.fake.clock.now())
    lease.record = replace(lease.record, good=good)
    found = asked.overview()
    assert (found.failing, code_of_overview(found)) == (None, ExitCode.OK)


def test_without_a_lock_the_conditions_are_believed() -> None:
    """An installation may use no lock."""
    asked = installed(0.5, renewed=1)
    asked.locks.clear()
    cannot_read_eureka(asked)
    assert asked.overview().failing is not None
    assert asked.why().outcome is Outcome.PARTLY


def test_what_the_last_pass_said_is_shown_in_its_words() -> None:
    """It names the missing right and the account, which no syncer's condition may have."""
    said = 'cannot list fleet: User "sync" cannot list resource "eurekasyncers"'
    asked = installed(14, renewed=2, failed=FailedPass(at=0, reason="Denied", result=said))
    found = asked.overview()
    assert [row.explanation.outcome for row in found.rows] == [Outcome.REGISTERED]
    assert f"no pass was good for 14 min. The last one, 2 s ago, said: {said}" in screen(found)
    assert said in overview_data(found, ())["failingPasses"]
    assert code_of_overview(found) == ExitCode.INCOMPLETE
    assert said in text(asked.why())
    asked.fake.registry.held.clear()
    assert broken(asked.why()).reason == "Expired"
    assert asked.why().fix == f"see why no pass is good: {LOGS}"
    asked.deployed = Deployed()
    assert asked.why().fix == "see the log of its passes"


def test_passes_that_failed_and_ended_have_to_run_again() -> None:
    """Their last words stay, with their age."""
    asked = installed(14, renewed=2, failed=FailedPass(at=0, reason="Denied", result="no right"))
    asked.fake.registry.held.clear()
    asked.fake.later(600)
    assert "The last one, 10 min ago, said: no right" in screen(asked.overview())
    assert asked.why().fix == RUNS


def test_a_lost_app_is_no_failure_of_the_passes() -> None:
    """The row of its syncer says it."""
    lost = FailedPass(at=0, reason="LastInstanceLost", result="app A has no UP instance")
    assert installed(14, renewed=2, failed=lost).overview().failing is None


def test_a_failure_before_the_last_good_pass_is_over() -> None:
    """An older version, which shares the lock during an upgrade, leaves it there."""
    asked = installed(0, renewed=2, failed=FailedPass(at=0, reason="Denied", result="no"))
    assert asked.overview().failing is None


def test_a_failure_of_another_version_has_another_reason() -> None:
    asked = installed(14, renewed=2, failed=FailedPass(at=0, reason="New", result="a new thing"))
    found = asked.overview()
    assert found.failing is not None
    assert "a new thing" in found.failing.sentence


@pytest.mark.parametrize(("renewed", "run"), [(2, True), (1000, False)])
def test_that_passes_run_is_doubted_only_without_a_sign_of_them(renewed: float, run: bool) -> None:
    """The lock is renewed, but no pass was good for long. An older version says no more."""
    asked = installed(14, renewed=renewed)
    asked.fake.registry.held.clear()
    found = asked.overview()
    assert (found.failing is not None) is run
    assert (RUNS in asked.why().fix) is not run
    assert ("no pass was good for 14 min. Passes run all the same" in screen(found)) is run


def test_a_machine_that_cannot_read_eureka_says_that_the_installation_can() -> None:
    asked = installed(0.5, renewed=2)
    asked.fake.registry.unreadable = REFUSED
    shown = screen(asked.overview())
    assert (
        "Eureka could not be looked at: the connection was refused. The installation can: its last "
        "good pass was 30 s ago" in shown
    )
    asked.fake.later(600)
    assert "The installation can" not in screen(asked.overview())


def test_a_lock_that_cannot_be_read_is_no_sign_of_passes() -> None:
    asked = installed(0.5, renewed=2)
    lease = cast(Lease, asked.locks[0][1])
    lease.record = replace(lease.record, good=None, renewed=None)
    found = asked.overview()
    assert found.failing is None
    assert found.last_pass.text == "last good pass: none yet"


def test_what_is_not_registered_yet_waits_for_a_good_pass() -> None:
    """The next pass fails as well."""
    asked = installed(14, renewed=2, failed=FailedPass(at=0, reason="Denied", result="no right"))
    asked.fake.cluster.slices = [piece(endpoint(1), endpoint(2))]
    found = asked.why()
    assert broken(found).reason == "NotYetRegistered"
    assert "the next good pass registers it" in broken(found).text
    assert found.fix == f"see why no pass is good: {LOGS}"


@pytest.mark.parametrize(("minutes", "grade"), [(1, Grade.WARNING), (14, Grade.FAILED)])
def test_a_check_has_the_words_of_the_passes(minutes: float, grade: Grade) -> None:
    """The rights of the person who asks say nothing of those of the installation. One failure may
    end by itself."""
    failed = FailedPass(at=0, reason="Denied", result="no right")
    asked = installed(minutes, renewed=2, failed=failed)
    finding = of_last_pass(asked.look("rating/rating"))
    assert (finding.grade, finding.fix) == (grade, f"see why no pass is good: {LOGS}")
    assert "said: no right" in finding.text


@pytest.mark.parametrize("minutes", [1, 61])
def test_a_stopped_installation_is_to_be_started(minutes: float) -> None:
    """As soon as its last good pass is old; that of a moment ago may have been another one's."""
    asked = installed(minutes, renewed=minutes * 60)
    start = "kubectl scale deployment eurekube-sync -n ops --replicas=1"
    asked.deployed = Deployed(start=start)
    said = f"The installation is stopped. To start it: {start}" in screen(asked.overview())
    assert said is (minutes > 2)
    asked.fake.registry.held.clear()
    assert asked.why().fix == f"start the installation: {start}"
