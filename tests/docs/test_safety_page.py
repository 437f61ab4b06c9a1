"""docs/safety.md names functions, tests and promises of the simulation that exist, and every
promise is there."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "safety.md"
TEXT = PAGE.read_text()
_FILE = re.compile(r"`([\w/]+\.py)`: (.+)")
_TEST = re.compile(r"`(test_\w+)`")
_CODE = re.compile(r"`([a-z_/]+)\.((?:\w+\.)?\w+)`")
_PROMISE = re.compile(r"(?<!\*)\*([a-z]+(?: [a-z]+)?)\*(?!\*)")

PROMISES = {
    "Reading both servers": (
        "unknown source proves",
        "no endpoints",
        "without any slice",
        "selector matches nothing",
        "What came from Eureka",
        "became an ExternalName",
        "counts towards its syncer's limit",
        "none of the Service's ports",
        "stays at its registered number",
        "an address and a port",
        "being renumbered",
        "keeps its registered name",
        "invalid spec",
        "only by proof",
        "grant that is missing",
        "A list that fails",
        "A 410",
        "A page that fails",
        "missing CRD",
        "CRD is being deleted",
        "before the CRD was installed",
        "one namespace",
        "A drain is",
        "who it is",
        "Eureka's reads fail",
        "older than Eureka's own cache",
        "warms up",
        "registers again only",
        "cannot be read again",
        "first registration",
    ),
    "The brake": (
        "UP to DOWN",
        "per app",
        "out of service",
        "30 %",
        "5 %",
        "What a person asked for",
        "only of apps that lose",
        "dead pod",
        "another ready pod has",
        "registers itself",
        "older than the present CRD",
        "Evidence",
        "20 s later",
        "another name",
        "option",
        "status and its lease",
        "outlives a Service",
        "successor",
        "A pod keeps its old instance",
        "several Eureka servers",
        "no other Eureka server",
        "are reported",
        "`--approve PLAN_ID`",
        "spent",
        "annotation",
        "never exit 0",
        "not exit 0",
    ),
    "Policy, suspension, limits and gates": (
        "nothing is cancelled",
        "suspended",
        "comes back when",
        "in a later one",
        "has a place under a limit",
        "reached exactly",
        "lowered limit keeps",
        "gives way to a duplicate",
        "readiness gate",
        "five minutes",
        "two syncers serve",
    ),
    "A slow server, and a cluster at rest": (
        "its own time",
        "delay no other namespace",
        "comes and goes",
        "While nothing changes",
    ),
    "Scope": (
        "cluster's UID",
        "former owner",
        "Another cluster",
        "A typo in `--owner`",
        "the API server is another cluster",
        "in doubt",
        "in scope",
        "Labels and class",
        "Orphans",
        "Of two syncers",
        "registers nothing removes nothing",
        "suspended syncer does not decide",
        "could not be read",
        "not served yet",
        "Nothing waits for",
        "Between namespaces",
        "slice proves nothing",
        "leaves a scope",
    ),
    "The finalizer": (
        "before the first registration",
        "may remain",
        "reachable peer",
        "Each of several peers is listed",
        "cannot be listed",
        "Eureka's cache",
        "registered after the deletion",
        "away",
        "`abandon`",
        "of others",
    ),
    "Imports": (
        "Eureka is unknown",
        "just started",
        "another Eureka server",
        "malformed",
        "brake",
        "second pass",
        "somebody else",
        "another owner",
        "networks",
        "written once",
        "CRD of imports",
    ),
}
"""The promises that have to be there, as words of their headings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One promise of the page. Its text ends where "Kept by" begins, and a list of tests
    follows."""

    heading: str
    text: str
    kept_by: str
    checked_by: tuple[str, ...]
    """The lines of the list: each is a file with its tests, or promises of the simulation."""


def promises(title: str) -> list[Promise]:
    """The promises of a section, each under its heading."""
    section = TEXT.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    return [_promise(part) for part in section.split("\n### ")[1:]]


def _promise(part: str) -> Promise:
    heading, _, rest = part.partition("\n")
    text, _, rest = rest.partition("\nKept by ")
    kept_by, *checked_by = re.split(r"^- ", rest, flags=re.MULTILINE)
    return Promise(
        heading=heading,
        text=" ".join(text.split()),
        kept_by=" ".join(kept_by.split()),
        checked_by=tuple(" ".join(line.split()) for line in checked_by),
    )


@cache
def defined_in(path: Path) -> frozenset[str]:
    """Functions and classes of a file, and `Class.method`, without running it."""
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
    """The test functions of a file and of its classes."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return frozenset(
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


@cache
def simulated() -> frozenset[str]:
    """The promises that the simulation can report as broken."""
    trees = [ast.parse(path.read_text()) for path in (ROOT / "tests" / "simulation").glob("*.py")]
    calls = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    said = (call.args[0] for call in calls if call.args and _is_violation(call))
    return frozenset(str(first.value) for first in said if isinstance(first, ast.Constant))


def _is_violation(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "Violation"


@pytest.mark.parametrize("title", PROMISES)
def test_every_promise_has_its_heading(title: str) -> None:
    """The headings are in this order, and there is no other."""
    found = promises(title)
    assert len(found) == len(PROMISES[title])
    for words, promise in zip(PROMISES[title], found, strict=True):
        assert words in promise.heading


@pytest.mark.parametrize("title", PROMISES)
def test_every_promise_is_said_in_a_few_sentences(title: str) -> None:
    """Nobody reads a long paragraph."""
    for promise in promises(title):
        assert promise.text.endswith("."), promise
        assert len(promise.text) < 450, promise.heading


@pytest.mark.parametrize("title", PROMISES)
def test_every_promise_names_what_keeps_and_what_checks_it(title: str) -> None:
    """A promise names functions of the program and at least one test. All of them exist, and
    nothing else is named."""
    for promise in promises(title):
        assert re.sub(_CODE, "", promise.kept_by).strip(", ") == ".", promise
        assert _CODE.search(promise.kept_by), promise
        for module, name in _CODE.findall(promise.kept_by):
            assert name in defined_in(ROOT / "eurekube_sync" / f"{module}.py"), (module, name)
        files = [found.groups() for line in promise.checked_by if (found := _FILE.fullmatch(line))]
        assert files, promise
        for file, tests in files:
            assert re.sub(_TEST, "", tests).strip(", ") == "", promise
            for name in _TEST.findall(tests):
                assert name in named_tests(ROOT / "tests" / file), (file, name)
        others = [line for line in promise.checked_by if not _FILE.fullmatch(line)]
        assert len(others) <= 1, promise
        for line in others:
            assert re.sub(_PROMISE, "", line.removeprefix("simulation: ")).strip(", ") == "", (
                promise
            )
            assert _PROMISE.search(line), promise
            for name in _PROMISE.findall(line):
                assert name in simulated(), name


def test_the_real_servers_are_tested_where_it_is_said() -> None:
    """The command on the page names a file that exists."""
    assert (ROOT / re.findall(r"`pytest (\S+)`", TEXT)[0]).is_file()


def test_every_link_resolves_and_others_lead_to_the_page() -> None:
    """README, architecture and the page of the simulation link to it."""
    targets = {(PAGE.parent / target).resolve() for target in re.findall(r"\]\(([^)\s]+)\)", TEXT)}
    assert not [target for target in targets if not target.exists()]
    assert "](docs/safety.md)" in (ROOT / "README.md").read_text()
    assert "](safety.md)" in (ROOT / "docs" / "architecture.md").read_text()
    assert "](safety.md)" in (ROOT / "docs" / "simulation.md").read_text()
