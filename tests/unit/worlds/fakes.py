"""The ports of a pass, in memory: a registry with Eureka's rules, a cluster of plain objects, and a
manual clock.

Every outgoing call goes through one `Wire`. It counts the call, and can fail it or kill the program
before or after its effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import NoReturn, TypeVar

from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.apply.status import Recoveries
from eurekube_sync.brake.approval import PlanId
from eurekube_sync.brake.confirm import Sightings
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.controller.one_pass import Memory, PassReport, PassSettings, World
from eurekube_sync.controller.reconcile import reconcile
from eurekube_sync.desired.catalog import drainable
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.deadline import Schedule, TimeLimit
from eurekube_sync.model.errors import (
    ClusterConflict,
    ClusterUnavailable,
    RegistryError,
    RegistryUnavailable,
)
from eurekube_sync.model.eureka import (
    Batching,
    Instance,
    InstanceKey,
    InstanceStatus,
    ObservedInstance,
)
from eurekube_sync.model.kubernetes import (
    CrdAge,
    Drainable,
    EndpointSlice,
    EventRecord,
    Gateway,
    HttpRoute,
    Ingress,
    Namespace,
    Node,
    Pod,
    PodHost,
    PodReadiness,
    PodRef,
    ReferenceGrant,
    Service,
    SyncerObject,
    SyncerRef,
    SyncerStatus,
)
from eurekube_sync.model.ownership import NO_FORMER
from eurekube_sync.model.ports import Batched, Dated, Elsewhere
from eurekube_sync.model.sources import Cause, Complete, Listed, Source, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import LastSeen, OwnWrites
from tests.in_process.workers import InTurn
from tests.unit.worlds.build import CLUSTER, NS, OWNER, changed
from tests.unit.worlds.clock import Clock

T = TypeVar("T")
Thing = TypeVar("Thing", bound=SyncerObject | Service | EndpointSlice)

_NOT_READ = Unknown(cause=Cause.NOT_READ, message="not asked for")
_FAILED = Unknown(cause=Cause.UNAVAILABLE, message="the wire failed")
_READS = frozenset(
    {
        "list_instances",
        "read_instance",
        "identity",
        "list_syncers",
        "list_namespaces",
        "list_services",
        "list_slices",
        "list_pods",
        "list_readiness",
        "list_hosts",
        "list_ingresses",
        "list_reference_grants",
        "list_routes",
        "list_gateways",
        "list_pod_drains",
        "list_nodes",
        "list_imports",
        "import_crd_live",
        "namespace_exists",
    }
)


class Killed(BaseException):
    """The program ends here, as after SIGKILL."""


class When(Enum):
    """Whether a fault comes before or after a call's effect."""

    BEFORE = "before"
    AFTER = "after"


@dataclass
class Wire:
    """All outgoing calls, in order, and a fault for one of them."""

    calls: list[str] = field(default_factory=list)
    kill: tuple[int, When] | None = None
    fail: tuple[int, When] | None = None
    then: Callable[[], None] = lambda: None
    """It is called right after each call."""

    def send(self, name: str, effect: Callable[[], T], failure: Callable[[], T]) -> T:
        """Make one call. `failure` raises the port's error, or returns its Unknown."""
        number = len(self.calls)
        self.calls.append(name)
        self._maybe_kill(number, When.BEFORE)
        if self.fail == (number, When.BEFORE):
            return failure()
        try:
            answer = effect()
        finally:
            self.then()
            self._maybe_kill(number, When.AFTER)
        return failure() if self.fail == (number, When.AFTER) else answer

    def verbs(self) -> list[str]:
        """The names of the calls."""
        return [call.split()[0] for call in self.calls]

    def writes(self) -> list[str]:
        """The calls that are neither reads nor renewals."""
        no_writes = _READS | {"crd_live", "renew", "renew_batch", "absent_batch", "read_batch"}
        return [call for call in self.calls if call.split()[0] not in no_writes]

    def _maybe_kill(self, number: int, when: When) -> None:
        if self.kill == (number, when):
            raise Killed


def _registry_down() -> NoReturn:
    raise RegistryUnavailable("Eureka did not answer")


def _cluster_down() -> NoReturn:
    raise ClusterUnavailable("the API server did not answer")


class Registry:
    """Eureka: register, renew, cancel and overrides as in AbstractInstanceRegistry; lists up to
    `cache` seconds old."""

    def __init__(self, wire: Wire, clock: Clock, *, cache: float = 0) -> None:
        self.wire = wire
        self._clock = clock
        self._cache = cache
        self._snapshot: tuple[float, tuple[ObservedInstance, ...]] | None = None
        self._expiry: dict[InstanceKey, float] = {}
        self.held: dict[InstanceKey, ObservedInstance] = {}
        self.overrides: dict[str, InstanceStatus] = {}
        """The overrides by instance id, because Eureka ignores the app here."""
        self.unreadable: Unknown | None = None
        """The answer to lists, if set. Single reads then fail too."""
        self.refuse: dict[InstanceKey, Exception] = {}
        self.refuse_read: dict[InstanceKey, Exception] = {}
        self.refuse_register: dict[InstanceKey, Exception] = {}
        """Keys whose writes fail."""
        self.away: tuple[str, ...] = ()
        """Peers that cannot be reached."""
        self.batch_size: int | None = type(self).batch_size_of_all
        """The most items of a batch; None if the server takes no batches."""
        self.lacking: set[InstanceKey] = set()
        """Keys that a second server lacks, as batches show."""
        self.returned = False
        """Whether that server was away, and nobody has asked since then what it lacks."""
        self.anothers: set[InstanceKey] = set()
        """Keys under which that server has an instance of others."""
        self.seconds_ahead = 0.0
        """How far the server's clock is ahead of ours."""

    batch_size_of_all: int | None = None
    """The batch size of every registry that is made from now on."""

    def batches(self) -> FakeBatches | None:
        return None if self.batch_size is None else FakeBatches(self, self.batch_size)

    def batching(self) -> Batching | None:
        return None if self.batch_size is None else Batching(on=True, why="as the test says")

    def unreached(self) -> tuple[str, ...]:
        return self.away

    def list_elsewhere(self, listed: Complete[tuple[ObservedInstance, ...]]) -> Elsewhere:
        return Elsewhere((), self.away)

    def list_instances(self) -> Source[tuple[ObservedInstance, ...]]:
        return self.wire.send("list_instances", self._list, lambda: _FAILED)

    def read_instance(self, key: InstanceKey) -> ObservedInstance | None:
        return self.wire.send(f"read_instance {key}", lambda: self._read(key), _registry_down)

    def read_everywhere(self, key: InstanceKey) -> ObservedInstance | None:
        return self.read_instance(key)

    def register(self, instance: Instance, *, dirty_timestamp: int) -> None:
        self.wire.send(
            f"register {instance.key}",
            lambda: self._register(instance, dirty_timestamp),
            _registry_down,
        )

    def renew(self, key: InstanceKey) -> bool:
        return self.wire.send(f"renew {key}", lambda: self._renew(key), _registry_down)

    def cancel(
        self, key: InstanceKey, *, ours: Callable[[ObservedInstance], bool] | None = None
    ) -> bool:
        return self.wire.send(f"cancel {key}", lambda: self._cancel(key), _registry_down)

    def ahead(self) -> float:
        return self.seconds_ahead

    def put(self, *instances: ObservedInstance) -> None:
        """These instances are registered already."""
        for one in instances:
            self.held[one.key] = one
            self._expiry[one.key] = self._clock.now() + 2 * (one.instance.lease.duration or 90)

    def override(self, key: InstanceKey, status: InstanceStatus) -> None:
        """Set a status as a person does, with `PUT .../status`."""
        self.overrides[key.id] = status
        self.held[key] = changed(self.held[key], status=status, override=status)

    def cached_for(self, seconds: float) -> None:
        """Lists show the present instances for this long."""
        self._cache, self._snapshot = seconds, (self._clock.now(), tuple(self.held.values()))

    def evict(self) -> None:
        """The eviction run, with self-preservation off."""
        for key, expiry in list(self._expiry.items()):
            if expiry < self._clock.now():
                self._drop(key)

    def _list(self) -> Source[tuple[ObservedInstance, ...]]:
        if self.unreadable:
            return self.unreadable
        now = self._clock.now()
        if self._snapshot is None or now - self._snapshot[0] >= self._cache:
            self._snapshot = (now, tuple(self.held.values()))
        return Complete(data=self._snapshot[1])

    def _read(self, key: InstanceKey) -> ObservedInstance | None:
        if key in self.refuse_read:
            raise self.refuse_read[key]
        if self.unreadable:
            raise RegistryUnavailable(self.unreadable.message)
        stored = self.held.get(key)
        return None if stored is None else replace(stored, read_at=self._stamp())

    def _register(self, instance: Instance, timestamp: int) -> None:
        self._maybe_refuse(instance.key)
        if instance.key in self.refuse_register:
            raise self.refuse_register[instance.key]
        old = self.held.get(instance.key)
        if old is not None and old.last_dirty_timestamp > timestamp:
            return  # it is ignored, with a 204
        new = ObservedInstance(
            instance=replace(
                instance, metadata=dict(instance.metadata), override=InstanceStatus.UNKNOWN
            ),
            last_dirty_timestamp=timestamp,
            last_renewal=self._stamp(),
            registered=self._stamp(),
        )
        if instance.override is not InstanceStatus.UNKNOWN:
            self.overrides.setdefault(instance.key.id, instance.override)
        self.held[instance.key] = self._ruled(new, old)
        self._expiry[instance.key] = self._clock.now() + instance.lease.duration

    def _renew(self, key: InstanceKey) -> bool:
        self._maybe_refuse(key)
        lease = self.held.get(key)
        if lease is None:
            return False
        ruled = self._ruled(lease, lease)
        if ruled.status is InstanceStatus.UNKNOWN:
            return False
        duration = lease.instance.lease.duration or 90
        self.held[key] = replace(ruled, last_renewal=self._stamp() + 1000 * duration)
        self._expiry[key] = self._clock.now() + 2 * (lease.instance.lease.duration or 90)
        return True

    def _cancel(self, key: InstanceKey) -> bool:
        self._maybe_refuse(key)
        return self._drop(key)

    def _drop(self, key: InstanceKey) -> bool:
        self._expiry.pop(key, None)
        self.overrides.pop(key.id, None)
        return self.held.pop(key, None) is not None

    def _ruled(
        self, incoming: ObservedInstance, existing: ObservedInstance | None
    ) -> ObservedInstance:
        override = self.overrides.get(incoming.key.id)
        status = incoming.status
        if status not in (InstanceStatus.DOWN, InstanceStatus.STARTING):
            if override is not None:
                status = override
            elif existing and existing.status in (InstanceStatus.UP, InstanceStatus.OUT_OF_SERVICE):
                status = existing.status
        return changed(incoming, status=status, override=override or InstanceStatus.UNKNOWN)

    def _maybe_refuse(self, key: InstanceKey) -> None:
        if key in self.refuse:
            raise self.refuse[key]

    def _stamp(self) -> int:
        """The time by the server's own clock, in milliseconds."""
        return int((self._clock.now() + self.seconds_ahead) * 1000)


class FakeBatches:
    """Batches to the fake registry. Each is one call on the wire, and items that the registry
    refuses stay undecided."""

    def __init__(self, registry: Registry, size: int) -> None:
        self._registry = registry
        self.size = size

    def absent(self, keys: Sequence[InstanceKey]) -> frozenset[InstanceKey]:
        def effect() -> frozenset[InstanceKey]:
            registry = self._registry
            told = (
                key
                for key in keys
                if key not in registry.refuse and key not in registry.refuse_read
            )
            return frozenset(key for key in told if key not in registry.held)

        return self._registry.wire.send(f"absent_batch {len(keys)}", effect, frozenset)

    def read(self, keys: Sequence[InstanceKey]) -> Mapping[InstanceKey, ObservedInstance]:
        def effect() -> Mapping[InstanceKey, ObservedInstance]:
            registry, shown = self._registry, {}
            for key in keys:
                with suppress(RegistryError):
                    if registry._renew(key) and (instance := registry._read(key)):
                        shown[key] = replace(instance, read_at=0)  # a batch has no time
            return shown

        return self._registry.wire.send(f"read_batch {len(keys)}", effect, dict)

    def renew(self, keys: Sequence[InstanceKey]) -> list[Batched]:
        def one(key: InstanceKey) -> Batched:
            if not self._registry._renew(key):
                return Batched.ABSENT
            return Batched.PARTLY if key in self._registry.lacking else Batched.DONE

        return self._send("renew_batch", keys, one)

    def register(self, items: Sequence[Dated]) -> list[Batched]:
        def one(item: Dated) -> Batched:
            self._registry._register(*item)
            return Batched.DONE if self._registry._renew(item.instance.key) else Batched.UNSETTLED

        return self._send("register_batch", items, one)

    def returned(self) -> bool:
        return self._registry.returned

    def lacking(self, keys: Sequence[InstanceKey]) -> frozenset[InstanceKey]:
        self._registry.returned = False
        return frozenset(self._registry.lacking.intersection(keys))

    def level(
        self, items: Sequence[Dated], *, ours: Callable[[ObservedInstance], bool]
    ) -> list[Batched]:
        def one(item: Dated) -> Batched:
            self._registry._maybe_refuse(item.instance.key)
            if item.instance.key in self._registry.anothers:
                return Batched.CONFLICT
            if self._registry.held[item.instance.key].status is not item.instance.status:
                return Batched.PARTLY
            self._registry.lacking.discard(item.instance.key)
            return Batched.DONE

        return self._send("level_batch", items, one)

    def cancel(
        self, keys: Sequence[InstanceKey], *, ours: Callable[[ObservedInstance], bool]
    ) -> list[Batched]:
        def one(key: InstanceKey) -> Batched:
            self._registry._cancel(key)
            return Batched.DONE

        return self._send("cancel_batch", keys, one)

    def _send(self, name: str, items: Sequence[T], one: Callable[[T], Batched]) -> list[Batched]:
        def effect() -> list[Batched]:
            return [settled(item) for item in items]

        def settled(item: T) -> Batched:
            try:
                return one(item)
            except RegistryError:
                return Batched.UNSETTLED

        return self._registry.wire.send(
            f"{name} {len(items)}", effect, lambda: [Batched.UNSETTLED] * len(items)
        )


class Cluster:
    """A Kubernetes API server with syncers, Services and slices."""

    def __init__(self, wire: Wire, clock: Clock) -> None:
        self.wire = wire
        self._clock = clock
        self.syncers: dict[SyncerRef, SyncerObject] = {}
        self.services: list[Service] = []
        self.slices: list[EndpointSlice] = []
        self.events: list[EventRecord] = []
        self.readiness: dict[str, PodReadiness] = {}
        self.hosts: dict[str, tuple[PodHost, ...]] = {}
        """By namespace."""
        self.ingresses: dict[str, tuple[Ingress, ...]] = {}
        """By namespace, as the next three."""
        self.reference_grants: dict[str, tuple[ReferenceGrant, ...]] = {}
        self.routes: dict[str, tuple[HttpRoute, ...]] = {}
        self.gateways: dict[str, tuple[Gateway, ...]] = {}
        self.opened: dict[str, tuple[str, str]] = {}
        """Opened gates, with reason and message."""
        self.pods: dict[str, tuple[PodRef | Pod, ...]] = {}
        """Pods that are in no slice, or that have labels."""
        self.ended: set[str] = set()
        """UIDs of pods that no longer exist, although an unread slice has them."""
        self.nodes: Source[tuple[Node, ...]] = Complete(data=())
        self.uid: Source[str] = Complete(data=CLUSTER)
        self.remembered: Complete[str] | None = None
        """What a daemon remembers, and asks for again only to be sure."""
        self.annotations: dict[str, Mapping[str, str]] = {}
        """The annotations of each Namespace that exists."""
        self.namespaces: Source[frozenset[str]] = Complete(data=frozenset({NS}))
        self.crd: Source[CrdAge] = Complete(data=CrdAge(0.0, 0.0))
        self.unknown: dict[tuple[str, str], Unknown] = {}
        """The failure of a list, by kind (`syncers`, `services`, `slices`) and namespace; `*` for
        every namespace."""
        self.refuse: dict[str, Exception] = {}
        """Failing writes, by name of the call."""

    def identity(self, *, anew: bool = False) -> Source[str]:
        known = None if anew else self.remembered
        return known or self.wire.send("identity", lambda: self.uid, lambda: _FAILED)

    def list_syncers(self, namespaces: Sequence[str] | None) -> Listed[SyncerObject]:
        return self._list("syncers", list(self.syncers.values()), namespaces)

    def list_services(self, namespaces: Sequence[str] | None) -> Listed[Service]:
        return self._list("services", self.services, namespaces)

    def list_slices(self, namespaces: Sequence[str] | None) -> Listed[EndpointSlice]:
        return self._list("slices", self.slices, namespaces)

    def list_pods(self, namespaces: Sequence[str] | None) -> Listed[Pod]:
        return self._pods("list_pods", namespaces)

    def _pods(self, call: str, namespaces: Sequence[str] | None) -> Listed[Pod]:
        def walk() -> Listed[Pod]:
            names = {piece.namespace for piece in self.slices} if namespaces is None else namespaces
            return Listed(
                by_namespace={
                    namespace: self.unknown.get(("pods", namespace))
                    or Complete(data=self._living(namespace))
                    for namespace in names
                },
                elsewhere=Complete(data=()) if namespaces is None else _NOT_READ,
            )

        return self.wire.send(call, walk, lambda: Listed(by_namespace={}, elsewhere=_FAILED))

    def list_pod_drains(self, namespaces: Sequence[str] | None) -> Listed[Drainable]:
        listed = self._pods("list_pod_drains", namespaces)

        def drains(source: Source[tuple[Pod, ...]]) -> Source[tuple[Drainable, ...]]:
            if isinstance(source, Unknown):
                return source
            return Complete(data=tuple(drainable(p.uid, p.annotations) for p in source.data))

        return Listed(
            by_namespace={name: drains(source) for name, source in listed.by_namespace.items()},
            elsewhere=drains(listed.elsewhere),
        )

    def list_hosts(self, namespaces: Sequence[str] | None) -> Listed[PodHost]:
        def walk() -> Listed[PodHost]:
            sources: dict[str, Source[tuple[PodHost, ...]]] = {}
            for namespace in self.hosts if namespaces is None else namespaces:
                unknown = self.unknown.get(("hosts", namespace))
                sources[namespace] = unknown or Complete(data=self.hosts.get(namespace, ()))
            return Listed(by_namespace=sources, elsewhere=_NOT_READ)

        return self.wire.send(
            "list_hosts", walk, lambda: Listed(by_namespace={}, elsewhere=_FAILED)
        )

    def list_ingresses(self, namespaces: Sequence[str] | None) -> Listed[Ingress]:
        def walk() -> Listed[Ingress]:
            sources: dict[str, Source[tuple[Ingress, ...]]] = {}
            for namespace in self.ingresses if namespaces is None else namespaces:
                unknown = self.unknown.get(("ingresses", namespace))
                sources[namespace] = unknown or Complete(data=self.ingresses.get(namespace, ()))
            return Listed(by_namespace=sources, elsewhere=_NOT_READ)

        failed: Listed[Ingress] = Listed(by_namespace={}, elsewhere=_FAILED)
        return self.wire.send("list_ingresses", walk, lambda: failed)

    def list_reference_grants(self, namespaces: Sequence[str] | None) -> Listed[ReferenceGrant]:
        def walk() -> Listed[ReferenceGrant]:
            sources: dict[str, Source[tuple[ReferenceGrant, ...]]] = {}
            for namespace in self.reference_grants if namespaces is None else namespaces:
                unknown = self.unknown.get(("referencegrants", namespace))
                granted = self.reference_grants.get(namespace, ())
                sources[namespace] = unknown or Complete(data=granted)
            return Listed(by_namespace=sources, elsewhere=_NOT_READ)

        failed: Listed[ReferenceGrant] = Listed(by_namespace={}, elsewhere=_FAILED)
        return self.wire.send("list_reference_grants", walk, lambda: failed)

    def list_routes(self, namespaces: Sequence[str] | None) -> Listed[HttpRoute]:
        def walk() -> Listed[HttpRoute]:
            sources: dict[str, Source[tuple[HttpRoute, ...]]] = {}
            for namespace in self.routes if namespaces is None else namespaces:
                unknown = self.unknown.get(("routes", namespace))
                sources[namespace] = unknown or Complete(data=self.routes.get(namespace, ()))
            return Listed(by_namespace=sources, elsewhere=_NOT_READ)

        failed: Listed[HttpRoute] = Listed(by_namespace={}, elsewhere=_FAILED)
        return self.wire.send("list_routes", walk, lambda: failed)

    def list_gateways(self, namespaces: Sequence[str] | None) -> Listed[Gateway]:
        def walk() -> Listed[Gateway]:
            sources: dict[str, Source[tuple[Gateway, ...]]] = {}
            for namespace in self.gateways if namespaces is None else namespaces:
                unknown = self.unknown.get(("gateways", namespace))
                sources[namespace] = unknown or Complete(data=self.gateways.get(namespace, ()))
            return Listed(by_namespace=sources, elsewhere=_NOT_READ)

        failed: Listed[Gateway] = Listed(by_namespace={}, elsewhere=_FAILED)
        return self.wire.send("list_gateways", walk, lambda: failed)

    def list_readiness(self, namespaces: Sequence[str]) -> Listed[PodReadiness]:
        def walk() -> Listed[PodReadiness]:
            return Listed(
                by_namespace={
                    namespace: self.unknown.get(("readiness", namespace))
                    or Complete(data=self._whole(namespace))
                    for namespace in namespaces
                },
                elsewhere=_NOT_READ,
            )

        return self.wire.send(
            "list_readiness", walk, lambda: Listed(by_namespace={}, elsewhere=_FAILED)
        )

    def open_gate(self, pod: PodReadiness, *, reason: str, message: str, at: float) -> None:
        def effect() -> None:
            self._maybe_refuse("open_gate")
            if pod.uid in self.readiness:
                self.readiness[pod.uid] = replace(self.readiness[pod.uid], registered=True)
                self.opened[pod.name] = (reason, message)

        self.wire.send(f"open_gate {pod.name}", effect, _cluster_down)

    def list_nodes(self) -> Source[tuple[Node, ...]]:
        return self.wire.send("list_nodes", lambda: self.nodes, lambda: _FAILED)

    def list_namespaces(self, names: Sequence[str] | None) -> Listed[Namespace]:
        def walk() -> Listed[Namespace]:
            listed = self.annotations if names is None else names
            failed = self.unknown.get(("namespaces", "*"))
            found: dict[str, Source[tuple[Namespace, ...]]] = {
                name: self.unknown.get(("namespaces", name))
                or Complete(
                    data=(Namespace(name, self.annotations[name]),)
                    if name in self.annotations
                    else ()
                )
                for name in listed
            }
            elsewhere: Source[tuple[Namespace, ...]] = (
                Complete(data=()) if names is None else _NOT_READ
            )
            return (
                Listed(by_namespace={}, elsewhere=failed)
                if failed
                else Listed(by_namespace=found, elsewhere=elsewhere)
            )

        return self.wire.send(
            "list_namespaces", walk, lambda: Listed(by_namespace={}, elsewhere=_FAILED)
        )

    def crd_live(self) -> Source[CrdAge]:
        return self.wire.send("crd_live", lambda: self.crd, lambda: _FAILED)

    def namespace_exists(self, name: str) -> Source[bool]:
        there = self.namespaces
        answer: Source[bool] = (
            there if isinstance(there, Unknown) else Complete(data=name in there.data)
        )
        return self.wire.send(f"namespace_exists {name}", lambda: answer, lambda: _FAILED)

    def add_finalizer(self, syncer: SyncerObject) -> SyncerObject:
        return self.wire.send(
            f"add_finalizer {syncer.ref}", lambda: self._add_finalizer(syncer), _cluster_down
        )

    def remove_finalizer(self, syncer: SyncerObject) -> None:
        self.wire.send(
            f"remove_finalizer {syncer.ref}", lambda: self._remove_finalizer(syncer), _cluster_down
        )

    def write_status(self, syncer: SyncerObject, status: SyncerStatus) -> None:
        self.wire.send(
            f"write_status {syncer.ref}", lambda: self._write_status(syncer, status), _cluster_down
        )

    def record_event(self, event: EventRecord, *, at: float) -> None:
        self.wire.send(f"record_event {event.syncer}", lambda: self._record(event), _cluster_down)

    def apply(self, *things: SyncerObject | Service | EndpointSlice) -> None:
        """Create or replace an object. A syncer's new spec gives a new generation."""
        for thing in things:
            match thing:
                case SyncerObject():
                    old = self.syncers.get(thing.ref)
                    self.syncers[thing.ref] = (
                        replace(old, spec=thing.spec, generation=old.generation + 1)
                        if old
                        else thing
                    )
                case Service():
                    same = (thing.namespace, thing.name)
                    self.services = [s for s in self.services if (s.namespace, s.name) != same] + [
                        thing
                    ]
                case EndpointSlice():
                    same = (thing.namespace, thing.name)
                    self.slices = [s for s in self.slices if (s.namespace, s.name) != same] + [
                        thing
                    ]

    def delete(self, ref: SyncerRef) -> None:
        """Delete an object as `kubectl delete` does. One with finalizers stays until they are
        removed."""
        found = self.syncers[ref]
        self.syncers[ref] = replace(
            found, deleted=self._clock.now(), generation=found.generation + 1
        )
        self._collect(ref)

    def _list(
        self, kind: str, things: Iterable[Thing], namespaces: Sequence[str] | None
    ) -> Listed[Thing]:
        def walk() -> Listed[Thing]:
            failed = self.unknown.get((kind, "*"))
            if failed:
                return Listed(by_namespace={}, elsewhere=failed)
            found: dict[str, tuple[Thing, ...]] = dict.fromkeys(namespaces or (), ())
            for thing in things:
                if namespaces is None or thing.namespace in namespaces:
                    found[thing.namespace] = (*found.get(thing.namespace, ()), thing)
            return Listed(
                by_namespace={
                    namespace: self.unknown.get((kind, namespace)) or Complete(data=items)
                    for namespace, items in found.items()
                },
                elsewhere=Complete(data=()) if namespaces is None else _NOT_READ,
            )

        return self.wire.send(
            f"list_{kind}", walk, lambda: Listed(by_namespace={}, elsewhere=_FAILED)
        )

    def _living(self, namespace: str) -> tuple[Pod, ...]:
        known = {pod.uid: pod for pod in self.pods.get(namespace, ()) if isinstance(pod, Pod)}
        refs = [
            *self._pods_in_slices(namespace),
            *(p for p in self.pods.get(namespace, ()) if isinstance(p, PodRef)),
        ]
        found = {
            ref.uid: Pod(name=ref.name, uid=ref.uid) for ref in refs if ref.uid not in self.ended
        } | known
        return tuple(found[uid] for uid in sorted(found))

    def _whole(self, namespace: str) -> tuple[PodReadiness, ...]:
        """The pods whose readiness a test gave, and the others, which run as their endpoints
        say."""
        whole = [pod for pod in self.readiness.values() if pod.namespace == namespace]
        for pod in self._living(namespace):
            if pod.uid in self.readiness:
                continue
            ready = pod.uid in self._ready_in_slices(namespace)
            whole.append(
                PodReadiness(
                    namespace=namespace,
                    name=pod.name,
                    uid=pod.uid,
                    ready=ready,
                    registered=False,
                    running=ready,
                )
            )
        return tuple(whole)

    def _ready_in_slices(self, namespace: str) -> set[str]:
        ready = set()
        for piece in self.slices:
            for endpoint in piece.endpoints:
                if piece.namespace == namespace and endpoint.pod and endpoint.ready:
                    ready.add(endpoint.pod.uid)
        return ready

    def _pods_in_slices(self, namespace: str) -> Iterable[PodRef]:
        pieces = [piece for piece in self.slices if piece.namespace == namespace]
        return (endpoint.pod for piece in pieces for endpoint in piece.endpoints if endpoint.pod)

    def _add_finalizer(self, syncer: SyncerObject) -> SyncerObject:
        self._maybe_refuse("add_finalizer")
        now = self.syncers.get(syncer.ref)
        if now is None or now.deleted is not None or now.generation != syncer.generation:
            raise ClusterConflict(f"{syncer.ref} changed")
        if CLEANUP_FINALIZER not in now.finalizers:
            now = replace(now, finalizers=(*now.finalizers, CLEANUP_FINALIZER))
        self.syncers[syncer.ref] = now
        return now

    def _remove_finalizer(self, syncer: SyncerObject) -> None:
        self._maybe_refuse("remove_finalizer")
        now = self.syncers.get(syncer.ref)
        if now is not None and now.uid == syncer.uid:
            left = tuple(one for one in now.finalizers if one != CLEANUP_FINALIZER)
            self.syncers[syncer.ref] = replace(now, finalizers=left)
            self._collect(syncer.ref)

    def _write_status(self, syncer: SyncerObject, status: SyncerStatus) -> None:
        self._maybe_refuse("write_status")
        now = self.syncers.get(syncer.ref)
        if now is None:
            return
        if (now.uid, now.generation) != (syncer.uid, syncer.generation):
            raise ClusterConflict(f"{syncer.ref} changed")
        self.syncers[syncer.ref] = replace(now, status=status)

    def _record(self, event: EventRecord) -> None:
        self._maybe_refuse("record_event")
        self.events.append(event)

    def _collect(self, ref: SyncerRef) -> None:
        if self.syncers[ref].deleted is not None and not self.syncers[ref].finalizers:
            del self.syncers[ref]

    def _maybe_refuse(self, call: str) -> None:
        if call in self.refuse:
            raise self.refuse[call]


class _Always(Schedule):
    def due(self, now: float) -> bool:
        return True


class FakeWorld:
    """A cluster and a registry for passes."""

    def __init__(self, *, cache: float = 0) -> None:
        self.wire = Wire()
        self.clock = Clock()
        self.registry = Registry(self.wire, self.clock, cache=cache)
        self.cluster = Cluster(self.wire, self.clock)
        self.owner = OWNER
        self.former = NO_FORMER
        self.scope = Scope()
        self.pod_drains = False
        self.brake = BrakeLimits()
        self.renewals = RenewalLedger(period=0, slack=0)
        """By default every lease is due in every pass."""
        self.own_writes: OwnWrites | None = None
        """By default each pass is a process of its own."""
        self.sightings: Sightings | None = None
        """The same."""
        self.last_seen: LastSeen | None = None
        """The same."""
        self.recoveries: Recoveries | None = None
        """The same."""
        self.rewording: Schedule | None = None
        """By default every pass writes the latest text of a failure."""
        self.time_limit = TimeLimit(self.clock)

    def run(
        self, *, approved: PlanId | str | None = None, dry_run: bool = False, deadline: float = 120
    ) -> PassReport:
        """Make one pass. Afterwards the wire holds this pass's calls. A text as `approved` is a
        plan id."""
        self.wire.calls.clear()
        settings = replace(
            self.settings,
            approved=PlanId(approved) if isinstance(approved, str) else approved,
            dry_run=dry_run,
            deadline=deadline,
        )
        return reconcile(self.world, settings)

    @property
    def world(self) -> World:
        """The world that a pass of a process uses."""
        return World(
            registry=self.registry,
            cluster=self.cluster,
            clock=self.clock,
            workers=InTurn(),
            renewals=self.renewals,
            memory=Memory(
                own_writes=self.own_writes or OwnWrites(seconds=0),
                sightings=self.sightings or Sightings(),
                last_seen=self.last_seen or LastSeen(),
                recoveries=self.recoveries or Recoveries(),
                rewording=self.rewording or _Always(1),
            ),
            time_limit=self.time_limit,
        )

    @property
    def settings(self) -> PassSettings:
        """The settings of its passes."""
        return PassSettings(
            owner=self.owner,
            former=self.former,
            scope=self.scope,
            pod_drains=self.pod_drains,
            brake=self.brake,
        )

    def later(self, seconds: float) -> None:
        """Move the clock."""
        self.clock.sleep(seconds)

    def statuses(self) -> dict[str, str]:
        """The status of each registered instance, by app, address and port."""
        return {
            f"{one.key.app} {one.instance.ip_addr}:{one.instance.port.number}": one.status.value
            for one in self.registry.held.values()
        }
