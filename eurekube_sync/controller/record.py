"""What a pass decided from, as plain values that JSON can hold, and back; and nothing secret in it. Pure.

Only the classes that are named here can come back: a record is data, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import Enum
from math import inf, isinf
from typing import Any

from eurekube_sync.brake.approval import PlanId, SavedDryRun
from eurekube_sync.brake.limits import Brake, BrakeLimits
from eurekube_sync.controller.one_pass import Basis
from eurekube_sync.controller.record_secrets import OURS, hiding, sources_of_metadata
from eurekube_sync.desired.drain import Kind
from eurekube_sync.desired.scope import Scope, Shard
from eurekube_sync.desired.selector import Expression
from eurekube_sync.model import eureka, kubernetes
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import ClusterView, Namespace, Pod, Service, SyncerObject
from eurekube_sync.model.ownership import Ownership
from eurekube_sync.model.sources import Cause, Complete, Listed, Source, Unknown
from eurekube_sync.model.wording import rfc_3339
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
    """As JSON holds it. `secrets` are hidden wherever they stand, the value of a secret key only under that key."""
    basis = _lean(record.basis) if record.basis else None
    data = (
        {one.name: _encode(getattr(basis, one.name)) for one in fields(Basis) if one.name != "braked"}
        if basis
        else None
    )
    hidden = hiding(record.report, record.decided, data or {}, basis.view if basis else None, secrets)
    return {
        "format": FORMAT,
        "version": record.version,
        "at": record.at,
        "report": hidden.of(record.report),
        "decided": [[kind, app, id_, hidden.text(why)] for kind, app, id_, why in record.decided],
        "basis": {name: hidden.of(value) for name, value in data.items()} if data else None,
    }


def from_data(data: Any, planned: Callable[..., Basis]) -> Record:
    """Raises ConfigurationError for what `to_data` did not make. `planned` makes a basis of its fields."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ConfigurationError(f"is not a record of a pass (format {FORMAT})")
    try:
        basis = data["basis"]
        return Record(
            version=str(data["version"]),
            at=_moment(data["at"]),
            report=dict(data["report"]),
            decided=[(str(kind), str(app), str(id_), str(why)) for kind, app, id_, why in data["decided"]],
            basis=planned(**{name: _decode(value) for name, value in basis.items()}) if basis else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, OSError, RecursionError) as error:
        raise ConfigurationError(f"is damaged, or of another version: {type(error).__name__}") from error


def _moment(at: Any) -> float:
    """Raises ValueError, OverflowError or OSError for what no calendar has."""
    rfc_3339(float(at))
    return float(at)


# --- Only what a plan reads ------------------------------------------------------------------------------------------


def _lean(basis: Basis) -> Basis:
    """Without what no plan reads: others' metadata, which may hold a login, and annotations that are not ours."""
    registry = basis.registry
    if isinstance(registry, Complete):
        others = {key: _bare(one) for key, one in registry.data.others.items()}
        registry = Complete(data=replace(registry.data, others=others))
    return replace(basis, registry=registry, view=_lean_view(basis.view))


def _bare(one: ObservedInstance) -> ObservedInstance:
    marks = {key: value for key, value in one.metadata.items() if key.startswith(OURS)}
    instance = replace(one.instance, metadata=marks, home_page_url="", status_page_url="", health_check_url="")
    return replace(one, instance=instance)


def _lean_view(view: ClusterView) -> ClusterView:
    used = {name for _, _, name in sources_of_metadata(view)}

    def own(annotations: Mapping[str, str]) -> Mapping[str, str]:
        return {key: value for key, value in annotations.items() if key.startswith(OURS) or key in used}

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


def _each(change: Callable[[Any], Any], listed: Listed[Any]) -> Listed[Any]:
    by_namespace = {name: _each_of(change, source) for name, source in listed.by_namespace.items()}
    return Listed(by_namespace=by_namespace, elsewhere=_each_of(change, listed.elsewhere))


def _each_of(change: Callable[[Any], Any], source: Source[tuple[Any, ...]]) -> Source[tuple[Any, ...]]:
    return source if isinstance(source, Unknown) else Complete(data=tuple(map(change, source.data)))


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
    """Those that are not as by default, nor made of others."""
    given = ((one, getattr(value, one.name)) for one in fields(value) if one.init)
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
