"""`orphans`: the instances that are nobody's any more, and what `run` will do with each."""

from __future__ import annotations

import click

from eurekube_sync.brake import BrakeLimits
from eurekube_sync.cli.connect import Connection, connect
from eurekube_sync.cli.eureka_access import EurekaAccess, eureka_access_options
from eurekube_sync.cli.logs import set_up_logs
from eurekube_sync.cli.options import (
    brake_options,
    call_options,
    cluster_options,
    eureka_options,
    option,
    report_options,
    scope_options,
)
from eurekube_sync.cli.passes import write_report
from eurekube_sync.cli.signals import stopped_by_signals
from eurekube_sync.clock import SystemClock
from eurekube_sync.exit_codes import ExitCode
from eurekube_sync.orphans import look_for_orphans
from eurekube_sync.ports import EndpointsSource
from eurekube_sync.reconcile import PassSettings
from eurekube_sync.report.ownership import orphans_data, orphans_table
from eurekube_sync.scope import Scope


@click.command(short_help="List instances whose syncer is gone.")
@eureka_options
@eureka_access_options
@cluster_options
@scope_options
@call_options
@brake_options
@option("--detailed-exitcode", is_flag=True, help=f"Exit {ExitCode.CHANGES_PENDING} when there are orphans.")
@report_options
def command(
    owner: str,
    eureka_url: str,
    eureka_access: EurekaAccess,
    kubeconfig: str | None,
    context: str | None,
    endpoints_source: EndpointsSource,
    scope: Scope,
    concurrency: int,
    call_timeout: float,
    brake: BrakeLimits,
    detailed_exitcode: bool,
    output: str,
    log_format: str,
    verbose: bool,
) -> ExitCode:
    """List the instances of ours whose syncer is not there, those of namespaces that are not there, and those that bear
    our owner and another cluster; and say what the next `run` does with each, and why.

    Writes nothing. While part of the cluster cannot be read it says what is unknown, and never that there are none.
    """
    set_up_logs(as_json=log_format == "json", verbose=verbose)
    settings = PassSettings(owner=owner, scope=scope, brake=brake, dry_run=True)
    connection = Connection(
        eureka_url=eureka_url,
        eureka_access=eureka_access,
        kubeconfig=kubeconfig,
        context=context,
        endpoints_source=endpoints_source,
        concurrency=concurrency,
        call_timeout=call_timeout,
        sweep_interval=1.0,  # what one peer alone holds is looked for as well
    )
    clock = SystemClock()
    with stopped_by_signals(clock), connect(connection, clock) as world:
        orphans = look_for_orphans(world, settings)
    code = orphans.code(detailed=detailed_exitcode)
    notices = eureka_access.notices
    write_report(output, lambda: orphans_table(orphans, notices), lambda: orphans_data(orphans, code, notices))
    return code
