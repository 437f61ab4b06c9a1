"""`owner purge`, which asks."""

from __future__ import annotations

import sys

import click

from eurekube_sync.cli.commands.owner.carry_out import Servers, server_options
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.options.owner import owner_option, which_cluster_option
from eurekube_sync.cli.options.scope import name_scope_options
from eurekube_sync.cli.signals import ended_by_signals
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.foreign_text import printable
from eurekube_sync.owner.moves import OwnerReport
from eurekube_sync.owner.purge import Purge, look_again, look_before_purge, purge
from eurekube_sync.owner.world import OwnerWorld

_NAMED = 10
"""The most instances that the question names."""


@click.command(cls=Command, name="purge", short_help="Cancel all of our instances: uninstall.")
@owner_option
@which_cluster_option
@name_scope_options
@option("--yes", "-y", variable=False, is_flag=True, help="Do not ask.")
@server_options
def purge_command(owner: str, servers: Servers, cluster: str | None, scope: Scope, yes: bool) -> ExitCode:
    """Cancel all of the owner's instances of one cluster, on every peer. With --namespace or --shard, it cancels only
    the instances of the syncers in that scope. The instances of other installations of the same owner stay.

    Without --cluster it asks the cluster for its UID, and removes the finalizers of syncers that are being deleted.
    """
    servers.form.set_up_logs()
    if not (yes or servers.dry_run or sys.stdin.isatty()):
        raise click.UsageError("there is no terminal to ask at: give --yes, or --dry-run to see what would be removed")

    def work(world: OwnerWorld) -> OwnerReport | ExitCode:
        found = look_before_purge(world, owner=owner, cluster=cluster, scope=scope)
        if found.instances and not (yes or servers.dry_run):
            if not _confirmed(found):
                click.echo("nothing was changed", err=True)
                return ExitCode.REFUSED
            found = look_again(world, found)
        return purge(world, found, dry_run=servers.dry_run)

    return servers.carry_out(work, asks_cluster=not cluster)


def _confirmed(found: Purge) -> bool:
    """Asks on stderr, so that stdout holds the report alone."""
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
