"""Three rules that leave wanted instances unregistered, or keep them DOWN, in the order of
`make.RULES`: contested addresses, drains that cannot be read, limits. Pure.

A limit names how many instances of a syncer may be UP. The metadata `LIMIT` of an instance has the
limit under which it was registered. Registered instances stay, and new ones follow in an order that
never changes. So a higher limit only adds instances, a lower one only removes some, and an instance
that came in place of another stays until its pod ends. If a percentage allows fewer because pods or
other instances went away, none is removed: a person has to lower the limit in the spec."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple
from zlib import crc32

from msgspec import Struct, field

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
from eurekube_sync.desired.limit import LIMIT, Limit, Measure
from eurekube_sync.desired.rivals import Bid, across_namespaces, sockets_of
from eurekube_sync.desired.spec import selected_namespace
from eurekube_sync.model.eureka import (
    Instance,
    InstanceKey,
    InstanceStatus,
    ObservedInstance,
    vip_names,
)
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import pod_uid_of, syncer_of
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import counted
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.value import UNCHANGED, Ruling

HAS_PLACE = (InstanceStatus.UP, InstanceStatus.OUT_OF_SERVICE)
"""Statuses that count in a limit: an instance that a person set OUT_OF_SERVICE may be set UP
again."""


# --- An address that several namespaces claim -----------------------------------------------------


class _Rank(NamedTuple):
    """Who comes first at an address, the lowest rank first: who is registered there, then who could
    register now, then the older syncer. False is lower than True."""

    unregistered: bool
    cannot_register: bool
    seniority: tuple[float, SyncerRef]


def first_registered(desired: Desired, observed: Observed) -> Ruling:
    """Give an address that several namespaces claim, and that the cluster gave to none of them, to
    the first by `_Rank`. Until then such an endpoint has the rival `Right.UNDECIDED`."""
    undecided = _undecided(desired)
    if not undecided:
        return UNCHANGED  # nearly always
    ranks = _ranks(undecided, observed)
    # A rival of None: nobody comes before the syncer at this key.
    rivals_of: dict[SyncerRef, dict[InstanceKey, Rival | None]] = {}
    for bid in undecided:
        rivals_of.setdefault(bid.syncer, {})[bid.key] = None

    to_read: list[InstanceKey] = []
    for bid, of_other_namespaces in across_namespaces(tuple(undecided)):
        rank = ranks[bid]
        first_other = min(of_other_namespaces, key=ranks.__getitem__)
        if ranks[first_other] < rank:
            rival = Rival(first_other.syncer, Right.FIRST)
            rivals_of[bid.syncer][bid.key] = rival
        elif rank.unregistered and not rank.cannot_register:
            # It would be registered now. But the list may not yet show another bid's instance,
            # registered a moment ago.
            for other in of_other_namespaces:
                to_read.append(other.key)

    # All bids of a syncer have its one claim.
    claims = {bid.syncer: claim for bid, claim in undecided.items()}
    for syncer, rivals in rivals_of.items():
        claims[syncer] = claims[syncer].with_rivals(rivals)
    return Ruling(claims=claims, to_read=tuple(to_read))


def _ranks(undecided: Mapping[Bid, Serving], observed: Observed) -> dict[Bid, _Rank]:
    ranks: dict[Bid, _Rank] = {}
    for bid, claim in undecided.items():
        ranks[bid] = _Rank(
            unregistered=observed.registered(bid.key) is None,
            cannot_register=not _would_register(bid, claim),
            seniority=seniority(claim),
        )
    return ranks


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
            # Only an address that the cluster gave to none of the bidders is undecided.
            undecided[Bid(key, ref, namespace, sockets, allotted=False)] = claim
    return undecided


def _would_register(bid: Bid, claim: Serving) -> bool:
    wanted = claim.wanted_at(bid.key)
    if wanted is None or claim.spec.suspend:
        return False
    return wanted.instance.status is InstanceStatus.UP


# --- Drains that cannot be read -------------------------------------------------------------------

_DRAIN_UNKNOWN = "a person drained an instance, and it is unknown whether it is still drained"


def still_drained(desired: Desired, observed: Observed) -> Ruling:
    """Keep an instance DOWN that is marked as drained, if the annotation of its Pod or Service
    cannot be read. Without the mark it counts as not drained: a missing right must not stop a
    rollout. A pod's mark counts under any key, because the pod may have moved to another name or
    port."""
    marked_by_pod: dict[str, list[ObservedInstance]] = {}
    marked_by_syncer: dict[SyncerRef, list[ObservedInstance]] = {}
    for instance in observed.ours.values():
        if DRAINED not in instance.metadata or instance.status is InstanceStatus.UP:
            continue  # nearly always
        syncer = syncer_of(instance)
        assert syncer is not None  # `ours` holds none without
        marked_by_syncer.setdefault(syncer, []).append(instance)
        uid = pod_uid_of(instance)
        if uid is not None:
            marked_by_pod.setdefault(uid, []).append(instance)
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
        if not wanted.unreadable_drain_kinds:
            continue
        marked = _marked(wanted.instance, observed.ours.get(key), marked_by_pod)
        doubted = _doubted_kinds(marked, wanted.unreadable_drain_kinds)
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
    if registered is not None:
        if pod_uid_of(registered) == uid:
            return [registered]
        if registered.status is InstanceStatus.UP:
            return ()  # an UP instance of another pod is not turned DOWN
    return marked_by_pod.get(uid or "", ())


def _as_drained(wanted: Wanted, doubted: frozenset[Kind]) -> Wanted:
    """Return the wanted instance as DOWN, with a mark that also names the doubted kinds."""
    metadata = wanted.instance.metadata
    kinds = doubted.union(drained_kinds(metadata))
    mark = ",".join(kind for kind in Kind if kind in kinds)
    marked = {**metadata, DRAINED: mark}
    instance = replace(wanted.instance, status=InstanceStatus.DOWN, metadata=marked)
    why = wanted.why
    if not wanted.drained:
        why = _DRAIN_UNKNOWN
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
        if isinstance(verdict, Wanted):
            continue  # `_stay_down` decided
        if isinstance(verdict, Taken):
            continue  # another syncer has the address
        if isinstance(verdict, Leaving):
            why = f"{verdict.why}; {_DRAIN_UNKNOWN}"
            unreadable = verdict.unreadable_drain_kinds
        else:
            # No verdict, or Kept: the pod's other endpoints tell what cannot be read.
            why = _DRAIN_UNKNOWN
            unreadable = unreadable_by_pod.get(pod_uid_of(registered) or "", frozenset())
        if _doubted_kinds([registered], unreadable):
            instance = registered.instance
            kept[registered.key] = Kept(why=why, host=instance.ip_addr, port=instance.main_port)
    return kept


def _unreadable_kinds_by_pod(claim: Serving) -> Mapping[str, frozenset[Kind]]:
    """Return, by pod UID, the kinds of objects whose drain annotation cannot be read now, of any of
    the pod's endpoints."""
    unreadable: dict[str, frozenset[Kind]] = {}
    for wanted in claim.wanted.values():
        uid = pod_uid_of(wanted.instance)
        if uid is not None:
            kinds = unreadable.get(uid, frozenset())
            unreadable[uid] = kinds | wanted.unreadable_drain_kinds
    for leaving in claim.of(Leaving).values():
        if leaving.pod is not None:
            kinds = unreadable.get(leaving.pod.uid, frozenset())
            unreadable[leaving.pod.uid] = kinds | leaving.unreadable_drain_kinds
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
        limit = claim.spec.limit
        if not limit or claim.spec.suspend:
            continue
        claims[ref], more_to_read = _choose(claim, limit, observed, ups_by_vip)
        to_read += more_to_read
    return Ruling(claims=claims, to_read=tuple(to_read))


class _Contenders(Struct):
    """The ready endpoints of a syncer, each in one group. The rows are in the order of the tests,
    and the first that fits decides. The last column says in which order the groups get places.

    | group          | the endpoint's instance                                 | its place |
    |----------------|---------------------------------------------------------|-----------|
    | staying        | UP or OUT_OF_SERVICE, and the limit may not remove it   | always    |
    | unread         | its uncached read failed                                | always    |
    | newcomers      | not registered, or DOWN                                 | third     |
    | served         | UP                                                      | first     |
    | put_out        | OUT_OF_SERVICE, under this limit or a lower one         | second    |
    | put_out_before | OUT_OF_SERVICE                                          | last      |

    An unread instance may be registered, so no newcomer gets its place. Or it may be gone, so
    nothing is removed for it: the other groups may get its place as well.

    A limit such as 20% may remove an instance only after a person lowered it. A number may always,
    because it is exact: with limit 3 and four UP instances under the mark 3, one has to go. What
    a person set OUT_OF_SERVICE is the first to lose its place, if it was registered under a higher
    limit. Else it may be UP again, and gets a place before a newcomer."""

    staying: list[InstanceKey] = field(default_factory=list)
    unread: list[InstanceKey] = field(default_factory=list)
    newcomers: list[InstanceKey] = field(default_factory=list)
    served: list[InstanceKey] = field(default_factory=list)
    put_out: list[InstanceKey] = field(default_factory=list)
    put_out_before: list[InstanceKey] = field(default_factory=list)

    def add(self, key: InstanceKey, limit: Limit, observed: Observed) -> None:
        """Add an endpoint to its group."""
        group = self._group_of(key, limit, observed)
        group.append(key)

    def _group_of(self, key: InstanceKey, limit: Limit, observed: Observed) -> list[InstanceKey]:
        with_place = _with_place(key, observed)
        mark = ""
        if with_place:
            mark = with_place.metadata.get(LIMIT, "")
            if not limit.may_remove(mark):
                return self.staying
        if key in observed.unread:
            return self.unread
        if with_place is None:
            return self.newcomers
        if with_place.status is InstanceStatus.UP:
            return self.served
        if limit.lets_in(mark):
            return self.put_out
        return self.put_out_before


def _choose(
    claim: Serving, limit: Limit, observed: Observed, ups_by_vip: Callable[[], _UpByVip]
) -> tuple[Serving, list[InstanceKey]]:
    """Return the claim within its limit, and the keys to read uncached."""
    ready = _ready_in_order(claim, observed)
    contenders = _Contenders()
    for key in ready:
        contenders.add(key, limit, observed)

    others_up = 0
    if limit.measure is Measure.SHARE:
        others_up = ups_by_vip().others_than(claim)
    places = limit.places(pods=claim.endpoints, others=others_up)
    admitted: Collection[InstanceKey] = ()
    # An endpoint that is not in `ready` takes no place, so only a limit of 0 leaves it out.
    may_be_left_out: Iterable[InstanceKey] = claim.wanted
    if limit.value > 0:  # with 0 a syncer has no instance, not even an unread one
        may_be_left_out = ready
        kept = _kept_without_endpoint(claim, observed)
        admitted = _admitted(ready, contenders, places, kept)
    note = _note(
        limit,
        places,
        ready=len(ready),
        others_up=others_up,
        admitted=len(admitted),
        vip=claim.vip_address,
    )

    left_out: dict[InstanceKey, OverLimit] = {}
    for key in may_be_left_out:
        if key not in admitted:
            left_out[key] = OverLimit(wanted=claim.wanted[key], why=note)
    limited = claim.with_verdicts(left_out)
    notes = (*claim.notes, note)
    return replace(limited, notes=notes), _to_read(contenders, left_out)


def _to_read(
    contenders: _Contenders, left_out: Mapping[InstanceKey, OverLimit]
) -> list[InstanceKey]:
    """Return what to read uncached before a newcomer is registered. One that is left out may have
    been registered a moment ago, which the list may not show yet. Then no other may come in its
    place. And what a person took OUT_OF_SERVICE may be UP again, and then comes before a
    newcomer."""
    newcomers_left_out = [key for key in contenders.newcomers if key in left_out]
    if len(newcomers_left_out) == len(contenders.newcomers):
        return []  # no newcomer has a place
    return [*newcomers_left_out, *contenders.put_out_before]


def _ready_in_order(claim: Serving, observed: Observed) -> list[InstanceKey]:
    """Return the ready endpoints that may have a place. One at another syncer's address has none,
    unless it is registered. The order is the same in every pass and after every restart."""
    ready: list[InstanceKey] = []
    for key, wanted in claim.wanted.items():
        if wanted.instance.status is not InstanceStatus.UP:
            continue
        if wanted.rival is None or _with_place(key, observed) is not None:
            ready.append(key)
    return sorted(ready, key=_by_hash)


def _by_hash(key: InstanceKey) -> tuple[int, InstanceKey]:
    """Return the key to sort by: a hash first, so that low addresses do not come first."""
    return crc32(key.id.encode()), key


def _admitted(
    ready: Collection[InstanceKey], contenders: _Contenders, places: int | None, kept: int
) -> frozenset[InstanceKey]:
    """Return those of the `ready` endpoints that have a place; all if `places` is None. The `kept`
    instances of other endpoints have places, too."""
    if places is None:
        return frozenset(ready)
    places_left = max(0, places - len(contenders.staying))
    before_newcomers = [*contenders.served, *contenders.put_out]
    # Only newcomers respect the places of unread and kept instances. Such an instance may be gone,
    # so no other loses a place for it.
    respected = len(before_newcomers) + len(contenders.unread) + kept
    free = max(0, places_left - respected)
    coming = contenders.newcomers[:free]
    in_order = [*before_newcomers, *coming, *contenders.put_out_before]
    first = in_order[:places_left]
    # The staying and the unread always have a place.
    return frozenset([*contenders.staying, *contenders.unread, *first])


def _kept_without_endpoint(claim: Serving, observed: Observed) -> int:
    """Count the kept instances without a wanted endpoint. Each has a place, or the limit would be
    exceeded once its endpoint is seen again."""
    if not claim.keeps_any:
        return 0  # nearly always
    count = 0
    for key in observed.keys_by_syncer.get(claim.syncer.ref, ()):
        has_place = _with_place(key, observed) is not None
        without_endpoint = claim.wanted_at(key) is None
        if has_place and without_endpoint and claim.keeps(observed.ours[key]) is not None:
            count += 1
    return count


def _with_place(key: InstanceKey, observed: Observed) -> ObservedInstance | None:
    """Return the endpoint's instance if it takes a place of a limit."""
    registered = observed.registered(key)
    if registered is not None and registered.status in HAS_PLACE:
        return registered
    return None


def _note(
    limit: Limit, places: int | None, *, ready: int, others_up: int, admitted: int, vip: str
) -> str:
    if limit.measure is Measure.SHARE:
        beside = "while no other instance is UP"
        if others_up:
            others = counted(others_up, "other UP instance")
            beside = f"with {others}"
        allowed = "all" if places is None else places
        return f"{limit} of VIP {vip} allows {allowed} {beside}: registers {admitted}"
    allows = ""
    if limit.measure is Measure.PODS and places is not None:
        allows = f" allows {places}"
    registers = "no endpoint is ready"
    if ready:
        endpoints = counted(ready, "ready endpoint")
        registers = f"registers {admitted} of {endpoints}"
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
        """Count the UP instances under any VIP of the claim, without its own."""
        wanted_vips = {wanted.instance.vip_address for wanted in claim.wanted.values()}
        vips: set[str] = set()
        for wanted_vip in wanted_vips:
            for name in vip_names(wanted_vip):
                vips.update(self._by_name.get(name, ()))
        count = 0
        for vip in vips:
            count += self._counts[vip]
        # Its own are those that it wants, and those with its mark.
        own = set(self._by_syncer.get(claim.syncer.ref, ()))
        own.update(claim.wanted)
        for key in own:
            if self._vips.get(key) in vips:
                count -= 1
        return count
