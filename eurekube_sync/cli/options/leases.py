"""How long an instance lives without us."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from eurekube_sync.cli.options.declare import Section, group, option
from eurekube_sync.cli.options.passes import Passes
from eurekube_sync.cli.values import Duration
from eurekube_sync.model.eureka import CACHE_SECONDS, OUR_LEASE, RENEWAL_INTERVAL, LeaseTimes
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Leases:
    """The leases that `run` gives, and `keepalive` renews. Times in seconds."""

    duration: float
    registry_cache: float = CACHE_SECONDS
    """How old Eureka's lists may be."""

    def __post_init__(self) -> None:
        if self.duration != int(self.duration):
            raise click.UsageError("--lease-duration is whole seconds")

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


_SHORTEST = 3.0 * RENEWAL_INTERVAL
"""Seconds: with less, one slow pass would let leases expire."""
_LONGEST = 576 * 3600.0
"""Seconds: Eureka counts a lease in milliseconds of 32 bits (`Lease`); one of 25 days would expire at once."""


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
        help="How old Eureka's lists may be. The deletion of a syncer waits this long.",
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
