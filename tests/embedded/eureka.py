"""The embedded Eureka with its response cache, evictions, overrides, and Spring Security before
it."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import unquote

import msgspec

from eurekube_sync.embedded.eureka import Document, EmbeddedEureka, Lease, application, applications
from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.model.struct import replace
from tests.embedded.eureka_cache import ALL, Payload, ResponseCache
from tests.embedded.eureka_leases import FullRegistry
from tests.embedded.instances import (
    InstanceInfo,
    LeaseTimes,
    Listed,
    Status,
    complaint,
    described,
    parse_instance,
)

OF_A_PEER = "x-netflix-discovery-replication"
"""The header whose value `true` says that a peer calls."""
_ACTIONS = ("Heartbeat", "Register", "Cancel", "StatusUpdate", "DeleteStatusOverride")
_DASHBOARD = (
    b"<!doctype html>\n<html><head><title>Eureka</title></head><body><h1>System "
    b"Status</h1></body></html>\n"
)


class FullEureka(EmbeddedEureka):
    """Time comes from `now` alone: what a real server does on timers is caught up at the next
    request, in the order in which it was due.

    Asks for `credentials` unless they are None. `refuse_writes` is what the CSRF protection does to
    a client. Both may be changed while it runs, and so may `warming_up` and `replicas`.
    """

    registry: FullRegistry

    def __init__(
        self,
        now: Callable[[], float],
        *,
        response_cache_seconds: float = 30.0,
        eviction_seconds: float = 60.0,
        self_preservation: bool = True,
        warming_up: bool = False,
        shuffle: random.Random | None = None,
        credentials: tuple[str, str] | None = None,
        refuse_writes: bool = False,
    ) -> None:
        start = int(now() * 1000)
        registry = FullRegistry(
            start=start,
            self_preservation=self_preservation,
            on_change=lambda app: self._cache.invalidate(app, ALL),
            shuffle=shuffle or random.Random(0),
        )
        super().__init__(now, registry)
        self._told: dict[int, tuple[Document, InstanceInfo]] = {}
        self.warming_up = warming_up
        self.credentials = credentials
        self.refuse_writes = refuse_writes
        self._eviction_interval = int(eviction_seconds * 1000)
        self._next_eviction = start + self._eviction_interval
        interval = int(response_cache_seconds * 1000)
        self._cache = ResponseCache(self._load, interval=interval, start=start)

    def registered(self) -> tuple[tuple[str, tuple[Listed, ...]], ...]:
        """All that is registered now, past the cache: for those who build a world, or judge one. An
        instance that nobody wrote since is the same object."""
        with self.lock:
            self._catch_up(self.milliseconds())
            before, self._told = self._told, {}
            return tuple(
                (app, tuple(self._listed(lease, before) for lease in leases.values()))
                for app, leases in self.registry.leases.items()
                if leases
            )

    def _listed(self, lease: Lease, before: Mapping[int, tuple[Document, InstanceInfo]]) -> Listed:
        document = lease.instance
        told = before.get(id(document)) or (document, described(document))
        self._told[id(document)] = told
        return told[1], LeaseTimes(lease.registered, lease.renewed)

    def route(self, request: Request, now: int) -> Response:
        self._catch_up(now)
        if refused := self._refusal(request):
            return refused
        segments = [unquote(segment) for segment in request.path.strip("/").split("/")]
        is_json = "json" in request.headers.get("content-type", "").lower()
        match request.method, segments if "//" not in request.path else ["//"]:
            case _, ["//"]:
                return self.error(request, 404)
            case "GET", [""]:
                return Response(status=200, body=_DASHBOARD, content_type="text/html;charset=UTF-8")
            case "GET", [
                "eureka",
                "instances",
                id_,
            ]:  # `getInstancesById`: the first application that has it
                found = (self.registry.find(app, id_, now=now) for app in self.registry.leases)
                return self.instance(request, next(filter(None, found), None))
            case "GET", ["eureka", "status"] if "xml" not in request.headers.get("accept", "xml"):
                return self.error(request, 500)  # the JSON codec does not know its class
            case "PUT" | "DELETE", ["eureka", "apps", app, instance_id, "status"]:
                return self._override(request, app.upper(), instance_id, now)
            case "PUT", ["eureka", "apps", app, instance_id]:
                return self._renew(request, app.upper(), instance_id, now)
            case "POST", ["eureka", "apps", _] if "content-type" not in request.headers:
                return self.error(request, 500)
            case "POST", ["eureka", "apps", _] | ["eureka", "peerreplication", "batch"] if (
                not is_json
            ):
                return self.error(request, 415)
        try:
            return super().route(request, now)
        except (ValueError, TypeError, LookupError):
            return Response(status=400, body=b'{"error": "cannot parse request body"}')

    def read(self, given: Document, now: int) -> Document:
        """With the server's own defaults, and a refusal of what cannot be read."""
        return parse_instance(given, now_ms=now)

    def register(self, instance: Document, app: str, now: int) -> Response:
        """A 400 for one that lacks something, or is of another application."""
        if wrong := complaint(instance, app):
            return Response(status=400, body=wrong.encode())
        return super().register(instance, app, now)

    def replicated(self, item: Document, now: int) -> int:
        if item.get("action") not in (*_ACTIONS, None):
            raise ValueError("it cannot be read")
        if item.get("action") == "StatusUpdate":  # a change is a 500: the program never sends one
            known = self.registry.find(item["appName"], item["id"], now=now)
            return 404 if known is None else 500
        return super().replicated(item, now)

    def _renew(self, request: Request, app: str, instance_id: str, now: int) -> Response:
        """`InstanceResource.renewLease`: a newer `lastDirtyTimestamp` is a 404, with the lease
        renewed all the same. A peer that sent an older one gets a 409 with the instance."""
        if not self.registry.renew(app, instance_id, now=now):
            return self.error(request, 404)
        known = self.registry.find(app, instance_id, now=now)
        if known is None or "lastDirtyTimestamp" not in request.query:
            return Response(status=200)
        sent, stored = int(request.query["lastDirtyTimestamp"]), int(known["lastDirtyTimestamp"])
        if sent > stored:
            return self.error(request, 404)
        if sent < stored and request.headers.get(OF_A_PEER) == "true":
            return replace(self.instance(request, known), status=409)
        return Response(status=200)

    def error(self, request: Request, status: int) -> Response:
        """Spring Boot's `BasicErrorController`."""
        error = {
            "timestamp": datetime.fromtimestamp(self.now(), UTC).isoformat(timespec="milliseconds")[
                :-6
            ]
            + "Z",
            "status": status,
            "error": HTTPStatus(status).phrase,
            "path": request.path,
        }
        return Response(status=status, body=json.dumps(error, separators=(",", ":")).encode())

    def _load(self, app: str) -> Payload:
        """`ResponseCacheImpl.generatePayload`."""
        found = self.registry.applications()
        if app == ALL:
            return Payload(lambda: msgspec.json.encode({"applications": applications(found)}))
        if app not in found:
            return Payload(None)
        return Payload(lambda: msgspec.json.encode({"application": application(app, found[app])}))

    def list_(self, request: Request, app: str, now: int) -> Response:
        """Through the cache, and compressed for who takes it."""
        if self.warming_up:
            return self.error(request, 403)
        payload = self._cache.get(app, now)
        if payload.plain is None:
            return self.error(request, 404)
        if app == ALL and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(status=200, body=payload.gzipped, headers={"Content-Encoding": "gzip"})
        return Response(status=200, body=payload.plain)

    def _catch_up(self, now: int) -> None:
        while self._next_eviction <= now:
            self._cache.catch_up(self._next_eviction)
            self.registry.evict(self._next_eviction)
            self._next_eviction += self._eviction_interval
        self._cache.catch_up(now)

    def _refusal(self, request: Request) -> Response | None:
        """A 401, or the 403 of a write."""
        if self.refuse_writes and request.method != "GET":
            # `CsrfFilter` answers 403 before it looks at a login; the error page asks for one
            # again, and that is a 401.
            return self.error(request, 403) if self.credentials is None else _ask_for_login()
        if self.credentials is not None:
            expected = "Basic " + base64.b64encode(":".join(self.credentials).encode()).decode()
            if request.headers.get("authorization") != expected:
                return _ask_for_login()
        return None

    def _override(self, request: Request, app: str, instance_id: str, now: int) -> Response:
        """`InstanceResource.statusUpdate` and `deleteStatusUpdate`: a bad value is a 500."""
        if self.registry.find(app, instance_id, now=now) is None:
            return self.error(request, 404)
        default = Status.UNKNOWN.value if request.method == "DELETE" else None
        value = request.query.get("value", default)
        if value not in tuple(Status):
            return self.error(request, 500)
        change = (
            self.registry.override_status
            if request.method == "PUT"
            else self.registry.delete_override
        )
        change(
            app,
            instance_id,
            Status(value),
            dirty=int(request.query.get("lastDirtyTimestamp", "0")),
            now=now,
        )
        return Response(status=200)


def _ask_for_login() -> Response:
    return Response(status=401, headers={"WWW-Authenticate": 'Basic realm="Realm"'})
