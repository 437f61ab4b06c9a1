"""What the commands that make passes share: how many passes, and how each is told."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click
import yaml

from eurekube_sync.cli.streams import discard_output
from eurekube_sync.exit_codes import ExitCode
from eurekube_sync.model import Complete
from eurekube_sync.reconcile import PassReport
from eurekube_sync.report.machine import as_data
from eurekube_sync.report.table import console_for, pass_table
from eurekube_sync.self_preservation import Headroom, headroom, interval_of, sentences

log = logging.getLogger(__name__)


def number_of_passes(*, passes: int, daemon: bool) -> int | None:
    """None: until a signal."""
    if daemon and passes > 1:
        raise click.UsageError("--daemon goes on until SIGTERM and --passes ends: give one of them")
    return None if daemon else passes


def renewed_every(renewal_interval: float, pass_interval: float, *, many: bool) -> float:
    """Seconds between two renewals of a lease, as far as this process has it in hand."""
    if not many:
        return renewal_interval
    slack = pass_interval / 2
    return interval_of(renewal_interval=renewal_interval, slack=slack, pass_interval=pass_interval)


def teller(
    output: str, renewal_interval: float, notices: Sequence[str] = (), *, many: bool = False
) -> Callable[[PassReport, ExitCode], None]:
    """Reports a pass, and in the first that could read Eureka logs what `renewal_interval` does to its
    self-preservation. A report that cannot be written ends neither the passes nor changes their exit code."""
    said = False

    def room(report: PassReport) -> Headroom | None:
        nonlocal said
        if not isinstance(report.registry, Complete):
            return None
        found = headroom(report.registry.data, renewal_interval)
        if not said and (found.at_risk or many):  # a single pass would say the harmless part again and again
            said = True
            for sentence in sentences(found):
                log.log(logging.WARNING if found.at_risk else logging.INFO, "%s", sentence)
        return found

    def tell(report: PassReport, code: ExitCode) -> None:
        found = room(report)
        write_report(output, lambda: pass_table(report, notices), lambda: as_data(report, code, notices, found))

    return tell


def write_report(output: str, table: Callable[[], object], data: Callable[[], dict[str, Any]]) -> None:
    """Writes a report in the form that was asked for; that it cannot be written changes no exit code."""
    try:
        match output:
            case "json":
                click.echo(json.dumps(data(), indent=2, ensure_ascii=False))
            case "yaml":
                click.echo(yaml.safe_dump(data(), sort_keys=False, explicit_start=True), nl=False)
            case _:
                console_for(sys.stdout).print(table())
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich raises the latter for a closed pipe
        discard_output()
    except OSError as error:
        discard_output()
        log.warning("the report cannot be written: %s", error.strerror)
