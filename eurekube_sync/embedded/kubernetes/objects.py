"""The rules of create, update and delete, and the work of controllers after each write.

Covers generation, finalizers, deletion in two steps, optimistic locking, the deletion of
namespaces and of what lost its owners, EndpointSlices, and those defaults of built-in kinds that a
client here reads. The caller gives the functions that check custom resources. Knows no HTTP. Raises
`ApiError` for refused calls.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from eurekube_sync.embedded.kubernetes import errors, resources, slices
from eurekube_sync.embedded.kubernetes.owners import Owners
from eurekube_sync.embedded.kubernetes.resources import Resource
from eurekube_sync.embedded.kubernetes.store import Object, Store, namespace_of

Validate = Callable[[Mapping[str, Any], Mapping[str, Any] | None], Sequence[errors.Fault]]
"""(new object, old object or None) -> the faults of the new object."""
Conform = Callable[[Object, Mapping[str, Any]], tuple[Object, Sequence[str]]]
"""(custom resource, schema) -> the object as it is stored, and the names of the unknown fields that
it loses."""

_NETWORK = ipaddress.ip_network("10.96.0.0/16")
_OF_ADDRESSES = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
_SET_BY_SERVER = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "managedFields",
)
_LEFT_OUT_IF_EMPTY = ("labels", "annotations", "finalizers", "ownerReferences")


class Objects:
    """The objects of the embedded API. The server locks."""

    def __init__(
        self,
        now: Callable[[], float],
        validate: Validate | None,
        conform: Conform,
        store: Store | None = None,
    ) -> None:
        self.store = store or Store()
        self.validate = validate
        self._conform = conform
        self.given: Counter[str] = Counter()
        self._owners = Owners(self.store)
        self._now = now
        self._derived: dict[str, set[str]] = {}
        """The names of each Service's slices, by the Service's uid."""
        self.resources: dict[tuple[str, str], Resource] = {}
        """The resources that are served now, by path of group and version, and by plural."""
        self.serve(resources.BUILT_IN)

    def serve(self, served: Iterable[Resource]) -> None:
        """Serve these resources, too."""
        for resource in served:
            self.resources[resource.path, resource.plural] = resource

    def time(self, *, later: float = 0) -> str:
        """Format the current time as metadata does, `later` seconds ahead."""
        return datetime.fromtimestamp(self._now() + later, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """Return the current version. Raises a 404."""
        stored = self.store.get(resource.key, namespace, name)
        if stored is None:
            raise errors.named(404, "NotFound", resource, name, "not found")
        return stored

    # --- Create, update, delete -------------------------------------------------------------------

    def create(
        self, resource: Resource, namespace: str, body: Any, *, strict: bool = False
    ) -> Object:
        """Store a new object and return it as stored. With `strict`, an unknown field is a 400."""
        obj = self.read(resource, body, None, strict=strict)
        obj["metadata"] = self._new_metadata(resource, namespace, obj["metadata"])
        name = obj["metadata"]["name"]
        self.admit(resource, namespace, name)
        if self.store.get(resource.key, namespace, name) is not None:
            raise errors.named(409, "AlreadyExists", resource, name, "already exists")
        if resource.has_status and resource != resources.NODES:
            obj.pop("status", None)
        self.complete(resource, obj, None)
        self.follow(resource, None, self.store.put(resource.key, obj))
        return obj

    def update(
        self,
        resource: Resource,
        old: Object,
        body: Any,
        *,
        strict: bool = False,
        status: bool = False,
    ) -> Object:
        """Store a changed object, or only its status. An update that changes nothing keeps the
        resourceVersion."""
        obj = self.read(resource, body, old, strict=strict)
        was = old["metadata"]
        if obj["metadata"].get("resourceVersion", was["resourceVersion"]) != was["resourceVersion"]:
            raise errors.conflict(resource, was["name"])
        if resource.has_status and status:
            obj = _with_status(old, obj)
        elif resource.has_status:
            obj = _with_status(obj, old)
        metadata = _given(obj["metadata"])
        for field in (*_SET_BY_SERVER, "name", "namespace", "resourceVersion"):
            if field in was:
                metadata[field] = was[field]
        obj["metadata"] = metadata
        self.complete(resource, obj, old)
        if obj == old:
            return old
        if resource.generation and _spec(obj) != _spec(old):
            metadata["generation"] = was.get("generation", 0) + 1
        if resource != resources.NAMESPACES and _ends(metadata):
            metadata["resourceVersion"] = str(self.store.revision + 1)
            self.remove(resource, old)
            return obj
        self.follow(resource, old, self.store.put(resource.key, obj))
        return obj

    def delete(self, resource: Resource, stored: Object, *, grace: int = 0) -> Object:
        """Remove an object, or mark it as deleted: with finalizers, or with `grace` seconds to
        terminate."""
        metadata = stored["metadata"]
        is_namespace = resource == resources.NAMESPACES
        if not metadata.get("finalizers") and not grace and not is_namespace:
            self.remove(resource, stored)
            return stored
        is_marked = "deletionTimestamp" in metadata
        if is_marked and grace >= metadata.get("deletionGracePeriodSeconds", 0):
            return stored
        changed = {
            **metadata,
            "deletionTimestamp": self.time(later=grace),
            "deletionGracePeriodSeconds": grace,
        }
        if "generation" in metadata:
            changed["generation"] += 1
        obj = {**stored, "metadata": changed}
        if is_namespace:
            obj["status"] = {**stored["status"], "phase": "Terminating"}
        marked = self.store.put(resource.key, obj)
        self.follow(resource, stored, marked)
        if is_namespace:
            self._empty(metadata["name"])
        return marked

    def remove(self, resource: Resource, stored: Object) -> None:
        """Remove an object, and finish the deletion of its namespace if that waited for it."""
        self.store.remove(resource.key, stored)
        self.follow(resource, stored, None)
        if resource.namespaced:
            self._end(namespace_of(stored))

    def read(self, resource: Resource, body: Any, old: Object | None, *, strict: bool) -> Object:
        """Read a body as an object of this kind, and conform a custom one to its schema."""
        if not isinstance(body, dict):
            raise errors.bad_request(
                f"the object provided is unrecognized (must be of type {resource.kind})"
            )
        head = {"kind": resource.kind, "apiVersion": resource.api_version}
        obj: Object = {**body, **head, "metadata": body.get("metadata") or {}}
        if not resource.schema:
            return obj
        obj, unknown = self._conform(obj, resource.schema)
        if unknown and strict:
            texts = ", ".join(f'unknown field "{field}"' for field in unknown)
            raise errors.unreadable(resource, f"strict decoding error: {texts}")
        return obj

    def _new_metadata(self, resource: Resource, namespace: str, given: Object) -> Object:
        metadata = _given(given)
        metadata.pop("resourceVersion", None)
        if metadata.pop("namespace", namespace) != namespace and resource.namespaced:
            raise errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
        if resource.namespaced:
            metadata["namespace"] = namespace
        uid = self.store.new_uid()
        metadata["name"] = metadata.get("name") or metadata.get("generateName", "") + uid[:5]
        metadata |= {"uid": uid, "creationTimestamp": self.time()}
        if resource.generation:
            metadata["generation"] = 1
        return metadata

    def admit(self, resource: Resource, namespace: str, name: str) -> None:
        """Refuse a new object if its namespace does not exist (NamespaceLifecycle)."""
        if resource.namespaced:
            self.get(resources.NAMESPACES, "", namespace)

    def complete(self, resource: Resource, obj: Object, old: Mapping[str, Any] | None) -> None:
        """Set the defaults of this kind in `obj`, a private copy down to its metadata, and check a
        custom resource."""
        match resource:
            case resources.SERVICES:
                _complete_service(obj, old, self.given)
            case resources.PODS:
                obj["spec"] = {"terminationGracePeriodSeconds": 30, **(obj.get("spec") or {})}
                obj.setdefault("status", {"phase": "Pending", "qosClass": "BestEffort"})
            case resources.NAMESPACES:
                name = {"kubernetes.io/metadata.name": obj["metadata"]["name"]}
                obj["metadata"]["labels"] = (obj["metadata"].get("labels") or {}) | name
                obj.setdefault("spec", {"finalizers": ["kubernetes"]})
                obj.setdefault("status", {"phase": "Active"})
            case resources.DEFINITIONS:
                accepted = condition("Established", "InitialNamesAccepted", self.time())
                obj.setdefault("status", {"conditions": [accepted]})
            case _ if resource.custom and self.validate:
                faults = self.validate(obj, old)
                if faults:
                    name = obj["metadata"]["name"]
                    raise errors.invalid(resource.kind, resource.group, name, faults)

    # --- What follows from a write ----------------------------------------------------------------

    def follow(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        """Do at once what controllers do: update slices after pods and nodes, and served resources
        after CRDs; delete what lost its owners."""
        current = new or old
        assert current is not None
        self._owners.note(resource, old, new)
        match resource:
            case resources.DEFINITIONS:
                self._serve_custom(current["metadata"]["name"], new)
            case resources.SERVICES:
                self.sync_slices(current, ends=new is None)
            case resources.PODS:
                states = [pod for pod in (old, new) if pod]
                self._sync_services(filter(slices.has_address, states))
            case resources.NODES:
                node = current["metadata"]["name"]
                pods = self.store.list_(resources.PODS.key)
                self._sync_services(pod for pod in pods if pod["spec"].get("nodeName") == node)
        if new is None:
            self._collect(current)
        elif self._owners.is_orphan(new, self.resources.values()):
            self._delete_as_it_is(resource, new)

    def _collect(self, owner: Object) -> None:
        """Delete the dependents of an owner that is gone, if they have no other."""
        for resource, namespace, name in self._owners.of(owner["metadata"]["uid"]):
            stored = self.store.get(resource.key, namespace, name)
            if stored and self._owners.is_orphan(stored, self.resources.values()):
                self._delete_as_it_is(resource, stored)

    def _delete_as_it_is(self, resource: Resource, stored: Object) -> None:
        if "deletionTimestamp" not in stored["metadata"]:
            self.delete(resource, stored)

    def _serve_custom(self, name: str, definition: Object | None) -> None:
        """Serve the resources of a new or changed CRD; without it, remove all its objects."""
        served = list(self.resources.values())
        self.resources = {}
        gone: list[Object] = []
        for resource in served:
            if resource.definition != name:
                self.serve([resource])
            elif definition is None:
                for stored in self.store.list_(resource.key):
                    self.store.remove(resource.key, stored)
                    gone.append(stored)
        for stored in gone:
            self._collect(stored)
        if definition is not None:
            self.serve(resources.from_definition(definition))

    def sync_slices(self, service: Object, *, ends: bool = False) -> None:
        """Update the slices of one Service; remove them if the Service `ends`."""
        metadata, namespace = service["metadata"], namespace_of(service)
        is_there = not ends and "deletionTimestamp" not in metadata
        if is_there and service["spec"].get("type") == "ExternalName":
            return  # its earlier slices stay
        wanted: set[str] = set()
        if is_there:
            pods = self.store.list_(resources.PODS.key, namespace)
            for entry in self.slices_of(service, pods):
                wanted.add(entry["metadata"]["name"])
                self.derive(resources.SLICES, namespace, entry)
        for name in sorted(self._derived.pop(metadata["uid"], set()) - wanted):
            stored = self.store.get(resources.SLICES.key, namespace, name)
            if stored:
                self.remove(resources.SLICES, stored)
        if wanted:
            self._derived[metadata["uid"]] = wanted

    def slices_of(self, service: Object, pods: Sequence[Object]) -> tuple[Object, ...]:
        """Return the slices that a Service should have."""
        return slices.slices_of(service, pods, self.node)

    def derive(self, resource: Resource, namespace: str, wanted: Object) -> None:
        """Create or update an object as a controller does."""
        current = self.store.get(resource.key, namespace, wanted["metadata"]["name"])
        if current is None:
            self.create(resource, namespace, wanted)
        else:
            self.update(resource, current, wanted)

    def node(self, name: str) -> Mapping[str, Any] | None:
        return self.store.get(resources.NODES.key, "", name)

    def _sync_services(self, pods: Iterable[Object]) -> None:
        """Update the slices of the Services that select one of these pods."""
        labels: dict[str, list[Any]] = {}
        for pod in pods:
            pod_labels = pod["metadata"].get("labels") or {}
            labels.setdefault(namespace_of(pod), []).append(pod_labels.items())
        for namespace in sorted(labels):
            for service in self.store.list_(resources.SERVICES.key, namespace):
                selector = service["spec"].get("selector") or {}
                selects = any(selector.items() <= pod_labels for pod_labels in labels[namespace])
                if selector and selects:
                    self.sync_slices(service)

    def _empty(self, namespace: str) -> None:
        known = {resource.key: resource for resource in self.resources.values()}
        for key in self.store.keys_in(namespace):
            for stored in self.store.list_(key, namespace):
                current = self.store.get(key, namespace, stored["metadata"]["name"])
                if current:  # what follows from a deletion may have removed it
                    self.delete(known[key], current)
        self._end(namespace)

    def _end(self, namespace: str) -> None:
        """Remove a namespace that is being deleted as soon as it is empty."""
        stored = self.store.get(resources.NAMESPACES.key, "", namespace)
        is_ending = stored is not None and "deletionTimestamp" in stored["metadata"]
        if stored and is_ending and not self.store.keys_in(namespace):
            self.remove(resources.NAMESPACES, stored)


def _given(metadata: Mapping[str, Any]) -> Object:
    """Return the fields that a caller may set, without empty collections (Go's omitempty)."""
    given: Object = {}
    for field, value in metadata.items():
        left_out = field in _SET_BY_SERVER or (field in _LEFT_OUT_IF_EMPTY and not value)
        if not left_out:
            given[field] = value
    return given


def _with_status(obj: Object, source: Object) -> Object:
    """Return a copy of an object with the status of another one, or without a status."""
    copied = {field: value for field, value in obj.items() if field != "status"}
    if "status" in source:
        copied["status"] = source["status"]
    return copied


def _ends(metadata: Object) -> bool:
    """Say whether a deleted object waits for nothing any more."""
    waits = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    return "deletionTimestamp" in metadata and not waits


def _spec(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of an object whose changes metadata.generation counts."""
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")}


def condition(kind: str, reason: str, time: str) -> Object:
    """Make a condition with status True."""
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": "",
        "lastTransitionTime": time,
    }


def next_address(given: Counter[str]) -> str:
    """Return an unused cluster IP, the same ones in every run."""
    given["addresses"] += 1
    return str(_NETWORK[given["addresses"]])


def _complete_service(service: Object, old: Mapping[str, Any] | None, given: Counter[str]) -> None:
    """Set the defaults, cluster IP and node ports of a Service in an IPv4 cluster. `given` counts
    both."""
    spec: Object = {"type": "ClusterIP", **(service.get("spec") or {})}
    service["spec"] = spec
    service.setdefault("status", {"loadBalancer": {}})
    before: Mapping[str, Any] = (old or {}).get("spec") or {}
    ports = spec.pop("ports", None) or ()
    if ports:
        spec["ports"] = [_complete_port(port) for port in ports]
    if spec["type"] == "ExternalName":
        for field in _OF_ADDRESSES:
            spec.pop(field, None)
        return
    for field in _OF_ADDRESSES:
        if field in before:
            spec.setdefault(field, before[field])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    spec.setdefault("ipFamilies", ["IPv4"])
    spec["clusterIP"] = spec.get("clusterIP") or next_address(given)
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
        _give_node_ports(spec.get("ports") or (), before.get("ports") or (), given)


def _complete_port(port: Object) -> Object:
    target = port.get("targetPort") or port.get("port")
    return {"protocol": "TCP", **port, "targetPort": target}


def _give_node_ports(
    ports: Iterable[Object], before: Iterable[Object], given: Counter[str]
) -> None:
    """Give each port its node port of before, or a new one."""
    kept = {port.get("port"): port.get("nodePort") for port in before}
    for port in ports:
        if "nodePort" not in port:
            given["ports"] += 1
            port["nodePort"] = kept.get(port["port"]) or 29999 + given["ports"]
