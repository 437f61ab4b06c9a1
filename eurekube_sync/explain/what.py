"""Parses the argument of `explain`: a syncer, Service, pod, app, address or instance id. Finds
similar names, too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from enum import StrEnum
from ipaddress import ip_address
from typing import NamedTuple

_ID = re.compile(r"[a-z0-9-]+:(?P<namespace>[a-z0-9-]+):[^:]+:[^:]+:[0-9]{1,5}")
"""An id of our instances."""
_ALIKE = 0.6  # the least ratio of `difflib`; `orders` and `ordersXX` have 0.86

Labels = Mapping[str, str]


class NearLabel(NamedTuple):
    """A label that objects have instead of the wanted one."""

    label: str  # as `key=value`
    names: tuple[str, ...]  # of the objects
    other_key: bool  # whether only the key differs


class Kind(StrEnum):
    """The kinds of things to explain. The values of Kubernetes objects are kubectl's names."""

    SYNCER = "esync"
    IMPORT = "eimp"
    SERVICE = "svc"
    POD = "pod"
    APP = "app"
    ADDRESS = "address"
    INSTANCE = "instance"


@dataclass(frozen=True, slots=True)
class What:
    kind: Kind
    name: str  # of an object; an app in upper case; an address without its port; an instance id
    namespace: str = ""  # empty if unknown
    port: int | None = None  # of an address with a port

    def __str__(self) -> str:
        if self.kind is Kind.SYNCER:
            return f"{self.namespace}/{self.name}"
        if self.kind in (Kind.IMPORT, Kind.SERVICE, Kind.POD):
            return f"{self.kind}/{self.namespace}/{self.name}"
        if self.port is None:
            return self.name
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


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
        "pod/NAMESPACE/NAME, import/NAMESPACE/NAME, an app, IP:PORT or an instance id"
    )


def _instance_or_app(text: str) -> What:
    if ":" not in text:
        return What(Kind.APP, text.upper())
    ours = _ID.fullmatch(text)
    return What(Kind.INSTANCE, text, ours["namespace"] if ours else "")


def _address(text: str) -> What | None:
    host, colon, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if colon and _is_ip(bare) and port.isdecimal() and (bare != host or ":" not in bare):
        return What(Kind.ADDRESS, bare, port=int(port))
    whole = text.removeprefix("[").removesuffix("]")
    return What(Kind.ADDRESS, whole) if _is_ip(whole) else None


def _is_ip(text: str) -> bool:
    try:
        return bool(ip_address(text))
    except ValueError:
        return False


def near_names(name: str, names: Iterable[str]) -> Sequence[str]:
    """Return at most three similar names, the most similar first."""
    return get_close_matches(name, sorted(set(names)), n=3, cutoff=_ALIKE)


def near_labels(wanted: Labels, objects: Iterable[tuple[str, Labels]]) -> Sequence[NearLabel]:
    """Return at most two labels of objects that match except for one label of `wanted`, the most
    similar first."""
    names: dict[tuple[float, str], list[str]] = {}
    for name, labels in objects:
        lacking = [key for key, value in wanted.items() if labels.get(key) != value]
        if len(lacking) != 1:
            continue
        key_wanted, value_wanted = lacking[0], wanted[lacking[0]]
        for key, value in labels.items():
            likeness = float(value == value_wanted)  # 1.0: the same value under another key
            # SequenceMatcher on all values takes seconds for thousands of pods.
            if key == key_wanted:
                likeness = SequenceMatcher(None, value_wanted, value).ratio()
            if likeness >= _ALIKE:
                names.setdefault((-likeness, f"{key}={value}"), []).append(name)
    near = []
    for less, label in sorted(names)[:2]:
        having = tuple(sorted(names[less, label]))
        near.append(NearLabel(label, having, other_key=less == -1.0))
    return near


def matches(wanted: Labels, labels: Labels) -> bool:
    """Whether these labels include all that are wanted. An empty selector matches nothing."""
    return bool(wanted) and wanted.items() <= labels.items()


def written(labels: Labels, between: str = ",") -> str:
    """Write labels as the argument of `kubectl get --selector`, or with a space between them as
    those of `kubectl label`."""
    return between.join(f"{key}={value}" for key, value in sorted(labels.items()))
