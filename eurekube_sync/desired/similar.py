"""Labels that match, and labels that nearly do: for messages about selectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from eurekube_sync.model.kubernetes import Service

MOST_COMPARED = 200  # Services of a namespace
ALIKE = 0.6  # the least ratio of `difflib`; `orders` and `ordersXX` have 0.86
_SAME_VALUE = 1.0  # under another key; two values of one key are never equal
Labels = Mapping[str, str]


class NearLabel(NamedTuple):
    """A label that objects have instead of the wanted one."""

    label: str  # as `key=value`
    names: tuple[str, ...]  # of the objects
    other_key: bool  # whether only the key differs


def near_labels(wanted: Labels, objects: Iterable[tuple[str, Labels]]) -> Sequence[NearLabel]:
    """Return at most two labels of objects that match except for one label of `wanted`, the most
    similar first."""
    names: dict[tuple[float, str], list[str]] = {}  # the most similar label sorts first
    for name, labels in objects:
        lacking = _lacking(wanted, labels)
        if len(lacking) != 1:
            continue
        wanted_key = lacking[0]
        wanted_value = wanted[wanted_key]
        for key, value in labels.items():
            likeness = 0.0
            # SequenceMatcher on all values takes seconds for thousands of pods.
            if key == wanted_key:
                likeness = SequenceMatcher(None, wanted_value, value).ratio()
            elif value == wanted_value:
                likeness = _SAME_VALUE
            if likeness >= ALIKE:
                label = f"{key}={value}"
                names.setdefault((-likeness, label), []).append(name)
    near = []
    for rank in sorted(names)[:2]:
        unlikeness, label = rank
        having = sorted(names[rank])
        other_key = unlikeness == -_SAME_VALUE
        near.append(NearLabel(label, tuple(having), other_key))
    return near


def _lacking(wanted: Labels, labels: Labels) -> Sequence[str]:
    """Return the keys of the wanted labels that are missing, or have another value."""
    lacking = []
    for key, value in wanted.items():
        if labels.get(key) != value:
            lacking.append(key)
    return lacking


def near_services(wanted: Labels, services: Sequence[Service]) -> Sequence[NearLabel]:
    """Return the labels of Services that are nearly selected. Not of a namespace with many
    Services, because each pass compares them."""
    if len(services) > MOST_COMPARED:
        return ()
    named = [(service.name, service.labels) for service in services]
    return near_labels(wanted, named)


def matches(wanted: Labels, labels: Labels) -> bool:
    """Whether these labels include all that are wanted. An empty selector matches nothing."""
    return bool(wanted) and wanted.items() <= labels.items()


def written(labels: Labels, between: str = ",") -> str:
    """Write labels as the argument of `kubectl get --selector`, or with a space between them as
    those of `kubectl label`."""
    parts: list[str] = []
    for key, value in sorted(labels.items()):
        parts.append(f"{key}={value}")
    return between.join(parts)
