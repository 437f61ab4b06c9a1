"""`owner release`."""

from __future__ import annotations

import click

from eurekube_sync.cli.commands.owner.carry_out import carry_out
from eurekube_sync.cli.commands.owner.options import dry_run_option, which_cluster_option
from eurekube_sync.cli.options.calls import Calls, call_options
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import group, option
from eurekube_sync.cli.options.eureka import EurekaAccess, eureka_options
from eurekube_sync.cli.options.kubernetes import KubernetesAccess, kubernetes_options
from eurekube_sync.cli.options.owner import owner_option
from eurekube_sync.cli.options.report import ReportForm, report_options
from eurekube_sync.cli.options.scope import name_scope_options
from eurekube_sync.cli.values import Duration, Name, Syncer
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.owner.release import release_instances
from eurekube_sync.owner.report import OwnerReport
from eurekube_sync.owner.world import OwnerWorld


def _keepalive(keepalive: float | None, lapse: bool) -> float | None:
    """Seconds, or None: they lapse."""
    if lapse and keepalive is not None:
        raise click.UsageError("--lapse lets them lapse, --keepalive goes on renewing them: give one of them")
    if not lapse and keepalive is None:
        raise click.UsageError("say what becomes of them: --lapse, or --keepalive DURATION")
    return keepalive


_keepalive_options = group(
    "keepalive",
    _keepalive,
    option(
        "--keepalive", variable=False, type=Duration(least=1), default=None, help="Go on renewing them for so long."
    ),
    option("--lapse", variable=False, is_flag=True, help="Let them lapse when their leases end."),
)


@click.command(cls=Command, name="release", short_help="Give instances up: run touches them no more.")
@owner_option
@eureka_options
@kubernetes_options
@which_cluster_option
@name_scope_options
@option(
    "--app",
    "apps",
    variable=False,
    type=Name(),
    metavar="APP",
    multiple=True,
    help="Only instances of this app; may be repeated.",
)
@option(
    "--syncer",
    "syncers",
    variable=False,
    type=Syncer(),
    multiple=True,
    help="Only instances of this syncer; may be repeated.",
)
@_keepalive_options
@call_options
@dry_run_option
@report_options
def release_command(
    owner: str,
    eureka: EurekaAccess,
    kubernetes: KubernetesAccess,
    cluster: str | None,
    scope: Scope,
    apps: tuple[str, ...],
    syncers: tuple[SyncerRef, ...],
    keepalive: float | None,
    calls: Calls,
    dry_run: bool,
    form: ReportForm,
) -> ExitCode:
    """Give instances up: our marks are taken off, so that `run` touches them no more, and they stay as they are until
    their leases end.

    --lapse leaves it at that; --keepalive DURATION goes on renewing them in the foreground.
    """
    form.set_up_logs()

    def work(world: OwnerWorld) -> OwnerReport:
        return release_instances(
            world,
            owner=owner,
            cluster=cluster,
            scope=scope,
            apps=frozenset(app.upper() for app in apps),
            syncers=frozenset(syncers),
            keepalive=keepalive,
            dry_run=dry_run,
        )

    return carry_out(work, eureka, None if cluster else kubernetes, calls, form)
