"""What is put together shares one limit: a pass ends in its time, whatever both servers do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eurekube_sync.cli.connect import Connection, connect
from eurekube_sync.cli.options.calls import Calls
from eurekube_sync.cli.options.eureka import EurekaAccess
from eurekube_sync.cli.options.kubernetes import KubernetesAccess
from eurekube_sync.clock import SystemClock
from eurekube_sync.embedded.http import LoopbackServer
from eurekube_sync.embedded.kubernetes import EmbeddedKubernetes
from eurekube_sync.model import Unknown
from eurekube_sync.reconcile import PassSettings, reconcile
from tests.trickling import HEAD, NEVER_ENDING_HEAD, Stopwatch, trickling


def kubeconfig(directory: Path, url: str) -> str:
    """The path of one that leads there."""
    content = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "one",
    }
    path = directory / "config"
    path.write_text(json.dumps(content))
    return str(path)


@pytest.mark.loopback
@pytest.mark.parametrize("at_once", [HEAD, NEVER_ENDING_HEAD], ids=["body", "head"])
def test_a_pass_ends_in_its_time_when_both_servers_trickle(at_once: bytes, tmp_path: Path) -> None:
    """A pass of two seconds lasts no longer than three, with nothing read."""
    clock = SystemClock()
    with trickling(at_once) as eureka, trickling(at_once) as kubernetes:
        connection = Connection(
            eureka=EurekaAccess(eureka_url=f"{eureka.url}/eureka"),
            kubernetes=KubernetesAccess(kubeconfig=kubeconfig(tmp_path, kubernetes.url)),
            calls=Calls(concurrency=2),
        )
        with connect(connection, clock) as world:
            watch = Stopwatch()
            report = reconcile(world, PassSettings(owner="prod", deadline=2))
            assert watch.seconds < 3
    assert isinstance(report.registry, Unknown)
    assert report.view is not None
    assert isinstance(report.view.identity, Unknown)


@pytest.mark.loopback
def test_a_trickling_eureka_leaves_time_for_the_cluster(tmp_path: Path) -> None:
    """What the registry's list takes is its stage; the cluster is read whole after it."""
    clock = SystemClock()
    server = EmbeddedKubernetes(clock.now)
    with trickling() as eureka, LoopbackServer(server.handle) as kubernetes:
        connection = Connection(
            eureka=EurekaAccess(eureka_url=f"{eureka.url}/eureka"),
            kubernetes=KubernetesAccess(kubeconfig=kubeconfig(tmp_path, kubernetes.url)),
            calls=Calls(concurrency=2),
        )
        with connect(connection, clock) as world:
            report = reconcile(world, PassSettings(owner="prod", deadline=2))
    assert isinstance(report.registry, Unknown)
    assert report.view is not None
    assert not isinstance(report.view.identity, Unknown)
