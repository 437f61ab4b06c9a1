"""What each EurekaImport should have: a claim, with a verdict for each instance that Eureka lists
under its app or VIP.

| the claim | is for | what is done |
|---|---|---|
| `Importing` | a valid import whose sources were read | its Service and slices are kept up to date |
| `NotImported` | one whose spec is invalid, whose sources are unknown, or of another owner | nothing |
| `Ending` | one that a person deletes | its slices go with it |
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field

from eurekube_sync.desired.claims import every
from eurekube_sync.desired.endpoints import choose_port, numbers_of
from eurekube_sync.desired.import_spec import Import, parse, service_name
from eurekube_sync.desired.scope import (
    Address,
    Scope,
    annotations_of,
    import_refusal,
    is_in,
    of_one_machine,
    parsed_address,
)
from eurekube_sync.desired.spec import ZONE
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.imports import (
    IMPORT,
    ImportObject,
    ImportPort,
    ImportRef,
    ImportService,
    is_of_an_import,
)
from eurekube_sync.model.kubernetes import EndpointSlice, Namespace, Service, ServicePort
from eurekube_sync.model.ownership import CLUSTER
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete, Listed, Proof, Source, Unknown
from eurekube_sync.model.struct import replace

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_RESERVED = ipaddress.ip_network("240.0.0.0/4")
"""The API server takes such addresses, and no machine has one (RFC 1112)."""


class Socket(NamedTuple):
    """An endpoint as callers reach it: an address, and the numbers of its ports."""

    address: str
    numbers: tuple[int, ...]

    def __str__(self) -> str:
        host = self.address
        if ":" in host:
            host = f"[{host}]"
        numbers = ",".join(map(str, self.numbers))
        return f"{host}:{numbers}"


class Wanted(Struct, frozen=True, kw_only=True):
    """The instance is to be an endpoint."""

    socket: Socket
    ports: tuple[ImportPort, ...]  # with the names that they have in the Service


class LeftOut(Struct, frozen=True, kw_only=True):
    """The instance is listed, and is to be no endpoint."""

    reason: Reason
    why: str
    socket: Socket | None = None  # where it would be reached, as far as that can be told


Verdict: TypeAlias = Wanted | LeftOut


def _names(wanted: Wanted) -> tuple[int, tuple[str, ...]]:
    """Return by how many ports an instance is reached, and their names."""
    names = [port.name for port in wanted.ports]
    return len(names), tuple(names)


class Refusal(NamedTuple):
    """Why nothing is added to an import, while what is gone still leaves."""

    reason: Reason
    message: str


class Importing(Struct, frozen=True, kw_only=True, dict=True):
    """A valid import: its Service, its slices, and a verdict for each instance."""

    import_: ImportObject
    spec: Import
    proof: Proof  # of its slices
    service: Service | None  # None: it does not exist
    to_make: ImportService | None  # the Service as it shall be; None if it is not ours
    slices: tuple[EndpointSlice, ...]  # its own
    family: str  # of the slices that it shall have
    judge: Judge  # made the verdicts
    verdicts: Mapping[InstanceKey, Verdict]
    malformed: tuple[ObservedInstance, ...] = ()  # of its app or VIP, as `_malformed_of`
    refusals: tuple[Refusal, ...] = ()  # the first to see to first

    def elsewhere(self, names: ByName) -> Importing:
        """Return the claim that the list of another Eureka server would make."""
        verdicts, malformed = self.judge.verdicts(names)
        return replace(self, verdicts=verdicts, malformed=malformed)

    def may_have(self, socket: Socket) -> bool:
        """Say whether the networks of the data centre have the endpoint's address."""
        return self.judge.is_inside(socket.address)

    @cached_property
    def wanted(self) -> Mapping[Socket, Wanted]:
        """The wanted endpoints. Two instances at one place are one endpoint, with the ports of the
        one that offers more: the order of Eureka's list changes with each server."""
        wanted: dict[Socket, Wanted] = {}
        for verdict in self.verdicts.values():
            if not isinstance(verdict, Wanted):
                continue
            beside = wanted.get(verdict.socket)
            if beside is None or _names(verdict) > _names(beside):
                wanted[verdict.socket] = verdict
        return wanted

    @cached_property
    def listed(self) -> Mapping[Socket, LeftOut]:
        """Why instances that are listed are no endpoints, by the place where they would be one."""
        listed: dict[Socket, LeftOut] = {}
        for verdict in self.verdicts.values():
            if isinstance(verdict, LeftOut) and verdict.socket is not None:
                listed.setdefault(verdict.socket, verdict)
        return listed

    @property
    def left_out(self) -> Mapping[Reason, int]:
        """The number of instances that are left out for each reason, the most frequent first."""
        numbers: dict[Reason, int] = {}
        for verdict in self.verdicts.values():
            if isinstance(verdict, LeftOut):
                reason = verdict.reason
                numbers[reason] = numbers.get(reason, 0) + 1
        by_number = sorted(numbers, key=lambda reason: (-numbers[reason], reason))
        return {reason: numbers[reason] for reason in by_number}


class NotImported(Struct, frozen=True, kw_only=True):
    """Nothing is written for it: too little is known, or it is another installation's."""

    import_: ImportObject
    reason: Reason
    message: str
    source: Unknown | None = None  # what could not be read


class Ending(Struct, frozen=True, kw_only=True):
    """A person deletes it, and its Service and slices with it."""

    import_: ImportObject
    proof: Proof  # that a person did
    slices: tuple[EndpointSlice, ...]


ImportClaim: TypeAlias = Importing | NotImported | Ending


def is_unread(claim: ImportClaim) -> bool:
    """Say whether a source of this import could not be read."""
    return isinstance(claim, NotImported) and claim.source is not None


class ImportView(Struct, frozen=True, kw_only=True):
    """What a pass reads from Kubernetes for imports."""

    imports: Listed[ImportObject]
    services: Listed[Service]
    slices: Listed[EndpointSlice]
    crd_live: Source[bool] = field(default_factory=lambda: Complete(data=True))
    namespaces: Listed[Namespace] | None = None  # for their grants; None: none is needed


class ByName(Struct, frozen=True, dict=True):
    """All instances of a list, by the names under which callers find them, in upper case: Eureka's
    clients ignore case."""

    instances: Sequence[ObservedInstance]

    def of(self, spec: Import) -> Sequence[ObservedInstance]:
        """Return the instances of the app or VIP, and those whose app or VIP could not be read."""
        if spec.app is not None:
            name = spec.app
            by_name = self._by_app
        else:
            name = spec.vip_address or ""
            by_name = self._by_vip
        instances = by_name.get(name.upper(), ())
        nameless = by_name.get("")
        if nameless:
            return [*instances, *nameless]
        return instances

    @cached_property
    def _by_app(self) -> Mapping[str, Sequence[ObservedInstance]]:
        by_app: dict[str, list[ObservedInstance]] = {}
        for instance in self.instances:
            by_app.setdefault(instance.key.app, []).append(instance)
        return by_app

    @cached_property
    def _by_vip(self) -> Mapping[str, Sequence[ObservedInstance]]:
        by_vip: dict[str, list[ObservedInstance]] = {}
        for instance in self.instances:
            for name in _vips(instance.instance.vip_address):
                by_vip.setdefault(name, []).append(instance)
            if "vip_address" in instance.unread:
                by_vip.setdefault("", []).append(instance)
        return by_vip


def _malformed_of(
    instances: Iterable[ObservedInstance], spec: Import
) -> tuple[ObservedInstance, ...]:
    """Return the instances of which a field could not be read that decides about an import. They
    are no endpoints, and are not gone either."""
    deciding = {"instance_id", "ip_addr", "port", "status", "metadata"}
    deciding.add("app" if spec.app is not None else "vip_address")
    if spec.service.secure_port is not None:
        deciding.add("secure_port")
    malformed = []
    for instance in instances:
        if instance.unread and not deciding.isdisjoint(instance.unread):
            malformed.append(instance)
    return tuple(malformed)


def may_be_at(malformed: Iterable[ObservedInstance], socket: Socket) -> bool:
    """Say whether one of these instances may be the endpoint: their ports are not asked, because
    the address is often all that was read."""
    for instance in malformed:
        if "ip_addr" in instance.unread:
            return True
        if instance.instance.ip_addr == socket.address:
            return True
    return False


@lru_cache(maxsize=65_536)  # called for each instance, and there are few VIP addresses
def _vips(text: str) -> tuple[str, ...]:
    names: list[str] = []
    for part in text.upper().split(","):
        name = part.strip()
        if name:
            names.append(name)
    return tuple(names)


def socket_of(piece: EndpointSlice, address: str) -> Socket:
    """Return the socket of an endpoint in a slice of an import."""
    numbers = sorted(numbers_of([piece]))
    return Socket(address, tuple(numbers))


def sockets_of(slices: Iterable[EndpointSlice]) -> Iterator[Socket]:
    for piece in slices:
        for endpoint in piece.endpoints:
            yield socket_of(piece, endpoint.address)


class Rules(Struct, frozen=True, kw_only=True):
    """What decides about instances beside the spec."""

    clusters: frozenset[str]  # UIDs in the marks of this cluster
    networks: tuple[Network, ...]  # the only addresses that may be written
    owners: frozenset[str] = frozenset()  # that count as ours
    scope: Scope = field(default_factory=Scope)

    @property
    def first_family(self) -> str:
        """The family of a Service that is still to be made. The API server chooses, so this is a
        guess: see `apply/imports`."""
        versions = {network.version for network in self.networks}
        return "IPv6" if versions == {6} else "IPv4"

    def other_owner(self, import_: ImportObject) -> str | None:
        """Return the owner of another installation that keeps the import up to date. Two of them
        would undo each other's writes in each pass. One of another class does not serve it any
        more."""
        status = import_.status
        if status is None or status.owner in self.owners:
            return None
        our_class = self.scope.syncer_class or ""
        if status.syncer_class != our_class:
            return None
        return status.owner or None


def claim_imports(view: ImportView, names: ByName, rules: Rules) -> dict[ImportRef, ImportClaim]:
    """Make one claim for each listed import in scope."""
    taken: list[ImportObject] = []
    for import_ in every(view.imports):
        if rules.scope.takes_import(import_):
            taken.append(import_)
    lists = _Lists(view, taken)
    claims: dict[ImportRef, ImportClaim] = {}
    for import_ in taken:
        claims[import_.ref] = _claim(import_, view, lists, names, rules)
    return claims


class _Lists:
    """Indexes of what was read."""

    def __init__(self, view: ImportView, imports: Sequence[ImportObject]) -> None:
        self._view = view
        self._services: dict[str, Mapping[str, Service]] = {}
        self.occupied: set[str] = set()  # addresses in slices of others, of all namespaces
        self._own: dict[str, list[EndpointSlice]] = {}  # by the UID of the import
        for source in view.slices.by_namespace.values():
            if not isinstance(source, Complete):
                continue
            for piece in source.data:
                if is_of_an_import(piece):
                    self._own.setdefault(piece.owner_uid, []).append(piece)
                else:
                    self.occupied.update([endpoint.address for endpoint in piece.endpoints])
        self.makers: dict[tuple[str, str], ImportObject] = {}
        """The import that may make a Service of this namespace and name."""
        for import_ in sorted(imports, key=_seniority):
            if import_.deleted is None and not _adopts(import_):
                place = (import_.namespace, service_name(import_))
                self.makers.setdefault(place, import_)

    def own(self, import_: ImportObject) -> tuple[EndpointSlice, ...]:
        """Return the slices of an import. Its UID tells them, so another `--owner` strands none."""
        namespace = import_.namespace
        own = self._own.get(import_.uid, ())
        return tuple([piece for piece in own if piece.namespace == namespace])

    def services(self, namespace: str) -> Mapping[str, Service]:
        services = self._services.get(namespace)
        if services is None:
            source = self._view.services.of(namespace)
            listed = source.data if isinstance(source, Complete) else ()
            services = {service.name: service for service in listed}
            self._services[namespace] = services
        return services


def _seniority(import_: ImportObject) -> tuple[float, ImportRef, str]:
    return import_.created, import_.ref, import_.uid


def _adopts(import_: ImportObject) -> bool:
    service = import_.spec.get("service")
    return isinstance(service, Mapping) and service.get("adopt") is True


def _claim(
    import_: ImportObject, view: ImportView, lists: _Lists, names: ByName, rules: Rules
) -> ImportClaim:
    other = rules.other_owner(import_)
    if other is not None:
        message = f"owner {other} keeps it up to date, so it is left alone"
        return NotImported(import_=import_, reason=Reason.OWNER_CLASH, message=message)
    namespace = import_.namespace
    slices = view.slices.of(namespace)
    if isinstance(slices, Unknown):
        return _unknown(import_, slices)
    own = lists.own(import_)
    if import_.deleted is not None:
        live = view.crd_live
        # While the CRD is being deleted, or may be, perhaps no person deleted the import.
        if isinstance(live, Unknown):
            return _unknown(import_, live, Reason(live.cause))
        return Ending(import_=import_, proof=live.proof, slices=own)
    services = view.services.of(namespace)
    if isinstance(services, Unknown):
        return _unknown(import_, services)
    try:
        spec = parse(import_)
    except InvalidSyncer as error:
        return NotImported(import_=import_, reason=error.reason, message=str(error))
    grant = _grant(spec, view, namespace)
    if isinstance(grant, Unknown):
        return _unknown(import_, grant)
    place = _placed(import_, spec, lists)
    family = _family(spec, place.service, own, rules)
    judge = Judge(spec, place, family, lists.occupied, rules)
    verdicts, malformed = judge.verdicts(names)
    # Neither hides the other: a missing grant makes nobody's Service ours.
    refusals = [refusal for refusal in (grant, place.refusal) if refusal is not None]
    return Importing(
        import_=import_,
        spec=spec,
        proof=slices.proof,
        service=place.service,
        to_make=place.to_make,
        slices=own,
        family=family,
        judge=judge,
        verdicts=verdicts,
        malformed=malformed,
        refusals=tuple(refusals),
    )


def _family(
    spec: Import, service: Service | None, own: Sequence[EndpointSlice], rules: Rules
) -> str:
    """Return the address family of the endpoints.

    | the Service                     | the family is that of                                   |
    |---------------------------------|---------------------------------------------------------|
    | has the one in the spec         | the spec                                                |
    | has others                      | the Service: no caller reaches endpoints of another one |
    | does not exist, or has none yet | the spec, else of the slices, else of the networks      |
    """
    asked = spec.address_family
    if service is not None and service.ip_families:
        if asked in service.ip_families:
            return asked
        return service.ip_families[0]
    if asked is not None:
        return asked
    if own:
        return own[0].address_type
    return rules.first_family


def _lacking_family(spec: Import, service: Service) -> Refusal | None:
    """Return the refusal if the Service has no addresses of the family in the spec."""
    asked = spec.address_family
    if asked is None or not service.ip_families or asked in service.ip_families:
        return None
    message = f"Service {service.name} has no addresses of {asked}: correct addressFamily"
    return Refusal(Reason.NO_SERVICE, message)


def _unknown(
    import_: ImportObject, source: Unknown, reason: Reason = Reason.SOURCE_UNKNOWN
) -> NotImported:
    return NotImported(import_=import_, reason=reason, message=source.message, source=source)


def _grant(spec: Import, view: ImportView, namespace: str) -> Refusal | Unknown | None:
    """Return why the Namespace does not grant the app or VIP; None if it does, or need not."""
    if view.namespaces is None:
        return None
    annotations = annotations_of(view.namespaces, namespace, "an import")
    if isinstance(annotations, Unknown):
        return annotations
    if spec.app is not None:
        refused = import_refusal("app", spec.app, namespace, annotations)
    else:
        refused = import_refusal("VIP", spec.vip_address or "", namespace, annotations)
    if refused:
        return Refusal(Reason.NOT_GRANTED, refused)
    return None


# --- The Service ----------------------------------------------------------------------------------


_HTTP, _HTTPS = "http", "https"


class _Place(Struct, frozen=True, kw_only=True):
    """Where the endpoints of an import go."""

    service: Service | None
    to_make: ImportService | None = None
    port: str = _HTTP  # the names of the ports in the Service
    secure_port: str | None = None  # None: the spec offers none
    refusal: Refusal | None = None


def _placed(import_: ImportObject, spec: Import, lists: _Lists) -> _Place:
    services = lists.services(import_.namespace)
    service = services.get(spec.service.name)
    if spec.service.adopt:
        return _adopted(spec, service)
    return _made(import_, spec, service, lists)


def _adopted(spec: Import, service: Service | None) -> _Place:
    """Return the Service that exists, which is never changed."""
    asked = spec.service
    port = _HTTP  # of instances alone, while the Service is not known
    secure = _secure(spec)
    if service is None or service.is_external_name:
        why = "does not exist" if service is None else "is of type ExternalName"
        fault = f"Service {asked.name} {why}, and service.adopt needs it"
        missing = Refusal(Reason.NO_SERVICE, fault)
        return _Place(service=service, secure_port=secure, refusal=missing)
    refusal = _lacking_family(spec, service)
    try:
        port = _chosen(service, asked.port, "service.port").name
        if secure is not None:
            secure = _chosen(service, asked.secure_port, "service.securePort").name
    except InvalidSyncer as error:
        refusal = Refusal(error.reason, str(error))
    return _Place(service=service, port=port, secure_port=secure, refusal=refusal)


def _secure(spec: Import) -> str | None:
    """Return the name of the secure port, if the spec offers one."""
    if spec.service.secure_port is None:
        return None
    return _HTTPS


def _chosen(service: Service, port: int | str | None, field: str) -> ServicePort:
    """Return the port of an adopted Service. Raises InvalidSyncer."""
    chosen = choose_port(service, port, field=field)
    if chosen is None:
        wanted = f"the port {port}" if port is not None else "a port"
        fault = f"Service {service.name} does not have {wanted}: see {field}"
        raise InvalidSyncer(Reason.NO_SUCH_PORT, fault)
    return chosen


def _made(import_: ImportObject, spec: Import, service: Service | None, lists: _Lists) -> _Place:
    """Return the import's own Service. It is ours only by the UID in its controller reference.

    | the Service                      | is made or kept up to date by                        |
    |----------------------------------|------------------------------------------------------|
    | exists, and the import has it    | this import                                          |
    | exists, and another one has it   | nobody here                                          |
    | is the import's, and has a       | nobody here: it is the Service of pods now, and our  |
    | selector                         | ports would take their target port away              |
    | does not exist                   | the oldest import that names it                      |
    """
    secure = _secure(spec)
    refusal = _not_to_make(import_, spec, service, lists)
    if refusal is not None:
        return _Place(service=service, secure_port=secure, refusal=refusal)
    # It is made even if the app has no instances, so that its address is stable.
    asked = spec.service
    ports = [ImportPort(name=_HTTP, port=_number(asked.port))]
    if asked.secure_port is not None:
        ports.append(ImportPort(name=_HTTPS, port=_number(asked.secure_port)))
    to_make = ImportService(
        owner=import_,
        name=asked.name,
        ports=tuple(ports),
        headless=asked.headless,
        family=spec.address_family,
    )
    return _Place(service=service, to_make=to_make, secure_port=secure)


def _not_to_make(
    import_: ImportObject, spec: Import, service: Service | None, lists: _Lists
) -> Refusal | None:
    """Return why the Service is not made or kept up to date by this import."""
    name = spec.service.name
    if service is None:
        place = (import_.namespace, name)
        maker = lists.makers.get(place, import_)
        if maker.uid == import_.uid:
            return None
        why = f"import {maker.ref} is older and makes Service {name}"
        return Refusal(Reason.SERVICE_EXISTS, why)
    # By its UID: an import that was made again under the same name is another one.
    if service.controller != IMPORT or service.owner_uid != import_.uid:
        owner = service.controller or "nobody"
        why = (
            f"Service {name} exists and is not of this import (its controller: {owner}): name "
            "another one in service.name, delete it, or set service.adopt"
        )
        return Refusal(Reason.SERVICE_EXISTS, why)
    if service.selects:
        why = (
            f"Service {name} of this import has a selector by now, so it is its pods': set "
            "service.adopt and remove its ownerReferences, or name another one in service.name"
        )
        return Refusal(Reason.SERVICE_EXISTS, why)
    return _lacking_family(spec, service)


def _number(port: int | str | None) -> int:
    assert isinstance(port, int)  # a name is only for an adopted Service
    return port


# --- Verdicts -------------------------------------------------------------------------------------


_MALFORMED = LeftOut(reason=Reason.MALFORMED, why="a field of it in Eureka's list is malformed")


class Judge:
    """Decides about the instances of one import."""

    def __init__(
        self,
        spec: Import,
        place: _Place,
        family: str,
        occupied: Collection[str],
        rules: Rules,
    ) -> None:
        self._spec = spec
        self._place = place
        self._family = family
        self._occupied = occupied
        self._rules = rules

    def verdicts(
        self, names: ByName
    ) -> tuple[Mapping[InstanceKey, Verdict], tuple[ObservedInstance, ...]]:
        """Return the verdict on each instance of a list that the import names, and those that are
        malformed."""
        instances = names.of(self._spec)
        malformed = _malformed_of(instances, self._spec)
        verdicts: dict[InstanceKey, Verdict] = {}
        for instance in instances:
            verdicts[instance.key] = self._verdict(instance)
        for instance in malformed:
            verdicts[instance.key] = _MALFORMED
        return verdicts, malformed

    def _verdict(self, observed: ObservedInstance) -> Verdict:
        """Return the verdict on an instance that can be read. The first row that fits is the
        reason.

        | the instance                                                      | reason           |
        |-------------------------------------------------------------------|------------------|
        | was registered from this cluster, and is not asked for            | OwnCluster       |
        | has another zone, or other metadata                               | NotMatching      |
        | is not UP                                                         | NotUp            |
        | has no canonical address, or one of another family or of no       | NoUsableAddress  |
        | single machine                                                    |                  |
        | is outside of the networks of the data centre                     | OutsideNetworks  |
        | is in a slice that no import wrote                                | InCluster        |
        | enables no port that the Service offers                           | NoEnabledPort    |
        """
        ports = self._ports(observed)
        socket = None
        if ports:
            numbers = sorted({port.port for port in ports})
            socket = Socket(observed.instance.ip_addr, tuple(numbers))
        reason, why = self._left_out(observed, ports)
        if reason is not None:
            return LeftOut(reason=reason, why=why, socket=socket)
        assert socket is not None  # it has a port
        return Wanted(socket=socket, ports=ports)

    def _left_out(
        self, observed: ObservedInstance, ports: Sequence[ImportPort]
    ) -> tuple[Reason | None, str]:
        spec = self._spec
        address = observed.instance.ip_addr
        # An import of what a syncer of this cluster registers would be a loop.
        ours = observed.metadata.get(CLUSTER) in self._rules.clusters
        if ours and not spec.select.this_cluster:
            return Reason.OWN_CLUSTER, "a syncer of this cluster registered it"
        not_matching = _unlike(observed.metadata, spec)
        if not_matching:
            return Reason.NOT_MATCHING, not_matching
        if observed.status is not InstanceStatus.UP:
            return Reason.NOT_UP, f"it is {observed.status}"
        odd = _odd(address, self._family)
        if odd:
            return Reason.NO_USABLE_ADDRESS, odd
        if not self.is_inside(address):
            return Reason.OUTSIDE_NETWORKS, f"{address} is in no network of --import-networks"
        # So would be that of a pod which registers itself. What our own syncers registered has an
        # endpoint of its own, and is asked for.
        if address in self._occupied and not ours:
            return Reason.IN_CLUSTER, f"an EndpointSlice of this cluster has {address}"
        if not ports:
            return Reason.NO_ENABLED_PORT, "it enables no port that the import offers"
        return None, ""

    def is_inside(self, address: str) -> bool:
        """Say whether the networks of the data centre have this address."""
        return _within(address, self._rules.networks)

    def _ports(self, observed: ObservedInstance) -> tuple[ImportPort, ...]:
        """Return the ports that the instance enables and the Service offers."""
        instance = observed.instance
        place = self._place
        offered = ((place.port, instance.port), (place.secure_port, instance.secure_port))
        ports: list[ImportPort] = []
        for name, port in offered:
            if name is None or not port.enabled:
                continue
            if 1 <= port.number <= 65535:
                ports.append(ImportPort(name=name, port=port.number))
        return tuple(ports)


def _unlike(metadata: Mapping[str, str], spec: Import) -> str:
    """Return what the spec selects and the instance does not have; empty if it has all."""
    select = spec.select
    zone = metadata.get(ZONE, "")
    if select.zones and zone not in select.zones:
        return f"its zone is {zone or 'not set'}"
    for key, value in select.metadata.items():
        if metadata.get(key) != value:
            return f"its metadata has another value of {key}, or none"
    return ""


@lru_cache(maxsize=65_536)
def _odd(host: str, family: str) -> str:
    """Return why a host cannot be an endpoint's address; empty if it can. The API server takes only
    canonical addresses, and more of them than lead anywhere."""
    address = parsed_address(host)
    if address is None or str(address) != host or "%" in host:
        return f"{host or 'its address'} is no IP address in its canonical form"
    if f"IPv{address.version}" != family:
        return f"{host} is no address of {family}"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return f"{host} is an IPv4 address in the form of IPv6, which the API server refuses"
    if of_one_machine(host) or _is_reserved(address):
        return f"{host} is not one machine for all callers"
    return ""


def _is_reserved(address: Address) -> bool:
    return address.version == 4 and address in _RESERVED


@lru_cache(maxsize=65_536)
def _within(host: str, networks: tuple[Network, ...]) -> bool:
    address = parsed_address(host)  # a person may have written anything into a slice
    return address is not None and is_in(address, networks)


def networks_in(given: str) -> tuple[str, ...]:
    """Read the value of `--import-networks`. Raises ValueError with a message for the user."""
    networks: list[str] = []
    for part in given.split(","):
        text = part.strip()
        try:
            network = ipaddress.ip_network(text)
        except ValueError as error:
            fault = f"{text!r} is no network: write it such as 10.20.0.0/16"
            raise ValueError(fault) from error
        networks.append(str(network))
    return tuple(networks)


def parsed_networks(networks: Iterable[str]) -> tuple[Network, ...]:
    return tuple([ipaddress.ip_network(network) for network in networks])
