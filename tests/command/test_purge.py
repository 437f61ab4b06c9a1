"""`orphans`, `purge` and the former marks of `run` as a user gives them, with their refusals and
failures."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import termios
import threading
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest
import yaml

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.embedded.http import Handler, Request, Response
from tests.command.program import BINARY, IDS, LONG_SECONDS, Ended, Program
from tests.embedded.access import Denial
from tests.waiting import wait_until

PAGE = Path(__file__).parents[2] / "docs" / "owner.md"
STRANGER = ("BILLING", "dc-17:billing:8080")
RENAMED = tuple(id_.replace("demo:", "next:", 1) for id_ in IDS)


def give(program: Program, *arguments: str, **variables: str | None) -> Ended:
    """Run a command. Its output never has a traceback."""
    ended = program.command(*arguments, stdin="", **variables)
    assert "Traceback" not in ended.err, ended.err
    return ended


def register(
    program: Program, id_: str, *, app: str = "RATING", ip: str = "10.9.9.9", **marks: str
) -> None:
    """Register an instance with metadata, as a program of others does."""
    instance = {
        "instanceId": id_,
        "hostName": ip,
        "ipAddr": ip,
        "app": app,
        "vipAddress": app.lower(),
        "status": "UP",
        "port": {"$": 8080, "@enabled": "true"},
        "leaseInfo": {"renewalIntervalInSecs": 1, "durationInSecs": 3600},
        "dataCenterInfo": {
            "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
            "name": "MyOwn",
        },
        "metadata": {f"eurekube.{name}": value for name, value in marks.items()}
        or {"colour": "blue"},
    }
    answer = program.playground.eureka.handle(
        Request(
            method="POST",
            path=f"/eureka/apps/{app}",
            headers={"content-type": "application/json"},
            body=msgspec.json.encode({"instance": instance}),
        )
    )
    assert answer.status == 204
    time.sleep(0.1)


def metadata(program: Program, id_: str, app: str = "RATING") -> dict[str, str]:
    """The metadata of an instance."""
    request = Request(
        method="GET", path=f"/eureka/apps/{app}/{id_}", headers={"accept": "application/json"}
    )
    found: dict[str, str] = json.loads(program.playground.eureka.handle(request).body)["instance"][
        "metadata"
    ]
    return found


def uid(program: Program) -> str:
    """The UID of the cluster."""
    _, found = program.playground.kubernetes.call("GET", "/api/v1/namespaces/kube-system")
    return str(found["metadata"]["uid"])


@pytest.fixture
def ours(program: Program) -> Program:
    """A `run` that has ended registered both instances."""
    assert program.run().code == ExitCode.OK
    time.sleep(0.1)
    return program


# --- orphans --------------------------------------------------------------------------------------


def test_no_orphans_is_one_line(settled: Program) -> None:
    """Nothing is written."""
    ended = give(settled, "orphans")
    assert (ended.code, ended.out, ended.err) == (ExitCode.OK, "no orphans\n", "")
    assert set(ended.eureka) == {"GET"}
    assert set(ended.kubernetes) == {"GET"}


def test_orphans_are_listed_with_what_run_does_to_them(ours: Program) -> None:
    """The list is a table, JSON or YAML. With --detailed-exitcode the exit code is 5."""
    register(
        ours,
        "demo:gone:rating:10.9.9.9:8080",
        owner="demo",
        cluster=uid(ours),
        syncer="gone/rating",
    )
    ended = give(ours, "orphans")
    assert ended.code == ExitCode.OK
    assert ended.out.splitlines()[-1] == "1 orphan: 1 to be cancelled"
    assert "there is no syncer gone/rating; the next `run` cancels it" in ended.out
    detailed = give(ours, "orphans", "--detailed-exitcode", "-o", "json")
    assert detailed.code == ExitCode.CHANGES_PENDING
    data = json.loads(detailed.out)
    assert data["orphans"] == [
        {
            "app": "RATING",
            "id": "demo:gone:rating:10.9.9.9:8080",
            "status": "UP",
            "syncer": "gone/rating",
            "run": "Cancel",
            "why": "there is no syncer gone/rating; the next `run` cancels it",
        }
    ]
    assert yaml.safe_load(give(ours, "orphans", "-o", "yaml").out)["summary"] == data["summary"]
    assert give(ours, "orphans", "-n", "rating").out == "no orphans\n"
    assert ours.run().code == ExitCode.OK
    assert ours.status("demo:gone:rating:10.9.9.9:8080") is None


def test_a_signal_ends_orphans_without_a_verdict(ours: Program) -> None:
    """An instance that was not read because of the signal has no verdict."""
    register(
        ours,
        "demo:gone:rating:10.9.9.9:8080",
        owner="demo",
        cluster=uid(ours),
        syncer="gone/rating",
    )
    asked, signalled = threading.Event(), threading.Event()

    def proxy(request: Request, registry: Handler) -> Response:
        asked.set()
        assert signalled.wait(60)
        return registry(request)

    with ours.eureka_behind(proxy):
        process = ours.start("orphans", "--detailed-exitcode")
        assert asked.wait(60)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert "stopping: SIGINT" in process.stderr.readline()
        signalled.set()
        ended = ours.end(process)
    assert (ended.code, ended.out) == (ExitCode.INCOMPLETE, "")
    assert ended.sentence == "Error: stopped by a signal: it is not known what `run` would do"


def test_held_removals_of_orphans_follow_the_brakes_options(ours: Program) -> None:
    """`orphans` takes the numbers of `run`, whose dry run says the same."""
    register(
        ours,
        "demo:gone:rating:10.9.9.9:8080",
        owner="demo",
        cluster=uid(ours),
        syncer="gone/rating",
    )
    register(
        ours,
        "demo:gone:web:10.9.9.9:8080",
        app="WEB",
        owner="demo",
        cluster=uid(ours),
        syncer="gone/web",
    )
    held = give(ours, "orphans", COLUMNS="300")
    assert held.out.splitlines()[-1] == "2 orphans: 1 to be cancelled, 1 held"
    waits = (
        "app WEB would have no UP instance left (no approval is needed if a second pass, 20 s "
        "to 620 s after the first,"
    )
    assert f"held by the brake: {waits} plans the same" in held.out
    strict = ("--brake", "too-much=1,too-much-count=0")
    ended = give(ours, "orphans", *strict)
    assert ended.out.splitlines()[-1] == "2 orphans: 2 held", ended.out + ended.err
    assert ours.run("--dry-run", *strict).code == ExitCode.REMOVAL_HELD


def test_an_unreadable_cluster_never_reads_as_no_orphans(settled: Program) -> None:
    """If the syncers may not be listed, the exit code is 30. If the cluster does not answer, it has
    that code."""
    settled.playground.kubernetes.access.denials.add(Denial(resource="eurekasyncers", verb="list"))
    ended = give(settled, "orphans")
    assert ended.code == ExitCode.INCOMPLETE
    assert "no orphan in what could be read" in ended.out
    assert "EurekaSyncers: " in ended.sentence
    assert "403" in ended.sentence or "forbidden" in ended.sentence
    nobody = settled.kubeconfig_of("http://127.0.0.1:1")
    ended = give(settled, "orphans", KUBECONFIG=str(nobody))
    assert (ended.code, ended.out) == (ExitCode.KUBERNETES_UNREAD, "")
    assert ended.sentence.startswith("Error: ")
    ended = give(settled, "orphans", "--eureka-url", "http://127.0.0.1:1/eureka")
    assert (ended.code, ended.out) == (ExitCode.EUREKA_UNREAD, "")


def test_orphans_says_that_a_peer_is_down(settled: Program) -> None:
    """Stdout says so once, and the log says why."""
    dead = "http://127.0.0.1:1/eureka"
    ended = give(settled, "orphans", "--eureka-url", f"{settled.playground.eureka_url},{dead}")
    assert ended.code == ExitCode.INCOMPLETE
    assert (
        ended.sentence
        == f"{dead} could not be reached: orphans that are only there are not in this list"
    )
    assert ended.out.splitlines()[-1] == "no orphan in what could be read"


# --- Former marks ---------------------------------------------------------------------------------


def ended_long_ago(program: Program) -> None:
    """The last renewal of every instance was 100 s ago, as if its installation had ended then."""
    for leases in program.playground.eureka.registry.leases.values():
        for lease in leases.values():
            lease.registered -= 100_000
            lease.renewed -= 100_000
    time.sleep(0.1)


def test_a_rebuilt_cluster_takes_over_what_the_old_one_left(program: Program) -> None:
    """`run` names the option, and needs it once."""
    register(program, IDS[0], ip="10.0.0.1", owner="demo", cluster="old", syncer="rating/rating")
    refused = program.run()
    assert refused.code == ExitCode.OWNER_CLASH
    way_out = re.search(r"eurekube-sync run (--former-cluster \w+)", refused.out)
    assert way_out
    assert give(program, "orphans").code == ExitCode.OWNER_CLASH
    alive = program.run(*way_out[1].split())
    assert alive.code == ExitCode.OWNER_CLASH
    assert (
        "instances of owner demo of cluster old were renewed in the last 90 s: those of 1 syncer"
        in alive.out
    )
    ended_long_ago(program)
    assert program.run(*way_out[1].split()).code == ExitCode.OK
    assert metadata(program, IDS[0])["eurekube.cluster"] == uid(program)
    time.sleep(0.1)
    assert program.run().code == ExitCode.OK
    assert [program.status(id_) for id_ in IDS] == ["UP", "UP"]


def test_a_new_owner_name_moves_all_and_is_then_in_sync(ours: Program) -> None:
    """The dry run shows each step. An environment variable may name the former owner, too."""
    ended_long_ago(ours)
    looked = ours.run("--owner", "next", "--former-owner", "demo", "--dry-run", "-o", "json")
    shown = [(action["action"], action["id"]) for action in json.loads(looked.out)["actions"]]
    assert shown == [("register", id_) for id_ in RENAMED] + [("cancel", id_) for id_ in IDS]
    ended = give(ours, "run", "--owner", "next", EUREKUBE_SYNC_FORMER_OWNER="demo")
    assert ended.code == ExitCode.OK, ended.out + ended.err
    assert ended.out.splitlines()[-1] == "2 registered, 2 cancelled, 0 renewed"
    assert [ours.status(id_) for id_ in (*RENAMED, *IDS)] == ["UP", "UP", None, None]
    time.sleep(0.1)
    assert ours.run("--owner", "next").out == "in sync, 2 renewed\n"


def test_the_present_owner_is_no_former_one(settled: Program) -> None:
    """It would change nothing."""
    ended = give(settled, "run", "--former-owner", "demo")
    assert (ended.code, ended.eureka) == (ExitCode.USAGE, Counter())
    assert "--former-owner demo is the current --owner: give the earlier name" in ended.err


# --- An owner that has nothing --------------------------------------------------------------------


def test_an_owner_that_has_nothing_is_asked_about_by_every_command(ours: Program) -> None:
    """One sentence has the existing owners. Healthy syncers must not be deleted because of a
    typo."""
    hint = (
        "no instance of owner typo in this cluster; the instances of this cluster belong to "
        "demo (2 instances). Is "
    )
    for arguments, code in (
        (("orphans", "--owner", "typo", "-n", "elsewhere"), ExitCode.REFUSED),
        (("purge", "--owner", "typo", "--yes"), ExitCode.OK),
    ):
        ended = give(ours, *arguments)
        said = ended.out + ended.err
        assert (ended.code, hint in said, "finalizer" in said) == (code, True, False), said
        assert set(ended.eureka) == {"GET"}


# --- purge ----------------------------------------------------------------------------------------


def test_a_purge_for_scripts(ours: Program) -> None:
    """--yes works with Eureka alone. The instance of others stays, and a second purge finds
    nothing."""
    looked = give(ours, "purge", "--dry-run")
    assert (looked.code, set(looked.eureka)) == (ExitCode.OK, {"GET"})
    assert (
        looked.out.splitlines()[-1]
        == f"dry run: 2 to cancel, of owner demo and cluster {uid(ours)}"
    )
    ended = give(ours, "purge", "--yes", "--cluster", uid(ours), KUBECONFIG=None)
    assert ended.code == ExitCode.OK, ended.out + ended.err
    assert not ended.kubernetes
    assert ended.out.splitlines()[-1] == "2 cancelled"
    assert "s ago: a `run` that still runs would register them again" in ended.sentence
    assert [ours.status(id_) for id_ in IDS] == [None, None]
    assert ours.status(STRANGER[1], STRANGER[0]) == "UP"
    time.sleep(0.1)
    assert "nothing to purge" in give(ours, "purge", "--yes").out


def test_a_purge_of_a_part_leaves_the_other_installations(ours: Program) -> None:
    """One owner has two scopes. --namespace, or the variable of `run`, limits a purge."""
    register(
        ours,
        "demo:shop:cart:10.9.9.9:8080",
        app="CART",
        owner="demo",
        cluster=uid(ours),
        syncer="shop/cart",
    )
    ended = give(ours, "purge", "--yes", EUREKUBE_SYNC_NAMESPACE="rating")
    assert (ended.code, ended.out.splitlines()[-1]) == (ExitCode.OK, "2 cancelled"), (
        ended.out + ended.err
    )
    assert ours.status("demo:shop:cart:10.9.9.9:8080", "CART") == "UP"
    assert "CART" in give(ours, "purge", "--dry-run", "--namespace", "shop").out


def at_terminal(program: Program, answer: str, *arguments: str) -> tuple[int, str]:
    """Run a command at a terminal, where somebody types an answer; returns exit code and output."""
    controller, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 120, 0, 0))
    process = subprocess.Popen(
        [BINARY, *arguments],
        cwd=program.folder,
        env=program.environment(TERM="xterm-256color"),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        close_fds=True,
    )
    os.close(terminal)
    os.write(controller, answer.encode())
    shown = b"".join(iter(lambda: said(controller), b""))
    os.close(controller)
    return process.wait(timeout=LONG_SECONDS), shown.decode()


def said(controller: int) -> bytes:
    """The next output at a terminal. It is empty when no process is there any more."""
    try:
        return os.read(controller, 65536)
    except OSError:  # Linux reports that no process has the other end open
        return b""


def test_a_purge_asks_at_a_terminal(ours: Program) -> None:
    """The question has the number and the names. The answer no has its own exit code, and changes
    nothing."""
    code, shown = at_terminal(ours, "n\n", "purge")
    assert code == ExitCode.REFUSED
    assert f"RATING/{IDS[0]} UP" in shown
    assert "Cancel both instances of owner demo and cluster" in shown
    assert "nothing was changed" in shown
    assert [ours.status(id_) for id_ in IDS] == ["UP", "UP"]
    code, shown = at_terminal(ours, "y\n", "purge")
    assert code == ExitCode.OK
    assert [ours.status(id_) for id_ in IDS] == [None, None]


def wait_until_it_sleeps(pid: int) -> None:
    """Wait until the process has slept for half a second, neither running nor waiting for a
    processor."""
    asleep = 0

    def sleeps() -> bool:
        nonlocal asleep
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        asleep = asleep + 1 if state == "S" else 0
        return asleep >= 10

    wait_until(sleeps, "it does not wait for an answer")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_question(ours: Program, number: signal.Signals) -> None:
    """It ends at once, because nothing has begun. No answer is needed after Ctrl-C."""
    controller, terminal = os.openpty()
    process = subprocess.Popen(
        [BINARY, "purge"],
        cwd=ours.folder,
        env=ours.environment(TERM="xterm-256color"),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    shown = b""
    while b"[y/N]" not in shown:
        piece = said(controller)
        assert piece, shown
        shown += piece
    wait_until_it_sleeps(
        process.pid
    )  # a busy machine has shown the question, but does not read the answer yet
    process.send_signal(number)
    assert process.wait(timeout=LONG_SECONDS) == ExitCode.INTERRUPTED
    assert b"nothing was changed" in b"".join(iter(lambda: said(controller), b""))
    os.close(controller)
    assert [ours.status(id_) for id_ in IDS] == ["UP", "UP"]


def test_a_purge_lets_go_what_is_being_deleted(ours: Program) -> None:
    """The syncer was deleted while no process ran. Purge cancels, and removes the finalizer once
    Eureka's list is new enough."""
    ours.playground.delete("EurekaSyncer", "rating", "rating")
    ended = give(ours, "purge", "--yes")
    assert ended.code == ExitCode.OK
    assert (
        "our finalizer is left on 1 syncer being deleted: Eureka's list may still hide an instance"
        in ended.out
    )
    time.sleep(0.1)
    ended = give(ours, "purge", "--dry-run")
    assert "it would remove our finalizer from 1 syncer being deleted" in ended.out
    ended = give(ours, "purge", "--yes")
    assert "our finalizer was removed from 1 syncer being deleted" in ended.out
    status, _ = ours.playground.kubernetes.call(
        "GET", "/apis/eurekube.io/v1/namespaces/rating/eurekasyncers/rating"
    )
    assert status == 404


# --- Wrong command lines and failing servers ------------------------------------------------------

WRONG = {
    "no terminal": (("purge",), "there is no terminal to ask at: give --yes"),
    "no cluster": (("purge", "--yes", "--cluster", " "), "it is empty"),
    "a former name": (
        ("run", "--former-owner", "Next_1"),
        "'Next_1' is not an owner name: 1 to 32 of a-z",
    ),
    "a former cluster": (("run", "--former-cluster", ""), "it is empty"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_command_line_is_one_sentence(settled: Program, name: str) -> None:
    """The exit code is 2, before any server is called."""
    arguments, words = WRONG[name]
    ended = give(settled, *arguments)
    assert (ended.code, ended.out) == (ExitCode.USAGE, "")
    assert words in ended.err
    assert (ended.eureka, ended.kubernetes) == (Counter(), Counter())


def test_each_server_that_does_not_answer_is_reported(settled: Program) -> None:
    """Eureka does not answer, or the cluster that has to give its id, or the kubeconfig is wrong.
    Nothing is written."""
    nobody = str(settled.kubeconfig_of("http://127.0.0.1:1"))
    for variables, code in (
        ({"EUREKUBE_SYNC_EUREKA_URL": "http://127.0.0.1:1/eureka"}, ExitCode.EUREKA_UNREAD),
        ({"KUBECONFIG": nobody}, ExitCode.KUBERNETES_UNREAD),
        ({"KUBECONFIG": "nowhere"}, ExitCode.CONFIGURATION),
    ):
        ended = give(settled, "purge", "--yes", **variables)
        assert (ended.code, ended.out) == (code, ""), ended.out + ended.err
        assert ended.sentence.startswith("Error: ")
        assert set(ended.eureka) <= {"GET"}


def test_eureka_that_refuses_the_writes_moves_nothing(ours: Program) -> None:
    """One sentence says why, and all instances stay as they were. The exit code is 21."""
    ended_long_ago(ours)
    ours.playground.eureka.refuse_writes = True
    ended = ours.run("--owner", "next", "--former-owner", "demo")
    assert ended.code == ExitCode.EUREKA_DENIED, ended.out + ended.err
    assert "the server's CSRF protection refuses writes" in ended.out
    ended = give(ours, "purge", "--yes")
    assert ended.code == ExitCode.EUREKA_DENIED
    ours.playground.eureka.refuse_writes = False
    assert [ours.status(id_) for id_ in (*IDS, *RENAMED)] == ["UP", "UP", None, None]


# --- docs/owner.md --------------------------------------------------------------------------------


def shown(command: str) -> str:
    """The output that the page shows below a command."""
    blocks = re.findall(
        r"^```console\n\$ eurekube-sync (.+)\n((?:.*\n)*?)```$", PAGE.read_text(), re.MULTILINE
    )
    found = dict(blocks)
    assert command in found, sorted(found)
    return str(found[command])


def test_the_page_shows_what_orphans_says(ours: Program) -> None:
    register(
        ours,
        "demo:gone:rating:10.9.9.9:8080",
        owner="demo",
        cluster=uid(ours),
        syncer="gone/rating",
    )
    assert give(ours, "orphans").out == shown("orphans")
