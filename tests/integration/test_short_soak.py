"""The soaks of `tests/soak`, as short as possible and side by side, because they mostly wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.integration.conftest import install_crd, remove_syncers
from tests.integration.test_login import PASSWORD, USER
from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld
from tests.soak.daemon import Daemon
from tests.soak.scenarios import Figures, cronjob, outage, show, soak
from tests.soak.servers import server_tls
from tests.soak.shops import Shops

pytestmark = pytest.mark.servers

Soaks = dict[str, Future[Figures]]


@pytest.fixture(scope="module")
def soaks(
    kubernetes_servers: KubernetesServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Soaks]:
    """All soaks, started at the same time. Each has its own Eureka, its own namespace and its own
    daemon."""
    servers = kubernetes_servers

    def world() -> KubernetesWorld:
        return KubernetesWorld(servers.url, token=servers.admin_token, ca_file=servers.ca_file)

    def begin(pool: ThreadPoolExecutor, of: Callable[..., Figures]) -> Future[Figures]:
        return pool.submit(of, servers, world(), tmp_path_factory.mktemp("soak"))

    install_crd(world())
    with ThreadPoolExecutor(3) as pool:
        yield {of.__name__: begin(pool, of) for of in (beside_strangers, killed, each_minute)}
    remove_syncers(world())


def beside_strangers(servers: KubernetesServers, world: KubernetesWorld, folder: Path) -> Figures:
    """It has 30 instances of ours and 30 of others. Spring Security checks each password against a
    bcrypt hash, which takes a tenth of a second, so a pass takes seconds. Few calls are made at a
    time, with enough time each. A call that is given up is sent again, and would look like a second
    registration."""
    with (
        EurekaServer(
            stock_timings=True, access_log=True, basic_auth=(USER, PASSWORD), tls=server_tls(folder)
        ) as server,
        Shops(world, "short-soak", count=30) as shops,
    ):
        daemon = Daemon(
            servers, server, folder, owner="short-soak", batch="off", namespace="short-soak"
        )
        keys = shops.keys("short-soak")
        return soak(
            server,
            daemon,
            keys,
            minutes=3,
            strangers=30,
            stranger_lease=30,
            falling_silent=3,
            leeway=15,
            options=("--call-timeout=30s",),
        )


def killed(servers: KubernetesServers, world: KubernetesWorld, folder: Path) -> Figures:
    """The server evicts every second. The daemon has 40 s to come back."""
    with EurekaServer(access_log=True) as server, Shops(world, "short-kill", count=50) as shops:
        return outage(
            server,
            Daemon(servers, server, folder, owner="short-kill", namespace="short-kill"),
            shops.keys("short-kill"),
            lease=140,
            seconds=210,
            options=("--interval=1s", "--lease-duration=140s", "--registry-cache=3s"),
        )


def each_minute(servers: KubernetesServers, world: KubernetesWorld, folder: Path) -> Figures:
    """The servers have their default times."""
    with (
        EurekaServer(stock_timings=True, access_log=True) as server,
        Shops(world, "short-cron", count=100) as shops,
    ):
        daemon = Daemon(servers, server, folder, owner="short-cron", namespace="short-cron")
        return cronjob(server, daemon, shops.keys("short-cron"), runs=2)


def test_a_daemon_beside_instances_of_others_with_a_login_over_tls(
    soaks: Soaks, capsys: pytest.CaptureFixture[str]
) -> None:
    """With default times each instance is registered once, and renewed every 30 s. Silent instances
    of others are evicted."""
    show(
        capsys,
        "A daemon beside strangers, with a login over TLS",
        soaks["beside_strangers"].result(),
    )


def test_the_operator_is_killed_for_one_and_a_half_leases(
    soaks: Soaks, capsys: pytest.CaptureFixture[str]
) -> None:
    """Leases of 140 s survive 210 s without us, and nothing is registered again."""
    show(capsys, "The daemon is killed", soaks["killed"].result())


def test_a_cronjob_each_minute(soaks: Soaks, capsys: pytest.CaptureFixture[str]) -> None:
    """Two processes make two passes each, a minute apart. The first one registers, and the second
    one only renews."""
    show(capsys, "A CronJob each minute", soaks["each_minute"].result())
