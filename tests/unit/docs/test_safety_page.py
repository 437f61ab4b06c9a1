"""docs/safety.md names functions, tests and promises of the simulation that exist, and leaves out no promise."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "safety.md"
TEXT = PAGE.read_text()
_TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
_CODE = re.compile(r"`([a-z_/]+)\.((?:\w+\.)?\w+)`")
_PROMISE = re.compile(r"(?<!\*)\*([a-z]+(?: [a-z]+)?)\*(?!\*)")

PROMISES = {
    "What was seen": (
        "type checker",
        "no endpoints",
        "without any slice",
        "selector matches nothing",
        "became an ExternalName",
        "takes its place under a limit",
        "invalid spec",
        "Of a frozen syncer",
        "A list that fails",
        "A 410",
        "A page that fails",
        "truncated",
        "A CRD that is gone",
        "CRD is being deleted",
        "before the CRD that lives",
        "one namespace",
        "A drain is",
        "who it is",
        "Eureka's reads fail",
        "warms up",
        "only that comes back",
        "cannot be read again",
        "first registration",
    ),
    "The brake": (
        "UP to DOWN",
        "per app",
        "out of service",
        "30 %",
        "500",
        "5 %",
        "20 %",
        "no hostages",
        "dead pod",
        "another living pod's",
        "pods register themselves",
        "All that we own",
        "before the CRD that is there now",
        "evidence",
        "20 s later",
        "behind the same host",
        "`maxRemovalPercent`",
        "shard",
        "option",
        "status and its lease",
        "successor",
        "A pod keeps its instance",
        "several Eureka servers",
        "`RemovalHeld`",
        "`--approve PLAN_ID`",
        "`--approve FILE`",
        "spent",
        "annotation",
        "never exit 0",
    ),
    "What a syncer asks not to be done": (
        "cancel nothing",
        "for an hour",
        "suspended",
        "comes back when",
        "in a later one",
        "within a limit",
        "reached exactly",
        "lowered limit keeps",
        "registered itself",
        "readiness gate",
        "five minutes",
        "two syncers serve",
    ),
    "A slow server, and a cluster at rest": ("all the time of its stage", "While nothing changes"),
    "Scope": (
        "cluster's UID",
        "Another cluster",
        "A typo in `--owner`",
        "leads to another cluster",
        "in doubt",
        "in scope",
        "Labels and class",
        "Orphans",
        "Of two syncers",
        "registers nothing in its place",
        "Between namespaces",
        "slice proves nothing",
        "leaves a scope",
    ),
    "The finalizer": (
        "before the first registration",
        "answer its DELETE",
        "reachable peer",
        "each of several peers is listed",
        "does not show what it holds",
        "server's cache",
        "comes later still",
        "away",
        "`abandon`",
        "of others",
    ),
}
"""What has to be promised, by words of its row."""


def rows(title: str) -> list[list[str]]:
    """The cells of each row of the table under a heading, its head left out."""
    section = TEXT.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@cache
def defined_in(path: Path) -> frozenset[str]:
    """Functions and classes of a file, and `Class.method`, without running any of it."""
    named = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, named):
            found.add(node.name)
            inner = node.body if isinstance(node, ast.ClassDef) else []
            found.update(f"{node.name}.{one.name}" for one in inner if isinstance(one, named))
    return frozenset(found)


@cache
def named_tests(path: Path) -> frozenset[str]:
    """The test functions of a file, also those in classes."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))


@cache
def simulated() -> frozenset[str]:
    """The promises that the simulation's judge, or who it asks, may say to be broken."""
    trees = [ast.parse(path.read_text()) for path in (ROOT / "tests" / "simulation").glob("*.py")]
    calls = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    said = (call.args[0] for call in calls if call.args and _is_violation(call))
    return frozenset(str(first.value) for first in said if isinstance(first, ast.Constant))


def _is_violation(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "Violation"


@pytest.mark.parametrize("title", PROMISES)
def test_every_promise_has_its_row(title: str) -> None:
    """One row each, in this order, and no other."""
    found = rows(title)
    assert len(found) == len(PROMISES[title])
    for words, row in zip(PROMISES[title], found, strict=True):
        assert words in row[0], row


@pytest.mark.parametrize("title", PROMISES)
def test_every_row_names_what_keeps_and_what_holds_it(title: str) -> None:
    """Functions of the program, and at least one test; each of them exists, and nothing else is named."""
    for row in rows(title):
        promise, kept, held = row
        assert promise.endswith("."), row
        assert re.sub(_CODE, "", kept).strip(", ") == "", row
        assert re.sub(_PROMISE, "", re.sub(_TEST, "", held)).strip(", ") == "", row
        assert _CODE.search(kept), row
        assert _TEST.search(held), row
        for module, name in _CODE.findall(kept):
            assert name in defined_in(ROOT / "eurekube_sync" / f"{module}.py"), (module, name)
        for file, name in _TEST.findall(held):
            assert name in named_tests(ROOT / "tests" / file), (file, name)
        for name in _PROMISE.findall(held):
            assert name in simulated(), name


def test_the_real_servers_are_tested_where_it_is_said() -> None:
    """The command of the page names a file that exists."""
    assert (ROOT / re.findall(r"`pytest (\S+)`", TEXT)[0]).is_file()


def test_every_link_resolves_and_others_lead_to_the_page() -> None:
    """README, architecture and the simulation's page lead to it."""
    targets = {(PAGE.parent / target).resolve() for target in re.findall(r"\]\(([^)\s]+)\)", TEXT)}
    assert not [target for target in targets if not target.exists()]
    assert "](docs/safety.md)" in (ROOT / "README.md").read_text()
    assert "](safety.md)" in (ROOT / "docs" / "architecture.md").read_text()
    assert "](safety.md)" in (ROOT / "docs" / "simulation.md").read_text()
