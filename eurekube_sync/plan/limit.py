"""Which of the ready endpoints are registered where a syncer has a limit.

Who stands stays, then come newcomers in an order that never changes: raising a limit only adds, lowering it only takes
away, and a substitute stays until it dies. What a percentage comes to is worked out anew in each pass, and takes
nothing out when it falls by itself: only an instance whose mark names a higher limit than the spec may go. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from itertools import chain
from zlib import crc32

from eurekube_sync.desired.claims import Claim, Desired, Leaving, OverLimit, Serving
from eurekube_sync.desired.conduct import LIMIT, Limit, Measure
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.value import Choice

_STANDING = (InstanceStatus.UP, InstanceStatus.OUT_OF_SERVICE)
"""What a person put out of service keeps its place: it comes back. Of those that may go it goes first."""


def within_limits(desired: Desired, observed: Observed) -> Choice:
    """Each claim with what its limit lets in; a claim without a limit, or of a suspended syncer, as it is."""
    to_read: list[InstanceKey] = []
    limited: dict[SyncerRef, Serving] = {}
    callers = _Callers(observed) if any(_limit(claim) for claim in desired.claims.values()) else None
    for ref, claim in desired.claims.items():
        limit = _limit(claim)
        if limit is None or callers is None or not isinstance(claim, Serving):
            continue
        held = observed.keys_by_syncer.get(ref, ()) if claim.keeps_any else ()
        limited[ref], unread = _choose(claim, limit, observed, callers, held)
        to_read += unread
    if not limited:
        return Choice(desired=desired)
    claims = {**desired.claims, **limited}
    # What one keeps out another may want.
    wanted_by = {
        key: ref for key, ref in desired.wanted_by.items() if ref not in limited or limited[ref].wanted_at(key)
    }
    return Choice(desired=replace(desired, claims=claims, wanted_by=wanted_by), to_read=tuple(to_read))


def _limit(claim: Claim) -> Limit | None:
    return claim.conduct.limit if isinstance(claim, Serving) and not claim.conduct.suspend else None


def _choose(
    claim: Serving, limit: Limit, observed: Observed, callers: _Callers, held: Collection[InstanceKey]
) -> tuple[Serving, list[InstanceKey]]:
    """The claim, and what is to be read uncached. `held`: what bears its mark, and may stay without being wanted."""
    wanted = claim.wanted
    up = [key for key, one in wanted.items() if one.instance.status is InstanceStatus.UP]
    ready = sorted((key for key in up if not wanted[key].rival or _stands(key, observed)), key=_order)
    registered = [key for key in ready if _stands(key, observed)]
    unseen = sum(_is_kept(key, claim, observed) for key in held)
    pods = len(wanted) + sum(isinstance(one, Leaving) and not one.terminating for one in claim.verdicts.values())
    others = callers.others(claim) if limit.measure is Measure.SHARE else 0
    places = limit.places(pods=pods, others=others)
    staying = [key for key in registered if not limit.lowered_since(_mark(key, observed))]
    # What could not be read may be registered: nobody comes in for it. It may also be gone: nobody goes for it.
    drain_unknown = [key for key in ready if key in observed.unread and key not in staying]
    # Whom callers reach, or will, goes before whom a person put out of service, unless that one was let in under this
    # very limit: a lowered one would leave them nobody.
    rest = [key for key in registered if key not in staying and key not in drain_unknown]
    served = [key for key in rest if _is_up(key, observed)]
    put_out = [key for key in rest if key not in served]
    kept = [key for key in put_out if limit.let_in(_mark(key, observed))]
    newcomers = [key for key in ready if key not in registered and key not in drain_unknown]
    free = len(ready) if places is None else max(0, places - len(staying))
    taken = len(served) + len(kept) + len(drain_unknown) + (0 if places is None else unseen)
    coming = newcomers[: max(0, free - taken)]
    chosen = [*served, *kept, *coming, *(key for key in put_out if key not in kept)][:free]
    # A syncer with limit 0 holds nothing, read or not.
    admitted = {*staying, *drain_unknown, *chosen} if limit.value else set()
    out = [key for key in wanted if key not in admitted and (key in ready or limit.value == 0)]
    note = _note(limit, places, ready=len(ready), others=others, admitted=len(admitted), vip=claim.vip_address)
    comes = any(key in newcomers for key in chosen)
    left_out = {key: OverLimit(wanted=wanted[key], why=f"over the limit: {note}") for key in out}
    limited = replace(claim, verdicts={**claim.verdicts, **left_out}, notes=(*claim.notes, note))
    return limited, [key for key in newcomers if key in left_out] if comes else []


def _stands(key: InstanceKey, observed: Observed) -> bool:
    return key in observed.ours and observed.ours[key].status in _STANDING


def _is_kept(key: InstanceKey, claim: Serving, observed: Observed) -> bool:
    """Whether it stays although nobody knows this time that it is wanted: it has a place, or the limit would be
    exceeded for good once it is seen again."""
    return not claim.wanted_at(key) and _stands(key, observed) and claim.keeps(observed.ours[key]) is not None


def _is_up(key: InstanceKey, observed: Observed) -> bool:
    return observed.ours[key].status is InstanceStatus.UP


def _mark(key: InstanceKey, observed: Observed) -> str:
    return observed.ours[key].metadata.get(LIMIT, "")


def _order(key: InstanceKey) -> tuple[int, InstanceKey]:
    """The same in every pass and after every restart, and no favour to low addresses."""
    return (crc32(key.id.encode()), key)


def _note(limit: Limit, places: int | None, *, ready: int, others: int, admitted: int, vip: str) -> str:
    short = f"; the limit allows {places}" if places is not None and places > ready else ""
    if limit.measure is Measure.SHARE:
        return f"{limit} of VIP {vip}: {admitted} of {admitted + others}{short}"
    return f"limit {limit}: registers {admitted} of {ready} ready{short}"


class _Callers:
    """What callers find under a VIP."""

    def __init__(self, observed: Observed) -> None:
        registered = chain(observed.ours.items(), observed.others.items())
        self._vips = {key: one.instance.vip_address for key, one in registered if one.status is InstanceStatus.UP}
        self._counts = Counter(self._vips.values())
        self._by_syncer = observed.keys_by_syncer
        self._by_name: dict[str, list[str]] = {}
        for vip in self._counts:
            for name in dict.fromkeys(_names(vip)):
                self._by_name.setdefault(name, []).append(vip)

    def others(self, claim: Serving) -> int:
        """How many UP instances, under any VIP of the claim's, are neither its own nor about to be. Of others' none is
        looked at: there may be as many as there are claims."""
        names = {name for wanted in claim.wanted.values() for name in _names(wanted.instance.vip_address)}
        vips = {vip for name in names for vip in self._by_name.get(name, ())}
        own = {*claim.wanted, *self._by_syncer.get(claim.syncer.ref, ())}
        return sum(self._counts[vip] for vip in vips) - sum(self._vips.get(key) in vips for key in own)


def _names(vip_address: str) -> list[str]:
    return [name.casefold() for name in vip_address.split(",") if name]
