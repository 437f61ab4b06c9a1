"""A parsed document with its line numbers: scalars, sequences and mappings, which may share parts (YAML aliases)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from eurekube_sync.manifests.findings import Path
from eurekube_sync.manifests.scalars import Plain

MAX_DEPTH = 200
"""Levels of nesting: far more than any manifest has, far less than Python's stack."""
MAX_SIZE = 200_000
"""Values that a document with aliases may stand for: an alias bomb has billions."""


class Unparsable(Exception):
    """A document that cannot be read; `line` is 1-based within the text that was given."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


class Problem(NamedTuple):
    """Something wrong with the text, found while reading on."""

    line: int
    path: Path
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A string, number, boolean or null."""

    value: Plain
    line: int
    size: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    """A list."""

    items: tuple[Node, ...]
    line: int
    size: int
    """How many values it stands for, itself included, with every alias expanded."""


class Entry(NamedTuple):
    """One key of a mapping with the line that it stands on."""

    key: str
    line: int
    node: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """A mapping. Keys are unique."""

    entries: tuple[Entry, ...]
    line: int
    size: int

    def entry(self, key: str) -> Entry | None:
        """The entry of that key."""
        return next((entry for entry in self.entries if entry.key == key), None)


Node: TypeAlias = Scalar | Sequence | Mapping


def sequence(items: list[Node], line: int) -> Sequence:
    """A sequence that knows its size."""
    return Sequence(items=tuple(items), line=line, size=1 + sum(item.size for item in items))


def mapping(entries: list[Entry], line: int) -> Mapping:
    """A mapping that knows its size."""
    return Mapping(entries=tuple(entries), line=line, size=1 + sum(entry.node.size for entry in entries))


def value_of(node: Node) -> Any:
    """The plain Python value. Bounded by the size and depth that reading has already checked."""
    match node:
        case Scalar():
            return node.value
        case Sequence():
            return [value_of(item) for item in node.items]
        case Mapping():
            return {entry.key: value_of(entry.node) for entry in node.entries}


def line_of(node: Node, path: Path) -> int:
    """The line of what the path names, or of the last part of it that exists."""
    line = node.line
    for part in path:
        if isinstance(node, Mapping) and isinstance(part, str) and (entry := node.entry(part)):
            line, node = entry.line, entry.node
        elif isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
            line = node.line
        else:
            break
    return line
