"""The embedded Kubernetes API with rights, checks of addresses, and the controllers of Endpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from eurekube_sync.embedded.http import Request
from eurekube_sync.embedded.kubernetes import EmbeddedKubernetes, resources, slices
from eurekube_sync.embedded.kubernetes.objects import Object, Objects
from eurekube_sync.embedded.kubernetes.resources import Resource
from eurekube_sync.embedded.kubernetes.store import Stored
from tests.embedded import addresses, endpoints
from tests.embedded.access import Access, Denial


class FullObjects(Objects):
    """Refuses addresses as the real server does, writes Endpoints beside slices, and mirrors Endpoints."""

    derive_endpoints = False
    """Whether Services get Endpoints beside their slices."""

    def check(self, resource: Resource, obj: Object, old: Mapping[str, Any] | None) -> None:
        """Refuse addresses that no endpoint may have."""
        match resource:
            case resources.SERVICES:
                addresses.check_external(obj)
            case resources.SLICES:
                addresses.check_slice(obj, old)
            case resources.ENDPOINTS:
                addresses.check_endpoints(obj)

    def slices_of(self, service: Stored, pods: Sequence[Object]) -> tuple[Object, ...]:
        """Also those that mirror Endpoints; derives the Endpoints first."""
        if self.derive_endpoints and (derived := endpoints.endpoints_of(service.obj, pods)):
            self.derive(resources.ENDPOINTS, service.namespace, derived)
        written = self.store.get(resources.ENDPOINTS.key, service.namespace, service.name)
        found = slices.slices_of(service.obj, pods, self.node)
        return found + (endpoints.mirror_of(service.obj, written.obj) if written else ())

    def follow(self, resource: Resource, old: Stored | None, new: Stored | None) -> None:
        """Mirrored slices follow Endpoints, and Endpoints go with their Service."""
        super().follow(resource, old, new)
        current = new or old
        assert current is not None
        if resource == resources.SERVICES and new is None:
            written = self.store.get(resources.ENDPOINTS.key, current.namespace, current.name)
            if written:
                self.remove(resources.ENDPOINTS, written)
        if resource == resources.ENDPOINTS:
            service = self.store.get(resources.SERVICES.key, current.namespace, current.name)
            if service and not service.obj["spec"].get("selector"):
                self.sync_slices(service)


class FullKubernetes(EmbeddedKubernetes):
    """What tests ask of the API server beyond the demo."""

    objects_class = FullObjects

    def __init__(
        self,
        now: Callable[[], float],
        *,
        tokens: Mapping[str, str] | None = None,
        derive_endpoints: bool = False,
        **options: Any,
    ) -> None:
        """`tokens` are bearer tokens with the name of their user. `derive_endpoints` writes Endpoints beside slices, as
        old clusters know them."""
        self.access = Access(tokens=dict(tokens or {}))
        super().__init__(now, **options)
        assert isinstance(self._objects, FullObjects)
        self._objects.derive_endpoints = derive_endpoints

    def authenticate(self, request: Request) -> str:
        """The user of the token."""
        return self.access.user(request.headers)

    def authorize(self, user: str, verb: str, group: str, resource: str, namespace: str, name: str) -> None:
        """Refuse what is denied."""
        self.access.check(user, verb, group, resource, namespace, name)

    def call(self, method: str, path: str, body: Any = None, **query: str) -> tuple[int, Any]:
        """The same with the first of the tokens."""
        token = next(iter(self.access.tokens), "")
        return self.call_with({"authorization": f"Bearer {token}"}, method, path, body, **query)

    def deny(self, resource: str = "", verb: str = "", namespace: str | None = None) -> None:
        """Take away a permission, e.g. `deny("services", "list")`; undone by `access.denials.clear()`."""
        self.access.denials.add(Denial(resource=resource, verb=verb, namespace=namespace))

    @contextmanager
    def older_definition(self) -> Iterator[None]:
        """While it is open, no custom resource is judged, as under an older definition with fewer rules."""
        validate, self._objects.validate = self._objects.validate, None
        try:
            yield
        finally:
            self._objects.validate = validate

    def expire_continue_tokens(self) -> None:
        """Make every open `continue` token answer 410, as compaction does after five minutes."""
        self._objects.store.snapshots.clear()
