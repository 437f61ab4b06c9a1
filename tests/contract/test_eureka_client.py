"""Our Eureka client over HTTP: on the embedded and the real server, and on networks that fail."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import requests

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.model.errors import RegistryRejected
from eurekube_sync.model.eureka import (
    Instance,
    InstanceKey,
    InstanceStatus,
    LeaseTimes,
    ObservedInstance,
    Port,
)
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.struct import replace
from tests.contract.eureka_subject import EurekaSubject, embedded, embedded_guarded, real
from tests.waiting import wait_until

SERVERS = ["embedded", pytest.param("real", marks=pytest.mark.servers)]


def connect(url: str, **options: object) -> EurekaClient:
    address = EurekaAddress.parse(url)
    return EurekaClient(
        ConnectionOptions(address=address, **options),  # type: ignore[arg-type]
        clock=SystemClock(),
        random=random.Random(0),
    )


@pytest.fixture(scope="module", params=SERVERS)
def eureka(request: pytest.FixtureRequest) -> Iterator[EurekaSubject]:
    """A server with fast timings."""
    if request.param == "embedded":
        with embedded(stock=False) as subject:
            yield subject
    else:
        yield real(request.getfixturevalue("eureka_fast").url, stock=False)


@pytest.fixture
def client(eureka: EurekaSubject) -> Iterator[EurekaClient]:
    with connect(eureka.url("")) as connected:
        yield connected


@pytest.fixture
def wanted(client: EurekaClient, request: pytest.FixtureRequest) -> Iterator[Instance]:
    """An instance of an app of its own, cancelled afterwards."""
    app = f"CLIENT{abs(hash(request.node.name)) % 10**8}"
    instance = Instance(
        key=InstanceKey(app, f"prod:shop:{app.lower()}:fd00--1:8080"),
        host_name="[fd00::1]",
        ip_addr="fd00::1",
        port=Port(8080, False),
        secure_port=Port(8443, True),
        vip_address="rating,rating-v2",
        secure_vip_address="rating",
        status=InstanceStatus.UP,
        lease=LeaseTimes(30, 300),
        metadata={"eurekube.owner": "prod", "text": "ä <&\"' 你好 🙂", "empty": ""},
        home_page_url="http://[fd00::1]:8080/",
        status_page_url="http://[fd00::1]:8080/info",
        health_check_url="http://[fd00::1]:8080/health",
    )
    yield instance
    client.cancel(instance.key)


class TestCalls:
    def test_an_uncached_read_says_when_the_server_answered(
        self, eureka: EurekaSubject, client: EurekaClient, wanted: Instance
    ) -> None:
        """The age of a lease then needs only the server's clock. A list says nothing of it."""
        client.register(wanted, dirty_timestamp=1_795_248_000_785)
        assert client.renew(wanted.key)
        seen = client.read_instance(wanted.key)
        assert seen is not None
        assert abs(seen.read_at / 1000 - eureka.now()) < 30
        assert -2 < seen.read_at / 1000 - seen.renewed < 30
        listed = client.list_instances()
        assert isinstance(listed, Complete)
        assert {instance.read_at for instance in listed.data} <= {0}

    def test_a_registered_instance_is_read_back(
        self, client: EurekaClient, wanted: Instance
    ) -> None:
        """Every field of a register comes back by the uncached read, and when the server took
        it."""
        client.register(wanted, dirty_timestamp=1_795_248_000_785)
        stands = client.read_instance(wanted.key)
        assert stands is not None
        assert stands.last_renewal > 0
        assert replace(stands, last_renewal=0, registered=0, read_at=0) == ObservedInstance(
            instance=wanted, last_dirty_timestamp=1_795_248_000_785
        )

    def test_the_list_shows_a_registered_instance_too(
        self, eureka: EurekaSubject, client: EurekaClient, wanted: Instance
    ) -> None:
        """The list, once the cache turned, holds the same instance as the uncached read."""
        client.register(wanted, dirty_timestamp=1)

        def listed() -> bool:
            eureka.to_next_tick()
            source = client.list_instances()
            assert isinstance(source, Complete)
            seen = client.read_instance(wanted.key)
            return seen is not None and replace(seen, read_at=0) in source.data

        wait_until(listed, "the list lacks it, or tells of it otherwise")

    def test_each_call_says_whether_an_instance_is_absent(
        self, client: EurekaClient, wanted: Instance
    ) -> None:
        """Renew, cancel and read of nothing are False, False and None; after a register True."""
        assert client.renew(wanted.key) is False
        assert client.cancel(wanted.key) is False
        assert client.read_instance(wanted.key) is None
        client.register(wanted, dirty_timestamp=1)
        assert client.renew(wanted.key) is True
        assert client.cancel(wanted.key) is True

    def test_a_newer_register_changes_the_status(
        self, client: EurekaClient, wanted: Instance
    ) -> None:
        """DOWN and UP again, each with a higher timestamp, are what the server then says."""
        for timestamp, status in enumerate(
            (InstanceStatus.UP, InstanceStatus.DOWN, InstanceStatus.UP), start=1
        ):
            client.register(replace(wanted, status=status), dirty_timestamp=timestamp)
            seen = client.read_instance(wanted.key)
            assert seen is not None
            assert (seen.status, seen.last_dirty_timestamp) == (status, timestamp)

    def test_an_older_registration_is_ignored_without_an_error(
        self, client: EurekaClient, wanted: Instance
    ) -> None:
        """The server answers 204 to an older registration and ignores it: only a read shows
        that."""
        client.register(wanted, dirty_timestamp=5)
        client.register(replace(wanted, status=InstanceStatus.DOWN), dirty_timestamp=4)
        seen = client.read_instance(wanted.key)
        assert seen is not None
        assert seen.status is InstanceStatus.UP

    def test_an_operators_override_is_seen(
        self, eureka: EurekaSubject, client: EurekaClient, wanted: Instance
    ) -> None:
        """What a person set by `PUT status` is in `overridden_status`, and outlives our
        register."""
        client.register(wanted, dirty_timestamp=1)
        eureka.put(f"/apps/{wanted.key.app}/{wanted.key.id}/status", value="OUT_OF_SERVICE")
        client.register(wanted, dirty_timestamp=2)
        seen = client.read_instance(wanted.key)
        assert seen is not None
        assert (seen.status, seen.instance.override) == (
            InstanceStatus.OUT_OF_SERVICE,
            InstanceStatus.OUT_OF_SERVICE,
        )

    def test_two_reads_show_whether_somebody_renewed(
        self, eureka: EurekaSubject, client: EurekaClient, wanted: Instance
    ) -> None:
        """`last_renewal` stays as it is while nobody renews, and moves with a renewal and a
        register."""

        def stamp() -> int:
            seen = client.read_instance(wanted.key)
            assert seen is not None
            return seen.last_renewal

        client.register(wanted, dirty_timestamp=1)
        registered = stamp()
        eureka.wait(0.1)
        assert stamp() == registered > 0
        assert client.renew(wanted.key)
        renewed = stamp()
        eureka.wait(0.1)
        assert stamp() == renewed > registered
        assert client.renew(wanted.key)
        again = stamp()
        assert again > renewed
        client.register(wanted, dirty_timestamp=2)
        assert stamp() != again

    def test_an_instance_shows_when_it_was_last_registered_or_renewed(
        self, eureka: EurekaSubject, client: EurekaClient, wanted: Instance
    ) -> None:
        """By the server's clock. Right after a registration the time of the renewal is that of the
        registration."""

        def ago() -> float:
            seen = client.read_instance(wanted.key)
            assert seen is not None
            return eureka.now() - seen.renewed

        client.register(wanted, dirty_timestamp=1)
        assert ago() == pytest.approx(0, abs=60)
        assert client.renew(wanted.key)
        assert ago() == pytest.approx(0, abs=60)

    def test_an_override_moves_along_to_another_id(
        self, eureka: EurekaSubject, client: EurekaClient, wanted: Instance
    ) -> None:
        """A person's OUT_OF_SERVICE stands under the new id when the old one is gone, and can be
        taken off there."""
        out = InstanceStatus.OUT_OF_SERVICE
        client.register(wanted, dirty_timestamp=1)
        eureka.put(f"/apps/{wanted.key.app}/{wanted.key.id}/status", value="OUT_OF_SERVICE")
        moved = replace(
            wanted, key=InstanceKey(wanted.key.app, f"{wanted.key.id}0"), status=out, override=out
        )
        client.register(moved, dirty_timestamp=2)
        assert client.cancel(wanted.key)
        assert client.renew(moved.key)
        client.register(
            replace(moved, status=InstanceStatus.UP, override=InstanceStatus.UNKNOWN),
            dirty_timestamp=3,
        )
        seen = client.read_instance(moved.key)
        assert seen is not None
        assert (seen.status, seen.instance.override) == (out, out)
        assert (
            eureka.delete(f"/apps/{moved.key.app}/{moved.key.id}/status", value="UP").status_code
            == 200
        )
        seen = client.read_instance(moved.key)
        assert seen is not None
        assert (seen.status, seen.instance.override) == (InstanceStatus.UP, InstanceStatus.UNKNOWN)

    def test_a_bad_instance_is_rejected_with_the_reason(
        self, client: EurekaClient, wanted: Instance
    ) -> None:
        """A 400 is about this one instance and says why."""
        with pytest.raises(RegistryRejected, match="Missing ip address"):
            client.register(replace(wanted, ip_addr=""), dirty_timestamp=1)

    def test_a_url_without_eureka_is_reported(self, eureka: EurekaSubject) -> None:
        """Without `/eureka` the list says what the URL lacks."""
        with connect(eureka.root) as lost:
            source = lost.list_instances()
        assert isinstance(source, Unknown)
        assert (
            source.message
            == f"{eureka.root}/apps was not found: check that the URL ends in /eureka"
        )

    def test_many_threads_share_a_client(self, client: EurekaClient, wanted: Instance) -> None:
        """16 threads with 8 connections lose no call."""
        keys = [InstanceKey(wanted.key.app, f"{wanted.key.id}{number}") for number in range(64)]

        def work(key: InstanceKey) -> tuple[bool, bool]:
            client.register(replace(wanted, key=key), dirty_timestamp=1)
            return client.renew(key), client.cancel(key)

        with ThreadPoolExecutor(16) as pool:
            assert set(pool.map(work, keys)) == {(True, True)}


def test_a_refused_login_and_a_warm_up_have_different_messages() -> None:
    """Without login, with a wrong one, and while the server warms up, the list says which it is.

    That the real server answers as the embedded one does is in `test_eureka.py`.
    """
    with embedded_guarded("sync", "secret") as url:
        said = []
        for login in ("", "sync:wrong@", "sync:secret@"):
            with connect(url.replace("://", f"://{login}")) as client:
                source = client.list_instances()
                assert isinstance(source, Unknown)
                said.append((source.cause, source.message))
    assert [cause for cause, _ in said] == [Cause.DENIED, Cause.DENIED, Cause.UNAVAILABLE]
    assert "give user and password" in said[0][1]
    assert "refuses this user" in said[1][1]
    assert "5 minutes" in said[2][1]
    assert not any("secret" in message or "wrong" in message for _, message in said)


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that reads a request and then does with the connection as `answer` says."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                try:
                    answer(connection)
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/eureka"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


class TestNetwork:
    def test_an_answer_cut_by_the_network_is_unknown(self) -> None:
        """Fewer bytes than `Content-Length` says are no list, even if they were whole JSON."""
        body = b'{"applications":{"application":[]}}'

        def cut(connection: socket.socket) -> None:
            head = (
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                % (len(body) + 9)
            )
            connection.sendall(head + body)

        with answering(cut) as url, connect(url, retries=0) as client:
            source = client.list_instances()
        assert isinstance(source, Unknown)
        assert source.message == f"GET {url}/apps failed: the answer broke off"

    def test_a_connection_that_is_closed_without_an_answer_is_unknown(self) -> None:
        """A closed connection is a failure of the network."""
        with answering(lambda connection: None) as url, connect(url, retries=0) as client:
            source = client.list_instances()
        assert isinstance(source, Unknown)
        assert source.cause is Cause.UNAVAILABLE

    def test_a_silent_server_is_given_up(self) -> None:
        """No answer within the read timeout ends the call."""
        over = threading.Event()

        def silent(connection: socket.socket) -> None:
            over.wait(60)

        with answering(silent) as url, connect(url, retries=0, read_timeout=0.5) as client:
            source = client.list_instances()
            over.set()
        assert isinstance(source, Unknown)
        assert source.message == f"GET {url}/apps failed: no answer in time"

    def test_a_trickling_server_is_given_up(self) -> None:
        """An answer that comes byte by byte is bounded as a whole."""

        def trickle(connection: socket.socket) -> None:
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: "
                b"chunked\r\n\r\n"
            )
            while True:  # until the other end hangs up
                connection.sendall(b"1\r\n \r\n")
                time.sleep(0.05)

        with answering(trickle) as url, connect(url, retries=0, answer_timeout=1) as client:
            source = client.list_instances()
        assert isinstance(source, Unknown)
        assert "not answered completely in 1 s" in source.message

    def test_a_closed_port_is_refused(self) -> None:
        """Nobody listening is told as such."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        with connect(f"http://127.0.0.1:{port}/eureka", retries=0) as client:
            source = client.list_instances()
        assert isinstance(source, Unknown)
        assert "the connection was refused" in source.message

    def test_https_to_a_plain_port_is_reported(self) -> None:
        """The message for `https` where the server speaks `http` has the way to write the URL."""

        def plain(connection: socket.socket) -> None:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

        with answering(plain) as url, connect(url.replace("http:", "https:"), retries=0) as client:
            source = client.list_instances()
        assert isinstance(source, Unknown)
        assert "this port does not speak TLS; begin the URL with http://" in source.message


def test_a_200_to_a_write_has_no_body(
    client: EurekaClient, wanted: Instance, eureka: EurekaSubject
) -> None:
    """So a 200 with a body is another program's."""
    client.register(wanted, dirty_timestamp=int(time.time() * 1000))
    path = eureka.url(f"/apps/{wanted.key.app}/{wanted.key.id}")
    renewed, cancelled = requests.put(path, timeout=30), requests.delete(path, timeout=30)
    assert [(one.status_code, one.content) for one in (renewed, cancelled)] == [(200, b"")] * 2


def test_without_a_list_a_renewal_is_believed(client: EurekaClient, wanted: Instance) -> None:
    """The client asks the server to renew an instance that cannot exist, which is a 404. Eureka
    registers nothing for that, nor for the registration that `check` tries."""
    client.register(wanted, dirty_timestamp=int(time.time() * 1000))
    assert client.renew(wanted.key)
    client.try_registration()
    assert client.read_instance(InstanceKey("EUREKUBE-SYNC-PROBE", "eurekube-sync-probe")) is None
    assert client.cancel(wanted.key)
