"""Explains by the report of a pass that was made, so that no server is asked again: a look without
Pods and without uncached reads."""

from __future__ import annotations

from collections.abc import Mapping

from eurekube_sync.controller.look import LastPass, Look
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.claims import Claim
from eurekube_sync.explain.chain import explain
from eurekube_sync.explain.imports import explain_import
from eurekube_sync.explain.links import Explanation
from eurekube_sync.explain.subject import claims_in, subject_of
from eurekube_sync.explain.what import Kind, What
from eurekube_sync.model.actions import Renew
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.imports import ImportRef
from eurekube_sync.model.kubernetes import LockRecord, SyncerRef
from eurekube_sync.model.sources import Complete, Source, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Observed


def look_after(report: PassReport, *, at: float, lock: LockRecord) -> Look:
    """Return what a pass left behind, as a look: Eureka with its writes, and the syncers with the
    statuses that it gave them. `at` is when it ended, in Unix seconds; `lock` has the last good
    pass."""
    listed: Source[tuple[ObservedInstance, ...]]
    if isinstance(report.registry, Unknown):
        listed = report.registry
    else:
        # As callers got it when the pass began, so an explanation says what they do not see yet.
        observed = report.registry.data
        instances = (*observed.ours.values(), *observed.others.values())
        listed = Complete(data=instances)
    return Look(
        report=_as_left(report),
        asked=report.settings.scope,
        others=(),
        identity=Complete(data=report.cluster or ""),
        owner=report.settings.owner,
        listed=listed,
        last_pass=LastPass(name="", found=lock),
        at=at,
    )


def explain_after(look: Look, ref: SyncerRef) -> Explanation | None:
    """Return the chain of a syncer; None if the pass did not serve one of this name."""
    claim = claims_in(look.report).get(ref)
    if claim is None:
        return None
    what = What(Kind.SYNCER, ref.name, ref.namespace)
    subject = subject_of(what, look.report, claim, look)
    assert subject is not None  # a claim is of its own syncer
    return explain(subject, look)


def explain_import_after(look: Look, ref: ImportRef) -> Explanation | None:
    """Return the chain of an import; None if the pass did not serve one of this name."""
    imports = look.report.imports
    if imports is None or ref not in imports.claims:
        return None
    return explain_import(What(Kind.IMPORT, ref.name, ref.namespace), look)


def _as_left(report: PassReport) -> PassReport:
    """Return the report with what the pass wrote in place of what it had found. What it did is not
    planned any more."""
    outcomes = report.outcomes.by_key
    planned = []
    for action in report.plan.actions:
        outcome = outcomes.get(action.key)
        if isinstance(action, Renew) or outcome is None or outcome.failed:
            planned.append(action)
    plan = replace(report.plan, actions=tuple(planned))
    left = replace(report, plan=plan)
    if isinstance(report.registry, Complete):
        registry = Complete(data=_written(report.registry.data, report))
        left = replace(left, registry=registry)
    if report.desired is not None:
        claims = _with_statuses(report.desired.claims, report)
        desired = replace(report.desired, claims=claims)
        left = replace(left, desired=desired)
    return left


def _written(observed: Observed, report: PassReport) -> Observed:
    """Return what Eureka holds after the writes of the pass that worked.

    | the outcome              | its status | the instance then        |
    |--------------------------|------------|--------------------------|
    | a registration           | any        | as it was registered     |
    | any other, of one of ours| known      | the same, of that status |
    | no failure, of ours      | none       | gone                     |
    | a failure, or a stranger | none       | as before                |
    """
    left: dict[InstanceKey, ObservedInstance | None] = {}
    for outcome in report.outcomes.others:
        key = outcome.action.key
        before = observed.ours.get(key)
        registered = outcome.registered
        if registered is not None:
            status = outcome.status or registered.status
            left[key] = ObservedInstance(instance=replace(registered, status=status))
        elif before is None:
            continue
        elif outcome.status is not None:
            instance = replace(before.instance, status=outcome.status)
            left[key] = replace(before, instance=instance)
        elif not outcome.failed:
            left[key] = None
    return observed.refreshed(left)


def _with_statuses(
    claims: Mapping[SyncerRef, Claim], report: PassReport
) -> Mapping[SyncerRef, Claim]:
    """Return the claims with the statuses that the pass gave their syncers."""
    written: dict[SyncerRef, Claim] = {}
    for ref, claim in claims.items():
        status = report.all_statuses.get(ref)
        if status is not None and status is not claim.syncer.status:
            syncer = replace(claim.syncer, status=status)
            claim = replace(claim, syncer=syncer)
        written[ref] = claim
    return written
