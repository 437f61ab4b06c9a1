"""`explain` and `status` in twelve situations: both name the true cause, to an operator and to a
developer."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eurekube_sync.adapters.kubernetes.lock_store import LAST_GOOD_PASS
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.model.docs import SITE
from tests.command.program import Ended, Program, empty, rating
from tests.command.terminal import ESCAPE, at_terminal
from tests.embedded.access import Denial
from tests.servers.world import KubernetesWorld
from tests.situations import SITUATIONS, Scene, Situation

SNAPSHOTS = Path(__file__).with_name("snapshots")
WRITE = "SNAPSHOTS"
"""`SNAPSHOTS=write` writes the snapshots again. Review each of them before the commit."""
_DEVELOPERS_LIMITS = (Denial(namespace=""), Denial(namespace="kube-system"))
"""He may read nothing of the whole cluster, not even its identity."""


@dataclass(frozen=True, kw_only=True)
class Set:
    """A situation that was set up."""

    situation: Situation
    namespace: str
    program: Program

    @property
    def what(self) -> str:
        return self.situation.what.format(self.namespace)

    def has(self, ended: Ended, sentences: tuple[str, ...]) -> None:
        shown = " ".join(ended.out.split())
        for sentence in sentences:
            assert sentence.format(self.namespace) in shown, ended.out + ended.err


@pytest.fixture(scope="module", params=SITUATIONS, ids=str)
def found(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Set]:
    """Each situation, with embedded servers of its own."""
    situation: Situation = request.param
    namespace = f"s{situation.number}"
    with empty(tmp_path_factory.mktemp(namespace)) as program:
        world, eureka_url = (
            KubernetesWorld(program.playground.kubernetes_url),
            program.playground.eureka_url,
        )
        world.create_namespace(namespace)

        def run() -> None:
            ended = program.run("--drain-annotations")
            assert ended.code in (ExitCode.OK, ExitCode.REMOVAL_HELD), ended.out + ended.err

        situation.set_up(
            Scene(world=world, eureka_url=eureka_url, namespace=namespace, run=run, owner="demo")
        )
        yield Set(situation=situation, namespace=namespace, program=program)


@pytest.fixture
def developer(found: Set) -> Iterator[Set]:
    """The same for somebody who may read only one namespace."""
    access = found.program.playground.kubernetes.access
    access.denials.update(_DEVELOPERS_LIMITS)
    yield found
    access.denials.clear()


def test_explain_names_the_true_cause(found: Set) -> None:
    """The first screen has it with its reason and the exit code. Nothing is written."""
    ended = found.program.command("explain", found.what)
    assert ended.code == found.situation.code, ended.out + ended.err
    assert len(ended.out.splitlines()) <= 24
    found.has(ended, found.situation.explains)
    assert {*ended.eureka, *ended.kubernetes} == {"GET"}
    data = json.loads(found.program.command("explain", found.what, "-o", "json").out)
    assert data["exitCode"] == found.situation.code
    assert found.situation.reason in [one["reason"] for one in data["explanations"]]
    broken = [
        link for one in data["explanations"] for link in one["links"] if link["mark"] == "broken"
    ]
    assert [link["reason"] for link in broken] == [found.situation.reason], (
        "to the first that breaks"
    )


def test_status_names_the_true_cause(found: Set) -> None:
    """It has its exit code, and its reason in JSON."""
    ended = found.program.command("status", "-n", found.namespace, "-a")
    assert ended.code == found.situation.status_code, ended.out + ended.err
    found.has(ended, found.situation.shows)
    assert {*ended.eureka, *ended.kubernetes} == {"GET"}


def test_explain_for_a_developer_calls_unread_parts_unknown(developer: Set) -> None:
    """He has no right beyond his namespace, and no Eureka. Unread parts are unknown, never
    missing."""
    situation = developer.situation
    ended = developer.program.command(
        "explain",
        developer.what,
        "-n",
        developer.namespace,
        EUREKUBE_SYNC_EUREKA_URL=None,
        EUREKUBE_SYNC_OWNER=None,
    )
    assert ended.code == situation.code_without_eureka, ended.out + ended.err
    developer.has(
        ended, situation.explains if situation.without_eureka is None else situation.without_eureka
    )
    assert "Eureka holds no instance" not in ended.out
    assert "what Eureka holds could not be looked at" in ended.out or situation.number in (1, 11)
    shown = developer.program.command(
        "status",
        "-n",
        developer.namespace,
        "-a",
        EUREKUBE_SYNC_EUREKA_URL=None,
        EUREKUBE_SYNC_OWNER=None,
    )
    assert "Eureka could not be looked at" in shown.out
    assert "instances unknown" in shown.out


@pytest.mark.parametrize("columns", [80, 120])
def test_the_output_equals_the_reviewed_snapshot(found: Set, columns: int) -> None:
    """Both commands run at a terminal. Ages, ports and plan ids are replaced by constants."""
    shown = []
    for arguments in (["explain", found.what], ["status", "-n", found.namespace, "-a"]):
        _, text = at_terminal(found.program, *arguments, columns=columns, progress=False)
        plain = ESCAPE.sub("", text)
        assert all(len(line) <= columns or _is_command(line) for line in plain.splitlines())
        shown.append(f"$ eurekube-sync {' '.join(arguments)}\n{_still(plain)}")
    file = SNAPSHOTS / f"{found.situation}-{columns}.txt"
    if os.environ.get(WRITE) == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(shown))
    reviewed = _unwrapped(file.read_text())
    assert _unwrapped("\n".join(shown)) == reviewed, f"if that is right, {WRITE}=write"


def _unwrapped(text: str) -> str:
    """The text with each indented line joined to the one before: a line that is just full breaks
    elsewhere when an age has one digit more."""
    return re.sub(r"\n {4,}", " ", text)


def _is_command(line: str) -> bool:
    """Only a command to paste may be wider than the terminal."""
    return line.lstrip().startswith(("kubectl ", "curl ", "eurekube-sync "))


def _still(text: str, *, seconds: bool = True) -> str:
    if seconds:
        # A busy machine shows minutes where an idle one shows seconds.
        text = re.sub(r"\b\d+ (s|min)( {2,})", lambda found: "N s".ljust(len(found[0])), text)
        text = re.sub(r"\b\d+ (s|min)\b", "N s", text)
    text = re.sub(r"127\.0\.0\.1:\d{5}", "127.0.0.1:PPPPP", text)
    text = re.sub(r"up, \d+ ms", "up, N ms", text).replace(SITE, "https://docs")
    text = re.sub(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "2026-01-31T12:00:00Z", text)
    return re.sub(r"\b[0-9a-f]{12}\b", "0123456789ab", text)


LOCK = "operators/installation"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/operators/leases/installation"


SILENCES = [
    (0, ExitCode.EUREKA_UNREAD, ("last good pass: ", "The last pass saw 1/1 UP as ORDERS")),
    (5, ExitCode.NOT_REGISTERED, ("last good pass: 5 min ago", "the last good pass was 5 min ago")),
    (
        47,
        ExitCode.NOT_REGISTERED,
        ("last good pass: 47 min ago", "so its leases expired", "see that eurekube-sync"),
    ),
]


@pytest.mark.parametrize(("minutes", "code", "sentences"), SILENCES)
def test_the_lock_shows_a_developer_when_the_last_good_pass_was(
    tmp_path: Path, minutes: int, code: ExitCode, sentences: tuple[str, ...]
) -> None:
    """The cluster shows InSync, and he cannot read Eureka. Only the Lease shows since when no pass
    ran."""
    with empty(tmp_path) as program:
        world = KubernetesWorld(program.playground.kubernetes_url)
        for name in ("operators", "shop"):
            world.create_namespace(name)
        scene = Scene(
            world=world,
            eureka_url=program.playground.eureka_url,
            namespace="shop",
            run=int,
            owner="demo",
        )
        scene.service()
        scene.pod()
        scene.syncer()
        scene.wait()
        assert program.run("--lock", LOCK).code == ExitCode.OK
        if minutes:
            at = datetime.now(UTC) - timedelta(minutes=minutes, seconds=5)
            annotations = {LAST_GOOD_PASS: at.strftime("%Y-%m-%dT%H:%M:%SZ")}
            silent = {
                "metadata": {"annotations": annotations},
                "spec": {"renewTime": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")},
            }
            world.request("PATCH", LEASE, silent)
        program.playground.kubernetes.access.denials.update(_DEVELOPERS_LIMITS)
        ended = program.command(
            "explain", "shop/orders", "--lock", LOCK, EUREKUBE_SYNC_EUREKA_URL=None
        )
        shown = program.command(
            "status", "-n", "shop", "--lock", LOCK, EUREKUBE_SYNC_EUREKA_URL=None
        )
    assert ended.code == shown.code == code, ended.out + ended.err + shown.out
    for sentence in sentences:
        assert sentence in ended.out, ended.out
    assert "last good pass: " in shown.out


@pytest.mark.parametrize("trouble", ["login", "right"])
def test_a_laptop_sees_what_the_passes_do_not_reach(tmp_path: Path, trouble: str) -> None:
    """Eureka refuses the password of the pods, or their account lost a right. The person has
    both, and their machine sees nothing wrong."""
    with rating(tmp_path) as program:
        KubernetesWorld(program.playground.kubernetes_url).create_namespace("operators")
        assert program.run("--lock", LOCK).code == ExitCode.OK
        before = program.command("status", "--lock", LOCK)
        assert (before.code, "no pass was good" in before.out) == (ExitCode.OK, False), before.out
        denied = Denial(verb="list", resource="endpointslices")
        if trouble == "login":
            program.playground.eureka.credentials = ("joe", "winter-8")
        else:
            program.playground.kubernetes.access.denials.add(denied)
        assert program.run("--lock", LOCK).code != ExitCode.OK
        program.playground.eureka.credentials = None
        program.playground.kubernetes.access.denials.discard(denied)
        shown = program.command("status", "--lock", LOCK)
        explained = program.command("explain", "rating/rating", "--lock", LOCK)
        said, reason = "answered 401", "RegistryUnknown"
        if trouble == "right":
            said, reason = "endpointslices", "SourceUnknown"
        assert "! no pass was good for " in shown.out
        assert said in shown.out
        assert reason in shown.out
        assert "1 partly in sync" in shown.out
        assert "Still registered: " in explained.out
        assert said in explained.out
        assert shown.code == explained.code == ExitCode.NOT_REGISTERED
        assert program.run("--lock", LOCK).code == ExitCode.OK
        after = program.command("status", "--lock", LOCK)
        assert (after.code, "no pass was good" in after.out) == (ExitCode.OK, False), after.out


def test_ctrl_c_ends_a_watch_and_says_so(settled: Program) -> None:
    """The last output does not matter, because nobody waits for a verdict."""
    process = settled.start("status", "--watch")
    assert process.stdout is not None
    assert process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert settled.end(process).code == ExitCode.INTERRUPTED


def test_a_namespace_that_does_not_exist_is_no_empty_one(settled: Program) -> None:
    """A typo in `-n` is reported as an error."""
    ended = settled.command("status", "-n", "nosuch")
    assert ended.code == ExitCode.NOT_REGISTERED
    assert "namespace nosuch does not exist" in ended.out
    assert ended.out.splitlines()[-1].startswith("no EurekaSyncer")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["explain", "nosuch/orders"], ExitCode.NOT_REGISTERED),
        (["explain", "svc/nosuch/orders"], ExitCode.NOT_REGISTERED),
        (["explain", "pod/nosuch/orders-1"], ExitCode.NOT_REGISTERED),
        (["check", "-n", "nosuch"], ExitCode.CHECK_FAILED),
        (["check", "-n", "rating,nosuch"], ExitCode.OK),
        (["orphans", "-n", "nosuch"], ExitCode.INCOMPLETE),
    ],
    ids=str,
)
def test_no_command_takes_a_namespace_that_does_not_exist_for_an_empty_one(
    settled: Program, command: list[str], code: ExitCode
) -> None:
    ended = settled.command(*command)
    assert "namespace nosuch does not exist" in ended.out
    assert "no orphans" not in ended.out
    assert ended.code == code
