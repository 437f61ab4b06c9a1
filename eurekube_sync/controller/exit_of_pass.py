"""The exit code of a pass, and whether the pass was good."""

from __future__ import annotations

from eurekube_sync.controller.diagnosis import all_absent, not_tried, problems_of_the_pass
from eurekube_sync.controller.exit_codes import ExitCode, of_problem
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.problems import Problem
from eurekube_sync.model.reasons import Reason


def of_report(
    report: PassReport, *, fail_on_held: bool, detailed: bool, single: bool = False
) -> ExitCode:
    """Return the exit code of a pass: that of the first problem which has one. Namespaces of which
    none exists are a typing error in a `single` pass; an installation may outlive them."""
    # A person released removals that were not made: the brake holds others.
    held = fail_on_held or report.approved is not None
    for problem in problems_of_the_pass(report):
        if problem.reason is Reason.REMOVAL_HELD and not held:
            continue
        code = of_problem(problem)
        if code is not None:
            return code
    if not_tried(report):
        return ExitCode.INCOMPLETE
    if single and all_absent(report):
        return ExitCode.CONFIGURATION
    if detailed and report.settings.dry_run and _changes(report):
        return ExitCode.CHANGES_PENDING
    return ExitCode.OK


def failure_of(report: PassReport) -> Problem | None:
    """Return the first problem that keeps a pass from being good; None for a good one, which did
    everything but the removals that are held."""
    for problem in problems_of_the_pass(report):
        if problem.reason is not Reason.REMOVAL_HELD and of_problem(problem) is not None:
            return problem
    return None


def _changes(report: PassReport) -> bool:
    """Say whether there is something to change in Eureka, or for imports in the cluster."""
    imports = report.imports
    if imports is not None and (imports.work or imports.plan.endings):
        return True
    return bool(report.plan.changes)
