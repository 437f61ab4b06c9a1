"""Owns that no server outlives the process that started it, even when that process is killed.

One small process for each process that starts servers. It reads lines on stdin: `+pid` a server has
started, `-pid` it has ended, `/path` a temporary directory was made. When stdin ends, its starter
is gone; it kills the process groups and removes the directories that are left. Linux only; runs by
itself, imports nothing of ours.
"""

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path

_POLL_SECONDS = 0.05


def _started_at(pid: int) -> str:
    # Field 22 of /proc/PID/stat tells a process from a later one that got the same pid.
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _is_running(pid: int, started_at: str) -> bool:
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return state != "Z" and fields[18] == started_at


def main() -> None:
    """Keep the list of servers and directories until stdin ends, then clean up what is left of
    them."""
    running: dict[int, str] = {}
    directories: list[str] = []
    for line in sys.stdin:
        if line.startswith("/"):
            directories.append(line.rstrip("\n"))
            continue
        pid = int(line[1:])
        if line.startswith("+"):
            running[pid] = _started_at(pid)
        else:
            running.pop(pid, None)
    for pid, started_at in running.items():
        if _is_running(pid, started_at):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
    while any(_is_running(pid, started_at) for pid, started_at in running.items()):
        time.sleep(_POLL_SECONDS)
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
