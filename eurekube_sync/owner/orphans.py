"""The orphans, and what `run` will do with each, from a dry pass. The namespace of an orphan was
listed completely, and its syncer is not there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from msgspec import Struct

from eurekube_sync.brake.approval import approve_command
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import PassReport, PassSettings, World
from eurekube_sync.controller.reconcile import reconcile
from eurekube_sync.model.actions import Action, Cancel, Update
from eurekube_sync.model.errors import OwnerClash, Refused, Stopped
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.imports import is_of_an_import
from eurekube_sync.model.ownership import syncer_of
from eurekube_sync.model.sources import Cause, Server, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import counted
from eurekube_sync.observe.installations import nothing_of
from eurekube_sync.owner.known import in_order, known, refuse_clash


class Fate(StrEnum):
    CANCEL = "Cancel"
    HOLD = "Hold"
    RENEW = "Renew"
    UPDATE = "Update"


_IN_WORDS = {
    Fate.CANCEL: "to be cancelled",
    Fate.HOLD: "held",
    Fate.RENEW: "renewed",
    Fate.UPDATE: "to be changed",
}


class Orphan(Struct, frozen=True, kw_only=True):
    instance: ObservedInstance
    fate: Fate
    why: str


class Orphans(Struct, frozen=True, kw_only=True):
    found: tuple[Orphan, ...]
    slices: tuple[str, ...] = ()  # slices of no import, a sentence each
    unknown: tuple[str, ...] = ()  # what could not be read, a sentence each

    def code(self, *, detailed: bool) -> ExitCode:
        if self.unknown:
            return ExitCode.INCOMPLETE
        there = self.found or self.slices
        if detailed and there:
            return ExitCode.CHANGES_PENDING
        return ExitCode.OK

    @property
    def summary(self) -> str:
        """The summary line. It never says "none" while something is unknown."""
        counts = Counter([orphan.fate for orphan in self.found])
        parts: list[str] = []
        for fate, words in _IN_WORDS.items():
            if counts[fate]:
                parts.append(f"{counts[fate]} {words}")
        number = counted(len(self.found), "orphan")
        fates = ", ".join(parts)
        more = ""
        if self.slices:
            slices = counted(len(self.slices), "slice")
            more = f"; {slices} of no import"
        if self.unknown:
            known = f"{number} ({fates})" if fates else "no orphan"
            return f"{known} in what could be read{more}"
        if fates:
            return f"{number}: {fates}{more}"
        return f"no orphans{more}"


def look_for_orphans(world: World, settings: PassSettings) -> Orphans:
    """Make a dry pass, and return its orphans. Raise if Eureka or the cluster's UID cannot be
    read, if `run` is refused, or if the owner has no instance at all, because its name may be
    wrong."""
    report = reconcile(world, replace(settings, dry_run=True))
    if world.clock.stopping():
        raise Stopped("stopped by a signal: it is not known what `run` would do")
    assert report.view is not None  # only `keepalive` has none
    known(report.view.identity, Server.KUBERNETES)
    observed = known(report.registry, Server.EUREKA)
    away = world.registry.unreached()
    everything = (*observed.ours.values(), *observed.others.values())
    refuse_clash(everything, observed.ownership)
    for other in report.other_owners:
        if other.stops_us:
            raise OwnerClash(f"{other.question}. So `run` is refused, and removes no orphan")
    none = nothing_of(observed.ownership, everything)
    if none and not observed.listed and not away:
        raise Refused(none)
    orphans = tuple(_orphans(report, observed.ours.values()))
    slices = tuple(_slices_of_nobody(world, report))
    unknown = (*_unknown(report, away), *_absent(report, orphans))
    return Orphans(found=orphans, slices=slices, unknown=unknown)


def _slices_of_nobody(world: World, report: PassReport) -> Iterator[str]:
    """Yield the slices that an import made and that name no import any more, so that nothing
    updates or collects them: somebody took the reference to their owner away."""
    if report.imports is None:
        return
    namespaces = sorted(report.settings.scope.namespaces or ())
    listed = world.cluster.list_slices(namespaces or None)
    for namespace, slices in sorted(listed.by_namespace.items()):
        imports = report.imports.view.imports.of(namespace)
        if isinstance(slices, Unknown) or isinstance(imports, Unknown):
            continue
        uids = {import_.uid for import_ in imports.data}
        for piece in slices.data:
            if not is_of_an_import(piece) or piece.owner_uid in uids:
                continue
            name = piece.name
            fix = f"kubectl delete endpointslice {name} -n {namespace}"
            yield f"EndpointSlice {namespace}/{name} is of no EurekaImport: {fix}"


def _orphans(report: PassReport, ours: Iterable[ObservedInstance]) -> Iterator[Orphan]:
    assert report.desired is not None  # both servers were read
    desired = report.desired
    held = _held(report)
    actions = {action.key: action for action in report.plan.actions}
    for instance in in_order(ours):
        key = instance.key
        syncer = syncer_of(instance)
        assert syncer is not None  # `ours` holds none without
        listed = desired.syncers.of(syncer.namespace)
        if syncer in desired.claims or isinstance(listed, Unknown):
            continue
        if key in held:
            fate, what = Fate.HOLD, held[key]
        else:
            fate, what = _fate(actions[key])
        why = f"there is no syncer {syncer}; {what}"
        yield Orphan(instance=instance, fate=fate, why=why)


def _held(report: PassReport) -> dict[InstanceKey, str]:
    """Return why each held removal waits, and what releases it."""
    if report.held is None:
        return {}
    held: dict[InstanceKey, str] = {}
    command = approve_command(report.held.plan_id, report.settings.options)
    for hold in report.held.holds:
        why = f"held by the brake: {hold.text}"
        for removal in hold.removals:
            held[removal.key] = f"{why}. To release the held removals of all syncers: {command}"
    return held


def _fate(action: Action) -> tuple[Fate, str]:
    match action:
        case Cancel():
            return Fate.CANCEL, "the next `run` cancels it"
        case Update():
            return Fate.UPDATE, f"the next `run` gives it to syncer {action.syncer}"
        case _:
            return Fate.RENEW, f"`run` renews it: {action.why}"


def _absent(report: PassReport, found: Sequence[Orphan]) -> Iterator[str]:
    """Yield the namespaces that do not exist, a sentence each: without any orphan, the name may be
    wrong."""
    namespaces: set[str] = set()
    for orphan in found:
        syncer = syncer_of(orphan.instance)
        assert syncer is not None  # as in `_orphans`
        namespaces.add(syncer.namespace)
    for name in report.absent:
        if name not in namespaces:
            yield f"namespace {name} does not exist"


def _unknown(report: PassReport, away: Sequence[str]) -> Iterator[str]:
    """Yield what could not be read, a sentence each."""
    assert report.desired is not None  # both servers were read
    if away:
        servers = ", ".join(away)
        yield (f"{servers} could not be reached: orphans that are only there are not in this list")
    syncers = report.desired.syncers
    for name, source in sorted(syncers.by_namespace.items()):
        if isinstance(source, Unknown):
            yield f"EurekaSyncers of {name}: {source.message}"
    others = syncers.elsewhere
    if isinstance(others, Unknown) and others.cause is not Cause.NOT_READ:
        yield f"EurekaSyncers: {others.message}"
    if report.cut_short:
        yield "no time was left to read every instance again: what `run` does is partly unknown"
