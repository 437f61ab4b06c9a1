"""Batches to every Eureka server: when they are safe, how the answers are combined, and what
follows a failure."""

from __future__ import annotations

import json
import logging
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress
from eurekube_sync.adapters.eureka.batches import ASK_SECONDS, BatchingRegistry
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.adapters.eureka.everywhere import EverywhereBatches
from eurekube_sync.adapters.eureka.peer import Peer
from eurekube_sync.adapters.eureka.peers import EurekaPeers
from eurekube_sync.adapters.eureka.replication import (
    REPLICATION_SECONDS,
    decode_answers,
    decode_status,
)
from eurekube_sync.adapters.threads import ThreadWorkers
from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.scope import Scope
from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import RegistryUnusable
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ports import Batched, Dated, Registry
from eurekube_sync.model.struct import replace
from tests.embedded.eureka import FullEureka
from tests.in_process.eureka import InProcessAdapter
from tests.in_process.workers import InTurn
from tests.unit.worlds import fakes
from tests.unit.worlds.build import (
    NS,
    OWNERSHIP,
    REF,
    endpoint,
    instance,
    key,
    piece,
    service,
    syncer,
)
from tests.unit.worlds.clock import Clock

NAMES = ("http://one:8761/eureka", "http://two:8761/eureka", "http://three:8761/eureka")
NOW = 2_000_000_000_000
BATCH, STATUS = "/eureka/peerreplication/batch/", "/eureka/status"


@dataclass
class Server:
    """An embedded server behind our own client. It counts its calls and can be unplugged."""

    name: str
    clock: Clock
    limit: TimeLimit
    eureka: FullEureka = field(init=False)
    client: EurekaClient = field(init=False)
    calls: list[Request] = field(default_factory=list)
    plugged: bool = True
    answers: dict[str, Response] = field(default_factory=dict)
    """Answers by path, instead of the server's own."""
    stood: list[int] = field(default_factory=list)
    """The number of instances that it held after each write."""
    most: int | None = None
    """The longest batch that it answers in time. A longer batch takes effect, but is not
    answered."""

    def __post_init__(self) -> None:
        self.empty()
        self.client = EurekaClient(
            ConnectionOptions(address=EurekaAddress.parse(self.name), retries=0),
            clock=self.clock,
            random=random.Random(0),
            adapter=InProcessAdapter(self.handle),
            limit=self.limit,
        )

    def empty(self) -> None:
        """Restart the server without its instances."""
        replicas = self.eureka.replicas if hasattr(self, "eureka") else ()
        self.eureka = FullEureka(self.clock.now, response_cache_seconds=0, self_preservation=False)
        self.eureka.replicas = replicas

    def handle(self, request: Request) -> Response:
        if not self.plugged:
            raise ConnectionError("unplugged")
        self.calls.append(request)
        answer = self.answers.get(request.path) or self.eureka.handle(request)
        if request.method != "GET":
            self.stood.append(sum(len(instances) for _, instances in self.eureka.registered()))
        if self.most is not None and request.path == BATCH and self.items(request) > self.most:
            raise TimeoutError("no answer in time")
        return answer

    def items(self, request: Request) -> int:
        return len(json.loads(request.body)["replicationList"])

    def count(self, path: str) -> int:
        return sum(call.path == path for call in self.calls)

    def sent(self) -> list[str]:
        """Return the actions of all items that came in batches, without the probe."""
        items = [
            item
            for call in self.calls
            if call.path == BATCH
            for item in json.loads(call.body)["replicationList"]
        ]
        return [item["action"] for item in items if item["appName"] != "EUREKUBE-SYNC-PROBE"]

    def put(self, *numbers: int, metadata: dict[str, str] | None = None) -> None:
        for number in numbers:
            one = instance(number)
            one = one if metadata is None else replace(one, metadata=metadata)
            self.client.register(one, dirty_timestamp=1)

    def holds(self) -> set[InstanceKey]:
        listed = self.client.list_instances()
        return {one.key for one in listed.data}  # type: ignore[union-attr]


class Site:
    """Some servers that name each other as replicas, and the registry that uses them."""

    def __init__(
        self,
        number: int = 2,
        *,
        required: bool = False,
        dry_run: bool = False,
        ask_seconds: float = ASK_SECONDS,
        lease_duration: float = 300,
    ) -> None:
        self.clock = Clock()
        self.limit = TimeLimit(self.clock)
        self.servers = [Server(name, self.clock, self.limit) for name in NAMES[:number]]
        for server in self.servers:
            server.eureka.replicas = tuple(
                f"{name}/" for name in NAMES[:number] if name != server.name
            )
        self.required, self.dry_run, self.ask_seconds = required, dry_run, ask_seconds
        self.lease_duration = lease_duration
        self.restart()

    def restart(self) -> BatchingRegistry:
        """Restart the program."""
        peers = [
            Peer(url=server.name, client=server.client, asked=server.client, clock=self.clock)
            for server in self.servers
        ]
        inner: Registry = peers[0].client
        if len(peers) > 1:
            inner = EurekaPeers(peers, clock=self.clock, limit=self.limit)
        batches = EverywhereBatches(
            peers=peers, clock=self.clock, limit=self.limit, workers=InTurn()
        )
        self.registry = BatchingRegistry(
            inner,
            batches,
            required=self.required,
            dry_run=self.dry_run,
            ask_seconds=self.ask_seconds,
            lease_duration=self.lease_duration,
        )
        return self.registry

    def listed(self) -> Site:
        """Make one list. After it, the registry knows whether batches are safe."""
        self.registry.list_instances()
        return self

    def renew(self, *numbers: int) -> list[Batched]:
        batches = self.registry.batches()
        assert batches is not None
        return batches.renew([key(number) for number in numbers])

    def why(self) -> str:
        """Make a list, and return why batches are off after it."""
        found = self.listed().registry.batching()
        assert not found.on
        assert self.registry.batches() is None
        return found.why

    def forget(self) -> None:
        for server in self.servers:
            server.calls.clear()


class TestTheQuestion:
    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_batches_are_on_when_all_replicas_are_ours(
        self, number: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        """One line in the log says so, and names the servers."""
        caplog.set_level(logging.DEBUG)
        site = Site(number).listed().listed()
        assert site.registry.batches() is not None
        assert site.registry.batching().on
        assert (
            len([m for m in caplog.messages if "in batches of 250: --eureka-url names" in m]) == 1
        )
        assert {server.count(STATUS) for server in site.servers} == {1}

    def test_a_server_that_is_one_of_many_behind_its_address_is_renewed_plainly(self) -> None:
        """Servers behind a load balancer name each other by addresses that `--eureka-url` does not
        name."""
        site = Site(1)
        site.servers[0].eureka.replicas = ("http://inner-2:8761/eureka/",)
        assert (
            "replicates to http://inner-2:8761/eureka, which --eureka-url does not name"
            in site.why()
        )

    def test_a_server_that_names_the_address_we_call_is_renewed_plainly(self) -> None:
        """Servers behind a load balancer may have the load balancer's address as their peer. The
        sentence says what to do if there is one server."""
        site = Site(1)
        site.servers[0].eureka.replicas = ("http://ONE:8761/eureka",)
        why = site.why()
        assert (
            "replicates to this same address, so several servers may be behind a load balancer "
            "there" in why
        )
        assert "set its eureka.instance.hostname to one, or use --eureka-batch on" in why

    @pytest.mark.parametrize(
        ("replica", "called", "port", "itself"),
        [
            ("http://localhost:8761/eureka/", NAMES[0], 8761, True),
            ("http://10.0.0.9:8761/eureka/", NAMES[0], 8761, True),
            ("http://127.0.0.1:8761/eureka/", "http://127.0.0.1:8761/eureka", 8761, True),
            ("http://localhost:8080/eureka/", "http://localhost:8080/eureka", 80, True),
            ("http://localhost:8762/eureka/", NAMES[0], 8761, False),
            ("http://localhost:8761/eureka/", "http://localhost:8761/eureka", 8762, False),
            ("http://localhost:8080/eureka/", "http://one:8080/eureka", 80, False),
            ("http://10.0.0.8:8761/eureka/", NAMES[0], 8761, False),
            ("http://127.0.0.3:8761/eureka/", NAMES[0], 8761, False),
        ],
    )
    def test_a_server_that_is_its_own_replica_gets_batches(
        self, replica: str, called: str, port: int, itself: bool
    ) -> None:
        """By default a server replicates to `localhost`, and so to itself. Another port or address
        is another server, or a load balancer."""
        site = Site(1)
        site.servers[0].name = called
        site.servers[0].__post_init__()
        page = (
            f"<s><applicationStats><registered-replicas>{replica}</registered-replicas></applicationStats>"
            "<instanceInfo><instanceId>a</instanceId><ipAddr>10.0.0.9</ipAddr><port "
            f"enabled='true'>{port}</port>"
            "<securePort enabled='false'>443</securePort></instanceInfo></s>"
        )
        path = f"{called.split('8761')[-1].split('8080')[-1]}/status"
        site.servers[0].answers[path] = Response(
            status=200, body=page.encode(), content_type="application/xml"
        )
        site.restart().list_instances()
        assert site.registry.batching().on is itself, site.registry.batching().why

    def test_a_peer_that_is_not_listed_is_named_without_its_password(self) -> None:
        """A server's list of replicas may hold users and passwords."""
        site = Site(2)
        site.servers[1].eureka.replicas = (NAMES[0], "http://ann:s3cret@three:8761/eureka/")
        why = site.why()
        assert "http://three:8761/eureka" in why
        assert "s3cret" not in why
        assert not [call for server in site.servers for call in server.calls if call.path == BATCH][
            1:
        ]

    def test_two_addresses_of_one_server_are_reported(self) -> None:
        """One may be the server, and the other a load balancer before it. Each lease would be
        renewed twice."""
        site = Site(2)
        page = (
            b"<s><applicationStats><registered-replicas/></applicationStats>"
            b"<instanceInfo><instanceId>a:b</instanceId></instanceInfo></s>"
        )
        for server in site.servers:
            server.answers[STATUS] = Response(status=200, body=page, content_type="application/xml")
        assert "lead to the same server, a:b" in site.why()

    @pytest.mark.parametrize("status", [403, 404])
    def test_without_an_answer_to_the_question_it_is_plain_and_on_says_otherwise(
        self, status: int
    ) -> None:
        """Replicas are not guessed. `--eureka-batch on` skips the question."""
        site = Site(1)
        site.servers[0].answers[STATUS] = Response(status=status, body=b"{}")
        assert "use --eureka-batch on." in site.why()
        sure = Site(1, required=True)
        sure.servers[0].answers[STATUS] = Response(status=status, body=b"{}")
        assert sure.listed().registry.batches() is not None
        assert sure.servers[0].count(STATUS) == 0

    @pytest.mark.parametrize(
        "answer",
        [
            Response(status=200, body=b'{"responseList":[{"statusCode":200}]}'),
            Response(status=200, body=b'{"responseList":[]}'),
            Response(status=200, body=b"<html>sign in</html>", content_type="text/html"),
            Response(status=405, body=b"{}"),
            Response(status=404, body=b"{}"),
            Response(status=403, body=b"{}"),
        ],
    )
    @pytest.mark.parametrize("required", [False, True])
    def test_an_answer_of_another_form_ends_as_plain_renewals(
        self, answer: Response, required: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The probe is a batch of one heartbeat for an absent id, whose answer must be a 404. With
        `on`, the fallback to single calls is a warning."""
        site = Site(2, required=required)
        site.servers[1].answers[BATCH] = answer
        site.why()
        warned = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert bool(warned) is required

    def test_a_refused_batch_path_says_what_to_allow(self) -> None:
        """Spring Security may allow `/eureka/apps` only."""
        site = Site(1)
        site.servers[0].answers[BATCH] = Response(status=403, body=b"{}")
        assert "/eureka/peerreplication/**" in site.why()

    def test_a_dry_run_asks_and_writes_nothing(self, caplog: pytest.LogCaptureFixture) -> None:
        """A dry run does not send the probe, because a heartbeat is a write. It does not log that
        batches are on."""
        caplog.set_level(logging.INFO)
        site = Site(2, dry_run=True).listed()
        assert site.registry.batching().on
        assert not caplog.messages
        assert site.registry.batches() is None
        assert {call.method for server in site.servers for call in server.calls} == {"GET"}

    def test_it_is_asked_again_and_the_answer_may_change(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """An administrator may add a replica."""
        caplog.set_level(logging.DEBUG)
        site = Site(2).listed()
        site.servers[0].eureka.replicas += ("http://three:8761/eureka",)
        assert site.listed().registry.batches() is not None
        site.clock.sleep(ASK_SECONDS)
        assert "http://three:8761/eureka" in site.why()
        assert len(caplog.messages) == 2

    def test_a_server_that_has_not_answered_yet_keeps_it_plain(self) -> None:
        """Callers may reach a server that we cannot reach. Only replication from the other servers
        reaches it then."""
        site = Site(2)
        site.servers[1].plugged = False
        assert f"{NAMES[1]} gave no usable answer" in site.why()
        site.servers[1].plugged = True
        assert site.listed().registry.batching().on

    def test_a_server_whose_status_is_broken_is_no_server_that_is_down(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The server stays in use for single calls."""
        site = Site(2)
        site.servers[0].answers[STATUS] = Response(status=500, body=b"{}")
        assert f"{NAMES[0]} gave no usable answer" in site.why()
        site.servers[0].put(1)
        site.forget()
        assert site.registry.renew(key(1))
        assert site.servers[1].calls == []
        assert not [record for record in caplog.records if record.levelno >= logging.WARNING]

    def test_a_server_that_is_back_is_asked_before_it_is_used(self) -> None:
        """Another server may have its address now."""
        site = Site(2).listed()
        site.servers[1].plugged = False
        site.servers[0].put(1)
        assert site.renew(1) == [Batched.DONE]
        assert site.listed().registry.batching().on
        site.servers[1].plugged = True
        site.servers[1].eureka.replicas = ("http://three:8761/eureka",)
        assert "http://three:8761/eureka" in site.why()

    def test_a_server_that_stays_away_ends_batches_before_its_leases_expire(self) -> None:
        """For two minutes, batches go to the other servers. After that, each write is a single
        call, which its server replicates."""
        site = Site(2).listed()
        site.servers[1].plugged = False
        site.renew(1)
        for _ in range(4):
            assert site.listed().registry.batching().on
            site.clock.sleep(30)
        assert f"{NAMES[1]} gave no usable answer" in site.why()
        site.servers[1].plugged = True
        assert site.listed().registry.batching().on

    def test_short_leases_wait_less_for_a_server_that_is_away(self) -> None:
        """A lease with a duration of 30 s expires a minute after its renewal."""
        site = Site(2, lease_duration=30).listed()
        site.servers[1].plugged = False
        site.renew(1)
        site.clock.sleep(10)
        assert site.listed().registry.batching().on
        site.clock.sleep(10)
        assert f"{NAMES[1]} gave no usable answer" in site.why()

    def test_a_server_that_spoke_against_batches_is_asked_again_each_minute(self) -> None:
        """The server may have been starting. The other servers are not asked again."""
        site = Site(2)
        site.servers[1].answers[STATUS] = Response(status=403, body=b"{}")
        assert "does not say which replicas it has" in site.why()
        site.servers[1].answers.clear()
        site.clock.sleep(59)
        site.forget()
        site.why()
        assert site.servers[1].count(STATUS) == 0
        site.clock.sleep(1)
        assert site.listed().registry.batching().on
        assert [server.count(STATUS) for server in site.servers] == [0, 1]

    def test_while_all_are_down_nothing_is_known(self) -> None:
        """The errors of the single calls report the outage."""
        site = Site(2)
        for server in site.servers:
            server.plugged = False
        assert "has said yet" in site.why()


class TestAnswers:
    def test_a_renewal_is_of_every_server(self) -> None:
        """The results are in the order of the keys: renewed on all servers, on some, or on none."""
        site = Site(3).listed()
        for server, numbers in zip(site.servers, ([1, 2], [1, 2], [1]), strict=True):
            server.put(*numbers)
        assert site.renew(3, 1, 2) == [Batched.ABSENT, Batched.DONE, Batched.PARTLY]

    def test_a_missing_instance_is_registered_only_on_the_server_that_lacks_it(self) -> None:
        """The instance is read on both servers before. A heartbeat after the registration verifies
        it, and doubles the length of its lease."""
        site = Site(2).listed()
        site.servers[0].put(1, 2)
        site.servers[1].put(2)
        assert site.renew(1, 2) == [Batched.PARTLY, Batched.DONE]
        site.forget()
        batches = site.registry.batches()
        assert batches is not None
        assert batches.level([Dated(instance(1), NOW)], ours=OWNERSHIP.holds) == [Batched.DONE]
        assert [call.method for call in site.servers[0].calls] == ["GET"]
        assert site.servers[1].sent() == ["Register", "Heartbeat"]
        site.clock.sleep(599)
        assert key(1) in site.servers[1].holds()

    def test_anothers_instance_in_that_place_stays(self) -> None:
        """Eureka answers a renewal of an UNKNOWN instance with 404. So the instance is read before
        it is registered."""
        site = Site(2).listed()
        site.servers[0].put(1)
        other = replace(
            instance(1), status=InstanceStatus.UNKNOWN, metadata={"eurekube.owner": "another"}
        )
        site.servers[1].client.register(other, dirty_timestamp=1)
        assert site.renew(1) == [Batched.PARTLY]
        batches = site.registry.batches()
        assert batches is not None
        assert batches.level([Dated(instance(1), NOW)], ours=OWNERSHIP.holds) == [Batched.CONFLICT]
        assert "Register" not in site.servers[1].sent()

    @pytest.mark.parametrize("theirs", [False, True])
    def test_an_instance_that_a_person_put_out_of_service_stays_partly_registered(
        self, theirs: bool
    ) -> None:
        """Another owner's instance in its place is a conflict, because a replicated renewal would
        overwrite that instance."""
        site = Site(2).listed()
        site.servers[0].put(1)
        site.servers[0].handle(out_of_service(1))
        if theirs:
            other = replace(
                instance(1), status=InstanceStatus.UNKNOWN, metadata={"eurekube.owner": "another"}
            )
            site.servers[1].client.register(other, dirty_timestamp=1)
        assert site.renew(1) == [Batched.PARTLY]
        batches = site.registry.batches()
        assert batches is not None
        expected = Batched.CONFLICT if theirs else Batched.PARTLY
        assert batches.level([Dated(instance(1), NOW)], ours=OWNERSHIP.holds) == [expected]
        assert "Register" not in site.servers[1].sent()

    def test_one_server_on_which_a_person_put_it_out_of_service_is_enough(self) -> None:
        """Of three servers, the first has it UP, the second OUT_OF_SERVICE, and the third lacks it.
        There it would be UP."""
        site = Site(3).listed()
        for server in site.servers[:2]:
            server.put(1)
        site.servers[1].handle(out_of_service(1))
        assert site.renew(1) == [Batched.PARTLY]
        batches = site.registry.batches()
        assert batches is not None
        assert batches.level([Dated(instance(1), NOW)], ours=OWNERSHIP.holds) == [Batched.PARTLY]
        assert "Register" not in site.servers[2].sent()

    def test_a_stranger_on_one_server_is_a_conflict_whatever_the_others_show(self) -> None:
        """The second server just lacks it, and the third has another owner's instance in its
        place."""
        site = Site(3).listed()
        site.servers[0].put(1)
        site.servers[0].handle(out_of_service(1))
        other = replace(
            instance(1), status=InstanceStatus.UNKNOWN, metadata={"eurekube.owner": "another"}
        )
        site.servers[2].client.register(other, dirty_timestamp=1)
        assert site.renew(1) == [Batched.PARTLY]
        batches = site.registry.batches()
        assert batches is not None
        assert batches.level([Dated(instance(1), NOW)], ours=OWNERSHIP.holds) == [Batched.CONFLICT]

    def test_a_server_that_cannot_be_read_gets_no_registration(self) -> None:
        """It lacks the instance as far as its heartbeat says, but a stranger may be there."""
        site = Site(2).listed()
        site.servers[0].put(1)
        assert site.renew(1) == [Batched.PARTLY]
        site.servers[1].answers[f"/eureka/apps/{key(1).app}/{key(1).id}"] = Response(status=403)
        batches = site.registry.batches()
        assert batches is not None
        assert batches.level([Dated(instance(1), NOW)], ours=OWNERSHIP.holds) == [Batched.UNSETTLED]
        assert "Register" not in site.servers[1].sent()

    def test_a_registration_that_one_server_lost_is_not_done(self) -> None:
        """It answers the registration with 200, and the heartbeat after it with 404."""
        site = Site(2).listed()
        real = site.servers[1].eureka.handle

        def handle(request: Request) -> Response:
            if b'"Register"' in request.body:
                return Response(status=200, body=b'{"responseList": [{"statusCode": 200}]}')
            return real(request)

        site.servers[1].eureka.handle = handle  # type: ignore[method-assign]
        batches = site.registry.batches()
        assert batches is not None
        assert batches.register([Dated(instance(1), NOW)]) == [Batched.UNSETTLED]

    @pytest.mark.parametrize("number", [1, 2])
    def test_a_batch_reads_what_an_uncached_read_shows(self, number: int) -> None:
        """From the server that single calls go to. An absent instance is left to the single
        read."""
        site = Site(number)
        for server in site.servers:
            server.put(1, 2)
        batches = site.listed().registry.batches()
        assert batches is not None
        site.forget()
        read = dict(batches.read([key(1), key(2), key(3)]))
        assert [server.count(BATCH) for server in site.servers] == [1, *[0] * (number - 1)]
        for one in (key(1), key(2)):
            single = site.registry.read_instance(one)
            assert single is not None
            assert read.pop(one) == replace(single, read_at=0), "a batch does not say when"
        assert read == {}

    @pytest.mark.parametrize("number", [1, 2])
    def test_of_several_servers_a_new_instance_is_read_singly(self, number: int) -> None:
        """It may not be replicated yet, which the single read notes."""
        site = Site(number)
        for server in site.servers:
            server.client.register(instance(1), dirty_timestamp=int(site.clock.now() * 1000) - 4000)
        batches = site.listed().registry.batches()
        assert batches is not None
        assert set(batches.read([key(1)])) == ({key(1)} if number == 1 else set())

    def test_it_reads_from_the_server_to_which_single_calls_go(self) -> None:
        """A server that failed rests. If a call reached it since, it takes single calls, and no
        batches until the next list."""
        site = Site(2)
        for server in site.servers:
            server.put(1)
        batches = site.listed().registry.batches()
        assert isinstance(batches, EverywhereBatches)
        site.servers[0].plugged = False
        site.renew(1)
        site.servers[0].plugged = True
        site.forget()
        assert set(batches.read([key(1)])) == {key(1)}
        assert [server.count(BATCH) for server in site.servers] == [0, 1]
        batches.peers[0].worked()
        assert batches.read([key(1)]) == {}

    def test_an_instance_in_doubt_is_read_singly(self) -> None:
        """A renewal in a batch has no timestamp, by which servers find their differences."""
        site = Site(2)
        for server in site.servers:
            server.put(1, 2)
        site.servers[0].client.register(
            replace(instance(1), vip_address="changed"), dirty_timestamp=2
        )
        batches = site.listed().registry.batches()
        assert batches is not None
        assert set(batches.read([key(1), key(2)])) == {key(2)}

    @pytest.mark.parametrize(
        "reply",
        [
            {"statusCode": 200},
            {"statusCode": 409},
            {"statusCode": 409, "responseEntity": None},
            {"statusCode": 409, "responseEntity": "text"},
            {"statusCode": 409, "responseEntity": {"instanceId": "a"}},
            {"statusCode": 409, "responseEntity": {"app": "OTHER", "instanceId": "a"}},
        ],
    )
    def test_a_reply_without_its_instance_is_left_to_the_single_read(
        self, reply: dict[str, object]
    ) -> None:
        """Batches go on, because renewals do not need it."""
        site = Site(1)
        site.servers[0].put(1)
        batches = site.listed().registry.batches()
        assert batches is not None
        body = json.dumps({"responseList": [reply]}).encode()
        site.servers[0].answers[BATCH] = Response(status=200, body=body)
        assert batches.read([key(1)]) == {}
        assert site.registry.batching().on

    @pytest.mark.parametrize("code", [200, 403, 429, 500, 503])
    def test_an_id_is_free_only_where_each_server_answers_404(self, code: int) -> None:
        """Any other answer of one server proves nothing, and the id is read by a call of its
        own."""
        site = Site(2).listed()
        batches = site.registry.batches()
        assert batches is not None
        assert batches.absent([key(1)]) == {key(1)}
        answer = {"responseList": [{"statusCode": code}]}
        site.servers[1].answers[BATCH] = Response(status=200, body=json.dumps(answer).encode())
        assert batches.absent([key(1)]) == frozenset()

    def test_a_registration_is_sent_to_every_server_and_verified(self) -> None:
        """A server answers 200 even if it rejected the registration. The heartbeat after it is a
        404 then."""
        site = Site(2).listed()
        batches = site.registry.batches()
        assert batches is not None
        bad = replace(instance(2), ip_addr="")
        assert batches.register([Dated(instance(1), NOW), Dated(bad, NOW)]) == [
            Batched.DONE,
            Batched.UNSETTLED,
        ]
        for server in site.servers:
            assert server.sent() == ["Register", "Register", "Heartbeat", "Heartbeat"]
            assert server.holds() == {key(1)}

    def test_one_that_would_break_the_list_is_not_sent(self) -> None:
        """The single call refuses the instance with a reason. The other instances of the batch are
        registered."""
        site = Site(2).listed()
        batches = site.registry.batches()
        assert batches is not None
        bad = replace(instance(2), metadata={"a:b": "c"})
        assert batches.register([Dated(bad, NOW), Dated(instance(1), NOW)]) == [
            Batched.UNSETTLED,
            Batched.DONE,
        ]

    def test_a_cancel_leaves_what_is_not_ours(self) -> None:
        """With several servers, the instance is read on each before its cancel. With one server,
        the caller has read it."""
        site = Site(2).listed()
        site.servers[0].put(1, 2)
        site.servers[1].put(1)
        site.servers[1].put(2, metadata={"eurekube.owner": "another"})
        batches = site.registry.batches()
        assert batches is not None
        assert batches.cancel([key(1), key(2), key(3)], ours=OWNERSHIP.holds) == [Batched.DONE] * 3
        assert [server.holds() for server in site.servers] == [set(), {key(2)}]
        alone = Site(1).listed()
        alone.servers[0].put(1)
        alone.forget()
        batches = alone.registry.batches()
        assert batches is not None
        assert batches.cancel([key(1)], ours=OWNERSHIP.holds) == [Batched.DONE]
        assert [call.path for call in alone.servers[0].calls] == [BATCH]

    def test_a_batch_of_cancels_waits_until_a_single_registration_is_replicated(self) -> None:
        """A server replicates a single registration a moment later. Until then, a cancel of the
        replaced instance would leave the other servers with neither."""
        site = Site(2).listed()
        for server in site.servers:
            server.put(1, 2)
        batches = site.registry.batches()
        assert batches is not None
        site.registry.register(instance(2), dirty_timestamp=2)
        site.forget()
        assert batches.cancel([key(1)], ours=OWNERSHIP.holds) == [Batched.UNSETTLED]
        assert [server.calls for server in site.servers] == [[], []]
        assert site.registry.cancel(key(1), ours=OWNERSHIP.holds)
        assert [server.holds() for server in site.servers] == [{key(2)}, {key(1), key(2)}]
        site.clock.sleep(REPLICATION_SECONDS)
        assert batches.cancel([key(1)], ours=OWNERSHIP.holds) == [Batched.DONE]
        assert site.servers[1].holds() == {key(2)}

    def test_a_batch_of_cancels_waits_for_what_another_process_registered(self) -> None:
        """The read of the new instance shows that it came a moment ago. One server has it."""
        site = Site(2).listed()
        for server in site.servers:
            server.put(1)
        new = int(site.clock.now() * 1000) - 2000
        site.servers[0].client.register(instance(2), dirty_timestamp=new)
        batches = site.registry.batches()
        assert batches is not None
        assert site.registry.read_instance(key(2)) is not None
        assert batches.cancel([key(1)], ours=OWNERSHIP.holds) == [Batched.UNSETTLED]
        assert site.servers[1].holds() == {key(1)}
        site.clock.sleep(REPLICATION_SECONDS)
        assert batches.cancel([key(1)], ours=OWNERSHIP.holds) == [Batched.DONE]

    def test_a_long_batch_is_sent_in_several_bodies(self) -> None:
        """Proxies limit the length of a body. The results keep the order of the items."""
        site = Site(1).listed()
        batches = site.registry.batches()
        assert batches is not None
        wordy = [
            replace(instance(n), metadata={**instance(n).metadata, "text": "x" * 10_000})
            for n in range(1, 101)
        ]
        site.forget()
        assert batches.register([Dated(one, NOW) for one in wordy]) == [Batched.DONE] * 100
        assert max(len(call.body) for call in site.servers[0].calls) < 600_000
        assert len(site.servers[0].holds()) == 100


class TestFailures:
    def test_a_server_that_cannot_be_reached_is_left_out_and_said_once(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The other servers' answers count. The server is not tried again in this pass."""
        site = Site(2).listed()
        site.servers[0].put(1)
        site.servers[1].plugged = False
        assert site.renew(1) == [Batched.DONE]
        assert site.renew(1) == [Batched.DONE]
        assert len(caplog.messages) == 1
        assert f"skipping Eureka peer {NAMES[1]} until it works" in caplog.messages[0]

    def test_when_it_is_back_it_is_used_with_the_next_list(self) -> None:
        """The results of the renewals show which instances it lacks."""
        site = Site(2).listed()
        site.servers[0].put(1)
        site.servers[1].plugged = False
        site.renew(1)
        site.listed()
        site.servers[1].plugged = True
        site.listed()
        assert site.renew(1) == [Batched.PARTLY]

    @pytest.mark.parametrize("number", [1, 2])
    def test_a_cancel_that_no_server_took_is_not_done(self, number: int) -> None:
        """All servers are unreachable during the call."""
        site = Site(number).listed()
        batches = site.registry.batches()
        assert batches is not None
        for server in site.servers:
            server.put(1)
            server.plugged = False
        assert batches.cancel([key(1)], ours=OWNERSHIP.holds) == [Batched.UNSETTLED]

    def test_a_server_that_is_too_slow_for_a_long_batch_gets_shorter_ones(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """If it were left out of the batches, our leases would expire there although they count as
        renewed."""
        caplog.set_level(logging.INFO)
        site = Site(2).listed()
        numbers = range(1, 251)
        for server in site.servers:
            server.put(*numbers)
        site.servers[1].most = 100
        site.forget()
        assert site.renew(*numbers) == [Batched.DONE] * 250
        batches = [call for call in site.servers[1].calls if call.path == BATCH]
        assert [site.servers[1].items(call) for call in batches] == [
            250,
            1,
            125,
            1,
            62,
            62,
            62,
            62,
            2,
        ]
        assert [site.servers[0].items(call) for call in site.servers[0].calls] == [250]
        site.listed().forget()
        assert site.renew(*numbers) == [Batched.DONE] * 250
        assert site.servers[1].count(BATCH) == 5
        told = [message for message in caplog.messages if "reduced the batch size" in message]
        assert len(told) == 2
        assert NAMES[1] in told[0]
        site.clock.sleep(ASK_SECONDS)
        site.listed().forget()
        site.renew(*numbers)
        assert site.servers[1].items(site.servers[1].calls[0]) == 124

    def test_a_server_that_answers_one_item_and_never_some_ends_batches(self) -> None:
        """Each single renewal reaches the server by replication."""
        site = Site(2).listed()
        numbers = range(1, 101)
        site.servers[1].most = 1
        assert site.renew(*numbers) == [Batched.UNSETTLED] * 100
        assert f"{NAMES[1]} answers a batch of one item, but not a batch of" in site.why()

    def test_a_server_that_answers_no_batch_ends_batches_before_its_leases_expire(self) -> None:
        """Such a server fails each batch, although it answers when it is asked for its status. It
        counts as a server that stays away."""
        site = Site(2)
        for _ in range(4):
            assert site.listed().registry.batching().on
            site.servers[1].plugged = False
            assert site.renew(1) == [Batched.ABSENT]
            site.servers[1].plugged = True
            site.clock.sleep(30)
        assert f"{NAMES[1]} gave no usable answer" in site.why()
        site.clock.sleep(ASK_SECONDS)
        assert site.listed().registry.batching().on

    def test_without_any_server_all_is_left_to_single_calls(self) -> None:
        """The errors of the single calls report the outage."""
        site = Site(1).listed()
        batches = site.registry.batches()
        assert batches is not None
        site.servers[0].plugged = False
        assert batches.renew([key(1)]) == [Batched.UNSETTLED]
        assert site.registry.batches() is None
        assert batches.register([Dated(instance(1), NOW)]) == [Batched.UNSETTLED]
        assert batches.cancel([key(1)], ours=OWNERSHIP.holds) == [Batched.UNSETTLED]

    @pytest.mark.parametrize("status", [403, 404, 405, 500])
    def test_an_answer_of_another_form_ends_batches_at_once(
        self, status: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        """An administrator may have put a proxy before the server. Single calls are used until the
        server is asked again."""
        site = Site(2).listed()
        batches = site.registry.batches()
        assert batches is not None
        site.servers[1].answers[BATCH] = Response(status=status, body=b"{}")
        assert batches.renew([key(1)]) == [Batched.UNSETTLED]
        assert site.registry.batches() is None
        assert not site.registry.batching().on
        assert len(caplog.messages) == 1
        assert site.listed().registry.batches() is None
        site.servers[1].answers.clear()
        site.clock.sleep(ASK_SECONDS)
        assert site.listed().registry.batches() is not None

    def test_an_item_that_the_server_stumbles_over_is_left_to_a_single_call(self) -> None:
        """The other items of the batch have their results."""
        site = Site(1).listed()
        site.servers[0].answers[BATCH] = Response(
            status=200,
            body=b'{"responseList":[{"statusCode":200},{"statusCode":500},{"statusCode":404}]}',
        )
        assert site.renew(1, 2, 3) == [Batched.DONE, Batched.UNSETTLED, Batched.ABSENT]

    def test_a_body_that_the_server_cannot_read_is_left_to_single_calls_and_ends_nothing(
        self,
    ) -> None:
        """One registration that the server cannot parse makes its batch a 400. Renewals continue in
        batches."""
        site = Site(1).listed()
        batches = site.registry.batches()
        assert batches is not None
        site.servers[0].answers[BATCH] = Response(
            status=400, body=b'{"error": "cannot parse request body"}'
        )
        assert batches.register([Dated(instance(1), NOW)]) == [Batched.UNSETTLED]
        assert site.registry.batches() is not None

    def test_without_time_nothing_is_sent_and_no_server_is_blamed(self) -> None:
        """The same holds after the signal to stop."""
        site = Site(2).listed()
        site.forget()
        batches = site.registry.batches()
        assert batches is not None
        site.limit.end = site.clock.monotonic()
        assert batches.renew([key(1)]) == [Batched.UNSETTLED]
        site.limit.end = site.clock.monotonic() + 60
        site.clock.stopped = True
        assert batches.renew([key(1)]) == [Batched.UNSETTLED]
        assert batches.cancel([key(1)], ours=OWNERSHIP.holds) == [Batched.UNSETTLED]
        site.clock.stopped = False
        assert not [call for server in site.servers for call in server.calls]
        assert batches.renew([key(1)]) == [Batched.ABSENT]


class TestReturns:
    def test_a_server_that_is_back_alone_is_asked_what_it_lacks(self) -> None:
        """It is asked once. Instances that it lacks can be registered there."""
        site = Site(2).listed()
        batches = site.registry.batches()
        assert batches is not None
        assert batches.lacking([]) == frozenset()
        site.servers[1].plugged = False
        assert batches.register([Dated(instance(1), NOW)]) == [Batched.DONE]
        assert not site.listed().registry.batches().returned()  # type: ignore[union-attr]
        site.servers[1].plugged = True
        site.servers[1].put(2)
        site.listed().forget()
        assert batches.returned()
        assert batches.lacking([key(1), key(2)]) == {key(1)}
        assert [server.sent() for server in site.servers] == [[], ["Heartbeat"] * 2]
        assert not batches.returned()
        assert batches.level([Dated(instance(1), NOW)], ours=OWNERSHIP.holds) == [Batched.DONE]
        assert site.servers[1].holds() == {key(1), key(2)}
        assert not site.listed().registry.batches().returned()  # type: ignore[union-attr]

    def test_a_single_server_is_not_asked(self) -> None:
        """Its list shows which instances it has lost."""
        assert not Site(1).listed().registry.batches().returned()  # type: ignore[union-attr]

    def test_a_server_that_did_not_answer_about_all_instances_is_asked_again(self) -> None:
        """The server may be unreachable again, or no time may be left. An instance without an
        answer does not count as missing there."""
        site = Site(2).listed()
        batches = site.registry.batches()
        assert batches is not None
        site.limit.end = site.clock.monotonic()
        assert batches.lacking([key(1)]) == frozenset()
        assert batches.returned()
        site.limit.end = site.clock.monotonic() + 60
        site.servers[1].plugged = False
        assert batches.lacking([key(1)]) == {key(1)}
        assert not batches.returned()
        site.servers[1].plugged = True
        site.listed()
        assert batches.returned()


class TestDoubts:
    def test_a_change_on_one_server_is_renewed_singly_until_all_servers_have_it(self) -> None:
        """A heartbeat in a batch has no timestamp. A server that missed a change would keep its old
        copy."""
        site = Site(2).listed()
        for server in site.servers:
            server.put(1, 2)
        changed = replace(instance(1), vip_address="changed")
        site.registry.register(changed, dirty_timestamp=2)
        for _ in range(2):
            assert site.renew(1, 2) == [Batched.UNSETTLED, Batched.DONE]
        site.servers[1].client.register(
            changed, dirty_timestamp=2
        )  # as a single renewal does by replication
        assert site.renew(1, 2) == [Batched.DONE] * 2
        site.forget()
        assert site.renew(1, 2) == [Batched.DONE] * 2
        assert {call.path for server in site.servers for call in server.calls} == {BATCH}

    def test_a_sweep_puts_in_doubt_what_differs(self) -> None:
        """A server was away during a change. Instances that are the same everywhere are still
        renewed in batches."""
        site = Site(2)
        for server in site.servers:
            server.put(1, 2)
        site.servers[0].client.register(
            replace(instance(1), vip_address="changed"), dirty_timestamp=2
        )
        site.listed()
        assert site.renew(1, 2) == [Batched.UNSETTLED, Batched.DONE]

    def test_a_doubt_stays_while_a_server_cannot_be_looked_at(self) -> None:
        """The instance is renewed in batches on the other servers meanwhile. The server is checked
        when it is back."""
        site = Site(2).listed()
        for server in site.servers:
            server.put(1)
        site.registry.register(replace(instance(1), vip_address="changed"), dirty_timestamp=2)
        site.servers[1].plugged = False
        assert site.renew(1) == [Batched.DONE]
        site.servers[1].plugged = True
        site.listed().listed()
        assert site.renew(1) == [Batched.UNSETTLED]

    def test_a_cancel_ends_a_doubt(self) -> None:
        """No copy is left that could differ. With a single server, there are no doubts."""
        site = Site(2).listed()
        site.registry.register(instance(1), dirty_timestamp=2)
        assert site.registry.cancel(key(1), ours=OWNERSHIP.holds)
        site.registry.register(instance(2), dirty_timestamp=2)
        site.clock.sleep(REPLICATION_SECONDS)
        batches = site.registry.batches()
        assert batches is not None
        assert batches.cancel([key(2)], ours=OWNERSHIP.holds) == [Batched.DONE]
        alone = Site(1).listed()
        alone.registry.register(instance(3), dirty_timestamp=2)
        for one, numbers in ((site, (1, 2)), (alone, (3,))):
            one.forget()
            one.renew(*numbers)
            assert {call.path for server in one.servers for call in server.calls} == {BATCH}


def out_of_service(number: int) -> Request:
    """The call by which a person puts the instance out of service."""
    path = f"/eureka/apps/{key(number).app}/{key(number).id}/status"
    return Request(method="PUT", path=path, query={"value": "OUT_OF_SERVICE"})


_LIST = Request(method="GET", path="/eureka/apps", headers={"accept": "application/json"})


class Story:
    """Passes of the whole program over two servers that replicate nothing."""

    def __init__(self, pods: Sequence[int] = (1, 2)) -> None:
        self.site = Site(2)
        self.world = fakes.FakeWorld()
        self.world.clock = self.site.clock
        self.world.registry = self.site.registry  # type: ignore[assignment]
        self.world.cluster.apply(service(), piece(*(endpoint(pod) for pod in pods)), syncer())

    def run(self, later: float = 30) -> PassReport:
        """Run a pass, that many seconds later."""
        self.site.clock.sleep(later)
        self.site.forget()
        report = self.world.run()
        assert of_report(report, fail_on_held=True, detailed=False) is ExitCode.OK
        return report

    def held(self) -> list[set[InstanceKey]]:
        return [server.holds() for server in self.site.servers]


def of_a_stranger() -> Instance:
    """An instance that another process registers through us."""
    return replace(instance(9), metadata={})


class TestPasses:
    def test_no_single_call_is_made_while_batches_work(self) -> None:
        """Instances are registered, renewed and cancelled on both servers, although the servers do
        not replicate."""
        story = Story()
        story.run()
        assert story.held() == [{key(1), key(2)}] * 2
        story.run()
        assert [server.sent() for server in story.site.servers] == [["Heartbeat"] * 2] * 2
        story.world.cluster.apply(piece(endpoint(1)))
        story.run()
        assert story.held() == [{key(1)}] * 2
        assert {call.method for server in story.site.servers for call in server.calls} <= {
            "GET",
            "POST",
        }

    @pytest.mark.parametrize("which", [0, 1])
    def test_a_server_that_comes_back_empty_gets_all_instances_again(self, which: int) -> None:
        """They are registered in the pass that finds the server back."""
        story = Story()
        story.run()
        lost = story.site.servers[which]
        lost.plugged = False
        story.run()
        story.run()
        lost.plugged = True
        lost.empty()
        for _ in range(2):
            story.run()
        assert story.held() == [{key(1), key(2)}] * 2

    @pytest.mark.parametrize("which", [0, 1])
    def test_an_instance_cancelled_during_an_outage_is_removed_when_the_server_is_back(
        self, which: int
    ) -> None:
        """This takes two passes. The server answers in the first, and is listed in the second."""
        story = Story()
        story.run()
        away = story.site.servers[which]
        away.plugged = False
        story.world.cluster.apply(piece(endpoint(1)))
        story.run()
        assert story.site.servers[1 - which].holds() == {key(1)}
        away.plugged = True
        story.run()
        story.run()
        assert story.held() == [{key(1)}] * 2

    @pytest.mark.parametrize("which", [0, 1])
    def test_a_server_that_is_back_gets_new_instances_before_old_ones_are_cancelled(
        self, which: int
    ) -> None:
        """Callers that ask only this server always find one instance, even if no lease is due for
        renewal."""
        story = Story((1,))
        story.world.renewals = RenewalLedger(period=30, slack=5)
        for _ in range(4):
            story.run(10)
        away = story.site.servers[which]
        away.plugged = False
        story.world.cluster.apply(piece(endpoint(2)))
        story.run(10)
        assert story.site.servers[1 - which].holds() == {key(2)}
        away.plugged, away.stood = True, []
        for _ in range(4):
            story.run(10)
        assert story.held() == [{key(2)}] * 2
        assert {0, 1} & set(away.stood) == {1}

    def test_a_deletion_right_after_a_single_registration_does_not_end_while_a_server_is_left_to_replication(
        self,
    ) -> None:
        """Replication does not work here. The second server is listed before the finalizer is
        removed."""
        story = Story()
        for _ in range(2):
            story.run()
        story.world.cluster.delete(REF)
        story.site.registry.register(of_a_stranger(), dirty_timestamp=NOW)
        story.world.run()
        assert story.held() == [{of_a_stranger().key}, {key(1), key(2)}]
        story.world.cluster.apply(piece())
        for _ in range(4):
            story.run()
        assert REF not in story.world.cluster.syncers
        assert story.held() == [{of_a_stranger().key}, set()]

    @pytest.mark.parametrize("which", [0, 1])
    @pytest.mark.parametrize("status", [InstanceStatus.UP, InstanceStatus.UNKNOWN])
    def test_an_id_that_others_have_on_one_server_is_registered_on_none(
        self, status: InstanceStatus, which: int
    ) -> None:
        """The list may not show their instance yet. Eureka answers a heartbeat for it with 404 if
        its status is UNKNOWN."""
        story = Story()
        server = story.site.servers[which]
        server.answers["/eureka/apps"] = server.handle(_LIST)
        theirs = replace(instance(1), status=status, metadata={})
        server.client.register(theirs, dirty_timestamp=1)
        story.site.clock.sleep(30)
        report = story.world.run()
        del server.answers["/eureka/apps"]
        assert report.outcomes.by_key.keys() == {key(2)}
        assert story.held() == [
            {key(1), key(2)} if one is server else {key(2)} for one in story.site.servers
        ]
        stands = server.client.read_instance(key(1))
        assert stands is not None
        assert stands.instance == theirs

    def test_a_404_registers_nothing_that_is_not_desired(self) -> None:
        """A kept instance that one server lacks is renewed on the other server."""
        story = Story()
        story.run()
        story.site.servers[1].empty()
        story.world.cluster.services.clear()
        for _ in range(3):
            story.run()
        assert story.held() == [{key(1), key(2)}, set()]
        assert story.site.servers[0].sent() == ["Heartbeat"] * 2

    def test_an_instance_of_another_scope_on_one_server_is_not_cancelled_there(self) -> None:
        """Another scope's syncer has an instance with the same id. Only our own copy is
        cancelled."""
        story = Story()
        story.world.scope = Scope(namespaces=frozenset({NS}))
        story.run()
        one = instance(1, ref=SyncerRef("elsewhere", "cart"))
        story.site.servers[1].client.register(replace(one, key=key(1)), dirty_timestamp=NOW)
        story.world.cluster.apply(piece(endpoint(2)))
        story.run()
        assert story.held() == [{key(2)}, {key(1), key(2)}]

    @pytest.mark.parametrize("later", [1, 30])
    def test_a_persons_out_of_service_is_not_copied_to_another_server_as_up(
        self, later: float
    ) -> None:
        """The other server lacks the instance. It is not registered there as UP, even while the
        list shows it UP. It is renewed by single calls, which a replicating server hands on."""
        story = Story((1,))
        story.run()
        story.site.servers[0].handle(out_of_service(1))
        story.site.servers[1].empty()
        for _ in range(2):
            story.run(later)
            assert story.held() == [{key(1)}, set()]
            assert [call.method for call in story.site.servers[0].calls].count("PUT") == 1

    def test_batches_that_end_in_the_middle_of_a_pass_cost_no_renewal(self) -> None:
        """The remaining instances are renewed by single calls in the same pass."""
        story = Story()
        story.run()
        story.site.servers[0].answers[BATCH] = Response(status=403, body=b"{}")
        report = story.run()
        assert report.outcomes.succeeded == 2
        assert [call.method for call in story.site.servers[0].calls].count("PUT") == 2


class TestForms:
    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"{}",
            b"[]",
            b'{"responseList":null}',
            b'{"responseList":[{"statusCode":"200"}]}',
            b'{"responseList":[{}]}',
            b'{"responseList":[{"statusCode":200},{"statusCode":200}]}',
            b"\xff",
            b"[" * 5000,
        ],
    )
    def test_an_answer_of_another_form_is_unusable(self, body: bytes) -> None:
        """An answer with another number of items is also unusable."""
        with pytest.raises(RegistryUnusable):
            decode_answers(body, items=1)

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"{}",
            b"<a>",
            b"<html/>",
            b'<!DOCTYPE a [<!ENTITY b "c">]><a><applicationStats><registered-replicas>&b;</registered-replicas>'
            b"</applicationStats></a>",
            b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
            b"<a>" + b" " * 2**20 + b"</a>",
            b"<a><registered-replicas>http://x/eureka</registered-replicas></a>",
        ],
    )
    def test_a_status_page_of_another_form_is_unusable(self, body: bytes) -> None:
        """A document type is refused. It could name a local file, or expand without limit."""
        with pytest.raises(RegistryUnusable):
            decode_status(body)

    def test_replicas_are_read_however_they_are_divided(self) -> None:
        """Commas, blanks, a slash at the end and a login are accepted. A text that is no address
        counts as a replica that is not ours."""
        page = (
            b"<s><applicationStats><registered-replicas> http://u:p@A:1/eureka/, "
            b"https://b/eureka/v2/,nonsense"
            b"</registered-replicas></applicationStats><instanceInfo><instanceId>me</instanceId></instanceInfo></s>"
        )
        status = decode_status(page)
        assert status.instance_id == "me"
        assert status.replicas == (
            "http://a:1/eureka",
            "https://b/eureka/v2",
            "an address that cannot be read",
        )


class Crowded(EurekaClient):
    """A slow server that records how many batches it serves at once."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._lock = threading.Lock()

    def replicate(self, items: Sequence[bytes]) -> list[int]:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.02)
        with self._lock:
            self.now -= 1
        return [200] * len(items)

    def read_instance(self, key: InstanceKey) -> ObservedInstance | None:
        raise AssertionError(key)


def test_a_first_registration_leaves_a_server_time_for_others() -> None:
    """A server gets at most two batches of registrations at a time, whatever the number of workers.
    Renewals have no such limit."""
    clock, server = Clock(), Crowded()
    peer = Peer(url="one", client=server, asked=server, clock=clock)
    batches = EverywhereBatches(peers=[peer], clock=clock, limit=TimeLimit(clock), workers=InTurn())
    batches.use([peer])
    with ThreadWorkers(8) as workers:
        registered = workers.each(lambda n: batches.register([Dated(instance(n), NOW)]), range(16))
        assert ([one for each in registered for one in each], server.most) == (
            [Batched.DONE] * 16,
            2,
        )
        workers.each(lambda n: batches.renew([key(n)]), range(16))
    assert server.most > 2
