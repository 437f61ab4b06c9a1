"""Types of option values, each of which refuses bad input with one sentence, and the shell
completions of values."""

from __future__ import annotations

import logging
import os
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import click

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.desired.imports import networks_in
from eurekube_sync.desired.scope import ANY
from eurekube_sync.desired.selector import parse_selector
from eurekube_sync.explain.overview import parse_condition
from eurekube_sync.explain.what import parse_what
from eurekube_sync.model.errors import EurekubeError
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import OWNER_PATTERN
from eurekube_sync.model.sanitize import printable
from eurekube_sync.model.text import duration, port_fault

T = TypeVar("T")

_PART = r"(\d+(?:\.\d+)?)(ms|s|m|h)"
_DURATION = re.compile(rf"(?:{_PART})+|\d+(?:\.\d+)?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_TEN_YEARS = 87_600 * 3600.0  # seconds; more is a typing error, and overflows some clocks
_ADDRESS = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([^\s:/\[\]]*)):([0-9]{1,5})")
_NUMBER = re.compile(r"[0-9]{1,4}")
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


if TYPE_CHECKING:
    _ParamType = click.ParamType
else:

    class _ParamType(click.ParamType, Generic[T]):  # click's own takes `[T]` from 8.4 on
        pass


class Value(_ParamType[T]):
    """A value that `read` makes of a text. The message of a ValueError of `read` is shown to the
    user."""

    def __init__(self, name: str, read: Callable[[str], T]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        try:
            # click may convert twice
            if isinstance(value, str):
                return self._read(value)
            return cast(T, value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Duration(Value[float]):
    """`30s`, `2m`, `1h30m`, or a number of seconds. The value is in seconds, from `least` to
    `most`."""

    def __init__(self, *, least: float = 0.0, most: float = _TEN_YEARS) -> None:
        super().__init__("duration", self.seconds)
        self._least = least
        self._most = most

    def seconds(self, text: str) -> float:
        """Read a duration. Raises ValueError with a message for the user."""
        if not _DURATION.fullmatch(text.strip()):
            raise ValueError(f"{text!r} is not a duration; write 30s, 2m or 1h30m")
        parts = re.findall(_PART, text)
        seconds = 0.0
        for number, unit in parts:
            seconds += float(number) * _UNITS[unit]
        if not parts:  # a number alone is in seconds
            seconds = float(text)
        if seconds < self._least:
            least = duration(self._least)
            raise ValueError(f"{text!r} is too short; at least {least}")
        if seconds > self._most:
            most = duration(self._most)
            raise ValueError(f"{text!r} is too long; at most {most}")
        return seconds


_MOMENT = re.compile(r"(?:(\d{4}-\d\d-\d\d)[T ])?(\d\d:\d\d)(:\d\d)?Z?")


def end_of_moment(text: str) -> datetime:
    """Return the end of a minute or second in UTC: `03:12`, `2026-11-23 03:12` or
    `2026-11-23T03:12:05Z`.

    Without a date it is the last such time before now. Raises ValueError with a message for the
    user.
    """
    match = _MOMENT.fullmatch(text.strip())
    now = datetime.fromtimestamp(SystemClock().now(), UTC)
    try:
        if not match:
            raise ValueError
        day, minute, second = match.groups()
        date = day or now.date()
        if second:
            begin = datetime.fromisoformat(f"{date}T{minute}{second}+00:00")
            length = timedelta(seconds=1)
        else:
            begin = datetime.fromisoformat(f"{date}T{minute}:00+00:00")
            length = timedelta(minutes=1)
        if not day and begin > now:
            begin -= timedelta(days=1)
        return begin + length  # OverflowError after the year 9999
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r} is not a time; write 03:12 or 2026-11-23T03:12:05Z, in UTC"
        ) from None


class File(click.Path):
    """A path that is not empty. The file need not exist."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("it is empty", param, ctx)
        return super().convert(value, param, ctx)


def _name(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    return text.strip()


def percent(text: str) -> float:
    with suppress(ValueError):
        number = float(text)
        if 0 <= number <= 100:  # `nan` is refused: it would switch the limit off
            return number
    raise ValueError(f"{text!r} is not a percentage from 0 to 100")


def keyed(text: str, kinds: Mapping[str, Callable[[str], T]]) -> dict[str, T]:
    """Read `key=value,key=value`: each value by the function of its key. Raises ValueError with a
    message for the user."""
    values: dict[str, T] = {}
    for part in text.split(","):
        key, sign, value = part.partition("=")
        key = key.strip()
        if key not in kinds or not sign:
            keys = ", ".join(kinds)
            raise ValueError(f"{part.strip()!r} is not KEY=VALUE; the keys are {keys}")
        if key in values:
            raise ValueError(f"it has {key} twice")
        read = kinds[key]
        try:
            values[key] = read(value.strip())
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
    return values


def _matching(pattern: re.Pattern[str], what: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"{text!r} is not {what}")
        return text

    return read


_namespace = _matching(_NAMESPACE, "the name of a namespace")


def _namespaces(text: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",")]
    return tuple(_namespace(name) for name in names)


def _namespace_pairs(text: str) -> tuple[tuple[str, str], ...]:
    pairs: list[tuple[str, str]] = []
    for pair in text.split(","):
        sides = [side.strip() for side in pair.split(":")]
        legal = all(side == ANY or _NAMESPACE.fullmatch(side) for side in sides)
        if len(sides) != 2 or not legal:
            given = ":".join(sides)
            raise ValueError(
                f"{given!r} is not a pair of namespaces; write FROM:TO, with * for any"
            )
        pairs.append((sides[0], sides[1]))
    return tuple(pairs)


def _listen(text: str) -> tuple[str, int]:
    address = text.strip()
    match = _ADDRESS.fullmatch(address)
    if not match:
        raise ValueError(
            f"{text!r} is not an address to listen on; write :8080, 127.0.0.1:8080 or [::1]:8080"
        )
    host = match[1] or match[2] or ""
    port = int(match[3])
    if port > 65535:
        raise ValueError(f"{text!r} {port_fault(address)}")
    return host, port


_OF_LETTERS = "of a-z, 0-9 and '-', a letter or digit at both ends"
NAME = Value("text", _name)  # not empty: a script may have put an empty variable there
OWNER = Value("name", _matching(OWNER_PATTERN, f"an owner name: 1 to 32 {_OF_LETTERS}"))
NAMESPACES = Value("namespace[,...]", _namespaces)
SELECTOR = Value("selector", parse_selector)  # as in `kubectl get --selector`
SYNCER_CLASS = Value("class", _matching(_NAMESPACE, f"a class: 1 to 63 {_OF_LETTERS}"))
NETWORKS = Value("network[,...]", networks_in)
NAMESPACE_PAIRS = Value("from:to[,...]", _namespace_pairs)  # `*` on either side is any namespace
LISTEN = Value("[host]:port", _listen)  # an empty host is every address of the machine
CONDITION = Value("condition", parse_condition)
WHAT = Value("what", parse_what)  # the argument of `explain`


_SECONDS = 2.0  # the longest time that a completion waits for the cluster


def _completing(
    words: Callable[[dict[str, Any]], Iterable[str]],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return a shell completion that offers `words`, without logs or errors.

    In a comma-separated list it completes the last part. It leaves out words with control
    characters.
    """

    def complete(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
        before = ""
        last = typed
        if "," in str(parameter.type.name):
            parts, comma, last = typed.rpartition(",")
            before = parts + comma
        logging.disable()
        try:
            offered = sorted(set(words(context.params)))
        except (EurekubeError, OSError):
            return []
        finally:
            logging.disable(logging.NOTSET)
        fitting: list[str] = []
        for word in offered:
            if word.startswith(last) and printable(word) == word:
                fitting.append(f"{before}{word}")
        return fitting

    return complete


def _contexts(given: dict[str, Any]) -> Sequence[str]:
    from eurekube_sync.adapters.kubernetes.kubeconfig import DEFAULT_PATH, context_names

    paths = given.get("kubeconfig") or os.environ.get("KUBECONFIG") or DEFAULT_PATH
    return context_names(paths)


def _syncers(given: dict[str, Any]) -> list[SyncerRef]:
    from eurekube_sync.adapters.clock import SystemClock
    from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
    from eurekube_sync.adapters.kubernetes.connection import ClientConnection, ConnectionSettings
    from eurekube_sync.desired.claims import every

    settings = ConnectionSettings(
        kubeconfig=given.get("kubeconfig") or "",
        context=given.get("context") or "",
        connect_seconds=_SECONDS,
        read_seconds=_SECONDS,
        start_seconds=2 * _SECONDS,  # includes the import of the client
    )
    cluster = KubernetesCluster(
        ClientConnection(settings),
        clock=SystemClock(),
        random=random.Random(),
        tries=1,
        answer_seconds=_SECONDS,
    )
    return [syncer.ref for syncer in every(cluster.list_syncers(None))]


complete_contexts = _completing(_contexts)
# Those with a syncer
complete_namespaces = _completing(lambda given: [ref.namespace for ref in _syncers(given)])
complete_syncers = _completing(lambda given: map(str, _syncers(given)))
