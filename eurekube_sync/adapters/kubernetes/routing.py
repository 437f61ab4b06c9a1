"""The API's JSON of what leads calls into the cluster: Ingresses, and the HTTPRoutes, Gateways and
ReferenceGrants of the Gateway API. As in `objects`, `read` makes values of `model`. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from eurekube_sync.adapters.kubernetes.objects import BalancerStatus, Conditions, Item, Wire
from eurekube_sync.model import kubernetes as model

_GROUP = "gateway.networking.k8s.io"


class _BackendPort(Wire):
    name: str = ""
    number: int = 0


class _BackendService(Wire):
    name: str
    port: _BackendPort | None = None


class _Backend(Wire):
    service: _BackendService | None = None  # None: a resource of another kind

    def path(self, host: str, path: str) -> Iterator[model.IngressPath]:
        if self.service is not None:
            port = self.service.port or _BackendPort()
            yield model.IngressPath(host, path, self.service.name, port.name or port.number)


class _Path(Wire):
    backend: _Backend
    path: str = ""


class _Http(Wire):
    paths: list[_Path]


class _Rule(Wire):
    host: str = ""
    http: _Http | None = None


class _Tls(Wire):
    hosts: list[str] | None = None


class _IngressSpec(Wire):
    default_backend: _Backend | None = None
    rules: list[_Rule] | None = None
    tls: list[_Tls] | None = None


class IngressItem(Item):
    spec: _IngressSpec | None = None
    status: BalancerStatus | None = None

    def read(self) -> model.Ingress:
        spec = self.spec or _IngressSpec()
        paths: list[model.IngressPath] = []
        if spec.default_backend is not None:
            paths += spec.default_backend.path("", "")
        for rule in spec.rules or ():
            if rule.http:
                for path in rule.http.paths:
                    paths += path.backend.path(rule.host, path.path)
        tls: list[str] = []
        for entry in spec.tls or ():
            tls += entry.hosts or [""]
        return model.Ingress(
            name=self.metadata.name,
            paths=tuple(paths),
            tls=tuple(tls),
            addresses=self.status.hosts() if self.status else (),
        )


class _ParentRef(Wire):
    name: str
    kind: str = "Gateway"
    namespace: str | None = None
    section_name: str | None = None
    port: int | None = None


class _ParentStatus(Conditions):
    parent_ref: _ParentRef | None = None


class _BackendRef(Wire):
    name: str
    kind: str = "Service"
    namespace: str | None = None
    port: int | None = None
    weight: int | None = None  # None: 1


class _PathMatch(Wire):
    value: str | None = None


class _Match(Wire):
    path: _PathMatch | None = None

    def value(self) -> str:
        """The path; without one, the match is of each path."""
        if self.path is None:
            return "/"
        return self.path.value or "/"


class _RouteRule(Wire):
    matches: list[_Match] | None = None
    backend_refs: list[_BackendRef] | None = None

    def paths(self, namespace: str) -> Iterator[model.RoutePath]:
        """Yield each path to each Service, of a route in the namespace. Without a match, it is each
        path."""
        values = [match.value() for match in self.matches or (_Match(),)]
        for ref in self.backend_refs or ():
            if ref.kind != "Service" or ref.weight == 0:
                continue
            of_service = ref.namespace or namespace
            for value in values:
                yield model.RoutePath(value, of_service, ref.name, ref.port or 0)


class _RouteSpec(Wire):
    parent_refs: list[_ParentRef] | None = None
    hostnames: list[str] | None = None
    rules: list[_RouteRule] | None = None


class _RouteStatus(Wire):
    parents: list[_ParentStatus] | None = None

    def accepts(self, ref: _ParentRef, namespace: str) -> bool:
        """Say whether the controller of a parent accepted the route for it."""
        for parent in self.parents or ():
            answered = parent.parent_ref
            if answered is None or answered.name != ref.name:
                continue
            same_place = (answered.namespace or namespace) == (ref.namespace or namespace)
            same_part = (answered.section_name, answered.port) == (ref.section_name, ref.port)
            if same_place and same_part and parent.is_true("Accepted"):
                return True
        return False


class RouteItem(Item):
    spec: _RouteSpec | None = None
    status: _RouteStatus | None = None

    def read(self) -> model.HttpRoute:
        spec, status = self.spec or _RouteSpec(), self.status or _RouteStatus()
        namespace = self.metadata.namespace
        parents: list[model.RouteParent] = []
        for ref in spec.parent_refs or ():
            if ref.kind == "Gateway":
                parents.append(
                    model.RouteParent(
                        namespace=ref.namespace or namespace,
                        name=ref.name,
                        section=ref.section_name or "",
                        port=ref.port,
                        accepted=status.accepts(ref, namespace),
                    )
                )
        paths: list[model.RoutePath] = []
        for rule in spec.rules or ():
            paths += rule.paths(namespace)
        return model.HttpRoute(
            namespace=namespace,
            name=self.metadata.name,
            hostnames=tuple(spec.hostnames or ()),
            parents=tuple(parents),
            paths=tuple(paths),
        )


class _GrantFrom(Wire):
    group: str
    kind: str
    namespace: str


class _GrantTo(Wire):
    group: str
    kind: str
    name: str | None = None  # None: each object of the kind


class _GrantSpec(Wire):
    from_: list[_GrantFrom] | None = msgspec.field(name="from", default=None)
    to: list[_GrantTo] | None = None


class GrantItem(Item):
    spec: _GrantSpec | None = None

    def read(self) -> model.ReferenceGrant | None:
        """Return the grant, or None for one that is not for HTTPRoutes to Services."""
        spec = self.spec or _GrantSpec()
        routes_of: set[str] = set()
        for given in spec.from_ or ():
            if (given.group, given.kind) == (_GROUP, "HTTPRoute"):
                routes_of.add(given.namespace)
        names: set[str] = set()
        for permitted in spec.to or ():
            if (permitted.group, permitted.kind) == ("", "Service"):
                names.add(permitted.name or "")
        if not routes_of or not names:
            return None
        if "" in names:  # it permits each Service
            names = set()
        return model.ReferenceGrant(
            name=self.metadata.name, routes_of=frozenset(routes_of), services=frozenset(names)
        )


class _Listener(Wire):
    name: str
    port: int
    protocol: str
    hostname: str | None = None


class _GatewaySpec(Wire):
    listeners: list[_Listener] | None = None


class _GatewayAddress(Wire):
    value: str = ""


class _GatewayStatus(Wire):
    addresses: list[_GatewayAddress] | None = None


class GatewayItem(Item):
    spec: _GatewaySpec | None = None
    status: _GatewayStatus | None = None

    def read(self) -> model.Gateway:
        """Return the Gateway with its listeners for HTTP and HTTPS: only these have HTTPRoutes."""
        spec, status = self.spec or _GatewaySpec(), self.status or _GatewayStatus()
        listeners: list[model.Listener] = []
        for given in spec.listeners or ():
            if given.protocol in ("HTTP", "HTTPS"):
                secure = given.protocol == "HTTPS"
                host = given.hostname or ""
                listeners.append(model.Listener(given.name, given.port, secure, host))
        return model.Gateway(
            name=self.metadata.name,
            listeners=tuple(listeners),
            addresses=tuple([address.value for address in status.addresses or () if address.value]),
        )
