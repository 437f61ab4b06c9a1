"""How the commands that make passes report each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

from eurekube_sync.cli.monitoring.measure import scope_text
from eurekube_sync.cli.options.passes import Passes
from eurekube_sync.cli.options.report import ReportForm
from eurekube_sync.cli.output.machine import as_data
from eurekube_sync.cli.output.markdown import pass_markdown
from eurekube_sync.cli.output.summary import summary
from eurekube_sync.cli.output.table import pass_table
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.eureka import RENEWAL_INTERVAL
from eurekube_sync.model.lock import GoodPass
from eurekube_sync.model.sources import Complete
from eurekube_sync.observe.self_preservation import Headroom, headroom, interval_of

Tell: TypeAlias = Callable[[PassReport, ExitCode], None]
log = logging.getLogger(__name__)


def teller(form: ReportForm, passes: Passes, notices: Sequence[str] = ()) -> Tell:
    """Reports a pass. In the first that could read Eureka it also logs whether the passes come too rarely for its
    self-preservation. A report that cannot be written ends neither the passes nor changes their exit code."""
    renewed_every = _renewed_every(passes)
    said = False

    def room(report: PassReport) -> Headroom | None:
        nonlocal said
        if not isinstance(report.registry, Complete):
            return None
        found = headroom(report.registry.data, renewed_every)
        if found.blocks_eviction and not said:
            said = True
            log.warning("%s", found.warning)
        return found

    def tell(report: PassReport, code: ExitCode) -> None:
        found = room(report)
        form.write(
            lambda: pass_table(report, notices, at_terminal=form.at_terminal),
            lambda: as_data(report, code, notices, found, with_renewals=form.list_renewals),
            lambda: pass_markdown(report, notices),
            one_of_many=passes.many,
        )

    return tell


def good_pass(report: PassReport, holder: str) -> GoodPass:
    """What the lock is to show of a pass that did all it had to."""
    return GoodPass(
        at=report.at, holder=holder, owner=report.owner, scope=scope_text(report.scope), result=summary(report)
    )


def _renewed_every(passes: Passes) -> float:
    """Seconds between two renewals of a lease, as far as this process has it in hand."""
    daemon = passes.number is None
    if not passes.many or (daemon and passes.interval > RENEWAL_INTERVAL):  # a daemon renews between its passes, too
        return RENEWAL_INTERVAL
    return interval_of(passes.interval, slack=passes.renewal_slack)
