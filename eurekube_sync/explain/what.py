"""What somebody asks about: a syncer, a Service, a pod, an app, an address or an instance id."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import TypeAlias

from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.values import dataclass

_ID = re.compile(r"[a-z0-9-]+:(?P<namespace>[a-z0-9-]+):[^:]+:[^:]+:[0-9]{1,5}")
"""An instance id of ours: `owner:namespace:app:address:port`."""


@dataclass(frozen=True, slots=True)
class OfSyncer:
    ref: SyncerRef

    def __str__(self) -> str:
        return str(self.ref)


@dataclass(frozen=True, slots=True)
class OfService:
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"svc/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class OfPod:
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"pod/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class OfApp:
    name: str
    """Upper case."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class OfAddress:
    host: str
    port: int | None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host and self.port is not None else self.host
        return host if self.port is None else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class OfInstance:
    id: str
    namespace: str
    """Empty for an id that is not of our form."""

    def __str__(self) -> str:
        return self.id


What: TypeAlias = OfSyncer | OfService | OfPod | OfApp | OfAddress | OfInstance

_KINDS: Mapping[str, type[OfService] | type[OfPod]] = {
    "svc": OfService,
    "service": OfService,
    "services": OfService,
    "pod": OfPod,
    "pods": OfPod,
    "po": OfPod,
}
_SYNCER_KINDS = frozenset({"esync", "eurekasyncer", "eurekasyncers"})


def parse_what(text: str) -> What:
    """Raises ValueError with a sentence."""
    text = text.strip()
    parts = text.split("/")
    if not text or not all(parts) or len(parts) > 3:
        raise ValueError(_refused(text))
    if len(parts) == 3:
        kind, namespace, name = parts
        if kind in _SYNCER_KINDS:
            return OfSyncer(SyncerRef(namespace, name))
        if kind in _KINDS:
            return _KINDS[kind](namespace, name)
        raise ValueError(_refused(text))
    if len(parts) == 2:
        if parts[0] in _KINDS or parts[0] in _SYNCER_KINDS:
            raise ValueError(
                f"{text!r} has no namespace; write {parts[0]}/NAMESPACE/{parts[1]}, or for a syncer of namespace "
                f"{parts[0]}: esync/{text}"
            )
        return OfSyncer(SyncerRef(*parts))
    return _address(text) or (_instance(text) if ":" in text else OfApp(text.upper()))


def namespace_of(what: What) -> str:
    """The namespace that it names; empty where it names none."""
    match what:
        case OfSyncer(ref=ref):
            return ref.namespace
        case OfService() | OfPod() | OfInstance():
            return what.namespace
        case OfApp() | OfAddress():
            return ""


def _refused(text: str) -> str:
    return (
        f"{text!r} names nothing that can be explained; write NAMESPACE/NAME of a syncer, svc/NAMESPACE/NAME, "
        "pod/NAMESPACE/NAME, an app, IP:PORT or an instance id"
    )


def _address(text: str) -> OfAddress | None:
    host, colon, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if colon and _is_ip(bare) and port.isdecimal() and (bare != host or ":" not in bare):
        return OfAddress(bare, int(port))
    whole = text.removeprefix("[").removesuffix("]")
    return OfAddress(whole, None) if _is_ip(whole) else None


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _instance(text: str) -> OfInstance:
    ours = _ID.fullmatch(text)
    return OfInstance(text, ours["namespace"] if ours else "")
