"""What stays DOWN while nobody can read whether it is still drained: what its mark in the registry says was. Pure.

Nothing is taken down here, for nobody can prove that it should be: only what is not UP stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from eurekube_sync.desired import Desired, Serving
from eurekube_sync.drain import DRAINED, Kind
from eurekube_sync.instance import Kept, Wanted
from eurekube_sync.model import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.observed import Observed
from eurekube_sync.ownership import pod_uid_of

_WHY = "it was drained, and whether it still is could not be read"


def still_drained(desired: Desired, observed: Observed) -> Desired:
    """The claims, with DOWN what was drained by a Pod or a Node of which nothing could be read now. All else is as if
    nobody drained it: a right that is missing must not stop a rollout."""
    claims = dict(desired.claims)
    for ref, claim in desired.claims.items():
        if isinstance(claim, Serving):
            wanted, kept = dict(_down(claim, observed)), dict(_kept(claim, observed))
            if wanted or kept:
                leaving = {key: one for key, one in claim.leaving.items() if key not in kept}
                claims[ref] = replace(
                    claim, wanted={**claim.wanted, **wanted}, leaving=leaving, kept={**claim.kept, **kept}
                )
    return replace(desired, claims=claims)


def _down(claim: Serving, observed: Observed) -> Iterator[tuple[InstanceKey, Wanted]]:
    for key, wanted in claim.wanted.items():
        stands = observed.ours.get(key) if wanted.unsure else None
        if stands is None or pod_uid_of(stands) != pod_uid_of(wanted.instance):
            continue  # the mark was another pod's
        if doubtful := _doubtful(stands, wanted.unsure):
            known = _kinds(wanted.instance.metadata)
            mark = ",".join(kind for kind in Kind if kind in known or kind in doubtful)
            instance = replace(
                wanted.instance,
                status=InstanceStatus.DOWN,
                metadata={**wanted.instance.metadata, DRAINED: mark},
            )
            yield key, replace(wanted, instance=instance, why=wanted.why if wanted.drained else _WHY, drained=True)


def _kept(claim: Serving, observed: Observed) -> Iterator[tuple[InstanceKey, Kept]]:
    """A cancel would forget the mark, and the instance come up with the next pod that is ready."""
    for key, leaving in claim.leaving.items():
        stands = observed.ours.get(key) if leaving.unsure else None
        if stands is not None and _doubtful(stands, leaving.unsure):
            why = f"{leaving.why}; {_WHY}"
            yield key, Kept(why=why, host=stands.ip_addr, port=stands.main_port)


def _doubtful(stands: ObservedInstance, unsure: Collection[Kind]) -> frozenset[Kind]:
    """What its mark names and nobody can read; nothing of what is UP all the same."""
    marked = _kinds(stands.metadata) if stands.status is not InstanceStatus.UP else frozenset()
    return marked & frozenset(unsure)


def _kinds(metadata: Mapping[str, str]) -> frozenset[Kind]:
    names = metadata.get(DRAINED, "").split(",")
    return frozenset(kind for kind in Kind if kind in names)
