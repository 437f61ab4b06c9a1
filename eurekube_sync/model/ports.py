"""What the pass needs from the world, as protocols: time, chance, the cluster, the registry.

`adapters` implements them; the simulation gives its own. Every outgoing call of the program goes through here, so that
it can be counted, delayed, failed or cut before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from eurekube_sync.model import kubernetes
from eurekube_sync.model.eureka import Batching, Instance, InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import LockRecord, PodDetail, Right, ServiceSelector
from eurekube_sync.model.sources import Complete, Listed, Source

EndpointsSource = Literal["slices", "endpoints"]
"""Where endpoints are read from: EndpointSlices, or in an old cluster Endpoints."""
Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Clock(Protocol):
    """Time, and waiting. Everything that waits does it here."""

    def now(self) -> float: ...  # Unix seconds; may jump
    def monotonic(self) -> float: ...  # seconds that only grow
    def sleep(self, seconds: float) -> None: ...  # returns early when the program was asked to stop
    def stopping(self) -> bool: ...  # the program was asked to stop (SIGTERM): begin nothing new


class Random(Protocol):
    """Chance, for jitter; `random.Random` is one."""

    def random(self) -> float: ...


class Workers(Protocol):
    """Runs calls side by side, a bounded number at a time. In the simulation: one after the other."""

    def each(self, call: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
        """The answers in the order of the items; an exception of a call is raised here."""


class Batched(Enum):
    """What became of one item of a batch."""

    DONE = "Done"  # On every server that could be reached. Of a cancel also: it was not there.
    PARTLY = "Partly"  # some servers hold the lease, and some that could be reached do not
    ABSENT = "Absent"  # of a renewal: no server that could be reached holds the lease
    CONFLICT = "Conflict"  # another owner's instance is registered there
    UNSETTLED = "Unsettled"  # the batch does not tell: the single call has to be made


class Dated(NamedTuple):
    """An instance to register, and the `lastDirtyTimestamp` that decides which of two writes wins (Unix ms)."""

    instance: Instance
    dirty_timestamp: int


class Elsewhere(NamedTuple):
    """What is registered on other Eureka servers than the one that gave a list."""

    instances: tuple[ObservedInstance, ...]  # what bears an owner's mark and is not in that list
    unseen: tuple[str, ...]  # addresses of servers that did not show what they hold


class Batches(Protocol):
    """Many writes in one call to every Eureka server. A shortcut only: the single calls of `Registry` are the truth,
    and are made for each item that a batch leaves UNSETTLED. Each method gives one answer per item, in their order,
    never raises, and is safe to repeat and to call from several threads."""

    size: int  # the most items of a call

    def absent(self, keys: Sequence[InstanceKey]) -> frozenset[InstanceKey]:
        """Those that no server holds, of all that can be reached; uncached, and nothing is renewed by it."""

    def renew(self, keys: Sequence[InstanceKey]) -> list[Batched]:
        """Renew each lease on every server that holds it: DONE, PARTLY, ABSENT or UNSETTLED."""

    def register(self, items: Sequence[Dated]) -> list[Batched]:
        """Register each on every server, and renew it there, which verifies it: DONE or UNSETTLED."""

    def returned(self) -> bool:
        """Whether a server is written to that was not before, and has not been asked yet what it lacks."""

    def lacking(self, keys: Sequence[InstanceKey]) -> frozenset[InstanceKey]:
        """Renew each on such servers alone, and give those that one of them lacks. One that does not answer for all of
        them is asked again."""

    def level(self, items: Sequence[Dated], *, ours: Callable[[ObservedInstance], bool]) -> list[Batched]:
        """Bring each to the servers alone that lacked it when it was renewed: DONE, CONFLICT or UNSETTLED. It is read
        everywhere first, uncached; what is not `ours` stays. PARTLY: it has another status where it is, and stays."""

    def cancel(self, keys: Sequence[InstanceKey], *, ours: Callable[[ObservedInstance], bool]) -> list[Batched]:
        """Cancel each on every server, read as for `Registry.cancel`: DONE or UNSETTLED."""


class EurekaServer(Protocol):
    """One Eureka server by itself. The first three are those of `Registry`."""

    def list_instances(self) -> Source[tuple[ObservedInstance, ...]]: ...
    def read_instance(self, key: InstanceKey) -> ObservedInstance | None: ...
    def renew(self, key: InstanceKey) -> bool: ...
    def ahead(self) -> float: ...  # seconds that its clock is ahead of ours, to a second; raises a `RegistryError`


class Registry(Protocol):
    """Eureka. Calls are safe to repeat, may be made from several threads, and raise a `RegistryError` of `errors`. What
    has a body here is that of a single server that takes no batches."""

    def list_instances(self) -> Source[tuple[ObservedInstance, ...]]:
        """All of the registry in one read (`GET /apps`), up to 30 s old by the server's cache; never raises. Anything
        but a well-formed list is Unknown: a 403 of a warming server, HTML, an empty body, half an answer. Of several
        servers it is one's list, and once in a while also what is registered on another alone."""

    def read_everywhere(self, key: InstanceKey) -> ObservedInstance | None:
        """As `read_instance`, but None only when no server that can be reached holds one: to be asked before an id is
        registered that may be another's."""
        return self.read_instance(key)

    def list_elsewhere(self, listed: Complete[tuple[ObservedInstance, ...]]) -> Elsewhere:
        """What the other servers hold beside the last list, which is `listed`: each that can be reached is listed now.
        Never raises."""
        return Elsewhere((), ())

    def read_instance(self, key: InstanceKey) -> ObservedInstance | None:
        """One instance, uncached (`InstanceResource.getInstanceInfo`); None when the server answers 404."""

    def register(self, instance: Instance, *, dirty_timestamp: int) -> None:
        """POST the whole instance; `dirty_timestamp` in Unix milliseconds decides which of two writes wins."""

    def renew(self, key: InstanceKey) -> bool:
        """PUT the lease, without `lastDirtyTimestamp`; False when the server answers 404."""

    def cancel(self, key: InstanceKey, *, ours: Callable[[ObservedInstance], bool]) -> bool:
        """DELETE; False when the server answers 404, which is as good. The caller has read the instance uncached; on
        each other of several servers it is read before, and stays unless it is `ours`."""

    def batches(self) -> Batches | None:
        """The way to write many at a time, while it is safe; None: call by call. To be asked again for each batch."""
        return None

    def batching(self) -> Batching | None:
        """Whether writes go out in batches, as found with the last list, and why; None where they are off."""
        return None

    def unreached(self) -> tuple[str, ...]:
        """Addresses of servers that the last list, or a cancel since, could not reach. They may hold instances that no
        list showed, or that were cancelled on the others. None of a single server: its calls fail."""
        return ()


class Cluster(Protocol):
    """Kubernetes. Lists never raise; writes raise a `ClusterError` of `errors`. `namespaces` None means the whole
    cluster in one walk; else each namespace is walked, and Unknown, by itself. A walk that is not whole is Unknown: a
    failed page, 410 twice, a denied list, an answer of another kind."""

    def identity(self, *, anew: bool = False) -> Source[str]:
        """UID of the namespace kube-system: which cluster this is. Asked for until it is known; `anew`, once more, for
        a kubeconfig or a name may lead to another cluster now. What a first call told stays what others tell."""

    # Without the CRD, which is a 404, the syncers are Unknown(CRD_MISSING). Slices belong to a Service, or are what an
    # old cluster has in their place.
    def list_syncers(self, namespaces: Sequence[str] | None) -> Listed[kubernetes.SyncerObject]: ...
    def list_services(self, namespaces: Sequence[str] | None) -> Listed[kubernetes.Service]: ...
    def list_slices(self, namespaces: Sequence[str] | None) -> Listed[kubernetes.EndpointSlice]: ...

    # The next are asked for only where somebody needs them: nodes where a syncer registers node ports.
    def list_nodes(self) -> Source[tuple[kubernetes.Node, ...]]: ...
    def list_pods(self, namespaces: Sequence[str] | None) -> Listed[kubernetes.Pod]:
        """As metadata-only lists, where some syncer takes metadata from Pods, or while instances of a syncer that is
        not served stand: a pod that is gone is the evidence that takes one out."""

    def list_pod_drains(self, namespaces: Sequence[str] | None) -> Listed[kubernetes.Drainable]:
        """Which Pods a person drains by annotation, from metadata-only lists, where the Pods are not listed anyhow."""

    def list_node_drains(self) -> Source[tuple[kubernetes.Drainable, ...]]:
        """The same of Nodes."""

    def list_readiness(self, namespaces: Sequence[str]) -> Listed[kubernetes.PodReadiness]:
        """How ready all Pods of these namespaces are but for our gate, where a syncer has one: it takes whole Pods."""

    def list_namespaces(self, names: Sequence[str] | None) -> Listed[kubernetes.Namespace]:
        """The annotations of these, each by itself, or of all, where a Namespace has to grant what is registered."""

    def open_gate(self, pod: kubernetes.PodReadiness, *, reason: str, message: str, at: float) -> None:
        """Set the Pod's condition `eurekube.io/registered` to True; `at` in Unix seconds. A Pod that is gone, or
        another one of the same name, is fine and is left alone."""

    def crd_live(self) -> Source[float]:
        """When the CRD was created, in Unix seconds, if it is there and not being deleted; Unknown(CRD_TERMINATING)
        when it is: then a LIST of its objects is 200 with every item deleting, and such deletions are nobody's wish."""

    def namespace_exists(self, name: str) -> Source[bool]:
        """Asked for only to say more of what is not there than that."""

    def add_finalizer(self, syncer: kubernetes.SyncerObject) -> kubernetes.SyncerObject:
        """Put `eurekube.io/cleanup` on, keeping others'; returns the object as it is now. Raises ClusterConflict
        when it is being deleted now, or changed its spec."""

    def remove_finalizer(self, syncer: kubernetes.SyncerObject) -> None:
        """Take `eurekube.io/cleanup` off, keeping others'; an object that is gone is fine."""

    def write_status(self, syncer: kubernetes.SyncerObject, status: kubernetes.SyncerStatus) -> None:
        """Replace the status. On a conflict: read again, and write only if uid and generation are still those of
        `syncer`, at most three times; else ClusterConflict. An object that is gone is fine."""

    def record_event(self, event: kubernetes.EventRecord, *, at: float) -> None:
        """Write or count an Event; `at` in Unix seconds. A terminating namespace refuses events: that is no error."""


class LockStore(Protocol):
    """The object that is the lock. Each call takes a few seconds at most, and raises a `ClusterError` of `errors`."""

    def read(self) -> LockRecord | None: ...  # None when it does not exist
    def create(self, record: LockRecord) -> LockRecord | None: ...  # None when somebody else did first
    def replace(self, record: LockRecord) -> LockRecord | None:
        """Write it over the version that the record was read as; None when it was changed or deleted since."""


class Details(Protocol):
    """What Kubernetes tells a person who asks why, or whether an installation can work there. Never raises and writes
    nothing."""

    def list_pod_details(self, namespace: str) -> Source[tuple[PodDetail, ...]]: ...
    def list_service_selectors(self, namespace: str) -> Source[tuple[ServiceSelector, ...]]: ...
    def server(self) -> Source[str]: ...  # its version, such as `v1.36.0`
    def schema(self) -> Source[Mapping[str, Any]]: ...  # of the CRD's stored version; Unknown(CRD_MISSING) without one
    def ahead(self) -> Source[float]: ...  # seconds that its clock is ahead of ours, to a second
    def may(self, right: Right, namespace: str) -> Source[bool]:
        """Whether the caller has it in the namespace; an empty one stands for the whole cluster."""
