"""Imports in memory: a cluster that takes their writes, and passes over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from eurekube_sync.controller.one_pass import ImportReport, PassSettings, World
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.errors import ClusterConflict, ClusterExists, ClusterUnavailable
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance, Port
from eurekube_sync.model.imports import (
    IMPORT,
    MANAGER,
    ImportObject,
    ImportPort,
    ImportRef,
    ImportService,
    ImportSlice,
    ImportStatus,
)
from eurekube_sync.model.kubernetes import (
    CrdAge,
    Endpoint,
    EndpointPort,
    EndpointSlice,
    Service,
    ServicePort,
)
from eurekube_sync.model.ports import EurekaServer
from eurekube_sync.model.sources import Cause, Complete, Listed, Source, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import UP, seen
from tests.unit.worlds.fakes import Cluster, FakeWorld, Wire

T = TypeVar("T")

SHOP = "shop"
REVIEW = ImportRef(SHOP, "review")
NETWORKS = ("10.20.0.0/16",)
START = 1_000_000.0  # Unix seconds: when Eureka's oldest instance registered


def import_object(
    name: str = "review",
    *,
    namespace: str = SHOP,
    created: float = 1000,
    deleted: float | None = None,
    finalizers: tuple[str, ...] = (),
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> ImportObject:
    """An import with these keywords as its spec."""
    return ImportObject(
        namespace=namespace,
        name=name,
        uid=f"uid-of-{namespace}-{name}",
        generation=1,
        resource_version="1",
        created=created,
        deleted=deleted,
        finalizers=finalizers,
        labels=labels or {},
        annotations=annotations or {},
        spec=spec,
    )


def dc(
    number: int = 1,
    *,
    app: str = "review",
    address: str | None = None,
    port: int = 8080,
    secure: int | None = None,
    plain: bool = True,
    status: InstanceStatus = UP,
    vip: str | None = None,
    metadata: Mapping[str, str] | None = None,
    registered: float = START,
    renewed: float = START + 1000,
) -> ObservedInstance:
    """An instance of the data centre at `10.20.0.<number>:8080`, in a registry of 1000 s."""
    found = seen(
        InstanceKey(app.upper(), f"dc-{number}:{app}:{port}"),
        host_name=f"dc-{number}",
        ip_addr=f"10.20.0.{number}" if address is None else address,
        port=Port(port, plain),
        secure_port=Port(secure or 443, secure is not None),
        vip_address=app if vip is None else vip,
        status=status,
        metadata=metadata or {},
    )
    return replace(
        found,
        registered=int(registered * 1000),
        last_renewal=int(renewed * 1000) + 1000 * (found.instance.lease.duration or 90),
    )


class Imports:
    """`ImportWrites` on the objects of a fake cluster, as the API server takes them."""

    def __init__(self, cluster: Cluster, wire: Wire) -> None:
        self._cluster = cluster
        self._wire = wire
        self.imports: dict[ImportRef, ImportObject] = {}
        self.unknown: Unknown | None = None
        self.crd: Source[CrdAge] = Complete(data=CrdAge(0.0, 0.0))
        self.family = "IPv4"  # the cluster's first
        self.refuse: dict[str, Exception] = {}
        """Failing writes, by the name of the call."""
        self._versions = 0

    def apply(self, *imports: ImportObject) -> None:
        """Create an import, or give one another spec, labels and annotations."""
        for import_ in imports:
            old = self.imports.get(import_.ref)
            if old is not None:
                import_ = replace(
                    old,
                    spec=import_.spec,
                    labels=import_.labels,
                    annotations=import_.annotations,
                    generation=old.generation + 1,
                )
            self.imports[import_.ref] = import_

    def delete(self, ref: ImportRef, at: float) -> None:
        """Delete an import as `kubectl delete` does."""
        self.imports[ref] = replace(self.imports[ref], deleted=at)
        self._collect(ref)

    def list_imports(self, namespaces: Sequence[str] | None) -> Listed[ImportObject]:
        def walk() -> Listed[ImportObject]:
            if self.unknown is not None:
                return Listed(by_namespace={}, elsewhere=self.unknown)
            found: dict[str, tuple[ImportObject, ...]] = dict.fromkeys(namespaces or (), ())
            for import_ in self.imports.values():
                if namespaces is None or import_.namespace in namespaces:
                    found[import_.namespace] = (*found.get(import_.namespace, ()), import_)
            return Listed(
                by_namespace={name: Complete(data=items) for name, items in found.items()},
                elsewhere=Complete(data=()),
            )

        down = Unknown(cause=Cause.UNAVAILABLE, message="the wire failed")
        return self._wire.send(
            "list_imports", walk, lambda: Listed(by_namespace={}, elsewhere=down)
        )

    def import_crd_live(self) -> Source[CrdAge]:
        return self._wire.send("import_crd_live", lambda: self.crd, lambda: self.crd)

    def create_service(self, service: ImportService) -> Service:
        return self._send(f"create_service {service.name}", lambda: self._create(service))

    def _create(self, service: ImportService) -> Service:
        namespace = service.owner.namespace
        if self.service(service.name, namespace) is not None:
            raise ClusterExists(f"Service {service.name} exists already")
        made = Service(
            namespace=namespace,
            name=service.name,
            labels={},
            cluster_ips=("None",) if service.headless else ("10.96.0.9",),
            ip_families=(service.family or self.family,),
            ports=_ports(service.ports),
            selects=False,
            uid=f"uid-of-service-{self._next()}",
            resource_version=self._next(),
            controller=IMPORT,
            owner_uid=service.owner.uid,
        )
        self._cluster.services.append(made)
        return made

    def write_service_ports(self, service: ImportService, *, resource_version: str) -> None:
        def effect() -> None:
            stored = self.service(service.name, service.owner.namespace)
            if stored is None or stored.resource_version != resource_version:
                raise ClusterConflict(f"Service {service.name} changed")
            ports = _ports(service.ports)
            self._cluster.apply(replace(stored, ports=ports, resource_version=self._next()))

        self._send(f"write_service_ports {service.name}", effect)

    def create_slice(self, owner: ImportObject, wanted: ImportSlice) -> None:
        def effect() -> None:
            for piece in self._cluster.slices:
                if (piece.namespace, piece.name) == (wanted.namespace, wanted.name):
                    raise ClusterExists(f"EndpointSlice {wanted.name} exists already")
            self._store(wanted, f"uid-of-slice-{self._next()}", owner.uid)

        self._send(f"create_slice {wanted.name}", effect)

    def write_slice(self, wanted: ImportSlice) -> None:
        def effect() -> None:
            self._stored(wanted)
            self._store(wanted, wanted.uid, wanted.owner_uid)

        self._send(f"write_slice {wanted.name}", effect)

    def delete_slice(self, slice_: ImportSlice) -> None:
        def effect() -> None:
            stored = self._stored(slice_)
            self._cluster.slices.remove(stored)

        self._send(f"delete_slice {slice_.name}", effect)

    def add_import_finalizer(self, import_: ImportObject) -> ImportObject:
        def effect() -> ImportObject:
            stored = self.imports[import_.ref]
            stored = replace(stored, finalizers=(*stored.finalizers, CLEANUP_FINALIZER))
            self.imports[import_.ref] = stored
            return stored

        return self._send(f"add_import_finalizer {import_.ref}", effect)

    def remove_import_finalizer(self, import_: ImportObject) -> None:
        def effect() -> None:
            stored = self.imports[import_.ref]
            left = tuple(name for name in stored.finalizers if name != CLEANUP_FINALIZER)
            self.imports[import_.ref] = replace(stored, finalizers=left)
            self._collect(import_.ref)

        self._send(f"remove_import_finalizer {import_.ref}", effect)

    def write_import_status(self, import_: ImportObject, status: ImportStatus) -> None:
        def effect() -> None:
            self.imports[import_.ref] = replace(self.imports[import_.ref], status=status)

        self._send(f"write_import_status {import_.ref}", effect)

    def service(self, name: str = "review", namespace: str = SHOP) -> Service | None:
        for service in self._cluster.services:
            if (service.namespace, service.name) == (namespace, name):
                return service
        return None

    def _collect(self, ref: ImportRef) -> None:
        """Delete what a deleted import without finalizers owned, as the garbage collector does."""
        gone = self.imports[ref]
        if gone.deleted is None or gone.finalizers:
            return
        del self.imports[ref]
        cluster = self._cluster
        cluster.services = [each for each in cluster.services if each.owner_uid != gone.uid]
        cluster.slices = [each for each in cluster.slices if each.owner_uid != gone.uid]

    def _stored(self, wanted: ImportSlice) -> EndpointSlice:
        for piece in self._cluster.slices:
            same = (piece.namespace, piece.name, piece.uid)
            fits = piece.resource_version == wanted.resource_version
            if fits and same == (wanted.namespace, wanted.name, wanted.uid):
                return piece
        raise ClusterConflict(f"EndpointSlice {wanted.name} changed")

    def _store(self, wanted: ImportSlice, uid: str, owner_uid: str) -> None:
        ports = tuple(EndpointPort(name=port.name, port=port.port) for port in wanted.ports)
        self._cluster.apply(
            EndpointSlice(
                namespace=wanted.namespace,
                name=wanted.name,
                service=wanted.service,
                address_type=wanted.address_type,
                ports=ports,
                endpoints=tuple(Endpoint(address=address) for address in wanted.endpoints),
                managed_by=MANAGER,
                uid=uid,
                resource_version=self._next(),
                owner_uid=owner_uid,
            )
        )

    def _send(self, call: str, effect: Callable[[], T]) -> T:
        def refusing() -> T:
            if call.split()[0] in self.refuse:
                raise self.refuse[call.split()[0]]
            return effect()

        def failed() -> T:
            raise ClusterUnavailable("the API server did not answer")

        return self._wire.send(call, refusing, failed)

    def _next(self) -> str:
        self._versions += 1
        return str(self._versions)


def _ports(ports: Sequence[ImportPort]) -> tuple[ServicePort, ...]:
    return tuple(ServicePort(name=port.name, port=port.port) for port in ports)


class ImportWorld(FakeWorld):
    """A world with imports. Each pass is a process of its own, unless `daemon` is set."""

    def __init__(self, *imports: ImportObject, networks: tuple[str, ...] = NETWORKS) -> None:
        super().__init__()
        self.imports = Imports(self.cluster, self.wire)
        self.imports.apply(*imports)
        self.networks = networks
        self.daemon = False
        self.servers: Mapping[str, EurekaServer] = {}
        self._world: World | None = None
        self.clock.sleep(START + 1000 - self.clock.now())

    @property
    def world(self) -> World:
        if self._world is None or not self.daemon:
            self._world = replace(super().world, imports=self.imports)
        return replace(self._world, servers=self.servers)

    @property
    def settings(self) -> PassSettings:
        return replace(super().settings, import_networks=self.networks)

    def lists(self, *instances: ObservedInstance) -> None:
        """Eureka lists these instances, and no others."""
        self.registry.held.clear()
        self.registry.put(*instances)

    def passes(self, **options: Any) -> ImportReport:
        """Make a pass, and return its part about imports."""
        report = self.run(**options).imports
        assert report is not None
        return report

    def endpoints(self, namespace: str = SHOP) -> list[str]:
        """The endpoints in the slices of imports."""
        found = set()
        for piece in self.cluster.slices:
            if piece.managed_by == MANAGER and piece.namespace == namespace:
                for endpoint in piece.endpoints:
                    numbers = ",".join(str(port.port) for port in piece.ports)
                    found.add(f"{endpoint.address}:{numbers}")
        return sorted(found)

    def condition(self, type_: str = "Ready", ref: ImportRef = REVIEW) -> str:
        """The status and reason of a condition, such as `True InSync`."""
        status = self.imports.imports[ref].status
        found = status.condition(type_) if status else None
        return f"{found.status} {found.reason}" if found else ""
