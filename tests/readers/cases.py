"""The table of what a reader has to find, and where one differs.

Each app is one way in which a syncer registers. Addresses are on the loopback, where nobody
listens: Prometheus and Spring Boot Admin call what they find.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

NAMESPACE = "readers"
HTTP, HTTPS = 8080, 8443
_METADATA = {"version": "2.1", "canary": "true", "note": "a & b"}


EUREKAS_CACHE = 30
"""Seconds for which Eureka answers with the same list."""
READERS: Mapping[str, Mapping[str, int]] = {
    "Spring Cloud LoadBalancer": {"list": 30, "cache": 35},
    "Spring Cloud Gateway": {"list": 30, "cache": 35},
    "Spring Boot Admin": {"list": 30},
    "Ribbon": {"list": 30, "servers": 30},
    "Feign": {"list": 30, "servers": 30},
    "Prometheus": {"list": 30, "targets": 5},
    "Prometheus, no relabelling": {"list": 30, "targets": 5},
    "py-eureka-client": {"list": 30},
    "py-eureka-client, prefer_https": {"list": 30},
    "eureka-js-client": {"list": 30},
    "fargo": {"app": 30},
}
"""By the name of each, what it refreshes, and every how many seconds it does so by itself."""


def longest(reader: str) -> int:
    """Return the seconds that a change may take at most from Eureka to a reader."""
    return EUREKAS_CACHE + sum(READERS[reader].values())


@dataclass(frozen=True, kw_only=True)
class Seen:
    """An instance as a reader would call it."""

    host: str
    port: int
    secure: bool
    """Whether it would call by https."""
    metadata: Mapping[str, Any] | None
    """None where the reader gives its callers none."""
    status: str | None
    """None where the reader does not tell."""


Apps: TypeAlias = Mapping[str, Sequence[Seen]]
"""By the name of the app, in lower case."""


@dataclass(frozen=True, kw_only=True)
class App:
    """A Service with a pod, and the syncer that registers it."""

    name: str
    address: str
    spec: Mapping[str, Any]

    def service(self) -> dict[str, Any]:
        """Return the Service: plain HTTP, and HTTPS where the syncer uses it."""
        ports = [{"name": "http", "port": 80, "targetPort": HTTP}]
        if "securePort" in self.spec:
            ports.append({"name": "https", "port": 443, "targetPort": HTTPS})
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {
                "namespace": NAMESPACE,
                "name": self.name,
                "labels": {"app": self.name},
            },
            "spec": {"selector": {"app": self.name}, "ports": ports},
        }

    def syncer(self) -> dict[str, Any]:
        """Return the EurekaSyncer."""
        return {
            "apiVersion": "eurekube.io/v1",
            "kind": "EurekaSyncer",
            "metadata": {"namespace": NAMESPACE, "name": self.name},
            "spec": {"selector": {"app": self.name}, **self.spec},
        }


FULL = App(
    name="shop",
    address="127.0.0.11",
    spec={"paths": {"health": "/actuator/health"}, "metadata": _METADATA},
)
SECURE = App(
    name="pay",
    address="127.0.0.21",
    spec={"securePort": "https", "paths": {"health": "/actuator/health"}},
)
BOTH = App(
    name="mail",
    address="127.0.0.31",
    spec={"port": "http", "securePort": "https", "paths": {"health": "/actuator/health"}},
)
SMALLEST = App(name="stock", address="127.0.0.41", spec={})
APPS = (FULL, SECURE, BOTH, SMALLEST)
SECOND = "127.0.0.12"
"""The address of the pod of `FULL` that comes, becomes unready, and goes."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a reader has to find of the only instance of an app."""

    name: str
    app: App
    of: Callable[[Seen], object]
    expected: object

    def seen(self, apps: Apps) -> list[object]:
        """Return what a reader found, for each instance."""
        return [self.of(instance) for instance in apps.get(self.app.name, ())]

    def expected_of(self, reader: str) -> list[object]:
        """Return what a reader has to find, for each instance."""
        difference = DIFFERENCES.get((reader, self.name))
        return [self.expected] if difference is None else list(difference.seen)


def _given(instance: Seen) -> object:
    """Return the metadata of the syncer, without the program's own."""
    if instance.metadata is None:
        return None
    return {key: instance.metadata.get(key) for key in _METADATA}


CASES = (
    Case(name="address", app=FULL, of=lambda instance: instance.host, expected=FULL.address),
    Case(
        name="port",
        app=FULL,
        of=lambda instance: (instance.port, instance.secure),
        expected=(HTTP, False),
    ),
    Case(
        name="secure port",
        app=SECURE,
        of=lambda instance: (instance.port, instance.secure),
        expected=(HTTPS, True),
    ),
    Case(
        name="both ports",
        app=BOTH,
        of=lambda instance: (instance.port, instance.secure),
        expected=(HTTPS, True),
    ),
    Case(name="metadata", app=FULL, of=_given, expected=_METADATA),
    Case(name="status", app=FULL, of=lambda instance: instance.status, expected="UP"),
    Case(
        name="smallest syncer",
        app=SMALLEST,
        of=lambda instance: (instance.host, instance.port),
        expected=(SMALLEST.address, HTTP),
    ),
)
REGISTERED, CANCELLED, DOWN = CHANGES = ("registered", "cancelled", "DOWN")
"""What happens to the second instance of `FULL`."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Where a reader finds something else, which docs/readers.md tells."""

    seen: Sequence[object]
    cell: str
    """Of the page's table."""


_UP_ONLY = Difference(seen=[None], cell="UP only")
_ESCAPED = Difference(seen=[{**_METADATA, "note": "a &amp; b"}], cell="`&`, `<`, `>` stay escaped")
DIFFERENCES: Mapping[tuple[str, str], Difference] = {
    ("Spring Cloud Gateway", "status"): _UP_ONLY,
    ("Spring Boot Admin", "status"): _UP_ONLY,
    ("Spring Boot Admin", "smallest syncer"): Difference(seen=[], cell="needs `paths.health`"),
    ("Ribbon", "status"): _UP_ONLY,
    ("Feign", "metadata"): Difference(seen=[None], cell="no"),
    ("Feign", "status"): _UP_ONLY,
    ("Prometheus", "metadata"): _ESCAPED,
    ("Prometheus, no relabelling", "secure port"): Difference(
        seen=[(HTTPS, False)], cell="by http"
    ),
    ("Prometheus, no relabelling", "both ports"): Difference(
        seen=[(HTTP, False)], cell="the plain one"
    ),
    ("Prometheus, no relabelling", "metadata"): _ESCAPED,
    ("py-eureka-client", "secure port"): Difference(seen=[(HTTPS, False)], cell="by http"),
    ("py-eureka-client", "both ports"): Difference(seen=[(HTTP, False)], cell="the plain one"),
    ("fargo", "metadata"): Difference(
        seen=[{**_METADATA, "version": 2.1, "canary": True}], cell="`2.1` is a number"
    ),
}
