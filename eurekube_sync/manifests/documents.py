"""Splits a stream of YAML or JSON into documents, reads each, and collects their faults."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from eurekube_sync.manifests.yaml_text import Unparsable, YamlDocument, parse_yaml
from eurekube_sync.model.faults import Path, written

_SEPARATOR = re.compile(r"^---(?=\s|\Z)", re.MULTILINE)
_TEMPLATE = re.compile(r"\{\{[^{}\n]*\}\}")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_JSON_SPACE = re.compile(r"[ \t\r\n]*")
_JSON_CHARACTER = re.compile(
    r"(?P<pair>\\u[dD][89abAB]..\\u[dD][c-fC-F]..)|\\.|(?P<odd>[^\r\n -~])"
)
"""A surrogate pair of two escapes, any other escape, or a character that YAML may refuse or
fold."""


class Severity(StrEnum):
    ERROR = "error"  # the API server would refuse the object
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to fix. `str(finding)` is the line to print."""

    file: str  # as the user named it; empty for an object from no file
    document: int | None  # 1-based, within the stream; None when the file could not be read at all
    line: int | None  # 1-based, within the file; None when there is no text
    path: str  # JSON path within the document, such as `$.spec.selector.app`
    reason: str  # one clause for a person, without a full stop
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        place = "".join(f"{part}:" for part in (self.file, self.line) if part)
        document = f"document {self.document}: " if self.document else ""
        return f"{place} {self.severity}: {document}{self.path}: {self.reason}".lstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The findings, and what was checked."""

    findings: tuple[Finding, ...] = ()
    files: int = 0
    documents: int = 0  # documents that are not empty
    syncers: int = 0
    imports: int = 0
    others: int = 0  # objects of other kinds, which are not checked

    def __add__(self, other: Report) -> Report:
        return Report(
            findings=self.findings + other.findings,
            files=self.files + other.files,
            documents=self.documents + other.documents,
            syncers=self.syncers + other.syncers,
            imports=self.imports + other.imports,
            others=self.others + other.others,
        )

    @property
    def errors(self) -> int:
        return sum(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def warnings(self) -> int:
        return len(self.findings) - self.errors

    @property
    def ok(self) -> bool:
        return not self.errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document of a stream."""

    file: str
    number: int  # 1-based; empty documents count
    value: Any  # plain dicts, lists and scalars; None for an empty or unreadable one
    unparsable: Unparsable | None = None  # why it could not be read
    yaml: YamlDocument | None = None  # the same with lines; None for an empty or unreadable one
    offset: int = 0  # lines of the file before this document
    template: int | None = (
        None  # line in the file of the first `{{ }}`, as in Helm templates; None without one
    )

    @property
    def findings(self) -> list[Finding]:
        """Return why it could not be read, or nothing for a document that could."""
        if self.unparsable is None:
            return []
        line = self.offset + self.unparsable.line
        return [self.finding((), self.unparsable.reason, line=line)]

    def line(self, path: Path) -> int | None:
        if self.yaml:
            return self.offset + self.yaml.line(path)
        return None

    def finding(
        self,
        path: Path,
        reason: str,
        severity: Severity = Severity.ERROR,
        *,
        line: int | None = None,
    ) -> Finding:
        """Make a finding about the value at a path, on the line of that value unless `line` is
        given."""
        at, path_text = line or self.line(path), f"${written(path)}"
        return Finding(
            file=self.file,
            document=self.number,
            line=at,
            path=path_text,
            reason=reason,
            severity=severity,
        )


def read_documents(text: str, *, file: str) -> tuple[Document, ...]:
    """Read a stream of YAML or JSON. A broken document does not hide the others."""
    text = text.removeprefix("\ufeff")
    if match := _SURROGATE.search(text):
        line = text.count("\n", 0, match.start()) + 1
        return (_unread(text, Unparsable("half of a surrogate pair is no character", line), file),)
    not_json = None
    if text.lstrip().startswith("{"):
        try:
            return tuple(_documents(text, _json_cuts(text), file, is_json=True))
        except json.JSONDecodeError as error:
            reason = f"not JSON: {error.msg[0].lower()}{error.msg[1:]}"
            not_json = Unparsable(reason, error.lineno)
    documents = tuple(_documents(text, _yaml_cuts(text), file))  # `{a: b}` is YAML, too
    if not_json and any(document.unparsable for document in documents):
        return (_unread(text, not_json, file),)
    return documents


def _unread(text: str, unparsable: Unparsable, file: str) -> Document:
    """Make the only document of a text that is not even a stream."""
    template = _template_line(text, 0)
    return Document(file=file, number=1, value=None, unparsable=unparsable, template=template)


def _documents(
    text: str, cuts: list[tuple[int, int]], file: str, *, is_json: bool = False
) -> Iterator[Document]:
    for number, (start, end) in enumerate(cuts, start=1):
        offset, part = text.count("\n", 0, start), text[start:end]
        template = None if is_json else _template_line(part, offset)
        if is_json:
            # JSON is YAML, except for tabs, surrogate pairs, and characters that YAML refuses or
            # folds.
            part = _JSON_CHARACTER.sub(_escaped, part.replace("\t", " "))
        yaml = unparsable = None
        try:
            yaml = parse_yaml(part)
        except Unparsable as error:
            unparsable = error
        yield Document(
            file=file,
            number=number,
            value=yaml.value if yaml else None,
            unparsable=unparsable,
            yaml=yaml,
            offset=offset,
            template=template,
        )


def _template_line(text: str, offset: int) -> int | None:
    mark = _TEMPLATE.search(text)
    if mark:
        return offset + text.count("\n", 0, mark.start()) + 1
    return None


def _yaml_cuts(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each document. Lines `---` separate them, as in kubectl. Comments
    and directives before the first `---` belong to the first document."""
    starts = [match.start() for match in _SEPARATOR.finditer(text)]
    before = text[: starts[0]].splitlines() if starts else ["a document"]
    if all(not line.strip() or line.startswith(("#", "%")) for line in before):
        starts[0] = 0
    else:
        starts.insert(0, 0)
    return list(zip(starts, [*starts[1:], len(text)], strict=True))


def _json_cuts(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each value of a JSON stream."""
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    cuts = []
    end = 0
    while (start := _JSON_SPACE.match(text, end).end()) < len(text):  # type: ignore[union-attr]  # it always matches
        try:
            _, end = decoder.raw_decode(text, start)
        except RecursionError:
            end = len(text)  # YAML refuses this depth as well, with a message
        cuts.append((start, end))
    return cuts


def _escaped(match: re.Match[str]) -> str:
    character = json.loads(f'"{match["pair"]}"') if match["pair"] else match["odd"]
    if character:
        return f"\\U{ord(character):08x}"
    return match[0]
