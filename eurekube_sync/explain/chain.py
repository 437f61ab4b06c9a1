"""Puts the links of one subject in order, to the first that breaks, and says what they come to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eurekube_sync.controller.exit_codes import ExitCode, of_unknown
from eurekube_sync.controller.look import Look
from eurekube_sync.desired.claims import Leaving, OverLimit, Wanted
from eurekube_sync.explain.cluster import pod_links, syncer_links
from eurekube_sync.explain.conduct import brake_links, conduct_links
from eurekube_sync.explain.links import Explanation, Link, Mark, Outcome, Part, breaks, noted
from eurekube_sync.explain.registry import Held, heartbeat_link, held_by_eureka, registry_links, up_in
from eurekube_sync.explain.subject import Subject, apps_of
from eurekube_sync.model.eureka import InstanceStatus
from eurekube_sync.model.kubernetes import ConditionStatus
from eurekube_sync.model.sources import Server, Unknown
from eurekube_sync.model.wording import span
from eurekube_sync.observe.kubernetes import unknown_sources


def explain(subject: Subject, look: Look) -> Explanation:
    """The chain of one syncer, or of what of it was asked about."""
    held, known, meant = held_by_eureka(subject, look), not isinstance(look.listed, Unknown), _meant(subject)
    links = list(_to_the_first_break(_cluster_links(subject, look, held, meant)))
    broken = any(link.broken for link in links)
    links += registry_links(subject, look, held, broken=broken)
    links += _passes(subject, look, alone=not known and not broken)
    outcome = _outcome(up_in(held), meant, links)
    cause = next((link for link in links if link.broken), None)
    return Explanation(
        about=str(subject.what),
        syncer=str(subject.ref),
        links=tuple(links),
        outcome=outcome,
        sentence=_sentence(subject, look, held, meant, outcome, links),
        fix=cause.fix if cause else "",
        up=up_in(held) if known else None,
        of=meant,
        apps=apps_of(subject.claim),
    )


def _meant(subject: Subject) -> int:
    """How many instances should be registered: all but those that end, and but for what a limit leaves out of some."""
    there = [one for one in subject.verdicts.values() if not (isinstance(one, Leaving) and one.terminating)]
    inside = [one for one in there if not isinstance(one, OverLimit)]
    return len(inside or there)


def _cluster_links(subject: Subject, look: Look, held: Held, meant: int) -> Iterator[Link]:
    yield from syncer_links(subject, look, registered=up_in(held) >= meant > 0)
    wanted = [one.instance.status for one in subject.verdicts.values() if isinstance(one, Wanted)]
    ready, status, up = wanted.count(InstanceStatus.UP), subject.claim.syncer.status, up_in(held)
    if isinstance(look.listed, Unknown):
        up = status.up if status else -1  # no other word of it
    pods = list(pod_links(subject, look))
    partly = any(link.broken for link in pods) and ready > 0
    # Of some pods that are ready, what holds these back is told first.
    yield from brake_links(subject, look)
    yield from () if partly else pods
    yield from conduct_links(subject, look, missing=up < ready)
    yield from pods if partly else ()


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
        text = f"its status says {ready.reason}, {status.ready} UP, for {span(look.at - ready.last_transition)}"
        details = () if ready.status is ConditionStatus.TRUE else (ready.message,)
        fix = subject.kubectl("describe")
        yield breaks(Part.STATUS, ready.reason, text, *details, cause=ready.message, fix=fix, if_=counts)
    yield heartbeat_link(look, alone=alone and not counts)


def _unknown(links: Sequence[Link]) -> list[Link]:
    """What could not be looked at, and may be what is wrong; that nobody could tell who drains it is not."""
    return [link for link in links if link.mark is Mark.UNKNOWN and link.part is not Part.DRAIN]


def _outcome(up: int, meant: int, links: Sequence[Link]) -> Outcome:
    unknown = bool(_unknown(links))
    if not any(link.broken for link in links):
        if up >= max(meant, 1) and not unknown:
            return Outcome.REGISTERED
        if unknown:
            return Outcome.UNKNOWN
    return Outcome.PARTLY if up else Outcome.NOT_REGISTERED


def _sentence(subject: Subject, look: Look, held: Held, meant: int, outcome: Outcome, links: Sequence[Link]) -> str:
    broken = next((link for link in links if link.broken), None)
    as_ = ", ".join(apps_of(subject.claim)[:3])
    as_ = f" as {as_}" if as_ else ""
    counts = f"{up_in(held)} of {max(meant, up_in(held))} UP{as_}"
    match outcome:
        case Outcome.REGISTERED:
            return f"Registered: {counts}"
        case Outcome.PARTLY:
            heads: dict[str, str] = {
                "NotRenewed": "Registered, but not for long",
                "OwnerClash": "Registered by another owner",
            }
            head = "Still registered" if broken and broken.part is Part.BRAKE else "Registered in part"
            return f"{heads.get(broken.reason, head)}: {counts}; {broken.cause}" if broken else f"{head}: {counts}"
        case Outcome.NOT_REGISTERED:
            cause = broken.cause if broken else counts
            if isinstance(look.listed, Unknown):
                return f"What Eureka holds is unknown; {cause}"
            return f"{'Registered, but not UP' if held else 'Not registered'}: {cause}"
        case Outcome.UNKNOWN:
            status = subject.claim.syncer.status
            if status is not None and any(link.part is Part.LAST_PASS and link.mark is Mark.OK for link in links):
                return f"The last pass saw {status.ready} UP{as_}; Eureka itself could not be looked at"
            return f"Unknown whether it is registered: {_unknown(links)[-1].text}"


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
