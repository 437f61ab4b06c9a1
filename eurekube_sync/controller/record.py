"""What a pass decided from, as plain values that JSON can hold, and back; and nothing secret in it. Pure.

Only the classes that are named here can come back: a record is data, whoever wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import Enum
from math import inf, isinf
from typing import Any

from eurekube_sync.brake.approval import PlanId, SavedDryRun
from eurekube_sync.brake.limits import Brake, BrakeLimits
from eurekube_sync.controller.one_pass import Basis
from eurekube_sync.desired.claims import every
from eurekube_sync.desired.drain import Kind
from eurekube_sync.desired.scope import Scope, Shard
from eurekube_sync.desired.spec import Expression
from eurekube_sync.model import eureka, kubernetes
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import ClusterView, Namespace, Pod, Service, SyncerObject
from eurekube_sync.model.ownership import Ownership
from eurekube_sync.model.sources import Cause, Complete, Listed, Source, Unknown
from eurekube_sync.observe.eureka import Observed, Unread

FORMAT = "eurekube.io/record/v1"
"""Of a record. Another version of the program may plan otherwise, and then says so."""

_MODELS = (
    *(one for module in (kubernetes, eureka) for one in vars(module).values() if isinstance(one, type)),
    *(Brake, BrakeLimits, PlanId, SavedDryRun, Kind, Scope, Shard, Expression, Ownership),
    *(Cause, Complete, Listed, Unknown, Observed, Unread),
)
_CLASSES: Mapping[str, type] = {
    one.__name__: one for one in _MODELS if is_dataclass(one) or hasattr(one, "_fields") or issubclass(one, Enum)
}
_OURS = "eurekube."
"""How each mark in an instance's metadata, and each annotation that means something to us, begins."""
_SECRET_KEY = re.compile(
    r"pass(word|wd|phrase)?$|pass(word|wd)|secret|token|credential|private.?key|api.?key|auth", re.I
)
_SIDES = ("was", "becomes")
"""Of a change, as the report has it."""
_LOGIN_IN_URL = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_WHOLE_WORD = 6
"""Characters: a shorter secret is hidden only under its own key, or every `a` would be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One pass: its report as data, and what it planned from, if it could plan."""

    version: str
    """Of the program that wrote it."""
    at: float
    """Unix seconds."""
    report: Mapping[str, Any]
    decided: Sequence[tuple[str, str, str, str]]
    """As `replay.decisions` gives them."""
    basis: Basis | None


def to_data(record: Record, secrets: Iterable[str] = ()) -> dict[str, Any]:
    """As JSON holds it. `secrets` are hidden wherever they stand, beside what looks like one."""
    basis = _lean(record.basis) if record.basis else None
    data = {
        "format": FORMAT,
        "version": record.version,
        "at": record.at,
        "report": record.report,
        "decided": [list(one) for one in record.decided],
        "basis": {one.name: _encode(getattr(basis, one.name)) for one in fields(Basis) if one.name != "braked"}
        if basis
        else None,
    }
    keys = _SecretKeys(_sources_of_secrets(basis.view)) if basis else _SecretKeys(frozenset())
    hidden: dict[str, Any] = _hide(data, keys, {*_found_secrets(data, keys), *filter(None, secrets)})
    return hidden


def from_data(data: Any, planned: Callable[..., Basis]) -> Record:
    """Raises ConfigurationError for what `to_data` did not make. `planned` makes a basis of its fields."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ConfigurationError(f"is not a record of a pass (format {FORMAT})")
    try:
        basis = data["basis"]
        return Record(
            version=str(data["version"]),
            at=float(data["at"]),
            report=dict(data["report"]),
            decided=[(str(kind), str(app), str(id_), str(why)) for kind, app, id_, why in data["decided"]],
            basis=planned(**{name: _decode(value) for name, value in basis.items()}) if basis else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ConfigurationError(f"is damaged, or of another version: {type(error).__name__}") from error


# --- Only what a plan reads ------------------------------------------------------------------------------------------


def _lean(basis: Basis) -> Basis:
    """Without what no plan reads: others' metadata, which may hold a login, and annotations that are not ours."""
    registry = basis.registry
    if isinstance(registry, Complete):
        others = {key: _bare(one) for key, one in registry.data.others.items()}
        registry = Complete(data=replace(registry.data, others=others))
    return replace(basis, registry=registry, view=_lean_view(basis.view))


def _bare(one: ObservedInstance) -> ObservedInstance:
    marks = {key: value for key, value in one.metadata.items() if key.startswith(_OURS)}
    instance = replace(one.instance, metadata=marks, home_page_url="", status_page_url="", health_check_url="")
    return replace(one, instance=instance)


def _lean_view(view: ClusterView) -> ClusterView:
    used = {name for _, name in _sources(view)}

    def own(annotations: Mapping[str, str]) -> Mapping[str, str]:
        return {key: value for key, value in annotations.items() if key.startswith(_OURS) or key in used}

    def syncer(one: SyncerObject) -> SyncerObject:
        return replace(one, annotations=own(one.annotations))

    def service(one: Service) -> Service:
        return replace(one, annotations=own(one.annotations))

    def pod(one: Pod) -> Pod:
        return replace(one, annotations=own(one.annotations))

    def namespace(one: Namespace) -> Namespace:
        return one._replace(annotations=own(one.annotations))

    return replace(
        view,
        namespaces=_each(namespace, view.namespaces) if view.namespaces else None,
        syncers=_each(syncer, view.syncers),
        services=_each(service, view.services),
        pods=_each(pod, view.pods) if view.pods else None,
    )


def _sources(view: ClusterView) -> Iterator[tuple[str, str]]:
    """Each label or annotation that a syncer takes metadata from, with the key that it gets."""
    for syncer in every(view.syncers):
        entries = syncer.spec.get("metadataFrom")
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                yield from ((str(entry.get("key")), str(name)) for field_, name in entry.items() if field_ != "key")


def _each(change: Callable[[Any], Any], listed: Listed[Any]) -> Listed[Any]:
    by_namespace = {name: _each_of(change, source) for name, source in listed.by_namespace.items()}
    return Listed(by_namespace=by_namespace, elsewhere=_each_of(change, listed.elsewhere))


def _each_of(change: Callable[[Any], Any], source: Source[tuple[Any, ...]]) -> Source[tuple[Any, ...]]:
    return source if isinstance(source, Unknown) else Complete(data=tuple(map(change, source.data)))


# --- Nothing secret --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _SecretKeys:
    """Keys that sound like a secret, and where a syncer takes the value of one from."""

    sources: frozenset[str]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and (key in self.sources or bool(_SECRET_KEY.search(key)))


def _sources_of_secrets(view: ClusterView) -> frozenset[str]:
    return frozenset(name for key, name in _sources(view) if _SECRET_KEY.search(key))


def _found_secrets(data: Any, keys: _SecretKeys) -> set[str]:
    """The values under such keys, wherever they are."""
    return {value for key, value in _pairs(data) if key in keys and isinstance(value, str) and value}


def _pairs(data: Any) -> Iterable[tuple[Any, Any]]:
    """Each entry of each mapping, in the form that `_encode` gives them, too; and what a change has of a field."""
    if isinstance(data, dict):
        yield from data.items()
        yield from ((data.get("field"), data.get(side)) for side in _SIDES)
        entries = data.get("%")
        if isinstance(entries, list):
            yield from ((entry[0], entry[1]) for entry in entries)
    for value in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _pairs(value)


def _hide(data: Any, keys: _SecretKeys, secrets: set[str]) -> Any:
    """The same secret gets the same name everywhere, so that what is equal stays equal."""
    ordered = sorted(secrets, key=lambda one: (-len(one), one))
    names = {secret: f"hidden-{number}" for number, secret in enumerate(ordered)}
    long = [one for one in ordered if len(one) >= _WHOLE_WORD]
    pattern = re.compile("|".join(map(re.escape, long))) if long else None

    def text(value: str) -> str:
        value = pattern.sub(lambda found: names[found[0]], value) if pattern else value
        return _LOGIN_IN_URL.sub("hidden", value) if "://" in value else value

    def under(key: Any, value: Any) -> Any:
        return names.get(value, value) if key in keys and isinstance(value, str) else of(value)

    def of(value: Any) -> Any:
        match value:
            case str():
                return text(value)
            case {"=": _}:
                return value  # a word of ours
            case {"#": [name, *rest]}:
                return {"#": [name, *map(of, rest)]}
            case {"@": name, "": given}:
                return {"@": name, "": of(given)}
            case {"%": list(entries)}:
                return {"%": [[of(key), under(key, one)] for key, one in entries]}
            case dict():
                field_ = value.get("field")
                return {key: under(field_ if key in _SIDES else key, one) for key, one in value.items()}
            case list() | tuple():
                return [of(one) for one in value]
            case _:
                return value

    return of(data)


# --- Values as JSON --------------------------------------------------------------------------------------------------


def _encode(value: Any) -> Any:
    """A tuple is a list; all else that JSON does not know is an object with one key that no other has."""
    match value:
        case Enum():
            return {"=": [type(value).__name__, value.value]}
        case None | bool() | int() | str():
            return value
        case float():
            return {"inf": value > 0} if isinf(value) else value
        case tuple() if hasattr(value, "_fields"):
            return {"#": [type(value).__name__, *map(_encode, value)]}
        case tuple():
            return [_encode(one) for one in value]
        case list():
            return {"[": [_encode(one) for one in value]}
        case frozenset():
            return {"{": [_encode(one) for one in sorted(value, key=str)]}
        case Mapping():
            return {"%": [[_encode(key), _encode(one)] for key, one in value.items()]}
        case _:
            return {"@": type(value).__name__, "": _fields_of(value)}


def _fields_of(value: Any) -> dict[str, Any]:
    """Those that are not as by default."""
    given = ((one, getattr(value, one.name)) for one in fields(value))
    return {one.name: _encode(found) for one, found in given if one.default is MISSING or found != one.default}


def _decode(data: Any) -> Any:
    match data:
        case list():
            return tuple(map(_decode, data))
        case {"@": str(name), "": dict(given)}:
            return _CLASSES[name](**{key: _decode(value) for key, value in given.items()})
        case {"#": [str(name), *values]} | {"=": [str(name), *values]}:
            return _CLASSES[name](*map(_decode, values))
        case {"%": list(entries)}:
            return {_decode(key): _decode(value) for key, value in entries}
        case {"[": list(values)}:
            return [_decode(one) for one in values]
        case {"{": list(values)}:
            return frozenset(map(_decode, values))
        case {"inf": bool(positive)}:
            return inf if positive else -inf
        case dict():
            raise ValueError("an object of an unknown form")
        case _:
            return data
