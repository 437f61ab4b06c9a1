"""Both directions on one pair of servers: `rating` in the cluster is called from the data centre,
and `review` in the data centre from a pod.

A Spring application finds `rating` in Eureka, where the program registers it. The pod knows
`review` by its name alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.datapath.imported import ImportedService
from tests.datapath.instances import register, set_down, wait_for_list
from tests.integration.hand_made import make_syncer
from tests.integration.program import Program
from tests.servers.caller import PodCaller
from tests.servers.data_path import FIRST, NAMESPACE, NODE, POD, POD_ADDRESS, SECOND, DataPath
from tests.servers.eureka import EurekaServer
from tests.servers.namespaces import Forwarder
from tests.servers.spring_reader import SpringReader
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

pytestmark = pytest.mark.servers


@pytest.fixture
def rating(data_path: DataPath, kubernetes_world: KubernetesWorld, crds: None) -> Iterator[None]:
    """The Service `rating` with its syncer and one pod, where the pod's server answers."""
    world = kubernetes_world
    world.create_service(NAMESPACE, "rating", ports={"http": 8080})
    make_syncer(world, NAMESPACE, "rating", "rating")
    labels, ports = {"app": "rating"}, {"http": 8080}
    world.create_pod(
        NAMESPACE, "rating-a", labels=labels, node=NODE, ips=[POD_ADDRESS], ports=ports
    )
    world.wait_for_slices(NAMESPACE, "rating", {POD_ADDRESS: "Ready"})
    yield
    world.delete_pod(NAMESPACE, "rating-a")
    world.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/services/rating")


@pytest.fixture
def reader(
    data_path: DataPath, eureka: EurekaServer, rating: None, program: Program
) -> Iterator[SpringReader]:
    """A Spring application in the data centre, which calls `rating` all the time. It is started
    when the program has registered `rating`."""
    program.good()
    wait_for_list(eureka, "RATING", [POD])
    with (
        Forwarder(data_path.data_centre, eureka.port),
        SpringReader(eureka.url, ["rating"], namespace=data_path.data_centre) as reader,
    ):
        yield reader


def test_each_side_calls_the_other(
    data_path: DataPath,
    eureka: EurekaServer,
    program: Program,
    review: ImportedService,
    caller: PodCaller,
    reader: SpringReader,
) -> None:
    """`rating` is called from outside, while `review` is called by its name: first one server of
    it, then another one, when the first is DOWN."""
    review.import_app()
    for server in (FIRST, SECOND):
        register(eureka, "REVIEW", [server])
        if server == SECOND:
            set_down(eureka, "REVIEW", FIRST)
        wait_for_list(eureka, "REVIEW", [server])
        program.good()
        caller.wait_for_answers_of([server])
    assert data_path.curl("http://review/").stdout == SECOND
    wait_until(lambda: reader.calls("rating").by[POD] > 20, "the pod is not called")
    assert reader.calls("rating").failed == ()
