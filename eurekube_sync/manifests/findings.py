"""What validation has to say: a finding, where it is, and how its path is written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from eurekube_sync.model.value_faults import Path as Path
from eurekube_sync.model.value_faults import written


class Severity(StrEnum):
    """Whether the API server would refuse the object, or a person should only know."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to mend. `str(finding)` is the line to print."""

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


def json_path(path: Path) -> str:
    """Write a path as `$.spec.matchLabels['app.kubernetes.io/name'][0]`."""
    return f"${written(path)}"
