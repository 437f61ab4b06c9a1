"""What was nearly right: names and labels that are one edit away from what was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    names: dict[tuple[float, str], list[str]] = {}
    for name, labels in found:
        lacking = [key for key, value in wanted.items() if labels.get(key) != value]
        if len(lacking) == 1:
            for label, likeness in _instead_of(lacking[0], wanted[lacking[0]], labels):
                names.setdefault((-likeness, label), []).append(name)
    return [NearLabel(label, tuple(sorted(names[less, label])), less == -1.0) for less, label in sorted(names)[:2]]


def _instead_of(key: str, value: str, labels: Labels) -> Iterator[tuple[str, float]]:
    for other, has in labels.items():
        if has == value:
            yield f"{other}={has}", 1.0
        elif other == key and (likeness := SequenceMatcher(None, value, has).ratio()) >= _ALIKE:
            yield f"{other}={has}", likeness


def matches(wanted: Labels, labels: Labels) -> bool:
    """Whether an object with these labels has all that is wanted; nothing wanted matches nothing."""
    return bool(wanted) and wanted.items() <= labels.items()


def written(labels: Labels) -> str:
    """As `kubectl get --selector` takes it."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
