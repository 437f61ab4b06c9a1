"""The program between real servers. Eureka asks for a login, over TLS, with a certificate of a
private authority."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.certificates import Authority
from tests.integration.program import Program
from tests.servers.eureka import EurekaServer, ServerTls
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

USER = "sync"
PASSWORD = 'p@:/% "1'
NEXT_PASSWORD = 'p@:/% "2'
NAMESPACE = "login"
APP = "LOGIN"
SYNCERS = f"/apis/eurekube.io/v1/namespaces/{NAMESPACE}/eurekasyncers"
SYNCER = {
    "apiVersion": "eurekube.io/v1",
    "kind": "EurekaSyncer",
    "metadata": {"name": "login", "namespace": NAMESPACE},
    "spec": {"selector": {"app": "login"}, "port": "http"},
}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority of Eureka's certificate."""
    return Authority(folder=tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def eureka(authority: Authority) -> Iterator[EurekaServer]:
    """A Eureka with basic authentication over TLS, in place of the open server of other tests."""
    certificate, key = authority.issue("localhost")
    tls = ServerTls(certificate=certificate, private_key=key, ca_file=authority.ca_file)
    with EurekaServer(basic_auth=(USER, PASSWORD), tls=tls, access_log=True) as server:
        yield server


@pytest.fixture
def password_file(tmp_path: Path) -> Path:
    """A mounted secret with a newline at its end."""
    path = tmp_path / "password"
    path.write_text(f"{PASSWORD}\n")
    return path


@pytest.fixture
def logged_in(
    program: Program, eureka: EurekaServer, authority: Authority, password_file: Path
) -> Program:
    """The program with the right login and authority, behind the counting proxy."""
    program.options += (
        f"--eureka-url={eureka.url}",
        f"--eureka-username={USER}",
        f"--eureka-password-file={password_file}",
        f"--eureka-tls=ca={authority.ca_file}",
    )
    return program


@pytest.fixture
def pods(kubernetes_world: KubernetesWorld) -> None:
    """The Service and the syncer `login`, with two ready pods."""
    world = kubernetes_world
    with contextlib.suppress(requests.HTTPError):
        world.create_node("login-node")
    with contextlib.suppress(requests.HTTPError):
        world.create_namespace(NAMESPACE)
        world.create_service(
            NAMESPACE, "login", ports=[{"name": "http", "port": 80, "targetPort": "http"}]
        )
    for pod in world.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]:
        world.delete_pod(NAMESPACE, pod["metadata"]["name"])
    for number in (1, 2):
        world.create_pod(
            NAMESPACE,
            f"login-{number}",
            ips=[f"10.9.0.{number}"],
            labels={"app": "login"},
            node="login-node",
            ports={"http": 8080},
        )
    world.wait_for_slices(NAMESPACE, "login", {"10.9.0.1": "Ready", "10.9.0.2": "Ready"})


def statuses(eureka: EurekaServer, owner: str) -> list[str | None]:
    """The statuses of both instances, by uncached reads. None stands for a missing one."""
    assert eureka.tls is not None
    found: list[str | None] = []
    for number in (1, 2):
        answer = requests.get(
            f"{eureka.url}/apps/{APP}/{owner}:{NAMESPACE}:login:10.9.0.{number}:8080",
            auth=eureka.basic_auth,
            verify=str(eureka.tls.ca_file),
            headers={"Accept": "application/json"},
            timeout=10,
        )
        assert answer.status_code in (200, 404)
        found.append(answer.json()["instance"]["status"] if answer.ok else None)
    return found


def lists_since(eureka: EurekaServer, moment: float) -> list[int]:
    """The statuses of the answers to the program's lists since then, from the server's access
    log."""
    return [
        call.status
        for call in eureka.calls()
        if call.at >= moment
        and call.path == "/eureka/apps"
        and call.agent.startswith("eurekube-sync/")
    ]


def test_the_story_with_a_login_over_tls(
    logged_in: Program, eureka: EurekaServer, pods: None, kubernetes_world: KubernetesWorld
) -> None:
    """The story is the same as without a login, and no output has the password."""
    world, program = kubernetes_world, logged_in
    world.request("POST", SYNCERS, SYNCER)
    program.good("-v")
    assert statuses(eureka, program.owner) == ["UP", "UP"]
    program.run_until(lambda: "in sync, 2 renewed" in program.seen[-1])

    world.set_ready(NAMESPACE, "login-2", False)
    world.wait_for_slices(NAMESPACE, "login", {"10.9.0.1": "Ready", "10.9.0.2": "NotReady"})
    program.good()
    assert statuses(eureka, program.owner) == ["UP", "DOWN"]
    world.set_ready(NAMESPACE, "login-2", True)
    world.wait_for_slices(NAMESPACE, "login", {"10.9.0.1": "Ready", "10.9.0.2": "Ready"})
    program.run_until(lambda: statuses(eureka, program.owner) == ["UP", "UP"])

    world.request("DELETE", f"{SYNCERS}/login")
    program.good()
    assert statuses(eureka, program.owner) == [None, None]
    program.run_until(lambda: not world.request("GET", SYNCERS)["items"])
    assert PASSWORD not in "".join(program.seen)


def test_a_wrong_login_or_tls_setting_removes_nothing(
    logged_in: Program,
    eureka: EurekaServer,
    pods: None,
    kubernetes_world: KubernetesWorld,
    tmp_path: Path,
) -> None:
    """The settings are a wrong password, no login, a wrong authority, none, and plain HTTP. Each
    has its exit code and one sentence."""
    world, program = kubernetes_world, logged_in
    world.request("POST", SYNCERS, SYNCER)
    program.good()
    program.run_until(
        lambda: "in sync, 2 renewed" in program.seen[-1]
    )  # its list is as old as the server's cache
    world.delete_pod(NAMESPACE, "login-2")
    world.wait_for_slices(NAMESPACE, "login", {"10.9.0.1": "Ready"})
    wrong = tmp_path / "wrong"
    wrong.write_text("wr0ng")
    stranger = Authority(folder=tmp_path, name="stranger")
    bare = f"--eureka-url={eureka.url}"
    right = program.options
    open_options = tuple(
        option for option in right if not option.startswith(("--eureka-user", "--eureka-pass"))
    )
    troubles: list[tuple[tuple[str, ...], int, str]] = [
        ((*right, f"--eureka-password-file={wrong}"), 21, "Eureka refuses this user or password"),
        (open_options, 21, "give user and password"),
        (
            (*right, f"--eureka-tls=ca={stranger.ca_file}"),
            20,
            "not trusted: give that authority's certificate",
        ),
        ((bare,), 20, "not trusted: give that authority's certificate"),
        (
            (bare.replace("https:", "http:"),),
            20,
            "this port speaks TLS; begin the URL with https://",
        ),
    ]
    for options, code, words in troubles:
        program.options = options
        done = program.run("-v")
        assert (done.returncode, done.stdout.count(words)) == (code, 1), done.stdout + done.stderr
        assert PASSWORD not in done.stdout + done.stderr
        assert "wr0ng" not in done.stdout + done.stderr
    assert statuses(eureka, program.owner) == ["UP", "UP"]
    program.options = right
    program.good()
    assert statuses(eureka, program.owner) == ["UP", None]


def test_a_password_that_is_rotated_is_taken_by_a_running_daemon(
    logged_in: Program,
    eureka: EurekaServer,
    pods: None,
    password_file: Path,
    kubernetes_world: KubernetesWorld,
) -> None:
    """The server comes back empty with another password. Two passes after the file has it, all is
    registered again."""
    kubernetes_world.request("POST", SYNCERS, SYNCER)
    logged_in.good()
    interval, started = 2, time.time()
    with running(logged_in, f"--interval={interval}s", "--daemon", "-o", "json", "-v") as daemon:
        wait_until(lambda: 200 in lists_since(eureka, started), "the daemon has made no pass")
        try:
            eureka.restart(basic_auth=(USER, NEXT_PASSWORD))
            restarted = time.time()
            wait_until(lambda: 401 in lists_since(eureka, restarted), "the daemon was not refused")
            assert statuses(eureka, logged_in.owner) == [None, None]
            password_file.write_text(f"{NEXT_PASSWORD}\n")
            written = time.time()
            wait_until(
                lambda: statuses(eureka, logged_in.owner) == ["UP", "UP"],
                "nothing is registered with the new password",
            )
            # A renewal may use the new password before the next list does, and registers what the
            # server lost.
            wait_until(
                lambda: 200 in lists_since(eureka, written),
                "no list was read with the new password",
            )
            assert daemon.poll() is None
            assert 200 in lists_since(eureka, written)[:2]
        finally:
            eureka.restart(basic_auth=(USER, PASSWORD))
    said = logged_in.seen[-1]
    assert "refuses this user or password" in said
    assert "reloaded " in said
    assert PASSWORD not in said
    assert NEXT_PASSWORD not in said


@contextlib.contextmanager
def running(program: Program, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A daemon, which SIGTERM ends. Its output is the last of `seen`."""
    started: Any = program.start(*options)
    try:
        yield started
    finally:
        started.terminate()
        out, err = started.communicate(timeout=300)
        program.seen.append(out + err)
        assert started.returncode == 0, out + err
        assert "Traceback" not in err
