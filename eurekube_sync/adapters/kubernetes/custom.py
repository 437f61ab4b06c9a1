"""The objects of one of our CRDs: their list, finalizer and status, and the CRD itself.

Each write requires the version that it was made for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.json import Decoder

from eurekube_sync.adapters.clock import ahead
from eurekube_sync.adapters.kubernetes import calls, objects, syncers
from eurekube_sync.adapters.kubernetes.calls import Calls, Kind
from eurekube_sync.adapters.kubernetes.connection import Answer, Call
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.errors import ClusterConflict, ClusterRejected
from eurekube_sync.model.imports import ImportObject, ImportStatus
from eurekube_sync.model.kubernetes import CrdAge, SyncerObject, SyncerStatus
from eurekube_sync.model.ports import Clock
from eurekube_sync.model.sanitize import excerpt
from eurekube_sync.model.sources import Cause, Complete, Listed, Source, Unknown
from eurekube_sync.model.struct import replace

GROUP = "/apis/eurekube.io/v1"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_DEFINITION = Decoder(syncers.DefinitionItem)
_log = logging.getLogger(__name__)
_TRIES = 3  # how often a write is tried if another writer was faster, each time from a new read

T = TypeVar("T", bound=SyncerObject | ImportObject)


class CustomKind(Struct, Generic[T], frozen=True, kw_only=True):
    """A kind of ours, and how it is called in messages."""

    listed: Kind[T]
    noun: str  # `syncer`
    article: str  # `a EurekaSyncer`
    status_fields: Callable[[Any], Mapping[str, Any]]  # of its status, for a merge patch

    @property
    def crd(self) -> str:
        return f"{self.listed.plural}.eurekube.io"

    @property
    def crd_path(self) -> str:
        return f"{_DEFINITIONS}/{self.crd}"

    def path(self, thing: T) -> str:
        return f"{self.listed.path(thing.namespace)}/{thing.name}"


def crd_missing(plural: str) -> Unknown:
    """Say that the CRD of a kind is not installed."""
    message = (
        f"the CRD {plural}.eurekube.io is not installed: eurekube-sync crd | kubectl apply "
        "--server-side -f -"
    )
    return Unknown(cause=Cause.CRD_MISSING, message=message)


class CustomObjects(Generic[T]):
    """Reads and writes of one kind. Safe in several threads."""

    def __init__(self, calls_: Calls, clock: Clock, kind: CustomKind[T]) -> None:
        self._calls = calls_
        self._clock = clock
        self._kind = kind
        self._finalized: dict[tuple[str, str], str] = {}
        """The version with our finalizer, by UID and listed version."""
        self._dropped: frozenset[str] = frozenset()
        """The fields of a status that the CRD lacks, as the answers since the last list show."""
        self._told: frozenset[str] = frozenset()  # those that were logged

    def list_all(self, namespaces: Sequence[str] | None) -> Listed[T]:
        self._finalized.clear()
        self._dropped = frozenset()
        return self._calls.list_all(self._kind.listed, namespaces)

    def crd_live(self) -> Source[CrdAge]:
        what = "the CustomResourceDefinition"
        begun = self._clock.now()
        answer = self._calls.read_one(self._kind.crd_path)
        if isinstance(answer, Unknown):
            return answer
        absent = self._kind.listed.when_absent
        definition = calls.object_in(answer, _DEFINITION.decode, what, absent=absent)
        if isinstance(definition, Unknown):
            return definition
        if definition.data.terminating:
            message = (
                f"{what} {self._kind.crd} is being deleted, and every {self._kind.noun} with it"
            )
            return Unknown(cause=Cause.CRD_TERMINATING, message=message)
        created = definition.data.metadata.creation_timestamp
        if created is None:
            return calls.unusable(f"{what} does not say when it was created (creationTimestamp)")
        by_server = objects.seconds(created)
        # Instances have times of our clock. If it is ahead of the server's, they look younger than
        # they are, and so must the CRD. If the server does not tell its time, everything counts as
        # older than the CRD.
        apart = ahead(answer.date, begun, self._clock.now())
        if apart is None:
            return Complete(data=CrdAge(by_server, self._clock.now()))
        later = 1 - apart if apart < 0 else 0.0  # the header has whole seconds
        return Complete(data=CrdAge(by_server, by_server + later))

    def add_finalizer(self, thing: T) -> T:
        """Add our finalizer, from a new read if the object has changed in between."""
        noun = self._kind.noun
        current: T | None = thing
        for _ in range(_TRIES):
            if current is None or not _has_same_spec(current, thing):
                raise ClusterConflict(
                    f"{noun} {thing.ref} changed or is gone; the next pass handles that"
                )
            if current.deleted is not None:
                raise ClusterConflict(
                    f"{noun} {thing.ref} is being deleted, so no finalizer is added any more"
                )
            if CLEANUP_FINALIZER in current.finalizers:
                return current
            call = self._finalizers(current, "add", [*current.finalizers, CLEANUP_FINALIZER])
            answer = self._write("finalizer", current, call, 200, 404, 409, 422)
            if answer.status == 200:
                finalized = self._read(call, answer)
                self._finalized[thing.uid, thing.resource_version] = finalized.resource_version
                return finalized
            current = self._read_again(thing) if answer.status != 404 else None
        raise ClusterConflict(f"{thing.ref} changed {_TRIES} times while its finalizer was added")

    def remove_finalizer(self, thing: T) -> None:
        current: T | None = thing
        for _ in range(_TRIES):
            if current is None or current.uid != thing.uid:
                return
            if CLEANUP_FINALIZER not in current.finalizers:
                return
            left = [name for name in current.finalizers if name != CLEANUP_FINALIZER]
            call = self._finalizers(current, "replace", left)
            answer = self._write("finalizer", current, call, 200, 404, 409, 422)
            if answer.status in (200, 404):
                return
            current = self._read_again(thing)
        raise ClusterConflict(f"{thing.ref} changed {_TRIES} times while its finalizer was removed")

    def write_status(self, thing: T, status: SyncerStatus | ImportStatus) -> None:
        """Replace the status by a merge patch with the resourceVersion: if that has changed, the
        answer is 409. A status that differs only in what an older CRD drops is not written, once an
        answer has shown that."""
        if self._dropped and _with(thing.status, self._dropped, status) == status:
            return
        listed = thing.resource_version
        version = self._finalized.pop((thing.uid, listed), listed)
        for _ in range(_TRIES):
            body = {
                "metadata": {"resourceVersion": version},
                "status": self._kind.status_fields(status),
            }
            path = f"{self._kind.path(thing)}/status"
            call = calls.writing("PATCH", path, body, calls.MERGE_PATCH)
            answer = self._write("status", thing, call, 200, 404, 409)
            if answer.status == 200:
                self._note_dropped(self._read(call, answer).status, status)
            if answer.status != 409:
                return
            now = self._read_again(thing)
            if now is None:
                return
            if not _has_same_spec(now, thing):
                raise ClusterConflict(
                    f"{thing.ref} has another spec now: the next pass will report on it"
                )
            if now.status == status:
                return
            version = now.resource_version
        raise ClusterConflict(f"{thing.ref} changed {_TRIES} times while its status was written")

    def _note_dropped(
        self, stored: SyncerStatus | ImportStatus | None, status: SyncerStatus | ImportStatus
    ) -> None:
        """Note the fields that are not stored, and log them once."""
        if stored is None or stored == status:
            return
        absent = type(status)(observed_generation=0)
        dropped = set()
        for name in status.__struct_fields__:
            mine, theirs = getattr(status, name), getattr(stored, name)
            if theirs != mine and theirs == getattr(absent, name):
                dropped.add(name)
        self._dropped |= dropped
        if not self._dropped <= self._told:
            self._told |= self._dropped
            names = ", ".join(sorted(map(_camel, self._dropped)))
            _log.warning(
                "the CustomResourceDefinition %s drops what it does not know of a status: %s. Bring "
                "it to this version: eurekube-sync crd | kubectl apply --server-side -f -",
                self._kind.crd,
                names,
            )

    def _write(self, what: str, thing: T, call: Call, *statuses: int) -> Answer:
        """Return an answer with one of these statuses; raise ClusterRejected if the stored spec is
        refused.

        Before 1.30, Kubernetes checks the whole object at each write, although we write nothing of
        the spec. So an object that a new CRD refuses keeps its finalizer: no other try and no later
        pass can change that. From 1.30 on, what a write leaves as it was is not refused."""
        answer = self._calls.send(call)
        in_spec: list[str] = []
        for field, why in calls.refused_fields(answer).items():
            if field == "spec" or field.startswith(("spec.", "spec[")):
                in_spec.append(f"{field}: {why}")
        if in_spec:
            fields = excerpt("; ".join(in_spec), most=300, secrets=answer.secrets)
            raise ClusterRejected(
                f"the {what} of {self._kind.noun} {thing.ref} cannot be written until somebody "
                "mends its spec, because the CustomResourceDefinition refuses what is stored: "
                f"{fields}"
            )
        if answer.status not in statuses:
            raise calls.refusal(call, answer)
        return answer

    def _read_again(self, thing: T) -> T | None:
        call = Call(method="GET", path=self._kind.path(thing))
        answer = self._calls.expect(call, 200, 404)
        if answer.status == 200:
            return self._read(call, answer)
        return None

    def _read(self, call: Call, answer: Answer) -> T:
        kind = self._kind
        item = calls.decoded(call, answer, kind.listed.items, kind.article)
        thing = item.read()
        assert thing is not None  # no object of ours is skipped
        return thing

    def _finalizers(self, current: T, op: str, finalizers: Sequence[str]) -> Call:
        """Patch the finalizers if version and UID are still the same. A merge patch would lose
        finalizers that were added since. The UID is tested because the address may lead to another
        cluster, with resourceVersions of its own."""
        changes = [
            {"op": "test", "path": "/metadata/uid", "value": current.uid},
            {"op": "test", "path": "/metadata/resourceVersion", "value": current.resource_version},
            {"op": op, "path": "/metadata/finalizers", "value": finalizers},
        ]
        return calls.writing("PATCH", self._kind.path(current), changes, calls.JSON_PATCH)


def _with(
    before: SyncerStatus | ImportStatus | None,
    names: Iterable[str],
    status: SyncerStatus | ImportStatus,
) -> SyncerStatus | ImportStatus | None:
    """Return the status of before with these fields of another one."""
    if before is None:
        return None
    return replace(before, **{name: getattr(status, name) for name in names})


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def _has_same_spec(current: T, thing: T) -> bool:
    return current.uid == thing.uid and current.generation == thing.generation
