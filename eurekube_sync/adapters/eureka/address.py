"""Where a Eureka server is, and how to connect. Knows no HTTP library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Self
from urllib.parse import unquote, urlsplit

from eurekube_sync.adapters.eureka.login import Credentials, Login, check
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.foreign_text import printable
from eurekube_sync.model.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EurekaAddress:
    """A service URL such as `http://eureka:8761/eureka`, with the credentials taken out of it."""

    url: str
    """Without credentials and without a slash at the end: it may be printed."""
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a URL as Eureka clients write it, `http://user:password@host:8761/eureka/`; else ConfigurationError."""
        shown = _without_login(text)
        try:
            parts = urlsplit(text.strip())
            host, port = parts.hostname, parts.port
        except ValueError:
            raise ConfigurationError(
                f"The Eureka URL {shown!r} cannot be read: write it as http://host:8761/eureka."
            ) from None
        if parts.scheme not in ("http", "https") or not host:
            raise ConfigurationError(
                f"The Eureka URL {shown!r} needs http or https and a host: http://host:8761/eureka."
            )
        if parts.query or parts.fragment or "," in text:
            raise ConfigurationError(
                f"The Eureka URL {shown!r} must be one address without `?`, `#` or a comma: http://host:8761/eureka."
            )
        if "@" in parts.path:
            raise ConfigurationError(
                f"The Eureka URL {shown!r} has an @ in its path: in a password write / as %2F, @ as %40, : as %3A and "
                "% as %25."
            )
        check(Credentials(user=unquote(parts.username or ""), password=unquote(parts.password or "")))
        bare = f"[{host}]" if ":" in host else host
        return cls(
            url=f"{parts.scheme}://{bare}{f':{port}' if port is not None else ''}{parts.path.rstrip('/')}",
            user=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
        )


def parse_addresses(text: str) -> tuple[EurekaAddress, ...]:
    """One address, or several with commas between, as in Spring's `defaultZone`; each may carry its own login.

    One that is given twice counts once; with another login the second time it is a ConfigurationError.
    """
    parts = [part for part in text.split(",") if part.strip()] or [text]
    found: dict[str, EurekaAddress] = {}
    for number, part in enumerate(parts, start=1):
        try:
            address = EurekaAddress.parse(part)
        except ConfigurationError as error:
            if len(parts) == 1:
                raise
            raise ConfigurationError(
                f"Of {len(parts)} Eureka URLs, number {number}: {error} A comma in a password is written %2C."
            ) from None
        if found.setdefault(address.url, address) != address:
            raise ConfigurationError(f"The Eureka URL {address.url} is given twice, with different logins.")
    return tuple(found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """How to connect to one server. Times are seconds."""

    address: EurekaAddress
    login: Login | None = field(default=None, repr=False)
    """Who we are, where the address does not say it."""
    connect_timeout: float = 5.0
    read_timeout: float = 30.0
    """Silence on the connection; `answer_timeout` bounds the whole answer."""
    answer_timeout: float = 120.0
    concurrency: int = 8
    """How many threads may call at once: the size of the connection pool."""
    retries: int = 2
    """After the first try, and only for what may pass by itself."""
    proxies: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By scheme; the environment's proxies and netrc are not read."""
    ca_file: str = ""
    """PEM file of the authorities to trust, read for each new connection; empty for those of `certifi`."""
    verify: bool = True
    """False: any certificate is taken, whoever shows it."""
    client_certificate: tuple[str, str] | None = None
    """PEM files of certificate and key, read for each new connection; they may be one file."""

    @property
    def credentials(self) -> Login | None:
        """Who we are: as the address says, else as `login` does."""
        if self.address.user:
            given = Credentials(user=self.address.user, password=self.address.password)
            return lambda: given
        return self.login


def _without_login(text: str) -> str:
    """What may be shown of a URL that is wrong: nothing before its last @, no port in letters, which may be the first
    part of a password, and no query."""
    before, at, after = text.strip().partition("?")[0].rpartition("@")
    scheme = f"{before.partition('//')[0]}//" if "//" in before else ""
    shown = f"{scheme}***@{after}" if at else after
    start, slashes, rest = shown.rpartition("//")
    place, slash, path = rest.partition("/")
    host, colon, port = place.rpartition(":")
    if colon and not port.isdecimal() and not place.endswith("]"):
        place = f"{host}:***"
    return printable(f"{start}{slashes}{place}{slash}{path}{'?***' if '?' in text else ''}")
