"""Owns that no server outlives the process that started it, even when that process is killed.

One small process for each process that starts servers. It reads `+pid` and `-pid` lines on stdin; when stdin ends,
its starter is gone, and it kills the process groups that are left. Linux only; runs by itself, imports nothing of ours.
"""

import contextlib
import os
import signal
import sys
from pathlib import Path


def _started_at(pid: int) -> str:
    # Field 22 of /proc/PID/stat tells a process from a later one that got the same pid.
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def main() -> None:
    """Keep the list of running servers until stdin ends, then kill those that are left."""
    running: dict[int, str] = {}
    for line in sys.stdin:
        pid = int(line[1:])
        if line.startswith("+"):
            running[pid] = _started_at(pid)
        else:
            running.pop(pid, None)
    for pid, started_at in running.items():
        if started_at and _started_at(pid) == started_at:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
