"""Passes: dry runs, several passes, daemons, signals, and the brake."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from eurekube_sync.cli.commands.demo import SYNCER
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.embedded.http import Handler, Request, Response
from tests.command.program import IDS, LONG_SECONDS, SYNCERS, Program, rating
from tests.waiting import wait_until


def first_line(process: subprocess.Popen[str]) -> str:
    """Wait for the report of the first pass."""
    assert process.stdout is not None
    return process.stdout.readline()


def puts(program: Program) -> int:
    """The number of renewals so far."""
    return sum(call.method == "PUT" for call in program.playground.calls)


def test_a_dry_run_writes_nothing_and_all_its_forms_agree(program: Program) -> None:
    """Both servers get only GETs. Table, JSON and YAML show the same plan."""
    revision = program.playground.kubernetes.revision
    table, json_, yaml_ = (
        program.run("--dry-run", "-o", form) for form in ("table", "json", "yaml")
    )
    for ended in (table, json_, yaml_):
        assert ended.code == ExitCode.OK
        assert (set(ended.eureka), set(ended.kubernetes)) == ({"GET"}, {"GET"})
    plan: dict[str, Any] = json.loads(json_.out)
    same: dict[str, Any] = yaml.safe_load(yaml_.out)
    assert plan.pop("at") <= same.pop("at")
    assert plan == same
    assert (plan["dryRun"], plan["exitCode"], plan["planId"]) == (True, 0, None)
    assert [(a["action"], a["app"], a["id"]) for a in plan["actions"]] == [
        ("register", "RATING", i) for i in IDS
    ]
    lines = table.out.splitlines()
    assert lines[-1] == plan["summary"] == "dry run: 2 to register, 0 to renew"
    assert [line.split()[-8:] for line in lines[1:3]] == [
        ["+", a["id"], a["status"], a["syncer"], *a["why"].split()] for a in plan["actions"]
    ]
    assert program.playground.kubernetes.revision == revision
    assert program.status() is None


def test_several_passes_are_lines_of_json_and_an_outage_is_one_of_the_log(settled: Program) -> None:
    """A log pipeline gets an object a line, without mere renewals. The failure has a time and a
    level."""
    good = settled.run("--passes", "2", "--interval", "1s", "-o", "json", "--log-format", "json")
    bad = settled.run(
        "--passes",
        "2",
        "--interval",
        "1s",
        "--log-format",
        "json",
        "--eureka-url",
        "http://127.0.0.1:1/eureka",
    )
    reports = [json.loads(line) for line in good.out.splitlines()]
    assert [(one["exitCode"], one["actions"], one["summary"][:7]) for one in reports] == [
        (0, [], "in sync")
    ] * 2
    warnings = [
        entry for entry in map(json.loads, bad.err.splitlines()) if entry["level"] == "warning"
    ]
    assert len(warnings) == 1
    assert (
        "the connection was refused; check that Eureka runs at this address"
        in warnings[0]["message"]
    )
    assert warnings[0]["time"].endswith("Z")


def test_the_detailed_exit_code_says_whether_there_are_changes(program: Program) -> None:
    """It is 5 while there are changes, and 0 when all is in sync. Without the option a dry run
    gives 0 in both cases."""
    assert program.run("--dry-run", "--detailed-exitcode").code == ExitCode.CHANGES_PENDING
    assert program.run("--dry-run").code == ExitCode.OK
    assert program.run("--detailed-exitcode").code == ExitCode.USAGE, "it speaks of dry runs only"
    assert program.run().code == ExitCode.OK
    assert program.run("--dry-run", "--detailed-exitcode").code == ExitCode.OK


def test_in_sync_a_run_sends_one_list_and_renewals(program: Program) -> None:
    """The second run writes nothing except renewals."""
    assert program.run().code == ExitCode.OK
    time.sleep(0.1)
    ended = program.run()
    assert (ended.code, ended.eureka, set(ended.kubernetes)) == (
        ExitCode.OK,
        {"GET": 1, "PUT": 2},
        {"GET"},
    )
    assert ended.out == "in sync, 2 renewed\n"
    assert not ended.err


def test_a_namespace_that_is_not_ours_is_left_alone(program: Program) -> None:
    """With --namespace, no other namespace is read, and no other instance is renewed or removed."""
    assert program.run().code == ExitCode.OK
    ended = program.run("-n", "other")
    assert ended.eureka == {"GET": 1}, ended.out
    assert [program.status(id_) for id_ in IDS] == ["UP", "UP"]


def test_a_deleted_syncer_leaves_with_its_instances(program: Program) -> None:
    """A syncer that kubectl deleted waits for Eureka's cache. Then it is gone, and the instance of
    others stays.

    A pass that takes longer than the interval is followed at once, so two passes may be too soon
    for the cache.
    """
    assert program.run().code == ExitCode.OK
    program.playground.delete("EurekaSyncer", "rating", "rating")
    ended = program.run("--passes", "4", "--interval", "1s", "--registry-cache", "500ms")
    assert ended.code == ExitCode.OK, ended.out
    assert "2 cancelled" in ended.out
    assert program.playground.kubernetes.call("GET", f"{SYNCERS}/rating")[0] == 404
    assert program.status("dc-17:billing:8080", "BILLING") == "UP"


def test_several_passes_report_each_and_end(program: Program) -> None:
    """Two passes are a second apart, with a report each. The exit code is the last pass's."""
    started = time.monotonic()
    ended = program.run("--passes", "2", "--interval", "1s", "-o", "yaml")
    assert ended.code == ExitCode.OK
    assert time.monotonic() - started > 1
    first, second = (report["summary"] for report in yaml.safe_load_all(ended.out))
    assert first.startswith("2 registered")
    assert second.startswith("in sync")


def test_a_failed_pass_does_not_skip_the_next(program: Program) -> None:
    """The first pass meets an outage. The second one works, so the exit code is 0."""
    lists: list[None] = []

    def down_once(request: Request, registry: Handler) -> Response:
        if request.method == "GET" and request.path == "/eureka/apps":
            lists.append(None)
            if len(lists) == 1:
                return Response(status=500)
        return registry(request)

    with program.eureka_behind(down_once):
        ended = program.run("--passes", "2", "--interval", "1s")
    assert ended.code == ExitCode.OK, ended.out
    assert "not readable" in ended.out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_daemon_ends_at_once_and_well(settled: Program, number: signal.Signals) -> None:
    """After SIGTERM or Ctrl-C between two passes it exits with 0, without waiting for the next
    pass."""
    process = settled.start("run", "--daemon", "--interval", "140s")
    assert first_line(process) == "in sync, 2 renewed\n"
    begun = time.monotonic()
    process.send_signal(number)
    ended = settled.end(process)
    assert ended.code == ExitCode.OK, ended.err
    assert time.monotonic() - begun < 70
    assert ended.out == ""
    assert f"stopping: {number.name}" in ended.err


def test_sigterm_in_a_slow_pass_ends_between_two_calls(tmp_path: Path) -> None:
    """Calls that have begun are finished, and no new one begins. The report says how much is
    left."""

    def slow(request: Request, registry: Handler) -> Response:
        time.sleep(0.6 if request.method == "POST" else 0)
        return registry(request)

    with (
        rating(tmp_path, pods=100) as program,
        program.eureka_behind(slow),
    ):  # registrations that take 4 s
        process = program.start("run")
        wait_until(
            lambda: any(
                call.method == "POST" for call in program.playground.calls if "eureka" in call.path
            ),
            "nothing is registered",
        )
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        heard = iter(process.stderr.readline, "")
        assert any("stopping: SIGTERM" in line for line in heard)
        begun = sum(call.method == "POST" for call in program.playground.calls)
        ended = program.end(process)
    assert ended.code == ExitCode.INCOMPLETE, ended.out
    assert 1 <= ended.eureka["POST"] < 100
    assert ended.eureka["POST"] <= begun + 16, "of so many at a time"
    assert any("cut short by its deadline or a signal" in sentence for sentence in ended.sentences)
    assert "not tried" in ended.out.splitlines()[-1]
    assert "Traceback" not in ended.err


def test_passes_that_a_signal_ends_early_say_so(settled: Program) -> None:
    """A signal before the last of --passes is no success."""
    process = settled.start("run", "--passes", "3", "--interval", "60s")
    first_line(process)
    process.send_signal(signal.SIGTERM)
    assert settled.end(process).code == ExitCode.INCOMPLETE


def test_a_second_interrupt_ends_the_process_at_once(settled: Program) -> None:
    """A person who presses Ctrl-C twice does not wait for the pass."""

    over = threading.Event()

    def slow(request: Request, registry: Handler) -> Response:
        over.wait(LONG_SECONDS)
        return registry(request)

    with settled.eureka_behind(slow):
        process = settled.start("run", "--daemon", "--call-timeout", f"{LONG_SECONDS:g}s")
        try:
            wait_until(
                lambda: any("eureka" in call.path for call in settled.playground.calls),
                "nothing is listed",
            )
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            assert "stopping: SIGINT" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            ended = settled.end(process)
        finally:
            over.set()
    assert ended.code == ExitCode.INTERRUPTED
    assert "Traceback" not in ended.err


@pytest.fixture(scope="module")
def outage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """Of 14 pods 12 became unready at once, so the brake holds."""
    with rating(tmp_path_factory.mktemp("outage"), pods=14) as program:
        assert program.run().code == ExitCode.OK
        for number in range(3, 15):
            program.playground.set_ready("rating", f"rating-{number}", ready=False)
        time.sleep(0.1)
        yield program


HELD = "held: 12 removals wait"


def test_a_pass_with_held_removals_keeps_and_renews_all(outage: Program) -> None:
    """A single pass with held removals exits with 31. It renews everything, and names the plan
    id."""
    ended = outage.run()
    assert ended.code == ExitCode.REMOVAL_HELD
    assert HELD in ended.sentence
    assert (ended.eureka["PUT"], ended.eureka["POST"], ended.eureka["DELETE"]) == (14, 0, 0)
    assert outage.conditions("rating")["RemovalHeld"][0] == "True"


def test_several_passes_do_not_fail_on_held_removals_unless_asked(outage: Program) -> None:
    """With --passes 2 the exit code is 0, and 31 with --fail-on-held. A single pass gives 0 with
    --no-fail-on-held."""
    two = ("--passes", "2", "--interval", "1s")
    assert outage.run(*two).code == ExitCode.OK
    assert outage.run(*two, "--fail-on-held").code == ExitCode.REMOVAL_HELD
    assert outage.run("--no-fail-on-held").code == ExitCode.OK


def test_only_the_right_approval_releases(outage: Program) -> None:
    """A wrong plan id releases nothing. The id of the report does, and a dry run with it shows what
    would be done."""
    plan = json.loads(outage.run("--dry-run", "-o", "json").out)
    assert [hold["count"] for hold in plan["holds"]] == [len(plan["held"])] == [12]
    assert plan["planId"] in plan["messages"][0]
    wrong = outage.run("--approve", "0123456789ab")
    assert (wrong.code, wrong.eureka["POST"]) == (ExitCode.REMOVAL_HELD, 0)
    dry = outage.run("--dry-run", "--detailed-exitcode", "--approve", plan["planId"])
    assert (dry.code, set(dry.eureka)) == (ExitCode.CHANGES_PENDING, {"GET"})
    done = outage.run("--passes", "2", "--interval", "1s", "--approve", plan["planId"])
    assert done.code == ExitCode.OK, "spent in the first pass, and not asked for again"
    assert "12 turned DOWN" in done.out


def test_an_approval_beside_a_daemon_is_found_done_by_it(tmp_path: Path) -> None:
    """The daemon holds removals, and a second process applies the approval. The daemon's next pass
    has nothing to do."""
    with rating(tmp_path, pods=14) as program:
        assert program.run().code == ExitCode.OK
        process = program.start("run", "--daemon", "--interval", "1s", "-n", "rating")
        assert process.stdout is not None
        assert process.stdout.readline() == "in sync, 14 renewed\n"
        for number in range(3, 15):
            program.playground.set_ready("rating", f"rating-{number}", ready=False)
        told = next(
            line for line in iter(process.stdout.readline, "") if "held: 12 removals wait" in line
        )
        command = told.rstrip().rsplit("even while a daemon runs: eurekube-sync ", 1)[1].split()
        assert command[:3] == ["run", "-n", "rating"]
        approved = program.command(*command)
        assert (approved.code, "12 turned DOWN" in approved.out) == (ExitCode.OK, True), (
            approved.out
        )
        assert any(line.startswith("in sync, ") for line in iter(process.stdout.readline, ""))
        process.send_signal(signal.SIGTERM)
        assert program.end(process).code == ExitCode.OK
        assert program.conditions("rating")["RemovalHeld"] == ("False", "NothingHeld")


def passes_of(program: Program) -> int:
    """How many passes began since the process was started: each lists the syncers once."""
    calls = list(program.playground.calls)
    return sum(call.path.endswith("/eurekasyncers") for call in calls)


def test_a_daemon_prints_changes_and_its_whole_state_on_sigusr1(settled: Program) -> None:
    """A syncer that is not served is told by the first pass, and by that after the signal. The
    passes between say nothing."""
    cart = {**SYNCER, "metadata": {"name": "cart", "namespace": "rating"}}
    cart["spec"] = {"selector": {"app": "cart"}}
    settled.playground.kubernetes.call("POST", SYNCERS, cart)
    process = settled.start("run", "--daemon", "--interval", "1s", "-n", "rating")
    assert process.stdout is not None
    told = "syncer rating/cart: NoMatchingService"
    assert told in process.stdout.readline()
    assert "1 syncer not served" in process.stdout.readline()
    wait_until(lambda: passes_of(settled) >= 4, "no more passes were made")
    process.send_signal(signal.SIGUSR1)
    assert told in process.stdout.readline()
    assert "1 syncer not served" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    ended = settled.end(process)
    settled.playground.kubernetes.call("DELETE", f"{SYNCERS}/cart")
    assert (ended.code, ended.out) == (ExitCode.OK, "")


def test_a_verbose_daemon_prints_each_pass(settled: Program) -> None:
    """As a person wants it who looks for something."""
    process = settled.start("run", "--daemon", "--interval", "1s", "-n", "rating", "-v")
    assert process.stdout is not None
    for _ in range(3):
        assert process.stdout.readline().startswith("in sync, ")
    process.send_signal(signal.SIGTERM)
    assert settled.end(process).code == ExitCode.OK


def test_an_approval_that_releases_nothing_is_never_exit_0(outage: Program) -> None:
    """This covers several passes, for which held removals are otherwise no failure. It also covers
    an approval when nothing is held any more."""
    wrong = outage.run("--passes", "2", "--interval", "1s", "--approve", "0123456789ab")
    assert (wrong.code, wrong.eureka["POST"]) == (ExitCode.REMOVAL_HELD, 0)
    assert "--approve 0123456789ab: the plan has changed, so nothing was approved" in wrong.out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["-n", "nosuch"], ExitCode.CONFIGURATION),
        (["-n", "nosuch", "--dry-run"], ExitCode.CONFIGURATION),
        (["-n", "rating,nosuch", "--dry-run", "--detailed-exitcode"], ExitCode.CHANGES_PENDING),
        (["-n", "nosuch", "--passes", "2", "--interval", "1s"], ExitCode.OK),
    ],
    ids=["once", "dry", "one of two", "passes"],
)
def test_a_namespace_that_does_not_exist_is_no_success(
    program: Program, words: list[str], code: ExitCode
) -> None:
    """In a single pass it is a typing error. An installation goes on when a team's namespace is
    deleted, and its report says so."""
    ended = program.run(*words)
    assert ended.code == code, ended.out + ended.err
    assert "namespace nosuch does not exist" in ended.out
