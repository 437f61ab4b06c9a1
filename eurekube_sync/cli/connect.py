"""The options that most commands share, and the adapters that are made from them: a `World` for
passes."""

from __future__ import annotations

import logging
import os
import random
import secrets
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import field

from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.connection import Connection
from eurekube_sync.adapters.kubernetes.kubeconfig import (
    DEFAULT_PATH,
    default_namespace,
    own_namespace,
)
from eurekube_sync.adapters.kubernetes.lock_store import LeaseObject
from eurekube_sync.adapters.threads import ThreadWorkers
from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.cli.installed import INSTALLED_IN, Installed, installation_option
from eurekube_sync.cli.options import scope as scope_choices
from eurekube_sync.cli.options import servers as server_options
from eurekube_sync.cli.options.declare import Section, group, on_command_line, options_of
from eurekube_sync.cli.options.passes import brake_option
from eurekube_sync.cli.options.scope import LockChoice
from eurekube_sync.cli.options.servers import CONCURRENCY, EurekaAccess, SavedInput
from eurekube_sync.cli.process import Waits
from eurekube_sync.controller.lock import Lock
from eurekube_sync.controller.look import Deployed, LookWorld
from eurekube_sync.controller.one_pass import EurekaWorld, Memory, PassSettings, World
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.eureka import CACHE_SECONDS, OUR_LEASE, RENEWAL_INTERVAL
from eurekube_sync.model.imports import IMPORT, ImportObject
from eurekube_sync.model.kubernetes import LockName, SyncerObject
from eurekube_sync.model.ownership import NO_FORMER, Former
from eurekube_sync.model.ports import Clock, LockStore, Registry
from eurekube_sync.model.sanitize import printable
from eurekube_sync.model.sources import Server
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import counted
from eurekube_sync.observe.eureka import OwnWrites

if TYPE_CHECKING:
    from eurekube_sync.adapters.eureka.client import EurekaClient
    from eurekube_sync.cli.records import RecordedPass, Recording
    from eurekube_sync.manifests.planned import PlannedObject

# Seconds for the question whether batches are safe; each pass asks a server that hangs again
_ASK_TIMEOUT = 2.0
_log = logging.getLogger(__name__)


class Installation(EurekaAccess, frozen=True, kw_only=True):
    """The owner, the scope, both servers, and how to call them. Times in seconds."""

    owner: str = ""
    installed: Installed | None = None  # what was found in the cluster; None: it was not looked for
    former: Former = NO_FORMER
    kubeconfig: str | None = None
    context: str | None = None
    concurrency: int = CONCURRENCY
    call_timeout: float = 10
    scope: Scope = field(default_factory=Scope)
    import_networks: tuple[str, ...] | None = None  # None: imports are off
    pod_drains: bool = False  # whether the drain annotations of Pods are read
    lock: LockChoice = "off"
    brake: BrakeLimits = field(default_factory=BrakeLimits)
    lease_duration: float = OUR_LEASE.duration
    registry_cache: float = CACHE_SECONDS  # how old Eureka's lists may be
    renewal_interval: float = RENEWAL_INTERVAL
    renewal_slack: float = 30  # equal to the interval: every pass renews
    eureka_batch: str = "off"
    only_looks: bool = False  # batches are not probed, because the probe is a POST
    count: Callable[[Server, str, str], None] = lambda _server, _address, _code: None
    """Is called with the server, its address in case of Eureka, and the status of each call."""
    waits: Waits = field(default_factory=Waits)
    to_cluster: Connection | None = None  # used instead of a new connection; may read files
    planned: tuple[PlannedObject, ...] = ()  # take the place of objects of the cluster
    recorded: RecordedPass | None = None  # used instead of both servers
    recording: Recording | None = None  # keeps what each pass reads
    sweep_interval: float | None = None
    """Between two lists of every Eureka peer; None: computed from the leases."""

    def settings(self, **more: Any) -> PassSettings:
        """Return the settings of a pass, with `more` fields of them; or those of the recorded pass,
        as a dry run."""
        if self.recorded is not None:
            return replace(self.recorded.record.settings, dry_run=True)
        networks = self.import_networks or ()
        # Printed commands repeat --owner only if it is not in a variable, which the next shell has,
        # too.
        named: list[str] = []
        if self.installed is not None and self.installed.ref:
            named += ["--installation", self.installed.ref]
        if on_command_line("owner"):
            named += ["--owner", self.owner]
        if on_command_line("import_networks"):
            named += ["--import-networks", ",".join(networks)]
        return PassSettings(
            owner=self.owner,
            former=self.former,
            scope=self.scope,
            brake=self.brake,
            pod_drains=self.pod_drains,
            import_networks=networks,
            named=tuple(named),
            **more,
        )


installation_options = partial(group, "installation", Installation)
"""Declares the given options; the command gets them as an `Installation`, named `installation`."""
_cluster_and_calls = (*server_options.kubernetes_options, server_options.call_option)
both_servers = (*server_options.eureka_options, *_cluster_and_calls)
required_options = (
    scope_choices.owner_option,
    *both_servers,
    scope_choices.scope_options,
    installation_option,
)
"""For an `InstalledCommand` that requires --owner and --eureka-url."""
optional_servers = (*server_options.optional_eureka_options, *_cluster_and_calls)
inspect_options = (
    scope_choices.optional_owner_option,
    *optional_servers,
    scope_choices.scope_options,
    scope_choices.lock_option,
    installation_option,
)
"""For an `InstalledCommand` that finds the owner itself, and also works without Eureka."""
look_options = installation_options(
    *inspect_options, scope_choices.imports_option, scope_choices.drain_option, brake_option
)
"""For a command that shows what a dry pass found."""


@contextmanager
def connect(ours: Installation, clock: Clock) -> Iterator[World]:
    """Connect to both servers. Raises ConfigurationError."""
    if ours.recorded is not None:
        with ThreadWorkers(ours.concurrency) as workers:
            yield ours.recorded.world(workers)
        return
    to_cluster = ours.to_cluster or _to_cluster(ours)
    if ours.planned:
        from eurekube_sync.adapters.kubernetes.planned import PlannedConnection

        to_cluster = PlannedConnection(to_cluster, ours.planned, clock)
    with connect_registry(ours, clock) as seen:
        registry = seen.registry
        servers = seen.servers
        if ours.recording is not None:
            to_cluster = ours.recording.connection(to_cluster)
            registry = ours.recording.registry(registry)
            servers = ours.recording.servers(servers)
        cluster = KubernetesCluster(
            to_cluster,
            clock=clock,
            random=random.Random(),
            limit=seen.time_limit,
            count=partial(ours.count, Server.KUBERNETES, ""),
        )
        yield World(
            registry=registry,
            cluster=ours.waits.of(cluster, "the Kubernetes API"),
            imports=ours.waits.of(cluster.imports, "the Kubernetes API"),
            clock=clock,
            workers=seen.workers,
            renewals=seen.renewals,
            time_limit=seen.time_limit,
            servers=servers,
            memory=Memory(own_writes=OwnWrites(seconds=ours.registry_cache)),
        )


@contextmanager
def connect_to_look(ours: Installation, clock: Clock) -> Iterator[LookWorld]:
    """Connect to the cluster, and to Eureka if a URL is given, to read only. Raises
    ConfigurationError."""
    from eurekube_sync.adapters.kubernetes.details import KubernetesDetails

    offline = ours.to_cluster
    if ours.recorded is not None:
        offline = ours.recorded.connection
    to_cluster = offline or _to_cluster(ours)
    with connect(replace(ours, to_cluster=to_cluster), clock) as world:
        details = KubernetesDetails(
            to_cluster, clock=world.clock, random=random.Random(), limit=world.time_limit
        )

        def locks(owner: str, scope: Scope) -> Sequence[tuple[LockName, LockStore]]:
            """Give the lock of all namespaces, then of the given ones: --namespace may only filter
            the output."""
            if offline is not None:
                return []
            own = lock_namespace(ours)
            store = partial(LeaseObject, to_cluster, clock=clock, random=random.Random())
            locks: dict[LockName, LockStore] = {}
            for searched in (replace(scope, namespaces=None), scope):
                name = scope_choices.lock_name(ours.lock, owner, searched, own)
                if name is not None and name not in locks:
                    locks[name] = store(name)
            return list(locks.items())

        deployed = Deployed()
        if ours.installed is not None:
            deployed = ours.installed.deployed
        yield LookWorld(
            world=world,
            details=details,
            locks=locks,
            deployed=deployed,
            offline=offline is not None,
        )


def with_saved_input(ours: Installation, saved: SavedInput) -> Installation:
    """Return the installation with a recorded pass instead of both servers, or with files instead
    of the cluster, limited to the namespaces in the files. Raises click.UsageError and
    ConfigurationError."""
    folders = [path for path in saved.paths if os.path.isdir(path)]
    if saved.at is not None and not folders:
        raise click.UsageError("--at requires --from DIR, a folder of run --record")
    if not saved.paths:
        return ours
    if on_command_line("kubeconfig") or on_command_line("context"):
        raise click.UsageError("--from cannot be used with --kubeconfig or --context")
    if folders:
        folder = folders[0]
        if len(saved.paths) > 1:
            raise click.UsageError(
                f"--from {folder} is a folder of records: give nothing else with it"
            )
        option = _of_the_installation()
        if option is not None:
            raise click.UsageError(
                f"--from {folder} has the options of the recorded pass: leave out {option}"
            )
        from eurekube_sync.cli.records import record_at, recorded_pass

        record = record_at(Path(folder), saved.at)
        return replace(ours, recorded=recorded_pass(record))
    from eurekube_sync.adapters.kubernetes.saved import SavedConnection, lists_of, namespaces_of
    from eurekube_sync.manifests.dumps import read_dumps

    objects = read_dumps(saved.paths, stdin=sys.stdin.buffer)
    scope = ours.scope
    if scope.namespaces is None:
        scope = replace(scope, namespaces=namespaces_of(objects))
    how = ": add what kubectl get {plural} -A -o json writes"
    connection = SavedConnection(lists_of(objects), missing=how)
    return replace(ours, scope=scope, to_cluster=connection)


def with_planned(ours: Installation, paths: Sequence[str]) -> Installation | None:
    """Return the installation with the syncers and imports of these files in place of those of the
    cluster; None if a manifest is refused, which is said. Raises ConfigurationError."""
    from eurekube_sync.manifests.planned import read_planned

    namespaces = ours.scope.namespaces or ()
    if len(namespaces) == 1:
        namespace = min(namespaces)
    else:
        namespace = _pod_namespace(ours) or _default_namespace(ours)
    report, planned = read_planned(paths, stdin=sys.stdin.buffer, namespace=namespace)
    for finding in report.findings:
        click.echo(printable(str(finding)), err=True)
    if not report.ok:
        return None
    if not planned:
        named = " ".join(paths)
        others = counted(report.others, "object")
        raise ConfigurationError(
            f"--filename {named} has no EurekaSyncer and no EurekaImport; it has {others} of other "
            "kinds"
        )
    _log.info("plan as if these were applied: %s", ", ".join(str(thing) for thing in planned))
    if report.others:
        _log.info("%s of other kinds skipped", counted(report.others, "object"))
    for thing in planned:
        why = _not_planned(ours, thing)
        if why:
            _log.warning("%s is not part of the plan: %s", thing, why)
    return replace(ours, planned=planned)


def _not_planned(ours: Installation, thing: PlannedObject) -> str:
    """Return why the plan has nothing of an object; empty if it has."""
    fields: dict[str, Any] = {
        "namespace": thing.namespace,
        "name": thing.name,
        "uid": "",
        "generation": 1,
        "resource_version": "",
        "created": 0.0,
        "labels": thing.labels,
        "spec": thing.spec,
    }
    if thing.kind == IMPORT:
        if not ours.import_networks:
            return "imports are off, because --import-networks is not given"
        taken = ours.scope.takes_import(ImportObject(**fields))
    else:
        taken = ours.scope.takes(SyncerObject(**fields))
    if taken:
        return ""
    return "another namespace, label or class is out of scope"


def _default_namespace(ours: Installation) -> str:
    paths = ours.kubeconfig or os.environ.get("KUBECONFIG") or DEFAULT_PATH
    return default_namespace(paths, ours.context or "")


def _of_the_installation() -> str | None:
    """Return an option of the command line that a recorded pass has itself."""
    context = click.get_current_context()
    for option in options_of(context.command):
        of_this_run = option.section in (None, Section.COMMAND, Section.REPORT)
        if not of_this_run and on_command_line(option.name or ""):
            return option.long_name
    return None


def connect_lock(ours: Installation, clock: Clock) -> Lock | None:
    """Make the lock, on its own connection; None if these passes need none. Raises
    ConfigurationError."""
    namespace = None
    if ours.lock == "auto":
        namespace = installed_in(ours)
    name = scope_choices.lock_name(ours.lock, ours.owner, ours.scope, namespace)
    if name is None:
        return None
    count = partial(ours.count, Server.KUBERNETES, "")
    store = LeaseObject(_to_cluster(ours), name, clock=clock, random=random.Random(), count=count)
    # Two processes on one host are two holders.
    suffix = secrets.token_hex(4)
    return Lock(store, clock, name, identity=f"{socket.gethostname()}_{suffix}")


def lock_namespace(ours: Installation) -> str:
    """Return the namespace of the lock: as `--lock` names it, else the pod's own, else that of the
    manifests."""
    if isinstance(ours.lock, LockName):
        return ours.lock.namespace
    return installed_in(ours) or INSTALLED_IN


def installed_in(ours: Installation) -> str | None:
    """Return the namespace of the installation whose settings are used, else of our pod; None
    outside of a cluster."""
    if ours.installed is not None and ours.installed.namespace:
        return ours.installed.namespace
    return _pod_namespace(ours)


def _pod_namespace(ours: Installation) -> str | None:
    return own_namespace(os.environ, kubeconfig=ours.kubeconfig or "", context=ours.context or "")


def _to_cluster(ours: Installation) -> Connection:
    if ours.installed is not None:
        return ours.installed.connection
    return server_options.to_cluster(
        ours.kubeconfig,
        ours.context,
        call_timeout=ours.call_timeout,
        concurrency=ours.concurrency,
    )


@contextmanager
def connect_registry(ours: Installation, clock: Clock) -> Iterator[EurekaWorld]:
    """Connect to Eureka only. Raises ConfigurationError."""
    limit = TimeLimit(clock)
    with ExitStack() as opened:
        registry, servers = _registry(ours, clock, limit, opened)
        yield EurekaWorld(
            registry=ours.waits.of(registry, "Eureka"),
            clock=clock,
            workers=opened.enter_context(ThreadWorkers(ours.concurrency)),
            time_limit=limit,
            renewals=RenewalLedger(period=ours.renewal_interval, slack=ours.renewal_slack),
            servers=servers,
        )


def _registry(
    ours: Installation, clock: Clock, limit: TimeLimit, opened: ExitStack
) -> tuple[Registry, Mapping[str, EurekaClient]]:
    """Return one registry for all Eureka servers, and the client of each server by its URL; no
    client without a URL.

    The clients are imported here because they load slowly, and `--help` needs none.
    """
    if not ours.eureka_url:
        from eurekube_sync.adapters.eureka.peers import UnnamedEureka

        why = ""
        if ours.installed is not None:
            why = ours.installed.without_eureka
        return UnnamedEureka(why), {}
    from eurekube_sync.adapters.eureka.address import ConnectionOptions, parse_addresses
    from eurekube_sync.adapters.eureka.batches import BatchingRegistry
    from eurekube_sync.adapters.eureka.client import EurekaClient
    from eurekube_sync.adapters.eureka.everywhere import EverywhereBatches
    from eurekube_sync.adapters.eureka.peer import Peer
    from eurekube_sync.adapters.eureka.peers import EurekaPeers, sweep_seconds
    from eurekube_sync.adapters.eureka.wire import Decoded

    addresses = parse_addresses(ours.eureka_url)
    retries = 2
    if len(addresses) > 1:
        retries = 1  # the next peer is another try
    options = ConnectionOptions(
        address=addresses[0],
        connect_timeout=min(5.0, ours.call_timeout),
        read_timeout=ours.call_timeout,
        concurrency=ours.concurrency,
        retries=retries,
    )
    first = server_options.with_access(options, ours, addresses, clock)
    for warning in ours.warnings:
        _log.warning("%s", warning)
    sweep = ours.sweep_interval
    if sweep is None:
        sweep = sweep_seconds(ours.lease_duration)

    def clients(**given: Any) -> dict[str, EurekaClient]:
        make = partial(
            EurekaClient,
            clock=clock,
            random=random.Random(),
            limit=limit,
            decoded=Decoded(),
        )
        by_url: dict[str, EurekaClient] = {}
        for address in addresses:
            count = partial(ours.count, Server.EUREKA, address.url)
            client = make(replace(first, address=address, **given), count=count)
            by_url[address.url] = opened.enter_context(client)
        return by_url

    servers = clients()
    short = min(_ASK_TIMEOUT, ours.call_timeout)
    asked = clients(connect_timeout=short, read_timeout=short, retries=0)
    peers = [
        Peer(url=url, client=client, asked=asked[url], clock=clock)
        for url, client in servers.items()
    ]
    registry: Registry = peers[0].client
    if len(peers) > 1:
        several = EurekaPeers(peers, clock=clock, limit=limit, sweep_seconds=sweep)
        # Strays are renewed after each list, and for the last time at the end.
        opened.callback(several.renew_strays)
        registry = several
    if ours.eureka_batch == "off":
        return registry, servers
    batches = EverywhereBatches(
        peers=peers,
        clock=clock,
        limit=limit,
        workers=opened.enter_context(ThreadWorkers(ours.concurrency * len(peers))),
    )
    batching = BatchingRegistry(
        registry,
        batches,
        required=ours.eureka_batch == "on",
        dry_run=ours.only_looks,
        ask_seconds=sweep,
        lease_duration=ours.lease_duration,
    )
    return batching, servers
