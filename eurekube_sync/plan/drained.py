"""What stays DOWN while nobody can read whether it is still drained: what its mark in the registry says was. Pure.

Nothing is taken down here, for nobody can prove that it should be: only what is not UP stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from eurekube_sync.desired.claims import Desired, Serving
from eurekube_sync.desired.drain import DRAINED, Kind
from eurekube_sync.desired.verdicts import Kept, Leaving, Taken, Verdict, Wanted
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import pod_uid_of, syncer_of
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.value import Choice

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
    """What stands with a mark, but for what is UP all the same."""

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
        if wanted.unsure and (doubtful := _doubtful(_bearing(key, wanted, observed, marks), wanted.unsure)):
            known = _kinds(wanted.instance.metadata)
            mark = ",".join(kind for kind in Kind if kind in known or kind in doubtful)
            instance = replace(
                wanted.instance,
                status=InstanceStatus.DOWN,
                metadata={**wanted.instance.metadata, DRAINED: mark},
            )
            yield key, replace(wanted, instance=instance, why=wanted.why if wanted.drained else _WHY, drained=True)


def _bearing(key: InstanceKey, wanted: Wanted, observed: Observed, marks: _Marks) -> Collection[ObservedInstance]:
    """What may bear the mark of what is wanted: what stands of it, else what stands of its pod elsewhere."""
    uid, stands = pod_uid_of(wanted.instance), observed.ours.get(key)
    if stands is not None and pod_uid_of(stands) == uid:
        return [stands]
    taken = stands is not None and stands.status is InstanceStatus.UP  # another pod's: nothing is taken down here
    return marks.by_pod.get(uid, ()) if uid is not None and not taken else ()


def _kept(claim: Serving, marks: _Marks) -> Iterator[tuple[InstanceKey, Kept]]:
    """A cancel would forget the mark, and the instance come up with the next pod that is ready, or under the pod's new
    key."""
    verdicts = claim.verdicts.values()
    unsure = {pod: one.unsure for one in verdicts if isinstance(one, Leaving) and (pod := one.pod_uid)}
    unsure |= {pod: one.unsure for one in verdicts if isinstance(one, Wanted) and (pod := pod_uid_of(one.instance))}
    for stands in marks.by_syncer.get(claim.syncer.ref, ()):
        verdict = claim.verdicts.get(stands.key)
        leaving = verdict if isinstance(verdict, Leaving) else None
        doubts = leaving.unsure if leaving else unsure.get(pod_uid_of(stands) or "", frozenset())
        if not isinstance(verdict, Wanted | Taken) and _doubtful([stands], doubts):
            why = f"{leaving.why}; {_WHY}" if leaving else _WHY
            yield stands.key, Kept(why=why, host=stands.instance.ip_addr, port=stands.instance.main_port)


def _doubtful(standing: Collection[ObservedInstance], unsure: Collection[Kind]) -> frozenset[Kind]:
    """What their marks name and nobody can read; nothing of what is UP all the same."""
    marked = [_kinds(one.metadata) for one in standing if one.status is not InstanceStatus.UP]
    return frozenset(unsure).intersection(frozenset().union(*marked))


def _kinds(metadata: Mapping[str, str]) -> frozenset[Kind]:
    names = metadata.get(DRAINED, "").split(",")
    return frozenset(kind for kind in Kind if kind in names)
