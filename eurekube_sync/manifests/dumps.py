"""Reads the output of `kubectl get -o json` or `-o yaml` as plain objects. Each error is one
sentence."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import IO, Any, TypeAlias

import msgspec

from eurekube_sync.files import open_named
from eurekube_sync.manifests.documents import read_documents
from eurekube_sync.model.errors import ConfigurationError

Dumped: TypeAlias = Mapping[str, Any]  # one object, as JSON has it

MAX_JSON_BYTES = 256 * 1024 * 1024
MAX_YAML_BYTES = 32 * 1024 * 1024  # to read YAML takes fifty times as long


def read_dumps(paths: Sequence[str], *, stdin: IO[bytes]) -> tuple[Dumped, ...]:
    """Read all objects of these files; `-` is standard input. Raises ConfigurationError."""
    objects: list[Dumped] = []
    for path in dict.fromkeys(paths):  # each once, in their order
        name = "<stdin>" if path == "-" else path
        try:
            items: list[Dumped] = []
            content = _content(path, stdin)
            for document in _documents(content):
                items += _items(document)
            if not items:
                raise ConfigurationError(" has no object: check whether kubectl get failed")
        except ConfigurationError as error:
            raise ConfigurationError(f"--from {name}{error}") from error
        objects += items
    return tuple(objects)


def _content(path: str, stdin: IO[bytes]) -> bytes:
    """Read a file. Like the functions below, it raises ConfigurationError with the end of a
    sentence about the file."""
    try:
        with nullcontext(stdin) if path == "-" else open_named(path, follow=False) as file:
            content = file.read(MAX_JSON_BYTES + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ELOOP:
            raise ConfigurationError(
                " is a symbolic link: give the file that it leads to"
            ) from error
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError(f" cannot be read: {reason}") from error
    most = MAX_YAML_BYTES
    more = "; JSON may be larger: kubectl get -o json"
    if content.lstrip().startswith(b"{"):
        most = MAX_JSON_BYTES
        more = ""
    if len(content) > most:
        raise ConfigurationError(f" is larger than {most // 1024 // 1024} MiB{more}")
    return content


def _documents(content: bytes) -> Iterator[Any]:
    """Yield each document that is not empty."""
    # It may be several documents, or YAML.
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        yield msgspec.json.decode(content)
        return
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(" is not UTF-8 text") from error
    for document in read_documents(text, file=""):
        if document.findings:
            first = document.findings[0]
            raise ConfigurationError(f", line {first.line}: {first.reason}")
        if document.value is not None:
            yield document.value


def _items(document: Any) -> Iterator[Dumped]:
    """Yield the items of a list, or the single object."""
    if not isinstance(document, dict):
        document = {}
    kind = document.get("kind")
    if not isinstance(kind, str):
        # A truncated list in YAML has no kind either: its items come first.
        raise ConfigurationError(
            " is not the whole output of kubectl get -o json or -o yaml: it has no kind"
        )
    if not kind.endswith("List"):
        yield _object(document)
        return
    if _is_page(document.get("metadata")):
        # The objects of the other pages would look deleted.
        raise ConfigurationError(" is only a part of a list: kubectl get -o json writes all of it")
    items = document.get("items")
    if not isinstance(items, list):
        raise ConfigurationError(" is a list without items: it is cut")
    # The items of a list of one kind may leave out what the list says.
    of_kind: dict[str, Any] = {}
    if kind != "List":
        of_kind = {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")}
    for item in items:
        whole: dict[str, Any] = {}
        if isinstance(item, dict):
            whole = {**of_kind, **item}
        yield _object(whole)


def _is_page(metadata: Any) -> bool:
    """Say whether the metadata of a list tells of more pages."""
    if not isinstance(metadata, dict):
        return False
    return bool(metadata.get("continue") or metadata.get("remainingItemCount"))


def _object(item: dict[str, Any]) -> Dumped:
    """Return an item that has what each object has."""
    metadata = item.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    for text in (item.get("apiVersion"), item.get("kind"), name):
        if not isinstance(text, str):
            raise ConfigurationError(
                " has an item without apiVersion, kind or metadata.name: write it with kubectl get "
                "-o json or -o yaml"
            )
    return item
