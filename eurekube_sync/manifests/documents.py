"""Text -> documents: where a YAML stream is cut, what is JSON, and what could not be read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from eurekube_sync.manifests.findings import Finding, json_path
from eurekube_sync.manifests.json_text import parse_json_stream
from eurekube_sync.manifests.nodes import Node, Problem, Unparsable, line_of, value_of
from eurekube_sync.manifests.yaml_text import parse_yaml

_SEPARATOR = re.compile(r"^---(?=\s|\Z)", re.MULTILINE)
_TEMPLATE = re.compile(r"\{\{[^{}\n]*\}\}")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document of a stream: read, empty, or with the findings that say why it could not be read."""

    file: str
    number: int
    """1-based; empty documents count."""
    value: Any
    """Plain dicts, lists and scalars; None for an empty or unreadable one."""
    findings: tuple[Finding, ...] = ()
    """Broken syntax, duplicate keys."""
    node: Node | None = None
    """The same with lines; None for an empty or unreadable one."""
    offset: int = 0
    """Lines of the file before this document."""
    template: int | None = None
    """The line in the file of its first `{{ }}`, as Helm templates have them; None where there is none."""

    def line(self, path: tuple[str | int, ...]) -> int | None:
        """The line in the file of what the path names."""
        return self.offset + line_of(self.node, path) if self.node else None


def read_documents(text: str, *, file: str) -> tuple[Document, ...]:
    """Read a YAML stream or JSON. One broken document does not hide the others."""
    text = text.removeprefix("\ufeff")
    if match := _SURROGATE.search(text):
        line = text.count("\n", 0, match.start()) + 1
        return (_broken(file, 1, Unparsable("half of a surrogate pair is no character", line), 0),)
    if text.lstrip().startswith("{"):
        try:
            return tuple(
                _read(file, number, node, problems, 0)
                for number, (node, problems) in enumerate(parse_json_stream(text), start=1)
            )
        except Unparsable as error:
            json_error = error
        documents = tuple(_yaml_documents(text, file))  # `{a: b}` is YAML, too
        if any(document.node is None and document.findings for document in documents):
            return (replace(_broken(file, 1, json_error, 0), template=_template_line(text, 0)),)
        return documents
    return tuple(_yaml_documents(text, file))


def _yaml_documents(text: str, file: str) -> Iterator[Document]:
    """Cut at lines `---` as kubectl does, so that each document is read by itself."""
    for number, (start, end) in enumerate(_cuts(text), start=1):
        offset = text.count("\n", 0, start)
        try:
            node, problems = parse_yaml(text[start:end])
            document = _read(file, number, node, problems, offset)
        except Unparsable as error:
            document = _broken(file, number, error, offset)
        yield replace(document, template=_template_line(text[start:end], offset))


def _template_line(text: str, offset: int) -> int | None:
    mark = _TEMPLATE.search(text)
    return offset + text.count("\n", 0, mark.start()) + 1 if mark else None


def _cuts(text: str) -> list[tuple[int, int]]:
    """Begin and end of each document. Comments and directives before the first `---` belong to it."""
    starts = [match.start() for match in _SEPARATOR.finditer(text)]
    before = text[: starts[0]].splitlines() if starts else ["a document"]
    if all(not line.strip() or line.startswith(("#", "%")) for line in before):
        starts[0] = 0
    else:
        starts.insert(0, 0)
    return list(zip(starts, [*starts[1:], len(text)], strict=True))


def _read(file: str, number: int, node: Node | None, problems: tuple[Problem, ...], offset: int) -> Document:
    findings = tuple(
        Finding(file=file, document=number, line=offset + line, path=json_path(path), reason=reason)
        for line, path, reason in problems
    )
    value = None if node is None else value_of(node)
    return Document(file=file, number=number, value=value, findings=findings, node=node, offset=offset)


def _broken(file: str, number: int, error: Unparsable, offset: int) -> Document:
    finding = Finding(file=file, document=number, line=offset + error.line, path="$", reason=error.reason)
    return Document(file=file, number=number, value=None, findings=(finding,), offset=offset)
