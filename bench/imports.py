"""`python -m bench.imports`: what imports cost a steady pass, and what one instance less writes.

The program makes each pass as a process of its own, in turns with imports and without them, on the
same servers. Only the difference of the two says something about the code.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import requests
from rich.console import Console
from rich.table import Table

from bench.measure import Measuring
from bench.report import machine
from bench.row import FIRST, STEADY, Row
from bench.servers import Servers, embedded, real

_NETWORK = "172.16.0.0/12"
_INSTANCES = 10
"""Of one app of the data centre."""
_MOST_SECONDS = 0.5
"""The goal: processor time that imports may add to a steady pass."""
_YOUNG_SECONDS = 310.0
"""So long an endpoint stays whose instance is missing in a registry that has just started."""
_LEASE_SECONDS = 86_400
_WRITERS = 12

Written = Mapping[str, int]
"""How many objects of imports a pass changed, by kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One of the data centre."""

    app: str
    id: str
    address: str


def instances_of(apps: Sequence[str]) -> list[Instance]:
    """Ten instances of each app, each at an address of its own."""
    found = []
    for number, app in enumerate(apps):
        for place in range(_INSTANCES):
            address = f"172.16.{number}.{place + 1}"
            found.append(Instance(app=app, id=f"{app}-{place}", address=address))
    return found


class DataCentre:
    """The instances that nobody renews: their leases are long."""

    def __init__(self, eureka_url: str) -> None:
        self._url = eureka_url
        self._session = requests.Session()
        self._session.trust_env = False

    def register(self, instances: Sequence[Instance]) -> None:
        """All of them, by a call each."""
        with ThreadPoolExecutor(_WRITERS) as pool:
            list(pool.map(self._register, instances))

    def cancel(self, instance: Instance) -> None:
        """As an instance that ends by itself."""
        url = f"{self._url}/apps/{instance.app.upper()}/{instance.id}"
        self._session.delete(url, timeout=60).raise_for_status()

    def _register(self, instance: Instance) -> None:
        body = {
            "instanceId": instance.id,
            "hostName": instance.address,
            "app": instance.app.upper(),
            "ipAddr": instance.address,
            "vipAddress": instance.app,
            "status": "UP",
            "port": {"$": 8080, "@enabled": "true"},
            "securePort": {"$": 443, "@enabled": "false"},
            "dataCenterInfo": {
                "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
                "name": "MyOwn",
            },
            "leaseInfo": {"renewalIntervalInSecs": 30, "durationInSecs": _LEASE_SECONDS},
        }
        url = f"{self._url}/apps/{instance.app.upper()}"
        self._session.post(url, json={"instance": body}, timeout=60).raise_for_status()


def main(arguments: list[str]) -> int:
    """Prints a table and the difference."""
    parser = argparse.ArgumentParser(prog="python -m bench.imports", description=__doc__)
    parser.add_argument(
        "--size", type=int, default=60_000, help="instances of syncers (default: %(default)s)"
    )
    parser.add_argument("--imports", type=int, default=200, help="imports (default: %(default)s)")
    parser.add_argument(
        "--rounds", type=int, default=3, help="of each steady pass (default: %(default)s)"
    )
    parser.add_argument(
        "--embedded", action="store_true", help="against the embedded servers, for development"
    )
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all servers are ended
    with (embedded if options.embedded else real)(options.size) as servers:
        _measure(servers, options)
    return 0


def _measure(servers: Servers, options: argparse.Namespace) -> None:
    measuring = Measuring(servers, rounds=1, loop=False, extra=(), say=_say)
    centre = DataCentre(servers.eureka.url)
    apps = [f"dc-{number}" for number in range(options.imports)]
    instances = instances_of(apps)
    imports = f"--import-networks={_NETWORK}"
    _say("writing the objects")
    measuring.warm_up()
    servers.objects.create()
    servers.objects.create_imports(apps)
    begun = time.monotonic()
    centre.register(instances)
    _say("the first pass, and a second one that has nothing to write")
    first = measuring.ours(FIRST, imports)
    measuring.ours(STEADY, imports)

    without: list[Row] = []
    rows: list[Row] = []
    before = servers.objects.import_versions()
    for number in range(options.rounds):
        _say(f"steady passes, round {number + 1}")
        without.append(measuring.ours(STEADY))
        rows.append(measuring.ours(STEADY, imports))
    steady = _written(before, servers.objects.import_versions())

    time.sleep(max(0.0, begun + _YOUNG_SECONDS - time.monotonic()))
    _say("one instance is gone")
    measuring.ours(STEADY, imports)  # its renewals show how old the registry is
    centre.cancel(instances[0])
    time.sleep(5)
    before = servers.objects.import_versions()
    one = measuring.ours(STEADY, imports)
    gone = _written(before, servers.objects.import_versions())

    table = Table("pass", "wall s", "cpu s", "requests to Kubernetes", "written", title=machine())
    table.add_row(f"first, {options.imports} imports", *_cells([first]), "")
    table.add_row("steady, imports off", *_cells(without), "")
    table.add_row(f"steady, {options.imports} imports", *_cells(rows), _words(steady))
    table.add_row("one instance gone", *_cells([one]), _words(gone))
    Console(width=120).print(table)
    more = _cpu(rows) - _cpu(without)
    met = "met" if more <= _MOST_SECONDS else f"{more / _MOST_SECONDS:.1f} times"
    print(f"{options.size:,} instances of syncers, {len(instances):,} of imports")
    print(f"imports add {more:.2f} s of processor time to {_cpu(without):.2f} s", end="")
    print(f" (goal {_MOST_SECONDS:g} s: {met})")
    print(f"load average: {os.getloadavg()[0]:.1f}")


def _written(
    before: Mapping[tuple[str, str], str], after: Mapping[tuple[str, str], str]
) -> Written:
    written: Counter[str] = Counter()
    for kind, _ in dict(set(before.items()) ^ set(after.items())):
        written[kind] += 1
    return written


def _words(written: Written) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in sorted(written.items())) or "nothing"


def _cpu(rows: Sequence[Row]) -> float:
    return statistics.median(row.cpu for row in rows)


def _cells(rows: Sequence[Row]) -> tuple[str, str, str]:
    wall = statistics.median(row.wall for row in rows)
    load = rows[-1].kubernetes
    requests_ = "" if load is None or load.requests is None else f"{load.requests:,}"
    return f"{wall:.2f}", f"{_cpu(rows):.2f}", requests_


def _say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
