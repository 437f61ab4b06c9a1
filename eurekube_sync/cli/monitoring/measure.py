"""The metrics of one pass, from its report alone. Pure.

By app, and not by instance or syncer: 6,000 apps are some ten thousand series, which one scrape carries. 60,000
instances that come and go would be new series each day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from eurekube_sync.cli.monitoring.definitions import (
    ACTIONS,
    AT_RISK,
    EXIT_CODE,
    HELD,
    INSTANCES,
    LAST_GOOD,
    LAST_PASS,
    PASSES,
    SYNCERS,
    UNKNOWN,
    Metric,
)
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Renew
from eurekube_sync.model.sources import Complete, Server, Unknown
from eurekube_sync.observe.kubernetes import unread

Series: TypeAlias = tuple[Metric, tuple[str, ...]]
"""A metric and the values of its labels."""
GOOD = frozenset({ExitCode.OK, ExitCode.REMOVAL_HELD})
"""The exit codes of a pass that did all it had to do: to hold removals is to do that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a pass shows, and what it adds."""

    shown: Mapping[Series, float]
    """Values of gauges; one that is missing is not known, and not zero."""
    renewed: frozenset[Metric]
    """The gauges of which older values say nothing any more."""
    added: Mapping[Series, float]
    """To counters."""


def measured(report: PassReport, code: ExitCode, *, now: float) -> Measured:
    """`now` in Unix seconds, when the pass ended."""
    shown: dict[Series, float] = {
        (LAST_PASS, ()): now,
        (EXIT_CODE, ()): float(code),
        (AT_RISK, ()): float(sum(isinstance(o.action, Renew) for o in report.outcomes.failures)),
        (UNKNOWN, (Server.KUBERNETES.value,)): float(len(list(unread(report.view)))),
        (UNKNOWN, (Server.EUREKA.value,)): float(isinstance(report.registry, Unknown)),
    }
    renewed = {LAST_PASS, EXIT_CODE, AT_RISK, UNKNOWN}
    if code in GOOD:
        shown[LAST_GOOD, (scope_text(report.scope),)] = now
        renewed.add(LAST_GOOD)
    if isinstance(report.registry, Complete) and report.desired is not None:
        shown |= {(INSTANCES, pair): float(number) for pair, number in Counter(_states(report)).items()}
        shown |= {(SYNCERS, pair): float(number) for pair, number in Counter(_conditions(report)).items()}
        shown |= {(HELD, (reason,)): float(number) for reason, number in _held(report).items()}
        renewed |= {INSTANCES, SYNCERS, HELD}
    added: Counter[Series] = Counter()
    added[PASSES, (code.name,)] += 1
    for outcome in report.outcomes.by_key.values():
        added[ACTIONS, (type(outcome.action).__name__, outcome.result.value)] += 1
    if report.renewed_between:
        added[ACTIONS, ("Renew", "Done")] += report.renewed_between
    return Measured(shown=shown, renewed=frozenset(renewed), added=added)


def scope_text(scope: Scope) -> str:
    """Whose syncers: `all`, or the options that say it."""
    return " ".join(scope.options) or "all"


def _states(report: PassReport) -> Iterator[tuple[str, str]]:
    """App and status of each of our instances after the pass."""
    assert isinstance(report.registry, Complete)  # asked before
    states = {key: one.status for key, one in report.registry.data.ours.items()}
    for key, outcome in report.outcomes.by_key.items():
        if outcome.status is not None:
            states[key] = outcome.status
        elif not outcome.failed:
            states.pop(key, None)
    for key, status in states.items():
        yield key.app, status.value


def _conditions(report: PassReport) -> Iterator[tuple[str, str]]:
    for status in report.all_statuses.values():
        for condition in status.conditions:
            yield condition.type, condition.status.value


def _held(report: PassReport) -> Counter[str]:
    found: Counter[str] = Counter()
    for hold in report.held.holds if report.held else ():
        found[hold.reason.value] += len(hold.removals)
    return found
