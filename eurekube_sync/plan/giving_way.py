"""What becomes of ours where its pod registers itself (see `duplicates`): it gives way, or stays and is warned of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from eurekube_sync.desired.claims import Desired, Serving
from eurekube_sync.model.actions import Action, Cancel, Grounds
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.differences import override_of
from eurekube_sync.plan.duplicates import lacks, registered_by_themselves
from eurekube_sync.plan.ours import for_ours
from eurekube_sync.plan.value import Blocked, Obstacle


def to_give_way_to(desired: Desired, observed: Observed) -> Mapping[InstanceKey, ObservedInstance]:
    """By our key, what a pod registered itself, where its syncer asks for more than a warning."""
    return {
        key: other
        for key, other in registered_by_themselves(desired, observed).items()
        if (claim := desired.server_of(key)) and not claim.conduct.warn_of_duplicates
    }


def beside_its_own(
    key: InstanceKey, other: ObservedInstance, desired: Desired, observed: Observed
) -> Iterator[Blocked | Action]:
    """Ours, beside the `other` that its pod registered itself: it gives way once callers need no more than that one,
    by uncached reads of both. Until then it stays as it is wanted, or they could lose both."""
    claim, found, instance = desired.server_of(key), desired.wanted(key), observed.ours[key]
    assert claim is not None  # it is wanted
    assert found is not None
    wanted = found.instance
    stays = lacks(other, wanted, instance)
    if key in observed.unread or other.key in observed.unread:
        stays = "it could not be read again"
    elif wanted.status is not InstanceStatus.UP:
        stays = "its pod should not be UP"
    elif (override := override_of(instance)) is not None:
        stays = f"a person set the status of our instance to {override.value}"
    yield duplicate(key, claim.syncer.ref, other, stays=stays)
    if stays is not None:
        yield for_ours(key, desired, observed)
    else:
        yield Cancel(
            key=key,
            syncer=claim.syncer.ref,
            why=f"it registers itself as {other.key.id}",
            grounds=Grounds.DUPLICATE,
            proof=claim.proof,
            was=instance.status,
        )


def duplicate(key: InstanceKey, syncer: SyncerRef, other: ObservedInstance, stays: str | None = None) -> Blocked:
    """What is reported of a pod that registers itself; `stays` says why ours stands beside it."""
    beside = f", and our instance stays beside it ({stays})" if stays else ""
    why = f"it registers itself as {other.key.id}{beside}: turn its Eureka client off, or delete the syncer"
    return Blocked(key=key, syncer=syncer, why=why, obstacle=Obstacle.DUPLICATE, other=other.key)


def warned(desired: Desired, observed: Observed) -> Desired:
    """The claims with a warning where pods register themselves as well, and `onDuplicate` asks for no more."""
    told: dict[SyncerRef, list[str]] = {}
    for key, other in registered_by_themselves(desired, observed).items():
        told.setdefault(desired.wanted_by[key], []).append(f"{key.id} registers itself as {other.key.id} as well")
    claims = dict(desired.claims)
    for ref, doubles in told.items():
        claim = claims[ref]
        if isinstance(claim, Serving) and claim.conduct.warn_of_duplicates:
            more = f" (and {len(doubles) - 1} more)" if len(doubles) > 1 else ""
            claims[ref] = replace(claim, warnings=(*claim.warnings, f"{min(doubles)}{more}: it gets twice the calls"))
    return replace(desired, claims=claims)
