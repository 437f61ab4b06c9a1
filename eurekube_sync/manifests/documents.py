"""Splits a stream of YAML or JSON into documents, reads each, and collects their faults."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from msgspec import Struct

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


class Finding(Struct, frozen=True, kw_only=True):
    """One thing to fix. `str(finding)` is the line to print."""

    file: str  # as the user named it; empty for an object from no file
    document: int | None  # 1-based, within the stream; None when the file could not be read at all
    line: int | None  # 1-based, within the file; None when there is no text
    path: str  # JSON path within the document, such as `$.spec.selector.app`
    reason: str  # one clause for a person, without a full stop
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        place = ""
        if self.file:
            place = f"{self.file}:"
        if self.line:
            place = f"{place}{self.line}:"
        document = ""
        if self.document:
            document = f"document {self.document}: "
        text = f"{place} {self.severity}: {document}{self.path}: {self.reason}"
        return text.lstrip()


class Report(Struct, frozen=True, kw_only=True):
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
        errors = 0
        for finding in self.findings:
            if finding.severity is Severity.ERROR:
                errors += 1
        return errors

    @property
    def warnings(self) -> int:
        return len(self.findings) - self.errors

    @property
    def ok(self) -> bool:
        return not self.errors


class Document(Struct, frozen=True, kw_only=True):
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
        return Finding(
            file=self.file,
            document=self.number,
            line=line or self.line(path),
            path=f"${written(path)}",
            reason=reason,
            severity=severity,
        )


def read_documents(text: str, *, file: str) -> tuple[Document, ...]:
    """Read a stream of YAML or JSON. A broken document does not hide the others."""
    text = text.removeprefix("\ufeff")
    surrogate = _SURROGATE.search(text)
    if surrogate:
        line = text.count("\n", 0, surrogate.start()) + 1
        half = Unparsable("half of a surrogate pair is no character", line)
        return (_unread(text, half, file),)
    not_json = None
    if text.lstrip().startswith("{"):
        try:
            return tuple(_documents(text, _json_cuts(text), file, is_json=True))
        except json.JSONDecodeError as error:
            reason = f"not JSON: {error.msg[0].lower()}{error.msg[1:]}"
            not_json = Unparsable(reason, error.lineno)
    # A text that begins with a brace may be YAML, too, such as `{a: b}`. If it is neither, its
    # author meant JSON.
    documents = tuple(_documents(text, _yaml_cuts(text), file))
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
    """Read each part of the text between two cuts."""
    for number, (start, end) in enumerate(cuts, start=1):
        part = text[start:end]
        offset = text.count("\n", 0, start)
        template = None
        if not is_json:
            template = _template_line(part, offset)
        else:
            # JSON is YAML, except for tabs, surrogate pairs, and characters that YAML refuses or
            # folds.
            without_tabs = part.replace("\t", " ")
            part = _JSON_CHARACTER.sub(_escaped, without_tabs)
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
    """Return the line in the file of the first `{{ }}`; None without one."""
    mark = _TEMPLATE.search(text)
    if mark is None:
        return None
    return offset + text.count("\n", 0, mark.start()) + 1


def _yaml_cuts(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each document. Lines `---` separate them, as in kubectl. Comments
    and directives before the first `---` belong to the first document."""
    starts = [match.start() for match in _SEPARATOR.finditer(text)]
    if starts and _is_preamble(text[: starts[0]]):
        starts[0] = 0
    else:
        starts.insert(0, 0)
    ends = [*starts[1:], len(text)]
    return list(zip(starts, ends, strict=True))


def _is_preamble(text: str) -> bool:
    """Say whether a text has only comments and directives."""
    lines = filter(str.strip, text.splitlines())  # those that are not empty
    return all(line.startswith(("#", "%")) for line in lines)


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
    """Write a character as YAML reads it back; any other escape stays as it is."""
    character = match["odd"]
    if match["pair"]:
        character = json.loads(f'"{match["pair"]}"')
    if character:
        return f"\\U{ord(character):08x}"
    return match[0]
