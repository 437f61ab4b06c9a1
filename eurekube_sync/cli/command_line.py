"""The table of all commands, and the one place that turns an error into a sentence and an exit
code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

import click

from eurekube_sync import __version__
from eurekube_sync.cli.options.command import CONTEXT, Group
from eurekube_sync.cli.options.declare import ENVIRONMENT_PREFIX
from eurekube_sync.cli.output.streams import (
    discard_output,
    is_of_output,
    output_lost,
    prepare_streams,
)
from eurekube_sync.controller.exit_codes import ExitCode, of_error
from eurekube_sync.model.errors import EurekubeError
from eurekube_sync.model.sanitize import printable

_FILES = (
    ("run", ("run", "keepalive")),
    ("look", ("status", "explain", "check", "orphans")),
    ("purge", ("purge",)),
    ("offline", ("validate", "crd")),
    ("demo", ("demo",)),
    ("look", ("version",)),
    ("offline", ("completion", "help")),
)
"""Each file of `cli/commands` with its commands, in the order of `--help`."""
_FILE_OF = {command: file for file, commands in _FILES for command in commands}


class _LazyCommands(Group):
    """Imports a command only when it is called. So `validate` does not wait for the import of the
    Kubernetes client."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_FILE_OF)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _FILE_OF:
            return None
        module = import_module(f"eurekube_sync.cli.commands.{_FILE_OF[cmd_name]}")
        command = getattr(module, f"{cmd_name}_command")
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_LazyCommands, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="eurekube-sync")
def cli() -> None:
    """Register services of a Kubernetes cluster in Netflix Eureka.

    Most options can be set by environment variables: see eurekube-sync help environment.
    """


def exit_code(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Each error is one sentence on stderr; only EUREKUBE_SYNC_DEBUG adds a
    traceback."""
    prepare_streams()
    try:
        code = cli.main(arguments, prog_name="eurekube-sync", standalone_mode=False)
        sys.stdout.flush()
        done = code in (None, ExitCode.OK, ExitCode.CHANGES_PENDING)
        if done and output_lost():
            return ExitCode.NOT_WRITTEN
        return int(code or ExitCode.OK)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return ExitCode.INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The reader of our output closed the pipe. click and rich raise SystemExit then.
        discard_output()
        return ExitCode.OK
    except EurekubeError as error:
        click.echo(f"Error: {printable(str(error))}", err=True)
        return of_error(error)
    except Exception as error:  # noqa: BLE001 - a bug becomes a sentence, too
        if is_of_output(error):
            discard_output(lost=True)
            why = getattr(error, "strerror", "")
            click.echo(f"Error: the output cannot be written: {why}", err=True)
            return ExitCode.NOT_WRITTEN
        if os.environ.get(f"{ENVIRONMENT_PREFIX}DEBUG"):
            traceback.print_exc()
        what = f"{type(error).__name__}: {printable(str(error))}"
        click.echo(
            f"Internal error: {what} (a bug; {ENVIRONMENT_PREFIX}DEBUG=1 shows where)", err=True
        )
        return ExitCode.INTERNAL_ERROR
