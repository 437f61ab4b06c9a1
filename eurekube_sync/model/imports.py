"""Objects of the second direction: apps of the data centre that the cluster calls by name.

An EurekaImport has a Service without selector, and EndpointSlices that are kept equal to Eureka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct, field

from eurekube_sync.model.kubernetes import (
    CrdAge,
    CustomObject,
    CustomStatus,
    EndpointSlice,
    Service,
    ServiceSelector,
)
from eurekube_sync.model.sources import Listed, Source

MANAGER = "import.eurekube.io"
"""Value of the label `endpointslice.kubernetes.io/managed-by`: a label's value has no slash."""
IMPORT = "EurekaImport"  # the kind


class ImportRef(NamedTuple):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ImportStatus(CustomStatus, frozen=True, kw_only=True):
    """`status` of an EurekaImport: counts and conditions, never an address."""

    owner: str = ""  # of the installation that keeps it up to date
    syncer_class: str = ""  # that this installation serves
    ready: str = ""  # endpoints written/wanted, such as `2/2`
    app: str = ""
    service: str = ""
    instances: int = 0  # listed under the app or VIP
    left_out: Mapping[str, int] = field(default_factory=dict)  # a reason and its number, at most 10
    errors: tuple[str, ...] = ()  # a sample
    unconfirmed_removal: str = ""  # identifies the removal that a second pass has to confirm
    unconfirmed_since: int | None = None  # Unix seconds
    eureka_unknown_since: int | None = None  # Unix seconds; None: Eureka can be read


class ImportObject(CustomObject, frozen=True, kw_only=True):
    """An EurekaImport; `desired/import_spec.parse` reads its `spec`."""

    status: ImportStatus | None = None

    @property
    def ref(self) -> ImportRef:
        return ImportRef(self.namespace, self.name)


class ImportPort(Struct, frozen=True, kw_only=True):
    """A port of the Service that callers use, and of each slice with the instances' number."""

    name: str  # empty only beside the one unnamed port of an adopted Service
    port: int


class ImportService(Struct, frozen=True, kw_only=True):
    """The Service of an import: no selector, SingleStack, and a controller reference to it."""

    owner: ImportObject
    name: str
    ports: tuple[ImportPort, ...]
    headless: bool = False
    family: str | None = None  # `IPv4`, `IPv6`; None: the cluster's first


class ImportSlice(Struct, frozen=True, kw_only=True):
    """A slice of an import, as it is or as it should be. `endpoints` are canonical addresses, and
    each is ready."""

    namespace: str
    name: str
    service: str
    address_type: str  # `IPv4` or `IPv6`
    ports: tuple[ImportPort, ...]
    endpoints: tuple[str, ...]
    owner_uid: str = ""  # the UID of its EurekaImport
    uid: str = ""  # empty: it does not exist
    resource_version: str = ""


class ImportWrites(Protocol):
    """Writes of imports to Kubernetes. Each raises a `ClusterError`; a stale version is a
    `ClusterConflict`. All are safe to repeat."""

    def list_imports(self, namespaces: Sequence[str] | None) -> Listed[ImportObject]:
        """List the imports; without the CRD: Unknown(CRD_MISSING). Never raises."""

    def import_crd_live(self) -> Source[CrdAge]:
        """As `Cluster.crd_live`, of the CRD of the imports."""

    def create_service(self, service: ImportService) -> Service:
        """POST, and return what the server made of it, with its address family. ClusterExists if
        a Service of this name exists."""

    def write_service_ports(self, service: ImportService, *, resource_version: str) -> None:
        """Replace `spec.ports` of our Service of that version, by a merge patch."""

    def create_slice(self, owner: ImportObject, wanted: ImportSlice) -> None:
        """POST with our labels and a controller reference without `blockOwnerDeletion`.
        ClusterExists if a slice of this name exists."""

    def write_slice(self, wanted: ImportSlice) -> None:
        """Replace labels, endpoints and ports of the slice of that version, by a merge patch."""

    def delete_slice(self, slice_: ImportSlice) -> None:
        """DELETE with its uid and version. One that is gone is deleted."""

    def add_import_finalizer(self, import_: ImportObject) -> ImportObject: ...
    def remove_import_finalizer(self, import_: ImportObject) -> None: ...
    def write_import_status(self, import_: ImportObject, status: ImportStatus) -> None: ...


def is_of_an_import(thing: Service | ServiceSelector | EndpointSlice) -> bool:
    """Say whether a Service or slice leads to apps of Eureka, by any installation. No syncer
    registers it: its instances would be registered back in Eureka."""
    if isinstance(thing, Service | ServiceSelector):
        return thing.controller == IMPORT
    return thing.managed_by == MANAGER
