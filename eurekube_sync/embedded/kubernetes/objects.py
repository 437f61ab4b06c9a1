"""The rules of writing: what create, update and delete do to an object, and what follows from it.

Owns generation, finalizers, deletion in two steps, optimistic locking, the end of namespaces, the slice controller's
turn after each write, and the defaults of built-in kinds, as far as somebody here reads them. Custom resources are
judged by the functions that the server is given. Knows no HTTP; refusals are `ApiError`.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from eurekube_sync.embedded.kubernetes import errors, resources, slices
from eurekube_sync.embedded.kubernetes.resources import Resource
from eurekube_sync.embedded.kubernetes.store import Object, Store, namespace_of

Validate = Callable[[Mapping[str, Any], Mapping[str, Any] | None], Sequence[errors.Fault]]
"""(new object, old object or None) -> what is wrong with it."""
Conform = Callable[[Object, Mapping[str, Any]], tuple[Object, Sequence[str]]]
"""(custom resource, schema) -> as it is stored, and the names of the unknown fields that are left out."""

_NETWORK = ipaddress.ip_network("10.96.0.0/16")
_OF_ADDRESSES = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
_SET_BY_SERVER = (
    *("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"),
    "managedFields",
)


class Objects:
    """The objects of the embedded API, changed by the rules of the real one. Not locked: the server is."""

    def __init__(
        self, now: Callable[[], float], validate: Validate | None, conform: Conform, store: Store | None = None
    ) -> None:
        self.store = store or Store()
        self.validate = validate
        self._conform = conform
        self.given: Counter[str] = Counter()
        self._now = now
        self._derived: dict[str, frozenset[str]] = {}
        """The slices of each Service, by its uid."""
        self.resources = {(one.path, one.plural): one for one in resources.BUILT_IN}
        """All that is served now, by path of its group and version, and plural."""

    def time(self, *, later: float = 0) -> str:
        """The clock in the form of metadata."""
        return datetime.fromtimestamp(self._now() + later, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """The current version, or a 404."""
        stored = self.store.get(resource.key, namespace, name)
        if stored is None:
            raise errors.named(404, "NotFound", resource, name, "not found")
        return stored

    # --- Create, update, delete ---------------------------------------------------------------------------------------

    def create(self, resource: Resource, namespace: str, body: Any, *, strict: bool = False) -> Object:
        """Store a new object and give it back as it is stored. With `strict` an unknown field is a 400."""
        obj = self.read(resource, body, None, strict=strict)
        obj["metadata"] = metadata = self._new_metadata(resource, namespace, obj["metadata"])
        self.admit(resource, namespace, metadata["name"])
        if self.store.get(resource.key, namespace, metadata["name"]) is not None:
            raise errors.named(409, "AlreadyExists", resource, metadata["name"], "already exists")
        if resource.has_status and resource != resources.NODES:
            obj.pop("status", None)
        self.complete(resource, obj, None)
        self.follow(resource, None, self.store.put(resource.key, obj))
        return obj

    def update(
        self, resource: Resource, old: Object, body: Any, *, strict: bool = False, status: bool = False
    ) -> Object:
        """Store a changed object, of which only the status counts when `status`; a no-op keeps the resourceVersion."""
        obj = self.read(resource, body, old, strict=strict)
        was = old["metadata"]
        given = obj["metadata"]
        if given.get("resourceVersion", was["resourceVersion"]) != was["resourceVersion"]:
            raise errors.conflict(resource, was["name"])
        if status:
            given = was
            obj = {**{k: v for k, v in old.items() if k != "status"}, **{k: obj[k] for k in ("status",) if k in obj}}
        elif resource.has_status:
            obj = {k: v for k, v in obj.items() if k != "status"}
            obj |= {"status": old["status"]} if "status" in old else {}
        kept = {k: was[k] for k in (*_SET_BY_SERVER, "name", "namespace", "resourceVersion") if k in was}
        obj["metadata"] = metadata = _given(given) | kept
        self.complete(resource, obj, old)
        if obj == old:
            return old
        if resource.generation and _spec(obj) != _spec(old):
            metadata["generation"] = was.get("generation", 0) + 1
        kept_by = (metadata.get("finalizers"), metadata.get("deletionGracePeriodSeconds"))
        if "deletionTimestamp" in metadata and not any(kept_by) and resource != resources.NAMESPACES:
            metadata["resourceVersion"] = str(self.store.revision + 1)
            self.remove(resource, old)
            return obj
        self.follow(resource, old, self.store.put(resource.key, obj))
        return obj

    def delete(self, resource: Resource, stored: Object, *, grace: int = 0) -> Object:
        """Delete, or begin to; `grace` is the seconds that it may take to end."""
        metadata = stored["metadata"]
        if not metadata.get("finalizers") and not grace and resource != resources.NAMESPACES:
            self.remove(resource, stored)
            return stored
        if "deletionTimestamp" in metadata and grace >= metadata.get("deletionGracePeriodSeconds", 0):
            return stored
        changed = {**metadata, "deletionTimestamp": self.time(later=grace), "deletionGracePeriodSeconds": grace}
        changed |= {"generation": metadata["generation"] + 1} if "generation" in metadata else {}
        obj = {**stored, "metadata": changed}
        if resource == resources.NAMESPACES:
            obj["status"] = {**stored["status"], "phase": "Terminating"}
        marked = self.store.put(resource.key, obj)
        self.follow(resource, stored, marked)
        if resource == resources.NAMESPACES:
            self._empty(metadata["name"])
        return marked

    def remove(self, resource: Resource, stored: Object) -> None:
        """Forget an object, and do what waited for that."""
        self.store.remove(resource.key, stored)
        self.follow(resource, stored, None)
        if resource.namespaced:
            self._end(namespace_of(stored))

    def read(self, resource: Resource, body: Any, old: Object | None, *, strict: bool) -> Object:
        """The body as an object of its kind, a custom one in the form of its schema."""
        if not isinstance(body, dict):
            raise errors.bad_request(f"the object provided is unrecognized (must be of type {resource.kind})")
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
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        if resource.namespaced:
            metadata["namespace"] = namespace
        uid = self.store.new_uid()
        metadata["name"] = metadata.get("name") or metadata.get("generateName", "") + uid[:5]
        metadata |= {"uid": uid, "creationTimestamp": self.time()}
        return metadata | ({"generation": 1} if resource.generation else {})

    def admit(self, resource: Resource, namespace: str, name: str) -> None:
        """NamespaceLifecycle: a new object needs a namespace that is there."""
        if resource.namespaced:
            self.get(resources.NAMESPACES, "", namespace)

    def complete(self, resource: Resource, obj: Object, old: Mapping[str, Any] | None) -> None:
        """Defaults and checks by kind; `obj` is a private copy down to its metadata."""
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
            case _ if resource.custom:
                if faults := self.validate(obj, old) if self.validate else ():
                    raise errors.invalid(resource.kind, resource.group, obj["metadata"]["name"], faults)

    # --- What follows from a write ------------------------------------------------------------------------------------

    def follow(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        """What other controllers do at once here: slices follow pods and nodes, resources follow definitions."""
        current = new or old
        assert current is not None
        match resource:
            case resources.DEFINITIONS:
                own = [one for one in self.resources.values() if one.definition == current["metadata"]["name"]]
                for kind, stored in ((one, each) for one in own if new is None for each in self.store.list_(one.key)):
                    self.store.remove(kind.key, stored)
                served = [one for one in self.resources.values() if one not in own]
                served += resources.from_definition(new) if new else ()
                self.resources = {(one.path, one.plural): one for one in served}
            case resources.SERVICES:
                self.sync_slices(current, ends=new is None)
            case resources.PODS:
                self._sync_services(stored for stored in (old, new) if stored and slices.has_address(stored))
            case resources.NODES:
                pods = self.store.list_(resources.PODS.key)
                self._sync_services(pod for pod in pods if pod["spec"].get("nodeName") == current["metadata"]["name"])

    def sync_slices(self, service: Object, *, ends: bool = False) -> None:
        """The turn of the controller of slices, for one Service."""
        wanted: dict[str, Object] = {}
        if not ends and "deletionTimestamp" not in service["metadata"]:
            if service["spec"].get("type") == "ExternalName":
                return  # what it had before stays as it was
            pods = self.store.list_(resources.PODS.key, namespace_of(service))
            wanted = {entry["metadata"]["name"]: entry for entry in self.slices_of(service, pods)}
        for entry in wanted.values():
            self.derive(resources.SLICES, namespace_of(service), entry)
        uid = service["metadata"]["uid"]
        for name in sorted(self._derived.pop(uid, frozenset()) - wanted.keys()):
            if stored := self.store.get(resources.SLICES.key, namespace_of(service), name):
                self.remove(resources.SLICES, stored)
        if wanted:
            self._derived[uid] = frozenset(wanted)

    def slices_of(self, service: Object, pods: Sequence[Object]) -> tuple[Object, ...]:
        """The slices that a Service should have."""
        return slices.slices_of(service, pods, self.node)

    def derive(self, resource: Resource, namespace: str, wanted: Object) -> None:
        """What a controller writes: a new object, or a new version of it."""
        current = self.store.get(resource.key, namespace, wanted["metadata"]["name"])
        if current is None:
            self.create(resource, namespace, wanted)
        else:
            self.update(resource, current, wanted)

    def node(self, name: str) -> Mapping[str, Any] | None:
        """A Node, or None."""
        return self.store.get(resources.NODES.key, "", name)

    def _sync_services(self, pods: Iterable[Object]) -> None:
        """The Services that select one of these pods, each once."""
        labels: dict[str, list[Any]] = {}
        for pod in pods:
            labels.setdefault(namespace_of(pod), []).append((pod["metadata"].get("labels") or {}).items())
        for namespace in sorted(labels):
            for service in self.store.list_(resources.SERVICES.key, namespace):
                selector = service["spec"].get("selector")
                if selector and any(selector.items() <= own for own in labels[namespace]):
                    self.sync_slices(service)

    def _empty(self, namespace: str) -> None:
        known = {one.key: one for one in self.resources.values()}
        for key in self.store.keys_in(namespace):
            for stored in self.store.list_(key, namespace):
                if current := self.store.get(key, namespace, stored["metadata"]["name"]):
                    self.delete(known[key], current)
        self._end(namespace)

    def _end(self, namespace: str) -> None:
        """A namespace that is being deleted goes with the last that is in it."""
        stored = self.store.get(resources.NAMESPACES.key, "", namespace)
        if stored and "deletionTimestamp" in stored["metadata"] and not self.store.keys_in(namespace):
            self.remove(resources.NAMESPACES, stored)


def _given(metadata: Mapping[str, Any]) -> Object:
    """What a caller may set. Empty collections are not stored (Go's omitempty)."""
    empty = ("labels", "annotations", "finalizers", "ownerReferences")
    return {k: v for k, v in metadata.items() if k not in _SET_BY_SERVER and (v or k not in empty)}


def _spec(obj: Mapping[str, Any]) -> dict[str, Any]:
    """What metadata.generation counts the changes of."""
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")}


def condition(kind: str, reason: str, time: str) -> Object:
    """A condition that is so."""
    return {"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": time}


def next_address(given: Counter[str]) -> str:
    """A cluster IP that nobody has; runs are equal."""
    given["addresses"] += 1
    return str(_NETWORK[given["addresses"]])


def _complete_service(service: Object, old: Mapping[str, Any] | None, given: Counter[str]) -> None:
    """Defaults, cluster IP and node ports of a Service in a cluster of IPv4. `given` counts what was given."""
    spec: Object = {"type": "ClusterIP", **(service.get("spec") or {})}
    service["spec"] = spec
    service.setdefault("status", {"loadBalancer": {}})
    before: Mapping[str, Any] = (old or {}).get("spec") or {}
    ports = [
        {"protocol": "TCP", **port, "targetPort": port.get("targetPort") or port.get("port")}
        for port in spec.pop("ports", None) or ()
    ]
    if ports:
        spec["ports"] = ports
    if spec["type"] == "ExternalName":
        for field in _OF_ADDRESSES:
            spec.pop(field, None)
        return
    kept = {field: before[field] for field in _OF_ADDRESSES if field in before}
    service["spec"] = spec = {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"], **kept, **spec}
    spec["clusterIP"] = spec.get("clusterIP") or next_address(given)
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
        kept = {port.get("port"): port.get("nodePort") for port in before.get("ports") or ()}
        for port in ports:
            if "nodePort" not in port:
                given["ports"] += 1
                port["nodePort"] = kept.get(port["port"]) or 29999 + given["ports"]
