"""Rules that leave wanted instances unregistered, or keep them DOWN. Pure.

Within a limit, registered instances stay, and new ones follow in an order that never changes: a
higher limit only adds, a lower one only removes, and a substitute stays until its pod ends. If a
percentage comes to fewer places by itself, no instance is removed: only an instance whose mark
names a higher limit than the spec may be."""

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

_WHY = "a person drained an instance, and it is unknown whether it is still drained"
HAS_PLACE = (InstanceStatus.UP, InstanceStatus.OUT_OF_SERVICE)
"""Statuses that count in a limit: an instance that a person set OUT_OF_SERVICE may be set UP
again."""


# --- An address that several namespaces claim -----------------------------------------------------


def first_registered(desired: Desired, observed: Observed) -> Desired:
    """Give an address that several namespaces claim, and that the cluster gave to none of them, to
    the first: the one that is registered there, else one that could be registered now, of the older
    syncer first."""
    claims_by_bid = _undecided(desired)
    if not claims_by_bid:
        return desired  # nearly always
    ranks: dict[Bid, tuple[bool, bool, tuple[float, SyncerRef]]] = {}
    rivals: dict[SyncerRef, dict[InstanceKey, Rival | None]] = {}
    for bid, claim in claims_by_bid.items():
        comes_later = not _would_register(bid, claim)
        ranks[bid] = (observed.registered(bid.key) is None, comes_later, seniority(claim))
        rivals.setdefault(bid.syncer, {})[bid.key] = None

    to_read = list(desired.to_read)
    for bid, others in across_namespaces(tuple(claims_by_bid)):
        first = min(others, key=ranks.__getitem__)
        unregistered, comes_later, _ = ranks[bid]
        if ranks[first] < ranks[bid]:
            rivals[bid.syncer][bid.key] = Rival(first.syncer, Right.FIRST)
        elif unregistered and not comes_later:
            # The list may not yet show that another one was registered a moment ago.
            to_read += [other.key for other in others]

    claims = dict(desired.claims)
    for bid, claim in claims_by_bid.items():
        claims[bid.syncer] = claim.outdone_by(rivals[bid.syncer])
    return replace(desired, claims=claims, to_read=tuple(to_read))


def _undecided(desired: Desired) -> dict[Bid, Serving]:
    """Return the bids for addresses of which only Eureka's list says who was first."""
    bids: dict[Bid, Serving] = {}
    for ref, claim in desired.claims.items():
        if not isinstance(claim, Serving):
            continue
        for key, rival in claim.rivals.items():
            wanted = claim.wanted_at(key)
            if wanted is None or rival.right is not Right.UNDECIDED:
                continue
            namespace = selected_namespace(claim.syncer)
            bids[Bid(key, ref, namespace, sockets_of(wanted.instance), allotted=False)] = claim
    return bids


def _would_register(bid: Bid, claim: Serving) -> bool:
    wanted = claim.wanted_at(bid.key)
    up = wanted is not None and wanted.instance.status is InstanceStatus.UP
    return up and not claim.conduct.suspend


# --- Drains that cannot be read -------------------------------------------------------------------


def still_drained(desired: Desired, observed: Observed) -> Desired:
    """Return the claims, with DOWN for instances that a Pod or Service drained whose annotation is
    unknown now. All others count as not drained: a missing right must not stop a rollout. A pod's
    mark counts under any key, because the pod may have moved to another name or port."""
    by_pod: dict[str, list[ObservedInstance]] = {}
    by_syncer: dict[SyncerRef, list[ObservedInstance]] = {}
    for instance in observed.ours.values():
        if DRAINED not in instance.metadata or instance.status is InstanceStatus.UP:
            continue  # nearly always
        syncer = syncer_of(instance)
        assert syncer is not None  # `ours` holds none without
        by_syncer.setdefault(syncer, []).append(instance)
        by_pod.setdefault(pod_uid_of(instance) or "", []).append(instance)
    if not by_syncer:
        return desired
    claims = dict(desired.claims)
    for ref, claim in desired.claims.items():
        if not isinstance(claim, Serving):
            continue
        changed = _down(claim, observed, by_pod) | _kept(claim, by_syncer.get(ref, ()))
        if changed:
            claims[ref] = replace(claim, verdicts={**claim.verdicts, **changed})
    return replace(desired, claims=claims)


def _down(
    claim: Serving, observed: Observed, by_pod: Mapping[str, Sequence[ObservedInstance]]
) -> dict[InstanceKey, Verdict]:
    """Return the wanted instances that stay DOWN."""
    down: dict[InstanceKey, Verdict] = {}
    for key, wanted in claim.wanted.items():
        if not wanted.drain_unknown:
            continue
        marked = _marked(wanted.instance, observed.ours.get(key), by_pod)
        unknown = _drained_unknown(marked, wanted.drain_unknown)
        if unknown:
            down[key] = _drained(wanted, unknown)
    return down


def _marked(
    wanted: Instance,
    registered: ObservedInstance | None,
    by_pod: Mapping[str, Sequence[ObservedInstance]],
) -> Sequence[ObservedInstance]:
    """Return the instances whose mark counts for a wanted one: the registered one, or those of its
    pod under other keys."""
    uid = pod_uid_of(wanted)
    if registered is not None and pod_uid_of(registered) == uid:
        return [registered]
    if registered is not None and registered.status is InstanceStatus.UP:
        return ()  # an UP instance of another pod is not turned DOWN
    return by_pod.get(uid, ()) if uid is not None else ()


def _drained(wanted: Wanted, unknown: frozenset[Kind]) -> Wanted:
    """Return the wanted instance as DOWN, with a mark that also names the unknown kinds."""
    metadata = wanted.instance.metadata
    kinds = {*drained_kinds(metadata), *unknown}
    mark = ",".join(kind for kind in Kind if kind in kinds)
    instance = replace(
        wanted.instance, status=InstanceStatus.DOWN, metadata={**metadata, DRAINED: mark}
    )
    why = wanted.why if wanted.drained else _WHY
    return replace(wanted, instance=instance, why=why, drained=True)


def _kept(claim: Serving, marked: Collection[ObservedInstance]) -> dict[InstanceKey, Verdict]:
    """Keep drained instances that are not wanted now. A cancel would delete the mark, and the
    instance would be UP again with the next ready pod, or under the pod's new key."""
    kept: dict[InstanceKey, Verdict] = {}
    if not marked:
        return kept
    drains_unknown = _drains_unknown(claim)
    for registered in marked:
        verdict = claim.verdicts.get(registered.key)
        if isinstance(verdict, Wanted | Taken):
            continue
        why = _WHY
        doubts = drains_unknown.get(pod_uid_of(registered) or "", frozenset())
        if isinstance(verdict, Leaving):
            why = f"{verdict.why}; {_WHY}"
            doubts = verdict.drain_unknown
        if _drained_unknown([registered], doubts):
            instance = registered.instance
            kept[registered.key] = Kept(why=why, host=instance.ip_addr, port=instance.main_port)
    return kept


def _drains_unknown(claim: Serving) -> Mapping[str, frozenset[Kind]]:
    """Return, by pod UID, the kinds of objects whose drain annotation is unknown."""
    leaving: dict[str, frozenset[Kind]] = {}
    wanted: dict[str, frozenset[Kind]] = {}
    for verdict in claim.verdicts.values():
        if isinstance(verdict, Leaving) and verdict.pod is not None:
            leaving[verdict.pod.uid] = verdict.drain_unknown
        elif isinstance(verdict, Wanted):
            wanted[pod_uid_of(verdict.instance) or ""] = verdict.drain_unknown
    wanted.pop("", None)
    return leaving | wanted


def _drained_unknown(
    marked: Iterable[ObservedInstance], drain_unknown: Collection[Kind]
) -> frozenset[Kind]:
    """Return the kinds that the marks of instances that are not UP name, and that cannot be read
    now."""
    named: set[Kind] = set()
    for instance in marked:
        if instance.status is not InstanceStatus.UP:
            named.update(drained_kinds(instance.metadata))
    return frozenset(named.intersection(drain_unknown))


# --- Limits ---------------------------------------------------------------------------------------


def within_limits(desired: Desired, observed: Observed) -> Desired:
    """Apply the syncers' limits; a claim without a limit, or of a suspended syncer, stays as it
    is."""
    to_read = list(desired.to_read)
    limited: dict[SyncerRef, Serving] = {}
    callers = cache(lambda: _Callers(observed))
    for ref, claim in desired.claims.items():
        if not isinstance(claim, Serving):
            continue
        limit = claim.conduct.limit
        if not limit or claim.conduct.suspend:
            continue
        held = observed.keys_by_syncer.get(ref, ()) if claim.keeps_any else ()
        limited[ref], unread = _choose(claim, limit, observed, callers, held)
        to_read += unread
    if not limited:
        return desired
    wanted_by: dict[InstanceKey, SyncerRef] = {}
    for key, ref in desired.wanted_by.items():
        # A key that one syncer leaves out another may want.
        if ref not in limited or limited[ref].wanted_at(key) is not None:
            wanted_by[key] = ref
    claims = {**desired.claims, **limited}
    return replace(desired, claims=claims, wanted_by=wanted_by, to_read=tuple(to_read))


@dataclass(slots=True)
class _Contenders:
    """The ready endpoints of a syncer, each in one group, in the order in which they get places.

    | group          | the endpoint's instance                       | its place                     |
    |----------------|-----------------------------------------------|-------------------------------|
    | staying        | registered, and the limit was not lowered     | always                        |
    | unread         | its uncached read failed                      | always, see below             |
    | served         | UP, registered under a higher limit           | the first of those left       |
    | put_out        | OUT_OF_SERVICE, registered under this limit   | the next: it may be UP again  |
    | newcomers      | not registered                                | the next, if not a kept one's |
    | put_out_before | OUT_OF_SERVICE, registered under a higher one | the last                      |

    An unread instance may be registered, so nothing is registered in its place. Or it may be gone,
    so nothing is removed for it: those that are `served` may take its place."""

    staying: list[InstanceKey] = field(default_factory=list)
    unread: list[InstanceKey] = field(default_factory=list)
    served: list[InstanceKey] = field(default_factory=list)
    put_out: list[InstanceKey] = field(default_factory=list)
    newcomers: list[InstanceKey] = field(default_factory=list)
    put_out_before: list[InstanceKey] = field(default_factory=list)

    def group_of(self, key: InstanceKey, limit: Limit, observed: Observed) -> list[InstanceKey]:
        """Return the group of an endpoint."""
        registered = observed.registered(key) if _has_place(key, observed) else None
        mark = registered.metadata.get(LIMIT, "") if registered else ""
        if registered and not limit.lowered_since(mark):
            return self.staying
        if key in observed.unread:
            return self.unread
        if registered is None:
            return self.newcomers
        if registered.status is InstanceStatus.UP:
            return self.served
        return self.put_out if limit.let_in(mark) else self.put_out_before


def _choose(
    claim: Serving,
    limit: Limit,
    observed: Observed,
    callers: Callable[[], _Callers],
    held: Collection[InstanceKey],
) -> tuple[Serving, list[InstanceKey]]:
    """Return the claim, and the keys to read uncached. `held` are the syncer's keys that may be
    kept."""
    ready = _in_order(claim, observed)
    contenders = _Contenders()
    for key in ready:
        contenders.group_of(key, limit, observed).append(key)

    others = callers().others(claim) if limit.measure is Measure.SHARE else 0
    places = limit.places(pods=_pods_of(claim), others=others)
    chosen = _chosen(contenders, places, len(ready), _kept_beside(claim, observed, held))
    # A syncer with limit 0 has no instance, not even an unread one.
    admitted = {*contenders.staying, *contenders.unread, *chosen} if limit.value else set()
    note = _note(
        limit,
        places,
        ready=len(ready),
        others=others,
        admitted=len(admitted),
        vip=claim.vip_address,
    )

    able = set(ready)
    left_out: dict[InstanceKey, OverLimit] = {}
    for key, wanted in claim.wanted.items():
        # An endpoint that is not ready takes no place, and is left out only by a limit of 0.
        if key not in admitted and (key in able or limit.value == 0):
            left_out[key] = OverLimit(wanted=wanted, why=note)
    limited = replace(claim, verdicts={**claim.verdicts, **left_out}, notes=(*claim.notes, note))

    # The list may not yet show an instance that was registered in place of those that come now.
    newcomers = set(contenders.newcomers)
    if newcomers.isdisjoint(chosen):
        return limited, []
    return limited, [key for key in contenders.newcomers if key in left_out]


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


def _kept_beside(claim: Serving, observed: Observed, held: Iterable[InstanceKey]) -> int:
    """Count the kept instances without a wanted endpoint. Each has a place, or the limit would be
    exceeded once its endpoint is seen again."""
    count = 0
    for key in held:
        unwanted = claim.wanted_at(key) is None and _has_place(key, observed)
        if unwanted and claim.keeps(observed.ours[key]) is not None:
            count += 1
    return count


def _chosen(
    contenders: _Contenders, places: int | None, ready: int, kept: int
) -> list[InstanceKey]:
    """Return the endpoints that get the places left by those that stay. `places` None: there is one
    for each of the `ready`. The `kept` instances of other endpoints keep only newcomers out."""
    before = [*contenders.served, *contenders.put_out]
    taken = len(before) + len(contenders.unread)
    if places is None:
        free = ready
    else:
        free = max(0, places - len(contenders.staying))
        taken += kept
    coming = contenders.newcomers[: max(0, free - taken)]
    return [*before, *coming, *contenders.put_out_before][:free]


def _has_place(key: InstanceKey, observed: Observed) -> bool:
    registered = observed.registered(key)
    return registered is not None and registered.status in HAS_PLACE


def _note(
    limit: Limit, places: int | None, *, ready: int, others: int, admitted: int, vip: str
) -> str:
    if limit.measure is Measure.SHARE:
        others_up = "while no other instance is UP"
        if others:
            others_up = f"with {counted(others, 'other UP instance')}"
        allowed = "all" if places is None else places
        return f"{limit} of VIP {vip} allows {allowed} {others_up}: registers {admitted}"
    allows = ""
    if limit.measure is Measure.PODS and places is not None:
        allows = f" allows {places}"
    registers = "no endpoint is ready"
    if ready:
        registers = f"registers {admitted} of {counted(ready, 'ready endpoint')}"
    return f"limit {limit}{allows}: {registers}"


class _Callers:
    """The UP instances that callers find by each VIP address."""

    def __init__(self, observed: Observed) -> None:
        self._vips: dict[InstanceKey, str] = {}
        for registered in (observed.ours, observed.others):
            for key, instance in registered.items():
                if instance.status is InstanceStatus.UP:
                    self._vips[key] = instance.instance.vip_address
        self._counts = Counter(self._vips.values())
        self._by_syncer = observed.keys_by_syncer
        self._by_name: dict[str, list[str]] = {}
        for vip in self._counts:
            for name in vip_names(vip):
                self._by_name.setdefault(name, []).append(vip)

    def others(self, claim: Serving) -> int:
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
