"""How an instance presents itself to callers: its host name, its URLs, what is metadata and where it comes from.

Owns what `hostName`, `paths`, `zone`, `metadata` and `metadataFrom` of a spec mean, and what Eureka can hold of it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Literal

import msgspec

from eurekube_sync.desired.spec_faults import Faults
from eurekube_sync.model.value_faults import Path
from eurekube_sync.model.values import dataclass

ZONE = "zone"
"""Metadata key that Spring Cloud LoadBalancer reads (ZonePreferenceServiceInstanceListSupplier)."""
MANAGEMENT_PORT = "management.port"
"""Metadata key that Spring Boot Admin reads (DefaultServiceInstanceConverter)."""

MOST_METADATA = 4096
"""Bytes of an instance's metadata, keys and values, beside our own marks. Every Eureka client downloads all of it."""
TOO_MUCH_METADATA = f"metadata has at most {MOST_METADATA} bytes in all, keys and values together"
"""The API server does not say it: a rule that adds them up would cost too much."""
_METADATA_KEY = re.compile(r"[A-Za-z][A-Za-z0-9.-]*")
_RESERVED_METADATA_KEYS = frozenset({"class", "instanceId"})
_ACTED_ON = re.compile(r"zone|user|user-?name|user-?password|password|configPath|health[.]path|(management|user)[.].*")
"""Spring Cloud LoadBalancer chooses by the zone, Spring Cloud Config and Spring Boot Admin where and as whom they call.
Whoever writes a label of a pod must not decide that."""
_OUR_METADATA_PREFIX = "eurekube."
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_HOST_NAME = re.compile(rf"(ip|podName|nodeName)([.-]{_LABEL}(?:[.]{_LABEL})*)?")
_PATH = re.compile(r"/[!-~]*")
_LONGEST_KEY = 128
_LONGEST_VALUE = 1024


class Base(StrEnum):
    """What a host name begins with."""

    IP = "ip"
    POD = "podName"
    NODE = "nodeName"


class From(StrEnum):
    """Where a metadata value comes from; the names are the spec's fields."""

    POD_LABEL = "podLabel"
    POD_ANNOTATION = "podAnnotation"
    SERVICE_LABEL = "serviceLabel"
    SERVICE_ANNOTATION = "serviceAnnotation"

    @property
    def of_pod(self) -> bool:
        """Whether the Pod has to be read for it."""
        return self in (From.POD_LABEL, From.POD_ANNOTATION)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostName:
    """`spec.hostName`."""

    base: Base = Base.IP
    suffix: str = ""
    """Empty, or such as `.rating.example.com`."""

    def of(self, name: str) -> str:
        """The host name for what the base stands for: an address, a pod's name or a node's.

        An IPv6 address is bracketed, as URLs need it. Before a suffix an address is a label of a DNS name: `-` for `.`
        and `:`, as in the cluster's own pod names and in services such as sslip.io.
        """
        if self.base is not Base.IP:
            return f"{name}{self.suffix}"
        if not self.suffix:
            return f"[{name}]" if ":" in name else name
        label = re.sub(r"[.:]", "-", name)
        return f"{'0' * label.startswith('-')}{label}{'0' * label.endswith('-')}{self.suffix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """`spec.paths`; empty for none."""

    home: str = ""
    status: str = ""
    health: str = ""
    management_port: int | None = None


NO_PATHS = Paths()


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSource:
    """One entry of `metadataFrom`."""

    key: str
    source: From
    name: str
    """Of the label or annotation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """All of it for one syncer."""

    host_name: HostName = field(default_factory=HostName)
    paths: Paths = NO_PATHS
    metadata: Mapping[str, str] = field(default_factory=dict)
    metadata_from: tuple[MetadataSource, ...] = ()
    zones: Mapping[str, str] | None = None
    """`zone.map` when the zone is taken from the endpoint, else None."""

    @property
    def needs_pods(self) -> bool:
        """Whether Pods have to be read."""
        return bool(self.metadata_from) and any(entry.source.of_pod for entry in self.metadata_from)


class PathsSpec(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """`paths` as it is written."""

    home: str | None = None
    status: str | None = None
    health: str | None = None
    management_port: int | float | None = None


class ZoneSpec(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """`zone` as it is written."""

    from_endpoint: bool
    map: dict[str, str] | None = None


class MetadataFromSpec(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """One of `metadataFrom` as it is written."""

    key: str
    pod_label: str | None = None
    pod_annotation: str | None = None
    service_label: str | None = None
    service_annotation: str | None = None


def parse_presentation(
    wrong: Faults,
    *,
    pods: bool,
    host_name: str | None,
    paths: PathsSpec | None,
    metadata: Mapping[str, str],
    metadata_from: Sequence[MetadataFromSpec],
    zone: ZoneSpec | None,
) -> Presentation:
    """The fields with their meaning; `pods` is mode pod. What cannot be served is added to `wrong`."""
    for key, value in metadata.items():
        _check_key(("metadata", key), key, wrong)
        if fault := value_fault(value):
            wrong.add(("metadata", key), fault, "InvalidMetadata")
    if size_of(metadata) > MOST_METADATA:
        wrong.add(("metadata",), TOO_MUCH_METADATA, "InvalidMetadata")
    found = Presentation(
        host_name=_host_name(host_name, wrong, pods=pods),
        paths=_paths(paths, wrong),
        metadata=metadata,
        metadata_from=tuple(_metadata_from(metadata_from, wrong, pods=pods)),
        zones=(zone.map or {}) if zone and zone.from_endpoint else None,
    )
    if found.zones is not None and not pods:
        wrong.add(("zone",), "zone.fromEndpoint is only for mode pod")
    for name, value in (found.zones or {}).items():
        if fault := value_fault(value) or ("" if value else "the value is empty"):
            wrong.add(("zone", "map", name), fault, "InvalidMetadata")
    _check_twice(found, metadata_from, wrong)
    return found


def value_fault(value: str) -> str | None:
    """Why a text cannot be a metadata value, or None when it can."""
    if _CONTROL_CHARACTER.search(value) or len(value) > _LONGEST_VALUE:
        return (
            f"the value has a control character or is longer than {_LONGEST_VALUE}, "
            "which would break the registry for every reader"
        )
    return None


def size_of(metadata: Mapping[str, str]) -> int:
    """Bytes of its keys and values."""
    texts = (text for pair in metadata.items() for text in pair)
    return sum(len(text.encode(errors="surrogatepass")) for text in texts)


def is_ip(address: str) -> bool:
    """Whether it is an IP address, rather than a host name."""
    return family_of(address) is not None


def family_of(address: str) -> Literal["IPv4", "IPv6"] | None:
    """The family of an IP address; None for a host name, and for an address that holds on one machine only."""
    if "%" in address:
        return None
    try:
        return "IPv6" if ipaddress.ip_address(address).version == 6 else "IPv4"
    except ValueError:
        return None


def _host_name(text: str | None, wrong: Faults, *, pods: bool) -> HostName:
    if text is None:
        return HostName()
    parts = _HOST_NAME.fullmatch(text)
    if parts is None:
        fault = "is not ip, podName or nodeName; a suffix after it begins with a dot or a hyphen"
        wrong.add(("hostName",), f"{text[:80]!r} {fault}")
        return HostName()
    base = Base(parts[1])
    if base is not Base.IP and not pods:
        wrong.add(("hostName",), "podName and nodeName in hostName are only for mode pod")
    return HostName(base=base, suffix=parts[2] or "")


def _paths(spec: PathsSpec | None, wrong: Faults) -> Paths:
    if spec is None:
        return NO_PATHS
    for field_, path in (("home", spec.home), ("status", spec.status), ("health", spec.health)):
        if path is not None and not _PATH.fullmatch(path):
            wrong.add(("paths", field_), f"{path!r} is not a path: a path begins with a slash")
    port = spec.management_port
    number = None if port is None else int(port)
    if number is not None and (number != port or not 1 <= number <= 65535):
        wrong.add(("paths", "managementPort"), f"{port} is not a number in 1..65535")
    return Paths(home=spec.home or "", status=spec.status or "", health=spec.health or "", management_port=number)


def _metadata_from(specs: Sequence[MetadataFromSpec], wrong: Faults, *, pods: bool) -> Iterator[MetadataSource]:
    for index, spec in enumerate(specs):
        at = ("metadataFrom", index)
        _check_key((*at, "key"), spec.key, wrong)
        if _ACTED_ON.fullmatch(spec.key):
            fault = (
                "callers act on keys such as zone, user.name, password, configPath, health.path and management.*: "
                "write them in metadata, zone or paths"
            )
            wrong.add((*at, "key"), fault, "InvalidMetadata")
        names = (spec.pod_label, spec.pod_annotation, spec.service_label, spec.service_annotation)
        given = [(source, name) for source, name in zip(From, names, strict=True) if name is not None]
        if len(given) != 1:
            wrong.add(at, "exactly one of podLabel, podAnnotation, serviceLabel and serviceAnnotation is needed")
        for source, name in given:
            if source.of_pod and not pods:
                wrong.add((*at, source.value), "podLabel and podAnnotation are only for mode pod")
            yield MetadataSource(key=spec.key, source=source, name=name)


def _check_key(path: Path, key: str, wrong: Faults) -> None:
    fault = None
    if not _METADATA_KEY.fullmatch(key) or len(key) > _LONGEST_KEY:
        fault = (
            "a metadata key becomes an XML element name: a letter, then letters, digits, dots and hyphens, "
            f"at most {_LONGEST_KEY} characters"
        )
    elif key.startswith(_OUR_METADATA_PREFIX):
        fault = f"metadata keys that start with {_OUR_METADATA_PREFIX} are written by eurekube-sync itself"
    elif key in _RESERVED_METADATA_KEYS:
        fault = "the metadata keys @class, class and instanceId have a meaning of their own in Eureka"
    if fault:
        wrong.add(path, fault, "InvalidMetadata")


def _check_twice(found: Presentation, specs: Sequence[MetadataFromSpec], wrong: Faults) -> None:
    """Each metadata key comes from one place."""
    taken = set(found.metadata)
    for index, entry in enumerate(specs):
        if entry.key in taken:
            in_both = entry.key in found.metadata
            fault = (
                "a key must not be in both metadata and metadataFrom" if in_both else "another entry has the same key"
            )
            wrong.add(("metadataFrom", index, "key"), fault, "InvalidMetadata")
        taken.add(entry.key)
    if found.zones is not None and ZONE in found.metadata:
        fault = "metadata must not have the key zone if zone.fromEndpoint is true"
        wrong.add(("zone",), fault, "InvalidMetadata")
    if found.paths.management_port is not None and MANAGEMENT_PORT in found.metadata:
        fault = "metadata must not have the key management.port if paths.managementPort is set"
        wrong.add(("paths",), fault, "InvalidMetadata")
