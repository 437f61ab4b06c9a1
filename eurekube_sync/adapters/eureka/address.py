"""Addresses of Eureka servers, logins and connection options, without an HTTP library."""

from __future__ import annotations

import base64
import logging
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Self, TypeAlias
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from eurekube_sync.files import open_regular
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.ports import Clock
from eurekube_sync.model.sanitize import login_secrets, printable
from eurekube_sync.model.struct import Hidden
from eurekube_sync.model.text import port_fault

# How long a changed file must stay unchanged before it is read: it may be half written
_SETTLE_SECONDS = 1.0
_LARGEST = 64 * 1024
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750, 2.1: b64token
_BELOW_EUREKA = re.compile(r"(/eureka(?:/v2)?)/apps(?:/|$)")
_log = logging.getLogger(__name__)


class Credentials(Hidden, Struct, frozen=True, kw_only=True):
    """A user and a password."""

    user: str
    password: str = ""

    refused: ClassVar[str] = "refuses this user or password"

    @property
    def header(self) -> str:
        """The value of the header `Authorization` (RFC 7617)."""
        return f"Basic {base64.b64encode(f'{self.user}:{self.password}'.encode()).decode()}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may show."""
        return login_secrets(self.user, self.password)


class BearerToken(Hidden, Struct, frozen=True):
    """A token of OAuth2."""

    token: str

    refused: ClassVar[str] = (
        "refuses this token: it may have expired, or be meant for another service; its file is "
        "read again when it changes"
    )

    @property
    def header(self) -> str:
        """The value of the header `Authorization` (RFC 6750, 2.1)."""
        return f"Bearer {self.token}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may show."""
        return (self.token,)


Login: TypeAlias = Callable[[], Credentials | BearerToken]
"""Returns the current ones; called before each call, by many threads."""


class EurekaAddress(Struct, frozen=True, kw_only=True):
    """A service URL such as `http://eureka:8761/eureka`, and its login."""

    url: str  # without credentials and a slash at the end: it may be printed
    login: Credentials | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a URL such as `http://user:password@host:8761/eureka/`; raise
        ConfigurationError."""
        given = f"the Eureka URL {_without_login(text)!r}"
        try:
            parts = urlsplit(text.strip())
            host, port = parts.hostname, parts.port
        except ValueError:
            fault = _port_fault(text) or "cannot be read: write it as http://host:8761/eureka"
            raise ConfigurationError(f"{given} {fault}") from None
        if port == 0:
            raise ConfigurationError(f"{given} {_port_fault(text)}")
        if parts.scheme not in ("http", "https") or not host:
            raise ConfigurationError(
                f"{given} needs http or https and a host: http://host:8761/eureka"
            )
        if parts.query or parts.fragment or "," in text:
            must = "must be one address without `?`, `#` or a comma: http://host:8761/eureka"
            raise ConfigurationError(f"{given} {must}")
        if "@" in parts.path:  # a password with a / ends the host too early
            said = "in a password write / as %2F, @ as %40, : as %3A and % as %25"
            raise ConfigurationError(f"{given} has an @ in its path: {said}")
        path = parts.path.rstrip("/")
        below = _BELOW_EUREKA.search(path)
        if below is not None:
            left_out = printable(path[below.end(1) :])
            raise ConfigurationError(
                f"{given} is that of a list: leave out {left_out}, which each call adds"
            )
        login = Credentials(
            user=unquote(parts.username or ""), password=unquote(parts.password or "")
        )
        _check(login)
        place = f"[{host}]" if ":" in host else host
        if port is not None:
            place += f":{port}"
        return cls(url=f"{parts.scheme}://{place}{path}", login=login if login.user else None)


def parse_addresses(text: str) -> tuple[EurekaAddress, ...]:
    """Parse addresses with commas between, as in Spring's `defaultZone`, without repeated ones."""
    parts = [part for part in text.split(",") if part.strip()] or [text]
    addresses: dict[str, EurekaAddress] = {}
    for number, part in enumerate(parts, start=1):
        try:
            address = EurekaAddress.parse(part)
        except ConfigurationError as error:
            if len(parts) == 1:
                raise
            why = (
                f"of {len(parts)} Eureka URLs, number {number}: {error}. A comma in a password "
                "is written %2C"
            )
            raise ConfigurationError(why) from None
        if addresses.setdefault(address.url, address) != address:
            raise ConfigurationError(
                f"the Eureka URL {address.url} is given twice, with different logins"
            )
    return tuple(addresses.values())


def _port_fault(url: str) -> str:
    """Return what is wrong with the port of a URL; empty if nothing is, or if what looks like a
    port may be the begin of a password."""
    place, _, path = url.partition("//")[2].partition("/")
    if "@" in path:  # then the / is one of the password
        return ""
    return port_fault(place.rpartition("@")[2].strip())


def _without_login(text: str) -> str:
    """Hide everything before the last @ of a URL, its query, and a port in letters: it may be a
    part of a password."""
    url, mark, _ = text.strip().partition("?")
    login, at, shown = url.rpartition("@")
    if at:
        scheme, slashes, _ = login.partition("//")
        shown = f"{scheme}//***@{shown}" if slashes else f"***@{shown}"
    start, slashes, rest = shown.rpartition("//")
    place, slash, path = rest.partition("/")
    host, colon, port = place.rpartition(":")
    if colon and not port.isdecimal() and not place.endswith("]"):
        place = f"{host}:***"
    shown = f"{start}{slashes}{place}{slash}{path}"
    return printable(f"{shown}?***" if mark else shown)


class ConnectionOptions(Struct, frozen=True, kw_only=True):  # times are seconds
    address: EurekaAddress
    login: Login | None = None  # if the address has none
    connect_timeout: float = 5.0
    read_timeout: float = 30.0  # for a silence
    answer_timeout: float = 120.0  # for a whole answer
    concurrency: int = 8  # threads that may call at once: the size of the connection pool
    retries: int = 2  # after the first try, for failures that may pass by themselves
    # PEM file of the trusted authorities, read for each connection; empty: those of `certifi`
    ca_file: str = ""
    # PEM files of certificate and key, read for each connection
    client_certificate: tuple[str, str] | None = None

    @property
    def credentials(self) -> Login | None:
        own = self.address.login
        if own is not None:
            return lambda: own
        return self.login


class SecretFile:
    """A mounted file with one line; a call returns the line. A changed file is read after a second
    without changes. If it is unreadable, empty or not one line of text, the last line stays in
    use."""

    def __init__(
        self, path: Path, *, option: str, clock: Clock, check: Callable[[str], None] | None = None
    ) -> None:
        """Read the file. Raise ConfigurationError without a usable line. `check` raises ValueError
        for a line of another form."""
        self._check = check
        self._path = path
        self._option = option
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: tuple[int, ...] = ()
        self._since = 0.0
        try:
            self._judged = _signature(os.stat(path))
            self._line = self._read()
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{option}: {path} {_trouble(error)}") from None

    def __call__(self) -> str:
        with self._lock:
            seen: tuple[int, ...] = ()  # empty for a missing file
            try:
                status = os.stat(self._path)
                seen = _signature(status)
                if self._is_settled(status) and seen != self._judged:
                    self._line = self._read()
                    self._judged = seen
                    _log.info("%s: reloaded %s", self._option, self._path)
            except OSError as error:
                self._keep((), error)
            except ValueError as error:
                self._keep(seen, error)
            return self._line

    def _is_settled(self, status: os.stat_result) -> bool:
        """Say whether the file has not changed for a second, by its own time or by ours, because
        either clock may be wrong."""
        now = self._clock.monotonic()
        if self._waiting != _signature(status):
            self._waiting, self._since = _signature(status), now
        unchanged = max(self._clock.now() - status.st_mtime, now - self._since)
        return unchanged >= _SETTLE_SECONDS

    def _keep(self, seen: tuple[int, ...], error: OSError | ValueError) -> None:
        """Keep the last line, and log once why."""
        if self._judged != seen:
            keeping = "%s: %s %s; keeping its last content"
            _log.warning(keeping, self._option, self._path, _trouble(error))
        self._judged = seen

    def _read(self) -> str:
        with open_regular(self._path, follow=True) as file:
            content = file.read(_LARGEST)
        try:
            line = content.decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            raise ValueError("is not UTF-8 text") from None
        if not line:
            raise ValueError("is empty")
        if _CONTROL_CHARACTER.search(line):
            raise ValueError("holds more than one line, or control characters")
        if self._check is not None:
            self._check(line)
        return line


def make_login(*, user: str, password: str | SecretFile) -> Login:
    """Return a login with a fixed or mounted password; raise ConfigurationError as `_check` does."""

    def current() -> Credentials:
        now = password if isinstance(password, str) else password()
        return Credentials(user=user, password=now)

    _check(current())
    return current


def make_token_login(path: Path, *, option: str, clock: Clock) -> Login:
    """Return a login with a mounted token; raise ConfigurationError without one."""
    file = SecretFile(path, option=option, clock=clock, check=_check_token)
    return lambda: BearerToken(file())


def _check_token(line: str) -> None:
    if not _TOKEN.fullmatch(line):
        raise ValueError(
            "holds no bearer token: write only the token itself, without quotes and the word Bearer"
        )


def _check(credentials: Credentials) -> None:
    """Raise ConfigurationError for a user with a colon, or for control characters (RFC 7617, 2)."""
    if ":" in credentials.user:
        raise ConfigurationError(
            "the user name for Eureka holds a colon, which basic authentication does not allow"
        )
    if _CONTROL_CHARACTER.search(credentials.user + credentials.password):
        raise ConfigurationError(
            "the user name or password for Eureka holds control characters, such as a line's end"
        )


def _signature(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _trouble(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    return str(error)
