"""Who we are to Eureka: user and password of each call, fixed or read again from mounted files when these change."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable
from dataclasses import field
from pathlib import Path

from eurekube_sync.files import open_regular
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.ports import Clock
from eurekube_sync.model.values import dataclass

_SETTLE_SECONDS = 1.0
"""How long a changed file has to stay as it is before it is believed: it may be half written."""
_LARGEST = 64 * 1024
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f]")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """A user and a password, of which `repr` shows neither."""

    user: str = field(repr=False)
    password: str = field(default="", repr=False)


Login = Callable[[], Credentials]
"""The credentials to use now; asked before each call, by many threads."""


class SecretFile:
    """The one line of a mounted file, read again when the file changes; calling it gives the line.

    Kubernetes replaces a mounted secret's file at once, but an editor or a script may not: a changed file is believed
    when it has stayed as it is for a second, and one that is empty, unreadable or not one line of text never is.
    """

    def __init__(self, path: Path, *, option: str, clock: Clock) -> None:
        """Read it for the first time. ConfigurationError when it holds nothing that could be used."""
        self._path = path
        self._option = option
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: tuple[int, ...] | None = None
        self._since = 0.0
        try:
            self._judged = _signature(os.stat(path))
            self._line = self._read()
        except OSError as error:
            raise ConfigurationError(f"{option}: {path} cannot be read: {error.strerror}.") from None
        except ValueError as error:
            raise ConfigurationError(f"{option}: {path} {error}.") from None

    def __call__(self) -> str:
        with self._lock:
            try:
                self._look()
            except OSError as error:
                self._keep(f"cannot be read: {error.strerror}", (-1,))
            return self._line

    def _look(self) -> None:
        found = os.stat(self._path)
        seen = _signature(found)
        if seen == self._judged:
            self._waiting = None
            return
        now = self._clock.monotonic()
        if seen != self._waiting:
            self._waiting, self._since = seen, now
        written_ago = self._clock.now() - found.st_mtime
        if max(written_ago, now - self._since) < _SETTLE_SECONDS:
            return
        try:
            line = self._read()
        except ValueError as error:
            self._keep(str(error), seen)
            return
        self._judged, self._line = seen, line
        _log.info("%s: %s has changed, and its new content is used", self._option, self._path)

    def _keep(self, trouble: str, seen: tuple[int, ...]) -> None:
        if self._judged != seen:
            _log.warning("%s: %s %s; its last content stays in use", self._option, self._path, trouble)
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
        return line


def make_login(*, user: str | SecretFile, password: str | SecretFile) -> Login:
    """The login of these two, each fixed or a file. ConfigurationError for what basic authentication cannot hold."""

    def current() -> Credentials:
        return Credentials(user=_text(user), password=_text(password))

    check(current())
    return current


def check(credentials: Credentials) -> None:
    """ConfigurationError for a user with a colon, or control characters (RFC 7617, 2)."""
    if ":" in credentials.user:
        raise ConfigurationError("The user name for Eureka holds a colon, which basic authentication does not allow.")
    if _CONTROL_CHARACTER.search(credentials.user + credentials.password):
        raise ConfigurationError("The user name or password for Eureka holds control characters, such as a line's end.")


def _text(given: str | SecretFile) -> str:
    return given if isinstance(given, str) else given()


def _signature(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
