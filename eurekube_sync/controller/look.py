"""A dry pass for `explain`, `status` and `check`, which goes on where a right is missing.

If the rights are for the whole cluster, it shows what the installation sees. If they are for one
namespace, the brake is not judged, because it weighs all namespaces. Beside the pass it reads Pods,
and asks each Eureka server."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

from eurekube_sync.controller.one_pass import PassReport, PassSettings, World
from eurekube_sync.controller.reconcile import reconcile
from eurekube_sync.desired.claims import every
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import class_of
from eurekube_sync.model.errors import ClusterError, RegistryError, unknown_from
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import (
    Condition,
    GoodPass,
    LockName,
    LockRecord,
    PodDetail,
    ServiceSelector,
    SyncerObject,
    SyncerRef,
)
from eurekube_sync.model.ownership import CLUSTER, OWNER, syncer_of
from eurekube_sync.model.ports import Details, EurekaServer, LockStore
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown

_UNREAD = frozenset({Reason.REGISTRY_UNKNOWN, Reason.SOURCE_UNKNOWN})
"""Reasons of conditions that say what a pass could not read."""
Reading = ObservedInstance | Unknown | None  # of an uncached read of one server; None: not there


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """The installation that was found in the cluster, by what a person pastes; all empty if none
    was."""

    resource: str = ""  # what kubectl calls it, such as `deployment NAME -n NAMESPACE`
    logs: str = ""  # the command that shows the logs of its passes
    start: str = ""  # the command that starts it, if it is suspended or scaled to 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LookWorld:
    """Everything that a look uses."""

    world: World
    details: Details
    locks: Callable[[str, Scope], Sequence[tuple[LockName, LockStore]]] = lambda _owner, _scope: ()
    """The locks that an installation of this owner and scope may use."""
    deployed: Deployed = Deployed()
    offline: bool = False  # it reads saved files in place of the servers


@dataclass(frozen=True, slots=True, kw_only=True)
class LastPass:
    """The lock of the installation, which holds its last good pass."""

    name: str
    found: LockRecord | Unknown | None  # None: there is no such object


@dataclass(frozen=True, kw_only=True)  # without slots: it keeps its index
class Look:
    """What a look found."""

    report: PassReport  # of the installation's own scope, or of the one namespace that may be read
    asked: Scope  # the scope of the options
    others: tuple[
        PassReport, ...
    ] = ()  # of syncers in the namespaces looked at that are out of that scope
    identity: Source[str]  # UID of the namespace kube-system
    owner: str  # empty if it was not given, and Eureka does not show it
    listed: Source[tuple[ObservedInstance, ...]]  # Eureka's cached list, as callers get it
    list_seconds: float = 0.0  # how long the list took
    last_pass: LastPass | None = None  # None if there is no lock, or the owner is not known
    narrowed: str = (
        ""  # the namespace that was read because the cluster could not be listed; else empty
    )
    deployed: Deployed = Deployed()
    offline: bool = False  # as `LookWorld` has it
    at: float  # Unix seconds
    pods: Mapping[str, Source[tuple[PodDetail, ...]]] = field(default_factory=dict)  # by namespace
    selectors: Mapping[str, Source[tuple[ServiceSelector, ...]]] = field(default_factory=dict)
    """The selectors of the Services, by namespace."""
    readings: Mapping[str, Mapping[InstanceKey, Reading]] = field(
        default_factory=dict
    )  # uncached, by server
    eureka_ahead: float = (
        0.0  # seconds that the clock of the first server that answers is ahead of ours
    )

    @property
    def lock(self) -> LockRecord | None:
        """The lock of the installation, if it could be read."""
        if self.last_pass is None or isinstance(self.last_pass.found, Unknown):
            return None
        return self.last_pass.found

    @property
    def last_good(self) -> GoodPass | None:
        """The last good pass, as the lock shows it."""
        return self.lock.good if self.lock is not None else None

    def unread(self, syncer: SyncerObject) -> Condition | None:
        """Gives the condition of a syncer that says what the passes could not read; None if there
        is none, or if a pass was good after it."""
        synced = syncer.status.condition("Synced") if syncer.status is not None else None
        if synced is None or synced.reason not in _UNREAD:
            return None
        good = self.last_good
        if good is not None and good.at > synced.last_transition:
            return None
        return synced

    @cached_property
    def unread_by_passes(self) -> Sequence[Condition]:
        """The conditions of all syncers that say so, the oldest first."""
        conditions = []
        for report in self.reports:
            for syncer in every(report.view.syncers) if report.view else ():
                condition = self.unread(syncer)
                if condition is not None:
                    conditions.append(condition)
        return sorted(conditions, key=lambda condition: condition.last_transition)

    @cached_property
    def pod_uids(self) -> Mapping[str, frozenset[str]]:
        """The UIDs of the Pods in each namespace whose list is complete."""
        uids: dict[str, frozenset[str]] = {}
        for namespace, source in self.pods.items():
            if isinstance(source, Complete):
                uids[namespace] = frozenset(pod.uid for pod in source.data)
        return uids

    @property
    def reports(self) -> tuple[PassReport, ...]:
        """All reports, with the installation's own first."""
        return (self.report, *self.others)

    @cached_property
    def _by_syncer(self) -> Mapping[SyncerRef, Sequence[ObservedInstance]]:
        marked: dict[SyncerRef, list[ObservedInstance]] = {}
        if isinstance(self.listed, Complete):
            for instance in self.listed.data:
                syncer = syncer_of(instance)
                if syncer is not None:
                    marked.setdefault(syncer, []).append(instance)
        return marked

    def marked(self, ref: SyncerRef) -> Sequence[ObservedInstance]:
        """Gives our instances in Eureka's list that have the mark of this syncer."""
        return [instance for instance in self._by_syncer.get(ref, ()) if self.is_ours(instance)]

    def owners_beside(self, ref: SyncerRef) -> Sequence[str]:
        """Gives the other owners in this cluster that have instances of this syncer, by name."""
        owners = set()
        for instance in self._by_syncer.get(ref, ()):
            owner = instance.metadata.get(OWNER, "")
            if owner not in ("", self.owner) and self._is_of_cluster(instance):
                owners.add(owner)
        return sorted(owners)

    def is_ours(self, instance: ObservedInstance) -> bool:
        """Whether owner **and** cluster match: another cluster may have a syncer of the same name.
        An owner or a cluster that is not known matches every instance."""
        return self.owner in ("", instance.metadata.get(OWNER)) and self._is_of_cluster(instance)

    def _is_of_cluster(self, instance: ObservedInstance) -> bool:
        return (
            isinstance(self.identity, Unknown)
            or instance.metadata.get(CLUSTER) == self.identity.data
        )

    @property
    def eureka_time(self) -> float:
        """The time by Eureka's clock, in Unix seconds."""
        return self.at + self.eureka_ahead

    def uncached(self, key: InstanceKey) -> Sequence[Reading]:
        """Gives what the servers that were asked hold under this key, those that answered first."""
        answers = [readings[key] for readings in self.readings.values() if key in readings]
        return sorted(answers, key=lambda answer: isinstance(answer, Unknown))


def look(seen: LookWorld, settings: PassSettings, namespaces: Collection[str]) -> Look:
    """Makes a dry pass over the scope of the settings, or over the one of `namespaces` if the
    cluster may not be listed. An empty owner is taken from Eureka, if its instances name only
    one."""
    world = seen.world
    identity = world.cluster.identity()
    asked_at = world.clock.monotonic()
    listed = world.registry.list_instances()
    took = world.clock.monotonic() - asked_at
    owner = settings.owner or _owner_in(listed, identity)
    settings = replace(settings, owner=owner, dry_run=True, looks=True)
    report = reconcile(world, settings)
    narrowed = ""
    elsewhere = report.view.syncers.elsewhere if report.view else None
    denied = isinstance(elsewhere, Unknown) and elsewhere.cause is Cause.DENIED
    if settings.scope.namespaces is None and denied and len(namespaces) == 1:
        narrowed = min(namespaces)
        report = reconcile(
            world,
            replace(settings, scope=replace(settings.scope, namespaces=frozenset(namespaces))),
        )
    scopes = _scopes_beside(report, settings.scope, namespaces)
    others = tuple(reconcile(world, replace(settings, scope=scope)) for scope in scopes)
    return Look(
        report=report,
        asked=settings.scope,
        others=others,
        identity=identity,
        owner=owner,
        listed=listed,
        list_seconds=took,
        last_pass=_last_pass(seen, owner, settings.scope) if owner else None,
        narrowed=narrowed,
        deployed=seen.deployed,
        offline=seen.offline,
        at=world.clock.now(),
    )


def with_details(seen: LookWorld, found: Look, namespaces: Iterable[str]) -> Look:
    """Adds the Pods of these namespaces, and the selectors of their Services."""
    names = [name for name in dict.fromkeys(namespaces) if name not in found.pods]
    pods = {name: seen.details.list_pod_details(name) for name in names}
    selectors = {name: seen.details.list_service_selectors(name) for name in names}
    return replace(found, pods={**found.pods, **pods}, selectors={**found.selectors, **selectors})


def with_readings(seen: LookWorld, found: Look, keys: Collection[InstanceKey]) -> Look:
    """Adds what each Eureka server holds under these keys now."""
    servers = seen.world.servers
    readings = {address: _read(server, sorted(keys)) for address, server in servers.items()}
    return replace(found, readings=readings, eureka_ahead=_ahead(servers.values()) if keys else 0.0)


def _ahead(servers: Iterable[EurekaServer]) -> float:
    """Gives by how many seconds the first clock that answers is ahead of ours; 0 if none does."""
    for server in servers:
        with suppress(RegistryError):
            return server.ahead()
    return 0.0


def _read(registry: EurekaServer, keys: Iterable[InstanceKey]) -> Mapping[InstanceKey, Reading]:
    """Reads the keys from one server. After a call without an answer, it is not asked for the
    others."""
    found: dict[InstanceKey, Reading] = {}
    failed: Unknown | None = None
    for key in keys:
        try:
            found[key] = failed or registry.read_instance(key)
        except RegistryError as error:
            found[key] = unknown_from(error)
            failed = unknown_from(error) if error.cause is not None else None
    return found


def _last_pass(seen: LookWorld, owner: str, scope: Scope) -> LastPass | None:
    """Reads the first lock that exists; if there is none, gives why the first could not be read."""
    found: LastPass | None = None
    for name, store in seen.locks(owner, scope):
        record: LockRecord | Unknown | None
        try:
            record = store.read()
        except ClusterError as error:
            record = unknown_from(error)
        beat = LastPass(name=str(name), found=record)
        if isinstance(record, LockRecord):
            return beat
        found = found or beat
    return found


def _scopes_beside(report: PassReport, scope: Scope, namespaces: Collection[str]) -> list[Scope]:
    """Return a scope for each class that the syncers out of our scope in these namespaces have."""
    listed = every(report.view.syncers) if report.view else ()
    beside: set[str] = set()
    classes: dict[str | None, None] = {}  # in the order of the syncers
    for syncer in listed:
        if syncer.namespace in namespaces and not scope.takes(syncer):
            beside.add(syncer.namespace)
            classes[class_of(syncer)] = None
    whole = replace(scope, namespaces=frozenset(beside), selector=(), elsewhere=frozenset())
    return [replace(whole, syncer_class=name) for name in classes]


def _owner_in(listed: Source[tuple[ObservedInstance, ...]], identity: Source[str]) -> str:
    """Return the only owner that Eureka shows, of this cluster if that is known; empty for none, or
    several."""
    cluster = identity.data if isinstance(identity, Complete) else None
    owners: set[str] = set()
    if isinstance(listed, Complete):
        for instance in listed.data:
            marks = instance.metadata
            is_ours = syncer_of(instance) is not None and OWNER in marks
            if is_ours and cluster in (None, marks.get(CLUSTER)):
                owners.add(marks[OWNER])
    if len(owners) == 1:
        return owners.pop()
    return ""
