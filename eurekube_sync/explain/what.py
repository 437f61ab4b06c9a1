"""Parses the argument of `explain`: a syncer, Service, pod, app, address or instance id. Finds
similar names, too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from enum import StrEnum
from ipaddress import ip_address

from eurekube_sync.model.values import dataclass

_ID = re.compile(
    r"[a-z0-9-]+:(?P<namespace>[a-z0-9-]+):[^:]+:[^:]+:[0-9]{1,5}"
)  # an id of our instances
_ALIKE = 0.6  # the least ratio of `difflib`; `orders` and `ordersXX` have 0.86

Labels = Mapping[str, str]
NearLabel = tuple[str, tuple[str, ...], bool]
"""A label `key=value` that objects have instead of the wanted one, their names, and whether only
the key differs."""


class Kind(StrEnum):
    """The kinds of things to explain. The values of Kubernetes objects are kubectl's names."""

    SYNCER = "esync"
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
        if self.kind in (Kind.SYNCER, Kind.SERVICE, Kind.POD):
            return (
                f"{'' if self.kind is Kind.SYNCER else f'{self.kind}/'}{self.namespace}/{self.name}"
            )
        if self.port is None:
            return self.name
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


_KINDS = {
    **dict.fromkeys(("esync", "eurekasyncer", "eurekasyncers"), Kind.SYNCER),
    **dict.fromkeys(("svc", "service", "services"), Kind.SERVICE),
    **dict.fromkeys(("pod", "pods", "po"), Kind.POD),
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
        case [one] if one:
            ours = _ID.fullmatch(one)
            instance = What(Kind.INSTANCE, one, ours["namespace"] if ours else "")
            return _address(one) or (instance if ":" in one else What(Kind.APP, one.upper()))
    raise ValueError(
        f"{text!r} names nothing that can be explained; write NAMESPACE/NAME of a syncer, "
        "svc/NAMESPACE/NAME, "
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
        return bool(ip_address(text))
    except ValueError:
        return False


def near_names(name: str, names: Iterable[str]) -> Sequence[str]:
    """Return at most three similar names, the most similar first."""
    return get_close_matches(name, sorted(set(names)), n=3, cutoff=_ALIKE)


def near_labels(wanted: Labels, found: Iterable[tuple[str, Labels]]) -> Sequence[NearLabel]:
    """Find at most two labels of objects that match except for one label of `wanted`, the most
    similar first."""
    names: dict[tuple[float, str], list[str]] = {}
    for name, labels in found:
        lacking = [key for key, value in wanted.items() if labels.get(key) != value]
        for key, has in labels.items() if len(lacking) == 1 else ():
            likeness = float(has == wanted[lacking[0]])  # 1.0: the same value under another key
            if (
                key == lacking[0]
            ):  # SequenceMatcher on all values takes seconds for thousands of pods
                likeness = SequenceMatcher(None, wanted[key], has).ratio()
            if likeness >= _ALIKE:
                names.setdefault((-likeness, f"{key}={has}"), []).append(name)
    return [
        (label, tuple(sorted(names[less, label])), less == -1.0)
        for less, label in sorted(names)[:2]
    ]


def matches(wanted: Labels, labels: Labels) -> bool:
    """Whether these labels include all that are wanted. An empty selector matches nothing."""
    return bool(wanted) and wanted.items() <= labels.items()


def written(labels: Labels) -> str:
    """Write labels as the argument of `kubectl get --selector`."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
