"""The scenarios of one size, in their order, and what each of the three programs costs in them.

The program is what a user installs, run by its command line. The floor and the plain loop take turns with it, so that
what else the machine does falls on all three alike; only ratios within one run say something about the code.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from bench.child import Child, Cost, run
from bench.servers import CACHE_SECONDS, Servers
from bench.stranger import stranger

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
_CALLS = re.compile(r'^eurekube_sync_calls_total\{code="[^"]*",server="([^"]*)"\} (\S+)$', re.MULTILINE)
_PERIOD = 30.0
"""Seconds in which each lease is renewed once: so long at least a daemon is watched."""
_FASTEST, _INSTANCES_A_SECOND = 3.0, 4000
"""A daemon polls every 3 s, and less often where it has more to do."""
_PLAN = re.compile(r"--approve ([0-9a-f]{12})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One program in one scenario; medians of its rounds. Times in seconds, memory and traffic in MB."""

    scenario: str
    program: str
    wall: float
    cpu: float
    memory: float
    eureka_requests: int | None = None
    eureka_mb: float | None = None
    kubernetes_requests: int | None = None
    kubernetes_mb: float | None = None
    stranger_ms: tuple[float, float] | None = None
    """Median and 99th percentile of a stranger's `GET /apps/{APP}` meanwhile."""


Say: TypeAlias = Callable[[str], None]


class Measuring:
    """All scenarios on servers that are up."""

    def __init__(
        self, servers: Servers, *, rounds: int, loop: bool, shards: Sequence[int], extra: Sequence[str], say: Say
    ) -> None:
        """`rounds` of the steady one-shot; `loop`: with the plain loop; `shards`: also in so many processes; `extra`
        options of the program."""
        self._servers = servers
        self._rounds = rounds
        self._loop = loop
        self._shards = shards
        self._extra = extra
        self._say = say
        self._folder = Path(tempfile.mkdtemp(prefix="eurekube-bench-"))
        self._metrics = self._folder / "metrics.prom"
        self.notes: list[str] = []
        """What is not in a row."""

    def rows(self) -> Iterator[Row]:
        """Each as soon as it is measured."""
        servers, objects = self._servers, self._servers.objects
        self._say("writing the objects")
        self.warm_up()
        objects.create()
        yield from self._others(FIRST, register=True)
        self._say(FIRST)
        yield self._watched(FIRST)
        yield from self._steady()
        idle = self._idle_ms()
        self.notes.append(
            f"{objects.instances:,}: another client waits {idle[0]:.1f} ms, {idle[1]:.1f} ms at the 99th "
            "percentile, while nobody else asks Eureka"
        )
        self._say(PASS)
        yield self._daemon()
        for number in self._shards:
            self._say(f"{number} shards")
            yield self._in_parts(number)
        self._say(REPLACED)
        objects.replace_half()
        yield self.ours(REPLACED)
        yield from self._plain(REPLACED)
        servers.eureka.empty()
        self._say(EMPTIED)
        yield self.ours(EMPTIED)
        yield self._deleted()

    def warm_up(self) -> None:
        """Compiles what a command imports: an installed program is compiled."""
        run([*self.command(), "--eureka-url", "http://localhost:9/eureka", "--dry-run"], exits=range(256))
        for module in ("bench.floor", "bench.plain_loop"):
            run([sys.executable, "-c", f"import {module}"])

    def _steady(self) -> Iterator[Row]:
        self._say(STEADY)
        self._settle()
        found: dict[str, list[Row]] = {}
        for number in range(self._rounds):
            for row in (self.ours(STEADY), *self._others(STEADY, register=False, loop=self._loop and number == 0)):
                found.setdefault(row.program, []).append(row)
        for rows in found.values():
            yield _median(rows)

    def _watched(self, scenario: str) -> Row:
        """With a stranger who asks for an app all the while, and for as long before."""
        url = self._servers.eureka.url
        with stranger(url, "APP-0") as waits:
            row = self.ours(scenario)
        ms = (waits.percentile(50), waits.percentile(99))
        return _with(row, stranger_ms=ms)

    def _idle_ms(self, seconds: float = 10.0) -> tuple[float, float]:
        """What the stranger waits while nobody else asks."""
        with stranger(self._servers.eureka.url, "APP-0") as waits:
            time.sleep(seconds)
        return waits.percentile(50), waits.percentile(99)

    def _in_parts(self, number: int) -> Row:
        """The steady one-shot by so many processes at once: the longest wall clock and the largest memory of them, and
        the processor time of all."""
        self._settle()
        children = [Child([*self.command(metrics=False), "--shard", f"{part}/{number}"]) for part in range(number)]
        costs = [child.wait() for child in children]
        return Row(
            scenario=f"{STEADY}, {number} shards",
            program=PROGRAM,
            wall=max(cost.wall for cost in costs),
            cpu=sum(cost.cpu for cost in costs),
            memory=max(cost.memory for cost in costs),
        )

    def _deleted(self) -> Row:
        """A pass holds so many removals and names its plan, which a person approves. Of the two passes that then are
        measured the second removes the finalizers, when no list of Eureka can hide an instance any more."""
        self._say(DELETED)
        self._servers.objects.delete_syncers()
        held = Child([*self.command(), "--no-fail-on-held"])
        held.wait()
        plan = _PLAN.search(held.said)
        approved = ["--approve", plan[1]] if plan else []
        row = self.ours(DELETED, "--passes", "2", "--interval", "4s", *approved)
        left = self._servers.objects.left()
        if left:
            raise RuntimeError(f"{left} syncers are left")
        return row

    def ours(self, scenario: str, *options: str, exits: Sequence[int] = (0,)) -> Row:
        """One run of the program, then time for Eureka's lists to show it."""
        with self._traffic() as traffic:
            cost = run([*self.command(), *options], exits=exits)
        self._settle()
        return _row(scenario, PROGRAM, cost, *traffic)

    def command(self, *, metrics: bool = True) -> list[str]:
        """As a user calls it."""
        servers = self._servers
        # fmt: off
        return [
            sys.executable, "-m", "eurekube_sync", "run", "--owner", "bench",
            "--eureka-url", servers.eureka_url, "--kubeconfig", str(servers.kubeconfig),
            "--registry-cache", f"{CACHE_SECONDS:g}s", "--pass-timeout", "900s", "--call-timeout", "60s",
            "--eureka-batch", "on", *(["--metrics-file", str(self._metrics)] if metrics else []), *self._extra,
        ]
        # fmt: on

    def _daemon(self) -> Row:
        """What a pass costs of one that goes on: the processor time of whole intervals, renewals between included."""
        interval = max(_FASTEST, self._servers.objects.instances / _INSTANCES_A_SECOND)
        passes = max(3, round(_PERIOD / interval))
        self._metrics.unlink(missing_ok=True)
        child = Child([*self.command(), "--daemon", "--interval", f"{interval:g}s"])
        for _ in range(2):  # the first one of a process renews all, and decodes everything
            self._next_pass()
        cpu, traffic, calls = child.cpu(), self._bytes(), self._calls()
        walls = self._pass_seconds()
        with stranger(self._servers.eureka.url, "APP-0") as waits:
            for _ in range(passes):
                self._next_pass()
        row = Row(
            scenario=PASS,
            program=PROGRAM,
            wall=(self._pass_seconds() - walls) / passes,
            cpu=(child.cpu() - cpu) / passes,
            memory=child.peak(),
            eureka_requests=round((self._calls()[0] - calls[0]) / passes),
            eureka_mb=(self._bytes()[0] - traffic[0]) / 1e6 / passes,
            kubernetes_requests=round((self._calls()[1] - calls[1]) / passes),
            kubernetes_mb=(self._bytes()[1] - traffic[1]) / 1e6 / passes,
            stranger_ms=(waits.percentile(50), waits.percentile(99)),
        )
        child.stop()
        child.wait()
        return row

    def _next_pass(self) -> None:
        """Until a pass has written its metrics."""
        known = self._metrics.stat().st_mtime_ns if self._metrics.exists() else 0
        deadline = time.monotonic() + 600
        while not self._metrics.exists() or self._metrics.stat().st_mtime_ns == known:
            if time.monotonic() > deadline:
                raise RuntimeError("the daemon ends no pass")
            time.sleep(0.02)

    def _pass_seconds(self) -> float:
        """All of the daemon's passes, by its own metric."""
        text = self._metrics.read_text()
        total = re.search(r"^eurekube_sync_pass_duration_seconds_sum (\S+)$", text, re.MULTILINE)
        return float(total[1]) if total else 0.0

    @contextmanager
    def _traffic(self) -> Iterator[list[float]]:
        """Filled when the block ends: requests and MB of Eureka, then of Kubernetes."""
        self._metrics.unlink(missing_ok=True)
        before = self._bytes()
        found: list[float] = []
        yield found
        after, calls = self._bytes(), self._calls()
        found += [calls[0], (after[0] - before[0]) / 1e6, calls[1], (after[1] - before[1]) / 1e6]

    def _bytes(self) -> tuple[int, int]:
        return self._servers.to_eureka.bytes, self._servers.to_kubernetes.bytes

    def _calls(self) -> tuple[int, int]:
        found = {"eureka": 0, "kubernetes": 0}
        for server, number in _CALLS.findall(self._metrics.read_text()):
            found[server.lower()] += int(float(number))
        return found["eureka"], found["kubernetes"]

    def _others(self, scenario: str, *, register: bool, loop: bool | None = None) -> Iterator[Row]:
        where = self._where(register=register)
        if register:
            self._say(f"{scenario}: floor")
        yield _row(scenario, FLOOR, run([sys.executable, "-m", "bench.floor", where]))
        yield from self._plain(scenario, loop=loop)

    def _plain(self, scenario: str, *, loop: bool | None = None) -> Iterator[Row]:
        if self._loop if loop is None else loop:
            self._say(f"{scenario}: plain loop")
            yield _row(scenario, LOOP, run([sys.executable, "-m", "bench.plain_loop", self._where(register=False)]))
            self._settle()

    def _where(self, *, register: bool) -> str:
        servers = self._servers
        file = self._folder / "where.json"
        there = {
            "eureka": servers.others.url,
            "kubernetes": servers.kubernetes_url,
            "token": servers.token,
            "ca_file": str(servers.ca_file) if servers.ca_file else None,
            "instances": servers.objects.instances,
            "register": register,
        }
        file.write_text(json.dumps(there))
        return str(file)

    def _settle(self) -> None:
        """Until Eureka's lists show what was written."""
        time.sleep(2 * CACHE_SECONDS + 0.2)


def _row(scenario: str, program: str, cost: Cost, *traffic: float) -> Row:
    row = Row(scenario=scenario, program=program, wall=cost.wall, cpu=cost.cpu, memory=cost.memory)
    if not traffic:
        return row
    eureka_requests, eureka_mb, kubernetes_requests, kubernetes_mb = traffic
    return _with(
        row,
        eureka_requests=int(eureka_requests),
        eureka_mb=eureka_mb,
        kubernetes_requests=int(kubernetes_requests),
        kubernetes_mb=kubernetes_mb,
    )


def _with(row: Row, **changes: Any) -> Row:
    return replace(row, **changes)


def _median(rows: Sequence[Row]) -> Row:
    """Of the times; the rest is that of the last round."""
    wall, cpu = (statistics.median(values) for values in zip(*((row.wall, row.cpu) for row in rows), strict=True))
    return _with(rows[-1], wall=wall, cpu=cpu)
