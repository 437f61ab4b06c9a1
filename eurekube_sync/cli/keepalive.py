"""`keepalive`: renews all that is ours from Eureka alone, while the cluster or `run` is away."""

from __future__ import annotations

import click

from eurekube_sync.cli.connect import Connection, connect_registry
from eurekube_sync.cli.eureka_access import EurekaAccess, eureka_access_options
from eurekube_sync.cli.logs import set_up_logs
from eurekube_sync.cli.options import (
    batch_option,
    call_options,
    eureka_options,
    name_scope_options,
    option,
    pass_options,
    renewal_option,
    report_options,
)
from eurekube_sync.cli.passes import number_of_passes, renewed_every, teller
from eurekube_sync.cli.signals import stopped_by_signals
from eurekube_sync.cli.snapshot_file import SnapshotFile
from eurekube_sync.cli.values import Duration, Name
from eurekube_sync.clock import SystemClock
from eurekube_sync.exit_codes import ExitCode
from eurekube_sync.keepalive import KeepaliveSettings, keepalive
from eurekube_sync.loop import Schedule, run_passes
from eurekube_sync.scope import Scope, Shard

_LONGEST = 150
"""Seconds: half of the duration that `run` gives a lease by default."""


@click.command(short_help="Renew what is ours, without a cluster.")
@eureka_options
@eureka_access_options
@option(
    "--cluster",
    type=Name(),
    metavar="UID",
    default=None,
    help="Only instances of this cluster. Default: all of the owner's.",
)
@name_scope_options
@call_options
@batch_option
@pass_options
@renewal_option
@option(
    "--snapshot",
    metavar="FILE",
    type=click.Path(),
    default=None,
    help="Register again what run --snapshot has kept here, and Eureka has lost.",
)
@option("--snapshot-max-age", type=Duration(), default="24h", help="Bring nothing back from an older snapshot.")
@report_options
def command(
    owner: str,
    eureka_url: str,
    eureka_access: EurekaAccess,
    cluster: str | None,
    namespaces: tuple[tuple[str, ...], ...],
    shard: Shard | None,
    concurrency: int,
    call_timeout: float,
    eureka_batch: str,
    passes: int,
    daemon: bool,
    interval: float,
    pass_timeout: float,
    dry_run: bool,
    renewal_interval: float,
    snapshot: str | None,
    snapshot_max_age: float,
    output: str,
    log_format: str,
    verbose: bool,
) -> ExitCode:
    """Renew all that is ours from Eureka alone: one pass, --passes N, or --daemon. No cluster is asked.

    Nothing is withdrawn, and without --snapshot nothing is added. Start it when `run` is away: beside it the renewals
    of both add up.
    """
    set_up_logs(as_json=log_format == "json", verbose=verbose)
    number = number_of_passes(passes=passes, daemon=daemon)
    many = number != 1
    if renewal_interval < 1:
        raise click.UsageError("--renewal-interval is at least 1s")
    if many and max(interval, renewal_interval) > _LONGEST:
        raise click.UsageError(
            f"--interval and --renewal-interval are at most {_LONGEST}s: one failed pass would let the leases of 300s "
            "lapse that run makes"
        )
    settings = KeepaliveSettings(
        owner=owner,
        cluster=cluster,
        scope=Scope(namespaces=frozenset(name for names in namespaces for name in names) or None, shard=shard),
        snapshot_max_age=snapshot_max_age,
        dry_run=dry_run,
        deadline=pass_timeout,
    )
    connection = Connection(
        eureka_url=eureka_url,
        eureka_access=eureka_access,
        concurrency=concurrency,
        call_timeout=call_timeout,
        eureka_batch=eureka_batch,
        dry_run=dry_run,
        renewal_interval=renewal_interval,
        renewal_slack=interval / 2 if many else 0.0,
    )
    load = SnapshotFile(snapshot).load if snapshot else None
    tell = teller(output, renewed_every(renewal_interval, interval, many=many), eureka_access.notices, many=many)
    schedule = Schedule(passes=number, interval=interval)
    clock = SystemClock()
    with stopped_by_signals(clock), connect_registry(connection, clock) as world:
        return run_passes(lambda: keepalive(world, settings, load), clock, schedule, tell)
