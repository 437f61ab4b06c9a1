"""Two threads may decode to a type at once, also the first time: a build of msgspec's own data at
first use would let the process die."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.adapters.first_decodings import READY

ROOT = Path(__file__).parents[3]
_PLAIN_TYPES = frozenset({"str", "int", "float", "bool", "datetime", "list", "dict", "Any", "None"})
"""Types for which msgspec keeps nothing."""


def test_no_first_decoding_builds_a_type() -> None:
    """Each place that decodes finds its type built, in whatever thread it is first. No child ends
    by a signal."""
    program = [sys.executable, "-m", "tests.unit.adapters.first_decodings"]
    done = subprocess.run(program, capture_output=True, text=True, check=True, cwd=ROOT)
    outcomes = json.loads(done.stdout)
    assert outcomes
    assert {name: seen for name, seen in outcomes.items() if seen != [READY]} == {}


def built_in_functions(source: str) -> list[int]:
    """Return the lines, within functions, that may make msgspec build a type."""
    lines: list[int] = []
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            lines += [call.lineno for call in _calls(function) if _builds(call)]
    return sorted(set(lines))


def _calls(function: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            yield node


def _builds(call: ast.Call) -> bool:
    """Whether a call is `Decoder(...)`, `decode(..., type=...)`, or `convert` to a type that is not
    plain."""
    called = (
        call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    )
    given = [keyword.value for keyword in call.keywords if keyword.arg == "type"]
    if called == "Decoder" or (called == "decode" and given):
        return True
    of_msgspec = isinstance(call.func, ast.Name) or ast.unparse(call.func) == "msgspec.convert"
    if called != "convert" or not of_msgspec:
        return False
    kind = given[0] if given else call.args[1]
    if isinstance(kind, ast.Attribute) and kind.attr == "type":  # of a decoder, which has built it
        return False
    names = {node.id for node in ast.walk(kind) if isinstance(node, ast.Name)}
    return not names <= _PLAIN_TYPES


@pytest.mark.parametrize(
    "file", sorted((ROOT / "eurekube_sync").rglob("*.py")), ids=lambda file: file.stem
)
def test_no_function_builds_a_type(file: Path) -> None:
    """Decoders are made at import, before there are threads."""
    assert built_in_functions(file.read_text()) == []


@pytest.mark.parametrize(
    "line",
    [
        "json.decode(body, type=T)",
        "decode(body, type=T)",
        "msgspec.json.Decoder(T)",
        "Decoder(kind.item).decode",
        "msgspec.convert(raw, T)",
        "convert(raw, type=list[T])",
    ],
)
def test_what_builds_a_type_is_seen(line: str) -> None:
    """In a function and in a lambda; at import, and for plain types, nothing is wrong."""
    assert built_in_functions(f"def read(body):\n    return {line}") == [2]
    assert built_in_functions(f"read = lambda body: {line}") == [1]
    assert built_in_functions(f"READ = {line}") == []
    assert (
        built_in_functions("def read(raw):\n    return convert(raw, dict[str, str] | None)") == []
    )
