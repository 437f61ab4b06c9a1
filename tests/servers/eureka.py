"""Owns a real Eureka server, Spring's or Netflix's own: its properties, its address; one alone, or
two that replicate to each other.

A server must know itself by the host name in its own URL, else it takes itself for a peer and
replicates to itself. Two peers need two host names: 127.0.0.2 and 127.0.0.3, which every Linux has
on its loopback.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import requests

from .eureka_build import eureka
from .eureka_lines import EurekaLine, chosen_lines
from .process import LOOPBACK, Server, free_port
from .tokens import TokenIssuer
from .toxiproxy import Proxy, Toxiproxy

PEER_HOSTS = ("127.0.0.2", "127.0.0.3")
_PROBE_SECONDS = 20.0
# A quick start; C1 alone halves it. A benchmark of the server wants others.
_JVM_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx1g", "-XX:-UsePerfData")
_FAST_TIMINGS = {
    "eureka.server.response-cache-update-interval-ms": "1000",
    "eureka.server.eviction-interval-timer-in-ms": "1000",
    # With peers, leases are not evicted before the first copy of their registry, 30 s a try.
    "eureka.server.registry-sync-retries": "0",
    "eureka.client.registry-fetch-interval-seconds": "2",
    "eureka.client.initial-instance-info-replication-interval-seconds": "1",
    # A peer that starts before the other cannot register with it yet. Its renewals do not heal
    # that: this client cannot read the JSON body of a 404, takes it for a failure, and registers
    # again only at this interval.
    "eureka.client.instance-info-replication-interval-seconds": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """Files, in PEM, for a server that speaks HTTPS."""

    certificate: Path
    private_key: Path
    ca_file: Path
    """The authority by which our own readiness probe trusts it."""
    client_ca_file: Path | None = None
    """When set, clients need a certificate of this authority."""
    probe_certificate: tuple[Path, Path] | None = None
    """Certificate and key of the readiness probe and of `session`, when clients need one."""
    probe_verifies: bool = True
    """Off for a certificate that Python would refuse."""


_ACCESS_LOG = "access.log"


def _access_log_into(directory: Path) -> dict[str, str]:
    settings = {
        "enabled": "true",
        "directory": str(directory),
        "prefix": _ACCESS_LOG.partition(".")[0],
        "suffix": ".log",
        "file-date-format": "",
        "rotate": "false",
        "buffered": "false",
        "pattern": "%{begin:msec}t %m %s %U %{User-Agent}i",
    }
    return {f"server.tomcat.accesslog.{key}": value for key, value in settings.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request as the server's access log tells it."""

    at: float
    """When it came, seconds since 1970."""
    method: str
    status: int
    path: str
    agent: str

    @classmethod
    def parse(cls, line: str) -> Self:
        """Read one line of the log."""
        at, method, status, path, agent = line.split(" ", 4)
        return cls(at=int(at) / 1000, method=method, status=int(status), path=path, agent=agent)


class EurekaServer(Server):
    """A Eureka server, empty at each start; by default fast (1 s cache, 1 s eviction, no
    self-preservation)."""

    name = "eureka"

    def __init__(
        self,
        port: int | None = None,
        *,
        host: str = "localhost",
        stock_timings: bool = False,
        peers: Sequence[str] = (),
        basic_auth: tuple[str, str] | None = None,
        tokens: TokenIssuer | None = None,
        tls: ServerTls | None = None,
        self_preservation: bool | None = None,
        access_log: bool = False,
        extra_properties: Mapping[str, str] | None = None,
        jvm_options: Sequence[str] = _JVM_OPTIONS,
        line: EurekaLine | None = None,
    ) -> None:
        """Describe a server; `start` or `with` runs it.

        `port` None is a free one. `host` is the name it knows itself by, and the address it listens
        at. `stock_timings` leaves 30 s cache, 60 s eviction and self-preservation as they are.
        `peers` are the URLs of the others, with user and password if they ask for them; with peers
        it registers itself, as EUREKA-SERVER. With `tokens`, each call needs one of theirs.
        `self_preservation` None is off with fast timings. `access_log` is for `calls`.
        `extra_properties` are Spring's, and win. `line` None is the one that the run chose, by
        default the newest; login, TLS and the access log need the newest.
        """
        self._program = eureka(line or chosen_lines()[0])
        super().__init__(host=host, port=port)
        self.stock_timings = stock_timings
        self.peers = tuple(peers)
        self.basic_auth = basic_auth
        self.tokens = tokens
        self.tls = tls
        self.self_preservation = self_preservation
        self.access_log = access_log
        self.extra_properties = dict(extra_properties or {})
        self.jvm_options = tuple(jvm_options)

    @property
    def url(self) -> str:
        """Its address for clients, without credentials and without a slash at the end:
        `http://localhost:8761/eureka`."""
        return f"{self.root}{self.path}"

    @property
    def root(self) -> str:
        """The part of `url` before the path."""
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    @property
    def path(self) -> str:
        """The path of `url`: `/eureka`, or `/eureka/v2` of Netflix's own."""
        return self._program.path

    @property
    def line(self) -> EurekaLine:
        """The line that it is of."""
        return self._program.line

    def properties(self) -> dict[str, str]:
        """Return the Spring properties it starts with."""
        found = {
            "spring.application.name": "eureka-server",
            "server.address": LOOPBACK if self.host == "localhost" else self.host,
            "server.port": str(self.port),
            "eureka.instance.hostname": self.host,
            "eureka.client.service-url.defaultZone": ",".join(
                f"{url}/" for url in self.peers or (self.url,)
            ),
            "eureka.client.register-with-eureka": str(bool(self.peers)).lower(),
            "eureka.client.fetch-registry": str(bool(self.peers)).lower(),
        }
        if not self.stock_timings:
            found |= _FAST_TIMINGS
        if self.self_preservation is not None or not self.stock_timings:
            found["eureka.server.enable-self-preservation"] = str(
                bool(self.self_preservation)
            ).lower()
        if self.basic_auth is not None:
            found["spring.security.user.name"], found["spring.security.user.password"] = (
                self.basic_auth
            )
        if self.tokens is not None:
            found["eureka-under-test.token-key"] = f"file:{self.tokens.public_key}"
        if self.tls is not None:
            found["server.ssl.certificate"] = f"file:{self.tls.certificate}"
            found["server.ssl.certificate-private-key"] = f"file:{self.tls.private_key}"
            if self.tls.client_ca_file is not None:
                found["server.ssl.client-auth"] = "need"
                found["server.ssl.trust-certificate"] = f"file:{self.tls.client_ca_file}"
        if self.access_log:
            found |= _access_log_into(self.directory)
        return found | self.extra_properties

    def session(self) -> requests.Session:
        """A new session that can speak to it: with its login, and its authority trusted; for one
        thread."""
        session = requests.Session()
        session.trust_env = False
        session.auth = self.basic_auth
        if self.tls is not None:
            session.verify = str(self.tls.ca_file)
            if self.tls.probe_certificate is not None:
                certificate, key = self.tls.probe_certificate
                session.cert = (str(certificate), str(key))
        session.headers["Accept"] = "application/json"
        session.headers.update(self._bearer())
        return session

    def calls(self) -> list[Call]:
        """All that it was asked since its first start, as its access log tells; it needs
        `access_log`."""
        return [
            Call.parse(line) for line in (self.directory / _ACCESS_LOG).read_text().splitlines()
        ]

    def restart(self, **changes: Any) -> None:
        """Stop it and start it at the same address, empty; `changes` are new values for what
        `__init__` takes."""
        self.stop()
        for option, value in changes.items():
            if option not in self._restart_options:
                raise TypeError(f"restart() cannot change {option!r}")
            setattr(self, option, value)
        self.start()

    _restart_options = frozenset(
        {
            "stock_timings",
            "peers",
            "basic_auth",
            "tls",
            "self_preservation",
            "extra_properties",
            "jvm_options",
        }
    )

    def _command(self) -> list[str]:
        return self._program.command(
            self.properties(),
            secured=self.basic_auth is not None,
            bearer=self.tokens is not None,
            jvm_options=self.jvm_options,
        )

    def _bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens.token()}"} if self.tokens else {}

    def _is_ready(self) -> bool:
        verify: bool | str = True
        if self.tls is not None:
            verify = str(self.tls.ca_file) if self.tls.probe_verifies else False
        files = self.tls.probe_certificate if self.tls else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a connection that is not verified
            answer = requests.get(
                f"{self.url}/apps",
                auth=self.basic_auth,
                headers=self._bearer(),
                verify=verify,
                cert=(str(files[0]), str(files[1])) if files else None,
                timeout=_PROBE_SECONDS,
            )
        return answer.ok


@contextmanager
def eureka_pair(
    *, basic_auth: tuple[str, str] | None = None, **options: Any
) -> Iterator[tuple[EurekaServer, EurekaServer]]:
    """Run two peers that replicate to each other; `options` are those of EurekaServer."""
    ports = [free_port(host) for host in PEER_HOSTS]
    with _running_pair(ports, ports, basic_auth=basic_auth, **options) as pair:
        yield pair


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxiedPair:
    """Two peers whose words to each other go through a toxiproxy; everybody else may speak to them
    directly."""

    first: EurekaServer
    second: EurekaServer
    to_first: Proxy
    """What the second one tells the first, its registrations and reads too."""
    to_second: Proxy


@contextmanager
def proxied_eureka_pair(
    toxiproxy: Toxiproxy, *, basic_auth: tuple[str, str] | None = None, **options: Any
) -> Iterator[ProxiedPair]:
    """Run two peers as `eureka_pair` does, each calling the other through a proxy at the other's
    own host name, by which peers tell each other apart."""
    ports = [free_port(host) for host in PEER_HOSTS]
    with ExitStack() as proxies:
        to_first, to_second = (
            toxiproxy.proxy(f"{host}:{port}", host=host)
            for host, port in zip(PEER_HOSTS, ports, strict=True)
        )
        for proxy in (to_first, to_second):
            proxies.callback(toxiproxy.remove, proxy)
        with _running_pair(
            ports, [to_first.port, to_second.port], basic_auth=basic_auth, **options
        ) as (first, second):
            yield ProxiedPair(first=first, second=second, to_first=to_first, to_second=to_second)


@contextmanager
def _running_pair(
    ports: Sequence[int],
    called_ports: Sequence[int],
    *,
    basic_auth: tuple[str, str] | None,
    **options: Any,
) -> Iterator[tuple[EurekaServer, EurekaServer]]:
    """`ports` where they listen, `called_ports` where the other one calls them."""
    credentials = f"{basic_auth[0]}:{basic_auth[1]}@" if basic_auth else ""
    lines = chosen_lines()
    called = [
        f"http://{credentials}{host}:{port}{eureka(line).path}"
        for host, port, line in zip(PEER_HOSTS, called_ports, lines, strict=True)
    ]
    first, second = (
        EurekaServer(port, host=host, peers=[other], basic_auth=basic_auth, line=line, **options)
        for host, port, other, line in zip(PEER_HOSTS, ports, reversed(called), lines, strict=True)
    )
    with ExitStack() as running:
        running.callback(first.close)
        running.callback(second.close)
        with ThreadPoolExecutor(2) as pool:
            for started in [pool.submit(server.start) for server in (first, second)]:
                started.result()
        yield first, second
