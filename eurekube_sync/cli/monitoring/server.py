"""Serves metrics, health and the page to whoever may reach the address. It reads nothing but the path of a request."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6, SHUT_RDWR
from threading import Thread
from typing import Any, TypeAlias

from eurekube_sync.cli.monitoring import exposition
from eurekube_sync.cli.monitoring.monitor import Monitor
from eurekube_sync.cli.monitoring.page import html_of
from eurekube_sync.model.errors import ConfigurationError

_SECONDS = 10
"""How long a client may be silent."""
_MOST = 100
"""Clients at once. Each takes a file descriptor, and without one no lease can be renewed."""
_HTML = "text/html; charset=utf-8"
_TEXT = "text/plain; charset=utf-8"
_log = logging.getLogger(__name__)
_Answer: TypeAlias = tuple[int, str, bytes]


@contextmanager
def serving(monitor: Monitor, host: str, port: int) -> Iterator[str]:
    """Serves in the background, and gives the URL; port 0 picks a free one. Raises ConfigurationError."""
    routes: dict[str, Callable[[], _Answer]] = {
        "/": lambda: (200, _HTML, html_of(monitor).encode()),
        "/metrics": lambda: (200, exposition.CONTENT_TYPE, exposition.text(monitor)),
        "/livez": lambda: _health(monitor.live, "passes have stopped"),
        "/readyz": lambda: _health(monitor.ready, "no pass has ended yet"),
    }
    connection = type("Connection", (_Connection,), {"routes": routes})
    family = {"address_family": AF_INET6} if ":" in host else {}
    try:
        server = type("Server", (_Server,), family)((host, port), connection)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"--listen cannot open {host or '*'}:{port}: {why}") from error
    shown = f"[{host}]" if ":" in host else host or "0.0.0.0"
    url = f"http://{shown}:{server.server_address[1]}"
    _log.info("listening on %s: /metrics, /livez, /readyz and a page", url)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
    thread.start()
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()


def _health(good: bool, why: str) -> _Answer:
    return (200, _TEXT, b"ok\n") if good else (503, _TEXT, f"{why}\n".encode())


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._clients: deque[Any] = deque(maxlen=_MOST)

    def process_request(self, request: Any, client_address: Any) -> None:
        """The oldest client makes room, so that a probe is answered whoever else holds on."""
        if len(self._clients) == _MOST:
            with suppress(OSError):  # it has hung up
                self._clients[0].shutdown(SHUT_RDWR)
        self._clients.append(request)
        super().process_request(request, client_address)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hung up is nobody's concern."""
        _log.debug("a client of --listen broke off", exc_info=True)


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "eurekube-sync"
    sys_version = ""
    timeout = _SECONDS
    routes: dict[str, Callable[[], _Answer]]

    def do_GET(self) -> None:
        """Any query is left out."""
        route = self.routes.get(self.path.partition("?")[0])
        status, kind, body = route() if route else (404, _TEXT, b"there is /, /metrics, /livez and /readyz\n")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """A probe each few seconds is no news."""
