"""A small Kubernetes API in memory: requests in, responses out, no sockets and no clock of its own.

Owns paths, verbs, media types and answers. The rules of writing are in `objects`, those of LIST in `lists`.
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.embedded.kubernetes import errors, lists, openapi, patches, requests, resources, tables
from eurekube_sync.embedded.kubernetes.checks import WriteOptions
from eurekube_sync.embedded.kubernetes.objects import Objects, Validate
from eurekube_sync.embedded.kubernetes.resources import Resource
from eurekube_sync.embedded.kubernetes.selection import field_test
from eurekube_sync.embedded.kubernetes.store import Stored

VERSION = "v1.36.3"
_GZIP_ABOVE = 128 * 1024
_HEALTH = ("/readyz", "/livez", "/healthz")
_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_RETURNED_WHEN_GONE = frozenset({"Pod", "Service", "ServiceAccount"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """What a path names."""

    resource: Resource
    namespace: str
    name: str
    subresource: str


class EmbeddedKubernetes:
    """The API server. `handle` may be called from several threads; calls are answered one after the other."""

    objects_class = Objects

    def __init__(
        self,
        now: Callable[[], float],
        *,
        definitions: Iterable[Mapping[str, Any]] = (),
        seed: int = 0,
        families: tuple[str, ...] = ("IPv4",),
        validate: Validate | None = None,
        watch_seconds: float = 1.0,
        revision: int = 1,
    ) -> None:
        """`definitions` are installed as if created; `validate` judges custom resources; `now` is in Unix seconds.
        `revision` is where resourceVersions begin: those of two real clusters do not meet."""
        self._now = now
        self._watch_seconds = watch_seconds
        self._objects = self.objects_class(now=now, seed=seed, families=families, validate=validate, revision=revision)
        self._changed = threading.Condition(threading.RLock())
        for name in ("default", "kube-node-lease", "kube-public", "kube-system"):
            self._objects.create(resources.NAMESPACES, "", {"metadata": {"name": name}}, WriteOptions())
        for definition in definitions:
            self._objects.create(resources.DEFINITIONS, "", definition, WriteOptions())

    @property
    def revision(self) -> int:
        """The latest resourceVersion: it stays the same when nothing was written."""
        return self._objects.store.revision

    def authenticate(self, request: Request) -> str:
        """The caller's name: here everybody is the administrator, who may do everything."""
        return "admin"

    def authorize(self, user: str, verb: str, group: str, resource: str, namespace: str, name: str) -> None:
        """Raise `ApiError` for what the caller may not do."""

    def call(self, method: str, path: str, body: Any = None, **query: str) -> tuple[int, Any]:
        """A request without HTTP's wrapping, for those who build a world: status and decoded body."""
        return self.call_with({}, method, path, body, **query)

    def call_with(self, headers: Mapping[str, str], method: str, path: str, body: Any, **query: str) -> tuple[int, Any]:
        """The same with more headers."""
        content = "application/json"
        if method == "PATCH":
            content = patches.JSON if isinstance(body, list) else patches.MERGE
        response = self.handle(
            Request(
                method=method,
                path=path,
                query=query,
                headers={"content-type": content, **headers},
                body=b"" if body is None else msgspec.json.encode(body),
            )
        )
        is_json = response.content_type.startswith("application/json")
        return response.status, msgspec.json.decode(response.body) if is_json else response.body.decode()

    def handle(self, request: Request) -> Response:
        """Answer one request."""
        with self._changed:
            before = self.revision
            try:
                response = self._answer(request)
            except errors.PageNotFound:
                return _text(404, "404 page not found\n")
            except errors.ApiError as error:
                return _json(error.code, error.body)
            if self.revision != before:
                self._changed.notify_all()
        accepted = request.headers.get("accept-encoding", "")
        if len(response.body) > _GZIP_ABOVE and "gzip" in accepted:
            headers = {**response.headers, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
            return replace(response, body=gzip.compress(response.body, 1), headers=headers)
        return response

    def _answer(self, request: Request) -> Response:
        path = request.path.rstrip("/")
        if path == "/version":
            return _json(200, {"major": "1", "minor": "36", "gitVersion": VERSION, "platform": "linux/amd64"})
        if path in _HEALTH:
            return _text(200, "ok")
        user = self.authenticate(request)
        parts = [part for part in path.split("/") if part]
        if parts[:1] == ["api"] and len(parts) > 2:
            return self._on_resource(request, user, "", parts[1], parts[2:])
        if parts[:1] == ["apis"] and len(parts) > 3:
            return self._on_resource(request, user, parts[1], parts[2], parts[3:])
        if request.method != "GET":
            raise errors.PageNotFound
        return _json(200, self._document(parts))

    def _document(self, parts: list[str]) -> Mapping[str, Any]:
        """Discovery and OpenAPI."""
        served = self._objects.resources()
        match parts:
            case ["api"]:
                found: Mapping[str, Any] | None = resources.core_versions()
            case ["apis"]:
                found = resources.group_list(served)
            case ["api", version]:
                found = resources.resource_list(served, "", version)
            case ["apis", group, version]:
                found = resources.resource_list(served, group, version)
            case ["openapi", "v3"]:
                found = openapi.index(served)
            case ["openapi", "v3", *rest]:
                found = openapi.document(served, "/".join(rest))
            case _:
                found = None
        if found is None:
            raise errors.PageNotFound
        return found

    def _on_resource(self, request: Request, user: str, group: str, version: str, parts: list[str]) -> Response:
        if (group, parts) == ("authorization.k8s.io", ["selfsubjectaccessreviews"]) and request.method == "POST":
            return _json(201, self._review(user, requests.body(request)))
        target = self._target(group, version, parts)
        resource = target.resource
        verb = _VERBS.get(request.method, "")
        if not target.name:
            watched = request.query.get("watch", "") in ("true", "1")
            verb = {"get": "watch" if watched else "list"}.get(verb, verb)
        named = f"{resource.plural}/{target.subresource}" if target.subresource else resource.plural
        scope = target.name if resource == resources.NAMESPACES else target.namespace
        self.authorize(user, verb, group, named, scope, target.name)
        match verb, target.name, target.subresource:
            case "list", "", "":
                return self._list(request, target)
            case "watch", "", "":
                return self._watch(request, target)
            case "create", "", "" if target.namespace or not resource.namespaced:
                body = requests.body(request)
                obj = self._objects.create(resource, target.namespace, body, requests.options(request))
                return _json(201, obj)
            case "get", name, _ if name:
                stored = self._objects.get(resource, target.namespace, name)
                if requests.wants(request, "Table"):
                    return self._table(request, resource, [stored], {})
                return _json(200, stored.obj)
            case (("update" | "patch"), name, _) if name:
                return self._write(request, target)
            case "delete", name, "" if name:
                return self._delete(request, target)
        if resource.custom and verb == "create":
            raise errors.PageNotFound
        if resource.custom and verb in ("update", "patch"):
            raise errors.bad_request("name must be provided")
        raise errors.method_not_allowed()

    def _review(self, user: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer a SelfSubjectAccessReview."""
        spec = body.get("spec") or {}
        asked = spec.get("resourceAttributes") or {}
        named = "/".join(filter(None, (asked.get("resource", ""), asked.get("subresource"))))
        try:
            self.authorize(user, asked.get("verb", ""), asked.get("group", ""), named, asked.get("namespace", ""), "")
            allowed = True
        except errors.ApiError:
            allowed = False
        head = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"}
        return {**head, "metadata": {}, "spec": spec, "status": {"allowed": allowed}}

    def _target(self, group: str, version: str, parts: list[str]) -> _Target:
        namespace = ""
        if parts[0] == "namespaces" and not group and (len(parts) < 3 or parts[2:] in (["status"], ["finalize"])):
            pass
        elif parts[0] == "namespaces" and len(parts) >= 3:
            namespace, parts = parts[1], parts[2:]
        plural, name, subresource, *rest = [*parts, "", ""]
        resource = self._objects.find(group, version, plural)
        if resource is None:
            served = [known for known in self._objects.resources() if known.group == group]
            if any(known.version == version and not known.custom for known in served):
                raise _no_resource()
            raise errors.PageNotFound  # as the custom resources' own mux answers
        if any(rest) or (subresource and not (subresource == "status" and resource.has_status)):
            raise errors.not_found(resource.plural, group, name) if resource.custom else _no_resource()
        if (namespace and not resource.namespaced) or (name and resource.namespaced and not namespace):
            raise _no_resource()
        return _Target(resource=resource, namespace=namespace, name=name, subresource=subresource)

    def _list(self, request: Request, target: _Target) -> Response:
        resource = target.resource
        found = lists.page(self._objects.store, resource, target.namespace, request.query)
        if requests.wants(request, "Table"):
            return self._table(request, resource, found.items, found.metadata)
        if requests.wants(request, "PartialObjectMetadataList"):
            return _json(200, tables.metadata_list([stored.obj for stored in found.items], found.metadata))
        head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": found.metadata}
        items = b",".join(stored.item(typed=resource.custom) for stored in found.items)
        body = msgspec.json.encode(head)[:-1] + b',"items":[' + items + b"]}\n"
        return Response(status=200, body=body)

    def _table(
        self, request: Request, resource: Resource, found: Iterable[Stored], metadata: Mapping[str, Any]
    ) -> Response:
        include = request.query.get("includeObject", "Metadata")
        objects = [stored.obj for stored in found]
        return _json(200, tables.table(resource, objects, metadata, include, self._now()))

    def _watch(self, request: Request, target: _Target) -> Response:
        """Answer what changed since resourceVersion and end: enough for `kubectl delete` and `kubectl wait`."""
        if "sendInitialEvents" in request.query:  # a client without an answer to that lists and watches instead
            text = "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            fault = ("sendInitialEvents", "FieldValueForbidden", text)
            raise errors.invalid("ListOptions", "meta.k8s.io", "", [fault])
        store = self._objects.store
        since = int(request.query.get("resourceVersion") or 0)
        fields = field_test(request.query.get("fieldSelector", ""), target.resource.plural)
        events: list[bytes] = []
        for attempt in range(2):
            for change in store.journal:
                if change.key != target.resource.key or change.revision <= since:
                    continue
                if target.namespace and change.stored.namespace != target.namespace:
                    continue
                if fields is None or fields(change.stored.obj):
                    events.append(msgspec.json.encode({"type": change.type, "object": change.stored.obj}) + b"\n")
            if events or attempt:
                break
            self._changed.wait(self._watch_seconds)
        return Response(status=200, body=b"".join(events) or b"\n")

    def _write(self, request: Request, target: _Target) -> Response:
        resource = target.resource
        stored = self._objects.get(resource, target.namespace, target.name)
        body = requests.body(request) if request.method == "PUT" else requests.patched(request, resource, stored)
        status = target.subresource == "status"
        return _json(200, self._objects.update(resource, stored, body, requests.options(request), status=status))

    def _delete(self, request: Request, target: _Target) -> Response:
        resource = target.resource
        stored = self._objects.get(resource, target.namespace, target.name)
        obj, gone = self._objects.delete(resource, stored, requests.delete_options(request))
        if not gone or resource.kind in _RETURNED_WHEN_GONE:
            return _json(200, obj)
        found = errors.details(resource.plural, resource.group, target.name)
        found["uid"] = obj["metadata"]["uid"]
        head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return _json(200, {**head, "details": found})


def _no_resource() -> errors.ApiError:
    return errors.ApiError(404, "NotFound", "the server could not find the requested resource", details={})


def _json(status: int, body: Mapping[str, Any]) -> Response:
    return Response(status=status, body=msgspec.json.encode(body) + b"\n")


def _text(status: int, text: str) -> Response:
    return Response(status=status, body=text.encode(), content_type="text/plain; charset=utf-8")
