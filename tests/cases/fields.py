"""The table of what a syncer can say: a row per field and case, a cluster's objects in, Eureka's
instances out.

The rows are in `fields.yaml`, written to be read. Here they become objects of a Kubernetes API,
embedded or real, and what a pass makes of them becomes text again. What a row leaves out is the
standard world: the syncer selects `app: rating`; the one Service `rating` has the port `http` (80
to the containers' `http`); two ready pods `rating-1` and `rating-2` stand at 10.0.0.1 and 10.0.0.2
on the node `node-a`, with the container port `http` 8080.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from eurekube_sync.desired.claims import Claim, Desired, Leaving, NotServed, Serving, Taken
from eurekube_sync.desired.instance import Naming
from eurekube_sync.desired.resolve import claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.eureka import (
    Instance,
    InstanceKey,
    InstanceStatus,
    LeaseTimes,
    ObservedInstance,
    Port,
)
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import Ownership, instance_id
from eurekube_sync.model.ports import Cluster
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Observed, observe
from eurekube_sync.observe.kubernetes import read_cluster
from eurekube_sync.plan.duplicates import warned
from eurekube_sync.plan.left_out import within_limits
from eurekube_sync.plan.make import make_plan

Json = dict[str, Any]
Send = Callable[[str, str, Json | None], Any]
"""A call to the API: method, path, body. A PATCH is a merge patch."""

_TABLE = Path(__file__).parent / "fields.yaml"
_OUR_MARKS = "eurekube."
_OTHER = "other"
_STANDARD: Json = {
    "syncers": {"rating": {}},
    "services": [{"metadata": {"name": "rating"}}],
    "pods": [{"name": "rating-1", "ip": "10.0.0.1"}, {"name": "rating-2", "ip": "10.0.0.2"}],
    "nodes": [{"name": "node-a"}],
    "endpoints": [],
    "slices": [],
    "ingresses": [],
    "gateways": [],
    "routes": [],
    "grants": [],
}
_GATEWAYS = "gateway.networking.k8s.io"
_GATEWAY_API = f"/apis/{_GATEWAYS}/v1/namespaces"
NAMING = Naming(ownership=Ownership(owner="fields", cluster="c" * 8), lease=LeaseTimes(30, 300))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the table."""

    field: str
    name: str
    given: Mapping[str, Any]
    instances: list[Json]
    leaving: list[str]
    eureka: list[str]
    """What stands there: `rating 10.0.0.9:8080 UP`, by its syncer; `dc-1` for one of the data
    centre's, and `dc-1 10.0.0.1:8080` for one that a pod registered itself."""
    plan: Mapping[str, list[str]] | None
    """What a pass would do, and what the brake holds; None where the row does not ask."""
    deleted: list[str]
    """Syncers that a person deletes; their finalizer holds them."""
    elsewhere: bool
    """Whether Services and pods are in the namespace `other`, not in the syncer's."""
    allow: list[tuple[str, str]]
    """--allow-namespace; `own` is the syncer's."""
    reasons: Mapping[str, str]
    """Why a syncer is not served, or not wholly, by its name."""
    message: str
    """A part of what is said to a person."""

    @property
    def needs_other(self) -> bool:
        """Whether the namespace `other` exists."""
        routes = self.given["routes"]
        return self.elsewhere or any("namespace" in route["metadata"] for route in routes)

    @property
    def title(self) -> str:
        """The row's name for a test."""
        return f"{self.field}: {self.name}"


def field_rows() -> list[Row]:
    """The rows of the table, in its order."""
    return [_row(item) for item in yaml.safe_load(_TABLE.read_text(encoding="utf-8"))]


def _row(item: Json) -> Row:
    given = {name: item.get(name, standard) for name, standard in _STANDARD.items()}
    if "spec" in item:
        given["syncers"] = {"rating": item["spec"]}
    reason = item.get("reason", {})
    known = {"field", "name", "spec", "instances", "leaving", "reason", "message", *_STANDARD}
    known |= {"eureka", "plan", "deleted", "in", "allow"}
    assert set(item) <= known, f"{item['name']}: unknown {set(item) - known}"
    return Row(
        field=item["field"],
        name=item["name"],
        given=given,
        instances=item.get("instances", []),
        leaving=item.get("leaving", []),
        eureka=item.get("eureka", []),
        plan=item.get("plan"),
        deleted=item.get("deleted", []),
        elsewhere=item.get("in") == _OTHER,
        allow=[(pair.split(":")[0], pair.split(":")[1]) for pair in item.get("allow", [])],
        reasons={"rating": reason} if isinstance(reason, str) else reason,
        message=item.get("message", ""),
    )


def create(row: Row, send: Send, namespace: str) -> None:
    """Puts the row's objects into a cluster that has the namespace."""
    if row.needs_other:
        send("POST", "/api/v1/namespaces", {"metadata": {"name": _named(_OTHER, namespace)}})
    there = _there(row, namespace)
    core, slices = f"/api/v1/namespaces/{there}", f"/apis/discovery.k8s.io/v1/namespaces/{there}"
    for node in row.given["nodes"]:
        name = node["name"]
        send("POST", "/api/v1/nodes", _node(node))
        send("PATCH", f"/api/v1/nodes/{name}/status", {"status": _node_status(node)})
        if node.get("deleting"):
            send("DELETE", f"/api/v1/nodes/{name}", None)
    for service in row.given["services"]:
        made = _service(service)
        send("POST", f"{core}/services", made)
        if "status" in service:
            send(
                "PATCH",
                f"{core}/services/{made['metadata']['name']}/status",
                {"status": service["status"]},
            )
    for endpoints in row.given["endpoints"]:
        send("POST", f"{core}/endpoints", endpoints)
    for piece in row.given["slices"]:
        send("POST", f"{slices}/endpointslices", piece)
    ingresses = f"/apis/networking.k8s.io/v1/namespaces/{there}/ingresses"
    for ingress in row.given["ingresses"]:
        send("POST", ingresses, {"metadata": ingress["metadata"], "spec": ingress["spec"]})
        if "status" in ingress:
            path = f"{ingresses}/{ingress['metadata']['name']}/status"
            send("PATCH", path, {"status": ingress["status"]})
    for gateway in row.given["gateways"]:
        spec = {"gatewayClassName": "example", **gateway["spec"]}
        whole = {**gateway, "spec": spec}
        _create_whole(send, f"{_GATEWAY_API}/{there}/gateways", "Gateway", whole)
    for grant in _located(row.given["grants"], namespace):
        path = f"/apis/{_GATEWAYS}/v1beta1/namespaces/{there}/referencegrants"
        head = {"apiVersion": f"{_GATEWAYS}/v1beta1", "kind": "ReferenceGrant"}
        send("POST", path, {**head, **grant})
    for route in _located(row.given["routes"], namespace):
        where = route["metadata"].get("namespace", there)
        _create_whole(send, f"{_GATEWAY_API}/{where}/httproutes", "HTTPRoute", _route(route))
    for pod in row.given["pods"]:
        send("POST", f"{core}/pods", _pod(pod))
        send("PATCH", f"{core}/pods/{pod['name']}/status", {"status": _pod_status(pod)})
        if pod.get("terminating"):
            send("DELETE", f"{core}/pods/{pod['name']}", {"gracePeriodSeconds": 300})
    for name, spec in row.given["syncers"].items():
        selector = spec.get("selector", {"app": "rating"})
        if "namespace" in selector:
            selector = {**selector, "namespace": _named(selector["namespace"], namespace)}
        body = {
            "apiVersion": "eurekube.io/v1",
            "kind": "EurekaSyncer",
            "metadata": {
                "name": name,
                "finalizers": [CLEANUP_FINALIZER] if name in row.deleted else [],
            },
            "spec": {**spec, "selector": selector},
        }
        syncers = f"/apis/eurekube.io/v1/namespaces/{namespace}/eurekasyncers"
        send("POST", syncers, body)
        if name in row.deleted:
            send("DELETE", f"{syncers}/{name}", None)


def gateway_api() -> list[Json]:
    """The definitions of HTTPRoutes and Gateways."""
    text = (_TABLE.parent / "gateway_api.yaml").read_text(encoding="utf-8")
    definitions: list[Json] = yaml.safe_load(text)
    return definitions


def _create_whole(send: Send, path: str, kind: str, given: Json) -> None:
    """Create an object of the Gateway API, and its status as its controller does."""
    head = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": kind}
    send("POST", path, {**head, "metadata": given["metadata"], "spec": given["spec"]})
    if "status" in given:
        name = given["metadata"]["name"]
        send("PATCH", f"{path}/{name}/status", {"status": given["status"]})


def _route(route: Json) -> Json:
    """A route that its parents accepted, unless `accepted` says otherwise."""
    accepted = {
        "type": "Accepted",
        "status": str(route.get("accepted", True)),
        "reason": "Decided",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    parents: list[Json] = []
    for parent in route["spec"]["parentRefs"]:
        controller = {"controllerName": "example.com/controller", "conditions": [accepted]}
        parents.append({"parentRef": parent, **controller})
    return {**route, "status": {"parents": parents}}


def _there(row: Row, namespace: str) -> str:
    """Where its Services and pods are."""
    return _named(_OTHER, namespace) if row.elsewhere else namespace


def _located(given: Any, namespace: str) -> Any:
    """Return objects with their namespaces' names in the cluster, in references, too."""
    if isinstance(given, list):
        return [_located(item, namespace) for item in given]
    if not isinstance(given, dict):
        return given
    located = {key: _located(value, namespace) for key, value in given.items()}
    if "namespace" in given:
        located["namespace"] = _named(given["namespace"], namespace)
    return located


def _named(name: str, namespace: str) -> str:
    """A namespace of the table, by its name in the cluster, where each row has a namespace of its
    own."""
    return {"own": namespace, _OTHER: f"{namespace}-other"}.get(name, name)


def remove(row: Row, send: Send, namespace: str) -> None:
    """Takes away what would stand in another row's way: nodes, and the addresses and node ports of
    Services."""
    for node in row.given["nodes"]:
        path = f"/api/v1/nodes/{node['name']}"
        if node.get("deleting"):
            send("PATCH", path, {"metadata": {"finalizers": None}})
        else:
            send("DELETE", path, None)
    for service in row.given["services"]:
        send(
            "DELETE",
            f"/api/v1/namespaces/{_there(row, namespace)}/services/{service['metadata']['name']}",
            None,
        )


def look(cluster: Cluster, namespace: str, row: Row | None = None) -> Desired:
    """What a pass makes of the cluster now, with what stands in Eureka."""
    allowed = frozenset(
        (_named(own, namespace), _named(other, namespace))
        for own, other in (row.allow if row else ())
    )
    scope = Scope(namespaces=frozenset({namespace}), allowed=allowed)
    identity = cluster.identity()
    assert not isinstance(identity, Unknown), identity
    listed = {
        one.key: one
        for one in (_standing(row, namespace) if row else ())
        if NAMING.ownership.holds(one)
    }
    naming = replace(NAMING, listed=listed)
    return claim_all(read_cluster(cluster, identity, scope, pod_drains=True), naming, scope)


def instances_of(desired: Desired) -> list[Instance]:
    """All that should stand, by id."""
    wanted = [desired.wanted(key) for key in sorted(desired.wanted_by)]
    return [one.instance for one in wanted if one is not None]


def differences_from(row: Row, desired: Desired, namespace: str) -> list[str]:
    """In which ways the claims are not what the row says; none when they are."""
    registry = observe(
        Complete(data=tuple(_standing(row, namespace))), NAMING.ownership, Scope(), asked=0
    )
    for rule in (within_limits, warned):
        desired = desired.with_claims(rule(desired, registry).claims)
    found = [_shown(instance) for instance in instances_of(desired)]
    expected = [{"status": "UP", **instance} for instance in row.instances]
    faults: list[str] = []
    if len(found) != len(expected):
        faults.append(f"{len(found)} instances, not {len(expected)}: {found}")
    for one, other in zip(found, expected, strict=False):
        faults += [
            f"{key}: {one.get(key)!r}, not {value!r}"
            for key, value in other.items()
            if one.get(key) != value
        ]
    claims = {
        ref.name: claim for ref, claim in desired.claims.items() if ref.namespace == namespace
    }
    for name in {*row.reasons, *claims}:
        reason = _reason(claims[name]) if name in claims else "no claim"
        if reason != row.reasons.get(name, ""):
            faults.append(
                f"syncer {name}: {reason or 'served'}, not {row.reasons.get(name) or 'served'}"
            )
    serving = [claim for claim in claims.values() if isinstance(claim, Serving)]
    leaving = sorted(_place(key) for claim in serving for key in claim.of(Leaving))
    if leaving != sorted(row.leaving):
        faults.append(f"leaving {leaving}, not {row.leaving}")
    if row.plan is not None and (planned := _planned(desired, registry)) != row.plan:
        faults.append(f"plan {planned}, not {row.plan}")
    said = [text for name in sorted(claims) for text in _said(claims[name])]
    if not any(row.message in text for text in said or [""]):
        faults.append(f"said {said}, nothing of {row.message!r}")
    return faults


def _standing(row: Row, namespace: str) -> Iterator[ObservedInstance]:
    for number, text in enumerate(row.eureka):
        syncer, _, rest = text.partition(" ")
        place, status = (*rest.split(" "), "", "")[:2]
        address, _, port = (place or f"192.0.2.{number}:8080").rpartition(":")
        ours = not syncer.startswith("dc")
        id_ = instance_id(
            owner="fields", namespace=namespace, app="rating", address=address, port=int(port)
        )
        marks = NAMING.ownership.marked({}, SyncerRef(namespace, syncer), None)
        yield ObservedInstance(
            instance=Instance(
                key=InstanceKey("RATING", id_ if ours else syncer),
                host_name=address,
                ip_addr=address,
                port=Port(int(port), True),
                secure_port=Port(0, False),
                vip_address="rating",
                secure_vip_address="",
                status=InstanceStatus(status or "UP"),
                lease=LeaseTimes(0, 0),
                metadata=marks if ours else {},
            )
        )


def _planned(desired: Desired, registry: Observed) -> dict[str, list[str]]:
    plan = make_plan(desired, registry)
    found: dict[str, list[str]] = {}
    for action in plan.actions:
        found.setdefault(type(action).__name__.lower(), []).append(_place(action.key))
    return found


def _place(key: InstanceKey) -> str:
    return ":".join(key.id.split(":")[3:])


def _reason(claim: Claim) -> str:
    if isinstance(claim, NotServed):
        return claim.reason
    if isinstance(claim, Serving) and claim.of(Taken):
        return "Conflict"
    return claim.incomplete[0].reason if isinstance(claim, Serving) and claim.incomplete else ""


def _said(claim: Claim) -> Iterator[str]:
    if isinstance(claim, NotServed):
        yield claim.message
    elif isinstance(claim, Serving):
        yield from (one.message for one in claim.incomplete)
        yield from claim.warnings
        yield from claim.notes
        yield from (wanted.why for wanted in claim.wanted.values())
        yield from (f"held by {taken.rival.syncer.name}" for taken in claim.of(Taken).values())
        yield from (leaving.why for leaving in claim.of(Leaving).values())


def _shown(instance: Instance) -> Json:
    """An instance in Eureka's names; our own marks are left out of the metadata."""
    return {
        "app": instance.key.app,
        "hostName": instance.host_name,
        "ipAddr": instance.ip_addr,
        "port": instance.port.number if instance.port.enabled else "off",
        "securePort": instance.secure_port.number if instance.secure_port.enabled else "off",
        "vipAddress": instance.vip_address,
        "secureVipAddress": instance.secure_vip_address,
        "status": instance.status.value,
        "metadata": {
            key: text for key, text in instance.metadata.items() if not key.startswith(_OUR_MARKS)
        },
        "syncer": instance.metadata["eurekube.syncer"].partition("/")[2],
        "homePageUrl": instance.home_page_url,
        "statusPageUrl": instance.status_page_url,
        "healthCheckUrl": instance.health_check_url,
    }


def _service(service: Json) -> Json:
    spec = {
        "selector": {"app": "rating"},
        "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
        **service.get("spec", {}),
    }
    metadata = {"labels": {"app": "rating"}, **service["metadata"]}
    return {
        "metadata": metadata,
        "spec": {key: value for key, value in spec.items() if value is not None},
    }


def _pod(pod: Json) -> Json:
    ports: list[Json] = []
    for name, number in pod.get("ports", {"http": 8080}).items():
        port = {"name": name, "containerPort": number}
        if name in pod.get("host_ports", {}):
            port["hostPort"] = pod["host_ports"][name]
            port["hostIP"] = pod.get("host_ip", "")
        ports.append(port)
    return {
        "metadata": {
            "name": pod["name"],
            "labels": {"app": "rating", **pod.get("labels", {})},
            "annotations": pod.get("annotations", {}),
        },
        "spec": {
            "nodeName": pod.get("node", "node-a"),
            "hostNetwork": pod.get("host_network", False),
            "containers": [{"name": "app", "image": "example.invalid/app:1", "ports": ports}],
            "terminationGracePeriodSeconds": 300,
            "readinessGates": [{"conditionType": "eurekube.io/registered"}]
            if "containers_ready" in pod
            else [],
        },
    }


def _pod_status(pod: Json) -> Json:
    addresses = [pod["ip"]] if isinstance(pod["ip"], str) else pod["ip"]
    host = pod.get("host", [])
    hosts = [host] if isinstance(host, str) else host
    of_host = {"hostIP": hosts[0], "hostIPs": [{"ip": ip} for ip in hosts]} if hosts else {}
    return {
        **of_host,
        "phase": "Running",
        "podIP": addresses[0],
        "podIPs": [{"ip": address} for address in addresses],
        "conditions": [
            {"type": "Ready", "status": str(pod.get("ready", True))},
            {
                "type": "ContainersReady",
                "status": str(pod.get("containers_ready", pod.get("ready", True))),
            },
        ],
    }


def _node(node: Json) -> Json:
    zone = {"topology.kubernetes.io/zone": node["zone"]} if "zone" in node else {}
    taints = [{"key": key, "effect": "NoSchedule"} for key in node.get("taints", [])]
    return {
        "metadata": {
            "name": node["name"],
            "labels": {**zone, **node.get("labels", {})},
            "annotations": node.get("annotations", {}),
            "finalizers": ["example.com/held"] if node.get("deleting") else [],
        },
        "spec": {"taints": taints},
    }


def _node_status(node: Json) -> Json:
    addresses = [{"type": "InternalIP", "address": node["internal"]}] if "internal" in node else []
    addresses += [{"type": "ExternalIP", "address": node["external"]}] if "external" in node else []
    return {
        "addresses": addresses,
        "conditions": [{"type": "Ready", "status": str(node.get("ready", True))}],
    }
