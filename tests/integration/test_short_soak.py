"""The soaks of `tests/soak`, as short as they still mean something."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_login import PASSWORD, USER
from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld
from tests.soak.daemon import Daemon
from tests.soak.scenarios import cronjob, outage, show, soak
from tests.soak.servers import server_tls
from tests.soak.shops import Shops

pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("crd")]


def test_a_daemon_beside_strangers_with_a_login_over_tls(
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On stock timings: registered once, renewed every 30 s, and strangers that fall silent are evicted.

    30 of each: Spring Security checks the password of every call against a bcrypt hash, which takes it a tenth of a
    second of processor: a pass takes seconds.
    """
    with (
        EurekaServer(
            stock_timings=True, access_log=True, basic_auth=(USER, PASSWORD), tls=server_tls(tmp_path)
        ) as server,
        Shops(kubernetes_world, "short-soak", count=30) as shops,
    ):
        daemon = Daemon(kubernetes_servers, server, tmp_path, owner="short-soak", batch="off")
        keys = shops.keys("short-soak")
        figures = soak(server, daemon, keys, minutes=3, strangers=30, stranger_lease=30, falling_silent=3, leeway=15)
        show(capsys, "A daemon beside strangers, with a login over TLS", figures)


def test_the_operator_is_killed_for_one_and_a_half_leases(
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On a server that evicts every second: leases of 12 s outlive 18 s without us, and nothing is registered again."""
    with (
        EurekaServer(access_log=True) as server,
        Shops(kubernetes_world, "short-kill", count=50) as shops,
    ):
        daemon = Daemon(kubernetes_servers, server, tmp_path, owner="short-kill")
        figures = outage(
            server,
            daemon,
            shops.keys("short-kill"),
            lease=12,
            seconds=18,
            options=("--interval=1s", "--renewal-interval=2s", "--lease-duration=12s", "--registry-cache=3s"),
        )
        show(capsys, "The operator is killed", figures)


def test_a_cronjob_each_minute(
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two processes with two passes each, a minute apart: the first registers, the second renews alone."""
    with (
        EurekaServer(stock_timings=True, access_log=True) as server,
        Shops(kubernetes_world, "short-cron", count=100) as shops,
    ):
        daemon = Daemon(kubernetes_servers, server, tmp_path, owner="short-cron")
        show(capsys, "A CronJob each minute", cronjob(server, daemon, shops.keys("short-cron"), runs=2))
