"""How many passes, how often, and whether they write."""

from __future__ import annotations

import click

from eurekube_sync.cli.options.declare import Section, group, option
from eurekube_sync.cli.values import Duration
from eurekube_sync.model.values import dataclass


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
