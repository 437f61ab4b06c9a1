"""`check`: whether an installation can work, and what would fail."""

from __future__ import annotations

import click

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli.connect import connect_to_look, installed_in
from eurekube_sync.cli.installation import Installation, installation_options, looked_at
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.options.report import ReportForm, report_options
from eurekube_sync.cli.options.scope import drain_option
from eurekube_sync.cli.output.answers import findings_data, findings_table
from eurekube_sync.cli.signals import stopped_by_signals
from eurekube_sync.cli.values import Duration
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.explain.check.everything import everything
from eurekube_sync.explain.check.findings import code_of
from eurekube_sync.manifests.crd import object_schema
from eurekube_sync.model.lock import LockName


@click.command(cls=Command, short_help="Say whether an installation can work, and what would fail.")
@option("--pre", is_flag=True, variable=False, help="Check what an installation needs, before there is one.")
@option(
    "--interval",
    type=Duration(least=1),
    default="30s",
    help="Time between two passes of the installation. A CronJob with one pass a minute has 60s.",
)
@installation_options(*looked_at, drain_option)
@report_options
def command(pre: bool, interval: float, installation: Installation, form: ReportForm) -> ExitCode:
    """Say whether an installation can work, and what would fail. For each fault it says what to do, and where to read
    more.

    It changes nothing. It checks the rights of the account that it is called with. Use the account of the installation;
    with --pre, use the account of the person who installs. Give it the same options or variables as run.
    """
    form.set_up_logs()
    connection, clock, lock = installation.connection(eureka_batch="auto"), SystemClock(), installation.lock
    with stopped_by_signals(clock), connect_to_look(connection, clock, lock) as seen, connection.waits.seen():
        found = tuple(
            everything(
                seen,
                installation.settings(),
                schema=object_schema(),
                interval=interval,
                namespace=lock.namespace if isinstance(lock, LockName) else installed_in(installation.kubernetes),
                locked=lock != "off",
                source=installation.kubernetes.endpoints_source,
                before=pre,
            )
        )
    notices = installation.eureka.notices
    return form.answer(code_of(found), lambda: findings_table(found), lambda: findings_data(found), notices)
