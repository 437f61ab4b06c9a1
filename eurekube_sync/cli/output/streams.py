"""Standard output and error as the process got them: closed, of a narrow character set, or with nobody at the end."""

from __future__ import annotations

import io
import os
import sys


def prepare_streams() -> None:
    """A stream that is closed is as good as /dev/null, and what its character set lacks is escaped."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for the rest of the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def discard_output() -> None:
    """Nobody reads our report any more: drop what is in the buffer, and what is still to come."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
