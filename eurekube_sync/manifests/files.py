"""Reads manifests from files, folders and standard input. All I/O of `validate` is here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from eurekube_sync.manifests.findings import Finding, Report, Severity
from eurekube_sync.manifests.validation import validate_text

STDIN = "-"
STDIN_NAME = "<stdin>"
SUFFIXES = (".yaml", ".yml", ".json")
MAX_BYTES = 32 * 1024 * 1024
"""More than any rendered chart; the API server itself takes 3 MiB a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file that could be read."""

    file: str
    text: str
    named: bool
    """By the user, not met in a folder."""


def validate_paths(paths: Sequence[str], *, stdin: IO[bytes], allow_empty: bool = False) -> Report:
    """Check files, folders (recursively) and `-`.

    A named file or folder without any EurekaSyncer is a warning. No EurekaSyncer anywhere is an error, unless
    `allow_empty`.
    """
    report = Report()
    for path in dict.fromkeys(paths):
        found = sum((_judged(source) for source in collect((path,), stdin)), Report())
        if os.path.isdir(path) and not found.syncers:
            reason = f"no EurekaSyncer in any {', '.join(SUFFIXES)} file of this folder"
            found += Report(findings=(_finding(path, reason, severity=Severity.WARNING),))
        report += found
    if not (report.syncers or allow_empty or report.errors):
        report = replace(report, findings=(_nothing(paths, report),))
    return report


def _judged(source: Source | Finding) -> Report:
    if isinstance(source, Finding):
        return Report(findings=(source,), files=1)
    return validate_text(source.text, source.file, expected=source.named)


def _nothing(paths: Sequence[str], report: Report) -> Finding:
    """Green on nothing would hide that what renders the manifests had failed."""
    file = (STDIN_NAME if paths[0] == STDIN else paths[0]) if len(paths) == 1 else ""
    return _finding(file, f"no EurekaSyncer was found, {report.only}; if that is right, give --allow-empty")


def collect(paths: Sequence[str], stdin: IO[bytes]) -> Iterator[Source | Finding]:
    """What the paths stand for, in a fixed order; a finding for what cannot be read."""
    for path in paths:
        if path == STDIN:
            yield _decoded(STDIN_NAME, stdin.read(MAX_BYTES + 1), named=True)
        elif os.path.isdir(path):
            for found in _walk(path):
                yield _read(found, named=False) if isinstance(found, str) else found
        else:
            yield _read(path, named=True)


def _walk(folder: str) -> Iterator[str | Finding]:
    """Manifests below a folder, and the folders that cannot be read. Hidden ones are left out: a mounted ConfigMap
    keeps its files a second time in `..data`."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield _finding(folder, f"cannot be read: {error.strerror}")
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path)
        elif entry.name.endswith(SUFFIXES):
            yield entry.path


def _read(path: str, *, named: bool) -> Source | Finding:
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return _finding(path, f"cannot be read: {reason}")
    return _decoded(path, content, named=named)


def _decoded(file: str, content: bytes, *, named: bool) -> Source | Finding:
    if len(content) > MAX_BYTES:
        return _finding(file, f"is larger than {MAX_BYTES // 1024 // 1024} MiB")
    try:
        return Source(file=file, text=content.decode("utf-8-sig"), named=named)
    except UnicodeDecodeError as error:
        return _finding(file, "is not UTF-8 text", line=content.count(b"\n", 0, error.start) + 1)


def _finding(file: str, reason: str, *, line: int | None = None, severity: Severity = Severity.ERROR) -> Finding:
    return Finding(file=file, document=None, line=line, path="$", reason=reason, severity=severity)
