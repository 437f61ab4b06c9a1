"""Several peers: which one is called, what a failure reports, and how instances on one peer alone
are found and cancelled."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar, cast

import pytest

from eurekube_sync.adapters.eureka.address import parse_addresses
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.adapters.eureka.peer import FIRST_REST_SECONDS, REST_SECONDS, Peer
from eurekube_sync.adapters.eureka.peers import (
    SWEEP_MARGIN_SECONDS,
    SWEEP_SECONDS,
    EurekaPeers,
    sweep_seconds,
)
from eurekube_sync.adapters.eureka.replication import REPLICATION_SECONDS
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.actions import Result
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import (
    ConfigurationError,
    RegistryDenied,
    RegistryError,
    RegistryRejected,
    RegistryStumbled,
    RegistryUnavailable,
    RegistryUnusable,
)
from eurekube_sync.model.eureka import (
    Instance,
    InstanceKey,
    InstanceStatus,
    LeaseTimes,
    ObservedInstance,
)
from eurekube_sync.model.ports import Elsewhere, Registry
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds import fakes
from tests.unit.worlds.build import (
    OWNERSHIP,
    REF,
    changed,
    endpoint,
    foreign,
    instance,
    key,
    piece,
    service,
    stored,
    syncer,
)
from tests.unit.worlds.clock import Clock

ONE, TWO, THREE = (f"http://{name}:8761/eureka" for name in ("one", "two", "three"))
DOWN = RegistryUnavailable("GET one failed: the connection was refused")
DENIED = RegistryDenied("GET one was answered 401: Eureka refuses this user or password")
PAGE = RegistryUnusable("GET one was answered 200 with a web page instead of JSON")
STUMBLED = RegistryStumbled("DELETE one was answered 500")
CAUSES = {
    RegistryUnavailable: Cause.UNAVAILABLE,
    RegistryDenied: Cause.DENIED,
    RegistryUnusable: Cause.UNUSABLE,
}

T = TypeVar("T")


@dataclass
class Server(Registry):
    """One server with the rules of the fake registry. Its writes reach `others` while replication
    works."""

    held: fakes.Registry
    trouble: RegistryError | None = None
    """The error of every call."""
    write_trouble: RegistryError | None = None
    """The error of every write."""
    read_trouble: RegistryError | None = None
    """The error of every read of one instance."""
    takes: float = 0
    """The duration of a call in seconds."""
    others: list[Server] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def list_instances(self) -> Source[tuple[ObservedInstance, ...]]:
        self.calls.append("list")
        if self.trouble is not None:
            return Unknown(cause=CAUSES[type(self.trouble)], message=str(self.trouble))
        return self.held.list_instances()

    def read_instance(self, key: InstanceKey) -> ObservedInstance | None:
        return self._answer("read", lambda: self.held.read_instance(key))

    def register(self, instance: Instance, *, dirty_timestamp: int) -> None:
        self._answer(
            "register", lambda: self.held.register(instance, dirty_timestamp=dirty_timestamp)
        )
        for other in self.others:
            other.held.register(instance, dirty_timestamp=dirty_timestamp)

    def renew(self, key: InstanceKey) -> bool:
        renewed = self._answer("renew", lambda: self.held.renew(key))
        for other in self.others if renewed else ():
            if not other.held.renew(key):
                other.held.put(self.held.held[key])
        return renewed

    def cancel(self, key: InstanceKey, *, ours: Callable[[ObservedInstance], bool]) -> bool:
        done = self._answer("cancel", lambda: self.held.cancel(key))
        for other in self.others if done else ():
            other.held.cancel(key)
        return done

    def _answer(self, call: str, effect: Callable[[], T]) -> T:
        self.calls.append(call)
        self.held._clock.sleep(self.takes)
        trouble = self.trouble or (self.read_trouble if call == "read" else None)
        if call in ("register", "renew", "cancel"):
            trouble = trouble or self.write_trouble
        if trouble is not None:
            raise trouble
        return effect()


def peers_of(clock: Clock, *servers: Server) -> list[Peer]:
    """Return these servers at their addresses, in their order."""
    peers = []
    for url, server in zip((ONE, TWO, THREE), servers, strict=False):
        client = cast(EurekaClient, server)
        peers.append(Peer(url=url, client=client, asked=client, clock=clock))
    return peers


class Pair:
    """Two peers, a cluster with two ready pods and a syncer, and a process that can restart."""

    def __init__(self, *, replicating: bool = True) -> None:
        self.world = fakes.FakeWorld()
        self.clock = self.world.clock
        self.one = Server(fakes.Registry(fakes.Wire(), self.clock))
        self.two = Server(fakes.Registry(fakes.Wire(), self.clock))
        if replicating:
            self.one.others, self.two.others = [self.two], [self.one]
        self.world.cluster.apply(service(), piece(endpoint(1), endpoint(2)), syncer())
        self.restart()

    def restart(self, lease_duration: float = 300) -> EurekaPeers:
        """Restart the program. It remembers nothing."""
        every = sweep_seconds(lease_duration)
        self.peers = EurekaPeers(self.both(), clock=self.clock, sweep_seconds=every)
        self.world.registry = self.peers  # type: ignore[assignment]
        return self.peers

    def both(self) -> list[Peer]:
        """Return both, as a process that has just started knows them."""
        return peers_of(self.clock, self.one, self.two)

    def run(self) -> tuple[ExitCode, PassReport]:
        """Run one pass, and count each peer's calls from zero."""
        self.one.calls.clear()
        self.two.calls.clear()
        report = self.world.run()
        return of_report(report, fail_on_held=True, detailed=False), report

    def standing(self) -> tuple[set[InstanceKey], set[InstanceKey]]:
        """Return the keys that each peer holds."""
        return set(self.one.held.held), set(self.two.held.held)


OURS = {key(1), key(2)}


@pytest.fixture
def pair() -> Pair:
    """Two peers that both hold our instances."""
    pair = Pair()
    assert pair.run()[0] is ExitCode.OK
    assert pair.standing() == (OURS, OURS)
    return pair


class TestAddresses:
    def test_commas_divide_as_in_spring(self) -> None:
        """Each address has its own login. Blanks between commas are ignored, and the order is
        kept."""
        found = parse_addresses("http://ann:s3cret@one:8761/eureka/, ,https://two/eureka,")
        assert [(one.url, one.login and one.login.user) for one in found] == [
            ("http://one:8761/eureka", "ann"),
            ("https://two/eureka", None),
        ]

    def test_one_given_twice_is_one(self) -> None:
        """A slash at the end and upper case make no difference."""
        assert len(parse_addresses("http://one/eureka,http://ONE/eureka/")) == 1

    def test_one_given_twice_with_two_logins_is_refused(self) -> None:
        """The intended login is unknown. The error shows neither password."""
        with pytest.raises(ConfigurationError, match="given twice") as caught:
            parse_addresses("http://ann:s3cret@one/eureka,http://ann:0ther@one/eureka")
        assert "s3cret" not in str(caught.value)
        assert "0ther" not in str(caught.value)

    def test_a_wrong_one_is_named_by_its_place(self) -> None:
        """The error gives the address's number. It does not quote the address, which may hold part
        of a password."""
        with pytest.raises(ConfigurationError, match=r"of 2 Eureka URLs, number 1.*%2C") as caught:
            parse_addresses("http://ann:s3c,ret@one/eureka")
        assert "s3c" not in str(caught.value)

    def test_a_single_wrong_one_is_refused_in_the_same_words_as_ever(self) -> None:
        """With one address, the error gives no number."""
        with pytest.raises(
            ConfigurationError, match=r"^the Eureka URL .one:8761/eureka. needs http or https"
        ):
            parse_addresses("one:8761/eureka")
        with pytest.raises(ConfigurationError, match=r"^the Eureka URL '' needs http or https"):
            parse_addresses("")


class TestChoice:
    def test_all_calls_go_to_the_first_peer(self, pair: Pair) -> None:
        """After a sweep has listed all peers, the second peer gets no calls."""
        assert pair.run()[0] is ExitCode.OK
        assert pair.two.calls == []

    @pytest.mark.parametrize("call", ["read", "register", "renew", "cancel"])
    def test_a_failed_call_is_sent_to_the_next_peer_at_once(self, call: str, pair: Pair) -> None:
        """Later calls also go to the next peer, without another try on the first."""
        pair.clock.sleep(REPLICATION_SECONDS)  # the registrations are replicated by now
        pair.one.calls.clear()
        pair.two.calls.clear()
        pair.one.trouble = DOWN
        calls: dict[str, Callable[[], object]] = {
            "read": lambda: pair.peers.read_instance(key(1)),
            "register": lambda: pair.peers.register(instance(1), dirty_timestamp=2_000_000_000_000),
            "renew": lambda: pair.peers.renew(key(1)),
            "cancel": lambda: pair.peers.cancel(key(1), ours=OWNERSHIP.holds),
        }
        calls[call]()
        calls[call]()
        assert pair.one.calls == [call]
        assert pair.two.calls.count(call) == 2

    def test_a_list_that_is_not_to_be_had_is_taken_from_the_next(self, pair: Pair) -> None:
        """A peer that is down or warming up costs a pass one failed try."""
        pair.one.trouble = DOWN
        code, report = pair.run()
        assert code is ExitCode.OK
        assert isinstance(report.registry, Complete)
        assert pair.one.calls == ["list"]
        assert pair.run()[0] is ExitCode.OK
        assert pair.one.calls == []

    def test_the_first_peer_is_used_again_after_a_while_not_within_a_pass(
        self, pair: Pair, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A list ends a peer's rest. A warning reports the start of the rest. One line reports its
        end and its length."""
        caplog.set_level(logging.INFO)
        pair.one.trouble = DOWN
        pair.run()
        pair.one.trouble = None
        pair.clock.sleep(FIRST_REST_SECONDS)
        pair.one.calls.clear()
        assert pair.peers.renew(key(1))
        assert pair.one.calls == []
        assert pair.run()[0] is ExitCode.OK
        assert pair.one.calls[0] == "list"
        assert "renew" in pair.one.calls
        assert [
            (record.levelname, record.getMessage().split(": ")[0]) for record in caplog.records
        ] == [
            ("WARNING", f"skipping Eureka peer {ONE} until it works"),
            ("INFO", f"Eureka peer {ONE} works again, after 10s"),
        ]

    def test_a_failing_peer_is_skipped_ever_longer_and_reported_once(
        self, pair: Pair, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A single failure leaves the peer out for seconds only. A peer that is away costs few
        timeouts. The rests are short again after a call that works."""
        caplog.set_level(logging.INFO)
        pair.one.trouble = DOWN
        pair.one.calls.clear()
        tried = []
        for second in range(1400):
            pair.peers.list_instances()
            if pair.one.calls:
                tried.append(second)
                pair.one.calls.clear()
            pair.clock.sleep(1)
        rests = [later - earlier for earlier, later in itertools.pairwise(tried)]
        assert rests == [10, 20, 40, 80, 160, REST_SECONDS, REST_SECONDS, REST_SECONDS]
        pair.one.trouble = None
        pair.clock.sleep(REST_SECONDS)
        pair.peers.list_instances()
        pair.one.trouble = DOWN
        pair.peers.list_instances()
        pair.clock.sleep(FIRST_REST_SECONDS)
        pair.one.calls.clear()
        pair.peers.list_instances()
        assert pair.one.calls == ["list"]
        assert [record.levelname for record in caplog.records] == ["WARNING", "INFO", "WARNING"]
        assert caplog.messages[1].endswith("works again, after 28m20s")

    def test_many_calls_that_fail_at_once_are_one_failure(self, pair: Pair) -> None:
        """The renewals of a pass run in many threads, and one outage fails them all."""
        peer, _ = pair.both()
        for _ in range(16):
            peer.rest(Unknown(cause=Cause.UNAVAILABLE, message="timed out"))
        assert peer.is_resting
        pair.clock.sleep(FIRST_REST_SECONDS)
        peer.end_rest()
        assert not peer.is_resting

    def test_while_all_are_down_the_registry_is_unknown_and_each_is_named(self, pair: Pair) -> None:
        """One sentence holds the error of each peer. The exit code says that Eureka cannot be
        read."""
        pair.one.trouble = DOWN
        pair.two.trouble = RegistryUnavailable(
            "GET two was answered 503: Eureka is overloaded or down"
        )
        code, report = pair.run()
        assert code is ExitCode.EUREKA_UNREAD
        assert report.registry == Unknown(
            cause=Cause.UNAVAILABLE,
            message="no Eureka peer could be used: GET one failed: the connection was refused; "
            "and GET two was "
            "answered 503: Eureka is overloaded or down",
        )
        with pytest.raises(RegistryUnavailable, match=r"GET one failed.*and GET two"):
            pair.peers.renew(key(1))
        assert pair.standing() == (OURS, OURS)

    def test_after_all_were_down_the_one_that_is_back_is_used(self, pair: Pair) -> None:
        """The peer is tried before its rest is over. The other peer is not tried after it has
        answered."""
        pair.one.trouble = pair.two.trouble = DOWN
        pair.run()
        pair.two.trouble = None
        assert pair.run()[0] is ExitCode.OK
        assert pair.one.calls == ["list"]
        assert pair.run()[0] is ExitCode.OK
        assert pair.one.calls == []

    def test_without_time_nothing_is_tried_and_no_peer_is_blamed(self, pair: Pair) -> None:
        """If the time of a pass is over, the next pass starts with the first peer."""
        limit = TimeLimit(pair.clock)
        peers = EurekaPeers(pair.both(), clock=pair.clock, limit=limit)
        pair.one.calls.clear()
        limit.end = pair.clock.monotonic()
        with pytest.raises(RegistryUnavailable, match="no Eureka peer was tried"):
            peers.renew(key(1))
        listed = peers.list_instances()
        assert isinstance(listed, Unknown)
        assert "no Eureka peer was tried" in listed.message
        limit.end = pair.clock.monotonic() + 1
        assert peers.renew(key(1))
        assert pair.one.calls == ["renew"]

    def test_a_peer_that_uses_up_the_time_is_left_alone_afterwards(self, pair: Pair) -> None:
        """The next peer is not called when no time is left. It gets the calls that follow."""
        limit = TimeLimit(pair.clock)
        peers = EurekaPeers(pair.both(), clock=pair.clock, limit=limit)
        limit.end = pair.clock.monotonic() + 1
        pair.one.trouble = DOWN
        pair.one.takes = 2
        pair.two.calls.clear()
        with pytest.raises(RegistryUnavailable, match="GET one failed"):
            peers.renew(key(1))
        assert pair.two.calls == []
        limit.end = pair.clock.monotonic() + 1
        assert peers.renew(key(1))
        assert pair.two.calls == ["renew"]

    def test_a_refused_instance_is_not_carried_to_the_next_peer(self, pair: Pair) -> None:
        """The refusal concerns the instance, so the peer stays in use."""
        pair.one.write_trouble = RegistryRejected("Eureka refuses the instance")
        with pytest.raises(RegistryRejected):
            pair.peers.register(instance(1), dirty_timestamp=1)
        pair.one.write_trouble = None
        pair.two.calls.clear()
        assert pair.peers.renew(key(1))
        assert pair.two.calls == []

    def test_after_a_500_the_next_peer_is_tried_and_the_first_stays_in_use(
        self, pair: Pair, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The peer may be broken, or may fail at this instance. Another peer may accept the
        instance."""
        pair.one.write_trouble = RegistryStumbled(
            "POST one was answered 500: Eureka refuses the instance"
        )
        pair.two.calls.clear()
        pair.peers.register(instance(1), dirty_timestamp=2_000_000_000_000)
        assert pair.two.calls == ["register"]
        pair.two.write_trouble = RegistryStumbled(
            "POST two was answered 500: Eureka refuses the instance"
        )
        with pytest.raises(RegistryRejected, match="500"):
            pair.peers.register(instance(1), dirty_timestamp=2_000_000_000_001)
        assert not caplog.messages
        pair.one.write_trouble = None
        assert pair.peers.renew(key(1))
        assert pair.two.calls == ["register", "register"]

    def test_an_error_of_all_peers_is_reported_once(
        self, pair: Pair, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The fix for a login or for CSRF protection is a long text, and the same for each peer."""
        for peer, name in ((pair.one, ONE), (pair.two, TWO)):
            peer.write_trouble = RegistryDenied(
                f"PUT {name}/apps/A/b was answered 403: ignore it in the server"
            )
        with pytest.raises(RegistryDenied) as caught:
            pair.peers.renew(key(1))
        assert str(caught.value) == (
            f"no Eureka peer could be used: {ONE} and {TWO} failed in the same way: PUT "
            f"{ONE}/apps/A/b was answered "
            "403: ignore it in the server"
        )
        assert [message.split(": ", 1)[1] for message in caplog.messages] == [
            f"PUT {name}/apps/A/b was answered 403: ignore it in the server" for name in (ONE, TWO)
        ]

    def test_many_threads_that_meet_a_dead_peer_all_get_their_answer(self, pair: Pair) -> None:
        """Whichever thread notices the failure first, the peer begins one rest."""
        pair.one.trouble = DOWN
        answers: list[bool] = []
        threads = [
            threading.Thread(target=lambda: answers.append(pair.peers.renew(key(1))))
            for _ in range(16)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [True] * 16


class TestRefusals:
    @pytest.mark.parametrize(
        ("trouble", "code"), [(DENIED, ExitCode.EUREKA_DENIED), (PAGE, ExitCode.EUREKA_UNREAD)]
    )
    def test_a_refused_list_is_reported_and_no_lease_expires(
        self, trouble: RegistryError, code: ExitCode, pair: Pair
    ) -> None:
        """The registry is Unknown in each pass, so nothing is removed. The renewals go to the next
        peer."""
        pair.one.trouble = trouble
        pair.world.cluster.apply(piece(endpoint(1)))
        for _ in range(2):
            found, report = pair.run()
            assert found is code
            assert isinstance(report.registry, Unknown)
            assert report.registry.message == (
                f"{trouble}. No other peer's list is taken instead; renewals go to the next peer"
            )
            assert pair.one.calls == ["list"]
            assert pair.two.calls == ["renew", "renew"], (
                "also of the pod that is gone: nothing is removed"
            )
            assert report.outcomes.count(Result.DONE) == 1
        assert pair.standing() == (OURS, OURS)

    def test_refused_writes_go_to_the_next_peer_with_a_warning(
        self, pair: Pair, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The first peer's list stays in use. But a list does not show that writes work, so they
        stay with the next peer."""
        pair.one.write_trouble = RegistryDenied("PUT one was answered 403: CSRF")
        for calls_to_the_first in (["list", "renew"], ["list"]):
            assert pair.run()[0] is ExitCode.OK
            assert pair.one.calls == calls_to_the_first
            assert pair.two.calls == ["renew", "renew"]
        assert [record.getMessage() for record in caplog.records] == [
            f"skipping Eureka peer {ONE} until it works: PUT one was answered 403: CSRF"
        ]

    def test_a_refusal_outweighs_an_outage(self, pair: Pair) -> None:
        """If no peer can be used, the error is the one that a person must fix."""
        pair.one.trouble, pair.two.trouble = DOWN, DENIED
        with pytest.raises(RegistryDenied, match="no Eureka peer could be used"):
            pair.peers.renew(key(1))
        pair.two.trouble = PAGE
        with pytest.raises(RegistryUnusable):
            pair.peers.renew(key(1))

    def test_a_cancel_that_another_peer_refuses_has_failed(self, pair: Pair) -> None:
        """Callers may still find the instance on that peer. So its syncer's finalizer stays."""
        pair.two.trouble = DENIED
        pair.clock.sleep(6)
        with pytest.raises(RegistryDenied):
            pair.peers.cancel(key(1), ours=OWNERSHIP.holds)
        assert key(1) not in pair.one.held.held


class TestGhosts:
    def test_an_undesired_instance_of_ours_is_cancelled_on_the_peer_that_holds_it(self) -> None:
        """The instance is read on that peer first. A desired instance and another owner's instance
        stay."""
        pair = Pair(replicating=False)
        gone, other = stored(instance(9)), foreign()
        pair.two.held.put(stored(instance(1)), gone, other)
        code, _ = pair.run()
        assert code is ExitCode.OK
        assert pair.standing() == (OURS, {key(1), other.key})
        assert pair.two.calls.index("read") < pair.two.calls.index("cancel")

    def test_an_undesired_instance_that_another_owner_took_over_stays(self, pair: Pair) -> None:
        """The list shows the instance as ours, but the uncached read does not."""
        ghost = stored(instance(9))
        pair.two.others = []
        pair.two.held.put(ghost)
        listing = pair.two.list_instances()
        pair.two.held.put(stored(instance(9), metadata={"eurekube.owner": "another"}))
        pair.two.list_instances = lambda: listing  # type: ignore[method-assign]
        pair.restart()
        assert pair.run()[0] is ExitCode.OK
        assert key(9) in pair.two.held.held
        assert "register" not in pair.one.calls + pair.two.calls
        assert "cancel" not in pair.one.calls + pair.two.calls

    def test_a_cancel_leaves_anothers_instance_under_the_same_key(self, pair: Pair) -> None:
        """The owner is checked on each peer separately. The pause is longer than a replication
        takes; right after a registration, the other peer would not be called at all."""
        pair.one.others = []
        pair.clock.sleep(REPLICATION_SECONDS + 1)
        pair.two.held.put(stored(instance(1), metadata={"eurekube.owner": "another"}))
        assert pair.peers.cancel(key(1), ours=OWNERSHIP.holds)
        assert pair.standing() == (OURS - {key(1)}, OURS)

    @pytest.mark.parametrize("is_read", [True, False])
    def test_a_cancel_that_the_first_peer_failed_leaves_anothers_on_the_next(
        self, is_read: bool, pair: Pair
    ) -> None:
        """The caller has read the instance on the first peer alone."""
        pair.clock.sleep(REPLICATION_SECONDS + 1)
        pair.peers.list_instances()
        pair.two.held.put(stored(instance(1), metadata={"eurekube.owner": "another"}))
        if is_read:
            pair.peers.read_instance(key(1))
        pair.one.write_trouble = DOWN
        assert not pair.peers.cancel(key(1), ours=OWNERSHIP.holds)
        assert pair.standing() == (OURS, OURS)

    def test_a_cancel_that_another_peer_no_longer_needs_is_done(self, pair: Pair) -> None:
        """Replication removed the instance there between the read and the cancel, which is a
        404."""
        pair.one.others = []
        pair.clock.sleep(REPLICATION_SECONDS + 1)
        pair.two.cancel = lambda key, *, ours: False  # type: ignore[method-assign]
        assert pair.peers.cancel(key(1), ours=OWNERSHIP.holds)

    def test_a_cancel_reaches_every_peer_without_replication(self, pair: Pair) -> None:
        """The call cancels on every peer itself, in case replication is cut. A peer that is down is
        left out."""
        pair.one.others = []
        pair.clock.sleep(6)
        assert pair.peers.cancel(key(1), ours=OWNERSHIP.holds)
        assert pair.standing() == ({key(2)}, {key(2)})
        pair.two.trouble = DOWN
        assert pair.peers.cancel(key(2), ours=OWNERSHIP.holds)
        pair.two.calls.clear()
        assert not pair.peers.cancel(key(2), ours=OWNERSHIP.holds)
        assert pair.two.calls == []

    def test_on_every_peer_the_replacement_is_registered_before_the_cancel(
        self, pair: Pair
    ) -> None:
        """The second peer may not have the new registration yet. So the cancel also reaches it by
        replication only, in the same order."""
        pair.one.others = []  # its registrations are not replicated yet
        pair.peers.register(instance(3), dirty_timestamp=int(pair.clock.now() * 1000))
        assert pair.peers.cancel(key(1), ours=OWNERSHIP.holds)
        assert pair.standing() == ({key(2), key(3)}, OURS)
        pair.clock.sleep(6)
        assert pair.peers.cancel(key(1), ours=OWNERSHIP.holds)
        assert pair.standing() == ({key(2), key(3)}, {key(2)})

    def test_the_brake_counts_undesired_instances_of_one_peer(self) -> None:
        """The first peer lost its instances, and the cluster shows no pods. The second peer's
        instances are not removed."""
        pair = Pair(replicating=False)
        pair.world.cluster.apply(piece())
        pair.two.held.put(*(stored(instance(number)) for number in range(1, 31)))
        code, report = pair.run()
        assert code is ExitCode.REMOVAL_HELD
        assert report.held is not None
        assert len(report.held.removals) == 30
        assert len(pair.two.held.held) == 30
        pair.run()
        assert pair.two.calls.count("renew") == 30, "what is held is renewed where it stands"

    def test_a_desired_instance_that_only_lags_is_left_alone(self, pair: Pair) -> None:
        """The lists show it on the second peer only, but the first peer has it by now. So it is
        only renewed."""
        pair.one.held.put(foreign())
        listing: Source[tuple[ObservedInstance, ...]] = Complete(data=(foreign(),))
        pair.one.list_instances = lambda: listing  # type: ignore[method-assign]
        pair.restart()
        code, report = pair.run()
        assert code is ExitCode.OK
        assert not report.plan.changes
        assert {"register", "cancel"}.isdisjoint(pair.one.calls + pair.two.calls)

    def test_a_desired_instance_that_the_first_peer_lost_is_registered_there(
        self, pair: Pair
    ) -> None:
        """The sweep finds it on the second peer. The same pass registers it again on the first."""
        pair.one.held.cancel(key(1))
        pair.restart()
        code, report = pair.run()
        assert code is ExitCode.OK
        assert report.outcomes.by_key[key(1)].result is Result.REGISTERED_AGAIN
        assert pair.standing() == (OURS, OURS)

    def test_a_kept_instance_on_one_peer_alone_is_renewed_there(self, pair: Pair) -> None:
        """There is no proof for its removal, so its lease must not expire."""
        pair.one.held.cancel(key(1))
        pair.two.others = []
        pair.world.cluster.services.clear()
        pair.restart()
        for renewals in (0, 1, 0):
            assert pair.run()[0] is ExitCode.OK
            assert pair.two.calls.count("renew") == renewals
        assert pair.standing() == ({key(2)}, OURS)

    def test_it_is_renewed_there_every_30_s_and_not_once_a_sweep(self, pair: Pair) -> None:
        """The interval of a daemon's passes makes no difference. More renewals would distort the
        server's self-preservation."""
        pair.one.held.cancel(key(1))
        pair.two.others = []
        pair.world.cluster.services.clear()
        pair.restart()
        renewed = []
        for _ in range(30):
            pair.run()
            renewed += [pair.clock.now()] * pair.two.calls.count("renew")
            pair.clock.sleep(10)
        assert len(renewed) == 10
        assert gaps(renewed) <= 30
        pair.two.held.cancel(key(1))
        for _ in range(8):
            pair.run()
            pair.clock.sleep(10)
        assert "renew" not in pair.two.calls, "what is gone there is forgotten"

    @pytest.mark.parametrize("duration", [90, 100, 120, 150, 240, 300, 600])
    @pytest.mark.parametrize("passes", [1, 2, None])
    def test_a_kept_instance_on_one_peer_does_not_expire_even_with_short_leases(
        self, pair: Pair, duration: int, passes: int | None
    ) -> None:
        """The process is a CronJob with one or two passes a minute, or a daemon. A process renews
        only instances that it knows of."""
        pair.one.others = pair.two.others = []
        pair.one.held.cancel(key(1))
        pair.world.cluster.services.clear()
        for key_, standing in pair.two.held.held.items():
            pair.two.held.held[key_] = changed(standing, lease=LeaseTimes(10, duration))
        pair.restart(duration)
        pair.two.held.renew(key(1))
        for number in range(60):
            pair.clock.sleep(30 if passes == 2 else 60 if passes else 10)
            if passes and not number % passes:
                pair.peers.renew_strays()
                pair.restart(duration)
            pair.two.held.evict()
            assert key(1) in pair.two.held.held
            pair.run()
        pair.peers.renew_strays()

    def test_an_id_that_others_have_on_a_later_peer_is_not_registered(self) -> None:
        """Their instance has no owner mark, so the sweep does not report it. The other instances
        are registered."""
        pair = Pair()
        theirs = changed(foreign(), key=key(1))
        pair.two.held.put(theirs)
        pair.run()
        assert pair.standing() == ({key(2)}, OURS)
        assert pair.two.held.held[key(1)] == theirs

    def test_an_id_that_others_have_on_a_later_peer_is_not_registered_again(
        self, pair: Pair
    ) -> None:
        """The first peer lost our lease, but its cached list still shows the instance."""
        theirs = changed(foreign(), key=key(1))
        pair.two.held.held[key(1)] = theirs
        pair.one.held.cached_for(60)
        del pair.one.held.held[key(1)]
        _, report = pair.run()
        assert report.outcomes.by_key[key(1)].result is Result.CONFLICT
        assert pair.two.held.held[key(1)] == theirs

    def test_while_a_later_peer_is_away_ids_are_registered_all_the_same(self) -> None:
        """The later peer is asked once, and its instances are unknown."""
        pair = Pair()
        pair.run()
        pair.world.cluster.apply(piece(*(endpoint(number) for number in range(1, 5))))
        pair.two.trouble = DOWN
        pair.clock.sleep(30)
        pair.run()
        assert set(pair.one.held.held) == {key(number) for number in range(1, 5)}
        assert pair.two.calls == ["read"]

    def test_an_id_is_not_free_when_no_time_is_left_to_ask_a_later_peer(self, pair: Pair) -> None:
        """The later peer does not begin a rest because of this."""
        limit = TimeLimit(pair.clock)
        peers = EurekaPeers(pair.both(), clock=pair.clock, limit=limit)
        limit.end = pair.clock.monotonic() + 1
        pair.one.takes = 1
        with pytest.raises(RegistryUnavailable):
            peers.read_everywhere(key(9))
        limit.end = pair.clock.monotonic() + 2
        pair.two.takes, pair.two.trouble = (
            2,
            RegistryUnavailable("GET two was not answered in time"),
        )
        with pytest.raises(RegistryUnavailable):
            peers.read_everywhere(key(9))

    def test_an_id_is_not_free_when_a_later_peer_refuses_to_read_it(self, pair: Pair) -> None:
        """The refusal concerns the instance, so the peer stays in use."""
        pair.two.trouble = RegistryRejected("GET two was answered 400: it refuses the instance")
        for _ in range(2):
            with pytest.raises(RegistryRejected):
                pair.peers.read_everywhere(key(9))
        pair.two.trouble = None
        assert pair.peers.read_everywhere(key(9)) is None

    @pytest.mark.parametrize("trouble", [DOWN, DENIED, PAGE], ids=["down", "401", "page"])
    def test_a_later_peer_that_gives_no_answer_to_anybody_is_passed_over(
        self, trouble: RegistryError, pair: Pair
    ) -> None:
        """A wrong password on one server must not stop all registrations."""
        pair.two.trouble = trouble
        assert pair.peers.read_everywhere(key(9)) is None

    def test_an_undesired_instance_waits_when_its_peer_fails_after_the_list(
        self, pair: Pair
    ) -> None:
        """The pass continues without the instance, and the first peer stays in use."""
        pair.two.others = []
        pair.two.held.put(stored(instance(9)))
        assert isinstance(pair.restart().list_instances(), Complete)
        pair.two.trouble = DOWN
        assert pair.peers.read_instance(key(9)) is None
        assert not pair.peers.renew(key(9))
        pair.one.calls.clear()
        assert pair.peers.renew(key(1))
        assert pair.one.calls == ["renew"]

    def test_a_failed_renewal_on_the_only_peer_of_an_instance_is_no_error(self, pair: Pair) -> None:
        """The result is that of the first peer, and so is the next list."""
        pair.two.others = []
        pair.two.held.put(stored(instance(9)))
        pair.restart().list_instances()
        assert not pair.peers.renew(key(9))
        pair.two.write_trouble = DOWN
        assert isinstance(pair.peers.list_instances(), Complete)
        assert pair.two.calls[-1] == "renew"

    def test_an_undesired_instance_on_one_of_several_peers_is_found(self) -> None:
        """With three peers, the second may lack an instance that the third holds."""
        pair = Pair(replicating=False)
        third = Server(fakes.Registry(fakes.Wire(), pair.clock))
        third.held.put(stored(instance(9)))
        pair.two.held.put(stored(instance(9)))
        peers = EurekaPeers(peers_of(pair.clock, pair.one, pair.two, third), clock=pair.clock)
        assert isinstance(peers.list_instances(), Complete)
        pair.two.held.cancel(key(9))
        assert peers.read_instance(key(9)) is not None
        assert peers.cancel(key(9), ours=OWNERSHIP.holds)
        assert not third.held.held


class TestSweeps:
    def test_a_daemon_lists_every_peer_once_in_each_stretch(self, pair: Pair) -> None:
        """In an hour of passes every 10 s, two sweeps are at most ten minutes apart. There are few
        sweeps."""
        swept = sweeps(pair, seconds=3600, interval=10)
        assert len(swept) == 3600 / SWEEP_SECONDS + 0.5
        assert gaps(swept) <= 600

    def test_processes_of_a_minute_list_every_peer_by_the_wall_clock(self, pair: Pair) -> None:
        """Each process of a CronJob starts late and makes two passes. No gap between sweeps is
        longer than ten minutes."""
        swept = sweeps(pair, seconds=7200, interval=30, process=60, late=7)
        assert gaps(swept) <= 600
        assert len(swept) <= 2 * 7200 / SWEEP_SECONDS

    def test_a_process_that_begins_later_in_a_stretch_waits_for_the_next(self, pair: Pair) -> None:
        """Earlier processes have made the sweep of this stretch."""
        pair.clock.sleep(SWEEP_MARGIN_SECONDS)
        pair.restart()
        pair.run()
        assert pair.two.calls == []

    def test_a_peer_that_cannot_be_listed_is_reported_and_the_pass_continues(
        self, pair: Pair, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A wrong password for the second peer is reported before that peer is needed."""
        pair.two.trouble = DENIED
        pair.restart()
        assert pair.run()[0] is ExitCode.OK
        assert caplog.messages == [
            f"the Eureka peer {TWO} could not be listed, so instances that only it holds are "
            f"unknown: {DENIED}"
        ]

    def test_a_sweep_that_failed_is_owed_and_made_with_the_next_list(
        self, pair: Pair, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It does not wait eight minutes. Repeated equal failures are reported once."""
        pair.two.trouble = DENIED
        pair.restart()
        for _ in range(3):
            pair.run()
            assert pair.two.calls == ["list"]
            pair.clock.sleep(30)
        assert len(caplog.messages) == 1
        pair.two.trouble = None
        pair.two.others = []
        pair.two.held.put(stored(instance(9)))
        pair.run()
        assert key(9) not in pair.two.held.held
        pair.run()
        assert "list" not in pair.two.calls

    def test_a_peer_that_is_used_again_is_swept_with_the_next_list(self, pair: Pair) -> None:
        """Instances that were cancelled during its rest are cancelled there, even if no sweep is
        due."""
        pair.one.trouble = DOWN
        pair.one.others = pair.two.others = []
        pair.world.cluster.apply(piece(endpoint(1)))
        pair.run()
        assert key(2) in pair.one.held.held
        pair.one.trouble = None
        pair.clock.sleep(REST_SECONDS)
        pair.run()
        pair.run()
        assert pair.standing() == ({key(1)}, {key(1)})

    def test_a_peer_that_has_just_failed_is_not_listed_again(self, pair: Pair) -> None:
        """A pass tries a peer once."""
        pair.one.trouble = DOWN
        pair.restart()
        pair.run()
        assert pair.one.calls == ["list"]

    def test_an_instance_of_one_peer_follows_that_peers_list_once_it_is_first(
        self, pair: Pair
    ) -> None:
        """A sweep found the instance there while the other peer was the first. The peer has
        cancelled it since."""
        pair.one.others = pair.two.others = []
        first, second = pair.both()
        peers = EurekaPeers([first, second], clock=pair.clock)
        pair.one.trouble = DOWN
        peers.list_instances()
        pair.two.held.cancel(key(1))
        pair.one.trouble = None
        first.came_back()
        assert listed_by(peers) == OURS
        pair.one.held.cancel(key(1))
        assert listed_by(peers) == {key(2)}

    def test_a_stray_that_its_peer_holds_no_more_is_not_shown_again(self, pair: Pair) -> None:
        """Another cluster's instance, although cancelled, would stop every pass until the next
        sweep."""
        pair.two.others = []
        pair.two.held.put(stored(instance(9), metadata={"eurekube.owner": "another"}))
        peers = pair.restart()
        for shown in (True, False):
            listed = peers.list_instances()
            assert isinstance(listed, Complete)
            assert (key(9) in {one.key for one in listed.data}) is shown
            pair.two.held.cancel(key(9))

    def test_strays_of_no_owner_are_not_shown(self, pair: Pair) -> None:
        """Delays in the replication of other applications do not concern us."""
        pair.two.held.put(foreign())
        listed = pair.restart().list_instances()
        assert isinstance(listed, Complete)
        assert {one.key for one in listed.data} == OURS


def listed_by(peers: EurekaPeers) -> set[InstanceKey]:
    """Return the keys that their next list shows."""
    listed = peers.list_instances()
    assert isinstance(listed, Complete)
    return {one.key for one in listed.data}


def sweeps(
    pair: Pair, *, seconds: float, interval: float, process: float = 0, late: float = 0
) -> list[float]:
    """Return when the second peer was listed. With `process`, a new process starts that often, and
    makes its first pass `late` seconds later."""
    pair.restart()
    begin = pair.clock.now()
    found = []
    while (elapsed := pair.clock.now() - begin) < seconds:
        if process and elapsed % process < interval:
            pair.restart()
            pair.clock.sleep(late)
        pair.two.calls.clear()
        pair.peers.list_instances()
        found += [pair.clock.now()] * pair.two.calls.count("list")
        pair.clock.sleep(interval - (late if process and elapsed % process < interval else 0))
    return found


def gaps(times: list[float]) -> float:
    """The longest time between two of them."""
    return max(later - earlier for earlier, later in itertools.pairwise(times))


STRANGER = stored(instance(1), metadata={"eurekube.owner": "another"})


class TestStrangers:
    """A peer has another owner's instance under our id."""

    @pytest.fixture
    def apart(self) -> Pair:
        """Two peers that do not replicate, and hold nothing of ours."""
        return Pair(replicating=False)

    @pytest.mark.parametrize(
        "trouble",
        [
            RegistryDenied("GET two was answered 403"),
            RegistryUnavailable("GET two was answered 503"),
            PAGE,
        ],
        ids=lambda trouble: type(trouble).__name__,
    )
    def test_what_a_peer_could_not_show_is_not_free_there(
        self, trouble: RegistryError, apart: Pair
    ) -> None:
        """The first peer shows that the id is free, and then fails. Nothing is registered on the
        second one unread."""
        apart.two.held.put(STRANGER)
        apart.two.read_trouble = trouble
        apart.one.write_trouble = RegistryUnavailable("POST one was answered 503")
        apart.run()
        assert apart.two.held.held[key(1)].instance == STRANGER.instance
        assert "register" not in apart.two.calls

    def test_a_stranger_that_appears_on_the_next_peer_stays(self, apart: Pair) -> None:
        """It was not read in this pass, because the registered instance was found on the first
        peer."""
        apart.run()
        apart.two.held.held[key(1)] = STRANGER
        apart.peers.list_instances()
        assert apart.peers.read_instance(key(1)) is not None
        apart.one.write_trouble = RegistryUnavailable("POST one was answered 503")
        with pytest.raises(
            RegistryRejected,
            match=f"{TWO} has another owner's instance with the id that ours needs",
        ):
            apart.peers.register(instance(1), dirty_timestamp=10**15)
        assert apart.two.held.held[key(1)].instance == STRANGER.instance

    def test_the_next_peer_gets_what_it_shows_free_or_ours(self, apart: Pair) -> None:
        """It costs a read, and no pass."""
        apart.one.write_trouble = RegistryUnavailable("POST one was answered 503")
        apart.run()
        assert apart.standing() == (set(), OURS)
        apart.world.cluster.apply(piece(endpoint(1, ready=False), endpoint(2)))
        apart.run()
        assert apart.two.held.held[key(1)].status is InstanceStatus.DOWN

    def test_a_renewal_that_found_nothing_shows_that_the_id_is_free(self, apart: Pair) -> None:
        """The peer's reads fail, and its writes work."""
        apart.one.read_trouble = apart.two.read_trouble = RegistryUnavailable(
            "GET was answered 500"
        )
        apart.one.held.unreadable = apart.two.held.unreadable = Unknown(
            cause=Cause.UNAVAILABLE, message="500"
        )
        apart.run()
        assert apart.standing() == (OURS, set())


def test_a_syncer_that_is_deleted_leaves_nothing_on_either_peer(pair: Pair) -> None:
    """This holds even if replication is cut and only the second peer has the instances."""
    pair.one.others = pair.two.others = []
    pair.run()
    pair.world.cluster.delete(REF)
    pair.clock.sleep(6)
    pair.run()
    assert pair.standing() == (set(), set())
    pair.clock.sleep(60)
    pair.run()
    assert REF not in pair.world.cluster.syncers


def test_a_deletion_asks_a_peer_anew_that_failed_once(pair: Pair) -> None:
    """The peer works again, but its rest is not over. The deletion does not wait for the end of the
    rest."""
    pair.run()
    pair.world.cluster.delete(REF)
    pair.clock.sleep(6)
    pair.run()
    for _ in range(6):  # each rest is longer than the last
        pair.two.trouble = RegistryUnavailable("timed out")
        pair.peers.list_elsewhere(Complete(data=()))
        pair.peers.list_instances()
        pair.clock.sleep(REST_SECONDS / 2)
    pair.peers.list_elsewhere(Complete(data=()))
    assert pair.peers.unreached() == (TWO,)
    pair.two.trouble = None
    pair.clock.sleep(FIRST_REST_SECONDS)
    pair.run()
    assert REF not in pair.world.cluster.syncers


def test_a_deletion_asks_no_peer_twice_that_has_just_failed(pair: Pair) -> None:
    """A second try would cost each pass another timeout."""
    pair.peers.list_instances()
    pair.two.trouble = RegistryUnavailable("timed out")
    pair.two.calls.clear()
    for _ in range(2):
        assert pair.peers.list_elsewhere(Complete(data=())).unseen == (TWO,)
    assert pair.two.calls == ["list"]


def test_a_cancel_whose_answer_was_lost_is_left_to_replication_as_well(pair: Pair) -> None:
    """The first peer answers the second try with 404. Its replication of the cancel, and of the new
    instance, is still on its way."""
    pair.run()
    pair.clock.sleep(6)
    pair.one.others = []
    pair.peers.register(instance(3), dirty_timestamp=2_000_000_000_000)
    pair.one.held.cancel(key(1))
    assert not pair.peers.cancel(key(1), ours=OWNERSHIP.holds)
    assert pair.standing() == ({key(2), key(3)}, OURS)


@pytest.fixture
def three() -> tuple[EurekaPeers, list[Server]]:
    """Three peers. The first has taken the successor of an instance, and fails before it replicates
    it. The second lacks the instance; the third has it."""
    world = fakes.FakeWorld()
    servers = [Server(fakes.Registry(fakes.Wire(), world.clock)) for _ in range(3)]
    first, second, third = servers
    for server in (first, third):
        server.held.put(stored(instance(1)))
    second.others = [third]
    peers = EurekaPeers(peers_of(world.clock, *servers), clock=world.clock)
    peers.list_instances()
    peers.register(instance(2), dirty_timestamp=2_000_000_000_000)
    first.write_trouble = DOWN
    return peers, servers


def test_a_down_is_registered_through_no_peer_without_the_successor(
    three: tuple[EurekaPeers, list[Server]],
) -> None:
    """Whether it has the instance or not: it would replicate the DOWN to a third peer."""
    peers, (_, _, third) = three
    down = instance(1, status=InstanceStatus.DOWN)
    with pytest.raises(RegistryError):
        peers.register(down, dirty_timestamp=2_000_000_000_001)
    assert third.held.held[key(1)].status is InstanceStatus.UP


def test_a_cancel_that_reached_nobody_is_not_done(
    three: tuple[EurekaPeers, list[Server]],
) -> None:
    """The second peer answers 404, and replicates nothing to the third, which lacks the
    successor."""
    peers, (_, _, third) = three
    with pytest.raises(RegistryError):
        peers.cancel(key(1), ours=OWNERSHIP.holds)
    assert key(1) in third.held.held


@pytest.mark.parametrize("ago", [-4, 0, 4, 6])
def test_a_cancel_right_after_a_registration_of_another_process_is_left_to_replication(
    ago: float, pair: Pair
) -> None:
    """Instances that stay are read before any cancel, and their timestamps show how new they are.
    The two clocks may differ."""
    pair.run()
    pair.clock.sleep(6)
    pair.one.others = []
    pair.one.held.put(stored(instance(3), timestamp=int((pair.clock.now() - ago) * 1000)))
    peers = pair.restart()
    assert peers.read_instance(key(3)) is not None
    assert peers.cancel(key(1), ours=OWNERSHIP.holds)
    assert pair.standing() == ({key(2), key(3)}, OURS if ago < 6 else {key(2)})


def test_no_cancel_is_sent_to_a_peer_that_may_lack_the_new_registration(pair: Pair) -> None:
    """The peer that has the new registration does not answer any more. The next pass cancels on the
    others."""
    pair.run()
    pair.clock.sleep(6)
    pair.one.others = []
    pair.peers.register(instance(3), dirty_timestamp=2_000_000_000_000)
    pair.one.trouble = DOWN
    with pytest.raises(RegistryUnavailable):
        pair.peers.cancel(key(1), ours=OWNERSHIP.holds)
    assert pair.standing()[1] == OURS
    pair.clock.sleep(6)
    assert pair.peers.cancel(key(1), ours=OWNERSHIP.holds)
    assert pair.standing()[1] == {key(2)}


def cancelled(peers: EurekaPeers, number: int) -> None:
    peers.cancel(key(number), ours=OWNERSHIP.holds)


def turned_down(peers: EurekaPeers, number: int) -> None:
    down = instance(number, status=InstanceStatus.DOWN)
    peers.register(down, dirty_timestamp=2_000_000_000_000)


@pytest.mark.parametrize("remove", [cancelled, turned_down])
@pytest.mark.parametrize("trouble", [DOWN, DENIED, PAGE], ids=["down", "denied", "page"])
def test_no_removal_goes_to_a_peer_that_may_lack_what_another_one_registered(
    trouble: RegistryError, remove: Callable[[EurekaPeers, int], None], pair: Pair
) -> None:
    """The first peer took one registration and failed the next, which went to the second peer. Only
    a moment later the second peer has both."""
    pair.clock.sleep(6)
    pair.one.others = []  # its registrations are not replicated yet
    pair.peers.register(instance(3), dirty_timestamp=2_000_000_000_000)
    pair.one.write_trouble = trouble
    pair.peers.register(instance(4), dirty_timestamp=2_000_000_000_000)
    for number in (1, 2):
        with pytest.raises(RegistryRejected, match=f"{TWO} may lack .* {ONE}"):
            remove(pair.peers, number)
    up = {
        listed.key for listed in pair.two.held.held.values() if listed.status is InstanceStatus.UP
    }
    assert up == {*OURS, key(4)}
    pair.clock.sleep(REPLICATION_SECONDS)
    pair.one.write_trouble = None
    remove(pair.peers, 1)


@pytest.mark.parametrize("remove", [cancelled, turned_down])
def test_a_removal_that_the_peer_of_the_new_registration_failed_goes_to_no_other(
    remove: Callable[[EurekaPeers, int], None], pair: Pair
) -> None:
    """Nor does the next removal, which begins with the other peer."""
    pair.clock.sleep(6)
    pair.one.others = []
    pair.peers.register(instance(3), dirty_timestamp=2_000_000_000_000)
    pair.one.trouble = DOWN
    for number in (1, 2):
        with pytest.raises(RegistryError):
            remove(pair.peers, number)
    assert {listed.status for listed in pair.two.held.held.values()} == {InstanceStatus.UP}
    assert pair.standing()[1] == OURS


def test_a_peer_that_may_lack_a_registration_does_not_rest(pair: Pair) -> None:
    """It did not fail, so the next calls still go there."""
    pair.clock.sleep(6)
    pair.one.others = []
    pair.peers.register(instance(3), dirty_timestamp=2_000_000_000_000)
    pair.one.trouble = DOWN
    assert pair.peers.renew(key(1))
    with pytest.raises(RegistryRejected):
        cancelled(pair.peers, 1)
    pair.two.calls.clear()
    assert pair.peers.renew(key(2))
    assert pair.two.calls == ["renew"]


def test_a_stray_is_cancelled_at_once(pair: Pair) -> None:
    """The first peer took an instance of its app a moment ago, but does not replicate the cancel of
    what it does not hold."""
    pair.two.held.put(stored(instance(9)))
    pair.restart().list_instances()
    pair.one.others = []
    pair.peers.register(instance(3), dirty_timestamp=2_000_000_000_000)
    assert pair.peers.cancel(key(9), ours=OWNERSHIP.holds)
    assert key(9) not in pair.two.held.held


def test_a_stray_that_its_peer_holds_no_more_waits_for_nothing(pair: Pair) -> None:
    """Nor does one that another owner took over."""
    pair.two.held.put(stored(instance(8)), stored(instance(9)))
    pair.restart().list_instances()
    pair.peers.register(instance(3), dirty_timestamp=2_000_000_000_000)
    pair.two.held.cancel(key(8))
    pair.two.held.put(stored(instance(9), metadata={"eurekube.owner": "another"}))
    for number in (8, 9):
        assert not pair.peers.cancel(key(number), ours=OWNERSHIP.holds)
    assert key(9) in pair.two.held.held


def registered_a_moment_ago(pair: Pair, new: Instance) -> None:
    """The first peer takes a registration and has not replicated it yet."""
    pair.clock.sleep(REPLICATION_SECONDS + 1)
    pair.peers.list_instances()
    pair.one.others = []
    pair.peers.register(new, dirty_timestamp=2_000_000_000_000)


def of_another_app() -> Instance:
    return instance(3, app="cart")


@pytest.mark.parametrize("trouble", [DOWN, DENIED, PAGE, STUMBLED])
def test_a_cancel_waits_for_no_registration_of_another_app(
    trouble: RegistryError, pair: Pair
) -> None:
    """The first peer takes registrations and fails cancels. As long as each pass registers
    something there, a removal that waits for it is not made."""
    registered_a_moment_ago(pair, of_another_app())
    pair.one.write_trouble = trouble
    with suppress(RegistryError):  # the first peer has to answer, too
        cancelled(pair.peers, 1)
    assert pair.standing() == ({key(2), of_another_app().key}, {key(2)})


def test_a_cancel_of_what_the_next_peer_lacks_waits_for_nothing(pair: Pair) -> None:
    """Its callers lose nothing."""
    registered_a_moment_ago(pair, instance(3))
    pair.two.held.cancel(key(1))
    pair.one.write_trouble = DOWN
    cancelled(pair.peers, 1)
    up = [held.key for held in pair.two.held.held.values() if held.status is InstanceStatus.UP]
    assert up == [key(2)]


@pytest.mark.parametrize("remove", [cancelled, turned_down])
@pytest.mark.parametrize(
    "alike",
    [
        replace(of_another_app(), vip_address="else,Rating"),
        replace(of_another_app(), secure_vip_address="rating"),
        replace(of_another_app(), ip_addr="10.0.0.1"),
    ],
    ids=["VIP", "secure VIP", "pod"],
)
def test_a_removal_waits_for_what_its_callers_find_instead(
    alike: Instance, remove: Callable[[EurekaPeers, int], None], pair: Pair
) -> None:
    """The new instance is of another app, but has a VIP or the address of the old one."""
    registered_a_moment_ago(pair, alike)
    pair.one.write_trouble = DOWN
    with pytest.raises(RegistryUnavailable):
        remove(pair.peers, 1)
    with pytest.raises(RegistryRejected, match=f"{TWO} may lack .* {ONE}"):
        remove(pair.peers, 1)
    assert pair.two.held.held[key(1)].status is InstanceStatus.UP


def test_names_of_old_registrations_are_forgotten(pair: Pair) -> None:
    """They would fill the memory of a daemon. Those of a moment ago are kept over a list."""
    registered_a_moment_ago(pair, of_another_app())
    first = pair.peers._peers[0]
    pair.peers.list_instances()
    assert first.has_just_registered_for(of_another_app())
    pair.clock.sleep(REPLICATION_SECONDS)
    pair.peers.list_instances()
    assert not first.registered_as


def test_a_skipped_peer_is_reported(pair: Pair) -> None:
    """A peer that the list or a later cancel skipped may still hold an instance. A peer that is
    used again is not reported."""
    assert pair.run()[0] is ExitCode.OK
    peers = pair.restart()
    peers.list_instances()
    assert peers.unreached() == ()
    pair.two.trouble = RegistryUnavailable("timed out")
    peers.cancel(key(1), ours=lambda _: True)
    assert peers.unreached() == (TWO,)
    peers.cancel(key(2), ours=lambda _: True)
    assert peers.unreached() == (TWO,)
    pair.two.trouble = None
    pair.clock.sleep(REST_SECONDS)
    peers.list_instances()
    assert peers.unreached() == ()
    pair.one.trouble = RegistryUnavailable("timed out")
    peers.cancel(key(1), ours=lambda _: True)
    assert peers.unreached() == (ONE,)


def deleted_while_two_is_away(pair: Pair) -> None:
    """The instances are cancelled on the first peer only, and no endpoint has their addresses any
    more."""
    pair.one.others = pair.two.others = []
    pair.clock.sleep(SWEEP_MARGIN_SECONDS)
    pair.restart()  # a process that starts now makes no sweep in this stretch
    pair.two.trouble = DOWN
    pair.world.cluster.delete(REF)
    pair.run()
    assert pair.standing() == (set(), OURS)
    pair.world.cluster.apply(piece())


@pytest.mark.parametrize("process", ["a daemon", "one process each pass"])
def test_a_deletion_does_not_end_while_a_peer_that_is_back_holds_an_instance(
    process: str, pair: Pair
) -> None:
    """Before the finalizer is removed, the other peers are listed. They may hold instances without
    an endpoint that the first peer lacks."""
    deleted_while_two_is_away(pair)
    passes = 0
    while REF in pair.world.cluster.syncers:
        passes += 1
        assert passes < 15
        pair.clock.sleep(30)
        if passes == 3:
            pair.two.trouble = None
        if process == "one process each pass":
            pair.restart()
        pair.run()
    assert pair.standing() == (set(), set())


@pytest.mark.parametrize("process", ["a daemon", "one process each pass"])
def test_a_deletion_does_not_end_while_a_peer_depends_on_cut_replication(
    process: str, pair: Pair
) -> None:
    """The first passes register an instance with the same VIP, so their cancels go to the first peer
    only."""
    pair.one.others = pair.two.others = []
    pair.clock.sleep(SWEEP_MARGIN_SECONDS)
    pair.restart()  # a process that starts now makes no sweep in this stretch
    pair.world.cluster.apply(
        syncer("other", selector={"app": "other"}, vipAddress="rating"),
        service("other", labels={"app": "other"}),
    )
    pair.world.cluster.delete(REF)
    passes = 0
    while REF in pair.world.cluster.syncers:
        passes += 1
        assert passes < 10
        others = [endpoint(20 + number) for number in range(min(passes, 2))]
        pair.world.cluster.apply(piece(*others, service="other"))
        if process == "one process each pass":
            pair.restart()
        pair.run()
        if passes <= 2:
            assert pair.one.calls.count("register") == 1
            assert OURS.isdisjoint(pair.one.held.held)
            assert pair.two.held.held.keys() >= OURS
        if passes == 1:
            pair.world.cluster.apply(piece())
        pair.clock.sleep(10)
    assert OURS.isdisjoint({*pair.one.held.held, *pair.two.held.held})


@pytest.mark.parametrize("trouble", [DOWN, DENIED, PAGE])
def test_an_unlisted_peer_delays_a_deletion_until_its_leases_have_expired(
    trouble: RegistryError, pair: Pair
) -> None:
    """The peer may be gone for good, although its address is still configured. 600 s after the
    deletion, all leases there have expired."""
    deleted_while_two_is_away(pair)
    pair.two.trouble = trouble
    deleted = pair.world.cluster.syncers[REF].deleted
    assert deleted is not None
    while pair.clock.now() < deleted + 570:
        pair.clock.sleep(30)
        pair.restart()
        pair.run()
        status = pair.world.cluster.syncers[REF].status
        assert status is not None
        if pair.clock.now() >= deleted + 60:
            assert (
                f"{TWO} could not be listed and may still hold an instance"
                in status.conditions[1].message
            )
    pair.clock.sleep(30)
    pair.run()
    assert REF not in pair.world.cluster.syncers


@pytest.mark.parametrize("sweep_is_due", [False, True])
def test_the_other_peers_are_listed_once_in_the_pass_that_ends_a_deletion(
    sweep_is_due: bool, pair: Pair
) -> None:
    """Passes that wait for the server's cache do not list them. A sweep that is due does not list
    them twice."""
    pair.clock.sleep(SWEEP_MARGIN_SECONDS)
    pair.restart()
    pair.world.cluster.delete(REF)
    for _ in range(2):
        pair.run()
        assert "list" not in pair.two.calls
        pair.clock.sleep(22)
    pair.clock.sleep(SWEEP_SECONDS if sweep_is_due else 10)
    pair.run()
    assert pair.two.calls.count("list") == 1
    assert REF not in pair.world.cluster.syncers


def test_a_deletion_waits_when_no_time_is_left_to_list_the_other_peers(pair: Pair) -> None:
    """The next pass lists them."""
    deleted_while_two_is_away(pair)
    pair.two.trouble = None
    pair.clock.sleep(60)
    limit = TimeLimit(pair.clock)
    peers = EurekaPeers(pair.both(), clock=pair.clock, limit=limit)
    listed = peers.list_instances()
    assert isinstance(listed, Complete)
    limit.end = pair.clock.monotonic()
    assert peers.list_elsewhere(listed) == Elsewhere((), (TWO,))
    assert peers.unreached() == (TWO,)
    limit.end = inf
    assert {one.key for one in peers.list_elsewhere(listed).instances} == OURS
