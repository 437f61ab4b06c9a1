"""Options for the format of the report and the logs, and the writing of a report."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import click
import yaml
from msgspec import Struct
from rich.console import RenderableType

from eurekube_sync.cli.options.declare import Section, group, option, warn_of_unknown
from eurekube_sync.cli.output.streams import discard_output, set_up_logs
from eurekube_sync.cli.output.table import console_for
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.model.sanitize import json_printable

log = logging.getLogger(__name__)


class ReportForm(Struct, frozen=True, kw_only=True):
    """The format of the report, which goes to stdout."""

    output: str  # `table`, `json` or `yaml`; of a dry run also `markdown`
    verbose: bool = False  # JSON and YAML of a pass list each renewal
    installation: Mapping[str, Any] | None = None
    """The installation whose settings the command uses, in JSON and YAML; None for none."""

    @property
    def at_terminal(self) -> bool:
        return self.output == "table" and sys.stdout.isatty()

    def write(
        self,
        table: Callable[[], object],
        data: Callable[[], dict[str, Any]],
        markdown: Callable[[], str] | None = None,
        *,
        one_of_many: bool = False,
    ) -> None:
        """Write a report. An error in writing is logged, and ends no pass; it has an exit code.
        `one_of_many` puts JSON on one line."""
        try:
            match self.output:
                case "json":
                    space: dict[str, Any] = (
                        {"separators": (",", ":")} if one_of_many else {"indent": 2}
                    )
                    text = json.dumps(self._with_installation(data()), ensure_ascii=False, **space)
                    click.echo(json_printable(text))
                case "yaml":
                    document = self._with_installation(data())
                    click.echo(
                        yaml.safe_dump(document, sort_keys=False, explicit_start=True), nl=False
                    )
                case "markdown" if markdown is not None:
                    click.echo(markdown(), nl=False)
                case _:
                    console_for(sys.stdout).print(table(), crop=False)  # do not cut a command
            sys.stdout.flush()
        except (BrokenPipeError, SystemExit):  # rich raises SystemExit for a closed pipe
            discard_output()
        except OSError as error:
            discard_output(lost=True)
            log.warning("cannot write the report: %s", error.strerror)

    def _with_installation(self, data: dict[str, Any]) -> dict[str, Any]:
        if self.installation is None:
            return data
        return {**data, "installation": dict(self.installation)}

    def answer(
        self,
        code: ExitCode,
        table: Callable[[], RenderableType],
        data: Callable[[], dict[str, Any]],
        *,
        one_of_many: bool = False,
    ) -> ExitCode:
        """Write the report of a command with its exit code, and return the code."""
        self.write(
            table,
            lambda: {"exitCode": int(code), "messages": [], **data()},
            one_of_many=one_of_many,
        )
        return code


def _form(output: str, log_format: str, verbose: bool) -> ReportForm:
    set_up_logs(as_json=log_format == "json", verbose=verbose)
    warn_of_unknown(os.environ)
    return ReportForm(output=output, verbose=verbose)


def _logs(verbose_help: str) -> tuple[Callable[[Any], Any], ...]:
    form = click.Choice(["text", "json"])
    return (
        option("--log-format", type=form, default="text", help="Format of the logs on stderr."),
        option("--verbose", "-v", is_flag=True, help=verbose_help),
    )


def _output(help_: str, *more: str) -> Callable[[Any], Any]:
    choice = click.Choice(["table", "json", "yaml", *more])
    return option("--output", "-o", type=choice, default="table", help=help_)


report_options = group(
    "form", _form, _output("Output format."), *_logs("Log each call."), section=Section.REPORT
)

pass_report_options = group(
    "form",
    _form,
    _output(
        "Output format. markdown is for comments on pull requests, with --dry-run.",
        "markdown",
    ),
    *_logs("Log each call. With -o json or yaml, list each renewal."),
    section=Section.REPORT,
)
"""Like `report_options`, for passes. Both set up the logs before the command begins."""
