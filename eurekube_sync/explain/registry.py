"""The links about Eureka and the passes: what each server holds, what callers still see, and who renews."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote
from urllib.parse import quote as in_url

from eurekube_sync.controller.look import Look
from eurekube_sync.desired.catalog import DRAINED
from eurekube_sync.desired.claims import Wanted
from eurekube_sync.explain.links import Link, Mark, Part, breaks, unseen
from eurekube_sync.explain.subject import Subject, address_of, apps_of, observed_at
from eurekube_sync.model.eureka import DEFAULT_LEASE, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.ownership import CLUSTER, OWNER
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.wording import and_more, counted, one_or_more, some_of, span

CALLERS_SECONDS = 95
"""How long callers may use old lists: 30 s of the server's cache, 30 s of the client's, 35 s of the load balancer's
(docs/eureka.md)."""
_MOST = 6  # instances with a line each
_SILENT = 150.0  # seconds without a renewal, or without a good pass: five renewals
_LEASE_SECONDS = 600.0  # how long an instance lives after its last renewal, with the default lease of `run`
RUNS = "see that eurekube-sync runs: kubectl get cronjobs,jobs,deployments -A | grep eurekube"
Held = Mapping[InstanceKey, ObservedInstance]  # the instances in question that Eureka holds


def is_silent(one: ObservedInstance, at: float) -> bool:
    """Whether nobody has renewed or registered an instance for long; `at` in Unix seconds."""
    return bool(one.last_renewal) and at - one.renewed > _SILENT


def lease_end(one: ObservedInstance) -> float:
    """Return the end of a lease, in Unix seconds of the server's clock."""
    return one.last_renewal / 1000 + (one.instance.lease.duration or DEFAULT_LEASE.duration)


def keys_to_read(subject: Subject, look: Look) -> frozenset[InstanceKey]:
    """Return the keys to read uncached: all verdicts of the syncer, and all its instances that Eureka lists."""
    return frozenset({*(subject.verdicts if look.owner else ()), *(one.key for one in subject.listed)})


def held_by_eureka(subject: Subject, look: Look) -> Held:
    """Return each instance as the first server with an uncached answer holds it, or else as the list shows it."""
    if isinstance(look.listed, Unknown):
        return {}
    found: dict[InstanceKey, ObservedInstance] = {}
    shown = {one.key: one for one in subject.listed}
    for key in sorted(keys_to_read(subject, look)):
        answers = [readings[key] for readings in look.readings.values() if key in readings]
        if one := next((one for one in answers if not isinstance(one, Unknown)), shown.get(key)):
            found[key] = one
    return found


def up_in(held: Held) -> int:
    return sum(one.status is InstanceStatus.UP for one in held.values())


def registry_links(subject: Subject, look: Look, held: Held, *, broken: bool) -> Iterator[Link]:
    """Show what Eureka holds. With `broken`, an earlier link is broken, so faults in Eureka are not reported."""
    if isinstance(look.listed, Unknown):
        yield unseen(Part.EUREKA, f"what Eureka holds could not be looked at: {look.listed.message}")
        return
    if fault := None if broken else _fault(subject, look, held):
        yield fault
    elif held:
        text = f"Eureka holds {counted(len(held), 'instance')} of this syncer, {up_in(held)} UP"
        yield Link(Part.EUREKA, Mark.NOTE if broken else Mark.OK, text, details=tuple(_details(look, held)))
    else:
        apps = apps_of(subject.claim)
        named = f" ({one_or_more(len(apps), 'app', 'apps')} {', '.join(apps)})" if apps else ""
        yield Link(Part.EUREKA, Mark.NOTE, f"Eureka holds no instance of this syncer{named}")
    yield from _callers(subject, held)


def _details(look: Look, held: Held) -> Iterator[str]:
    """Describe the first instances: status, override, lease, and different answers of other servers."""
    for key, one in list(held.items())[:_MOST]:
        override, parts = one.instance.override, [one.status.value]
        parts += [f"override {override}"] if override is not InstanceStatus.UNKNOWN else []
        parts += [f"by the drain annotation of {_drained_by(one)}"] if DRAINED in one.metadata else []
        parts += [f"lease {_ends(one, look)}"] if one.last_renewal else []
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
    """Find a fault in Eureka, if all links of the cluster hold. With an unknown owner, our keys are unknown, too."""
    wanted = {key: one.instance for key, one in subject.verdicts.items() if isinstance(one, Wanted)}
    up = {key for key, one in wanted.items() if one.status is InstanceStatus.UP}
    lacking = sorted(up - held.keys()) if look.owner or not held else []
    if lacking:
        return _under_another_owner(held, look) or _lacking(subject, lacking)
    other = [one for key, one in held.items() if one.status is not InstanceStatus.UP and (key in up or not look.owner)]
    if other:
        return _with_another_status(other[0], len(other), look)
    silent = [one for one in held.values() if is_silent(one, look.at)]
    if not silent:
        return None
    ends = f"the first lease {_ends(min(silent, key=lease_end), look)}"
    longest = span(look.at - min(one.renewed for one in silent))
    text = f"nobody renewed {counted(len(silent), 'instance')} for {longest}; {ends}"
    return breaks(Part.EUREKA, "NotRenewed", text, cause="no pass renews it any more", fix=RUNS)


def _ends(one: ObservedInstance, look: Look) -> str:
    left = lease_end(one) - look.at
    return f"ends in {span(left)}" if left > 0 else f"ended {span(-left)} ago"


def _under_another_owner(held: Held, look: Look) -> Link | None:
    """Make a link if this cluster's instances of the syncer are registered only under another owner."""
    cluster = look.identity.data if isinstance(look.identity, Complete) else None
    ours = [one.metadata for one in held.values() if cluster in (None, one.metadata.get(CLUSTER))]
    owners = sorted({one[OWNER] for one in ours if OWNER in one})
    if not owners or look.owner in owners:
        return None
    text = f"Eureka holds its instances under owner {owners[0]}, and none under owner {look.owner}"
    cause = f"owner {owners[0]} registers it, not owner {look.owner}"
    fix = f"give --owner {quote(owners[0])}, if that is right"
    return breaks(Part.OWNER, "OwnerClash", text, cause=cause, fix=fix)


def _lacking(subject: Subject, lacking: list[InstanceKey]) -> Link:
    status, them = subject.claim.syncer.status, one_or_more(len(lacking), "it", "them")
    addresses = some_of([address_of(key) for key in lacking])
    if status is not None and status.up >= len(lacking) and status.observed_generation > 0:
        text = f"Eureka does not hold {addresses}, but the syncer's status says {status.up} UP"
        why = "no pass renewed the leases in time, or Eureka started again without its list"
        return breaks(Part.EUREKA, "Expired", text, why, cause="the leases expired, or Eureka lost its list", fix=RUNS)
    text = f"Eureka does not hold {addresses} yet; the next pass should register {them}"
    fix = f"wait for the next pass; if nothing changes, {RUNS}"
    return breaks(Part.EUREKA, "NotYetRegistered", text, cause="no pass has registered it yet", fix=fix)


def _with_another_status(one: ObservedInstance, number: int, look: Look) -> Link:
    """Explain the status of an instance that is not UP, the first of `number`."""
    key, shown = one.key, f"{one.key.app} {observed_at(one)}{and_more(number)} is {one.status}"
    if one.instance.override is not InstanceStatus.UNKNOWN or one.status is InstanceStatus.OUT_OF_SERVICE:
        server = next(iter(look.readings), "http://eureka.example.com:8761/eureka")
        fix = f"curl -X DELETE {server}/apps/{in_url(key.app, safe='')}/{in_url(key.id, safe=':')}/status"
        text, cause = f"{shown}: a person set it in Eureka", f"a person set it {one.status}"
        outlives = "an override stays when the instance is registered again, so no pass changes it"
        return breaks(Part.EUREKA, "OutOfService", text, outlives, cause=cause, fix=fix)
    text = f"{shown} in Eureka"
    if DRAINED not in one.metadata:
        cause = f"it is {one.status} in Eureka"
        return breaks(Part.EUREKA, "AnotherStatus", text, cause=cause, fix="wait for the next pass")
    by = _drained_by(one)
    text += f": the last pass saw it drained by annotation of {by}"
    fix = f"remove the annotation eurekube.io/drain from {by.replace('a ', 'the ')}"
    return breaks(Part.EUREKA, "Drained", text, cause=f"it is drained by {by}", fix=fix)


def _drained_by(one: ObservedInstance) -> str:
    """Return the kinds of object that drain it, such as `a pod and a node`."""
    return f"a {one.metadata[DRAINED].replace(',', ' and a ')}"


def _callers(subject: Subject, held: Held) -> Iterator[Link]:
    """Show where the cached list differs from what the server holds."""
    seen = {one.key for one in subject.listed if one.status is InstanceStatus.UP}
    now = {key for key, one in held.items() if one.status is InstanceStatus.UP}
    for keys, text in (
        (seen - now, "callers may still call {0}, for at most {2} s: Eureka's cached list still has {1}"),
        (now - seen, "callers do not see {0} yet: Eureka's cached list does not have {1}; they follow within {2} s"),
    ):
        if keys:
            them = one_or_more(len(keys), "it", "them")
            yield Link(Part.CALLERS, Mark.NOTE, text.format(counted(len(keys), "instance"), them, CALLERS_SECONDS))


def last_pass_link(look: Look, *, alone: bool) -> Link:
    """Show the last good pass. With `alone`, no other source tells whether instances are renewed, so an old pass is a
    broken link."""
    beat = look.last_pass
    if beat is None:
        why = ", because this installation uses no lock" if look.owner else "; give --owner to see it"
        return Link(Part.LAST_PASS, Mark.NOTE, f"last pass: unknown{why}")
    if isinstance(beat.found, Unknown):
        return unseen(Part.LAST_PASS, f"last pass: the Lease {beat.name} could not be read: {beat.found.message}")
    if beat.found is None:
        text = f"last pass: unknown. There is no Lease {beat.name}; if `run` was given --lock, give it here, too"
        return Link(Part.LAST_PASS, Mark.NOTE, text)
    if beat.found.good is None:
        return Link(Part.LAST_PASS, Mark.NOTE, "last good pass: none yet")
    good, age = beat.found.good, look.at - beat.found.good.at
    text = f"last good pass: {span(age)} ago by {good.holder}: {good.result}"
    if age <= _SILENT:
        return Link(Part.LAST_PASS, Mark.OK, text)
    reason, cause = "NotRenewed", f"the last good pass was {span(age)} ago"
    if age > _LEASE_SECONDS:
        reason, cause = "Expired", f"{cause}, so its leases expired"
    return breaks(Part.LAST_PASS, reason, text, cause=cause, fix=RUNS, if_=alone)
