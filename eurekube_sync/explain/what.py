"""Parses the argument of `explain`: a syncer, Service, pod, app, address or instance id. Finds
similar names, too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from ipaddress import ip_address

from msgspec import Struct

from eurekube_sync.desired.similar import ALIKE

_ID = re.compile(r"[a-z0-9-]+:(?P<namespace>[a-z0-9-]+):[^:]+:[^:]+:[0-9]{1,5}")
"""An id of our instances."""


class Kind(StrEnum):
    """The kinds of things to explain. The values of Kubernetes objects are kubectl's names."""

    SYNCER = "esync"
    IMPORT = "eimp"
    SERVICE = "svc"
    POD = "pod"
    DEPLOYMENT = "deploy"
    STATEFUL_SET = "sts"
    DAEMON_SET = "ds"
    APP = "app"
    VIP = "vip"
    ADDRESS = "address"
    INSTANCE = "instance"


WORKLOADS: Mapping[Kind, str] = {
    Kind.DEPLOYMENT: "Deployment",
    Kind.STATEFUL_SET: "StatefulSet",
    Kind.DAEMON_SET: "DaemonSet",
}
"""The kinds of object that stand for their pods, as Kubernetes names them."""


class What(Struct, frozen=True):
    kind: Kind
    name: str  # of an object; an app or VIP in upper case; an address without its port; an instance id
    namespace: str = ""  # empty if unknown
    port: int | None = None  # of an address with a port

    def __str__(self) -> str:
        if self.kind is Kind.SYNCER:
            return f"{self.namespace}/{self.name}"
        if self.kind in (Kind.IMPORT, Kind.SERVICE, Kind.POD, *WORKLOADS):
            return f"{self.kind}/{self.namespace}/{self.name}"
        if self.port is None:
            return self.name
        if ":" in self.name:
            return f"[{self.name}]:{self.port}"
        return f"{self.name}:{self.port}"


_KINDS = {
    "esync": Kind.SYNCER,
    "eurekasyncer": Kind.SYNCER,
    "eurekasyncers": Kind.SYNCER,
    "import": Kind.IMPORT,
    "eimp": Kind.IMPORT,
    "eurekaimport": Kind.IMPORT,
    "eurekaimports": Kind.IMPORT,
    "svc": Kind.SERVICE,
    "service": Kind.SERVICE,
    "services": Kind.SERVICE,
    "po": Kind.POD,
    "pod": Kind.POD,
    "pods": Kind.POD,
    "deploy": Kind.DEPLOYMENT,
    "deployment": Kind.DEPLOYMENT,
    "deployments": Kind.DEPLOYMENT,
    "sts": Kind.STATEFUL_SET,
    "statefulset": Kind.STATEFUL_SET,
    "statefulsets": Kind.STATEFUL_SET,
    "ds": Kind.DAEMON_SET,
    "daemonset": Kind.DAEMON_SET,
    "daemonsets": Kind.DAEMON_SET,
}


def parse_what(text: str) -> What:
    """Parse the argument. Raises ValueError with a message for the user."""
    text = text.strip()
    match text.split("/"):
        case [kind, namespace, name] if kind in _KINDS and namespace and name:
            return What(_KINDS[kind], name, namespace)
        case [kind, name] if kind in _KINDS and name:
            syncer = f"for a syncer of namespace {kind}: esync/{text}"
            raise ValueError(
                f"{text!r} has no namespace; write {kind}/NAMESPACE/{name}, or {syncer}"
            )
        case [namespace, name] if namespace and name:
            return What(Kind.SYNCER, name, namespace)
        case [name] if name:
            return _address(name) or _instance_or_app(name)
    raise ValueError(
        f"{text!r} names nothing that can be explained; write NAMESPACE/NAME of a syncer, "
        "svc/NAMESPACE/NAME, "
        "pod/NAMESPACE/NAME, deploy/NAMESPACE/NAME, import/NAMESPACE/NAME, the name of an app, VIP "
        "address or pod, IP:PORT or an instance id"
    )


def _instance_or_app(text: str) -> What:
    if ":" not in text:
        return What(Kind.APP, text.upper())
    ours = _ID.fullmatch(text)
    return What(Kind.INSTANCE, text, ours["namespace"] if ours else "")


def _address(text: str) -> What | None:
    host, colon, port = text.rpartition(":")
    bare = _without_brackets(host)
    # Without brackets, the last part of an IPv6 address is no port.
    cut_off = bare != host or ":" not in bare
    if colon and cut_off and _is_ip(bare) and port.isdecimal():
        return What(Kind.ADDRESS, bare, port=int(port))
    whole = _without_brackets(text)
    if _is_ip(whole):
        return What(Kind.ADDRESS, whole)
    return None


def _without_brackets(text: str) -> str:
    return text.removeprefix("[").removesuffix("]")


def _is_ip(text: str) -> bool:
    try:
        return bool(ip_address(text))
    except ValueError:
        return False


def near_names(name: str, names: Iterable[str]) -> Sequence[str]:
    """Return at most three similar names, the most similar first."""
    return get_close_matches(name, sorted(set(names)), n=3, cutoff=ALIKE)


def similar(names: Sequence[str]) -> list[str]:
    """Return the detail that names similar things; empty for none."""
    if not names:
        return []
    return [f"similar: {', '.join(names)}"]
