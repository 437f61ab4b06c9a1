"""What one program cost in one scenario, as a value."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.child import Cost

FIRST, STEADY, PASS, REPLACED, EMPTIED, DELETED = (
    "first registration of all",
    "steady one-shot",
    "steady pass of a daemon",
    "50 % of pods replaced",
    "Eureka lost its memory",
    "all syncers deleted",
)
SCENARIOS = (FIRST, STEADY, PASS, REPLACED, EMPTIED, DELETED)
PROGRAM, FLOOR, LOOP = "eurekube-sync", "floor", "plain loop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Of one server."""

    cpu: float
    """Seconds of its own processor time."""
    requests: int | None = None
    megabytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One program in one scenario; medians of its rounds. Times in seconds, memory in MB."""

    scenario: str
    program: str
    wall: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0
    eureka: Load | None = None
    kubernetes: Load | None = None
    """kube-apiserver and etcd."""
    there: float | None = None
    """From the start of the process until Eureka had all instances."""
    stranger_ms: tuple[float, float] | None = None
    """Median and 99th percentile of a stranger's `GET /apps/{APP}` meanwhile."""
    idle_ms: tuple[float, float] | None = None
    """The same while nobody else asks that server."""
    failed: str = ""
    """Why there are no figures."""


def row_of(scenario: str, program: str, cost: Cost, loads: tuple[Load, Load] | None = None) -> Row:
    """One run; `loads` are those of Eureka and of Kubernetes."""
    eureka, kubernetes = loads or (None, None)
    return Row(
        scenario=scenario,
        program=program,
        wall=cost.wall,
        cpu=cost.cpu,
        memory=cost.memory,
        eureka=eureka,
        kubernetes=kubernetes,
    )


def median(rows: Sequence[Row]) -> Row:
    """Of the times; the rest is that of the last round."""
    wall, cpu = (
        statistics.median(values)
        for values in zip(*((row.wall, row.cpu) for row in rows), strict=True)
    )
    return replace(rows[-1], wall=wall, cpu=cpu)
