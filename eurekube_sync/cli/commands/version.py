"""`version`: of the program, and of what it speaks to."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click
from rich.console import Group, RenderableType
from rich.text import Text

from eurekube_sync import __version__
from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli.connect import connect_to_look
from eurekube_sync.cli.installation import Installation, installation_options
from eurekube_sync.cli.options.calls import call_options
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.options.eureka import optional_eureka_options
from eurekube_sync.cli.options.kubernetes import kubernetes_options
from eurekube_sync.cli.options.report import ReportForm, report_options
from eurekube_sync.cli.signals import stopped_by_signals
from eurekube_sync.controller.exit_codes import ExitCode, of_unknown
from eurekube_sync.manifests.crd import object_schema
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.foreign_text import printable
from eurekube_sync.model.sources import Cause, Complete, Server, Source, Unknown
from eurekube_sync.model.wording import counted

T = TypeVar("T")
_SAME = "as in this version"
_OTHER = "another schema than this version's: eurekube-sync crd | kubectl apply --server-side -f -"


@click.command(cls=Command, short_help="Show the versions of the program, Kubernetes and the CRD.")
@option("--client", is_flag=True, variable=False, help="Only the program and its Python. Nothing is called.")
@installation_options(optional_eureka_options, kubernetes_options, call_options)
@report_options
def command(client: bool, installation: Installation, form: ReportForm) -> ExitCode:
    """Show the versions of the program, its Python, the Kubernetes API and the CRD in the cluster. Show whether Eureka
    answers; its servers do not say their version."""
    form.set_up_logs()
    found: dict[str, tuple[Server, Source[str]]] = {}
    try:
        found = {} if client else dict(_of_servers(installation))
    except ConfigurationError as error:
        found["Kubernetes"] = (Server.KUBERNETES, Unknown(cause=Cause.CONFIGURATION, message=str(error)))
    return form.answer(_code(found), lambda: _lines(found), lambda: _data(found))


def _code(found: dict[str, tuple[Server, Source[str]]]) -> ExitCode:
    for server, one in found.values():
        if isinstance(one, Unknown):
            return ExitCode.CONFIGURATION if one.cause is Cause.CONFIGURATION else of_unknown(server, one)
    return ExitCode.OK


def _of_servers(installation: Installation) -> Iterator[tuple[str, tuple[Server, Source[str]]]]:
    """What each says of itself, or why that is unknown."""
    connection, clock = installation.connection(), SystemClock()
    with stopped_by_signals(clock), connection.waits.seen(), connect_to_look(connection, clock, "off") as seen:
        server = seen.details.server()
        yield "Kubernetes", (Server.KUBERNETES, server)
        if isinstance(server, Complete):
            schema = seen.details.schema()
            yield "CRD", (Server.KUBERNETES, _said(schema, lambda data: _SAME if data == object_schema() else _OTHER))
        if urls := ", ".join(installation.eureka.printable_urls):
            listed = seen.world.registry.list_instances()
            said = _said(listed, lambda data: f"{urls} answers, with {counted(len(data), 'instance')}")
            yield "Eureka", (Server.EUREKA, said)


def _said(source: Source[T], words: Callable[[T], str]) -> Source[str]:
    return Complete(data=words(source.data)) if isinstance(source, Complete) else source


def _lines(seen: dict[str, tuple[Server, Source[str]]]) -> RenderableType:
    rows = [("eurekube-sync", __version__), ("Python", f"{platform.python_version()}, {platform.platform(terse=True)}")]
    rows += [(name, _text(source)) for name, (_, source) in seen.items()]
    width = max(len(name) for name, _ in rows)
    return Group(*(Text(f"{name:{width}}  {printable(text)}") for name, text in rows))


def _text(source: Source[str]) -> str:
    return source.data if isinstance(source, Complete) else f"unknown: {source.message}"


def _data(seen: dict[str, tuple[Server, Source[str]]]) -> dict[str, Any]:
    """Each server as what it said, or why that is unknown."""
    found = {
        name.lower(): {"found": source.data, "unknown": None}
        if isinstance(source, Complete)
        else {"found": None, "unknown": source.message}
        for name, (_, source) in seen.items()
    }
    return {"version": __version__, "python": platform.python_version(), **found}
