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
from email.utils import formatdate
from typing import Any
from urllib.parse import unquote
from xml.sax.saxutils import escape

import msgspec
from msgspec.structs import replace  # this folder imports no other of ours

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
    renewed: int
    """The last renewal **plus** the duration, as in Eureka; until then, the registration."""
    service_up: int = 0

    def renew(self, now: int) -> None:
        """`renew`: set the time to now **plus** the duration."""
        self.renewed = now + self.duration

    def listed(self) -> Document:
        """Return the current instance in the form of `InstanceInfoSerializer`."""
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
        service_up = 0
        if existing is not None:
            service_up = existing.service_up
            if _dirty(existing.instance) > _dirty(instance):
                instance = existing.instance
        instance = self.judged(instance, existing)
        instance |= {"actionType": "ADDED", "lastUpdatedTimestamp": str(now)}
        if instance["status"] == "UP" and service_up == 0:
            service_up = now
        self.leases.setdefault(app, {})[id_] = Lease(
            instance=instance,
            duration=duration,
            registered=now,
            renewed=now,
            service_up=service_up,
        )

    def judged(self, instance: Document, existing: Lease | None) -> Document:
        """Return a copy of the instance with its effective status; here the one that the client
        sent."""
        return dict(instance)

    def renew(self, app: str, instance_id: str, *, now: int) -> bool:
        """`renew`: false if there is no lease."""
        lease = self.lease(app, instance_id)
        if lease is None:
            return False
        lease.renew(now)
        return True

    def cancel(self, app: str, instance_id: str) -> bool:
        """`internalCancel`: false if there is no lease."""
        return self.leases.get(app, {}).pop(instance_id, None) is not None

    def lease(self, app: str, instance_id: str) -> Lease | None:
        return self.leases.get(app, {}).get(instance_id)

    def find(self, app: str, instance_id: str, *, now: int) -> Document | None:
        """`getInstanceByAppAndId`."""
        lease = self.lease(app, instance_id)
        if lease:
            return lease.listed()
        return None

    def applications(self) -> Applications:
        """`getApplications`: the applications that have an instance."""
        listed: Applications = {}
        for app, leases in self.leases.items():
            if leases:
                listed[app] = [lease.listed() for lease in leases.values()]
        return listed


def id_of(instance: Document) -> str:
    """Return the instance's id, or its host name if the id is empty (`InstanceInfo.getId`)."""
    id_: str = instance.get("instanceId") or instance["hostName"]
    return id_


def _dirty(instance: Document) -> int:
    return int(instance["lastDirtyTimestamp"])


class EmbeddedEureka:
    """A Eureka server that several threads may call. `now` returns seconds since the epoch."""

    replicas: tuple[str, ...] = ()
    """The URLs that `GET /status` names; nothing is replicated to them."""

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
            case "GET", ["eureka", "status"]:
                return self._status(request)
            case "GET", ["eureka", "apps"]:
                return self.list_(request, "", now)
            case "GET", ["eureka", "apps", app]:
                return self.list_(request, app.upper(), now)
            case "POST", ["eureka", "apps", app]:
                instance = self.read(msgspec.json.decode(request.body)["instance"], now)
                return self.register(instance, app.upper(), now)
            case method, ["eureka", "apps", app, id_] if method in ("GET", "PUT", "DELETE"):
                return self._on_instance(request, app.upper(), id_, now)
            case "POST", ["eureka", "peerreplication", "batch"]:
                return self._batch(request.body, now)
            case _, ["eureka", "apps", *_] | ["eureka", "peerreplication", "batch"]:
                return self.error(request, 405)
        return self.error(request, 404)

    def _on_instance(self, request: Request, app: str, id_: str, now: int) -> Response:
        """`InstanceResource`: read, renew or cancel."""
        if request.method == "GET":
            return self.instance(request, self.registry.find(app, id_, now=now))
        if request.method == "PUT":
            there = self.registry.renew(app, id_, now=now)
        else:
            there = self.registry.cancel(app, id_)
        if there:
            return Response(status=200)
        return self.error(request, 404)

    def list_(self, request: Request, app: str, now: int) -> Response:
        """List all applications, or one (`ApplicationsResource`, `ApplicationResource`)."""
        listed = self.registry.applications()
        if not app:
            return _json({"applications": applications(listed)})
        if app not in listed:
            return self.error(request, 404)
        return _json({"application": application(app, listed[app])})

    def instance(self, request: Request, document: Document | None) -> Response:
        """Answer with an instance, or with a 404."""
        if document is None:
            return self.error(request, 404)
        return _json({"instance": document})

    def read(self, given: Document, now: int) -> Document:
        """Fill in the fields that a client left out. Raises TypeError or ValueError for values that
        would break later reads."""
        lease = {"renewalIntervalInSecs": 30, "durationInSecs": 90, **given.get("leaseInfo", {})}
        instance = {
            "status": "UP",
            "metadata": {},
            "lastDirtyTimestamp": str(now),
            **given,
            "leaseInfo": {name: int(value) for name, value in lease.items()},
        }
        _dirty(instance)
        hash(instance["status"])
        return instance

    def register(self, instance: Document, app: str, now: int) -> Response:
        """`ApplicationResource.addInstance`. Of its checks, `eurekube-sync check` relies on this
        one."""
        if not instance.get("hostName"):
            return Response(status=400, body=b"Missing hostname")
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
        for item in items:  # all are read before one is applied
            if item.get("instanceInfo"):
                item["instanceInfo"] = self.read(item["instanceInfo"], now)
        answers = [self.reply(item, now) for item in items]
        return _json({"responseList": answers})

    def reply(self, item: Document, now: int) -> Document:
        """Apply one item; return its status code, and the instance that the server tells another
        one."""
        status = self.replicated(item, now)
        dated = item.get("lastDirtyTimestamp")
        if item.get("action") != "Heartbeat" or status != 200 or dated is None:
            return {"statusCode": status}
        # `validateDirtyTimestamp`
        sent = int(dated)
        instance = self.registry.find(item["appName"], item["id"], now=now)
        stored = int(instance["lastDirtyTimestamp"]) if instance else sent
        if sent < stored:
            return {"statusCode": 409, "responseEntity": instance}
        return {"statusCode": 404 if sent > stored else 200}

    def replicated(self, item: Document, now: int) -> int:
        """Apply one item and return its status code: a 500 for what the program never sends."""
        match item:
            case {"action": "Heartbeat", "appName": app, "id": id_}:
                if self.registry.renew(app, id_, now=now):
                    return 200
                return 404
            case {"action": "Cancel", "appName": app, "id": id_}:
                if self.registry.cancel(app, id_):
                    return 200
                return 404
            case {"action": "Register", "appName": app, "instanceInfo": instance}:
                self.register(instance, app, now)
                return 200
        return 500

    def error(self, request: Request, status: int) -> Response:
        return Response(status=status)


def application(name: str, instances: list[Document]) -> Document:
    """`ApplicationSerializer`: with an array, even for one instance."""
    return {"name": name, "instance": instances}


def applications(listed: Applications) -> Document:
    """`ApplicationsSerializer`, which escapes names as `versions__delta` and `apps__hashcode`. The
    hash code has the count of each status, sorted by name, as in `DOWN_1_UP_2_`
    (`Applications.getReconcileHashCode`)."""
    counts: Counter[str] = Counter()
    for instances in listed.values():
        counts.update(instance["status"] for instance in instances)
    hash_code = "".join(f"{status}_{count}_" for status, count in sorted(counts.items()))
    return {
        "versions__delta": "1",
        "apps__hashcode": hash_code,
        "application": [application(name, instances) for name, instances in listed.items()],
    }


def _json(document: Document) -> Response:
    return Response(status=200, body=msgspec.json.encode(document))
