"""Both clients share one time limit: a pass ends in its time, whatever both servers do."""

from __future__ import annotations

import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.adapters.kubernetes.connection import ConnectionSettings
from eurekube_sync.cli.connect import Installation, connect, connect_registry
from eurekube_sync.cli.output.report import sentences
from eurekube_sync.controller.one_pass import PassSettings
from eurekube_sync.controller.reconcile import reconcile
from eurekube_sync.embedded.http import LoopbackServer, Request, Response
from eurekube_sync.model.actions import Result
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.struct import replace
from tests.embedded.eureka import FullEureka
from tests.embedded.kubernetes import FullKubernetes
from tests.trickling import HEAD, NEVER_ENDING_HEAD, SOON_SECONDS, Stopwatch, trickling
from tests.unit.worlds.build import OWNER, instance, key


def kubeconfig(directory: Path, url: str, user: dict[str, Any] | None = None) -> str:
    """Write a kubeconfig for this server, and return its path."""
    content = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": user or {"token": "t"}}],
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "one",
    }
    path = directory / "config"
    path.write_text(json.dumps(content))
    return str(path)


@pytest.mark.loopback
@pytest.mark.parametrize("at_once", [HEAD, NEVER_ENDING_HEAD], ids=["body", "head"])
def test_a_pass_ends_in_its_time_when_both_servers_trickle(at_once: bytes, tmp_path: Path) -> None:
    """A pass of two seconds ends without any source read, long before either answer would end."""
    clock = SystemClock()
    with trickling(at_once) as eureka, trickling(at_once) as kubernetes:
        installation = Installation(
            eureka_url=f"{eureka.url}/eureka",
            kubeconfig=kubeconfig(tmp_path, kubernetes.url),
            concurrency=2,
        )
        with connect(installation, clock) as world:
            watch = Stopwatch()
            report = reconcile(world, PassSettings(owner="prod", deadline=2))
            assert watch.seconds < SOON_SECONDS
    assert isinstance(report.registry, Unknown)
    assert report.view is not None
    assert isinstance(report.view.identity, Unknown)


@pytest.mark.loopback
def test_a_trickling_eureka_leaves_time_for_the_cluster(tmp_path: Path) -> None:
    """The list of the registry takes only the time of its stage. The cluster is read completely
    after it."""
    clock = SystemClock()
    server = FullKubernetes(clock.now)
    with trickling() as eureka, LoopbackServer(server.handle) as kubernetes:
        installation = Installation(
            eureka_url=f"{eureka.url}/eureka",
            kubeconfig=kubeconfig(tmp_path, kubernetes.url),
            concurrency=2,
        )
        with connect(installation, clock) as world:
            report = reconcile(world, PassSettings(owner="prod", deadline=3))
    assert isinstance(report.registry, Unknown)
    assert report.view is not None
    assert not isinstance(report.view.identity, Unknown)


def registered(url: str) -> None:
    """Register our instance on this server."""
    options = ConnectionOptions(address=EurekaAddress.parse(f"{url}/eureka"))
    with EurekaClient(options, clock=SystemClock(), random=random.Random(0)) as eureka:
        eureka.register(instance(1), dirty_timestamp=1)


@pytest.mark.loopback
def test_an_instance_of_another_peer_alone_is_renewed_after_a_single_pass() -> None:
    """During a pass, its renewal waits for the next list. After a single pass there is no next
    list."""
    clock = SystemClock()
    puts = []

    def second(request: Request) -> Response:
        puts.extend([request.path] if request.method == "PUT" else [])
        return holder.handle(request)

    holder, other = FullEureka(clock.now), FullEureka(clock.now)
    with LoopbackServer(other.handle) as one, LoopbackServer(second) as two:
        registered(two.url)
        urls = f"{one.url}/eureka,{two.url}/eureka"
        with connect_registry(Installation(eureka_url=urls, sweep_interval=1), clock) as world:
            assert isinstance(world.registry.list_instances(), Complete)
            assert not world.registry.renew(key(1))
            assert puts == []
        assert len(puts) == 1


@pytest.mark.loopback
def test_leases_are_renewed_while_the_credentials_program_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hangs from the second call on. The pass ends in its time, renews our instance, and reports
    the reason."""
    monkeypatch.setattr(
        "eurekube_sync.cli.options.servers.ConnectionSettings",
        partial(ConnectionSettings, again_seconds=0),
    )
    clock = SystemClock()
    hangs = tmp_path / "hangs"
    token = {"token": "t", "expirationTimestamp": "2020-01-01T00:00:00Z"}
    version = "client.authentication.k8s.io/v1"
    credential = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": token})
    script = f"while [ -e {hangs} ]; do sleep 0.02; done; echo '{credential}'"
    plugin = {
        "apiVersion": version,
        "command": "sh",
        "args": ["-c", script],
        "interactiveMode": "Never",
    }
    eurekas, cluster = FullEureka(clock.now), FullKubernetes(clock.now)
    with LoopbackServer(eurekas.handle) as eureka, LoopbackServer(cluster.handle) as kubernetes:
        installation = Installation(
            eureka_url=f"{eureka.url}/eureka",
            kubeconfig=kubeconfig(tmp_path, kubernetes.url, {"exec": plugin}),
            call_timeout=0.5,
        )
        with connect(installation, clock) as world:
            identity = world.cluster.identity()
            assert isinstance(identity, Complete)
            ours = instance(1)
            marks = {**ours.metadata, "eurekube.cluster": identity.data}
            world.registry.register(replace(ours, metadata=marks), dirty_timestamp=1)
            hangs.touch()
            watch = Stopwatch()
            report = reconcile(world, PassSettings(owner=OWNER, deadline=10))
            assert watch.seconds < SOON_SECONDS
            hangs.unlink()
    assert report.outcomes.by_key[key(1)].result is Result.DONE
    told = " ".join(sentences(report))
    assert "no credentials for the Kubernetes API: the kubeconfig's program for them" in told
