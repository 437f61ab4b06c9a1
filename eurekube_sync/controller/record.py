"""The record of a pass: what it planned from, as plain values for JSON, and back, without secrets.
Pure.

Only the classes that are named here are made from a record, because anybody may have written it.
Equal secrets in metadata or annotations get equal names, so that a replay plans the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from math import inf, isinf
from typing import Any

import msgspec

from eurekube_sync.brake.approval import PlanId, SavedDryRun
from eurekube_sync.brake.braking import Braked
from eurekube_sync.brake.holds import Brake, BrakeLimits
from eurekube_sync.controller.one_pass import Basis, PassReport, PassSettings
from eurekube_sync.controller.steps import decide_again
from eurekube_sync.desired.catalog import Kind
from eurekube_sync.desired.claims import every
from eurekube_sync.desired.instance import Naming
from eurekube_sync.desired.resolve import claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.selector import Expression
from eurekube_sync.model import eureka, kubernetes
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.eureka import Instance
from eurekube_sync.model.foreign_text import sounds_secret
from eurekube_sync.model.ownership import Ownership
from eurekube_sync.model.sources import Cause, Complete, Listed, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import rfc_3339
from eurekube_sync.observe.eureka import Observed, Unread
from eurekube_sync.observe.kubernetes import living_pods
from eurekube_sync.plan.value import Plan

FORMAT = "eurekube.io/record/v1"  # of a record

_MODELS = (
    *(
        one
        for module in (kubernetes, eureka)
        for one in vars(module).values()
        if isinstance(one, type)
    ),
    *(Brake, BrakeLimits, PlanId, SavedDryRun, Kind, Scope, Expression, Ownership),
    *(Cause, Complete, Listed, Unknown, Observed, Unread),
)
_CLASSES: Mapping[str, type] = {
    one.__name__: one
    for one in _MODELS
    if is_dataclass(one) or hasattr(one, "_fields") or issubclass(one, Enum | msgspec.Struct)
}


_OURS = "eurekube."  # the prefix of our marks in metadata, and of our annotations
_LOGIN_IN_URL = re.compile(r"(?<=://)[^/\s\"]+(?=@)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One pass: its report as data, and what it planned from."""

    version: str  # of the program that wrote it
    at: float  # Unix seconds
    report: Mapping[str, Any]
    decided: Sequence[tuple[str, str, str, str]]  # as `decisions` gives them
    basis: Basis | None  # None if it could not plan


def to_data(record: Record) -> dict[str, Any]:
    """Gives the record as JSON data."""
    basis = record.basis
    writer = _Writer(basis) if basis else None
    told = json.dumps(
        [writer.report(record.report) if writer else record.report, list(record.decided)]
    )
    report, decided = json.loads(_LOGIN_IN_URL.sub("hidden", told))
    planned_from = [one.name for one in fields(Basis) if one.name != "braked"]
    return {
        "format": FORMAT,
        "version": record.version,
        "at": record.at,
        "report": report,
        "decided": decided,
        "basis": {name: writer.encode(getattr(basis, name)) for name in planned_from}
        if writer
        else None,
    }


def from_data(data: Any) -> Record:
    """Reads what `to_data` made; raises ConfigurationError for anything else. The basis has no plan
    yet."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ConfigurationError(f"is not a record of a pass (format {FORMAT})")
    try:
        basis, at = data["basis"], float(data["at"])
        rfc_3339(at)  # raises for a number that is no date
        read = {name: _decode(value) for name, value in basis.items()} if basis else {}
        return Record(
            version=str(data["version"]),
            at=at,
            report=dict(data["report"]),
            decided=[
                (str(kind), str(app), str(id_), str(why)) for kind, app, id_, why in data["decided"]
            ],
            basis=Basis(**read, braked=Braked(plan=Plan(), held=None)) if basis else None,
        )
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        OverflowError,
        OSError,
        RecursionError,
    ) as error:
        raise ConfigurationError(
            f"is damaged, or of another version: {type(error).__name__}"
        ) from error


class _Writer:
    """Makes JSON data of values, without secrets. Leaves out what no plan reads: others' metadata,
    which may hold a login, and others' annotations."""

    def __init__(self, basis: Basis) -> None:
        specs = [syncer.spec for syncer in every(basis.view.syncers)]
        given = [spec.get("metadataFrom") for spec in specs]
        self._sources = [
            one
            for some in given
            if isinstance(some, list)
            for one in some
            if isinstance(one, Mapping)
        ]
        self._used = {str(name) for entry in self._sources for name in entry.values()}
        self._secrets = self._named(basis, [spec.get("metadata") for spec in specs])

    def _named(self, basis: Basis, fixed: Iterable[Any]) -> Mapping[str, str]:
        """Gives a name to each secret: a value in metadata or annotations whose key sounds like
        one, or an annotation that becomes such metadata. A value that a label has, too, is not
        hidden, because selectors are compared with it."""
        view, found = basis.view, set[object]()
        secret = {
            str(n)
            for entry in self._sources
            if sounds_secret(str(entry.get("key")))
            for n in entry.values()
        }
        shown = {
            value
            for one in (*_all(view.services), *_all(view.pods))
            for value in one.labels.values()
        }
        ours = basis.registry.data.ours.values() if isinstance(basis.registry, Complete) else ()
        listed = (view.syncers, view.services, view.pods, view.namespaces)
        annotations = [one.annotations for each in listed for one in _all(each)]
        for texts in (*annotations, *fixed, *(one.metadata for one in ours)):
            for key, value in texts.items() if isinstance(texts, Mapping) else ():
                if not key.startswith(_OURS) and (key in secret or sounds_secret(key)):
                    found.add(value)
        hidden = sorted(one for one in found - shown if isinstance(one, str) and one)
        return {value: f"hidden-{number}" for number, value in enumerate(hidden)}

    def report(self, report: Any) -> Any:
        """Hides the secrets in the changes of metadata that the report lists."""
        match report:
            case {"field": str(name), "was": was, "becomes": becomes} if name.startswith(
                "metadata."
            ):
                return {**report, **self._hidden({"was": was, "becomes": becomes})}
            case Mapping():
                return {key: self.report(value) for key, value in report.items()}
            case list() | tuple():
                return [self.report(one) for one in report]
            case _:
                return report

    def _hidden(self, texts: Any) -> Any:
        """Hides the secrets in metadata or annotations."""
        if not isinstance(texts, Mapping):
            return texts
        secrets = self._secrets
        return {
            key: secrets.get(value, value)
            if isinstance(value, str) and not key.startswith(_OURS)
            else value
            for key, value in texts.items()
        }

    def _field(self, name: str, value: Any) -> Any:
        match name:
            case "annotations":
                kept = {
                    key: text
                    for key, text in value.items()
                    if key.startswith(_OURS) or key in self._used
                }
                value = self._hidden(kept)
            case "metadata":
                value = self._hidden(value)
            case "spec" if "metadata" in value:
                value = {**value, "metadata": self._hidden(value["metadata"])}
            case "others":
                value = {
                    key: replace(one, instance=_lean(one.instance)) for key, one in value.items()
                }
        return self.encode(value)

    def encode(self, value: Any) -> Any:
        """Makes a list of a tuple. Any other type that JSON lacks becomes an object whose first key
        names the type."""
        encode = self.encode
        match value:
            case Enum():
                return {"=": [type(value).__name__, value.value]}
            case None | bool() | int():
                return value
            case str():
                return _LOGIN_IN_URL.sub("hidden", value) if "://" in value else value
            case float():
                return {"inf": value > 0} if isinf(value) else value
            case tuple() if hasattr(value, "_fields"):
                return {"#": [type(value).__name__, *map(self._field, value._fields, value)]}
            case tuple():
                return [encode(one) for one in value]
            case list():
                return {"[": [encode(one) for one in value]}
            case frozenset():
                return {"{": [encode(one) for one in sorted(value, key=str)]}
            case Mapping():
                return {"%": [[encode(key), encode(one)] for key, one in value.items()]}
            case _:
                # Only fields that differ from their default, and are not computed from others.
                known = fields(value) if is_dataclass(value) else msgspec.structs.fields(value)
                given = [
                    (one, getattr(value, one.name)) for one in known if getattr(one, "init", True)
                ]
                told = {
                    one.name: self._field(one.name, found)
                    for one, found in given
                    if found != one.default
                }
                return {"@": type(value).__name__, "": told}


def _lean(another: Instance) -> Instance:
    marks = {name: value for name, value in another.metadata.items() if name.startswith(_OURS)}
    return replace(
        another, metadata=marks, home_page_url="", status_page_url="", health_check_url=""
    )


def _all(listed: Listed[Any] | None) -> Iterator[Any]:
    for source in (*listed.by_namespace.values(), listed.elsewhere) if listed else ():
        yield from source.data if isinstance(source, Complete) else ()


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


# --- Planned again --------------------------------------------------------------------------------


def replayed(basis: Basis, at: float) -> PassReport:
    """Gives the report of a dry run that reads the same as the recorded pass; `at` in Unix seconds.
    Planning is pure, so the plan is the same. No server is called."""
    scope = basis.scope.knowing(basis.view.syncers)
    listed = basis.registry.data.ours if isinstance(basis.registry, Complete) else {}
    desired = claim_all(
        basis.view, Naming(ownership=basis.ownership, lease=basis.lease, listed=listed), scope
    )
    desired = replace(desired, living_pods=living_pods(basis.view.pods))
    settings = PassSettings(owner=basis.ownership.owner, scope=basis.scope, dry_run=True)
    return decide_again(settings, at, desired, basis)


def decisions(braked: Braked) -> list[tuple[str, str, str, str]]:
    """Gives each change and each held removal: kind of action, app, instance id, and why."""
    held = braked.held.removals if braked.held else ()
    return [
        (type(a).__name__.lower(), a.key.app, a.key.id, a.why)
        for a in (*braked.plan.changes, *held)
    ]
