"""`keepalive` as a user meets it: without a cluster, with a snapshot, and with whatever is wrong with that."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eurekube_sync.demo import story
from eurekube_sync.embedded.http import Request
from eurekube_sync.exit_codes import ExitCode
from tests.command.program import IDS, Ended, Program
from tests.command.test_passes import puts
from tests.waiting import wait_until

STRANGER = ("BILLING", "dc-17:billing:8080")


def keepalive(program: Program, *options: str | Path, **variables: str | None) -> Ended:
    """One `keepalive`, without a kubeconfig; it calls no cluster and cancels nothing."""
    ended = program.command("keepalive", *options, stdin="", KUBECONFIG=None, **variables)
    assert not ended.kubernetes
    assert ended.eureka["DELETE"] == 0
    assert "Traceback" not in ended.err
    return ended


def forget(program: Program, *ids: str) -> None:
    """Eureka loses these, and the list shows it."""
    for id_ in ids:
        program.playground.eureka.handle(Request(method="DELETE", path=f"/eureka/apps/RATING/{id_}"))
    time.sleep(0.1)


@pytest.fixture
def snapshot(program: Program) -> Path:
    """Both instances were registered, and stand in a snapshot."""
    path = program.folder / "snapshot.json"
    assert program.run("--snapshot", path).code == ExitCode.OK
    time.sleep(0.1)
    return path


def changed(path: Path, **changes: Any) -> None:
    """The snapshot with other values."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_what_is_ours_is_renewed_without_a_cluster(settled: Program) -> None:
    """One list and a renewal each; the stranger is not touched."""
    ended = keepalive(settled)
    assert (ended.code, ended.out, ended.err) == (ExitCode.OK, "in sync, 2 renewed\n", "")
    assert ended.eureka == Counter(GET=1, PUT=2)
    assert not [call for call in settled.playground.calls if STRANGER[1] in call.path]


def test_another_owner_or_cluster_renews_nothing_and_says_so(settled: Program) -> None:
    """A misspelt name is no success that nobody notices."""
    for options in (("--owner", "other"), ("--cluster", "other")):
        ended = keepalive(settled, *options)
        assert (ended.code, ended.eureka) == (ExitCode.OK, Counter(GET=1))
        assert "is --owner right?" in ended.sentence


def test_a_dry_run_writes_nothing(settled: Program) -> None:
    """The plan is shown in each form."""
    ended = keepalive(settled, "--dry-run", "-o", "json")
    assert ended.eureka == Counter(GET=1)
    report = json.loads(ended.out)
    assert [(action["action"], action["id"]) for action in report["actions"]] == [("renew", id_) for id_ in IDS]


def test_a_daemon_renews_until_sigterm(settled: Program) -> None:
    """It looks each interval, renews when it is due, and ends well."""
    process = settled.start("keepalive", "--daemon", "--interval", "1s", "--renewal-interval", "2s", KUBECONFIG=None)
    wait_until(lambda: puts(settled) >= 4, "both are not renewed twice")
    process.send_signal(signal.SIGTERM)
    ended = settled.end(process)
    assert ended.code == ExitCode.OK, ended.err
    assert ended.err.count("hides failures of others") == 1, "renewed every 2s: said once, not in each pass"


def test_the_registry_is_told_as_by_run(settled: Program) -> None:
    """An outage of Eureka is its own exit code, in one sentence."""
    ended = keepalive(settled, "--eureka-url", "http://127.0.0.1:1/eureka")
    assert ended.code == ExitCode.REGISTRY_UNAVAILABLE
    assert "the connection was refused" in ended.sentence


def test_reports_hold_the_headroom(settled: Program) -> None:
    """Ours, others and what our renewals do; every 60 s two of three instances block evictions."""
    neutral = keepalive(settled, "-o", "json")
    data = json.loads(neutral.out)["selfPreservation"]
    assert (data["ours"], data["others"], data["renewalsPerMinute"], data["threshold"]) == (2, 1, 6, 5)
    assert (data["blocksEviction"], data["masksFailures"], data["stopProtects"]) == (False, False, True)
    assert not neutral.err
    rare = keepalive(settled, "--renewal-interval", "60s", "-o", "json")
    assert json.loads(rare.out)["selfPreservation"]["blocksEviction"]
    assert "WARNING self-preservation" in rare.err
    assert "nobody is ever evicted. Renew every 30s." in rare.err
    assert json.loads(settled.run("-o", "json").out)["selfPreservation"] == data


def test_several_passes_say_once_that_we_would_be_missed(settled: Program) -> None:
    """We hold two of three instances: said at INFO by whoever goes on, and not by each single pass."""
    for command in ("run", "keepalive"):
        ended = settled.command(command, "--passes", "2", "--interval", "1s", stdin="")
        assert ended.err.count("INFO self-preservation: we hold 67% of Eureka's 3 instances") == 1
    assert not settled.run().err


def test_what_eureka_lost_is_brought_back(program: Program, snapshot: Path) -> None:
    """Registered and renewed; then all is in sync; the stranger stands as before."""
    forget(program, IDS[0])
    ended = keepalive(program, "--snapshot", snapshot)
    assert ended.code == ExitCode.OK, ended.out
    assert ended.eureka == Counter(GET=2, POST=1, PUT=2)
    assert ended.out.splitlines()[-1] == "1 registered, 1 renewed"
    assert [program.status(id_) for id_ in IDS] == ["UP", "UP"]
    assert program.status(STRANGER[1], STRANGER[0]) == "UP"
    time.sleep(0.1)
    assert keepalive(program, "--snapshot", snapshot).out == "in sync, 2 renewed\n"
    time.sleep(0.1)
    assert program.run().out == "in sync, 2 renewed\n", "and `run` finds what it would have registered itself"


def test_without_a_snapshot_nothing_comes_back(program: Program, snapshot: Path) -> None:
    """It is said that nothing bears our name."""
    forget(program, *IDS)
    ended = keepalive(program)
    assert (ended.code, ended.eureka) == (ExitCode.OK, Counter(GET=1))
    assert "is --owner right?" in ended.sentence


def test_what_run_withdrew_does_not_come_back(program: Program, snapshot: Path) -> None:
    """A pod is deleted, `run` cancels its instance, and keepalive leaves it so."""
    program.playground.delete("Pod", "rating", "rating-1", grace_seconds=0)
    assert program.run("--snapshot", snapshot, "--no-fail-on-held").code == ExitCode.OK
    assert program.status(IDS[0]) is None
    time.sleep(0.1)
    ended = keepalive(program, "--snapshot", snapshot)
    assert (ended.code, ended.eureka) == (ExitCode.OK, Counter(GET=1, PUT=1))


def test_the_snapshot_is_private_and_holds_no_credentials(program: Program) -> None:
    """Mode 0600; neither login nor token is in it."""
    path = program.folder / "snapshot.json"
    program.playground.eureka.credentials = ("joe", "s3cr3t")
    options = ("--eureka-username", "joe", "--snapshot", path)
    assert program.run(*options, EUREKUBE_SYNC_EUREKA_PASSWORD="s3cr3t").code == ExitCode.OK
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    assert IDS[0] in text
    for secret in ("joe", "s3cr3t", "token"):
        assert secret not in text


def a_folder(path: Path) -> None:
    """In the snapshot's place."""
    path.unlink()
    path.mkdir()


def a_pipe(path: Path) -> None:
    """In the snapshot's place; reading it would wait for ever."""
    path.unlink()
    os.mkfifo(path)


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: path.unlink(), "cannot be read: No such file or directory"),
    "folder": (a_folder, "is no regular file"),
    "pipe": (a_pipe, "is no regular file"),
    "empty": (lambda path: path.write_text(""), "is cut"),
    "cut": (lambda path: path.write_bytes(path.read_bytes()[:-30]), "is cut"),
    "another file": (lambda path: path.write_text('{"kind": "Pod"}'), "is no snapshot of this program"),
    "version": (lambda path: changed(path, version=2), "version 2, and this program reads version 1"),
    "damaged": (lambda path: changed(path, instances=[{}]), "is a damaged snapshot"),
    "owner": (lambda path: changed(path, owner="other", instances=[]), f"is of owner other, and this is {story.OWNER}"),
    "old": (lambda path: changed(path, time="2020-01-01T00:00:00Z"), "hours old, and --snapshot-max-age is 24 hours"),
    "future": (lambda path: changed(path, time="2999-01-01T00:00:00Z"), "yet to come"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_snapshot_brings_nothing_back_and_stops_no_renewal(program: Program, snapshot: Path, name: str) -> None:
    """One sentence that names the file, exit 3; what stands is renewed."""
    spoil, words = WRONG[name]
    spoil(snapshot)
    forget(program, IDS[0])
    ended = keepalive(program, "--snapshot", snapshot)
    assert ended.code == ExitCode.CONFIGURATION, ended.out
    assert words in ended.sentence
    assert ended.sentence.endswith("What stands was renewed, nothing was brought back.")
    assert ended.eureka == Counter(GET=1, PUT=1)


def test_a_snapshot_of_another_cluster_is_refused(program: Program, snapshot: Path) -> None:
    """--cluster says which one is meant, and the snapshot is of another."""
    forget(program, IDS[0])
    ended = keepalive(program, "--snapshot", snapshot, "--cluster", "other")
    assert ended.code == ExitCode.CONFIGURATION
    assert "and --cluster is other" in ended.sentence
    assert ended.eureka == Counter(GET=1)


def test_run_goes_on_when_no_snapshot_can_be_written(settled: Program) -> None:
    """A warning on stderr; report and exit code are as without it."""
    for path, words in (("missing/snapshot.json", "No such file"), ("/dev/null", "is no regular file")):
        ended = settled.run("--snapshot", path)
        assert (ended.code, ended.out) == (ExitCode.OK, "in sync, 2 renewed\n")
        assert "WARNING no snapshot was written" in ended.err
        assert words in ended.err


def test_a_second_installation_does_not_write_over_the_first(program: Program, snapshot: Path) -> None:
    """Another owner with the same file is told so, and the file stays."""
    text = snapshot.read_text()
    ended = program.run("--owner", "second", "--snapshot", snapshot, "-n", "other")
    assert ended.code == ExitCode.OK
    assert f"another installation (owner {story.OWNER}, cluster " in ended.err
    assert snapshot.read_text() == text


def test_a_dry_run_writes_no_snapshot(program: Program) -> None:
    """It writes nothing anywhere."""
    path = program.folder / "snapshot.json"
    assert program.run("--dry-run", "--snapshot", path).code == ExitCode.OK
    assert not path.exists()
