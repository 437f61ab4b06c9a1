"""What somebody asks about: a syncer, a Service, a pod, an app, an address or an instance id."""

from __future__ import annotations

import re
from enum import StrEnum
from ipaddress import ip_address

from eurekube_sync.model.values import dataclass

_ID = re.compile(r"[a-z0-9-]+:(?P<namespace>[a-z0-9-]+):[^:]+:[^:]+:[0-9]{1,5}")
"""An instance id of ours: `owner:namespace:app:address:port`."""


class Kind(StrEnum):
    """What it is; the value of an object is what kubectl calls it."""

    SYNCER = "esync"
    SERVICE = "svc"
    POD = "pod"
    APP = "app"
    ADDRESS = "address"
    INSTANCE = "instance"


@dataclass(frozen=True, slots=True)
class What:
    """One question."""

    kind: Kind
    name: str
    """Of an object; an app in upper case; an address without its port; an instance id."""
    namespace: str = ""
    """Empty where it names none."""
    port: int | None = None
    """Of an address that names one."""

    def __str__(self) -> str:
        match self.kind:
            case Kind.SYNCER:
                return f"{self.namespace}/{self.name}"
            case Kind.SERVICE | Kind.POD:
                return f"{self.kind}/{self.namespace}/{self.name}"
            case Kind.ADDRESS if self.port is not None:
                return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"
            case _:
                return self.name


_KINDS = {
    **dict.fromkeys(("esync", "eurekasyncer", "eurekasyncers"), Kind.SYNCER),
    **dict.fromkeys(("svc", "service", "services"), Kind.SERVICE),
    **dict.fromkeys(("pod", "pods", "po"), Kind.POD),
}


def parse_what(text: str) -> What:
    """Raises ValueError with a sentence."""
    text = text.strip()
    match text.split("/"):
        case [kind, namespace, name] if kind in _KINDS and namespace and name:
            return What(_KINDS[kind], name, namespace)
        case [kind, name] if kind in _KINDS and name:
            raise ValueError(
                f"{text!r} has no namespace; write {kind}/NAMESPACE/{name}, or for a syncer of namespace {kind}: "
                f"esync/{text}"
            )
        case [namespace, name] if namespace and name:
            return What(Kind.SYNCER, name, namespace)
        case [one] if one:
            return _address(one) or (_instance(one) if ":" in one else What(Kind.APP, one.upper()))
    raise ValueError(
        f"{text!r} names nothing that can be explained; write NAMESPACE/NAME of a syncer, svc/NAMESPACE/NAME, "
        "pod/NAMESPACE/NAME, an app, IP:PORT or an instance id"
    )


def _address(text: str) -> What | None:
    host, colon, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if colon and _is_ip(bare) and port.isdecimal() and (bare != host or ":" not in bare):
        return What(Kind.ADDRESS, bare, port=int(port))
    whole = text.removeprefix("[").removesuffix("]")
    return What(Kind.ADDRESS, whole) if _is_ip(whole) else None


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _instance(text: str) -> What:
    ours = _ID.fullmatch(text)
    return What(Kind.INSTANCE, text, ours["namespace"] if ours else "")
