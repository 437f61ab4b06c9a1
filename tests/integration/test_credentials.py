"""Credentials of the kubeconfig that fail, between real servers: the API lets anonymous callers
in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.program import Program, Registry
from tests.integration.test_login import running
from tests.integration.test_safety import (
    NAMESPACE,
    SYNCERS,
    create_syncer,
    give_endpoints,
    shop,  # noqa: F401 - a fixture
)
from tests.servers.world import KubernetesWorld, write_kubeconfig
from tests.waiting import wait_until

pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("crd", "shop")]

VERSION = "client.authentication.k8s.io/v1"


class Login:
    """A kubeconfig with a program for the token, which fails until `works` exists, and counts its
    runs."""

    def __init__(self, program: Program, *, expires: str = "2099-01-01T00:00:00Z") -> None:
        folder = program.folder
        self.works, self.path, self._runs = folder / "works", folder / "by-program", folder / "runs"
        status = {"token": program.token, "expirationTimestamp": expires}
        printed = json.dumps({"apiVersion": VERSION, "kind": "ExecCredential", "status": status})
        script = (
            f"echo >> {self._runs}; [ -e {self.works} ] || {{ echo log in first >&2; exit 3; "
            f"}}; echo '{printed}'"
        )
        plugin = {
            "apiVersion": VERSION,
            "command": "sh",
            "args": ["-c", script],
            "interactiveMode": "Never",
        }
        config = json.loads(
            write_kubeconfig(self.path, url=program.kubernetes.url, token="unused").read_text()
        )
        config["users"][0]["user"] = {"exec": plugin}
        self.path.write_text(json.dumps(config))

    @property
    def options(self) -> tuple[str, ...]:
        return ("--kubeconfig", str(self.path))

    def runs(self) -> int:
        return len(self._runs.read_text().splitlines())


def statuses(program: Program, registry: Registry, addresses: list[str]) -> list[str | None]:
    return [
        registry.status("SHOP", f"{program.owner}:{NAMESPACE}:shop:{address}:8080")
        for address in addresses
    ]


def test_a_daemon_whose_credentials_fail_at_its_start_tries_again(
    program: Program, registry: Registry, kubernetes_world: KubernetesWorld
) -> None:
    """It calls nothing until the program for the credentials works, and registers everything
    then."""
    addresses = give_endpoints(kubernetes_world, 2)
    create_syncer(kubernetes_world)
    login = Login(program)
    with running(program, *login.options, "--daemon", "--interval=1s", "-o", "json") as daemon:
        assert daemon.stdout is not None
        reports: list[Any] = [json.loads(daemon.stdout.readline()) for _ in range(3)]
        assert not program.kubernetes.calls
        assert login.runs() <= 3
        login.works.touch()
        wait_until(
            lambda: statuses(program, registry, addresses) == ["UP", "UP"], "nothing was registered"
        )
    said = program.seen[-1]
    assert "log in first" in json.dumps(reports[0])
    assert "ended with exit code 3: log in first" in said
    assert "anonymous" not in said
    assert "ERROR:root" not in said


def test_a_pass_without_credentials_renews_and_removes_nothing(
    program: Program, registry: Registry, kubernetes_world: KubernetesWorld
) -> None:
    """The exit code is that of a cluster that cannot be read. A deleted syncer changes nothing
    until it can."""
    addresses = give_endpoints(kubernetes_world, 2)
    create_syncer(kubernetes_world)
    program.good()
    registry.list_follows("SHOP", [])
    kubernetes_world.request("DELETE", f"{SYNCERS}/shop")
    login = Login(program)
    done = program.run(*login.options, "--passes=2", "--interval=1s")
    assert done.returncode == 10, done.stdout + done.stderr
    assert not program.kubernetes.calls
    assert statuses(program, registry, addresses) == ["UP", "UP"]
    assert "log in first" in done.stdout
    login.works.touch()
    program.run_until(lambda: not kubernetes_world.request("GET", SYNCERS)["items"])


@pytest.mark.parametrize("lock", ["off", f"{NAMESPACE}/lock"])
def test_a_program_for_the_credentials_runs_once_in_a_pass(
    program: Program, kubernetes_world: KubernetesWorld, lock: str
) -> None:
    """Its token lives for less than five minutes, or has ended already by our clock, and the lock
    has a connection of its own."""
    give_endpoints(kubernetes_world, 2)
    create_syncer(kubernetes_world)
    login = Login(program, expires="2020-01-01T00:00:00Z")
    login.works.touch()
    program.good(*login.options, f"--lock={lock}")
    assert login.runs() == 1
