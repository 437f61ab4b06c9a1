"""Single passes of the program, each in a process of its own that is forked from one which has
imported the program. That saves half of the processor time of a pass: the other half is the pass.

They run this checkout, and those of one pytest worker have one hash seed. `tests/command` and all
daemons start the installed program as a user does."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from eurekube_sync.cli.main import main

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        "eurekube_sync.adapters.eureka.everywhere",  # and requests
        "eurekube_sync.cli.command_line",
        "eurekube_sync.cli.commands.look",
        "eurekube_sync.cli.commands.run",
    ]
)


def environment(**variables: str) -> dict[str, str]:
    """This process's variables without those of the program, and these."""
    plain = {
        name: value for name, value in os.environ.items() if not name.startswith("EUREKUBE_SYNC_")
    }
    return plain | variables


def run(
    arguments: Sequence[str], variables: Mapping[str, str], *, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run `eurekube-sync` with these arguments and environment variables, and no others. Raises
    TimeoutExpired after `timeout` seconds."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        error = Path(folder, "error")
        process = _FORKS.Process(
            target=_command, args=(list(arguments), dict(variables), out, error)
        )
        process.start()
        try:
            process.join(timeout)
            if process.exitcode is None:
                raise subprocess.TimeoutExpired(list(arguments), timeout)
        finally:
            process.kill()
            process.join()
        return subprocess.CompletedProcess(
            list(arguments), process.exitcode, out.read_text(), error.read_text()
        )


def _command(arguments: list[str], variables: dict[str, str], out: Path, error: Path) -> None:
    """Be the command, in the new process."""
    os.environ.clear()
    os.environ.update(variables)
    for number, path in ((1, out), (2, error)):
        stream = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.dup2(stream, number)
        os.close(stream)
    main(arguments)
