"""The server of --listen, over a socket."""

from __future__ import annotations

import socket
import struct
from contextlib import ExitStack, suppress

import pytest
import requests

from eurekube_sync.cli.monitoring import server as listening
from eurekube_sync.cli.monitoring.metrics import Monitor
from eurekube_sync.cli.monitoring.page import POLICY
from eurekube_sync.cli.monitoring.server import serving
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.model.errors import ConfigurationError
from tests.unit.worlds.build import endpoint, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld

pytestmark = pytest.mark.loopback


@pytest.fixture
def world() -> FakeWorld:
    found = FakeWorld()
    found.cluster.apply(syncer(), service(), piece(endpoint(1)))
    return found


@pytest.fixture
def monitor(world: FakeWorld) -> Monitor:
    return Monitor(world.clock, "shop", "all", allowed=100, keeps_reports=True)


def test_the_paths(world: FakeWorld, monitor: Monitor) -> None:
    """Health is asked before and after a pass. Only /livez reports that the loop has stopped."""
    with serving(monitor, "127.0.0.1", 0) as url:
        assert requests.get(f"{url}/livez", timeout=10).text == "ok\n"
        early = requests.get(f"{url}/readyz", timeout=10)
        assert (early.status_code, early.text) == (503, "no pass has ended yet\n")
        monitor.passed(world.run(), ExitCode.OK, "1 registered", 1)
        assert requests.get(f"{url}/readyz?verbose", timeout=10).status_code == 200
        metrics = requests.get(f"{url}/metrics", timeout=10)
        assert metrics.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert 'eurekube_sync_instances{app="RATING",state="UP"} 1.0' in metrics.text
        assert "process_cpu_seconds_total" in metrics.text
        page = requests.get(url, timeout=10)
        assert "1 registered" in page.text
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        single = requests.get(f"{url}/syncer/rating/rating", timeout=10)
        assert "its spec is valid" in single.text
        assert "1 of 1 syncer" in requests.get(f"{url}/?q=rating", timeout=10).text
        assert requests.head(url, timeout=10).text == ""
        world.later(1000)
        late = requests.get(f"{url}/livez", timeout=10)
        assert (late.status_code, late.text) == (503, "passes have stopped\n")
    with pytest.raises(requests.ConnectionError):
        requests.get(url, timeout=10)


GET = "GET {} HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (GET.format("/nowhere"), 404),
        (GET.format("/syncer"), 404),
        (GET.format("/syncer/"), 404),
        (GET.format("/syncer/rating/nosuch"), 404),
        (GET.format("/import/rating/rating"), 404),
        (GET.format("/syncer/../../etc/passwd"), 404),
        (GET.format("/syncer/%2e%2e%2f/%00"), 404),
        (GET.format("/metrics/x"), 404),
        (GET.format("//x"), 404),
        (GET.format("http://elsewhere/"), 404),
        (GET.format("/?q=<script>"), 200),
        (GET.format("/?state=nosuch"), 400),
        (GET.format("/?q=" + "x" * 60_000), 400),
        (GET.format("/?q=" + "x" * 1_000_000), 414),
        (GET.format("/").replace("Host: x", "X: " + "x" * 70_000), 431),
        ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nGET /", 501),
        ("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 501),
        ("<script> / HTTP/1.1\r\nHost: x\r\n\r\n", 501),
        ("GET / HTTP/9.9\r\nHost: x\r\n\r\n", 505),
        ("GET\r\n\r\n", 400),
        ("\x16\x03\x01\r\n\r\n", 400),
        (GET.format("/livez"), 200),
        (GET.format("/readyz"), 200),
        (GET.format("/metrics"), 200),
        (GET.format("/"), 200),
        (GET.format("/syncer/rating/rating"), 200),
    ],
)
def test_every_answer_has_the_headers_that_keep_a_browser_safe(
    world: FakeWorld, monitor: Monitor, request_: str, status: int
) -> None:
    """Also those to what no browser sends. Nothing of a request becomes an element."""
    monitor.passed(world.run(), ExitCode.OK, "1 registered", 1)
    with serving(monitor, "127.0.0.1", 0) as url:
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        with socket.create_connection(address, 10) as client:
            with suppress(OSError):  # it hangs up without reading all
                client.sendall(request_.encode("latin-1"))
                client.shutdown(socket.SHUT_WR)
            answer = b""
            with suppress(ConnectionError):
                while part := client.recv(1 << 16):
                    answer += part
        assert requests.get(f"{url}/livez", timeout=10).text == "ok\n"
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    assert first.split()[1] == str(status)
    assert answer.count(b"HTTP/1.1 ") == 1
    headers = dict(line.split(": ", 1) for line in lines)
    assert headers["Cache-Control"] == "no-store"
    assert headers["Content-Security-Policy"] == POLICY
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Content-Type"] in (
        "text/html; charset=utf-8",
        "text/plain; charset=utf-8",
        "text/plain; version=0.0.4; charset=utf-8",
    )
    assert int(headers["Content-Length"]) == len(body)
    assert b"<script" not in body
    assert "Python" not in head.decode()


def test_an_address_that_is_taken_is_a_sentence(monitor: Monitor) -> None:
    """The sentence names the option."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        expected = f"--listen cannot open 127.0.0.1:{port}: Address already in use"
        with pytest.raises(ConfigurationError, match=expected), serving(monitor, "127.0.0.1", port):
            pass


def test_an_ipv6_address(monitor: Monitor) -> None:
    """URLs have it in brackets."""
    with serving(monitor, "::1", 0) as url:
        assert url.startswith("http://[::1]:")
        assert requests.get(f"{url}/livez", timeout=10).status_code == 200


def test_clients_that_say_nothing_do_not_use_up_the_files_of_the_process(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest connections are closed for new ones. So a probe is answered, and files are left
    for renewals."""
    monkeypatch.setattr(listening, "_MOST_CLIENTS", 3)
    monkeypatch.setattr(listening._Connection, "timeout", 60)
    with serving(monitor, "127.0.0.1", 0) as url, ExitStack() as opened:
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        silent = [opened.enter_context(socket.create_connection(address, 2)) for _ in range(4)]
        assert requests.get(f"{url}/livez", timeout=10).text == "ok\n"
        assert [one.recv(1) for one in silent[:2]] == [b"", b""]
        silent[-1].sendall(b"GET /livez HTTP/1.0\r\n\r\n")
        assert silent[-1].recv(15) == b"HTTP/1.1 200 OK"


def test_a_client_that_breaks_off_is_no_news(
    monitor: Monitor, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next client is answered, and no error is printed."""
    with serving(monitor, "127.0.0.1", 0) as url:
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        with socket.create_connection(address, 2) as client:
            client.sendall(b"GET /livez")
            client.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )  # close it by a reset
        assert requests.get(f"{url}/livez", timeout=10).text == "ok\n"
    assert capsys.readouterr().err == ""
