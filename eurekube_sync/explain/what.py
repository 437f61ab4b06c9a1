"""What somebody asks about: a syncer, a Service, a pod, an app, an address or an instance id. And what comes near."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from enum import StrEnum
from ipaddress import ip_address

from eurekube_sync.model.values import dataclass

_ID = re.compile(r"[a-z0-9-]+:(?P<namespace>[a-z0-9-]+):[^:]+:[^:]+:[0-9]{1,5}")  # of ours
_ALIKE = 0.6  # as `difflib` measures it: `orders` and `ordersXX` are 0.86

Labels = Mapping[str, str]
NearLabel = tuple[str, tuple[str, ...], bool]
"""A label `key=value` that some objects have instead of the one that was asked for, their names, and whether it is the
same value under another key."""


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
    kind: Kind
    name: str  # of an object; an app in upper case; an address without its port; an instance id
    namespace: str = ""  # empty where it names none
    port: int | None = None  # of an address that names one

    def __str__(self) -> str:
        if self.kind in (Kind.SYNCER, Kind.SERVICE, Kind.POD):
            return f"{'' if self.kind is Kind.SYNCER else f'{self.kind}/'}{self.namespace}/{self.name}"
        if self.port is None:
            return self.name
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


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
            syncer = f"for a syncer of namespace {kind}: esync/{text}"
            raise ValueError(f"{text!r} has no namespace; write {kind}/NAMESPACE/{name}, or {syncer}")
        case [namespace, name] if namespace and name:
            return What(Kind.SYNCER, name, namespace)
        case [one] if one:
            ours = _ID.fullmatch(one)
            instance = What(Kind.INSTANCE, one, ours["namespace"] if ours else "")
            return _address(one) or (instance if ":" in one else What(Kind.APP, one.upper()))
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
        return bool(ip_address(text))
    except ValueError:
        return False


def near_names(name: str, names: Iterable[str]) -> Sequence[str]:
    """At most three that are nearly this one, the most alike first."""
    return get_close_matches(name, sorted(set(names)), n=3, cutoff=_ALIKE)


def near_labels(wanted: Labels, found: Iterable[tuple[str, Labels]]) -> Sequence[NearLabel]:
    """Labels of objects that would match but for one label of `wanted`, the most alike first; at most two."""
    names: dict[tuple[float, str], list[str]] = {}
    for name, labels in found:
        lacking = [key for key, value in wanted.items() if labels.get(key) != value]
        for key, has in labels.items() if len(lacking) == 1 else ():
            likeness = float(has == wanted[lacking[0]])  # 1.0: the same value, under another key
            if key == lacking[0]:  # to compare all values letter by letter takes seconds for some thousand pods
                likeness = SequenceMatcher(None, wanted[key], has).ratio()
            if likeness >= _ALIKE:
                names.setdefault((-likeness, f"{key}={has}"), []).append(name)
    return [(label, tuple(sorted(names[less, label])), less == -1.0) for less, label in sorted(names)[:2]]


def matches(wanted: Labels, labels: Labels) -> bool:
    """Whether an object with these labels has all that is wanted; nothing wanted matches nothing."""
    return bool(wanted) and wanted.items() <= labels.items()


def written(labels: Labels) -> str:
    """As `kubectl get --selector` takes it."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
