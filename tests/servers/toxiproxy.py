"""Owns a real toxiproxy: TCP connections between two servers that can be slowed, cut and reset, and
healed.

Knows nothing of what goes through. Its proxies live as long as its process: a restart forgets them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import requests

from .go_builds import toxiproxy
from .process import LOOPBACK, Server, free_port

_TIMEOUT_SECONDS = 60.0

Stream = Literal["upstream", "downstream"]
"""From the caller to the server, or the answers back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """One listening address that leads to one server. Healthy until told otherwise."""

    api: str
    """Address of this proxy in toxiproxy's own API."""
    host: str
    port: int

    @property
    def address(self) -> str:
        """`host:port`, to be called in place of the server's."""
        return f"{self.host}:{self.port}"

    def disable(self) -> None:
        """End its connections and refuse new ones: the server is down, to those who come this
        way."""
        _call("PATCH", self.api, {"enabled": False})

    def enable(self) -> None:
        """Take connections again."""
        _call("PATCH", self.api, {"enabled": True})

    def lag(self, seconds: float, *, stream: Stream = "downstream") -> None:
        """Each piece of data comes so much later."""
        self._add("latency", stream, latency=int(seconds * 1000))

    def drop(self) -> None:
        """Nothing comes through in either direction, and nobody is told: connections stay open, new
        ones as well."""
        self._add("timeout", "upstream", timeout=0)
        self._add("timeout", "downstream", timeout=0)

    def reset(self, *, stream: Stream = "downstream") -> None:
        """Every connection ends with a TCP reset, new ones as soon as something is sent."""
        self._add("reset_peer", stream, timeout=0)

    def if_gone(self) -> None:
        """Take off whatever was done to it."""
        for toxic in _call("GET", f"{self.api}/toxics"):
            _call("DELETE", f"{self.api}/toxics/{toxic['name']}")
        self.enable()

    def _add(self, kind: str, stream: Stream, **attributes: int) -> None:
        _call(
            "POST", f"{self.api}/toxics", {"type": kind, "stream": stream, "attributes": attributes}
        )


class Toxiproxy(Server):
    """A toxiproxy server; its proxies are made by `proxy`, and gone with it."""

    name: ClassVar[str] = "toxiproxy"
    start_seconds: ClassVar[float] = 120.0

    def __init__(self, *, port: int | None = None) -> None:
        """`port` is that of its API; None: a free one."""
        self._program = toxiproxy()
        self._numbers = itertools.count(1)
        super().__init__(port=port)

    @property
    def url(self) -> str:
        """Its API."""
        return f"http://{self.host}:{self.port}"

    def proxy(self, upstream: str, *, host: str = LOOPBACK, port: int | None = None) -> Proxy:
        """Lead `host:port` to `upstream`, which is `host:port` of a server that need not run yet; a
        free port by default. Raises `requests.HTTPError`, for instance when the port is taken."""
        name = f"proxy-{next(self._numbers)}"
        port = free_port(host) if port is None else port
        _call(
            "POST",
            f"{self.url}/proxies",
            {"name": name, "listen": f"{host}:{port}", "upstream": upstream},
        )
        return Proxy(api=f"{self.url}/proxies/{name}", host=host, port=port)

    def remove(self, proxy: Proxy) -> None:
        """End a proxy and its connections."""
        _call("DELETE", proxy.api)

    def _command(self) -> list[str]:
        return [str(self._program), "-host", self.host, "-port", str(self.port)]

    def _is_ready(self) -> bool:
        return requests.get(f"{self.url}/version", timeout=_TIMEOUT_SECONDS).ok


def _call(method: str, url: str, body: dict[str, Any] | None = None) -> Any:
    answer = requests.request(method, url, json=body, timeout=_TIMEOUT_SECONDS)
    if not answer.ok:
        raise requests.HTTPError(
            f"{method} {url}: {answer.status_code} {answer.text[:500]}", response=answer
        )
    return answer.json() if answer.content else None
