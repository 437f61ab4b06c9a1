"""The links of Eureka and of its passes: what each server holds now, what callers still see, and who renews it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from urllib.parse import quote as in_url

from eurekube_sync.controller.look import Look, Reading
from eurekube_sync.desired.claims import Serving
from eurekube_sync.desired.drain import DRAINED
from eurekube_sync.desired.verdicts import Wanted
from eurekube_sync.explain.links import Link, Mark, Part, Why, breaks, holds, noted, unseen
from eurekube_sync.explain.subject import Subject, address_of, observed_at
from eurekube_sync.model.actions import Register
from eurekube_sync.model.eureka import DEFAULT_LEASE, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.lock import GoodPass
from eurekube_sync.model.ownership import CLUSTER, OWNER
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted, one_or_more, span

CALLERS_SECONDS = 95
"""How long callers may go on with what they have: 30 s of the server's cache, 30 s of the client's, 35 s of its load
balancer's (docs/eureka.md)."""
_SILENT = 150.0
"""Seconds without a renewal, or a good pass: five renewals."""
_LEASE_SECONDS = 600.0
"""How long an instance lives after its last renewal, with the lease that `run` gives by default."""
RUNS = "see that eurekube-sync runs: kubectl get cronjobs,jobs,deployments -A | grep eurekube"
_MOST = 6


def is_silent(one: ObservedInstance, at: float) -> bool:
    """Whether nobody renewed it for long; `at` in Unix seconds. What was registered since is not."""
    registered = one.last_dirty_timestamp / 1000
    return bool(one.last_renewal) and at - one.renewed > _SILENT and at - registered > _SILENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What Eureka holds of what was asked about."""

    known: bool
    """Whether a server could be read."""
    held: Mapping[InstanceKey, ObservedInstance]
    """As the first server that answered holds it."""
    why_unknown: str = ""

    @property
    def up(self) -> int:
        """Instances that callers get."""
        return sum(one.status is InstanceStatus.UP for one in self.held.values())


def keys_to_read(subject: Subject, look: Look) -> frozenset[InstanceKey]:
    """What to read uncached: all that it wants, and all that Eureka lists of it."""
    wanted = set(subject.verdicts) if look.owner else set()
    return frozenset(wanted | {one.key for one in subject.listed(look)})


def standing_of(subject: Subject, look: Look) -> Standing:
    """By the uncached reads; the first server that answered counts."""
    held: dict[InstanceKey, ObservedInstance] = {}
    keys = keys_to_read(subject, look)
    if not isinstance(look.listed, Complete):
        return Standing(known=False, held={}, why_unknown=look.listed.message)
    shown = {one.key: one for one in subject.listed(look)}
    for key in keys:
        found = _first(key, look, shown.get(key))
        if isinstance(found, ObservedInstance):
            held[key] = found
    return Standing(known=True, held=held)


def _first(key: InstanceKey, look: Look, shown: ObservedInstance | None) -> Reading:
    answers = [readings[key] for readings in look.readings.values() if key in readings]
    known = [one for one in answers if not isinstance(one, Unknown)]
    return known[0] if known else shown


def registry_links(subject: Subject, look: Look, standing: Standing, *, broken: bool) -> Iterator[Link]:
    """`broken`: an earlier link is, so that these only tell what there is."""
    if not standing.known:
        yield unseen(Part.EUREKA, f"what Eureka holds could not be looked at: {standing.why_unknown}")
        return
    faults = list(_faults(subject, look, standing)) if not broken else []
    yield from faults
    if not faults:
        yield _holds(subject, look, standing, broken=broken)
    yield from _callers(subject, look, standing)


def _holds(subject: Subject, look: Look, standing: Standing, *, broken: bool) -> Link:
    details = tuple(_details(subject, look, standing))
    if not standing.held:
        apps = ", ".join(subject.claim.apps) if isinstance(subject.claim, Serving) else ""
        return noted(Part.EUREKA, f"Eureka holds no instance of it{f' ({apps})' if apps else ''}")
    number = counted(len(standing.held), "instance")
    text = f"Eureka holds {number} of it, {standing.up} UP"
    return Link(part=Part.EUREKA, mark=Mark.NOTE if broken else Mark.OK, text=text, details=details)


def _details(subject: Subject, look: Look, standing: Standing) -> Iterator[str]:
    """Status, override and lease of each, on each server where they differ."""
    for key, one in sorted(standing.held.items())[:_MOST]:
        override = one.instance.override
        parts = [one.status.value]
        parts += [f"override {override}"] if override is not InstanceStatus.UNKNOWN else []
        parts += [f"drained by {one.metadata[DRAINED]}"] if DRAINED in one.metadata else []
        parts += [_lease(one, look.at)] if one.last_renewal else []
        yield f"{key.app} {observed_at(one)}: {', '.join(parts)}{_elsewhere(key, one, look)}"
    if len(standing.held) > _MOST:
        yield f"and {len(standing.held) - _MOST} more"


def _lease(one: ObservedInstance, now: float) -> str:
    left = one.last_renewal / 1000 + (one.instance.lease.duration or DEFAULT_LEASE.duration) - now
    return f"lease ends in {span(left)}" if left > 0 else f"lease ended {span(-left)} ago"


def _elsewhere(key: InstanceKey, first: ObservedInstance, look: Look) -> str:
    """What other servers say that is not the same."""
    if len(look.readings) < 2:
        return ""
    said = []
    for server, readings in look.readings.items():
        found = readings.get(key)
        if isinstance(found, Unknown):
            said.append(f"{server} gave no answer")
        elif found is None:
            said.append(f"{server} does not hold it")
        elif found.status is not first.status:
            said.append(f"{server} has it {found.status}")
    return f" ({'; '.join(said)})" if said else ""


def _faults(subject: Subject, look: Look, standing: Standing) -> Iterator[Link]:
    """What is wrong in Eureka although the cluster is right."""
    wanted = {key: one for key, one in subject.verdicts.items() if isinstance(one, Wanted)}
    up = {key for key, one in wanted.items() if one.instance.status is InstanceStatus.UP}
    held = standing.held if look.owner else {}
    lacking = sorted(up - held.keys()) if look.owner else []
    if not look.owner and not standing.held and up:
        lacking = sorted(up)
    if lacking:
        others = _other_owners(standing, look)
        yield _under_another_owner(others[0], look) if others else _lacking(subject, look, lacking)
        return
    other = {key: one for key, one in held.items() if key in up and one.status is not InstanceStatus.UP}
    if not look.owner:
        other = {key: one for key, one in standing.held.items() if one.status is not InstanceStatus.UP}
    if other:
        yield _with_another_status(other, look)
    silent = {key: one for key, one in standing.held.items() if is_silent(one, look.at)}
    if silent and not other:
        yield _silent(silent, look)


def _other_owners(standing: Standing, look: Look) -> list[str]:
    """The names under which this cluster's instances of it are registered, where that is not the one given."""
    cluster = look.identity.data if isinstance(look.identity, Complete) else None
    ours = [one for one in standing.held.values() if cluster in (None, one.metadata.get(CLUSTER))]
    found = {one.metadata[OWNER] for one in ours if OWNER in one.metadata}
    return sorted(found - {look.owner}) if look.owner not in found else []


def _under_another_owner(name: str, look: Look) -> Link:
    return breaks(
        Part.OWNER,
        Why.OWNER_CLASH,
        f"Eureka holds its instances under owner {name}, and none under owner {look.owner}",
        cause=f"owner {name} registers it, not owner {look.owner}",
        fix=f"give --owner {quote(name)}, if that is the installation",
    )


def _lacking(subject: Subject, look: Look, lacking: Sequence[InstanceKey]) -> Link:
    status = subject.claim.syncer.status
    was_up = status is not None and status.up >= len(lacking) and status.observed_generation > 0
    pending = any(isinstance(one, Register) and one.key in lacking for one in subject.report.plan.actions)
    addresses = ", ".join(address_of(key, subject.verdicts.get(key)) for key in lacking[:3])
    more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
    if was_up:
        return breaks(
            Part.EUREKA,
            Why.EXPIRED,
            f"Eureka does not hold {addresses}{more}, but the syncer's status says {status.up if status else 0} UP",
            details=("no pass renewed the leases in time, or Eureka started again without its list",),
            cause="its leases expired, or Eureka lost its list",
            fix=RUNS,
        )
    them = one_or_more(len(lacking), "it", "them")
    does = "registers" if pending or not look.owner else "should register"
    return breaks(
        Part.EUREKA,
        Why.NOT_YET,
        f"Eureka does not hold {addresses}{more} yet; the next pass {does} {them}",
        cause="no pass has registered it yet",
        fix=f"wait for the next pass; if this stays, {RUNS}",
    )


def _with_another_status(other: Mapping[InstanceKey, ObservedInstance], look: Look) -> Link:
    key, one = next(iter(sorted(other.items())))
    more = f" (and {len(other) - 1} more)" if len(other) > 1 else ""
    if one.instance.override is not InstanceStatus.UNKNOWN or one.status is InstanceStatus.OUT_OF_SERVICE:
        server = next(iter(look.readings), "http://eureka.example.com:8761/eureka")
        return breaks(
            Part.EUREKA,
            Why.OUT_OF_SERVICE,
            f"{key.app} {observed_at(one)} is {one.status}: a person set it in Eureka{more}",
            details=("an override outlives every registration, so no pass changes it",),
            cause=f"a person set it {one.status}",
            fix=f"curl -X DELETE {server}/apps/{in_url(key.app, safe='')}/{in_url(key.id, safe=':')}/status",
        )
    drained = one.metadata.get(DRAINED)
    return breaks(
        Part.EUREKA,
        "Drained" if drained else Why.ANOTHER_STATUS,
        f"{key.app} {observed_at(one)} is {one.status} in Eureka{more}"
        + (f": the last pass saw it drained by annotation of a {drained.replace(',', ' and a ')}" if drained else ""),
        cause=f"it is drained by a {drained.replace(',', ' and a ')}" if drained else f"it is {one.status} in Eureka",
        fix="remove the annotation eurekube.io/drain there" if drained else "wait for the next pass",
    )


def _silent(silent: Mapping[InstanceKey, ObservedInstance], look: Look) -> Link:
    oldest = max(look.at - one.renewed for one in silent.values())
    ends = min(
        one.last_renewal / 1000 + (one.instance.lease.duration or DEFAULT_LEASE.duration) - look.at
        for one in silent.values()
    )
    till = f"the first lease ends in {span(ends)}" if ends > 0 else "the first lease has ended"
    return breaks(
        Part.EUREKA,
        Why.NOT_RENEWED,
        f"nobody renewed {counted(len(silent), 'instance')} for {span(oldest)}; {till}",
        cause="no pass renews it any more",
        fix=RUNS,
    )


def _callers(subject: Subject, look: Look, standing: Standing) -> Iterator[Link]:
    """Where the cached list is not what the server holds."""
    seen = {one.key for one in subject.listed(look) if one.status is InstanceStatus.UP}
    now = {key for key, one in standing.held.items() if one.status is InstanceStatus.UP}
    for keys, text in (
        (seen - now, "callers may still call {0}, for at most {2} s: Eureka's cached list still has {1}"),
        (now - seen, "callers do not see {0} yet: Eureka's cached list does not have {1}; they follow within {2} s"),
    ):
        if keys:
            them = one_or_more(len(keys), "it", "them")
            first = counted(len(keys), "instance")
            yield noted(Part.CALLERS, text.format(first, them, CALLERS_SECONDS))


def heartbeat_link(look: Look, *, alone: bool) -> Link:
    """`alone`: nothing else says whether the instances are still renewed, so that a silence is what breaks."""
    beat = look.heartbeat
    if beat is None:
        why = ", because this installation uses no lock" if look.owner else "; give --owner to look at it"
        return noted(Part.LAST_PASS, f"last pass: unknown{why}")
    if isinstance(beat.found, Unknown):
        text = f"last pass: the Lease {beat.name} could not be read: {beat.found.message}"
        return unseen(Part.LAST_PASS, text)
    if beat.found is None:
        text = f"last pass: unknown, because there is no Lease {beat.name}; give the same --lock as run"
        return noted(Part.LAST_PASS, text)
    good = beat.found.good
    if good is None:
        return noted(Part.LAST_PASS, "last pass: no pass was good yet")
    return _of_pass(good, look.at - good.at, alone=alone)


def _of_pass(good: GoodPass, age: float, *, alone: bool) -> Link:
    text = f"last good pass: {span(age)} ago by {good.holder}: {good.result}"
    if age <= _SILENT:
        return holds(Part.LAST_PASS, text)
    if not alone:
        return noted(Part.LAST_PASS, text)
    expired = age > _LEASE_SECONDS
    return breaks(
        Part.LAST_PASS,
        Why.EXPIRED if expired else Why.NOT_RENEWED,
        text,
        details=("the leases have expired since" if expired else "the leases expire 10 minutes after that pass",),
        cause=f"no pass has been good for {span(age)}{', so its leases expired' if expired else ''}",
        fix=RUNS,
    )
