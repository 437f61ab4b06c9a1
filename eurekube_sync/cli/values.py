"""Kinds of option values, each refusing bad input with one sentence."""

from __future__ import annotations

import re
from math import isnan
from typing import Any

import click

from eurekube_sync.desired.scope import ANY, Shard, parse_selector
from eurekube_sync.desired.spec import Expression
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import OWNER_PATTERN
from eurekube_sync.model.wording import duration
from eurekube_sync.owner.moves import Address

_PART = r"(\d+(?:\.\d+)?)(ms|s|m|h)"
_DURATION = re.compile(rf"(?:{_PART})+|\d+(?:\.\d+)?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_TEN_YEARS = 87_600 * 3600.0
"""Seconds: what is longer is a slip of the finger, and too much for some clocks."""
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class Duration(click.ParamType[float]):
    """`30s`, `2m`, `1h30m`, or a number of seconds; becomes seconds, from `least` to `most`, whole hours."""

    name = "duration"

    def __init__(self, *, least: float = 0.0, most: float = _TEN_YEARS) -> None:
        self._least, self._most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        if not _DURATION.fullmatch(value.strip()):
            self.fail(f"{value!r} is no duration; write 30s, 2m or 1h30m", param, ctx)
        parts = re.findall(_PART, value)
        seconds = sum(float(number) * _UNITS[unit] for number, unit in parts) if parts else float(value)
        if seconds < self._least:
            self.fail(f"{value!r} is too short; at least {duration(self._least)}", param, ctx)
        if seconds > self._most:
            self.fail(f"{value!r} is too long; at most {duration(self._most)}", param, ctx)
        return seconds


class Percent(click.FloatRange):
    """A number from 0 to 100; `nan`, which compares with nothing, would switch off what it limits."""

    def __init__(self) -> None:
        super().__init__(0, 100)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if isnan(number):
            self.fail(f"{value!r} is no number", param, ctx)
        return number


class Name(click.ParamType[str]):
    """A name that is not empty, as it is when a script found nothing to put there."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value.strip():
            self.fail("it is empty", param, ctx)
        return str(value).strip()


class File(click.Path):
    """The path of a file; whether it is there is another question. Not empty, as a variable of a script may be."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("it is empty", param, ctx)
        return super().convert(value, param, ctx)


class Owner(click.ParamType[str]):
    """An owner name: it becomes part of every instance id."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not OWNER_PATTERN.fullmatch(value):
            self.fail(
                f"{value!r} is no owner name: 1 to 32 of a-z, 0-9 and '-', a letter or digit at both ends", param, ctx
            )
        return str(value)


class Namespaces(click.ParamType["tuple[str, ...]"]):
    """One namespace, or several with commas between."""

    name = "namespace[,...]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        names = tuple(name.strip() for name in value.split(","))
        for name in names:
            if not _NAMESPACE.fullmatch(name):
                self.fail(f"{name!r} is no namespace", param, ctx)
        return names


class Selector(click.ParamType["tuple[Expression, ...]"]):
    """A label selector, as of `kubectl get --selector`."""

    name = "selector"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Expression, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return parse_selector(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class SyncerClass(click.ParamType[str]):
    """The class of an installation."""

    name = "class"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not _NAMESPACE.fullmatch(value):
            self.fail(f"{value!r} is no class: 1 to 63 of a-z, 0-9 and '-', a letter or digit at both ends", param, ctx)
        return str(value)


class Part(click.ParamType[Shard]):
    """`I/N`: the I-th of N shards, counted from 0."""

    name = "i/n"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Shard:
        if isinstance(value, Shard):
            return value
        found = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", value)
        if not found or int(found[1]) >= int(found[2]):
            self.fail(f"{value!r} is no shard; of three they are 0/3, 1/3 and 2/3", param, ctx)
        return Shard(index=int(found[1]), count=int(found[2]))


class NamespacePairs(click.ParamType["tuple[tuple[str, str], ...]"]):
    """`FROM:TO`, or several with commas between; `*` on either side is any namespace."""

    name = "from:to[,...]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[tuple[str, str], ...]:
        if isinstance(value, tuple):
            return value
        pairs = [tuple(side.strip() for side in pair.split(":")) for pair in value.split(",")]
        for pair in pairs:
            if len(pair) != 2 or not all(side == ANY or _NAMESPACE.fullmatch(side) for side in pair):
                self.fail(f"{':'.join(pair)!r} is no pair of namespaces; write FROM:TO, with * for any", param, ctx)
        return tuple((pair[0], pair[1]) for pair in pairs)


class HostAndPort(click.ParamType[Address]):
    """Where an instance is called: `10.0.0.7:8080`, `host.example.com:8080`, `[fd00::7]:8080`."""

    name = "host:port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        if isinstance(value, Address):
            return value
        host, _, port = value.strip().rpartition(":")
        bare = host.removeprefix("[").removesuffix("]")
        if not bare or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
            self.fail(f"{value!r} is no address with a port; write 10.0.0.7:8080", param, ctx)
        if ":" in bare and bare == host:
            self.fail(f"{value!r}: put an IPv6 address in brackets, as in [fd00::7]:8080", param, ctx)
        return Address(bare, int(port))


class Syncer(click.ParamType[SyncerRef]):
    """A syncer, as `namespace/name`."""

    name = "namespace/name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> SyncerRef:
        if isinstance(value, SyncerRef):
            return value
        namespace, slash, name = value.strip().partition("/")
        if not slash or not _NAMESPACE.fullmatch(namespace) or not name or "/" in name:
            self.fail(f"{value!r} is no syncer; write namespace/name", param, ctx)
        return SyncerRef(namespace, name)
