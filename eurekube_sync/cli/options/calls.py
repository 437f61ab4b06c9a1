"""How both servers are called."""

from __future__ import annotations

import click

from eurekube_sync.cli.options.declare import Section, group, option
from eurekube_sync.cli.values import Duration
from eurekube_sync.model.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """How many calls at a time, and how long each may take."""

    concurrency: int = 16
    call_timeout: float = 10
    """Seconds."""


_DEFAULT = Calls()

call_options = group(
    "calls",
    Calls,
    option(
        "--concurrency",
        type=click.IntRange(1, 256),
        default=_DEFAULT.concurrency,
        help="How many calls to Eureka or Kubernetes may run at the same time.",
    ),
    option(
        "--call-timeout",
        type=Duration(least=0.1),
        default=f"{_DEFAULT.call_timeout:g}s",
        help="The longest time to wait for one answer.",
    ),
    section=Section.CALLS,
)

batch_option = option(
    "--eureka-batch",
    section=Section.CALLS,
    type=click.Choice(["auto", "on", "off"]),
    default="auto",
    help="Renew, register and cancel up to 250 instances in one call to each Eureka server. auto: only if the servers "
    "say that --eureka-url names all of their replicas. on: without asking the servers.",
)
