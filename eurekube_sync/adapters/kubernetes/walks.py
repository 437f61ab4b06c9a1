"""LIST, in pages: all of a source, or Unknown; never less without saying so.

A walk is whole when every page came, each a list of the kind that was asked for, all of one revision. The first page
is asked for without a resourceVersion: a consistent read. `resourceVersion=0` may be arbitrarily old.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from eurekube_sync.adapters.kubernetes import wire
from eurekube_sync.adapters.kubernetes.calls import Calls, is_page, refusal, said
from eurekube_sync.adapters.kubernetes.connection import Answer, Call
from eurekube_sync.adapters.kubernetes.decoded import Decoded, Read, digest
from eurekube_sync.adapters.no_answer import UNREADABLE, reason
from eurekube_sync.model.errors import ClusterError, ClusterTooLarge, ClusterUnavailable, unknown_from
from eurekube_sync.model.foreign_text import excerpt
from eurekube_sync.model.sources import Cause, Complete, Listed, Source, Unknown
from eurekube_sync.model.values import dataclass

PAGE = 500
METADATA_ONLY = "PartialObjectMetadataList"
_NOT_SERVED = Unknown(cause=Cause.UNUSABLE, message="the Kubernetes API does not serve this resource (404)")
_WALKS = 2
"""A 410 in the middle starts the walk again from the beginning, once."""

I = TypeVar("I")  # noqa: E741  an item of the wire
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[I, T]):
    """What is listed, and how an item is read. `project` gives None for one that is not ours to see."""

    plural: str
    list_kind: str
    """`METADATA_ONLY` asks for nothing else."""
    item: type[I]
    project: Callable[[I], T | None]
    prefix: str = "/api/v1"
    """Or `/apis/GROUP/VERSION`."""
    when_absent: Unknown = _NOT_SERVED
    """What a 404 means."""
    namespaced: bool = True

    @property
    def accept(self) -> str:
        as_ = f";as={METADATA_ONLY};g=meta.k8s.io;v=v1" if self.list_kind == METADATA_ONLY else ""
        return f"application/json{as_}"

    def path(self, namespace: str | None) -> str:
        """The path of the list; None for the whole cluster."""
        scope = f"/namespaces/{namespace}" if namespace is not None else ""
        return f"{self.prefix}{scope}/{self.plural}"


class _NotWhole(Exception):
    """The walk lost its revision; what it has so far is of no use."""


class _Failed(Exception):
    """The walk ended; `unknown` says why, `unanswered` whether because an answer was missing."""

    def __init__(self, unknown: Unknown, *, unanswered: bool = False) -> None:
        super().__init__(unknown.message)
        self.unknown = unknown
        self.unanswered = unanswered


class _TooLarge(_Failed):
    """The page has more bytes than are taken, as where a few hundred objects have much in their annotations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found(Generic[T]):
    objects: Mapping[str, list[T]]
    """By namespace."""
    unreadable: Mapping[str, Unknown]
    """Namespaces with an item of unexpected types: something is there that we cannot see."""
    read: Mapping[bytes, Read]
    """All items that could be read."""


def list_all(
    calls: Calls, kind: Kind[I, T], namespaces: Sequence[str] | None, decoded: Decoded | None = None
) -> Listed[T]:
    """The whole cluster in one walk, or each of the namespaces by itself. Never raises. `decoded` has the items of the
    last list, and keeps those of this one."""
    decoded = decoded or Decoded()
    if namespaces is not None:
        not_read = Unknown(cause=Cause.NOT_READ, message="this namespace is outside the scope of this pass")
        return Listed(by_namespace=_one_by_one(calls, kind, namespaces, decoded), elsewhere=not_read)
    try:
        found = _walk(calls, kind, None, decoded)
    except _Failed as failed:
        return Listed(by_namespace={}, elsewhere=failed.unknown)
    decoded.keep(kind.project, {None: found.read})
    complete: dict[str, Source[tuple[T, ...]]] = {
        name: Complete(data=tuple(objects)) for name, objects in found.objects.items()
    }
    return Listed(by_namespace={**complete, **found.unreadable}, elsewhere=Complete(data=()))


def list_cluster_scoped(calls: Calls, kind: Kind[I, T]) -> Source[tuple[T, ...]]:
    """All objects of a kind that lives in no namespace. Never raises."""
    try:
        return _together(_walk(calls, kind, None, Decoded()))
    except _Failed as failed:
        return failed.unknown


def _one_by_one(
    calls: Calls, kind: Kind[I, T], namespaces: Sequence[str], decoded: Decoded
) -> Mapping[str, Source[tuple[T, ...]]]:
    """A server that gives one of them no answer is not asked for the next: each would take all tries and timeouts."""
    sources: dict[str, Source[tuple[T, ...]]] = {}
    read: dict[str | None, Mapping[bytes, Read]] = {}
    for name in dict.fromkeys(namespaces):
        try:
            found = _walk(calls, kind, name, decoded)
            sources[name], read[name] = _together(found), found.read
        except _Failed as failed:
            sources[name] = failed.unknown
            if failed.unanswered:
                message = f"{kind.plural} were not listed, because the API gave no answer for namespace {name}"
                rest = Unknown(cause=Cause.UNAVAILABLE, message=message)
                return dict.fromkeys(namespaces, rest) | sources
    decoded.keep(kind.project, read)
    return sources


def _together(found: _Found[T]) -> Source[tuple[T, ...]]:
    for unknown in found.unreadable.values():
        return unknown
    return Complete(data=tuple(item for objects in found.objects.values() for item in objects))


def _walk(calls: Calls, kind: Kind[I, T], namespace: str | None, decoded: Decoded) -> _Found[T]:
    known = decoded.before(kind.project, namespace)
    for _ in range(_WALKS):
        try:
            return _pages(calls, kind, namespace, known)
        except _NotWhole:
            continue
    message = f"the list {kind.path(namespace)} could not be read to its end: its pages expired twice"
    raise _Failed(Unknown(cause=Cause.UNAVAILABLE, message=message))


def _pages(calls: Calls, kind: Kind[I, T], namespace: str | None, known: Mapping[bytes, Read]) -> _Found[T]:
    decode = msgspec.json.Decoder(kind.item).decode
    objects: dict[str, list[T]] = {}
    unreadable: dict[str, Unknown] = {}
    read: dict[bytes, Read] = {}
    token, revision, limit = "", "", PAGE
    while True:
        query = {"limit": str(limit)} | ({"continue": token} if token else {})
        call = Call(method="GET", path=kind.path(namespace), query=query, accept=kind.accept)
        try:
            page = _page(calls, kind, call, namespace)
        except _TooLarge:
            if limit == 1:
                raise
            limit = max(1, limit // 8)
            continue
        if revision and page.metadata.resource_version != revision:
            raise _NotWhole
        revision = page.metadata.resource_version
        for raw in page.items or ():
            name = digest(raw)
            if (again := known.get(name)) is None:
                try:
                    item = decode(raw)
                    projected = kind.project(item)
                    again = item.metadata.namespace, projected  # type: ignore[attr-defined]
                except UNREADABLE as error:
                    where, unknown = _unreadable(kind, raw, error, namespace)
                    unreadable[where] = unknown
                    continue
            read[name] = again
            where, projected = again
            if bool(where) is not kind.namespaced or (namespace is not None and where != namespace):
                raise _Failed(_unusable(call, f"an item of the namespace {where!r}"))
            if projected is not None:
                objects.setdefault(where, []).append(projected)
        following = page.metadata.continue_
        if not following:
            return _Found(objects=objects, unreadable=unreadable, read=read)
        if following == token:
            raise _Failed(_unusable(call, "the same page again and again"))
        token = following


def _page(calls: Calls, kind: Kind[I, T], call: Call, namespace: str | None) -> wire.RawPage:
    try:
        answer = calls.send(call)
    except ClusterError as error:
        failed = _TooLarge if isinstance(error, ClusterTooLarge) else _Failed
        raise failed(unknown_from(error), unanswered=isinstance(error, ClusterUnavailable)) from error
    if answer.status == 410:
        raise _NotWhole
    if answer.status == 404:
        raise _Failed(kind.when_absent)
    if answer.status != 200:
        raise _Failed(unknown_from(refusal(call, answer)))
    try:
        page = _PAGE.decode(answer.body)
    except UNREADABLE as error:
        if not is_page(answer):
            raise _Failed(_unusable(call, "no complete list")) from error
        message = f"the Kubernetes API did not answer {call} with a list, but with {said(answer)}"
        raise _Failed(Unknown(cause=Cause.UNUSABLE, message=message)) from error
    if page.kind != kind.list_kind:
        raise _Failed(_unusable(call, f"a {excerpt(page.kind, most=80)}"))
    return page


_PAGE = msgspec.json.Decoder(wire.RawPage)
_HEAD = msgspec.json.Decoder(wire.Head)


def _unreadable(kind: Kind[I, T], raw: msgspec.Raw, error: Exception, namespace: str | None) -> tuple[str, Unknown]:
    """One item that cannot be read hides something: its namespace is Unknown, or all when even that cannot be read."""
    try:
        head = _HEAD.decode(raw).metadata
    except UNREADABLE:
        message = f"{kind.path(namespace)} holds an item that cannot be read: {reason(error)}"
        raise _Failed(Unknown(cause=Cause.UNUSABLE, message=message)) from error
    message = f"{kind.plural} {head.namespace}/{head.name} cannot be read: {reason(error)}"
    return head.namespace, Unknown(cause=Cause.UNUSABLE, message=message)


def _unusable(call: Call, got: str) -> Unknown:
    return Unknown(cause=Cause.UNUSABLE, message=f"the Kubernetes API answered {got} to {call}")


def read_one(calls: Calls, call: Call) -> Answer | Unknown:
    """The 200 answer of a GET, or why there is none. A 404 is an answer too, and a web page never is."""
    try:
        answer = calls.send(call)
    except ClusterError as error:
        return unknown_from(error)
    return answer if answer.status in (200, 404) and not is_page(answer) else unknown_from(refusal(call, answer))


def read_object(calls: Calls, path: str, type_: type[T], what: str) -> T | Unknown | None:
    """One object, or why it could not be read; None for a 404."""
    answer = read_one(calls, Call(method="GET", path=path))
    if isinstance(answer, Unknown) or answer.status == 404:
        return answer if isinstance(answer, Unknown) else None
    try:
        return msgspec.json.decode(answer.body, type=type_)
    except UNREADABLE as error:
        return Unknown(cause=Cause.UNUSABLE, message=f"{what} cannot be read: {reason(error)}")
