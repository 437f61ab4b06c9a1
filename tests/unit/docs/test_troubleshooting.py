"""docs/troubleshooting.md is made from the tables of the program, and the code has no reason beside
them."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import eurekube_sync
from eurekube_sync.brake.holds import HoldReason
from eurekube_sync.controller.exit_codes import CODES
from eurekube_sync.explain.links import Check, Finding, Grade
from eurekube_sync.model.reasons import Reason, Topic
from eurekube_sync.model.sources import Server

PAGE = Path(__file__).parents[3] / "docs" / "troubleshooting.md"
TEXT = PAGE.read_text()
STAGES = ("desired", "apply", "observe", "explain", "controller")
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


def page_module() -> ModuleType:
    """docs/troubleshooting_page.py, which belongs to no package."""
    found = importlib.util.spec_from_file_location(
        "troubleshooting_page", PAGE.with_name("troubleshooting_page.py")
    )
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


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


def members_in(tree: ast.AST) -> Iterator[str]:
    """Reasons that the code names as members of the table."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "Reason"
        ):
            yield Reason[node.attr].value


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
            found.update(members_in(tree))
            if folder == "apply" and file.stem in ("conditions", "lost"):
                found.update(constants_in(tree))
    return found


def test_the_page_is_up_to_date() -> None:
    """A change of a table needs `python docs/troubleshooting_page.py`."""
    assert page_module().page().rstrip("\n") + "\n" == TEXT


def test_the_code_gives_no_other_reason() -> None:
    """And the table has no reason that the code does not give."""
    assert {reason.value for reason in Reason} == reasons()


def test_a_finding_names_its_heading() -> None:
    """Its anchor is on the page."""
    finding = Finding(check=Check.EUREKA_WRITE, grade=Grade.FAILED, text="")
    assert finding.docs == "docs/troubleshooting.md#eurekawrite"
    assert "\n#### EurekaWrite\n" in TEXT


def test_every_reason_says_what_it_is_and_what_to_do() -> None:
    """Only a reason of the last group needs no cure."""
    for reason in Reason:
        assert len(reason.meaning) > 25, reason
        assert bool(reason.cure) is (reason.topic is not Topic.WELL), reason
        assert f"\n### {reason}\n" in TEXT
