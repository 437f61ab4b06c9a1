"""No code reads a sentence that the program itself made: a message is the last thing that is made
of a fact, and who needs the fact has it as a value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import eurekube_sync
from eurekube_sync.model import errors

PACKAGE = Path(eurekube_sync.__file__).parent
MESSAGES = frozenset(
    {
        *("detail", "fix", "message", "note", "reason", "said", "sentence"),
        *("text", "warning", "why"),
    }
)
"""The names of variables and attributes that hold sentences, in the singular or with an `s`."""
CUTS = frozenset(
    {
        *("startswith", "endswith", "removeprefix", "removesuffix", "replace", "split", "rsplit"),
        *("partition", "rpartition", "strip", "lstrip", "rstrip", "splitlines"),
    }
)
FOREIGN = {
    "adapters": "the answers of servers, the texts of libraries, and the addresses in own errors",
    "manifests": "the text of files",
    "cli/options": "what the user typed, and click's own texts",
    "cli/commands": "what the user typed, and click's own texts",
    "cli/values.py": "what the user typed",
    "desired/scope.py": "an option as the user wrote it",
    "explain/what.py": "what the user typed",
}
"""Files and folders where such a name is not our sentence, and what it is."""
ERRORS = frozenset({"Unknown", *(name for name in vars(errors) if name[:1].isupper())})


def is_message(node: ast.AST) -> bool:
    """Whether the last part of a name says that it is a sentence: `listed.message`, `whys`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.removesuffix("s") in MESSAGES
        case ast.Call(func=ast.Name(id="str"), args=[value]):
            return is_message(value) or getattr(value, "id", "") == "error"
        case _:
            return False


def _searches(left: ast.expr, right: ast.expr) -> bool:
    """Whether a sentence is searched for words, or is looked up among others. A reason may be
    looked up, because it is a member of a table, and so may a key in a mapping of sentences."""
    words = is_message(right) and not _name(right).endswith("s")
    return words or (is_message(left) and _name(left) != "reason")


def _name(node: ast.expr) -> str:
    return str(getattr(node, "attr", getattr(node, "id", "")))


def read_messages(tree: ast.AST) -> Iterator[int]:
    """Yield the lines on which a sentence is cut, or is searched for something."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in CUTS:
                if is_message(value):
                    yield node.lineno
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[right]):
                if _searches(left, right):
                    yield node.lineno


def test_no_code_reads_a_sentence() -> None:
    """Neither its beginning, nor its end, nor a word of it."""
    read = []
    for file in sorted(PACKAGE.rglob("*.py")):
        path = file.relative_to(PACKAGE).as_posix()
        if not path.startswith(tuple(FOREIGN)):
            read += [f"{path}:{line}" for line in read_messages(ast.parse(file.read_text()))]
    assert read == []


def ended(tree: ast.AST) -> Iterator[int]:
    """Yield the lines on which an error or an Unknown gets a text with an end."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or _name(node.func) not in ERRORS:
            continue
        for text in (*node.args, *(keyword.value for keyword in node.keywords)):
            last = text.values[-1] if isinstance(text, ast.JoinedStr) else text
            if isinstance(last, ast.Constant) and str(last.value).endswith((".", "?", "!")):
                yield node.lineno


def test_an_error_is_a_clause() -> None:
    """Who shows it ends the sentence, in which it is often a part."""
    found = []
    for file in sorted(PACKAGE.rglob("*.py")):
        lines = ended(ast.parse(file.read_text()))
        found += [f"{file.relative_to(PACKAGE).as_posix()}:{line}" for line in lines]
    assert found == []


def test_the_test_sees_an_error_with_an_end() -> None:
    """In each form."""
    for line in ("Refused('no.')", "errors.RegistryError(f'{why}?')", "Unknown(message='no.')"):
        assert list(ended(ast.parse(line))) == [1], line
    for line in ("Refused('no')", "RegistryError(f'no. {why}')", "Answer('no.')"):
        assert list(ended(ast.parse(line))) == [], line


def test_every_exception_is_needed() -> None:
    """Each of these files or folders has such a line."""
    for place in FOREIGN:
        files = [PACKAGE / place, *(PACKAGE / place).rglob("*.py")]
        lines = [
            list(read_messages(ast.parse(file.read_text()))) for file in files if file.is_file()
        ]
        assert any(lines), place


def test_the_test_sees_a_sentence_that_is_read() -> None:
    """In each form."""
    for line in (
        "why.split()",
        "claim.message.removeprefix('a')",
        "str(error).rstrip('.')",
        "'drain' in warning",
        "claim.message in reported",
    ):
        assert list(read_messages(ast.parse(line))) == [1], line
    for line in ("id_.split(':')", "claim.reason in REASONS", "'a' in names"):
        assert list(read_messages(ast.parse(line))) == [], line
