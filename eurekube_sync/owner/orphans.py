"""Which instances are nobody's any more, and what `run` will do with each: read from the dry run of a pass.

An orphan's namespace was listed completely and its syncer is not there. Where a list failed, nothing is an orphan, and
nothing is said to be none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, cast

from eurekube_sync.brake.approval import approve_command
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import PassReport, PassSettings, World
from eurekube_sync.controller.reconcile import reconcile
from eurekube_sync.model.actions import Action, Cancel, Renew, Update
from eurekube_sync.model.errors import OwnerClash, Refused, SourceUnknown, Stopped
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerObject, SyncerRef
from eurekube_sync.model.ownership import CLUSTER, SYNCER, Ownership, syncer_of
from eurekube_sync.model.ports import Registry
from eurekube_sync.model.sources import Cause, Complete, Listed, Server, Source, Unknown
from eurekube_sync.model.wording import counted
from eurekube_sync.observe.other_owner import nothing_of


class Kind(StrEnum):
    """Why an instance is on the list."""

    NO_SYNCER = "NoSyncer"
    """Its namespace was listed completely, and has no such syncer."""
    NO_NAMESPACE = "NoNamespace"
    """Not even the namespace is there."""
    NO_MARK = "NoMark"
    """Ours, but its mark names no syncer."""
    OTHER_CLUSTER = "OtherCluster"
    """It has our owner and another cluster."""
    UNKNOWN = "Unknown"
    """Its syncers could not be listed."""


class Fate(StrEnum):
    """What `run` will do with it."""

    CANCEL = "Cancel"
    HOLD = "Hold"
    RENEW = "Renew"
    UPDATE = "Update"
    LEAVE = "Leave"


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """One instance, and what becomes of it."""

    instance: ObservedInstance
    kind: Kind
    fate: Fate
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphans:
    found: tuple[Orphan, ...]
    unknown: tuple[str, ...] = ()
    """What could not be read, a sentence each."""

    def code(self, *, detailed: bool) -> ExitCode:
        """What was not seen comes first."""
        if self.unknown:
            return ExitCode.INCOMPLETE
        return ExitCode.CHANGES_PENDING if detailed and self.found else ExitCode.OK

    @property
    def summary(self) -> str:
        """The one line. Never "none" where something is unknown."""
        undecided = sum(one.kind is Kind.UNKNOWN for one in self.found)
        known = len(self.found) - undecided
        fates = [(sum(one.fate is fate for one in self.found if one.kind is not Kind.UNKNOWN), fate) for fate in Fate]
        shown = ", ".join(f"{number} {_IN_WORDS[fate]}" for number, fate in fates if number)
        if not self.unknown:
            return f"{counted(known, 'orphan')}: {shown}" if known else "no orphans"
        seen = f"{counted(known, 'orphan')} ({shown})" if known else "no orphan"
        open_ = f"; of {counted(undecided, 'instance')} it is not known" if undecided else ""
        return f"{seen} in what could be read{open_}"


_IN_WORDS = {
    Fate.CANCEL: "to be cancelled",
    Fate.HOLD: "held",
    Fate.RENEW: "renewed",
    Fate.UPDATE: "taken over by another syncer",
    Fate.LEAVE: "left to expire",
}


class _OneCluster:
    """A registry whose list leaves out the owner's instances of other clusters, so that a dry run goes on past them."""

    def __init__(self, registry: Registry, owner: str, cluster: str) -> None:
        self._registry = registry
        self._ownership = Ownership(owner=owner, cluster=cluster)
        self.others: tuple[ObservedInstance, ...] = ()
        """What the last list left out."""

    def list_instances(self) -> Source[tuple[ObservedInstance, ...]]:
        listed = self._registry.list_instances()
        if isinstance(listed, Unknown):
            return listed
        self.others = tuple(one for one in listed.data if self._ownership.clashes(one))
        return Complete(data=tuple(one for one in listed.data if not self._ownership.clashes(one)))

    def __getattr__(self, name: str) -> Any:
        """All that reads is the registry's. A dry run writes nothing."""
        if name in ("register", "renew", "cancel"):
            raise NotImplementedError(name)
        return getattr(self._registry, name)


def look_for_orphans(world: World, settings: PassSettings) -> Orphans:
    """Asks both servers, as a dry run of `run` does. Raises when nothing can be said."""
    identity = world.cluster.identity()
    uid = "" if isinstance(identity, Unknown) else identity.data
    registry = _OneCluster(world.registry, settings.owner, uid)
    report = reconcile(replace(world, registry=cast(Registry, registry)), replace(settings, dry_run=True))
    namespaces = {name: world.cluster.namespace_exists(name) for name in _namespaces_without_syncers(report)}
    if world.clock.stopping():
        raise Stopped("stopped by a signal: it is not known what `run` would do")
    for other in report.other_owners:
        if other.stops_us:
            raise OwnerClash(f"{other.question} `run` is refused, so it removes no orphan")
    return find_orphans(report, registry.others, namespaces, world.registry.unreached())


def find_orphans(
    report: PassReport,
    others: Sequence[ObservedInstance],
    namespaces: Mapping[str, Source[bool]],
    unreached: Sequence[str] = (),
) -> Orphans:
    """From the dry run of a pass, what its list left out of other clusters, which namespaces there are, and the Eureka
    servers that are away.

    Raises when Eureka, or the identity of the cluster, could not be read: then nothing can be said. So it does where
    the owner has nothing at all: of a wrong name it would be said that there are none.
    """
    assert report.view is not None  # a pass of `run` has one
    if isinstance(report.view.identity, Unknown):
        raise SourceUnknown(Server.KUBERNETES, report.view.identity)
    if isinstance(report.registry, Unknown):
        raise SourceUnknown(Server.EUREKA, report.registry)
    assert report.desired is not None  # both were read, and the clashes were left out
    observed, desired = report.registry.data, report.desired
    none = nothing_of(observed.ownership, (*observed.ours.values(), *observed.others.values(), *others))
    if none and not (observed.listed or others or unreached):
        raise Refused(none)
    held = {one.key: hold.why for hold in report.held.holds for one in hold.removals} if report.held else {}
    actions = {action.key: action for action in report.plan.actions}
    found: list[Orphan] = []
    for key, one in sorted(observed.ours.items()):
        syncer = syncer_of(one)
        assert syncer is not None  # `ours` holds none without
        if syncer in desired.claims:
            continue
        source = desired.syncers.of(syncer.namespace)
        if isinstance(source, Unknown):
            found.append(Orphan(instance=one, kind=Kind.UNKNOWN, fate=Fate.RENEW, why=source.message))
            continue
        kind, why = _gone(syncer, namespaces.get(syncer.namespace))
        if others:
            fate, what = Fate.RENEW, "`run` does nothing but renew while another cluster uses this owner"
        elif report.held and key in held:
            release = approve_command(report.held.plan_id, report.options)
            fate, what = Fate.HOLD, f"held by the brake: {held[key]}; {release}"
        else:
            fate, what = _fate(actions[key])
        found.append(Orphan(instance=one, kind=kind, fate=fate, why=f"{why}; {what}"))
    found += _without_mark(report, observed.others)
    found += [_of_other_cluster(one) for one in sorted(others, key=lambda one: one.key)]
    return Orphans(found=tuple(found), unknown=(*_unlisted(unreached), *_unread(desired.syncers), *_late(report)))


def _namespaces_without_syncers(report: PassReport) -> tuple[str, ...]:
    """The marked ones whose list is complete and empty."""
    if report.desired is None or isinstance(report.registry, Unknown):
        return ()
    syncers = report.desired.syncers
    marked = {ref.namespace for one in report.registry.data.ours.values() if (ref := syncer_of(one))}
    return tuple(sorted(name for name in marked if syncers.of(name) == Complete(data=())))


def _gone(syncer: SyncerRef, namespace: Source[bool] | None) -> tuple[Kind, str]:
    if namespace == Complete(data=False):
        return Kind.NO_NAMESPACE, f"there is no namespace {syncer.namespace}"
    return Kind.NO_SYNCER, f"there is no syncer {syncer}"


def _fate(action: Action) -> tuple[Fate, str]:
    match action:
        case Cancel():
            return Fate.CANCEL, "the next `run` cancels it"
        case Update():
            return Fate.UPDATE, f"the next `run` gives it to syncer {action.syncer}"
        case Renew():
            return Fate.RENEW, f"`run` renews it: {action.why}"
        case _:  # pragma: no cover
            raise AssertionError(action)


def _without_mark(report: PassReport, others: Mapping[InstanceKey, ObservedInstance]) -> Iterator[Orphan]:
    assert isinstance(report.registry, Complete)
    ownership = report.registry.data.ownership
    for _, one in sorted(others.items()):
        if ownership.holds(one) and syncer_of(one) is None:
            mark = one.metadata.get(SYNCER, "")
            why = (
                f"its mark {SYNCER} says {mark!r}, which is not namespace/name: `run` never changes it, and it expires"
            )
            yield Orphan(instance=one, kind=Kind.NO_MARK, fate=Fate.LEAVE, why=why)


def _of_other_cluster(one: ObservedInstance) -> Orphan:
    uid = one.metadata[CLUSTER]
    why = (
        f"it is of cluster {uid}, and `run` refuses to work beside it; if this cluster replaces that one: "
        f"eurekube-sync owner adopt --cluster {uid}"
    )
    return Orphan(instance=one, kind=Kind.OTHER_CLUSTER, fate=Fate.LEAVE, why=why)


def _unlisted(unreached: Sequence[str]) -> Iterator[str]:
    if unreached:
        yield f"{', '.join(unreached)} could not be reached: orphans that are only there are not in this list"


def _late(report: PassReport) -> Iterator[str]:
    if report.cut_short:
        yield "the time ended before everything was read again: what `run` does is partly unknown"


def _unread(syncers: Listed[SyncerObject]) -> Iterator[str]:
    for name, source in sorted(syncers.by_namespace.items()):
        if isinstance(source, Unknown):
            yield f"EurekaSyncers of {name}: {source.message}"
    if isinstance(syncers.elsewhere, Unknown) and syncers.elsewhere.cause is not Cause.NOT_READ:
        yield f"EurekaSyncers: {syncers.elsewhere.message}"
