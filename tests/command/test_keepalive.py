"""`keepalive` as a user runs it: without a cluster."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

from eurekube_sync.controller.exit_codes import ExitCode
from tests.command.program import IDS, Ended, Program
from tests.command.test_passes import puts
from tests.waiting import wait_until

STRANGER = ("BILLING", "dc-17:billing:8080")


def keepalive(program: Program, *options: str | Path, **variables: str | None) -> Ended:
    """Run `keepalive` without a kubeconfig. It calls no cluster and cancels nothing."""
    ended = program.command("keepalive", *options, stdin="", KUBECONFIG=None, **variables)
    assert not ended.kubernetes
    assert ended.eureka["DELETE"] == 0
    assert "Traceback" not in ended.err
    return ended


def test_our_instances_are_renewed_without_a_cluster(settled: Program) -> None:
    """It makes one list and a renewal each. An instance of others is not touched."""
    ended = keepalive(settled)
    assert (ended.code, ended.out, ended.err) == (ExitCode.OK, "2 renewed\n", "")
    assert ended.eureka == Counter(GET=1, PUT=2)
    assert not [call for call in settled.playground.calls if STRANGER[1] in call.path]


def test_another_owner_or_cluster_renews_nothing_and_says_so(settled: Program) -> None:
    """A misspelt name must not look like a success."""
    for options in (("--owner", "other"), ("--cluster", "other")):
        ended = keepalive(settled, *options)
        assert (ended.code, ended.eureka) == (ExitCode.OK, Counter(GET=1))
        assert "are --owner, --cluster and --namespace right?" in ended.sentence


def test_a_dry_run_writes_nothing(settled: Program) -> None:
    """Each output form shows the plan."""
    ended = keepalive(settled, "--dry-run", "-o", "json", "--verbose")
    assert ended.eureka == Counter(GET=1)
    report = json.loads(ended.out)
    assert [(action["action"], action["id"]) for action in report["actions"]] == [
        ("renew", id_) for id_ in IDS
    ]


def test_a_daemon_renews_until_sigterm(settled: Program) -> None:
    """It looks at each interval, renews what is due, and exits with 0."""
    process = settled.start("keepalive", "--daemon", "--interval", "2s", KUBECONFIG=None)
    wait_until(lambda: puts(settled) >= 3, "none is renewed again")
    process.send_signal(signal.SIGTERM)
    ended = settled.end(process)
    assert ended.code == ExitCode.OK, ended.err


def test_an_outage_of_eureka_is_reported_as_by_run(settled: Program) -> None:
    """It has its own exit code and one sentence."""
    ended = keepalive(settled, "--eureka-url", "http://127.0.0.1:1/eureka")
    assert ended.code == ExitCode.EUREKA_UNREAD
    assert "the connection was refused" in ended.sentence


def test_reports_hold_the_headroom(settled: Program) -> None:
    """It counts our instances, those of others, and the renewals that Eureka gets. A pass each
    minute for two of three instances blocks evictions."""
    neutral = keepalive(settled, "-o", "json")
    data = json.loads(neutral.out)["selfPreservation"]
    assert (data["ours"], data["others"], data["renewalsPerMinute"], data["threshold"]) == (
        2,
        1,
        6,
        5,
    )
    assert not data["blocksEviction"]
    assert not neutral.err
    assert json.loads(settled.run("-o", "json").out)["selfPreservation"] == data


def test_passes_that_are_too_rare_for_eureka_are_reported_once(settled: Program) -> None:
    """Both commands report it in their first pass, and continue."""
    for command in ("run", "keepalive"):
        process = settled.start(command, "--passes", "2", "--interval", "60s", "-o", "json")
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["selfPreservation"]["blocksEviction"]
        process.send_signal(signal.SIGTERM)
        ended = settled.end(process)
        assert (
            ended.err.count(
                "WARNING self-preservation: with passes every 60s Eureka gets 4 renewals"
            )
            == 1
        )
        assert "Use --interval 30s or less." in ended.err
