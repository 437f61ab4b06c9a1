"""All metrics, and their values from the reports of passes. docs/metrics.md is generated from this
file.

Instances are counted by app: 6,000 apps are about 12,000 series, which one scrape can carry.
A series for each of 60,000 instances would be too many.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from eurekube_sync import __version__
from eurekube_sync.apply.imports import count_of
from eurekube_sync.apply.status import SYNCER
from eurekube_sync.brake.evidence import PodState
from eurekube_sync.brake.holds import HOLD_REASONS, Held
from eurekube_sync.brake.imports import IMPORT_HOLD_REASONS
from eurekube_sync.controller.diagnosis import unread_of
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import ImportReport, PassReport
from eurekube_sync.desired.claims import Desired, Serving
from eurekube_sync.desired.imports import Importing
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Renew, removes
from eurekube_sync.model.imports import IMPORT, ImportRef, ImportStatus
from eurekube_sync.model.kubernetes import ConditionStatus, SyncerRef, SyncerStatus
from eurekube_sync.model.ports import Clock
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete, Server, Unknown
from eurekube_sync.observe.eureka import Observed

_Kind: TypeAlias = Literal["gauge", "counter", "histogram"]


class Metric(Struct, frozen=True, kw_only=True):
    """A metric of Prometheus."""

    name: str
    kind: _Kind
    help: str
    labels: tuple[str, ...] = ()


def _metric(name: str, help: str, *labels: str, kind: _Kind = "gauge") -> Metric:
    return Metric(name=f"eurekube_sync_{name}", kind=kind, help=help, labels=labels)


BUILD = _metric("build_info", "The version that runs, and its owner; always 1.", "version", "owner")
INSTANCES = _metric(
    "instances",
    "Our instances in Eureka after the last pass that could read Eureka.",
    "app",
    "state",
)
SYNCERS = _metric(
    "syncers", "Syncers in the scope, by the status of each condition.", "condition", "status"
)
BAD = _metric(
    "bad_condition",
    "1 for each condition of a syncer or import that says that something is wrong: of each kind "
    "and condition the 100 worst. Without a name: how many more.",
    "kind",
    "in_namespace",
    "name",
    "condition",
    "reason",
)
HELD = _metric("held_removals", "Removals that the brake holds.", "reason")
HELD_PODS = _metric(
    "held_removals_by_pod",
    "Held removals that wait for a person, by the pod of the instance: ready means that it still "
    "runs and is Ready.",
    "state",
)
LOST = _metric(
    "lost_apps", "Apps without an UP instance in Eureka although endpoints of them are ready."
)
IMPORTS = _metric(
    "imports",
    "Imports in the scope, by the status of each condition. Absent if imports are off.",
    "condition",
    "status",
)
ENDPOINTS = _metric(
    "import_endpoints",
    "Endpoints that imports should have, by whether they are written. Absent if imports are off.",
    "state",
)
HELD_ENDPOINTS = _metric(
    "held_endpoints", "Endpoints of imports that stay for now. Absent if imports are off.", "reason"
)
UNKNOWN = _metric(
    "unknown_sources", "Lists and other sources that the last pass could not read.", "server"
)
AT_RISK = _metric(
    "leases_at_risk", "Leases in Eureka that the last pass should have renewed, and did not."
)
LAST_PASS = _metric("last_pass_timestamp_seconds", "When the last pass ended.")
LAST_GOOD = _metric(
    "last_good_pass_timestamp_seconds",
    "When the last good pass ended. A good pass did all but the removals that are held.",
    "scope",
)
EXIT_CODE = _metric(
    "last_pass_exit_code", "The exit code of the last pass; eurekube-sync help exit-codes has them."
)
UNWRITTEN = _metric(
    "record_unwritten",
    "1 if the record of the last pass could not be written, else 0. Absent without --record.",
)
LOCK = _metric(
    "lock_held",
    "1 while this process has the lock, 0 while it waits. Absent if no lock is used.",
    "scope",
)
PASSES = _metric(
    "passes_total", "Passes that ended, by the name of their exit code.", "result", kind="counter"
)
ACTIONS = _metric(
    "actions_total",
    "Actions on instances in Eureka, by their result.",
    "kind",
    "result",
    kind="counter",
)
UNREADY = _metric(
    "unready_passes_total",
    "Passes that turned an instance of the app DOWN, or cancelled it, because its pod was not ready "
    "any more. It is there for each app, also with 0.",
    "app",
    kind="counter",
)
CALLS = _metric(
    "calls_total",
    "Calls to both servers, each try counted; code is `none` without an answer.",
    "server",
    "code",
    kind="counter",
)
DURATION = _metric(
    "pass_duration_seconds", "How long a pass took, from list to report.", kind="histogram"
)
METRICS = (
    BUILD,
    INSTANCES,
    SYNCERS,
    BAD,
    HELD,
    HELD_PODS,
    LOST,
    IMPORTS,
    ENDPOINTS,
    HELD_ENDPOINTS,
    UNKNOWN,
    AT_RISK,
    LAST_PASS,
    LAST_GOOD,
    EXIT_CODE,
    UNWRITTEN,
    LOCK,
    PASSES,
    ACTIONS,
    UNREADY,
    CALLS,
    DURATION,
)

Values: TypeAlias = Mapping[Metric, Mapping[tuple[str, ...], float]]
"""The values of metrics, by the values of their labels. A metric that is missing is unknown, not
zero."""
_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""The upper bounds of `DURATION`, in seconds."""
SUM = ("sum",)  # the key of the sum among the buckets of `DURATION`
GOOD = frozenset({ExitCode.OK, ExitCode.REMOVAL_HELD, ExitCode.APP_LOST})
"""The exit codes of a pass that did all it had to do."""


def scope_text(scope: Scope) -> str:
    """Return the options that limit the scope, or `all`."""
    return " ".join(scope.options) or "all"


def measured(report: PassReport, code: ExitCode, *, now: float) -> tuple[Values, Values]:
    """Return the gauges that the pass sets, and what it adds to the counters."""
    unread = _Counts()
    unread[Server.KUBERNETES.value,] = len(unread_of(report))
    unread[Server.EUREKA.value,] = int(isinstance(report.registry, Unknown))
    gauges: dict[Metric, Mapping[tuple[str, ...], float]] = {
        LAST_PASS: {(): now},
        EXIT_CODE: {(): float(code)},
        UNKNOWN: unread,
    }
    if not report.settings.dry_run:  # which renews nothing
        failures = report.outcomes.failures
        at_risk = [outcome for outcome in failures if isinstance(outcome.action, Renew)]
        gauges[AT_RISK] = {(): len(at_risk)}
        if code in GOOD:
            gauges[LAST_GOOD] = {(scope_text(report.settings.scope),): now}
    if isinstance(report.registry, Complete) and report.desired is not None:
        lost = {lost.app for lost in report.lost.values()}
        gauges[INSTANCES] = _instances(report, report.registry.data)
        gauges[SYNCERS] = _conditions(report.all_statuses.values())
        bad = _bad_conditions(SYNCER, report.all_statuses)
        if report.imports is not None:
            bad.update(_bad_conditions(IMPORT, report.imports.all_statuses))
        gauges[BAD] = bad
        gauges[HELD] = _held(report.held, HOLD_REASONS)
        gauges[HELD_PODS] = _held_pods(report)
        gauges[LOST] = {(): float(len(lost))}
    # Without Eureka's list it is unknown which endpoints the imports should have.
    if report.imports is not None and report.imports.registry is None:
        statuses = report.imports.all_statuses.values()
        gauges[IMPORTS] = _conditions(statuses)
        gauges[ENDPOINTS] = _endpoints(report.imports)
        gauges[HELD_ENDPOINTS] = _held(report.imports.held, IMPORT_HOLD_REASONS)
    added: dict[Metric, Mapping[tuple[str, ...], float]] = {PASSES: {(code.name,): 1.0}}
    if INSTANCES in gauges and report.desired is not None:
        apps = {app for app, _ in gauges[INSTANCES]}
        added[UNREADY] = _unready(report, report.desired, apps)
    added[ACTIONS] = _actions(report)
    return gauges, added


_Counts: TypeAlias = Counter[tuple[str, ...]]


def _actions(report: PassReport) -> _Counts:
    """Count the actions by kind and result, with the renewals since the previous pass."""
    counts = _Counts()
    for outcome in report.outcomes.by_key.values():
        kind = type(outcome.action).__name__
        counts[kind, outcome.result.value] += 1
    if report.renewed_between:
        counts["Renew", "Done"] += report.renewed_between
    return counts


def _instances(report: PassReport, observed: Observed) -> _Counts:
    """Count our instances by app and status, as the pass left them."""
    statuses = {key: instance.status for key, instance in observed.ours.items()}
    for key, outcome in report.outcomes.by_key.items():
        if outcome.status is not None:
            statuses[key] = outcome.status
        elif not outcome.failed:
            statuses.pop(key, None)
    return _Counts((key.app, status.value) for key, status in statuses.items())


def _unready(report: PassReport, desired: Desired, apps: Iterable[str]) -> _Counts:
    """Count 1 for each app that callers lost an instance of because its pod was not ready any more,
    and 0 for the others: Prometheus sees no increase of a series that begins with 1."""
    counts = _Counts({(app,): 0 for app in apps})
    for outcome in report.outcomes.others:
        action = outcome.action
        if outcome.failed or action.syncer is None or not removes(action):
            continue
        claim = desired.claims.get(action.syncer)
        # An endpoint that is missing is no sign of this: a rollout has those, too.
        if isinstance(claim, Serving) and action.key in claim.unready:
            counts[action.key.app,] = 1
    return counts


def _conditions(statuses: Iterable[SyncerStatus | ImportStatus]) -> _Counts:
    counts = _Counts()
    for status in statuses:
        for condition in status.conditions:
            counts[condition.type, condition.status.value] += 1
    return counts


MOST_NAMED = 100
"""Syncers that `BAD` names for each condition, and imports: so many that a person can look at
them."""
_BAD_STATUSES = {
    "Ready": ConditionStatus.FALSE,
    "Conflict": ConditionStatus.TRUE,
    "RemovalHeld": ConditionStatus.TRUE,
}
_ASKED_FOR = frozenset({Reason.SUSPENDED, Reason.LIMIT_ZERO})


def _bad_conditions(
    kind: str, statuses: Mapping[SyncerRef, SyncerStatus] | Mapping[ImportRef, ImportStatus]
) -> _Counts:
    """Give each of the worst conditions with the name of its syncer or import, and count the
    others by reason."""
    bad: dict[str, list[tuple[int, str, str, str]]] = {type_: [] for type_ in _BAD_STATUSES}
    for ref, status in statuses.items():
        for condition in status.conditions:
            if _BAD_STATUSES.get(condition.type) is not condition.status:
                continue  # nearly always
            rank = _rank(condition.reason)
            bad[condition.type].append((rank, ref.namespace, ref.name, condition.reason))
    counts = _Counts()
    for type_, conditions in bad.items():
        # A zero, too: a Pushgateway keeps the last values of a metric without any series.
        counts[kind, "", "", type_, ""] = 0
        conditions.sort()
        for _, namespace, name, reason in conditions[:MOST_NAMED]:
            counts[kind, namespace, name, type_, reason] = 1
        for _, _, _, reason in conditions[MOST_NAMED:]:
            counts[kind, "", "", type_, reason] += 1
    return counts


def _rank(reason: str) -> int:
    """Return how bad a reason is: 0 if callers do not find the app, 2 if somebody asked for it."""
    if reason == Reason.LAST_INSTANCE_LOST:
        return 0
    if reason in _ASKED_FOR:
        return 2
    return 1


def _endpoints(report: ImportReport) -> _Counts:
    counts = _Counts({("written",): 0, ("missing",): 0})
    for ref, claim in report.claims.items():
        if not isinstance(claim, Importing):
            continue
        outcome = report.outcomes.get(ref)
        kept = report.plan.kept.get(ref, ())
        written, wanted = count_of(claim, outcome, kept)
        counts["written",] += written
        counts["missing",] += wanted - written
    return counts


def _held(held: Held | None, reasons: Iterable[Reason]) -> _Counts:
    # Zeros, too: a Pushgateway keeps the last value of a series that is not pushed.
    counts = _Counts({(reason.value,): 0 for reason in reasons})
    if held is None:
        return counts
    for hold in held.holds:
        counts[hold.reason.value,] += len(hold.removals)
    return counts


def _held_pods(report: PassReport) -> _Counts:
    counts = _Counts({(state.value,): 0 for state in PodState})
    if report.held is None:
        return counts
    evidence = report.held.evidence()
    if evidence is None:
        return counts
    for state, number in evidence.counts.items():
        counts[state.value,] += number
    return counts


KEPT_PASSES = 20


class Passed(Struct, frozen=True, kw_only=True):
    """The summary of one pass."""

    at: float  # when it ended, in Unix seconds
    seconds: float
    code: ExitCode
    summary: str


class Answered(Struct, frozen=True):
    """The last answer of a Eureka server."""

    at: float  # in Unix seconds
    code: str  # its HTTP status, or `none`


class Seen(Struct, frozen=True, eq=False, kw_only=True, weakref=True):
    """What a pass saw, for the status page."""

    passed: Passed
    report: PassReport


class Monitor:
    """The metrics of this process, and whether its loop still runs."""

    def __init__(
        self,
        clock: Clock,
        owner: str,
        scope: str,
        *,
        allowed: float,
        keeps_reports: bool = False,
    ) -> None:
        """Take the longest time `allowed` between two calls of `turned`, in seconds. Only a process
        with a status page `keeps_reports`."""
        self.clock = clock
        self.owner = owner
        self.scope = scope
        self._allowed = allowed
        self.passes: tuple[Passed, ...] = ()  # the latest first
        self.latest: Seen | None = None  # of the last pass
        self.known: Seen | None = None  # of the last pass that knew the syncers
        self.servers: dict[str, Answered | None] = {}
        """The last answer of each Eureka server, by its address; None if it was not asked yet."""
        self._keeps_reports = keeps_reports
        self.ready = False  # whether a pass ended, or another replica is at work
        self._guard = threading.Lock()
        self._gauges: Values = {BUILD: {(__version__, owner): 1.0}}
        self._counters: dict[Metric, Counter[tuple[str, ...]]] = {}
        self._turned = clock.monotonic()
        self._lock: tuple[str, Callable[[], bool]] | None = None
        self._unwritten: Callable[[], bool] | None = None
        self._add({DURATION: _took()})

    def has_lock(self, name: str, held: Callable[[], bool]) -> None:
        self._lock = (name, held)

    def records(self, unwritten: Callable[[], bool]) -> None:
        """Show whether the last record could not be written."""
        self._unwritten = unwritten

    def uses(self, addresses: Iterable[str]) -> None:
        """Take over the addresses of the Eureka servers, in their order."""
        self.servers = {address: self.servers.get(address) for address in addresses}

    def called(self, server: Server, address: str, code: str) -> None:
        """Count one try of a call. `address` is that of a Eureka server, and else empty; `code` is
        the HTTP status or `none`."""
        if address in self.servers:
            self.servers[address] = Answered(self.clock.now(), code)
        with self._guard:
            self._add({CALLS: {(server.value, code): 1.0}})

    def turned(self) -> None:
        self._turned = self.clock.monotonic()

    def waits(self) -> None:
        """Forget all instances, because another replica has the lock. This replica is ready to replace
        it."""
        self.ready = True
        with self._guard:
            kept = {BUILD: self._gauges[BUILD]}
            if LAST_GOOD in self._gauges:
                kept[LAST_GOOD] = self._gauges[LAST_GOOD]
            self._gauges = kept
            self.latest = None
            self.known = None
        self.turned()

    def was_good(self, at: float) -> None:
        """Take over the time of an earlier process's last good pass, in Unix seconds."""
        with self._guard:
            own = self._gauges.get(LAST_GOOD, {})
            last = max([at, *own.values()])
            self._gauges = {**self._gauges, LAST_GOOD: {(self.scope,): last}}

    def passed(self, report: PassReport, code: ExitCode, summary: str, seconds: float) -> None:
        self.turned()
        now = self.clock.now()
        gauges, added = measured(report, code, now=now)
        with self._guard:
            self._gauges = {**self._gauges, **gauges}
            self._add({**added, DURATION: _took(seconds)})
            passed = Passed(at=now, seconds=seconds, code=code, summary=summary)
            self.passes = (passed, *self.passes[: KEPT_PASSES - 1])
            if self._keeps_reports:
                self.latest = Seen(passed=passed, report=report)
                # Without a status, only a good pass knows that there are no syncers.
                if report.all_statuses or code in GOOD:
                    self.known = self.latest
        self.ready = True

    def _add(self, values: Values) -> None:
        for metric, added in values.items():
            self._counters.setdefault(metric, Counter()).update(added)

    @property
    def live(self) -> bool:
        """Whether the loop still runs. A server that does not answer does not stop it."""
        waited = self.clock.monotonic() - self._turned
        return waited <= self._allowed

    @property
    def lock(self) -> str:
        """The lock and whether it is held; empty if no lock is used."""
        if self._lock is None:
            return ""
        name, held = self._lock
        if held():
            return f"{name}: held"
        return f"{name}: not held"

    def values(self) -> Values:
        with self._guard:
            values: dict[Metric, Mapping[tuple[str, ...], float]] = dict(self._gauges)
            for metric, counts in self._counters.items():
                values[metric] = dict(counts)
        if self._lock is not None:
            _, held = self._lock
            values[LOCK] = {(self.scope,): float(held())}
        if self._unwritten is not None:
            values[UNWRITTEN] = {(): float(self._unwritten())}
        return values


def _took(*seconds: float) -> Mapping[tuple[str, ...], float]:
    """Return what passes of these seconds add to `DURATION`. No pass adds zeros, with which a rate
    has to begin."""
    buckets: dict[tuple[str, ...], float] = {}
    for bound in _BUCKETS:
        within = [duration for duration in seconds if duration <= bound]
        buckets[f"{bound:g}",] = float(len(within))
    buckets["+Inf",] = float(len(seconds))
    buckets[SUM] = sum(seconds)
    return buckets
