"""The table of fields on the embedded servers. `tests/cases/fields.yaml` documents the fields."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.manifests.crd import load_crd
from eurekube_sync.plan.ours import differences
from tests.cases.fields import (
    Row,
    create,
    differences_from,
    field_rows,
    gateway_api,
    instances_of,
    look,
)
from tests.embedded.eureka import FullEureka
from tests.embedded.kubernetes import FullKubernetes
from tests.in_process.eureka import InProcessAdapter
from tests.in_process.kubernetes import InProcessConnection

NAMESPACE = "fields"
ROWS = field_rows()
NOW = 1_800_000_000.0


class Clock:
    """A clock that does not move."""

    def now(self) -> float:
        return NOW

    def monotonic(self) -> float:
        return NOW

    def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing waits here")

    def stopping(self) -> bool:
        return False


class Half:
    """A random number that is always in the middle."""

    def random(self) -> float:
        return 0.5


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.title)
def test_a_field_does_what_its_row_says(row: Row) -> None:
    """The row has objects and the resulting instances. Eureka returns each instance as it was
    sent."""
    definitions = [load_crd(), *gateway_api()]
    server = FullKubernetes(lambda: NOW, definitions=definitions, families=("IPv4", "IPv6"))

    def send(method: str, path: str, body: Any) -> Any:
        status, answer = server.call(method, path, body)
        assert status < 300, answer
        return answer

    send("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    create(row, send, NAMESPACE)
    cluster = KubernetesCluster(InProcessConnection(server.handle), clock=Clock(), random=Half())
    desired = look(cluster, NAMESPACE, row)
    assert differences_from(row, desired, NAMESPACE) == []
    eureka = FullEureka(lambda: NOW)
    options = ConnectionOptions(address=EurekaAddress(url="http://eureka.test/eureka"))
    with EurekaClient(
        options, clock=Clock(), random=Half(), adapter=InProcessAdapter(eureka.handle)
    ) as registry:
        for instance in instances_of(desired):
            registry.register(instance, dirty_timestamp=int(NOW * 1000))
            stored = registry.read_instance(instance.key)
            assert stored is not None
            assert differences(instance, stored) == ()


def test_the_table_has_rows_for_every_field() -> None:
    """Another suite tests syncerClass. A secure VIP is tested beside its plain one."""
    spec = load_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][
        "properties"
    ]
    beside = {"syncerClass", "secureVipAddress"}
    assert set(spec) - beside == {row.field.split(".")[0] for row in ROWS} - {
        "sources",
        "two syncers",
        "drain",
    }
    for name in ("selector", "pod", "service"):
        parts = {row.field.partition(".")[2] for row in ROWS if row.field.startswith(f"{name}.")}
        assert parts == set(spec[name]["properties"])
