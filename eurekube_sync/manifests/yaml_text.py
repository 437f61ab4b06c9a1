"""Reads one YAML document as kubectl does, with its problems and the line of each value.

PyYAML's composer keeps duplicate keys, lines, and whether a scalar was quoted; its constructor
drops them. kubectl reads YAML with sigs.k8s.io/yaml, which is neither YAML 1.1 nor 1.2: `on`, `y`
and `NO` are booleans, `017` and `0o17` are 15, `08` is 8, dates and `12:30:45` stay strings.
PyYAML's own resolver differs in most of these.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple, TypeAlias

import yaml
from yaml.composer import Composer
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from eurekube_sync.model.wording import Path

Plain: TypeAlias = str | int | float | bool | None

MAX_DEPTH = (
    100  # levels of nesting: far more than in any manifest, far less than Python's stack allows
)
MAX_SIZE = (
    200_000  # values of a document after its aliases are resolved; an alias bomb has billions
)

_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_TAG = "tag:yaml.org,2002:"
_UNQUOTED = "unquoted"  # our tag for a scalar without quotes and without a tag
_RESOLVED = (_UNQUOTED, *(f"{_TAG}{kind}" for kind in ("bool", "int", "float", "null")))
"""The tags of scalars that need not be strings."""
_WORDS: dict[str, Plain] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_WORDS |= {
    word: True
    for lower in ("y", "yes", "true", "on")
    for word in (lower, lower.capitalize(), lower.upper())
}
_WORDS |= {
    word: False
    for lower in ("n", "no", "false", "off")
    for word in (lower, lower.capitalize(), lower.upper())
}

_INTEGER = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|0[0-7]*|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INNER_UNDERSCORE = re.compile(r"(?<=[0-9])_(?=[0-9])")
_MAX_DIGITS = 400  # the largest float is 1e308


class Problem(NamedTuple):
    line: int
    path: Path
    reason: str


class Unparsable(Exception):
    """An unreadable document. The arguments are the reason and the line, 1-based within the
    document."""


class _Composer(_LOADER):  # type: ignore[misc]  # either of PyYAML's loaders
    """PyYAML's composer with a limit of depth. Without it, deep nesting ends in a
    RecursionError."""

    get_single_node, compose_document = Composer.get_single_node, Composer.compose_document
    compose_scalar_node, compose_sequence_node = (
        Composer.compose_scalar_node,
        Composer.compose_sequence_node,
    )
    compose_mapping_node = Composer.compose_mapping_node

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.anchors: dict[str, Node] = {}
        self.nodes = 0
        self._depth = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        """Compose the next node. An anchor may be defined again, as in kubectl."""
        event = self.peek_event()
        if self._depth > MAX_DEPTH:
            raise Unparsable(f"nested deeper than {MAX_DEPTH} levels", event.start_mark.line + 1)
        if not isinstance(event, yaml.AliasEvent):
            self.anchors.pop(event.anchor, None)
        self.nodes += 1
        self._depth += 1
        node = Composer.compose_node(self, parent, index)
        self._depth -= 1
        return node

    def resolve(self, kind: type[Node], value: str, implicit: tuple[bool, bool]) -> str:
        return _UNQUOTED if kind is ScalarNode and implicit[0] else f"{_TAG}str"


class YamlDocument:
    """One document that is not empty. The constructor raises Unparsable."""

    def __init__(self, root: Node, nodes: int) -> None:
        self._root = root
        self._nodes = nodes
        self._read = 0
        self._entries: dict[Node, dict[str, tuple[int, Node]]] = {}
        self.problems: list[Problem] = []
        self.value = self._value(root, ())
        """Plain dicts, lists and scalars."""

    def line(self, path: Path) -> int:
        """Return the line of the value at a path, or of its last part that exists."""
        node, line = self._root, _line(self._root)
        for part in path:
            if isinstance(node, MappingNode) and part in self._entries[node]:
                line, node = self._entries[node][str(part)]
            elif (
                isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value)
            ):
                node = node.value[part]
                line = _line(node)
            else:
                break
        return line

    def _value(self, node: Node, path: Path) -> Any:
        self._read += 1
        if len(path) > MAX_DEPTH:
            raise Unparsable(f"aliases make this deeper than {MAX_DEPTH} levels", _line(node))
        if self._read > max(self._nodes, MAX_SIZE):
            raise Unparsable(f"aliases make this more than {MAX_SIZE} values", _line(node))
        match node:
            case MappingNode():
                entries = self._entries_of(node, path)
                return {key: self._value(item, (*path, key)) for key, (_, item) in entries.items()}
            case SequenceNode():
                return [self._value(item, (*path, index)) for index, item in enumerate(node.value)]
            case _:
                return _scalar(node)

    def _entries_of(self, node: Node, path: Path) -> dict[str, tuple[int, Node]]:
        """Return the line and value of each key. Of a key and a `<<`, the later one wins, as in
        kubectl's library."""
        if node in self._entries:
            return self._entries[node]
        found = self._entries[node] = {}
        own: dict[str, int] = {}
        for key_node, item in node.value:
            if key_node.tag == _UNQUOTED and key_node.value == "<<":
                for source in _merged(item, key_node):
                    found |= self._entries_of(source, path)
                continue
            line, key = _line(key_node), _key(key_node)
            if key in own:
                self.problems.append(
                    Problem(line, (*path, key), f'duplicate key "{key}", first on line {own[key]}')
                )
            else:
                own[key] = line
                found[key] = (line, item)
        return found


def parse_yaml(text: str) -> YamlDocument | None:
    """Read one document, or return None for an empty one. Raises Unparsable."""
    try:
        composer = _Composer(text)
        root = composer.get_single_node()
    except yaml.reader.ReaderError as error:
        line = text.encode("utf-8", "replace")[: error.position].count(b"\n") + 1
        raise Unparsable(
            f"character U+{error.character:04X} is not allowed in YAML", line
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = ", ".join(part for part in (error.context, error.problem) if part)
        raise Unparsable(f"not YAML: {said}", mark.line + 1 if mark else 1) from error
    return None if root is None else YamlDocument(root, composer.nodes)


def resolve(text: str) -> Plain:
    """Return the value of an unquoted scalar. Infinities and NaN stay strings, because JSON has
    none."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in ".+-0123456789":
        return text
    digits = _INNER_UNDERSCORE.sub("", text) if text[0] == "." else text.replace("_", "")
    if len(digits) > _MAX_DIGITS:
        return text
    if match := _INTEGER.fullmatch(digits):
        sign, body = match.groups()
        base = {"x": 16, "b": 2, "o": 8}.get(body[1:2].lower(), 8 if body[0] == "0" else 10)
        whole = int(sign + body, base)
        if -(2**63) <= whole < (2**63 if sign else 2**64):  # an int64; without a sign, a uint64
            return whole
    value = float(digits) if _FLOAT.fullmatch(digits) else math.inf
    if math.isinf(value):
        return text
    return int(value) if value.is_integer() and abs(value) < 1e21 else value  # as JSON has it


def _key(node: Node) -> str:
    """Return a key as in JSON, where booleans and numbers are strings."""
    key = _scalar(node) if isinstance(node, ScalarNode) else None
    if key is None:
        raise Unparsable("a key must be a plain word, not null, a list or a mapping", _line(node))
    return str(key).lower() if isinstance(key, bool) else str(key)


def _scalar(node: Node) -> Plain:
    text: str = node.value
    return resolve(text) if node.tag in _RESOLVED else text


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _merged(node: Node, key: Node) -> list[Node]:
    """Return the mappings of a merge key `<<`, the weakest first."""
    is_alias = node.start_mark.index < key.start_mark.index
    sources = node.value[::-1] if isinstance(node, SequenceNode) and not is_alias else [node]
    if not all(isinstance(source, MappingNode) for source in sources):
        raise Unparsable(
            "`<<` takes a mapping, or a list of mappings, but no alias of a list", _line(key)
        )
    return list(sources)
