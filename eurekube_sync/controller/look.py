"""A dry pass for `explain`, `status` and `check`, which goes on where a right is missing.

If the rights are for the whole cluster, it shows what the installation sees. If they are for one
namespace, the brake is not judged, because it weighs all namespaces. Beside the pass it reads Pods,
and asks each Eureka server."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property

from msgspec import Struct, field

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
from eurekube_sync.model.struct import replace

_UNREAD = frozenset({Reason.REGISTRY_UNKNOWN, Reason.SOURCE_UNKNOWN})
"""Reasons of conditions that say what a pass could not read."""
Reading = ObservedInstance | Unknown | None  # of an uncached read of one server; None: not there


class Deployed(Struct, frozen=True, kw_only=True):
    """The installation that was found in the cluster, by what a person pastes; all empty if none
    was."""

    resource: str = ""  # what kubectl calls it, such as `deployment NAME -n NAMESPACE`
    logs: str = ""  # the command that shows the logs of its passes
    start: str = ""  # the command that starts it, if it is suspended or scaled to 0


class LookWorld(Struct, frozen=True, kw_only=True):
    """Everything that a look uses."""

    world: World
    details: Details
    locks: Callable[[str, Scope], Sequence[tuple[LockName, LockStore]]] = lambda _owner, _scope: ()
    """The locks that an installation of this owner and scope may use."""
    deployed: Deployed = Deployed()
    offline: bool = False  # it reads saved files in place of the servers


class LastPass(Struct, frozen=True, kw_only=True):
    """The lock of the installation, which holds its last good pass."""

    name: str
    found: LockRecord | Unknown | None  # None: there is no such object


class Look(Struct, frozen=True, kw_only=True, dict=True):
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
        lock = self.lock
        return lock.good if lock is not None else None

    def unread(self, syncer: SyncerObject) -> Condition | None:
        """Return the condition of a syncer that says what the passes could not read; None if there
        is none, or if a pass was good after it."""
        if syncer.status is None:
            return None
        synced = syncer.status.condition("Synced")
        if synced is None or synced.reason not in _UNREAD:
            return None
        good = self.last_good
        if good is not None and good.at > synced.last_transition:
            return None
        return synced

    @cached_property
    def unread_by_passes(self) -> Sequence[Condition]:
        """The conditions of all syncers that say so, the oldest first."""
        conditions: list[Condition] = []
        for report in self.reports:
            for syncer in _listed(report):
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
        """The instances in Eureka's list, of any owner, by the syncer in their mark."""
        by_syncer: dict[SyncerRef, list[ObservedInstance]] = {}
        if isinstance(self.listed, Unknown):
            return by_syncer
        for instance in self.listed.data:
            syncer = syncer_of(instance)
            if syncer is not None:
                by_syncer.setdefault(syncer, []).append(instance)
        return by_syncer

    def marked(self, ref: SyncerRef) -> Sequence[ObservedInstance]:
        """Return our instances in Eureka's list that have the mark of this syncer."""
        marked: list[ObservedInstance] = []
        for instance in self._by_syncer.get(ref, ()):
            if self.is_ours(instance):
                marked.append(instance)
        return marked

    def owners_beside(self, ref: SyncerRef) -> Sequence[str]:
        """Return the other owners in this cluster that have instances of this syncer, by name."""
        owners: set[str] = set()
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
        if isinstance(self.identity, Unknown):
            return True
        return instance.metadata.get(CLUSTER) == self.identity.data

    @property
    def eureka_time(self) -> float:
        """The time by Eureka's clock, in Unix seconds."""
        return self.at + self.eureka_ahead

    def uncached(self, key: InstanceKey) -> Sequence[Reading]:
        """Return what the servers that were asked hold under this key, those that answered
        first."""
        answers: list[Reading] = []
        for readings in self.readings.values():
            if key in readings:
                answers.append(readings[key])
        return sorted(answers, key=lambda answer: isinstance(answer, Unknown))


def look(seen: LookWorld, settings: PassSettings, namespaces: Collection[str]) -> Look:
    """Make a dry pass over the scope of the settings, or over the one of `namespaces` if the
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
    if settings.scope.namespaces is None and len(namespaces) == 1 and _is_denied(report):
        narrowed = min(namespaces)
        scope = replace(settings.scope, namespaces=frozenset(namespaces))
        report = reconcile(world, replace(settings, scope=scope))
    others: list[PassReport] = []
    for scope in _scopes_beside(report, settings.scope, namespaces):
        others.append(reconcile(world, replace(settings, scope=scope)))
    last_pass: LastPass | None = None
    if owner:
        last_pass = _last_pass(seen, owner, settings.scope)
    return Look(
        report=report,
        asked=settings.scope,
        others=tuple(others),
        identity=identity,
        owner=owner,
        listed=listed,
        list_seconds=took,
        last_pass=last_pass,
        narrowed=narrowed,
        deployed=seen.deployed,
        offline=seen.offline,
        at=world.clock.now(),
    )


def _listed(report: PassReport) -> Iterable[SyncerObject]:
    """Return the syncers that the pass listed, in scope or not."""
    if report.view is None:
        return ()
    return every(report.view.syncers)


def _is_denied(report: PassReport) -> bool:
    """Say whether the syncers of the whole cluster may not be listed."""
    if report.view is None:
        return False
    elsewhere = report.view.syncers.elsewhere
    return isinstance(elsewhere, Unknown) and elsewhere.cause is Cause.DENIED


def with_details(seen: LookWorld, found: Look, namespaces: Iterable[str]) -> Look:
    """Add the Pods of these namespaces, and the selectors of their Services."""
    names = [name for name in dict.fromkeys(namespaces) if name not in found.pods]
    pods = dict(found.pods)
    for name in names:
        pods[name] = seen.details.list_pod_details(name)
    selectors = dict(found.selectors)
    for name in names:
        selectors[name] = seen.details.list_service_selectors(name)
    return replace(found, pods=pods, selectors=selectors)


def with_readings(seen: LookWorld, found: Look, keys: Collection[InstanceKey]) -> Look:
    """Add what each Eureka server holds under these keys now."""
    readings: dict[str, Mapping[InstanceKey, Reading]] = {}
    for address, server in seen.world.servers.items():
        readings[address] = _read(server, sorted(keys))
    ahead = 0.0
    if keys:
        ahead = _ahead(seen.world.servers.values())
    return replace(found, readings=readings, eureka_ahead=ahead)


def _ahead(servers: Iterable[EurekaServer]) -> float:
    """Return by how many seconds the first clock that answers is ahead of ours; 0 if none does."""
    for server in servers:
        with suppress(RegistryError):
            return server.ahead()
    return 0.0


def _read(registry: EurekaServer, keys: Iterable[InstanceKey]) -> Mapping[InstanceKey, Reading]:
    """Read the keys from one server. After a call without an answer, it is not asked for the
    others."""
    readings: dict[InstanceKey, Reading] = {}
    failed: Unknown | None = None
    for key in keys:
        if failed is not None:
            readings[key] = failed
            continue
        try:
            readings[key] = registry.read_instance(key)
        except RegistryError as error:
            unread = unknown_from(error)
            readings[key] = unread
            # An error without a cause is of this instance alone.
            if error.cause is not None:
                failed = unread
    return readings


def _last_pass(seen: LookWorld, owner: str, scope: Scope) -> LastPass | None:
    """Read the first lock that exists; if there is none, return why the first could not be
    read."""
    first: LastPass | None = None
    for name, store in seen.locks(owner, scope):
        record: LockRecord | Unknown | None
        try:
            record = store.read()
        except ClusterError as error:
            record = unknown_from(error)
        last_pass = LastPass(name=str(name), found=record)
        if isinstance(record, LockRecord):
            return last_pass
        if first is None:
            first = last_pass
    return first


def _scopes_beside(report: PassReport, scope: Scope, namespaces: Collection[str]) -> list[Scope]:
    """Return a scope for each class that the syncers out of our scope in these namespaces have."""
    beside: set[str] = set()
    classes: list[str | None] = []  # in the order of the syncers
    for syncer in _listed(report):
        if syncer.namespace not in namespaces or scope.takes(syncer):
            continue
        beside.add(syncer.namespace)
        syncer_class = class_of(syncer)
        if syncer_class not in classes:
            classes.append(syncer_class)
    whole = replace(scope, namespaces=frozenset(beside), selector=(), elsewhere=frozenset())
    return [replace(whole, syncer_class=name) for name in classes]


def _owner_in(listed: Source[tuple[ObservedInstance, ...]], identity: Source[str]) -> str:
    """Return the only owner that Eureka shows, of this cluster if that is known; empty for none, or
    several."""
    if isinstance(listed, Unknown):
        return ""
    owners: set[str] = set()
    for instance in listed.data:
        marks = instance.metadata
        if OWNER not in marks or syncer_of(instance) is None:
            continue
        if isinstance(identity, Unknown) or marks.get(CLUSTER) == identity.data:
            owners.add(marks[OWNER])
    if len(owners) == 1:
        return owners.pop()
    return ""
