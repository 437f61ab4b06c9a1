"""The embedded Eureka: its behaviour over long times and with its switches, without a socket.

`tests/contract/test_eureka.py` has what a real server can show in a minute.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from eurekube_sync.embedded.http import Request, Response
from tests.embedded.eureka import FullEureka


@dataclass(slots=True)
class World:
    """A server and its clock."""

    time: float = 1_795_248_000.0
    options: Mapping[str, Any] = field(default_factory=dict)
    eureka: FullEureka = field(init=False)

    def __post_init__(self) -> None:
        self.eureka = FullEureka(lambda: self.time, **self.options)

    def call(self, method: str, path: str, body: bytes = b"", **headers: str) -> Response:
        sent = {"accept": "application/json", "content-type": "application/json"} | headers
        return self.eureka.handle(
            Request(method=method, path=f"/eureka{path}", headers=sent, body=body)
        )

    def register(self, app: str, instance_id: str, *, duration: int = 90) -> None:
        body = {
            "instanceId": instance_id,
            "hostName": "10.0.0.1",
            "ipAddr": "10.0.0.1",
            "app": app,
            "vipAddress": app.lower(),
            "dataCenterInfo": {
                "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
                "name": "MyOwn",
            },
            "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": duration},
        }
        assert (
            self.call("POST", f"/apps/{app}", json.dumps({"instance": body}).encode()).status == 204
        )

    def renew(self, app: str, instance_id: str) -> int:
        return self.call("PUT", f"/apps/{app}/{instance_id}").status

    def listed(self, path: str = "/apps") -> list[str]:
        applications = json.loads(self.call("GET", path).body)["applications"]["application"]
        return sorted(one["instanceId"] for each in applications for one in each["instance"])


class TestEviction:
    def test_nothing_is_evicted_before_the_first_window_is_full(self) -> None:
        """With self-preservation the count of the last whole minute is 0 at first, so no lease
        expires."""
        world = World()
        world.register("A", "a", duration=10)
        world.time += 59
        assert world.call("GET", "/apps/A/a").status == 200

    def test_an_expired_instance_is_evicted_when_the_others_renew(self) -> None:
        """More than 85 % of the expected renewals came in the last minute. The next eviction run
        evicts an expired instance."""
        world = World()
        for number in range(20):
            world.register("A", f"a{number}")
        world.register("B", "lapsed", duration=30)
        for _ in range(8):
            world.time += 15
            for number in range(20):
                assert world.renew("A", f"a{number}") == 200
        world.time += 60
        assert "lapsed" not in world.listed()
        assert len(world.listed()) == 20

    def test_self_preservation_keeps_everybody_when_too_few_renew(self) -> None:
        """If more than 15 % of the renewals are missing, no instance is evicted, however long that
        lasts."""
        world = World()
        for number in range(10):
            world.register("A", f"a{number}", duration=30)
        for _ in range(240):
            world.time += 30
            for number in range(7):
                assert world.renew("A", f"a{number}") == 200
        assert len(world.listed()) == 10

    def test_a_run_takes_at_most_15_percent(self) -> None:
        """Without self-preservation each run evicts 15 % of the instances that are left."""
        world = World(options={"self_preservation": False, "response_cache_seconds": 0})
        for number in range(100):
            world.register("A", f"a{number}", duration=30)
        left = []
        for _ in range(4):
            world.time += 60
            left.append(len(world.listed()))
        assert left == [85, 72, 61, 51]

    def test_the_order_of_eviction_follows_the_given_chance(self) -> None:
        """The seed alone decides which instance is evicted first."""

        def survivors(seed: int) -> list[str]:
            world = World(options={"self_preservation": False, "shuffle": random.Random(seed)})
            for number in range(40):
                world.register("A", f"a{number}", duration=30)
            world.time += 120
            return world.listed()

        assert survivors(1) == survivors(1)
        assert survivors(1) != survivors(2)

    def test_a_long_silence_is_caught_up(self) -> None:
        """After a month without a call, every expired instance is gone at once."""
        world = World(options={"self_preservation": False})
        for number in range(50):
            world.register("A", f"a{number}", duration=30)
        world.time += 30 * 86_400
        assert world.listed() == []

    def test_a_lease_that_was_renewed_in_time_stays(self) -> None:
        """A lease that is renewed each 30 s is never evicted."""
        world = World(options={"self_preservation": False})
        world.register("A", "a", duration=30)
        for _ in range(100):
            world.time += 30
            assert world.renew("A", "a") == 200
        assert world.listed() == ["a"]


class TestResponseCache:
    def test_a_tick_shows_the_state_at_the_tick(self) -> None:
        """A list that is read after a tick shows the registry at the tick, not at the read."""
        world = World()
        world.register("A", "before", duration=900)
        world.call("GET", "/apps")
        world.time += 10
        world.register("A", "between", duration=900)
        world.time += 25
        world.register("A", "after", duration=900)
        assert world.listed() == ["before", "between"]

    def test_the_read_only_level_can_be_switched_off(self) -> None:
        """With `response_cache_seconds=0` the next read shows each write."""
        world = World(options={"response_cache_seconds": 0})
        assert world.listed() == []
        world.register("A", "a")
        assert world.listed() == ["a"]


class TestSwitches:
    def test_writes_can_be_refused_while_reads_work(self) -> None:
        """CSRF protection does this: reads are 200, and writes are 403."""
        world = World()
        world.eureka.refuse_writes = True
        assert world.call("GET", "/apps").status == 200
        assert world.renew("A", "a") == 403
        assert world.call("POST", "/apps/A", b"{}").status == 403
        world.eureka.credentials = ("sync", "secret")
        assert world.renew("A", "a") == 401

    def test_warm_up_can_end(self) -> None:
        """After the warm-up, lists are served."""
        world = World(options={"warming_up": True})
        assert world.call("GET", "/apps").status == 403
        world.eureka.warming_up = False
        assert world.call("GET", "/apps").status == 200


def test_many_threads_may_call_at_once() -> None:
    """Registrations, renewals and cancels from eight threads lose nothing."""
    world = World(options={"response_cache_seconds": 0})

    def work(thread: int) -> None:
        for number in range(40):
            instance_id = f"{thread}-{number}"
            world.register("A", instance_id)
            assert world.renew("A", instance_id) == 200
            if number % 2:
                assert world.call("DELETE", f"/apps/A/{instance_id}").status == 200

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(world.listed()) == 8 * 20
