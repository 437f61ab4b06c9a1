"""Pass after pass: once, a number of times, or until a signal. A pass that fails does not skip the next."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from eurekube_sync.controller.exit_codes import ExitCode, of_report
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.controller.outages import Change, Outages
from eurekube_sync.model.errors import LockLost
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.ports import Clock
from eurekube_sync.model.values import dataclass

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How often, and what counts as failure."""

    passes: int | None = 1
    """None: until a signal."""
    interval: float = 30
    """Seconds from the start of a pass to the start of the next."""
    fail_on_held: bool = True
    fail_on_broken: bool = False
    detailed_exitcode: bool = False
    watched: bool = False
    """A person reads the report as it comes: what it says of a single pass is not logged as well."""

    def exit_code(self, report: PassReport) -> ExitCode:
        """Of a pass."""
        return of_report(
            report, fail_on_held=self.fail_on_held, detailed=self.detailed_exitcode, fail_on_broken=self.fail_on_broken
        )


Between: TypeAlias = Callable[[tuple[InstanceKey, ...], float], int]
"""Called with what is registered and the moment of the next pass, in monotonic seconds, until which it may take; how
many leases it renewed."""


def run_passes(
    one_pass: Callable[[], PassReport],
    clock: Clock,
    schedule: Schedule,
    tell: Callable[[PassReport, ExitCode], None],
    between: Between | None = None,
) -> ExitCode:
    """Runs the passes and gives the last one's exit code; `tell` hears of each, and `between` is called after each but
    the last. A signal ends it between two calls. An outage is logged when it begins and when it ends.

    A bug that ends a pass, or its report, ends the process only if it was the last: leases must be renewed, and the
    next pass does it.
    Raises LockLost when `one_pass` does.
    """
    done = renewed = 0
    outages = Outages()
    while True:
        begun = clock.monotonic()
        done += 1
        last = schedule.passes is not None and done >= schedule.passes
        to_renew: tuple[InstanceKey, ...] = ()
        try:
            report = replace(one_pass(), renewed_between=renewed)
            to_renew, code = report.to_renew, schedule.exit_code(report)
            tell(report, code)
            if not (schedule.watched and schedule.passes == 1):
                _log_changes(outages.note(report))
            if last:
                return code
            del report  # it holds the registry as it was listed: the next pass lists it anew
        except LockLost:
            raise
        except Exception:
            if last:
                raise
            log.exception("a bug ended this pass; the next one starts anew")
        renewed = 0
        try:
            if between is not None:
                renewed = between(to_renew, begun + schedule.interval)
        except Exception:
            log.exception("a bug ended the renewals between two passes; the next pass renews these leases")
        if not clock.stopping():
            clock.sleep(max(0.0, begun + schedule.interval - clock.monotonic()))
        if clock.stopping():
            return ExitCode.OK if schedule.passes is None else ExitCode.INCOMPLETE


def _log_changes(changes: Iterable[Change]) -> None:
    for change in changes:
        log.log(logging.WARNING if change.began else logging.INFO, "%s", change.sentence)
