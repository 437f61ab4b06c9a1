"""The embedded Kubernetes API with pages, rights, dual stack, checks of addresses, and mirrored
Endpoints."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import ip_network
from typing import Any

import msgspec

from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.embedded.kubernetes import errors, resources, slices
from eurekube_sync.embedded.kubernetes.objects import Objects, Validate, condition, next_address
from eurekube_sync.embedded.kubernetes.resources import Resource
from eurekube_sync.embedded.kubernetes.server import REVIEWS, EmbeddedKubernetes, review, target_of
from eurekube_sync.embedded.kubernetes.store import Object, Store, namespace_of
from eurekube_sync.manifests.validation import stored
from eurekube_sync.model.struct import replace
from tests.embedded import addresses, endpoints
from tests.embedded.access import Access, Denial
from tests.embedded.pages import Pages
from tests.embedded.strict import (
    check_cluster_ip,
    check_fields,
    check_finalizers,
    check_identity,
    check_kind,
    check_labels,
    check_metadata,
    check_named,
    check_slice,
    check_spec,
    check_uid,
)

_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OPEN_PATHS = ("/readyz", "/livez", "/healthz")
"""What nobody needs a login for, as for the version."""
_RETURNED_WHEN_GONE = frozenset({"Pod", "Service", "ServiceAccount"})
_CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_GZIP_ABOVE = 128 * 1024
_IPV6 = ip_network("fd00:10:96::/112")


class FullObjects(Objects):
    """Refuses addresses as the real server does, and mirrors Endpoints."""

    families: tuple[str, ...] = ("IPv4",)
    grace: int | None = None
    """Seconds that a DELETE asks for."""
    gone: Resource | None = None
    """What the object was of that the last DELETE took; None for one that stays for a while."""
    patching = False
    """Whether the body of an update is the outcome of a patch."""
    _of_ipv6 = 0

    def __init__(self, now: Callable[[], float], validate: Validate | None, store: Store) -> None:
        super().__init__(now, validate, stored, store)
        self.serve([endpoints.ENDPOINTS])

    def read(self, resource: Resource, body: Any, old: Object | None, *, strict: bool) -> Object:
        """Refuses another kind, another name and an update of no version."""
        check_kind(resource, body)
        obj = super().read(resource, check_metadata(resource, body), old, strict=strict)
        if old:
            check_uid(resource, old["metadata"], obj["metadata"], patch=self.patching)
            check_identity(resource, old["metadata"], obj["metadata"])
        else:
            check_named(resource, obj["metadata"])
        return obj

    def admit(self, resource: Resource, namespace: str, name: str) -> None:
        """Refuses what comes into a namespace that ends, and a custom resource whose definition
        does."""
        super().admit(resource, namespace, name)
        if resource.namespaced and self._is_ending(resources.NAMESPACES, namespace):
            text = f"namespace {namespace} is being terminated"
            cause = {
                "reason": "NamespaceTerminating",
                "message": text,
                "field": "metadata.namespace",
            }
            why = (
                f"unable to create new content in namespace {namespace} because it is being "
                "terminated"
            )
            raise errors.forbidden(resource, name, why, (cause,))
        if resource.custom and self._is_ending(resources.DEFINITIONS, resource.definition):
            raise errors.forbidden(
                resource, name, "create not allowed while custom resource definition is terminating"
            )

    def _is_ending(self, resource: Resource, name: str) -> bool:
        return "deletionTimestamp" in self.get(resource, "", name)["metadata"]

    def delete(self, resource: Resource, stored: Object, *, grace: int = 0) -> Object:
        """A Pod takes its time, and a definition goes with the last of its objects."""
        grace = _grace_seconds(stored, self.grace) if resource == resources.PODS else 0
        metadata = stored["metadata"]
        if (
            resource == resources.DEFINITIONS
            and metadata.get("finalizers")
            and "deletionTimestamp" not in metadata
        ):
            deleted = self._begin_to_end(resource, stored)
        else:
            deleted = super().delete(resource, stored, grace=grace)
        is_gone = self.store.get(resource.key, namespace_of(stored), metadata["name"]) is None
        self.gone = resource if is_gone else None
        return deleted

    def _begin_to_end(self, resource: Resource, stored: Object) -> Object:
        metadata = stored["metadata"]
        ending = condition("Terminating", "InstanceDeletionInProgress", self.time())
        conditions = [*stored["status"]["conditions"], ending]
        changed = {**metadata, "deletionTimestamp": self.time()}
        obj = {
            **stored,
            "metadata": changed,
            "status": {**stored["status"], "conditions": conditions},
        }
        marked = self.store.put(resource.key, obj)
        for one, held in self._held_by(metadata["name"]):
            self.delete(one, held)
        self._end_definition(metadata["name"])
        return marked

    def remove(self, resource: Resource, stored: Object) -> None:
        super().remove(resource, stored)
        if resource.custom:
            self._end_definition(resource.definition)

    def _held_by(self, definition: str) -> list[tuple[Resource, Object]]:
        served = [one for one in self.resources.values() if one.definition == definition]
        return [(one, stored) for one in served for stored in self.store.list_(one.key)]

    def _end_definition(self, name: str) -> None:
        stored = self.store.get(resources.DEFINITIONS.key, "", name)
        if stored is None or "deletionTimestamp" not in stored["metadata"] or self._held_by(name):
            return
        if not set(stored["metadata"].get("finalizers") or ()) - {_CLEANUP}:
            self.remove(resources.DEFINITIONS, stored)

    def complete(self, resource: Resource, obj: Object, old: Mapping[str, Any] | None) -> None:
        """Gives addresses of each family, and refuses addresses that no endpoint may have."""
        if old:
            check_finalizers(resource, old["metadata"], obj["metadata"])
        if resource == resources.SERVICES and not (old or {"spec": {}})["spec"].get("clusterIPs"):
            self._give_addresses(obj)
        if resource == resources.DEFINITIONS and not old:
            obj["metadata"].setdefault("finalizers", [_CLEANUP])
        check_labels(resource, obj["metadata"])
        check_spec(resource.kind, obj)
        super().complete(resource, obj, old)
        match resource:
            case resources.SERVICES:
                addresses.check_external(obj)
                check_cluster_ip(obj, old)
            case resources.SLICES:
                _complete_slice(obj)
                check_slice(obj)
                addresses.check_slice(obj, old)
            case endpoints.ENDPOINTS:
                addresses.check_endpoints(obj)

    def _give_addresses(self, service: Object) -> None:
        spec = service["spec"] = {**(service.get("spec") or {})}
        if spec.get("type") == "ExternalName":
            return
        asked = spec.get("ipFamilies") or ()
        families = [*asked, *(family for family in self.families if family not in asked)]
        single = spec.setdefault("ipFamilyPolicy", "SingleStack") == "SingleStack"
        spec["ipFamilies"] = families[:1] if single else families
        given = [spec["clusterIP"]] if spec.get("clusterIP") else []
        if given != ["None"]:
            given += [self._take(family) for family in spec["ipFamilies"][len(given) :]]
        spec["clusterIP"], spec["clusterIPs"] = given[0], given

    def _take(self, family: str) -> str:
        if family == "IPv4":
            return next_address(self.given)
        self._of_ipv6 += 1
        return str(_IPV6[self._of_ipv6])

    def slices_of(self, service: Object, pods: Sequence[Object]) -> tuple[Object, ...]:
        """Also those that mirror Endpoints."""
        written = self.store.get(
            endpoints.ENDPOINTS.key, namespace_of(service), service["metadata"]["name"]
        )
        found = slices.slices_of(service, pods, self.node)
        return found + (endpoints.mirror_of(service, written) if written else ())

    def follow(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        """Mirrored slices follow Endpoints, and Endpoints go with their Service."""
        super().follow(resource, old, new)
        current = new or old
        assert current is not None
        if resource == resources.SERVICES and new is None:
            written = self.store.get(
                endpoints.ENDPOINTS.key, namespace_of(current), current["metadata"]["name"]
            )
            if written:
                self.remove(endpoints.ENDPOINTS, written)
        if resource == endpoints.ENDPOINTS:
            service = self.store.get(
                resources.SERVICES.key, namespace_of(current), current["metadata"]["name"]
            )
            if service and not service["spec"].get("selector"):
                self.sync_slices(service)


class FullKubernetes(EmbeddedKubernetes):
    """What tests ask of the API server beyond the demo."""

    objects: FullObjects

    def __init__(
        self,
        now: Callable[[], float],
        *,
        definitions: Iterable[Mapping[str, Any]] = (),
        validate: Validate | None = None,
        tokens: Mapping[str, str] | None = None,
        families: tuple[str, ...] = ("IPv4",),
        seed: int = 0,
        revision: int = 1,
        watch_seconds: float = 1.0,
    ) -> None:
        """`tokens` are bearer tokens with the name of their user. Two servers of one `seed` make
        the same uids. `revision` is where resourceVersions begin: those of two real clusters do not
        meet."""
        self.access = Access(tokens=dict(tokens or {}))
        self.pages = Pages()
        objects = FullObjects(now, validate, Store(seed=seed, revision=revision))
        objects.families = families
        super().__init__(now, definitions=definitions, objects=objects, watch_seconds=watch_seconds)

    @property
    def revision(self) -> int:
        """The latest resourceVersion: it stays the same when nothing was written."""
        return self.objects.store.revision

    def handle(self, request: Request) -> Response:
        """Large answers are compressed."""
        response = super().handle(request)
        if len(response.body) > _GZIP_ABOVE and "gzip" in request.headers.get(
            "accept-encoding", ""
        ):
            headers = {**response.headers, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
            return replace(response, body=gzip.compress(response.body, 1), headers=headers)
        return response

    def answer(self, request: Request) -> Response:
        """Refuses whom it does not know, and what is denied."""
        if request.path in _OPEN_PATHS:
            return Response(status=200, body=b"ok", content_type="text/plain; charset=utf-8")
        if request.path == "/version":
            return super().answer(request)
        self.objects.patching = request.method == "PATCH"
        user = self.access.user(request.headers)
        match [part for part in request.path.split("/") if part]:
            case ["apis", "authorization.k8s.io", _, *rest] if rest == REVIEWS:
                return self._review(user, request)
            case ["apis", group, _, *rest] if rest:
                self._check(user, request, group, rest)
            case ["api", _, *rest] if rest:
                self._check(user, request, "", rest)
        if request.method != "DELETE":
            return super().answer(request)
        options = msgspec.json.decode(request.body) if request.body else {}
        grace = options.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
        self.objects.grace, self.objects.gone = None if grace is None else int(grace), None
        return self._deleted(super().answer(request))

    def _deleted(self, response: Response) -> Response:
        """Of most objects that are gone the answer is no object, but a Status."""
        gone = self.objects.gone
        if gone is None or gone.kind in _RETURNED_WHEN_GONE:
            return response
        metadata = msgspec.json.decode(response.body)["metadata"]
        found = {
            **errors.details(gone.plural, gone.group, metadata["name"]),
            "uid": metadata["uid"],
        }
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": found,
        }
        return replace(response, body=msgspec.json.encode(status) + b"\n")

    def page(
        self, resource: Resource, namespace: str, query: Mapping[str, str]
    ) -> tuple[Sequence[Object], Mapping[str, Any]]:
        """At most `limit` objects."""
        return self.pages.page(self.objects.store, resource, namespace, query)

    def login(self) -> Mapping[str, str]:
        """The first of the tokens."""
        return {"authorization": f"Bearer {next(iter(self.access.tokens), '')}"}

    def _check(self, user: str, request: Request, group: str, parts: Sequence[str]) -> None:
        target = target_of(group, parts)
        check_fields(target.plural, request.query.get("fieldSelector", ""))
        verb = _VERBS.get(request.method, "")
        if not target.name:
            watched = request.query.get("watch", "") in ("true", "1")
            verb = {"get": "watch" if watched else "list"}.get(verb, verb)
        resource = f"{target.plural}/{target.subresource}" if target.subresource else target.plural
        scope = (
            target.name if (group, target.plural) == resources.NAMESPACES.key else target.namespace
        )
        self.access.check(user, verb, group, resource, scope, target.name)

    def _review(self, user: str, request: Request) -> Response:
        body = msgspec.json.decode(request.body)
        asked = body["spec"].get("resourceAttributes") or {}
        named = "/".join(filter(None, (asked.get("resource", ""), asked.get("subresource"))))
        return review(
            body,
            allowed=self.access.allows(
                user, asked.get("verb", ""), named, asked.get("namespace", "")
            ),
        )

    def deny(self, resource: str = "", verb: str = "", namespace: str | None = None) -> None:
        """Take away a permission, e.g. `deny("services", "list")`; undone by
        `access.denials.clear()`."""
        self.access.denials.add(Denial(resource=resource, verb=verb, namespace=namespace))

    @contextmanager
    def older_definition(self) -> Iterator[None]:
        """While it is open, no custom resource is judged, as under an older definition with fewer
        rules."""
        validate, self.objects.validate = self.objects.validate, None
        try:
            yield
        finally:
            self.objects.validate = validate

    def expire_continue_tokens(self) -> None:
        """Make every open `continue` token answer 410, as compaction does after five minutes."""
        self.pages.snapshots.clear()


def _complete_slice(endpoint_slice: Object) -> None:
    """An EndpointSlice without endpoints or ports has null there, not an empty list [real 1.36]."""
    endpoints = [
        {**each, "conditions": each.get("conditions") or {}}
        for each in endpoint_slice.get("endpoints") or ()
    ]
    ports = [{"name": "", "protocol": "TCP", **port} for port in endpoint_slice.get("ports") or ()]
    endpoint_slice["endpoints"], endpoint_slice["ports"] = endpoints or None, ports or None


def _grace_seconds(pod: Mapping[str, Any], asked: int | None) -> int:
    """Seconds a Pod may take to end; without a node, or when it ended, nobody would end it [pod
    strategy]."""
    if not pod["spec"].get("nodeName") or pod["status"].get("phase") in ("Succeeded", "Failed"):
        return 0
    return asked if asked is not None else int(pod["spec"]["terminationGracePeriodSeconds"])
