"""The scenarios of one size, in their order, and what each of the three programs costs in them.

The program is what a user installs, run by its command line. The floor and the plain loop take
turns with it, so that what else the machine does falls on all three alike; only ratios within one
run say something about the code.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from bench.child import Child, Cost, processor_seconds, run
from bench.row import (
    DELETED,
    EMPTIED,
    FIRST,
    FLOOR,
    LOOP,
    PASS,
    PROGRAM,
    REPLACED,
    STEADY,
    Load,
    Row,
    median,
    row_of,
)
from bench.servers import CACHE_SECONDS, Emptied, Servers
from bench.stranger import stranger

_CALLS = re.compile(
    r'^eurekube_sync_calls_total\{code="[^"]*",server="([^"]*)"\} (\S+)$', re.MULTILINE
)
_PERIOD = 30.0
"""Seconds in which each lease is renewed once: so long at least a daemon is watched."""
_FASTEST, _INSTANCES_A_SECOND = 3.0, 4000
"""A daemon polls every 3 s, and less often where it has more to do."""
_PLAN = re.compile(r"--approve ([0-9a-f]{12})")
_SHOWN_SECONDS = 60.0
"""A server that has just started takes seconds to make a long list, and shows the one before
meanwhile."""
_IDLE_SECONDS = 10.0
_OTHER = {
    "instanceId": "other",
    "hostName": "other",
    "ipAddr": "127.0.0.1",
    "app": "OTHER",
    "status": "UP",
    "dataCenterInfo": {
        "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
        "name": "MyOwn",
    },
}


Say: TypeAlias = Callable[[str], None]
Loads: TypeAlias = Callable[[], tuple[Load, Load]]
"""Of Eureka and Kubernetes, since a moment."""


class Measuring:
    """All scenarios on servers that are up."""

    def __init__(
        self, servers: Servers, *, rounds: int, loop: bool, extra: Sequence[str], say: Say
    ) -> None:
        """`rounds` of the steady one-shot; `loop`: with the plain loop; `extra` options of
        the program."""
        self._servers = servers
        self._rounds = rounds
        self._loop = loop
        self._extra = extra
        self._say = say
        self._folder = Path(tempfile.mkdtemp(prefix="eurekube-bench-"))
        self._metrics = self._folder / "metrics.prom"

    def rows(self) -> Iterator[Row]:
        """Each as soon as it is measured. A scenario that fails has a row that says why, and the
        next one begins."""
        self._say("writing the objects")
        self.warm_up()
        self._servers.objects.create()
        scenarios: list[tuple[str, Callable[[], Iterator[Row]]]] = [
            (FIRST, self._first),
            (STEADY, self._steady),
            (PASS, self._daemon),
            (REPLACED, self._replaced),
            (EMPTIED, self._emptied),
            (DELETED, self._deleted),
        ]
        for scenario, measured in scenarios:
            self._say(scenario)
            try:
                yield from measured()
            except Exception as error:  # noqa: BLE001 - whatever it is, the other scenarios tell something
                self._say(f"{scenario} failed: {error}")
                yield Row(
                    scenario=scenario,
                    program=PROGRAM,
                    failed=(str(error) or repr(error)).splitlines()[0][:120],
                )

    def warm_up(self) -> None:
        """Compiles what a command imports: an installed program is compiled."""
        run(
            [*self.command(), "--eureka-url", "http://localhost:9/eureka", "--dry-run"],
            exits=range(256),
        )
        for module in ("bench.floor", "bench.plain_loop"):
            run([sys.executable, "-c", f"import {module}"])

    def _first(self) -> Iterator[Row]:
        """The floor's finalizers and statuses are taken off again before the program begins."""
        others = self._servers.others
        yield self._watched(others, lambda: self._floor(FIRST, register=True))
        self._servers.objects.forget_syncers()
        yield from self._plain(FIRST)
        with stranger(others.url, "APP-0") as waits:
            time.sleep(_IDLE_SECONDS)
        row = self._watched(self._servers.eureka, lambda: self._until_there(FIRST))
        yield replace(row, idle_ms=(waits.percentile(50), waits.percentile(99)))

    def _steady(self) -> Iterator[Row]:
        self._settle()
        found: dict[str, list[Row]] = {}
        for number in range(self._rounds):
            rows = [self.ours(STEADY), self._floor(STEADY, register=False)]
            for row in (*rows, *(self._plain(STEADY) if number == 0 else ())):
                found.setdefault(row.program, []).append(row)
        for rows in found.values():
            yield median(rows)

    def _replaced(self) -> Iterator[Row]:
        self._servers.objects.replace_half()
        yield self.ours(REPLACED)
        yield from self._plain(REPLACED)

    def _emptied(self) -> Iterator[Row]:
        self._servers.eureka.empty()
        yield self._until_there(EMPTIED)

    def _until_there(self, scenario: str) -> Row:
        """With the time at which the last instance was in Eureka: a registration is the last that
        is said to it."""
        row = self.ours(scenario)
        deadline = time.monotonic() + _SHOWN_SECONDS
        while (found := self._listed()) != self._servers.objects.instances:
            if time.monotonic() > deadline:
                raise RuntimeError(f"Eureka has {found} instances after it")
            self._change_another_app()
            time.sleep(1)
        return row

    def _listed(self) -> int:
        """In the form that the program asks for."""
        asked = urllib.request.Request(
            f"{self._servers.eureka.url}/apps", headers={"Accept": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return int(answer.read().count(b'"instanceId"'))

    def _change_another_app(self) -> None:
        """So that Eureka makes its list anew. A list that it made while registrations came may lack
        some of them, and is kept for minutes if nobody else registers or cancels, as somebody does
        in any registry in use."""
        register = urllib.request.Request(
            f"{self._servers.eureka.url}/apps/OTHER",
            data=json.dumps({"instance": _OTHER}).encode(),
            headers={"Content-Type": "application/json"},
        )
        cancel = urllib.request.Request(
            f"{self._servers.eureka.url}/apps/OTHER/other", method="DELETE"
        )
        for request in (register, cancel):
            urllib.request.urlopen(request, timeout=60).close()

    def _watched(self, eureka: Emptied, measured: Callable[[], Row]) -> Row:
        """With a stranger who asks for an app all the while."""
        with stranger(eureka.url, "APP-0") as waits:
            row = measured()
        return replace(row, stranger_ms=(waits.percentile(50), waits.percentile(99)))

    def _deleted(self) -> Iterator[Row]:
        """Of the two passes that are measured the second removes the finalizers, when no list of
        Eureka can hide an instance any more. If the brake would hold so many removals, a dry run
        names the plan, and a person approves it; it holds none of pods that are gone."""
        self._servers.objects.delete_syncers()
        with Child([*self.command(), "--dry-run", "--no-fail-on-held"]) as dry:
            dry.wait(exits=range(256))
        plan = _PLAN.search(dry.said)
        approved = ["--approve", plan[1]] if plan else []
        row = self.ours(DELETED, "--passes", "2", "--interval", "4s", *approved)
        left = self._servers.objects.left()
        if left:
            raise RuntimeError(f"{left} syncers are left")
        yield row

    def ours(self, scenario: str, *options: str, exits: Sequence[int] = (0,)) -> Row:
        """One run of the program, then time for Eureka's lists to show it."""
        self._metrics.unlink(missing_ok=True)
        loads = self._loads(self._servers.eureka, counted=True)
        cost = run([*self.command(), *options], exits=exits)
        row = row_of(scenario, PROGRAM, cost, loads())
        if scenario in (FIRST, EMPTIED):
            row = replace(row, there=self._servers.to_eureka.last - cost.begun)
        self._settle()
        return row

    def command(self, *, metrics: bool = True) -> list[str]:
        """As a user calls it."""
        servers = self._servers
        # fmt: off
        return [
            *servers.pod, sys.executable, "-m", "eurekube_sync", "run", "--owner", "bench",
            "--eureka-url", servers.eureka_url, *servers.kubernetes_options, "--lock", "off",
            "--registry-cache", f"{CACHE_SECONDS:g}s", "--pass-timeout", "900s", "--call-timeout", "60s",
            "--eureka-batch", "on", *(["--metrics-to", str(self._metrics)] if metrics else []), *self._extra,
        ]
        # fmt: on

    def _daemon(self) -> Iterator[Row]:
        """What a pass costs of one that goes on: the processor time of whole intervals, renewals
        between included."""
        interval = max(_FASTEST, self._servers.objects.instances / _INSTANCES_A_SECOND)
        passes = max(3, round(_PERIOD / interval))
        self._metrics.unlink(missing_ok=True)
        with Child([*self.command(), "--daemon", "--interval", f"{interval:g}s"]) as child:
            for _ in range(2):  # the first one of a process renews all, and decodes everything
                self._next_pass()
            loads, cpu, seconds = (
                self._loads(self._servers.eureka, counted=True),
                child.cpu(),
                self._pass_seconds(),
            )

            def measured() -> Row:
                for _ in range(passes):
                    self._next_pass()
                wall = (self._pass_seconds() - seconds) / passes
                cost = Cost(wall=wall, cpu=(child.cpu() - cpu) / passes, memory=child.peak())
                eureka, kubernetes = (_each(load, passes) for load in loads())
                return row_of(PASS, PROGRAM, cost, (eureka, kubernetes))

            yield self._watched(self._servers.eureka, measured)
            child.stop()
            child.wait()

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

    def _loads(self, eureka: Emptied, *, counted: bool = False) -> Loads:
        """What the servers do from here on; `counted`: with requests and bytes of the program, by
        its own metrics."""
        servers = self._servers

        def now() -> list[tuple[float, int, int]]:
            calls = self._calls() if counted and self._metrics.exists() else (0, 0)
            used = processor_seconds(eureka.pid) if eureka.pid else 0.0
            return [
                (used, calls[0], servers.to_eureka.bytes),
                (servers.kubernetes_seconds(), calls[1], servers.to_kubernetes.bytes),
            ]

        before = now()

        def since() -> tuple[Load, Load]:
            found = []
            for (cpu, calls, sent), (cpu_before, calls_before, sent_before) in zip(
                now(), before, strict=True
            ):
                requests, megabytes = (
                    (calls - calls_before, (sent - sent_before) / 1e6) if counted else (None, None)
                )
                found.append(Load(cpu=cpu - cpu_before, requests=requests, megabytes=megabytes))
            return found[0], found[1]

        return since

    def _calls(self) -> tuple[int, int]:
        found = {"eureka": 0, "kubernetes": 0}
        for server, number in _CALLS.findall(self._metrics.read_text()):
            found[server.lower()] += int(float(number))
        return found["eureka"], found["kubernetes"]

    def _floor(self, scenario: str, *, register: bool) -> Row:
        return self._other(scenario, FLOOR, "bench.floor", register=register)

    def _plain(self, scenario: str) -> Iterator[Row]:
        if self._loop:
            yield self._other(scenario, LOOP, "bench.plain_loop", register=False)
            self._settle()

    def _other(self, scenario: str, program: str, module: str, *, register: bool) -> Row:
        self._say(f"{scenario}: {program}")
        where = self._where(register=register)
        loads = self._loads(self._servers.others)
        cost = run([sys.executable, "-m", module, where])
        return row_of(scenario, program, cost, loads())

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


def _each(load: Load, passes: int) -> Load:
    requests = None if load.requests is None else round(load.requests / passes)
    megabytes = None if load.megabytes is None else load.megabytes / passes
    return Load(cpu=load.cpu / passes, requests=requests, megabytes=megabytes)
