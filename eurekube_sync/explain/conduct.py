"""The links of what people asked for, and of what is in the way: from the limit to the brake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from eurekube_sync.brake.approval import approve_command
from eurekube_sync.controller.look import Look
from eurekube_sync.desired.claims import Serving
from eurekube_sync.desired.conduct import Policy
from eurekube_sync.desired.verdicts import OverLimit, Taken, Wanted
from eurekube_sync.explain.links import Link, Part, Why, breaks, noted, unseen
from eurekube_sync.explain.subject import Subject, address_of, observed_at
from eurekube_sync.model.kubernetes import Condition, ConditionStatus
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.plan import Blocked, Obstacle

_MOST = 5
"""Lines about single instances."""


def conduct_links(subject: Subject, look: Look, *, missing: bool) -> Iterator[Link]:
    """`missing`: Eureka lacks an instance that is ready, so that what holds it back breaks the chain."""
    claim = subject.claim
    if isinstance(claim, Serving):
        yield from _limit(subject, claim)
        yield from _drain(subject, claim)
        yield from _suspend(subject, claim, missing=missing)
        yield from _policy(claim)
        yield from _rivals(subject, claim)
    yield from _duplicates(subject, look)
    yield from _owners(subject)


def _limit(subject: Subject, claim: Serving) -> Iterator[Link]:
    out = [one for one in subject.verdicts.values() if isinstance(one, OverLimit)]
    if not out:
        yield from (noted(Part.LIMIT, note) for note in claim.notes)
        return
    everything = len(out) == len(subject.verdicts)
    if claim.over_quota:
        cause, fix = "its namespace has reached its quota of instances", f"kubectl get esync -n {subject.ref.namespace}"
        yield breaks(Part.LIMIT, "OverQuota", claim.over_quota, cause=cause, fix=fix, if_=everything)
        return
    limit_zero = claim.conduct.claims_nothing
    cause = "its limit is 0" if limit_zero else "it is over the limit of its syncer"
    text = out[0].why if everything else f"{counted(len(out), 'pod')} over the limit: {'; '.join(claim.notes)}"
    reason, fix = "LimitZero" if limit_zero else "OverLimit", f"raise spec.limit: {subject.edit}"
    yield breaks(Part.LIMIT, reason, text, cause=cause, fix=fix, if_=everything)


def _drain(subject: Subject, claim: Serving) -> Iterator[Link]:
    drained = [one for one in subject.verdicts.values() if isinstance(one, Wanted) and one.drained]
    if drained:
        first = drained[0].why
        everything = len(drained) == len(subject.verdicts)
        more = f" (and {len(drained) - 1} more)" if len(drained) > 1 else ""
        text, fix = f"{first}{more}, eurekube.io/drain", _undrain(first, subject.namespace)
        yield breaks(Part.DRAIN, "Drained", text, cause=first, fix=fix, if_=everything)
    told = [one for one in claim.warnings if "drain annotations" in one]
    for one in told if not drained else ():
        yield unseen(Part.DRAIN, one.replace("are not read", "could not be looked at"))


def _undrain(why: str, namespace: str) -> str:
    """`pod orders-a is drained by its annotation` names what to annotate."""
    kind, name, *_ = [*why.split(), "", ""]
    where = "" if kind == "node" else f" -n {namespace}"
    return f"kubectl annotate {kind.lower()} {name}{where} eurekube.io/drain-"


def _suspend(subject: Subject, claim: Serving, *, missing: bool) -> Iterator[Link]:
    if not claim.conduct.suspend:
        return
    text = "the syncer is suspended: nothing new is registered, registered instances are renewed"
    fix = f"set spec.suspend to false: {subject.edit}"
    yield breaks(Part.SUSPEND, "Suspended", text, cause="its syncer is suspended", fix=fix, if_=missing)


def _policy(claim: Serving) -> Iterator[Link]:
    if claim.conduct.policy is not Policy.SYNC:
        text = f"policy {claim.conduct.policy}: a run cancels nothing"
        text += " and changes nothing but UP and DOWN" if claim.conduct.policy is Policy.CREATE_ONLY else ""
        yield noted(Part.POLICY, text)


def _rivals(subject: Subject, claim: Serving) -> Iterator[Link]:
    rivals = {key: rival for key, rival in claim.rivals.items() if key in subject.verdicts}
    if not rivals:
        return
    key, rival = next(iter(rivals.items()))
    taken = [one for one in rivals if isinstance(claim.verdicts[one], Taken)]
    more = f" (and {len(rivals) - 1} more)" if len(rivals) > 1 else ""
    yield breaks(
        Part.RIVALS,
        "Conflict",
        f"{address_of(key, claim.verdicts[key])}: {rival}{more}",
        cause=f"syncer {rival.syncer} {'registers' if taken else 'has'} its address",
        fix=f"eurekube-sync explain {rival.syncer}",
    )


def _duplicates(subject: Subject, look: Look) -> Iterator[Link]:
    found = [one for one in subject.report.plan.blocked if one.syncer == subject.ref and one.conflict]
    found = [one for one in found if subject.keys is None or one.key in subject.keys]
    for obstacle, part, reason, cause in (
        (Obstacle.DUPLICATE, Part.DUPLICATE, "DuplicateRegistration", "its pod registers itself"),
        (Obstacle.TAKEN, Part.RIVALS, "Conflict", "another instance is registered under its id"),
    ):
        same = [one for one in found if one.obstacle is obstacle]
        if not same:
            continue
        more = f" (and {len(same) - 1} more)" if len(same) > 1 else ""
        why = same[0].why
        off = "turn the Eureka client of its image off (eureka.client.enabled=false), or delete the syncer"
        yield breaks(
            part,
            reason,
            f"{address_of(same[0].key)}: {why}{more}",
            details=tuple(_in_the_way(same, look)),
            cause=cause,
            fix=off if obstacle is Obstacle.DUPLICATE else "cancel that instance, or delete the syncer",
        )


def _in_the_way(blocked: Sequence[Blocked], look: Look) -> Iterator[str]:
    """What Eureka holds there, and callers get."""
    keys = {one.other for one in blocked if one.other}
    for one in look.listed.data if isinstance(look.listed, Complete) and keys else ():
        if one.key in keys:
            yield f"callers get {one.key} at {observed_at(one)}, {one.status}"


def brake_links(subject: Subject, look: Look) -> Iterator[Link]:
    """What the pass would hold; where the whole cluster could not be read, what the last pass wrote of it."""
    unseen = bool(look.narrowed) or isinstance(subject.report.registry, Unknown)
    held = subject.report.held if not unseen else None
    mine = [one for one in held.removals if one.syncer == subject.ref] if held else []
    mine = [one for one in mine if subject.keys is None or one.key in subject.keys]
    if held is not None and mine:
        hold = next(one for one in held.holds if any(each in one.removals for each in mine))
        yield breaks(
            Part.BRAKE,
            hold.reason.value,
            f"{counted(len(mine), 'removal')} of it {one_or_more(len(mine), 'is', 'are')} held: {hold.why}",
            details=tuple(f"{address_of(one.key)}: {one.why}" for one in mine[:_MOST]),
            cause=f"{counted(len(mine), 'removal')} {one_or_more(len(mine), 'is', 'are')} held by the brake",
            fix=f"if all held removals are right, {approve_command(held.plan_id, subject.report.options)}",
        )
        return
    before = _condition(subject, "RemovalHeld")
    if held is None and before is not None and before.status is ConditionStatus.TRUE and unseen:
        command = before.message.rpartition(": ")[2]
        ask = f"if all held removals are right, ask the operator for {command}"
        yield breaks(
            Part.BRAKE,
            before.reason,
            f"the last pass said: {before.message}",
            cause="its removals are held by the brake",
            fix=ask if command.startswith("eurekube-sync") else "",
        )


def _condition(subject: Subject, type_: str) -> Condition | None:
    status = subject.claim.syncer.status
    return status.condition(type_) if status else None


def _owners(subject: Subject) -> Iterator[Link]:
    for other in subject.report.other_owners:
        yield breaks(
            Part.OWNER,
            Why.OWNER_CLASH,
            other.question if other.stops_us else other.sentence,
            cause=f"owner {other.name} serves the same syncer",
            fix=f"give --owner {quote(other.name)}, if that is the installation"
            if other.stops_us
            else "stop one of the two installations",
        )
    if isinstance(subject.report.registry, Complete) and (clashes := subject.report.registry.data.clashes):
        yield breaks(
            Part.OWNER,
            Why.OWNER_CLASH,
            f"cluster {clashes[0]} has instances of the same owner in Eureka",
            cause="another cluster uses the same owner, so a pass only renews",
            fix="give each cluster its own owner; if this one replaces it: "
            f"eurekube-sync owner adopt --cluster {quote(clashes[0])}",
        )
