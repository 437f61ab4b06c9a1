"""Builds the Eureka instances of a syncer: names, addresses, URLs, metadata."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, lru_cache
from sys import intern
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct, field

from eurekube_sync.desired.catalog import DRAINED, NO_DRAIN, Drain
from eurekube_sync.desired.claims import Incomplete, Wanted, every
from eurekube_sync.desired.limit import LIMIT
from eurekube_sync.desired.spec import (
    DRAIN_ANNOTATION,
    HOST_NAME,
    MANAGEMENT_PORT,
    MOST_METADATA,
    NO_PATHS,
    ZONE,
    MetadataFrom,
    Syncer,
    check_app_name,
    host_name_warning,
    size_of,
    value_fault,
)
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.eureka import (
    Instance,
    InstanceKey,
    InstanceStatus,
    LeaseTimes,
    ObservedInstance,
    Port,
)
from eurekube_sync.model.kubernetes import (
    Pod,
    PodRef,
    ServedPort,
    Service,
    SyncerObject,
    SyncerRef,
    SyncerStatus,
)
from eurekube_sync.model.ownership import Ownership, instance_id, syncer_of
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Listed, Unknown
from eurekube_sync.model.text import cut

_Place: TypeAlias = tuple[str, int | None, int | None]
"""The app, the plain and the secure port; None: off."""
_NO_STATUS = SyncerStatus(observed_generation=0)
_SECURE_PORT_OFF = Port(443, False)
_MOST_WARNINGS = 5
_MOST_SERVED_PORTS = 100  # as the CRD allows; a list of all syncers contains them
_LONGEST_LABEL, _LONGEST_NAME = 63, 253  # of a host name (RFC 1035 2.3.4)


class Registered(NamedTuple):
    """What a syncer has registered in Eureka: the question, and the answer."""

    may: frozenset[str]  # the apps that it may register, in upper case
    apps: frozenset[str]  # all under which its instances are
    ports: frozenset[int]  # all numbers that its instances have as the plain port
    secure_ports: frozenset[int]

    def numbers(self, field: str) -> frozenset[int]:
        """Return the numbers of `port` or `securePort`."""
        if field == "port":
            return self.ports
        return self.secure_ports


class Naming(Struct, frozen=True, kw_only=True, dict=True):
    """What all instances of a pass have in common."""

    ownership: Ownership
    lease: LeaseTimes
    listed: Mapping[InstanceKey, ObservedInstance] = field(default_factory=dict)
    """Ours, as listed in Eureka. A built instance that equals the listed one is replaced by it, to
    save memory. Empty while Eureka cannot be read."""
    syncers: Listed[SyncerObject] | None = None  # as listed in Kubernetes

    def registered(self, syncer: SyncerRef, may: frozenset[str]) -> Registered:
        """Return the apps and ports of the instances of a syncer, which may register the apps
        `may`.

        If some of them are of these apps, only those count. If a syncer has none, those of its
        namespace and apps count whose own syncer was deleted, because a renamed syncer takes them
        over: their ids stay the same."""
        by_syncer, left = self._places
        places = by_syncer.get(syncer, set())
        own = {place for place in places if place[0] in may}
        if own:
            places = own
        elif not places:  # a new syncer, or one with a new name
            for app in may:
                left_there = left.get((syncer.namespace, app), set())
                places = places | left_there
        apps: set[str] = set()
        ports: set[int | None] = set()
        secure_ports: set[int | None] = set()
        for app, plain, secure in places:
            apps.add(app)
            ports.add(plain)
            secure_ports.add(secure)
        return Registered(may, frozenset(apps), _enabled(ports), _enabled(secure_ports))

    @cached_property
    def _places(
        self,
    ) -> tuple[Mapping[SyncerRef, set[_Place]], Mapping[tuple[str, str], set[_Place]]]:
        """The apps and ports in Eureka by syncer; and by namespace and app, where the syncer was
        deleted."""
        living = self._living
        by_syncer: dict[SyncerRef, set[_Place]] = {}
        left: dict[tuple[str, str], set[_Place]] = {}
        for instance in self.listed.values():
            syncer = syncer_of(instance)
            if syncer is None:
                continue
            app = instance.key.app
            there = instance.instance
            place = (app, _number(there.port), _number(there.secure_port))
            by_syncer.setdefault(syncer, set()).add(place)
            if syncer not in living:
                left_there = left.setdefault((syncer.namespace, app), set())
                left_there.add(place)
        return by_syncer, left

    @property
    def _living(self) -> set[SyncerRef]:
        """The syncers that are not deleted."""
        living: set[SyncerRef] = set()
        syncers = every(self.syncers) if self.syncers else ()
        for syncer in syncers:
            if syncer.deleted is None:
                living.add(syncer.ref)
        return living


def _enabled(numbers: set[int | None]) -> frozenset[int]:
    """Return the numbers of the ports that are on."""
    return frozenset([number for number in numbers if number is not None])


def _number(port: Port) -> int | None:
    if port.enabled:
        return port.number
    return None


class Site(Struct, frozen=True, kw_only=True):
    """The address and ports of one instance, and the Kubernetes objects behind it."""

    host: str
    port: int | None
    secure_port: int | None
    pod: PodRef | None = None
    node: str = ""
    zone: str = ""
    services: Sequence[Service] = ()
    pod_metadata: Pod | None = None
    label: str = ""  # the name for messages
    # The plain and the secure port of the pod, where those of its node are registered
    of_pod: tuple[int | None, int | None] | None = None
    # The cluster gave the address to a pod or Service of the namespace; no person wrote it
    allotted: bool = False

    @property
    def main_port(self) -> int:
        """The port in the instance's id: the plain one if there is one."""
        port = self.secure_port if self.port is None else self.port
        assert port is not None  # each site has at least one port
        return port


class Builder(Struct):
    """Builds the instances of one syncer, and collects app names, warnings, and what was
    incomplete."""

    spec: Syncer
    naming: Naming
    before: SyncerStatus = _NO_STATUS  # the syncer's status, which has what it once resolved
    incomplete: list[Incomplete] = field(default_factory=list)
    unplaced: dict[str, str] = field(default_factory=dict)
    apps: set[str] = field(default_factory=set)
    asked: set[Registered] = field(default_factory=set)  # what the claim depends on in Eureka
    remembered: set[str] = field(default_factory=set)
    """The Services whose numbers in the status stay there while nothing of them is served."""
    drains_unread: Unknown | None = None  # as of `Serving`
    _served: set[tuple[str, int | None, int | None]] = field(default_factory=set)  # as `ServedPort`
    _of_ports: dict[str, None] = field(default_factory=dict)
    _warnings: set[str] = field(default_factory=set)

    def app_name(self, service: Service) -> str:
        """Return the app name in the spec, or else the Service's name. Raises InvalidSyncer for an
        invalid one."""
        name = self.spec.app_name
        if not name:
            name = check_app_name(f"Service {service.name}", service.name)
        self.apps.add(name.upper())
        return name

    def stays_at(self, field: str, service: Service, offered: Collection[int]) -> frozenset[int]:
        """Return the numbers at which a Service is served on if `field` (`port` or `securePort`)
        cannot be resolved any more; empty if there is none. `offered` are the numbers that it has
        now.

        | the status                    | the syncer's instances in Eureka   | it stays at       |
        |-------------------------------|------------------------------------|-------------------|
        | has an offered number of it   | any, or Eureka could not be read   | that of the status|
        | has none                      | have one number, which is offered  | that number       |
        | has none                      | have several, another one, or none | nothing           |

        The status names the Service, and is still there if Eureka lost everything. Instances bear
        the name of no Service, but they survive their syncer and its status.
        """
        before = self._served_before(field, service).intersection(offered)
        registered = self._registered((service,)).numbers(field)
        if before:
            # Instances at another offered number are newer than the status.
            elsewhere = before.isdisjoint(registered) and not registered.isdisjoint(offered)
            if not elsewhere:
                return before
        if len(registered) == 1:
            return registered.intersection(offered)
        return frozenset()

    def may_stand_at(self, field: str, service: Service, offered: Collection[int]) -> bool:
        """Whether instances of a Service may be registered at one of the `offered` numbers."""
        registered = self._registered((service,)).numbers(field)
        known = registered | self._served_before(field, service)
        return not known.isdisjoint(offered)

    def _served_before(self, field: str, service: Service) -> frozenset[int]:
        """Return the numbers of a Service in the status."""
        numbers: set[int | None] = set()
        for served in self.before.ports:
            if served.service == service.name:
                numbers.add(served.port if field == "port" else served.secure_port)
        return _enabled(numbers)

    def names_that_stay(self, services: Sequence[Service]) -> frozenset[str]:
        """Return the Services, by name, under whose names instances of the syncer are registered.
        If there is none, or Eureka could not be read, those whose names are apps in the status."""
        registered = self._registered(services).apps
        for apps in (registered, self.before.apps):
            standing = [service.name for service in services if service.name.upper() in apps]
            if standing:
                return frozenset(standing)
        return frozenset()

    @property
    def served_ports(self) -> tuple[ServedPort, ...]:
        """The numbers at which Services are served now, sorted by Service. One that is `remembered`
        keeps those of the status, because its pods may come back."""
        rows = {ServedPort(*served) for served in self._served}
        kept = self.remembered - {row.service for row in rows}
        for before in self.before.ports:
            if before.service in kept:
                rows.add(before)
        return tuple(sorted(rows, key=_row_order)[:_MOST_SERVED_PORTS])

    def _registered(self, services: Sequence[Service]) -> Registered:
        apps = [self.spec.app_of(service) for service in services]
        answer = self.naming.registered(self.spec.ref, frozenset(apps))
        self.asked.add(answer)
        return answer

    def key(self, app: str, site: Site) -> InstanceKey:
        id_ = instance_id(
            owner=self.naming.ownership.owner,
            namespace=self.spec.ref.namespace,
            app=app,
            address=site.host,
            port=site.main_port,
        )
        # Eureka has app names in upper case.
        key = InstanceKey(intern(app.upper()), id_)
        listed = self.naming.listed.get(key)
        if listed is None:
            return key
        return listed.key  # the same, to save memory

    def wanted(
        self, key: InstanceKey, site: Site, *, up: bool, why: str, drain: Drain = NO_DRAIN
    ) -> Wanted:
        """Build an instance. If it is drained it is DOWN and has a mark. Raises
        InvalidSyncer(NoHostName)."""
        spec = self.spec
        numbers = site.of_pod or (site.port, site.secure_port)
        for service in site.services:
            self._served.add((service.name, *numbers))
        vip = spec.vip_address or intern(key.app.lower())
        host_name = self._host_name(site)
        home_page, status_page, health_check = self._urls(site, host_name)
        status = InstanceStatus.DOWN
        if up and not drain.by:
            status = InstanceStatus.UP
        metadata = self.naming.ownership.marked(
            self._metadata(site),
            spec.ref,
            site.pod,
            pod_namespace=spec.namespace,
            syncer_class=spec.syncer_class or None,  # as in `class_of`
        )
        # In these marks a later pass reads how the instance was registered.
        if drain.by:
            metadata[DRAINED] = ",".join(drain.by)
        if spec.limit is not None:
            metadata[LIMIT] = str(spec.limit)
        instance = Instance(
            key=key,
            host_name=host_name,
            ip_addr=site.host,
            # As Spring registers it: a plain port that is off has the number of the secure one.
            # Some readers take the plain port all the same, and must not reach another program.
            port=Port(site.main_port, enabled=site.port is not None),
            secure_port=_SECURE_PORT_OFF if site.secure_port is None else _on(site.secure_port),
            vip_address=vip,
            secure_vip_address=spec.secure_vip_address or vip,
            status=status,
            lease=self.naming.lease,
            metadata=metadata,
            home_page_url=home_page,
            status_page_url=status_page,
            health_check_url=health_check,
        )
        listed = self.naming.listed.get(key)
        if listed is not None and listed.instance == instance:
            instance = listed.instance
        if drain.drainer is not None:
            why = f"{drain.drainer} has the annotation {DRAIN_ANNOTATION}"
        return Wanted(
            why=why,
            pod=site.pod,
            drained=bool(drain.by),
            drainer=drain.drainer,
            unreadable_drain_kinds=drain.unreadable_drain_kinds,
            allotted=site.allotted,
            instance=instance,
        )

    def warn(self, *warnings: str) -> None:
        """Add warnings, each once."""
        self._warnings.update(warnings)

    def warn_of_ports(self, *warnings: str) -> None:
        """Add warnings about ports, slices and the app's name, each once."""
        self._of_ports |= dict.fromkeys(warnings)

    @property
    def port_warnings(self) -> tuple[str, ...]:
        """The first warnings about ports, slices and the app's name."""
        return _first(list(self._of_ports))

    def warnings(self, vip_address: str) -> tuple[str, ...]:
        """Return those about the VIP address and about ports, and the first of the others."""
        of_names: list[str] = []
        for name in vip_address.split(","):
            warning = host_name_warning(name)
            if warning is not None:
                of_names.append(warning)
        others = _first(sorted(self._warnings))
        return (*of_names, *self.port_warnings, *others)

    def _host_name(self, site: Site) -> str:
        """Return the host name by `spec.hostName`. An address before a suffix has `-` in place of
        `.` and `:`, as in the cluster's DNS names of pods and in services such as sslip.io."""
        if self.spec.host_name == "ip":
            if ":" in site.host:  # in a URL, an IPv6 address is in brackets
                return f"[{site.host}]"
            return site.host
        parts = HOST_NAME.fullmatch(self.spec.host_name)
        assert parts is not None  # `parse` refuses any other
        base = parts[1]
        suffix = parts[2] or ""
        if family_of(site.host) is None:
            raise _no_host_name(
                f"{site.label} has a host name instead of an IP to put before {suffix}"
            )
        name = ""
        if base == "ip":
            name = _as_label(site.host)
        elif base == "nodeName":
            name = site.node
        elif site.pod is not None:
            name = site.pod.name
        if not name:
            raise _no_host_name(f"{site.label} has no {base}: set spec.hostName to ip")
        name += suffix
        longest = max(map(len, name.split(".")))
        if len(name) > _LONGEST_NAME or longest > _LONGEST_LABEL:
            beginning = cut(name, 80)
            raise _no_host_name(
                f"{site.label}: {beginning} is too long for a host name ({_LONGEST_LABEL} "
                f"characters a label, {_LONGEST_NAME} in all): set spec.hostName to ip"
            )
        return name

    def _urls(self, site: Site, host_name: str) -> tuple[str, str, str]:
        paths = self.spec.paths
        if paths is NO_PATHS:
            return "", "", ""
        scheme = "https"
        port = site.secure_port
        if port is None:
            scheme = "http"
            port = site.port
        origin = f"{scheme}://{host_name}"
        # As in Spring, status and health belong to the actuator, which may have its own port.
        actuator_port = paths.management_port or port
        return (
            _url(origin, port, paths.home),
            _url(origin, actuator_port, paths.status),
            _url(origin, actuator_port, paths.health),
        )

    def _metadata(self, site: Site) -> dict[str, str]:
        spec = self.spec
        metadata = dict(spec.metadata)
        if spec.metadata_from:
            self._add_metadata_from(site, metadata)
        zone = site.zone
        if spec.zone.from_endpoint and zone:
            metadata[ZONE] = spec.zone.map.get(zone, zone)
        management_port = spec.paths.management_port
        if management_port is not None:
            metadata[MANAGEMENT_PORT] = str(management_port)
        return metadata

    def _add_metadata_from(self, site: Site, metadata: dict[str, str]) -> None:
        """Add the labels and annotations that the spec names, as far as there is room."""
        room = MOST_METADATA - size_of(metadata)
        for entry in self.spec.metadata_from:
            value = _value_of(entry, site)
            if value is None:
                continue
            size = size_of({entry.key: value})
            fault = value_fault(value)
            if not fault and size > room:
                fault = f"with it, the metadata has more than {MOST_METADATA} bytes"
            if fault:
                self.warn(f"metadata {entry.key} of {site.label} is left out: {fault}")
            else:
                metadata[entry.key] = value
                room -= size


def _value_of(entry: MetadataFrom, site: Site) -> str | None:
    """Return the value of a label or annotation, of the pod or of the first Service that has it."""
    sources: list[tuple[str | None, Mapping[str, str]]] = []
    pod = site.pod_metadata
    if pod is not None:
        sources.append((entry.pod_label, pod.labels))
        sources.append((entry.pod_annotation, pod.annotations))
    for service in site.services:
        sources.append((entry.service_label, service.labels))
        sources.append((entry.service_annotation, service.annotations))
    for name, texts in sources:
        if name is not None and name in texts:
            return texts[name]
    return None


def _url(origin: str, port: int | None, path: str | None) -> str:
    """Return the URL of a path; empty without a path."""
    if path:
        return f"{origin}:{port}{path}"
    return ""


def _row_order(row: ServedPort) -> tuple[str, int, int]:
    return (row.service, row.port or 0, row.secure_port or 0)


def _no_host_name(message: str) -> InvalidSyncer:
    return InvalidSyncer(Reason.NO_HOST_NAME, message)


def _as_label(address: str) -> str:
    """Return an address as a part of a host name, which neither begins nor ends with `-`."""
    label = re.sub(r"[.:]", "-", address)
    if label.startswith("-"):
        label = f"0{label}"
    if label.endswith("-"):
        return f"{label}0"
    return label


def _first(warnings: Sequence[str]) -> tuple[str, ...]:
    first = tuple(warnings[:_MOST_WARNINGS])
    more = len(warnings) - len(first)
    if more:
        return (*first, f"and {more} more")
    return first


@lru_cache(maxsize=1024)  # all instances of an app share one object
def _on(port: int) -> Port:
    return Port(port, True)


def family_of(address: str) -> Literal["IPv4", "IPv6"] | None:
    """Return the family of an IP address; None for a host name, and for an address with an IPv6
    zone."""
    if "%" in address:
        return None
    try:
        if ipaddress.ip_address(address).version == 6:
            return "IPv6"
        return "IPv4"
    except ValueError:
        return None
