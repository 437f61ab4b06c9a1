"""The lock on the API server, embedded and real: who comes second is refused, and what others wrote
stays."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator

import pytest
from msgspec import Struct

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.kubernetes.connection import ClientConnection, ConnectionSettings
from eurekube_sync.adapters.kubernetes.lock_store import LeaseObject
from eurekube_sync.controller.lock import Held, HeldBy, Lock
from eurekube_sync.embedded.http import LoopbackServer
from eurekube_sync.model.errors import ClusterDenied, ClusterRejected, ClusterUnavailable
from eurekube_sync.model.kubernetes import FailedPass, GoodPass, LockName, LockRecord
from eurekube_sync.model.struct import replace
from tests.contract.client_subject import Subject
from tests.contract.kubernetes_subject import SERVERS
from tests.embedded.kubernetes import FullKubernetes

_numbers = itertools.count(1)
FAILED = FailedPass(
    at=1_800_000_060, reason="Denied", result='cannot list Pods: User "sync" may not, 403'
)
GOOD = GoodPass(
    at=1_800_000_000, holder="a", owner="shop", scope="-n shop", result="in sync, 2 renewed"
)


class Place(Struct, frozen=True, kw_only=True):
    """A namespace of a server, and one lock in it."""

    subject: Subject
    namespace: str

    def store(self, *, token: str = "", name: str = "shop") -> LeaseObject:
        """Our adapter."""
        settings = ConnectionSettings(kubeconfig=self.subject.kubeconfig(token=token))
        lock = LockName(namespace=self.namespace, name=name)
        return LeaseObject(
            ClientConnection(settings, {}), lock, clock=SystemClock(), random=random.Random(1)
        )

    @property
    def path(self) -> str:
        """Of the object."""
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/shop"


@pytest.fixture(scope="module", params=SERVERS)
def subject(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Subject]:
    directory = tmp_path_factory.mktemp("kubeconfigs")
    if request.param == "embedded":
        server = FullKubernetes(time.time, tokens={"secret": "admin"})
        with LoopbackServer(server.handle) as loopback:
            yield Subject(url=loopback.url, token="secret", ca_file="", directory=directory)
    else:
        real = request.getfixturevalue("kubernetes_servers")
        yield Subject(
            url=real.url, token=real.admin_token, ca_file=str(real.ca_file), directory=directory
        )


@pytest.fixture
def place(subject: Subject) -> Place:
    name = f"lock-{next(_numbers)}"
    assert subject.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})[0] == 201
    return Place(subject=subject, namespace=name)


def record(holder: str = "a", **fields: object) -> LockRecord:
    """One that a holder writes."""
    written = LockRecord(holder=holder, acquired=1_800_000_000.25, renewed=1_800_000_001.5)
    return replace(written, **fields)  # type: ignore[arg-type]


def test_it_is_made_read_and_written(place: Place) -> None:
    """All fields come back as they were written."""
    store = place.store()
    assert store.read() is None
    made = store.create(record())
    assert made is not None
    assert store.read() == made
    assert replace(made, version="") == record()
    written = store.replace(replace(made, holder="b", transitions=1, good=GOOD))
    assert written is not None
    assert store.read() == written
    assert replace(written, version="") == record("b", transitions=1, good=GOOD)


def test_who_makes_it_second_is_refused(place: Place) -> None:
    """409 AlreadyExists."""
    assert place.store().create(record("a")) is not None
    assert place.store().create(record("b")) is None


def test_who_writes_over_an_older_version_is_refused(place: Place) -> None:
    """409 Conflict, so two that read the same never both have it."""
    store = place.store()
    read = store.create(record())
    assert read is not None
    assert store.replace(replace(read, holder="b")) is not None
    assert store.replace(replace(read, holder="c")) is None
    current = store.read()
    assert current is not None
    assert current.holder == "b"


def test_one_that_was_deleted_is_not_written(place: Place) -> None:
    """404: its holder makes it again."""
    store = place.store()
    read = store.create(record())
    assert read is not None
    assert place.subject.call("DELETE", place.path)[0] == 200
    assert store.replace(read) is None


def test_a_released_one_has_no_holder(place: Place) -> None:
    """As leaders of other programs release theirs, so kubectl shows an empty HOLDER."""
    store = place.store()
    read = store.create(record())
    assert read is not None
    free = store.replace(replace(read, holder="", duration=1.0))
    assert free is not None
    assert (free.holder, free.duration) == ("", 1.0)


def test_labels_and_annotations_of_others_stay(place: Place) -> None:
    """A chart's, or a person's; and the last good pass while nobody writes another."""
    store = place.store()
    read = store.create(record(good=GOOD))
    assert read is not None
    patch = {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "ours"}}}
    assert place.subject.call("PATCH", place.path, patch)[0] == 200
    now = store.read()
    assert now is not None
    assert store.replace(replace(now, good=None)) is not None
    metadata = place.subject.call("GET", place.path)[1]["metadata"]
    assert metadata["labels"] == {"team": "a"}
    assert metadata["annotations"] == {
        "note": "ours",
        "eurekube.io/last-good-pass": "2027-01-15T08:00:00Z",
        "eurekube.io/last-good-holder": "a",
        "eurekube.io/last-good-result": "in sync, 2 renewed",
        "eurekube.io/owner": "shop",
        "eurekube.io/scope": "-n shop",
    }


def test_a_failed_pass_is_shown_until_a_good_one(place: Place) -> None:
    """Renewals between them leave it as it is."""
    store = place.store()
    read = store.create(record())
    assert read is not None
    for failed in (FAILED, None):
        read = store.replace(replace(read, failed=failed))
        assert read is not None
        assert read.failed == FAILED
    metadata = place.subject.call("GET", place.path)[1]["metadata"]
    assert metadata["annotations"] == {
        "eurekube.io/last-failed-pass": "2027-01-15T08:01:00Z",
        "eurekube.io/last-failed-reason": "Denied",
        "eurekube.io/last-failed-result": 'cannot list Pods: User "sync" may not, 403',
    }
    read = store.replace(replace(read, good=GOOD, failed=FAILED))
    assert read is not None
    assert (read.good, read.failed) == (GOOD, FAILED)
    read = store.replace(replace(read, good=GOOD, failed=None))
    assert read is not None
    assert (read.good, read.failed) == (GOOD, None)


def test_a_lease_that_another_program_made_is_read(place: Place) -> None:
    """Without a spec nobody has it; with annotations that somebody spoilt no pass is known."""
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "shop", "annotations": {"eurekube.io/last-good-pass": "yesterday"}},
    }
    assert place.subject.call("POST", place.path.removesuffix("/shop"), body)[0] == 201
    read = place.store().read()
    assert read is not None
    assert (read.holder, read.duration, read.good) == ("", 15.0, None)


def test_two_locks_on_it(place: Place) -> None:
    """One has it, the other waits; a release is taken at once."""
    clock = SystemClock()
    name = LockName(namespace=place.namespace, name="shop")
    a, b = (Lock(place.store(), clock, name, identity) for identity in "ab")
    a.attempt()
    b.attempt()
    assert (a.standing(), b.standing()) == (Held(), HeldBy("a"))
    a.attempt()
    a.release()
    b.attempt()
    assert (a.held, b.standing()) == (False, Held())


def test_without_a_namespace_it_says_so(subject: Subject) -> None:
    """A typo in --lock."""
    store = Place(subject=subject, namespace="nowhere").store()
    assert store.read() is None
    with pytest.raises(
        ClusterRejected, match=r"404 to POST .*/nowhere/leases: namespaces \"nowhere\" not found"
    ):
        store.create(record())


def test_a_missing_right_names_the_role(place: Place) -> None:
    """The one thing that an upgrade may forget."""
    role = (
        "The lock needs a Role in the namespace lock-[0-9]+ with the verbs create, get and "
        "patch for leases"
    )
    if place.subject.ca_file:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bare"}}
        accounts = f"/api/v1/namespaces/{place.namespace}/serviceaccounts"
        assert place.subject.call("POST", accounts, account)[0] == 201
        status, token = place.subject.call("POST", f"{accounts}/bare/token", {"spec": {}})
        assert status == 201
        with pytest.raises(ClusterDenied, match=role):
            place.store(token=token["status"]["token"]).read()
        return
    server = FullKubernetes(time.time, tokens={"secret": "admin"})
    server.deny("leases", "get")
    with LoopbackServer(server.handle) as loopback:
        bare = replace(place, subject=replace(place.subject, url=loopback.url))
        with pytest.raises(ClusterDenied, match=role):
            bare.store().read()


def test_a_server_that_is_away_raises_within_seconds(place: Place) -> None:
    """A holder must know in time."""
    store = replace(place, subject=replace(place.subject, url="http://127.0.0.1:9")).store()
    begun = time.monotonic()
    with pytest.raises(ClusterUnavailable):
        store.read()
    assert time.monotonic() - begun < 4
