"""docs/troubleshooting.md is made from the tables of the program, and the code gives each of their
reasons."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import eurekube_sync
from eurekube_sync.controller.exit_codes import CODES
from eurekube_sync.explain.links import Check, Finding, Grade
from eurekube_sync.model.docs import help_on
from eurekube_sync.model.reasons import Reason, Topic
from eurekube_sync.model.sources import Server
from tests.docs.programs import program

PAGE = Path(__file__).parents[2] / "docs" / "troubleshooting.md"
TEXT = PAGE.read_text()


def named_in_code() -> Iterator[Reason]:
    """Yield the members of the table that the package names, and the causes of Unknown sources."""
    package = Path(eurekube_sync.__file__).parent
    for file in package.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Attribute(value=ast.Name(id="Reason"), attr=member):
                    yield Reason[member]
    for server, cause in CODES:
        if server is Server.KUBERNETES and cause is not None:
            yield Reason(cause)


def test_the_page_is_up_to_date() -> None:
    """A change of a table needs `python docs/troubleshooting_page.py`."""
    assert program("troubleshooting_page").page().rstrip("\n") + "\n" == TEXT


def test_the_code_gives_every_reason() -> None:
    """mypy refuses a reason that the table does not have."""
    assert set(Reason) == set(named_in_code())


def test_a_finding_names_its_heading() -> None:
    """Its anchor is on the page."""
    finding = Finding(check=Check.EUREKA_WRITE, grade=Grade.FAILED, text="")
    assert finding.docs == help_on("EurekaWrite")
    assert "\n#### EurekaWrite\n" in TEXT


def test_every_reason_says_what_it_is_and_what_to_do() -> None:
    """Only a reason of the last group needs no cure."""
    for reason in Reason:
        assert len(reason.meaning) > 25, reason
        assert bool(reason.cure) is (reason.topic is not Topic.WELL), reason
        assert f"\n### {reason}\n" in TEXT
