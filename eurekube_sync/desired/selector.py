"""Selectors of a syncer's Services, from its spec, and of syncers by labels, from an option."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Literal, TypeAlias

import msgspec

from eurekube_sync.model.errors import Faults
from eurekube_sync.model.faults import Path, shown
from eurekube_sync.model.kubernetes import Service

# The rules of `IsQualifiedName` and `IsValidLabelValue` (k8s.io/apimachinery, util/validation)
_DNS = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:[.][a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_KEY = rf"(?:{_DNS}/)?{_NAME}"
_VALUE = rf"(?:{_NAME})?"
_LONGEST_KEY = 317  # a prefix of 253 characters, a slash, and a name of 63
_LABEL_KEY = re.compile(_KEY)
_LABEL_VALUE = re.compile(_NAME)
_EQUALITY = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})")
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s*\(\s*({_VALUE}(?:\s*,\s*{_VALUE})*)\s*\)")
_EXISTENCE = re.compile(rf"(!?)\s*({_KEY})")
_COMMA = re.compile(r",(?![^()]*\))")  # not one between the values of a set

Operator: TypeAlias = Literal["In", "NotIn", "Exists", "DoesNotExist"]


class Expression(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of `matchExpressions`, or a part of `--selector`."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    @property
    def fault(self) -> str:
        """What is wrong with the values; empty if nothing is."""
        if self.operator in ("In", "NotIn"):
            if self.values:
                return ""
            return "operator In or NotIn needs at least one value"
        if self.values:
            return "operator Exists or DoesNotExist takes no values"
        return ""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels match, as in the API server's label selectors: NotIn matches an absent
        key."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case _:
                return (self.key in labels) is (self.operator == "Exists")

    def __str__(self) -> str:
        """Return the expression as for `kubectl get --selector`."""
        match self.operator:
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
            case "In":
                sign, word = "=", "in"
            case _:
                sign, word = "!=", "notin"
        values = ", ".join(sorted(self.values))
        if len(self.values) == 1:
            return f"{self.key}{sign}{values}"
        return f"{self.key} {word} ({values})"


class Selector(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, dict=True
):
    """Selects the Services of one namespace that match all parts. `check_selector` refuses one
    without a part."""

    app: str | None = None
    match_labels: dict[str, str] | None = None
    match_expressions: tuple[Expression, ...] | None = None
    service: str | None = None
    namespace: str | None = None

    @cached_property
    def labels(self) -> tuple[tuple[str, str], ...]:
        """The labels that a Service must have. `app: rating` stands for the label `app=rating`."""
        labels: dict[str, str] = {}
        if self.app is not None:
            labels["app"] = self.app
        if self.match_labels is not None:
            labels |= self.match_labels
        return tuple(sorted(labels.items()))

    def matches(self, service: Service) -> bool:
        """Whether the Service meets all parts."""
        labels = service.labels
        if self.service is not None and service.name != self.service:
            return False
        for key, value in self.labels:
            if labels.get(key) != value:
                return False
        return all(expression.matches(labels) for expression in self.match_expressions or ())

    def __str__(self) -> str:
        parts = [f"{key}={value}" for key, value in self.labels]
        parts += [str(expression) for expression in self.match_expressions or ()]
        if self.service:
            parts.append(f"name {self.service}")
        return ", ".join(parts)


def check_selector(selector: Selector, wrong: Faults) -> None:
    """Add the faults of `spec.selector` to `wrong`."""
    parts = {
        "app": selector.app,
        "matchLabels": selector.match_labels,
        "matchExpressions": selector.match_expressions,
        "service": selector.service,
    }
    missing = 0
    for name, part in parts.items():
        if part is None:
            missing += 1
        elif not part:
            wrong.add(("selector", name), "must not be empty")
    if missing == len(parts):
        fault = "at least one of app, matchLabels, matchExpressions and service is needed"
        wrong.add(("selector",), fault)
    labels = selector.match_labels or {}
    _check_keys(("selector", "matchLabels"), labels, wrong)
    app = selector.app
    if app and not _LABEL_VALUE.fullmatch(app):
        fault = (
            f"{shown(app)} is not a label's value: at most 63 letters, digits, '.', '_' or '-', a "
            "letter or digit at both ends"
        )
        wrong.add(("selector", "app"), fault)
    if app is not None and labels.get("app", app) != app:
        fault = "the field app and the label app in matchLabels must not differ"
        wrong.add(("selector", "app"), fault)
    for index, expression in enumerate(selector.match_expressions or ()):
        fault = expression.fault
        if fault:
            wrong.add(("selector", "matchExpressions", index, "values"), fault)


def check_labels(path: Path, labels: Mapping[str, str], wrong: Faults) -> None:
    """Add the faults of labels that select something to `wrong`."""
    if not labels:
        wrong.add(path, "must not be empty")
    _check_keys(path, labels, wrong)


def _check_keys(path: Path, labels: Mapping[str, str], wrong: Faults) -> None:
    for key in labels:
        if not _LABEL_KEY.fullmatch(key) or len(key) > _LONGEST_KEY:
            fault = (
                "a label key is a name of at most 63 characters, with an optional DNS prefix and "
                "a slash before it"
            )
            wrong.add((*path, key), fault)


def parse_selector(text: str) -> tuple[Expression, ...]:
    """Read a label selector as of `kubectl get --selector`. Raises ValueError with a sentence that
    names the part."""
    parts = _COMMA.split(text)
    return tuple([_expression(part.strip()) for part in parts])


def _expression(part: str) -> Expression:
    operator: Operator
    equality = _EQUALITY.fullmatch(part)
    if equality is not None:
        key, sign, value = equality.groups()
        operator = "NotIn" if sign == "!=" else "In"
        return Expression(key=key, operator=operator, values=frozenset({value}))
    in_set = _SET.fullmatch(part)
    if in_set is not None:
        key, word, listed = in_set.groups()
        values = [value.strip() for value in listed.split(",")]
        operator = "NotIn" if word == "notin" else "In"
        return Expression(key=key, operator=operator, values=frozenset(values))
    existence = _EXISTENCE.fullmatch(part)
    if existence is not None:
        negation, key = existence.groups()
        operator = "DoesNotExist" if negation else "Exists"
        return Expression(key=key, operator=operator)
    raise ValueError(
        f"{part!r} is no valid part of a label selector; write team=a, tier!=db, zone in (x, y), "
        "team or !team"
    )
