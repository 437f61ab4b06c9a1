"""Rules of the first list. If several namespaces claim an address that the cluster gave to none of them, the first that
is registered has it. While nobody can read what is drained, what was drained before stays DOWN. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from eurekube_sync.desired.claims import (
    Desired,
    Kept,
    Leaving,
    Right,
    Rival,
    Serving,
    Taken,
    Verdict,
    Wanted,
    seniority,
)
from eurekube_sync.desired.drain import DRAINED, Kind
from eurekube_sync.desired.rivals import Bid, across_namespaces, sockets_of
from eurekube_sync.desired.spec import selected_namespace
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import pod_uid_of, syncer_of
from eurekube_sync.model.values import dataclass
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.value import Choice


def first_registered(desired: Desired, observed: Observed) -> Choice:
    """The claims, of which one may register at each such address: the one that is registered there, else the one that
    would be now, of the older syncer first."""
    bidding = {bid: claim for claim in desired.claims.values() if isinstance(claim, Serving) for bid in _bids(claim)}
    settled: dict[SyncerRef, dict[InstanceKey, Rival]] = {bid.syncer: {} for bid in bidding}
    to_read: list[InstanceKey] = []

    def rank(bid: Bid) -> tuple[bool, bool, tuple[float, SyncerRef]]:
        return (bid.key not in observed.ours, not _comes_in(bidding[bid], bid.key), seniority(bidding[bid]))

    for bid, others in across_namespaces(tuple(bidding)):
        first = min(others, key=rank)
        if rank(first) < rank(bid):
            settled[bid.syncer][bid.key] = Rival(first.syncer, Right.FIRST)
        elif bid.key not in observed.ours and _comes_in(bidding[bid], bid.key):
            to_read += [other.key for other in others]
    undecided: dict[SyncerRef, dict[InstanceKey, None]] = {}
    for bid in bidding:
        undecided.setdefault(bid.syncer, {})[bid.key] = None
    claims = dict(desired.claims)
    for ref, outdone in settled.items():
        claim = claims[ref]
        assert isinstance(claim, Serving)  # no other bids
        claims[ref] = claim.outdone_by({**undecided[ref], **outdone})
    return Choice(desired=replace(desired, claims=claims), to_read=tuple(to_read))


def _bids(claim: Serving) -> Iterator[Bid]:
    for key, rival in claim.rivals.items():
        wanted = claim.wanted_at(key) if rival.right is Right.UNDECIDED else None
        if wanted is not None:
            sockets = sockets_of(wanted.instance)
            namespace = selected_namespace(claim.syncer)
            yield Bid(key, claim.syncer.ref, namespace, sockets, allotted=False)


def _comes_in(claim: Serving, key: InstanceKey) -> bool:
    """Whether it would be registered if nobody else claimed its address."""
    wanted = claim.wanted_at(key)
    return wanted is not None and wanted.instance.status is InstanceStatus.UP and not claim.conduct.suspend


_WHY = "it was drained, and it is unknown whether it still is"


def still_drained(desired: Desired, observed: Observed) -> Choice:
    """The claims, with DOWN what was drained by a Pod or a Node of which nothing could be read now. All else is as if
    nobody drained it: a right that is missing must not stop a rollout.

    The mark of a pod is found under whatever key: it may move to another name or port meanwhile. It is not registered
    there, and what bears its mark stays."""
    marks = _Marks.of(observed)
    if marks is None:
        return Choice(desired=desired)
    claims = dict(desired.claims)
    for ref, claim in desired.claims.items():
        if isinstance(claim, Serving) and (changed := _changed(claim, observed, marks)):
            claims[ref] = replace(claim, verdicts={**claim.verdicts, **changed})
    return Choice(desired=replace(desired, claims=claims))


@dataclass(frozen=True, slots=True)
class _Marks:
    """What is registered with a mark, but for what is UP all the same."""

    by_pod: Mapping[str, Sequence[ObservedInstance]]
    """By the pod's UID; empty for what has none."""
    by_syncer: Mapping[SyncerRef, Sequence[ObservedInstance]]

    @staticmethod
    def of(observed: Observed) -> _Marks | None:
        """None where there are none."""
        by_pod: dict[str, list[ObservedInstance]] = {}
        by_syncer: dict[SyncerRef, list[ObservedInstance]] = {}
        for one in observed.ours.values():
            if DRAINED in one.metadata and one.status is not InstanceStatus.UP:
                syncer = syncer_of(one)
                assert syncer is not None  # `ours` holds none without
                by_syncer.setdefault(syncer, []).append(one)
                by_pod.setdefault(pod_uid_of(one) or "", []).append(one)
        return _Marks(by_pod, by_syncer) if by_syncer else None


def _changed(claim: Serving, observed: Observed, marks: _Marks) -> dict[InstanceKey, Verdict]:
    return {**dict(_down(claim, observed, marks)), **dict(_kept(claim, marks))}


def _down(claim: Serving, observed: Observed, marks: _Marks) -> Iterator[tuple[InstanceKey, Wanted]]:
    for key, wanted in claim.wanted.items():
        if wanted.drain_unknown and (
            to_read := _drained_unknown(_bearing(key, wanted, observed, marks), wanted.drain_unknown)
        ):
            known = _kinds(wanted.instance.metadata)
            mark = ",".join(kind for kind in Kind if kind in known or kind in to_read)
            instance = replace(
                wanted.instance,
                status=InstanceStatus.DOWN,
                metadata={**wanted.instance.metadata, DRAINED: mark},
            )
            yield key, replace(wanted, instance=instance, why=wanted.why if wanted.drained else _WHY, drained=True)


def _bearing(key: InstanceKey, wanted: Wanted, observed: Observed, marks: _Marks) -> Collection[ObservedInstance]:
    """What may have the mark of a wanted instance: the registered one, else those of its pod under other keys."""
    uid, registered = pod_uid_of(wanted.instance), observed.ours.get(key)
    if registered is not None and pod_uid_of(registered) == uid:
        return [registered]
    taken = (
        registered is not None and registered.status is InstanceStatus.UP
    )  # another pod's: nothing is taken down here
    return marks.by_pod.get(uid, ()) if uid is not None and not taken else ()


def _kept(claim: Serving, marks: _Marks) -> Iterator[tuple[InstanceKey, Kept]]:
    """A cancel would forget the mark, and the instance come up with the next pod that is ready, or under the pod's new
    key."""
    verdicts = claim.verdicts.values()
    drain_unknown = {pod: one.drain_unknown for one in verdicts if isinstance(one, Leaving) and (pod := one.pod_uid)}
    drain_unknown |= {
        pod: one.drain_unknown for one in verdicts if isinstance(one, Wanted) and (pod := pod_uid_of(one.instance))
    }
    for registered in marks.by_syncer.get(claim.syncer.ref, ()):
        verdict = claim.verdicts.get(registered.key)
        leaving = verdict if isinstance(verdict, Leaving) else None
        doubts = leaving.drain_unknown if leaving else drain_unknown.get(pod_uid_of(registered) or "", frozenset())
        if not isinstance(verdict, Wanted | Taken) and _drained_unknown([registered], doubts):
            why = f"{leaving.why}; {_WHY}" if leaving else _WHY
            yield registered.key, Kept(why=why, host=registered.instance.ip_addr, port=registered.instance.main_port)


def _drained_unknown(those: Collection[ObservedInstance], drain_unknown: Collection[Kind]) -> frozenset[Kind]:
    """What their marks name and nobody can read; nothing of what is UP all the same."""
    marked = [_kinds(one.metadata) for one in those if one.status is not InstanceStatus.UP]
    return frozenset(drain_unknown).intersection(frozenset().union(*marked))


def _kinds(metadata: Mapping[str, str]) -> frozenset[Kind]:
    names = metadata.get(DRAINED, "").split(",")
    return frozenset(kind for kind in Kind if kind in names)
