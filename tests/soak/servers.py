"""Owns what a soaked Eureka server is given beside its timings."""

from __future__ import annotations

from pathlib import Path

from tests.certificates import Authority
from tests.servers.eureka import ServerTls


def server_tls(folder: Path) -> ServerTls:
    """A certificate for localhost, of a private authority; the files lie in `folder`."""
    authority = Authority(folder=folder)
    certificate, key = authority.issue("localhost")
    return ServerTls(certificate=certificate, private_key=key, ca_file=authority.ca_file)
