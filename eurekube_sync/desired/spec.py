"""Reads the spec of a EurekaSyncer: `parse` makes a `Syncer` of it, or raises an `InvalidSyncer`.

The API server has checked the spec against a CRD that may be older, so all is checked again. An
unknown field is refused by name, because a syncer must not be served without a field that somebody
relies on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from eurekube_sync.desired.limit import Limit, parse_limit
from eurekube_sync.desired.selector import Selector, check_labels, check_selector
from eurekube_sync.model.errors import Faults, InvalidSyncer
from eurekube_sync.model.faults import Path, shape_faults
from eurekube_sync.model.imports import ImportObject
from eurekube_sync.model.kubernetes import Service, SyncerObject, SyncerRef
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.text import cut

T = TypeVar("T")

CLEANUP_FINALIZER = "eurekube.io/cleanup"
ABANDON_ANNOTATION = "eurekube.io/abandon"
DRAIN_ANNOTATION = "eurekube.io/drain"

# Metadata key that Spring Cloud LoadBalancer reads (ZonePreferenceServiceInstanceListSupplier)
ZONE = "zone"
# Metadata key that Spring Boot Admin reads (DefaultServiceInstanceConverter)
MANAGEMENT_PORT = "management.port"
# Bytes of an instance's metadata without our marks, because every Eureka client downloads it
MOST_METADATA = 4096
TOO_MUCH_METADATA = f"metadata has at most {MOST_METADATA} bytes in all, keys and values together"
"""The CRD has no such rule, because its cost would be over the API server's limit."""

_APP_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
_VIP = r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(:[0-9]{1,5})?"
_VIP_ADDRESS = re.compile(rf"{_VIP}(,{_VIP})*")
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_FIXED_HOST = re.compile(rf"{_LABEL}(?:[.]{_LABEL})*")
# Base and suffix of `hostName`
HOST_NAME = re.compile(rf"(ip|podName|nodeName)([.-]{_LABEL}(?:[.]{_LABEL})*)?")
_HOST_OF_A_URL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
_DIGITS = re.compile(r"[0-9]+")
_PATH = re.compile(r"/[!-~]*")
_METADATA_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*")
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_ACTED_ON = re.compile(
    r"zone|user|user-?name|user-?password|password|configPath|health[.]path|(management|user)[.].*"
)
"""Keys that `metadataFrom` must not set, because users who may label a pod must not decide how
others call it. By the zone Spring Cloud LoadBalancer chooses, by the others Spring Cloud Config and
Spring Boot Admin call and log in."""
_LONGEST_KEY, _LONGEST_VALUE = 128, 1024


ServiceAddress: TypeAlias = Literal[
    "Auto",
    "ClusterIP",
    "LoadBalancer",
    "NodePort",
    "ExternalIP",
    "ExternalName",
    "Ingress",
    "Gateway",
]
ENTRIES = ("Ingress", "Gateway")
"""The kinds of addresses that other objects than the Service have."""


class At(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`spec.service`: the address at which a Service is registered."""

    address: ServiceAddress | None = None
    # None: the external one if the node has one
    node_address: Literal["InternalIP", "ExternalIP"] | None = None
    node_selector: dict[str, str] | None = None  # labels of the nodes
    hostname: str | None = None


class PodAt(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`spec.pod`: the address at which a pod is registered."""

    address: Literal["PodIP", "HostPort"] | None = None


class Paths(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    home: str | None = None
    status: str | None = None
    health: str | None = None
    management_port: int | None = None


class Zone(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`spec.zone`: whether an instance has its endpoint's zone, and the names of the zones in
    Eureka."""

    from_endpoint: bool
    map: dict[str, str] = {}


class MetadataFrom(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One entry of `spec.metadataFrom`: the name of a label or annotation."""

    key: str
    pod_label: str | None = None
    pod_annotation: str | None = None
    service_label: str | None = None
    service_annotation: str | None = None


NO_PATHS, NO_ZONE = Paths(), Zone(from_endpoint=False)


class Spec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The `spec` of a manifest. None: the default depends on the Service."""

    selector: Selector
    syncer_class: str | None = None  # None: an installation without a class serves it
    mode: Literal["pod", "service"] = "pod"  # an instance for each pod, or for each Service
    app_name: str | None = None
    vip_address: str | None = None
    secure_vip_address: str | None = None
    port: str | int | None = None
    secure_port: str | int | None = None
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    metadata_from: tuple[MetadataFrom, ...] = ()
    zone: Zone = NO_ZONE
    paths: Paths = NO_PATHS
    host_name: str = "ip"
    address_family: Literal["IPv4", "IPv6"] | None = None
    not_ready: Literal["Down", "Cancel"] = "Down"
    terminating: Literal["Cancel", "KeepWhileServing"] = "Cancel"
    pod: PodAt = PodAt()
    service: At = At()
    limit: Any = None
    suspend: bool = False
    # Whether a pod that registers itself is registered twice
    on_duplicate: Literal["Skip", "Warn"] = "Skip"
    readiness_gate: bool = False


_SPEC = msgspec.json.Decoder(Spec)  # for its type, which is built now


class Syncer(Spec, frozen=True, kw_only=True):
    """A valid spec. `app_name` may be that of the selector."""

    ref: SyncerRef
    namespace: str
    limit: Limit | None

    @property
    def claims_nothing(self) -> bool:
        """Whether the limit is 0, so that another syncer may register the same endpoints."""
        if self.limit is None or self.suspend:
            return False
        return self.limit.value == 0

    @property
    def ports(self) -> Mapping[str, str | int | None]:
        """The values of `port` and `securePort`, the main one first. With `securePort` alone, the
        plain port is off."""
        if self.secure_port is None:
            return {"port": self.port}
        if self.port is None:
            return {"securePort": self.secure_port}
        return {"port": self.port, "securePort": self.secure_port}

    def app_of(self, service: Service) -> str:
        """Return the app of a Service, in upper case."""
        return (self.app_name or service.name).upper()

    @property
    def at_host(self) -> bool:
        """Whether pods are registered at their nodes' addresses and host ports."""
        return self.pod.address == "HostPort"

    @property
    def names_nodes(self) -> bool:
        """Whether instances are called by the names of nodes."""
        return self.host_name.startswith("nodeName")

    @property
    def needs_pods(self) -> bool:
        """Whether Pods have to be read for the metadata."""
        for entry in self.metadata_from:
            if entry.pod_label is not None or entry.pod_annotation is not None:
                return True
        return False


def parse(syncer: SyncerObject) -> Syncer:
    """Read and check the syncer's spec. Raises InvalidSyncer."""
    raw = normal(syncer.spec)
    wrong = Faults()
    spec = in_shape(raw, _SPEC, wrong)
    _check_combinations(spec, wrong, given=raw)
    check_selector(spec.selector, wrong)
    node_selector = spec.service.node_selector
    if node_selector is not None:
        check_labels(("service", "nodeSelector"), node_selector, wrong)
    _check_names(spec, wrong)
    _check_paths(spec.paths, wrong)
    _check_metadata(spec, wrong)
    _check_metadata_from(spec, wrong)
    limit = parse_limit(spec.limit, wrong)
    if wrong:
        raise wrong.refusal()
    fields = msgspec.structs.asdict(spec)
    fields["app_name"] = _app_name(spec)
    fields["limit"] = limit
    namespace = selected_namespace(syncer)
    return Syncer(**fields, ref=syncer.ref, namespace=namespace)


def in_shape(raw: Any, decoder: msgspec.json.Decoder[T], wrong: Faults) -> T:
    """Return a raw spec as a value of the decoder's type. Raises InvalidSyncer if it has another
    shape, with the faults that are already in `wrong`."""
    try:
        return msgspec.convert(raw, decoder.type)
    except msgspec.ValidationError as error:
        shape = msgspec.inspect.type_info(decoder.type)
        faults = list(shape_faults(raw, shape, ()))
        for path, fault in faults or [((), str(error))]:
            wrong.add(path, fault)
        raise wrong.refusal() from error


def _app_name(spec: Spec) -> str | None:
    """Return the app's name in the spec, or else in its selector, which may have none either.
    Raises InvalidSyncer."""
    if spec.app_name:
        return check_app_name("spec.appName", spec.app_name)
    if spec.selector.app:
        return check_app_name("spec.selector.app", spec.selector.app)
    return None


def class_of(syncer: SyncerObject) -> str | None:
    """Return the class in a raw spec, which may be invalid otherwise."""
    return name_in(syncer.spec, "syncerClass")


def selected_namespace(syncer: SyncerObject) -> str:
    """Return the namespace of a syncer's Services: its own, unless the spec has another."""
    return name_in(syncer.spec.get("selector"), "namespace") or syncer.namespace


def name_in(raw: Any, field: str) -> str | None:
    """Return the name in a field of a raw object, which may be invalid; None if it has none."""
    name = raw.get(field) if isinstance(raw, Mapping) else None
    if isinstance(name, str) and name:
        return name
    return None


def ignored_value(annotations: Mapping[str, str], name: str) -> str:
    """Return why an annotation's value is neither "true" nor "false"; empty if it is, or if there
    is no annotation."""
    value = annotations.get(name, "false")
    if value in ("true", "false"):
        return ""
    beginning = cut(value, 40)
    return f'annotation {name}: {beginning!r} is ignored: write "true"'


def abandoned(syncer: SyncerObject | ImportObject) -> bool:
    """Whether a person deleted the syncer without waiting for its instances, or the import without
    waiting for its endpoints."""
    if syncer.deleted is None:
        return False
    return syncer.annotations.get(ABANDON_ANNOTATION) == "true"


def host_name_warning(name: str) -> str | None:
    """Return a warning if Spring's Feign refuses the name, which may have a port, as a host."""
    host, _, _ = name.partition(":")
    if _HOST_OF_A_URL.fullmatch(host):
        return None
    return f"{host} is not a legal host name: Feign and RestTemplate clients refuse it in a URL"


def check_app_name(field: str, name: str) -> str:
    """Return the name if it is a valid app name. Raises InvalidSyncer."""
    if _APP_NAME.fullmatch(name):
        return name
    beginning = cut(name, 80)
    raise InvalidSyncer(
        Reason.INVALID_NAME,
        f"{field}: {beginning!r} cannot be an app name: 1 to 128 letters, digits, '.', '_' or "
        "'-', a letter or digit at both ends",
    )


def value_fault(value: str) -> str:
    """Return why a text cannot be a metadata value; empty if it can."""
    if _CONTROL_CHARACTER.search(value) or len(value) > _LONGEST_VALUE:
        return (
            f"the value has a control character or is longer than {_LONGEST_VALUE}, "
            "which would break the registry for every reader"
        )
    return ""


def is_metadata_key(key: str) -> bool:
    """Say whether a key can be that of an instance's metadata in Eureka."""
    return len(key) <= _LONGEST_KEY and _METADATA_KEY.fullmatch(key) is not None


def size_of(metadata: Mapping[str, str]) -> int:
    """Return the bytes of all keys and values."""
    size = 0
    for key, value in metadata.items():
        text = f"{key}{value}"
        size += len(text.encode(errors="surrogatepass"))
    return size


def normal(value: Any) -> Any:
    """Read a raw spec as the API server does: null is no value, and 8080.0 is the number 8080."""
    if isinstance(value, dict):
        fields: dict[Any, Any] = {}
        for name, item in value.items():
            if item is not None:
                fields[name] = normal(item)
        return fields
    if isinstance(value, list):
        return [normal(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _check_combinations(spec: Spec, wrong: Faults, *, given: Mapping[str, Any]) -> None:
    """Add what the CRD refuses by CEL rules, which `validate` and `run` do not run."""
    at = spec.service
    pods = spec.mode == "pod"
    node_ports = at.hostname is None and at.address in (None, "Auto", "NodePort")
    same_port = f"securePort must differ from port (both are {spec.port})"
    by_name = not spec.host_name.startswith("ip")
    for excluded, path, fault in (
        ("service" in given and pods, ("service",), "service is only for mode service"),
        ("pod" in given and not pods, ("pod",), "pod is only for mode pod"),
        (
            at.hostname is not None and at.address,
            ("service", "address"),
            "hostname and address exclude each other",
        ),
        (
            at.node_address and not node_ports,
            ("service", "nodeAddress"),
            "nodeAddress is only for address NodePort",
        ),
        (
            at.node_selector is not None and not node_ports,
            ("service", "nodeSelector"),
            "nodeSelector is only for address NodePort",
        ),
        (spec.port is not None and spec.port == spec.secure_port, ("securePort",), same_port),
        (
            spec.readiness_gate and not pods,
            ("readinessGate",),
            "readinessGate is only for mode pod",
        ),
        (
            by_name and not pods,
            ("hostName",),
            "podName and nodeName in hostName are only for mode pod",
        ),
        (spec.zone.from_endpoint and not pods, ("zone",), "zone.fromEndpoint is only for mode pod"),
    ):
        if excluded:
            wrong.add(path, fault)


def _check_names(spec: Spec, wrong: Faults) -> None:
    host = spec.service.hostname
    if host is not None and not _is_fixed_host(host):
        fault = f"{host[:80]!r} is not a host name"
        wrong.add(("service", "hostname"), fault, Reason.INVALID_NAME)
    _check_vip("vipAddress", spec.vip_address, wrong)
    _check_vip("secureVipAddress", spec.secure_vip_address, wrong)
    check_port(("port",), spec.port, wrong)
    check_port(("securePort",), spec.secure_port, wrong)
    name = spec.host_name
    if not HOST_NAME.fullmatch(name):
        fault = "is not ip, podName or nodeName, alone or before a suffix such as .example.com"
        wrong.add(("hostName",), f"{name[:80]!r} {fault}")


def _is_fixed_host(host: str) -> bool:
    return len(host) <= 253 and _FIXED_HOST.fullmatch(host) is not None


def _check_vip(field: str, vip: str | None, wrong: Faults) -> None:
    if vip is None:
        return
    if len(vip) > 512 or not _VIP_ADDRESS.fullmatch(vip):
        names = "must be names of letters, digits and ._- with commas between, at most 512 long"
        wrong.add((field,), names, Reason.INVALID_NAME)


def check_port(path: Path, port: str | int | None, wrong: Faults) -> bool:
    """Add why a port is neither a name nor a number. Say whether it is wrong."""
    if isinstance(port, str) and _DIGITS.fullmatch(port):
        # Charts write a number so. The CRD's pattern says less.
        fault = f'"{port}" is in quotes, and a number goes without quotes'
        if len(port) <= 5 and _is_port(int(port)):
            wrong.add(path, f"{fault}: {path[-1]}: {port}")
        else:
            wrong.add(path, f"{fault}, from 1 to 65535")
        return True
    out_of_range = isinstance(port, int) and not _is_port(port)
    if port == "" or out_of_range:
        wrong.add(path, f"{port!r} is neither a port's name nor a number in 1..65535")
        return True
    return False


def _is_port(number: int) -> bool:
    return 1 <= number <= 65535


def _check_paths(paths: Paths, wrong: Faults) -> None:
    named = {"home": paths.home, "status": paths.status, "health": paths.health}
    for name, path in named.items():
        if path is not None and not _PATH.fullmatch(path):
            fault = f"{path!r} is not a path: it begins with a slash and has no spaces"
            wrong.add(("paths", name), fault)
    port = paths.management_port
    if port is not None and not _is_port(port):
        wrong.add(("paths", "managementPort"), f"{port} is not a number in 1..65535")


def _check_metadata(spec: Spec, wrong: Faults) -> None:
    for key, value in spec.metadata.items():
        path = ("metadata", key)
        _check_key(path, key, wrong)
        fault = value_fault(value)
        if fault:
            wrong.add(path, fault, Reason.INVALID_METADATA)
    if size_of(spec.metadata) > MOST_METADATA:
        wrong.add(("metadata",), TOO_MUCH_METADATA, Reason.INVALID_METADATA)
    if spec.zone.from_endpoint:
        _check_zone(spec, wrong)
    if spec.paths.management_port is not None and MANAGEMENT_PORT in spec.metadata:
        fault = "metadata must not have the key management.port if paths.managementPort is set"
        wrong.add(("paths",), fault, Reason.INVALID_METADATA)


def _check_zone(spec: Spec, wrong: Faults) -> None:
    for name, value in spec.zone.map.items():
        fault = value_fault(value)
        if not value:
            fault = "the value is empty"
        if fault:
            wrong.add(("zone", "map", name), fault, Reason.INVALID_METADATA)
    if ZONE in spec.metadata:
        fault = "metadata must not have the key zone if zone.fromEndpoint is true"
        wrong.add(("zone",), fault, Reason.INVALID_METADATA)


def _check_metadata_from(spec: Spec, wrong: Faults) -> None:
    taken: set[str] = set()
    for index, entry in enumerate(spec.metadata_from):
        at = ("metadataFrom", index)
        key = entry.key
        at_key = (*at, "key")
        _check_key(at_key, key, wrong)
        if _ACTED_ON.fullmatch(key):
            fault = (
                "callers act on keys such as zone, password, configPath, health.path and "
                "management.*: set them by spec.metadata, spec.zone or spec.paths"
            )
            wrong.add(at_key, fault, Reason.INVALID_METADATA)
        _check_sources(at, entry, spec, wrong)
        if key in spec.metadata:
            fault = "a key must not be in both metadata and metadataFrom"
            wrong.add(at_key, fault, Reason.INVALID_METADATA)
        elif key in taken:
            wrong.add(at_key, "another entry has the same key", Reason.INVALID_METADATA)
        taken.add(key)


def _check_sources(at: Path, entry: MetadataFrom, spec: Spec, wrong: Faults) -> None:
    of_pod = {"podLabel": entry.pod_label, "podAnnotation": entry.pod_annotation}
    sources = [*of_pod.values(), entry.service_label, entry.service_annotation]
    named = len(sources) - sources.count(None)
    if named != 1:
        fault = (
            "exactly one of podLabel, podAnnotation, serviceLabel and serviceAnnotation is needed"
        )
        wrong.add(at, fault)
    if spec.mode == "pod":
        return
    for source, name in of_pod.items():
        if name is not None:
            wrong.add((*at, source), "podLabel and podAnnotation are only for mode pod")


def _check_key(path: Path, key: str, wrong: Faults) -> None:
    if not is_metadata_key(key):
        fault = (
            "a metadata key becomes an XML element name: a letter or _, then letters, digits, '.', "
            f"'-' and '_', at most {_LONGEST_KEY} characters"
        )
    elif key.startswith("eurekube."):
        fault = (
            "a metadata key must not start with 'eurekube.', because eurekube-sync itself "
            "writes such keys"
        )
    elif key in ("class", "instanceId"):
        fault = (
            "a metadata key must not be @class, class or instanceId, which mean something "
            "else in Eureka"
        )
    else:
        return
    wrong.add(path, fault, Reason.INVALID_METADATA)
