"""Calls from a pod by the Service's name, with Services and slices in the shape that an import
gives them. kube-proxy, CoreDNS, the API server and its controllers are real."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from tests.datapath.imported import ImportedService
from tests.servers.caller import PodCaller
from tests.servers.data_path import (
    FIRST,
    NAMESPACE,
    NODE,
    POD,
    POD_ADDRESS,
    SECOND,
    DataPath,
)
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

_LABELS = {"app": "review"}


@pytest.fixture
def pod(data_path: DataPath, kubernetes_world: KubernetesWorld) -> Iterator[str]:
    """A ready pod with the labels of `review`, where the pod's server answers."""
    world = kubernetes_world
    world.create_pod(
        NAMESPACE, "review-a", labels=_LABELS, node=NODE, ips=[POD_ADDRESS], ports={"http": 8080}
    )
    yield "review-a"
    world.delete_pod(NAMESPACE, "review-a")


def test_a_name_leads_to_two_servers_with_different_ports(
    data_path: DataPath, review: ImportedService
) -> None:
    """curl finds the Service by its bare name, and both servers answer."""
    review.create()
    review.lead_to([FIRST, SECOND])
    wait_until(lambda: data_path.curl("http://review/").returncode == 0, "nobody answers")
    wait_until(lambda: data_path.curl("http://review/").stdout == FIRST, "the first is not called")
    wait_until(lambda: data_path.curl("http://review/").stdout == SECOND, "nor is the second")


def test_a_server_that_leaves_its_slice_is_no_longer_called(
    review: ImportedService, caller: PodCaller
) -> None:
    """One of two leaves, then the other one takes its place. No call fails meanwhile."""
    review.create()
    review.lead_to([FIRST, SECOND])
    caller.wait_for_answers_of([FIRST, SECOND])
    begin = caller.so_far()
    review.lead_to([SECOND])
    caller.wait_for_answers_of([SECOND])
    review.lead_to([FIRST])
    caller.wait_for_answers_of([FIRST])
    assert caller.all(since=begin).failed == ()


def test_a_mixed_service_shares_its_calls_with_a_pod(
    review: ImportedService, caller: PodCaller, kubernetes_world: KubernetesWorld, pod: str
) -> None:
    """Each endpoint gets its share: the pod of the selector, and the two servers of our slices.
    While the pod is not ready they get all, and without them the pod does. No call fails."""
    review.create(selector=_LABELS)
    review.lead_to([FIRST, SECOND])
    caller.wait_for_answers_of([POD, FIRST, SECOND])
    begin = caller.so_far()
    shares = caller.next(300).by
    assert min(shares.values()) > 50, shares
    kubernetes_world.set_ready(NAMESPACE, pod, False)
    caller.wait_for_answers_of([FIRST, SECOND])
    kubernetes_world.set_ready(NAMESPACE, pod, True)
    caller.wait_for_answers_of([POD, FIRST, SECOND])
    review.lead_to([])
    caller.wait_for_answers_of([POD])
    assert caller.all(since=begin).failed == ()


def test_a_service_without_endpoints_refuses_at_once(
    data_path: DataPath, review: ImportedService
) -> None:
    """So does one that never had an endpoint, and one whose slice was emptied."""
    address = review.create()
    wait_until_refused(data_path, address)
    review.lead_to([FIRST])
    wait_until(lambda: data_path.curl("http://review/").stdout == FIRST, "nobody answers")
    review.lead_to([])
    wait_until_refused(data_path, address)


def wait_until_refused(data_path: DataPath, address: str) -> None:
    """Wait until a call is refused, and find another one refused, too.

    The kernel refuses by ICMP, and sends one packet a second to each caller after a first few
    (`icmp_ratelimit`). A caller that gets none tries again after a second.
    """

    def refused() -> bool:
        try:
            data_path.pod.inside(lambda: socket.create_connection((address, 80), 0.9)).close()
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
        return False

    wait_until(refused, f"{address} does not refuse calls")
    time.sleep(1.2)
    assert refused()
