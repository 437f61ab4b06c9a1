"""Entry point of `eurekube-sync`. Handles Ctrl-C before anything else is imported.

The other imports can take a second. Without this, Ctrl-C in that time would print a traceback from
inside a library.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

_INTERRUPTED = 130  # `ExitCode.INTERRUPTED`, which is not imported yet


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, and end the process with its exit code. Most commands then install
    their own handlers."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from eurekube_sync.cli.command_line import exit_code

    sys.exit(exit_code(arguments))


def _end(_number: int, _frame: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(_INTERRUPTED)
