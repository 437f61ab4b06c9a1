"""The options that most commands share, and the adapters that are made from them: a `World` for
passes."""

from __future__ import annotations

import logging
import os
import random
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.connection import (
    ClientConnection,
    Connection,
    ConnectionSettings,
)
from eurekube_sync.adapters.kubernetes.kubeconfig import own_namespace
from eurekube_sync.adapters.kubernetes.lock_store import LeaseObject
from eurekube_sync.adapters.threads import ThreadWorkers
from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.cli.options import scope as scope_choices
from eurekube_sync.cli.options import servers as server_options
from eurekube_sync.cli.options.declare import group, on_command_line
from eurekube_sync.cli.options.passes import brake_options
from eurekube_sync.cli.options.scope import LockChoice
from eurekube_sync.cli.options.servers import EurekaAccess
from eurekube_sync.cli.process import Waits
from eurekube_sync.controller.lock import Lock
from eurekube_sync.controller.look import LookWorld
from eurekube_sync.controller.one_pass import EurekaWorld, Memory, PassSettings, World
from eurekube_sync.desired.catalog import Kind
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.eureka import CACHE_SECONDS, OUR_LEASE, RENEWAL_INTERVAL
from eurekube_sync.model.kubernetes import LockName
from eurekube_sync.model.ownership import NO_FORMER, Former
from eurekube_sync.model.ports import Clock, Cluster, EndpointsSource, LockStore, Registry
from eurekube_sync.model.sources import Server
from eurekube_sync.observe.eureka import OwnWrites

if TYPE_CHECKING:
    from eurekube_sync.adapters.eureka.client import EurekaClient

INSTALLED_IN = "eurekube-sync"  # the namespace in the shipped manifests
# Seconds for the question whether batches are safe; each pass asks a server that hangs again
_ASK_TIMEOUT = 2.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation(EurekaAccess):
    """The owner, the scope, both servers, and how to call them. Times in seconds."""

    owner: str = ""
    former: Former = NO_FORMER
    kubeconfig: str | None = None
    context: str | None = None
    endpoints_source: EndpointsSource = "slices"
    concurrency: int = 16
    call_timeout: float = 10
    scope: Scope = field(default_factory=Scope)
    drains: frozenset[Kind] = frozenset()  # kinds, besides Services, whose drain annotation is read
    lock: LockChoice = "off"
    brake: BrakeLimits = field(default_factory=BrakeLimits)
    lease_duration: float = OUR_LEASE.duration
    registry_cache: float = CACHE_SECONDS  # how old Eureka's lists may be
    renewal_interval: float = RENEWAL_INTERVAL
    renewal_slack: float = 30  # equal to the interval: every pass renews
    eureka_batch: str = "off"
    only_looks: bool = False  # batches are not probed, because the probe is a POST
    count: Callable[[Server, str], None] = lambda _server, _code: (
        None
    )  # called with the status of each call
    waits: Waits = field(default_factory=Waits)
    to_cluster: Connection | None = None  # used instead of a new connection; may read files
    sweep_interval: float | None = (
        None  # between two lists of every Eureka peer; None: computed from the leases
    )

    def settings(self, **more: Any) -> PassSettings:
        """Return the settings of a pass, with `more` fields of them."""
        given = {
            "owner": self.owner,
            "former": self.former,
            "scope": self.scope,
            "brake": self.brake,
            "drains": self.drains,
            **more,
        }
        # Printed commands repeat --owner only if it is not in a variable, which the next shell has,
        # too.
        return PassSettings(
            **given, named=("--owner", self.owner) if on_command_line("owner") else ()
        )


installation_options = partial(group, "installation", Installation)
"""Declares the given options; the command gets them as an `Installation`, named `installation`."""
_cluster_and_calls = (*server_options.kubernetes_options, *server_options.call_options)
both_servers = (*server_options.eureka_options, *_cluster_and_calls)
required_options = (scope_choices.owner_option, *both_servers, scope_choices.scope_options)
"""For a command that requires --owner and --eureka-url."""
optional_servers = (*server_options.optional_eureka_options, *_cluster_and_calls)
inspect_options = (
    scope_choices.optional_owner_option,
    *optional_servers,
    scope_choices.scope_options,
    scope_choices.lock_option,
)
"""For a command that finds the owner itself, and also works without Eureka."""
look_options = installation_options(
    *inspect_options, scope_choices.look_for_drains_option, brake_options
)
"""For a command that shows what a dry pass found."""


@contextmanager
def connect(ours: Installation, clock: Clock) -> Iterator[World]:
    """Connect to both servers. Raises ConfigurationError."""
    to_cluster = ours.to_cluster or _to_cluster(ours)
    with connect_registry(ours, clock) as seen:
        cluster: Cluster = KubernetesCluster(
            to_cluster,
            clock=clock,
            random=random.Random(),
            limit=seen.time_limit,
            endpoints_source=ours.endpoints_source,
            count=partial(ours.count, Server.KUBERNETES),
        )
        yield World(
            registry=seen.registry,
            cluster=ours.waits.of(cluster, "the Kubernetes API"),
            clock=clock,
            workers=seen.workers,
            renewals=seen.renewals,
            time_limit=seen.time_limit,
            servers=seen.servers,
            memory=Memory(own_writes=OwnWrites(seconds=ours.registry_cache)),
        )


@contextmanager
def connect_to_look(ours: Installation, clock: Clock) -> Iterator[LookWorld]:
    """Connect to the cluster, and to Eureka if a URL is given, to read only. Raises
    ConfigurationError."""
    from eurekube_sync.adapters.kubernetes.details import KubernetesDetails

    to_cluster = _to_cluster(ours)
    with connect(replace(ours, to_cluster=to_cluster), clock) as world:
        details = KubernetesDetails(
            to_cluster, clock=clock, random=random.Random(), limit=world.time_limit
        )

        def locks(owner: str, scope: Scope) -> Sequence[tuple[LockName, LockStore]]:
            """Give the lock of all namespaces, then of the given ones: --namespace may only filter
            the output."""
            own, scopes = lock_namespace(ours), (replace(scope, namespaces=None), scope)
            names = dict.fromkeys(
                scope_choices.lock_name(ours.lock, owner, one, own) for one in scopes
            )
            store = partial(LeaseObject, to_cluster, clock=clock, random=random.Random())
            return [(name, store(name)) for name in names if name is not None]

        yield LookWorld(world=world, details=details, locks=locks)


def connect_lock(ours: Installation, clock: Clock) -> Lock | None:
    """Make the lock, on its own connection; None if these passes need none. Raises
    ConfigurationError."""
    namespace = installed_in(ours) if ours.lock == "auto" else None
    name = scope_choices.lock_name(ours.lock, ours.owner, ours.scope, namespace)
    if name is None:
        return None
    to_cluster, count = _to_cluster(ours), partial(ours.count, Server.KUBERNETES)
    store = LeaseObject(to_cluster, name, clock=clock, random=random.Random(), count=count)
    return Lock(store, clock, name, identity=f"{socket.gethostname()}_{secrets.token_hex(4)}")


def lock_namespace(ours: Installation) -> str:
    """Return the namespace of the lock: as `--lock` names it, else the pod's own, else that of the
    manifests."""
    return (
        ours.lock.namespace
        if isinstance(ours.lock, LockName)
        else installed_in(ours) or INSTALLED_IN
    )


def installed_in(ours: Installation) -> str | None:
    """Return the namespace of our pod; None outside of a cluster."""
    return own_namespace(os.environ, kubeconfig=ours.kubeconfig or "", context=ours.context or "")


def _to_cluster(ours: Installation) -> Connection:
    settings = ConnectionSettings(
        kubeconfig=ours.kubeconfig or "",
        context=ours.context or "",
        connect_seconds=min(5.0, ours.call_timeout),
        read_seconds=ours.call_timeout,
        threads=ours.concurrency,
    )
    return ClientConnection(settings)


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

        return UnnamedEureka(), {}
    from eurekube_sync.adapters.eureka.address import ConnectionOptions, parse_addresses
    from eurekube_sync.adapters.eureka.batches import BatchingRegistry
    from eurekube_sync.adapters.eureka.client import EurekaClient
    from eurekube_sync.adapters.eureka.everywhere import Doubts, EverywhereBatches
    from eurekube_sync.adapters.eureka.peers import EurekaPeers, sweep_seconds
    from eurekube_sync.adapters.eureka.rests import Rests
    from eurekube_sync.adapters.eureka.wire import Decoded

    addresses = parse_addresses(ours.eureka_url)
    options = ConnectionOptions(
        address=addresses[0],
        connect_timeout=min(5.0, ours.call_timeout),
        read_timeout=ours.call_timeout,
        concurrency=ours.concurrency,
        retries=2 if len(addresses) == 1 else 1,  # the next peer is another try
    )
    first = server_options.with_access(options, ours, addresses, clock)
    for warning in ours.warnings:
        _log.warning("%s", warning)
    sweep = (
        sweep_seconds(ours.lease_duration) if ours.sweep_interval is None else ours.sweep_interval
    )
    rests = None if len(addresses) == 1 else Rests(clock)
    doubts = Doubts()

    def clients(**given: Any) -> dict[str, EurekaClient]:
        chance, count = random.Random(), partial(ours.count, Server.EUREKA)
        client = partial(
            EurekaClient, clock=clock, random=chance, limit=limit, count=count, decoded=Decoded()
        )
        return {
            address.url: opened.enter_context(client(replace(first, address=address, **given)))
            for address in addresses
        }

    servers = clients()
    registry: Registry = next(iter(servers.values()))
    if rests is not None:
        peers = EurekaPeers(
            servers, clock=clock, limit=limit, rests=rests, doubts=doubts, sweep_seconds=sweep
        )
        opened.callback(peers.renew_strays)
        registry = peers
    if ours.eureka_batch == "off":
        return registry, servers
    short = min(_ASK_TIMEOUT, ours.call_timeout)
    batches = EverywhereBatches(
        servers=servers,
        asked=clients(connect_timeout=short, read_timeout=short, retries=0),
        clock=clock,
        limit=limit,
        workers=opened.enter_context(ThreadWorkers(ours.concurrency * len(servers))),
        rests=rests,
        doubts=doubts,
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
