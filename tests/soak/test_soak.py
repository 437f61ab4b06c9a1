"""The program for a quarter of an hour and more, on servers with their own timings: `tox -e
soak`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers.eureka import EurekaServer
from tests.servers.kube import KubernetesServers
from tests.servers.world import KubernetesWorld
from tests.soak.daemon import Daemon
from tests.soak.scenarios import cronjob, outage, show, soak
from tests.soak.servers import server_tls
from tests.soak.shops import Shops

pytestmark = [pytest.mark.servers, pytest.mark.usefixtures("crd")]

OUTAGE_SECONDS = 9 * 60
LEAST_MINUTES = 5
"""Within which a stranger with a lease of 90 s falls silent and is gone."""


@pytest.mark.parametrize(
    ("batch", "part"), [("auto", 1), ("off", 1 / 3)], ids=["batches", "singly"]
)
def test_a_daemon_beside_instances_of_others(
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    minutes: float,
    batch: str,
    part: float,
) -> None:
    """500 of ours beside 500 of another owner: registered once, renewed every 30 s, and evictions
    of others go on."""
    with (
        EurekaServer(stock_timings=True, access_log=True) as server,
        Shops(kubernetes_world, f"soak-{batch}", count=500) as shops,
    ):
        daemon = Daemon(kubernetes_servers, server, tmp_path, owner="soak", batch=batch)
        figures = soak(
            server,
            daemon,
            shops.keys("soak"),
            minutes=max(part * minutes, LEAST_MINUTES),
            strangers=500,
            stranger_lease=90,
            falling_silent=20,
        )
        show(capsys, f"A daemon with other clients, --eureka-batch {batch}", figures)


def test_a_daemon_with_a_login_over_tls(
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    minutes: float,
) -> None:
    """The same with basic authentication over TLS, for a third of the time, and 30 of each.

    Spring Security checks the password of every call against a bcrypt hash, a tenth of a second of
    processor: a pass takes seconds.
    """
    with (
        EurekaServer(
            stock_timings=True,
            access_log=True,
            basic_auth=("sync", 'p@:/% "1'),
            tls=server_tls(tmp_path),
        ) as server,
        Shops(kubernetes_world, "soak-tls", count=30) as shops,
    ):
        daemon = Daemon(kubernetes_servers, server, tmp_path, owner="soak-tls", batch="off")
        figures = soak(
            server,
            daemon,
            shops.keys("soak-tls"),
            minutes=max(minutes / 3, LEAST_MINUTES),
            strangers=30,
            stranger_lease=90,
            falling_silent=3,
            leeway=15,
        )
        show(capsys, "A daemon with a login over TLS", figures)


def test_the_operator_is_killed_for_nine_minutes(
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Leases of 300 s, the default, last until it is back, and nothing is registered again."""
    with (
        EurekaServer(stock_timings=True, self_preservation=False, access_log=True) as server,
        Shops(kubernetes_world, "soak-kill", count=500) as shops,
    ):
        daemon = Daemon(kubernetes_servers, server, tmp_path, owner="soak-kill")
        figures = outage(
            server,
            daemon,
            shops.keys("soak-kill"),
            lease=300,
            seconds=OUTAGE_SECONDS,
            options=("--interval=10s",),
        )
        show(capsys, "The daemon is killed", figures)


def test_a_cronjob_each_minute(
    kubernetes_servers: KubernetesServers,
    kubernetes_world: KubernetesWorld,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Five processes with two passes each, a minute apart: the first registers, the others
    renew."""
    with (
        EurekaServer(stock_timings=True, access_log=True) as server,
        Shops(kubernetes_world, "soak-cron", count=100) as shops,
    ):
        daemon = Daemon(kubernetes_servers, server, tmp_path, owner="soak-cron")
        show(
            capsys,
            "A CronJob each minute",
            cronjob(server, daemon, shops.keys("soak-cron"), runs=5),
        )
