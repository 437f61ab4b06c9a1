"""Puts the links of one syncer in order, up to the first broken one, and sums them up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from eurekube_sync.brake.approval import approve_command
from eurekube_sync.brake.evidence import Evidence, PodState, evidence_of
from eurekube_sync.brake.holds import Hold
from eurekube_sync.controller.diagnosis import unread_of
from eurekube_sync.controller.exit_codes import ExitCode, of_cause
from eurekube_sync.controller.look import Look
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.claims import Claim, Deleting, Leaving, OverLimit, Serving, Wanted
from eurekube_sync.desired.limit import Measure
from eurekube_sync.desired.spec import ABANDON_ANNOTATION, DRAIN_ANNOTATION
from eurekube_sync.explain.cluster import pod_links, selecting_nothing, syncer_links
from eurekube_sync.explain.links import (
    Explanation,
    Link,
    Mark,
    Outcome,
    Part,
    breaks,
    first_broken,
    noted,
    unseen,
    until_broken,
)
from eurekube_sync.explain.passes import see_to_passes
from eurekube_sync.explain.registry import (
    Held,
    dead_in,
    dead_text,
    held_by_eureka,
    last_pass_link,
    registry_links,
    up_in,
    wanted_up,
)
from eurekube_sync.explain.subject import (
    Subject,
    address_of,
    apps_of,
    claims_in,
    observed_at,
    read,
    vips_of,
)
from eurekube_sync.model.actions import Removal
from eurekube_sync.model.docs import page
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import Condition, ConditionStatus, SyncerStatus
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Server, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import and_more, counted, one_or_more, span
from eurekube_sync.plan.duplicates import TURN_OFF, otherwise
from eurekube_sync.plan.value import Obstacle

_MOST_HELD = 5  # lines about held removals
_ALTHOUGH_UP: Mapping[str, str] = {
    Reason.NOT_RENEWED: "Registered, but not for long",
    Reason.OWNER_CLASH: "Registered by another owner",
    Reason.REGISTRY_UNKNOWN: "Still registered",
    Reason.SOURCE_UNKNOWN: "Still registered",
}


def explain(subject: Subject, look: Look) -> Explanation:
    """Make the chain of one syncer, or of the part that the question is about."""
    held = held_by_eureka(subject, look)
    removals, _ = _held_removals(subject)
    staying = [removal.key for removal in removals]
    dead = dead_in(held, subject, look, staying)
    alive: dict[InstanceKey, ObservedInstance] = {}
    for key, instance in held.items():
        if key not in dead:
            alive[key] = instance
    up = up_in(alive)
    meant = _meant(subject)
    known = not isinstance(look.listed, Unknown)

    links = until_broken(_cluster_links(subject, look, up, meant))
    broken = links[-1].broken
    # What callers get now is shown also if an earlier link is broken.
    links += registry_links(subject, look, held, dead, broken=broken)
    links += _passes(subject, look, alone=not known and not broken)

    outcome, sentence = _outcome(subject, look, alive, meant, links)
    if dead:
        sentence = f"{sentence}; {dead_text(dead, look)}"
    fix = otherwise = ""
    first = first_broken(links)
    if first is not None:
        fix = first.fix
        otherwise = first.otherwise
    return Explanation(
        about=str(subject.what),
        syncer=str(subject.ref),
        links=tuple(links),
        outcome=outcome,
        sentence=sentence,
        fix=fix,
        otherwise=otherwise,
        up=up if known else None,
        of=meant,
        apps=apps_of(subject.claim),
    )


def _meant(subject: Subject) -> int:
    """Count what should be registered: no terminating endpoints, and none over the limit, unless
    all are over the limit. What is held stays, so it counts as well, as in the syncer's status."""
    there = set()
    within_limit = set()
    for key, verdict in subject.verdicts.items():
        if isinstance(verdict, Leaving) and verdict.terminating:
            continue
        there.add(key)
        if not isinstance(verdict, OverLimit):
            within_limit.add(key)
    meant = within_limit or there
    if isinstance(subject.claim, Serving):
        removals, _ = _held_removals(subject)
        meant.update(removal.key for removal in removals)
    return len(meant)


def _held_removals(subject: Subject) -> tuple[list[Removal], Hold | None]:
    """Return the held removals of the syncer, as far as the question is about them, and the first
    hold that has some of them. That gives the reason; the removals of all count."""
    removals: list[Removal] = []
    first = None
    held = subject.report.held
    if held is None:
        return removals, first
    for hold in held.holds:
        for removal in hold.removals:
            if subject.has(removal.syncer, removal.key):
                removals.append(removal)
                first = first or hold
    removals.sort(key=lambda removal: removal.key)
    return removals, first


def _cluster_links(subject: Subject, look: Look, up: int, meant: int) -> Iterator[Link]:
    """Make the links before those of Eureka. `up` instances are UP, of those that are `meant` to be
    registered."""
    brake = list(brake_links(subject, look))
    all_up = up >= meant > 0
    yield from syncer_links(subject, look, registered=all_up, held=bool(brake))
    pods = list(pod_links(subject, look))
    yield from brake
    ready = len(wanted_up(subject))
    status = subject.claim.syncer.status
    if isinstance(look.listed, Unknown):
        up = status.up if status else -1  # the only information about it
    conduct = conduct_links(subject, look, missing=up < ready)
    # If some pods are ready, the links that hold them back come before those of the unready pods.
    if ready and first_broken(pods):
        yield from conduct
        yield from pods
    else:
        yield from pods
        yield from conduct


def _passes(subject: Subject, look: Look, *, alone: bool) -> Iterator[Link]:
    """Show the status that the last pass wrote, and when the last good pass was. With `alone`, no
    other source tells whether the syncer is registered, so a status that is not Ready is a broken
    link."""
    link = _status_link(subject, look, alone=alone)
    yield link
    yield last_pass_link(look, alone=alone and not link.broken)


def _status_link(subject: Subject, look: Look, *, alone: bool) -> Link:
    """Show the status that the last pass wrote. It is a broken link if passes cannot read what they
    need, or if it is not Ready and `alone`."""
    status = subject.claim.syncer.status
    ready = status.condition("Ready") if status else None
    if status is None or ready is None:
        return noted(Part.STATUS, "no pass has written its status")
    lasted = span(look.at - ready.last_transition)
    since = f"Ready has been {ready.status} ({ready.reason}) for {lasted}"
    text = f"the syncer's status says {status.ready} UP; {since}"
    details: tuple[str, ...] = ()
    if ready.status is not ConditionStatus.TRUE:
        details = (ready.message,)
    unread = look.unread(subject.claim.syncer) is not None
    if unread:
        fix = see_to_passes(look)
    elif alone and ready.status is ConditionStatus.FALSE:
        fix = subject.kubectl("describe")
    else:
        return noted(Part.STATUS, text, *details)
    cause = ready.message
    return Link(Part.STATUS, Mark.BROKEN, text, ready.reason, details, cause, fix)


def _outcome(
    subject: Subject, look: Look, alive: Held, meant: int, links: Sequence[Link]
) -> tuple[Outcome, str]:
    """Sum up the links: the outcome and the last line. `alive` are the instances in Eureka without
    the dead ones.

    | a link is broken | a link is unknown | UP in Eureka | outcome        |
    |------------------|-------------------|--------------|----------------|
    | no               | yes               | any          | UNKNOWN        |
    | no               | no                | all          | REGISTERED     |
    | any              | any               | some         | PARTLY         |
    | any              | any               | none         | NOT_REGISTERED |
    """
    up = up_in(alive)
    apps = ", ".join(apps_of(subject.claim)[:3])
    as_apps = f" as {apps}" if apps else ""
    # Eureka may hold more than is meant, such as pods that terminate.
    counts = f"{up} of {max(meant, up)} UP{as_apps}"
    broken = first_broken(links)
    if broken is None:
        unknown = _unknown(subject, links, as_apps)
        if unknown:
            return Outcome.UNKNOWN, unknown
        # Without endpoints nothing is registered, though nothing is broken.
        if up >= max(meant, 1):
            limited = limit_text(subject.claim, up) if subject.of(OverLimit) else ""
            return Outcome.REGISTERED, f"Registered: {limited or counts}"
    if up:
        text = f"{_although_up(broken)}: {counts}"
        if broken is not None:
            text = f"{text}; {broken.cause}"
        return Outcome.PARTLY, text
    why = counts
    if broken is not None:
        why = broken.cause
        if isinstance(look.listed, Unknown):
            return Outcome.NOT_REGISTERED, f"What Eureka holds is unknown; {why}"
    head = "Registered, but not UP" if alive else "Not registered"
    return Outcome.NOT_REGISTERED, f"{head}: {why}"


def _unknown(subject: Subject, links: Sequence[Link], as_apps: str) -> str:
    """Return the last line if a link is unknown; empty if none is. Unknown drain annotations do not
    make the registration unknown."""
    text = ""
    passes = False
    for link in links:
        if link.mark is Mark.UNKNOWN and link.part is not Part.DRAIN:
            text = link.text
        if link.mark is Mark.OK and link.part is Part.LAST_PASS:
            passes = True
    if not text:
        return ""
    status = subject.claim.syncer.status
    if passes and status is not None:
        saw = f"The last pass saw {status.ready} UP{as_apps}"
        return f"{saw}; Eureka itself could not be looked at"
    return f"Unknown whether it is registered: {text}"


def _although_up(broken: Link | None) -> str:
    if broken is None:
        return "Registered in part"
    if broken.part is Part.BRAKE:
        return "Still registered"
    return _ALTHOUGH_UP.get(broken.reason, "Registered in part")


def code_of(explained: Sequence[Explanation], look: Look) -> ExitCode:
    """Return 0 only if all is known to be registered. A missing registration comes before a failed
    read."""
    outcomes = {explanation.outcome for explanation in explained}
    if outcomes & {Outcome.NOT_REGISTERED, Outcome.PARTLY}:
        return ExitCode.NOT_REGISTERED
    if Outcome.UNKNOWN not in outcomes:
        return ExitCode.OK
    for failed in unread_of(look.report):
        if failed.needed:
            return of_cause(Server.KUBERNETES, failed.source.cause)
    if isinstance(look.listed, Unknown):
        return of_cause(Server.EUREKA, look.listed.cause)
    return ExitCode.INCOMPLETE


# --- What holds registrations back ----------------------------------------------------------------


def conduct_links(subject: Subject, look: Look, *, missing: bool) -> Iterator[Link]:
    """Show limits, drains, suspension, rivals, duplicates and owners. With `missing`, Eureka lacks
    a ready instance, so a suspension is a broken link."""
    claim = subject.claim
    if isinstance(claim, Serving):
        yield from _limit(subject, claim)
        yield from _drain(subject, claim)
        if claim.spec.suspend:
            yield _suspend(subject, missing=missing)
        yield from _rivals(subject, claim)
    yield from _duplicates(subject, look)
    yield from owner_links(subject.report)


def _suspend(subject: Subject, *, missing: bool) -> Link:
    text = "the syncer is suspended: its instances are renewed, and not changed"
    cause = "its syncer is suspended"
    fix = f"set spec.suspend to false: {subject.kubectl('edit')}"
    return breaks(Part.SUSPEND, Reason.SUSPENDED, text, cause=cause, fix=fix, if_=missing)


def limit_text(claim: Claim, up: int) -> str:
    """Return how many of the ready pods are UP under a limit that leaves some out, such as `2 of 4
    ready pods (limit 50%)`; empty if none is left out."""
    if not isinstance(claim, Serving) or not claim.of(OverLimit):
        return ""
    ready = len(claim.of(OverLimit))
    for wanted in claim.wanted.values():
        if wanted.instance.status is InstanceStatus.UP:
            ready += 1
    pods = counted(ready, "ready pod")
    return f"{up} of {pods} (limit {claim.spec.limit})"


_FOLLOWS: Mapping[Measure, str] = {
    Measure.SHARE: "the share counts the VIP's other UP instances of now",
    Measure.PODS: "the percentage counts the pods of now",
}
"""What changes the number of places under an unchanged limit."""


def _limit(subject: Subject, claim: Serving) -> Iterator[Link]:
    """Say how many pods a limit leaves out. It is a broken link only if it leaves out all."""
    out = list(subject.of(OverLimit).values())
    if not out:
        for note in claim.notes:
            yield noted(Part.LIMIT, note)
        return
    limit = claim.spec.limit
    everything = len(out) == len(subject.verdicts)
    if everything:
        text = out[0].why
    else:
        notes = "; ".join(claim.notes)
        text = f"{counted(len(out), 'pod')} over the limit: {notes}"
    fix = f"raise spec.limit: {subject.kubectl('edit')}"
    details = []
    if claim.spec.claims_nothing:
        reason = Reason.LIMIT_ZERO
        cause = "its limit is 0"
    else:
        reason = Reason.OVER_LIMIT
        cause = "it is over the limit of its syncer"
        follows = _FOLLOWS.get(limit.measure) if limit else None
        if follows:
            # An unchanged percentage removes nothing, so the loss comes later, with the new pods.
            loss = "so a release may leave out pods whose predecessors were registered"
            details.append(f"{follows}; {loss}")
    yield breaks(Part.LIMIT, reason, text, *details, cause=cause, fix=fix, if_=everything)


def _drain(subject: Subject, claim: Serving) -> Iterator[Link]:
    """Say which object drains the instances in question, and how to end that. It is a broken link
    only if all are drained."""
    drained = []
    for wanted in subject.of(Wanted).values():
        if wanted.drained:
            drained.append(wanted)
    if not drained:
        for warning in claim.drain_warnings:
            yield unseen(Part.DRAIN, warning)
        return
    more = and_more(len(drained))
    known = [wanted for wanted in drained if wanted.drainer is not None]
    first = (known or drained)[0]
    drainer = first.drainer
    if drainer is not None:
        text = f"{drainer}{more} has the annotation {DRAIN_ANNOTATION}"
        of_object = f"{drainer.kind} {drainer.name} -n {subject.namespace}"
        fix = f"kubectl annotate {of_object} {DRAIN_ANNOTATION}-"
    else:
        text = f"{first.why}{more}"
        fix = f"see that eurekube-sync can list {_unreadable_kinds(drained)}"
    everything = len(drained) == len(subject.verdicts)
    yield breaks(Part.DRAIN, Reason.DRAINED, text, cause=first.why, fix=fix, if_=everything)


def _unreadable_kinds(drained: Sequence[Wanted]) -> str:
    """Return the kinds of object whose annotations could not be read, such as `Pods and
    Services`."""
    kinds: set[str] = set()
    for wanted in drained:
        for kind in wanted.unreadable_drain_kinds:
            kinds.add(f"{kind.title()}s")
    return " and ".join(sorted(kinds))


def _rivals(subject: Subject, claim: Serving) -> Iterator[Link]:
    """Show which syncer has the addresses, and how this one gets a registration.

    | the other syncer                              | what to do                                  |
    |-----------------------------------------------|---------------------------------------------|
    | is suspended                                  | end that                                    |
    | lacks a VIP address, in the same namespace    | give it both, or another app to this syncer |
    | any other                                     | give another app to this syncer             |
    """
    keys = [key for key in claim.rivals if key in subject.verdicts]
    if not keys:
        return
    first = keys[0]
    rival = claim.rivals[first]
    text = f"{address_of(first)}{and_more(len(keys))}: {rival}"
    other = claims_in(subject.report).get(rival.syncer)
    lacks = _vips_beside(claim, other)
    edit = subject.kubectl("edit")
    edit_other = f"kubectl edit esync {rival.syncer.name} -n {rival.syncer.namespace}"
    own_app = "give this syncer an app of its own with spec.appName"
    details: list[str] = []
    otherwise = f"eurekube-sync explain {rival.syncer}"
    if isinstance(other, Serving) and other.spec.suspend:
        details.append(f"syncer {rival.syncer} is suspended")
        fix = f"set spec.suspend to false in the other syncer, or delete it: {edit_other}"
    elif other and lacks and rival.syncer.namespace == subject.ref.namespace:
        details.append(f"so nothing of it is registered under VIP {', '.join(lacks)}")
        both = ",".join([*vips_of(other), *lacks])
        set_both = f"set spec.vipAddress to {both} in the other syncer"
        fix = f"to have all VIP addresses, {set_both}, and delete this one: {edit_other}"
        otherwise = f"{own_app}: {edit}"
    else:
        fix = f"{own_app}, or other Services, or delete it: {edit}"
    link = breaks(Part.RIVALS, Reason.CONFLICT, text, *details, cause=str(rival), fix=fix)
    yield replace(link, otherwise=otherwise)


def _vips_beside(claim: Claim, other: Claim | None) -> list[str]:
    """Return the VIP addresses that the other syncer lacks; empty if that is unknown."""
    known = vips_of(other) if other else []
    if not known:
        return []
    return [vip for vip in vips_of(claim) if vip not in known]


_DUPLICATES = (
    (
        Obstacle.DUPLICATE,
        Part.DUPLICATE,
        Reason.DUPLICATE_REGISTRATION,
        "its pod registers itself, and callers use that instance",
        f"turn off its registration ({TURN_OFF})",
    ),
    (
        Obstacle.TAKEN,
        Part.RIVALS,
        Reason.CONFLICT,
        "another instance is registered under its id",
        "cancel that instance",
    ),
)
"""Of each obstacle: the part, the reason, the cause, and what to do."""


def _duplicates(subject: Subject, look: Look) -> Iterator[Link]:
    """Show the other instances that block registrations, as callers get them from Eureka."""
    for obstacle, part, reason, cause, fix in _DUPLICATES:
        blocked = []
        for block in subject.report.plan.blocked:
            if block.obstacle is obstacle and subject.has(block.syncer, block.key):
                blocked.append(block)
        if not blocked:
            continue
        keys = {block.other for block in blocked}
        others = [instance for instance in read(look.listed) if instance.key in keys]
        details = []
        for instance in others:
            at = f"{instance.key} at {observed_at(instance)}"
            details.append(f"callers get {at}, {instance.status}")
        first = blocked[0]
        text = f"{address_of(first.key)}{and_more(len(blocked))}: {first.why}"
        instead = "delete the syncer"
        if obstacle is Obstacle.DUPLICATE:
            instead = otherwise(others)
        fix = f"{fix}, or {instead}"
        yield breaks(part, reason, text, *details, cause=cause, fix=fix)


def brake_links(subject: Subject, look: Look) -> Iterator[Link]:
    """Show the removals that the pass would hold. If it could not read the whole cluster, show the
    condition RemovalHeld that the last pass wrote."""
    before = _removal_held(subject.claim.syncer.status)
    # The brake weighs all namespaces and what Eureka lists, so without them it judges nothing.
    if look.narrowed or isinstance(subject.report.registry, Unknown):
        if before is not None:
            yield _held_before(before)
        return
    held = subject.report.held
    removals, first = _held_removals(subject)
    if held is None or first is None:
        return

    since = None
    lasted = ""
    if before is not None:
        since = before.last_transition
        lasted = f" for {span(look.at - since)}"
    are = one_or_more(len(removals), "is", "are")
    text = f"{len(removals)} of its removals {are} held{lasted}: {first.text}"
    cause = f"{counted(len(removals), 'removal')} {are} held by the brake"
    details = []
    evidence = None
    if first.for_a_person:
        evidence = evidence_of(removals, held.pods)
        details.append(evidence.sentence)
        if evidence.advice.warns:
            cause = f"{cause}; {evidence.advice.text}"
    hints = list(selecting_nothing(subject, look))
    for hint, _ in hints:
        details.append(hint)
    for removal in removals[:_MOST_HELD]:
        details.append(f"{address_of(removal.key)}: {removal.why}")

    approve = approve_command(held.plan_id, subject.report.settings.options)
    release = f"if all held removals are right, {approve}"
    keep = hints[0][1] if hints else ""
    fix, otherwise = _ways_out(subject, evidence, release, keep)
    link = breaks(Part.BRAKE, first.reason, text, *details, cause=cause, fix=fix)
    yield replace(link, otherwise=otherwise, since=since)


def _ways_out(
    subject: Subject, evidence: Evidence | None, release: str, keep: str
) -> tuple[str, str]:
    """Return the ways out of a hold, the first to consider first. `keep` corrects a fault, so that
    the instances stay; empty if none is known.

    | the syncer       | its pods                  | first   | then             |
    |------------------|---------------------------|---------|------------------|
    | is being deleted | some are Ready            | undo    | release          |
    | is being deleted | any other                 | release | undo             |
    | is there         | warn against a release    | keep    | release          |
    | is there         | any other                 | release | keep             |
    | any              | await a second pass alone | release | keep, if known   |
    """
    if evidence is None:
        return release, keep
    first_keep = evidence.advice.warns
    if isinstance(subject.claim, Deleting):
        first_keep = evidence.counts[PodState.READY] > 0
        abandon = f"{subject.kubectl('annotate')} {ABANDON_ANNOTATION}=true"
        again = "wait for the next pass, and create the syncer again"
        undoing = page("brake", "undoing-a-deletion")
        keep = f"to keep the instances, {abandon}, {again}: {undoing}"
    if not keep:
        keep = f"kubectl get pods -n {subject.namespace}"
    if first_keep:
        return keep, release
    return release, keep


def _removal_held(status: SyncerStatus | None) -> Condition | None:
    """Return the condition RemovalHeld that the last pass wrote; None if it is not True."""
    held = status.condition("RemovalHeld") if status else None
    if held is None or held.status is not ConditionStatus.TRUE:
        return None
    return held


def _held_before(before: Condition) -> Link:
    """Show what the last pass wrote of held removals."""
    text = f"the last pass said: {before.message}"
    cause = "its removals are held by the brake"
    fix = "if all held removals are right, let the operator release them"
    return Link(Part.BRAKE, Mark.BROKEN, text, before.reason, cause=cause, fix=fix)


def owner_links(report: PassReport) -> Iterator[Link]:
    """Show other owners that serve our syncers, and other clusters that use our owner."""
    for other in report.other_owners:
        text = other.sentence
        fix = "stop one of the two installations"
        if other.stops_us:
            text = other.question
            fix = f"give --owner {quote(other.name)}, if that is right"
        cause = f"owner {other.name} serves the same syncer"
        yield breaks(Part.OWNER, Reason.OWNER_CLASH, text, cause=cause, fix=fix)
    if isinstance(report.registry, Unknown):
        return
    for cluster in report.registry.data.clashes:
        text = f"cluster {cluster} has instances of the same owner in Eureka"
        cause = "another cluster uses the same owner, so a pass only renews"
        replaces = f"eurekube-sync run --former-cluster {quote(cluster)}"
        fix = f"give each cluster its own owner; if this cluster replaces it: {replaces}"
        yield breaks(Part.OWNER, Reason.OWNER_CLASH, text, cause=cause, fix=fix)
