"""`explain`: why something is registered in Eureka, or is not, link by link."""

from __future__ import annotations

import click

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli.completing import complete_syncers
from eurekube_sync.cli.connect import connect_to_look
from eurekube_sync.cli.installation import Installation, look_options
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.report import ReportForm, report_options
from eurekube_sync.cli.output.answers import explanations_data, explanations_table
from eurekube_sync.cli.signals import stopped_by_signals
from eurekube_sync.cli.values import WHAT
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.look import Look, LookWorld, look, with_details, with_readings
from eurekube_sync.controller.one_pass import PassSettings
from eurekube_sync.explain.chain import code_of, explain
from eurekube_sync.explain.links import Explanation
from eurekube_sync.explain.missing import explain_missing
from eurekube_sync.explain.registry import keys_to_read
from eurekube_sync.explain.subject import subjects
from eurekube_sync.explain.what import What


@click.command(cls=Command, short_help="Say why something is registered in Eureka, or is not.")
@click.argument("what", type=WHAT, shell_complete=complete_syncers)
@look_options
@report_options
def command(what: What, installation: Installation, form: ReportForm) -> ExitCode:
    """Say why something is registered in Eureka, or is not. It checks the requirements in order, up to the first that
    fails.

    WHAT is NAMESPACE/NAME of a syncer, svc/NAMESPACE/NAME, pod/NAMESPACE/NAME, an app, IP:PORT, or an instance id.

    It makes a dry pass and writes nothing. If a right or --eureka-url is missing, it says which requirement could
    not be checked, and goes on. Give it the same options or variables as run.
    """
    form.set_up_logs()
    connection, clock = installation.connection(), SystemClock()
    looking = connect_to_look(connection, clock, installation.lock)
    with stopped_by_signals(clock), connection.waits.seen(), looking as seen:
        found, explained = _explained(seen, installation.settings(), what)
    return form.answer(
        code_of(explained, found),
        lambda: explanations_table(explained),
        lambda: explanations_data(explained, found),
        installation.eureka.notices,
    )


def _explained(seen: LookWorld, settings: PassSettings, what: What) -> tuple[Look, tuple[Explanation, ...]]:
    namespace = what.namespace
    found = look(seen, settings, [namespace] if namespace else sorted(settings.scope.namespaces or ()))
    found = with_details(seen, found, [namespace] if namespace else [])
    about = subjects(what, found)
    if not about:
        return found, (explain_missing(what, found),)
    found = with_details(seen, found, [one.namespace for one in about])
    found = with_readings(seen, found, frozenset().union(*(keys_to_read(one, found) for one in about)))
    return found, tuple(explain(one, found) for one in about)
