"""Puts the adapters together: options in, a `World` that a pass can run in out."""

from __future__ import annotations

import logging
import os
import random
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from functools import partial
from typing import IO, TYPE_CHECKING

from eurekube_sync.adapters.threads import ThreadWorkers
from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.cli.options.calls import Calls
from eurekube_sync.cli.options.eureka import EurekaAccess, with_access
from eurekube_sync.cli.options.kubernetes import KubernetesAccess
from eurekube_sync.cli.options.lock import LockChoice, lock_name
from eurekube_sync.cli.waits import Waits
from eurekube_sync.controller.lock import Lock
from eurekube_sync.controller.look import LookWorld
from eurekube_sync.controller.one_pass import Memory, PassSettings, World
from eurekube_sync.controller.renew_only import RegistryWorld
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.eureka import CACHE_SECONDS, OUR_LEASE, RENEWAL_INTERVAL
from eurekube_sync.model.lock import LockName
from eurekube_sync.model.ports import Clock, Cluster, LockStore, Registry
from eurekube_sync.model.sources import Server
from eurekube_sync.model.values import dataclass
from eurekube_sync.observe.own_writes import OwnWrites

if TYPE_CHECKING:
    from eurekube_sync.adapters.eureka import ConnectionOptions, EurekaClient
    from eurekube_sync.adapters.kubernetes import Connection as ClusterConnection
    from eurekube_sync.adapters.kubernetes import ConnectionSettings
    from eurekube_sync.adapters.kubernetes.dumped import DumpedConnection

_INSTALLED_IN = "eurekube-sync"
"""Where the manifests that are shipped put the program."""
_ASK_TIMEOUT = 2.0
"""Seconds for the question whether batches are safe: a server that hangs is asked again in each pass."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Where both servers are, and how to call them. Times in seconds."""

    eureka: EurekaAccess
    kubernetes: KubernetesAccess = field(default_factory=KubernetesAccess)
    calls: Calls = field(default_factory=Calls)
    registry_cache: float = CACHE_SECONDS
    renewal_interval: float = RENEWAL_INTERVAL
    renewal_slack: float = 30
    """Equal to the interval: every pass renews."""
    lease_duration: float = OUR_LEASE.duration
    """Of the leases that are renewed."""
    eureka_batch: str = "off"
    """`auto`, `on` or `off`."""
    dry_run: bool = False
    """Nothing is asked that is a write in form."""
    count: Callable[[Server, str], None] = lambda _server, _code: None
    """Given the status of each call to a server."""
    waits: Waits = field(default_factory=Waits)
    """What is waited for just now."""
    dumped: ClusterConnection | None = None
    """Files that are read in the cluster's place."""
    sweep_interval: float | None = None
    """How often every peer of Eureka is listed; None for what the leases need."""


@contextmanager
def connect(connection: Connection, clock: Clock) -> Iterator[World]:
    """Connects to both; raises ConfigurationError."""
    with _connected(connection, clock) as (world, _, _):
        yield world


@contextmanager
def _connected(
    connection: Connection, clock: Clock
) -> Iterator[tuple[World, ClusterConnection, Mapping[str, EurekaClient]]]:
    """The clients are imported here: they are slow to load, and half of the commands need neither."""
    from eurekube_sync.adapters.kubernetes import KubernetesCluster
    from eurekube_sync.adapters.kubernetes import connect as connect_cluster

    to_cluster: ClusterConnection = connection.dumped or connect_cluster(cluster_settings(connection))
    with _eureka(connection, clock) as (seen, servers):
        cluster: Cluster = KubernetesCluster(
            to_cluster,
            clock=clock,
            random=random.Random(),
            limit=seen.time_limit,
            endpoints_source=connection.kubernetes.endpoints_source,
            count=partial(connection.count, Server.KUBERNETES),
        )
        world = World(
            registry=seen.registry,
            cluster=connection.waits.of(cluster),
            clock=clock,
            workers=seen.workers,
            time_limit=seen.time_limit,
            memory=Memory(renewals=seen.renewals, own_writes=OwnWrites(seconds=connection.registry_cache)),
        )
        yield world, to_cluster, servers


@contextmanager
def connect_to_look(connection: Connection, clock: Clock, choice: LockChoice) -> Iterator[LookWorld]:
    """Connects to the cluster, and to Eureka where a URL is given; raises ConfigurationError. No call writes."""
    from eurekube_sync.adapters.kubernetes import LeaseObject
    from eurekube_sync.adapters.kubernetes.details import KubernetesDetails

    with _connected(connection, clock) as (world, to_cluster, servers):
        details = KubernetesDetails(to_cluster, clock=clock, random=random.Random(), limit=world.time_limit)

        def locks(owner: str, scope: Scope) -> Sequence[tuple[LockName, LockStore]]:
            """Of the whole installation, then of the scope that was given: a namespace may be a mere filter."""
            own, scopes = installed_in(connection.kubernetes), (replace(scope, namespaces=None), scope)
            names = [lock_name(choice, owner, one, own) for one in scopes]
            return [
                (name, LeaseObject(to_cluster, name, clock=clock, random=random.Random()))
                for name in dict.fromkeys(names)
                if name is not None
            ]

        yield LookWorld(world=world, details=details, servers=servers, locks=locks)


def installed_in(access: KubernetesAccess) -> str:
    """The namespace of our pod; outside of a cluster that of the manifests that are shipped."""
    from eurekube_sync.adapters.kubernetes import own_namespace

    found = own_namespace(os.environ, kubeconfig=access.kubeconfig or "", context=access.context or "")
    return found or _INSTALLED_IN


def read_dumped(paths: Sequence[str], *, stdin: IO[bytes]) -> DumpedConnection:
    """The cluster that these files hold; raises ConfigurationError."""
    from eurekube_sync.adapters.kubernetes.dumped import DumpedConnection
    from eurekube_sync.manifests.dumps import read_dumps

    return DumpedConnection(read_dumps(paths, stdin=stdin))


def connect_lock(connection: Connection, clock: Clock, choice: LockChoice, settings: PassSettings) -> Lock | None:
    """The lock of what these passes do, on a connection of its own; None where there is none. Raises
    ConfigurationError."""
    from eurekube_sync.adapters.kubernetes import LeaseObject, own_namespace
    from eurekube_sync.adapters.kubernetes import connect as connect_cluster

    to_cluster = cluster_settings(connection)
    namespace = None
    if choice == "auto":
        namespace = own_namespace(os.environ, kubeconfig=to_cluster.kubeconfig, context=to_cluster.context)
    name = lock_name(choice, settings.owner, settings.scope, namespace)
    if name is None:
        return None
    count = partial(connection.count, Server.KUBERNETES)
    store = LeaseObject(connect_cluster(to_cluster), name, clock=clock, random=random.Random(), count=count)
    return Lock(store, clock, name, identity=f"{socket.gethostname()}_{secrets.token_hex(4)}")


def cluster_settings(connection: Connection) -> ConnectionSettings:
    from eurekube_sync.adapters.kubernetes import ConnectionSettings

    return ConnectionSettings(
        kubeconfig=connection.kubernetes.kubeconfig or "",
        context=connection.kubernetes.context or "",
        connect_seconds=min(5.0, connection.calls.call_timeout),
        read_seconds=connection.calls.call_timeout,
        threads=connection.calls.concurrency,
    )


@contextmanager
def connect_registry(connection: Connection, clock: Clock) -> Iterator[RegistryWorld]:
    """Connects to Eureka alone; raises ConfigurationError."""
    with _eureka(connection, clock) as (world, _):
        yield world


@contextmanager
def _eureka(connection: Connection, clock: Clock) -> Iterator[tuple[RegistryWorld, Mapping[str, EurekaClient]]]:
    limit = TimeLimit(clock)
    opened = _registry(connection, clock, limit)
    with opened as (registry, servers), ThreadWorkers(connection.calls.concurrency) as workers:
        world = RegistryWorld(
            registry=connection.waits.of(registry),
            clock=clock,
            workers=workers,
            time_limit=limit,
            renewals=RenewalLedger(period=connection.renewal_interval, slack=connection.renewal_slack),
        )
        yield world, servers


def _clients(
    connection: Connection, options: Sequence[ConnectionOptions], clock: Clock, limit: TimeLimit, opened: ExitStack
) -> dict[str, EurekaClient]:
    """A client of each server, by its address; `opened` closes them."""
    from eurekube_sync.adapters.eureka import EurekaClient
    from eurekube_sync.adapters.eureka.wire import Decoded

    decoded = Decoded()  # most servers list the same
    chance, count = random.Random(), partial(connection.count, Server.EUREKA)
    return {
        one.address.url: opened.enter_context(
            EurekaClient(one, clock=clock, random=chance, limit=limit, count=count, decoded=decoded)
        )
        for one in options
    }


@contextmanager
def _registry(
    connection: Connection, clock: Clock, limit: TimeLimit
) -> Iterator[tuple[Registry, Mapping[str, EurekaClient]]]:
    """All servers as one, and each by itself, by its address; none where no URL is given."""
    if not connection.eureka.eureka_url:
        from eurekube_sync.adapters.eureka.peers import UnnamedEureka

        yield UnnamedEureka(), {}
        return
    from eurekube_sync.adapters.eureka import ConnectionOptions
    from eurekube_sync.adapters.eureka.address import parse_addresses
    from eurekube_sync.adapters.eureka.batches import BatchingRegistry, BatchMode
    from eurekube_sync.adapters.eureka.everywhere import Doubts
    from eurekube_sync.adapters.eureka.peers import EurekaPeers, sweep_seconds
    from eurekube_sync.adapters.eureka.rests import Rests

    addresses, calls = parse_addresses(connection.eureka.eureka_url), connection.calls
    single = len(addresses) == 1
    first = ConnectionOptions(
        address=addresses[0],
        connect_timeout=min(5.0, calls.call_timeout),
        read_timeout=calls.call_timeout,
        concurrency=calls.concurrency,
        retries=2 if single else 1,  # the next peer is another try
    )
    first = with_access(first, connection.eureka, addresses, clock)
    options = [replace(first, address=address) for address in addresses]
    for warning in connection.eureka.warnings:
        _log.warning("%s", warning)
    sweep = sweep_seconds(connection.lease_duration) if connection.sweep_interval is None else connection.sweep_interval
    rests, doubts = None if single else Rests(clock), Doubts()
    with ExitStack() as opened:
        servers = _clients(connection, options, clock, limit, opened)
        registry: Registry = servers[addresses[0].url]
        if not single:
            peers = EurekaPeers(servers, clock=clock, limit=limit, rests=rests, doubts=doubts, sweep_seconds=sweep)
            opened.callback(peers.renew_strays)
            registry = peers
        mode = BatchMode(connection.eureka_batch)
        if mode is BatchMode.OFF:
            yield registry, servers
            return
        short = min(_ASK_TIMEOUT, calls.call_timeout)
        quick = [replace(one, connect_timeout=short, read_timeout=short, retries=0) for one in options]
        batching = BatchingRegistry(
            registry,
            servers,
            asked=_clients(connection, quick, clock, limit, opened),
            mode=mode,
            clock=clock,
            limit=limit,
            workers=opened.enter_context(ThreadWorkers(connection.calls.concurrency * len(servers))),
            rests=rests,
            doubts=doubts,
            dry_run=connection.dry_run,
            ask_seconds=sweep,
            lease_duration=connection.lease_duration,
        )
        yield batching, servers
