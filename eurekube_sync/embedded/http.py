"""HTTP requests and responses as values, and a loopback server for a function from one to the
other. Tests and the simulation call that function without the server."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct, field


class Request(Struct, frozen=True, kw_only=True):
    """One HTTP request. Header names are lower case. Of a query key that is given twice, the last
    value counts."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class Response(Struct, frozen=True, kw_only=True):
    """One HTTP response. `content_type` is sent only with a body."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Request], Response]


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    disable_nagle_algorithm = True
    handler: Handler

    def answer(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        request = Request(
            method=self.command,
            path=parts.path,
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(length),
        )
        response = type(self).handler(request)
        headers = {"Date": self.date_time_string()}
        if response.body:
            headers["Content-Type"] = response.content_type
        headers |= response.headers
        headers["Content-Length"] = str(len(response.body))
        self.send_response_only(response.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(response.body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the caller decides what to log."""


class LoopbackServer(ThreadingHTTPServer):
    """A context manager that serves `handler` on 127.0.0.1 in background threads. Port 0 picks a
    free port."""

    daemon_threads = True
    request_queue_size = 128  # with the default of 5, a busy machine drops connections for seconds

    def __init__(self, handler: Handler, *, port: int = 0) -> None:
        connection = type("Connection", (_Connection,), {"handler": staticmethod(handler)})
        super().__init__(("127.0.0.1", port), connection)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The base address, without a trailing slash."""
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that hang up."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)
