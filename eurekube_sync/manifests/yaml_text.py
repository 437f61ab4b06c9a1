"""Reads one YAML document with PyYAML's rules, and the line of each value.

A date stays a string, as in JSON. kubectl reads a few words and numbers in another way, such as
`y` and `1e3`; docs/eurekasyncer.md says which.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, TypeAlias

import yaml
from yaml.constructor import SafeConstructor
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from eurekube_sync.model.faults import Path, shown

# Levels of nesting: far more than in any manifest, far less than Python's stack allows.
MAX_DEPTH = 100
# Values of a document after its aliases are resolved; an alias bomb has billions.
MAX_SIZE = 200_000
_MAX_DIGITS = 400  # the largest float is 1e308

# Of a mapping: the line and the value of each key
_Entries: TypeAlias = dict[str, tuple[int, Node]]

_SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE = "tag:yaml.org,2002:merge"
_NUMBERS = SafeConstructor()
_CONSTRUCTORS = {
    "tag:yaml.org,2002:null": _NUMBERS.construct_yaml_null,
    "tag:yaml.org,2002:bool": _NUMBERS.construct_yaml_bool,
    "tag:yaml.org,2002:int": _NUMBERS.construct_yaml_int,
    "tag:yaml.org,2002:float": _NUMBERS.construct_yaml_float,
}
"""The scalars that are no strings, by their tags. Any other tag is ignored, as in kubectl."""


class Unparsable(Exception):
    """Why a document cannot be read: the reason, and the line, 1-based within the document."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason, self.line = reason, line


def _resolvers() -> dict[str, list[tuple[str, Any]]]:
    """Return the rules by which PyYAML finds the tag of a plain scalar, by its first character:
    those of a merge key and of `_CONSTRUCTORS`."""
    resolvers = {}
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items():
        resolvers[first] = [rule for rule in rules if rule[0] in (_MERGE, *_CONSTRUCTORS)]
    return resolvers


class _Loader(_SAFE):  # type: ignore[misc]  # either of PyYAML's loaders
    """SafeLoader without dates, which JSON does not have, and `=`, which it cannot construct."""

    yaml_implicit_resolvers: ClassVar = _resolvers()


class YamlDocument:
    """One document that is not empty. The constructor raises Unparsable, also for a key that a
    mapping has twice."""

    def __init__(self, root: Node, nodes: int) -> None:
        self._left = max(nodes, MAX_SIZE)
        self._lines: dict[Path, int] = {}
        self.value = self._value(root, (), _line(root))
        """Plain dicts, lists and scalars."""

    def line(self, path: Path) -> int:
        """Return the line of the value at a path, or of its last part that exists."""
        while path not in self._lines:
            path = path[:-1]
        return self._lines[path]

    def _value(self, node: Node, path: Path, line: int) -> Any:
        self._lines[path] = line
        self._count(node, len(path))
        if isinstance(node, MappingNode):
            mapping = {}
            for key, (key_line, item) in self._entries(node, len(path)).items():
                mapping[key] = self._value(item, (*path, key), key_line)
            return mapping
        if isinstance(node, SequenceNode):
            sequence = []
            for index, item in enumerate(node.value):
                sequence.append(self._value(item, (*path, index), _line(item)))
            return sequence
        assert isinstance(node, ScalarNode)  # there is no other kind
        return _scalar(node)

    def _count(self, node: Node, depth: int) -> None:
        """Stop at an alias within its own value, which has no end, and at an alias bomb."""
        self._left -= 1
        if depth > MAX_DEPTH:
            raise Unparsable(f"aliases make this deeper than {MAX_DEPTH} levels", _line(node))
        if self._left < 0:
            raise Unparsable(f"aliases make this more than {MAX_SIZE} values", _line(node))

    def _entries(self, node: Node, depth: int) -> _Entries:
        """Return the entries of a mapping. Its own keys win over those of a merge key `<<`."""
        own: _Entries = {}
        merged: _Entries = {}
        for key_node, item in node.value:
            line = _line(key_node)
            if key_node.tag == _MERGE:
                for source in _sources(item, line):
                    self._count(source, depth + 1)
                    merged |= self._entries(source, depth + 1)
                continue
            key = _key(key_node)
            if key in own:
                raise Unparsable(f'duplicate key "{key}"', line)
            own[key] = (line, item)
        return merged | own


def parse_yaml(text: str) -> YamlDocument | None:
    """Read one document, or return None for an empty one. Raises Unparsable."""
    try:
        nodes = _nodes(text)
        root = yaml.compose(text, Loader=_Loader)
    except yaml.reader.ReaderError as error:
        before = text.encode("utf-8", "replace")[: error.position]
        line = before.count(b"\n") + 1
        reason = f"character U+{error.character:04X} is not allowed in YAML"
        raise Unparsable(reason, line) from error
    except yaml.MarkedYAMLError as error:
        said = ", ".join(filter(None, (error.context, error.problem)))
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise Unparsable(f"not YAML: {said}", line) from error
    if root is None:
        return None
    return YamlDocument(root, nodes)


def _nodes(text: str) -> int:
    """Count the nodes of a document, of which none may be too deep for a recursion."""
    nodes = depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise Unparsable(f"nested deeper than {MAX_DEPTH} levels", _line(event))
    return nodes


def _sources(node: Node, line: int) -> Iterator[Node]:
    """Yield the mappings of a merge key, the weakest first."""
    sources = node.value if isinstance(node, SequenceNode) else [node]
    for source in reversed(sources):
        if not isinstance(source, MappingNode):
            raise Unparsable("`<<` takes a mapping, or a list of mappings", line)
        yield source


def _key(node: Node) -> str:
    """Return a key as in JSON, where booleans and numbers are strings."""
    key = None
    if isinstance(node, ScalarNode):
        key = _scalar(node)
    if key is None:
        raise Unparsable("a key must be a plain word, not null, a list or a mapping", _line(node))
    if isinstance(key, bool):
        return str(key).lower()
    return str(key)


def _scalar(node: ScalarNode) -> str | int | float | bool | None:
    """Return the value of a scalar. Infinities and NaN stay strings, because JSON has none."""
    text: str = node.value
    if node.tag not in _CONSTRUCTORS or len(text) > _MAX_DIGITS:
        return text
    try:
        value: int | float | bool | None = _CONSTRUCTORS[node.tag](node)
    except (LookupError, ValueError, OverflowError) as error:  # such as `!!int x`
        _, _, kind = node.tag.rpartition(":")
        raise Unparsable(f"{shown(text)} cannot be read as {kind}", _line(node)) from error
    if isinstance(value, float) and not math.isfinite(value):
        return text
    return value


def _line(read: Node | yaml.Event) -> int:
    mark: Any = read.start_mark  # whatever is read from a text has one
    return int(mark.line) + 1
