"""A set-up in which nothing is wrong, and ten faults that are planted into it, on any Kubernetes
API and Eureka.

A fault is what a person would find: a proxy in the way, a right that is missing, a pod that ends
too soon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import requests

from eurekube_sync.adapters.kubernetes.lock_store import LAST_FAILED_PASS, LAST_GOOD_PASS
from eurekube_sync.embedded.http import LoopbackServer, Request, Response
from eurekube_sync.manifests.crd import load_crd
from tests.integration.program import Registry
from tests.servers.process import free_port
from tests.servers.world import KubernetesWorld
from tests.situations import NODE

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/eurekasyncers.eurekube.io"
SLEEPS = {"preStop": {"sleep": {"seconds": 125}}}
"""30 s until the next pass, and 95 s of the callers' caches."""
NEEDED = 125
Environment = Mapping[str, str]
"""What a person gives the command, beside what is right."""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Where a fault is planted."""

    world: KubernetesWorld
    eureka_url: str
    namespace: str
    owner: str
    lock: str
    """`NAMESPACE/NAME`."""
    without_right: Callable[[str, str], AbstractContextManager[Environment]]
    """Somebody who lacks a verb on a resource."""

    def set_up(self, run: Callable[[], None]) -> None:
        """A pod that serves as long as its callers need it, and a good pass."""
        self.world.create_service(self.namespace, "orders", ports={"http": 8080})
        self.pod("orders-a", "10.9.1.1", lifecycle=SLEEPS, grace=155)
        self.world.wait_for_slices(self.namespace, "orders", {"10.9.1.1": "Ready"})
        path = f"/apis/eurekube.io/v1/namespaces/{self.namespace}/eurekasyncers"
        head = {"apiVersion": "eurekube.io/v1", "kind": "EurekaSyncer"}
        metadata = {"name": "orders", "namespace": self.namespace}
        self.world.request(
            "POST", path, {**head, "metadata": metadata, "spec": {"selector": {"app": "orders"}}}
        )
        run()

    def stay(self) -> None:
        """As if passes went on, however long a test takes."""
        namespace, _, name = self.lock.partition("/")
        path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.world.request("PATCH", path, {"metadata": {"annotations": {LAST_GOOD_PASS: now}}})
        requests.put(
            f"{self.eureka_url}/apps/ORDERS/{self.owner}:{self.namespace}:orders:10.9.1.1:8080",
            timeout=30,
        )

    def pod(self, name: str, ip: str, *, lifecycle: Any, grace: int) -> None:
        container = {
            "name": "app",
            "image": "example.invalid/app:1",
            **({"lifecycle": lifecycle} if lifecycle else {}),
        }
        self.world.create_pod(
            self.namespace,
            name,
            labels={"app": "orders"},
            node=NODE,
            ips=[ip],
            containers=[container],
            terminationGracePeriodSeconds=grace,
        )


@dataclass(frozen=True, kw_only=True)
class Fault:
    about: str
    check: str
    """The machine word of the finding."""
    grade: str = "failed"
    says: str
    plant: Callable[[Scene], AbstractContextManager[Environment]]

    def __str__(self) -> str:
        return self.about.replace(" ", "-")


Behind = Callable[[Request, Callable[[Request], Response]], Response]


@contextmanager
def _behind(scene: Scene, between: Behind) -> Iterator[Environment]:
    """Something stands between the program and Eureka."""

    def forward(request: Request) -> Response:
        answer = requests.request(
            request.method,
            scene.eureka_url.removesuffix("/eureka") + request.path,
            data=request.body or None,
            headers={
                name: request.headers[name]
                for name in ("accept", "content-type")
                if name in request.headers
            },
            timeout=30,
        )
        content_type = answer.headers.get("Content-Type", "application/json")
        return Response(status=answer.status_code, body=answer.content, content_type=content_type)

    with LoopbackServer(lambda request: between(request, forward)) as server:
        yield {"EUREKUBE_SYNC_EUREKA_URL": f"{server.url}/eureka"}


def _login(request: Request, forward: Callable[[Request], Response]) -> Response:
    challenge = {"WWW-Authenticate": 'Basic realm="Realm"'}
    return (
        forward(request)
        if "authorization" in request.headers
        else Response(status=401, headers=challenge)
    )


def _csrf(request: Request, forward: Callable[[Request], Response]) -> Response:
    return forward(request) if request.method == "GET" else Response(status=403)


def _warm_up(request: Request, forward: Callable[[Request], Response]) -> Response:
    return Response(status=403) if request.path == "/eureka/apps" else forward(request)


def _late_clock(request: Request, forward: Callable[[Request], Response]) -> Response:
    answer = forward(request)
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    return Response(
        status=answer.status,
        body=answer.body,
        content_type=answer.content_type,
        headers={"Date": date},
    )


@contextmanager
def _nobody_listens(_scene: Scene) -> Iterator[Environment]:
    yield {"EUREKUBE_SYNC_EUREKA_URL": f"http://127.0.0.1:{free_port()}/eureka"}


@contextmanager
def _url_without_its_path(scene: Scene) -> Iterator[Environment]:
    yield {"EUREKUBE_SYNC_EUREKA_URL": scene.eureka_url.removesuffix("/eureka")}


@contextmanager
def _another_schema(scene: Scene) -> Iterator[Environment]:
    before: Any = load_crd()["spec"]["versions"]
    changed = scene.world.request("GET", CRD)["spec"]["versions"]
    changed[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["description"] = (
        "of an older version"
    )
    scene.world.request("PATCH", CRD, {"spec": {"versions": changed}})
    try:
        yield {}
    finally:
        scene.world.request("PATCH", CRD, {"spec": {"versions": before}})


@contextmanager
def _older_definition(scene: Scene) -> Iterator[Environment]:
    before: Any = load_crd()["spec"]["versions"]
    changed = scene.world.request("GET", CRD)["spec"]["versions"]
    fields = changed[0]["schema"]["openAPIV3Schema"]["properties"]
    del fields["status"]["properties"]["vipAddress"]
    del fields["spec"]["properties"]["suspend"]
    scene.world.request("PATCH", CRD, {"spec": {"versions": changed}})
    try:
        yield {}
    finally:
        scene.world.request("PATCH", CRD, {"spec": {"versions": before}})


@contextmanager
def _another_cluster(scene: Scene) -> Iterator[Environment]:
    id_ = f"{scene.owner}:elsewhere:bills:10.8.1.1:8080"
    marks = {
        "eurekube.owner": scene.owner,
        "eurekube.cluster": "99999999",
        "eurekube.syncer": "elsewhere/bills",
    }
    instance = {
        "instanceId": id_,
        "hostName": "10.8.1.1",
        "ipAddr": "10.8.1.1",
        "app": "BILLS",
        "vipAddress": "bills",
        "secureVipAddress": "bills",
        "status": "UP",
        "port": {"$": 8080, "@enabled": "true"},
        "securePort": {"$": 443, "@enabled": "false"},
        "dataCenterInfo": {
            "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
            "name": "MyOwn",
        },
        "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": 600},
        "metadata": marks,
    }
    answer = requests.post(
        f"{scene.eureka_url}/apps/BILLS", json={"instance": instance}, timeout=30
    )
    assert answer.status_code == 204, answer.text
    registry = Registry(url=scene.eureka_url)
    try:
        registry.list_follows("BILLS", [id_])
        yield {}
    finally:
        requests.delete(f"{scene.eureka_url}/apps/BILLS/{id_}", timeout=30)
        registry.list_follows("BILLS", [id_])


@contextmanager
def _lease(scene: Scene, *, failed: str = "") -> Iterator[Environment]:
    """The last good pass was 47 minutes ago. No process runs since, or the last pass `failed`."""
    namespace, _, name = scene.lock.partition("/")
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
    lease = scene.world.request("GET", path)
    now = datetime.now(UTC)
    old = now - timedelta(minutes=47)
    annotations: dict[str, str | None] = {LAST_GOOD_PASS: old.strftime("%Y-%m-%dT%H:%M:%SZ")}
    spec = {"renewTime": old.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    before = {LAST_GOOD_PASS: lease["metadata"]["annotations"][LAST_GOOD_PASS]}
    if failed:
        spec = {}
        annotations[LAST_FAILED_PASS] = now.strftime("%Y-%m-%dT%H:%M:%SZ")
        annotations["eurekube.io/last-failed-reason"] = "Denied"
        annotations["eurekube.io/last-failed-result"] = failed
    scene.world.request("PATCH", path, {"metadata": {"annotations": annotations}, "spec": spec})
    try:
        yield {}
    finally:
        whole = {**dict.fromkeys(annotations), **before}
        times = {"renewTime": lease["spec"]["renewTime"]}
        scene.world.request("PATCH", path, {"metadata": {"annotations": whole}, "spec": times})


def _passes_fail(scene: Scene) -> AbstractContextManager[Environment]:
    return _lease(scene, failed="User sync cannot list eurekasyncers in the namespace fleet")


@contextmanager
def _ends_too_soon(scene: Scene) -> Iterator[Environment]:
    scene.pod("orders-b", "10.9.1.2", lifecycle=None, grace=30)
    scene.world.wait_for_slices(
        scene.namespace, "orders", {"10.9.1.1": "Ready", "10.9.1.2": "Ready"}
    )
    try:
        yield {}
    finally:
        scene.world.delete_pod(scene.namespace, "orders-b")
        scene.world.wait_for_slices(scene.namespace, "orders", {"10.9.1.1": "Ready"})


FAULTS = (
    Fault(
        about="a right is missing",
        check="Rights",
        says="the right to patch eurekasyncers.eurekube.io/status is not granted",
        plant=lambda scene: scene.without_right("patch", "eurekasyncers/status"),
    ),
    Fault(
        about="the CRD is of another version",
        check="Crd",
        grade="warning",
        says="is not of this version",
        plant=_another_schema,
    ),
    Fault(
        about="the CRD drops fields",
        check="Crd",
        grade="warning",
        says="is older than this program: it drops spec.suspend, status.vipAddress",
        plant=_older_definition,
    ),
    Fault(
        about="nobody listens",
        check="EurekaRead",
        says="the connection was refused",
        plant=_nobody_listens,
    ),
    Fault(
        about="the URL lacks eureka",
        check="EurekaRead",
        says="was not found",
        plant=_url_without_its_path,
    ),
    Fault(
        about="Eureka asks for a login",
        check="EurekaRead",
        says="asks for a login",
        plant=lambda scene: _behind(scene, _login),
    ),
    Fault(
        about="CSRF protection refuses writes",
        check="EurekaWrite",
        says="takes no writes",
        plant=lambda scene: _behind(scene, _csrf),
    ),
    Fault(
        about="Eureka has just started",
        check="EurekaRead",
        says="started",
        plant=lambda scene: _behind(scene, _warm_up),
    ),
    Fault(
        about="the clock of Eureka is wrong",
        check="Clock",
        says="s ahead of ours",
        plant=lambda scene: _behind(scene, _late_clock),
    ),
    Fault(
        about="another cluster has the owner",
        check="Owner",
        says="cluster 99999999",
        plant=_another_cluster,
    ),
    Fault(about="nobody runs", check="LastPass", says="last good pass: 47 min ago", plant=_lease),
    Fault(
        about="passes lack a right",
        check="LastPass",
        says="ago, said: User sync cannot list eurekasyncers in the namespace fleet",
        plant=_passes_fail,
    ),
    Fault(
        about="a pod ends too soon",
        check="PodEnd",
        grade="warning",
        says=f"has no preStop, but callers may call it for {NEEDED} s after it begins to terminate",
        plant=_ends_too_soon,
    ),
)
