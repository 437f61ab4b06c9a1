"""The findings of a check, as a terminal shows them."""

from __future__ import annotations

import io

from rich.console import Console

from eurekube_sync.cli.output.answers import findings_table
from eurekube_sync.explain.links import Check, Finding, Grade
from eurekube_sync.model.docs import help_on

LINES = "spec:\n  terminationGracePeriodSeconds: 155"


def _short(name: str) -> Finding:
    return Finding(
        check=Check.POD_END, grade=Grade.WARNING, text=name, fix="add these lines", manifest=LINES
    )


def test_lines_to_add_that_are_the_same_are_shown_once() -> None:
    """With forty workloads, they would fill four screens."""
    written = io.StringIO()
    fine = Finding(check=Check.CLOCK, grade=Grade.OK, text="fine")
    Console(file=written, width=80).print(findings_table([_short("one"), fine, _short("two")]))
    assert written.getvalue().splitlines() == [
        "! one",
        "  Next: add these lines",
        "    spec:",
        "      terminationGracePeriodSeconds: 155",
        f"  See {help_on('PodEnd')}",
        "√ fine",
        "! two",
        "  Next: add these lines",
        "    the same lines as above",
        f"  See {help_on('PodEnd')}",
        "2 warnings, 1 check ok",
    ]
