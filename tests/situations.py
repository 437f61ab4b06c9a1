"""Twelve ways in which "my service is not in Eureka", set up on any Kubernetes API and Eureka, real
or embedded.

Each names what its user asks, and what the answer has to say. `docs/troubleshooting.md` is for the
same user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import requests

from eurekube_sync.controller.exit_codes import ExitCode
from tests.servers.world import KubernetesWorld

NODE = "node-1"
SELF_REGISTERED = "orders-a:orders:8080"
"""The instance of the pod that registers itself."""
_READY = {"type": "Ready", "status": "True"}


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Where a situation is set up."""

    world: KubernetesWorld
    eureka_url: str
    namespace: str
    run: Callable[[], object]
    """One pass of the operator's installation."""
    owner: str

    def service(self, name: str = "orders", **changes: Any) -> None:
        self.world.create_service(self.namespace, name, **{"ports": {"http": 8080}, **changes})

    def pod(
        self, name: str = "orders-a", *, app: str = "orders", ip: str = "10.9.1.1", **changes: Any
    ) -> None:
        labels = {"app": app}
        self.world.create_pod(
            self.namespace, name, **{"labels": labels, "node": NODE, "ips": [ip], **changes}
        )

    def syncer(self, name: str = "orders", **spec: Any) -> None:
        path = f"/apis/eurekube.io/v1/namespaces/{self.namespace}/eurekasyncers"
        body = {
            "apiVersion": "eurekube.io/v1",
            "kind": "EurekaSyncer",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"selector": {"app": name}, **spec},
        }
        self.world.request("POST", path, body)

    def wait(self, service: str = "orders", **states: Any) -> None:
        """Until the slices show these addresses; by default the one pod is ready."""
        self.world.wait_for_slices(
            self.namespace, service, states.get("expected", {"10.9.1.1": "Ready"})
        )

    def set_conditions(self, pod: str, *conditions: Mapping[str, Any]) -> None:
        self.world.patch_pod_status(self.namespace, pod, {"conditions": list(conditions)})

    def id_of(self, app: str = "orders", ip: str = "10.9.1.1") -> str:
        return f"{self.owner}:{self.namespace}:{app}:{ip}:8080"

    def eureka(self, method: str, path: str, body: Any = None) -> None:
        answer = requests.request(method, f"{self.eureka_url}{path}", json=body, timeout=30)
        assert answer.status_code < 300, (path, answer.status_code, answer.text)


@dataclass(frozen=True, kw_only=True)
class Situation:
    number: int
    about: str
    set_up: Callable[[Scene], None]
    what: str = "{0}/orders"
    """What its user asks; `{0}` is the namespace."""
    reason: str
    """The machine word of the link that breaks."""
    explains: tuple[str, ...]
    """What `explain` has to say."""
    shows: tuple[str, ...]
    """What `status` has to say."""
    code: ExitCode = ExitCode.NOT_REGISTERED
    status_code: ExitCode = ExitCode.NOT_REGISTERED
    without_eureka: tuple[str, ...] | None = None
    """What `explain` says to a developer who may not look into Eureka; None: the same."""
    code_without_eureka: ExitCode = field(default=ExitCode.NOT_REGISTERED)

    def __str__(self) -> str:
        return f"{self.number}-{self.about.replace(' ', '-')}"


def _no_syncer(scene: Scene) -> None:
    scene.service()
    scene.pod()
    scene.wait()


def _label_on_pods_only(scene: Scene) -> None:
    scene.service(selector={"app": "orders"}, labels={"app.kubernetes.io/name": "orders"})
    scene.pod()
    scene.syncer()
    scene.wait()
    scene.run()


def _wrong_port(scene: Scene) -> None:
    scene.service(ports={"web": 8080, "admin": 9000})
    scene.pod()
    scene.syncer(port="http")
    scene.wait()
    scene.run()


def _not_ready(scene: Scene) -> None:
    scene.service()
    scene.pod(ready=False)
    said = {"reason": "ContainersNotReady", "message": "containers with unready status: [app]"}
    scene.set_conditions("orders-a", {"type": "Ready", "status": "False", **said})
    scene.syncer()
    scene.wait(expected={"10.9.1.1": "NotReady"})
    scene.run()


def _selects_no_pod(scene: Scene) -> None:
    scene.service(selector={"app": "ordersXX"}, labels={"app": "orders"})
    scene.pod()
    scene.syncer()
    scene.wait(expected={})
    scene.run()


def _registers_itself(scene: Scene) -> None:
    instance = {
        "instanceId": SELF_REGISTERED,
        "hostName": "10.9.1.1",
        "ipAddr": "10.9.1.1",
        "app": "ORDERS",
        "vipAddress": "orders",
        "secureVipAddress": "orders",
        "status": "UP",
        "port": {"$": 8080, "@enabled": "true"},
        "securePort": {"$": 443, "@enabled": "false"},
        "dataCenterInfo": {
            "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
            "name": "MyOwn",
        },
        "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": 600},
    }
    scene.eureka("POST", "/apps/ORDERS", {"instance": instance})
    scene.service()
    scene.pod()
    scene.syncer()
    scene.wait()
    scene.run()


def _class_nobody_serves(scene: Scene) -> None:
    scene.service()
    scene.pod()
    scene.syncer(syncerClass="internal")
    scene.wait()
    scene.run()


def _nobody_renews(scene: Scene) -> None:
    scene.service()
    scene.pod()
    scene.syncer()
    scene.wait()
    scene.run()
    scene.eureka(
        "DELETE", f"/apps/ORDERS/{scene.id_of()}"
    )  # as its lease ends when no pass runs any more


def _drained_pod(scene: Scene) -> None:
    scene.service()
    scene.pod()
    scene.syncer()
    scene.wait()
    scene.run()
    path = f"/api/v1/namespaces/{scene.namespace}/pods/orders-a"
    scene.world.request("PATCH", path, {"metadata": {"annotations": {"eurekube.io/drain": "true"}}})
    scene.run()


def _out_of_service(scene: Scene) -> None:
    scene.service()
    scene.pod()
    scene.syncer()
    scene.wait()
    scene.run()
    scene.eureka("PUT", f"/apps/ORDERS/{scene.id_of()}/status?value=OUT_OF_SERVICE")
    scene.run()


def _another_name(scene: Scene) -> None:
    scene.service()
    scene.pod()
    scene.syncer(appName="ODERS")
    scene.wait()
    scene.run()


def _held(scene: Scene) -> None:
    for app, ip in (("orders", "10.9.1.1"), ("bills", "10.9.1.2")):
        scene.service(app)
        scene.pod(f"{app}-a", app=app, ip=ip)
        scene.syncer(app)
        scene.wait(app, expected={ip: "Ready"})
    scene.run()
    for app, ip in (("orders", "10.9.1.1"), ("bills", "10.9.1.2")):
        scene.world.set_ready(scene.namespace, f"{app}-a", False)
        scene.wait(app, expected={ip: "NotReady"})
    scene.run()


SITUATIONS = (
    Situation(
        number=1,
        about="no syncer",
        set_up=_no_syncer,
        what="svc/{0}/orders",
        reason="NoSyncer",
        explains=("Service orders is selected by no EurekaSyncer", "kind: EurekaSyncer"),
        shows=("Service {0}/orders is selected by no EurekaSyncer",),
        status_code=ExitCode.OK,
    ),
    Situation(
        number=2,
        about="label on the pods only",
        set_up=_label_on_pods_only,
        reason="NoMatchingService",
        explains=(
            "1 pod has app=orders, but no Service does",
            "Service orders has app.kubernetes.io/name=orders",
        ),
        shows=("no Service in namespace {0} matches app=orders",),
    ),
    Situation(
        number=3,
        about="no such port",
        set_up=_wrong_port,
        reason="NoSuchPort",
        explains=("web (8080), admin (9000)",),
        shows=("NoSuchPort", "web (8080), admin (9000)"),
    ),
    Situation(
        number=4,
        about="pod not ready",
        set_up=_not_ready,
        reason="NotReady",
        explains=(
            "pod orders-a is not ready",
            "containers with unready status: [app]",
            "kubectl describe pod orders-a",
        ),
        shows=("pod orders-a is not ready",),
    ),
    Situation(
        number=5,
        about="Service selects no pod",
        set_up=_selects_no_pod,
        reason="NoEndpoints",
        explains=(
            "Service orders selects app=ordersXX: no pod has it",
            "similar: app=orders (1 pod)",
        ),
        shows=("NoEndpoints", "app=ordersXX"),
    ),
    Situation(
        number=6,
        about="pod registers itself",
        set_up=_registers_itself,
        reason="DuplicateRegistration",
        explains=(
            "its pod registers itself as orders-a:orders:8080",
            "eureka.client.register-with-eureka=false",
        ),
        shows=("DuplicateRegistration",),
        without_eureka=("its pod registers itself as orders-a:orders:8080",),
    ),
    Situation(
        number=7,
        about="a class that nobody serves",
        set_up=_class_nobody_serves,
        reason="NoInstallation",
        explains=("no installation seems to serve class internal",),
        shows=("no installation seems to serve class internal",),
    ),
    Situation(
        number=8,
        about="nobody renews",
        set_up=_nobody_renews,
        reason="Expired",
        explains=("the leases expired, or Eureka lost its list",),
        shows=("Expired",),
        without_eureka=("last pass: not", "give --eureka-url"),
        code_without_eureka=ExitCode.EUREKA_UNREAD,
    ),
    Situation(
        number=9,
        about="drained pod",
        set_up=_drained_pod,
        reason="Drained",
        explains=(
            "the last pass saw it drained by annotation of a pod",
            "remove the annotation eurekube.io/drain from the pod",
        ),
        shows=("Drained", "drained by annotation of a pod"),
        without_eureka=("1 drained",),
    ),
    Situation(
        number=10,
        about="out of service",
        set_up=_out_of_service,
        reason="OutOfService",
        explains=("is OUT_OF_SERVICE: a person set it in Eureka", "curl -X DELETE"),
        shows=("OutOfService",),
        without_eureka=("1 instance is set OUT_OF_SERVICE by hand",),
    ),
    Situation(
        number=11,
        about="another name",
        set_up=_another_name,
        what="ORDERS",
        reason="NothingFound",
        explains=("EurekaSyncer {0}/orders registers as ODERS",),
        shows=("ODERS",),
        status_code=ExitCode.OK,
        code_without_eureka=ExitCode.EUREKA_UNREAD,
    ),
    Situation(
        number=12,
        about="removals are held",
        set_up=_held,
        reason="TooManyRemovals",
        explains=("1 removal of this syncer is held", "eurekube-sync run", "--approve"),
        shows=("TooManyRemovals",),
        without_eureka=("the last pass said", "--approve"),
    ),
)
