"""`version`: of the program, and of what it speaks to."""

from __future__ import annotations

import platform
import random
from collections.abc import Iterator
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.text import Text

from eurekube_sync import __version__
from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli.connect import Connection, cluster_settings, connect_registry
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
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.foreign_text import printable
from eurekube_sync.model.sources import Cause, Complete, Server, Source, Unknown
from eurekube_sync.model.wording import counted

_OTHER_SCHEMA = "another schema than this version's: eurekube-sync crd | kubectl apply --server-side -f -"


@click.command(cls=Command, short_help="Show the versions of the program, the CRD and Eureka.")
@option("--client", is_flag=True, variable=False, help="Only the program and its Python. Nothing is called.")
@installation_options(optional_eureka_options, kubernetes_options, call_options)
@report_options
def command(client: bool, installation: Installation, form: ReportForm) -> ExitCode:
    """Show the versions of the program, its Python, the Kubernetes API and the CRD in the cluster. Show whether Eureka
    answers; its servers do not say their version."""
    form.set_up_logs()
    connection, clock = installation.connection(), SystemClock()
    seen: dict[str, tuple[Server, Source[str]]] = {}
    if not client:
        with stopped_by_signals(clock), connection.waits.seen():
            seen = dict(_of_cluster(connection, clock))
            if installation.eureka.eureka_url:
                seen["Eureka"] = (Server.EUREKA, _of_eureka(connection, clock))
    form.write(lambda: _lines(seen), lambda: _data(seen))
    failed = [(server, source) for server, source in seen.values() if isinstance(source, Unknown)]
    for server, source in failed:
        return ExitCode.CONFIGURATION if source.cause is Cause.CONFIGURATION else of_unknown(server, source)
    return ExitCode.OK


def _of_cluster(connection: Connection, clock: SystemClock) -> Iterator[tuple[str, tuple[Server, Source[str]]]]:
    from eurekube_sync.adapters.kubernetes import connect
    from eurekube_sync.adapters.kubernetes.versions import KubernetesVersions

    try:
        to_cluster = connect(cluster_settings(connection))
    except ConfigurationError as error:
        yield "Kubernetes", (Server.KUBERNETES, Unknown(cause=Cause.CONFIGURATION, message=str(error)))
        return
    versions = KubernetesVersions(to_cluster, clock=clock, random=random.Random(), limit=TimeLimit(clock))
    server = versions.server()
    if isinstance(server, Complete):
        server = Complete(data=f"{server.data} at {to_cluster.server}")
    yield "Kubernetes", (Server.KUBERNETES, server)
    schema = versions.schema()
    if isinstance(schema, Complete):
        same = schema.data == object_schema()
        yield "CRD", (Server.KUBERNETES, Complete(data="as in this version" if same else _OTHER_SCHEMA))
    elif not isinstance(server, Unknown):
        yield "CRD", (Server.KUBERNETES, schema)


def _of_eureka(connection: Connection, clock: SystemClock) -> Source[str]:
    with connect_registry(connection, clock) as world:
        listed = world.registry.list_instances()
    if isinstance(listed, Unknown):
        return listed
    apps = len({one.key.app for one in listed.data})
    holds = f"{counted(len(listed.data), 'instance')} of {counted(apps, 'app')}"
    return Complete(data=f"{', '.join(connection.eureka.printable_urls)} answers, with {holds}")


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
