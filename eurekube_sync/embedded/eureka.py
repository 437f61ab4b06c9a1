"""A small Eureka server in memory, for the demo and as the ground of the tests' own: instances are registered, renewed,
cancelled and listed. It answers in JSON alone, `GET /status` aside.

Paths, status codes and headers are those of Netflix's resources and Spring Boot; `tests/contract` holds them to the
real server. Its lists are never stale, as with `useReadOnlyResponseCache=false`, and no lease ends: with as few clients
as a demo has, self-preservation keeps them all. `tests/embedded` adds the cache, evictions, overrides and a login.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote
from xml.sax.saxutils import escape

import msgspec

from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.embedded.instances import (
    Applications,
    Document,
    InstanceInfo,
    LeaseTimes,
    Listed,
    Status,
    application_document,
    applications_document,
    instance_document,
    parse_instance,
)

_STATUS = (
    "<com.netflix.eureka.util.StatusInfo><applicationStats><registered-replicas>{replicas}</registered-replicas>"
    "</applicationStats><instanceInfo><instanceId>{name}:eureka-server:{port}</instanceId><hostName>{name}</hostName>"
    "<app>EUREKA-SERVER</app><status>UP</status></instanceInfo></com.netflix.eureka.util.StatusInfo>"
)
"""As XStream writes `StatusInfo`, with what a client reads of it."""


@dataclass(slots=True, kw_only=True)
class Lease:
    """`Lease`, of `duration` milliseconds."""

    instance: InstanceInfo
    duration: int
    times: LeaseTimes

    def renew(self, now: int) -> None:
        """`renew`: sets the time to now **plus** the duration."""
        self.times.renewed = now + self.duration

    def listed(self) -> Listed:
        """As it is now."""
        return self.instance, copy(self.times)


class LeaseRegistry:
    """`AbstractInstanceRegistry`: all leases by application and id. It is told the time, in milliseconds."""

    def __init__(self) -> None:
        self.leases: dict[str, dict[str, Lease]] = {}

    def register(self, instance: InstanceInfo, *, now: int) -> None:
        """`register`: an older `lastDirtyTimestamp` keeps the instance that is there."""
        existing = self.lease(instance.app, instance.id)
        duration = instance.lease.duration * 1000
        times = LeaseTimes(registered=now, renewed=now, service_up=existing.times.service_up if existing else 0)
        if existing and existing.instance.last_dirty > instance.last_dirty:
            instance = existing.instance
        instance = msgspec.structs.replace(self.judged(instance, existing), action="ADDED", last_updated=now)
        if instance.status is Status.UP and times.service_up == 0:
            times.service_up = now
        lease = Lease(instance=instance, duration=duration, times=times)
        self.leases.setdefault(instance.app, {})[instance.id] = lease

    def judged(self, instance: InstanceInfo, existing: Lease | None) -> InstanceInfo:
        """The instance with the status that it gets; here it is what the client says."""
        return instance

    def renew(self, app: str, instance_id: str, *, now: int) -> bool:
        """`renew`: false when there is no lease."""
        lease = self.lease(app, instance_id)
        if lease is not None:
            lease.renew(now)
        return lease is not None

    def cancel(self, app: str, instance_id: str, *, now: int) -> bool:
        """`internalCancel`: false when there is no lease."""
        return self.leases.get(app, {}).pop(instance_id, None) is not None

    def lease(self, app: str, instance_id: str) -> Lease | None:
        """The lease of an instance."""
        return self.leases.get(app, {}).get(instance_id)

    def find(self, app: str, instance_id: str, *, now: int) -> Listed | None:
        """`getInstanceByAppAndId`."""
        lease = self.lease(app, instance_id)
        return lease.listed() if lease else None

    def application(self, app: str) -> tuple[Listed, ...]:
        """`getApplication`: empty when there is none."""
        return tuple(lease.listed() for lease in self.leases.get(app, {}).values())

    def applications(self) -> Applications:
        """`getApplications`: those that have an instance."""
        return tuple((app, self.application(app)) for app, leases in self.leases.items() if leases)


class _Replicated(msgspec.Struct):
    """`ReplicationInstance`, as far as it is acted on; what is missing is None."""

    action: Literal["Heartbeat", "Register", "Cancel", "StatusUpdate", "DeleteStatusOverride"] | None = None
    app: str | None = msgspec.field(name="appName", default=None)
    id: str | None = None
    instance: Any = msgspec.field(name="instanceInfo", default=None)
    """An `InstanceInfo`, once it is read."""


class _Batch(msgspec.Struct):
    items: list[_Replicated] = msgspec.field(name="replicationList")


class EmbeddedEureka:
    """A Eureka server in one object, for one thread or many. `now` is seconds since the epoch."""

    replicas: tuple[str, ...] = ()
    """The URLs that its status names. It sends them nothing."""

    def __init__(self, now: Callable[[], float], registry: LeaseRegistry | None = None) -> None:
        self.now = now
        self.registry = registry or LeaseRegistry()
        self.lock = threading.Lock()

    def handle(self, request: Request) -> Response:
        """Answer one request."""
        with self.lock:
            try:
                return self.route(request, self.milliseconds())
            except (ValueError, TypeError):
                return self.error(request, 500)

    def milliseconds(self) -> int:
        """What the registry is told of the time."""
        return int(self.now() * 1000)

    def route(self, request: Request, now: int) -> Response:
        """Answer at this time; ValueError or TypeError for a 500."""
        segments = [unquote(segment) for segment in request.path.strip("/").split("/")]
        match request.method, segments:
            case "GET", ["eureka", "apps", *app] if len(app) < 2:
                return self.list_(request, app[0].upper() if app else "", now)
            case "GET", ["eureka", "status"]:
                return self._status(request)
            case "GET", ["eureka", "apps", app, id_]:
                return self.instance(request, self.registry.find(app.upper(), id_, now=now))
            case "POST", ["eureka", "peerreplication", "batch"]:
                return self._batch(request.body, now)
            case "POST", ["eureka", "apps", app]:
                return self._register(request, app.upper(), now)
            case "PUT", ["eureka", "apps", app, id_]:
                renewed = self.registry.renew(app.upper(), id_, now=now)
                return Response(status=200) if renewed else self.error(request, 404)
            case "DELETE", ["eureka", "apps", app, id_]:
                gone = self.registry.cancel(app.upper(), id_, now=now)
                return Response(status=200) if gone else self.error(request, 404)
            case _, ["eureka", "apps", *_] | ["eureka", "peerreplication", "batch"]:
                return self.error(request, 405)
        return self.error(request, 404)

    def list_(self, request: Request, app: str, now: int) -> Response:
        """All that is registered, or one application (`ApplicationsResource`, `ApplicationResource`)."""
        if not app:
            found = applications_document(self.registry.applications())
            return Response(status=200, body=in_json("applications", found))
        instances = self.registry.application(app)
        if not instances:
            return self.error(request, 404)
        return Response(status=200, body=in_json("application", application_document(app, instances)))

    def instance(self, request: Request, listed: Listed | None) -> Response:
        """One instance, or a 404."""
        if listed is None:
            return self.error(request, 404)
        return Response(status=200, body=in_json("instance", instance_document(listed)))

    def _register(self, request: Request, app: str, now: int) -> Response:
        """`ApplicationResource.addInstance`."""
        root = json.loads(request.body)
        if not isinstance(root, dict) or list(root) != ["instance"]:
            raise ValueError("the root is not an instance")
        instance = parse_instance(root["instance"], now_ms=now)
        if wrong := instance.complaint(app):
            return Response(status=400, body=wrong.encode())
        self.registry.register(instance, now=now)
        return Response(status=204)

    def _status(self, request: Request) -> Response:
        """`StatusResource.getStatusInfo`: XML alone."""
        name, _, port = request.headers.get("host", "localhost").partition(":")
        replicas = escape(", ".join(self.replicas))
        body = _STATUS.format(replicas=replicas, name=escape(name), port=escape(port or "80"))
        return Response(status=200, body=body.encode(), content_type="application/xml")

    def _batch(self, body: bytes, now: int) -> Response:
        """`PeerReplicationResource.batchReplication`: each item by itself; a registration that is refused is a 200."""
        items = msgspec.json.decode(body, type=_Batch).items
        for item in items:
            if item.instance is not None:
                item.instance = parse_instance(item.instance, now_ms=now)
        answers = [{"statusCode": self._replicated(item, now)} for item in items]
        return Response(status=200, body=msgspec.json.encode({"responseList": answers}))

    def _replicated(self, item: _Replicated, now: int) -> int:
        """The status code of one item; 500 also for a change of status, which nothing sends with one."""
        match item.action:
            case "Heartbeat" if item.app and item.id:
                return 200 if self.registry.renew(item.app, item.id, now=now) else 404
            case "Cancel" if item.app and item.id:
                return 200 if self.registry.cancel(item.app, item.id, now=now) else 404
            case "Register" if item.instance is not None:
                if not item.instance.complaint(item.app or ""):
                    self.registry.register(item.instance, now=now)
                return 200
            case "StatusUpdate" if item.app and item.id and self.registry.find(item.app, item.id, now=now) is None:
                return 404
        return 500

    def error(self, request: Request, status: int) -> Response:
        """A refusal."""
        return Response(status=status)


def in_json(root: str, document: Document) -> bytes:
    """The document under its root name, without spaces."""
    return json.dumps({root: document}, ensure_ascii=False, separators=(",", ":")).encode()
