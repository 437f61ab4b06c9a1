"""The links about Eureka and the passes: what each server holds, what callers still see, and who
renews."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from shlex import quote
from urllib.parse import quote as in_url

from eurekube_sync.controller.diagnosis import unread_of
from eurekube_sync.controller.look import Look
from eurekube_sync.desired.catalog import drained_kinds
from eurekube_sync.desired.claims import Deleting, Wanted
from eurekube_sync.desired.spec import DRAIN_ANNOTATION
from eurekube_sync.explain.links import (
    CALLERS_SECONDS,
    Link,
    Mark,
    Part,
    breaks,
    met,
    not_read,
    noted,
    unseen,
)
from eurekube_sync.explain.passes import SILENT, failing, see_to_passes
from eurekube_sync.explain.subject import (
    Subject,
    address_of,
    apps_of,
    observed_at,
    pods_in,
    syncers_in,
)
from eurekube_sync.model.eureka import DEFAULT_LEASE, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import pod_namespace_of, pod_uid_of, syncer_of
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import and_more, counted, one_or_more, some_of, span

_MOST = 6  # instances with a line each
# How long an instance lives after its last renewal, with the default lease of `run`
_LEASE_SECONDS = 600.0
Held = Mapping[InstanceKey, ObservedInstance]  # the instances in question that Eureka holds


def looks_silent(instance: ObservedInstance, look: Look) -> bool:
    """Whether an instance was not renewed for long, as far as it was seen. A renewal that a list
    shows did happen, but the list may lack later ones (LIST_LAG), so only an uncached read proves
    that there were none."""
    if not instance.last_renewal:
        return False
    return look.eureka_time - instance.renewed > SILENT


def lease_end(instance: ObservedInstance) -> float:
    """Return the end of a lease, in Unix seconds of the server's clock."""
    duration = instance.instance.lease.duration or DEFAULT_LEASE.duration
    return instance.last_renewal / 1000 + duration


def keys_to_read(subject: Subject, look: Look) -> frozenset[InstanceKey]:
    """Return the keys to read uncached: all verdicts of the syncer, and all its instances that
    Eureka lists. With an unknown owner, the keys of the verdicts are unknown, too."""
    keys = {instance.key for instance in subject.listed}
    if look.owner:
        keys.update(subject.verdicts)
    return frozenset(keys)


def held_by_eureka(subject: Subject, look: Look) -> Held:
    """Return our instances in question that Eureka holds."""
    held: dict[InstanceKey, ObservedInstance] = {}
    for key, instance in _all_held(subject, look).items():
        if subject.concerns(key):
            held[key] = instance
    return held


def _all_held(subject: Subject, look: Look) -> Held:
    """Return our instances of the whole syncer: each as the first server with an uncached answer
    holds it, or else as the dry pass or the list shows it. Two syncers may want one id, so it is
    the syncer's if it has its mark, or if the pass gives it to this syncer."""
    if isinstance(look.listed, Unknown):
        return {}
    held = {instance.key: instance for instance in _shown_to_pass(subject, look)}
    for key in keys_to_read(subject, look) | held.keys():
        answers = look.uncached(key)
        if not answers or isinstance(answers[0], Unknown):
            continue
        # An uncached answer comes before what a list shows, also if it is "not there".
        held.pop(key, None)
        answer = answers[0]
        if answer is None or not look.is_ours(answer):
            continue
        if subject.ref in (syncer_of(answer), _given_to(key, subject)):
            held[key] = answer
    return dict(sorted(held.items()))


def _shown_to_pass(subject: Subject, look: Look) -> Sequence[ObservedInstance]:
    """Return the syncer's instances as the dry pass has them. It has read again what it would
    change, so right after a `run` it knows more than the list. Without the owner it has none."""
    registry = subject.report.registry
    if not look.owner or isinstance(registry, Unknown):
        return look.marked(subject.ref)
    observed = registry.data
    keys = observed.keys_by_syncer.get(subject.ref, ())
    return [observed.ours[key] for key in keys]


def _given_to(key: InstanceKey, subject: Subject) -> SyncerRef | None:
    """Return the syncer that gets this instance in the pass; None if no syncer wants it."""
    desired = subject.report.desired
    if desired is None:
        return None
    return desired.wanted_by.get(key)


def dead_in(held: Held, subject: Subject, look: Look, staying: Collection[InstanceKey]) -> Held:
    """Return the UP instances that nothing desired is behind: their pod is gone from a complete
    list, or a pass removes them. `staying` are those that the brake holds, which count as long as
    it does. Of a syncer that is being deleted a pass removes all, so only the pods count."""
    removals: Collection[InstanceKey] = ()
    if not isinstance(subject.claim, Deleting):
        removals = subject.removals
    dead = {}
    for key in sorted(_up(held.values())):
        if key in subject.verdicts or key in staying:
            continue
        if key in removals or _pod_is_gone(held[key], look):
            dead[key] = held[key]
    return dead


def _pod_is_gone(instance: ObservedInstance, look: Look) -> bool:
    """Say whether a complete list of pods lacks the instance's."""
    uids = look.pod_uids.get(pod_namespace_of(instance) or "")
    uid = pod_uid_of(instance)
    return uids is not None and uid is not None and uid not in uids


def _why_dead(dead: Held, look: Look) -> tuple[str, str]:
    """Say what is wrong with dead instances: after `UP in Eureka, but`, and as a clause."""
    number = len(dead)
    instances = counted(number, "instance")
    are_up = one_or_more(number, "is UP", "are UP")
    if all(_pod_is_gone(instance, look) for instance in dead.values()):
        but = one_or_more(number, "its pod is gone", "their pods are gone")
        of = one_or_more(number, "is of a pod that is gone", "are of pods that are gone")
    else:
        but = one_or_more(number, "it has no endpoint", "they have no endpoint")
        of = one_or_more(number, "has no endpoint", "have no endpoint")
    return but, f"{instances} that {are_up} {of}"


def dead_text(dead: Held, look: Look) -> str:
    """Return a clause about dead instances; empty if there are none."""
    if not dead:
        return ""
    _, clause = _why_dead(dead, look)
    return clause


def up_in(held: Held) -> int:
    return len(_up(held.values()))


def _up(instances: Iterable[ObservedInstance]) -> set[InstanceKey]:
    up = set()
    for instance in instances:
        if instance.status is InstanceStatus.UP:
            up.add(instance.key)
    return up


def registry_links(
    subject: Subject, look: Look, held: Held, dead: Held, *, broken: bool
) -> Iterator[Link]:
    """Show what Eureka holds, and which of it is dead. With `broken`, an earlier link is broken, so
    faults in Eureka are not reported."""
    if isinstance(look.listed, Unknown):
        yield not_read(Part.EUREKA, "what Eureka holds", look.listed)
        return
    fault = None if broken else _fault(subject, look, held)
    if fault is not None:
        yield fault
    elif held:
        instances = counted(len(held), "instance")
        text = f"Eureka holds {instances} of this syncer, {up_in(held)} UP"
        mark = Mark.NOTE if broken else Mark.OK
        yield Link(Part.EUREKA, mark, text, details=tuple(_details(subject, look, held)))
    else:
        yield _none_held(subject)
    if dead:
        addresses = some_of([observed_at(instance) for instance in dead.values()])
        but, _ = _why_dead(dead, look)
        yield noted(Part.CALLERS, f"callers still call {addresses}: UP in Eureka, but {but}")
    yield from _callers(subject, held)


def _none_held(subject: Subject) -> Link:
    """Note that Eureka holds nothing, with the apps to look for."""
    text = "Eureka holds no instance of this syncer"
    apps = apps_of(subject.claim)
    if apps:
        noun = one_or_more(len(apps), "app", "apps")
        text = f"{text} ({noun} {', '.join(apps)})"
    return noted(Part.EUREKA, text)


def _details(subject: Subject, look: Look, held: Held) -> Iterator[str]:
    """Describe the first instances: status, override, lease, and different answers of other
    servers."""
    removals = subject.removals
    for instance in list(held.values())[:_MOST]:
        states = ", ".join(_states(instance, look))
        text = f"{instance.key.app} {observed_at(instance)}: {states}"
        elsewhere = "; ".join(_elsewhere(instance, look))
        if elsewhere:
            text = f"{text} ({elsewhere})"
        if instance.key in removals:
            text = f"{text}; a pass removes it: {removals[instance.key]}"
        yield text
    if len(held) > _MOST:
        yield f"and {len(held) - _MOST} more"


def _states(instance: ObservedInstance, look: Look) -> Iterator[str]:
    """Yield the status of an instance, what overrides it, and its lease."""
    yield instance.status.value
    override = instance.instance.override
    if override is not InstanceStatus.UNKNOWN:
        yield f"override {override}"
    if drained_kinds(instance.metadata):
        yield f"by the drain annotation of {_drained_by(instance, 'a')}"
    # A list may lack renewals of some minutes, so it does not show when a lease ends.
    if instance.last_renewal and _was_read(instance, look):
        yield f"lease {_ends(instance, look)}"


def _elsewhere(instance: ObservedInstance, look: Look) -> Iterator[str]:
    """Say where another of several servers differs."""
    if len(look.readings) < 2:
        return
    for server, readings in look.readings.items():
        match readings.get(instance.key):
            case Unknown():
                yield f"{server} gave no answer"
            case None:
                yield f"{server} does not hold it"
            case other if other.status is not instance.status:
                yield f"{server} has it {other.status}"


def _fault(subject: Subject, look: Look, held: Held) -> Link | None:
    """Find a fault in Eureka, if all links of the cluster hold. With an unknown owner, our keys are
    unknown, too."""
    up = wanted_up(subject)
    lacking = sorted(up - held.keys())
    if lacking and (look.owner or not held):
        return _under_another_owner(subject, look, held) or _lacking(subject, look, lacking)
    down = []
    silent = []
    for key, instance in held.items():
        # Without the owner it is unknown which instances a pass wants UP.
        meant = key in up or not look.owner
        if meant and instance.status is not InstanceStatus.UP:
            down.append(instance)
        if looks_silent(instance, look):
            silent.append(instance)
    put_out = [instance for instance in down if _was_put_out(instance)]
    if put_out:  # it does not end by itself, so it comes before any other status
        return _put_out(put_out, subject, look)
    if down:
        return _with_another_status(down[0], len(down))
    return _not_renewed(silent, look)


def wanted_up(subject: Subject) -> set[InstanceKey]:
    """Return the instances in question that the pass wants UP."""
    up = set()
    for key, wanted in subject.of(Wanted).items():
        if wanted.instance.status is InstanceStatus.UP:
            up.add(key)
    return up


def _not_renewed(old: list[ObservedInstance], look: Look) -> Link | None:
    """Make a link if an uncached read shows one of these instances, which look old, as old as
    before. The link is unknown if no server answered. Instances that nobody asked for give none."""
    silent = [instance for instance in old if _was_read(instance, look)]
    if silent:
        return _silent(silent, look)
    for instance in old:
        for answer in look.uncached(instance.key):
            if isinstance(answer, Unknown):
                return not_read(Part.EUREKA, "whether its leases are renewed", answer)
    return None


def _silent(silent: list[ObservedInstance], look: Look) -> Link:
    """Say for how long nobody renewed these instances, and when the first lease ends."""
    first = min(silent, key=lambda instance: instance.renewed)
    first_to_end = min(silent, key=lease_end)  # their leases may differ in length
    whose = f"{observed_at(first)}{and_more(len(silent))}"
    lasted = span(look.eureka_time - first.renewed)
    ends = _ends(first_to_end, look)
    text = f"nobody renewed {whose} for {lasted}; the first lease {ends}"
    cause = "no pass renews it any more"
    link = breaks(Part.EUREKA, Reason.NOT_RENEWED, text, cause=cause, fix=see_to_passes(look))
    return replace(link, since=first.renewed - look.eureka_ahead)  # by our clock


def _was_read(instance: ObservedInstance, look: Look) -> bool:
    answers = look.uncached(instance.key)  # those that are known come first
    return bool(answers) and not isinstance(answers[0], Unknown)


def _ends(instance: ObservedInstance, look: Look) -> str:
    left = lease_end(instance) - look.eureka_time
    if left > 0:
        return f"ends in {span(left)}"
    return f"ended {span(-left)} ago"


def _under_another_owner(subject: Subject, look: Look, held: Held) -> Link | None:
    """Make a link if this cluster's instances of the syncer are registered only under another
    owner."""
    owners = look.owners_beside(subject.ref)
    if held or not owners:
        return None
    other = owners[0]
    text = f"Eureka holds its instances under owner {other}, and none under owner {look.owner}"
    cause = f"owner {other} registers it, not owner {look.owner}"
    fix = f"give --owner {quote(other)}, if that is right"
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
    held = len(_all_held(subject, look))
    if status is not None and held < status.registered:
        lost = _lost(subject, look, lacking)
        if lost:
            says = f"the syncer's status says {status.up} UP"
            text = f"Eureka does not hold {some_of(lost)}, but {says}"
            why = "no pass renewed the leases in time, or Eureka started again without its list"
            cause = "the leases expired, or Eureka lost its list"
            fix = see_to_passes(look)
            return breaks(Part.EUREKA, Reason.EXPIRED, text, why, cause=cause, fix=fix)
    addresses = some_of([address_of(key) for key in lacking])
    them = one_or_more(len(lacking), "it", "them")
    # While passes fail, the next one may fail, too.
    then = f"the next pass should register {them}"
    if failing(look) is not None:
        then = f"the next good pass registers {them}"
    text = f"Eureka does not hold {addresses} yet; {then}"
    cause = "no pass has registered it yet"
    fix = _after_next_pass(look)
    return breaks(Part.EUREKA, Reason.NOT_YET_REGISTERED, text, cause=cause, fix=fix)


def _lost(subject: Subject, look: Look, lacking: list[InstanceKey]) -> list[str]:
    """Return the addresses of the lacking instances that a pass could have registered."""
    newer = _newer_pods(subject, look)
    wanted = subject.of(Wanted)
    lost = []
    for key in lacking:
        pod = wanted[key].pod
        if pod is None or pod.uid not in newer:
            lost.append(address_of(key))
    return lost


def _newer_pods(subject: Subject, look: Look) -> set[str]:
    """Return the UIDs of pods that became ready after the last good pass, so that no pass could
    register them; empty if that is unknown."""
    newer: set[str] = set()
    good = look.last_good
    if good is None:
        return newer
    for pod in pods_in(look, subject.namespace):
        ready = pod.condition("Ready")
        if ready is not None and ready.since is not None and ready.since > good.at:
            newer.add(pod.uid)
    return newer


def _was_put_out(instance: ObservedInstance) -> bool:
    """Say whether a person set the status of the instance in Eureka."""
    overridden = instance.instance.override is not InstanceStatus.UNKNOWN
    return overridden or instance.status is InstanceStatus.OUT_OF_SERVICE


def _put_out(instances: Sequence[ObservedInstance], subject: Subject, look: Look) -> Link:
    """Explain the status that a person set of these instances. The question may be about one of
    several of its syncer, of which the others are named."""
    first = instances[0]
    text = f"{_shown(first, len(instances))}: a person set it in Eureka"
    details = ["an override stays when the instance is registered again, so no pass changes it"]
    otherwise = ""
    others = _others_put_out(subject, look)
    number = len(instances) + len(others)
    if others:
        more = counted(len(others), "more instance")
        have = one_or_more(len(others), "has", "have")
        addresses = some_of([observed_at(instance) for instance in others])
        details.append(f"{more} of this syncer {have} such a status: {addresses}")
        everything = sorted([*instances, *others], key=lambda instance: instance.key)
        otherwise = f"for all {number}: {_end_of_override(everything, look)}"
    if number > _MOST:
        details.append(f"the command is for the first {_MOST} of {number}; explain again after it")
    cause = f"a person set it {first.status}"
    fix = _end_of_override(instances, look)
    link = breaks(Part.EUREKA, Reason.OUT_OF_SERVICE, text, *details, cause=cause, fix=fix)
    return replace(link, otherwise=otherwise)


def _others_put_out(subject: Subject, look: Look) -> list[ObservedInstance]:
    """Return the syncer's other instances whose status a person set."""
    others = []
    for key, instance in _all_held(subject, look).items():
        if not subject.concerns(key) and _was_put_out(instance):
            others.append(instance)
    return others


def _end_of_override(instances: Sequence[ObservedInstance], look: Look) -> str:
    """Return the command that ends the status which a person set, of the first instances."""
    # Where no server was asked, its address is unknown.
    server = next(iter(look.readings), "http://eureka.example.com:8761/eureka")
    urls = []
    for instance in instances[:_MOST]:
        app = in_url(instance.key.app, safe="")
        id_ = in_url(instance.key.id, safe=":")
        urls.append(f"{server}/apps/{app}/{id_}/status")
    return f"curl -X DELETE {' '.join(urls)}"


def _shown(instance: ObservedInstance, number: int) -> str:
    """Return the status of an instance, the first of `number`."""
    whose = f"{instance.key.app} {observed_at(instance)}{and_more(number)}"
    return f"{whose} is {instance.status}"


def _with_another_status(instance: ObservedInstance, number: int) -> Link:
    """Explain the status of an instance that is not UP, the first of `number`."""
    text = f"{_shown(instance, number)} in Eureka"
    if not drained_kinds(instance.metadata):
        cause = f"it is {instance.status} in Eureka"
        fix = "wait for the next pass"
        return breaks(Part.EUREKA, Reason.ANOTHER_STATUS, text, cause=cause, fix=fix)
    by = _drained_by(instance, "a")
    text = f"{text}: the last pass saw it drained by annotation of {by}"
    cause = f"it is drained by {by}"
    fix = f"remove the annotation {DRAIN_ANNOTATION} from {_drained_by(instance, 'the')}"
    return breaks(Part.EUREKA, Reason.DRAINED, text, cause=cause, fix=fix)


def _drained_by(instance: ObservedInstance, article: str) -> str:
    """Return the kinds of object that drain it, such as `a service and a pod`."""
    return " and ".join(f"{article} {kind}" for kind in drained_kinds(instance.metadata))


def _callers(subject: Subject, held: Held) -> Iterator[Link]:
    """Show where the cached list differs from what the server holds."""
    listed = _up(subject.listed)
    now = _up(held.values())
    stale = len(listed - now)
    missing = len(now - listed)
    if stale:
        call = f"callers may still call {counted(stale, 'instance')}"
        it = one_or_more(stale, "it", "them")
        text = f"{call}, for at most {CALLERS_SECONDS} s: Eureka's cached list still has {it}"
        yield noted(Part.CALLERS, text)
    if missing:
        see = f"callers do not see {counted(missing, 'instance')} yet"
        it = one_or_more(missing, "it", "them")
        follow = f"they follow within {CALLERS_SECONDS} s"
        text = f"{see}: Eureka's cached list does not have {it}; {follow}"
        yield noted(Part.CALLERS, text)


def last_pass_link(look: Look, *, alone: bool) -> Link:
    """Show the last good pass. With `alone`, no other source tells whether instances are renewed,
    so an old pass is a broken link. A note about a pass that is not known has its fix."""
    beat = look.last_pass
    if beat is None or beat.found is None:
        text, fix = _not_recorded(look)
        shown = f"{text}; {fix}" if fix else text
        return Link(Part.LAST_PASS, Mark.NOTE, shown, cause=text, fix=fix)
    if isinstance(beat.found, Unknown):
        text = f"last pass: the Lease {beat.name} could not be read: {beat.found.message}"
        return unseen(Part.LAST_PASS, text)
    good = beat.found.good
    if good is None:
        return noted(Part.LAST_PASS, "last good pass: none yet")

    age = look.at - good.at
    ago = f"{span(age)} ago"
    text = f"last good pass: {ago} by {good.holder}: {good.result}"
    details = []
    trouble = failing(look)
    if trouble is not None:
        details.append(trouble.sentence)
    if age <= SILENT:
        if trouble is None:
            return met(Part.LAST_PASS, text)
        return noted(Part.LAST_PASS, text, *details)
    reason = Reason.NOT_RENEWED
    cause = f"the last good pass was {ago}"
    if age > _LEASE_SECONDS:
        reason = Reason.EXPIRED
        cause = f"{cause}, so its leases expired"
    fix = see_to_passes(look)
    return breaks(Part.LAST_PASS, reason, text, *details, cause=cause, fix=fix, if_=alone)


def _not_recorded(look: Look) -> tuple[str, str]:
    """Say why it is not known when the last pass was, and what to do; empty for nothing."""
    if not look.owner:
        return "last pass: not known without the owner", "give --owner"
    if look.offline:
        return "last pass: the files do not say when it was", ""
    see_why = ""
    if look.deployed.resource:
        see_why = f"see why: kubectl describe {look.deployed.resource}"
    if _none_made(look):
        first = "see what one would do: eurekube-sync run --dry-run"
        return "no pass was made yet", see_why or first
    if look.last_pass is None:
        return "last pass: not recorded, because this installation uses no lock", ""
    text = f"last pass: not recorded in the Lease {look.last_pass.name}"
    return text, see_why or "give run and this command the same --lock"


def _none_made(look: Look) -> bool:
    """Say whether both servers were read, and nothing in them is from a pass of this owner."""
    report = look.report
    if isinstance(look.listed, Unknown) or report.view is None or unread_of(report):
        return False
    for report in look.reports:
        for syncer in syncers_in(report):
            if syncer.status is not None:
                return False
    return not any(map(look.is_ours, look.listed.data))


def is_first(look: Look) -> bool:
    """Say whether a person has to make the first pass, because no installation was found."""
    if not look.owner or look.deployed.resource or look.offline:
        return False
    return _none_made(look)


def _after_next_pass(look: Look) -> str:
    """Return what to do where the next pass does the rest."""
    if is_first(look):
        return "make a pass: eurekube-sync run"
    if failing(look) is not None:
        return see_to_passes(look)
    return f"wait for the next pass; if nothing changes, {see_to_passes(look)}"
