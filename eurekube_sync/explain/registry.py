"""The links about Eureka and the passes: what each server holds, what callers still see, and who
renews."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote
from urllib.parse import quote as in_url

from eurekube_sync.controller.look import Look
from eurekube_sync.desired.catalog import DRAINED
from eurekube_sync.desired.claims import Wanted
from eurekube_sync.explain.links import Link, Mark, Part, breaks, unseen
from eurekube_sync.explain.subject import Subject, address_of, apps_of, observed_at, read
from eurekube_sync.model.eureka import DEFAULT_LEASE, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import LockRecord
from eurekube_sync.model.ownership import pod_uid_of
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.wording import and_more, counted, one_or_more, some_of, span

CALLERS_SECONDS = 95
"""How long callers may use old lists: 30 s of the server's cache, 30 s of the client's, 35 s of the
load balancer's (docs/eureka.md)."""
_MOST = 6  # instances with a line each
_SILENT = 150.0  # seconds without a renewal, or without a good pass: five renewals
_LEASE_SECONDS = (
    600.0  # how long an instance lives after its last renewal, with the default lease of `run`
)
RUNS = "see that eurekube-sync runs: kubectl get cronjobs,jobs,deployments -A | grep eurekube"
Held = Mapping[InstanceKey, ObservedInstance]  # the instances in question that Eureka holds


def looks_silent(instance: ObservedInstance, look: Look) -> bool:
    """Whether an instance was not renewed for long, as far as it was seen. A renewal that a list
    shows did happen, but the list may lack later ones (LIST_LAG), so only an uncached read proves
    that there were none."""
    return bool(instance.last_renewal) and look.eureka_time - instance.renewed > _SILENT


def lease_end(one: ObservedInstance) -> float:
    """Return the end of a lease, in Unix seconds of the server's clock."""
    return one.last_renewal / 1000 + (one.instance.lease.duration or DEFAULT_LEASE.duration)


def keys_to_read(subject: Subject, look: Look) -> frozenset[InstanceKey]:
    """Return the keys to read uncached: all verdicts of the syncer, and all its instances that
    Eureka lists."""
    return frozenset(
        {*(subject.verdicts if look.owner else ()), *(one.key for one in subject.listed)}
    )


def held_by_eureka(subject: Subject, look: Look) -> Held:
    """Return our instances in question that Eureka holds."""
    return {key: one for key, one in _all_held(subject, look).items() if subject.concerns(key)}


def _all_held(subject: Subject, look: Look) -> Held:
    """Return our instances of the whole syncer: each as the first server with an uncached answer
    holds it, or else as the dry pass or the list shows it."""
    if isinstance(look.listed, Unknown):
        return {}
    registry, shown = subject.report.registry, look.marked(subject.ref)
    if look.owner and isinstance(registry, Complete):
        # The pass has read again what it would change, so right after a `run` it knows more than
        # the list.
        observed = registry.data
        shown = [observed.ours[key] for key in observed.keys_by_syncer.get(subject.ref, ())]
    found = {instance.key: instance for instance in shown}
    for key in keys_to_read(subject, look) | found.keys():
        answers = look.uncached(key)
        if not answers or isinstance(answers[0], Unknown):
            continue
        found.pop(key, None)
        if answers[0] is not None and look.is_ours(answers[0]):
            found[key] = answers[0]
    return dict(sorted(found.items()))


def up_in(held: Held) -> int:
    return sum(one.status is InstanceStatus.UP for one in held.values())


def registry_links(subject: Subject, look: Look, held: Held, *, broken: bool) -> Iterator[Link]:
    """Show what Eureka holds. With `broken`, an earlier link is broken, so faults in Eureka are not
    reported."""
    if isinstance(look.listed, Unknown):
        yield unseen(
            Part.EUREKA, f"what Eureka holds could not be looked at: {look.listed.message}"
        )
        return
    if fault := None if broken else _fault(subject, look, held):
        yield fault
    elif held:
        text = f"Eureka holds {counted(len(held), 'instance')} of this syncer, {up_in(held)} UP"
        yield Link(
            Part.EUREKA, Mark.NOTE if broken else Mark.OK, text, details=tuple(_details(look, held))
        )
    else:
        apps = apps_of(subject.claim)
        named = f" ({one_or_more(len(apps), 'app', 'apps')} {', '.join(apps)})" if apps else ""
        yield Link(Part.EUREKA, Mark.NOTE, f"Eureka holds no instance of this syncer{named}")
    yield from _callers(subject, held)


def _details(look: Look, held: Held) -> Iterator[str]:
    """Describe the first instances: status, override, lease, and different answers of other
    servers."""
    for key, one in list(held.items())[:_MOST]:
        override, parts = one.instance.override, [one.status.value]
        parts += [f"override {override}"] if override is not InstanceStatus.UNKNOWN else []
        parts += (
            [f"by the drain annotation of {_drained_by(one)}"] if DRAINED in one.metadata else []
        )
        # A list may lack renewals of some minutes, so it does not show when a lease ends.
        parts += (
            [f"lease {_ends(one, look)}"] if one.last_renewal and _was_read(one.key, look) else []
        )
        elsewhere = []
        for server, readings in look.readings.items() if len(look.readings) > 1 else ():
            match readings.get(key):
                case Unknown():
                    elsewhere.append(f"{server} gave no answer")
                case None:
                    elsewhere.append(f"{server} does not hold it")
                case other if other.status is not one.status:
                    elsewhere.append(f"{server} has it {other.status}")
        beside = f" ({'; '.join(elsewhere)})" if elsewhere else ""
        yield f"{key.app} {observed_at(one)}: {', '.join(parts)}{beside}"
    if len(held) > _MOST:
        yield f"and {len(held) - _MOST} more"


def _fault(subject: Subject, look: Look, held: Held) -> Link | None:
    """Find a fault in Eureka, if all links of the cluster hold. With an unknown owner, our keys are
    unknown, too."""
    wanted = {key: one.instance for key, one in subject.verdicts.items() if isinstance(one, Wanted)}
    up = {key for key, one in wanted.items() if one.status is InstanceStatus.UP}
    lacking = sorted(up - held.keys()) if look.owner or not held else []
    if lacking:
        return _under_another_owner(subject, look, held) or _lacking(subject, look, lacking)
    other = [
        one
        for key, one in held.items()
        if one.status is not InstanceStatus.UP and (key in up or not look.owner)
    ]
    if other:
        return _with_another_status(other[0], len(other), look)
    return _not_renewed(
        [instance for instance in held.values() if looks_silent(instance, look)], look
    )


def _not_renewed(old: list[ObservedInstance], look: Look) -> Link | None:
    """Make a link if an uncached read shows one of these instances, which look old, as old as
    before. The link is unknown if no server answered. Instances that nobody asked for give none."""
    silent = [instance for instance in old if _was_read(instance.key, look)]
    if silent:
        first = min(silent, key=lambda instance: instance.renewed)
        whose = f"{observed_at(first)}{and_more(len(silent))}"
        ends = f"the first lease {_ends(min(silent, key=lease_end), look)}"
        text = f"nobody renewed {whose} for {span(look.eureka_time - first.renewed)}; {ends}"
        return breaks(
            Part.EUREKA, Reason.NOT_RENEWED, text, cause="no pass renews it any more", fix=RUNS
        )
    for instance in old:
        for answer in look.uncached(instance.key):
            if isinstance(answer, Unknown):
                text = f"whether its leases are renewed could not be looked at: {answer.message}"
                return unseen(Part.EUREKA, text)
    return None


def _was_read(key: InstanceKey, look: Look) -> bool:
    return any(not isinstance(answer, Unknown) for answer in look.uncached(key))


def _ends(one: ObservedInstance, look: Look) -> str:
    left = lease_end(one) - look.eureka_time
    return f"ends in {span(left)}" if left > 0 else f"ended {span(-left)} ago"


def _under_another_owner(subject: Subject, look: Look, held: Held) -> Link | None:
    """Make a link if this cluster's instances of the syncer are registered only under another
    owner."""
    owners = look.owners_beside(subject.ref)
    if held or not owners:
        return None
    text = f"Eureka holds its instances under owner {owners[0]}, and none under owner {look.owner}"
    cause = f"owner {owners[0]} registers it, not owner {look.owner}"
    fix = f"give --owner {quote(owners[0])}, if that is right"
    return breaks(Part.OWNER, Reason.OWNER_CLASH, text, cause=cause, fix=fix)


def _lacking(subject: Subject, look: Look, lacking: list[InstanceKey]) -> Link:
    """Explain why Eureka lacks ready instances. Some are lost only if Eureka holds fewer than the
    last pass left there: a pod that replaces another, or that came with a higher limit, is new to
    Eureka, whatever the number of the others.

    | Eureka holds fewer than the status says | the pod became ready after the last good pass | reason |
    |---|---|---|
    | no | any | NotYetRegistered |
    | yes | yes | NotYetRegistered |
    | yes | no, or unknown | Expired |
    """
    status = subject.claim.syncer.status
    if status is not None and len(_all_held(subject, look)) < status.registered:
        lost = [key for key in lacking if not _is_newer(subject, look, key)]
        if lost:
            addresses = some_of([address_of(key) for key in lost])
            text = f"Eureka does not hold {addresses}, but the syncer's status says {status.up} UP"
            why = "no pass renewed the leases in time, or Eureka started again without its list"
            cause = "the leases expired, or Eureka lost its list"
            return breaks(Part.EUREKA, Reason.EXPIRED, text, why, cause=cause, fix=RUNS)
    addresses = some_of([address_of(key) for key in lacking])
    them = one_or_more(len(lacking), "it", "them")
    text = f"Eureka does not hold {addresses} yet; the next pass should register {them}"
    fix = f"wait for the next pass; if nothing changes, {RUNS}"
    return breaks(
        Part.EUREKA, Reason.NOT_YET_REGISTERED, text, cause="no pass has registered it yet", fix=fix
    )


def _is_newer(subject: Subject, look: Look, key: InstanceKey) -> bool:
    """Whether the pod became ready after the last good pass, so that no pass could register it;
    False if unknown."""
    beat = look.last_pass.found if look.last_pass else None
    verdict = subject.verdicts.get(key)
    if not isinstance(beat, LockRecord) or beat.good is None or not isinstance(verdict, Wanted):
        return False
    uid = pod_uid_of(verdict.instance)
    for pod in read(look.pods.get(subject.namespace)):
        ready = pod.condition("Ready")
        if pod.uid == uid and ready is not None and ready.since is not None:
            return ready.since > beat.good.at
    return False


def _with_another_status(one: ObservedInstance, number: int, look: Look) -> Link:
    """Explain the status of an instance that is not UP, the first of `number`."""
    key, shown = one.key, f"{one.key.app} {observed_at(one)}{and_more(number)} is {one.status}"
    if (
        one.instance.override is not InstanceStatus.UNKNOWN
        or one.status is InstanceStatus.OUT_OF_SERVICE
    ):
        server = next(iter(look.readings), "http://eureka.example.com:8761/eureka")
        fix = (
            "curl -X DELETE "
            f"{server}/apps/{in_url(key.app, safe='')}/{in_url(key.id, safe=':')}/status"
        )
        text, cause = f"{shown}: a person set it in Eureka", f"a person set it {one.status}"
        outlives = "an override stays when the instance is registered again, so no pass changes it"
        return breaks(Part.EUREKA, Reason.OUT_OF_SERVICE, text, outlives, cause=cause, fix=fix)
    text = f"{shown} in Eureka"
    if DRAINED not in one.metadata:
        cause = f"it is {one.status} in Eureka"
        return breaks(
            Part.EUREKA, Reason.ANOTHER_STATUS, text, cause=cause, fix="wait for the next pass"
        )
    by = _drained_by(one)
    text += f": the last pass saw it drained by annotation of {by}"
    fix = f"remove the annotation eurekube.io/drain from {by.replace('a ', 'the ')}"
    return breaks(Part.EUREKA, Reason.DRAINED, text, cause=f"it is drained by {by}", fix=fix)


def _drained_by(one: ObservedInstance) -> str:
    """Return the kinds of object that drain it, such as `a service and a pod`."""
    return f"a {one.metadata[DRAINED].replace(',', ' and a ')}"


def _callers(subject: Subject, held: Held) -> Iterator[Link]:
    """Show where the cached list differs from what the server holds."""
    seen = {one.key for one in subject.listed if one.status is InstanceStatus.UP}
    now = {key for key, one in held.items() if one.status is InstanceStatus.UP}
    for keys, text in (
        (
            seen - now,
            "callers may still call {0}, for at most {2} s: Eureka's cached list still has {1}",
        ),
        (
            now - seen,
            "callers do not see {0} yet: Eureka's cached list does not have {1}; they follow "
            "within {2} s",
        ),
    ):
        if keys:
            them = one_or_more(len(keys), "it", "them")
            yield Link(
                Part.CALLERS,
                Mark.NOTE,
                text.format(counted(len(keys), "instance"), them, CALLERS_SECONDS),
            )


def last_pass_link(look: Look, *, alone: bool) -> Link:
    """Show the last good pass. With `alone`, no other source tells whether instances are renewed,
    so an old pass is a broken link."""
    beat = look.last_pass
    if beat is None:
        why = (
            ", because this installation uses no lock" if look.owner else "; give --owner to see it"
        )
        return Link(Part.LAST_PASS, Mark.NOTE, f"last pass: unknown{why}")
    if isinstance(beat.found, Unknown):
        return unseen(
            Part.LAST_PASS,
            f"last pass: the Lease {beat.name} could not be read: {beat.found.message}",
        )
    if beat.found is None:
        text = (
            f"last pass: unknown. There is no Lease {beat.name}; if `run` was given --lock, "
            "give it here, too"
        )
        return Link(Part.LAST_PASS, Mark.NOTE, text)
    if beat.found.good is None:
        return Link(Part.LAST_PASS, Mark.NOTE, "last good pass: none yet")
    good, age = beat.found.good, look.at - beat.found.good.at
    text = f"last good pass: {span(age)} ago by {good.holder}: {good.result}"
    if age <= _SILENT:
        return Link(Part.LAST_PASS, Mark.OK, text)
    reason, cause = Reason.NOT_RENEWED, f"the last good pass was {span(age)} ago"
    if age > _LEASE_SECONDS:
        reason, cause = Reason.EXPIRED, f"{cause}, so its leases expired"
    return breaks(Part.LAST_PASS, reason, text, cause=cause, fix=RUNS, if_=alone)
