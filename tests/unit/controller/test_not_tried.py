"""A pass that left an action untried is no success, whatever the reason was."""

from __future__ import annotations

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.exit_of_pass import of_report
from eurekube_sync.model.actions import Outcome, Outcomes, Result
from eurekube_sync.model.struct import replace
from tests.unit.controller.test_reconcile import article


def test_an_action_that_was_not_tried_is_no_success() -> None:
    """Neither the deadline nor a failed call has to be to blame for it."""
    world = article()
    world.run()
    world.later(60)
    report = world.run()
    assert of_report(report, fail_on_held=False, detailed=False) is ExitCode.OK
    renewal = report.plan.renewals[0]
    outcomes = Outcomes.of([Outcome(action=renewal, result=Result.NOT_TRIED)])
    untried = replace(report, outcomes=outcomes, cut_short=False)
    assert of_report(untried, fail_on_held=False, detailed=False) is ExitCode.INCOMPLETE
