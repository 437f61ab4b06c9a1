"""A stream of JSON values -> nodes with lines. The standard library's decoder keeps no positions."""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]  # documented nowhere, there since Python 2.6
from typing import Any

from eurekube_sync.manifests.findings import Path
from eurekube_sync.manifests.nodes import MAX_DEPTH, Entry, Node, Problem, Scalar, Unparsable, mapping, sequence
from eurekube_sync.manifests.scalars import number

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_MAX_DIGITS = 400


def parse_json_stream(text: str) -> list[tuple[Node, tuple[Problem, ...]]]:
    """Read all values of the text. Raises Unparsable."""
    reader = _Reader(text)
    values = []
    while not reader.at_end():
        reader.problems = []
        node = reader.value(())
        values.append((node, tuple(reader.problems)))
    return values


class _Reader:
    """A cursor over the text; recursion is bounded by MAX_DEPTH."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._counted = 0
        self._line = 1
        self.problems: list[Problem] = []

    def at_end(self) -> bool:
        """Skip white space; whether nothing follows."""
        match = _SPACE.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return self._at >= len(self._text)

    def value(self, path: Path) -> Node:
        """The value at the cursor."""
        char = self._next()
        line = self._here()
        if len(path) > MAX_DEPTH:
            raise Unparsable(f"nested deeper than {MAX_DEPTH} levels", line)
        if char == "{":
            return self._object(path, line)
        if char == "[":
            return self._array(path, line)
        if char == '"':
            return Scalar(value=self._string(), line=line)
        for word, meaning in _WORDS.items():
            if self._text.startswith(word, self._at):
                self._at += len(word)
                return Scalar(value=meaning, line=line)
        return Scalar(value=self._figure(line), line=line)

    def _object(self, path: Path, line: int) -> Node:
        entries: dict[str, Entry] = {}
        self._at += 1
        while self._next() != "}":
            if entries:
                self._expect(",")
            if self._next() != '"':
                raise Unparsable("not JSON: a key in double quotes is expected", self._here())
            at, key = self._here(), self._string()
            self._expect(":")
            node = self.value((*path, key))
            if key in entries:
                reason = f'duplicate key "{key}", first on line {entries[key].line}'
                self.problems.append(Problem(at, (*path, key), reason))
            else:
                entries[key] = Entry(key, at, node)
        self._at += 1
        return mapping(list(entries.values()), line)

    def _array(self, path: Path, line: int) -> Node:
        items: list[Node] = []
        self._at += 1
        while self._next() != "]":
            if items:
                self._expect(",")
            items.append(self.value((*path, len(items))))
        self._at += 1
        return sequence(items, line)

    def _string(self) -> str:
        try:
            text, self._at = scanstring(self._text, self._at + 1, True)
        except json.JSONDecodeError as error:
            raise Unparsable(f"not JSON: {error.msg}", error.lineno) from error
        return str(text)

    def _figure(self, line: int) -> int | float:
        match = _NUMBER.match(self._text, self._at)
        if not match:
            raise Unparsable("not JSON: a value is expected", line)
        self._at = match.end()
        if match.end() - match.start() > _MAX_DIGITS:
            raise Unparsable("the number is too long", line)
        figure = number(float(match[0])) if match[1] or match[2] else int(match[0])
        if figure in (float("inf"), float("-inf")):
            raise Unparsable(f"the number {match[0]} is too large", line)
        return figure

    def _next(self) -> str:
        if self.at_end():
            raise Unparsable("not JSON: the text ends too early", self._here())
        return self._text[self._at]

    def _expect(self, char: str) -> None:
        if self._next() != char:
            raise Unparsable(f"not JSON: `{char}` is expected", self._here())
        self._at += 1

    def _here(self) -> int:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line
