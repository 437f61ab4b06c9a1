"""One YAML document -> nodes with lines, from PyYAML's events.

Built on events, not on PyYAML's own composer: that one recurses, drops duplicate keys and resolves scalars
otherwise than kubectl does.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from eurekube_sync.manifests.findings import Path
from eurekube_sync.manifests.nodes import (
    MAX_DEPTH,
    MAX_SIZE,
    Entry,
    Mapping,
    Node,
    Problem,
    Scalar,
    Sequence,
    Unparsable,
    mapping,
    sequence,
)
from eurekube_sync.manifests.scalars import Plain, resolve

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_SHORT_TAGS = {"bool": bool, "int": int, "float": (int, float), "null": type(None)}


@dataclass(slots=True)
class _Open:
    """A collection whose end has not come yet."""

    is_mapping: bool
    line: int
    anchor: str | None
    items: list[Node] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    own: dict[str, int] = field(default_factory=dict)
    """The line of each key that did not come by `<<`."""
    key: tuple[str, int] | None = None
    """The key that waits for its value."""
    merging: bool = False

    def path_part(self) -> str | int:
        return (self.key[0] if self.key else "") if self.is_mapping else len(self.items)


def parse_yaml(text: str) -> tuple[Node | None, tuple[Problem, ...]]:
    """Read one document; None for an empty one. Raises Unparsable."""
    composer = _Composer()
    for event in _events(text):
        composer.take(event)
    return composer.root, tuple(composer.problems)


def _events(text: str) -> Iterator[Any]:
    """PyYAML's events, its errors turned into ours."""
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.reader.ReaderError as error:
        line = text.encode("utf-8", "replace")[: error.position].count(b"\n") + 1
        raise Unparsable(f"character U+{error.character:04X} is not allowed in YAML", line) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = ", ".join(part for part in (error.context, error.problem) if part)
        raise Unparsable(f"not YAML: {said}", mark.line + 1 if mark else 1) from error


class _Composer:
    """Turns events into one node, without recursion."""

    def __init__(self) -> None:
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, Node | None] = {}
        self._aliased = False

    def take(self, event: Any) -> None:
        """Take the next event."""
        line = event.start_mark.line + 1
        match event:
            case yaml.ScalarEvent():
                plain = event.implicit[0] and event.tag is None
                if plain and event.value == "<<" and self._waits_for_key():
                    self._open[-1].key, self._open[-1].merging = ("<<", line), True
                    return
                self._add(Scalar(value=self._scalar(event, line), line=line), event.anchor)
            case yaml.AliasEvent():
                node = self._alias(event.anchor or "", line)
                if isinstance(node, Sequence) and self._open and self._open[-1].merging:
                    raise Unparsable("`<<` takes a mapping, or a list of mappings that is written out", line)
                self._add(node, None)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._begin(_Open(isinstance(event, yaml.MappingStartEvent), line, event.anchor))
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                done = self._open.pop()
                entries = list(done.entries.values())
                node = mapping(entries, done.line) if done.is_mapping else sequence(done.items, done.line)
                self._add(node, done.anchor)

    def _begin(self, opened: _Open) -> None:
        if self._waits_for_key():
            raise Unparsable("a key must be a plain word, not a list or a mapping", opened.line)
        if len(self._open) >= MAX_DEPTH:
            raise Unparsable(f"nested deeper than {MAX_DEPTH} levels", opened.line)
        if opened.anchor:
            self._anchors[opened.anchor] = None
        self._open.append(opened)

    def _waits_for_key(self) -> bool:
        return bool(self._open) and self._open[-1].is_mapping and self._open[-1].key is None

    def _add(self, node: Node, anchor: str | None) -> None:
        """Put a finished node where it belongs."""
        if self._aliased and node.size > MAX_SIZE:
            raise Unparsable(f"aliases make this more than {MAX_SIZE} values", node.line)
        if anchor:
            self._anchors[anchor] = node
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        if not parent.is_mapping:
            parent.items.append(node)
        elif parent.key is None:
            parent.key = (_key(node), node.line)
        else:
            key, line = parent.key
            if parent.merging:
                # As kubectl's library does: what stands later wins, be it a key or `<<`.
                parent.entries |= {entry.key: entry for source in _merged(node) for entry in source.entries}
            elif key in parent.own:
                reason = f'duplicate key "{key}", first on line {parent.own[key]}'
                self.problems.append(Problem(line, self._path(), reason))
            else:
                parent.own[key] = line
                parent.entries[key] = Entry(key, line, node)
            parent.key, parent.merging = None, False

    def _path(self) -> Path:
        return tuple(opened.path_part() for opened in self._open)

    def _alias(self, anchor: str, line: int) -> Node:
        if anchor not in self._anchors:
            raise Unparsable(f"alias *{anchor} has no anchor before it", line)
        node = self._anchors[anchor]
        if node is None:
            raise Unparsable(f"anchor &{anchor} contains itself", line)
        self._aliased = True
        return node

    def _scalar(self, event: Any, line: int) -> Plain:
        """The value of a scalar under its tag."""
        text: str = event.value
        if event.tag is None:
            value = resolve(text) if event.implicit[0] else text
        elif event.tag == f"{_TAG}binary":
            value = _binary(text, line)
        elif expected := _SHORT_TAGS.get(event.tag.removeprefix(_TAG)):
            value = resolve(text)
            if not isinstance(value, expected):  # type: ignore[arg-type]  # a mapping's values lose their types
                raise Unparsable(f'"{text}" does not fit its tag {event.tag}', line)
        else:
            value = text
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            self.problems.append(Problem(line, self._path(), f"{text} is not a number that JSON knows"))
            return text
        return value


def _key(node: Node) -> str:
    """A key as JSON has it: booleans and numbers become words."""
    match node:
        case Scalar(value=str(text)):
            return text
        case Scalar(value=bool(truth)):
            return "true" if truth else "false"
        case Scalar(value=int() | float() as figure):
            return str(figure)
        case _:
            raise Unparsable("a key must be a plain word, not null, a list or a mapping", node.line)


def _merged(node: Node) -> list[Mapping]:
    """What a merge key `<<` brings, the weakest first."""
    sources = node.items if isinstance(node, Sequence) else (node,)
    mappings = [source for source in sources if isinstance(source, Mapping)]
    if len(mappings) != len(sources):
        raise Unparsable("`<<` takes a mapping, or a list of mappings", node.line)
    return mappings[::-1]


def _binary(text: str, line: int) -> str:
    try:
        return base64.b64decode("".join(text.split()).encode(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise Unparsable("!!binary is not base64 of UTF-8 text", line) from error
