"""`owner rename`."""

from __future__ import annotations

import click

from eurekube_sync.cli.commands.owner.carry_out import carry_out
from eurekube_sync.cli.options.calls import Calls, call_options
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.eureka import EurekaAccess, eureka_options
from eurekube_sync.cli.options.kubernetes import KubernetesAccess, kubernetes_options
from eurekube_sync.cli.options.owner import dry_run_option, observe_option, which_cluster_option
from eurekube_sync.cli.options.report import ReportForm, report_options
from eurekube_sync.cli.options.scope import name_scope_options
from eurekube_sync.cli.values import OWNER
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.desired.scope import Scope
from eurekube_sync.owner.rename import rename_owner
from eurekube_sync.owner.report import OwnerReport
from eurekube_sync.owner.world import OwnerWorld


@click.command(cls=Command, name="rename", short_help="Move all instances from one owner name to another.")
@click.argument("old", type=OWNER)
@click.argument("new", type=OWNER)
@eureka_options
@kubernetes_options
@which_cluster_option
@name_scope_options
@observe_option
@call_options
@dry_run_option
@report_options
def rename_command(
    old: str,
    new: str,
    eureka: EurekaAccess,
    kubernetes: KubernetesAccess,
    cluster: str | None,
    scope: Scope,
    observe: float | None,
    calls: Calls,
    dry_run: bool,
    form: ReportForm,
) -> ExitCode:
    """Move all of a cluster's instances from owner OLD to owner NEW. Each is registered under its new id, read there,
    and only then cancelled under its old id.

    Stop `run` and `keepalive` of OLD first. The command watches for them.
    """
    if old == new:
        raise click.UsageError(f"OLD and NEW are both {old}: give the name that {old} is to get")
    form.set_up_logs()

    def work(world: OwnerWorld) -> OwnerReport:
        return rename_owner(world, old=old, new=new, cluster=cluster, scope=scope, observe=observe, dry_run=dry_run)

    return carry_out(work, eureka, None if cluster else kubernetes, calls, form)
