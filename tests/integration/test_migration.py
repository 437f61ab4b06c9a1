"""An app moves from the data centre to the cluster in shares: what a Spring-like caller of a real
Eureka sees."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import requests

from tests.integration.program import Program, Registry
from tests.servers.world import EndpointState, KubernetesWorld

pytestmark = pytest.mark.servers

NAMESPACE = "migration"
SYNCER = f"/apis/eurekube.io/v1/namespaces/{NAMESPACE}/eurekasyncers/rating"
DATA_CENTRE = 9
PODS = 12


@dataclass(frozen=True, kw_only=True)
class Caller:
    """A service with Spring's Eureka client and load balancer. It looks up the VIP, and calls the
    host names of UP instances in turn."""

    url: str
    vip: str

    def hosts(self) -> list[str]:
        """The hosts that it would call, from the server's list, which is as old as its cache."""
        answer = requests.get(
            f"{self.url}/vips/{self.vip}", headers={"Accept": "application/json"}, timeout=30
        )
        instances = [
            i for app in answer.json()["applications"]["application"] for i in app["instance"]
        ]
        return [instance["hostName"] for instance in instances if instance["status"] == "UP"]

    def share(self, prefix: str, calls: int = 360) -> float:
        """The part of its calls that goes to hosts with this prefix."""
        chosen = itertools.islice(itertools.cycle(self.hosts()), calls)
        return sum(host.startswith(prefix) for host in chosen) / calls


@pytest.fixture
def world(kubernetes_world: KubernetesWorld) -> Iterator[KubernetesWorld]:
    """The Service `rating` with twelve ready pods at 10.2.0.x."""
    with contextlib.suppress(requests.HTTPError):
        kubernetes_world.create_node("migration-node", zone="a")
    kubernetes_world.create_namespace(NAMESPACE)
    kubernetes_world.create_service(
        NAMESPACE, "rating", ports=[{"name": "http", "port": 80, "targetPort": "http"}]
    )
    for number in range(1, PODS + 1):
        kubernetes_world.create_pod(
            NAMESPACE, f"rating-{number}", ips=[f"10.2.0.{number}"], labels={"app": "rating"}, node="migration-node",
            ports={"http": 8080},
        )  # fmt: skip
    ready: dict[str, EndpointState] = {f"10.2.0.{number}": "Ready" for number in range(1, PODS + 1)}
    kubernetes_world.wait_for_slices(NAMESPACE, "rating", ready)
    yield kubernetes_world
    for number in range(1, PODS + 1):
        kubernetes_world.delete_pod(NAMESPACE, f"rating-{number}")


def test_an_app_moves_in_shares(
    program: Program, registry: Registry, world: KubernetesWorld
) -> None:
    """A round robin sees 10 %, 50 % and 100 %, within one instance. A smaller data centre removes
    no instance of the cluster, and a lowered share does."""
    app = program.owner.upper()
    vip = program.owner
    caller = Caller(url=registry.url, vip=vip)
    centre = [f"dc-{number}:{vip}" for number in range(DATA_CENTRE)]
    ours = [
        f"{program.owner}:{NAMESPACE}:{vip}:10.2.0.{number}:8080" for number in range(1, PODS + 1)
    ]
    every = [*centre, *ours]
    for number, id_ in enumerate(centre):
        registry.register(app, id_, f"192.0.2.{number + 1}")
    spec: dict[str, Any] = {
        "mode": "pod",
        "selector": {"app": "rating"},
        "appName": vip,
        "limit": 0,
    }
    body = {
        "apiVersion": "eurekube.io/v1",
        "kind": "EurekaSyncer",
        "metadata": {"name": "rating"},
        "spec": spec,
    }
    world.request("POST", SYNCER.rpartition("/")[0], body)

    def list_follows() -> None:
        """Wait until the server's cached lists are up to date. The program reads the list of all,
        the caller reads the VIP's, and each has its own cache."""
        registry.wait_for_list(
            lambda: (
                sorted(caller.hosts())
                == sorted(_hosts(registry, app, every))
                == registry.listed_hosts(app)
            ),
            lambda: (
                f"the VIP's list shows {caller.hosts()}, that of all {registry.listed_hosts(app)}"
            ),
            app=app,
        )

    def step(limit: Any) -> str:
        """Set the limit, look at the dry run and make two passes. Then the caller reads the list
        again."""
        list_follows()
        world.request("PATCH", SYNCER, {"spec": {"limit": limit}})
        dry = program.good("--dry-run")
        program.good()
        program.good()
        list_follows()
        return next(str(message) for message in dry["messages"] if "share" in message)

    def sees(expected: float) -> None:
        """The caller sees this share, within one instance."""
        share = caller.share("10.2.")
        assert abs(share - expected) <= 1 / len(caller.hosts()), (
            f"{share:.1%} and not {expected:.0%}"
        )

    assert caller.share("10.2.") == 0
    assert f"share 10% of VIP {vip} allows 1 with 9 other UP instances" in step({"share": "10%"})
    sees(0.10)
    assert f"share 50% of VIP {vip} allows 9 with 9 other UP instances" in step({"share": "50%"})
    sees(0.50)

    for id_ in centre[:4]:
        requests.delete(f"{registry.url}/apps/{app}/{id_}", timeout=30)
    before = {host for host in _hosts(registry, app, every) if host.startswith("10.2.")}
    assert f"share 50% of VIP {vip} allows 5 with 5 other UP instances: registers 9" in step(
        {"share": "50%"}
    )
    assert {host for host in caller.hosts() if host.startswith("10.2.")} == before
    assert len(before) == 9

    step({"share": "100%"})
    assert len(caller.hosts()) == PODS + 5
    for id_ in centre[4:]:
        requests.delete(f"{registry.url}/apps/{app}/{id_}", timeout=30)
    step({"share": "100%"})
    sees(1.00)

    for number, id_ in enumerate(centre):
        registry.register(app, id_, f"192.0.2.{number + 1}")
    step({"share": "10%"})
    sees(0.10)
    for id_ in centre:
        requests.delete(f"{registry.url}/apps/{app}/{id_}", timeout=30)


def _hosts(registry: Registry, app: str, ids: Iterable[str]) -> list[str]:
    """The host names of the UP instances among these, by uncached reads."""
    found = [registry.instance(app, id_) for id_ in ids]
    return [one["hostName"] for one in found if one and one["status"] == "UP"]
