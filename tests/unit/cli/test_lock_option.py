"""Which lock a run takes, by its option, owner, scope and pod, and how a run with a lock ends."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.kubernetes.kubeconfig import own_namespace
from eurekube_sync.adapters.threads import repeating
from eurekube_sync.cli.connect import Installation, lock_namespace
from eurekube_sync.cli.monitoring.metrics import Monitor
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.scope import LockChoice, lock_name, lock_option
from eurekube_sync.cli.process import under_lock
from eurekube_sync.cli.values import OWNER
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.lock import Lock
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.errors import ConfigurationError, LockLost
from eurekube_sync.model.kubernetes import LockName, LockRecord
from tests.unit.worlds.lock import NAME, Store


def read(text: str) -> LockChoice:
    """Return the value that the command line reads."""
    found: list[LockChoice] = []

    @click.command(cls=Command)
    @lock_option
    def command(lock: LockChoice) -> None:
        found.append(lock)

    command.main(["--lock", text], standalone_mode=False)
    return found[0]


def test_the_option() -> None:
    """It is auto, off or a name."""
    assert (read("auto"), read("off")) == ("auto", "off")
    assert read("platform/eureka.lock") == LockName(namespace="platform", name="eureka.lock")


NONE = [
    "",
    "on",
    "name",
    "a/b/c",
    "A/b",
    "a/",
    "/b",
    "a/-b",
    "a/b c",
    "a/b..c",
    "a/b.-c",
    "a/b.",
    "a.b/c",
]


@pytest.mark.parametrize("text", [*NONE, f"a/{'b' * 201}", f"{'a' * 64}/b"])
def test_a_name_that_is_none_is_refused(text: str) -> None:
    """The error lists the valid forms."""
    with pytest.raises(
        click.BadParameter, match="is not a lock; write auto, off or NAMESPACE/NAME"
    ):
        read(text)


@pytest.mark.parametrize(
    ("choice", "scope", "namespace", "expected"),
    [
        ("off", Scope(), "sync", None),
        ("auto", Scope(), None, None),
        ("auto", Scope(), "sync", "sync/eurekube-sync-shop"),
        ("auto", Scope(allowed=frozenset({("a", "b")})), "sync", "sync/eurekube-sync-shop"),
        (LockName(namespace="a", name="b"), Scope(), None, "a/b"),
    ],
)
def test_the_name(
    choice: LockChoice, scope: Scope, namespace: str | None, expected: str | None
) -> None:
    """Each installation has its own lock."""
    found = lock_name(choice, "shop", scope, namespace)
    assert (str(found) if found else None) == expected


def test_installations_of_other_scopes_have_other_locks() -> None:
    """They share an owner, but do different work."""
    scopes = [Scope(), Scope(syncer_class="edge"), Scope(namespaces=frozenset({"a"}))]
    names = {str(lock_name("auto", "shop", scope, "sync")) for scope in scopes}
    assert len(names) == len(scopes)


def test_no_owner_can_be_named_like_another_ones_part() -> None:
    """The name of an owner may end like the suffix of another scope."""
    other_class = Scope(syncer_class="edge")
    name = str(lock_name("auto", "shop", other_class, "sync"))
    _, _, part = name.partition("shop.")
    assert str(lock_name("auto", f"shop-{part}", Scope(), "sync")) != name
    with pytest.raises(click.BadParameter):
        OWNER.convert(f"shop.{part}", None, None)


def test_the_namespace_of_a_pod(tmp_path: Path) -> None:
    """The service account's mount has it. Outside a cluster, or with a kubeconfig, there is
    none."""
    file = tmp_path / "namespace"
    file.write_text("sync\n")
    inside = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}
    assert own_namespace(inside, file=file) == "sync"
    assert own_namespace({}, file=file) is None
    assert own_namespace(inside, kubeconfig="x", file=file) is None
    assert own_namespace(inside, context="x", file=file) is None
    with pytest.raises(ConfigurationError, match="give --lock NAMESPACE/NAME, or --lock off"):
        own_namespace(inside, file=tmp_path / "none")


# --- A run ----------------------------------------------------------------------------------------


def test_a_lock_that_names_its_namespace_needs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod's own namespace may be unreadable."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    assert (
        lock_namespace(
            Installation(eureka_url="http://a/eureka", lock=LockName(namespace="shop", name="sync"))
        )
        == "shop"
    )
    with pytest.raises(ConfigurationError, match="give --lock NAMESPACE/NAME"):
        lock_namespace(Installation(eureka_url="http://a/eureka", lock="auto"))


class NoWait(SystemClock):
    """Real time, but a wait takes none."""

    def __init__(self) -> None:
        super().__init__()
        self.waited = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.waited

    def sleep(self, seconds: float) -> None:
        self.waited += seconds


@pytest.fixture
def clock() -> NoWait:
    return NoWait()


def unwatched(clock: NoWait) -> Monitor:
    """A monitor that nothing reads."""
    return Monitor(clock, "shop", "all", allowed=100)


def works(code: ExitCode = ExitCode.OK, *, lost: int = 0) -> Callable[[], ExitCode]:
    """Work that loses the lock this many times before it ends."""
    left = [lost]

    def work() -> ExitCode:
        if left[0]:
            left[0] -= 1
            raise LockLost("b holds the lock")
        return code

    return work


def test_a_run_has_the_lock_and_gives_it_back(clock: NoWait) -> None:
    """The exit code is that of the work."""
    store = Store()
    lock = Lock(store, clock, NAME, "a")
    seen = []

    def work() -> ExitCode:
        seen.append(lock.held)
        return ExitCode.REMOVAL_HELD

    assert under_lock(lock, clock, unwatched(clock), work, daemon=False) is ExitCode.REMOVAL_HELD
    assert seen == [True]
    assert store.record is not None
    assert store.record.holder == ""


def test_a_run_beside_one_that_renews_does_nothing(
    clock: NoWait, caplog: pytest.LogCaptureFixture
) -> None:
    """A log line names the holder of the lock."""
    caplog.set_level(logging.INFO)
    store = Store()
    busy = Lock(store, clock, NAME, "b")
    busy.attempt()
    store.trouble = lambda: busy.attempt() if store.calls[-1] == "read" else None

    def work() -> ExitCode:
        raise AssertionError("it works")

    assert (
        under_lock(Lock(store, clock, NAME, "a"), clock, unwatched(clock), work, daemon=False)
        is ExitCode.OK
    )
    assert caplog.messages[-1] == "skipped: lock eurekube-sync/shop is held by b"


def test_a_daemon_that_lost_the_lock_begins_anew(
    clock: NoWait, caplog: pytest.LogCaptureFixture
) -> None:
    """A log line gives the reason."""
    store = Store()
    assert (
        under_lock(
            Lock(store, clock, NAME, "a"), clock, unwatched(clock), works(lost=2), daemon=True
        )
        is ExitCode.OK
    )
    assert caplog.messages == ["b holds the lock", "b holds the lock"]


def test_a_run_that_lost_the_lock_ends(clock: NoWait) -> None:
    """The error has its own exit code."""
    with pytest.raises(LockLost):
        under_lock(
            Lock(Store(), clock, NAME, "a"), clock, unwatched(clock), works(lost=1), daemon=False
        )


@pytest.mark.parametrize(("daemon", "code"), [(True, ExitCode.OK), (False, ExitCode.INCOMPLETE)])
def test_a_run_that_waits_can_be_stopped(clock: NoWait, daemon: bool, code: ExitCode) -> None:
    """A daemon ends as requested. Another run has not made its passes."""
    store = Store(record=LockRecord(holder="b", version="1"))
    clock.stop()
    assert (
        under_lock(Lock(store, clock, NAME, "a"), clock, unwatched(clock), works(), daemon=daemon)
        is code
    )


def test_the_lock_of_a_loop_that_stopped_is_not_renewed(
    clock: NoWait, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that hangs must not prevent another from working."""
    monkeypatch.setattr("eurekube_sync.cli.process.EVERY", 0.001)
    store, watch = Store(), unwatched(clock)
    renewed = threading.Event()
    store.trouble = lambda: renewed.set() if store.calls[-1] == "replace" else None

    def work() -> ExitCode:
        assert renewed.wait(30)
        clock.waited += 101  # the loop does not turn meanwhile
        time.sleep(0.05)
        renewed.clear()
        assert not renewed.wait(0.1)
        watch.turned()
        assert renewed.wait(30)
        return ExitCode.OK

    assert under_lock(Lock(store, clock, NAME, "a"), clock, watch, work, daemon=True) is ExitCode.OK


def test_a_call_is_repeated_whatever_it_raises(caplog: pytest.LogCaptureFixture) -> None:
    """An unexpected error must not end the renewals of the lock."""
    enough = threading.Event()
    calls: list[int] = []

    def call() -> None:
        calls.append(1)
        if len(calls) == 3:
            enough.set()
        raise RuntimeError("odd")

    with repeating(call, 0.001):
        assert enough.wait(30)
    made = len(calls)
    assert "unexpected error; retrying" in caplog.text
    assert not enough.wait(0.05) or len(calls) == made
