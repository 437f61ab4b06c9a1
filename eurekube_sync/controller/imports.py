"""The step of a pass that makes apps of Eureka callable in the cluster. It comes after all that
syncers need: leases expire, slices do not.

    list imports, Services, slices -> claims -> plan -> list other Eureka servers -> brake
    -> finalizers, Services, slices -> statuses
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf

from eurekube_sync.apply.conditions import OLD_LIST
from eurekube_sync.apply.import_status import ImportResult, import_statuses
from eurekube_sync.apply.imports import settle_imports, settlings, write_imports
from eurekube_sync.brake.approval import annotation_releases, refusal
from eurekube_sync.brake.confirm import unread_of
from eurekube_sync.brake.holds import Brake
from eurekube_sync.brake.imports import BrakedImports, Doubts, brake_imports, is_young
from eurekube_sync.controller.one_pass import Ends, Found, Given, ImportReport, Shares
from eurekube_sync.desired.imports import (
    ByName,
    ImportView,
    Rules,
    claim_imports,
    is_unread,
    parsed_networks,
)
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.imports import ImportRef, ImportStatus, ImportWrites
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import newest_renewal
from eurekube_sync.observe.imports import read_imports, registry_age
from eurekube_sync.plan.imports import (
    Drop,
    ImportPlan,
    absent,
    kept_elsewhere,
    plan_imports,
    work_of,
)

_ASKED_AGAIN = 60.0
"""Seconds after which another Eureka server that could not be listed is asked again."""


def import_apps(
    given: Given, found: Found, listed: Source[tuple[ObservedInstance, ...]]
) -> ImportReport | None:
    """Make the apps of all imports callable; in a dry run, say what would be done. Return None if
    imports are off. `listed` is Eureka's list, as it came."""
    settings = given.settings
    writes = given.world.imports
    if writes is None or not settings.import_networks:
        return None
    given.deadline.stage(Ends.SETTLING, part_of_rest=0.5)
    view = read_imports(given.world.cluster, writes, found.view, settings.scope)
    registry = _registry(found, listed)
    instances: Sequence[ObservedInstance] = ()
    if isinstance(registry, Complete):
        instances = registry.data
    claims = claim_imports(view, ByName(instances), _rules(given))
    report = ImportReport(view=view, claims=claims, plan=ImportPlan(claims=claims))
    if isinstance(registry, Complete):
        report = _planned(given, found, report, instances)
    else:
        report = replace(report, registry=registry)
        if not settings.dry_run:
            given.world.memory.import_sightings.nothing_seen()
    given.deadline.stage_for(Shares.WRITING)
    if settings.dry_run:
        return report
    return _carried_out(given, writes, report)


def _rules(given: Given) -> Rules:
    """Return what the installation says of all imports. Former owners and clusters count as
    ours."""
    settings = given.settings
    return Rules(
        clusters=frozenset({given.identity.data, *settings.former.clusters}),
        networks=parsed_networks(settings.import_networks),
        owners=frozenset({given.ownership.owner, *given.ownership.former.owners}),
        scope=settings.scope,
    )


def _registry(
    found: Found, listed: Source[tuple[ObservedInstance, ...]]
) -> Source[tuple[ObservedInstance, ...]]:
    """Return Eureka's list, unless an uncached read showed that it is old."""
    if isinstance(found.registry, Complete) and found.registry.data.outdated is not None:
        return Unknown(cause=Cause.UNUSABLE, message=OLD_LIST)
    return listed


def _planned(
    given: Given, found: Found, report: ImportReport, instances: Sequence[ObservedInstance]
) -> ImportReport:
    """Return the report with the plan after the brake."""
    assert isinstance(found.registry, Complete)  # as the list of the same answer
    age = registry_age(instances, found.registry.data.newest)
    plan = plan_imports(report.claims, given.settings.scope.policy)
    doubts = Doubts(age=age)
    if absent(plan.drops) and not is_young(age):
        plan, doubts = _beside(given, plan, doubts)
    braked = _braked(given, report, plan, doubts)
    names = _names(given, report.view)
    work = tuple(work_of(braked.plan, names))
    return replace(report, plan=braked.plan, held=braked.held, approved=braked.approved, work=work)


def _beside(given: Given, plan: ImportPlan, doubts: Doubts) -> tuple[ImportPlan, Doubts]:
    """Return the plan without the removal of what is UP on another Eureka server, and the servers
    that could not be listed, or have just started: their lists do not show what is missing."""
    servers = given.world.servers
    if len(servers) < 2:
        return plan, doubts
    failed = given.world.memory.unlisted
    now = given.world.clock.monotonic()
    unseen: list[str] = []
    young: list[str] = []
    for address, server in servers.items():
        # One that hangs would take its time from each pass.
        if now - failed.get(address, -inf) < _ASKED_AGAIN:
            unseen.append(address)
            continue
        listed = server.list_instances()
        if isinstance(listed, Unknown):
            failed[address] = now
            unseen.append(address)
            continue
        plan = kept_elsewhere(plan, ByName(listed.data))
        age = registry_age(listed.data, newest_renewal(listed.data))
        if is_young(age):
            young.append(address)
    return plan, replace(doubts, unseen=tuple(unseen), young=tuple(young))


def _braked(given: Given, report: ImportReport, plan: ImportPlan, doubts: Doubts) -> BrakedImports:
    """Apply the brake as to instances. A dry run remembers nothing for the next pass."""
    settings = given.settings
    clock = given.world.clock
    now = clock.now()
    looked = clock.monotonic()
    # The brake knows an import by a name of the same shape as a syncer's.
    freed: set[SyncerRef] = set()
    statuses: dict[SyncerRef, ImportStatus | None] = {}
    for ref, claim in plan.claims.items():
        name = SyncerRef(*ref)
        statuses[name] = claim.import_.status
        if annotation_releases(claim.import_, now):
            freed.add(name)
    approval = None
    if refusal(settings.approved, now) is None:
        approval = settings.approved

    # An earlier sighting counts only for so long: passes that are further apart let leases expire.
    confirm_within = settings.brake.confirm_after + settings.lease.expires_after
    begun = given.deadline.begun
    begun_at = now - (looked - begun)  # in Unix seconds
    sightings = given.world.memory.import_sightings
    seen = sightings.before(statuses, begun=begun, now=begun_at, within=confirm_within)
    brake = Brake(
        limits=settings.brake,
        freed_by_annotation=frozenset(freed),
        approval=approval,
        seen=seen,
        confirm_within=confirm_within,
    )
    braked = brake_imports(plan, doubts, brake)
    if not settings.dry_run:
        unread = unread_of(seen, partial(_is_unread, report), within=confirm_within)
        sightings.note(braked.held, seen, begun=begun, looked=looked, unread=unread)
    return braked


def _is_unread(report: ImportReport, name: SyncerRef) -> bool:
    """Say whether a source of this import, or the list that it is in, could not be read."""
    claim = report.claims.get(ImportRef(*name))
    if claim is None:
        return isinstance(report.view.imports.of(name.namespace), Unknown)
    return is_unread(claim)


def _names(given: Given, view: ImportView) -> dict[str, set[str]]:
    """Return the names of all slices by namespace, also of some that are in no list because they
    belong to no Service: this process tried to make others of these names."""
    names: dict[str, set[str]] = {}
    for namespace, source in view.slices.by_namespace.items():
        names[namespace] = set()
        if isinstance(source, Complete):
            names[namespace].update(piece.name for piece in source.data)
    for namespace, name in given.world.memory.slice_names:
        names.setdefault(namespace, set()).add(name)
    return names


def _carried_out(given: Given, writes: ImportWrites, report: ImportReport) -> ImportReport:
    """Write Services and slices, unless another cluster may answer now."""
    world = given.world
    if (report.work or report.plan.endings) and not world.clock.stopping():
        doubt = given.same.doubt("no import is written")
        if doubt is not None:
            plan = replace(report.plan, endings=())
            return replace(report, doubt=doubt, work=(), plan=plan, approved=frozenset())
    outcomes = write_imports(writes, world.workers, given.deadline, report.work)
    failed: set[ImportRef] = set()
    for ref, outcome in outcomes.items():
        if outcome.refused is not None:
            name = outcome.refused.namespace, outcome.refused.name
            world.memory.slice_names.add(name)
        if outcome.failed:
            failed.add(ref)
    _remember_failed(given, report, failed)
    return replace(report, outcomes=outcomes)


def _remember_failed(given: Given, report: ImportReport, failed: set[ImportRef]) -> None:
    """Let what a second pass confirmed, and could not write, not wait again."""
    drops: list[Drop] = []
    for drop in report.plan.drops:
        if drop.import_ in failed:
            drops.append(drop)
    if drops:
        given.world.memory.import_sightings.keep(drops)


def settle_apps(given: Given, report: ImportReport) -> ImportReport:
    """Write statuses and events, and let deleted imports go."""
    world = given.world
    settings = given.settings
    writes = world.imports
    assert writes is not None  # there is a report
    now = world.clock.now()
    given.deadline.stage_for(Shares.SETTLING)
    result = ImportResult(
        claims=report.claims,
        kept=report.plan.kept,
        registry=report.registry,
        held=report.held,
        outcomes=report.outcomes,
        now=now,
        options=settings.options,
        owner=given.ownership.owner,
        syncer_class=settings.scope.syncer_class or "",
    )
    statuses = import_statuses(result)
    report = replace(report, all_statuses=statuses)
    if settings.dry_run or report.doubt is not None:
        return report
    # Statuses of which only the words changed are written now and then.
    words_due = world.memory.import_rewording.due(now)
    due = settlings(report.claims, report.plan.endings, statuses, report.outcomes, words=words_due)
    written, errors = settle_imports(
        world.cluster, writes, world.clock, world.workers, given.deadline, due
    )
    return replace(report, statuses=written, errors=errors)
