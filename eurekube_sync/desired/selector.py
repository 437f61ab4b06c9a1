"""Selectors: of the Services of a syncer, read from its spec; and of syncers by labels, read from an option's text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, assert_never

import msgspec

from eurekube_sync.desired.spec_faults import Faults
from eurekube_sync.model.kubernetes import Service
from eurekube_sync.model.value_faults import shown
from eurekube_sync.model.values import dataclass

_DNS = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:[.][a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_KEY = rf"(?:{_DNS}/)?{_NAME}"
_VALUE = rf"(?:{_NAME})?"
_LONGEST_KEY = 317
_LABEL_KEY = re.compile(_KEY)
_LABEL_VALUE = re.compile(_NAME)
_EQUALITY = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})")
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s*\(\s*({_VALUE}(?:\s*,\s*{_VALUE})*)\s*\)")
_EXISTENCE = re.compile(rf"(!?)\s*({_KEY})")
_COMMA = re.compile(r",(?![^()]*\))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """One of `matchExpressions`."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """As the API server's label selectors: NotIn and DoesNotExist hold for an absent key."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
            case _:  # pragma: no cover
                assert_never(self.operator)

    def __str__(self) -> str:
        """As `kubectl get --selector` takes it."""
        values = ", ".join(sorted(self.values))
        match self.operator:
            case "In":
                return f"{self.key}={values}" if len(self.values) == 1 else f"{self.key} in ({values})"
            case "NotIn":
                return f"{self.key}!={values}" if len(self.values) == 1 else f"{self.key} notin ({values})"
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
            case _:  # pragma: no cover
                assert_never(self.operator)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Which Services of one namespace: all parts must hold; a Selector with no part does not exist."""

    service: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    expressions: tuple[Expression, ...] = ()

    def matches(self, service: Service) -> bool:
        """Whether the Service is meant."""
        return (
            (self.service is None or service.name == self.service)
            and all(service.labels.get(key) == value for key, value in self.labels)
            and all(expression.matches(service.labels) for expression in self.expressions)
        )

    def __str__(self) -> str:
        parts = [f"{key}={value}" for key, value in self.labels]
        parts += [str(expression) for expression in self.expressions]
        parts += [f"name {self.service}"] if self.service else []
        return ", ".join(parts)


class ExpressionSpec(msgspec.Struct, forbid_unknown_fields=True):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] = []


class SelectorSpec(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    app: str | None = None
    match_labels: dict[str, str] | None = None
    match_expressions: list[ExpressionSpec] | None = None
    service: str | None = None
    namespace: str | None = None


def select(spec: SelectorSpec, wrong: Faults) -> Selector:
    """What `spec.selector` asks for. What is wrong is added to the faults."""
    parts = {
        "app": spec.app,
        "matchLabels": spec.match_labels,
        "matchExpressions": spec.match_expressions,
        "service": spec.service,
    }
    for name, part in parts.items():
        if part is not None and not part:
            wrong.add(("selector", name), "must not be empty: it would select everything")
    if all(part is None for part in parts.values()):
        wrong.add(("selector",), "at least one of app, matchLabels, matchExpressions and service is needed")
    labels = dict(spec.match_labels or {})
    for key in labels:
        if not _LABEL_KEY.fullmatch(key) or len(key) > _LONGEST_KEY:
            wrong.add(
                ("selector", "matchLabels", key),
                "a label key is a name of at most 63 characters, with an optional DNS prefix and a slash before it",
            )
    if spec.app is not None:
        if not _LABEL_VALUE.fullmatch(spec.app):
            wrong.add(
                ("selector", "app"),
                f"{shown(spec.app)} is not a label's value: at most 63 letters, digits, '.', '_' or '-', a letter or "
                "digit at both ends",
            )
        labels.setdefault("app", spec.app)
        if labels["app"] != spec.app:
            wrong.add(("selector", "app"), "app and the label app in matchLabels must not differ")
    expressions = tuple(
        Expression(key=e.key, operator=e.operator, values=frozenset(e.values)) for e in spec.match_expressions or ()
    )
    for index, expression in enumerate(expressions):
        if bool(expression.values) is not (needed := expression.operator in ("In", "NotIn")):
            fault = "In or NotIn needs at least one value" if needed else "Exists or DoesNotExist takes no values"
            wrong.add(("selector", "matchExpressions", index, "values"), f"operator {fault}")
    return Selector(service=spec.service, labels=tuple(sorted(labels.items())), expressions=expressions)


def parse_selector(text: str) -> tuple[Expression, ...]:
    """A label selector as `kubectl get --selector` takes it: `team=a,tier!=db,zone in (x, y),!canary`.

    Raises ValueError with a sentence that names the part that is wrong.
    """
    return tuple(_expression(part.strip()) for part in _COMMA.split(text))


def _expression(part: str) -> Expression:
    if found := _EQUALITY.fullmatch(part):
        return Expression(key=found[1], operator="NotIn" if found[2] == "!=" else "In", values=frozenset({found[3]}))
    if found := _SET.fullmatch(part):
        values = frozenset(value.strip() for value in found[3].split(","))
        return Expression(key=found[1], operator="In" if found[2] == "in" else "NotIn", values=values)
    if found := _EXISTENCE.fullmatch(part):
        return Expression(key=found[2], operator="DoesNotExist" if found[1] else "Exists")
    raise ValueError(
        f"{part!r} is no valid part of a label selector; write team=a, tier!=db, zone in (x, y), team or !team"
    )
