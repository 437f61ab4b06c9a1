"""docs/eureka.md names tests and modules that exist, and every test of the Eureka contract
suite."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "eureka.md"
TEXT = PAGE.read_text()
FOLDERS = ("contract", "integration")
_NAMED = re.compile(r"`(test_\w+\.py)::(test_\w+)`")
_MODULE = re.compile(r"`([a-z_/]+)`")
GROUPS = (
    "Calls and answers",
    "Response cache",
    "Leases and eviction",
    "Overrides and timestamps",
    "Login, TLS, CSRF",
    "Batches",
    "Several peers",
    "XML",
)


def section(title: str) -> str:
    """The text below a heading of the second level."""
    return TEXT.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def rows() -> list[list[str]]:
    """The cells of each row of the table, without its head."""
    lines = [line for line in section("Relied on").splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def functions_in(file: str) -> set[str]:
    """The test functions of a file and of its classes, without running it."""
    found = [path for folder in FOLDERS if (path := ROOT / "tests" / folder / file).exists()]
    assert len(found) == 1, file
    nodes = ast.walk(ast.parse(found[0].read_text()))
    return {
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_test_that_is_named_exists() -> None:
    """This covers the table and the text below. Each name of a test comes with its file."""
    named = set(_NAMED.findall(TEXT))
    for file in {file for file, _ in named}:
        assert {name for at, name in named if at == file} <= functions_in(file)
    assert set(re.findall(r"`(test_\w+)`", TEXT)) <= {name for _, name in named}
    assert TEXT.count("::test_") == len(_NAMED.findall(TEXT))


def test_every_test_of_the_eureka_suite_is_named() -> None:
    """A test is named as relied on or as another fact, and not as both."""
    relied_on, other = (
        {name for _, name in _NAMED.findall(section(title))}
        for title in ("Relied on", "Other facts")
    )
    assert (
        functions_in("test_eureka.py") | functions_in("test_eureka_batches.py") <= relied_on | other
    )
    assert not relied_on & other


def test_every_row_has_a_behaviour_its_modules_and_its_tests() -> None:
    """A row has three cells, or the name of a group. Its modules are files of the program."""
    assert tuple(row[0].strip("*") for row in rows() if row[1:] == ["", ""]) == GROUPS
    for row in rows():
        if row[1:] == ["", ""]:
            continue
        behaviour, modules, tests = row
        assert behaviour.endswith("."), row
        assert re.sub(_MODULE, "", modules).strip(", ") == "", row
        assert re.sub(_NAMED, "", tests).strip(", ") == "", row
        assert _NAMED.search(tests), row
        for module in _MODULE.findall(modules):
            assert (ROOT / "eurekube_sync" / f"{module}.py").is_file(), module


def test_every_link_resolves_and_every_test_file_is_linked() -> None:
    """The page links each named test file. README and architecture link the page."""
    targets = {(PAGE.parent / target).resolve() for target in re.findall(r"\]\(([^)\s]+)\)", TEXT)}
    assert not [target for target in targets if not target.exists()]
    assert {file for file, _ in _NAMED.findall(TEXT)} <= {target.name for target in targets}
    assert "](docs/eureka.md)" in (ROOT / "README.md").read_text()
    assert "](eureka.md)" in (ROOT / "docs" / "architecture.md").read_text()
