"""`pod.address: HostPort`, and host names of nodes, through whole passes. `tests/cases/fields.yaml`
has a row for each kind of pod."""

from __future__ import annotations

import pytest

from eurekube_sync.desired.claims import NotServed, Serving
from eurekube_sync.model.kubernetes import HostPort, PodHost, SyncerObject
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import NS, REF, endpoint, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld

AT_HOST = {"address": "HostPort"}
UNREAD = Unknown(cause=Cause.DENIED, message="403")


def host(number: int = 1, *, port: int | None = 31080, address: str = "") -> PodHost:
    """The host of the pod `rating-<number>`, on the node 192.168.7.<number>."""
    ports = {} if port is None else {8080: HostPort(port, address)}
    uid = f"uid-of-rating-{number}"
    return PodHost(uid=uid, addresses=(f"192.168.7.{number}",), ports=ports)


def world(*hosts: PodHost, at: SyncerObject | None = None) -> FakeWorld:
    """Two ready pods and a syncer that registers them at their hosts."""
    made = FakeWorld()
    made.cluster.apply(service(), piece(endpoint(1), endpoint(2)), at or syncer(pod=AT_HOST))
    made.cluster.hosts[NS] = hosts
    return made


def places(made: FakeWorld) -> list[str]:
    """Address and port of what Eureka has."""
    ids = [key.id for key in made.registry.held]
    return sorted(":".join(id_.split(":")[-2:]) for id_ in ids)


def claim_of(made: FakeWorld) -> Serving | NotServed:
    desired = made.run().desired
    assert desired is not None
    claim = desired.claims[REF]
    assert isinstance(claim, Serving | NotServed)
    return claim


def test_each_pod_is_registered_at_its_host() -> None:
    """The status has the pods' own port, by which they stay if the Service's port is renamed."""
    made = world(host(1), host(2))
    made.run()
    assert places(made) == ["192.168.7.1:31080", "192.168.7.2:31080"]
    claim = claim_of(made)
    assert isinstance(claim, Serving)
    assert [(row.service, row.port) for row in claim.ports] == [("rating", 8080)]


def test_a_pod_that_is_not_listed_yet_keeps_what_stands() -> None:
    """The list of pods is older than the slice, or newer."""
    made = world(host(1), host(2))
    made.run()
    made.cluster.hosts[NS] = (host(1),)
    claim = claim_of(made)
    assert isinstance(claim, Serving)
    assert places(made) == ["192.168.7.1:31080", "192.168.7.2:31080"]
    assert any("is not in the list of pods" in warning for warning in claim.warnings)


def test_while_the_pods_cannot_be_read_all_stays() -> None:
    """Nothing is known of the host ports, so nothing new is registered either."""
    made = world(host(1), host(2))
    made.run()
    made.cluster.unknown["hosts", NS] = UNREAD
    claim = claim_of(made)
    assert isinstance(claim, NotServed)
    assert claim.source == UNREAD
    assert places(made) == ["192.168.7.1:31080", "192.168.7.2:31080"]


def test_a_pod_that_ends_goes_with_or_without_its_host() -> None:
    """A terminating pod may be gone from the list of pods."""
    made = world(host(1), host(2))
    made.run()
    made.cluster.apply(piece(endpoint(1), endpoint(2, terminating=True)))
    made.cluster.hosts[NS] = (host(1),)
    made.run()
    assert places(made) == ["192.168.7.1:31080"]


@pytest.mark.parametrize(
    ("hosts", "family", "words"),
    [
        ((), None, "is not in the list of pods"),
        ((host(port=None),), None, "has no hostPort for its port 8080"),
        ((host(address="127.0.0.1"),), None, "has no hostPort for its port 8080"),
        ((host(address="::1"),), None, "has no hostPort for its port 8080"),
        ((replace(host(), addresses=()),), None, "has no address of its node"),
        ((replace(host(), addresses=("node-a",)),), None, "has no address of its node"),
        ((replace(host(), addresses=("fd00::1",)),), "IPv4", "has no IPv4 address of its node"),
    ],
)
def test_without_a_host_port_no_pod_is_registered(
    hosts: tuple[PodHost, ...], family: str | None, words: str
) -> None:
    """The sentence names the pod."""
    made = world(*hosts, at=syncer(pod=AT_HOST, addressFamily=family))
    made.cluster.apply(piece(endpoint(1)))
    claim = claim_of(made)
    assert isinstance(claim, NotServed)
    assert claim.reason is Reason.NO_SUCH_PORT
    assert claim.message.startswith("pod rating-1 ")
    assert words in claim.message
    assert places(made) == []


def test_a_deleted_syncer_cancels_at_the_hosts() -> None:
    """Its instances are known by the hosts that the pods have now."""
    made = world(host(1), host(2))
    made.run()
    made.cluster.delete(REF)
    made.run()
    assert places(made) == []


@pytest.mark.parametrize(
    ("known", "warned"),
    [
        (host(port=None), True),
        (replace(host(port=None), host_network=True), False),
        (None, False),
    ],
)
def test_the_name_of_a_node_needs_a_port_of_the_node(known: PodHost | None, warned: bool) -> None:
    """With hostNetwork the pod's port is the node's. If the pods cannot be read, nobody knows, and
    the instances are registered all the same."""
    made = world(*((known,) if known else ()), at=syncer(hostName="nodeName"))
    if known is None:
        made.cluster.unknown["hosts", NS] = UNREAD
    one = replace(endpoint(1), node="node-a")
    made.cluster.apply(piece(one))
    claim = claim_of(made)
    assert isinstance(claim, Serving)
    assert any("where nobody listens" in warning for warning in claim.warnings) is warned
    assert places(made) == ["10.0.0.1:8080"]
