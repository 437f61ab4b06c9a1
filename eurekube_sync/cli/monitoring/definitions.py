"""Which metrics there are. docs/metrics.md is made of this table, and rules and dashboard may name nothing else."""

from __future__ import annotations

from typing import Literal

from eurekube_sync.model.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One name, as Prometheus has it."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    help: str
    labels: tuple[str, ...] = ()

    @property
    def series(self) -> tuple[str, ...]:
        """The names that a query may use."""
        parts = ("_bucket", "_sum", "_count") if self.kind == "histogram" else ("",)
        return tuple(f"{self.name}{part}" for part in parts)


def _gauge(name: str, help: str, *labels: str) -> Metric:
    return Metric(name=f"eurekube_sync_{name}", kind="gauge", help=help, labels=labels)


def _counter(name: str, help: str, *labels: str) -> Metric:
    return Metric(name=f"eurekube_sync_{name}_total", kind="counter", help=help, labels=labels)


BUILD = _gauge("build_info", "The version that runs, and its owner; always 1.", "version", "owner")
INSTANCES = _gauge("instances", "Our instances in Eureka after the last pass that could list Eureka.", "app", "state")
SYNCERS = _gauge("syncers", "Syncers in the scope, by the status of each condition.", "condition", "status")
HELD = _gauge("held_removals", "Removals that the brake holds.", "reason")
UNKNOWN = _gauge("unknown_sources", "Lists and other sources that the last pass could not read.", "server")
AT_RISK = _gauge("leases_at_risk", "Leases in Eureka that the last pass should have renewed, and did not.")
LAST_PASS = _gauge("last_pass_timestamp_seconds", "When the last pass ended.")
LAST_GOOD = _gauge(
    "last_good_pass_timestamp_seconds", "When the last good pass ended. A good pass did all that it had to do.", "scope"
)
EXIT_CODE = _gauge("last_pass_exit_code", "The exit code of the last pass; docs/commands.md has their meanings.")
LOCK = _gauge("lock_held", "1 while this process has the lock, 0 while it waits. Missing without a lock.", "scope")
PASSES = _counter("passes", "Passes that ended, by the name of their exit code.", "result")
ACTIONS = _counter("actions", "Actions on instances in Eureka, by their result.", "kind", "result")
CALLS = _counter(
    "calls", "Calls to both servers, each try counted; code is `none` without an answer.", "server", "code"
)
DURATION = Metric(
    name="eurekube_sync_pass_duration_seconds", kind="histogram", help="How long a pass took, from list to report."
)

METRICS = (
    *(BUILD, INSTANCES, SYNCERS, HELD, UNKNOWN, AT_RISK, LAST_PASS, LAST_GOOD, EXIT_CODE, LOCK),
    *(PASSES, ACTIONS, CALLS, DURATION),
)
BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Upper bounds of `DURATION`, in seconds."""
