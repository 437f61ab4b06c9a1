"""Time limits of calls to Eureka: whatever the server does, a call ends with the limit of its stage
or sooner."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.adapters.threads import in_side_thread
from eurekube_sync.embedded.http import LoopbackServer, Request, Response
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import RegistryUnavailable
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.sources import Cause, Unknown
from tests.in_process.eureka import InProcessAdapter
from tests.trickling import (
    HEAD,
    MOMENT,
    NEVER_ENDING_HANDSHAKE,
    NEVER_ENDING_HEAD,
    SOON_SECONDS,
    Stopwatch,
    stopped_when_asked,
    trickling,
)
from tests.unit.adapters.eureka.test_eureka_calls import Highest
from tests.unit.worlds.clock import Clock

KEY = InstanceKey("RATING", "prod:shop:rating:10.0.0.1:8080")


def client(
    url: str, clock: SystemClock, limit: TimeLimit | None = None, **options: Any
) -> EurekaClient:
    settings = ConnectionOptions(address=EurekaAddress.parse(f"{url}/eureka"), **options)
    return EurekaClient(settings, clock=clock, random=random.Random(0), limit=limit)


@pytest.mark.loopback
@pytest.mark.parametrize("at_once", [HEAD, NEVER_ENDING_HEAD], ids=["body", "head"])
def test_a_trickling_answer_ends_with_its_own_limit(at_once: bytes) -> None:
    """The server sends a byte every moment, so it is never silent. The list is Unknown after one
    try."""
    with (
        trickling(at_once) as server,
        client(server.url, SystemClock(), answer_timeout=MOMENT) as eureka,
    ):
        watch = Stopwatch()
        source = eureka.list_instances()
        assert watch.seconds < SOON_SECONDS
    assert isinstance(source, Unknown)
    assert source.cause is Cause.UNAVAILABLE
    assert f"was not answered completely in {MOMENT} s" in source.message
    assert server.calls == 1


@pytest.mark.loopback
@pytest.mark.parametrize("at_once", [HEAD, NEVER_ENDING_HEAD], ids=["body", "head"])
def test_a_trickling_answer_ends_with_the_limit_of_the_stage(at_once: bytes) -> None:
    """The rest of the stage's time limits the whole answer. No call begins after it."""
    clock = SystemClock()
    limit = TimeLimit(clock)
    with trickling(at_once) as server, client(server.url, clock, limit) as eureka:
        limit.end = clock.monotonic() + MOMENT
        watch = Stopwatch()
        source = eureka.list_instances()
        with pytest.raises(RegistryUnavailable, match="was not tried"):
            eureka.renew(KEY)
        assert watch.seconds < SOON_SECONDS
    assert isinstance(source, Unknown)
    assert source.message.endswith(
        "GET " + server.url + "/eureka/apps was not answered in the time that was left"
    )
    assert server.calls == 1


@pytest.mark.loopback
def test_silence_ends_with_the_limit_of_the_stage() -> None:
    """The client waits for a silent server no longer than the time that is left, whatever the read
    timeout."""
    clock = SystemClock()
    limit = TimeLimit(clock)
    with trickling(b"", pause=60) as server, client(server.url, clock, limit) as eureka:
        limit.end = clock.monotonic() + MOMENT
        watch = Stopwatch()
        with pytest.raises(RegistryUnavailable, match="was not answered in the time that was left"):
            eureka.renew(KEY)
        assert watch.seconds < SOON_SECONDS


@pytest.mark.loopback
def test_silence_ends_with_the_read_timeout() -> None:
    """Without a limit of the stage, the read timeout of the options applies."""
    with (
        trickling(b"", pause=60) as server,
        client(server.url, SystemClock(), read_timeout=0.2, retries=0) as eureka,
    ):
        watch = Stopwatch()
        with pytest.raises(RegistryUnavailable, match="no answer in time"):
            eureka.renew(KEY)
        assert 0.2 <= watch.seconds < SOON_SECONDS


@pytest.mark.loopback
def test_a_stop_ends_a_trickling_answer() -> None:
    """After SIGTERM, an endless answer gets a moment more. The call is not repeated."""
    clock = SystemClock()
    with trickling() as server, client(server.url, clock) as eureka:
        watch = Stopwatch()
        with stopped_when_asked(server, clock.stop), pytest.raises(RegistryUnavailable):
            eureka.renew(KEY)
        assert watch.seconds < SOON_SECONDS
    assert server.calls == 1


def in_process(
    clock: Clock, limit: TimeLimit, answer: Response
) -> tuple[EurekaClient, list[Request]]:
    asked: list[Request] = []

    def handle(request: Request) -> Response:
        asked.append(request)
        return answer

    options = ConnectionOptions(address=EurekaAddress.parse("http://eureka/eureka"))
    adapter = InProcessAdapter(handle)
    return EurekaClient(options, clock=clock, random=Highest(), adapter=adapter, limit=limit), asked


def test_nothing_is_tried_when_nothing_is_left() -> None:
    """No call begins after the limit. The list is Unknown."""
    clock = Clock()
    limit = TimeLimit(clock)
    eureka, asked = in_process(clock, limit, Response(status=200))
    limit.end = clock.monotonic()
    with pytest.raises(RegistryUnavailable, match="was not tried: no time was left for it"):
        eureka.renew(KEY)
    source = eureka.list_instances()
    assert isinstance(source, Unknown)
    assert (source.cause, asked) == (Cause.UNAVAILABLE, [])


def test_no_retry_waits_beyond_the_limit() -> None:
    """A wait longer than the time that is left does not begin. The error is that of the last
    try."""
    clock = Clock()
    limit = TimeLimit(clock)
    eureka, asked = in_process(clock, limit, Response(status=503))
    limit.end = clock.monotonic() + 0.5
    with pytest.raises(RegistryUnavailable, match="answered 503"):
        eureka.renew(KEY)
    assert (len(asked), clock.slept) == (2, [0.25])


def test_a_limit_that_is_lifted_bounds_nothing() -> None:
    """A later stage may have more time."""
    clock = Clock()
    limit = TimeLimit(clock)
    eureka, asked = in_process(clock, limit, Response(status=404))
    limit.end = clock.monotonic()
    limit.end = float("inf")
    assert not eureka.renew(KEY)
    assert len(asked) == 1


@pytest.mark.loopback
def test_a_handshake_that_trickles_ends_with_the_limit_of_the_stage() -> None:
    """No socket timeout ends it, because a byte comes every moment."""
    clock = SystemClock()
    limit = TimeLimit(clock)
    with trickling(NEVER_ENDING_HANDSHAKE, asked=b"") as server:
        with client(server.url.replace("http:", "https:"), clock, limit, retries=0) as eureka:
            limit.end = clock.monotonic() + MOMENT
            watch = Stopwatch()
            with pytest.raises(
                RegistryUnavailable, match="was not answered in the time that was left"
            ):
                eureka.renew(KEY)
            assert watch.seconds < SOON_SECONDS
        assert len(server.threads) == 1


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Name servers that answer only after this event is set. The system's resolver has no
    timeout."""
    answering, real = threading.Event(), socket.getaddrinfo

    def resolve(*args: Any, **kwargs: Any) -> Any:
        answering.wait(300)
        return real(*args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    yield answering
    answering.set()


@pytest.mark.loopback
def test_name_servers_that_hang_end_with_the_limit_of_the_stage(names: threading.Event) -> None:
    """The call takes no longer than the time that is left."""
    clock = SystemClock()
    limit = TimeLimit(clock)
    with trickling(whole=True) as server, client(server.url, clock, limit) as eureka:
        limit.end = clock.monotonic() + MOMENT
        watch = Stopwatch()
        with pytest.raises(RegistryUnavailable, match="was not answered in the time that was left"):
            eureka.renew(KEY)
        assert watch.seconds < SOON_SECONDS
        assert server.calls == 0


@pytest.mark.loopback
def test_name_servers_that_hang_end_with_twice_the_connect_timeout(names: threading.Event) -> None:
    """So time is left to call the next peer. A connection that opens later is closed, and the next
    call works."""
    clock = SystemClock()
    with (
        trickling(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", whole=True) as server,
        client(server.url, clock, connect_timeout=0.2, retries=0) as eureka,
    ):
        watch = Stopwatch()
        with pytest.raises(RegistryUnavailable, match="no connection in time"):
            eureka.renew(KEY)
        assert 0.4 <= watch.seconds < SOON_SECONDS
        names.set()
        assert not eureka.renew(KEY)


@pytest.mark.loopback
@pytest.mark.parametrize("location", ["http://[x/", "/gesperrt/\xfc"])
def test_a_redirect_that_makes_no_sense_keeps_no_connection(location: str) -> None:
    """If it kept the connection, the next call would wait for one without end."""
    answer = Response(status=302, headers={"Location": location})
    with (
        LoopbackServer(lambda request: answer) as server,
        client(server.url, SystemClock(), concurrency=1) as eureka,
    ):
        for _ in range(3):
            found = in_side_thread(eureka.list_instances).result(SOON_SECONDS)
            assert isinstance(found, Unknown)
            assert "redirects are not followed" in found.message
