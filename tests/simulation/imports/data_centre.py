"""The data centre: instances of apps, whose own Eureka clients register and renew them, and events
about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eurekube_sync.embedded.http import Request
from tests.simulation.events import Event
from tests.simulation.world import DATA_CENTER, Key, World, registration

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

NETWORK = "10.20.0.0/16"
_BEAT = 30.0
"""Seconds between two heartbeats."""
EVICTED_AFTER = 280.0
"""Seconds from the last heartbeat to the last list that shows an instance: twice its lease, an
eviction each minute, and a list that is 30 s old. Many take longer: see `DataCentre.fades`."""


@dataclass(slots=True, kw_only=True)
class Client:
    """An instance, and its Eureka client. It registers again where Eureka has lost it."""

    app: str
    number: int
    address: str
    port: int = 8080
    zone: str = "a"
    vip: str = ""
    up: bool = True
    home: int = 0
    """The Eureka server that it calls."""
    cut: bool = False
    """Whether its server tells the others nothing of it."""
    returns_at: float = 0.0
    """From when on it notices that Eureka has lost it."""

    @property
    def key(self) -> Key:
        return Key(self.app.upper(), f"dc-{self.number}:{self.app}")

    @property
    def socket(self) -> tuple[str, int]:
        return self.address, self.port


class DataCentre:
    """The instances that run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.clients: dict[Key, Client] = {}
        self.changes = 0
        """Counts the changes of clients."""
        self._ended: set[Key] = set()

    def of(self, app: str) -> list[Client]:
        return [client for client in self.clients.values() if client.app == app]

    def start(self, client: Client) -> bool:
        """Starts an instance; returns whether it did not run yet."""
        if client.key in self.clients:
            return False
        self.clients[client.key] = client
        self._ended.discard(client.key)
        self.register(client)
        self._beat_later(client)
        return True

    def register(self, client: Client) -> None:
        """Registers it as it is now."""
        self.changes += 1
        document = {
            "instanceId": client.key.id,
            "hostName": f"dc-{client.number}",
            "ipAddr": client.address,
            "app": client.key.app,
            "vipAddress": client.vip or client.app,
            "status": "UP" if client.up else "DOWN",
            "port": {"$": client.port, "@enabled": "true"},
            "dataCenterInfo": DATA_CENTER,
            "leaseInfo": {"durationInSecs": 90},
            "metadata": {"zone": client.zone},
            "lastDirtyTimestamp": str(int(self._world.clock.now() * 1000)),
        }
        self._call(client, registration(client.key.app, document))

    def stop(self, client: Client, *, cancels: bool) -> None:
        """Ends an instance. One that does not cancel stays UP as long as its lease lasts."""
        self.changes += 1
        del self.clients[client.key]
        self._ended.add(client.key)
        if cancels:
            self._call(client, _request("DELETE", client.key))

    def fades(self) -> bool:
        """Whether a server still lists an instance that has ended: in one run, it evicts at most
        15 % of its registry."""
        for peer in range(len(self._world.eurekas)):
            if not self._ended.isdisjoint(self._world.standing(peer)):
                return True
        return False

    def _beat_later(self, client: Client) -> None:
        def beat() -> None:
            if self.clients.get(client.key) is not client:
                return
            status = self._call(client, _request("PUT", client.key))
            if status == 404 and self._world.clock.time >= client.returns_at:
                self.register(client)
            self._beat_later(client)

        self._world.clock.at(self._world.clock.time + _BEAT, beat)

    def _call(self, client: Client, request: Request) -> int:
        home = client.home % len(self._world.eurekas)
        return self._world.ask_eureka(home, request, cut=client.cut).status


def _request(method: str, key: Key) -> Request:
    return Request(method=method, path=f"/eureka/apps/{key.app}/{key.id}")


# --- Events ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceStarts(Event):
    """An instance of the data centre starts."""

    app: str
    number: int
    address: str
    port: int = 8080
    zone: str = "a"
    vip: str = ""
    home: int = 0
    cut: bool = False

    def happen(self, stage: Stage) -> str:
        client = Client(
            app=self.app,
            number=self.number,
            address=self.address,
            port=self.port,
            zone=self.zone,
            vip=self.vip,
            home=self.home,
            cut=self.cut,
        )
        if not stage.judge.imports.data_centre.start(client):
            return ""
        return f"instance {client.key} of the data centre starts at {self.address}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ElderStarts(Event):
    """An instance starts that every Eureka server has had for an hour, as in a registry that is
    old."""

    def happen(self, stage: Stage) -> str:
        data_centre = stage.judge.imports.data_centre
        elder = Client(app="elder", number=0, address="10.20.9.9", cut=True)
        data_centre.start(elder)
        for home, eureka in enumerate(stage.world.eurekas):
            elder.home = home
            data_centre.register(elder)
            eureka.registry.leases[elder.key.app][elder.key.id].registered -= 3_600_000
        elder.cut = False
        return "an instance runs that is an hour old"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceStops(Event):
    """An instance ends, with a cancel or without."""

    app: str
    number: int
    cancels: bool = True

    @property
    def over(self) -> float:
        return self.at + (0.0 if self.cancels else EVICTED_AFTER)

    def happen(self, stage: Stage) -> str:
        key = _key(self.app, self.number)
        client = stage.judge.imports.data_centre.clients.get(key)
        if client is None:
            return ""
        stage.judge.imports.data_centre.stop(client, cancels=self.cancels)
        return f"instance {key} ends {'with' if self.cancels else 'without'} a cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppStops(Event):
    """All instances of an app end at once, or all but some."""

    app: str
    but: int = 0
    cancels: bool = True

    @property
    def over(self) -> float:
        return self.at + (0.0 if self.cancels else EVICTED_AFTER)

    def happen(self, stage: Stage) -> str:
        data_centre = stage.judge.imports.data_centre
        going = data_centre.of(self.app)[self.but :]
        for client in going:
            data_centre.stop(client, cancels=self.cancels)
        return f"{len(going)} instances of {self.app} end at once" if going else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceTurns(Event):
    """An instance says that it is DOWN, or UP again."""

    app: str
    number: int
    up: bool

    def happen(self, stage: Stage) -> str:
        client = stage.judge.imports.data_centre.clients.get(_key(self.app, self.number))
        if client is None or client.up == self.up:
            return ""
        client.up = self.up
        stage.judge.imports.data_centre.register(client)
        return f"instance {client.key} says that it is {'UP' if self.up else 'DOWN'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceMoves(Event):
    """An instance of the same id comes back at another address or port."""

    app: str
    number: int
    address: str
    port: int = 8080

    def happen(self, stage: Stage) -> str:
        client = stage.judge.imports.data_centre.clients.get(_key(self.app, self.number))
        if client is None or client.socket == (self.address, self.port):
            return ""
        client.address, client.port = self.address, self.port
        stage.judge.imports.data_centre.register(client)
        return f"instance {client.key} moves to {self.address}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EurekaFillsUp(Event):
    """Eureka loses its memory, and the instances come back one after the other."""

    lasts: float
    warm_up: float = 0.0
    peer: int = 0

    @property
    def over(self) -> float:
        return self.at + max(self.lasts, self.warm_up)

    def happen(self, stage: Stage) -> str:
        peer = self.peer % len(stage.world.eurekas)
        clients = list(stage.judge.imports.data_centre.clients.values())
        for number, client in enumerate(clients):
            wait = self.lasts * number / len(clients)
            client.returns_at = max(client.returns_at, stage.clock.time + wait)
        stage.world.restart_eureka(peer, warm_up=self.warm_up)
        stage.judge.eureka_restarted(peer, self.warm_up)
        warming = f", warms up for {self.warm_up:g} s" if self.warm_up else ""
        return f"Eureka {peer + 1} restarts{warming}, and fills up in {self.lasts:g} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServersAreCut(Event):
    """The Eureka servers tell each other nothing of the instances of an app for a while."""

    app: str
    lasts: float

    @property
    def over(self) -> float:
        return self.at + self.lasts + EVICTED_AFTER

    def happen(self, stage: Stage) -> str:
        clients = stage.judge.imports.data_centre.of(self.app)
        if len(stage.world.eurekas) == 1 or not clients:
            return ""
        self._cut(clients, is_cut=True)
        stage.clock.at(stage.clock.time + self.lasts, lambda: self._joined(stage))
        return f"the Eureka servers tell each other nothing of {self.app}"

    def _joined(self, stage: Stage) -> None:
        self._cut(stage.judge.imports.data_centre.of(self.app), is_cut=False)
        stage.happened(f"the Eureka servers tell each other of {self.app} again")

    def _cut(self, clients: list[Client], *, is_cut: bool) -> None:
        for client in clients:
            client.cut = is_cut


def _key(app: str, number: int) -> Key:
    return Client(app=app, number=number, address="").key


def living(data_centre: DataCentre) -> Iterator[Client]:
    """The instances that run and say that they are UP, whatever Eureka has lost."""
    return (client for client in data_centre.clients.values() if client.up)
