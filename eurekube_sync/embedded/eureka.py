"""A small Eureka server in memory, for the demo: it registers, renews, cancels and lists instances.
All answers are JSON, except that of `GET /status`.

Paths, status codes and headers are those of Netflix's resources and Spring Boot; `tests/contract`
compares them with the real server. Lists are never stale, as with `useReadOnlyResponseCache=false`.
No lease expires: a demo has so few clients that self-preservation would keep them all.
`tests/embedded` adds the cache, evictions, overrides and a login.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from typing import Any
from urllib.parse import unquote
from xml.sax.saxutils import escape

import msgspec

from eurekube_sync.embedded.http import Request, Response

Document = dict[str, Any]
"""An instance in Eureka's JSON; never changed in place. Times are milliseconds since the epoch.
Those of the last changes are text."""
Applications = dict[str, list[Document]]  # the instances of each application, by its name

_STATUS = (
    "<com.netflix.eureka.util.StatusInfo><applicationStats><registered-replicas>{replicas}</registered-replicas>"
    "</applicationStats><instanceInfo><instanceId>{name}:eureka-server:{port}</instanceId><hostName>{name}</hostName>"
    "<app>EUREKA-SERVER</app><status>UP</status></instanceInfo></com.netflix.eureka.util.StatusInfo>"
)
"""`StatusInfo` as XStream writes it, with only the fields that clients read."""


class Lease(msgspec.Struct, kw_only=True):
    """`Lease`: it expires `duration` milliseconds after `renewed`."""

    instance: Document
    duration: int
    registered: int
    renewed: (
        int  # the last renewal **plus** the duration, as in Eureka; until then, the registration
    )
    service_up: int = 0

    def renew(self, now: int) -> None:
        """`renew`: set the time to now **plus** the duration."""
        self.renewed = now + self.duration

    def listed(self) -> Document:
        """The current instance, in the form of `InstanceInfoSerializer`."""
        times = {
            "registrationTimestamp": self.registered,
            "lastRenewalTimestamp": self.renewed,
            "evictionTimestamp": 0,
            "serviceUpTimestamp": self.service_up,
        }
        return {
            **self.instance,
            "leaseInfo": self.instance["leaseInfo"] | times,
            "isCoordinatingDiscoveryServer": "false",
        }


class LeaseRegistry:
    """`AbstractInstanceRegistry`: all leases by application and id. `now` is always in
    milliseconds."""

    def __init__(self) -> None:
        self.leases: dict[str, dict[str, Lease]] = {}

    def register(self, instance: Document, *, now: int) -> None:
        """`register`: replace an instance unless the new one has an older `lastDirtyTimestamp`."""
        app, id_ = instance["app"], id_of(instance)
        duration = instance["leaseInfo"]["durationInSecs"] * 1000
        existing = self.lease(app, id_)
        if existing and int(existing.instance["lastDirtyTimestamp"]) > int(
            instance["lastDirtyTimestamp"]
        ):
            instance = existing.instance
        instance = {
            **self.judged(instance, existing),
            "actionType": "ADDED",
            "lastUpdatedTimestamp": str(now),
        }
        service_up = existing.service_up if existing else 0
        if instance["status"] == "UP" and service_up == 0:
            service_up = now
        lease = Lease(
            instance=instance, duration=duration, registered=now, renewed=now, service_up=service_up
        )
        self.leases.setdefault(app, {})[id_] = lease

    def judged(self, instance: Document, existing: Lease | None) -> Document:
        """Return the instance with its effective status; here the one that the client sent."""
        return instance

    def renew(self, app: str, instance_id: str, *, now: int) -> bool:
        """`renew`: false if there is no lease."""
        lease = self.lease(app, instance_id)
        if lease is not None:
            lease.renew(now)
        return lease is not None

    def cancel(self, app: str, instance_id: str) -> bool:
        """`internalCancel`: false if there is no lease."""
        return self.leases.get(app, {}).pop(instance_id, None) is not None

    def lease(self, app: str, instance_id: str) -> Lease | None:
        return self.leases.get(app, {}).get(instance_id)

    def find(self, app: str, instance_id: str, *, now: int) -> Document | None:
        """`getInstanceByAppAndId`."""
        lease = self.lease(app, instance_id)
        return lease.listed() if lease else None

    def applications(self) -> Applications:
        """`getApplications`: the applications that have an instance."""
        return {
            app: [one.listed() for one in leases.values()]
            for app, leases in self.leases.items()
            if leases
        }


def id_of(instance: Document) -> str:
    """Return the instance's id, or its host name if the id is empty (`InstanceInfo.getId`)."""
    found: str = instance.get("instanceId") or instance["hostName"]
    return found


class EmbeddedEureka:
    """A Eureka server that several threads may call. `now` returns seconds since the epoch."""

    replicas: tuple[
        str, ...
    ] = ()  # the URLs that `GET /status` names; nothing is replicated to them

    def __init__(self, now: Callable[[], float], registry: LeaseRegistry | None = None) -> None:
        self.now = now
        self.registry = registry or LeaseRegistry()
        self.lock = threading.Lock()

    def handle(self, request: Request) -> Response:
        """Answer one request, with the time of this server."""
        with self.lock:
            try:
                response = self.route(request, self.milliseconds())
            except (ValueError, TypeError, LookupError):
                response = self.error(request, 500)
        date = formatdate(self.now(), usegmt=True)
        return replace(response, headers={"Date": date, **response.headers})

    def milliseconds(self) -> int:
        return int(self.now() * 1000)

    def route(self, request: Request, now: int) -> Response:
        """Answer a request. ValueError, TypeError and LookupError become a 500."""
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
                instance = self.read(msgspec.json.decode(request.body)["instance"], now)
                return self.register(instance, app.upper(), now)
            case "PUT", ["eureka", "apps", app, id_]:
                renewed = self.registry.renew(app.upper(), id_, now=now)
                return Response(status=200) if renewed else self.error(request, 404)
            case "DELETE", ["eureka", "apps", app, id_]:
                cancelled = self.registry.cancel(app.upper(), id_)
                return Response(status=200) if cancelled else self.error(request, 404)
            case _, ["eureka", "apps", *_] | ["eureka", "peerreplication", "batch"]:
                return self.error(request, 405)
        return self.error(request, 404)

    def list_(self, request: Request, app: str, now: int) -> Response:
        """List all applications, or one (`ApplicationsResource`, `ApplicationResource`)."""
        found = self.registry.applications()
        if app and app not in found:
            return self.error(request, 404)
        return _json(
            {"application": application(app, found[app])}
            if app
            else {"applications": applications(found)}
        )

    def instance(self, request: Request, found: Document | None) -> Response:
        """Answer with an instance, or with a 404."""
        return self.error(request, 404) if found is None else _json({"instance": found})

    def read(self, given: Document, now: int) -> Document:
        """Fill in the fields that a client left out. Raises TypeError or ValueError for values that
        would break later reads."""
        lease = {"renewalIntervalInSecs": 30, "durationInSecs": 90, **given.get("leaseInfo", {})}
        lease = {name: int(value) for name, value in lease.items()}
        defaults = {"status": "UP", "metadata": {}, "lastDirtyTimestamp": str(now)}
        made = {**defaults, **given, "leaseInfo": lease}
        int(made["lastDirtyTimestamp"]), hash(made["status"])
        return made

    def register(self, instance: Document, app: str, now: int) -> Response:
        """`ApplicationResource.addInstance`."""
        self.registry.register(instance, now=now)
        return Response(status=204)

    def _status(self, request: Request) -> Response:
        """`StatusResource.getStatusInfo`: in XML only."""
        name, _, port = request.headers.get("host", "localhost").partition(":")
        replicas = escape(", ".join(self.replicas))
        body = _STATUS.format(replicas=replicas, name=escape(name), port=escape(port or "80"))
        return Response(status=200, body=body.encode(), content_type="application/xml")

    def _batch(self, body: bytes, now: int) -> Response:
        """`PeerReplicationResource.batchReplication`: answer each item; 200 also if a registration
        is refused."""
        items = msgspec.json.decode(body)["replicationList"]
        for item in items:
            if item.get("instanceInfo"):
                item["instanceInfo"] = self.read(item["instanceInfo"], now)
        return _json({"responseList": [self.reply(item, now) for item in items]})

    def reply(self, item: Document, now: int) -> Document:
        """Apply one item; return its status code, and the instance that the server tells another
        one."""
        status = self.replicated(item, now)
        if (
            item.get("action") != "Heartbeat"
            or status != 200
            or item.get("lastDirtyTimestamp") is None
        ):
            return {"statusCode": status}
        # `validateDirtyTimestamp`
        sent, found = (
            int(item["lastDirtyTimestamp"]),
            self.registry.find(item["appName"], item["id"], now=now),
        )
        stored = int(found["lastDirtyTimestamp"]) if found else sent
        if sent < stored:
            return {"statusCode": 409, "responseEntity": found}
        return {"statusCode": 404 if sent > stored else 200}

    def replicated(self, item: Document, now: int) -> int:
        """Apply one item and return its status code. A change of status is a 500: the program never
        sends one."""
        match item:
            case {"action": "Heartbeat", "appName": app, "id": id_}:
                return 200 if self.registry.renew(app, id_, now=now) else 404
            case {"action": "Cancel", "appName": app, "id": id_}:
                return 200 if self.registry.cancel(app, id_) else 404
            case {"action": "Register", "appName": app, "instanceInfo": instance}:
                self.register(instance, app, now)
                return 200
            case {"action": "StatusUpdate", "appName": app, "id": id_} if not self.registry.find(
                app, id_, now=now
            ):
                return 404
        return 500

    def error(self, request: Request, status: int) -> Response:
        return Response(status=status)


def application(name: str, instances: list[Document]) -> Document:
    """`ApplicationSerializer`: with an array, even for one instance."""
    return {"name": name, "instance": instances}


def applications(found: Applications) -> Document:
    """`ApplicationsSerializer`, which escapes names as `versions__delta` and `apps__hashcode`. The
    hash code has the count of each status, sorted by name, as in `DOWN_1_UP_2_`
    (`Applications.getReconcileHashCode`)."""
    counts = Counter(one["status"] for instances in found.values() for one in instances)
    return {
        "versions__delta": "1",
        "apps__hashcode": "".join(f"{status}_{count}_" for status, count in sorted(counts.items())),
        "application": [application(name, instances) for name, instances in found.items()],
    }


def _json(document: Document) -> Response:
    return Response(status=200, body=msgspec.json.encode(document))
