"""A small Kubernetes API in memory, without sockets and without a clock of its own.

This file has paths, verbs, media types and answers; `objects` has the rules of writes. Every call
is allowed, and a LIST is always one page, as `limit` of ListOptions permits. `tests/embedded` adds
rights and pages.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from email.utils import formatdate
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace  # this folder imports no other of ours

from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.embedded.kubernetes import bodies, errors, resources
from eurekube_sync.embedded.kubernetes.objects import Conform, Objects, Validate
from eurekube_sync.embedded.kubernetes.resources import Resource
from eurekube_sync.embedded.kubernetes.store import Object, namespace_of, selected

_VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.3", "platform": "linux/amd64"}
_PAGE_NOT_FOUND = Response(
    status=404, body=b"404 page not found\n", content_type="text/plain; charset=utf-8"
)
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
        content_type = "application/json"
        if method == "PATCH":
            content_type = bodies.JSON if isinstance(body, list) else bodies.MERGE
        headers = {"content-type": content_type, **self.login()}
        sent = b"" if body is None else msgspec.json.encode(body)
        response = self.handle(
            Request(method=method, path=path, query=query, headers=headers, body=sent)
        )
        if response.content_type == "application/json":
            return response.status, msgspec.json.decode(response.body)
        return response.status, response.body.decode()

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
                return _PAGE_NOT_FOUND
            except errors.ApiError as error:
                return _json(error.code, error.body)
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                # a field of another type
                why = f"the object provided is unrecognized ({type(error).__name__})"
                return _json(400, errors.bad_request(why).body)
            if self.objects.store.revision != before:
                self._changed.notify_all()
            return response

    def answer(self, request: Request) -> Response:
        """Answer one request. Raises `ApiError` and `PageNotFound`."""
        if request.path == "/version":
            return _json(200, _VERSION)
        parts = [part for part in request.path.split("/") if part]
        match parts:
            case ["api", version, *rest] if rest:
                return self._on_resource(request, "", version, rest)
            case ["apis", group, version, *rest] if rest:
                return self._on_resource(request, group, version, rest)
        document = resources.document(self.objects.resources.values(), parts)
        if document is None or request.method != "GET":
            raise errors.PageNotFound
        return _json(200, document)

    def _on_resource(
        self, request: Request, group: str, version: str, parts: list[str]
    ) -> Response:
        if (group, parts, request.method) == ("authorization.k8s.io", REVIEWS, "POST"):
            return review(bodies.whole(request), allowed=True)
        target = target_of(group, parts)
        resource = self._resource(group, version, target)
        objects = self.objects
        if _dry_run(request):
            objects = copy.deepcopy(objects)  # discarded after this call
        if target.name:
            return self._on_object(request, resource, target, objects)
        if request.method == "POST" and (target.namespace or not resource.namespaced):
            body = bodies.whole(request)
            created = objects.create(resource, target.namespace, body, strict=_is_strict(request))
            return _json(201, created)
        if request.method != "GET":
            raise errors.not_allowed()
        if request.query.get("watch", "") in ("true", "1"):
            return self._watch(request, resource, target.namespace)
        listed, metadata = self.page(resource, target.namespace, request.query)
        return self._listed(request, resource, listed, metadata)

    def _on_object(
        self, request: Request, resource: Resource, target: Target, objects: Objects
    ) -> Response:
        deletes = request.method == "DELETE" and not target.subresource
        if not deletes and request.method not in ("GET", "PUT", "PATCH"):
            raise errors.not_allowed()
        stored = objects.get(resource, target.namespace, target.name)
        if deletes:
            _check_preconditions(request, resource, stored)
            return _json(200, objects.delete(resource, stored))
        if request.method == "GET" and resource.columns and _wants(request, "Table"):
            return self._listed(request, resource, [stored], {})
        if request.method == "GET":
            return _json(200, stored)
        if request.method == "PUT":
            body = bodies.whole(request)
        else:
            body = bodies.patched(request, resource, stored)
        updated = objects.update(
            resource,
            stored,
            body,
            strict=_is_strict(request),
            status=bool(target.subresource),
        )
        return _json(200, updated)

    def _resource(self, group: str, version: str, target: Target) -> Resource:
        path = f"apis/{group}/{version}" if group else f"api/{version}"
        resource = self.objects.resources.get((path, target.plural))
        if resource is None:
            for served in self.objects.resources.values():
                if served.path == path and not served.custom:
                    raise errors.not_found()
            raise errors.PageNotFound  # the answer of the mux for custom resources
        if target.subresource and (target.subresource != "status" or not resource.has_status):
            raise errors.not_found()
        # All namespaces can be listed at once.
        if resource.namespaced and target.name and not target.namespace:
            raise errors.not_found()
        if target.namespace and not resource.namespaced:
            raise errors.not_found()
        return resource

    def page(
        self, resource: Resource, namespace: str, query: Mapping[str, str]
    ) -> tuple[Sequence[Object], Mapping[str, Any]]:
        """Return the objects of a LIST, and the list's metadata."""
        store = self.objects.store
        objects: Sequence[Object] = store.list_(resource.key, namespace)
        if test := selected(query):
            objects = [stored for stored in objects if test(stored)]
        return objects, {"resourceVersion": str(store.revision)}

    def _listed(
        self,
        request: Request,
        resource: Resource,
        objects: Sequence[Object],
        metadata: Mapping[str, Any],
    ) -> Response:
        if resource.columns and _wants(request, "Table"):
            table = resources.table(resource, objects, self._now())
            return _json(200, {**table, "metadata": metadata})
        kind, version = f"{resource.kind}List", resource.api_version
        items: Sequence[Object] = objects
        if _wants(request, "PartialObjectMetadataList"):
            kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
            items = [resources.metadata_of(stored) for stored in objects]
        elif not resource.custom:
            items = [_bare(stored) for stored in objects]
        body = {"kind": kind, "apiVersion": version, "metadata": metadata, "items": items}
        return _json(200, body)

    def _watch(self, request: Request, resource: Resource, namespace: str) -> Response:
        """Answer with the changes since resourceVersion, and end. `kubectl delete` and `kubectl
        wait` need no more."""
        if "sendInitialEvents" in request.query:  # a client then lists first, and watches
            text = (
                "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList "
                "feature gate is enabled"
            )
            fault = ("sendInitialEvents", "FieldValueForbidden", text)
            raise errors.invalid("ListOptions", "meta.k8s.io", "", [fault])
        events = self._events(request, resource, namespace)
        if not events:
            self._changed.wait(self._watch_seconds)
            events = self._events(request, resource, namespace)
        return Response(status=200, body=events or b"\n")

    def _events(self, request: Request, resource: Resource, namespace: str) -> bytes:
        """Return the changes that a watch asks for, a line for each."""
        since = int(request.query.get("resourceVersion") or 0)
        test = selected(request.query)
        lines: list[bytes] = []
        for key, event, revision, stored in self.objects.store.journal:
            if key != resource.key or revision <= since:
                continue
            if namespace in ("", namespace_of(stored)) and (test is None or test(stored)):
                lines.append(msgspec.json.encode({"type": event, "object": stored}) + b"\n")
        return b"".join(lines)


def target_of(group: str, parts: Sequence[str]) -> Target:
    """Read the parts of a path after group and version."""
    namespace = ""
    match parts:
        case ["namespaces", _, "status" | "finalize", *_] if not group:
            pass  # subresources of the Namespace itself
        case ["namespaces", namespace, plural, *more]:
            parts = [plural, *more]
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
    """Say whether the query, or the body of a DELETE, asks for a dry run."""
    if request.query.get("dryRun") == "All":
        return True
    if request.method != "DELETE" or not request.body:
        return False
    return "All" in (bodies.decoded(request.body).get("dryRun") or ())


def _check_preconditions(request: Request, resource: Resource, stored: Object) -> None:
    """Refuse a DELETE that names another UID or version."""
    options = bodies.decoded(request.body) if request.body else {}
    preconditions = options.get("preconditions") or {}
    for field, called, happened in (
        ("uid", "UID", "deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "modified"),
    ):
        wanted, actual = preconditions.get(field), stored["metadata"][field]
        if wanted is not None and wanted != actual:
            why = (
                f"the {called} in the precondition ({wanted}) does not match the {called} in "
                f"record ({actual}). The object might have been {happened}"
            )
            raise errors.unmet_precondition(resource, stored["metadata"]["name"], why)


def _is_strict(request: Request) -> bool:
    """Say whether unknown fields are refused."""
    return request.query.get("fieldValidation") == "Strict"


def _bare(stored: Object) -> Object:
    """Return an item of a list of built-in objects, which has neither [real 1.36]."""
    return {field: value for field, value in stored.items() if field not in ("apiVersion", "kind")}


def _wants(request: Request, kind: str) -> bool:
    """Say whether the first accepted media type names this kind of `meta.k8s.io`."""
    first = request.headers.get("accept", "").partition(",")[0].replace(" ", "")
    return f"as={kind}" in first.split(";")


def _json(status: int, body: Mapping[str, Any]) -> Response:
    return Response(status=status, body=msgspec.json.encode(body) + b"\n")
