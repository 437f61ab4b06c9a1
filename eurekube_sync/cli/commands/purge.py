"""The command `purge`."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import partial

import click

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli.connect import (
    Installation,
    both_servers,
    connect,
    connect_registry,
    installation_options,
)
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.options.report import ReportForm, report_options
from eurekube_sync.cli.options.scope import name_scope_options, owner_option
from eurekube_sync.cli.output.answers import purge_data, purge_table
from eurekube_sync.cli.process import ended_by_signals, progress_line, stopped_by_signals
from eurekube_sync.cli.values import NAME
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import EurekaWorld, World
from eurekube_sync.model.sanitize import printable
from eurekube_sync.model.struct import replace
from eurekube_sync.owner.purge import Purge, PurgeReport, PurgeWorld, look_before_purge, purge

_NAMED = 10  # the most instances that the question names
_CLUSTER_HELP = "UID of the cluster. Kubernetes is then not called."


@click.command(cls=Command, short_help="Cancel all instances of the owner (uninstall).")
@installation_options(owner_option, name_scope_options, *both_servers)
@option("--cluster", variable=False, type=NAME, metavar="UID", help=_CLUSTER_HELP)
@option("--yes", "-y", variable=False, is_flag=True, help="Do not ask for confirmation.")
@option("--dry-run", is_flag=True, help="Print what would be done, and change nothing.")
@report_options
def purge_command(
    installation: Installation, cluster: str | None, yes: bool, dry_run: bool, form: ReportForm
) -> ExitCode:
    """Cancel all instances of the owner in one cluster, on every peer. With --namespace, cancel
    only the instances of the syncers in that namespace.

    Without --cluster, the cluster is that of the kubeconfig, and the finalizers of syncers that are
    being deleted are removed. It can be interrupted at any point and repeated.
    """
    ask = not yes and not dry_run
    if ask and not sys.stdin.isatty():
        raise click.UsageError(
            "there is no terminal to ask at: give --yes, or --dry-run to see what would be removed"
        )
    clock = SystemClock()
    ours = replace(installation, sweep_interval=1.0)  # each list is of all peers
    connecting: AbstractContextManager[World | EurekaWorld]
    connecting = connect_registry(ours, clock) if cluster else connect(ours, clock)
    with stopped_by_signals(clock), progress_line() as tell, connecting as servers:
        world = PurgeWorld(
            registry=servers.registry,
            clock=clock,
            workers=servers.workers,
            tell=tell,
        )
        if isinstance(servers, World):
            world = replace(world, cluster=servers.cluster)
        done = _purge(world, installation, cluster, ask=ask, dry_run=dry_run)
        if done is None:
            click.echo("nothing was changed", err=True)
            return ExitCode.REFUSED
        report = replace(done, unreached=world.registry.unreached())
    return form.answer(report.code, partial(purge_table, report), partial(purge_data, report))


def _purge(
    world: PurgeWorld, installation: Installation, cluster: str | None, *, ask: bool, dry_run: bool
) -> PurgeReport | None:
    """Look, ask if that is wanted, and purge; None if the person answered no."""
    look = partial(look_before_purge, world, owner=installation.owner, scope=installation.scope)
    found = look(cluster=cluster)
    if found.instances and ask:
        if not _confirmed(found):
            return None
        # The answer may have taken an hour. Only what the person saw is cancelled.
        now = look(cluster=found.ownership.cluster)
        found = replace(now, instances=found.instances)
    return purge(world, found, dry_run=dry_run)


def _confirmed(found: Purge) -> bool:
    """Ask on stderr, because stdout is for the report."""
    number = len(found.instances)
    for instance in found.instances[:_NAMED]:
        click.echo(f"  {instance.key} {instance.status}", err=True)
    more = number - _NAMED
    if more > 0:
        click.echo(f"  and {more} more", err=True)
    for caution in found.cautions:
        click.echo(f"! {printable(caution)}", err=True)
    what = f"all {number} instances"
    if number == 1:
        what = "the one instance"
    elif number == 2:
        what = "both instances"
    try:
        with ended_by_signals():
            return click.confirm(f"Cancel {what} of {found.whose}?", err=True)
    except click.Abort:
        click.echo("\nnothing was changed", err=True)
        raise
