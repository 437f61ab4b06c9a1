"""A small Kubernetes API in memory, without sockets and without a clock of its own.

This file has paths, verbs, media types and answers; `objects` has the rules of writes. Every call
is allowed, and a LIST is always one page, as `limit` of ListOptions permits. `tests/embedded` adds
rights and pages.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from email.utils import formatdate
from typing import Any, NamedTuple

import msgspec

from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.embedded.kubernetes import bodies, errors, resources
from eurekube_sync.embedded.kubernetes.objects import Conform, Objects, Validate
from eurekube_sync.embedded.kubernetes.resources import Resource
from eurekube_sync.embedded.kubernetes.store import Object, namespace_of, selected

VERSION = "v1.36.3"
REVIEWS = ["selfsubjectaccessreviews"]


class Target(NamedTuple):
    """The parts of a path after group and version; empty if absent."""

    namespace: str
    plural: str
    name: str
    subresource: str


class EmbeddedKubernetes:
    """The API server. Several threads may call `handle`; it answers one call at a time."""

    def __init__(
        self,
        now: Callable[[], float],
        *,
        definitions: Iterable[Mapping[str, Any]] = (),
        validate: Validate | None = None,
        conform: Conform = lambda obj, _: (obj, ()),
        objects: Objects | None = None,
        watch_seconds: float = 1.0,
    ) -> None:
        """Create the system namespaces and the `definitions`. `validate` checks custom resources,
        and `conform` gives them the form of their schema. `now` returns Unix seconds."""
        self.objects = objects or Objects(now, validate, conform)
        self._now = now
        self._watch_seconds = watch_seconds
        self._changed = threading.Condition(threading.RLock())
        for name in ("default", "kube-node-lease", "kube-public", "kube-system"):
            self.objects.create(resources.NAMESPACES, "", {"metadata": {"name": name}})
        for definition in definitions:
            self.objects.create(resources.DEFINITIONS, "", definition)

    def call(self, method: str, path: str, body: Any = None, **query: str) -> tuple[int, Any]:
        """Make a call with a JSON body, and return the status and the decoded answer."""
        merged = bodies.JSON if isinstance(body, list) else bodies.MERGE
        headers = {
            "content-type": merged if method == "PATCH" else "application/json",
            **self.login(),
        }
        sent = b"" if body is None else msgspec.json.encode(body)
        response = self.handle(
            Request(method=method, path=path, query=query, headers=headers, body=sent)
        )
        is_json = response.content_type.startswith("application/json")
        return response.status, msgspec.json.decode(
            response.body
        ) if is_json else response.body.decode()

    def login(self) -> Mapping[str, str]:
        """Return additional headers for `call`."""
        return {}

    def handle(self, request: Request) -> Response:
        """Answer one request, with the time of this server."""
        response = self._handled(request)
        date = formatdate(self._now(), usegmt=True)
        return replace(response, headers={"Date": date, **response.headers})

    def _handled(self, request: Request) -> Response:
        with self._changed:
            before = self.objects.store.revision
            try:
                response = self.answer(request)
            except errors.PageNotFound:
                return Response(
                    status=404,
                    body=b"404 page not found\n",
                    content_type="text/plain; charset=utf-8",
                )
            except errors.ApiError as error:
                return _json(error.code, error.body)
            except (
                AttributeError,
                LookupError,
                TypeError,
                ValueError,
            ) as error:  # a field of another type
                refused = errors.bad_request(
                    f"the object provided is unrecognized ({type(error).__name__})"
                )
                return _json(refused.code, refused.body)
            if self.objects.store.revision != before:
                self._changed.notify_all()
            return response

    def answer(self, request: Request) -> Response:
        """Answer one request. Raises `ApiError` and `PageNotFound`."""
        if request.path == "/version":
            return _json(
                200, {"major": "1", "minor": "36", "gitVersion": VERSION, "platform": "linux/amd64"}
            )
        match parts := [part for part in request.path.split("/") if part]:
            case ["api", version, *rest] if rest:
                return self._on_resource(request, "", version, rest)
            case ["apis", group, version, *rest] if rest:
                return self._on_resource(request, group, version, rest)
        document = (
            resources.document(self.objects.resources.values(), parts)
            if request.method == "GET"
            else None
        )
        if document is None:
            raise errors.PageNotFound
        return _json(200, document)

    def _on_resource(
        self, request: Request, group: str, version: str, parts: list[str]
    ) -> Response:
        if (group, parts, request.method) == ("authorization.k8s.io", REVIEWS, "POST"):
            return review(bodies.whole(request), allowed=True)
        target = target_of(group, parts)
        resource = self._resource(group, version, target)
        objects, strict = self.objects, request.query.get("fieldValidation") == "Strict"
        if _dry_run(request):
            objects = copy.deepcopy(objects)  # discarded after this call
        match request.method, target.name, target.subresource:
            case "GET", "", "" if request.query.get("watch", "") in ("true", "1"):
                return self._watch(request, resource, target.namespace)
            case "GET", "", "":
                found, metadata = self.page(resource, target.namespace, request.query)
                return self._listed(request, resource, found, metadata)
            case "POST", "", "" if target.namespace or not resource.namespaced:
                return _json(
                    201,
                    objects.create(
                        resource, target.namespace, bodies.whole(request), strict=strict
                    ),
                )
            case "GET", name, _ if name:
                stored = objects.get(resource, target.namespace, name)
                shown = _wants(request, "Table") and resource.columns
                return (
                    self._listed(request, resource, [stored], {}) if shown else _json(200, stored)
                )
            case ("PUT" | "PATCH") as method, name, subresource if name:
                stored = objects.get(resource, target.namespace, name)
                body = (
                    bodies.patched(request, resource, stored)
                    if method == "PATCH"
                    else bodies.whole(request)
                )
                return _json(
                    200,
                    objects.update(resource, stored, body, strict=strict, status=bool(subresource)),
                )
            case "DELETE", name, "" if name:
                return _json(
                    200, objects.delete(resource, objects.get(resource, target.namespace, name))
                )
        message = "the server does not allow this method on the requested resource"
        raise errors.ApiError(405, "MethodNotAllowed", message, {})

    def _resource(self, group: str, version: str, target: Target) -> Resource:
        path = f"apis/{group}/{version}" if group else f"api/{version}"
        resource = self.objects.resources.get((path, target.plural))
        if resource is None:
            if any(
                known.path == path and not known.custom for known in self.objects.resources.values()
            ):
                raise errors.not_found()
            raise errors.PageNotFound  # the answer of the mux for custom resources
        has_subresource = target.subresource in ("", "status" if resource.has_status else "")
        is_placed = bool(target.namespace) == resource.namespaced or (
            resource.namespaced and not target.name
        )
        if not has_subresource or not is_placed:
            raise errors.not_found()
        return resource

    def page(
        self, resource: Resource, namespace: str, query: Mapping[str, str]
    ) -> tuple[Sequence[Object], Mapping[str, Any]]:
        """Return the objects of a LIST, and the list's metadata."""
        store = self.objects.store
        found: Sequence[Object] = store.list_(resource.key, namespace)
        if test := selected(query):
            found = [stored for stored in found if test(stored)]
        return found, {"resourceVersion": str(store.revision)}

    def _listed(
        self,
        request: Request,
        resource: Resource,
        found: Sequence[Object],
        metadata: Mapping[str, Any],
    ) -> Response:
        if _wants(request, "Table") and resource.columns:
            return _json(
                200, {**resources.table(resource, found, self._now()), "metadata": metadata}
            )
        if _wants(request, "PartialObjectMetadataList"):
            head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            items = [resources.metadata_of(stored) for stored in found]
        else:
            head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version}
            bare = (
                () if resource.custom else ("apiVersion", "kind")
            )  # a built-in item has neither [real 1.36]
            items = [{k: v for k, v in stored.items() if k not in bare} for stored in found]
        return _json(200, {**head, "metadata": metadata, "items": items})

    def _watch(self, request: Request, resource: Resource, namespace: str) -> Response:
        """Answer with the changes since resourceVersion, and end. `kubectl delete` and `kubectl
        wait` need no more."""
        if (
            "sendInitialEvents" in request.query
        ):  # after this refusal, a client lists and then watches
            text = (
                "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList "
                "feature gate is enabled"
            )
            fault = ("sendInitialEvents", "FieldValueForbidden", text)
            raise errors.invalid("ListOptions", "meta.k8s.io", "", [fault])
        since = int(request.query.get("resourceVersion") or 0)
        test = selected(request.query)
        events: list[bytes] = []
        for wait in (self._watch_seconds, 0):
            for key, event, revision, stored in self.objects.store.journal:
                asked = (
                    key == resource.key
                    and revision > since
                    and namespace in ("", namespace_of(stored))
                )
                if asked and (test is None or test(stored)):
                    events.append(msgspec.json.encode({"type": event, "object": stored}) + b"\n")
            if events or not wait:
                break
            self._changed.wait(wait)
        return Response(status=200, body=b"".join(events) or b"\n")


def target_of(group: str, parts: Sequence[str]) -> Target:
    """Read the parts of a path after group and version."""
    namespace = ""
    of_namespaces = not group and (len(parts) < 3 or parts[2] in ("status", "finalize"))
    if parts[0] == "namespaces" and len(parts) > 2 and not of_namespaces:
        namespace, parts = parts[1], parts[2:]
    plural, name = (*parts, "")[:2]
    return Target(namespace, plural, name, subresource="/".join(parts[2:]))


def review(body: Mapping[str, Any], *, allowed: bool) -> Response:
    """Answer a SelfSubjectAccessReview."""
    head = {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
    }
    return _json(201, {**head, "spec": body.get("spec") or {}, "status": {"allowed": allowed}})


def _dry_run(request: Request) -> bool:
    """Whether the query, or the body of a DELETE, asks for a dry run."""
    asked = [request.query.get("dryRun")]
    if request.method == "DELETE" and request.body:
        asked += bodies.decoded(request.body).get("dryRun") or ()
    return "All" in asked


def _wants(request: Request, kind: str) -> bool:
    """Whether the first accepted media type names this kind of `meta.k8s.io`."""
    first = request.headers.get("accept", "").partition(",")[0].replace(" ", "")
    return f"as={kind}" in first.split(";")


def _json(status: int, body: Mapping[str, Any]) -> Response:
    return Response(status=status, body=msgspec.json.encode(body) + b"\n")
