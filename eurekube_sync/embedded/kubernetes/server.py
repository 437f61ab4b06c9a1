"""A small Kubernetes API in memory: requests in, responses out, no sockets and no clock of its own.

Owns paths, verbs, media types and answers. The rules of writing are in `objects`. Everybody may do everything, and a
LIST is never cut into pages, which a server may choose (`limit` of ListOptions). `tests/embedded` adds both.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.embedded.kubernetes import errors, patches, protobuf, resources, tables
from eurekube_sync.embedded.kubernetes.objects import Objects, Validate
from eurekube_sync.embedded.kubernetes.resources import Resource
from eurekube_sync.embedded.kubernetes.selection import selected
from eurekube_sync.embedded.kubernetes.store import Stored

VERSION = "v1.36.3"
OPEN_PATHS = ("/version", "/readyz", "/livez", "/healthz")
"""What nobody needs a login for."""
REVIEWS = ["selfsubjectaccessreviews"]
_RETURNED_WHEN_GONE = frozenset({"Pod", "Service", "ServiceAccount"})
_PATCHES: Mapping[str, Callable[[Any, Any], Any]] = {
    patches.JSON: patches.json_patch,
    patches.MERGE: patches.merge_patch,
    patches.STRATEGIC: patches.strategic_merge_patch,
}


class Target(NamedTuple):
    """What a path below group and version names; empty where it does not."""

    namespace: str
    plural: str
    name: str
    subresource: str
    more: str


class EmbeddedKubernetes:
    """The API server. `handle` may be called from several threads; calls are answered one after the other."""

    def __init__(
        self,
        now: Callable[[], float],
        *,
        definitions: Iterable[Mapping[str, Any]] = (),
        validate: Validate | None = None,
        objects: Objects | None = None,
        watch_seconds: float = 1.0,
    ) -> None:
        """`definitions` are installed as if created; `validate` judges custom resources; `now` is in Unix seconds."""
        self.objects = objects or Objects(now, validate)
        self._now = now
        self._watch_seconds = watch_seconds
        self._changed = threading.Condition(threading.RLock())
        for name in ("default", "kube-node-lease", "kube-public", "kube-system"):
            self.objects.create(resources.NAMESPACES, "", {"metadata": {"name": name}})
        for definition in definitions:
            self.objects.create(resources.DEFINITIONS, "", definition)

    @property
    def revision(self) -> int:
        """The latest resourceVersion: it stays the same when nothing was written."""
        return self.objects.store.revision

    def call(self, method: str, path: str, body: Any = None, **query: str) -> tuple[int, Any]:
        """A request without HTTP's wrapping, for those who build a world: status and decoded body."""
        return self.call_with({}, method, path, body, **query)

    def call_with(self, headers: Mapping[str, str], method: str, path: str, body: Any, **query: str) -> tuple[int, Any]:
        """The same with more headers."""
        content = "application/json"
        if method == "PATCH":
            content = patches.JSON if isinstance(body, list) else patches.MERGE
        sent = b"" if body is None else msgspec.json.encode(body)
        headers = {"content-type": content, **headers}
        response = self.handle(Request(method=method, path=path, query=query, headers=headers, body=sent))
        is_json = response.content_type.startswith("application/json")
        return response.status, msgspec.json.decode(response.body) if is_json else response.body.decode()

    def handle(self, request: Request) -> Response:
        """Answer one request."""
        with self._changed:
            before = self.revision
            try:
                response = self.answer(request)
            except errors.PageNotFound:
                return _text(404, "404 page not found\n")
            except errors.ApiError as error:
                return _json(error.code, error.body)
            if self.revision != before:
                self._changed.notify_all()
            return response

    def answer(self, request: Request) -> Response:
        """Answer one request; raises `ApiError` and `PageNotFound`."""
        if request.path == "/version":
            return _json(200, {"major": "1", "minor": "36", "gitVersion": VERSION, "platform": "linux/amd64"})
        if request.path in OPEN_PATHS:
            return _text(200, "ok")
        match parts := [part for part in request.path.split("/") if part]:
            case ["api", version, *rest] if rest:
                return self._on_resource(request, "", version, rest)
            case ["apis", group, version, *rest] if rest:
                return self._on_resource(request, group, version, rest)
        document = resources.document(self.objects.resources(), parts) if request.method == "GET" else None
        if document is None:
            raise errors.PageNotFound
        return _json(200, document)

    def _on_resource(self, request: Request, group: str, version: str, parts: list[str]) -> Response:
        if (group, parts, request.method) == ("authorization.k8s.io", REVIEWS, "POST"):
            return review(_body(request), allowed=True)
        target = target_of(group, parts)
        resource = self._resource(group, version, target)
        objects = self.objects
        if _dry_run(request):
            objects = copy.deepcopy(objects)  # which is then forgotten
        match request.method, target.name, target.subresource:
            case "GET", "", "" if request.query.get("watch", "") in ("true", "1"):
                return self._watch(request, resource, target.namespace)
            case "GET", "", "":
                found, metadata = self.page(resource, target.namespace, request.query)
                return self._listed(request, resource, found, metadata)
            case "POST", "", "" if target.namespace or not resource.namespaced:
                made = objects.create(resource, target.namespace, _body(request), strict=_strict(request))
                return _json(201, made)
            case "GET", name, _ if name:
                stored = objects.get(resource, target.namespace, name)
                if _wants(request, "Table") and resource.columns:
                    return self._table(request, resource, [stored], {})
                return _json(200, stored.obj)
            case (("PUT" | "PATCH"), name, subresource) if name:
                stored = objects.get(resource, target.namespace, name)
                patch = request.method == "PATCH"
                body = _patched(request, resource, stored) if patch else _body(request)
                asked = {"strict": _strict(request), "patch": patch, "status": bool(subresource)}
                return _json(200, objects.update(resource, stored, body, **asked))
            case "DELETE", name, "" if name:
                return _delete(request, objects, resource, objects.get(resource, target.namespace, name))
        if resource.custom and request.method == "POST":
            raise errors.PageNotFound
        if resource.custom and request.method in ("PUT", "PATCH"):
            raise errors.bad_request("name must be provided")
        message = "the server does not allow this method on the requested resource"
        raise errors.ApiError(405, "MethodNotAllowed", message, {})

    def _resource(self, group: str, version: str, target: Target) -> Resource:
        resource = self.objects.find(group, version, target.plural)
        if resource is None:
            served = [known for known in self.objects.resources() if known.group == group]
            if any(known.version == version and not known.custom for known in served):
                raise errors.no_resource()
            raise errors.PageNotFound  # as the custom resources' own mux answers
        if target.more or (target.subresource and not (target.subresource == "status" and resource.has_status)):
            raise errors.not_found(resource, target.name) if resource.custom else errors.no_resource()
        if target.namespace and not resource.namespaced:
            raise errors.no_resource()
        if target.name and resource.namespaced and not target.namespace:
            raise errors.no_resource()
        return resource

    def page(
        self, resource: Resource, namespace: str, query: Mapping[str, str]
    ) -> tuple[Sequence[Stored], Mapping[str, Any]]:
        """What a LIST shows, and the list's metadata."""
        store = self.objects.store
        found: Sequence[Stored] = store.within(resource.key, namespace) if namespace else store.all(resource.key)
        if test := selected(query, resource.plural):
            found = [stored for stored in found if test(stored.obj)]
        return found, {"resourceVersion": str(store.revision)}

    def _listed(
        self, request: Request, resource: Resource, found: Sequence[Stored], metadata: Mapping[str, Any]
    ) -> Response:
        if _wants(request, "Table") and resource.columns:
            return self._table(request, resource, found, metadata)
        if _wants(request, "PartialObjectMetadataList"):
            head = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
            return _json(200, {**head, "items": [tables.metadata_of(stored.obj) for stored in found]})
        head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": metadata}
        items = b",".join(stored.item(typed=resource.custom) for stored in found)
        return Response(status=200, body=msgspec.json.encode(head)[:-1] + b',"items":[' + items + b"]}\n")

    def _table(
        self, request: Request, resource: Resource, found: Sequence[Stored], metadata: Mapping[str, Any]
    ) -> Response:
        include = request.query.get("includeObject", "Metadata")
        objects = [stored.obj for stored in found]
        return _json(200, tables.table(resource, objects, metadata, include, self._now()))

    def _watch(self, request: Request, resource: Resource, namespace: str) -> Response:
        """Answer what changed since resourceVersion and end: enough for `kubectl delete` and `kubectl wait`."""
        if "sendInitialEvents" in request.query:  # a client without an answer to that lists and watches instead
            text = "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            fault = ("sendInitialEvents", "FieldValueForbidden", text)
            raise errors.invalid("ListOptions", "meta.k8s.io", "", [fault])
        since = int(request.query.get("resourceVersion") or 0)
        test = selected(request.query, resource.plural)
        events: list[bytes] = []
        for wait in (self._watch_seconds, 0):
            for key, event, revision, stored in self.objects.store.journal:
                asked = key == resource.key and revision > since and namespace in ("", stored.namespace)
                if asked and (test is None or test(stored.obj)):
                    events.append(msgspec.json.encode({"type": event, "object": stored.obj}) + b"\n")
            if events or not wait:
                break
            self._changed.wait(wait)
        return Response(status=200, body=b"".join(events) or b"\n")


def target_of(group: str, parts: Sequence[str]) -> Target:
    """What the parts of a path after group and version name."""
    namespace = ""
    of_namespaces = not group and (len(parts) < 3 or parts[2] in ("status", "finalize"))
    if parts[0] == "namespaces" and len(parts) > 2 and not of_namespaces:
        namespace, parts = parts[1], parts[2:]
    plural, name, subresource, *more = [*parts, "", ""]
    return Target(namespace, plural, name, subresource, "".join(more))


def review(body: Mapping[str, Any], *, allowed: bool) -> Response:
    """The answer to a SelfSubjectAccessReview."""
    head = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {}}
    return _json(201, {**head, "spec": body.get("spec") or {}, "status": {"allowed": allowed}})


def _delete(request: Request, objects: Objects, resource: Resource, stored: Stored) -> Response:
    body = _decoded(request.body) if request.body else {}
    grace = body.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
    obj, gone = objects.delete(resource, stored, grace_seconds=None if grace is None else int(grace))
    if not gone or resource.kind in _RETURNED_WHEN_GONE:
        return _json(200, obj)
    found = {**errors.details(resource.plural, resource.group, stored.name), "uid": obj["metadata"]["uid"]}
    return _json(200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": found})


def _body(request: Request) -> Any:
    """The object in a request: JSON, or kubectl's protobuf."""
    content = _content_type(request)
    try:
        if content == protobuf.MEDIA_TYPE:
            return protobuf.decode(request.body)
    except protobuf.ProtobufError:
        raise errors.unsupported_media_type(("application/json",)) from None
    if content not in ("", "application/json"):
        raise errors.unsupported_media_type(("application/json",))
    return _decoded(request.body)


def _patched(request: Request, resource: Resource, stored: Stored) -> Any:
    """The object as the patch makes it."""
    content = _content_type(request)
    accepted = [patches.JSON, patches.MERGE, *(() if resource.custom else (patches.STRATEGIC,))]
    if content not in accepted:
        raise errors.unsupported_media_type(accepted)
    patch = _decoded(request.body)
    expected = list if content == patches.JSON else dict
    if not isinstance(patch, expected):
        name = expected.__name__
        raise errors.bad_request(f"error decoding patch: json: cannot unmarshal into Go value of type {name}")
    try:
        return _PATCHES[content](stored.obj, patch)
    except patches.PatchError:  # a failed `test` included; the message names no cause
        message = "the server rejected our request due to an error in our request"
        raise errors.ApiError(422, "Invalid", message, {}) from None


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise errors.bad_request(f"couldn't get version/kind; json parse error: {error}") from None


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip()


def _dry_run(request: Request) -> bool:
    """By the query, or by the body of a DELETE."""
    asked = [request.query.get("dryRun")]
    if request.method == "DELETE" and request.body:
        asked += _decoded(request.body).get("dryRun") or ()
    return "All" in asked


def _strict(request: Request) -> bool:
    return request.query.get("fieldValidation") == "Strict"


def _wants(request: Request, kind: str) -> bool:
    """Whether the media type that is accepted first names this kind of `meta.k8s.io`."""
    first = request.headers.get("accept", "").partition(",")[0].replace(" ", "")
    return f"as={kind}" in first.split(";")


def _json(status: int, body: Mapping[str, Any]) -> Response:
    return Response(status=status, body=msgspec.json.encode(body) + b"\n")


def _text(status: int, text: str) -> Response:
    return Response(status=status, body=text.encode(), content_type="text/plain; charset=utf-8")
