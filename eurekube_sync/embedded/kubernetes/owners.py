"""Who owns whom: the graph of the garbage collector (k8s.io/kubernetes,
pkg/controller/garbagecollector).

An object goes when none of its owners is there. An owner is in the object's namespace, or in none;
a reference to another UID, as of an owner that was made again, is no owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from eurekube_sync.embedded.kubernetes.resources import Resource
from eurekube_sync.embedded.kubernetes.store import Object, Store, namespace_of


class Dependent(NamedTuple):
    resource: Resource
    namespace: str
    name: str


class Owners:
    """The dependents of each owner, by the owner's UID."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._dependents: dict[str, dict[tuple[str, str, str, str], Dependent]] = {}
        self._gone: set[str] = set()  # UIDs of owners that had dependents, and were removed

    def note(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        """Take note of the references of an object that was created, changed or removed."""
        for stored, is_there in ((old, False), (new, True)):
            if stored is None or not stored["metadata"].get("ownerReferences"):
                continue
            dependent = Dependent(resource, namespace_of(stored), stored["metadata"]["name"])
            key = (*resource.key, dependent.namespace, dependent.name)
            for reference in stored["metadata"]["ownerReferences"]:
                dependents = self._dependents.setdefault(reference["uid"], {})
                if is_there:
                    dependents[key] = dependent
                else:
                    dependents.pop(key, None)

    def of(self, uid: str) -> list[Dependent]:
        """Return the dependents of an owner that is gone, and forget them."""
        dependents = list(self._dependents.pop(uid, {}).values())
        if dependents:
            self._gone.add(uid)  # nobody may serve its kind by now
        return dependents

    def is_orphan(self, stored: Object, served: Iterable[Resource]) -> bool:
        """Say whether an object has references to owners of which none is there. One of a kind that
        nobody serves may be there."""
        references = stored["metadata"].get("ownerReferences")
        if not references:
            return False
        kinds = {(resource.api_version, resource.kind): resource for resource in served}
        return not any(
            self._is_there(reference, namespace_of(stored), kinds) for reference in references
        )

    def _is_there(
        self,
        reference: Object,
        namespace: str,
        kinds: Mapping[tuple[str, str], Resource],
    ) -> bool:
        if reference["uid"] in self._gone:
            return False
        resource = kinds.get((reference["apiVersion"], reference["kind"]))
        if resource is None:
            return True
        scope = namespace if resource.namespaced else ""
        owner = self._store.get(resource.key, scope, reference["name"])
        return owner is not None and owner["metadata"]["uid"] == reference["uid"]
