"""The commands that only look at both servers: `status`, `explain`, `check`, `orphans` and
`version`."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.text import Text

from eurekube_sync import __version__
from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli import connect
from eurekube_sync.cli.connect import Installation, installation_options
from eurekube_sync.cli.installed import InstalledCommand
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.options.passes import brake_option
from eurekube_sync.cli.options.report import ReportForm, report_options
from eurekube_sync.cli.options.scope import drain_option, imports_option
from eurekube_sync.cli.options.servers import SavedInput, saved_options
from eurekube_sync.cli.output import answers
from eurekube_sync.cli.output.streams import output_ended
from eurekube_sync.cli.process import stopped_by_signals
from eurekube_sync.cli.values import CONDITION, NAME, WHAT, Duration, complete_syncers
from eurekube_sync.controller.exit_codes import ExitCode, of_cause
from eurekube_sync.controller.look import Look, LookWorld, look, with_details, with_readings
from eurekube_sync.controller.one_pass import PassSettings
from eurekube_sync.explain.chain import code_of, explain
from eurekube_sync.explain.check import code_of_check, dropped
from eurekube_sync.explain.check import everything as all_findings
from eurekube_sync.explain.import_check import check_imports
from eurekube_sync.explain.imports import explain_import
from eurekube_sync.explain.links import Explanation, Grade
from eurekube_sync.explain.missing import explain_missing, namespaces_beside
from eurekube_sync.explain.overview import (
    Overview,
    chosen,
    code_of_overview,
    in_need,
    overview,
    renewals_to_read,
)
from eurekube_sync.explain.registry import keys_to_read
from eurekube_sync.explain.subject import subjects
from eurekube_sync.explain.what import Kind, What
from eurekube_sync.manifests.crd import KIND, object_schema
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.imports import IMPORT
from eurekube_sync.model.sanitize import printable
from eurekube_sync.model.sources import Cause, Complete, Server, Source, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import counted
from eurekube_sync.owner.orphans import look_for_orphans

# Whose Pods are read to say why they are not ready; more would read a whole cluster's Pods
_MOST_NAMESPACES = 20
_BETWEEN_LOOKS = 5.0  # seconds
_OTHER = "another schema than this version's: eurekube-sync crd | kubectl apply --server-side -f -"


@contextmanager
def _looking(installation: Installation) -> Iterator[LookWorld]:
    """Connect until a signal, and show at a terminal which answer is waited for."""
    clock = SystemClock()
    with (
        stopped_by_signals(clock),
        installation.waits.seen(),
        connect.connect_to_look(installation, clock) as seen,
    ):
        yield seen


@click.command(cls=InstalledCommand, short_help="Show the syncers that are not in sync, and why.")
@option("--app", type=NAME, variable=False, help="Show only syncers of this app.")
@option("--condition", type=CONDITION, variable=False)
@option(
    "--all",
    "-a",
    "everything",
    is_flag=True,
    variable=False,
    help="Also show syncers that are in sync.",
)
@option("--watch", "-w", is_flag=True, variable=False, help="Refresh every 5 s until Ctrl-C.")
@saved_options
@connect.look_options
@report_options
def status_command(
    app: str | None,
    condition: str | None,
    everything: bool,
    watch: bool,
    saved: SavedInput,
    installation: Installation,
    form: ReportForm,
) -> ExitCode:
    """Show each syncer that is not in sync, the worst first, with the reason and since when. --all
    shows all syncers. A syncer is broken if none of its instances is known to be UP. It is partly
    in sync if some are UP and something differs.

    Nothing is changed. It uses the settings of the installation that it finds in the cluster.
    Without Eureka's URL it shows only what the cluster says.
    """
    if watch and saved.paths:
        raise click.UsageError("--watch and --from are mutually exclusive")
    installation = connect.with_saved_input(installation, saved)
    clock = SystemClock()
    settings = installation.settings()
    servers = installation.printable_urls
    if installation.recorded is not None:
        servers = installation.recorded.record.eureka_servers
    with stopped_by_signals(clock), connect.connect_to_look(installation, clock) as seen:
        while True:
            with installation.waits.seen():
                found = chosen(_overview(seen, settings), app=app, condition=condition)
            if watch and form.at_terminal:
                click.clear()
            code = form.answer(
                code_of_overview(found),
                partial(answers.overview_table, found, servers, everything=everything),
                partial(answers.overview_data, found, servers),
                one_of_many=watch,
            )
            if not watch or output_ended():
                return code
            clock.sleep(_BETWEEN_LOOKS)
            if clock.stopping():
                return ExitCode.INTERRUPTED


def _overview(seen: LookWorld, settings: PassSettings) -> Overview:
    """Look at all syncers, then at what shows why some are not in sync."""
    named = sorted(settings.scope.namespaces or ())
    found = look(seen, settings, named)
    found = with_readings(seen, found, renewals_to_read(found))
    needed = sorted({*named, *in_need(found)})
    if len(needed) > _MOST_NAMESPACES:
        needed = []
    found = with_details(seen, found, needed)
    shown = overview(found)
    return replace(shown, dropped=_dropped(seen, settings))


def _dropped(seen: LookWorld, settings: PassSettings) -> tuple[str, ...]:
    """Return a sentence for each CRD that is older than this program."""
    kinds = [KIND]
    if settings.import_networks:
        kinds.append(IMPORT)
    sentences: list[str] = []
    for kind in kinds:
        sentence = dropped(seen.details, object_schema(kind), kind)
        if sentence:
            sentences.append(sentence)
    return tuple(sentences)


@click.command(
    cls=InstalledCommand, short_help="Explain why something is or is not registered in Eureka."
)
@click.argument("what", type=WHAT, shell_complete=complete_syncers)
@saved_options
@connect.look_options
@report_options
def explain_command(
    what: What, saved: SavedInput, installation: Installation, form: ReportForm
) -> ExitCode:
    """Explain why something is or is not registered in Eureka. It checks the requirements in order:
    the first that fails is the answer.

    WHAT is NAMESPACE/NAME of a syncer, import/NAMESPACE/NAME, svc/NAMESPACE/NAME,
    pod/NAMESPACE/NAME, deploy/NAMESPACE/NAME (or sts, ds), the name of an app, VIP address or pod,
    IP:PORT, or an instance id.

    Nothing is changed. It uses the settings of the installation that it finds in the cluster. If a
    right or Eureka's URL is missing, it says which requirement could not be checked, and continues.
    """
    installation = connect.with_saved_input(installation, saved)
    with _looking(installation) as seen:
        settings = installation.settings()
        found, explained = _explained(seen, settings, what)
        drops = _dropped(seen, settings)
    return form.answer(
        code_of(explained, found),
        partial(answers.explanations_table, explained, drops),
        partial(answers.explanations_data, explained, found, drops),
    )


def _explained(
    seen: LookWorld, settings: PassSettings, what: What
) -> tuple[Look, tuple[Explanation, ...]]:
    """Look for what is asked, and explain each thing that is meant. Pods are read only of the
    namespaces in question."""
    if what.namespace:
        found = look(seen, settings, [what.namespace])
        found = with_details(seen, found, [what.namespace])
    else:
        namespaces = sorted(settings.scope.namespaces or ())
        found = look(seen, settings, namespaces)
        found = with_details(seen, found, [])
    if what.kind is Kind.IMPORT:
        return found, (explain_import(what, found),)
    about = subjects(what, found)
    if not about and not what.namespace:
        beside = namespaces_beside(what, found)
        if beside:
            found = look(seen, settings, beside)
            found = with_details(seen, found, [])
            about = subjects(what, found)
    if not about:
        is_absent = _is_absent(seen, what)
        return found, (explain_missing(what, found, absent=is_absent),)
    found = with_details(seen, found, [subject.namespace for subject in about])
    keys: set[InstanceKey] = set()
    for subject in about:
        keys |= keys_to_read(subject, found)
    found = with_readings(seen, found, frozenset(keys))
    return found, tuple(explain(subject, found) for subject in about)


def _is_absent(seen: LookWorld, what: What) -> bool:
    """Say whether the namespace in question is known not to exist."""
    if not what.namespace or seen.offline:
        return False
    exists = seen.world.cluster.namespace_exists(what.namespace)
    return exists == Complete(data=False)


@click.command(
    cls=InstalledCommand, short_help="Check whether an installation can work, and what would fail."
)
@option(
    "--pre",
    is_flag=True,
    variable=False,
    help="Check what an installation needs, before there is one.",
)
@option(
    "--interval",
    type=Duration(least=1),
    default="30s",
    help="Time between two passes of the installation. A CronJob with one pass a minute has 60s.",
)
@installation_options(*connect.inspect_options, imports_option, drain_option)
@report_options
def check_command(
    pre: bool, interval: float, installation: Installation, form: ReportForm
) -> ExitCode:
    """Check whether an installation can work, and what would fail. For each fault it says what to
    do, and where to read more.

    Nothing is changed. It checks the rights of the account that it is called with: use the account
    of the installation, or with --pre that of the person who installs. Without --pre it uses the
    settings of the installation that it finds in the cluster.
    """
    with _looking(replace(installation, eureka_batch="auto", only_looks=True)) as seen:
        found = all_findings(
            seen,
            installation.settings(),
            schema=object_schema(),
            interval=interval,
            namespace=connect.lock_namespace(installation),
            locked=installation.lock != "off",
            before=pre,
        )
        findings = list(found)
        if not pre and findings[0].grade is Grade.OK:
            schema = object_schema(IMPORT)
            findings += check_imports(seen, installation.settings(), schema=schema)
    return form.answer(
        code_of_check(findings),
        partial(answers.findings_table, findings),
        partial(answers.findings_data, findings),
    )


@click.command(cls=InstalledCommand, short_help="List instances whose syncer is gone.")
@installation_options(*connect.required_options, imports_option, brake_option)
@option(
    "--detailed-exitcode",
    is_flag=True,
    help=f"Exit {ExitCode.CHANGES_PENDING} if there are orphans.",
)
@report_options
def orphans_command(
    installation: Installation, detailed_exitcode: bool, form: ReportForm
) -> ExitCode:
    """List our instances whose syncer does not exist. Each line says what the next run does with
    the instance, and why. With --import-networks, it also lists EndpointSlices that an import made
    and that are of no import any more.

    Nothing is changed. If part of the cluster cannot be read, it says which: there may be more
    orphans.
    """
    # Each list is of all peers, and has what only one of them holds
    with _looking(replace(installation, sweep_interval=1.0)) as seen:
        orphans = look_for_orphans(seen.world, installation.settings(dry_run=True))
    return form.answer(
        orphans.code(detailed=detailed_exitcode),
        partial(answers.orphans_table, orphans),
        partial(answers.orphans_data, orphans),
    )


@click.command(cls=Command, short_help="Show the versions of the program, Kubernetes and the CRD.")
@option(
    "--client",
    is_flag=True,
    variable=False,
    help="Show the version of the program only (no server required).",
)
@installation_options(*connect.optional_servers)
@report_options
def version_command(client: bool, installation: Installation, form: ReportForm) -> ExitCode:
    """Show the versions of the program, its Python, the Kubernetes API and the CRD in the cluster.
    Eureka does not say its version: only whether it answers is shown."""
    versions: dict[str, Source[str]] = {}
    if not client:
        try:
            versions = _versions(installation)
        except ConfigurationError as error:
            versions["Kubernetes"] = Unknown(cause=Cause.CONFIGURATION, message=str(error))
    code = ExitCode.OK
    data: dict[str, Any] = {"version": __version__, "python": platform.python_version()}
    for name, source in versions.items():
        if isinstance(source, Complete):
            data[name.lower()] = {"found": source.data, "unknown": None}
            continue
        data[name.lower()] = {"found": None, "unknown": source.message}
        if code is ExitCode.OK:
            code = _code_of(name, source)
    return form.answer(code, partial(_version_lines, versions), lambda: data)


def _code_of(name: str, source: Unknown) -> ExitCode:
    """Return the exit code of a version that is unknown."""
    if source.cause is Cause.CONFIGURATION:
        return ExitCode.CONFIGURATION
    server = Server.KUBERNETES
    if name == "Eureka":
        server = Server.EUREKA
    return of_cause(server, source.cause)


def _versions(installation: Installation) -> dict[str, Source[str]]:
    """Return the version of each server and of the CRD, or why it is unknown."""
    with _looking(installation) as seen:
        server = seen.details.server()
        versions = {"Kubernetes": server}
        # The CRD is of the same server: without an answer it is not asked again.
        if isinstance(server, Complete):
            crd: Source[Any] = seen.details.schema()
            if isinstance(crd, Complete):
                same = crd.data == object_schema()
                crd = Complete(data=_OTHER)
                if same:
                    crd = Complete(data="as in this version")
            versions["CRD"] = crd
        if installation.printable_urls:
            listed: Source[Any] = seen.world.registry.list_instances()
            if isinstance(listed, Complete):
                urls = " or ".join(installation.printable_urls)
                number = counted(len(listed.data), "instance")
                listed = Complete(data=f"{urls} answers, with {number}")
            versions["Eureka"] = listed
    return versions


def _version_lines(versions: dict[str, Source[str]]) -> RenderableType:
    """Return a line for each version, or for why it is unknown."""
    python = platform.python_version()
    system = platform.platform(terse=True)
    versions_or_why = {"eurekube-sync": __version__, "Python": f"{python}, {system}"}
    for name, source in versions.items():
        if isinstance(source, Complete):
            versions_or_why[name] = source.data
        else:
            versions_or_why[name] = f"unknown: {source.message}"
    width = max(len(name) for name in versions_or_why)
    lines: list[Text] = []
    for name, text in versions_or_why.items():
        lines.append(Text(f"{name:{width}}  {printable(text)}"))
    return Group(*lines)
