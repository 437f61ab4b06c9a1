"""What one EurekaSyncer asks for: its raw spec becomes a `Syncer`, or an `InvalidSyncer` that says why not.

The API server has checked the spec against the CRD, perhaps an older one, so nothing is taken on trust here. A field
that this version does not know is refused by name: a syncer is never silently served without one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

import msgspec

from eurekube_sync.desired.conduct import Conduct, Policy, parse_limit
from eurekube_sync.desired.presentation import MetadataFromSpec, PathsSpec, Presentation, ZoneSpec, parse_presentation
from eurekube_sync.desired.selector import Selector, SelectorSpec, select
from eurekube_sync.desired.spec_faults import Faults, misshapen, refused
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.kubernetes import SyncerObject, SyncerRef
from eurekube_sync.model.value_faults import same_port, wrong_type
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import cut

CLEANUP_FINALIZER = "eurekube.io/cleanup"
ABANDON_ANNOTATION = "eurekube.io/abandon"
DRAIN_ANNOTATION = "eurekube.io/drain"

_APP_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")
_VIP = r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(:[0-9]{1,5})?"
_VIP_ADDRESS = re.compile(rf"{_VIP}(,{_VIP})*")
_FIXED_HOST = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")


class Mode(StrEnum):
    """What becomes an instance: each pod behind the Services, or each Service."""

    POD = "pod"
    SERVICE = "service"


class ServiceAddress(StrEnum):
    """`service.address`: which address of a Service becomes its instance."""

    AUTO = "Auto"
    CLUSTER_IP = "ClusterIP"
    LOAD_BALANCER = "LoadBalancer"
    NODE_PORT = "NodePort"
    EXTERNAL_IP = "ExternalIP"
    EXTERNAL_NAME = "ExternalName"


class NodeAddress(StrEnum):
    """`service.nodeAddress`: which address of a node; when it is not said, the external one of a node that has one."""

    INTERNAL = "InternalIP"
    EXTERNAL = "ExternalIP"


@dataclass(frozen=True, slots=True, kw_only=True)
class Syncer:
    """A syncer's spec with its meaning; None where the Service decides."""

    ref: SyncerRef
    syncer_class: str | None
    """Which installation is to serve it; None: the one without a class."""
    namespace: str
    """Of its Services."""
    mode: Mode
    selector: Selector
    app_name: str | None
    vip_address: str | None
    secure_vip_address: str | None
    port: str | int | None
    secure_port: str | int | None
    """With no `port` beside it, the plain port is off."""
    presentation: Presentation
    address_family: str | None
    cancel_not_ready: bool
    """`notReady: Cancel`; else a not-ready endpoint is DOWN."""
    service_address: ServiceAddress = ServiceAddress.AUTO
    node_address: NodeAddress | None = None
    fixed_host: str | None = None
    """`service.hostname`: the one address, such as an Ingress's."""
    keep_while_serving: bool
    """`terminating: KeepWhileServing`; else an endpoint goes as soon as it terminates."""
    conduct: Conduct = Conduct()
    max_removal_percent: int | None = None
    """More of its UP instances than this go in one pass with evidence only."""


class _Service(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    address: ServiceAddress | None = None
    node_address: NodeAddress | None = None
    hostname: str | None = None


class _Spec(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    selector: SelectorSpec
    syncer_class: str | None = None
    mode: Mode = Mode.POD
    app_name: str | None = None
    vip_address: str | None = None
    secure_vip_address: str | None = None
    port: str | int | float | None = None
    metadata: dict[str, str] | None = None
    address_family: Literal["IPv4", "IPv6"] | None = None
    not_ready: Literal["Down", "Cancel"] = "Down"
    terminating: Literal["Cancel", "KeepWhileServing"] = "Cancel"
    secure_port: str | int | float | None = None
    metadata_from: list[MetadataFromSpec] | None = None
    zone: ZoneSpec | None = None
    paths: PathsSpec | None = None
    host_name: str | None = None
    service: _Service | None = None
    limit: Any = None
    policy: Policy = Policy.SYNC
    suspend: bool = False
    on_duplicate: Literal["Skip", "Warn"] = "Skip"
    max_removal_percent: int | float | None = None
    readiness_gate: bool = False


def parse(syncer: SyncerObject) -> Syncer:
    """The syncer's spec with its meaning. Raises InvalidSyncer."""
    try:
        spec = msgspec.convert(syncer.spec, _Spec)
    except msgspec.ValidationError as error:
        raise misshapen(syncer.spec, _Spec, error) from error
    wrong = Faults()
    at = spec.service or _Service()
    _check(spec, wrong)
    selector = select(spec.selector, wrong)
    named = spec.app_name or spec.selector.app
    presentation = parse_presentation(
        wrong,
        pods=spec.mode is Mode.POD,
        host_name=spec.host_name,
        paths=spec.paths,
        metadata=spec.metadata or {},
        metadata_from=spec.metadata_from or (),
        zone=spec.zone,
    )
    wrong.refuse()
    return Syncer(
        ref=syncer.ref,
        syncer_class=class_of(syncer),
        namespace=selected_namespace(syncer),
        mode=spec.mode,
        selector=selector,
        app_name=named and check_app_name("spec.appName" if spec.app_name else "spec.selector.app", named),
        vip_address=_vip("vipAddress", spec.vip_address),
        secure_vip_address=_vip("secureVipAddress", spec.secure_vip_address),
        port=_port("port", spec.port),
        secure_port=_port("securePort", spec.secure_port),
        presentation=presentation,
        address_family=spec.address_family,
        cancel_not_ready=spec.not_ready == "Cancel",
        service_address=at.address or ServiceAddress.AUTO,
        node_address=at.node_address,
        fixed_host=at.hostname,
        keep_while_serving=spec.terminating == "KeepWhileServing",
        conduct=Conduct(
            limit=parse_limit(spec.limit),
            policy=spec.policy,
            suspend=spec.suspend,
            warn_of_duplicates=spec.on_duplicate == "Warn",
            readiness_gate=spec.readiness_gate,
        ),
        max_removal_percent=_percent("maxRemovalPercent", spec.max_removal_percent),
    )


def class_of(syncer: SyncerObject) -> str | None:
    """The class that its spec names, whether the rest of it can be served or not."""
    named = syncer.spec.get("syncerClass")
    return named if isinstance(named, str) and named else None


def ignored_value(annotations: Mapping[str, str], name: str) -> str:
    """What is wrong with a switch that is neither "true" nor "false"; empty for one that is right, or not there."""
    value = annotations.get(name, "false")
    if value in ("true", "false"):
        return ""
    return f'annotation {name}: {cut(value, 40)!r} is ignored: write "true"'


def abandoned(syncer: SyncerObject) -> bool:
    """Whether a person lets the deletion go on without its clean-up."""
    return syncer.deleted is not None and syncer.annotations.get(ABANDON_ANNOTATION) == "true"


def selected_namespace(syncer: SyncerObject) -> str:
    """The namespace of its Services: its own, unless the spec names another."""
    selector = syncer.spec.get("selector")
    named = selector.get("namespace") if isinstance(selector, Mapping) else None
    return named if isinstance(named, str) and named else syncer.namespace


def host_name_warning(name: str) -> str | None:
    """A warning when Spring's Feign would refuse the name as a host, else None."""
    if _HOST_NAME.fullmatch(name):
        return None
    return f"{name} is not a legal host name: Feign and RestTemplate clients refuse it in a URL"


def check_app_name(field: str, name: str) -> str:
    """The name, when Eureka and every reader of it can live with it. Raises InvalidSyncer."""
    if not _APP_NAME.fullmatch(name):
        raise InvalidSyncer(
            "InvalidName",
            f"{field}: {cut(name, 80)!r} cannot be an app name: 1 to 128 letters, digits, '.', '_' or '-', "
            "a letter or digit at both ends",
        )
    return name


def _vip(field: str, vip: str | None) -> str | None:
    if vip is not None and (len(vip) > 512 or not _VIP_ADDRESS.fullmatch(vip)):
        names = "names of letters, digits, '.', '_' or '-' with commas between, at most 512 long"
        raise refused((field,), names, "InvalidName")
    return vip


def _port(field: str, port: str | float | None) -> str | int | None:
    # 8080.0 is the number 8080 to the API server, which stores it as it came.
    number = int(port) if isinstance(port, float) and port.is_integer() else port
    if isinstance(number, float):
        raise refused((field,), wrong_type(number, ("integer", "string")))
    if number == "" or (isinstance(number, int) and not 1 <= number <= 65535):
        raise refused((field,), f"{port!r} is neither a port's name nor a number in 1..65535")
    return number


def _check(spec: _Spec, wrong: Faults) -> None:
    """Adds which fields exclude each other."""
    _check_service(spec, wrong)
    if spec.port is not None and spec.port == spec.secure_port:
        wrong.add(("securePort",), same_port(spec.port))
    if spec.readiness_gate and spec.mode is not Mode.POD:
        wrong.add(("readinessGate",), "readinessGate is only for mode pod")


def _check_service(spec: _Spec, wrong: Faults) -> None:
    at = spec.service
    if at is None:
        return
    if spec.mode is Mode.POD:
        wrong.add(("service",), "service is only for mode service")
    if at.hostname is not None and at.address:
        wrong.add(("service", "address"), "hostname and address exclude each other")
    if at.hostname is not None and (not _FIXED_HOST.fullmatch(at.hostname) or len(at.hostname) > 253):
        wrong.add(("service", "hostname"), f"{at.hostname[:80]!r} is not a host name", "InvalidName")
    node_ports = at.hostname is None and at.address in (None, ServiceAddress.AUTO, ServiceAddress.NODE_PORT)
    if at.node_address and not node_ports:
        wrong.add(("service", "nodeAddress"), "nodeAddress is only for address NodePort")


def _percent(field: str, number: float | None) -> int | None:
    if number is not None and not (number == int(number) and 0 <= number <= 100):
        raise refused((field,), f"{number!r} is not a whole number in 0..100")
    return None if number is None else int(number)
