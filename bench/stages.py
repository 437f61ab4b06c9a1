"""`python -m bench.stages`: what each stage of a pass costs, in microseconds of processor time an
instance.

A daemon of this very process on the embedded servers, which are processes of their own. The first
pass and the later ones are told apart. A later pass has the renewals in it that come between it and
the next.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.servers import CACHE_SECONDS, embedded, write_kubeconfig
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.apply.eureka import Applier
from eurekube_sync.cli.commands import run
from eurekube_sync.controller import reconcile

_STAGES: tuple[tuple[str, Any, str], ...] = (
    ("read Eureka's list", EurekaClient, "list_instances"),
    ("divide Eureka's list", reconcile, "observe"),
    ("renewals", Applier, "renew_now"),
    ("read the lists of Kubernetes", reconcile, "read_cluster"),
    ("claims", reconcile, "claim_all"),
    ("plan and brake", reconcile, "decide"),
    ("statuses", reconcile, "write_to_kubernetes"),
)
"""Each with the function that it is. What another one calls counts for the other."""
_REST, _ALL = "the rest", "all"


class Stages:
    """Adds up the processor time of this process by stage; each moment counts for the innermost."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self._open = [_REST]
        self._since = time.process_time()

    def turn(self) -> dict[str, float]:
        """What was spent since the last call."""
        self._count()
        spent, self.spent = self.spent, defaultdict(float)
        return spent

    def counted(self, stage: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same call, whose time is the stage's."""

        @wraps(call)
        def counting(*given: Any, **named: Any) -> Any:
            self._count()
            self._open.append(stage)
            try:
                return call(*given, **named)
            finally:
                self._count()
                self._open.pop()

        return counting

    def _count(self) -> None:
        now = time.process_time()
        self.spent[self._open[-1]] += now - self._since
        self._since = now


def main(arguments: list[str]) -> int:
    """Prints a table; with `--profile` writes what cProfile saw of the later passes."""
    parser = argparse.ArgumentParser(prog="python -m bench.stages", description=__doc__)
    parser.add_argument("--size", type=int, default=10_000, help="instances (default: %(default)s)")
    parser.add_argument(
        "--passes", type=int, default=10, help="later passes (default: %(default)s)"
    )
    parser.add_argument(
        "--interval", type=float, default=3.0, help="seconds between them (default: %(default)s)"
    )
    parser.add_argument(
        "--profile", type=Path, metavar="FILE", help="of the later passes, for pstats"
    )
    options = parser.parse_args(arguments)
    with embedded(options.size) as servers, tempfile.TemporaryDirectory() as folder:
        servers.objects.create()
        kubeconfig = Path(folder) / "kubeconfig"
        write_kubeconfig(kubeconfig, servers.kubernetes_url)
        # fmt: off
        command = [
            "--owner", "bench", "--eureka-url", servers.eureka.url, "--kubeconfig", str(kubeconfig),
            "--registry-cache", f"{CACHE_SECONDS:g}s", "--pass-timeout", "900s", "--eureka-batch", "on",
            "--metrics-to", str(Path(folder) / "metrics.prom"),
        ]
        # fmt: on
        run.run_command.main(command, standalone_mode=False)  # registers all
        time.sleep(2 * CACHE_SECONDS)
        passes = _watched([*command, "--daemon", "--interval", f"{options.interval:g}s"], options)
    first, later = passes[0], passes[3:]  # the second and third still fill what is remembered
    _show(first, later, options.size)
    return 0


def _watched(command: list[str], options: argparse.Namespace) -> list[dict[str, float]]:
    """The stages of each pass of a daemon, and of the time until the next one."""
    stages, profile = Stages(), cProfile.Profile()
    for stage, holder, name in _STAGES:
        setattr(holder, name, stages.counted(stage, getattr(holder, name)))
    passes: list[dict[str, float]] = []
    one_pass = reconcile.reconcile

    def counting(*given: Any) -> Any:
        spent = stages.turn()
        if spent[_STAGES[0][0]]:
            passes.append(spent)
        if len(passes) == options.passes + 3:
            os.kill(os.getpid(), signal.SIGTERM)
        if options.profile and len(passes) == 3:
            profile.enable()
        return one_pass(*given)

    setattr(run, "reconcile", counting)  # noqa: B010 - mypy knows it as that module's own alone
    run.run_command.main(command, standalone_mode=False)
    if options.profile:
        profile.disable()
        profile.dump_stats(options.profile)
    return passes


def _show(first: dict[str, float], later: list[dict[str, float]], size: int) -> None:
    table = Table("stage", "first pass", "later pass", "least")
    for stage in (*(name for name, _, _ in _STAGES), _REST, _ALL):
        each = sorted(sum(one.values()) if stage == _ALL else one[stage] for one in later)
        once = sum(first.values()) if stage == _ALL else first[stage]
        shown = (once, sum(each) / len(each), each[0])
        table.add_row(stage, *(f"{seconds / size * 1e6:.1f}" for seconds in shown))
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
