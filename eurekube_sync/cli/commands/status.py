"""`status`: the state of every syncer, the broken first."""

from __future__ import annotations

from functools import partial

import click

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli.connect import connect_to_look
from eurekube_sync.cli.installation import Installation, look_options
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.options.report import ReportForm, report_options
from eurekube_sync.cli.output.answers import overview_data, overview_table
from eurekube_sync.cli.signals import stopped_by_signals
from eurekube_sync.cli.values import NAME
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.look import LookWorld, look, with_details
from eurekube_sync.controller.one_pass import PassSettings
from eurekube_sync.explain.overview import Overview, code_of_overview, in_need, overview
from eurekube_sync.explain.overview import chosen as chosen_rows

_MOST_NAMESPACES = 20
"""Whose Pods are read to say why they are not ready; more would take a whole cluster's Pods."""

_BETWEEN_LOOKS = 5.0
"""Seconds."""


@click.command(cls=Command, short_help="Show the state of every syncer, the broken first.")
@option("--app", type=NAME, default=None, variable=False, help="Show only syncers of this app.")
@option(
    "--condition",
    type=NAME,
    default=None,
    variable=False,
    help="Show only syncers with this condition or reason, such as RemovalHeld, Ready=False or NotReady.",
)
@option("--all", "-a", "everything", is_flag=True, variable=False, help="Show syncers that are in sync as well.")
@option("--watch", "-w", is_flag=True, variable=False, help="Look again each 5 s, until Ctrl-C.")
@look_options
@report_options
def command(
    app: str | None,
    condition: str | None,
    everything: bool,
    watch: bool,
    installation: Installation,
    form: ReportForm,
) -> ExitCode:
    """Show the state of every syncer. The broken come first, each with the reason and since when it is broken.

    It makes a dry pass and writes nothing. Without --eureka-url it shows only what the cluster says. Give it the same
    options or variables as run.
    """
    form.set_up_logs()
    connection, clock, settings = installation.connection(), SystemClock(), installation.settings()
    servers, notices = installation.eureka.printable_urls, installation.eureka.notices
    with stopped_by_signals(clock), connect_to_look(connection, clock, installation.lock) as seen:
        while True:
            with connection.waits.seen():
                found = chosen_rows(_overview(seen, settings), app=app, condition=condition)
            if watch and form.at_terminal:
                click.clear()
            code = form.answer(
                code_of_overview(found),
                partial(overview_table, found, servers, everything=everything),
                partial(overview_data, found, servers),
                notices,
                one_of_many=watch,
            )
            if not watch:
                return code
            clock.sleep(_BETWEEN_LOOKS)
            if clock.stopping():
                return ExitCode.INTERRUPTED


def _overview(seen: LookWorld, settings: PassSettings) -> Overview:
    named = sorted(settings.scope.namespaces or ())
    found = look(seen, settings, named)
    needed = sorted({*named, *in_need(found)})
    return overview(with_details(seen, found, needed if len(needed) <= _MOST_NAMESPACES else ()))
