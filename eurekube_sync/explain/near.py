"""What was nearly right: names and labels that are one edit away from what was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher, get_close_matches
from typing import NamedTuple

_ALIKE = 0.6
"""As `difflib` measures it: `orders` and `ordersXX` are 0.86."""

Labels = Mapping[str, str]


def near_names(name: str, names: Iterable[str]) -> Sequence[str]:
    """At most three, the most alike first."""
    return get_close_matches(name, sorted(set(names)), n=3, cutoff=_ALIKE)


class NearLabel(NamedTuple):
    """A label that some objects have instead of the one that was asked for."""

    label: str
    """`key=value`, as they have it."""
    names: tuple[str, ...]
    """Of these objects."""
    same_value: bool
    """Under another key."""


def near_labels(wanted: Labels, found: Iterable[tuple[str, Labels]]) -> Sequence[NearLabel]:
    """Labels of objects that would match but for one label of `wanted`, the most alike first; at most two."""
    best: dict[str, tuple[float, list[str], bool]] = {}
    for name, labels in found:
        lacking = [key for key, value in wanted.items() if labels.get(key) != value]
        if len(lacking) != 1:
            continue
        key = lacking[0]
        for label, likeness, same_value in _instead_of(key, wanted[key], labels):
            best.setdefault(label, (likeness, [], same_value))[1].append(name)
    ordered = sorted(best.items(), key=lambda one: (-one[1][0], one[0]))
    return [NearLabel(label, tuple(sorted(names)), same) for label, (_, names, same) in ordered[:2]]


def _instead_of(key: str, value: str, labels: Labels) -> Iterable[tuple[str, float, bool]]:
    for other, has in labels.items():
        if has == value:
            yield f"{other}={has}", 1.0, True
        elif other == key and (likeness := SequenceMatcher(None, value, has).ratio()) >= _ALIKE:
            yield f"{other}={has}", likeness, False


def matches(wanted: Labels, labels: Labels) -> bool:
    """Whether an object with these labels has all that is wanted; nothing wanted matches nothing."""
    return bool(wanted) and wanted.items() <= labels.items()


def written(labels: Labels) -> str:
    """As `kubectl get --selector` takes it."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
