"""The server of `--listen`: metrics, health, and the status page. It reads no body, and answers GET
and HEAD alone."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET, AF_INET6, SHUT_RDWR
from threading import Thread
from typing import Any, NamedTuple, TypeAlias

from eurekube_sync.cli.monitoring.exposition import CONTENT_TYPE, text
from eurekube_sync.cli.monitoring.metrics import Monitor
from eurekube_sync.cli.monitoring.page import POLICY, Page
from eurekube_sync.model.errors import ConfigurationError

_SECONDS = 10  # after which a silent client is disconnected
_MOST_CLIENTS = 100  # at once; each takes a file descriptor, and renewals need these, too
_HTML = "text/html; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"
_log = logging.getLogger(__name__)


class _Answer(NamedTuple):
    status: int
    kind: str  # the content type
    body: bytes


_NOT_FOUND = _Answer(404, _TEXT, b"there is /, /metrics, /livez and /readyz\n")
_Route: TypeAlias = Callable[[str, str], _Answer]  # of a path without its first slash, and a query


def _routes(monitor: Monitor, page: Page) -> Mapping[str, _Route]:
    """Return the function that answers, by the first part of the path."""

    def single(path: str, query: str) -> _Answer:
        status, body = page.single(path)
        return _Answer(status, _HTML, body)

    def first(path: str, query: str) -> _Answer:
        status, body = page.first(query)
        return _Answer(status, _HTML, body)

    return {
        "": first,
        "syncer": single,
        "import": single,
        "metrics": lambda path, query: _Answer(200, CONTENT_TYPE, text(monitor)),
        "livez": lambda path, query: _health(monitor.live, "passes have stopped"),
        "readyz": lambda path, query: _health(monitor.ready, "no pass has ended yet"),
    }


def _health(good: bool, why: str) -> _Answer:
    if good:
        return _Answer(200, _TEXT, b"ok\n")
    body = f"{why}\n"
    return _Answer(503, _TEXT, body.encode())


@contextmanager
def serving(
    monitor: Monitor, host: str, port: int, *, interval: float | None = None
) -> Iterator[str]:
    """Serve in the background, and give the URL. Port 0 picks a free port. `interval` is that of
    passes, in seconds. Raises ConfigurationError."""
    routes = _routes(monitor, Page(monitor, interval=interval))
    try:
        server = _Server(host, port, routes)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"--listen cannot open {host or '*'}:{port}: {why}") from error
    shown = host or "0.0.0.0"
    if ":" in host:
        shown = f"[{host}]"
    bound = server.server_address[1]
    url = f"http://{shown}:{bound}"
    _log.info("listening on %s (/metrics, /livez, /readyz and a status page)", url)
    serve = partial(server.serve_forever, poll_interval=0.2)
    Thread(target=serve, daemon=True).start()
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    def __init__(self, host: str, port: int, routes: Mapping[str, _Route]) -> None:
        self.address_family = AF_INET
        if ":" in host:
            self.address_family = AF_INET6
        self.routes = routes
        self._clients: deque[Any] = deque(maxlen=_MOST_CLIENTS)
        super().__init__((host, port), _Connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Disconnect the oldest of too many clients, so that a probe is always answered."""
        if len(self._clients) == _MOST_CLIENTS:
            oldest = self._clients[0]
            with suppress(OSError):  # already disconnected
                oldest.shutdown(SHUT_RDWR)
        self._clients.append(request)
        super().process_request(request, client_address)

    def handle_error(self, request: object, client_address: object) -> None:
        _log.debug("a client of --listen broke off", exc_info=True)


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "eurekube-sync"
    sys_version = ""
    timeout = _SECONDS
    server: _Server

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        path = path.removeprefix("/")
        first, slash, _ = path.partition("/")
        route = self.server.routes.get(first)
        # The address of a syncer or an import has more parts, and no other has.
        has_parts = first in ("syncer", "import")
        if route is None or bool(slash) is not has_parts:
            self._send(_NOT_FOUND)
            return
        answer = route(path, query)
        self._send(answer)

    do_HEAD = do_GET

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that is no GET, or too long, in a few words, and hang up: what follows
        may be its body."""
        self.close_connection = True
        self.request_version = self.protocol_version  # of a broken first line it would be 0.9
        short, _ = self.responses.get(code, ("", ""))
        words = short.lower() or code
        body = f"{words}\n"
        self._send(_Answer(code, _TEXT, body.encode()))

    def _send(self, answer: _Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: probes come every few seconds."""
