"""`owner rename`."""

from __future__ import annotations

import click

from eurekube_sync.cli.commands.owner.carry_out import Servers, server_options
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.owner import observe_option, which_cluster_option
from eurekube_sync.cli.options.scope import name_scope_options
from eurekube_sync.cli.values import OWNER
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.desired.scope import Scope
from eurekube_sync.owner.moves import OwnerReport
from eurekube_sync.owner.rename import rename_owner
from eurekube_sync.owner.world import OwnerWorld


@click.command(cls=Command, name="rename", short_help="Move all instances from one owner name to another.")
@click.argument("old", type=OWNER)
@click.argument("new", type=OWNER)
@which_cluster_option
@name_scope_options
@observe_option
@server_options
def rename_command(
    old: str, new: str, servers: Servers, cluster: str | None, scope: Scope, observe: float | None
) -> ExitCode:
    """Move all of a cluster's instances from owner OLD to owner NEW. Each is registered under its new id, and
    read back. Only then is it cancelled under its old id.

    Stop `run` and `keepalive` of OLD first. The command refuses if somebody still renews the instances.
    """
    if old == new:
        raise click.UsageError(f"OLD and NEW are both {old}: give the new name as NEW")
    servers.form.set_up_logs()
    dry_run = servers.dry_run

    def work(world: OwnerWorld) -> OwnerReport:
        return rename_owner(world, old=old, new=new, cluster=cluster, scope=scope, observe=observe, dry_run=dry_run)

    return servers.carry_out(work, asks_cluster=not cluster)
