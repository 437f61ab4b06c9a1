"""Two syncers claim the same addresses, between a daemon and real servers. The older one has them,
and the younger one reports that. When the older one gives them up the younger one has them, and
uncached reads find every instance UP at every moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.integration.hand_made import (
    make_app,
    make_namespace,
    make_syncer,
    remove_app,
    syncers_of,
)
from tests.integration.program import Program, Registry
from tests.servers.world import KubernetesWorld

pytestmark = pytest.mark.servers

HOME, ELSEWHERE = "two-syncers", "two-syncers-elsewhere"
ADDRESSES = ("10.23.0.1", "10.23.0.2")
OLDER, YOUNGER = "a-older", "b-younger"
SECONDS = 300.0


@pytest.fixture
def world(kubernetes_world: KubernetesWorld) -> Iterator[KubernetesWorld]:
    """The Service `rating` with two ready endpoints, and a second namespace."""
    for namespace in (HOME, ELSEWHERE):
        make_namespace(kubernetes_world, namespace)
    make_app(kubernetes_world, HOME, "rating", ADDRESSES)
    yield kubernetes_world
    remove_app(kubernetes_world, HOME, "rating")


@dataclass
class Reader:
    """Reads both addresses uncached, without pause, under each id that they may have."""

    registry: Registry
    owner: str
    namespaces: tuple[str, ...]
    """The namespaces of the syncers, the leaving one first. If its id is gone, the other one's must
    exist."""
    stopped: threading.Event = field(default_factory=threading.Event)
    looks: int = 0
    faults: list[str] = field(default_factory=list)

    def read(self) -> None:
        """Read until it is stopped."""
        while not self.stopped.is_set():
            for address in ADDRESSES:
                found = self.found(address)
                if found is None or found["status"] != "UP":
                    self.faults.append(f"{address} is {found and found['status']}")
            self.looks += 1

    def found(self, address: str) -> dict[str, Any] | None:
        """The first instance at the address."""
        for namespace in self.namespaces:
            if found := self.registry.instance(
                "RATING", f"{self.owner}:{namespace}:rating:{address}:8080"
            ):
                return found
        return None

    def holders(self) -> set[str]:
        """The syncers that have the addresses."""
        there = [self.found(address) for address in ADDRESSES]
        return {found["metadata"]["eurekube.syncer"] if found else "nobody's" for found in there}


def until(reached: Callable[[], bool], what: str) -> None:
    """Wait for it. Raises AssertionError after a while."""
    deadline = time.monotonic() + SECONDS
    while not reached():
        assert time.monotonic() < deadline, f"not within {SECONDS:g} s: {what}"
        time.sleep(0.1)


def condition(world: KubernetesWorld, namespace: str, name: str, kind: str) -> tuple[str, str, str]:
    """Value, reason and message of a syncer's condition. All are empty while there is none."""
    status = world.request("GET", f"{syncers_of(namespace)}/{name}").get("status", {})
    found = [one for one in status.get("conditions", ()) if one["type"] == kind]
    return (
        (found[0]["status"], found[0]["reason"], found[0].get("message", ""))
        if found
        else ("", "", "")
    )


def is_gone(world: KubernetesWorld, name: str) -> bool:
    """Whether the syncer is gone."""
    return name not in {
        item["metadata"]["name"] for item in world.request("GET", syncers_of(HOME))["items"]
    }


@pytest.mark.parametrize("where", [HOME, ELSEWHERE], ids=["of one namespace", "of two namespaces"])
@pytest.mark.parametrize("leaving", ["deleted", "detached"])
def test_the_younger_syncer_takes_over_without_a_gap(
    leaving: str, where: str, program: Program, registry: Registry, world: KubernetesWorld
) -> None:
    """In one namespace both write the same id, and its syncer changes. From another namespace, the
    new id is UP before the old one is cancelled."""
    elsewhere = where != HOME
    daemon = program.start("--daemon", "--interval=1s", f"--allow-namespace={ELSEWHERE}:{HOME}")
    reader = Reader(registry, program.owner, (HOME, where) if elsewhere else (HOME,))
    reading = threading.Thread(target=reader.read)
    try:
        make_syncer(world, HOME, OLDER, "rating")
        until(lambda: reader.holders() == {f"{HOME}/{OLDER}"}, "the older one registers both")
        selector = {"app": "rating", "namespace": HOME} if elsewhere else {"app": "rating"}
        make_syncer(world, where, YOUNGER, "rating", selector=selector)
        until(
            lambda: condition(world, where, YOUNGER, "Conflict")[0] == "True",
            "the younger one is told",
        )
        value, reason, message = condition(world, where, YOUNGER, "Conflict")
        assert (value, reason) == ("True", "Conflict")
        right = "lives in the Service's own namespace" if elsewhere else "is older"
        assert f"syncer {HOME}/{OLDER} {right} and has the address" in message
        assert reader.holders() == {f"{HOME}/{OLDER}"}
        reading.start()
        if leaving == "deleted":
            world.request("DELETE", f"{syncers_of(HOME)}/{OLDER}")
            until(lambda: is_gone(world, OLDER), "the finalizer lets the older one go")
        else:
            world.request("PATCH", f"{syncers_of(HOME)}/{OLDER}", {"spec": {"limit": 0}})
            until(
                lambda: condition(world, HOME, OLDER, "Ready")[1] == "LimitZero",
                "the older one is detached",
            )
        until(lambda: reader.holders() == {f"{where}/{YOUNGER}"}, "the younger one has both")
        until(
            lambda: condition(world, where, YOUNGER, "Ready")[0] == "True",
            "the younger one is ready",
        )
        assert condition(world, where, YOUNGER, "Conflict")[0] == "False"
        seen = reader.looks
        until(lambda: reader.looks >= seen + 20, "some more looks")
    finally:
        reader.stopped.set()
        if reading.ident is not None:
            reading.join()
        daemon.terminate()
        out, err = daemon.communicate(timeout=SECONDS)
    assert reader.faults == [], f"of {reader.looks} looks"
    assert daemon.returncode == 0, out + err
