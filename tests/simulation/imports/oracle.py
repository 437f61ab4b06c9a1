"""What each import should have, read from the servers' own objects by the words of the contract.

It shares no code with the product, and remembers since when each thing is true. It knows only what
stories are made of: IPv4 addresses and plain ports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address, ip_network
from math import inf
from typing import TYPE_CHECKING, Any

from tests.embedded.instances import InstanceInfo
from tests.simulation.world import GRANTED_IMPORTS

from .data_centre import living

if TYPE_CHECKING:
    from tests.simulation.judge import Judge

LIST_IS_OLD = 31.0
"""Seconds that a list of Eureka may be old."""
MANAGER = "import.eurekube.io"
FINALIZER = "eurekube.io/cleanup"
IMPORTS = "/apis/eurekube.io/v1/eurekaimports"
SLICES = "/apis/discovery.k8s.io/v1/endpointslices"
SERVICES = "/api/v1/services"
_CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/eurekaimports.eurekube.io"

Ref = tuple[str, str]
"""Namespace and name of an object."""
Socket = tuple[str, int]
"""Address and port of an endpoint."""
Place = tuple[str, Socket]
"""The UID of an import, and an endpoint."""
Object = Mapping[str, Any]


def ref_of(thing: Object) -> Ref:
    return thing["metadata"]["namespace"], thing["metadata"]["name"]


def controller_of(thing: Object) -> tuple[str, str]:
    """The kind and the UID of its controller; empty without one."""
    for owner in thing["metadata"].get("ownerReferences", ()):
        if owner.get("controller"):
            return owner["kind"], owner["uid"]
    return "", ""


def is_of_an_import(thing: Object) -> bool:
    """Whether a slice says that an import's program writes it."""
    labels = thing["metadata"].get("labels", {})
    return bool(labels.get("endpointslice.kubernetes.io/managed-by") == MANAGER)


def sockets_in(piece: Object) -> set[Socket]:
    """The endpoints of a slice."""
    ports = [port["port"] for port in piece.get("ports") or () if port.get("port")]
    sockets: set[Socket] = set()
    for endpoint in piece.get("endpoints") or ():
        for address in endpoint["addresses"]:
            sockets.update((address, port) for port in ports)
    return sockets


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportTruth:
    """An import as it is now."""

    ref: Ref
    uid: str
    created: str
    spec: Mapping[str, Any]
    going: bool
    """Whether it has a deletionTimestamp, for any reason."""
    deleting: bool
    """Whether a person deleted it."""
    abandoned: bool
    annotations: Mapping[str, str]
    finalizers: tuple[str, ...]
    team: str
    conditions: Mapping[str, tuple[str, str]]
    """Status and reason by type."""
    messages: Mapping[str, str]

    @property
    def service(self) -> Ref:
        return self.ref[0], self.spec.get("service", {}).get("name") or self.ref[1]

    @property
    def adopts(self) -> bool:
        return bool(self.spec.get("service", {}).get("adopt"))

    @property
    def suspended(self) -> bool:
        return bool(self.spec.get("suspend"))

    def names(self, app: str, vips: str) -> bool:
        """Whether it names the app or one of the VIP addresses, in any case."""
        vip = self.spec.get("vipAddress")
        if vip:
            return vip.upper() in vips.upper().split(",")
        return app.upper() == (self.spec.get("app") or self.ref[1]).upper()

    def selects(self, zone: str) -> bool:
        """Whether it takes instances of this zone."""
        zones = self.spec.get("select", {}).get("zones")
        return zones is None or zone in zones


@dataclass(slots=True)
class Oracle:
    """What each import should have now. `look` brings it up to date."""

    judge: Judge
    imports: dict[str, ImportTruth] = field(default_factory=dict)
    """By UID."""
    slices: dict[Ref, Object] = field(default_factory=dict)
    services: dict[Ref, Object] = field(default_factory=dict)
    endpoints: dict[str, frozenset[Socket]] = field(default_factory=dict)
    """The endpoints in the slices of each import, by its UID."""
    wanted_since: dict[Place, float] = field(default_factory=dict)
    """Since when an instance there lives that the import names, and nothing says otherwise."""
    shown_since: dict[Place, float] = field(default_factory=dict)
    """Since when every Eureka server shows that."""
    gone_since: dict[Place, float] = field(default_factory=dict)
    """Since when no server shows an instance UP at an endpoint of the import, and none lives."""
    unwanted_since: dict[Place, float] = field(default_factory=dict)
    """Since when an endpoint of an import is not wanted, but for as long as lists are old."""
    possible_until: dict[Place, float] = field(default_factory=dict)
    """When an instance was last UP there on some server."""
    up_until: dict[tuple[str, str, str, Socket], float] = field(default_factory=dict)
    """When an instance that no syncer of ours registered was last UP on some server, by app, VIP
    addresses, zone and place. An import that is new finds it in a list that is old."""
    occupied_since: dict[str, float] = field(default_factory=dict)
    """Since when a slice that is no import's has an address."""
    free_since: dict[str, float] = field(default_factory=dict)
    """Since when nothing forbids to add endpoints to an import, by its UID."""
    without_service_since: dict[str, float] = field(default_factory=dict)
    """Since when there is no Service of an import's name, by its UID."""
    suspended_since: dict[str, float] = field(default_factory=dict)
    changed_at: dict[str, float] = field(default_factory=dict)
    """When anything changed last that decides about an import's endpoints."""
    ours: dict[str, float] = field(default_factory=dict)
    """Addresses of instances that our syncers registered, and when one was last there."""
    first_seen: dict[str, float] = field(default_factory=dict)
    """When each import came, by its UID."""
    deleted: set[str] = field(default_factory=set)
    """UIDs of the imports that a person deleted."""
    _possible: set[Place] = field(default_factory=set)
    _ups: set[tuple[str, str, str, Socket]] = field(default_factory=set)
    _unwanted_until: dict[Place, float] = field(default_factory=dict)
    _unwanted_from: dict[Place, float] = field(default_factory=dict)
    _seen: object = None
    _basis: dict[str, object] = field(default_factory=dict)

    def look(self, now: float) -> None:
        """Reads the servers again, if anything changed."""
        kubernetes = self.judge.world.kubernetes
        states = self.judge.known
        registered = {key: listed[0] for state in states for key, listed in state.items()}
        seen = (
            kubernetes.structure,
            kubernetes.statuses,
            self.judge.imports.data_centre.changes,
            [sorted((key, id(listed[0])) for key, listed in state.items()) for state in states],
        )
        if seen == self._seen:
            return
        self._seen = seen
        self._read(now)
        for instance in registered.values():
            if instance.metadata.get("eurekube.cluster") == self.judge.cluster:
                self.ours[instance.ip_addr or ""] = now
        self._note(now)

    def _read(self, now: float) -> None:
        world = self.judge.world
        status, crd = world.kubernetes.call("GET", _CRD)
        crd_lives = status == 200 and "deletionTimestamp" not in crd["metadata"]
        self.imports = {}
        for found in world.objects(IMPORTS):
            import_ = self._import(found, crd_lives)
            self.imports[import_.uid] = import_
            self.first_seen.setdefault(import_.uid, now)
        self.slices = {ref_of(piece): piece for piece in world.objects(SLICES)}
        self.services = {ref_of(service): service for service in world.objects(SERVICES)}
        endpoints: dict[str, set[Socket]] = {uid: set() for uid in self.imports}
        for piece in self.slices.values():
            if is_of_an_import(piece):
                endpoints.setdefault(controller_of(piece)[1], set()).update(sockets_in(piece))
        self.endpoints = {uid: frozenset(sockets) for uid, sockets in endpoints.items()}

    def _import(self, found: Object, crd_lives: bool) -> ImportTruth:
        metadata, told = found["metadata"], found.get("status", {})
        going = "deletionTimestamp" in metadata
        if going and crd_lives:
            self.deleted.add(metadata["uid"])
        conditions = told.get("conditions", ())
        return ImportTruth(
            ref=ref_of(found),
            uid=metadata["uid"],
            created=metadata["creationTimestamp"],
            spec=found["spec"],
            going=going,
            deleting=metadata["uid"] in self.deleted,
            abandoned=metadata.get("annotations", {}).get("eurekube.io/abandon") == "true",
            annotations=metadata.get("annotations", {}),
            finalizers=tuple(metadata.get("finalizers", ())),
            team=metadata.get("labels", {}).get("team", ""),
            conditions={entry["type"]: (entry["status"], entry["reason"]) for entry in conditions},
            messages={entry["type"]: entry["message"] for entry in conditions},
        )

    def _note(self, now: float) -> None:
        """Brings all moments up to date."""
        occupied = self._occupied()
        self.occupied_since = _since(self.occupied_since, occupied, now)
        self._note_ups(now)
        wanted: set[Place] = set()
        shown: set[Place] = set()
        possible: set[Place] = set()
        for uid, import_ in self.imports.items():
            up: set[Socket] = set()
            doubted: set[Socket] = set()
            everywhere: set[Socket] | None = None
            for state in self.judge.known:
                instances = [listed[0] for listed in state.values()]
                verdicts = self._verdicts(import_, instances, occupied)
                fits = {socket for socket, is_up in verdicts.items() if is_up}
                up |= fits
                doubted |= verdicts.keys() - fits
                everywhere = fits if everywhere is None else everywhere & fits
            alive = set(self._alive(import_, occupied))
            possible.update((uid, socket) for socket in up)
            wanted.update((uid, socket) for socket in (up | alive) - doubted)
            shown.update((uid, socket) for socket in (everywhere or set()) - doubted)
        there = {(uid, socket) for uid, sockets in self.endpoints.items() for socket in sockets}
        self.possible_until.update(dict.fromkeys(possible | self._possible, now))
        self._possible = possible
        self.wanted_since = _since(self.wanted_since, wanted, now)
        self.shown_since = _since(self.shown_since, shown, now)
        self.gone_since = _since(self.gone_since, there - possible - wanted, now)
        self._note_unwanted(there - wanted, now)
        free = {uid for uid, import_ in self.imports.items() if self._is_free(import_)}
        self.free_since = _since(self.free_since, free, now)
        imports = self.imports.items()
        without = {uid for uid, import_ in imports if import_.service not in self.services}
        self.without_service_since = _since(self.without_service_since, without, now)
        suspended = {uid for uid, import_ in self.imports.items() if import_.suspended}
        self.suspended_since = _since(self.suspended_since, suspended, now)
        self._note_changes(possible, wanted, now)

    def _note_ups(self, now: float) -> None:
        before, self._ups = self._ups, set()
        for state in self.judge.known:
            for instance, _ in state.values():
                ours = instance.metadata.get("eurekube.cluster") == self.judge.cluster
                if instance.status.value == "UP" and not ours:
                    socket = instance.ip_addr or "", instance.port.number
                    zone = instance.metadata.get("zone", "")
                    self._ups.add((instance.app, instance.vip_address or "", zone, socket))
        self.up_until.update(dict.fromkeys(before | self._ups, now))

    def was_possible(self, import_: ImportTruth, socket: Socket, moment: float) -> bool:
        """Whether a pass that looked at that moment, or later, may have found an instance there
        that the import names."""
        if self.possible_until.get((import_.uid, socket), -1.0) >= moment:
            return True
        if self.occupied_since.get(socket[0], inf) <= moment:
            return False
        return any(
            place == socket
            and until >= moment
            and import_.names(app, vips)
            and import_.selects(zone)
            for (app, vips, zone, place), until in self.up_until.items()
        )

    def _note_unwanted(self, unwanted: set[Place], now: float) -> None:
        before = self.unwanted_since
        self._unwanted_until.update(dict.fromkeys(before, now))
        self.unwanted_since = {}
        for place in unwanted:
            just = now - self._unwanted_until.get(place, -LIST_IS_OLD - 1) <= LIST_IS_OLD
            since = self._unwanted_from[place] if just else now
            self.unwanted_since[place] = self._unwanted_from[place] = before.get(place, since)

    def _note_changes(self, possible: set[Place], wanted: set[Place], now: float) -> None:
        by_import: dict[str, set[Place]] = {}
        for place in possible | wanted:
            by_import.setdefault(place[0], set()).add(place)
        for uid, import_ in self.imports.items():
            basis = (
                sorted(by_import.get(uid, ())),
                import_.spec,
                import_.going,
                uid in self.free_since,
                sorted(self.endpoints.get(uid, ())),
            )
            if self._basis.get(uid) != basis:
                self._basis[uid] = basis
                self.changed_at[uid] = now

    def _occupied(self) -> frozenset[str]:
        """The addresses in slices that no import's program wrote."""
        addresses: set[str] = set()
        for piece in self.slices.values():
            if not is_of_an_import(piece):
                for endpoint in piece.get("endpoints") or ():
                    addresses.update(endpoint["addresses"])
        return frozenset(addresses)

    def _verdicts(
        self, import_: ImportTruth, instances: Iterable[InstanceInfo], occupied: frozenset[str]
    ) -> dict[Socket, bool]:
        """The places of the instances of one server that the import names, and whether one there is
        to be an endpoint."""
        verdicts: dict[Socket, bool] = {}
        for instance in instances:
            if not import_.names(instance.app, instance.vip_address or ""):
                continue
            address = instance.ip_addr or ""
            fits = (
                import_.selects(instance.metadata.get("zone", ""))
                and instance.status.value == "UP"
                and instance.metadata.get("eurekube.cluster") != self.judge.cluster
                and self._may_be(address, occupied)
            )
            socket = address, instance.port.number
            verdicts[socket] = verdicts.get(socket, False) or fits
        return verdicts

    def _alive(self, import_: ImportTruth, occupied: frozenset[str]) -> Iterator[Socket]:
        """The endpoints of instances that live, whatever Eureka has lost."""
        for client in living(self.judge.imports.data_centre):
            named = import_.names(client.app, client.vip or client.app)
            if named and import_.selects(client.zone) and self._may_be(client.address, occupied):
                yield client.socket

    def in_networks(self, address: str) -> bool:
        """Whether an address is in the networks of the data centre."""
        return within(address, self.judge.story.installation.networks)

    def _may_be(self, address: str, occupied: frozenset[str]) -> bool:
        return self.in_networks(address) and address not in occupied

    def _is_free(self, import_: ImportTruth) -> bool:
        """Whether endpoints may be added to it now."""
        if import_.going or import_.suspended or not self._is_granted(import_):
            return False
        service = self.services.get(import_.service)
        if import_.adopts:
            return service is not None
        if service is not None:
            return controller_of(service) == ("EurekaImport", import_.uid)
        rivals = [
            other
            for other in self.imports.values()
            if other.service == import_.service
            and not other.going
            and not other.adopts
            and self._is_in_one_scope(other, import_)
        ]
        return min(rivals, key=lambda other: (other.created, other.ref, other.uid)) == import_

    def _is_in_one_scope(self, first: ImportTruth, second: ImportTruth) -> bool:
        return not self.judge.story.installation.halves or first.team == second.team

    def _is_granted(self, import_: ImportTruth) -> bool:
        if not self.judge.story.installation.granted:
            return True
        for namespace in self.judge.world.objects("/api/v1/namespaces"):
            if namespace["metadata"]["name"] == import_.ref[0]:
                annotations = namespace["metadata"].get("annotations") or {}
                return annotations.get(GRANTED_IMPORTS) == "*"
        return False


@cache
def within(address: str, networks: tuple[str, ...]) -> bool:
    """Whether an address is in one of these networks."""
    return any(ip_address(address) in ip_network(network) for network in networks)


def _since(before: Mapping[Any, float], now_true: Iterable[Any], now: float) -> dict[Any, float]:
    return {thing: before.get(thing, now) for thing in now_true}
