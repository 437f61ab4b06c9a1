"""Reads manifests from files, folders and standard input."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TypeAlias

from eurekube_sync.files import open_named, open_regular
from eurekube_sync.manifests.documents import Finding, Report
from eurekube_sync.manifests.validation import validate_text
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import counted

STDIN = "-"
STDIN_NAME = "<stdin>"
SUFFIXES = (".yaml", ".yml", ".json")
MAX_BYTES = 32 * 1024 * 1024  # larger than any rendered chart; the API server takes 3 MiB a request
Check: TypeAlias = Callable[[str, str], Report]  # of a text, and the name of its file


def validate_paths(
    paths: Sequence[str],
    *,
    stdin: IO[bytes],
    allow_empty: bool = False,
    check: Check = validate_text,
) -> Report:
    """Check files, folders (recursively) and `-`. Finding no object of ours is an error
    unless `allow_empty`, because the step that renders the manifests may have failed."""
    report = Report()
    for path in dict.fromkeys(paths):  # each once, in their order
        for of_file in _reports(path, stdin, check):
            report += of_file
    if report.syncers or report.imports or allow_empty or report.errors:
        return report
    name = ""
    if len(paths) == 1:
        name = STDIN_NAME if paths[0] == STDIN else paths[0]
    only = "nothing at all"
    if report.others:
        only = f"only {counted(report.others, 'object')} of other kinds"
    nothing = (
        f"no EurekaSyncer or EurekaImport was found, {only}; if that is right, give --allow-empty"
    )
    return replace(report, findings=_unread(name, nothing).findings)


def _reports(path: str, stdin: IO[bytes], check: Check) -> Iterator[Report]:
    """Yield a report for each file of the path, in a fixed order."""
    if path == STDIN:
        yield _of_content(STDIN_NAME, stdin.read(MAX_BYTES + 1), check)
    elif os.path.isdir(path):
        yield from _of_folder(path, check)
    else:
        yield _of_file(path, check, named=True)


def _of_folder(folder: str, check: Check) -> Iterator[Report]:
    """Check the manifests below a folder, and report folders that cannot be read. Hidden names are
    skipped, because a mounted ConfigMap has its files a second time in `..data`."""
    unreadable: list[OSError] = []
    for place, folders, names in os.walk(folder, onerror=unreadable.append):
        for name in folders:
            if os.path.islink(os.path.join(place, name)):
                names.append(name)  # it is not followed, so its name decides
        # `os.walk` goes on with what is left in this list.
        folders[:] = sorted(filter(_is_shown, folders))
        for name in sorted(filter(_is_shown, names)):
            if name.endswith(SUFFIXES):
                path = os.path.join(place, name)
                yield _of_file(path, check, named=False)
    for error in unreadable:
        yield _unread(error.filename, f"cannot be read: {error.strerror}")


def _is_shown(name: str) -> bool:
    return not name.startswith(".")


def _of_file(path: str, check: Check, *, named: bool) -> Report:
    """Check one file; `named` by the user, or found in a folder."""
    try:
        with open_named(path) if named else open_regular(path, follow=True) as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        return _unread(path, f"cannot be read: {error.strerror}")
    except ValueError as error:  # such as a zero byte in its name
        return _unread(path, f"cannot be read: {error}")
    return _of_content(path, content, check)


def _of_content(file: str, content: bytes, check: Check) -> Report:
    if len(content) > MAX_BYTES:
        most = MAX_BYTES // 1024 // 1024
        return _unread(file, f"is larger than {most} MiB")
    try:
        return check(content.decode("utf-8-sig"), file)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return _unread(file, "is not UTF-8 text", line=line)


def _unread(file: str, reason: str, *, line: int | None = None) -> Report:
    finding = Finding(file=file, document=None, line=line, path="$", reason=reason)
    return Report(findings=(finding,), files=1)
