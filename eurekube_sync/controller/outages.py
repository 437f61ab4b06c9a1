"""What could not be read or written, pass after pass: that it began, that it ended, and how long it lasted.

Pure. A pass that did not ask for something says nothing of it: what began there goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.errors import ClusterDenied, ClusterUnavailable
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.wording import duration
from eurekube_sync.observe.kubernetes import unread

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


class _Trouble(NamedTuple):
    cause: str
    """What makes it another outage; its sentence may vary from pass to pass."""
    sentence: str


class _Outage(NamedTuple):
    since: float
    cause: str


class Outages:
    """Which sources are away, since when. The one place that remembers it from pass to pass."""

    def __init__(self) -> None:
        self._known: dict[str, _Outage] = {}

    def note(self, report: PassReport) -> list[Change]:
        """What changed with this pass."""
        found = dict(_troubles(report))
        changes: list[Change] = []
        for source, trouble in found.items():
            before = self._known.get(source)
            if before is None or before.cause != trouble.cause:
                changes.append(Change(began=True, sentence=trouble.sentence))
            self._known[source] = _Outage(since=before.since if before else report.at, cause=trouble.cause)
        for source in [one for one in self._known if one not in found and _asked(report, one)]:
            lasted = duration(max(0, round(report.at - self._known.pop(source).since)))
            again = _AGAIN.get(source, f"{source}: no trouble any more")  # a list that nothing needs is not asked for
            changes.append(Change(began=False, sentence=f"{again}, after {lasted}"))
        return changes


def _asked(report: PassReport, source: str) -> bool:
    """Whether the pass would have met the trouble, if it were still there."""
    if source == _WRITING_EUREKA:
        return report.outcomes.succeeded > 0
    return source in _AGAIN or report.desired is not None


def _troubles(report: PassReport) -> Iterator[tuple[str, _Trouble]]:
    for cluster in report.clashes[:1]:
        sentence = (
            f"owner clash: cluster {cluster} uses the same --owner; our instances are renewed, and nothing else is done"
        )
        yield _OWNER, _Trouble(cause=cluster, sentence=sentence)
    for other in report.other_owners[:1]:
        yield _OWNER, _Trouble(cause=other.name, sentence=other.sentence)
    if isinstance(report.registry, Unknown):
        message = report.registry.message
        sentence = message if message.startswith("Eureka") else f"Eureka: {message}"
        yield _EUREKA, _Trouble(cause=report.registry.cause, sentence=sentence)
    yield from _of_sources(report)
    failed = [one for one in report.outcomes.failures if one.cause is not None]
    if failed and not isinstance(report.registry, Unknown) and not report.outcomes.succeeded:
        cause = Cause.DENIED if any(one.cause is Cause.DENIED for one in failed) else failed[0].cause
        first = next(one for one in failed if one.cause is cause)
        yield _WRITING_EUREKA, _Trouble(cause=str(cause), sentence=f"no write to Eureka works: {first.detail}")
    refused = [one for one in report.cluster_errors if isinstance(one, ClusterUnavailable | ClusterDenied)]
    for error in refused[:1]:
        yield _WRITING_KUBERNETES, _Trouble(cause=type(error).__name__, sentence=f"Kubernetes: {error}")


def _of_sources(report: PassReport) -> Iterator[tuple[str, _Trouble]]:
    """Each failing list once, in however many namespaces it fails."""
    kinds: dict[str, list[tuple[str, Unknown]]] = {}
    for name, source in unread(report.view):
        kind, _, namespace = name.rpartition(" of ")
        kinds.setdefault(name if namespace[0].isupper() else kind, []).append((name, source))
    for kind, sources in kinds.items():
        name, first = sources[0]
        more = f" (and {len(sources) - 1} more)" if len(sources) > 1 else ""
        yield kind, _Trouble(cause=first.cause, sentence=f"{name}: {first.message}{more}")
