"""What the commands that make passes share: how many passes, and how each is told."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Sequence

import click
import yaml

from eurekube_sync.cli.streams import discard_output
from eurekube_sync.exit_codes import ExitCode
from eurekube_sync.reconcile import PassReport
from eurekube_sync.report.machine import as_data
from eurekube_sync.report.table import console_for, pass_table

log = logging.getLogger(__name__)


def number_of_passes(*, passes: int, daemon: bool) -> int | None:
    """None: until a signal."""
    if daemon and passes > 1:
        raise click.UsageError("--daemon goes on until SIGTERM and --passes ends: give one of them")
    return None if daemon else passes


def teller(output: str, notices: Sequence[str] = ()) -> Callable[[PassReport, ExitCode], None]:
    """Reports a pass. A report that cannot be written ends neither the passes nor changes their exit code."""
    console = console_for(sys.stdout)

    def write(report: PassReport, code: ExitCode) -> None:
        match output:
            case "json":
                click.echo(json.dumps(as_data(report, code, notices), indent=2, ensure_ascii=False))
            case "yaml":
                click.echo(
                    yaml.safe_dump(as_data(report, code, notices), sort_keys=False, explicit_start=True), nl=False
                )
            case _:
                console.print(pass_table(report, notices))
        sys.stdout.flush()

    def tell(report: PassReport, code: ExitCode) -> None:
        try:
            write(report, code)
        except (BrokenPipeError, SystemExit):  # rich raises the latter for a closed pipe
            discard_output()
        except OSError as error:
            discard_output()
            log.warning("the report cannot be written: %s", error.strerror)

    return tell
