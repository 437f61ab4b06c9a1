"""Owns what a run of pytest tells: how many tests of each file passed, and what is wrong with the
others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

_LAST_LINES = 12
"""Of an error: what was compared stands at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What a run of pytest found."""

    numbers: Mapping[str, Counter[str]]
    """How many tests of each file `passed` and `failed`; empty if pytest itself failed."""
    failures: Sequence[str]
    """Each test that failed or was skipped, with the end of its error."""

    def sum(self, files: Sequence[str]) -> dict[str, int]:
        """Return the numbers of some files together. If no test of them passed, they failed."""
        total: Counter[str] = Counter()
        for file in files:
            total += self.numbers.get(file, Counter())
        failed = total["failed"] if total["passed"] else max(total["failed"], 1)
        return {"passed": total["passed"], "failed": failed}


def read_results(report: Path, exit_code: int) -> Results:
    """Return what pytest found, from its report in JUnit's XML and its exit code.

    A skipped test has failed. Where pytest is not content, and no test says why, no number of it
    can be trusted.
    """
    numbers: dict[str, Counter[str]] = {}
    failures: list[str] = []
    if report.is_file():
        for case in ElementTree.parse(report).iter("testcase"):
            file = case.get("file") or case.get("classname") or ""
            errors = [part for part in case if part.tag in ("failure", "error", "skipped")]
            numbers.setdefault(file, Counter())["failed" if errors else "passed"] += 1
            for error in errors:
                failures.append(f"{file}::{case.get('name')}\n{_end(error)}")
    if exit_code != 0 and not failures:
        return Results(numbers={}, failures=[f"pytest ended with exit code {exit_code}"])
    return Results(numbers=numbers, failures=failures)


def _end(error: ElementTree.Element) -> str:
    """Return the last lines of an error, indented; its one line if it has no others."""
    lines = (error.text or "").strip().splitlines() or [error.get("message", "")]
    return "\n".join([f"    {line}" for line in lines[-_LAST_LINES:]])
