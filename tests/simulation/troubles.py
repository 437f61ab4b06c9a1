"""Troubles of outgoing calls. A trouble waits for calls of one kind, from a moment on, and strikes
some."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from eurekube_sync.embedded.http import Request


class Kind(StrEnum):
    """How it strikes, and whether before or after the call's effect."""

    TIMEOUT_BEFORE = "times out, without effect"
    TIMEOUT_AFTER = "times out, after its effect"
    LATE = "times out, and has its effect seconds later"
    REFUSED = "is refused the connection"
    RESET_AFTER = "loses its connection after its effect"
    ERROR_503 = "is answered 503"
    ERROR_500_AFTER = "is answered 500, after its effect"
    FORBIDDEN = "is answered 403"
    EMPTY = "is answered with nothing"
    CUT = "is answered with half of the answer"
    PAGE = "is answered with a web page"
    OLDER = "is answered as it was a while ago"
    GONE_410 = "is answered 410"
    ABSENT_404 = "is answered 404, as where an API is not installed"
    SLOW = "takes seconds"
    PAUSE_BEFORE = "waits, for the program is paused before it"
    PAUSE_AFTER = "is done, and the program is paused after it"
    KILL_BEFORE = "is never made: the program is killed"
    KILL_AFTER = "is the last: the program is killed after it"
    STOP = "is followed by a SIGTERM"

    @property
    def of_the_program(self) -> bool:
        """Whether the program's side fails, and not the server."""
        return self in _OF_THE_PROGRAM


_OF_THE_PROGRAM = frozenset(
    {Kind.PAUSE_BEFORE, Kind.PAUSE_AFTER, Kind.KILL_BEFORE, Kind.KILL_AFTER, Kind.STOP}
)


class Call(StrEnum):
    """The kinds of calls that the program makes."""

    LIST = "list of Eureka"
    READ = "read of an instance"
    REGISTER = "register"
    RENEW = "renewal"
    CANCEL = "cancel"
    IDENTITY = "read of the cluster's identity"
    SYNCERS = "list of syncers"
    SERVICES = "list of Services"
    SLICES = "list of slices"
    PODS = "list of pods"
    NODES = "list of nodes"
    INGRESSES = "list of Ingresses"
    REFERENCE_GRANTS = "list of ReferenceGrants"
    ROUTES = "list of HTTPRoutes"
    GATEWAYS = "list of Gateways"
    NAMESPACES = "read of namespaces"
    DEFINITION = "read of the CRD"
    FINALIZER = "patch of finalizers"
    STATUS = "patch of a status"
    GATE = "opening of a gate"
    EVENT = "event"
    IMPORTS = "list of imports"
    SLICE = "write of a slice"
    SERVICE = "write of a Service"
    OTHER = "other call"

    @property
    def to_eureka(self) -> bool:
        """Whether the call goes to Eureka, and not to Kubernetes."""
        return self in EUREKA_CALLS


EUREKA_CALLS = frozenset({Call.LIST, Call.READ, Call.REGISTER, Call.RENEW, Call.CANCEL})
KUBERNETES_CALLS = frozenset(set(Call) - EUREKA_CALLS - {Call.OTHER})
ALL_CALLS = frozenset(Call)
IMPORT_CALLS = frozenset({Call.IMPORTS, Call.SLICE, Call.SERVICE})
OF_GATEWAYS = (Call.ROUTES, Call.GATEWAYS, Call.REFERENCE_GRANTS)
_OF_FEW = frozenset({Call.NAMESPACES, Call.NODES, Call.INGRESSES, *OF_GATEWAYS})
USUAL_CALLS = ALL_CALLS - _OF_FEW - IMPORT_CALLS
"""The kinds of which random troubles choose: few stories have the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Strikes the calls of these kinds, from second `at`, after `skip` of them, `strikes` times, or
    until `until`."""

    at: float
    until: float
    calls: frozenset[Call]
    kind: Kind
    skip: int = 0
    strikes: int = 10**6
    seconds: float = 0.0
    """Seconds of a pause, a slow answer or a late effect."""
    peer: int | None = None
    """The Eureka server; None for any."""

    def __str__(self) -> str:
        what = "every call" if self.calls == ALL_CALLS else " or ".join(sorted(self.calls))
        if self.calls == EUREKA_CALLS:
            what = "every call to Eureka"
        elif self.calls == KUBERNETES_CALLS:
            what = "every call to Kubernetes"
        number = (
            "" if self.strikes > 1000 else f", {self.strikes} time{'s' if self.strikes > 1 else ''}"
        )
        after = f", after {self.skip} that went well" if self.skip else ""
        took = f" ({self.seconds:g} s)" if self.seconds else ""
        peer = "" if self.peer is None else f" to peer {self.peer + 1}"
        return f"until {self.until:.0f} s each {what}{peer} {self.kind}{took}{number}{after}"


def kind_of(request: Request) -> Call:
    """Gives the kind of a request. The kind of a batch is that of its first item."""
    path, method = request.path, request.method
    if path.endswith("/peerreplication/batch/"):
        action = next((item["action"] for item in batched(request)), "")
        return _BATCHED.get(action, Call.OTHER)
    if path.startswith("/eureka"):
        return _of_eureka(method, path)
    if path.endswith("/status"):
        return Call.GATE if "/pods/" in path else Call.STATUS
    if method == "PATCH" and ("/eurekasyncers/" in path or "/eurekaimports/" in path):
        return Call.FINALIZER
    if method != "GET" and "/endpointslices" in path:
        return Call.SLICE
    if method != "GET" and "/services" in path:
        return Call.SERVICE
    if "/events" in path:
        return Call.EVENT
    if path.endswith("/namespaces/kube-system"):
        return Call.IDENTITY
    if "/customresourcedefinitions/" in path:
        return Call.DEFINITION
    if method == "GET" and _NAMESPACES.fullmatch(path):
        return Call.NAMESPACES
    last = path.rsplit("/", 1)[-1]
    return _LISTS.get(last, Call.OTHER)


def batched(request: Request) -> list[dict[str, str]]:
    """Gives the items of a batch."""
    items: list[dict[str, str]] = msgspec.json.decode(request.body)["replicationList"]
    return items


_BATCHED = {
    "StatusUpdate": Call.READ,
    "Heartbeat": Call.RENEW,
    "Register": Call.REGISTER,
    "Cancel": Call.CANCEL,
}
_LISTS = {
    "eurekasyncers": Call.SYNCERS,
    "eurekaimports": Call.IMPORTS,
    "services": Call.SERVICES,
    "endpointslices": Call.SLICES,
    "pods": Call.PODS,
    "nodes": Call.NODES,
    "ingresses": Call.INGRESSES,
    "referencegrants": Call.REFERENCE_GRANTS,
    "httproutes": Call.ROUTES,
    "gateways": Call.GATEWAYS,
}
_NAMESPACES = re.compile(r"/api/v1/namespaces(/[^/]+)?")


def _of_eureka(method: str, path: str) -> Call:
    match method, path.strip("/").split("/"):
        case "GET", ["eureka", "apps"]:
            return Call.LIST
        case "GET", ["eureka", "apps", _, _]:
            return Call.READ
        case "POST", ["eureka", "apps", _]:
            return Call.REGISTER
        case "PUT", ["eureka", "apps", _, _]:
            return Call.RENEW
        case "DELETE", ["eureka", "apps", _, _]:
            return Call.CANCEL
    return Call.OTHER
