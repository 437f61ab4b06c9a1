"""Rules that leave wanted instances unregistered, or keep them DOWN. Pure.

A limit names how many instances of a syncer may be UP. The metadata `LIMIT` of an instance has the
limit under which it was registered. Registered instances stay, and new ones follow in an order that
never changes. So a higher limit only adds instances, a lower one only removes some, and an instance
that came in place of another stays until its pod ends. If a percentage allows fewer because pods or
other instances went away, none is removed: a person has to lower the limit in the spec."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from zlib import crc32

from eurekube_sync.desired.catalog import DRAINED, Kind, drained_kinds
from eurekube_sync.desired.claims import (
    Desired,
    Kept,
    Leaving,
    OverLimit,
    Right,
    Rival,
    Serving,
    Taken,
    Verdict,
    Wanted,
    seniority,
)
from eurekube_sync.desired.conduct import LIMIT, Limit, Measure
from eurekube_sync.desired.rivals import Bid, across_namespaces, sockets_of
from eurekube_sync.desired.spec import selected_namespace
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import pod_uid_of, syncer_of
from eurekube_sync.model.text import counted
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.duplicates import vip_names
from eurekube_sync.plan.value import UNCHANGED, Ruling

HAS_PLACE = (InstanceStatus.UP, InstanceStatus.OUT_OF_SERVICE)
"""Statuses that count in a limit: an instance that a person set OUT_OF_SERVICE may be set UP
again."""


# --- An address that several namespaces claim -----------------------------------------------------


def first_registered(desired: Desired, observed: Observed) -> Ruling:
    """Give an address that several namespaces claim, and that the cluster gave to none of them, to
    the first: the one that is registered there, else one that could be registered now, of the older
    syncer first. Until then such an endpoint has the rival `Right.UNDECIDED`."""
    undecided = _undecided(desired)
    if not undecided:
        return UNCHANGED  # nearly always
    ranks: dict[Bid, tuple[bool, bool, tuple[float, SyncerRef]]] = {}
    # A rival of None: nobody comes before the syncer at this key.
    rivals_of: dict[SyncerRef, dict[InstanceKey, Rival | None]] = {}
    for bid, claim in undecided.items():
        unregistered = observed.registered(bid.key) is None
        ranks[bid] = (unregistered, not _would_register(bid, claim), seniority(claim))
        rivals_of.setdefault(bid.syncer, {})[bid.key] = None

    to_read: list[InstanceKey] = []
    for bid, of_other_namespaces in across_namespaces(tuple(undecided)):
        first = min(of_other_namespaces, key=ranks.__getitem__)
        unregistered, cannot_register, _ = ranks[bid]
        if ranks[first] < ranks[bid]:
            rivals_of[bid.syncer][bid.key] = Rival(first.syncer, Right.FIRST)
        elif unregistered and not cannot_register:
            # The list may not yet show another bid's instance, registered a moment ago.
            to_read += [other.key for other in of_other_namespaces]

    claims = {bid.syncer: claim for bid, claim in undecided.items()}
    for syncer, rivals in rivals_of.items():
        claims[syncer] = claims[syncer].with_rivals(rivals)
    return Ruling(claims=claims, to_read=tuple(to_read))


def _undecided(desired: Desired) -> dict[Bid, Serving]:
    """Return the bids for addresses of which only Eureka's list says who was first, with their
    claims. To bid is to want an instance at an address that others want, too."""
    undecided: dict[Bid, Serving] = {}
    for ref, claim in desired.claims.items():
        if not isinstance(claim, Serving):
            continue
        for key, rival in claim.rivals.items():
            wanted = claim.wanted_at(key)
            if wanted is None or rival.right is not Right.UNDECIDED:
                continue
            # The syncer may select in another namespace than its own.
            namespace = selected_namespace(claim.syncer)
            sockets = sockets_of(wanted.instance)
            # An address that the cluster gave to somebody is decided.
            undecided[Bid(key, ref, namespace, sockets, allotted=False)] = claim
    return undecided


def _would_register(bid: Bid, claim: Serving) -> bool:
    wanted = claim.wanted_at(bid.key)
    up = wanted is not None and wanted.instance.status is InstanceStatus.UP
    return up and not claim.conduct.suspend


# --- Drains that cannot be read -------------------------------------------------------------------

_DRAIN_UNKNOWN = "a person drained an instance, and it is unknown whether it is still drained"


def still_drained(desired: Desired, observed: Observed) -> Ruling:
    """Keep an instance DOWN that is marked as drained, if the annotation of its Pod or Service
    cannot be read. All others count as not drained: a missing right must not stop a rollout. A
    pod's mark counts under any key, because the pod may have moved to another name or port."""
    marked_by_pod: dict[str, list[ObservedInstance]] = {}
    marked_by_syncer: dict[SyncerRef, list[ObservedInstance]] = {}
    for instance in observed.ours.values():
        if DRAINED not in instance.metadata or instance.status is InstanceStatus.UP:
            continue  # nearly always
        syncer = syncer_of(instance)
        assert syncer is not None  # `ours` holds none without
        marked_by_syncer.setdefault(syncer, []).append(instance)
        marked_by_pod.setdefault(pod_uid_of(instance) or "", []).append(instance)
    if not marked_by_syncer:
        return UNCHANGED

    claims: dict[SyncerRef, Serving] = {}
    for ref, claim in desired.claims.items():
        if not isinstance(claim, Serving):
            continue
        changed = _stay_down(claim, observed, marked_by_pod)
        changed |= _stay_registered(claim, marked_by_syncer.get(ref, ()))
        if changed:
            claims[ref] = claim.with_verdicts(changed)
    return Ruling(claims=claims)


def _stay_down(
    claim: Serving, observed: Observed, marked_by_pod: Mapping[str, Sequence[ObservedInstance]]
) -> dict[InstanceKey, Verdict]:
    """Return the wanted instances that stay DOWN."""
    down: dict[InstanceKey, Verdict] = {}
    for key, wanted in claim.wanted.items():
        if not wanted.drain_unknown:
            continue
        marked = _marked(wanted.instance, observed.ours.get(key), marked_by_pod)
        doubted = _doubted_kinds(marked, wanted.drain_unknown)
        if doubted:
            down[key] = _as_drained(wanted, doubted)
    return down


def _marked(
    wanted: Instance,
    registered: ObservedInstance | None,
    marked_by_pod: Mapping[str, Sequence[ObservedInstance]],
) -> Sequence[ObservedInstance]:
    """Return the instances whose mark counts for a wanted one: the registered one, or those of its
    pod under other keys."""
    uid = pod_uid_of(wanted)
    if registered is not None and pod_uid_of(registered) == uid:
        return [registered]
    if registered is not None and registered.status is InstanceStatus.UP:
        return ()  # an UP instance of another pod is not turned DOWN
    return marked_by_pod.get(uid, ()) if uid is not None else ()


def _as_drained(wanted: Wanted, doubted: frozenset[Kind]) -> Wanted:
    """Return the wanted instance as DOWN, with a mark that also names the doubted kinds."""
    metadata = wanted.instance.metadata
    kinds = {*drained_kinds(metadata), *doubted}
    mark = ",".join(kind for kind in Kind if kind in kinds)
    instance = replace(
        wanted.instance, status=InstanceStatus.DOWN, metadata={**metadata, DRAINED: mark}
    )
    why = wanted.why if wanted.drained else _DRAIN_UNKNOWN
    return replace(wanted, instance=instance, why=why, drained=True)


def _stay_registered(
    claim: Serving, marked: Collection[ObservedInstance]
) -> dict[InstanceKey, Verdict]:
    """Keep drained instances that are not wanted now. A cancel would delete the mark, and the
    instance would be UP again with the next ready pod, or under the pod's new key."""
    kept: dict[InstanceKey, Verdict] = {}
    if not marked:
        return kept
    unreadable_by_pod = _unreadable_kinds_by_pod(claim)
    for registered in marked:
        verdict = claim.verdicts.get(registered.key)
        if isinstance(verdict, Wanted | Taken):
            continue
        if isinstance(verdict, Leaving):
            why = f"{verdict.why}; {_DRAIN_UNKNOWN}"
            unreadable = verdict.drain_unknown
        else:
            why = _DRAIN_UNKNOWN
            unreadable = unreadable_by_pod.get(pod_uid_of(registered) or "", frozenset())
        if _doubted_kinds([registered], unreadable):
            instance = registered.instance
            kept[registered.key] = Kept(why=why, host=instance.ip_addr, port=instance.main_port)
    return kept


def _unreadable_kinds_by_pod(claim: Serving) -> Mapping[str, frozenset[Kind]]:
    """Return, by pod UID, the kinds of objects whose drain annotation cannot be read now."""
    unreadable: dict[str, frozenset[Kind]] = {}
    for wanted in claim.wanted.values():
        uid = pod_uid_of(wanted.instance)
        if uid is not None:
            unreadable[uid] = wanted.drain_unknown
    for leaving in claim.of(Leaving).values():
        # A pod with several endpoints counts as the wanted one.
        if leaving.pod is not None:
            unreadable.setdefault(leaving.pod.uid, leaving.drain_unknown)
    return unreadable


def _doubted_kinds(
    marked: Iterable[ObservedInstance], unreadable: Collection[Kind]
) -> frozenset[Kind]:
    """Return the unreadable kinds by which one of these instances was drained, unless it is UP
    again."""
    drained_by: set[Kind] = set()
    for instance in marked:
        if instance.status is not InstanceStatus.UP:
            drained_by.update(drained_kinds(instance.metadata))
    return frozenset(drained_by.intersection(unreadable))


# --- Limits ---------------------------------------------------------------------------------------


def within_limits(desired: Desired, observed: Observed) -> Ruling:
    """Apply the syncers' limits; a claim without a limit, or of a suspended syncer, stays as it
    is."""
    claims: dict[SyncerRef, Serving] = {}
    to_read: list[InstanceKey] = []
    ups_by_vip = cache(lambda: _UpByVip(observed))  # counted only if a limit is a share of them
    for ref, claim in desired.claims.items():
        if not isinstance(claim, Serving):
            continue
        limit = claim.conduct.limit
        if not limit or claim.conduct.suspend:
            continue
        may_be_kept: Collection[InstanceKey] = ()
        if claim.keeps_any:
            may_be_kept = observed.keys_by_syncer.get(ref, ())
        claims[ref], more_to_read = _choose(claim, limit, observed, ups_by_vip, may_be_kept)
        to_read += more_to_read
    return Ruling(claims=claims, to_read=tuple(to_read))


def _choose(
    claim: Serving,
    limit: Limit,
    observed: Observed,
    ups_by_vip: Callable[[], _UpByVip],
    may_be_kept: Collection[InstanceKey],
) -> tuple[Serving, list[InstanceKey]]:
    """Return the claim within its limit, and the keys to read uncached. Of the registered instances
    in `may_be_kept`, some may be kept although they have no wanted endpoint."""
    ready = _in_order(claim, observed)
    contenders = _Contenders()
    for key in ready:
        contenders.group_of(key, limit, observed).append(key)

    others_up = ups_by_vip().others_than(claim) if limit.measure is Measure.SHARE else 0
    places = limit.places(pods=_pods_of(claim), others=others_up)
    kept = _kept_without_endpoint(claim, observed, may_be_kept)
    given_a_place = _given_a_place(contenders, places, len(ready), kept)
    admitted = {*contenders.staying, *contenders.unread, *given_a_place}
    if limit.value == 0:
        admitted = set()  # then a syncer has no instance, not even an unread one
    note = _note(
        limit,
        places,
        ready=len(ready),
        others_up=others_up,
        admitted=len(admitted),
        vip=claim.vip_address,
    )

    may_have_place = set(ready)
    left_out: dict[InstanceKey, OverLimit] = {}
    for key, wanted in claim.wanted.items():
        # An endpoint that is not ready takes no place, and is left out only by a limit of 0.
        if key not in admitted and (key in may_have_place or limit.value == 0):
            left_out[key] = OverLimit(wanted=wanted, why=note)
    limited = replace(claim.with_verdicts(left_out), notes=(*claim.notes, note))

    if set(contenders.newcomers).isdisjoint(given_a_place):
        return limited, []
    # A newcomer that is left out now may have been registered a moment ago, which the list may not
    # show yet. Then no other may come in its place. And what a person took OUT_OF_SERVICE may be UP
    # again, and then comes before a newcomer.
    left_out_newcomers = [key for key in contenders.newcomers if key in left_out]
    return limited, [*left_out_newcomers, *contenders.put_out_before]


def _in_order(claim: Serving, observed: Observed) -> list[InstanceKey]:
    """Return the ready endpoints that may have a place. One at another syncer's address has none,
    unless it is registered. The order is the same in every pass and after every restart, and
    prefers no low addresses."""
    ready: list[InstanceKey] = []
    for key, wanted in claim.wanted.items():
        up = wanted.instance.status is InstanceStatus.UP
        if up and (not wanted.rival or _has_place(key, observed)):
            ready.append(key)
    return sorted(ready, key=lambda key: (crc32(key.id.encode()), key))


def _pods_of(claim: Serving) -> int:
    """Count the endpoints, ready or not, of which a percentage is meant: all but those that
    terminate."""
    count = len(claim.wanted)
    for leaving in claim.of(Leaving).values():
        if not leaving.terminating:
            count += 1
    return count


@dataclass(slots=True)
class _Contenders:
    """The ready endpoints of a syncer, each in one group. The first row that fits decides.

    | group          | the endpoint's instance                                 | its place         |
    |----------------|---------------------------------------------------------|-------------------|
    | staying        | UP or OUT_OF_SERVICE, and the limit may not remove it   | always            |
    | unread         | its uncached read failed                                | always, see below |
    | newcomers      | not registered, or DOWN                                 | the third         |
    | served         | UP                                                      | the first         |
    | put_out        | OUT_OF_SERVICE, and today's limit lets it in            | the second        |
    | put_out_before | OUT_OF_SERVICE                                          | the last          |

    An unread instance may be registered, so nothing is registered in its place. Or it may be gone,
    so nothing is removed for it: those that are `served` may take its place.

    A limit such as 20% may remove an instance only after a person lowered it. A number may always,
    because it is exact: with limit 3 and four UP instances under the mark 3, one has to go. Whom a
    person set OUT_OF_SERVICE goes first, if it came under a higher limit; else it may be UP again,
    and comes before a newcomer."""

    staying: list[InstanceKey] = field(default_factory=list)
    unread: list[InstanceKey] = field(default_factory=list)
    newcomers: list[InstanceKey] = field(default_factory=list)
    served: list[InstanceKey] = field(default_factory=list)
    put_out: list[InstanceKey] = field(default_factory=list)
    put_out_before: list[InstanceKey] = field(default_factory=list)

    def group_of(self, key: InstanceKey, limit: Limit, observed: Observed) -> list[InstanceKey]:
        """Return the group of an endpoint."""
        registered = observed.registered(key) if _has_place(key, observed) else None
        mark = registered.metadata.get(LIMIT, "") if registered else ""
        if registered and not limit.may_remove(mark):
            return self.staying
        if key in observed.unread:
            return self.unread
        if registered is None:
            return self.newcomers
        if registered.status is InstanceStatus.UP:
            return self.served
        if limit.lets_in(mark):
            return self.put_out
        return self.put_out_before


def _given_a_place(
    contenders: _Contenders, places: int | None, ready: int, kept: int
) -> list[InstanceKey]:
    """Return the endpoints that get the places left by those that stay. `places` None: there is one
    for each of the `ready`. The `kept` instances of other endpoints keep only newcomers out."""
    before_newcomers = [*contenders.served, *contenders.put_out]
    # Newcomers leave these places free.
    reserved = len(before_newcomers) + len(contenders.unread)
    if places is None:
        places_left = ready
    else:
        places_left = max(0, places - len(contenders.staying))
        reserved += kept
    coming = contenders.newcomers[: max(0, places_left - reserved)]
    in_order = [*before_newcomers, *coming, *contenders.put_out_before]
    return in_order[:places_left]


def _kept_without_endpoint(
    claim: Serving, observed: Observed, may_be_kept: Iterable[InstanceKey]
) -> int:
    """Count the kept instances without a wanted endpoint. Each has a place, or the limit would be
    exceeded once its endpoint is seen again."""
    count = 0
    for key in may_be_kept:
        unwanted = claim.wanted_at(key) is None and _has_place(key, observed)
        if unwanted and claim.keeps(observed.ours[key]) is not None:
            count += 1
    return count


def _has_place(key: InstanceKey, observed: Observed) -> bool:
    registered = observed.registered(key)
    return registered is not None and registered.status in HAS_PLACE


def _note(
    limit: Limit, places: int | None, *, ready: int, others_up: int, admitted: int, vip: str
) -> str:
    if limit.measure is Measure.SHARE:
        beside = "while no other instance is UP"
        if others_up:
            beside = f"with {counted(others_up, 'other UP instance')}"
        allowed = "all" if places is None else places
        return f"{limit} of VIP {vip} allows {allowed} {beside}: registers {admitted}"
    allows = ""
    if limit.measure is Measure.PODS and places is not None:
        allows = f" allows {places}"
    registers = "no endpoint is ready"
    if ready:
        registers = f"registers {admitted} of {counted(ready, 'ready endpoint')}"
    return f"limit {limit}{allows}: {registers}"


class _UpByVip:
    """The UP instances that callers find by each VIP address."""

    def __init__(self, observed: Observed) -> None:
        self._vips: dict[InstanceKey, str] = {}
        for registered in (observed.ours, observed.others):
            for key, instance in registered.items():
                if instance.status is InstanceStatus.UP:
                    self._vips[key] = instance.instance.vip_address
        self._counts = Counter(self._vips.values())
        self._by_syncer = observed.keys_by_syncer
        # A VIP address may be a list of names, and callers ask for any one of them.
        self._by_name: dict[str, list[str]] = {}
        for vip in self._counts:
            for name in vip_names(vip):
                self._by_name.setdefault(name, []).append(vip)

    def others_than(self, claim: Serving) -> int:
        """Count the UP instances under any VIP of the claim that are neither its own nor about to
        be."""
        vips: set[str] = set()
        for text in {wanted.instance.vip_address for wanted in claim.wanted.values()}:
            for name in vip_names(text):
                vips.update(self._by_name.get(name, ()))
        count = 0
        for vip in vips:
            count += self._counts[vip]
        for key in {*claim.wanted, *self._by_syncer.get(claim.syncer.ref, ())}:
            if self._vips.get(key) in vips:
                count -= 1
        return count
