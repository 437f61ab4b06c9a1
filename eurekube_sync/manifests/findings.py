"""What validation has to say: findings, where they are, and of how much."""

from __future__ import annotations

from dataclasses import fields
from enum import StrEnum

from eurekube_sync.model.values import dataclass


class Severity(StrEnum):
    """Whether the API server would refuse the object, or a person should only know."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to fix. `str(finding)` is the line to print."""

    file: str
    """As it was named; empty for an object that came from no file."""
    document: int | None
    """1-based, within the stream; None when the file could not be read at all."""
    line: int | None
    """1-based, within the file; None when there is no text."""
    path: str
    """JSON path within the document, such as `$.spec.selector.app`."""
    reason: str
    """One clause for a person, without a full stop."""
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part)
        return f"{place + ': ' if place else ''}{self.severity}: {self.path}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was found, and in how much."""

    findings: tuple[Finding, ...] = ()
    files: int = 0
    documents: int = 0
    """Documents that are not empty."""
    syncers: int = 0
    others: int = 0
    """Objects of other kinds, which were passed over."""

    def __add__(self, other: Report) -> Report:
        return Report(**{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(Report)})

    @property
    def errors(self) -> int:
        return sum(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def warnings(self) -> int:
        return len(self.findings) - self.errors

    @property
    def ok(self) -> bool:
        return not self.errors
