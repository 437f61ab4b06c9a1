"""A town of apps on the embedded servers, in virtual time. Events happen to it between passes.

After each pass it checks two rules, whatever is held. No dead pod's instance is UP for more than
three good passes. None is UP at an address that another pod has by now.
"""

from __future__ import annotations

import heapq
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress
from eurekube_sync.adapters.eureka.batches import BatchingRegistry
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.adapters.eureka.everywhere import EverywhereBatches
from eurekube_sync.adapters.eureka.peer import Peer
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.cli.records import Recording
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.controller.one_pass import Memory, PassReport, PassSettings, World
from eurekube_sync.controller.reconcile import reconcile
from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.reasons import Reason
from eurekube_sync.observe.eureka import OwnWrites
from tests.embedded.eureka import FullEureka
from tests.embedded.instances import Listed
from tests.embedded.kubernetes import FullKubernetes
from tests.in_process.eureka import InProcessSession
from tests.in_process.kubernetes import InProcessConnection
from tests.in_process.workers import InTurn

OWNER = "town"
TEAM, REST = "team", "rest"
"""Two namespaces. The events concern the first."""
GAP = 30.0
_START = 1_800_000_000.0
_MOST = 3
"""The good passes in which a dead pod may be UP."""
_SYNCERS = "/apis/eurekube.io/v1/namespaces/{}/eurekasyncers"


@cache
def _definition() -> Any:
    return yaml.safe_load((Path(__file__).parents[2] / "crds" / "eurekasyncer.yaml").read_text())


class Clock:
    """A clock that moves when it is told to. Events that become due happen on the way."""

    def __init__(self) -> None:
        self.time = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def now(self) -> float:
        return _START + self.time

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        end = self.time + seconds
        while self._due and self._due[0][0] <= end:
            moment, _, happen = heapq.heappop(self._due)
            self.time = max(self.time, moment)
            happen()
        self.time = max(self.time, end)

    def stopping(self) -> bool:
        return False

    def after(self, seconds: float, happen: Callable[[], None]) -> None:
        """Let something happen this much later."""
        heapq.heappush(self._due, (self.time + seconds, next(self._numbers), happen))


@dataclass(frozen=True, slots=True)
class App:
    namespace: str
    name: str


class Town:
    """A town of `apps` registered apps of two pods, the first `team` of them in a namespace of
    their own. With `single`, each pass is a process of its own."""

    def __init__(self, apps: int, team: int, *, single: bool = False) -> None:
        self.clock = Clock()
        self.kubernetes = FullKubernetes(self.clock.now, definitions=[_definition()])
        self.eureka = FullEureka(self.clock.now, self_preservation=False)
        self.recording = Recording(self.clock)
        self._ips = (f"10.{n // 62500}.{n // 250 % 250}.{n % 250 + 1}" for n in count())
        self._single = single
        self._process = self._new_process()
        self._dead: Counter[tuple[str, str]] = Counter()
        self.ask("POST", "/api/v1/nodes", {"metadata": {"name": "node-1"}})
        for namespace in (TEAM, REST):
            self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        self.apps = [App(TEAM if number < team else REST, f"app{number}") for number in range(apps)]
        for app in self.apps:
            self.deploy(app)
        for _ in range(2):
            self.good()
        assert len(self.up()) == 2 * apps

    # --- Events -----------------------------------------------------------------------------------

    def deploy(self, app: App) -> None:
        """Create its Service, its syncer and two pods."""
        ports = [{"name": "http", "port": 80, "targetPort": 8080}]
        metadata = {"name": app.name, "labels": {"app": app.name}}
        spec = {"selector": {"app": app.name}, "ports": ports}
        self.ask(
            "POST",
            f"/api/v1/namespaces/{app.namespace}/services",
            {"metadata": metadata, "spec": spec},
        )
        syncer = {
            "apiVersion": "eurekube.io/v1",
            "kind": "EurekaSyncer",
            "metadata": {"name": app.name},
        }
        self.ask(
            "POST",
            _SYNCERS.format(app.namespace),
            {**syncer, "spec": {"selector": {"app": app.name}}},
        )
        self.start(app, "0")
        self.start(app, "1")

    def start(self, app: App, suffix: str, ip: str | None = None) -> None:
        """Start one more ready pod."""
        path, name = f"/api/v1/namespaces/{app.namespace}/pods", f"{app.name}-{suffix}"
        spec = {"nodeName": "node-1", "containers": [{"name": "app", "image": "app"}]}
        self.ask(
            "POST", path, {"metadata": {"name": name, "labels": {"app": app.name}}, "spec": spec}
        )
        ip = ip or next(self._ips)
        status = {
            "phase": "Running",
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "conditions": _conditions(ready=True),
        }
        self.ask("PATCH", f"{path}/{name}/status", {"status": status})

    def pods(self, *apps: App) -> list[Any]:
        """The pods of these apps, or of all."""
        found = self.ask("GET", "/api/v1/pods")["items"]
        wanted = {(app.namespace, app.name) for app in apps or self.apps}
        return [
            pod
            for pod in found
            if (pod["metadata"]["namespace"], pod["metadata"]["labels"]["app"]) in wanted
        ]

    def end(self, pods: Iterable[Any], grace: float = 0) -> None:
        """Let these pods terminate for this long, and then end."""
        for pod in pods:
            path = _path(pod)
            self.kubernetes.call("DELETE", path, None, gracePeriodSeconds=str(int(grace)))
            if grace:
                self.clock.after(grace, lambda path=path: self._gone(path))  # type: ignore[misc]

    def scale_to_0(self, *apps: App) -> None:
        """Scale to 0, as `kubectl scale --replicas=0` does."""
        self.end(self.pods(*apps), 5)

    def unready(self, pods: Iterable[Any]) -> None:
        """Make these pods unready."""
        for pod in pods:
            self.ask(
                "PATCH",
                f"{_path(pod)}/status",
                {"status": {"conditions": _conditions(ready=False)}},
            )

    def lose_kubelets(self, *apps: App) -> None:
        """Lose all kubelets. Their pods are unready and terminate for ever, and may still serve."""
        self.unready(self.pods(*apps))
        self.end(self.pods(*apps), 10_000)

    def delete_syncers(self, *apps: App) -> None:
        """Delete syncers, as `kubectl delete esync` does."""
        for app in apps:
            self.ask("DELETE", f"{_SYNCERS.format(app.namespace)}/{app.name}")

    def uninstall(self, *apps: App) -> None:
        """Delete everything at once, as `helm uninstall` does."""
        self.delete_syncers(*apps)
        for app in apps:
            self.ask("DELETE", f"/api/v1/namespaces/{app.namespace}/services/{app.name}")
        self.end(self.pods(*apps), 5)

    def delete_namespace(self) -> None:
        """Delete the namespace, as `kubectl delete namespace` does. The kubelets take a while to
        end its pods."""
        pods = self.pods(*(app for app in self.apps if app.namespace == TEAM))
        self.ask("DELETE", f"/api/v1/namespaces/{TEAM}")
        self.clock.after(25, lambda: self.end(pods))

    def delete_slices(self) -> None:
        """Delete all slices. They are made again later."""
        slices = "/apis/discovery.k8s.io/v1"
        for piece in self.ask("GET", f"{slices}/endpointslices")["items"]:
            metadata = piece["metadata"]
            self.ask(
                "DELETE",
                f"{slices}/namespaces/{metadata['namespace']}/endpointslices/{metadata['name']}",
            )

    # --- Passes -----------------------------------------------------------------------------------

    def good(self) -> PassReport:
        """Make one pass, and wait until the next one is due."""
        begun, gone = self.clock.time, set(self.dead())
        wrong = set(self.at_anothers_address())
        if self._single:
            self._process = self._new_process()
        self.recording.begin(self._process)
        report = reconcile(self._process, PassSettings(owner=OWNER))
        assert of_report(report, fail_on_held=True, detailed=False) in (
            ExitCode.OK,
            ExitCode.REMOVAL_HELD,
        )
        self._dead = Counter({key: self._dead[key] + 1 for key in set(self.dead()) & gone})
        assert not [key for key, passes in self._dead.items() if passes > _MOST]
        assert not wrong & set(self.at_anothers_address())
        self.clock.sleep(max(0.5, begun + GAP - self.clock.time))
        return report

    def up(self, *apps: App) -> dict[tuple[str, str], Listed]:
        """The UP instances, by app and id, of these apps or of all."""
        names = {app.name.upper() for app in apps or self.apps}
        return {
            (name, one[0].id or ""): one
            for name, listed in self.eureka.registered()
            for one in listed
            if name in names and one[0].status == "UP"
        }

    def dead(self) -> list[tuple[str, str]]:
        """The UP instances of pods that no longer exist."""
        uids = {pod["metadata"]["uid"] for pod in self.ask("GET", "/api/v1/pods")["items"]}
        return [key for key, one in self.up().items() if _uid(one) not in uids]

    def at_anothers_address(self) -> list[tuple[str, str]]:
        """The UP instances at the address of another, ready pod."""
        pods = self.ask("GET", "/api/v1/pods")["items"]
        there = {
            pod["status"].get("podIP"): pod["metadata"]["uid"] for pod in pods if _is_ready(pod)
        }
        return [
            key
            for key, one in self.up().items()
            if there.get(one[0].ip_addr, _uid(one)) != _uid(one)
        ]

    def namespace_is_there(self) -> bool:
        """Whether the team's namespace exists, even while it is being deleted."""
        return self.kubernetes.call("GET", f"/api/v1/namespaces/{TEAM}")[0] == 200

    def _gone(self, path: str) -> None:
        self.kubernetes.call("DELETE", path, None, gracePeriodSeconds="0")

    def register(self, app: str, instance: Any) -> None:
        """Register an instance as another client of Eureka."""
        body = json.dumps({"instance": instance}).encode()
        headers = {"content-type": "application/json"}
        request = Request(
            method="POST", path=f"/eureka/apps/{app}", query={}, headers=headers, body=body
        )
        assert self.eureka.handle(request).status == 204

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Call the Kubernetes API."""
        status, answer = self.kubernetes.call(method, path, body)
        assert status < 300, (method, path, answer)
        return answer

    def _new_process(self) -> World:
        clock, chance = self.clock, random.Random(1)
        limit = TimeLimit(clock)

        def answer(handle: Callable[[Request], Response], request: Request) -> Response:
            clock.sleep(0.002)
            return handle(request)

        address = EurekaAddress.parse("http://eureka:8761/eureka")
        client = EurekaClient(
            ConnectionOptions(address=address, read_timeout=10, retries=2),
            clock=clock,
            random=chance,
            session=InProcessSession(lambda request: answer(self.eureka.handle, request)),
            limit=limit,
        )
        peer = Peer(url=address.url, client=client, asked=client, clock=clock)
        batches = EverywhereBatches(peers=[peer], clock=clock, limit=limit, workers=InTurn())
        connection = InProcessConnection(lambda request: answer(self.kubernetes.handle, request))
        return World(
            registry=self.recording.registry(BatchingRegistry(client, batches)),
            cluster=KubernetesCluster(
                self.recording.connection(connection), clock=clock, random=chance, limit=limit
            ),
            clock=clock,
            workers=InTurn(),
            renewals=RenewalLedger(period=30, slack=15),
            memory=Memory(own_writes=OwnWrites(seconds=45)),
            time_limit=limit,
        )


def reasons(report: PassReport) -> dict[Reason, int]:
    """The number of held removals, by reason."""
    found: Counter[Reason] = Counter()
    for hold in report.held.holds if report.held else ():
        found[hold.reason] += len(hold.removals)
    return dict(found)


def _path(pod: Any) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _conditions(*, ready: bool) -> list[dict[str, str]]:
    return [{"type": kind, "status": str(ready)} for kind in ("ContainersReady", "Ready")]


def _is_ready(pod: Any) -> bool:
    if "deletionTimestamp" in pod["metadata"]:
        return False
    return any(
        one["type"] == "Ready" and one["status"] == "True"
        for one in pod["status"].get("conditions", ())
    )


def _uid(listed: Listed) -> str:
    return (listed[0].metadata or {})["eurekube.pod"].rpartition("/")[2]
