"""`owner adopt`, `release`, `rename` and `purge`: who owns the instances, changed by a person."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from eurekube_sync.cli.connect import Connection, connect, connect_registry
from eurekube_sync.cli.options.calls import Calls, call_options
from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.options.eureka import EurekaAccess, eureka_options
from eurekube_sync.cli.options.kubernetes import KubernetesAccess, kubernetes_options
from eurekube_sync.cli.options.owner import owner_option
from eurekube_sync.cli.options.report import ReportForm, report_options
from eurekube_sync.cli.options.scope import name_scope_options, scope_options
from eurekube_sync.cli.signals import ended_by_signals, stopped_by_signals
from eurekube_sync.cli.values import Duration, HostAndPort, Name, Owner, Syncer
from eurekube_sync.clock import SystemClock
from eurekube_sync.exit_codes import ExitCode
from eurekube_sync.model import SyncerRef
from eurekube_sync.moves import Address
from eurekube_sync.owner import (
    OwnerReport,
    OwnerWorld,
    Purge,
    adopt_instances,
    adopt_old_cluster,
    look_before_purge,
    purge,
    release_instances,
    rename_owner,
    told_whole,
)
from eurekube_sync.report.ownership import owner_data, owner_table
from eurekube_sync.report.progress import ProgressLine
from eurekube_sync.scope import Scope

F = TypeVar("F", bound=Callable[..., Any])

_NAMED = 10


@click.group(name="owner", short_help="Adopt, release, rename or purge what is ours.")
def command() -> None:
    """Change who owns instances in Eureka: adopt, release, rename, purge.

    Each command has --dry-run, can be killed at any point, and then be given again.
    """


def _dry_run(command: F) -> F:
    return option("--dry-run", is_flag=True, help="Show what would be done; write nothing anywhere.")(command)


def _observe(command: F) -> F:
    return option(
        "--observe",
        type=Duration(least=1),
        default=None,
        help="How long to watch whether somebody renews them.  [default: two of their renewal periods, and 5s]",
        show_default=False,
    )(command)


def _command_line_first(*names: str) -> Callable[[str], bool]:
    """Of options that exclude each other, which count: those of the command line alone when it has any. A variable may
    stand there for another command."""
    given = _on_command_line(*names)
    return lambda name: not given or name in given


def _on_command_line(*names: str) -> frozenset[str]:
    context = click.get_current_context()
    return frozenset(name for name in names if context.get_parameter_source(name) is ParameterSource.COMMANDLINE)


def _which_cluster(command: F) -> F:
    return option(
        "--cluster",
        type=Name(),
        metavar="UID",
        default=None,
        help="The cluster that is meant; no cluster is asked then.",
    )(command)


@command.command(name="adopt", short_help="Take over what a person, a tool or an old cluster registered.")
@owner_option
@eureka_options
@kubernetes_options
@scope_options
@option("--app", type=Name(), metavar="APP", default=None, help="Take over instances of this app that nobody owns.")
@option(
    "--address",
    "addresses",
    type=HostAndPort(),
    multiple=True,
    help="Only the instance called there; may be repeated. Default: all of the app that a syncer wants.",
)
@option("--syncer", type=Syncer(), default=None, help="Only what this syncer wants.")
@option(
    "--cluster",
    type=Name(),
    metavar="OLD",
    default=None,
    help="Take over all that the owner has in the cluster with this UID.",
)
@_observe
@call_options
@_dry_run
@report_options
def adopt_command(
    owner: str,
    eureka: EurekaAccess,
    kubernetes: KubernetesAccess,
    scope: Scope,
    app: str | None,
    addresses: tuple[Address, ...],
    syncer: SyncerRef | None,
    cluster: str | None,
    observe: float | None,
    calls: Calls,
    dry_run: bool,
    form: ReportForm,
) -> ExitCode:
    """Take instances over: with --app those that a person or another tool registered and one of our syncers wants, with
    --cluster OLD all of the owner's in a cluster whose place this one takes.

    Refuses what somebody else still renews: it watches for that first. Callers see no gap.
    """
    form.set_up_logs()
    counts = _command_line_first("app", "cluster")
    app, cluster = app if counts("app") else None, cluster if counts("cluster") else None
    if app is None and cluster is not None:
        counts = _command_line_first("cluster", "addresses", "syncer")
        addresses, syncer = addresses if counts("addresses") else (), syncer if counts("syncer") else None
    if (app is None) is (cluster is None):
        raise click.UsageError("give --app, for instances that nobody owns, or --cluster, for an old cluster's")
    if app is None and (addresses or syncer):
        raise click.UsageError("--address and --syncer go with --app; --cluster takes all of a cluster's")
    if app is None and _on_command_line("selector", "syncer_class", "allowed"):
        raise click.UsageError(
            "--selector, --syncer-class and --allow-namespace go with --app: of an old cluster only names are known"
        )
    connection = _connection(eureka, kubernetes, calls)

    def work(world: OwnerWorld) -> OwnerReport:
        if app is None:
            assert cluster is not None  # checked above
            return adopt_old_cluster(world, owner=owner, old=cluster, scope=scope, observe=observe, dry_run=dry_run)
        return adopt_instances(
            world,
            owner=owner,
            app=app,
            addresses=addresses,
            syncer=syncer,
            scope=scope,
            observe=observe,
            dry_run=dry_run,
        )

    return _carry_out(connection, work, form, registry_alone=False)


@command.command(name="release", short_help="Give instances up: run touches them no more.")
@owner_option
@eureka_options
@kubernetes_options
@_which_cluster
@name_scope_options
@option("--app", "apps", type=Name(), metavar="APP", multiple=True, help="Only instances of this app; may be repeated.")
@option("--syncer", "syncers", type=Syncer(), multiple=True, help="Only instances of this syncer; may be repeated.")
@option("--keepalive", type=Duration(least=1), default=None, help="Go on renewing them for so long.")
@option("--lapse", is_flag=True, help="Let them lapse when their leases end.")
@call_options
@_dry_run
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
    lapse: bool,
    calls: Calls,
    dry_run: bool,
    form: ReportForm,
) -> ExitCode:
    """Give instances up: our marks are taken off, so that `run` touches them no more, and they stay as they are until
    their leases end.

    --lapse leaves it at that; --keepalive DURATION goes on renewing them in the foreground.
    """
    form.set_up_logs()
    counts = _command_line_first("keepalive", "lapse")
    keepalive, lapse = keepalive if counts("keepalive") else None, lapse and counts("lapse")
    if (keepalive is None) is not lapse:
        raise click.UsageError("say what becomes of them: --lapse, or --keepalive DURATION")
    connection = _connection(eureka, kubernetes, calls)

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

    return _carry_out(connection, work, form, registry_alone=cluster is not None)


@command.command(name="rename", short_help="Move all instances from one owner name to another.")
@click.argument("old", type=Owner())
@click.argument("new", type=Owner())
@eureka_options
@kubernetes_options
@_which_cluster
@name_scope_options
@_observe
@call_options
@_dry_run
@report_options
def rename_command(
    old: str,
    new: str,
    eureka: EurekaAccess,
    kubernetes: KubernetesAccess,
    cluster: str | None,
    scope: Scope,
    observe: float | None,
    calls: Calls,
    dry_run: bool,
    form: ReportForm,
) -> ExitCode:
    """Move all of a cluster's instances from owner OLD to owner NEW: each is registered under its new id, seen there,
    and only then cancelled under its old one.

    Stop `run` and `keepalive` of OLD first: it is watched for.
    """
    form.set_up_logs()
    connection = _connection(eureka, kubernetes, calls)

    def work(world: OwnerWorld) -> OwnerReport:
        return rename_owner(world, old=old, new=new, cluster=cluster, scope=scope, observe=observe, dry_run=dry_run)

    return _carry_out(connection, work, form, registry_alone=cluster is not None)


@command.command(name="purge", short_help="Cancel all that is ours: uninstall.")
@owner_option
@eureka_options
@kubernetes_options
@_which_cluster
@name_scope_options
@option("--yes", "-y", is_flag=True, help="Do not ask.")
@call_options
@_dry_run
@report_options
def purge_command(
    owner: str,
    eureka: EurekaAccess,
    kubernetes: KubernetesAccess,
    cluster: str | None,
    scope: Scope,
    yes: bool,
    calls: Calls,
    dry_run: bool,
    form: ReportForm,
) -> ExitCode:
    """Cancel all of the owner's instances of one cluster, on every peer, from Eureka alone. With --namespace or --shard
    those of syncers that the names put there: another installation of the same owner keeps its own.

    Without --cluster the cluster is asked for its UID, and the finalizers of syncers that are being deleted are taken
    off as well.
    """
    form.set_up_logs()
    if not (yes or dry_run or sys.stdin.isatty()):
        raise click.UsageError("there is no terminal to ask at: give --yes, or --dry-run to see what would go")
    connection = _connection(eureka, kubernetes, calls)

    def work(world: OwnerWorld) -> OwnerReport | ExitCode:
        found = look_before_purge(world, owner=owner, cluster=cluster, scope=scope)
        if found.standing and not (yes or dry_run or _confirmed(found)):
            click.echo("nothing was changed", err=True)
            return ExitCode.DECLINED
        return purge(world, found, dry_run=dry_run)

    return _carry_out(connection, work, form, registry_alone=cluster is not None)


def _confirmed(found: Purge) -> bool:
    """Asks on stderr, so that stdout holds the report alone."""
    number = len(found.standing)
    for one in found.standing[:_NAMED]:
        click.echo(f"  {one.key} {one.status}", err=True)
    if number > _NAMED:
        click.echo(f"  and {number - _NAMED} more", err=True)
    if found.warning:
        click.echo(f"! {found.warning}", err=True)
    what = "the one instance" if number == 1 else f"all {number} instances"
    try:
        with ended_by_signals():
            return click.confirm(f"Cancel {what} of {found.whose}?", err=True)
    except click.Abort:
        click.echo("\nnothing was changed", err=True)
        raise


def _connection(eureka: EurekaAccess, kubernetes: KubernetesAccess, calls: Calls) -> Connection:
    return Connection(
        eureka=eureka,
        kubernetes=kubernetes,
        calls=calls,
        sweep_interval=1.0,  # every list is of all peers
    )


@contextmanager
def _world(connection: Connection, clock: SystemClock, *, registry_alone: bool) -> Iterator[OwnerWorld]:
    line = ProgressLine()
    if registry_alone:
        with connect_registry(connection, clock) as world, line:
            yield OwnerWorld(registry=world.registry, clock=clock, workers=world.workers, tell=line.tell)
    else:
        with connect(connection, clock) as whole, line:
            yield OwnerWorld(
                registry=whole.registry,
                clock=clock,
                workers=whole.workers,
                cluster=whole.cluster,
                tell=line.tell,
            )


def _carry_out(
    connection: Connection,
    work: Callable[[OwnerWorld], OwnerReport | ExitCode],
    form: ReportForm,
    *,
    registry_alone: bool,
) -> ExitCode:
    clock = SystemClock()
    with stopped_by_signals(clock), _world(connection, clock, registry_alone=registry_alone) as world:
        done = work(world)
        if isinstance(done, ExitCode):
            return done
        report = told_whole(world, done)
    notices = connection.eureka.notices
    form.write(lambda: owner_table(report, notices), lambda: owner_data(report, notices))
    return report.code
