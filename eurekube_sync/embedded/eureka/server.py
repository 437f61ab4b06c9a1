"""The embedded Eureka registry as a server: routes a `Request` to the registry and shapes the `Response`. It answers in
JSON alone.

Owns paths, status codes and headers, as Netflix's resources and Spring Boot give them. Time comes from `now` alone:
what a real server does on timers is caught up at the next request, in the order in which it was due.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import unquote

from eurekube_sync.embedded.eureka import codec, replication
from eurekube_sync.embedded.eureka.cache import ALL, Payload, ResponseCache
from eurekube_sync.embedded.eureka.instance import Applications, InstanceInfo, Status, complaint
from eurekube_sync.embedded.eureka.registry import LeaseRegistry
from eurekube_sync.embedded.http import Request, Response

_DASHBOARD = b"<!doctype html>\n<html><head><title>Eureka</title></head><body><h1>System Status</h1></body></html>\n"


class EmbeddedEureka:
    """A Eureka server in one object, for one thread or many. `now` is seconds since the epoch.

    `warming_up` may be changed while it runs, and so may `replicas`, the URLs that its status names: it sends them
    nothing.
    """

    def __init__(
        self,
        now: Callable[[], float],
        *,
        response_cache_seconds: float = 30.0,
        eviction_seconds: float = 60.0,
        self_preservation: bool = True,
        warming_up: bool = False,
        shuffle: random.Random | None = None,
    ) -> None:
        self.warming_up = warming_up
        self.replicas: tuple[str, ...] = ()
        self._now = now
        self._lock = threading.Lock()
        start = self._milliseconds()
        self._eviction_interval = int(eviction_seconds * 1000)
        self._next_eviction = start + self._eviction_interval
        self._cache = ResponseCache(self._load, interval=int(response_cache_seconds * 1000), start=start)
        self._registry = LeaseRegistry(
            start=start,
            self_preservation=self_preservation,
            on_change=self._invalidate,
            shuffle=shuffle or random.Random(0),
        )

    def registered(self) -> Applications:
        """All that is registered now, past the cache: for those who build a world, or judge one."""
        with self._lock:
            self._catch_up(self._milliseconds())
            return self._registry.applications()

    def handle(self, request: Request) -> Response:
        """Answer one request."""
        with self._lock:
            now = self._milliseconds()
            self._catch_up(now)
            try:
                return self.refusal(request) or self._route(request, now)
            except (ValueError, TypeError):  # such as `lastDirtyTimestamp=abc`
                return self.error(request, 500)

    def _milliseconds(self) -> int:
        return int(self._now() * 1000)

    def _catch_up(self, now: int) -> None:
        while self._next_eviction <= now:
            self._cache.catch_up(self._next_eviction)
            self._registry.evict(self._next_eviction)
            self._next_eviction += self._eviction_interval
        self._cache.catch_up(now)

    def refusal(self, request: Request) -> Response | None:
        """The answer to a caller who is not let in; here everybody is."""

    def _route(self, request: Request, now: int) -> Response:
        if "//" in request.path:
            return self.error(request, 404)
        segments = [unquote(segment) for segment in request.path.strip("/").split("/")]
        match request.method, segments:
            case "GET", [""]:
                return Response(status=200, body=_DASHBOARD, content_type="text/html;charset=UTF-8")
            case "GET", ["eureka", "apps"]:
                return self._list(request, ALL, now)
            case "GET", ["eureka", "apps", app]:
                return self._list(request, app.upper(), now)
            case "GET", ["eureka", "instances", instance_id]:
                return self._instance(request, None, instance_id, now)
            case "GET", ["eureka", "status"]:
                return self._status(request)
            case "POST", ["eureka", "peerreplication", "batch"]:
                return self._batch(request, now)
            case "POST", ["eureka", "apps", app]:
                return self._register(request, app.upper(), now)
            case "GET", ["eureka", "apps", app, instance_id]:
                return self._instance(request, app.upper(), instance_id, now)
            case "PUT", ["eureka", "apps", app, instance_id]:
                return self._renew(request, app.upper(), instance_id, now)
            case "DELETE", ["eureka", "apps", app, instance_id]:
                found = self._registry.cancel(app.upper(), instance_id, now=now)
                return Response(status=200) if found else self.error(request, 404)
            case "PUT" | "DELETE", ["eureka", "apps", app, instance_id, "status"]:
                return self._override(request, app.upper(), instance_id, now)
            case _, ["eureka", "apps", *_] | ["eureka", "peerreplication", "batch"]:
                return self.error(request, 405)
        return self.error(request, 404)

    def _register(self, request: Request, app: str, now: int) -> Response:
        """`ApplicationResource.addInstance`."""
        if "content-type" not in request.headers:
            return self.error(request, 500)
        if "json" not in request.headers["content-type"].lower():
            return self.error(request, 415)
        try:
            instance = codec.parse_registration(request.body, now_ms=now)
        except ValueError:
            return Response(status=400, body=b'{"error": "cannot parse request body"}')
        if wrong := complaint(instance, app):
            return Response(status=400, body=wrong.encode())
        self._registry.register(instance, now=now)
        return Response(status=204)

    def _status(self, request: Request) -> Response:
        """`StatusResource.getStatusInfo`: XML alone; the JSON codec does not know its class."""
        if "xml" not in request.headers.get("accept", "xml"):
            return self.error(request, 500)
        host = request.headers.get("host", "localhost")
        body = codec.to_xml("com.netflix.eureka.util.StatusInfo", replication.status_document(self.replicas, host))
        return Response(status=200, body=body.encode(), content_type="application/xml")

    def _batch(self, request: Request, now: int) -> Response:
        """`PeerReplicationResource.batchReplication`: each item by itself; a registration that is refused is a 200."""
        if "json" not in request.headers.get("content-type", "").lower():
            return self.error(request, 415)
        try:
            items = replication.parse_batch(request.body, now_ms=now)
        except (ValueError, TypeError):
            return Response(status=400, body=b'{"error": "cannot parse request body"}')
        body = replication.write_answers([self._replicated(item, now) for item in items])
        return Response(status=200, body=body)

    def _replicated(self, item: replication.Item, now: int) -> int:
        match item.action:
            case "Heartbeat" if item.app and item.id:
                return 200 if self._registry.renew(item.app, item.id, now=now) else 404
            case "Cancel" if item.app and item.id:
                return 200 if self._registry.cancel(item.app, item.id, now=now) else 404
            case "Register" if item.instance is not None:
                if not complaint(item.instance, item.app or ""):
                    self._registry.register(item.instance, now=now)
                return 200
            case "StatusUpdate" if item.app and item.id and self._registry.find(item.app, item.id, now=now) is None:
                return 404
        return 500  # also of a change of status: nothing sends one with a status

    def _renew(self, request: Request, app: str, instance_id: str, now: int) -> Response:
        """`InstanceResource.renewLease`: a newer `lastDirtyTimestamp` is a 404, with the lease renewed all the same."""
        if not self._registry.renew(app, instance_id, now=now):
            return self.error(request, 404)
        sent = request.query.get("lastDirtyTimestamp")
        listed = self._registry.find(app, instance_id, now=now)
        if sent is not None and listed is not None and int(sent) > listed[0].last_dirty:
            return self.error(request, 404)
        return Response(status=200)

    def _override(self, request: Request, app: str, instance_id: str, now: int) -> Response:
        """`InstanceResource.statusUpdate` and `deleteStatusUpdate`: a bad value is a 500."""
        if self._registry.find(app, instance_id, now=now) is None:
            return self.error(request, 404)
        default = Status.UNKNOWN.value if request.method == "DELETE" else None
        value = request.query.get("value", default)
        if value not in tuple(Status):
            return self.error(request, 500)
        change = self._registry.override_status if request.method == "PUT" else self._registry.delete_override
        change(app, instance_id, Status(value), dirty=int(request.query.get("lastDirtyTimestamp", "0")), now=now)
        return Response(status=200)

    def _instance(self, request: Request, app: str | None, instance_id: str, now: int) -> Response:
        """A read of one instance, past the cache."""
        if app is None:
            listed = self._registry.find_by_id(instance_id, now=now)
        else:
            listed = self._registry.find(app, instance_id, now=now)
        if listed is None:
            return self.error(request, 404)
        return Response(status=200, body=codec.to_json("instance", codec.instance_document(listed)))

    def _list(self, request: Request, app: str, now: int) -> Response:
        """A read through the cache (`ApplicationsResource`, `ApplicationResource`)."""
        if self.warming_up:
            return self.error(request, 403)
        payload = self._cache.get(app, now)
        if payload.plain is None:
            return self.error(request, 404)
        if app == ALL and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(status=200, body=payload.gzipped, headers={"Content-Encoding": "gzip"})
        return Response(status=200, body=payload.plain)

    def _load(self, app: str) -> Payload:
        """`ResponseCacheImpl.generatePayload`."""
        if app == ALL:
            applications = self._registry.applications()
            return Payload(lambda: codec.to_json("applications", codec.applications_document(applications)))
        instances = self._registry.application(app)
        if not instances:
            return Payload(None)
        return Payload(lambda: codec.to_json("application", codec.application_document(app, instances)))

    def _invalidate(self, instance: InstanceInfo) -> None:
        """`ResponseCacheImpl.invalidate`."""
        self._cache.invalidate(instance.app, ALL)

    def error(self, request: Request, status: int) -> Response:
        """Spring Boot's `BasicErrorController`."""
        error = {
            "timestamp": datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="milliseconds")[:-6] + "Z",
            "status": status,
            "error": HTTPStatus(status).phrase,
            "path": request.path,
        }
        return Response(status=status, body=json.dumps(error, separators=(",", ":")).encode())
