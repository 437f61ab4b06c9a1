"""The scene of the cut tests: two real peers, all connections to and between them, and programs
that make many passes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli.connect import Installation, connect
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.controller.one_pass import PassSettings, World
from eurekube_sync.controller.reconcile import reconcile
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.eureka import LeaseTimes
from tests.integration.hand_made import make_syncer
from tests.integration.program import Registry
from tests.integration.test_safety import NAMESPACE, set_endpoints
from tests.servers.eureka import EurekaServer, ProxiedPair
from tests.servers.toxiproxy import Proxy
from tests.servers.world import KubernetesWorld
from tests.soak.strangers import Strangers
from tests.soak.watch import Key, Watch
from tests.waiting import wait_until

RENEWAL = 2
ADDRESSES = [f"10.40.0.{number}" for number in range(1, 31)]
NEW = "10.40.1.1"
CALL_SECONDS = 4
_HEALED_SECONDS = 180


@dataclass(kw_only=True)
class Ours:
    """A program with an owner name of its own. It serves the syncer of its class."""

    batch: str
    """`--eureka-batch`. Not `auto`, which would notice that the peers use other addresses for each
    other than we do."""
    owner: str
    lease: int
    """In seconds. After a renewal it is twice as long."""
    world: World
    """It lists both peers in every pass."""

    @property
    def syncer_class(self) -> str:
        """Its own class."""
        return self.owner

    def run(self) -> None:
        """Make a good pass."""
        settings = PassSettings(
            owner=self.owner,
            scope=Scope(syncer_class=self.syncer_class),
            lease=LeaseTimes(RENEWAL, self.lease),
            registry_cache=3,
        )
        report = reconcile(self.world, settings)
        assert of_report(report, fail_on_held=True, detailed=False) is ExitCode.OK, report

    def key(self, address: str) -> Key:
        """The key of its instance at an address."""
        return Key("SHOP", f"{self.owner}:{NAMESPACE}:shop:{address}:8080")


@dataclass(kw_only=True)
class Scene:
    """Both peers, and all programs that use them."""

    peers: ProxiedPair
    us_to_first: Proxy
    us_to_second: Proxy
    programs: list[Ours]
    cluster: KubernetesWorld
    watch: Watch
    strangers: Strangers
    desired: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    """Addresses that were desired earlier."""
    before: dict[Key, dict[str, Any]] = field(default_factory=dict)
    """The instances of others, as the second peer had them."""

    def begin(self) -> None:
        """Wait until both peers have our instances and those of others."""
        self.desired = list(ADDRESSES)
        set_endpoints(self.cluster, self.desired)
        for ours in self.programs:
            name = f"shop-{ours.batch}"
            make_syncer(self.cluster, NAMESPACE, name, "shop", syncerClass=ours.syncer_class)

        def all_stand() -> bool:
            self.run()
            return not self.differences()

        wait_until(all_stand, lambda: f"not on both peers: {self.differences()}")
        self.before = {key: instance_on(self.peers.second, key) for key in self.strangers.keys}

    def replace_one(self) -> None:
        """Ask for a removal and a registration in the next pass."""
        address, *others = self.desired
        self.gone.append(address)
        self.desired = [NEW, *others]
        self.watch.forget([ours.key(address) for ours in self.programs])
        set_endpoints(self.cluster, self.desired)

    def run(self, passes: int = 1) -> None:
        """Make this many passes of all programs at the same time, a second apart. Each has to be
        good, and the desired instances are watched."""
        for _ in range(passes):
            time.sleep(1)
            with ThreadPoolExecutor(len(self.programs)) as pool:
                for running in [pool.submit(ours.run) for ours in self.programs]:
                    running.result()
            self.watch.expect(self.keys())

    def run_for(self, seconds: float) -> None:
        """Make passes until this time is over."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.run()

    def healed(self) -> None:
        """Two passes after the connections work again, both peers have exactly our instances.
        Nothing was lost, and no instance of others has changed.

        A pass in which a peer of a busy machine answers late does not count, because that peer is
        left alone for a while. Further passes are made, because such a peer gets what it lacks only
        when it is asked again.
        """
        quick = 0
        deadline = time.monotonic() + _HEALED_SECONDS
        while quick < 2 and time.monotonic() < deadline:
            begun = time.monotonic()
            self.run()
            quick = quick + 1 if time.monotonic() - begun < 1 + CALL_SECONDS / 2 else 0

        def alike() -> bool:
            if not self.differences():
                return True
            self.run()
            return False

        wait_until(
            alike,
            lambda: f"two passes after healing: {self.differences()}",
            seconds=min(
                ours.lease for ours in self.programs
            ),  # an instance left behind has not expired by then
        )
        self.watch.check()
        assert not self.strangers.refused, self.strangers.refused[:3]
        first = Registry(url=self.peers.first.url)
        wait_until(
            lambda: all(first.status(*key) for key in self.before),
            "the strangers did not come back",
        )
        for key, before in self.before.items():
            assert unrenewed(instance_on(self.peers.second, key)) == unrenewed(before)
            assert unmoved(instance_on(self.peers.first, key)) == unmoved(before)

    def differences(self) -> list[str]:
        """The differences of the peers from our desired instances, by uncached reads."""
        wanted = {ours.key(address): "UP" for ours in self.programs for address in self.desired}
        unwanted = {ours.key(address): None for ours in self.programs for address in self.gone}
        return [
            f"{key.id} is {found} on {server.url}"
            for server in self.servers
            for key, status in (wanted | unwanted).items()
            if (found := Registry(url=server.url).status(*key)) != status
        ]

    def stand_on(self, server: EurekaServer, ours: Ours) -> int:
        """How many of a program's instances are UP on one peer."""
        registry = Registry(url=server.url)
        return sum(registry.status(*ours.key(address)) == "UP" for address in self.desired)

    def keys(self) -> list[Key]:
        """The keys of the desired instances."""
        return [ours.key(address) for ours in self.programs for address in self.desired]

    @property
    def servers(self) -> tuple[EurekaServer, EurekaServer]:
        """The first and the second peer."""
        return self.peers.first, self.peers.second


@contextmanager
def program(urls: list[str], kubeconfig: Path, batch: str, lease: int) -> Iterator[World]:
    """The program in one process, with renewals in time for short leases."""
    installation = Installation(
        eureka_url=",".join(urls),
        kubeconfig=str(kubeconfig),
        call_timeout=CALL_SECONDS,
        lease_duration=lease,
        registry_cache=3,
        renewal_interval=RENEWAL,
        renewal_slack=0.5,
        sweep_interval=1,
        eureka_batch=batch,
    )
    with connect(installation, SystemClock()) as world:
        yield world


def instance_on(server: EurekaServer, key: Key) -> dict[str, Any]:
    """An instance on one peer, by an uncached read."""
    found = Registry(url=server.url).instance(key.app, key.id)
    assert found is not None, f"{key.id} is not on {server.url}"
    return found


def unrenewed(instance: dict[str, Any]) -> dict[str, Any]:
    """An instance without the fields that its own renewals change."""
    lease = {
        name: value
        for name, value in instance["leaseInfo"].items()
        if name != "lastRenewalTimestamp"
    }
    return {**instance, "leaseInfo": lease}


def unmoved(instance: dict[str, Any]) -> dict[str, Any]:
    """An instance without the fields that replication adds: when it came, and by which action."""
    lease = {
        name: instance["leaseInfo"][name] for name in ("renewalIntervalInSecs", "durationInSecs")
    }
    moved = {"leaseInfo", "lastUpdatedTimestamp", "actionType"}
    return {name: value for name, value in instance.items() if name not in moved} | lease
