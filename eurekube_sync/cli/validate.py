"""`validate`: what the API server would say of these files, without asking it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import click

from eurekube_sync.cli.options import option
from eurekube_sync.exit_codes import ExitCode
from eurekube_sync.manifests import Finding, Report, validate_paths


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path())
@option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Form of the report.")
def command(files: tuple[str, ...], output: str) -> ExitCode:
    """Check EurekaSyncers in FILES offline, as the API server would.

    FILES are YAML or JSON, streams of documents, folders (searched for *.yaml, *.yml and *.json), or - for standard
    input. Objects of other kinds are passed over.
    """
    report = validate_paths(files, stdin=sys.stdin.buffer)
    if output == "json":
        click.echo(json.dumps({**asdict(report), "ok": report.ok}, indent=2, ensure_ascii=False))
    else:
        for finding in report.findings:
            click.echo(_line(finding))
        click.echo(_summary(report))
    return ExitCode.OK if report.ok else ExitCode.INVALID_MANIFEST


def _line(finding: Finding) -> str:
    place = ":".join(str(part) for part in (finding.file, finding.line) if part)
    document = f"document {finding.document}: " if finding.document else ""
    return f"{place}: {finding.severity}: {document}{finding.path}: {finding.reason}"


def _summary(report: Report) -> str:
    def count(number: int, what: str) -> str:
        return f"{number} {what}" if number == 1 else f"{number} {what}s"

    verdict = "valid" if report.ok else count(report.errors, "error")
    warnings = f", {count(report.warnings, 'warning')}" if report.warnings else ""
    others = f", {count(report.others, 'other object')} passed over" if report.others else ""
    return f"{verdict}{warnings}: {count(report.syncers, 'syncer')} in {count(report.files, 'file')}{others}"
