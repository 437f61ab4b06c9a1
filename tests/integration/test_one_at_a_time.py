"""Two daemons and one lock, on real servers: one works, and the other takes over when it is killed
or stopped."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.embedded.http import Request
from eurekube_sync.model.kubernetes import LOCK_SECONDS
from tests.integration.hand_made import make_app, make_namespace, make_syncer, remove_app, slices_of
from tests.integration.program import CountingProxy, Program, Registry
from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

NS = "lock"
LEASE = 300
"""The duration of an instance's lease, in seconds. After a renewal it is twice as long."""
READS = {"GET", "HEAD"}


@dataclass
class Copy:
    """One daemon with proxies of its own, so that each call can be assigned to it."""

    program: Program
    process: subprocess.Popen[str] | None = None
    pause: Callable[[Request], bool] = lambda _: False
    """Whether the process is to be stopped at this call to Eureka."""
    paused: bool = False

    def start(self, *options: str) -> None:
        """Start the daemon."""
        self.process = self.program.start(
            "--daemon", "--interval=1s", f"--lock={NS}/shop", *options
        )

    def on_call(self, request: Request) -> None:
        """Stop the process at the chosen call, whose answer it then waits for."""
        if self.process is not None and not self.paused and self.pause(request):
            self.paused = True
            self.process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let the process continue."""
        assert self.process is not None
        self.pause = lambda _: False
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill the process."""
        assert self.process is not None
        self.process.kill()
        self.process.communicate()
        self.process = None

    def end(self) -> tuple[int, str]:
        """End it by SIGTERM; returns the exit code and the log."""
        assert self.process is not None
        self.process.terminate()
        _, err = self.process.communicate(timeout=60)
        code, self.process = self.process.returncode, None
        return code, err

    def writes(self) -> list[str]:
        """The calls to Eureka that write."""
        return [
            f"{call.method} {call.path}"
            for call in self.program.eureka.calls
            if call.method not in READS
        ]


@pytest.fixture
def copies(
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
    eureka: EurekaServer,
    crd: None,
    tmp_path: Path,
) -> Iterator[list[Copy]]:
    """Two copies that have not started, and one app with two addresses."""
    make_namespace(kubernetes_world, NS)
    make_app(kubernetes_world, NS, "rating", ["10.0.0.1", "10.0.0.2"])
    make_syncer(kubernetes_world, NS, "rating", "rating")
    made: list[Copy] = []
    with ExitStack() as opened:
        for name in "ab":
            folder = tmp_path / name
            folder.mkdir()

            def on_call(request: Request, number: int = len(made)) -> None:
                made[number].on_call(request)

            program = Program(
                kubernetes=opened.enter_context(
                    CountingProxy(kubernetes_servers.url, ca_file=kubernetes_servers.ca_file)
                ),
                eureka=opened.enter_context(
                    CountingProxy(eureka.url.removesuffix("/eureka"), before=on_call)
                ),
                token=kubernetes_servers.admin_token,
                folder=folder,
                owner="locked",
                options=("--registry-cache=3s",),
            )
            made.append(Copy(program))
        yield made
        for copy in made:
            if copy.process is not None:
                copy.process.send_signal(signal.SIGCONT)
                copy.kill()
    remove_app(kubernetes_world, NS, "rating")


def lease(world: KubernetesWorld) -> dict[str, Any]:
    """The lock as the API server has it."""
    return world.request("GET", f"/apis/coordination.k8s.io/v1/namespaces/{NS}/leases/shop")


def id_of(address: str) -> str:
    """The id of the instance at an address."""
    return f"locked:{NS}:rating:{address}:8080"


def test_the_other_copy_takes_over(
    copies: list[Copy], registry: Registry, kubernetes_world: KubernetesWorld
) -> None:
    """One copy is killed, and the other one renews long before a lease expires. Then one is stopped
    during a pass, and wakes when the other one works: it writes nothing."""
    first, second = copies
    ids = [id_of("10.0.0.1"), id_of("10.0.0.2")]
    first.start()
    wait_until(
        lambda: all(registry.status("RATING", id_) == "UP" for id_ in ids),
        "the first did not register",
    )
    second.start()
    wait_until(
        lambda: len(second.program.kubernetes.calls) > 3, "the second did not look at the lock"
    )
    assert second.writes() == []

    # The first is killed.
    first.kill()
    killed = time.monotonic()
    wait_until(
        lambda: all(any(id_ in call for call in second.writes()) for id_ in ids),
        "the second did not renew",
    )
    assert time.monotonic() - killed < LEASE / 4
    assert all(registry.status("RATING", id_) == "UP" for id_ in ids)

    # The second is stopped during a pass with a registration. When it wakes, renewals are due too.
    first.start()
    wait_until(
        lambda: len(first.program.kubernetes.calls) > 3, "the first did not look at the lock"
    )
    ids.append(id_of("10.0.0.3"))
    second.pause = lambda request: request.method == "GET" and request.path == "/eureka/apps"
    piece = kubernetes_world.request("GET", f"{slices_of(NS)}/rating-1")
    piece["endpoints"].append({"addresses": ["10.0.0.3"], "conditions": {"ready": True}})
    wait_until(lambda: second.paused, "the second was not stopped")
    second.program.eureka.clear()
    second.program.kubernetes.clear()
    kubernetes_world.request("PUT", f"{slices_of(NS)}/rating-1", piece)
    wait_until(
        lambda: all(any(id_ in call for call in first.writes()) for id_ in ids),
        "the first did not take over",
    )
    second.wake()
    wait_until(lambda: len(second.program.kubernetes.calls) > 5, "the second did not go on")
    assert second.writes() == []
    written = {
        (call.method, call.path)
        for call in second.program.kubernetes.calls
        if call.method not in READS
    }
    assert written <= {("PATCH", f"/apis/coordination.k8s.io/v1/namespaces/{NS}/leases/shop")}

    # The first ends normally. The second, which waits again, has the lock at once.
    code, err = first.end()
    assert (code, "Traceback" in err) == (0, False)
    released = time.monotonic()
    wait_until(
        lambda: any(ids[2] in call for call in second.writes()),
        "the second did not take over again",
    )
    assert time.monotonic() - released < LOCK_SECONDS
    code, err = second.end()
    assert code == 0, err
    assert ": it was not renewed in time, and nothing was changed since" in err
    assert err.count("acquired the lock lock/shop") == 2
    found = lease(kubernetes_world)
    assert found["spec"]["holderIdentity"] == ""
    annotations = found["metadata"]["annotations"]
    assert annotations["eurekube.io/owner"] == "locked"
    assert annotations["eurekube.io/scope"] == "all"
    assert annotations["eurekube.io/last-good-result"].startswith("in sync, ")
    assert annotations["eurekube.io/last-good-pass"] > "2026"


def test_runs_beside_a_daemon(
    copies: list[Copy], registry: Registry, kubernetes_world: KubernetesWorld
) -> None:
    """A run of single passes leaves the work to the daemon. A dry run, and one that approves, need
    no lock."""
    daemon, other = copies
    daemon.start()
    wait_until(
        lambda: registry.status("RATING", id_of("10.0.0.1")) == "UP", "the daemon did not register"
    )
    lock = f"--lock={NS}/shop"
    done = other.program.run("--passes=2", "--interval=1s", lock)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert f"skipped: lock {NS}/shop is held by " in done.stderr
    assert other.program.eureka.calls == []
    assert other.program.run("--dry-run", lock).returncode == 0
    approving = other.program.run("--approve=0123456789ab", lock)
    assert approving.returncode == ExitCode.REMOVAL_HELD  # no such removals are held
    assert not [call for call in other.program.kubernetes.calls if "leases" in call.path]
    assert daemon.process is not None
    assert daemon.process.poll() is None


def test_without_the_kubernetes_api_instances_are_renewed(
    copies: list[Copy], registry: Registry
) -> None:
    """Nobody knows who has the lock, and no lease may expire for that."""
    first, _ = copies
    lock = f"--lock={NS}/away"
    done = first.program.run(lock)
    assert (done.returncode, "2 registered" in done.stdout) == (0, True), done.stdout + done.stderr
    # A process that registered nothing itself knows only what Eureka lists, and renews that.
    registry.list_follows("RATING", [id_of("10.0.0.1"), id_of("10.0.0.2")])
    away = replace(first.program, token="wrong")
    done = away.run(lock)
    assert done.returncode == ExitCode.KUBERNETES_DENIED, done.stdout + done.stderr
    assert f"the lock {NS}/away cannot be used, so instances are only renewed: " in done.stdout
    assert sorted(first.writes()) == [
        f"PUT /eureka/apps/RATING/{id_of('10.0.0.1')}",
        f"PUT /eureka/apps/RATING/{id_of('10.0.0.2')}",
    ]
