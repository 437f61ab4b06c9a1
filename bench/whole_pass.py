"""A whole pass of `run` over HTTP against the embedded servers, 10 instances a syncer: where time goes, and memory.

Run `python -m bench.whole_pass [INSTANCES ...]`; by default 15000, 30000 and 60000. The servers are a process of their
own, and so is the program of each size, so that its peak of memory is its own. It makes three passes: one that
registers all, and two in sync, of which the second renews what is due and else finds nothing to do; the last is told
stage by stage, in seconds of the program's own processor time: that of the servers, which are in Python, is only in the
seconds of the wall clock beside it. Prints the machine; only ratios say something about the code.
"""

from __future__ import annotations

import argparse
import gc
import io
import multiprocessing
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

import yaml

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.apply.eureka import Applier
from eurekube_sync.cli.connect import Connection, connect
from eurekube_sync.cli.garbage import look_rarely_for_cycles
from eurekube_sync.cli.options.eureka import EurekaAccess
from eurekube_sync.cli.options.kubernetes import KubernetesAccess
from eurekube_sync.cli.output.table import console_for, pass_table
from eurekube_sync.controller import decide, reconcile
from eurekube_sync.controller.one_pass import PassSettings, World
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.embedded.eureka import EmbeddedEureka
from eurekube_sync.embedded.http import LoopbackServer
from eurekube_sync.embedded.kubernetes import EmbeddedKubernetes
from eurekube_sync.manifests.crd import load_crd

PODS = 10
_CACHE_SECONDS = 1.0


def serve(instances: int, pipe: Pipe) -> None:
    """Both servers, until they are told to end; sends their addresses when all objects are there."""
    kubernetes = EmbeddedKubernetes(time.time, definitions=[load_crd()])
    for number in range(instances // PODS):
        namespace, name = f"team-{number // 10}", f"app-{number}"
        if number % 10 == 0:
            _create(kubernetes, "/api/v1/namespaces", {"metadata": {"name": namespace}})
        labels = {"app": name}
        syncer = {
            "apiVersion": "eurekube.io/v1",
            "kind": "EurekaSyncer",
            "metadata": {"name": name, "finalizers": [CLEANUP_FINALIZER]},
            "spec": {"mode": "pod", "selector": labels},
        }
        _create(kubernetes, f"/apis/eurekube.io/v1/namespaces/{namespace}/eurekasyncers", syncer)
        ports = [{"name": "http", "port": 80, "targetPort": 8080}]
        service = {"metadata": {"name": name, "labels": labels}, "spec": {"ports": ports}}
        _create(kubernetes, f"/api/v1/namespaces/{namespace}/services", service)
        addresses = [f"10.{number // 250}.{number % 250}.{pod + 1}" for pod in range(PODS)]
        piece = {
            "metadata": {"name": f"{name}-x", "labels": {**labels, "kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080}],
            "endpoints": [
                {
                    "addresses": [address],
                    "conditions": {"ready": True, "serving": True, "terminating": False},
                    "nodeName": f"node-{pod}",
                    "zone": "zone-a",
                    "targetRef": {"kind": "Pod", "name": f"{name}-{pod}", "uid": f"{number:018}{pod:018}"},
                }
                for pod, address in enumerate(addresses)
            ],
        }
        _create(kubernetes, f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices", piece)
    eureka = EmbeddedEureka(time.time, response_cache_seconds=_CACHE_SECONDS)
    gc.freeze()
    with LoopbackServer(kubernetes.handle) as api, LoopbackServer(eureka.handle) as registry:
        pipe.send((api.url, f"{registry.url}/eureka"))
        pipe.recv()


def _create(kubernetes: EmbeddedKubernetes, path: str, body: dict[str, Any]) -> None:
    status, answer = kubernetes.call("POST", path, body)
    assert status == 201, answer


@dataclass
class Stopwatch:
    """Processor seconds of each stage, in all threads, those of the stages within it not counted."""

    spent: dict[str, float] = field(default_factory=dict)
    _within: list[float] = field(default_factory=list)

    def times(self, stage: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same, timed."""

        @wraps(call)
        def timed(*arguments: Any, **named: Any) -> Any:
            self._within.append(0.0)
            begun = time.process_time()
            try:
                return call(*arguments, **named)
            finally:
                took = time.process_time() - begun
                self.spent[stage] = self.spent.get(stage, 0.0) + took - self._within.pop()
                if self._within:
                    self._within[-1] += took

        return timed


STAGES: tuple[tuple[str, Any, str], ...] = (
    ("observe", reconcile, "observe"),
    ("renew", Applier, "renew"),
    ("list Kubernetes", reconcile, "read_cluster"),
    ("claims", reconcile, "claim_all"),
    ("plan", reconcile, "decide"),
    ("brake", decide, "apply_brake"),
    ("apply", reconcile, "carry_out"),
    ("settle", reconcile, "settle"),
)


@contextmanager
def watched(world: World) -> Iterator[Stopwatch]:
    """Times the stages of passes, at run time; what is in none of them is `the rest`."""
    watch = Stopwatch()
    places = [*STAGES, ("list Eureka", type(world.registry), "list_instances")]
    before = [(where, name, getattr(where, name)) for _, where, name in places]
    for stage, where, name in places:
        setattr(where, name, watch.times(stage, getattr(where, name)))
    try:
        yield watch
    finally:
        for where, name, right in before:
            setattr(where, name, right)


def program(kubernetes_url: str, eureka_url: str, pipe: Pipe) -> None:
    """Three passes; sends the seconds of each, the stages of the last, and the peak of memory in MB."""
    clock = SystemClock()
    look_rarely_for_cycles()
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(_kubeconfig(kubernetes_url)))
        connection = Connection(
            eureka=EurekaAccess(eureka_url=eureka_url),
            kubernetes=KubernetesAccess(kubeconfig=str(kubeconfig)),
            eureka_batch="on",
            renewal_slack=5.0,
        )
        settings = PassSettings(owner="bench", deadline=900)
        with connect(connection, clock) as world, watched(world) as watch:
            told = []
            for _ in range(3):
                watch.spent.clear()
                wall, cpu = time.perf_counter(), time.process_time()
                report = watch.times("the rest", reconcile.reconcile)(world, settings)
                watch.times("report", console_for(io.StringIO()).print)(pass_table(report, ()))
                told.append((time.perf_counter() - wall, time.process_time() - cpu, dict(watch.spent)))
                changes, plan = len(report.plan.changes), len(report.plan.actions)
                del report
                gc.collect()
                time.sleep(2 * _CACHE_SECONDS)
    assert not changes, "the last pass is not in sync"
    pipe.send((told, plan, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "embedded", "cluster": {"server": url}}],
        "users": [{"name": "embedded", "user": {}}],
        "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": "embedded"}}],
        "current-context": "embedded",
    }


def measured(instances: int) -> tuple[list[tuple[float, float, dict[str, float]]], float]:
    """What the program tells, with servers of its own."""
    processes = multiprocessing.get_context("spawn")
    served, serving = processes.Pipe()
    server = processes.Process(target=serve, args=(instances, serving))
    server.start()
    urls = served.recv()
    tells, telling = processes.Pipe()
    client = processes.Process(target=program, args=(*urls, telling))
    client.start()
    telling.close()
    told, count, peak = tells.recv()
    assert count == instances, "not all instances were planned"
    client.join()
    served.send(None)
    server.join()
    return told, peak


def main() -> None:
    """Prints a column for each size."""
    options = argparse.ArgumentParser()
    options.add_argument("instances", nargs="*", type=int, default=[15_000, 30_000, 60_000])
    sizes: list[int] = options.parse_args().instances
    found = [measured(size) for size in sizes]
    machine = f"{platform.platform()}, {multiprocessing.cpu_count()} cores, Python {platform.python_version()}"
    lines = [machine, f"{'instances':24}" + "".join(f"{size:>10}" for size in sizes)]

    def row(name: str, values: list[float], form: str = ".2f") -> None:
        ratio = "" if len(values) < 2 or not values[0] else f"   x {values[-1] / values[0]:.1f}"
        lines.append(f"{name:24}" + "".join(f"{value:>10{form}}" for value in values) + ratio)

    for number, name in enumerate(("registering all, s", "in sync, s", "in sync again, s")):
        row(name, [told[number][0] for told, _ in found])
    row("  of the processor", [told[-1][1] for told, _ in found])
    for stage in found[-1][0][-1][2]:
        row(f"  {stage}", [told[-1][2].get(stage, 0.0) for told, _ in found])
    row("peak memory, MB", [peak for _, peak in found], ".0f")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
