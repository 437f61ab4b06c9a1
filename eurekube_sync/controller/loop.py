"""Pass after pass: once, a number of times, or until a signal. A pass that fails does not skip the next."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from eurekube_sync.controller.exit_codes import ExitCode, of_report
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.errors import ClusterDenied, ClusterUnavailable, LockLost
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.ports import Clock
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import duration
from eurekube_sync.observe.kubernetes import unread_by_kind

log = logging.getLogger(__name__)

_EUREKA, _WRITING_EUREKA = "Eureka", "writes to Eureka"
_KUBERNETES, _WRITING_KUBERNETES = "Kubernetes API", "writes to Kubernetes"
_OWNER = "the owner name"
_AGAIN = {
    _EUREKA: "Eureka can be read again",
    _WRITING_EUREKA: "writes to Eureka work again",
    _KUBERNETES: "the Kubernetes API can be read again",
    _WRITING_KUBERNETES: "writes to Kubernetes work again",
    _OWNER: "no owner clash any more",
}


class Change(NamedTuple):
    """Something cannot be read or written, or no longer for the cause it was; or it can be again."""

    began: bool
    sentence: str


class Outages:
    """What could not be read or written, pass after pass: that it began, that it ended, and how long it lasted. What a
    pass did not ask for goes on."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, str]] = {}
        """Since when, and for which cause."""

    def note(self, report: PassReport) -> list[Change]:
        """What changed with this pass."""
        found = dict(_troubles(report))
        changes: list[Change] = []
        for source, (cause, sentence) in found.items():
            since, before = self._known.get(source, (report.at, None))
            if before != cause:
                changes.append(Change(began=True, sentence=sentence))
            self._known[source] = (since, cause)
        for source in [one for one in self._known if one not in found and _asked(report, one)]:
            lasted = duration(max(0, round(report.at - self._known.pop(source)[0])))
            again = _AGAIN.get(source, f"{source}: no trouble any more")  # a list that nothing needs is not asked for
            changes.append(Change(began=False, sentence=f"{again}, after {lasted}"))
        return changes


def _asked(report: PassReport, source: str) -> bool:
    """Whether the pass would have met the trouble, if it were still there."""
    if source == _WRITING_EUREKA:
        return report.outcomes.succeeded > 0
    return source in _AGAIN or report.desired is not None


def _troubles(report: PassReport) -> Iterator[tuple[str, tuple[str, str]]]:
    """Of each source what makes it another outage, and a sentence, which may vary from pass to pass."""
    for cluster in report.clashes[:1]:
        otherwise = "our instances are renewed, and nothing else is done"
        yield _OWNER, (cluster, f"owner clash: cluster {cluster} uses the same --owner; {otherwise}")
    for other in report.other_owners[:1]:
        yield _OWNER, (other.name, other.sentence)
    if isinstance(report.registry, Unknown):
        message = report.registry.message
        sentence = message if message.startswith("Eureka") else f"Eureka: {message}"
        yield _EUREKA, (report.registry.cause, sentence)
    for kind, sources in unread_by_kind(report.view).items():  # each once, in however many namespaces it fails
        (name, source), more = sources[0], f" (and {len(sources) - 1} more)" if len(sources) > 1 else ""
        yield kind, (source.cause, f"{name}: {source.message}{more}")
    failed = [one for one in report.outcomes.failures if one.cause is not None]
    if failed and not isinstance(report.registry, Unknown) and not report.outcomes.succeeded:
        cause = Cause.DENIED if any(one.cause is Cause.DENIED for one in failed) else failed[0].cause
        first = next(one for one in failed if one.cause is cause)
        yield _WRITING_EUREKA, (str(cause), f"no write to Eureka works: {first.detail}")
    refused = [one for one in report.cluster_errors if isinstance(one, ClusterUnavailable | ClusterDenied)]
    for error in refused[:1]:
        yield _WRITING_KUBERNETES, (type(error).__name__, f"Kubernetes: {error}")


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
    the last. A signal ends it between two calls. An outage is logged when it begins and when it ends. A bug that ends a
    pass, or its report, ends the process only if it was the last: leases must be renewed. Raises LockLost when
    `one_pass` does."""
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
                for change in outages.note(report):
                    log.log(logging.WARNING if change.began else logging.INFO, "%s", change.sentence)
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
