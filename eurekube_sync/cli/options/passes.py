"""How many passes, how often, and whether they write; how long an instance lives without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from eurekube_sync.cli.options.declare import Section, group, option
from eurekube_sync.cli.values import Duration
from eurekube_sync.model.eureka import CACHE_SECONDS, OUR_LEASE, RENEWAL_INTERVAL, LeaseTimes
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import duration

_SHORTEST = 3.0 * RENEWAL_INTERVAL
"""Seconds: with less, one slow pass would let leases expire."""
_LONGEST = 576 * 3600.0
"""Seconds: Eureka counts a lease in milliseconds of 32 bits (`Lease`); one of 25 days would expire at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """The passes of one process. Times in seconds."""

    number: int | None
    """None: until a signal."""
    interval: float
    """From the start of a pass to the start of the next."""
    timeout: float
    """Of one pass."""
    dry_run: bool

    @property
    def many(self) -> bool:
        return self.number != 1

    @property
    def renewal_slack(self) -> float:
        """How much sooner a lease may be renewed than it is due, so that its renewals keep step with the passes."""
        return self.interval / 2 if self.many else 0.0


def _parse(passes: int, daemon: bool, interval: float, pass_timeout: float, dry_run: bool) -> Passes:
    if daemon and passes > 1:
        raise click.UsageError("--daemon and --passes exclude each other: give one of them")
    return Passes(number=None if daemon else passes, interval=interval, timeout=pass_timeout, dry_run=dry_run)


pass_options = group(
    "passes",
    _parse,
    option(
        "--passes",
        type=click.IntRange(1),
        default=1,
        help="How many passes to run. The exit code is that of the last one.",
    ),
    option("--daemon", is_flag=True, help="Run pass after pass, until SIGTERM."),
    option(
        "--interval",
        type=Duration(least=1),
        default="30s",
        help="Time from the start of a pass to the start of the next.",
    ),
    option("--pass-timeout", type=Duration(least=1), default="120s", help="After this time a pass starts nothing new."),
    option("--dry-run", is_flag=True, section=Section.COMMAND, help="Show what a pass would do, and write nothing."),
    section=Section.PASSES,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leases:
    """The leases that `run` gives, and `keepalive` renews. Times in seconds."""

    duration: float
    registry_cache: float = CACHE_SECONDS
    """How old Eureka's lists may be."""

    def __post_init__(self) -> None:
        if self.duration != int(self.duration):
            raise click.UsageError("--lease-duration must be whole seconds")

    @property
    def times(self) -> LeaseTimes:
        return LeaseTimes(RENEWAL_INTERVAL, int(self.duration))

    def check(self, passes: Passes) -> None:
        """Raises click.UsageError for passes that come too late for them."""
        if passes.many and passes.interval > self.duration / 2:
            raise click.UsageError(
                f"--interval {duration(passes.interval)} is more than half of --lease-duration "
                f"{duration(self.duration)}: leases would expire after one failed pass"
            )


def _duration_option(text: str) -> Callable[[Any], Any]:
    kind = Duration(least=_SHORTEST, most=_LONGEST)
    return option("--lease-duration", "duration", type=kind, default=f"{OUR_LEASE.duration}s", help=text)


lease_options = group(
    "leases",
    Leases,
    _duration_option(
        "How long Eureka lists an instance after its registration. After a renewal, Eureka lists it for twice this "
        "time."
    ),
    option(
        "--registry-cache",
        type=Duration(),
        default=f"{CACHE_SECONDS:g}s",
        help="The greatest age of Eureka's cached lists. The finalizer of a deleted syncer stays at least this long.",
    ),
    section=Section.LEASES,
)

kept_lease_options = group(
    "leases",
    Leases,
    _duration_option("The same value as for run. With several passes, --interval must not be more than half of it."),
    section=Section.LEASES,
)
"""The same for who gives none."""
