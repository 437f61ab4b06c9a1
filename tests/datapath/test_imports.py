"""An import makes an app of the data centre callable by its name, on real servers all the way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.datapath.imported import ImportedService
from tests.datapath.instances import register, set_down, wait_for_list
from tests.integration.program import Program
from tests.servers.caller import PodCaller
from tests.servers.data_path import FIRST, NAMESPACE, NODE, POD, POD_ADDRESS, SECOND, DataPath
from tests.servers.eureka import EurekaServer
from tests.servers.world import KubernetesWorld
from tests.waiting import wait_until

pytestmark = pytest.mark.servers

_LABELS = {"app": "review"}


@pytest.fixture
def instances(eureka: EurekaServer) -> None:
    """Two instances of `review`, with different ports."""
    register(eureka, "REVIEW", [FIRST, SECOND])
    wait_for_list(eureka, "REVIEW", [FIRST, SECOND])


@pytest.fixture
def pod(data_path: DataPath, kubernetes_world: KubernetesWorld) -> Iterator[str]:
    """A ready pod with the labels of `review`, where the pod's server answers."""
    world = kubernetes_world
    world.create_pod(
        NAMESPACE, "review-b", labels=_LABELS, node=NODE, ips=[POD_ADDRESS], ports={"http": 8080}
    )
    yield "review-b"
    world.delete_pod(NAMESPACE, "review-b")


def test_the_smallest_import_makes_a_name_callable(
    data_path: DataPath,
    eureka: EurekaServer,
    program: Program,
    review: ImportedService,
    instances: None,
) -> None:
    """curl in the pod gets an answer after one pass, and the next pass writes nothing."""
    review.import_app()
    program.good()
    wait_until(lambda: data_path.curl("http://review/").returncode == 0, "nobody answers")
    program.good()
    assert set(program.kubernetes.methods()) == {"GET"}


def test_a_server_that_is_down_is_no_longer_called(
    eureka: EurekaServer,
    program: Program,
    review: ImportedService,
    instances: None,
    caller: PodCaller,
) -> None:
    """Its instance is DOWN, and one pass follows. No call fails meanwhile."""
    review.import_app()
    program.good()
    caller.wait_for_answers_of([FIRST, SECOND])
    begin = caller.so_far()
    set_down(eureka, "REVIEW", FIRST)
    wait_for_list(eureka, "REVIEW", [SECOND])
    program.good()
    caller.wait_for_answers_of([SECOND])
    assert caller.all(since=begin).failed == ()


def test_an_adopted_service_shares_its_calls_with_a_pod(
    program: Program,
    review: ImportedService,
    instances: None,
    caller: PodCaller,
    pod: str,
    kubernetes_world: KubernetesWorld,
) -> None:
    """The import of a Service with a selector. While the pod is not ready, the instances get all
    calls."""
    review.create(selector=_LABELS)
    review.import_app(adopt=True)
    program.good()
    caller.wait_for_answers_of([POD, FIRST, SECOND])
    begin = caller.so_far()
    kubernetes_world.set_ready(NAMESPACE, pod, False)
    caller.wait_for_answers_of([FIRST, SECOND])
    assert caller.all(since=begin).failed == ()
