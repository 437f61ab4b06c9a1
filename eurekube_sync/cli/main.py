"""The process `eurekube-sync` in its first moment, when nothing has begun: Ctrl-C ends it with one word.

To import the rest takes a second on a busy machine, and an interrupt there would be a traceback from within a library.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

_INTERRUPTED = 130  # `ExitCode.INTERRUPTED`, which is not imported yet


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and ends the process with its exit code. Commands that work handle signals themselves."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from eurekube_sync.cli.command_line import exit_code

    sys.exit(exit_code(arguments))


def _end(_number: int, _frame: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(_INTERRUPTED)
