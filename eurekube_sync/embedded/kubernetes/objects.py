"""The rules of writing: what create, update and delete do to an object, and what follows from it.

Owns generation, finalizers, deletion in two steps, optimistic locking, the end of namespaces and definitions, and the
slice controller's turn after each write. Knows no HTTP; refusals are `ApiError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from eurekube_sync.embedded.kubernetes import checks, defaults, errors, resources, schema, slices
from eurekube_sync.embedded.kubernetes.checks import DeleteOptions, WriteOptions
from eurekube_sync.embedded.kubernetes.resources import Resource
from eurekube_sync.embedded.kubernetes.store import Store, Stored

Object = dict[str, Any]
Validate = Callable[[Mapping[str, Any], Mapping[str, Any] | None], Sequence[tuple[str, str, str]]]
"""(new object, old object or None) -> field, reason and text of each fault."""

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_SET_BY_SERVER = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)


class Objects:
    """The objects of the embedded API, changed by the rules of the real one. Not locked: the server is."""

    def __init__(
        self,
        *,
        now: Callable[[], float],
        seed: int,
        families: tuple[str, ...],
        validate: Validate | None,
        revision: int = 1,
    ) -> None:
        self.store = Store(seed=seed, revision=revision)
        self._now = now
        self._addresses = defaults.Addresses(families)
        self._derived: dict[str, frozenset[str]] = {}
        self.validate = validate
        self._resources: dict[tuple[str, str, str], Resource] = {
            (resource.group, resource.version, resource.plural): resource for resource in resources.BUILT_IN
        }

    def time(self, *, later: float = 0) -> str:
        """The clock in the form of metadata."""
        return datetime.fromtimestamp(self._now() + later, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def resources(self) -> tuple[Resource, ...]:
        """Everything that is served now."""
        return tuple(self._resources.values())

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource of a path."""
        return self._resources.get((group, version, plural))

    def get(self, resource: Resource, namespace: str, name: str) -> Stored:
        """The current version, or a 404."""
        stored = self.store.get(resource.key, namespace, name)
        if stored is None:
            raise errors.not_found(resource.plural, resource.group, name)
        return stored

    def create(self, resource: Resource, namespace: str, body: Any, options: WriteOptions) -> Object:
        """Store a new object and give it back as it is stored."""
        obj = self._read(resource, body, options)
        metadata = self._new_metadata(resource, namespace, obj)
        obj["metadata"] = metadata
        name = metadata["name"]
        self._admit(resource, namespace, name)
        if self.store.get(resource.key, namespace, name) is not None:
            raise errors.already_exists(resource.plural, resource.group, name)
        metadata.pop("resourceVersion", None)
        if resource.has_status and resource.kind != "Node":
            obj.pop("status", None)
        obj = self._complete(resource, obj, None)
        if options.dry_run:
            return obj
        stored = self.store.put(resource.key, obj)
        self.follow(resource, None, stored)
        return stored.obj

    def update(
        self, resource: Resource, stored: Stored, body: Any, options: WriteOptions, *, status: bool = False
    ) -> Object:
        """Store a changed object, of which only the status counts when `status`; a no-op keeps the resourceVersion."""
        obj = self._read(resource, body, options)
        old = stored.obj
        metadata = {**(obj.get("metadata") or {})}
        checks.check_identity(resource, stored, metadata, options)
        if status:
            metadata = dict(old["metadata"])
            obj = {**{k: v for k, v in old.items() if k != "status"}, **{k: obj[k] for k in ("status",) if k in obj}}
        elif resource.has_status:
            obj = {k: v for k, v in obj.items() if k != "status"}
            obj |= {"status": old["status"]} if "status" in old else {}
        for name in (*_SET_BY_SERVER, "name", "namespace", "resourceVersion"):
            metadata.pop(name, None)
            if name in old["metadata"]:
                metadata[name] = old["metadata"][name]
        metadata.pop("managedFields", None)
        _drop_empty(metadata)
        obj["metadata"] = metadata
        checks.check_finalizers(resource, old["metadata"], metadata)
        obj = self._complete(resource, obj, old)
        if obj == old:
            return old
        if resource.generation and _spec(obj) != _spec(old):
            metadata["generation"] = old["metadata"].get("generation", 0) + 1
        if options.dry_run:
            return obj
        if checks.is_over(obj):
            metadata["resourceVersion"] = str(self.store.revision + 1)
            self.remove(resource, stored)
            return obj
        changed = self.store.put(resource.key, obj)
        self.follow(resource, stored, changed)
        return changed.obj

    def delete(self, resource: Resource, stored: Stored, options: DeleteOptions) -> tuple[Object, bool]:
        """Delete, or begin to; the object and whether it is gone."""
        metadata = stored.obj["metadata"]
        grace = checks.grace_seconds(resource, stored.obj, options)
        waits = metadata.get("finalizers") or grace or resource == resources.NAMESPACES
        if options.dry_run:
            return stored.obj, not waits
        if not waits:
            self.remove(resource, stored)
            return stored.obj, True
        if "deletionTimestamp" in metadata and grace >= metadata.get("deletionGracePeriodSeconds", 0):
            return stored.obj, False
        changed = {**metadata, "deletionTimestamp": self.time(later=grace)}
        status = stored.obj.get("status") or {}
        obj = {**stored.obj, "metadata": changed}
        if resource == resources.DEFINITIONS:
            obj["status"] = {**status, "conditions": [*status["conditions"], defaults.terminating(self.time())]}
        else:
            changed["deletionGracePeriodSeconds"] = grace
            changed |= {"generation": metadata["generation"] + 1} if "generation" in metadata else {}
        if resource == resources.NAMESPACES:
            obj["status"] = {**status, "phase": "Terminating"}
        marked = self.store.put(resource.key, obj)
        self.follow(resource, stored, marked)
        if resource == resources.NAMESPACES:
            self._empty_namespace(stored.name)
        if resource == resources.DEFINITIONS:
            self._empty_definition(stored.name)
        return marked.obj, self.store.get(resource.key, stored.namespace, stored.name) is None

    def sync_slices(self, service: Stored) -> None:
        """The turn of the controller of slices, for one Service."""
        wanted: dict[str, Object] = {}
        living = "deletionTimestamp" not in service.obj["metadata"]
        if living and service.obj["spec"].get("type") == "ExternalName":
            return  # what it had before stays as it was
        if living:
            pods = [pod.obj for pod in self.store.within(resources.PODS.key, service.namespace)]
            wanted = {entry["metadata"]["name"]: entry for entry in self.slices_of(service, pods)}
        for entry in wanted.values():
            self.derive(resources.SLICES, service.namespace, entry)
        self._remove_slices(service, keep=frozenset(wanted))

    def slices_of(self, service: Stored, pods: Sequence[Object]) -> tuple[Object, ...]:
        """The slices that a Service should have."""
        return slices.slices_of(service.obj, pods, self.node)

    def derive(self, resource: Resource, namespace: str, wanted: Object) -> None:
        """What a controller writes: a new object, or a new version of it."""
        current = self.store.get(resource.key, namespace, wanted["metadata"]["name"])
        if current is None:
            self.create(resource, namespace, wanted, WriteOptions())
        else:
            self.update(resource, current, wanted, WriteOptions())

    def node(self, name: str) -> Mapping[str, Any] | None:
        """A Node, or None."""
        stored = self.store.get(resources.NODES.key, "", name)
        return stored.obj if stored else None

    def _remove_slices(self, service: Stored, keep: frozenset[str] = frozenset()) -> None:
        uid = service.obj["metadata"]["uid"]
        for name in sorted(self._derived.pop(uid, frozenset()) - keep):
            stored = self.store.get(resources.SLICES.key, service.namespace, name)
            if stored is not None:
                self.remove(resources.SLICES, stored)
        if keep:
            self._derived[uid] = keep

    def _new_metadata(self, resource: Resource, namespace: str, obj: Object) -> Object:
        metadata: Object = {**(obj.get("metadata") or {})}
        if resource.namespaced:
            if metadata.get("namespace", namespace) != namespace:
                raise errors.bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request"
                )
            metadata["namespace"] = namespace
        else:
            metadata.pop("namespace", None)
        for name in (*_SET_BY_SERVER, "managedFields"):
            metadata.pop(name, None)
        _drop_empty(metadata)
        uid = self.store.new_uid()
        if not metadata.get("name") and metadata.get("generateName"):
            checks.check_name(resource, metadata["generateName"].removesuffix("-"))
            metadata["name"] = metadata["generateName"] + uid[:5]
        checks.check_name(resource, metadata.get("name") or "")
        metadata |= {"uid": uid, "creationTimestamp": self.time()}
        if resource.generation:
            metadata["generation"] = 1
        return metadata

    def _admit(self, resource: Resource, namespace: str, name: str) -> None:
        """NamespaceLifecycle, and the custom resource endpoint's own refusal."""
        if resource.namespaced:
            stored = self.get(resources.NAMESPACES, "", namespace)
            if "deletionTimestamp" in stored.obj["metadata"]:
                raise errors.namespace_terminating(resource.plural, resource.group, name, namespace)
        if resource.custom:
            definition = self.store.get(resources.DEFINITIONS.key, "", resource.definition)
            if definition and "deletionTimestamp" in definition.obj["metadata"]:
                why = "create not allowed while custom resource definition is terminating"
                raise errors.forbidden(resource.plural, resource.group, name, why)

    def _read(self, resource: Resource, body: Any, options: WriteOptions) -> Object:
        """The body as an object of its kind, a custom one without what its schema does not name."""
        obj = checks.typed(resource, body)
        if not resource.custom:
            return obj
        pruned, unknown = schema.prune(obj, resource.schema)
        if unknown and options.strict:
            texts = ", ".join(f'unknown field "{field}"' for field in unknown)
            raise errors.unreadable(resource.kind, resource.version, f"strict decoding error: {texts}")
        return pruned

    def _complete(self, resource: Resource, obj: Object, old: Mapping[str, Any] | None) -> Object:
        """Defaults and checks by kind; `obj` is a private copy down to its metadata."""
        match resource:
            case resources.SERVICES:
                defaults.complete_service(obj, old, self._addresses)
            case resources.PODS:
                defaults.complete_pod(obj)
            case resources.NAMESPACES:
                defaults.complete_namespace(obj)
            case resources.SLICES:
                defaults.complete_slice(obj)
            case resources.DEFINITIONS:
                defaults.complete_definition(obj, self.time(), new=old is None)
            case _ if resource.custom:
                return self._complete_custom(resource, obj, old)
        self.check(resource, obj, old)
        return obj

    def check(self, resource: Resource, obj: Object, old: Mapping[str, Any] | None) -> None:
        """Raise `ApiError` for a built-in object that is refused."""

    def _complete_custom(self, resource: Resource, obj: Object, old: Mapping[str, Any] | None) -> Object:
        full: Object = schema.with_defaults(obj, resource.schema)
        full["metadata"] = obj["metadata"]
        causes = self.validate(full, old) if self.validate else ()
        if causes:
            raise errors.invalid(resource.kind, resource.group, obj["metadata"]["name"], causes)
        return full

    def remove(self, resource: Resource, stored: Stored) -> None:
        """Forget an object, and do what waited for that."""
        self.store.remove(resource.key, stored)
        self.follow(resource, stored, None)
        if resource.namespaced:
            self._end_namespace(stored.namespace)
        if resource.custom:
            self._end_definition(resource.definition)

    def follow(self, resource: Resource, old: Stored | None, new: Stored | None) -> None:
        """What other controllers do at once here: slices follow pods and nodes, resources follow definitions."""
        current = new or old
        assert current is not None
        if resource == resources.DEFINITIONS:
            for key in [key for key, found in self._resources.items() if found.definition == current.name]:
                del self._resources[key]
            for found in resources.from_definition(new.obj) if new else ():
                self._resources[found.group, found.version, found.plural] = found
        if resource == resources.SERVICES:
            if new:
                self.sync_slices(new)
            else:
                self._remove_slices(current)
        elif resource == resources.PODS:
            seen = [stored for stored in (old, new) if stored and slices.has_address(stored.obj)]
            self._sync_namespace(current.namespace, seen)
        elif resource == resources.NODES:
            pods = self.store.all(resources.PODS.key)
            on_node = [pod for pod in pods if pod.obj["spec"].get("nodeName") == current.name]
            for namespace in sorted({pod.namespace for pod in on_node}):
                self._sync_namespace(namespace, [pod for pod in on_node if pod.namespace == namespace])

    def _sync_namespace(self, namespace: str, pods: Sequence[Stored]) -> None:
        labelled = [(pod.obj["metadata"].get("labels") or {}).items() for pod in pods]
        if not labelled:
            return
        for service in self.store.within(resources.SERVICES.key, namespace):
            selector = service.obj["spec"].get("selector")
            if selector and any(selector.items() <= labels for labels in labelled):
                self.sync_slices(service)

    def _empty_namespace(self, namespace: str) -> None:
        for key in self.store.keys_in(namespace):
            resource = next(found for found in self.resources() if found.key == key)
            for stored in self.store.within(key, namespace):
                if self.store.get(key, namespace, stored.name) is stored:
                    self.delete(resource, stored, DeleteOptions())
        self._end_namespace(namespace)

    def _end_namespace(self, namespace: str) -> None:
        stored = self.store.get(resources.NAMESPACES.key, "", namespace)
        if stored and "deletionTimestamp" in stored.obj["metadata"] and not self.store.keys_in(namespace):
            self.store.remove(resources.NAMESPACES.key, stored)

    def _empty_definition(self, name: str) -> None:
        for resource in [found for found in self.resources() if found.definition == name]:
            for stored in self.store.all(resource.key):
                self.delete(resource, stored, DeleteOptions())
        self._end_definition(name)

    def _end_definition(self, name: str) -> None:
        stored = self.store.get(resources.DEFINITIONS.key, "", name)
        if stored is None or "deletionTimestamp" not in stored.obj["metadata"]:
            return
        if any(self.store.all(found.key) for found in self.resources() if found.definition == name):
            return
        others = [entry for entry in stored.obj["metadata"].get("finalizers") or () if entry != CLEANUP]
        if not others:
            self.remove(resources.DEFINITIONS, stored)


def _drop_empty(metadata: Object) -> None:
    """Empty collections are not stored (Go's omitempty)."""
    for name in ("labels", "annotations", "finalizers", "ownerReferences"):
        if name in metadata and not metadata[name]:
            del metadata[name]


def _spec(obj: Mapping[str, Any]) -> dict[str, Any]:
    """What metadata.generation counts the changes of."""
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")}
