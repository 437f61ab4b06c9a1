"""`orphans`: the instances that are nobody's any more, and what `run` will do with each."""

from __future__ import annotations

import click

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli.connect import connect
from eurekube_sync.cli.installation import Installation, installation_options, written
from eurekube_sync.cli.options.brake import brake_options
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.options.report import ReportForm, report_options
from eurekube_sync.cli.output.ownership import orphans_data, orphans_table
from eurekube_sync.cli.signals import stopped_by_signals
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.owner.orphans import look_for_orphans


@click.command(cls=Command, short_help="List instances whose syncer is gone.")
@installation_options(*written, brake_options)
@option("--detailed-exitcode", is_flag=True, help=f"Exit {ExitCode.CHANGES_PENDING} if there are orphans.")
@report_options
def command(installation: Installation, detailed_exitcode: bool, form: ReportForm) -> ExitCode:
    """List our instances whose syncer does not exist. Each line says what the next `run` does with the instance, and
    why.

    It writes nothing. While part of the cluster cannot be read, it says what is unknown. It then never says that there
    are no orphans.
    """
    form.set_up_logs()
    connection = installation.connection(dry_run=False, sweep_interval=1.0)  # what one peer alone holds counts as well
    clock, notices = SystemClock(), installation.eureka.notices
    with stopped_by_signals(clock), connection.waits.seen(), connect(connection, clock) as world:
        orphans = look_for_orphans(world, installation.settings(dry_run=True))
    code = orphans.code(detailed=detailed_exitcode)
    return form.answer(code, lambda: orphans_table(orphans), lambda: orphans_data(orphans), notices)
