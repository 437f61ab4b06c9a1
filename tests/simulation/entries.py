"""Services that callers reach through Ingresses or Gateways, and stories in which these come, change
and go."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tests.cases.fields import gateway_api

from .apart import PodBehind, SyncerLeaves, Way, named, serve, unread
from .events import Event
from .story import QUIET, Story
from .troubles import OF_GATEWAYS, Call, Kind
from .truth import Ref
from .world import APPS, FEW, NAMESPACES, Key, apart_name, is_true

if TYPE_CHECKING:
    from .stage import Stage

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_INGRESSES = "/apis/networking.k8s.io/v1"
_GATEWAY_GROUP = "gateway.networking.k8s.io"
_ROUTES, _GRANTS = f"/apis/{_GATEWAY_GROUP}/v1", f"/apis/{_GATEWAY_GROUP}/v1beta1"
_HOSTS = ("shop.example.com", "pay.example.com", "secure.example.com", "")
"""Hosts of entries, of which one has TLS; callers reach the last at the entry's own addresses."""
_SECURE = "secure.example.com"
_ADDRESSES = ("192.0.2.11", "192.0.2.12", "entry.example.com")
_HTTP, _HTTPS = 80, 443


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesServed(Event):
    """A person makes a Service, and a syncer that registers it where its Ingresses or Gateways
    are."""

    app: str
    by: str
    """`Ingress` or `Gateway`."""

    def happen(self, stage: Stage) -> str:
        if self.by == "Gateway":
            for definition in gateway_api():
                stage.world.kubernetes.call("POST", _CRDS, definition)
        spec = {"mode": "service", "service": {"address": self.by}}
        return f"{serve(stage, 'entry', self.app, {}, spec)}, by {self.by}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IngressApplied(Event):
    """A person applies an Ingress that routes these hosts to the Service."""

    app: str
    number: int
    hosts: tuple[str, ...]

    def happen(self, stage: Stage) -> str:
        service = apart_name("entry", self.app)
        backend = {"service": {"name": service, "port": {"number": 80}}}
        http = {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}
        rules = [{"host": host, "http": http} if host else {"http": http} for host in self.hosts]
        spec: dict[str, Any] = {"rules": rules, "tls": [{"hosts": [_SECURE]}]}
        name = f"{service}-{self.number}"
        metadata = {"namespace": APPS[self.app], "name": name}
        group = f"{_INGRESSES.removeprefix('/')}/ingresses"
        done = stage.world.apply(group, {"metadata": metadata, "spec": spec})
        hosts = ", ".join(host or "any host" for host in self.hosts)
        return f"Ingress {name} for {hosts} is {done}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteApplied(Event):
    """A person applies an HTTPRoute that leads these hosts to the Service, and its Gateway accepts
    it, or not."""

    app: str
    number: int
    hosts: tuple[str, ...]
    accepted: bool = True
    elsewhere: bool = False
    """Whether it is in another namespace than the Service and the Gateway."""

    def happen(self, stage: Stage) -> str:
        service = apart_name("entry", self.app)
        there = {"namespace": APPS[self.app]} if self.elsewhere else {}
        parent = {"name": f"{service}-{self.number % 2}", **there}
        rule = {"backendRefs": [{"name": service, "port": 80, **there}]}
        spec = {
            "parentRefs": [parent],
            "hostnames": [host for host in self.hosts if host] or None,
            "rules": [rule],
        }
        name = f"{service}-{self.number}"
        namespace = _elsewhere(self.app) if self.elsewhere else APPS[self.app]
        metadata = {"namespace": namespace, "name": name}
        group = f"{_ROUTES.removeprefix('/')}/httproutes"
        done = stage.world.apply(group, {**_head("HTTPRoute"), "metadata": metadata, "spec": spec})
        conditions = [{"type": "Accepted", "status": str(self.accepted)}]
        told = {"parents": [{"parentRef": parent, "conditions": conditions}]}
        path = f"{_ROUTES}/namespaces/{namespace}/httproutes/{name}/status"
        stage.world.kubernetes.call("PATCH", path, {"status": told})
        hosts = ", ".join(self.hosts) or "any host"
        accepted = "accepted" if self.accepted else "not accepted"
        return f"HTTPRoute {namespace}/{name} for {hosts} is {done}, and {accepted}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutesPermitted(Event):
    """A person permits HTTPRoutes of another namespace to lead to the Service, or to another one
    alone."""

    app: str
    permitted: bool = True

    def happen(self, stage: Stage) -> str:
        service = apart_name("entry", self.app)
        other = _elsewhere(self.app)
        to_service = service if self.permitted else "another"
        route = {"group": _GATEWAY_GROUP, "kind": "HTTPRoute", "namespace": other}
        to = {"group": "", "kind": "Service", "name": to_service}
        head = {"apiVersion": f"{_GATEWAY_GROUP}/v1beta1", "kind": "ReferenceGrant"}
        metadata = {"namespace": APPS[self.app], "name": f"{service}-0"}
        grant = {**head, "metadata": metadata, "spec": {"from": [route], "to": [to]}}
        stage.world.apply(f"{_GRANTS.removeprefix('/')}/referencegrants", grant)
        return f"HTTPRoutes of {other} may lead to {to_service}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayApplied(Event):
    """A person applies a Gateway, with a listener for plain HTTP, for TLS, or both."""

    app: str
    number: int
    listeners: tuple[tuple[str, str], ...]
    """Protocol and host of each, which may be empty or have a wildcard."""

    def happen(self, stage: Stage) -> str:
        name = f"{apart_name('entry', self.app)}-{self.number}"
        listeners = []
        for protocol, host in self.listeners:
            port = _HTTPS if protocol == "HTTPS" else _HTTP
            told = {"hostname": host} if host else {}
            at = {"name": protocol.lower(), "protocol": protocol, "port": port}
            listeners.append({**at, **told})
        metadata = {"namespace": APPS[self.app], "name": name}
        spec = {"listeners": listeners}
        group = f"{_ROUTES.removeprefix('/')}/gateways"
        done = stage.world.apply(group, {**_head("Gateway"), "metadata": metadata, "spec": spec})
        open_for = ", ".join(f"{protocol} {host}".strip() for protocol, host in self.listeners)
        return f"Gateway {name} for {open_for} is {done}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryGetsAddresses(Event):
    """A controller gives an Ingress or a Gateway these addresses."""

    app: str
    number: int
    by: str
    hosts: tuple[str, ...]

    def happen(self, stage: Stage) -> str:
        name = f"{apart_name('entry', self.app)}-{self.number}"
        places = f"{_place(self.by)}/{name}/status".format(namespace=APPS[self.app])
        if self.by == "Ingress":
            told = [{"ip" if host[0].isdigit() else "hostname": host} for host in self.hosts]
            status: dict[str, Any] = {"loadBalancer": {"ingress": told}}
        else:
            kinds = {True: "IPAddress", False: "Hostname"}
            addresses = []
            for host in self.hosts:
                addresses.append({"type": kinds[host[0].isdigit()], "value": host})
            status = {"addresses": addresses}
        code, _ = stage.world.kubernetes.call("PATCH", places, {"status": status})
        hosts = ", ".join(self.hosts) or "no address"
        return f"{self.by} {name} has {hosts}" if code < 300 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryDeleted(Event):
    """A person deletes an Ingress, an HTTPRoute or a Gateway."""

    app: str
    number: int
    kind: str

    def happen(self, stage: Stage) -> str:
        name = f"{apart_name('entry', self.app)}-{self.number}"
        path = f"{_place(self.kind)}/{name}".format(namespace=APPS[self.app])
        return f"{self.kind} {name} is deleted" if stage.world.delete(path) else ""


def _place(kind: str) -> str:
    """The path of objects of a kind, with a place for the namespace."""
    plural = {"Ingress": "ingresses", "HTTPRoute": "httproutes", "Gateway": "gateways"}[kind]
    group = _INGRESSES if kind == "Ingress" else _ROUTES
    return f"{group}/namespaces/{{namespace}}/{plural}"


def _elsewhere(app: str) -> str:
    """Another namespace than the app's."""
    return next(namespace for namespace in NAMESPACES if namespace != APPS[app])


def _head(kind: str) -> dict[str, str]:
    return {"apiVersion": _ROUTES.removeprefix("/apis/"), "kind": kind}


def with_ingresses(base: Story) -> Story:
    """Adds a Service at its Ingresses, and often a list of them that fails."""
    dice = random.Random(f"ingresses {base.seed}")
    return _with_entries(base, dice, "Ingress", (Call.INGRESSES,))


def with_gateways(base: Story) -> Story:
    """Adds a Service at the Gateways of its HTTPRoutes, and often a list of either that fails, or
    for a while no Gateway API."""
    dice = random.Random(f"gateways {base.seed}")
    story = _with_routes_elsewhere(_with_entries(base, dice, "Gateway", OF_GATEWAYS[:2]))
    absent = random.Random(f"absent API {base.seed}")
    if absent.random() < 0.7:
        return story
    trouble = unread(absent, absent.choice(OF_GATEWAYS), base.ends - QUIET)
    if absent.random() < 0.5:
        trouble = replace(trouble, calls=frozenset(OF_GATEWAYS))
    return replace(story, troubles=(*story.troubles, replace(trouble, kind=Kind.ABSENT_404)))


def _with_routes_elsewhere(base: Story) -> Story:
    """Adds to most of them a route of another namespace, which is permitted and forbidden, and often
    a list of these permissions that fails."""
    dice, last = random.Random(f"routes elsewhere {base.seed}"), base.ends - QUIET
    if dice.random() < 0.4:
        return base
    served = [event for event in base.events if isinstance(event, EntriesServed)]
    app = next(event.app for event in served if event.by == "Gateway")
    hosts = (dice.choice(("shop.example.com", "pay.example.com", "other.example.com")),)
    events: list[Event] = [
        *base.events,
        RouteApplied(at=0.0, app=app, number=2, hosts=hosts, elsewhere=True),
    ]
    permitted = dice.random() < 0.8
    for at in [
        0.0,
        *sorted(round(dice.uniform(3, last), 1) for _ in range(dice.choice((0, 1, 3)))),
    ]:
        events.append(RoutesPermitted(at=at, app=app, permitted=permitted))
        permitted = not permitted
    troubles = list(base.troubles)
    if dice.random() < 0.5:
        trouble = unread(dice, Call.REFERENCE_GRANTS, last)
        troubles.append(trouble)
        at = round(dice.uniform(trouble.at, trouble.until), 1)
        events.append(RoutesPermitted(at=at, app=app, permitted=dice.random() < 0.4))
    return replace(
        base,
        events=tuple(sorted(events, key=lambda event: event.at)),
        troubles=tuple(troubles),
    )


def _with_entries(base: Story, dice: random.Random, by: str, calls: tuple[Call, ...]) -> Story:
    app, last = dice.choice(FEW), base.ends - QUIET
    events: list[Event] = [
        *base.events,
        EntriesServed(at=0.0, app=app, by=by),
        PodBehind(at=0.0, kind="entry", app=app, ready=dice.random() < 0.9),
    ]
    for number in range(dice.choice((1, 2, 2))):
        if by == "Gateway":
            events.append(_a_gateway(dice, app, number, 0.0))
        events.append(_an_entry(dice, app, number, by, 0.0))
        events.append(_addresses(dice, app, number, by, 0.0))
    for _ in range(dice.choice((2, 3, 5, 7))):
        events.append(_of_an_entry(dice, app, by, round(dice.uniform(3, last), 1)))
    if dice.random() < 0.3:
        at = round(dice.uniform(20, last), 1)
        events.append(SyncerLeaves(at=at, kind="entry", app=app))
    troubles = list(base.troubles)
    if dice.random() < 0.7:
        trouble = unread(dice, dice.choice(calls), last)
        troubles.append(trouble)
        for _ in range(dice.choice((1, 2, 3))):
            at = round(dice.uniform(trouble.at, trouble.until), 1)
            events.append(_of_an_entry(dice, app, by, at))
    return replace(
        base,
        events=tuple(sorted(events, key=lambda event: event.at)),
        troubles=tuple(troubles),
    )


def _of_an_entry(dice: random.Random, app: str, by: str, at: float) -> Event:
    number, ready = dice.choice((0, 1, 2)), dice.random() < 0.6
    kinds = ("Ingress",) if by == "Ingress" else ("HTTPRoute", "HTTPRoute", "Gateway")
    choices: list[Event] = [
        _an_entry(dice, app, number, by, at),
        _addresses(dice, app, number, by, at),
        EntryDeleted(at=at, app=app, number=number, kind=dice.choice(kinds)),
        PodBehind(at=at, kind="entry", app=app, ready=ready),
    ]
    if by == "Gateway":
        choices.append(_a_gateway(dice, app, number % 2, at))
    return dice.choice(choices)


def _an_entry(dice: random.Random, app: str, number: int, by: str, at: float) -> Event:
    hosts = tuple(sorted(dice.sample(_HOSTS, dice.choice((1, 1, 2)))))
    if by == "Ingress":
        return IngressApplied(at=at, app=app, number=number, hosts=hosts)
    accepted = dice.random() < 0.8
    hosts = tuple(host for host in hosts if host)
    return RouteApplied(at=at, app=app, number=number, hosts=hosts, accepted=accepted)


def _addresses(dice: random.Random, app: str, number: int, by: str, at: float) -> Event:
    hosts = tuple(sorted(dice.sample(_ADDRESSES, dice.choice((0, 1, 1, 2)))))
    number = number % 2 if by == "Gateway" else number
    return EntryGetsAddresses(at=at, app=app, number=number, by=by, hosts=hosts)


def _a_gateway(dice: random.Random, app: str, number: int, at: float) -> Event:
    hosts = ("", "", "*.example.com", "shop.example.com", "*.example.org")
    protocols = dice.choice((("HTTP",), ("HTTP",), ("HTTPS",), ("HTTP", "HTTPS")))
    listeners = tuple((protocol, dice.choice(hosts)) for protocol in protocols)
    return GatewayApplied(at=at, app=app, number=number, listeners=listeners)


Ports = dict[str, set[int]]
"""The ports at which calls for a Service enter, by host."""


class AtEntries(Way):
    """Services at Ingresses or Gateways."""

    kind = "entry"

    def written(self) -> Iterator[tuple[Key, bool]]:
        services = self.services()
        for ref, _ in self.living():
            if ref not in services:
                continue
            ready = any(self._is_ready(pod, ref) for pod in self._judge.world.pods())
            for host, ports in self._open_at(ref).items():
                # The port for plain HTTP is the one in the id, if there is one.
                yield self._judge.truth.key(ref[0], ref[1], host, min(ports)), ready

    def is_unserved(self, ref: Ref) -> bool:
        """Whether the Service is gone, or calls for it enter nowhere."""
        return super().is_unserved(ref) or not self._open_at(ref)

    def _is_ready(self, pod: Mapping[str, Any], ref: Ref) -> bool:
        behind = (pod["metadata"]["namespace"], pod["metadata"]["labels"]["app"]) == ref
        return behind and "deletionTimestamp" not in pod["metadata"] and is_true(pod, "Ready")

    def _open_at(self, ref: Ref) -> Ports:
        by = self._judge.truth.apart[ref]["spec"]["service"]["address"]
        return self._by_ingresses(ref) if by == "Ingress" else self._by_gateways(ref)

    def _by_ingresses(self, ref: Ref) -> Ports:
        open_at: Ports = {}
        for ingress in self._of(ref, f"{_INGRESSES}/ingresses"):
            balanced = ingress.get("status", {}).get("loadBalancer", {}).get("ingress", ())
            addresses = [told.get("ip") or told["hostname"] for told in balanced]
            for rule in ingress["spec"]["rules"]:
                host = rule.get("host", "")
                port = _HTTPS if host == _SECURE else _HTTP
                for entry in [host] if host else addresses:
                    open_at.setdefault(entry, set()).add(port)
        return open_at

    def _by_gateways(self, ref: Ref) -> Ports:
        open_at: Ports = {}
        gateways = {named(gateway): gateway for gateway in self._of(ref, f"{_ROUTES}/gateways")}
        for route in self._routes_to(ref):
            gateway = gateways.get((ref[0], route["spec"]["parentRefs"][0]["name"]))
            if gateway is None or not _is_accepted(route):
                continue
            told = gateway.get("status", {}).get("addresses", ())
            addresses = [address["value"] for address in told]
            for listener in gateway["spec"]["listeners"]:
                for host in route["spec"].get("hostnames") or ("",):
                    for entry in _entered(host, listener.get("hostname", ""), addresses):
                        open_at.setdefault(entry, set()).add(listener["port"])
        return open_at

    def _routes_to(self, ref: Ref) -> Iterator[Mapping[str, Any]]:
        """The HTTPRoutes that may lead to an app's Service: its own namespace's, and permitted
        ones."""
        yield from self._of(ref, f"{_ROUTES}/httproutes")
        for grant in self._of(ref, f"{_GRANTS}/referencegrants"):
            (route,), (service,) = grant["spec"]["from"], grant["spec"]["to"]
            if service["name"] == ref[1]:
                yield from self._of((route["namespace"], ref[1]), f"{_ROUTES}/httproutes")

    def _of(self, ref: Ref, path: str) -> Iterator[Mapping[str, Any]]:
        """The objects of a kind of an app's Service."""
        for found in self._judge.world.objects(path):
            namespace, name = named(found)
            if namespace == ref[0] and name.startswith(f"{ref[1]}-"):
                yield found


def _is_accepted(route: Mapping[str, Any]) -> bool:
    parents = route.get("status", {}).get("parents", ())
    for parent in parents:
        for condition in parent["conditions"]:
            if condition["type"] == "Accepted" and condition["status"] == "True":
                return True
    return False


def _entered(host: str, listener: str, addresses: list[str]) -> list[str]:
    """The hosts at which a listener is open for one host of a route; empty for any host."""
    if listener.startswith("*."):
        if not host:
            return []  # nobody can call a wildcard
        return [host] if host.endswith(listener[1:]) else []
    if host and listener and host != listener:
        return []
    named_host = host or listener
    return [named_host] if named_host else addresses
