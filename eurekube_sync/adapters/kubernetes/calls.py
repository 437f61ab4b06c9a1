"""Calls to the Kubernetes API, the errors of their answers, and lists in pages, each Complete or
Unknown.

A list is Complete if every page came, had the right kind, and was of the same resourceVersion. The
first page is asked for without a resourceVersion, which is a consistent read; with
`resourceVersion=0` it may be arbitrarily old.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from eurekube_sync.adapters.kubernetes import objects
from eurekube_sync.adapters.kubernetes.connection import Answer, Call, Connection
from eurekube_sync.adapters.no_answer import UNREADABLE, reason
from eurekube_sync.adapters.tries import NO_ANSWER, AnswerTime, Tries, TryResult
from eurekube_sync.model import errors
from eurekube_sync.model.errors import (
    ClusterDenied,
    ClusterError,
    ClusterRejected,
    ClusterUnavailable,
    unknown_from,
)
from eurekube_sync.model.sanitize import LOOKED_AT, excerpt
from eurekube_sync.model.sources import Cause, Complete, Listed, Source, Unknown

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
_TRANSIENT = frozenset({429, 500, 502, 503, 504})

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

PAGE = 500
CORE = "/api/v1"
DISCOVERY = "/apis/discovery.k8s.io/v1"
METADATA_ONLY = "PartialObjectMetadataList"
NOT_READ = Unknown(cause=Cause.NOT_READ, message="this namespace is outside the scope of this pass")
_NOT_SERVED = Unknown(
    cause=Cause.UNUSABLE, message="the Kubernetes API does not serve this resource (404)"
)
_WALKS = 2  # after a 410 in the middle of a list, it is read again from its begin, once

_Items: TypeAlias = dict[bytes, tuple[str, Any]]
"""The namespace and the object of each item, by the digest of its bytes."""
_Sources: TypeAlias = Mapping[str, Source[tuple[T, ...]]]  # by namespace


class Readable(Protocol[T_co]):
    @property
    def metadata(self) -> objects.Meta: ...

    def read(self) -> T_co | None: ...  # None for an item to skip


class Kind(Struct, Generic[T], frozen=True):
    prefix: str  # `CORE`, or `/apis/GROUP/VERSION`
    plural: str
    list_kind: str  # with `METADATA_ONLY`, only metadata is asked for
    items: msgspec.json.Decoder[Readable[T]]
    when_absent: Unknown = _NOT_SERVED  # what a 404 means
    namespaced: bool = True
    labels: str = ""  # a label selector: only objects that match it are listed
    remembered: bool = False
    """Whether an item with the same bytes is the same object in the next list, so that later stages
    see that it did not change (`desired/resolve`). For rare lists this would waste memory."""

    def path(self, namespace: str | None) -> str:
        scope = f"/namespaces/{namespace}" if namespace is not None else ""
        return f"{self.prefix}{scope}/{self.plural}"


class _HeadMeta(objects.Wire):
    name: str
    namespace: str = ""


class _Head(objects.Wire):
    metadata: _HeadMeta  # of an item that cannot be decoded as a whole


class ListMeta(msgspec.Struct):
    continue_: str = msgspec.field(name="continue", default="")
    resource_version: str = msgspec.field(name="resourceVersion", default="")


class RawPage(msgspec.Struct):
    kind: str
    items: list[msgspec.Raw] | None  # required: a page without items is no list
    metadata: ListMeta


_PAGE = msgspec.json.Decoder(RawPage)
_HEAD = msgspec.json.Decoder(_Head)


class _CauseItem(msgspec.Struct):
    field: str = ""
    message: str = ""


class _Details(msgspec.Struct):
    causes: list[_CauseItem] | None = None


class _Status(msgspec.Struct):
    kind: str = ""
    message: str = ""
    details: _Details | None = None


_STATUS = msgspec.json.Decoder(_Status)


class Calls:
    def __init__(self, connection: Connection, tries: Tries) -> None:
        self._connection = connection
        self._tries = tries
        self._remembered: dict[object, _Items] = {}  # of the last list, by `Kind.items`

    def send(self, call: Call) -> Answer:
        """Raise ClusterUnavailable for a transient status or for lack of time, ClusterDenied for a
        second 401."""

        def once(within: AnswerTime) -> TryResult[Answer]:
            try:
                answer = self._connection.send(call, within)
                if answer.status == 401:
                    self._tries.count("401")
                    self._connection.renew(within)
                    answer = self._connection.send(call, within)
            except errors.ConfigurationError as error:
                raise ClusterDenied(
                    "the Kubernetes API refused us (401), and the credentials could not be read "
                    f"again: {error}"
                ) from error
            except errors.ClusterCredentialsMissing:
                raise
            except ClusterUnavailable as error:
                self._tries.count(NO_ANSWER)
                return error, ""
            self._tries.count(str(answer.status))
            if answer.status == 401:
                raise ClusterDenied(
                    f"the Kubernetes API does not know who we are (401 to {call}): log in again"
                )
            if answer.status not in _TRANSIENT:
                return answer, None
            return ClusterUnavailable(_answered(call, answer)), answer.retry_after

        server = self._connection.server
        return self._tries.call(
            once, lambda why: ClusterUnavailable(f"{call} to the Kubernetes API at {server} {why}")
        )

    def expect(self, call: Call, *statuses: int) -> Answer:
        """Return an answer with one of these statuses; raise the error of any other."""
        answer = self.send(call)
        if answer.status not in statuses:
            raise refusal(call, answer)
        return answer

    def read_one(self, path: str) -> Answer | Unknown:
        """Return the answer to a GET, if it is a 200 or a 404 and no web page; else Unknown."""
        call = Call(method="GET", path=path)
        try:
            answer = self.send(call)
        except ClusterError as error:
            return unknown_from(error)
        if answer.status not in (200, 404) or is_page(answer):
            return unknown_from(refusal(call, answer))
        return answer

    def read_object(
        self, path: str, read: Callable[[bytes], T], what: str, *, absent: Unknown
    ) -> Source[T]:
        """Return what `read` makes of the answer's body; `absent` for a 404."""
        answer = self.read_one(path)
        if isinstance(answer, Unknown):
            return answer
        return object_in(answer, read, what, absent=absent)

    def list_all(self, kind: Kind[T], namespaces: Sequence[str] | None) -> Listed[T]:
        """List the whole cluster at once, or each namespace by itself. Objects without a namespace
        are under ""."""
        if namespaces is None:
            try:
                listed, self._remembered[kind.items] = self._walk(kind, None)
            except ClusterError as error:
                return Listed(by_namespace={}, elsewhere=unknown_from(error))
            return Listed(by_namespace=listed, elsewhere=Complete(data=()))
        sources: dict[str, Source[tuple[T, ...]]] = {}
        remembered: _Items = {}
        for name in dict.fromkeys(namespaces):
            try:
                listed, items = self._walk(kind, name)
            except ClusterError as error:
                sources[name] = unknown_from(error)
                if not isinstance(error, ClusterUnavailable):
                    continue
                # Each other namespace would take all tries, too.
                message = (
                    f"{kind.plural} were not listed, because the API gave no answer for "
                    f"namespace {name}"
                )
                rest = Unknown(cause=Cause.UNAVAILABLE, message=message)
                by_namespace = dict.fromkeys(namespaces, rest) | sources
                return Listed(by_namespace=by_namespace, elsewhere=NOT_READ)
            remembered |= items
            sources[name] = listed.get(name, Complete(data=()))
        self._remembered[kind.items] = remembered
        return Listed(by_namespace=sources, elsewhere=NOT_READ)

    def _walk(self, kind: Kind[T], namespace: str | None) -> tuple[_Sources[T], _Items]:
        for _ in range(_WALKS):
            pages = _Pages(kind, namespace, self._remembered.get(kind.items, {}))
            if self._pages(pages):
                return pages.sources(), pages.remembered
        path = kind.path(namespace)
        message = f"the list {path} could not be read to its end: its pages expired twice"
        raise _rejected(Unknown(cause=Cause.UNAVAILABLE, message=message))

    def _pages(self, pages: _Pages[Any]) -> bool:
        """Read all pages; return False if the resourceVersion of the list expired or changed in
        between."""
        token = ""
        revision = ""
        limit = PAGE
        while True:
            call = pages.call(limit, token)
            try:
                page = self._page(pages.kind, call)
            except errors.ClusterTooLarge:  # as when a few hundred objects have large annotations
                if limit == 1:
                    raise
                limit = max(1, limit // 8)
                continue
            if page is None or (revision and page.metadata.resource_version != revision):
                return False
            revision = page.metadata.resource_version
            pages.read(page, call)
            following = page.metadata.continue_
            if not following:
                return True
            if following == token:
                raise _wrong_answer(call, "the same page again")
            token = following

    def _page(self, kind: Kind[Any], call: Call) -> RawPage | None:
        answer = self.expect(call, 200, 404, 410)
        if answer.status == 410:
            return None
        if answer.status == 404 and not is_page(answer):
            raise _rejected(kind.when_absent)
        try:
            page = _PAGE.decode(answer.body)
        except UNREADABLE as error:
            if not is_page(answer):
                raise _wrong_answer(call, "no complete list") from error
            got = f"the Kubernetes API did not answer {call} with a list, but with {said(answer)}"
            raise ClusterRejected(got) from error
        if page.kind != kind.list_kind:
            raise _wrong_answer(call, f"a {excerpt(page.kind, most=80)}")
        return page


class _Pages(Generic[T]):
    """What the pages of one list have shown."""

    def __init__(self, kind: Kind[T], namespace: str | None, known: _Items) -> None:
        self.kind = kind
        self.remembered: _Items = {}
        self._namespace = namespace
        self._known = known  # of the list before
        self._values: dict[str, list[T]] = {}
        self._unreadable: dict[str, Unknown] = {}

    def call(self, limit: int, token: str) -> Call:
        """Return the call for a page: the first one, or the one that a token names."""
        query = {"limit": str(limit)}
        if self.kind.labels:
            query["labelSelector"] = self.kind.labels
        if token:
            query["continue"] = token
        accept = "application/json"
        if self.kind.list_kind == METADATA_ONLY:
            accept += f";as={METADATA_ONLY};g=meta.k8s.io;v=v1"
        path = self.kind.path(self._namespace)
        return Call(method="GET", path=path, query=query, accept=accept)

    def read(self, page: RawPage, call: Call) -> None:
        """Read the items of a page. Raise ClusterRejected if one is of another namespace."""
        kind, known, values = self.kind, self._known, self._values
        for raw in page.items or ():
            name = digest(raw)
            item = known.get(name)
            if item is None:
                try:
                    decoded = kind.items.decode(raw)
                    item = decoded.metadata.namespace, decoded.read()
                except UNREADABLE as error:
                    namespace, unknown = _unreadable(kind, raw, error, self._namespace)
                    self._unreadable[namespace] = unknown
                    continue
            namespace, value = item
            if kind.remembered:
                self.remembered[name] = item
            if bool(namespace) is not kind.namespaced or self._namespace not in (None, namespace):
                raise _wrong_answer(call, f"an item of namespace {namespace!r}")
            if value is not None:
                values.setdefault(namespace, []).append(value)

    def sources(self) -> _Sources[T]:
        """Return the objects by namespace. A namespace with an unreadable item is Unknown."""
        sources: dict[str, Source[tuple[T, ...]]] = {}
        for namespace, values in self._values.items():
            sources[namespace] = Complete(data=tuple(values))
        return sources | self._unreadable


def object_in(
    answer: Answer, read: Callable[[bytes], T], what: str, *, absent: Unknown
) -> Source[T]:
    """Return what `read` makes of an answer's body; `absent` for a 404."""
    if answer.status == 404:
        return absent
    try:
        return Complete(data=read(answer.body))
    except UNREADABLE as error:
        return unusable(f"{what} cannot be read, because the answer is damaged: {reason(error)}")


def unusable(message: str) -> Unknown:
    return Unknown(cause=Cause.UNUSABLE, message=message)


def writing(method: str, path: str, body: Any, content_type: str = "application/json") -> Call:
    return Call(method=method, path=path, body=msgspec.json.encode(body), content_type=content_type)


def decoded(call: Call, answer: Answer, decoder: msgspec.json.Decoder[T], what: str) -> T:
    """Return the object in an answer; raise ClusterRejected if it is unreadable."""
    try:
        return decoder.decode(answer.body)
    except UNREADABLE as error:
        raise ClusterRejected(f"the answer to {call} is not {what}: {reason(error)}") from error


def refusal(call: Call, answer: Answer) -> ClusterError:
    if answer.status == 403:
        return ClusterDenied(f"the Kubernetes API forbids {call}: {said(answer)}")
    return ClusterRejected(_answered(call, answer))


def refused_fields(answer: Answer) -> Mapping[str, str]:
    """Return the fields that a 422 refuses, each with the API's words. There is none if the `test`
    of a JSON Patch failed: such a 422 has no cause [real 1.28, 1.36]."""
    if answer.status != 422:
        return {}
    try:
        details = _STATUS.decode(answer.body).details or _Details()
    except UNREADABLE:
        return {}
    return {cause.field: cause.message for cause in details.causes or ()}


def is_terminating(answer: Answer) -> bool:
    """Say whether something new was refused because its namespace is being deleted: the cause in
    the Status of a 403 [real 1.36]."""
    return answer.status == 403 and b'"NamespaceTerminating"' in answer.body


def exists(answer: Answer) -> bool:
    """Say whether a 409 means that an object of this name exists, by the reason of its Status."""
    return answer.status == 409 and b'"AlreadyExists"' in answer.body


def _answered(call: Call, answer: Answer) -> str:
    if is_page(answer):
        page = "with a web page: a login or a proxy answers instead of the Kubernetes API"
        return f"{call} was answered {answer.status} {page}"
    return f"the Kubernetes API answered {answer.status} to {call}: {said(answer)}"


def said(answer: Answer) -> str:
    """Return an excerpt of a Status's message, or of the body, without credentials."""
    with suppress(*UNREADABLE):
        status = _STATUS.decode(answer.body)
        if status.kind == "Status":
            return excerpt(status.message, most=300, secrets=answer.secrets) or "no message"
    if is_page(answer):
        return "a web page: a login or a proxy answers in its place"
    text = answer.body[: 5 * LOOKED_AT].decode(errors="replace")
    return excerpt(text, most=120, secrets=answer.secrets) or "no message"


def is_page(answer: Answer) -> bool:
    return answer.body[:120].lstrip().lower().startswith((b"<!doctype", b"<html"))


def _rejected(unknown: Unknown) -> ClusterError:
    error = ClusterRejected(unknown.message)  # for each cause, because the server did answer
    error.cause = unknown.cause
    return error


def digest(raw: bytes | memoryview) -> bytes:
    """Identify the bytes of an item."""
    return blake2b(raw, digest_size=16).digest()


def _wrong_answer(call: Call, got: str) -> ClusterRejected:
    return ClusterRejected(f"the Kubernetes API answered {call} with {got}")


def _unreadable(
    kind: Kind[Any], raw: msgspec.Raw, error: Exception, namespace: str | None
) -> tuple[str, Unknown]:
    """Return the item's namespace, and why that is Unknown; raise ClusterRejected without a
    namespace."""
    try:
        head = _HEAD.decode(raw).metadata
    except UNREADABLE:
        head = _HeadMeta(name="")
    is_elsewhere = bool(head.namespace) is not kind.namespaced
    if not head.name or is_elsewhere or namespace not in (None, head.namespace):
        message = f"{kind.path(namespace)} holds an item that cannot be read: {reason(error)}"
        raise ClusterRejected(message) from error
    name = f"{kind.plural} {head.namespace}/{head.name}"
    return head.namespace, unusable(f"{name} cannot be read: {reason(error)}")
