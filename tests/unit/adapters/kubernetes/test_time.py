"""Time limits of calls to the Kubernetes API: whatever the server does, a call ends with the limit
of its stage or sooner."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from eurekube_sync.adapters import tries
from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.connection import ClientConnection, ConnectionSettings
from eurekube_sync.adapters.threads import in_side_thread
from eurekube_sync.adapters.tries import AnswerTime
from eurekube_sync.embedded.http import LoopbackServer, Request, Response
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import ClusterUnavailable, ConfigurationError
from eurekube_sync.model.kubernetes import SyncerStatus
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown
from tests.embedded.kubernetes import FullKubernetes
from tests.trickling import (
    HEAD,
    NEVER_ENDING_HEAD,
    SOON_SECONDS,
    Stopwatch,
    stopped_when_asked,
    trickling,
)
from tests.unit.adapters.kubernetes.world import Half, World, answer
from tests.waiting import wait_until


def unavailable(source: Source[Any]) -> str:
    """Return the sentence of a source that is unavailable."""
    assert isinstance(source, Unknown)
    assert source.cause is Cause.UNAVAILABLE
    return source.message


def client(
    url: str, directory: Path, clock: SystemClock, limit: TimeLimit, **options: Any
) -> KubernetesCluster:
    content = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "one",
    }
    path = directory / "config"
    path.write_text(json.dumps(content))
    connection = ClientConnection(ConnectionSettings(kubeconfig=str(path)), {})
    return KubernetesCluster(
        connection, clock=clock, random=random.Random(0), limit=limit, **options
    )


@pytest.mark.loopback
@pytest.mark.parametrize("at_once", [HEAD, NEVER_ENDING_HEAD], ids=["body", "head"])
def test_a_trickling_answer_ends_with_its_own_limit(at_once: bytes, tmp_path: Path) -> None:
    """The server sends a byte every moment, so it is never silent. The list is Unknown after one
    try."""
    clock = SystemClock()
    with trickling(at_once) as server:
        cluster = client(server.url, tmp_path, clock, TimeLimit(clock), answer_seconds=1)
        watch = Stopwatch()
        message = unavailable(cluster.list_services(None).elsewhere)
        assert watch.seconds < SOON_SECONDS
    assert message == (
        f"GET /api/v1/services to the Kubernetes API at {server.url} was not answered completely "
        "in 1 s: the server or "
        "the network is too slow"
    )
    assert server.calls == 1


@pytest.mark.loopback
@pytest.mark.parametrize("at_once", [HEAD, NEVER_ENDING_HEAD], ids=["body", "head"])
def test_trickling_lists_end_with_the_limit_of_the_stage(at_once: bytes, tmp_path: Path) -> None:
    """Lists of fifty namespaces and all other reads together take no longer than the time that was
    left."""
    clock = SystemClock()
    limit = TimeLimit(clock)
    namespaces = [f"n-{number}" for number in range(50)]
    with trickling(at_once) as server:
        cluster = client(server.url, tmp_path, clock, limit)
        limit.end = clock.monotonic() + 1
        watch = Stopwatch()
        listed = cluster.list_services(namespaces)
        assert "in the time that was left" in unavailable(listed.of("n-0"))
        assert "were not listed, because" in unavailable(listed.of("n-49"))
        assert "no time was left" in unavailable(cluster.list_slices(namespaces).of("n-0"))
        assert "no time was left" in unavailable(cluster.list_syncers(None).elsewhere)
        assert "no time was left" in unavailable(cluster.identity())
        assert "no time was left" in unavailable(cluster.crd_live())
        assert watch.seconds < SOON_SECONDS
    assert server.calls == 1


@pytest.mark.loopback
def test_a_stop_ends_a_trickling_answer(tmp_path: Path) -> None:
    """After SIGTERM, an endless answer gets a moment more. The call is not repeated."""
    clock = SystemClock()
    with trickling() as server:
        cluster = client(server.url, tmp_path, clock, TimeLimit(clock))
        watch = Stopwatch()
        with stopped_when_asked(server, clock.stop):
            unavailable(cluster.identity())
        assert watch.seconds < SOON_SECONDS
    assert server.calls == 1


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("at_once", "sentence"),
    [
        (HEAD + b"{", "the answer broke off"),
        (HEAD + b"{}}}", "the answer broke off"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "the answer broke off"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabc\r\n",
            "the connection broke",
        ),
    ],
)
def test_a_sentence_holds_no_number_of_the_moment(
    at_once: bytes, sentence: str, tmp_path: Path
) -> None:
    """It gives neither a waiting time nor a size. So the condition stays the same as long as the
    failure does."""
    clock = SystemClock()
    limit = TimeLimit(clock)
    with trickling(at_once, pause=0, whole=True) as server:
        cluster = client(server.url, tmp_path, clock, limit, tries=1)
        limit.end = clock.monotonic() + 5.678
        message = unavailable(cluster.crd_live())
    call = "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/eurekasyncers.eurekube.io"
    assert message == f"no answer from the Kubernetes API at {server.url} to {call}: {sentence}"


@pytest.mark.loopback
@pytest.mark.parametrize("left", [0.1, 0.25])
def test_silence_ends_with_the_limit_of_the_stage(left: float, tmp_path: Path) -> None:
    """The client waits for a silent server no longer than the time that is left. The sentence does
    not depend on the waiting time."""
    clock = SystemClock()
    limit = TimeLimit(clock)
    with trickling(b"", pause=60) as server:
        cluster = client(server.url, tmp_path, clock, limit)
        limit.end = clock.monotonic() + left
        watch = Stopwatch()
        message = unavailable(cluster.list_services(None).elsewhere)
        assert watch.seconds < SOON_SECONDS
    assert (
        message
        == f"GET /api/v1/services to the Kubernetes API at {server.url} was not answered in the "
        "time that was left"
    )


@pytest.mark.loopback
def test_a_page_that_is_too_large_is_asked_for_in_smaller_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One tenant's large annotations must not make everybody's list unknown. Later pages stay
    small."""
    monkeypatch.setattr(tries, "LARGEST", 2**20)
    large = [
        {"metadata": {"name": f"s-{n:03}", "namespace": "shop"}, "spec": {}, "x": "y" * 20_000}
        for n in range(100)
    ]
    limits: list[str] = []

    def handle(request: Request) -> Response:
        limits.append(request.query["limit"])
        begin, limit = int(request.query.get("continue", "0")), int(request.query["limit"])
        token = str(begin + limit) if begin + limit < len(large) else ""
        items = large[begin : begin + limit]
        body = {
            "kind": "ServiceList",
            "metadata": {"resourceVersion": "7", "continue": token},
            "items": items,
        }
        return Response(
            status=200, headers={"Content-Type": "application/json"}, body=json.dumps(body).encode()
        )

    clock = SystemClock()
    with LoopbackServer(handle) as server:
        found = client(server.url, tmp_path, clock, TimeLimit(clock)).list_services(None).of("shop")
    assert isinstance(found, Complete)
    assert [one.name for one in found.data] == [one["metadata"]["name"] for one in large]  # type: ignore[index]
    assert limits == ["500", "62", *["7"] * 15]


@pytest.mark.loopback
def test_an_answer_that_is_too_large_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program must not run out of memory, and the next call works."""
    monkeypatch.setattr(tries, "LARGEST", 2**20)
    sizes = [*[2**20 + 1] * 4, 2**20]  # even the smallest page is too large

    def handle(request: Request) -> Response:
        return Response(
            status=200, headers={"Content-Type": "application/json"}, body=b" " * sizes.pop(0)
        )

    clock = SystemClock()
    with LoopbackServer(handle) as server:
        cluster = client(server.url, tmp_path, clock, TimeLimit(clock))
        found = cluster.list_services(None).elsewhere
        assert isinstance(found, Unknown)
        assert found.cause is Cause.UNUSABLE
        assert found.message.endswith(
            f"{server.url} was answered with more than 1 MB, the limit for one answer; "
            "a larger memory limit of the container raises it"
        )
        second = cluster.list_services(None).elsewhere
        assert isinstance(second, Unknown)
        assert "no complete list" in second.message
    assert sizes == []


def limited(world: World) -> tuple[KubernetesCluster, TimeLimit]:
    limit = TimeLimit(world.clock)
    return KubernetesCluster(world.connection, clock=world.clock, random=Half(), limit=limit), limit


def test_nothing_is_tried_when_nothing_is_left() -> None:
    """Lists are Unknown and writes raise, without a call. They work again when there is time."""
    world = World()
    syncer = world.make_syncer()
    cluster, limit = limited(world)
    before = len(world.requests)
    limit.end = world.clock.monotonic()
    unavailable(cluster.list_syncers(["shop"]).of("shop"))
    with pytest.raises(ClusterUnavailable, match="was not tried: no time was left for it"):
        cluster.write_status(syncer, SyncerStatus(observed_generation=1))
    assert len(world.requests) == before
    limit.end = world.clock.monotonic() + 1
    assert isinstance(cluster.list_syncers(["shop"]).of("shop"), Complete)


class Plugin:
    """A credentials program whose token expires at once, so it runs for each call. It hangs while
    the file `hangs` exists. The next run after the file `once` is made deletes this file, and hangs
    until the end of the test."""

    def __init__(self, directory: Path, url: str) -> None:
        self.hangs, self.runs, self.config = (
            directory / "hangs",
            directory / "runs",
            directory / "config",
        )
        self.once, self.freed = directory / "once", directory / "freed"
        credential = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {"token": "t", "expirationTimestamp": "2020-01-01T00:00:00Z"},
        }
        script = (
            f"echo >> {self.runs}; while [ -e {self.hangs} ]; do sleep 0.02; done; "
            f"if rm {self.once} 2> /dev/null; then while [ ! -e {self.freed} ]; do sleep 0.02; "
            "done; fi; "
            f"echo '{json.dumps(credential)}'"
        )
        plugin = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "sh",
            "args": ["-c", script],
            "interactiveMode": "Never",
        }
        content = {
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "users": [{"name": "u", "user": {"exec": plugin}}],
            "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "one",
        }
        self.config.write_text(json.dumps(content))

    def count(self) -> int:
        """Return how often it ran."""
        return len(self.runs.read_text().splitlines())


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Plugin]:
    """A credentials program for an embedded server."""
    server = FullKubernetes(SystemClock().now)
    with LoopbackServer(server.handle) as kubernetes:
        found = Plugin(tmp_path, kubernetes.url)
        yield found
        found.freed.touch()
        found.hangs.unlink(missing_ok=True)


@pytest.mark.loopback
def test_a_program_for_the_credentials_that_hangs_ends_no_later_than_a_call(plugin: Plugin) -> None:
    """All calls wait for the one run. Each waits no longer than the read timeout, or than its stage
    lasts. After the run has ended, the next call works."""
    clock = SystemClock()
    limit = TimeLimit(clock)
    connection = ClientConnection(
        ConnectionSettings(kubeconfig=str(plugin.config), read_seconds=0.3, again_seconds=0), {}
    )
    cluster = KubernetesCluster(connection, clock=clock, random=random.Random(0), limit=limit)
    wait_until(lambda: isinstance(cluster.identity(), Complete), "the program does not run")
    plugin.hangs.touch()
    before, watch = plugin.count(), Stopwatch()
    with ThreadPoolExecutor(4) as threads:
        listed = list(threads.map(lambda _: cluster.list_services(None), range(4)))
    limit.end = clock.monotonic() + 0.1
    listed.append(cluster.list_services(None))
    assert watch.seconds < SOON_SECONDS
    sentence = "no credentials for the Kubernetes API: the kubeconfig's program for them"
    assert {unavailable(one.elsewhere).partition(" (exec)")[0] for one in listed} == {sentence}
    wait_until(lambda: plugin.count() > before, "the program does not run")
    assert plugin.count() == before + 1
    plugin.hangs.unlink()
    limit.end = math.inf
    wait_until(
        lambda: isinstance(cluster.list_services(None).elsewhere, Complete),
        "the program has not ended",
    )


def forgetting(plugin: Plugin, seconds: float) -> KubernetesCluster:
    """A client that waits at most this long for one run before it starts another."""
    settings = ConnectionSettings(
        kubeconfig=str(plugin.config), read_seconds=0.1, hang_seconds=seconds, again_seconds=0
    )
    cluster = KubernetesCluster(
        ClientConnection(settings, {}), clock=SystemClock(), random=random.Random(0)
    )
    wait_until(lambda: isinstance(cluster.identity(), Complete), "the program does not run")
    return cluster


@pytest.mark.loopback
def test_a_credentials_program_that_never_ends_is_started_again(plugin: Plugin) -> None:
    """A second run starts while the first one hangs. The first run's late answer is ignored."""
    cluster = forgetting(plugin, 0.3)
    before, watch = plugin.count(), Stopwatch()
    plugin.once.touch()
    unavailable(cluster.crd_live())
    wait_until(lambda: plugin.count() > before, "the program does not run")
    assert plugin.count() == before + 1 or watch.seconds >= 0.3
    wait_until(
        lambda: isinstance(cluster.list_services(None).elsewhere, Complete),
        "the API server is asked again",
    )
    assert watch.seconds >= 0.3
    plugin.freed.touch()
    wait_until(
        lambda: isinstance(cluster.list_services(None).elsewhere, Complete),
        "the API server is asked no more",
    )


@pytest.mark.loopback
def test_each_program_that_never_ends_makes_the_wait_for_the_next_longer(plugin: Plugin) -> None:
    """We do not end these programs, so few of them may start."""
    cluster = forgetting(plugin, 0.1)
    before, watch = plugin.count(), Stopwatch()
    plugin.hangs.touch()

    def four_hang() -> bool:
        unavailable(cluster.crd_live())
        return plugin.count() >= before + 4

    wait_until(four_hang, "three were left behind")
    assert watch.seconds >= 0.1 + 0.2 + 0.4
    plugin.hangs.unlink()
    wait_until(lambda: isinstance(cluster.list_services(None).elsewhere, Complete), "the last ends")


def test_a_path_that_the_machine_refuses_is_one_sentence() -> None:
    """The system's reason is part of the sentence. Another reason is a disk that does not
    answer."""
    with pytest.raises(ConfigurationError, match=r"the kubeconfig x+ cannot be read: .*too long"):
        ClientConnection(ConnectionSettings(kubeconfig="x" * 300), {})


def test_a_timeout_inside_of_a_call_is_not_taken_for_the_end_of_the_wait_for_it() -> None:
    """The call has ended, and its own error says what was late."""

    def late() -> None:
        raise TimeoutError("the disk does not answer")

    clock = SystemClock()
    call = in_side_thread(late)
    AnswerTime(clock, 60, TimeLimit(clock)).wait_for(call, 60)
    with pytest.raises(TimeoutError, match="the disk does not answer"):
        call.result()


@pytest.mark.loopback
def test_a_program_for_the_credentials_that_hangs_at_the_start_is_one_sentence(
    plugin: Plugin,
) -> None:
    """The program gets time, because it may ask a person. The wait has a limit."""
    plugin.hangs.touch()
    watch = Stopwatch()
    with pytest.raises(
        ConfigurationError, match=r"did not come in 0\.2 s: the kubeconfig's program for them"
    ):
        ClientConnection(ConnectionSettings(kubeconfig=str(plugin.config), start_seconds=0.2), {})
    assert watch.seconds < SOON_SECONDS


def test_no_retry_waits_beyond_the_limit() -> None:
    """A wait longer than the time that is left does not begin. The error is that of the last
    try."""
    world = World()
    cluster, limit = limited(world)
    world.fault = lambda request, number: answer(503, {"kind": "Status", "message": "busy"})
    limit.end = world.clock.monotonic() + 0.3
    assert unavailable(cluster.identity()).endswith("busy")
    assert world.clock.slept == [0.125]


def test_a_server_without_an_answer_is_asked_for_one_namespace_alone() -> None:
    """Later namespaces of the list are Unknown without a call. Earlier ones are Complete."""
    world = World()
    before = len(world.requests)

    def fail_in_second(request: Request, number: int) -> None:
        if number - before > 1:
            raise TimeoutError("timed out")

    world.fault = fail_in_second
    listed = world.cluster.list_services(["shop", "b", "c", "d"])
    assert listed.of("shop") == Complete(data=())
    assert "timed out" in unavailable(listed.of("b"))
    assert (
        unavailable(listed.of("d"))
        == "services were not listed, because the API gave no answer for namespace b"
    )
    assert len(world.requests) - before == 1 + 4


def test_a_known_cluster_uid_is_read_again_only_on_request() -> None:
    """The first read that works is remembered. A later read with another UID does not change it."""
    world = World()
    world.fault = lambda request, number: answer(403, {"kind": "Status", "message": "no"})
    assert isinstance(world.cluster.identity(), Unknown)
    world.fault = lambda request, number: None
    known = world.cluster.identity()
    assert isinstance(known, Complete)
    before = len(world.requests)
    world.fault = lambda request, number: answer(503)
    assert world.cluster.identity() == known
    assert len(world.requests) == before
    assert isinstance(world.cluster.identity(anew=True), Unknown)
    world.fault = lambda request, number: answer(
        200, {"metadata": {"name": "kube-system", "uid": "another"}}
    )
    assert world.cluster.identity(anew=True) == Complete(data="another")
    assert world.cluster.identity() == known
