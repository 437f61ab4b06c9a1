"""Syncers and imports in one pass: the real controller and adapters between the embedded
servers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.cli.records import Recording, decoded, encoded, recorded_pass
from eurekube_sync.controller.diagnosis import problems_to_decide
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.controller.one_pass import Memory, PassReport, PassSettings, World
from eurekube_sync.controller.reconcile import reconcile
from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.ownership import Former
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import OwnWrites
from tests.embedded.eureka import FullEureka
from tests.embedded.kubernetes import FullKubernetes
from tests.in_process.eureka import InProcessSession
from tests.in_process.kubernetes import InProcessConnection
from tests.in_process.workers import InTurn
from tests.unit.worlds.clock import Clock

SLICES = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"
SERVICES = "/api/v1/namespaces/shop/services"
IMPORTS = "/apis/eurekube.io/v1/namespaces/shop/eurekaimports"
SYNCERS = "/apis/eurekube.io/v1/namespaces/shop/eurekasyncers"
WRITES = ("POST", "PUT", "PATCH", "DELETE")


@cache
def definitions() -> list[Any]:
    folder = Path(__file__).parents[3] / "crds"
    return [yaml.safe_load(file.read_text()) for file in sorted(folder.glob("*.yaml"))]


class Servers:
    """Both embedded servers, and a process that makes passes between them."""

    def __init__(self) -> None:
        self.clock = Clock(1_800_000_000.0)
        self.recording = Recording(self.clock)
        self.kubernetes = FullKubernetes(self.clock.now, definitions=definitions())
        self.eureka = FullEureka(self.clock.now, self_preservation=False)
        self.settings = PassSettings(owner="prod", import_networks=("10.20.0.0/16",))
        self.writes: list[str] = []
        limit = TimeLimit(self.clock)
        self._limit = limit
        client = self._client(lambda request: self.eureka.handle(request))
        connection = self.recording.connection(InProcessConnection(self._note))
        cluster = KubernetesCluster(
            connection, clock=self.clock, random=random.Random(1), limit=limit
        )
        self.world = World(
            registry=self.recording.registry(client),
            cluster=cluster,
            imports=cluster.imports,
            clock=self.clock,
            workers=InTurn(),
            renewals=RenewalLedger(period=30, slack=15),
            memory=Memory(own_writes=OwnWrites(seconds=45)),
            time_limit=limit,
        )
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})

    def _client(self, handle: Callable[[Request], Response]) -> EurekaClient:
        return EurekaClient(
            ConnectionOptions(
                address=EurekaAddress.parse("http://eureka:8761/eureka"), read_timeout=10, retries=0
            ),
            clock=self.clock,
            random=random.Random(1),
            session=InProcessSession(handle),
            limit=self._limit,
        )

    def know(self, other: FullEureka | None) -> None:
        """Give the process another Eureka server, which may not answer."""

        def refused(request: Request) -> Response:
            raise ConnectionRefusedError("connection refused")

        first = self._client(lambda request: self.eureka.handle(request))
        second = self._client(refused if other is None else other.handle)
        servers = self.recording.servers({"first": first, "second": second})
        self.world = replace(self.world, servers=servers)

    def _note(self, request: Request) -> Any:
        if request.method in WRITES:
            self.writes.append(f"{request.method} {request.path.rsplit('/', 1)[1]}")
        return self.kubernetes.handle(request)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = self.kubernetes.call(method, path, body)
        assert status < 300, (method, path, answer)
        return answer

    def register(
        self,
        number: int,
        *,
        app: str = "REVIEW",
        status: str = "UP",
        metadata: dict[str, str] | None = None,
        at: FullEureka | None = None,
    ) -> None:
        """Register an instance of the data centre, or renew it with another status."""
        instance = {
            "instanceId": f"dc-{number}",
            "app": app,
            "hostName": f"dc-{number}.example.com",
            "ipAddr": f"10.20.0.{number}",
            "status": status,
            "port": {"$": 8080, "@enabled": "true"},
            "securePort": {"$": 443, "@enabled": "false"},
            "vipAddress": app.lower(),
            "dataCenterInfo": {
                "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
                "name": "MyOwn",
            },
            "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": 90_000},
            "metadata": metadata or {},
            "lastDirtyTimestamp": str(int(self.clock.now() * 1000)),
        }
        headers = {"content-type": "application/json"}
        body = json.dumps({"instance": instance}).encode()
        request = Request(
            method="POST", path=f"/eureka/apps/{app}", query={}, headers=headers, body=body
        )
        assert (at or self.eureka).handle(request).status == 204

    def cancel(self, number: int, app: str = "REVIEW") -> None:
        path = f"/eureka/apps/{app}/dc-{number}"
        request = Request(method="DELETE", path=path, query={}, headers={}, body=b"")
        assert self.eureka.handle(request).status == 200

    def passes(self) -> PassReport:
        """Make a pass when Eureka's lists show what was registered."""
        self.clock.sleep(60)
        self.writes.clear()
        self.recording.begin(self.world)
        report = reconcile(self.world, self.settings)
        assert report.cluster_errors == ()
        assert report.imports is not None
        assert report.imports.failures == ()
        return report

    def endpoints(self) -> list[str]:
        found = []
        for piece in self.ask("GET", SLICES)["items"]:
            if "eurekube.io/import" in piece["metadata"]["labels"]:
                for endpoint in piece["endpoints"] or ():
                    found += endpoint["addresses"]
        return sorted(found)

    def ready(self) -> tuple[str, str]:
        status = self.ask("GET", f"{IMPORTS}/review")["status"]
        (ready,) = [each for each in status["conditions"] if each["type"] == "Ready"]
        return ready["status"], ready["reason"]


def code(report: PassReport) -> ExitCode:
    return of_report(report, fail_on_held=True, detailed=False)


def manifest(kind: str, name: str, spec: Any) -> Any:
    return {"apiVersion": "eurekube.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def test_both_directions_in_one_pass() -> None:
    """An app of the data centre is callable in the cluster, and a pod of the cluster from there.
    What was imported is not registered back."""
    there = Servers()
    there.ask("POST", "/api/v1/nodes", {"metadata": {"name": "node-1"}})
    there.ask("POST", IMPORTS, manifest("EurekaImport", "review", {"app": "review"}))
    there.ask("POST", SYNCERS, manifest("EurekaSyncer", "all", {"selector": {"app": "rating"}}))
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    labels = {"name": "rating", "labels": {"app": "rating"}}
    there.ask(
        "POST",
        SERVICES,
        {"metadata": labels, "spec": {"selector": {"app": "rating"}, "ports": ports}},
    )
    mixed = {"service": {"name": "rating", "adopt": True}, "app": "review"}
    there.ask("POST", IMPORTS, manifest("EurekaImport", "mixed", mixed))
    there.ask(
        "POST",
        "/api/v1/namespaces/shop/pods",
        {
            "metadata": {"name": "rating-1", "labels": {"app": "rating"}},
            "spec": {"nodeName": "node-1", "containers": [{"name": "app", "image": "app"}]},
        },
    )
    running = {
        "phase": "Running",
        "podIP": "10.244.0.1",
        "podIPs": [{"ip": "10.244.0.1"}],
        "conditions": [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")],
    }
    there.ask("PATCH", "/api/v1/namespaces/shop/pods/rating-1/status", {"status": running})
    for number in range(1, 4):
        there.register(number)
    there.clock.sleep(600)
    there.register(9, app="OTHER")

    report = there.passes()
    assert there.endpoints() == [f"10.20.0.{number}" for number in (1, 1, 2, 2, 3, 3)]
    assert there.ready() == ("True", "InSync")
    assert [str(key) for key in report.to_renew] == ["RATING/prod:shop:rating:10.244.0.1:8080"]
    names = sorted(app for app, _ in there.eureka.registered())
    assert names == ["OTHER", "RATING", "REVIEW"]

    there.passes()
    assert there.writes == []

    there.register(2, status="DOWN")
    there.cancel(3)
    there.passes()
    assert there.endpoints() == ["10.20.0.1", "10.20.0.1"]
    assert len([write for write in there.writes if write.startswith("PATCH review-")]) == 1

    service = there.ask("GET", f"{SERVICES}/review")
    there.ask("DELETE", f"{IMPORTS}/review")
    there.passes()
    assert there.endpoints() == ["10.20.0.1"]
    assert there.kubernetes.call("GET", f"{SERVICES}/review")[0] == 404
    assert service["metadata"]["ownerReferences"][0]["kind"] == "EurekaImport"
    assert there.ask("GET", f"{SERVICES}/rating")["spec"]["ports"][0]["port"] == 80


def test_a_eureka_that_starts_again_costs_no_endpoint() -> None:
    """It answers with an empty list, and then with more and more instances."""
    there = Servers()
    there.ask("POST", IMPORTS, manifest("EurekaImport", "review", {}))
    for number in range(1, 11):
        there.register(number)
    there.clock.sleep(600)
    there.register(99, app="OTHER")
    there.passes()
    before = there.endpoints()
    assert len(before) == 10

    there.eureka = FullEureka(there.clock.now, self_preservation=False)
    for back in (0, 3, 7, 10):
        for number in range(1, back + 1):
            there.register(number)
        there.passes()
        assert there.endpoints() == before
        assert not [write for write in there.writes if "review-" in write]
    assert there.ready() == ("True", "InSync")


def test_a_second_installation_leaves_the_imports_of_the_first_alone() -> None:
    """It has another owner, and knows another Eureka, which has one of two instances. It says which
    owner has the import, and how to take it over. Then the first one leaves it alone."""
    there = Servers()
    first = there.settings
    second = replace(first, owner="stage")
    there.ask("POST", IMPORTS, manifest("EurekaImport", "review", {}))
    for number in (1, 2, 3):
        there.register(number)
    there.clock.sleep(600)
    there.register(9, app="OTHER")
    there.passes()
    assert there.ask("GET", f"{IMPORTS}/review")["status"]["owner"] == "prod"

    there.cancel(3)
    there.settings = second
    for _ in range(2):
        report = there.passes()
        assert there.writes == []
        assert code(report) is ExitCode.OWNER_CLASH
        (problem,) = problems_to_decide(report)
        assert problem.text == (
            "owner clash: import shop/review is kept up to date by owner prod, so it is left "
            "alone. Is --owner stage right? To change the name: eurekube-sync run --owner stage "
            "--former-owner prod"
        )
    there.ask("DELETE", f"{IMPORTS}/review")
    there.passes()
    assert there.writes == []
    assert len(there.endpoints()) == 3

    there.settings = replace(second, former=Former(owners=frozenset({"prod"})))
    there.passes()
    assert there.kubernetes.call("GET", f"{IMPORTS}/review")[0] == 404


def test_an_import_is_taken_over_from_a_former_owner() -> None:
    there = Servers()
    first = there.settings
    there.ask("POST", IMPORTS, manifest("EurekaImport", "review", {}))
    for number in (1, 2, 3):
        there.register(number)
    there.clock.sleep(600)
    there.register(9, app="OTHER")
    there.passes()
    there.cancel(3)
    there.settings = replace(first, owner="stage", former=Former(owners=frozenset({"prod"})))
    assert code(there.passes()) is ExitCode.OK
    assert len(there.endpoints()) == 2
    assert there.ask("GET", f"{IMPORTS}/review")["status"]["owner"] == "stage"
    there.settings = first
    assert code(there.passes()) is ExitCode.OWNER_CLASH
    assert there.writes == []


def test_an_import_that_changes_its_class_changes_its_installation() -> None:
    """The installation of the new class has another owner. The old one serves it no more, so there
    is no clash, as with syncers."""
    there = Servers()
    first = there.settings
    there.ask("POST", IMPORTS, manifest("EurekaImport", "review", {}))
    there.register(1)
    there.clock.sleep(600)
    there.register(9, app="OTHER")
    there.passes()
    there.ask("PATCH", f"{IMPORTS}/review", {"spec": {"syncerClass": "stage"}})
    scope = replace(first.scope, syncer_class="stage")
    there.settings = replace(first, owner="stage", scope=scope)
    assert code(there.passes()) is ExitCode.OK
    status = there.ask("GET", f"{IMPORTS}/review")["status"]
    assert (status["owner"], status["syncerClass"]) == ("stage", "stage")
    there.settings = replace(there.settings, owner="third")
    assert code(there.passes()) is ExitCode.OWNER_CLASH


def test_a_recorded_pass_is_made_again_with_its_imports(caplog: pytest.LogCaptureFixture) -> None:
    """What was seen before, and the metadata by which instances are chosen, are in the record. The
    password of an instance is not."""
    there = Servers()
    select = {"select": {"zones": ["a"]}}
    there.ask("POST", IMPORTS, manifest("EurekaImport", "review", select))
    metadata = {"zone": "a", "password": "hunter2"}
    there.register(1, metadata=metadata)
    there.register(2, metadata=metadata)
    there.register(8, app="OTHER")
    there.clock.sleep(600)
    there.register(9, app="OTHER")
    there.passes()
    there.cancel(1)
    there.cancel(2)
    for _ in range(2):
        report = there.passes()
        text = encoded(there.recording.of(report, ExitCode.OK))
        assert b"hunter2" not in text
        record = recorded_pass(decoded(text))
        again = reconcile(record.world(InTurn()), replace(record.record.settings, dry_run=True))
        assert again.imports is not None
        assert report.imports is not None
        assert again.imports.plan.changes == report.imports.plan.changes
        record.compare(again, ExitCode.OK)
        assert caplog.messages == []
    assert there.endpoints() == []


@pytest.mark.parametrize("answers", [True, False])
def test_a_recorded_pass_is_made_again_with_the_lists_of_other_servers(answers: bool) -> None:
    """One has the instance that the first server lacks, or it cannot be listed: both keep the
    endpoint. The password of an instance is not in the record."""
    there = Servers()
    other = FullEureka(there.clock.now, self_preservation=False)
    there.know(other if answers else None)
    there.ask("POST", IMPORTS, manifest("EurekaImport", "review", {}))
    for number in (1, 2):
        there.register(number)
    there.register(8, app="OTHER")
    there.clock.sleep(600)
    there.register(9, app="OTHER")
    there.passes()

    there.cancel(1)
    there.register(1, at=other, metadata={"password": "hunter2"})
    report = there.passes()
    assert report.imports is not None
    assert [keep.socket.address for keep in report.imports.plan.keeps] == ["10.20.0.1"]

    text = encoded(there.recording.of(report, ExitCode.OK))
    assert b"hunter2" not in text
    record = recorded_pass(decoded(text))
    again = reconcile(record.world(InTurn()), replace(record.record.settings, dry_run=True))
    assert again.imports is not None
    assert again.imports.plan.changes == report.imports.plan.changes
