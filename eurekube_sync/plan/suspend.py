"""What a suspended syncer keeps, and what it gets back: what exists is renewed, and comes back when Eureka lost it.

Eureka's lists are up to 30 s old, and hide what was registered and show what was cancelled in that time. A syncer that
is suspended changes nothing any more, so what a list says of it holds once that much of the suspension was over before
the list was asked for; until then nothing of it is brought back. How many were UP then is in its status, and is never
counted down: what could not come back in one pass comes back in a later one. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eurekube_sync.desired.claims import Claim, Desired, Frozen, Serving
from eurekube_sync.desired.instance import as_it_stands
from eurekube_sync.model.actions import Action, Cancel, Register, Renew, Update
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerObject, SyncerRef, SyncerStatus
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.observe.eureka import Observed

_SUSPENDED = "suspended"


def is_suspended(claim: Claim | None) -> bool:
    """A syncer that cannot be served is suspended all the same: its raw spec says so. A deletion is not."""
    if isinstance(claim, Frozen):
        return claim.syncer.spec.get("suspend") is True
    return isinstance(claim, Serving) and claim.conduct.suspend


def since(syncer: SyncerObject, now: int) -> int:
    """Since when a suspended syncer is seen to be so, in Unix seconds. A spec that no pass has seen counts anew, for it
    may have gone on in between, and so does a time that lies ahead."""
    seen = _seen(syncer)
    return now if seen is None or seen.suspended_since is None else min(seen.suspended_since, now)


def shows_all(observed: Observed, syncer: SyncerObject, cache_seconds: float) -> bool:
    """Whether the list shows just what this suspended syncer has: nothing of it was written in the time that a list may
    hide."""
    seen = _seen(syncer)
    began = seen.suspended_since if seen else None
    return began is not None and observed.asked - began >= cache_seconds


def to_come_back(
    syncer: SyncerObject, registry: Complete[Observed] | Unknown, shown: int, up: int, cache_seconds: float
) -> int | None:
    """How many of a suspended syncer's are UP until it goes on, whatever Eureka loses: as many as the first list that
    shows all has `shown`, or else were UP before; never less. None while no list can tell. `up` are after this pass."""
    if isinstance(registry, Unknown) or not shows_all(registry.data, syncer, cache_seconds):
        seen = _seen(syncer)
        return seen.suspended_up if seen is not None else None
    return max(up, _to_be_up(syncer, shown))


def shown_up(syncer: SyncerRef, observed: Observed) -> int:
    """How many instances that bear this syncer's mark are UP."""
    marked = observed.keys_by_syncer.get(syncer, ())
    return sum(observed.ours[key].status is InstanceStatus.UP for key in marked)


def returning(desired: Desired, observed: Observed, cache_seconds: float) -> tuple[InstanceKey, ...]:
    """All that a suspended syncer may have, when the list shows too few of it: to be read uncached before anything of
    it is brought back, for somebody else may stand there by now."""
    return tuple(
        sorted(key for claim, _ in _bereft(desired, observed, cache_seconds) for key in _absent(claim, observed))
    )


def lost(desired: Desired, observed: Observed, cache_seconds: float) -> frozenset[InstanceKey]:
    """What existed of suspended syncers, as far as anybody knows, and Eureka has no more: it has lost its memory, and
    nobody asked for an outage."""
    found: set[InstanceKey] = set()
    for claim, missing in _bereft(desired, observed, cache_seconds):
        absent = sorted(_absent(claim, observed))
        if not any(key in observed.unread for key in absent):
            found.update(absent[:missing])
    return frozenset(found)


def left_as_it_is(
    action: Action,
    syncer: SyncerObject,
    observed: Observed,
    comes_back: frozenset[InstanceKey],
    cache_seconds: float,
) -> Iterator[Action]:
    """What is left of an action on a suspended syncer's instance: what exists is renewed, and comes back as it was.
    `comes_back` is what was `lost`."""
    if isinstance(action, Register) and action.key in comes_back:
        yield action
    if isinstance(action, Renew):
        yield action if shows_all(observed, syncer, cache_seconds) else replace(action, heal=None)
    if isinstance(action, Update | Cancel):
        stands: ObservedInstance | None = observed.ours.get(action.key)
        assert stands is not None  # a claim that serves, or is frozen, changes what stands alone
        heals = isinstance(action, Update) and stands.status is InstanceStatus.UP
        heals = heals and shows_all(observed, syncer, cache_seconds)
        yield Renew(
            key=action.key,
            syncer=action.syncer,
            why=f"{_SUSPENDED}; {action.why}",
            heal=as_it_stands(stands) if heals else None,
            status=stands.status,
        )


def _seen(syncer: SyncerObject) -> SyncerStatus | None:
    """Its status, if it tells of the spec that it has now."""
    status = syncer.status
    return status if status is not None and status.observed_generation == syncer.generation else None


def _to_be_up(syncer: SyncerObject, shown: int) -> int:
    """What the first list that shows all has `shown`, or, when it has nothing, what the pass before counted."""
    seen = _seen(syncer)
    if seen is not None and seen.suspended_up is not None:
        return seen.suspended_up
    return shown or (syncer.status.up if syncer.status else 0)


def _bereft(desired: Desired, observed: Observed, cache_seconds: float) -> Sequence[tuple[Serving, int]]:
    """The suspended syncers that surely have less than they had, and how many are missing. What a person put out of
    service is not."""
    claims = [c for c in desired.claims.values() if isinstance(c, Serving) and c.conduct.suspend]
    found = []
    for claim in claims:
        if not shows_all(observed, claim.syncer, cache_seconds):
            continue
        marked = observed.keys_by_syncer.get(claim.syncer.ref, ())
        stand = sum(observed.ours[key].status is not InstanceStatus.DOWN for key in marked)
        missing = _to_be_up(claim.syncer, stand) - stand
        if missing > 0:
            found.append((claim, missing))
    return found


def _absent(claim: Serving, observed: Observed) -> Iterator[InstanceKey]:
    """What is ready and does not stand."""
    taken = (observed.ours, observed.others)
    return (
        key
        for key, one in claim.wanted.items()
        if one.instance.status is InstanceStatus.UP and not any(key in known for known in taken)
    )
