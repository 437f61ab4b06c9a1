"""The metrics of one pass, from its report alone. Pure.

By app, and not by instance or syncer: 6,000 apps are some ten thousand series, which one scrape carries. 60,000
instances that come and go would be new series each day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from eurekube_sync.brake import HoldReason
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

Values: TypeAlias = Mapping[Metric, Mapping[tuple[str, ...], float]]
"""The values of metrics, by the values of their labels. A metric that is missing is not known, and not zero."""
GOOD = frozenset({ExitCode.OK, ExitCode.REMOVAL_HELD})
"""The exit codes of a pass that did all it had to do: to hold removals is to do that."""


def measured(report: PassReport, code: ExitCode, *, now: float) -> tuple[Values, Values]:
    """The gauges that the pass knows, whose older values say nothing any more; and what it adds to counters. `now` in
    Unix seconds, when the pass ended."""
    gauges: dict[Metric, Mapping[tuple[str, ...], float]] = {
        LAST_PASS: {(): now},
        EXIT_CODE: {(): float(code)},
        UNKNOWN: {
            (Server.KUBERNETES.value,): float(len(list(unread(report.view)))),
            (Server.EUREKA.value,): float(isinstance(report.registry, Unknown)),
        },
    }
    if not report.dry_run:
        gauges[AT_RISK] = {(): float(sum(isinstance(o.action, Renew) for o in report.outcomes.failures))}
        if code in GOOD:
            gauges[LAST_GOOD] = {(scope_text(report.scope),): now}
    if isinstance(report.registry, Complete) and report.desired is not None:
        gauges |= {INSTANCES: Counter(_states(report)), SYNCERS: Counter(_conditions(report)), HELD: _held(report)}
    actions: Counter[tuple[str, ...]] = Counter(
        (type(o.action).__name__, o.result.value) for o in report.outcomes.by_key.values()
    )
    actions["Renew", "Done"] += report.renewed_between
    return gauges, {PASSES: {(code.name,): 1.0}, ACTIONS: +actions}


def scope_text(scope: Scope) -> str:
    """Whose syncers: `all`, or the options that say it."""
    return " ".join(scope.options) or "all"


def _states(report: PassReport) -> Iterator[tuple[str, ...]]:
    """App and status of each of our instances after the pass."""
    assert isinstance(report.registry, Complete)  # asked before
    states = {key: one.status for key, one in report.registry.data.ours.items()}
    for key, outcome in report.outcomes.by_key.items():
        if outcome.status is not None:
            states[key] = outcome.status
        elif not outcome.failed:
            states.pop(key, None)
    for key, status in states.items():
        yield key.app, status


def _conditions(report: PassReport) -> Iterator[tuple[str, ...]]:
    for status in report.all_statuses.values():
        for condition in status.conditions:
            yield condition.type, condition.status.value


def _held(report: PassReport) -> Counter[tuple[str, ...]]:
    """By each reason: a Pushgateway keeps the last number of what is not pushed."""
    found: Counter[tuple[str, ...]] = Counter({(reason.value,): 0 for reason in HoldReason})
    for hold in report.held.holds if report.held else ():
        found[hold.reason.value,] += len(hold.removals)
    return found
