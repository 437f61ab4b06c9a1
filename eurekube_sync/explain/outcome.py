"""The exit code of an explanation and of an overview: 0 only where all is registered, and that was seen."""

from __future__ import annotations

from collections.abc import Sequence

from eurekube_sync.controller.exit_codes import ExitCode, of_unknown
from eurekube_sync.controller.look import Look
from eurekube_sync.explain.links import Explanation, Outcome
from eurekube_sync.explain.overview import Overview, State
from eurekube_sync.model.sources import Server, Unknown
from eurekube_sync.observe.kubernetes import unknown_sources

_MISSING = frozenset({Outcome.NOT_REGISTERED, Outcome.PARTLY})


def code_of(explained: Sequence[Explanation], look: Look) -> ExitCode:
    """What is not registered, first; then what could not be looked at."""
    outcomes = {one.outcome for one in explained}
    if outcomes & _MISSING:
        return ExitCode.NOT_REGISTERED
    if Outcome.UNKNOWN not in outcomes:
        return ExitCode.OK
    kubernetes = next((source for _, source in unknown_sources(look.report.view)), None)
    if kubernetes is not None:
        return of_unknown(Server.KUBERNETES, kubernetes)
    if isinstance(look.listed, Unknown):
        return of_unknown(Server.EUREKA, look.listed)
    return ExitCode.INCOMPLETE


def code_of_overview(found: Overview) -> ExitCode:
    """What is broken, first; then what could not be looked at."""
    if found.count(State.BROKEN) or found.count(State.PARTLY) or found.absent:
        return ExitCode.NOT_REGISTERED
    if found.eureka is not None and found.count(State.UNKNOWN):
        return of_unknown(Server.EUREKA, found.eureka)
    if found.unread and (found.count(State.UNKNOWN) or not found.rows):
        return of_unknown(Server.KUBERNETES, found.unread[0][1])
    return ExitCode.OK
