"""The interfaces to the world outside: time, random numbers, threads, Kubernetes and Eureka.

`adapters` implements them. The simulation replaces some of them, to count, delay or fail each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeVar

from eurekube_sync.model import kubernetes
from eurekube_sync.model.eureka import Batching, Instance, InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import LockRecord, PodDetail, Right, ServiceSelector
from eurekube_sync.model.sources import Complete, Listed, Source

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Clock(Protocol):
    """The only source of time, and the only way to wait."""

    def now(self) -> float: ...  # Unix seconds; may jump
    def monotonic(self) -> float: ...  # seconds
    def sleep(self, seconds: float) -> None: ...  # returns early if the program is asked to stop
    def stopping(self) -> bool: ...  # the program was asked to stop (SIGTERM)


class Random(Protocol):
    """Random numbers for jitter, such as `random.Random`."""

    def random(self) -> float: ...


class Workers(Protocol):
    """Runs a bounded number of calls in parallel. In the simulation: one after the other."""

    def each(self, call: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
        """Return the answers in the order of the items. Raises the exception of a call."""


class Batched(Enum):
    """The result for one item of a batch."""

    DONE = "Done"  # on each server that could be reached; also the cancel of an absent instance
    PARTLY = "Partly"  # some servers hold the lease, and some that could be reached do not
    ABSENT = "Absent"  # of a renewal: no server that could be reached holds the lease
    CONFLICT = "Conflict"  # another owner's instance is registered there
    UNSETTLED = "Unsettled"  # unknown: the single call has to be made


class Dated(NamedTuple):
    """An instance to register, and its `lastDirtyTimestamp` (Unix ms), the newest of which wins in
    Eureka."""

    instance: Instance
    dirty_timestamp: int


class Elsewhere(NamedTuple):
    """Instances on other Eureka servers than the one that was listed."""

    instances: tuple[ObservedInstance, ...]  # with an owner's mark, and not in that list
    unseen: tuple[str, ...]  # addresses of servers that could not be listed


class Batches(Protocol):
    """Many writes in one call to each Eureka server. For each item with the result UNSETTLED, the
    single call of `Registry` has to be made. Each method returns one result per item, in their
    order, never raises, and is safe to repeat and to call from several threads."""

    size: int  # the maximum number of items of a call

    def absent(self, keys: Sequence[InstanceKey]) -> frozenset[InstanceKey]:
        """Return the keys that no reachable server holds. This reads uncached and renews
        nothing."""

    def read(self, keys: Sequence[InstanceKey]) -> Mapping[InstanceKey, ObservedInstance]:
        """Read instances of ours uncached, and **renew** them there, as the only batch that reads
        does. What is not in the result has to be read by `Registry.read_instance`: it may be
        registered or not."""

    def renew(self, keys: Sequence[InstanceKey]) -> list[Batched]:
        """Renew each lease on every server that holds it: DONE, PARTLY, ABSENT or UNSETTLED."""

    def register(self, items: Sequence[Dated]) -> list[Batched]:
        """Register each instance on every server, and renew it there to verify that: DONE or
        UNSETTLED."""

    def returned(self) -> bool:
        """Whether a server is in use again and was not yet asked which leases it lacks."""

    def lacking(self, keys: Sequence[InstanceKey]) -> frozenset[InstanceKey]:
        """Renew each lease on the servers that returned, and return the keys that one of them
        lacks. A server that does not answer for all keys is asked again."""

    def level(
        self, items: Sequence[Dated], *, ours: Callable[[ObservedInstance], bool]
    ) -> list[Batched]:
        """Register each instance only on the servers that lacked it when it was renewed: DONE,
        CONFLICT or UNSETTLED. Before, read it uncached on all servers. PARTLY: a server has it with
        another status, so nothing is written."""

    def cancel(
        self, keys: Sequence[InstanceKey], *, ours: Callable[[ObservedInstance], bool]
    ) -> list[Batched]:
        """Cancel each on every server, read before as in `Registry.cancel`: DONE or UNSETTLED."""


class EurekaServer(Protocol):
    """A single Eureka server. The first three methods are those of `Registry`."""

    def list_instances(self) -> Source[tuple[ObservedInstance, ...]]: ...
    def read_instance(self, key: InstanceKey) -> ObservedInstance | None: ...
    def renew(self, key: InstanceKey) -> bool: ...
    def try_registration(
        self,
    ) -> None: ...  # raises a `RegistryError` unless registrations reach it; registers nothing
    def ahead(
        self,
    ) -> (
        float
    ): ...  # seconds that its clock is ahead of ours, to a second; raises a `RegistryError`


class Registry(Protocol):
    """Eureka. Calls are safe to repeat and to make from several threads, and raise a
    `RegistryError`. The methods with a body are those of a single server without batches."""

    def list_instances(self) -> Source[tuple[ObservedInstance, ...]]:
        """List all instances (`GET /apps`), as they were up to 30 s ago; never raises. Any answer
        but a well-formed list is Unknown, such as the 403 of a server that warms up, HTML, or an
        empty body. Of several servers this is the list of one; from time to time, instances that
        only another server holds are added."""

    def read_everywhere(self, key: InstanceKey) -> ObservedInstance | None:
        """As `read_instance`, but return None only if no reachable server holds the instance. To be
        called before an id is registered that may be another owner's."""
        return self.read_instance(key)

    def list_elsewhere(self, listed: Complete[tuple[ObservedInstance, ...]]) -> Elsewhere:
        """List the other servers, and return their instances that are not in `listed`. Never
        raises."""
        return Elsewhere((), ())

    def read_instance(self, key: InstanceKey) -> ObservedInstance | None:
        """Read one instance, uncached (`InstanceResource.getInstanceInfo`); None on a 404."""

    def register(self, instance: Instance, *, dirty_timestamp: int) -> None:
        """POST the instance. Of two registrations, that with the newer `dirty_timestamp` (Unix ms)
        wins."""

    def renew(self, key: InstanceKey) -> bool:
        """PUT the lease, without `lastDirtyTimestamp`; False on a 404."""

    def cancel(self, key: InstanceKey, *, ours: Callable[[ObservedInstance], bool]) -> bool:
        """DELETE the instance; False on a 404. The caller has read it uncached. Each other server
        is read first, and keeps an instance that is not `ours`."""

    def batches(self) -> Batches | None:
        """Return the way to write in batches, or None while that is not safe. To be called again
        for each batch."""
        return None

    def batching(self) -> Batching | None:
        """Return whether writes go in batches, and why, as of the last list; None if they are
        off."""
        return None

    def unreached(self) -> tuple[str, ...]:
        """Return the addresses of the servers that the last list, or a cancel since, could not
        reach. They may hold instances that are in no list, or that were cancelled on the others."""
        return ()


class Cluster(Protocol):
    """Kubernetes. Lists never raise; writes raise a `ClusterError`.

    With `namespaces` None the whole cluster is listed; else each namespace by itself, and one of
    them may be Unknown alone. An incomplete list is Unknown: a failed page, 410 twice, a denied
    list, an answer of another kind."""

    def identity(self, *, anew: bool = False) -> Source[str]:
        """Return the UID of the namespace kube-system, which identifies the cluster. The first one
        read is remembered. With `anew` it is read again, because a kubeconfig or a host name may
        lead to another cluster by now."""

    # Without the CRD the syncers are Unknown(CRD_MISSING). The slices are those of Services.
    def list_syncers(self, namespaces: Sequence[str] | None) -> Listed[kubernetes.SyncerObject]: ...
    def list_services(self, namespaces: Sequence[str] | None) -> Listed[kubernetes.Service]: ...
    def list_slices(self, namespaces: Sequence[str] | None) -> Listed[kubernetes.EndpointSlice]: ...

    # The following are listed only if something needs them, such as nodes for node ports.
    def list_nodes(self) -> Source[tuple[kubernetes.Node, ...]]: ...
    def list_ingresses(self, namespaces: Sequence[str] | None) -> Listed[kubernetes.Ingress]: ...
    def list_reference_grants(
        self, namespaces: Sequence[str] | None
    ) -> Listed[kubernetes.ReferenceGrant]: ...
    def list_routes(self, namespaces: Sequence[str] | None) -> Listed[kubernetes.HttpRoute]: ...
    def list_gateways(self, namespaces: Sequence[str] | None) -> Listed[kubernetes.Gateway]: ...
    def list_pods(self, namespaces: Sequence[str] | None) -> Listed[kubernetes.Pod]:
        """List Pods' metadata only: for labels and annotations, and as evidence that a kept
        instance's pod is gone."""

    def list_pod_drains(self, namespaces: Sequence[str] | None) -> Listed[kubernetes.Drainable]:
        """List which Pods are drained by annotation, if the Pods themselves are not listed."""

    def list_readiness(self, namespaces: Sequence[str]) -> Listed[kubernetes.PodReadiness]:
        """List whole Pods, for their readiness without our readiness gate."""

    def list_hosts(self, namespaces: Sequence[str] | None) -> Listed[kubernetes.PodHost]:
        """List whole Pods, for their host ports."""

    def list_namespaces(self, names: Sequence[str] | None) -> Listed[kubernetes.Namespace]:
        """Read these Namespaces, each by itself, or list all of them, for the grants in their
        annotations."""

    def open_gate(
        self, pod: kubernetes.PodReadiness, *, reason: str, message: str, at: float
    ) -> None:
        """Set the Pod's condition `eurekube.io/registered` to True; `at` in Unix seconds. Do
        nothing if the Pod is gone, or if another Pod has its name."""

    def crd_live(self) -> Source[kubernetes.CrdAge]:
        """Return when the CRD was created. Unknown(CRD_TERMINATING) while the CRD is being deleted:
        then each of its objects is listed as deleted, although nobody deleted that object."""

    def namespace_exists(self, name: str) -> Source[bool]:
        """Whether the namespace exists, for a more precise message."""

    def add_finalizer(self, syncer: kubernetes.SyncerObject) -> kubernetes.SyncerObject:
        """Add `eurekube.io/cleanup` and return the new object. Raises ClusterConflict if the object
        is being deleted now, or has another spec."""

    def remove_finalizer(self, syncer: kubernetes.SyncerObject) -> None:
        """Remove `eurekube.io/cleanup`, and no other. The object may be gone."""

    def write_status(
        self, syncer: kubernetes.SyncerObject, status: kubernetes.SyncerStatus
    ) -> None:
        """Replace the status. On a conflict, read again, and write only if uid and generation are
        still those of `syncer`. Raises ClusterConflict otherwise, and after three tries. The object
        may be gone."""

    def record_event(self, event: kubernetes.EventRecord, *, at: float) -> None:
        """Write or count an Event; `at` in Unix seconds. It is no error that a terminating
        namespace refuses it."""


class LockStore(Protocol):
    """The lock object. Each call takes a few seconds at most, and raises a `ClusterError`."""

    def read(self) -> LockRecord | None: ...  # None if it does not exist
    def create(self, record: LockRecord) -> LockRecord | None: ...  # None if it exists
    def replace(self, record: LockRecord) -> LockRecord | None:
        """Replace the lock of the version that `record` has; None if the lock was changed or
        deleted since."""


class Details(Protocol):
    """Reads of Kubernetes for `explain` and `check`. They never raise and write nothing."""

    def list_pod_details(self, namespace: str) -> Source[tuple[PodDetail, ...]]: ...
    def list_service_selectors(self, namespace: str) -> Source[tuple[ServiceSelector, ...]]: ...
    def server(self) -> Source[str]: ...  # its version, such as `v1.36.0`
    def schema(self, kind: str = "EurekaSyncer") -> Source[Mapping[str, Any]]:
        """Return the schema of the stored version of our kind's CRD; without the CRD:
        Unknown(CRD_MISSING)."""

    def service_networks(self) -> Source[tuple[str, ...]]:
        """Return the networks of ClusterIPs, such as `10.96.0.0/16`. Unknown if the API does not
        serve ServiceCIDRs, as before 1.33."""

    def ahead(self) -> Source[float]: ...  # seconds that its clock is ahead of ours, to a second
    def may(self, right: Right, namespace: str) -> Source[bool]:
        """Whether the caller has the right in the namespace; an empty name stands for the whole
        cluster."""
