"""The command at a terminal of a given width."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import termios

from tests import planted
from tests.command.program import BINARY, LONG_SECONDS, Program

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def at_terminal(
    program: Program, *arguments: str, columns: int, progress: bool = True, **variables: str
) -> tuple[int, str]:
    """Run the command at a terminal with this many columns; returns its exit code and output.
    Without `progress`, stderr is dropped, to which a slow machine adds lines."""
    controller, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        [BINARY, *arguments],
        cwd=program.folder,
        env=program.environment(**{"TERM": "xterm-256color", "NO_COLOR": None, **variables}),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal if progress else subprocess.DEVNULL,
        close_fds=True,
    )
    os.close(terminal)
    shown = b"".join(iter(lambda: _read(controller), b""))
    os.close(controller)
    planted.search(shown, f"a terminal with {' '.join(arguments)}")
    return process.wait(timeout=LONG_SECONDS), shown.decode().replace("\r\n", "\n")


def _read(controller: int) -> bytes:
    try:
        return os.read(controller, 65536)
    except OSError:  # Linux reports that no process has the other end open
        return b""
