"""Reads what `kubectl get -o json` or `-o yaml` wrote, as plain objects. Each trouble is one sentence."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, TypeAlias

import msgspec

from eurekube_sync.files import open_named
from eurekube_sync.manifests.documents import read_documents
from eurekube_sync.manifests.files import STDIN, STDIN_NAME
from eurekube_sync.model.errors import ConfigurationError

Dumped: TypeAlias = Mapping[str, Any]
"""One object, as JSON has it."""

MAX_JSON_BYTES = 256 * 1024 * 1024
MAX_YAML_BYTES = 32 * 1024 * 1024
"""YAML takes fifty times as long as JSON to be read."""


def read_dumps(paths: Sequence[str], *, stdin: IO[bytes]) -> tuple[Dumped, ...]:
    """All objects of these files; `-` is standard input. Raises ConfigurationError."""
    return tuple(one for path in dict.fromkeys(paths) for one in _objects(path, _content(path, stdin)))


def _content(path: str, stdin: IO[bytes]) -> bytes:
    try:
        content = stdin.read(MAX_JSON_BYTES + 1) if path == STDIN else _of_file(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigurationError(f"--from {path} cannot be read: {reason}") from error
    is_json = content.lstrip()[:1] == b"{"
    most = MAX_JSON_BYTES if is_json else MAX_YAML_BYTES
    if len(content) > most:
        more = "" if is_json else "; JSON may be larger: kubectl get -o json"
        raise ConfigurationError(f"--from {path} is larger than {most // 1024 // 1024} MiB{more}")
    return content


def _of_file(path: str) -> bytes:
    try:
        with open_named(path, follow=False) as file:
            return file.read(MAX_JSON_BYTES + 1)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ConfigurationError(f"--from {path} is a symbolic link: give the file that it leads to") from error
        raise


def _objects(path: str, content: bytes) -> Iterator[Dumped]:
    name = STDIN_NAME if path == STDIN else path
    found = [one for document in _documents(name, content) for one in _items(name, document)]
    if not found:
        raise ConfigurationError(f"--from {name} has no object: has kubectl get failed?")
    yield from found


def _documents(name: str, content: bytes) -> Iterator[Any]:
    try:
        yield msgspec.json.decode(content)
        return
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass  # several documents, or YAML
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"--from {name} is not UTF-8 text") from error
    for document in read_documents(text, file=name):
        if document.findings:
            first = document.findings[0]
            raise ConfigurationError(f"--from {name}, line {first.line}: {first.reason}")
        if document.value is not None:
            yield document.value


def _items(name: str, document: Any) -> Iterator[Dumped]:
    """The items of a list, or the one object."""
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind is None and isinstance(document, dict) and "items" in document:  # YAML of kubectl has the kind after them
        raise ConfigurationError(f"--from {name} has items but no kind: it is cut")
    if not isinstance(document, dict) or not isinstance(kind, str):
        raise ConfigurationError(f"--from {name} is not the output of kubectl get -o json or -o yaml: it has no kind")
    items = document.get("items")
    if not kind.endswith("List"):
        yield _object(name, document)
    elif _is_part(document.get("metadata")):
        raise ConfigurationError(f"--from {name} is only a part of a list: kubectl get -o json writes all of it")
    elif isinstance(items, list):
        of_kind = {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
        yield from (
            _object(name, {**(of_kind if kind != "List" else {}), **one} if isinstance(one, dict) else one)
            for one in items
        )
    else:
        raise ConfigurationError(f"--from {name} is a list without items: it is cut")


def _is_part(metadata: Any) -> bool:
    """Whether a page of the API says that more follows: what is missing would be taken for deleted."""
    return isinstance(metadata, dict) and bool(metadata.get("continue") or metadata.get("remainingItemCount"))


def _object(name: str, one: Any) -> Dumped:
    metadata = one.get("metadata") if isinstance(one, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise ConfigurationError(f"--from {name} has an item without metadata.name: it is no object of Kubernetes")
    if not isinstance(one.get("kind"), str) or not isinstance(one.get("apiVersion"), str):
        raise ConfigurationError(
            f"--from {name} has an item without apiVersion and kind: write it with kubectl get -o json or -o yaml"
        )
    checked: Dumped = one
    return checked
