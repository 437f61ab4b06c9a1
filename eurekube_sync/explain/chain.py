"""Puts the links of one syncer in order, up to the first broken one, and sums them up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from eurekube_sync.brake.approval import approve_command
from eurekube_sync.controller.exit_codes import ExitCode, of_cause
from eurekube_sync.controller.look import Look
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.catalog import DRAINED
from eurekube_sync.desired.claims import Leaving, OverLimit, Serving, Wanted
from eurekube_sync.explain.cluster import pod_links, syncer_links
from eurekube_sync.explain.links import Explanation, Link, Mark, Outcome, Part, breaks, unseen
from eurekube_sync.explain.registry import (
    Held,
    held_by_eureka,
    last_pass_link,
    registry_links,
    up_in,
)
from eurekube_sync.explain.subject import Subject, address_of, apps_of, observed_at, read
from eurekube_sync.model.eureka import InstanceStatus
from eurekube_sync.model.kubernetes import ConditionStatus
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete, Server, Unknown
from eurekube_sync.model.wording import and_more, counted, one_or_more, span
from eurekube_sync.observe.kubernetes import unknown_sources
from eurekube_sync.plan.duplicates import TURN_OFF
from eurekube_sync.plan.value import Obstacle

_ALTHOUGH_UP: Mapping[str, str] = {
    Reason.NOT_RENEWED: "Registered, but not for long",
    Reason.OWNER_CLASH: "Registered by another owner",
}


def explain(subject: Subject, look: Look) -> Explanation:
    """Make the chain of one syncer, or of the part that the question is about."""
    held, known = held_by_eureka(subject, look), not isinstance(look.listed, Unknown)
    # Count what should be registered: no terminating endpoints, and none over the limit, unless all
    # are over the limit.
    there = [
        one
        for one in subject.verdicts.values()
        if not (isinstance(one, Leaving) and one.terminating)
    ]
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
        up = status.up if status else -1  # the only information about it
    pods = list(pod_links(subject, look))
    partly = any(link.broken for link in pods) and ready > 0
    # If some pods are ready, the links that hold them back come before those of the unready pods.
    yield from brake_links(subject, look)
    yield from () if partly else pods
    yield from conduct_links(subject, look, missing=up < ready)
    yield from pods if partly else ()


def _passes(subject: Subject, look: Look, *, alone: bool) -> Iterator[Link]:
    """Show the status that the last pass wrote, and when the last good pass was. With `alone`, no
    other source tells whether the syncer is registered, so a status that is not Ready is a broken
    link."""
    status = subject.claim.syncer.status
    ready = status.condition("Ready") if status else None
    counts = alone and ready is not None and ready.status is ConditionStatus.FALSE
    if status is None or ready is None:
        yield Link(Part.STATUS, Mark.NOTE, "no pass has written its status")
    else:
        lasted = span(look.at - ready.last_transition)
        text = (
            f"the syncer's status says {status.ready} UP; Ready has been {ready.status} "
            f"({ready.reason}) for {lasted}"
        )
        details = () if ready.status is ConditionStatus.TRUE else (ready.message,)
        fix = subject.kubectl("describe")
        if counts:
            yield Link(
                Part.STATUS, Mark.BROKEN, text, ready.reason, details, cause=ready.message, fix=fix
            )
        else:
            yield Link(Part.STATUS, Mark.NOTE, text, details=details)
    yield last_pass_link(look, alone=alone and not counts)


def _outcome(
    subject: Subject, look: Look, held: Held, meant: int, links: Sequence[Link]
) -> tuple[Outcome, str]:
    """Sum up the links: the outcome and the last line."""
    up, apps, status = (
        up_in(held),
        ", ".join(apps_of(subject.claim)[:3]),
        subject.claim.syncer.status,
    )
    as_ = f" as {apps}" if apps else ""
    counts = f"{up} of {max(meant, up)} UP{as_}"
    broken = next((link for link in links if link.broken), None)
    # Unknown drain annotations do not make the registration unknown.
    unknown = [link for link in links if link.mark is Mark.UNKNOWN and link.part is not Part.DRAIN]
    if broken is None and unknown:
        if status is not None and any(
            link.part is Part.LAST_PASS and link.mark is Mark.OK for link in links
        ):
            return (
                Outcome.UNKNOWN,
                f"The last pass saw {status.ready} UP{as_}; Eureka itself could not be looked at",
            )
        return Outcome.UNKNOWN, f"Unknown whether it is registered: {unknown[-1].text}"
    if broken is None and up >= max(meant, 1):
        return Outcome.REGISTERED, f"Registered: {counts}"
    cause = f"; {broken.cause}" if broken else ""
    if up:
        head = "Registered in part"
        if broken:
            head = (
                "Still registered"
                if broken.part is Part.BRAKE
                else _ALTHOUGH_UP.get(broken.reason, head)
            )
        return Outcome.PARTLY, f"{head}: {counts}{cause}"
    if isinstance(look.listed, Unknown):
        return Outcome.NOT_REGISTERED, f"What Eureka holds is unknown{cause}"
    head = "Registered, but not UP" if held else "Not registered"
    return Outcome.NOT_REGISTERED, f"{head}: {broken.cause if broken else counts}"


def code_of(explained: Sequence[Explanation], look: Look) -> ExitCode:
    """Return 0 only if all is known to be registered. A missing registration comes before a failed
    read."""
    outcomes = {one.outcome for one in explained}
    if outcomes & {Outcome.NOT_REGISTERED, Outcome.PARTLY}:
        return ExitCode.NOT_REGISTERED
    if Outcome.UNKNOWN not in outcomes:
        return ExitCode.OK
    kubernetes = next((source for _, source in unknown_sources(look.report.view)), None)
    if kubernetes is not None:
        return of_cause(Server.KUBERNETES, kubernetes.cause)
    return (
        of_cause(Server.EUREKA, look.listed.cause)
        if isinstance(look.listed, Unknown)
        else ExitCode.INCOMPLETE
    )


def conduct_links(subject: Subject, look: Look, *, missing: bool) -> Iterator[Link]:
    """Show limits, drains, suspension, rivals, duplicates and owners. With `missing`, Eureka lacks
    a ready instance, so a suspension is a broken link."""
    claim = subject.claim
    if isinstance(claim, Serving):
        yield from _limit(subject, claim)
        yield from _drain(subject, claim)
        if claim.conduct.suspend:
            text = (
                "the syncer is suspended: its instances are renewed, and not changed "
                "(docs/suspend.md)"
            )
            cause, fix = (
                "its syncer is suspended",
                f"set spec.suspend to false: {subject.kubectl('edit')}",
            )
            yield breaks(Part.SUSPEND, Reason.SUSPENDED, text, cause=cause, fix=fix, if_=missing)
        yield from _rivals(subject, claim)
    yield from _duplicates(subject, look)
    yield from owner_links(subject.report)


def _limit(subject: Subject, claim: Serving) -> Iterator[Link]:
    out = [one for one in subject.verdicts.values() if isinstance(one, OverLimit)]
    everything = len(out) == len(subject.verdicts)
    if not out:
        yield from (Link(Part.LIMIT, Mark.NOTE, note) for note in claim.notes)
    else:
        none = claim.conduct.claims_nothing
        reason, cause = (
            (Reason.LIMIT_ZERO, "its limit is 0")
            if none
            else (Reason.OVER_LIMIT, "it is over the limit of its syncer")
        )
        text = (
            out[0].why
            if everything
            else f"{counted(len(out), 'pod')} over the limit: {'; '.join(claim.notes)}"
        )
        fix = f"raise spec.limit: {subject.kubectl('edit')}"
        yield breaks(Part.LIMIT, reason, text, cause=cause, fix=fix, if_=everything)


def _drain(subject: Subject, claim: Serving) -> Iterator[Link]:
    drained = [one for one in subject.verdicts.values() if isinstance(one, Wanted) and one.drained]
    if not drained:
        yield from (
            unseen(Part.DRAIN, warning)
            for warning in claim.warnings
            if "drain annotations" in warning
        )
        return
    more = and_more(len(drained))
    known = [
        one
        for one in drained
        if not one.drain_unknown.issuperset(one.instance.metadata[DRAINED].split(","))
    ]
    if known:
        why = known[0].why  # `pod orders-a has the annotation eurekube.io/drain`
        kind, name, *_ = why.split()
        fix = f"kubectl annotate {kind.lower()} {name} -n {subject.namespace} eurekube.io/drain-"
        text = why.replace(" has ", f"{more} has ", 1)
    else:
        kinds = sorted(frozenset[str]().union(*(one.drain_unknown for one in drained)))
        fix = (
            f"see that eurekube-sync can list {' and '.join(f'{kind.title()}s' for kind in kinds)}"
        )
        why = drained[0].why
        text = f"{why}{more}"
    yield breaks(
        Part.DRAIN,
        Reason.DRAINED,
        text,
        cause=why,
        fix=fix,
        if_=len(drained) == len(subject.verdicts),
    )


def _rivals(subject: Subject, claim: Serving) -> Iterator[Link]:
    rivals = [(key, rival) for key, rival in claim.rivals.items() if key in subject.verdicts]
    for key, rival in rivals[:1]:
        text = f"{address_of(key)}{and_more(len(rivals))}: {rival}"
        yield breaks(
            Part.RIVALS,
            Reason.CONFLICT,
            text,
            cause=str(rival),
            fix=f"eurekube-sync explain {rival.syncer}",
        )


def _duplicates(subject: Subject, look: Look) -> Iterator[Link]:
    """Show the other instances that block registrations, as callers get them from Eureka."""
    mine = [
        one
        for one in subject.report.plan.blocked
        if one.syncer == subject.ref and subject.concerns(one.key)
    ]
    itself, off = (
        "its pod registers itself, and callers use that instance",
        f"turn off its registration ({TURN_OFF})",
    )
    taken = "another instance is registered under its id"
    for obstacle, part, reason, cause, fix in (
        (Obstacle.DUPLICATE, Part.DUPLICATE, Reason.DUPLICATE_REGISTRATION, itself, off),
        (Obstacle.TAKEN, Part.RIVALS, Reason.CONFLICT, taken, "cancel that instance"),
    ):
        if same := [one for one in mine if one.obstacle is obstacle]:
            others = {one.other for one in same}
            theirs = [one for one in read(look.listed) if one.key in others]
            details = [
                f"callers get {one.key} at {observed_at(one)}, {one.status}" for one in theirs
            ]
            text = f"{address_of(same[0].key)}{and_more(len(same))}: {same[0].why}"
            yield breaks(
                part, reason, text, *details, cause=cause, fix=f"{fix}, or delete the syncer"
            )


def brake_links(subject: Subject, look: Look) -> Iterator[Link]:
    """Show the removals that the pass would hold. If it could not read the whole cluster, show the
    condition RemovalHeld that the last pass wrote."""
    held, status = subject.report.held, subject.claim.syncer.status
    if look.narrowed or isinstance(subject.report.registry, Unknown):
        before = status.condition("RemovalHeld") if status else None
        if before is not None and before.status is ConditionStatus.TRUE:
            fix = "if all held removals are right, let the operator release them"
            cause = "its removals are held by the brake"
            text = f"the last pass said: {before.message}"
            yield Link(Part.BRAKE, Mark.BROKEN, text, before.reason, cause=cause, fix=fix)
        return
    mine = (
        [one for one in held.removals if one.syncer == subject.ref and subject.concerns(one.key)]
        if held
        else []
    )
    if held and mine:
        hold = next(one for one in held.holds if any(each in one.removals for each in mine))
        are = one_or_more(len(mine), "is", "are")
        text = f"{len(mine)} of its removals {are} held: {hold.text}"
        cause = f"{counted(len(mine), 'removal')} {are} held by the brake"
        details = [f"{address_of(one.key)}: {one.why}" for one in mine[:5]]
        fix = (
            "if all held removals are right, "
            f"{approve_command(held.plan_id, subject.report.settings.options)}"
        )
        yield breaks(Part.BRAKE, hold.reason, text, *details, cause=cause, fix=fix)


def owner_links(report: PassReport) -> Iterator[Link]:
    """Show other owners that serve our syncers, and other clusters that use our owner."""
    for other in report.other_owners:
        text, fix = other.sentence, "stop one of the two installations"
        if other.stops_us:
            text, fix = other.question, f"give --owner {quote(other.name)}, if that is right"
        yield breaks(
            Part.OWNER,
            Reason.OWNER_CLASH,
            text,
            cause=f"owner {other.name} serves the same syncer",
            fix=fix,
        )
    for cluster in report.registry.data.clashes if isinstance(report.registry, Complete) else ():
        text = f"cluster {cluster} has instances of the same owner in Eureka"
        cause = "another cluster uses the same owner, so a pass only renews"
        replaces = f"eurekube-sync run --former-cluster {quote(cluster)}"
        fix = f"give each cluster its own owner; if this cluster replaces it: {replaces}"
        yield breaks(Part.OWNER, Reason.OWNER_CLASH, text, cause=cause, fix=fix)
