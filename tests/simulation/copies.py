"""A copy of the program: the real loop and the real adapters, put together as `cli/connect.py` does
it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress
from eurekube_sync.adapters.eureka.batches import BatchingRegistry
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.adapters.eureka.everywhere import EverywhereBatches
from eurekube_sync.adapters.eureka.peer import Peer
from eurekube_sync.adapters.eureka.peers import EurekaPeers
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.brake.approval import PlanId
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.loop import BetweenPasses, Schedule, run_passes
from eurekube_sync.controller.one_pass import Memory, PassReport, PassSettings, World
from eurekube_sync.controller.reconcile import reconcile
from eurekube_sync.desired.scope import Policy, Scope
from eurekube_sync.desired.selector import Expression
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.eureka import LeaseTimes
from eurekube_sync.model.ports import EurekaServer, Registry
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import OwnWrites
from tests.in_process.eureka import InProcessSession
from tests.in_process.workers import InTurn

from .clock import MachineClock
from .recorded import Records
from .story import Installation, Mode
from .tokens import StoryConnection
from .view import OWNER, PassView, Violation
from .wire import Wire
from .world import ADDRESSES, NAMESPACES

PERIOD = 30.0
_MANY = 4
"""From this number of leases on, a daemon renews between its passes. Stories have fewer and
more."""
_CACHE_MEMORY = 45.0
_ASK_TIMEOUT = 2.0
_EUREKAS = tuple(EurekaAddress.parse(url) for url in ADDRESSES)
_FIRST_TEAM = Expression(key="team", operator="In", values=frozenset({"one"}))
_OTHER_TEAM = Expression(key="team", operator="NotIn", values=frozenset({"one"}))


class Process:
    """One process of the program, with its memory."""

    def __init__(
        self,
        installation: Installation,
        clock: MachineClock,
        limit: TimeLimit,
        wire: Wire,
        chance: random.Random,
        *,
        first: bool,
        pass_over: Callable[[PassView, PassReport], None],
    ) -> None:
        self.wire = wire
        self._clock = clock
        self._installation = installation
        self._pass_over = pass_over
        self._other_half = installation.halves and not first
        many = installation.mode is not Mode.ONCE
        team = (_FIRST_TEAM if first else _OTHER_TEAM,) if installation.halves else ()
        self._records = Records(clock)
        connection = self._records.connection(StoryConnection(wire.kubernetes, wire.credentials))
        registry, servers = _registry(installation, clock, limit, wire, chance)
        cluster = KubernetesCluster(connection, clock=clock, random=chance, limit=limit)
        self._world = World(
            registry=self._records.registry(registry),
            cluster=cluster,
            imports=cluster.imports if installation.networks else None,
            servers=self._records.servers(servers),
            clock=clock,
            workers=InTurn(),
            renewals=RenewalLedger(period=PERIOD, slack=installation.interval / 2 if many else 0.0),
            memory=Memory(own_writes=OwnWrites(seconds=_CACHE_MEMORY)),
            time_limit=limit,
        )
        self._settings = PassSettings(
            owner=OWNER,
            scope=Scope(
                namespaces=frozenset(NAMESPACES) if installation.scoped else None,
                selector=team,
                granted_only=installation.granted,
                policy=Policy.UPSERT_ONLY if installation.upsert_only else Policy.SYNC,
            ),
            lease=LeaseTimes(int(PERIOD), installation.lease),
            deadline=installation.pass_seconds,
            pod_drains=installation.drains,
            import_networks=installation.networks,
        )

    def run(self) -> None:
        """Runs as `eurekube-sync run` does, until its last pass or a signal."""
        passes = {Mode.DAEMON: None, Mode.ONCE: 1, Mode.TWICE: 2}[self._installation.mode]
        interval = PERIOD if self._installation.mode is Mode.TWICE else self._installation.interval
        between = (
            BetweenPasses(self._world, interval=interval, many=_MANY) if passes is None else None
        )
        run_passes(
            self.one_pass, self._clock, Schedule(passes=passes, interval=interval), _heard, between
        )

    def one_pass(self, *, approved: str | None = None) -> PassReport:
        """Makes one pass. An exception that leaves it is a broken promise."""
        view = PassView(
            begun=self._clock.monotonic(),
            process=self,
            approved=approved,
            other_half=self._other_half,
        )
        self.wire.view = view
        self._records.begin(self._world)
        try:
            report = reconcile(
                self._world,
                replace(self._settings, approved=PlanId(approved) if approved else None),
            )
        except Exception as error:
            raise Violation("crash", f"a pass ended with {error!r}") from error
        self._records.check(report)
        self._pass_over(view, report)
        return report


class _SmallBatches(EverywhereBatches):
    """Batches that few instances fill, because instances that do not fill one are read by single
    calls."""

    size = 2


def _heard(report: PassReport, code: ExitCode) -> None:
    """Ignores the report, because nobody reads it."""


def _registry(
    installation: Installation,
    clock: MachineClock,
    limit: TimeLimit,
    wire: Wire,
    chance: random.Random,
) -> tuple[Registry, Mapping[str, EurekaServer]]:
    """Return one registry for all servers, and the client of each by its URL."""

    def clients(*, timeout: float, retries: int) -> dict[str, EurekaClient]:
        return {
            address.url: EurekaClient(
                ConnectionOptions(address=address, read_timeout=timeout, retries=retries),
                clock=clock,
                random=chance,
                session=InProcessSession(wire.eureka(number)),
                limit=limit,
            )
            for number, address in enumerate(_EUREKAS[: installation.peers])
        }

    single = installation.peers == 1
    servers = clients(timeout=installation.call_seconds, retries=2 if single else 1)
    asked = clients(timeout=_ASK_TIMEOUT, retries=0)
    peers = [
        Peer(url=url, client=client, asked=asked[url], clock=clock)
        for url, client in servers.items()
    ]
    registry: Registry = peers[0].client
    if not single:
        registry = EurekaPeers(peers, clock=clock, limit=limit)
    if not installation.batches:
        return registry, servers
    batches = _SmallBatches(peers=peers, clock=clock, limit=limit, workers=InTurn())
    return BatchingRegistry(registry, batches), servers
