"""How two Eureka servers come to agree that replicate to each other: one suite, on the simulation's
world and on two real servers. A client renews on one of them, without a timestamp."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pytest
import requests

from tests.contract.eureka_subject import JSON, Document, instance_body
from tests.embedded.eureka import OF_A_PEER
from tests.servers.eureka import EurekaServer
from tests.simulation.clock import VirtualClock
from tests.simulation.world import Key, World, registration
from tests.waiting import wait_until

_numbers = itertools.count(1)
OLDER, NEWER = "1795248000785", "1795248000786"


class Peers(Protocol):
    """Two servers that replicate to each other."""

    def register(self, peer: int, app: str, document: Document) -> None:
        """Register an instance on this server only."""

    def renew(self, peer: int, app: str, id_: str) -> int:
        """Renew as a client does; return the status of the answer."""

    def status(self, peer: int, app: str, id_: str) -> tuple[str, str] | None:
        """Return the status of an instance and its `lastDirtyTimestamp`; None if it is absent."""

    def agree_that(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds."""


class SimulatedPeers:
    """The Eureka servers of the simulation."""

    def __init__(self) -> None:
        self._clock = VirtualClock()
        self._world = World(self._clock, peers=2, seed=1)

    def register(self, peer: int, app: str, document: Document) -> None:
        self._world.eurekas[peer].handle(registration(app, document))

    def renew(self, peer: int, app: str, id_: str) -> int:
        assert peer == 0
        return self._world.ask_for("PUT", Key(app, id_))

    def status(self, peer: int, app: str, id_: str) -> tuple[str, str] | None:
        listed = self._world.standing(peer).get(Key(app, id_))
        if listed is None:
            return None
        return listed[0].status, str(listed[0].last_dirty)

    def agree_that(self, holds: Callable[[], bool]) -> None:
        self._clock.advance(5)
        assert holds()


@dataclass(frozen=True, slots=True, kw_only=True)
class RealPeers:
    """Two running servers."""

    servers: tuple[EurekaServer, EurekaServer]

    def register(self, peer: int, app: str, document: Document) -> None:
        requests.post(
            f"{self.servers[peer].url}/apps/{app}",
            json={"instance": document},
            headers={OF_A_PEER: "true"},
            timeout=30,
        ).raise_for_status()

    def renew(self, peer: int, app: str, id_: str) -> int:
        url = f"{self.servers[peer].url}/apps/{app}/{id_}"
        return requests.put(url, headers=JSON, timeout=30).status_code

    def status(self, peer: int, app: str, id_: str) -> tuple[str, str] | None:
        url = f"{self.servers[peer].url}/apps/{app}/{id_}"
        answer = requests.get(url, headers=JSON, timeout=30)
        if answer.status_code == 404:
            return None
        instance: dict[str, Any] = answer.json()["instance"]
        return instance["status"], instance["lastDirtyTimestamp"]

    def agree_that(self, holds: Callable[[], bool]) -> None:
        wait_until(holds, "the servers do not agree")


@pytest.fixture(
    scope="module", params=["simulated", pytest.param("real", marks=pytest.mark.servers)]
)
def peers(request: pytest.FixtureRequest) -> Iterator[Peers]:
    if request.param == "simulated":
        yield SimulatedPeers()
    else:
        yield RealPeers(servers=request.getfixturevalue("eureka_peers"))


@pytest.fixture
def app() -> str:
    """An application name that no other test uses."""
    return f"PEERS{next(_numbers)}"


@pytest.mark.parametrize(("older", "newer"), [("UP", "DOWN"), ("DOWN", "UP")])
@pytest.mark.parametrize("newer_peer", [0, 1], ids=["renewed here is newer", "there is newer"])
def test_after_a_renewal_both_servers_have_the_newer_copy(
    peers: Peers, app: str, newer_peer: int, older: str, newer: str
) -> None:
    """A server sends a renewal on with the timestamp of its own copy. One that has an older copy
    answers 404, and gets the newer one. One that has a newer copy answers 409 with it, and the
    sender takes that over."""
    id_ = f"{app}:10.1.2.3"
    stale = instance_body(app, id_, status=older, lastDirtyTimestamp=OLDER)
    peers.register(1 - newer_peer, app, stale)
    fresh = instance_body(app, id_, status=newer, lastDirtyTimestamp=NEWER)
    peers.register(newer_peer, app, fresh)
    assert peers.renew(0, app, id_) == 200

    def agree() -> bool:
        return [peers.status(peer, app, id_) for peer in (0, 1)] == [(newer, NEWER)] * 2

    peers.agree_that(agree)


def test_a_renewal_brings_an_instance_to_the_server_that_lacks_it(peers: Peers, app: str) -> None:
    """A server that lacks the instance answers 404, and gets it."""
    id_ = f"{app}:10.1.2.3"
    peers.register(0, app, instance_body(app, id_, lastDirtyTimestamp=OLDER))
    assert peers.renew(0, app, id_) == 200
    peers.agree_that(lambda: peers.status(1, app, id_) == ("UP", OLDER))
