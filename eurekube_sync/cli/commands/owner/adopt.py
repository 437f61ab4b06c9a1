"""`owner adopt`."""

from __future__ import annotations

import click

from eurekube_sync.cli.commands.owner.carry_out import Servers, server_options
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import on_command_line, option
from eurekube_sync.cli.options.owner import observe_option, owner_option
from eurekube_sync.cli.options.scope import scope_options
from eurekube_sync.cli.values import HOST_AND_PORT, NAME
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.desired.scope import Scope
from eurekube_sync.owner.adopt import adopt_instances, adopt_old_cluster
from eurekube_sync.owner.moves import Address, OwnerReport
from eurekube_sync.owner.world import OwnerWorld


def _check(app: str | None, cluster: str | None, addresses: tuple[Address, ...]) -> None:
    if app is not None and cluster is not None:
        raise click.UsageError(
            "--app is for instances that nobody owns, --cluster for those of an old cluster: give one of them"
        )
    if app is None and cluster is None:
        raise click.UsageError("give --app, for instances that nobody owns, or --cluster, for those of an old cluster")
    if cluster is not None and addresses:
        raise click.UsageError("--address goes with --app; --cluster takes all instances of a cluster")
    if cluster is not None and any(map(on_command_line, ("selector", "syncer_class", "allowed"))):
        raise click.UsageError(
            "--selector, --syncer-class and --allow-namespace go with --app: an instance of an old cluster shows "
            "only the name of its syncer"
        )


@click.command(cls=Command, name="adopt", short_help="Take over what a person, a tool or an old cluster registered.")
@owner_option
@scope_options
@option(
    "--app",
    variable=False,
    type=NAME,
    metavar="APP",
    default=None,
    help="Take over instances of this app that nobody owns.",
)
@option(
    "--address",
    "addresses",
    variable=False,
    type=HOST_AND_PORT,
    multiple=True,
    help="Only the instance at this address; may be repeated. Default: all instances of the app that a syncer wants.",
)
@option(
    "--cluster",
    variable=False,
    type=NAME,
    metavar="OLD",
    default=None,
    help="Take over all of the owner's instances in the cluster with this UID.",
)
@observe_option
@server_options
def adopt_command(
    owner: str,
    servers: Servers,
    scope: Scope,
    app: str | None,
    addresses: tuple[Address, ...],
    cluster: str | None,
    observe: float | None,
) -> ExitCode:
    """Take instances over. With --app: those that a person or another tool registered, and that one of our syncers
    wants. With --cluster OLD: all of the owner's instances in a cluster that this one replaces.

    It first watches whether somebody still renews them. If so, it refuses. Callers see no gap.
    """
    _check(app, cluster, addresses)
    servers.form.set_up_logs()
    dry_run = servers.dry_run

    def work(world: OwnerWorld) -> OwnerReport:
        if cluster is not None:
            return adopt_old_cluster(world, owner=owner, old=cluster, scope=scope, observe=observe, dry_run=dry_run)
        assert app is not None  # one of both is given
        return adopt_instances(
            world,
            owner=owner,
            app=app,
            addresses=addresses,
            scope=scope,
            observe=observe,
            dry_run=dry_run,
        )

    return servers.carry_out(work)
