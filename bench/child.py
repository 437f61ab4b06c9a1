"""Runs a program as a process of its own and says what it cost: wall clock, processor time, peak of
memory.

The peak is VmHWM of the program alone: the ru_maxrss of a child can be that of the process that
started it.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_LOOK_SECONDS = 0.01
_LONGEST_SECONDS = 1200.0
"""After which a program is killed, and its scenario has failed."""
_TICKS = os.sysconf("SC_CLK_TCK")
_COMPILED = tempfile.TemporaryDirectory(prefix="eurekube-bench-pyc-")
"""Where Python keeps its bytecode: an installed program has it, and a checkout may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one process, from its start to its exit."""

    wall: float
    """Seconds."""
    cpu: float
    """Seconds, user and system, of all its threads."""
    memory: float
    """The peak, in MB."""
    begun: float = 0.0
    """As `time.perf_counter` has it."""


def processor_seconds(pid: int) -> float:
    """What a process has used so far, user and system, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


class Child:
    """A program that runs; a context manager, after which it has ended."""

    def __init__(self, command: Sequence[str]) -> None:
        self._begun = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=_environment()
        )
        self._peak = 0.0
        self._said = b""
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._watching.start()
        self._reading.start()

    @property
    def said(self) -> str:
        """What it has written so far."""
        return self._said.decode(errors="replace")

    def cpu(self) -> float:
        """Seconds so far."""
        return processor_seconds(self._process.pid)

    def peak(self) -> float:
        """MB so far."""
        return self._peak

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """At once, if it still runs."""
        if self._process.returncode is None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """As by Ctrl-C of a service manager: SIGTERM."""
        self._process.terminate()

    def wait(self, *, exits: Sequence[int] = (0,)) -> Cost:
        """Until it ends; RuntimeError with what it said when its exit code is another one, or it
        takes too long."""
        late = threading.Timer(_LONGEST_SECONDS, self._process.kill)
        late.start()
        try:
            _, status, usage = os.wait4(self._process.pid, 0)
        finally:
            late.cancel()
        wall = time.perf_counter() - self._begun
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self._reading.join()
        self._watching.join()
        if self._process.returncode not in exits:
            raise RuntimeError(f"exit code {self._process.returncode}: {self.said[-3000:]}")
        return Cost(
            wall=wall, cpu=usage.ru_utime + usage.ru_stime, memory=self._peak, begun=self._begun
        )

    def _watch(self) -> None:
        while self._process.returncode is None:
            try:
                status = Path(f"/proc/{self._process.pid}/status").read_text()
            except OSError:
                return
            found = [line for line in status.splitlines() if line.startswith("VmHWM:")]
            if not found:
                return  # it has exited
            self._peak = max(self._peak, int(found[0].split()[1]) / 1024)
            time.sleep(_LOOK_SECONDS)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            while piece := os.read(output.fileno(), 65536):
                self._said += piece


def run(command: Sequence[str], *, exits: Sequence[int] = (0,)) -> Cost:
    """From start to exit."""
    with Child(command) as child:
        return child.wait(exits=exits)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": _COMPILED.name}
