"""Puts the links of one subject in order, to the first that breaks, and says what they come to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eurekube_sync.controller.exit_codes import ExitCode, of_unknown
from eurekube_sync.controller.look import Look
from eurekube_sync.desired.claims import Serving
from eurekube_sync.desired.verdicts import OverLimit, Wanted
from eurekube_sync.explain.conduct import brake_links, conduct_links
from eurekube_sync.explain.links import Explanation, Link, Mark, Outcome, Part, Why, breaks, noted
from eurekube_sync.explain.pods import pod_links
from eurekube_sync.explain.registry import Standing, heartbeat_link, registry_links, standing_of
from eurekube_sync.explain.serving import syncer_links
from eurekube_sync.explain.subject import Subject, terminates
from eurekube_sync.model.eureka import InstanceStatus
from eurekube_sync.model.kubernetes import ConditionStatus
from eurekube_sync.model.sources import Server, Unknown
from eurekube_sync.model.wording import span
from eurekube_sync.observe.kubernetes import unknown_sources


def explain(subject: Subject, look: Look) -> Explanation:
    """The chain of one syncer, or of what of it was asked about."""
    standing = standing_of(subject, look)
    meant = meant_of(subject)
    links = list(_to_the_first_break(_cluster_links(subject, look, standing, meant)))
    broken = any(link.broken for link in links)
    links += registry_links(subject, look, standing, broken=broken)
    links += _passes(subject, look, alone=not standing.known and not broken)
    outcome = _outcome(standing, meant, links)
    cause = next((link for link in links if link.broken), None)
    return Explanation(
        about=str(subject.what),
        syncer=str(subject.ref),
        links=tuple(links),
        outcome=outcome,
        sentence=_sentence(subject, standing, meant, outcome, cause, links),
        fix=cause.fix if cause else "",
        up=standing.up if standing.known else None,
        of=meant,
        apps=subject.claim.apps if isinstance(subject.claim, Serving) else (),
    )


def meant_of(subject: Subject) -> int:
    """How many instances should be registered: all but those that end, and but for what a limit leaves out of some."""
    there = [one for one in subject.verdicts.values() if not terminates(one)]
    inside = [one for one in there if not isinstance(one, OverLimit)]
    return len(inside or there)


def _cluster_links(subject: Subject, look: Look, standing: Standing, meant: int) -> Iterator[Link]:
    registered = standing.known and meant > 0 and standing.up >= meant
    yield from syncer_links(subject, look, registered=registered)
    up = InstanceStatus.UP
    ready = [one for one in subject.verdicts.values() if isinstance(one, Wanted) and one.instance.status is up]
    missing = standing.up < len(ready) if standing.known else not _status_says_all_up(subject, len(ready))
    pods = list(pod_links(subject, look))
    partly = any(link.broken for link in pods) and bool(ready)
    # Of some pods that are ready, what holds these back is told first.
    yield from brake_links(subject, look)
    if not partly:
        yield from pods
    yield from conduct_links(subject, look, missing=missing)
    if partly:
        yield from pods


def _status_says_all_up(subject: Subject, ready: int) -> bool:
    status = subject.claim.syncer.status
    return status is not None and status.up >= ready


def _to_the_first_break(links: Iterator[Link]) -> Iterator[Link]:
    for link in links:
        yield link
        if link.broken:
            return


def _passes(subject: Subject, look: Look, *, alone: bool) -> Iterator[Link]:
    """What is known of the passes that run: their status of the syncer, and their heartbeat. `alone`: nothing else says
    what is registered, so that a status that is not Ready is what breaks."""
    status = subject.claim.syncer.status
    ready = status.condition("Ready") if status else None
    counts = alone and ready is not None and ready.status is ConditionStatus.FALSE
    if status is None or ready is None:
        yield noted(Part.STATUS, "no pass has written its status")
    else:
        since = span(look.at - ready.last_transition)
        yield breaks(
            Part.STATUS,
            ready.reason,
            f"its status says {ready.reason}, {status.ready} UP, for {since}",
            details=() if ready.status is ConditionStatus.TRUE else (ready.message,),
            cause=ready.message,
            fix=subject.describe,
            if_=counts,
        )
    yield heartbeat_link(look, alone=alone and not counts)


def _outcome(standing: Standing, meant: int, links: list[Link]) -> Outcome:
    broken = next((link for link in links if link.broken), None)
    if not standing.known:
        return Outcome.UNKNOWN if broken is None else Outcome.NOT_REGISTERED
    if broken is None:
        unknown = any(link.mark is Mark.UNKNOWN and link.part is not Part.DRAIN for link in links)
        if standing.up and standing.up >= meant and not unknown:
            return Outcome.REGISTERED
        return Outcome.UNKNOWN if unknown else (Outcome.PARTLY if standing.up else Outcome.NOT_REGISTERED)
    return Outcome.PARTLY if standing.up else Outcome.NOT_REGISTERED


def _sentence(
    subject: Subject, standing: Standing, meant: int, outcome: Outcome, broken: Link | None, links: list[Link]
) -> str:
    apps = ", ".join(subject.claim.apps[:3]) if isinstance(subject.claim, Serving) else ""
    as_ = f" as {apps}" if apps else ""
    counts = f"{standing.up} of {max(meant, standing.up)} UP{as_}"
    cause = broken.cause or broken.text if broken else ""
    match outcome:
        case Outcome.REGISTERED:
            return f"Registered: {counts}"
        case Outcome.PARTLY if broken is not None and broken.reason == Why.NOT_RENEWED:
            return f"Registered, but not for long: {counts}; {cause}"
        case Outcome.PARTLY if broken is not None and broken.reason == Why.OWNER_CLASH:
            return f"Registered by another owner: {counts}"
        case Outcome.PARTLY if broken is not None and broken.part is Part.BRAKE:
            return f"Still registered: {counts}; {cause}"
        case Outcome.PARTLY:
            return f"Registered in part: {counts}" + (f"; {cause}" if cause else "")
        case Outcome.NOT_REGISTERED if not standing.known:
            return f"What Eureka holds is unknown; {cause}"
        case Outcome.NOT_REGISTERED if standing.held:
            return f"Registered, but not UP: {cause or counts}"
        case Outcome.NOT_REGISTERED:
            return f"Not registered: {cause}" if cause else f"Not registered: {counts}"
        case _:
            status = subject.claim.syncer.status
            if status is not None and any(link.part is Part.LAST_PASS and link.mark is Mark.OK for link in links):
                return f"The last pass saw {status.ready} UP{as_}; Eureka itself could not be looked at"
            unknown = [link for link in links if link.mark is Mark.UNKNOWN and link.part is not Part.DRAIN]
            why = unknown[-1].text if unknown else "a requirement could not be checked"
            return f"Unknown whether it is registered: {why}"


def code_of(explained: Sequence[Explanation], look: Look) -> ExitCode:
    """0 only where all is registered, and that was seen. Else what is not registered; then what was not looked at."""
    outcomes = {one.outcome for one in explained}
    if outcomes & {Outcome.NOT_REGISTERED, Outcome.PARTLY}:
        return ExitCode.NOT_REGISTERED
    if Outcome.UNKNOWN not in outcomes:
        return ExitCode.OK
    kubernetes = next((source for _, source in unknown_sources(look.report.view)), None)
    if kubernetes is not None:
        return of_unknown(Server.KUBERNETES, kubernetes)
    if isinstance(look.listed, Unknown):
        return of_unknown(Server.EUREKA, look.listed)
    return ExitCode.INCOMPLETE
