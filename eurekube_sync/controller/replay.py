"""A pass planned again from what it had read: the plan is pure, so it is the same plan. Nothing is asked, and nothing
is written."""

from __future__ import annotations

from dataclasses import replace

from eurekube_sync.brake import Braked
from eurekube_sync.controller.one_pass import Basis, PassReport
from eurekube_sync.controller.steps import plan_again
from eurekube_sync.desired.claims import Desired
from eurekube_sync.desired.instance import Naming
from eurekube_sync.desired.resolve import claim_all
from eurekube_sync.model.actions import Action
from eurekube_sync.observe.kubernetes import living_pods


def replayed(basis: Basis, at: float) -> PassReport:
    """As the report of a dry run that read the same; `at` in Unix seconds."""
    desired, braked = _planned(basis)
    return PassReport(
        owner=basis.ownership.owner,
        cluster=basis.ownership.cluster,
        scope=basis.scope,
        dry_run=True,
        at=at,
        plan=braked.plan,
        registry=basis.registry,
        view=basis.view,
        desired=desired,
        held=braked.held,
        basis=replace(basis, braked=braked),
    )


def decisions(braked: Braked) -> list[tuple[str, str, str, str]]:
    """What was decided to change, or to hold: kind of action, app, instance id, and why."""
    held = braked.held.removals if braked.held else ()
    return [_decision(action) for action in (*braked.plan.changes, *held)]


def _decision(action: Action) -> tuple[str, str, str, str]:
    return (type(action).__name__.lower(), action.key.app, action.key.id, action.why)


def _planned(basis: Basis) -> tuple[Desired, Braked]:
    scope = basis.scope.knowing(basis.view.syncers)
    desired = claim_all(basis.view, Naming(ownership=basis.ownership, lease=basis.lease), scope)
    return plan_again(replace(desired, living_pods=living_pods(basis.view)), basis)
