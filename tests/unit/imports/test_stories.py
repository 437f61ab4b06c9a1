"""Random stories of imports, with promises that are kept after each pass:

- No endpoint of a living instance leaves, whatever Eureka, a peer or a write does.
- Nobody else's Service or slice is ever written, and no address outside of the networks.
- After a time of rest, the slices have the living instances and no others, and a pass writes
  nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from eurekube_sync.model.errors import ClusterConflict, ClusterUnavailable
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.imports import MANAGER, ImportRef
from eurekube_sync.model.kubernetes import Endpoint, EndpointPort, EndpointSlice, Service
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.imports.test_when_nothing_is_removed import Server
from tests.unit.worlds.build import DOWN, UP, service
from tests.unit.worlds.fakes import When
from tests.unit.worlds.imports import SHOP, START, ImportWorld, dc, import_object

AWAY = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
APPS = ("review", "order", "stock", "user", "cart", "price")


class Living(Struct, frozen=True):
    """An instance of the data centre. It registers itself again where Eureka lost it."""

    number: int
    app: str
    port: int = 8080
    up: bool = True
    registered: float = START  # Unix seconds, by Eureka's clock; 0: Eureka does not list it now
    lost: float = 0.0  # when Eureka lost it, in Unix seconds

    @property
    def place(self) -> str:
        return f"10.20.0.{self.number}:{self.port}"

    def listed(self, now: float) -> ObservedInstance:
        return dc(
            self.number,
            app=self.app,
            port=self.port,
            status=UP if self.up else DOWN,
            registered=self.registered,
            renewed=now,
        )


class Story:
    """A data centre of a few apps, imported one by one, and what happens to it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = ImportWorld(*(import_object(app) for app in APPS))
        self.living = {number: Living(number, APPS[number % len(APPS)]) for number in range(1, 25)}
        self.living |= {number: Living(number, "other") for number in range(100, 104)}
        self.next = 30
        self.peer = Server()
        self.theirs: list[Service | EndpointSlice] = [
            service("theirs", namespace=SHOP),
            EndpointSlice(
                namespace=SHOP,
                name="theirs-1",
                service="theirs",
                address_type="IPv4",
                ports=(EndpointPort(name="http", port=8080),),
                endpoints=(Endpoint(address="10.244.0.7"),),
            ),
        ]
        self.world.cluster.apply(*self.theirs)
        self.told: list[str] = []
        self.go()
        assert self.world.endpoints() == self.wanted()

    # --- What happens -----------------------------------------------------------------------------

    def start(self) -> None:
        self.living[self.next] = Living(
            self.next, self.chance.choice(APPS), registered=self.world.clock.now()
        )
        self.next += 1

    def stop(self) -> None:
        self.living.pop(self.one().number)

    def stop_an_app(self) -> None:
        app = self.chance.choice(APPS)
        self.living = {key: each for key, each in self.living.items() if each.app != app}

    def turn(self) -> None:
        one = self.one()
        self.living[one.number] = replace(one, up=not one.up)

    def move_port(self) -> None:
        one = self.one()
        self.living[one.number] = replace(one, port=one.port + 1)

    def restart_eureka(self) -> None:
        """It comes back empty, and the instances within 90 s."""
        for key, each in self.living.items():
            self.living[key] = replace(each, registered=0, lost=self.world.clock.now())

    def lose_eureka(self) -> None:
        self.world.registry.unreadable = AWAY

    def have_a_peer(self) -> None:
        """A second server, which has what the first one lacks."""
        self.peer = Server(*(each.listed(self.world.clock.now()) for each in self.living.values()))
        self.world.servers = {"a": Server(), "b": self.peer}

    def cut_the_peer(self) -> None:
        self.world.servers = {"a": Server(), "b": Server(unknown=AWAY)}

    def have_no_peer(self) -> None:
        """Its instances go to the first server."""
        self.world.servers = {}
        self.come_back(lambda _: True)

    def lose_by_the_first(self) -> None:
        """A living instance is only on the peer, which still has its heartbeats."""
        if self.world.servers:
            one = self.one()
            self.living[one.number] = replace(one, registered=0, lost=self.world.clock.now())

    def delete_a_service(self) -> None:
        app = self.chance.choice(APPS)
        cluster = self.world.cluster
        cluster.services = [each for each in cluster.services if each.name != app]

    def edit_a_slice(self) -> None:
        """A person adds an address of nobody, takes one away, or writes other labels."""
        ours = [each for each in self.world.cluster.slices if each.managed_by == MANAGER]
        piece = self.chance.choice(ours)
        edits = (
            replace(piece, endpoints=(*piece.endpoints, Endpoint(address="192.0.2.66"))),
            replace(piece, service="theirs"),
            replace(piece, ports=(EndpointPort(name="web", port=8080),)),
        )
        edited = self.chance.choice(edits)
        version = f"edited-{self.chance.random()}"
        self.world.cluster.apply(replace(edited, resource_version=version))

    def refuse_writes(self) -> None:
        call = self.chance.choice(("create_slice", "write_slice", "delete_slice", "create_service"))
        errors = (ClusterConflict("it changed"), ClusterUnavailable("no answer"))
        self.world.imports.refuse[call] = self.chance.choice(errors)

    def kill_a_pass(self) -> None:
        """A call fails, before or after its effect."""
        when = self.chance.choice((When.BEFORE, When.AFTER))
        self.world.wire.fail = (self.chance.randrange(3, 14), when)

    def live_on(self) -> None:
        self.world.daemon = not self.world.daemon

    # --- Passes -----------------------------------------------------------------------------------

    def one(self) -> Living:
        ours = [each for each in self.living.values() if each.app in APPS]
        return self.chance.choice(ours or list(self.living.values()))

    def register_again(self) -> None:
        """Each instance that Eureka lost comes back within 90 s."""
        now = self.world.clock.now()
        self.come_back(lambda each: now - each.lost >= 90 or self.chance.random() < 0.5)

    def come_back(self, comes: Callable[[Living], bool]) -> None:
        now = self.world.clock.now()
        for key, each in self.living.items():
            if not each.registered and comes(each):
                self.living[key] = replace(each, registered=now)

    def wanted(self) -> list[str]:
        return sorted(each.place for each in self.living.values() if each.up and each.app in APPS)

    def go(self) -> None:
        now = self.world.clock.now()
        self.world.lists(*(each.listed(now) for each in self.living.values() if each.registered))
        if self.world.servers.get("b") is self.peer:
            self.have_a_peer()  # what it lists is of now
        before = set(self.world.endpoints())
        self.world.run()
        lost = before - set(self.world.endpoints())
        assert not lost.intersection(self.wanted()), (self.told, lost)
        for thing in self.theirs:
            assert thing in (*self.world.cluster.services, *self.world.cluster.slices), self.told
        self.world.registry.unreadable = None
        self.world.wire.fail = None
        self.world.imports.refuse.clear()

    def happen(self) -> None:
        events: list[Callable[[], None]] = [
            self.start,
            self.stop,
            self.stop_an_app,
            self.turn,
            self.move_port,
            self.restart_eureka,
            self.lose_eureka,
            self.have_a_peer,
            self.cut_the_peer,
            self.have_no_peer,
            self.lose_by_the_first,
            self.delete_a_service,
            self.edit_a_slice,
            self.refuse_writes,
            self.kill_a_pass,
            self.live_on,
        ]
        event = self.chance.choice(events)
        self.told.append(event.__name__)
        event()

    def rest(self) -> None:
        """Nothing happens any more, and a person approves what the brake holds."""
        self.have_no_peer()
        for _ in range(20):
            self.register_again()
            self.go()
            self.world.later(30)
        for _ in range(2):
            report = self.world.passes()
            if report.held is not None:
                self.world.passes(approved=report.held.plan_id)
            self.world.later(30)


@given(st.integers(0, 1_000_000))
def test_the_promises_are_kept_in_every_story(seed: int) -> None:
    """Whatever happens, in whatever order."""
    story = Story(seed)
    for _ in range(story.chance.randrange(4, 16)):
        for _ in range(story.chance.randrange(3)):
            story.happen()
        story.go()
        story.world.later(story.chance.choice((5, 10, 30, 60)))
        story.register_again()
    story.rest()
    assert story.world.endpoints() == story.wanted(), story.told
    story.world.passes()
    assert story.world.wire.writes() == [], story.told
    services = set()
    for piece in story.world.cluster.slices:
        if piece.managed_by == MANAGER:
            services.add(piece.service)
            if piece.endpoints:
                assert [port.name for port in piece.ports] == ["http"], story.told
    assert services <= set(APPS), story.told
    for app in APPS:
        assert story.world.imports.service(app) is not None
        assert story.world.condition("Synced", ImportRef(SHOP, app)) == "True InSync"
