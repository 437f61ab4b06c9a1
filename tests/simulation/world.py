"""Both servers on virtual time, and what people, pods and controllers do to them. It knows nothing
of the program."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from eurekube_sync.embedded.http import Request, Response
from tests.embedded.eureka import OF_A_PEER, FullEureka
from tests.embedded.instances import InstanceInfo, Listed, instance_document
from tests.embedded.kubernetes import FullKubernetes

from .address import Address
from .clock import VirtualClock
from .tokens import Credentials

NAMESPACES = ("bank", "shop")
FEW = ("cart", "pay", "rating", "stock")
"""The apps of most stories."""
MANY = (
    "audit",
    "billing",
    "catalog",
    "fraud",
    "invoice",
    "ledger",
    "mail",
    "offers",
    "orders",
    "prices",
    "search",
)
"""More apps, for stories of teams with several."""
_OF_THE_SHOP = frozenset({"rating", "cart", "catalog", "offers", "orders", "prices", "search"})
APPS = {app: "shop" if app in _OF_THE_SHOP else "bank" for app in (*FEW, *MANY)}
"""All apps of stories, each with its namespace."""
PORT = 8080
SERVICE_PORT = 80
TEAMS = {"rating": "one", "pay": "one", "cart": "two", "stock": "two"} | {
    app: ("one", "two")[number % 2] for number, app in enumerate(MANY)
}
"""The team of an app, as a label of its syncers says."""
OF_THE_FIRST_TEAM = tuple(app for app in MANY if TEAMS[app] == "one")
"""Apps that the first program serves, whatever half of an installation it is."""
ADDRESSES = ("http://eureka-1:8761/eureka", "http://eureka-2:8761/eureka")
DRAIN = "eurekube.io/drain"
_APART = ("shelf", "machine", "host", "node", "entry")
_REPLICATED_AFTER = 0.7
_EVICTED_EVERY = 60_000
"""Milliseconds."""
_STRANGERS_PERIOD = 30.0
_KUBELET_SECONDS = 0.4
"""Seconds from an open gate to a Ready pod."""
GATE = "eurekube.io/registered"
_GRANTED_APPS, _GRANTED_HOSTS = "eurekube.io/allowed-apps", "eurekube.io/allowed-hosts"
GRANTED_IMPORTS = "eurekube.io/allowed-imports"
_CRDS = Path(__file__).parents[2] / "crds"
_CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DATA_CENTER = {"@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo", "name": "MyOwn"}


class Key(NamedTuple):
    """The key of an instance in Eureka."""

    app: str
    id: str

    def __str__(self) -> str:
        return f"{self.app}/{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stranger:
    """An instance that another client registers."""

    key: Key
    ip: str
    host: str = ""
    """Its host name, if that is not the address."""
    metadata: tuple[tuple[str, str], ...] = ()
    vip: str = ""
    status: str = "UP"
    older: bool = False
    """Whether every write of ours wins over it; else no write wins that does not know it."""


@cache
def definition(kind: str = "eurekasyncer") -> Mapping[str, Any]:
    """A CRD of the project."""
    found: Mapping[str, Any] = yaml.safe_load((_CRDS / f"{kind}.yaml").read_text())
    return found


class Kubernetes(FullKubernetes):
    """The API server. It counts writes, so that a judge need not read everything at each call."""

    structure = 0
    """Counts the writes of all but events and statuses of syncers and imports: any of them may
    change objects of other kinds."""
    statuses = 0
    """Counts the writes of statuses of syncers and imports."""

    def handle(self, request: Request) -> Response:
        before = self.revision
        response = super().handle(request)
        if self.revision != before:
            ours = "/eurekasyncers/" in request.path or "/eurekaimports/" in request.path
            status = ours and request.path.endswith("/status")
            self.statuses += status
            self.structure += not status and not request.path.endswith("/events")
        return response


class World:
    """The servers. The `peers` replicate their clients' writes to each other. With `drains` a
    person drains pods."""

    def __init__(
        self,
        clock: VirtualClock,
        *,
        peers: int,
        seed: int,
        drains: bool = False,
        granted: bool = False,
        imports: bool = False,
        revision: int = 1,
    ) -> None:
        self.clock = clock
        self.address = Address()
        self.credentials = Credentials()
        self._renewed: set[Key] = set()
        """The leases that strangers renew."""
        self.ended: dict[Key, float] = {}
        """When the clients of strangers ended that did not cancel their instances."""
        self.kubernetes = Kubernetes(
            clock.now,
            definitions=[definition(), *([definition("eurekaimport")] if imports else [])],
            seed=seed,
            revision=revision,
        )
        self._seed = seed
        self._peers = peers
        self._objects: dict[str, tuple[int, int, list[dict[str, Any]]]] = {}
        self._standing: dict[int, tuple[int, dict[Key, Listed]]] = {}
        self._begun: dict[int, int] = {}
        self._on_their_way: list[list[Callable[[], None]]] = [[] for _ in range(peers)]
        """What each server tells the others, and has not yet arrived."""
        self.eurekas = [self._new_eureka(number) for number in range(peers)]
        self.drains = drains
        self._grants = {_GRANTED_APPS: "*", _GRANTED_HOSTS: "*"} if granted else {}
        if granted and imports:
            self._grants[GRANTED_IMPORTS] = "*"
        self.kubernetes.call("POST", "/api/v1/nodes", {"metadata": {"name": "node-1"}})
        for namespace in NAMESPACES:
            self.create_namespace(namespace)

    def answer(self, peer: int | None, request: Request) -> Response:
        """Gives the answer of a Eureka server, or without a peer that of the Kubernetes API."""
        if peer is not None:
            return self.ask_eureka(peer, request)
        response = self.kubernetes.handle(request)
        if request.method == "PATCH" and "/pods/" in request.path and response.status == 200:
            pod = request.path.removesuffix("/status")
            self.clock.at(self.clock.time + _KUBELET_SECONDS, lambda: self._computes_ready(pod))
        return response

    # --- Eureka -----------------------------------------------------------------------------------

    def _new_eureka(self, peer: int) -> FullEureka:
        self._seed += 1
        self._standing.pop(peer, None)
        self._begun[peer] = _milliseconds(self.clock)
        shuffle = random.Random(self._seed)
        fresh = FullEureka(
            self.clock.now,
            self_preservation=False,
            eviction_seconds=_EVICTED_EVERY / 1000,
            shuffle=shuffle,
        )
        fresh.replicas = tuple(
            f"{url}/" for number, url in enumerate(ADDRESSES[: self._peers]) if number != peer
        )
        return fresh

    def standing(self, peer: int) -> dict[Key, Listed]:
        """Gives all instances of this server: the same object until a write or an eviction."""
        evictions = (_milliseconds(self.clock) - self._begun[peer]) // _EVICTED_EVERY
        known = self._standing.get(peer)
        if known is None or known[0] != evictions:
            apps = self.eurekas[peer].registered()
            found = {
                Key(app, listed[0].id or ""): listed
                for app, instances in apps
                for listed in instances
            }
            known = self._standing[peer] = evictions, found
        return known[1]

    def ask_eureka(self, peer: int, request: Request, *, cut: bool = False) -> Response:
        """Makes a client's call: this server answers, and replicates it to the others a moment
        later, unless it is `cut` off from them."""
        response = self._of_eureka(peer, request)
        told = (
            not cut
            and request.method != "GET"
            and "/peerreplication/" not in request.path
            and response.status < 300
        )
        if told and len(self.eurekas) > 1:
            for other in range(len(self.eurekas)):
                if other != peer:
                    self._replicate(peer, other, request)
        return response

    def _of_eureka(self, peer: int, request: Request) -> Response:
        if request.method != "GET":
            self._standing.pop(peer, None)
        return self.eurekas[peer].handle(request)

    def _replicate(self, source: int, to: int, request: Request) -> None:
        """Replicates as `PeerAwareInstanceRegistryImpl.replicateToPeers` does: a renewal with the
        timestamp of the server's own copy, and anything else as it came."""
        parts = request.path.strip("/").split("/")
        renews = request.method == "PUT" and len(parts) == 4
        copy = self.standing(source).get(Key(parts[2], parts[3])) if renews else None

        def arrive() -> None:
            if copy is not None:
                self._replicate_renewal(source, to, Key(parts[2], parts[3]), copy[0])
            else:
                self._of_eureka(to, request)

        on_their_way = self._on_their_way[source]
        on_their_way.append(arrive)

        def arrive_in_time() -> None:
            if arrive in on_their_way:  # else its source has restarted since
                on_their_way.remove(arrive)
                arrive()

        self.clock.at(self.clock.time + _REPLICATED_AFTER, arrive_in_time)

    def _replicate_renewal(self, source: int, to: int, key: Key, copy: InstanceInfo) -> None:
        """Renews at a peer as `PeerEurekaNode.heartbeat` does. A 404 says that the peer has nothing
        or an older copy, so it gets this one. A 409 has a newer copy, which the source takes."""
        renewal = Request(
            method="PUT",
            path=f"/eureka/apps/{key.app}/{key.id}",
            query={"lastDirtyTimestamp": str(copy.last_dirty)},
            headers={OF_A_PEER: "true"},
        )
        response = self._of_eureka(to, renewal)
        if response.status == 404:
            self._of_eureka(to, registration(key.app, instance_document(copy)))
        elif response.status == 409:
            newer = msgspec.json.decode(response.body)["instance"]
            self._of_eureka(source, registration(key.app, newer))

    def restart_eureka(self, peer: int, *, warm_up: float) -> None:
        """Makes a server lose its memory. If it has peers it copies theirs, else it warms up.

        A real one takes seconds until it copies them, so what it told them before has arrived."""
        on_their_way = self._on_their_way[peer]
        while on_their_way:
            on_their_way.pop(0)()
        fresh = self._new_eureka(peer)
        self.eurekas[peer] = fresh
        other = next((number for number in range(len(self.eurekas)) if number != peer), None)
        if other is not None:
            for key, listed in self.standing(other).items():
                self._of_eureka(peer, registration(key.app, instance_document(listed[0])))
        if warm_up:
            fresh.warming_up = True
            self.clock.at(self.clock.time + warm_up, lambda: setattr(fresh, "warming_up", False))

    def register(self, stranger: Stranger, *, peer: int | None = None) -> None:
        """Registers a stranger, whose lease outlives the story and is renewed each half minute. If
        only one server should have it, nobody renews it."""
        document = {
            "instanceId": stranger.key.id,
            "hostName": stranger.host or stranger.ip,
            "ipAddr": stranger.ip,
            "app": stranger.key.app,
            "vipAddress": stranger.vip or stranger.key.app.lower(),
            "status": stranger.status,
            "port": {"$": PORT, "@enabled": "true"},
            "dataCenterInfo": DATA_CENTER,
            "leaseInfo": {"durationInSecs": 100_000},
            "metadata": dict(stranger.metadata),
            "lastDirtyTimestamp": "1"
            if stranger.older
            else str(int(self.clock.now() * 1000) + 10**9),
        }
        if peer is not None:
            self._of_eureka(peer, registration(stranger.key.app, document))
            return
        self.ask_eureka(0, registration(stranger.key.app, document))
        self.ended.pop(stranger.key, None)
        if stranger.key not in self._renewed:
            self._renewed.add(stranger.key)
            self._renew_later(stranger.key)

    def end_client(self, key: Key) -> bool:
        """Ends the client that renews the instance; returns whether there was one."""
        if key in self._renewed:
            self.ended.setdefault(key, self.clock.time)
        return key in self._renewed

    def _renew_later(self, key: Key) -> None:
        def renew() -> None:
            if key not in self.ended and self.ask_for("PUT", key) == 200:
                self._renew_later(key)
            else:
                self._renewed.discard(key)

        self.clock.at(self.clock.time + _STRANGERS_PERIOD, renew)

    def ask_for(self, method: str, key: Key, suffix: str = "", **query: str) -> int:
        """Makes a person's call about one instance; returns its status."""
        path = f"/eureka/apps/{key.app}/{key.id}{suffix}"
        return self.ask_eureka(0, Request(method=method, path=path, query=query)).status

    # --- Kubernetes -------------------------------------------------------------------------------

    def apply(self, group: str, manifest: Mapping[str, Any]) -> str:
        """`kubectl apply`: creates the object, or patches it; returns in words what happened."""
        metadata = manifest["metadata"]
        path = f"/{group.rpartition('/')[0]}/namespaces/{metadata['namespace']}/{group.rpartition('/')[2]}"
        spec = {key: value for key, value in manifest.get("spec", {}).items() if value is not None}
        status, _ = self.kubernetes.call("POST", path, {**manifest, "spec": spec})
        if status == 409:  # a None takes a field away
            body = {key: value for key, value in manifest.items() if key in ("spec", "metadata")}
            status, _ = self.kubernetes.call("PATCH", f"{path}/{metadata['name']}", body)
            return "changed" if status < 300 else f"refused ({status})"
        return "created" if status < 300 else f"refused ({status})"

    def delete(self, path: str, *, grace: int | None = None) -> bool:
        """`kubectl delete`; returns whether it was there."""
        query = {} if grace is None else {"gracePeriodSeconds": str(grace)}
        status, _ = self.kubernetes.call("DELETE", path, None, **query)
        return status < 300

    def objects(self, path: str) -> list[dict[str, Any]]:
        """All objects of a kind."""
        structure, statuses = self.kubernetes.structure, self.kubernetes.statuses
        known = self._objects.get(path)
        if known is None or known[0] != structure or (known[1] != statuses and "/eureka" in path):
            status, found = self.kubernetes.call("GET", path)
            known = self._objects[path] = (
                structure,
                statuses,
                list(found["items"]) if status == 200 else [],
            )
        return known[2]

    def pods(self) -> list[dict[str, Any]]:
        """All pods."""
        return self.objects("/api/v1/pods")

    def start_pod(
        self,
        app: str,
        name: str,
        ip: str,
        *,
        ready: bool,
        gated: bool = False,
        label: str = "",
        node: str = "node-1",
        host_port: int | None = None,
    ) -> str | None:
        """Starts a pod with this address, or the next free one. A pod that terminates has its
        address until it is gone. Returns its address, or None if it exists already. A gated pod is
        Ready only when our gate is open, too. Its label is its app, unless one is given."""
        taken = {pod["status"].get("podIP") for pod in self.pods()}
        free = next(candidate for candidate in _addresses_from(ip) if candidate not in taken)
        namespace = APPS[app]
        gates = {"readinessGates": [{"conditionType": GATE}]} if gated else {}
        ports: dict[str, Any] = {}
        if host_port is not None:
            ports["ports"] = [{"containerPort": PORT, "hostPort": host_port, "protocol": "TCP"}]
        manifest = {
            "metadata": {"namespace": namespace, "name": name, "labels": {"app": label or app}},
            "spec": {
                "nodeName": node,
                "containers": [{"name": "app", "image": "app", **ports}],
                **gates,
            },
        }
        path = f"/api/v1/namespaces/{namespace}/pods"
        status, _ = self.kubernetes.call("POST", path, manifest)
        if status >= 300:
            return None
        conditions = _conditions(containers=ready, ready=ready and not gated)
        told = {
            "phase": "Running",
            "podIP": free,
            "podIPs": [{"ip": free}],
            "conditions": conditions,
        }
        self.kubernetes.call("PATCH", f"{path}/{name}/status", {"status": told})
        return free

    def turn(self, namespace: str, name: str, *, ready: bool) -> bool:
        """Sets, as the kubelet or the node controller does, whether a pod's containers are ready;
        returns whether the pod exists."""
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        self._computes_ready(path, containers=ready)
        return self.kubernetes.call("GET", path)[0] == 200

    def _computes_ready(self, path: str, *, containers: bool | None = None) -> None:
        """Sets Ready, as the kubelet does: the containers are ready (None: as before) and every
        gate is open."""
        status, pod = self.kubernetes.call("GET", path)
        if status >= 300:
            return
        held = {entry["type"]: entry for entry in pod["status"].get("conditions", ())}
        gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates", ())]
        there = is_true(pod, "ContainersReady") if containers is None else containers
        ready = there and all(is_true(pod, gate) for gate in gates)
        held |= {entry["type"]: entry for entry in _conditions(containers=there, ready=ready)}
        self.kubernetes.call(
            "PATCH", f"{path}/status", {"status": {"conditions": list(held.values())}}
        )

    def end_pod(self, namespace: str, name: str, *, grace: float) -> bool:
        """Deletes a pod: it terminates for `grace` seconds, and then it is gone."""
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        there = self.delete(path, grace=int(grace))
        if there and grace:
            self.clock.at(self.clock.time + grace, lambda: self._collect(path))
        return there

    def _collect(self, path: str) -> None:
        status, pod = self.kubernetes.call("GET", path)
        if status == 200 and "deletionTimestamp" in pod["metadata"]:
            self.delete(path, grace=0)

    def delete_namespace(self, namespace: str) -> bool:
        """`kubectl delete namespace`: deletes all that is in it. An object with a finalizer keeps
        the namespace."""
        pods = [pod["metadata"] for pod in self.pods() if pod["metadata"]["namespace"] == namespace]
        if not self.delete(f"/api/v1/namespaces/{namespace}"):
            return False
        for metadata in pods:
            self.delete(f"/api/v1/namespaces/{namespace}/pods/{metadata['name']}", grace=0)
        return True

    def create_namespace(self, namespace: str) -> bool:
        """Creates a namespace; returns False while an old one of the name exists."""
        metadata = {"name": namespace, "annotations": self._grants}
        status, _ = self.kubernetes.call("POST", "/api/v1/namespaces", {"metadata": metadata})
        return status < 300

    def annotate(self, path: str, annotations: Mapping[str, str | None]) -> bool:
        """`kubectl annotate --overwrite`; returns whether the object was there."""
        status, _ = self.kubernetes.call("PATCH", path, {"metadata": {"annotations": annotations}})
        return status < 300

    def delete_crd(self) -> bool:
        """`kubectl delete crd`: every syncer is being deleted from now on."""
        return self.delete(f"{_CRD_PATH}/eurekasyncers.eurekube.io")

    def restore_crd(self) -> list[dict[str, Any]]:
        """Removes the finalizers, so that the CRD can go, and installs it again; returns the
        syncers that went."""
        lost = self.objects("/apis/eurekube.io/v1/eurekasyncers")
        for syncer in lost:
            self.kubernetes.call(
                "PATCH",
                syncer_path(syncer["metadata"]["namespace"], syncer["metadata"]["name"]),
                {"metadata": {"finalizers": None}},
            )
        self.kubernetes.call("POST", _CRD_PATH, definition())
        return lost

    def recreate(self, lost: Iterable[Mapping[str, Any]]) -> None:
        """Creates the syncers as they were, with new UIDs, without those that somebody has created
        meanwhile."""
        for syncer in lost:
            names = {key: syncer["metadata"][key] for key in ("namespace", "name", "labels")}
            manifest = {**_SYNCER, "metadata": names, "spec": syncer["spec"]}
            self.kubernetes.call("POST", syncer_path(names["namespace"], ""), manifest)


_SYNCER = {"apiVersion": "eurekube.io/v1", "kind": "EurekaSyncer"}


def syncer_manifest(name: str, app: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """A EurekaSyncer of an app."""
    metadata = {"namespace": APPS[app], "name": name, "labels": {"team": TEAMS[app]}}
    return {**_SYNCER, "metadata": metadata, "spec": spec}


def service_manifest(app: str, name: str = "") -> Mapping[str, Any]:
    """The Service of an app."""
    return {
        "metadata": {"namespace": APPS[app], "name": name or app, "labels": {"app": app}},
        "spec": {
            "selector": {"app": app},
            "ports": [{"name": "http", "port": SERVICE_PORT, "targetPort": PORT}],
        },
    }


def shelf_name(app: str, number: int) -> str:
    """The name of a syncer that claims another team's addresses; see `neighbours`."""
    return f"shelf-{app}-{number}"


def is_shelf(name: str) -> bool:
    """Whether it is such a name."""
    return name.startswith("shelf-")


def apart_name(kind: str, app: str) -> str:
    """The name of the syncer and the Service of an app that is served in another way; see
    `apart`."""
    return f"{kind}-{app}"


def app_apart(name: str) -> str:
    """The app of such a name."""
    return name.partition("-")[2]


def is_apart(name: str) -> bool:
    """Whether a syncer of this name is served in another way than the pods of most stories, so that
    the oracle of pods ignores it."""
    return name.startswith(tuple(f"{kind}-" for kind in _APART))


def syncer_path(namespace: str, name: str) -> str:
    """The path of a syncer."""
    return f"/apis/eurekube.io/v1/namespaces/{namespace}/eurekasyncers/{name}".rstrip("/")


def _milliseconds(clock: VirtualClock) -> int:
    return int(clock.now() * 1000)


def registration(app: str, document: Mapping[str, Any]) -> Request:
    return Request(
        method="POST",
        path=f"/eureka/apps/{app}",
        headers={"content-type": "application/json"},
        body=msgspec.json.encode({"instance": document}),
    )


def _conditions(*, containers: bool, ready: bool) -> list[dict[str, str]]:
    return [
        {"type": "ContainersReady", "status": str(containers)},
        {"type": "Ready", "status": str(ready)},
    ]


def is_true(pod: Mapping[str, Any], condition: str) -> bool:
    """Whether a pod's condition of this type is True."""
    conditions = pod["status"].get("conditions", ())
    return any(entry["type"] == condition and entry["status"] == "True" for entry in conditions)


def host_port(pod: Mapping[str, Any]) -> int | None:
    """The host port of a pod's container, if it has one."""
    for port in pod["spec"]["containers"][0].get("ports", ()):
        return int(port["hostPort"])
    return None


def _addresses_from(ip: str) -> Iterator[str]:
    head, _, last = ip.rpartition(".")
    return (f"{head}.{(int(last) - 1 + step) % 250 + 1}" for step in range(250))
