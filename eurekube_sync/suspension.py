"""What a suspended syncer keeps, and what it gets back: what exists is renewed, and comes back when Eureka lost it.

Eureka's lists are up to 30 s old, and hide what was registered and show what was cancelled in that time. A syncer that
is suspended changes nothing any more, so what a list says of it holds once that much of the suspension was over before
the list was asked for; until then nothing of it is brought back. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eurekube_sync.actions import Action, Cancel, Register, Renew, Update
from eurekube_sync.desired import Claim, Desired, Frozen, Serving
from eurekube_sync.instance import as_it_stands
from eurekube_sync.model import InstanceKey, InstanceStatus, ObservedInstance, SyncerObject
from eurekube_sync.observed import Observed, keys_by_syncer

_SUSPENDED = "suspended"


def is_suspended(claim: Claim | None) -> bool:
    """A syncer that cannot be served is suspended all the same: its raw spec says so. A deletion is not."""
    if isinstance(claim, Frozen):
        return claim.syncer.spec.get("suspend") is True
    return isinstance(claim, Serving) and claim.conduct.suspend


def shows_all(observed: Observed, syncer: SyncerObject, cache_seconds: float) -> bool:
    """Whether the list shows just what this suspended syncer has: nothing of it was written in the time that a list may
    hide."""
    since = syncer.status.suspended_since if syncer.status else None
    return since is not None and observed.asked - since >= cache_seconds


def returning(desired: Desired, observed: Observed, cache_seconds: float) -> tuple[InstanceKey, ...]:
    """All that a suspended syncer may have, when the list shows nothing of it: to be read uncached before anything of
    it is brought back, for somebody else may stand there by now."""
    return tuple(sorted(key for claim in _bereft(desired, observed, cache_seconds) for key in _ready(claim)))


def lost(desired: Desired, observed: Observed, cache_seconds: float) -> frozenset[InstanceKey]:
    """What existed of suspended syncers, as far as anybody knows, when Eureka has none of it any more: it has lost its
    memory, and nobody asked for an outage."""
    found: set[InstanceKey] = set()
    for claim in _bereft(desired, observed, cache_seconds):
        ready = sorted(_ready(claim))
        if claim.syncer.status is not None and not any(key in observed.unread for key in ready):
            found.update(ready[: claim.syncer.status.up])
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


def _bereft(desired: Desired, observed: Observed, cache_seconds: float) -> Sequence[Serving]:
    """The suspended syncers that surely have nothing any more."""
    claims = [c for c in desired.claims.values() if isinstance(c, Serving) and c.conduct.suspend]
    trusted = [claim for claim in claims if shows_all(observed, claim.syncer, cache_seconds)]
    standing = keys_by_syncer(observed) if trusted else {}
    return [claim for claim in trusted if claim.syncer.ref not in standing]


def _ready(claim: Serving) -> Iterator[InstanceKey]:
    return (key for key, one in claim.wanted.items() if one.instance.status is InstanceStatus.UP)
