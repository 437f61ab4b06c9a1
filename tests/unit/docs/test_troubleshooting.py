"""docs/troubleshooting.md has each reason of a condition, an event or an explanation, and each exit
code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import eurekube_sync
from eurekube_sync.brake.holds import HoldReason
from eurekube_sync.controller.exit_codes import CODES, ExitCode
from eurekube_sync.explain.links import Check, Finding, Grade
from eurekube_sync.model.sources import Server

PAGE = Path(__file__).parents[3] / "docs" / "troubleshooting.md"
TEXT = PAGE.read_text()
STAGES = ("desired", "apply", "observe", "explain")
"""The folders whose code gives reasons."""
CALLS = {
    "InvalidSyncer": 0,
    "refused": 2,
    "_refusal": 1,
    "Aspect": 1,
    "_unknown": 1,
    "add": 2,
    "breaks": 1,
}
"""The position of the reason among a call's arguments."""
_REASON = re.compile(r"[A-Z][A-Za-z]+")


def headings(level: int) -> list[str]:
    """The headings of one level."""
    return re.findall(rf"^{'#' * level} (.+)$", TEXT, re.MULTILINE)


def assigned(node: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    """The value of each name, also in an assignment to several names."""
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = zip(target.elts, node.value.elts, strict=True)
            yield from ((getattr(one, "id", ""), value) for one, value in pairs)
        yield getattr(target, "id", ""), node.value


def reasons_in(tree: ast.AST) -> Iterator[str]:
    """Texts in the place of a reason: an argument called `reason`, or the argument of a call
    above."""
    for node in ast.walk(tree):
        found: list[ast.expr] = []
        if isinstance(node, ast.Call):
            name = (
                node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            )
            found += [one.value for one in node.keywords if one.arg == "reason"]
            found += (
                [node.args[CALLS[name]]] if name in CALLS and len(node.args) > CALLS[name] else []
            )
        if isinstance(node, ast.Assign):
            found += [value for name, value in assigned(node) if name == "reason"]
        if isinstance(node, ast.FunctionDef):
            found += [
                default for default in node.args.defaults if node.args.args[-1].arg == "reason"
            ]
        if isinstance(node, ast.FunctionDef) and node.name in ("nothing_wanted",):
            found += [
                one
                for each in ast.walk(node)
                if isinstance(each, ast.Tuple)
                for one in each.elts[:1]
            ]
        for value in found:
            for each in ast.walk(value):
                if (
                    isinstance(each, ast.Constant)
                    and isinstance(each.value, str)
                    and _REASON.fullmatch(each.value)
                ):
                    yield each.value


def constants_in(tree: ast.Module) -> Iterator[str]:
    """Constants of a module whose value is a reason."""
    for node in tree.body:
        value = (
            node.value.value
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            else None
        )
        if isinstance(value, str) and _REASON.fullmatch(value):
            yield value


def reasons() -> set[str]:
    """All reasons in the code."""
    package = Path(eurekube_sync.__file__).parent
    found = {one.value for one in HoldReason}
    found |= {cause.value for server, cause in CODES if server is Server.KUBERNETES and cause}
    for folder in STAGES:
        for file in (package / folder).rglob("*.py"):
            tree = ast.parse(file.read_text())
            found.update(reasons_in(tree))
            if folder == "apply" and file.stem in ("conditions", "lost"):
                found.update(constants_in(tree))
    return found


def test_every_reason_has_a_heading() -> None:
    """No heading is of a reason that the program does not have."""
    assert set(headings(3)) == reasons()


def test_every_exit_code_has_a_heading() -> None:
    """A heading has the number too, in the order of the table."""
    assert [one for one in headings(4) if one[0].isdigit()] == [
        f"{code.value} {code.name}" for code in ExitCode
    ]


def test_every_check_has_a_heading() -> None:
    """A finding links to it."""
    assert [one for one in headings(4) if not one[0].isdigit()] == [one.value for one in Check]
    finding = Finding(check=Check.EUREKA_WRITE, grade=Grade.FAILED, text="")
    assert finding.docs == "docs/troubleshooting.md#eurekawrite"


def test_every_heading_says_what_it_is_and_what_to_do() -> None:
    """Each heading has a paragraph with a fix."""
    for title, text in re.findall(
        r"^#{3,4} (.+)\n\n(.*?)(?=\n#|\Z)", TEXT, re.MULTILINE | re.DOTALL
    ):
        assert len(text.strip()) > 40, title
        assert "**Do**" in text or "Nothing is to be done" in text, title
