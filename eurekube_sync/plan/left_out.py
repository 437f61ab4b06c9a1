"""Rules that leave wanted instances unregistered, or keep them DOWN. Pure.

Within a limit, registered instances stay, and new ones follow in an order that never changes: a
higher limit only adds, a lower one only removes, and a substitute stays until its pod ends. If a
percentage comes to fewer places by itself, no instance is removed: only an instance whose mark
names a higher limit than the spec may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from itertools import chain
from zlib import crc32

from eurekube_sync.desired.catalog import DRAINED, Kind
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
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import pod_uid_of, syncer_of
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.duplicates import vip_names

_WHY = "a person drained an instance, and it is unknown whether it is still drained"
HAS_PLACE = (InstanceStatus.UP, InstanceStatus.OUT_OF_SERVICE)
"""Statuses that count in a limit: an instance that a person set OUT_OF_SERVICE may be set UP
again."""


def first_registered(desired: Desired, observed: Observed) -> Desired:
    """Give an address that several namespaces claim, and that the cluster gave to none of them, to
    the first: the one that is registered there, else one that could be registered now, of the older
    syncer first."""
    claims_by_bid = {
        Bid(
            key,
            claim.syncer.ref,
            selected_namespace(claim.syncer),
            sockets_of(wanted.instance),
            allotted=False,
        ): claim
        for claim in desired.claims.values()
        if isinstance(claim, Serving)
        for key, rival in claim.rivals.items()
        if rival.right is Right.UNDECIDED and (wanted := claim.wanted_at(key))
    }
    rivals: dict[SyncerRef, dict[InstanceKey, Rival | None]] = {}
    for bid in claims_by_bid:
        rivals.setdefault(bid.syncer, {})[bid.key] = None
    to_read: list[InstanceKey] = []

    def would_register(bid: Bid) -> bool:
        claim = claims_by_bid[bid]
        wanted = claim.wanted_at(bid.key)
        return (
            wanted is not None
            and wanted.instance.status is InstanceStatus.UP
            and not claim.conduct.suspend
        )

    def rank(bid: Bid) -> tuple[bool, bool, tuple[float, SyncerRef]]:
        return (
            observed.registered(bid.key) is None,
            not would_register(bid),
            seniority(claims_by_bid[bid]),
        )

    for bid, others in across_namespaces(tuple(claims_by_bid)):
        first = min(others, key=rank)
        if rank(first) < rank(bid):
            rivals[bid.syncer][bid.key] = Rival(first.syncer, Right.FIRST)
        elif observed.registered(bid.key) is None and would_register(bid):
            to_read += [other.key for other in others]
    by_syncer = {bid.syncer: claim for bid, claim in claims_by_bid.items()}
    outdone = {ref: claim.outdone_by(rivals[ref]) for ref, claim in by_syncer.items()}
    return replace(
        desired, claims={**desired.claims, **outdone}, to_read=(*desired.to_read, *to_read)
    )


def still_drained(desired: Desired, observed: Observed) -> Desired:
    """Return the claims, with DOWN for instances that a Pod or Service drained whose annotation is
    unknown now. All others count as not drained: a missing right must not stop a rollout. A pod's
    mark counts under any key, because the pod may have moved to another name or port."""
    by_pod: dict[str, list[ObservedInstance]] = {}
    by_syncer: dict[SyncerRef, list[ObservedInstance]] = {}
    for one in observed.ours.values():
        if DRAINED in one.metadata and one.status is not InstanceStatus.UP:
            syncer = syncer_of(one)
            assert syncer is not None  # `ours` holds none without
            by_syncer.setdefault(syncer, []).append(one)
            by_pod.setdefault(pod_uid_of(one) or "", []).append(one)
    claims = dict(desired.claims)
    for ref, claim in desired.claims.items() if by_syncer else ():
        if isinstance(claim, Serving):
            changed = {
                **dict(_down(claim, observed, by_pod)),
                **dict(_kept(claim, by_syncer.get(ref, ()))),
            }
            claims[ref] = (
                replace(claim, verdicts={**claim.verdicts, **changed}) if changed else claim
            )
    return replace(desired, claims=claims) if by_syncer else desired


def _down(
    claim: Serving, observed: Observed, by_pod: Mapping[str, Sequence[ObservedInstance]]
) -> Iterator[tuple[InstanceKey, Verdict]]:
    for key, wanted in claim.wanted.items():
        if not wanted.drain_unknown:
            continue
        # The mark may be in the registered instance, or in those of its pod under other keys.
        uid, registered = pod_uid_of(wanted.instance), observed.ours.get(key)
        marked: Sequence[ObservedInstance] = by_pod.get(uid, ()) if uid is not None else ()
        if registered is not None and pod_uid_of(registered) == uid:
            marked = [registered]
        elif registered is not None and registered.status is InstanceStatus.UP:
            marked = ()  # an UP instance of another pod is not turned DOWN
        if unknown := _drained_unknown(marked, wanted.drain_unknown):
            known = _kinds(wanted.instance.metadata)
            mark = ",".join(kind for kind in Kind if kind in known or kind in unknown)
            metadata = {**wanted.instance.metadata, DRAINED: mark}
            instance = replace(wanted.instance, status=InstanceStatus.DOWN, metadata=metadata)
            yield (
                key,
                replace(
                    wanted,
                    instance=instance,
                    why=wanted.why if wanted.drained else _WHY,
                    drained=True,
                ),
            )


def _kept(
    claim: Serving, marked: Iterable[ObservedInstance]
) -> Iterator[tuple[InstanceKey, Verdict]]:
    """Keep drained instances that are not wanted now. A cancel would delete the mark, and the
    instance would be UP again with the next ready pod, or under the pod's new key."""
    verdicts = claim.verdicts.values()
    drain_unknown = {
        pod: one.drain_unknown
        for one in verdicts
        if isinstance(one, Leaving) and (pod := one.pod_uid)
    }
    drain_unknown |= {
        pod: one.drain_unknown
        for one in verdicts
        if isinstance(one, Wanted) and (pod := pod_uid_of(one.instance))
    }
    for registered in marked:
        verdict = claim.verdicts.get(registered.key)
        leaving = verdict if isinstance(verdict, Leaving) else None
        doubts = (
            leaving.drain_unknown
            if leaving
            else drain_unknown.get(pod_uid_of(registered) or "", frozenset())
        )
        if not isinstance(verdict, Wanted | Taken) and _drained_unknown([registered], doubts):
            why = f"{leaving.why}; {_WHY}" if leaving else _WHY
            yield (
                registered.key,
                Kept(why=why, host=registered.instance.ip_addr, port=registered.instance.main_port),
            )


def _drained_unknown(
    those: Iterable[ObservedInstance], drain_unknown: Collection[Kind]
) -> frozenset[Kind]:
    """Return the kinds that the marks of instances that are not UP name, and that cannot be read
    now."""
    marked = [_kinds(one.metadata) for one in those if one.status is not InstanceStatus.UP]
    return frozenset(drain_unknown).intersection(frozenset().union(*marked))


def _kinds(metadata: Mapping[str, str]) -> frozenset[Kind]:
    names = metadata.get(DRAINED, "").split(",")
    return frozenset(kind for kind in Kind if kind in names)


def within_limits(desired: Desired, observed: Observed) -> Desired:
    """Apply the syncers' limits; a claim without a limit, or of a suspended syncer, stays as it
    is."""
    to_read: list[InstanceKey] = []
    limited: dict[SyncerRef, Serving] = {}
    callers = cache(lambda: _Callers(observed))
    for ref, claim in desired.claims.items():
        if isinstance(claim, Serving) and claim.conduct.limit and not claim.conduct.suspend:
            held = observed.keys_by_syncer.get(ref, ()) if claim.keeps_any else ()
            limited[ref], unread = _choose(claim, claim.conduct.limit, observed, callers, held)
            to_read += unread
    if not limited:
        return desired
    owners = desired.wanted_by.items()  # a key that one syncer leaves out another may want
    wanted_by = {
        key: ref for key, ref in owners if ref not in limited or limited[ref].wanted_at(key)
    }
    claims = {**desired.claims, **limited}
    return replace(
        desired, claims=claims, wanted_by=wanted_by, to_read=(*desired.to_read, *to_read)
    )


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
    leaving = claim.of(Leaving).values()
    return len(claim.wanted) + sum(not verdict.terminating for verdict in leaving)


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
    free = ready if places is None else max(0, places - len(contenders.staying))
    before = [*contenders.served, *contenders.put_out]
    taken = len(before) + len(contenders.unread)
    taken += 0 if places is None else kept
    coming = contenders.newcomers[: max(0, free - taken)]
    return [*before, *coming, *contenders.put_out_before][:free]


def _has_place(key: InstanceKey, observed: Observed) -> bool:
    registered = observed.registered(key)
    return registered is not None and registered.status in HAS_PLACE


def _note(
    limit: Limit, places: int | None, *, ready: int, others: int, admitted: int, vip: str
) -> str:
    if limit.measure is Measure.SHARE:
        others_up = (
            f"with {counted(others, 'other UP instance')}"
            if others
            else "while no other instance is UP"
        )
        return (
            f"{limit} of VIP {vip} allows {'all' if places is None else places} {others_up}: "
            f"registers {admitted}"
        )
    allows = f" allows {places}" if limit.measure is Measure.PODS and places is not None else ""
    registers = (
        f"registers {admitted} of {counted(ready, 'ready endpoint')}"
        if ready
        else "no endpoint is ready"
    )
    return f"limit {limit}{allows}: {registers}"


class _Callers:
    """The UP instances that callers find by each VIP address."""

    def __init__(self, observed: Observed) -> None:
        registered = chain(observed.ours.items(), observed.others.items())
        self._vips = {
            key: one.instance.vip_address
            for key, one in registered
            if one.status is InstanceStatus.UP
        }
        self._counts = Counter(self._vips.values())
        self._by_syncer = observed.keys_by_syncer
        self._by_name: dict[str, list[str]] = {}
        for vip in self._counts:
            for name in vip_names(vip):
                self._by_name.setdefault(name, []).append(vip)

    def others(self, claim: Serving) -> int:
        """Count the UP instances under any VIP of the claim that are neither its own nor about to
        be."""
        names = {
            name
            for wanted in claim.wanted.values()
            for name in vip_names(wanted.instance.vip_address)
        }
        vips = {vip for name in names for vip in self._by_name.get(name, ())}
        own = {*claim.wanted, *self._by_syncer.get(claim.syncer.ref, ())}
        return sum(self._counts[vip] for vip in vips) - sum(
            self._vips.get(key) in vips for key in own
        )
