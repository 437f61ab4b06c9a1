"""The links of what people asked for, and of what is in the way: from the limit to the brake."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from eurekube_sync.brake.approval import approve_command
from eurekube_sync.controller.look import Look
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.desired.claims import OverLimit, Serving, Taken, Wanted
from eurekube_sync.desired.conduct import Policy
from eurekube_sync.explain.links import Link, Mark, Part, and_more, breaks, unseen
from eurekube_sync.explain.subject import Subject, address_of, observed_at, read
from eurekube_sync.model.kubernetes import ConditionStatus
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.plan.value import Obstacle

_MOST = 5
"""Lines about single instances."""


def conduct_links(subject: Subject, look: Look, *, missing: bool) -> Iterator[Link]:
    """`missing`: Eureka lacks an instance that is ready, so that what holds it back breaks the chain."""
    claim = subject.claim
    if isinstance(claim, Serving):
        yield from _limit(subject, claim)
        yield from _drain(subject, claim)
        if claim.conduct.suspend:
            text = "the syncer is suspended: nothing new is registered, registered instances are renewed"
            cause, fix = "its syncer is suspended", f"set spec.suspend to false: {subject.kubectl('edit')}"
            yield breaks(Part.SUSPEND, "Suspended", text, cause=cause, fix=fix, if_=missing)
        if claim.conduct.policy is not Policy.SYNC:
            text = f"policy {claim.conduct.policy}: a run cancels nothing"
            text += " and changes nothing but UP and DOWN" if claim.conduct.policy is Policy.CREATE_ONLY else ""
            yield Link(Part.POLICY, Mark.NOTE, text)
        yield from _rivals(subject, claim)
    yield from _duplicates(subject, look)
    yield from owner_links(subject.report)


def _limit(subject: Subject, claim: Serving) -> Iterator[Link]:
    out = [one for one in subject.verdicts.values() if isinstance(one, OverLimit)]
    everything = len(out) == len(subject.verdicts)
    if not out:
        yield from (Link(Part.LIMIT, Mark.NOTE, note) for note in claim.notes)
    elif claim.over_quota:
        cause, fix = "its namespace has reached its quota of instances", f"kubectl get esync -n {subject.ref.namespace}"
        yield breaks(Part.LIMIT, "OverQuota", claim.over_quota, cause=cause, fix=fix, if_=everything)
    else:
        reason, cause = "OverLimit", "it is over the limit of its syncer"
        if claim.conduct.claims_nothing:
            reason, cause = "LimitZero", "its limit is 0"
        text = out[0].why if everything else f"{counted(len(out), 'pod')} over the limit: {'; '.join(claim.notes)}"
        fix = f"raise spec.limit: {subject.kubectl('edit')}"
        yield breaks(Part.LIMIT, reason, text, cause=cause, fix=fix, if_=everything)


def _drain(subject: Subject, claim: Serving) -> Iterator[Link]:
    drained = [one for one in subject.verdicts.values() if isinstance(one, Wanted) and one.drained]
    if drained:
        why = drained[0].why  # `pod orders-a is drained by its annotation`
        kind, name, *_ = [*why.split(), "", ""]
        where = "" if kind == "node" else f" -n {subject.namespace}"
        fix = f"kubectl annotate {kind.lower()} {name}{where} eurekube.io/drain-"
        text = f"{why}{and_more(len(drained))}, eurekube.io/drain"
        yield breaks(Part.DRAIN, "Drained", text, cause=why, fix=fix, if_=len(drained) == len(subject.verdicts))
        return
    for told in claim.warnings:
        if "drain annotations" in told:
            yield unseen(Part.DRAIN, told.replace("are not read", "could not be looked at"))


def _rivals(subject: Subject, claim: Serving) -> Iterator[Link]:
    rivals = {key: rival for key, rival in claim.rivals.items() if key in subject.verdicts}
    if not rivals:
        return
    key, rival = next(iter(rivals.items()))
    taken = any(isinstance(claim.verdicts[one], Taken) for one in rivals)
    text = f"{address_of(key)}: {rival}{and_more(len(rivals))}"
    cause = f"syncer {rival.syncer} {'registers' if taken else 'has'} its address"
    yield breaks(Part.RIVALS, "Conflict", text, cause=cause, fix=f"eurekube-sync explain {rival.syncer}")


def _duplicates(subject: Subject, look: Look) -> Iterator[Link]:
    """With what Eureka holds there, and callers get."""
    blocked = [one for one in subject.report.plan.blocked if one.syncer == subject.ref]
    off = "turn the Eureka client of its image off (eureka.client.enabled=false)"
    taken = "another instance is registered under its id"
    for obstacle, part, reason, cause, fix in (
        (Obstacle.DUPLICATE, Part.DUPLICATE, "DuplicateRegistration", "its pod registers itself", off),
        (Obstacle.TAKEN, Part.RIVALS, "Conflict", taken, "cancel that instance"),
    ):
        same = [one for one in blocked if one.obstacle is obstacle and subject.concerns(one.key)]
        if same:
            others = {one.other for one in same}
            theirs = [one for one in read(look.listed) if one.key in others]
            details = [f"callers get {one.key} at {observed_at(one)}, {one.status}" for one in theirs]
            text = f"{address_of(same[0].key)}: {same[0].why}{and_more(len(same))}"
            yield breaks(part, reason, text, *details, cause=cause, fix=f"{fix}, or delete the syncer")


def brake_links(subject: Subject, look: Look) -> Iterator[Link]:
    """What the pass would hold; where the whole cluster could not be read, what the last pass wrote of it."""
    held, status = subject.report.held, subject.claim.syncer.status
    if look.narrowed or isinstance(subject.report.registry, Unknown):
        before = status.condition("RemovalHeld") if status else None
        if before is not None and before.status is ConditionStatus.TRUE:
            command = before.message.rpartition(": ")[2]
            ask = f"if all held removals are right, ask the operator for {command}"
            fix, cause = ask if command.startswith("eurekube-sync") else "", "its removals are held by the brake"
            yield breaks(Part.BRAKE, before.reason, f"the last pass said: {before.message}", cause=cause, fix=fix)
        return
    mine = [one for one in held.removals if one.syncer == subject.ref and subject.concerns(one.key)] if held else []
    if held and mine:
        hold = next(one for one in held.holds if any(each in one.removals for each in mine))
        removals, are = counted(len(mine), "removal"), one_or_more(len(mine), "is", "are")
        text, cause = f"{removals} of it {are} held: {hold.why}", f"{removals} {are} held by the brake"
        details = [f"{address_of(one.key)}: {one.why}" for one in mine[:_MOST]]
        fix = f"if all held removals are right, {approve_command(held.plan_id, subject.report.settings.options)}"
        yield breaks(Part.BRAKE, hold.reason.value, text, *details, cause=cause, fix=fix)


def owner_links(report: PassReport) -> Iterator[Link]:
    """Who else uses our name, or serves our syncers under another."""
    for other in report.other_owners:
        text, fix = other.sentence, "stop one of the two installations"
        if other.stops_us:
            text, fix = other.question, f"give --owner {quote(other.name)}, if that is the installation"
        yield breaks(Part.OWNER, "OwnerClash", text, cause=f"owner {other.name} serves the same syncer", fix=fix)
    for cluster in report.registry.data.clashes if isinstance(report.registry, Complete) else ():
        text = f"cluster {cluster} has instances of the same owner in Eureka"
        cause = "another cluster uses the same owner, so a pass only renews"
        adopt = f"eurekube-sync owner adopt --cluster {quote(cluster)}"
        fix = f"give each cluster its own owner; if this one replaces it: {adopt}"
        yield breaks(Part.OWNER, "OwnerClash", text, cause=cause, fix=fix)
