"""Puts the links of one subject in order, to the first that breaks, and says what they come to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eurekube_sync.controller.exit_codes import ExitCode, of_cause
from eurekube_sync.controller.look import Look
from eurekube_sync.desired.claims import Leaving, OverLimit, Wanted
from eurekube_sync.explain.cluster import pod_links, syncer_links
from eurekube_sync.explain.conduct import brake_links, conduct_links
from eurekube_sync.explain.links import Explanation, Link, Mark, Outcome, Part, breaks
from eurekube_sync.explain.registry import Held, heartbeat_link, held_by_eureka, registry_links, up_in
from eurekube_sync.explain.subject import Subject, apps_of
from eurekube_sync.model.eureka import InstanceStatus
from eurekube_sync.model.kubernetes import ConditionStatus
from eurekube_sync.model.sources import Server, Unknown
from eurekube_sync.model.wording import span
from eurekube_sync.observe.kubernetes import unknown_sources


def explain(subject: Subject, look: Look) -> Explanation:
    """The chain of one syncer, or of what of it was asked about."""
    held, known = held_by_eureka(subject, look), not isinstance(look.listed, Unknown)
    # All but those that end should be registered, and of some but for what a limit leaves out.
    there = [one for one in subject.verdicts.values() if not (isinstance(one, Leaving) and one.terminating)]
    meant = len([one for one in there if not isinstance(one, OverLimit)] or there)
    links: list[Link] = []
    for link in _cluster_links(subject, look, held, meant):
        links.append(link)
        if link.broken:
            break
    broken = links[-1].broken
    links += registry_links(subject, look, held, broken=broken)
    links += _passes(subject, look, alone=not known and not broken)
    outcome, sentence = _outcome(subject, look, held, meant, links)
    return Explanation(
        about=str(subject.what),
        syncer=str(subject.ref),
        links=tuple(links),
        outcome=outcome,
        sentence=sentence,
        fix=next((link.fix for link in links if link.broken), ""),
        up=up_in(held) if known else None,
        of=meant,
        apps=apps_of(subject.claim),
    )


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


def _passes(subject: Subject, look: Look, *, alone: bool) -> Iterator[Link]:
    """What is known of the passes that run: their status of the syncer, and their heartbeat. `alone`: nothing else says
    what is registered, so that a status that is not Ready is what breaks."""
    status = subject.claim.syncer.status
    ready = status.condition("Ready") if status else None
    counts = alone and ready is not None and ready.status is ConditionStatus.FALSE
    if status is None or ready is None:
        yield Link(Part.STATUS, Mark.NOTE, "no pass has written its status")
    else:
        text = f"its status says {ready.reason}, {status.ready} UP, for {span(look.at - ready.last_transition)}"
        details = () if ready.status is ConditionStatus.TRUE else (ready.message,)
        fix = subject.kubectl("describe")
        yield breaks(Part.STATUS, ready.reason, text, *details, cause=ready.message, fix=fix, if_=counts)
    yield heartbeat_link(look, alone=alone and not counts)


def _outcome(subject: Subject, look: Look, held: Held, meant: int, links: Sequence[Link]) -> tuple[Outcome, str]:
    """What the links come to, and the last line."""
    up, apps, status = up_in(held), ", ".join(apps_of(subject.claim)[:3]), subject.claim.syncer.status
    as_ = f" as {apps}" if apps else ""
    counts = f"{up} of {max(meant, up)} UP{as_}"
    broken = next((link for link in links if link.broken), None)
    # That nobody could tell who drains it says nothing of whether it is registered.
    unknown = [link for link in links if link.mark is Mark.UNKNOWN and link.part is not Part.DRAIN]
    if broken is None and unknown:
        if status is not None and any(link.part is Part.LAST_PASS and link.mark is Mark.OK for link in links):
            return Outcome.UNKNOWN, f"The last pass saw {status.ready} UP{as_}; Eureka itself could not be looked at"
        return Outcome.UNKNOWN, f"Unknown whether it is registered: {unknown[-1].text}"
    if broken is None and up >= max(meant, 1):
        return Outcome.REGISTERED, f"Registered: {counts}"
    cause = f"; {broken.cause}" if broken else ""
    if up:
        match broken:
            case Link(reason="NotRenewed"):
                head = "Registered, but not for long"
            case Link(reason="OwnerClash"):
                head = "Registered by another owner"
            case Link(part=Part.BRAKE):
                head = "Still registered"
            case _:
                head = "Registered in part"
        return Outcome.PARTLY, f"{head}: {counts}{cause}"
    if isinstance(look.listed, Unknown):
        return Outcome.NOT_REGISTERED, f"What Eureka holds is unknown{cause}"
    head = "Registered, but not UP" if held else "Not registered"
    return Outcome.NOT_REGISTERED, f"{head}: {broken.cause if broken else counts}"


def code_of(explained: Sequence[Explanation], look: Look) -> ExitCode:
    """0 only where all is registered, and that was seen. Else what is not registered; then what was not looked at."""
    outcomes = {one.outcome for one in explained}
    if outcomes & {Outcome.NOT_REGISTERED, Outcome.PARTLY}:
        return ExitCode.NOT_REGISTERED
    if Outcome.UNKNOWN not in outcomes:
        return ExitCode.OK
    kubernetes = next((source for _, source in unknown_sources(look.report.view)), None)
    if kubernetes is not None:
        return of_cause(Server.KUBERNETES, kubernetes.cause)
    return of_cause(Server.EUREKA, look.listed.cause) if isinstance(look.listed, Unknown) else ExitCode.INCOMPLETE
