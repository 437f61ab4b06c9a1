"""The commands `owner adopt`, `owner rename` and `owner purge`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

import click

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli.connect import (
    Installation,
    both_servers,
    connect,
    connect_registry,
    installation_options,
    required_options,
)
from eurekube_sync.cli.options.command import Group
from eurekube_sync.cli.options.declare import on_command_line, option
from eurekube_sync.cli.options.report import ReportForm, report_options
from eurekube_sync.cli.options.scope import name_scope_options, owner_option
from eurekube_sync.cli.output.answers import owner_data, owner_table
from eurekube_sync.cli.process import ended_by_signals, progress_line, stopped_by_signals
from eurekube_sync.cli.values import NAME, OWNER, Duration
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import EurekaWorld, World
from eurekube_sync.model.foreign_text import printable
from eurekube_sync.owner.commands import (
    Purge,
    adopt_instances,
    adopt_old_cluster,
    look_before_purge,
    purge,
    rename_owner,
)
from eurekube_sync.owner.moves import OwnerReport
from eurekube_sync.owner.world import OwnerWorld

_NAMED = 10  # the most instances that the question of `purge` names
_dry_run_option = option("--dry-run", is_flag=True, help="Show what would be done, and write nothing.")
_observe_option = option("--observe", variable=False, type=Duration(least=1))
_cluster_help = "UID of the cluster. With it, the command makes no call to Kubernetes."
_cluster_option = option("--cluster", variable=False, type=NAME, metavar="UID", help=_cluster_help)


@click.group(name="owner", cls=Group, short_help="Change who owns instances (adopt, rename), or cancel them (purge).")
def owner_command() -> None:
    """Change who owns instances in Eureka (adopt, rename), or cancel them (purge).

    Each command has --dry-run. You may kill it at any point and repeat it.
    """


def _carry_out(
    installation: Installation,
    form: ReportForm,
    work: Callable[[OwnerWorld], OwnerReport | ExitCode],
    *,
    asks_cluster: bool = True,
) -> ExitCode:
    """Connect, do the work until a signal, and write its report, unless it gives an exit code instead."""
    clock, ours = SystemClock(), replace(installation, sweep_interval=1.0)  # each list is of all peers
    connecting: AbstractContextManager[World | EurekaWorld]
    connecting = connect(ours, clock) if asks_cluster else connect_registry(ours, clock)
    with stopped_by_signals(clock), progress_line() as tell, connecting as found:
        cluster = found.cluster if isinstance(found, World) else None
        world = OwnerWorld(registry=found.registry, clock=clock, workers=found.workers, cluster=cluster, tell=tell)
        done = work(world)
        if isinstance(done, ExitCode):
            return done
        report = replace(done, unreached=world.registry.unreached())
    return form.answer(report.code, lambda: owner_table(report), lambda: owner_data(report))


@owner_command.command(name="adopt", short_help="Take over what a person, a tool or an old cluster registered.")
@installation_options(*required_options)
@option("--app", variable=False, type=NAME, metavar="APP", help="Take over instances of this app that have no owner.")
@option(
    "--cluster",
    variable=False,
    type=NAME,
    metavar="OLD",
    help="Take over all of the owner's instances in the cluster with this UID.",
)
@_observe_option
@_dry_run_option
@report_options
def adopt_command(
    installation: Installation,
    app: str | None,
    cluster: str | None,
    observe: float | None,
    dry_run: bool,
    form: ReportForm,
) -> ExitCode:
    """Take over instances. With --app: those of the app that have no owner, if one of our syncers wants them. With
    --cluster OLD: all of the owner's instances in an old cluster, which this cluster replaces.

    It first watches whether somebody still renews them. If so, it refuses. Callers can find the instances during the
    whole take-over.
    """
    if (app is None) == (cluster is None):
        raise click.UsageError(
            "give one of two: --app for instances without an owner, or --cluster for those of an old cluster"
        )
    if cluster is not None and any(map(on_command_line, ("selector", "syncer_class", "allowed"))):
        raise click.UsageError(
            "--selector, --syncer-class and --allow-namespace go with --app: an instance of an old cluster shows "
            "only the name of its syncer"
        )
    adopt = partial(adopt_old_cluster, old=cluster) if cluster is not None else partial(adopt_instances, app=app or "")
    work = partial(adopt, owner=installation.owner, scope=installation.scope, observe=observe, dry_run=dry_run)
    return _carry_out(installation, form, work)


@owner_command.command(name="rename", short_help="Move all instances from one owner name to another.")
@click.argument("old", type=OWNER)
@click.argument("new", type=OWNER)
@_cluster_option
@installation_options(name_scope_options, *both_servers)
@_observe_option
@_dry_run_option
@report_options
def rename_command(
    old: str,
    new: str,
    cluster: str | None,
    installation: Installation,
    observe: float | None,
    dry_run: bool,
    form: ReportForm,
) -> ExitCode:
    """Move all of a cluster's instances from owner OLD to owner NEW. Each is registered under its new id, and
    read back. Only then is it cancelled under its old id.

    Stop `run` and `keepalive` of OLD first. The command refuses if somebody still renews the instances.
    """
    if old == new:
        raise click.UsageError(f"OLD and NEW are both {old}: give the new name as NEW")

    rename = partial(rename_owner, old=old, new=new, cluster=cluster)
    work = partial(rename, scope=installation.scope, observe=observe, dry_run=dry_run)
    return _carry_out(installation, form, work, asks_cluster=not cluster)


@owner_command.command(name="purge", short_help="Cancel all of our instances: uninstall.")
@installation_options(owner_option, name_scope_options, *both_servers)
@_cluster_option
@option("--yes", "-y", variable=False, is_flag=True, help="Do not ask.")
@_dry_run_option
@report_options
def purge_command(
    installation: Installation, cluster: str | None, yes: bool, dry_run: bool, form: ReportForm
) -> ExitCode:
    """Cancel all of the owner's instances of one cluster, on every peer. With --namespace, it cancels only the
    instances of the syncers in that scope.

    Without --cluster it asks the cluster for its UID, and removes the finalizers of syncers that are being deleted.
    """
    if not (yes or dry_run or sys.stdin.isatty()):
        raise click.UsageError("there is no terminal to ask at: give --yes, or --dry-run to see what would be removed")

    def work(world: OwnerWorld) -> OwnerReport | ExitCode:
        look = partial(look_before_purge, world, owner=installation.owner, scope=installation.scope)
        found = look(cluster=cluster)
        if found.instances and not (yes or dry_run):
            if not _confirmed(found):
                click.echo("nothing was changed", err=True)
                return ExitCode.REFUSED
            now = look(cluster=found.ownership.cluster)  # the answer may have taken an hour
            found = replace(now, instances=found.instances)
        return purge(world, found, dry_run=dry_run)

    return _carry_out(installation, form, work, asks_cluster=not cluster)


def _confirmed(found: Purge) -> bool:
    """Ask on stderr, because stdout is for the report."""
    number = len(found.instances)
    for one in found.instances[:_NAMED]:
        click.echo(f"  {one.key} {one.status}", err=True)
    if number > _NAMED:
        click.echo(f"  and {number - _NAMED} more", err=True)
    for caution in found.cautions:
        click.echo(f"! {printable(caution)}", err=True)
    what = {1: "the one instance", 2: "both instances"}.get(number, f"all {number} instances")
    try:
        with ended_by_signals():
            return click.confirm(f"Cancel {what} of {found.whose}?", err=True)
    except click.Abort:
        click.echo("\nnothing was changed", err=True)
        raise
