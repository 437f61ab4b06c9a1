"""Certificates made at test time, and an embedded server behind TLS. No `openssl` program is
needed."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import trustme

from eurekube_sync.embedded.http import Handler, LoopbackServer


@dataclass(frozen=True, kw_only=True)
class Authority:
    """A private certificate authority whose files, all PEM, lie in `folder`."""

    folder: Path
    name: str = "ca"
    _ca: trustme.CA = field(default_factory=trustme.CA)

    @property
    def ca_file(self) -> Path:
        """Its own certificate."""
        path = self.folder / f"{self.name}.pem"
        if not path.exists():
            self._ca.cert_pem.write_to_path(path)
        return path

    def issue(self, name: str, *, expired: bool = False) -> tuple[Path, Path]:
        """A certificate for a host name or an address, and its key."""
        now = datetime.now(UTC)
        end = now - timedelta(days=1) if expired else now + timedelta(days=1)
        issued = self._ca.issue_cert(name, not_before=now - timedelta(days=2), not_after=end)
        stem = f"{self.name}-{name.replace('@', '-at-')}{'-expired' if expired else ''}"
        certificate, key = self.folder / f"{stem}.pem", self.folder / f"{stem}.key"
        issued.cert_chain_pems[0].write_to_path(certificate)
        issued.private_key_pem.write_to_path(key)
        return certificate, key


def server_context(certificate: Path, key: Path, *, clients: Path | None = None) -> ssl.SSLContext:
    """How a server speaks TLS; with `clients`, the authority's file, each caller needs a
    certificate of that one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients)
    return context


class _TlsLoopbackServer(LoopbackServer):
    def __init__(self, handler: Handler, context: ssl.SSLContext) -> None:
        super().__init__(handler)
        # Each handshake is the business of its caller's thread.
        self.socket = context.wrap_socket(
            self.socket, server_side=True, do_handshake_on_connect=False
        )

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that does not agree on TLS is what the test is about."""


@contextmanager
def serving_tls(handler: Handler, context: ssl.SSLContext) -> Iterator[str]:
    """Serves on 127.0.0.1; gives the URL with `localhost`, the name in most certificates."""
    with _TlsLoopbackServer(handler, context) as server:
        yield server.url.replace("http://127.0.0.1", "https://localhost")
