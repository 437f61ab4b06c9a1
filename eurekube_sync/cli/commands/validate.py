"""`validate`: what the API server would say of these files, without asking it."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict

import click
import yaml

from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.output.streams import discard_output
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.manifests import Finding, Report, validate_paths
from eurekube_sync.model.foreign_text import json_printable, printable
from eurekube_sync.model.wording import counted


@click.command(cls=Command, short_help="Check EurekaSyncers in files offline.")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@option("--output", "-o", type=click.Choice(["table", "json", "yaml"]), default="table", help="Format of the report.")
@option("--allow-empty", variable=False, is_flag=True, help="Pass even if there is no EurekaSyncer.")
def command(files: tuple[str, ...], output: str, allow_empty: bool) -> ExitCode:
    """Check EurekaSyncers in FILES offline, as the API server would.

    FILES are YAML or JSON, streams of documents, folders (searched for *.yaml, *.yml and *.json), or - for standard
    input. Objects of other kinds are skipped. It is an error if there is no EurekaSyncer.
    """
    missing = next((name for name in files if name != "-" and _is_missing(name)), None)
    if missing is not None:
        raise click.BadParameter(f"there is no file or folder {missing}", param_hint="FILES")
    report = validate_paths(files, stdin=sys.stdin.buffer, allow_empty=allow_empty)
    try:
        _write(report, output)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads needs no more of it; the verdict stays
        discard_output()
    return ExitCode.OK if report.ok else ExitCode.INVALID_MANIFEST


def _is_missing(name: str) -> bool:
    """What is there and cannot be read is a finding."""
    try:
        os.stat(name)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _write(report: Report, output: str) -> None:
    data = {**asdict(report), "ok": report.ok}
    match output:
        case "json":
            click.echo(json_printable(json.dumps(data, indent=2, ensure_ascii=False)))
        case "yaml":
            click.echo(yaml.safe_dump(json.loads(json.dumps(data)), sort_keys=False), nl=False)
        case _:
            for finding in report.findings:
                click.echo(printable(_line(finding)))
            click.echo(_summary(report))


def _line(finding: Finding) -> str:
    place = "".join(f"{part}:" for part in (finding.file, finding.line) if part)
    place += " " if place else ""
    document = f"document {finding.document}: " if finding.document else ""
    return f"{place}{finding.severity}: {document}{finding.path}: {finding.reason}"


def _summary(report: Report) -> str:
    verdict = "valid" if report.ok else counted(report.errors, "error")
    warnings = f", {counted(report.warnings, 'warning')}" if report.warnings else ""
    others = f", {counted(report.others, 'other object')} skipped" if report.others else ""
    return f"{verdict}{warnings}: {counted(report.syncers, 'syncer')} in {counted(report.files, 'file')}{others}"
