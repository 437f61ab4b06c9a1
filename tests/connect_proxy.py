"""A proxy on loopback that answers every CONNECT with a status, also behind TLS."""

from __future__ import annotations

import socketserver
import ssl
import threading
from typing import Any, Self


class _Refusing(socketserver.StreamRequestHandler):
    server: ConnectProxy

    def handle(self) -> None:
        while self.rfile.readline().strip():
            pass
        self.wfile.write(f"HTTP/1.1 {self.server.status} No\r\nContent-Length: 0\r\n\r\n".encode())


class ConnectProxy(socketserver.ThreadingTCPServer):
    """It is a context manager."""

    daemon_threads = True

    def __init__(self, *, status: int = 403, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Refusing)
        self.status = status
        self._scheme = "http" if context is None else "https"
        if context is not None:
            self.socket = context.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )

    @property
    def url(self) -> str:
        return f"{self._scheme}://localhost:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that does not agree on TLS is what the test is about."""

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
