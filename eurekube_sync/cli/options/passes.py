"""Options for passes, leases, the brake, approvals and monitoring."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import click
from msgspec import Struct

from eurekube_sync.brake.approval import parse_plan_id
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.cli.options.declare import Section, group, option
from eurekube_sync.cli.values import LISTEN, Duration, Value, keyed, percent
from eurekube_sync.model.eureka import CACHE_SECONDS, OUR_LEASE, RENEWAL_INTERVAL
from eurekube_sync.model.struct import replace

_SHORTEST = 3.0 * RENEWAL_INTERVAL  # seconds; with less, one slow pass would let leases expire
_LONGEST = (
    576 * 3600.0
)  # seconds; 25 days would overflow Eureka's `Lease`, which counts milliseconds in 32 bits
_LIMITS = BrakeLimits()


class Passes(Struct, frozen=True, kw_only=True):
    """How often to run passes. Times in seconds."""

    passes: int
    daemon: bool
    interval: float  # from the start of a pass to the start of the next
    pass_timeout: float
    dry_run: bool

    def __post_init__(self) -> None:
        if self.daemon and self.passes > 1:
            raise click.UsageError("--daemon and --passes are mutually exclusive")

    @property
    def many(self) -> bool:
        return self.daemon or self.passes > 1

    @property
    def renewal_slack(self) -> float:
        """How long before it is due a lease may be renewed, so that the renewals keep step with the
        passes."""
        return self.interval / 2 if self.many else 0.0


pass_options = group(
    "passes",
    Passes,
    option("--passes", type=click.IntRange(1), default=1),
    option("--daemon", is_flag=True, help="Run passes until SIGTERM."),
    option("--interval", type=Duration(least=1), default="30s"),
    option(
        "--pass-timeout",
        section=Section.CALLS,
        type=Duration(least=1),
        default="120s",
        help="Timeout of a pass. After it, the pass starts no more calls.",
    ),
    option(
        "--dry-run",
        is_flag=True,
        section=Section.COMMAND,
        help="Print the plan, and change nothing.",
    ),
    section=Section.PASSES,
)
_length = Duration(least=_SHORTEST, most=_LONGEST)
_lease_duration = partial(
    option,
    "--lease-duration",
    section=Section.EUREKA,
    type=_length,
    default=f"{OUR_LEASE.duration}s",
)
lease_options = (
    _lease_duration(),
    option(
        "--registry-cache", section=Section.EUREKA, type=Duration(), default=f"{CACHE_SECONDS:g}s"
    ),
)
kept_lease_option = _lease_duration(
    help="The --lease-duration of run. --interval may be at most half of it."
)


def _count(text: str) -> float:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not a number of instances or apps")
    return float(text)


_NUMBERS: Mapping[str, tuple[str, Callable[[str], float]]] = {
    "too-much": ("loss_percent", percent),
    "too-much-count": ("loss_floor", _count),
    "emptied": ("apps_percent", percent),
    "emptied-count": ("apps_floor", _count),
    "asked-for": ("asked_percent", percent),
    "asked-for-count": ("asked_floor", _count),
    "confirm": ("confirm_after", Duration().seconds),
}
"""The keys of `--brake`: the field of `BrakeLimits`, and how its value is read."""
_DEFAULTS = ", ".join(f"{key}={getattr(_LIMITS, field):g}" for key, (field, _) in _NUMBERS.items())


def _limits(text: str) -> BrakeLimits:
    """Read `--brake`; what it does not name has its default."""
    given: dict[str, float] = {}
    for key, value in keyed(text, {key: read for key, (_, read) in _NUMBERS.items()}).items():
        given[_NUMBERS[key][0]] = value
    if "loss_floor" in given:  # one number counts for all instances, and for those of each app
        given["app_loss_floor"] = given["loss_floor"]
    return replace(_LIMITS, **given)


brake_option = option(
    "--brake",
    variable=False,
    section=Section.BRAKE,
    type=Value("key=number[,...]", _limits),
    default=_DEFAULTS,
)
"""Gives a `BrakeLimits`. A variable would weaken the brake for every command of a shell."""

_plan_id = Value("plan id", parse_plan_id)
approve_option = option(
    "--approve", variable=False, section=Section.BRAKE, type=_plan_id, metavar="PLAN_ID"
)


class Monitoring(Struct, frozen=True, kw_only=True):
    """Where to write metrics and records."""

    listen: tuple[str, int] | None = None
    metrics_to: Path | str | None = None  # a file, or the URL of a Pushgateway
    record: Records | None = None


class Records(Struct, frozen=True):
    """Where to write records."""

    folder: Path
    most_mib: int = 256  # MiB of all records together


def _file_or_url(text: str) -> Path | str:
    text = text.strip()
    if not text:
        raise ValueError("it is empty")
    if "://" not in text:
        return Path(text)
    parts = urlsplit(text)
    if "@" in text:
        raise ValueError(
            "the URL of a Pushgateway must not have a login; write http://pushgateway:9091"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{text!r} is not the URL of a Pushgateway; write http://pushgateway:9091")
    return text


def _records(text: str) -> Records:
    folder, comma, most = text.rpartition(",")
    if not comma or not most.isdecimal():
        folder, most = text, ""
    if not folder.strip():
        raise ValueError("it is empty")
    if Path(folder).is_file():
        raise ValueError(f"{folder!r} is a file; records need a folder")
    if not most:
        return Records(Path(folder))
    if not 1 <= int(most) <= 1024 * 1024:
        raise ValueError(f"{most} MiB is not a size from 1 to {1024 * 1024}")
    return Records(Path(folder), int(most))


monitoring_options = group(
    "monitoring",
    Monitoring,
    option("--listen", type=LISTEN),
    option("--metrics-to", metavar="FILE|URL", type=Value("file or url", _file_or_url)),
    option("--record", metavar="DIR[,MIB]", type=Value("folder", _records)),
    section=Section.WATCHING,
)
