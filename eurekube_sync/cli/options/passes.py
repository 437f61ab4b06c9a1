"""Options for passes, leases, the brake, approvals and monitoring."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import click

from eurekube_sync.brake.approval import parse_plan_id
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.cli.options.declare import Section, group, option
from eurekube_sync.cli.values import LISTEN, PERCENT, Duration, File, Value
from eurekube_sync.model.eureka import CACHE_SECONDS, OUR_LEASE, RENEWAL_INTERVAL

_SHORTEST = 3.0 * RENEWAL_INTERVAL  # seconds; with less, one slow pass would let leases expire
_LONGEST = (
    576 * 3600.0
)  # seconds; 25 days would overflow Eureka's `Lease`, which counts milliseconds in 32 bits
_LIMITS = BrakeLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
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


def _limits(brake_percent: float, brake_count: float, brake_apps_percent: float) -> BrakeLimits:
    return BrakeLimits(
        loss_percent=brake_percent,
        loss_floor=brake_count,
        app_loss_floor=brake_count,
        apps_percent=brake_apps_percent,
    )


brake_options = group(
    "brake",
    _limits,
    option("--brake-percent", variable=False, type=PERCENT, default=_LIMITS.loss_percent),
    option("--brake-count", variable=False, type=click.IntRange(0), default=_LIMITS.loss_floor),
    option("--brake-apps-percent", variable=False, type=PERCENT, default=_LIMITS.apps_percent),
    section=Section.BRAKE,
)
"""The command gets a `BrakeLimits` named `brake`. Variables would weaken the brake for every
command of a shell."""

_plan_id = Value("plan id", parse_plan_id)
approve_option = option(
    "--approve", variable=False, section=Section.BRAKE, type=_plan_id, metavar="PLAN_ID"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitoring:
    """Where to write metrics and records."""

    listen: tuple[str, int] | None = None
    metrics_file: Path | None = None
    push_metrics: str | None = None
    record: Path | None = None
    record_limit: int = 256  # MiB of all records together


def _url(text: str) -> str:
    parts = urlsplit(text.strip())
    if "@" in text:
        raise ValueError(
            "the URL of a Pushgateway must not have a login; write http://pushgateway:9091"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{text!r} is not the URL of a Pushgateway; write http://pushgateway:9091")
    return text.strip()


monitoring_options = group(
    "monitoring",
    Monitoring,
    option("--listen", type=LISTEN),
    option("--metrics-file", type=File(dir_okay=False, path_type=Path)),
    option(
        "--push-metrics",
        type=Value("url", _url),
        help="Push metrics to this Pushgateway after each pass.",
    ),
    option("--record", metavar="DIR", type=File(file_okay=False, path_type=Path)),
    option("--record-limit", metavar="MIB", type=click.IntRange(1, 1024 * 1024), default=256),
    section=Section.WATCHING,
)
