"""Answers of the Kubernetes API in files: those that `run --record` keeps, and what `kubectl get`
wrote. Both are read by one connection. What no file has is unknown, and never empty."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, field

from eurekube_sync.adapters.clock import Moment, moment_of
from eurekube_sync.adapters.kubernetes.calls import CORE, METADATA_ONLY, is_page, said
from eurekube_sync.adapters.kubernetes.connection import Answer, Call, Connection
from eurekube_sync.adapters.kubernetes.custom import GROUP
from eurekube_sync.adapters.no_answer import UNREADABLE
from eurekube_sync.adapters.tries import AnswerTime
from eurekube_sync.model.errors import ClusterError, ClusterRejected, ClusterUnavailable
from eurekube_sync.model.imports import IMPORT
from eurekube_sync.model.ownership import CLUSTER_PATTERN
from eurekube_sync.model.ports import Clock
from eurekube_sync.model.struct import replace

# Path and plural by kind; the group matters, because another one may have a kind of the same name
_PLACES = {
    "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "EurekaSyncer": (GROUP, "eurekasyncers"),
    IMPORT: (GROUP, "eurekaimports"),
    "EndpointSlice": ("/apis/discovery.k8s.io/v1", "endpointslices"),
    "Endpoints": (CORE, "endpoints"),
    "Service": (CORE, "services"),
    "Pod": (CORE, "pods"),
    "Node": (CORE, "nodes"),
    "Ingress": ("/apis/networking.k8s.io/v1", "ingresses"),
    "HTTPRoute": ("/apis/gateway.networking.k8s.io/v1", "httproutes"),
    "Gateway": ("/apis/gateway.networking.k8s.io/v1", "gateways"),
    "ReferenceGrant": ("/apis/gateway.networking.k8s.io/v1beta1", "referencegrants"),
    "Namespace": (CORE, "namespaces"),
}
_OURS = ("EurekaSyncer", IMPORT)
_IDENTITY = f"{CORE}/namespaces/kube-system"


class _Place(NamedTuple):
    """A list of the API, or an object with a name."""

    kind: str
    namespace: str | None
    name: str | None


def _place(path: str) -> _Place | None:
    for kind, (prefix, plural) in _PLACES.items():
        if found := re.fullmatch(f"{prefix}(?:/namespaces/([^/]+))?/{plural}(?:/([^/]+))?", path):
            return _Place(kind, found[1], found[2])
    return None


class SavedAnswer(Struct, frozen=True, kw_only=True):
    """What the API answered to one GET."""

    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    metadata_only: bool = False
    at: Moment = field(default_factory=lambda: Moment(0.0, 0.0))
    status: int | None = 200  # None: no answer came
    body: Any = None  # as data; None if it was no 200, or no JSON
    text: str = ""  # in place of the body, or why no answer came
    date: str = ""  # the header

    @property
    def objects(self) -> Sequence[Any]:
        """The items of a list, or the one object."""
        if not isinstance(self.body, dict):
            return ()
        items = self.body.get("items", [self.body])
        if isinstance(items, list):
            return items
        return ()

    def answer(self) -> Answer:
        """Answer as the API did. Raises ClusterUnavailable if it did not."""
        if self.status is None:
            raise ClusterUnavailable(self.text)
        body = self.text.encode() if self.body is None else msgspec.json.encode(self.body)
        return Answer(status=self.status, body=body, date=self.date)


class SavedConnection:
    """Answers each GET as the files say. Answers to the same call come in their order, and the last
    one is repeated."""

    def __init__(
        self,
        answers: Sequence[SavedAnswer],
        *,
        server: str = "the files of --from",
        missing: str = "",
        moved: Callable[[Moment], None] = lambda _at: None,
    ) -> None:
        """`missing` says how to add what no file has. `moved` is called with the time of each
        answer."""
        self._answers = answers
        self._left: dict[object, list[SavedAnswer]] = {}
        for saved in answers:
            self._left.setdefault(_asked(saved.path, saved.query, saved.metadata_only), []).append(
                saved
            )
        self._server = server
        self._missing = missing
        self._moved = moved

    @property
    def server(self) -> str:
        return self._server

    def send(self, call: Call, within: AnswerTime) -> Answer:
        """Answer the GET of a list or of one object. Raises ClusterRejected for anything else."""
        if call.method != "GET":
            raise ClusterRejected(f"{call}: files are only read")
        metadata_only = METADATA_ONLY in call.accept
        left = self._left.get(_asked(call.path, call.query, metadata_only), [])
        if len(left) > 1:
            saved = left.pop(0)
        elif left:
            saved = left[0]  # the last answer is given again
        else:
            saved = self._part(call, metadata_only)
        self._moved(saved.at)
        return saved.answer()

    def renew(self, within: AnswerTime) -> None:
        """There are no credentials."""

    def _part(self, call: Call, metadata_only: bool) -> SavedAnswer:
        """Return an object, or the list of a namespace, from the list of the whole cluster."""
        place = _place(call.path)
        if place is None:
            raise ClusterRejected(f"no file of --from has {call.path}")
        prefix, plural = _PLACES[place.kind]
        pages: list[SavedAnswer] = []
        for saved in self._answers:
            # A list of whole objects has their metadata as well.
            fits = saved.metadata_only in (False, metadata_only)
            if fits and saved.path == f"{prefix}/{plural}":
                pages.append(saved)
        if place.name is not None:
            return _named(place, pages)
        if not pages:
            raise ClusterRejected(
                f"no file of --from has any {place.kind}{self._missing.format(plural=plural)}"
            )
        kind = METADATA_ONLY if metadata_only else f"{place.kind}List"
        return _listed(place, _of_last_list(pages), kind)


def _asked(path: str, query: Mapping[str, str], metadata_only: bool) -> object:
    return path, frozenset(query.items()), metadata_only


def _named(place: _Place, pages: Sequence[SavedAnswer]) -> SavedAnswer:
    """Return one object of a list. Raises ClusterRejected if the list lacks it."""
    for page in pages:
        for item in page.objects:
            if _names_of(item) == (place.namespace, place.name):
                return replace(pages[-1], status=200, body=item)
    raise ClusterRejected(f"no file of --from has the {place.kind} {place.name}")


def _of_last_list(pages: Sequence[SavedAnswer]) -> Sequence[SavedAnswer]:
    """Return the pages of the last list. Only its first page was asked for without `continue`."""
    first = 0
    for number, page in enumerate(pages):
        if "continue" not in page.query:
            first = number
    return pages[first:]


def _listed(place: _Place, pages: Sequence[SavedAnswer], kind: str) -> SavedAnswer:
    """Return the list of a namespace, or of all; a page that failed is the answer."""
    items: list[Any] = []
    for page in pages:
        if page.body is None:
            return page
        for item in page.objects:
            if place.namespace in (None, _names_of(item)[0]):
                items.append(item)
    return replace(
        pages[-1], body={"kind": kind, "metadata": {"resourceVersion": "1"}, "items": items}
    )


def _names_of(item: Any) -> tuple[Any, Any]:
    """Return the namespace and the name of an object."""
    metadata = item.get("metadata") if isinstance(item, dict) else None
    if isinstance(metadata, dict):
        return (metadata.get("namespace"), metadata.get("name"))
    return (None, None)


def lists_of(objects: Iterable[Mapping[str, Any]]) -> list[SavedAnswer]:
    """Return one list of the whole cluster for each kind that is among these objects. Other kinds
    are left out."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for item in objects:
        prefix, plural = _PLACES.get(item["kind"], ("", ""))
        if prefix and re.sub("^/apis?/", "", prefix) == item["apiVersion"]:
            found.setdefault(f"{prefix}/{plural}", []).append(item)
    return [SavedAnswer(path=path, body={"items": items}) for path, items in found.items()]


def namespaces_of(objects: Iterable[Mapping[str, Any]]) -> frozenset[str] | None:
    """Return the namespaces of these objects. None if there are none, so that the syncers are
    unknown, not absent."""
    names = {item["metadata"].get("namespace") for item in objects}
    return frozenset(name for name in names if isinstance(name, str) and name) or None


class KeptAnswers:
    """A connection that keeps what each pass reads."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._kept: list[tuple[Moment, Call, Answer | ClusterError]] = []
        self._identity: tuple[Call, Answer] | None = (
            None  # the first one, which `KubernetesCluster` remembers
        )

    @property
    def server(self) -> str:
        return self._connection.server

    def begin(self) -> None:
        """Forget the answers of the last pass. A pass does not ask for the UID of the cluster if it
        is known."""
        self._kept = []
        if self._identity is not None:
            self._kept.append((moment_of(self._clock), *self._identity))

    def answers(self) -> list[SavedAnswer]:
        """Return the answers since the pass began."""
        return [_saved(at, call, answer) for at, call, answer in self._kept]

    def send(self, call: Call, within: AnswerTime) -> Answer:
        try:
            answer = self._connection.send(call, within)
        except ClusterError as error:
            self._keep(call, error)
            raise
        self._keep(call, answer)
        if self._identity is None and call.path == _IDENTITY and _has_uid(answer):
            self._identity = call, answer
        return answer

    def renew(self, within: AnswerTime) -> None:
        self._connection.renew(within)

    def _keep(self, call: Call, answer: Answer | ClusterError) -> None:
        """Keep an answer that the plan may be made from. A single object of ours is read only
        before a write."""
        place = _place(call.path)
        if call.method != "GET" or place is None:
            return
        is_before_a_write = place.name is not None and place.kind in _OURS
        if not is_before_a_write:
            self._kept.append((moment_of(self._clock), call, answer))


class _Metadata(msgspec.Struct):
    uid: str


class _Object(msgspec.Struct):
    metadata: _Metadata


_OBJECT = msgspec.json.Decoder(_Object)


def _has_uid(answer: Answer) -> bool:
    with suppress(*UNREADABLE):
        return (
            answer.status == 200
            and CLUSTER_PATTERN.fullmatch(_OBJECT.decode(answer.body).metadata.uid) is not None
        )
    return False


def _saved(at: Moment, call: Call, answer: Answer | ClusterError) -> SavedAnswer:
    """Of anything but a 200 with JSON, keep a part of the text without credentials."""
    asked = SavedAnswer(
        path=call.path, query=call.query, metadata_only=METADATA_ONLY in call.accept, at=at
    )
    if isinstance(answer, ClusterError):
        return replace(asked, status=None, text=str(answer))
    asked = replace(asked, status=answer.status, date=answer.date)
    if answer.status == 200:
        with suppress(*UNREADABLE):
            return replace(asked, body=msgspec.json.decode(answer.body))
    if is_page(answer):
        return replace(asked, text="<html>")
    return replace(
        asked, text=msgspec.json.encode({"kind": "Status", "message": said(answer)}).decode()
    )
