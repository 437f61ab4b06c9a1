"""The last step of a pass: removed finalizers, statuses, events and readiness gates. And syncers that nobody serves."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from eurekube_sync.apply.gates import open_gates, openings
from eurekube_sync.apply.kubernetes import Unsettled, record, settle, unsettled
from eurekube_sync.apply.tally import PassResult
from eurekube_sync.controller.one_pass import SETTLING, Found, Given, PassReport, Renewed
from eurekube_sync.model.ownership import pod_namespace_of
from eurekube_sync.model.sources import Unknown
from eurekube_sync.observe.left_scope import AGAIN, Unserved, living, unserved
from eurekube_sync.plan import plan_renewals


def unserved_syncers(given: Given, found: Found) -> tuple[Unserved, ...]:
    """Syncers that left our scope and that no installation serves, with the instances of their living pods."""
    left = () if isinstance(found.registry, Unknown) else unserved(found.registry.data, found.view.syncers)
    instances = [one for each in left for one in each.instances]
    namespaces = {namespace for one in instances if (namespace := pod_namespace_of(one))}
    pods = given.world.cluster.list_pods(sorted(namespaces)) if namespaces else None
    return tuple(living(one, pods) for one in left) if pods else left


def keep_unserved(given: Given, early: Renewed, found: Found, report: PassReport) -> PassReport:
    """Renews their instances, and writes one event about each syncer."""
    world, reported = given.world, given.world.memory.reported
    renewed = {outcome.action.key for outcome in early.outcomes}
    silent = [one for each in report.unserved for one in each.instances if one.key not in renewed]
    found.applier.renew(plan_renewals(silent, "nobody serves its syncer").renewals)
    now = world.clock.monotonic()
    fresh = [one for one in report.unserved if now - reported.get(one.syncer.ref, -inf) > AGAIN]
    reported.update({one.syncer.ref: now for one in report.unserved if one not in fresh})
    if not fresh or given.same.doubt("no event is written"):
        return report
    errors = []
    for one in fresh:
        if error := record(world.cluster, one.event, world.clock.now()):
            errors.append(error)
        else:
            reported[one.syncer.ref] = now
    return replace(report, cluster_errors=(*report.cluster_errors, *errors))


def write_to_kubernetes(given: Given, found: Found, report: PassReport) -> PassReport:
    """Removes finalizers, writes statuses and opens gates; nothing of that where another cluster may answer now."""
    world, deadline = given.world, given.deadline
    deadline.stage(SETTLING)
    due = statuses_due(given, found, report)
    wished = openings(found.desired, found.view, found.registry, report.plan, now=world.clock.now())
    doubt = given.same.doubt("no status is written") if (due or wished) and not world.clock.stopping() else None
    if doubt is not None:
        return replace(report, view=replace(found.view, identity=doubt), cut_short=deadline.cut_short)
    if wished:
        deadline.stage_of_rest(0.5, SETTLING)  # however many statuses change, a rollout goes on
    written, errors = settle(world.cluster, world.clock, world.workers, deadline, due)
    gates = open_gates(
        world.cluster,
        found.applier,
        world.workers,
        deadline,
        given.ownership,
        wished,
        share=SETTLING,
        now=world.clock.now(),
    )
    return replace(
        report,
        all_statuses=due.all_statuses,
        statuses=written,
        cluster_errors=(*report.cluster_errors, *errors, *gates),
        cut_short=deadline.cut_short,
    )


def statuses_due(given: Given, found: Found, report: PassReport) -> Unsettled:
    """The status of each syncer, and which of them are to be written."""
    settings, now = given.settings, given.world.clock.now()
    result = PassResult(
        desired=found.desired, registry=found.registry, plan=report.plan, held=report.held, outcomes=report.outcomes
    )
    return unsettled(
        result,
        found.unseen,
        options=settings.options,
        now=now,
        cache_seconds=settings.registry_cache,
        expires_after=2 * settings.lease.duration,
        words=given.world.memory.rewording.due(now),
        earlier=given.world.memory.earlier.statuses,
    )
