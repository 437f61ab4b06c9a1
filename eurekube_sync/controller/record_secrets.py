"""What is hidden in a record: logins, and values whose key sounds like a secret. Nothing else is changed, or a replay
would plan otherwise. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from eurekube_sync.desired.claims import every
from eurekube_sync.model.foreign_text import sounds_secret
from eurekube_sync.model.kubernetes import ClusterView
from eurekube_sync.model.values import dataclass

OURS = "eurekube."
"""How each mark in an instance's metadata, and each annotation that means something to us, begins."""
_OF_VALUES = ("metadata", "annotations")
"""Only in these mappings a value is hidden for its key: all else is compared with names."""
_OF_NAMES = ("namespace", "name", "uid", "owner", "cluster", "service", "key")
_SIDES = ("was", "becomes")
"""Of a change, as the report has it."""
_LOGIN_IN_URL = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_WHOLE_WORD = 6
"""Characters: a shorter login of ours is hidden only where it is a whole value, or every `a` would be."""


def sources_of_metadata(view: ClusterView) -> Iterator[tuple[str, str, str]]:
    """Where a syncer takes metadata from: the key that gets it, the field, as `podLabel`, and the name there."""
    for syncer in every(view.syncers):
        entries = syncer.spec.get("metadataFrom")
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                given = ((field_, name) for field_, name in entry.items() if field_ != "key")
                yield from ((str(entry.get("key")), str(field_), str(name)) for field_, name in given)


@dataclass(frozen=True, slots=True)
class _SecretKeys:
    """Keys of metadata and annotations that sound like a secret, or share a value with one that does."""

    others: frozenset[str] = frozenset()

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str) or key.startswith(OURS):
            return False
        return key in self.others or sounds_secret(key)

    def hide(self, pair: Iterable[str]) -> bool:
        """Whether one of them is secret."""
        return any(one in self for one in pair)


@dataclass(frozen=True, slots=True)
class Hiding:
    """What is hidden in a record. The same secret gets the same name, so that what is equal stays equal."""

    keys: _SecretKeys
    names: Mapping[str, str]
    """Of each secret."""
    everywhere: re.Pattern[str] | None
    """Our own logins."""

    def text(self, value: str) -> str:
        """Without our logins, and without a login in a URL."""
        if self.everywhere:
            value = self.everywhere.sub(lambda found: self.names[found[0]], value)
        return _LOGIN_IN_URL.sub("hidden", value) if "://" in value else value

    def of(self, value: Any, within: str = "") -> Any:
        """Without secrets; `within` is the name of the mapping. No key and no name is changed."""
        match value:
            case str():
                return self.text(value)
            case {"=": _}:
                return value  # a word of ours
            case {"#": [*parts]}:
                return {"#": [one if isinstance(one, str) else self.of(one, "annotations") for one in parts]}
            case {"@": name, "": dict(given)}:
                return {"@": name, "": {key: self.of(one, key) for key, one in given.items()}}
            case {"%": list(entries)}:
                return {"%": [[key, self._under(key, one, within)] for key, one in entries]}
            case {"field": str(field_)} if key := _key_of(field_):
                return {k: self._under(key, one, "metadata") if k in _SIDES else one for k, one in value.items()}
            case dict():
                return {key: self.of(one, within) for key, one in value.items()}
            case list() | tuple():
                return [self.of(one, within) for one in value]
            case _:
                return value

    def _under(self, key: Any, value: Any, within: str) -> Any:
        if isinstance(value, str) and within in _OF_VALUES and key in self.keys and value in self.names:
            return self.names[value]
        return self.of(value, key if isinstance(key, str) else "")


def hiding(
    report: Any, decided: Sequence[tuple[str, ...]], basis: Any, view: ClusterView | None, secrets: Iterable[str]
) -> Hiding:
    """For one record: `basis` is encoded, from `view`; `secrets` are our own logins."""
    keys = _secret_keys(view) if view else _SecretKeys()
    found = {value for within, key, value in _entries(basis) if within in _OF_VALUES and key in keys}
    found |= {value for key, value in _changes(report) if key in keys}
    shown = _shown(basis, view, keys) if view else set[str]()
    given = {one for one in secrets if one}
    hidden = {one for one in found - shown if one} | given
    ordered = sorted(hidden, key=lambda one: (-len(one), one))
    used = "\n".join((*_names(basis), *(name for _, *names, _ in decided for name in names))).casefold()
    everywhere = [one for one in ordered if one in given and len(one) >= _WHOLE_WORD and one.casefold() not in used]
    return Hiding(
        keys,
        {secret: f"hidden-{number}" for number, secret in enumerate(ordered)},
        re.compile("|".join(map(re.escape, everywhere))) if everywhere else None,
    )


def _secret_keys(view: ClusterView) -> _SecretKeys:
    """A plan compares an annotation with each key that gets its value: all of them are hidden, or none."""
    pairs = [(key, name) for key, field_, name in sources_of_metadata(view) if not _is_open(field_, name)]
    keys = _SecretKeys()
    while more := {one for pair in pairs if keys.hide(pair) for one in pair if not one.startswith(OURS)} - keys.others:
        keys = _SecretKeys(keys.others | more)
    return keys


def _is_open(field_: str, name: str) -> bool:
    """Labels are compared with selectors, and annotations of ours are read."""
    return field_.endswith("Label") or name.startswith(OURS)


def _shown(basis: Any, view: ClusterView, keys: _SecretKeys) -> set[str]:
    """Values that a secret key gets from where nothing is hidden."""
    open_ = {name for key, field_, name in sources_of_metadata(view) if key in keys and _is_open(field_, name)}
    return {value for within, key, value in _entries(basis) if within in ("labels", "annotations") and key in open_}


def _entries(data: Any, within: str = "") -> Iterator[tuple[str, str, str]]:
    """Each entry that is a string, of each mapping, in the form of `_encode`: its name, the key, and the value."""
    match data:
        case {"@": _, "": dict(given)}:
            for key, value in given.items():
                yield from _entries(value, key)
        case {"#": list(parts)}:
            for one in parts:
                yield from _entries(one, "annotations")
        case {"%": list(entries)}:
            for key, value in entries:
                if isinstance(key, str) and isinstance(value, str):
                    yield within, key, value
                yield from _entries(value, key if isinstance(key, str) else "")
        case dict():
            for value in data.values():
                yield from _entries(value, within)
        case list():
            for value in data:
                yield from _entries(value, within)


def _changes(report: Any) -> Iterator[tuple[str, str]]:
    """Each text of a change of metadata, with the key."""
    if isinstance(report, Mapping):
        if isinstance(field_ := report.get("field"), str) and (key := _key_of(field_)):
            yield from ((key, side) for side in map(report.get, _SIDES) if isinstance(side, str))
        report = list(report.values())
    for one in report if isinstance(report, list) else ():
        yield from _changes(one)


def _key_of(field_: str) -> str:
    """Of `metadata.user.password` the key of metadata; empty for another field."""
    return field_.removeprefix("metadata.") if field_.startswith("metadata.") else ""


def _names(data: Any) -> Iterator[str]:
    """Of namespaces, apps, instances, pods and others: a login that is part of one cannot be hidden."""
    match data:
        case {"#": list(parts)}:
            yield from (one for one in parts if isinstance(one, str))
        case {"@": _, "": dict(given)}:
            yield from (one for name, one in given.items() if name in _OF_NAMES and isinstance(one, str))
    for one in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _names(one)
