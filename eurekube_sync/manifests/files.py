"""Reads manifests from files, folders and standard input. All I/O of `validate` is here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from eurekube_sync.manifests.findings import Finding, Severity
from eurekube_sync.manifests.validation import check_text, no_syncer, only

STDIN = "-"
STDIN_NAME = "<stdin>"
SUFFIXES = (".yaml", ".yml", ".json")
MAX_BYTES = 32 * 1024 * 1024
"""More than any rendered chart; the API server itself takes 3 MiB a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file: its text, or why there is none."""

    file: str
    text: str = ""
    error: str | None = None
    line: int | None = None
    """Where the error is, if it is in the content."""
    named: bool = True
    """Named by the user, not met in a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What `validate` found in all that it was given."""

    findings: tuple[Finding, ...]
    files: int
    documents: int
    """Documents that are not empty."""
    syncers: int
    others: int
    """Objects of other kinds, which were passed over."""

    @property
    def errors(self) -> int:
        """How many findings the API server would refuse."""
        return sum(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def warnings(self) -> int:
        """How many findings are advice."""
        return len(self.findings) - self.errors

    @property
    def ok(self) -> bool:
        """Whether nothing would be refused."""
        return not self.errors


def validate_paths(paths: Sequence[str], *, stdin: IO[bytes], allow_empty: bool = False) -> Report:
    """Check files, folders (recursively) and `-`.

    A named file or folder without any EurekaSyncer is a warning. No EurekaSyncer anywhere is an error, unless
    `allow_empty`.
    """
    findings: list[Finding] = []
    files = documents = syncers = others = 0
    for path in dict.fromkeys(paths):
        before = syncers
        for source in collect((path,), stdin):
            files += 1
            if source.error is not None:
                findings.append(_unreadable(source))
                continue
            checked = check_text(source.text, source.file)
            findings.extend(checked.findings)
            documents += checked.documents
            syncers += checked.syncers
            others += checked.others
            if source.named:
                findings.extend(no_syncer(checked, source.file))
        if os.path.isdir(path) and syncers == before:
            findings.append(
                Finding(
                    file=path,
                    document=None,
                    line=None,
                    path="$",
                    reason=f"no EurekaSyncer in any {', '.join(SUFFIXES)} file of this folder",
                    severity=Severity.WARNING,
                )
            )
    if not (syncers or allow_empty or any(finding.severity is Severity.ERROR for finding in findings)):
        findings = [_nothing(paths, others)]
    return Report(findings=tuple(findings), files=files, documents=documents, syncers=syncers, others=others)


def _nothing(paths: Sequence[str], others: int) -> Finding:
    """Green on nothing would hide that what renders the manifests had failed."""
    file = (STDIN_NAME if paths[0] == STDIN else paths[0]) if len(paths) == 1 else ""
    reason = f"no EurekaSyncer was found, {only(others)}; if that is right, give --allow-empty"
    return Finding(file=file, document=None, line=None, path="$", reason=reason)


def collect(paths: Sequence[str], stdin: IO[bytes]) -> Iterator[Source]:
    """The sources that the paths stand for, in a fixed order. Never raises for a file."""
    for path in paths:
        if path == STDIN:
            yield _decoded(STDIN_NAME, stdin.read(MAX_BYTES + 1), named=True)
        elif os.path.isdir(path):
            for found, error in _walk(path):
                yield _read(found, named=False) if error is None else Source(file=found, error=error, named=False)
        else:
            yield _read(path, named=True)


def _walk(folder: str) -> Iterator[tuple[str, str | None]]:
    """Manifests below a folder, and the folders that cannot be read. Hidden ones are left out: a mounted ConfigMap
    keeps its files a second time in `..data`."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield folder, f"cannot be read: {error.strerror}"
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path)
        elif entry.name.endswith(SUFFIXES):
            yield entry.path, None


def _read(path: str, *, named: bool) -> Source:
    try:
        with Path(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return Source(file=path, error=f"cannot be read: {reason}", named=named)
    return _decoded(path, content, named=named)


def _decoded(file: str, content: bytes, *, named: bool) -> Source:
    if len(content) > MAX_BYTES:
        return Source(file=file, error=f"is larger than {MAX_BYTES // 1024 // 1024} MiB", named=named)
    try:
        return Source(file=file, text=content.decode("utf-8-sig"), named=named)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return Source(file=file, error="is not UTF-8 text", line=line, named=named)


def _unreadable(source: Source) -> Finding:
    return Finding(file=source.file, document=None, line=source.line, path="$", reason=source.error or "")
