"""How many instances each limit allows as the world changes, and the promises about limits.

limit       while a limit is the same, no pass makes more instances UP than it allows, but what one
            server has UP may come to the others; none removes instances that it allows; a
            percentage that falls to fewer places by itself removes nothing
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .asked import Limit
from .truth import Ref, SyncerTruth, Truth
from .view import OUT, PassView, State, Violation, is_up, named, status_of, syncer_of
from .world import Key

_LIST_IS_OLD = 50.0
"""Seconds that Eureka's cached list may be old."""


@dataclass(slots=True)
class _History:
    """The numbers that one syncer's limit allowed since it was set."""

    limit: Limit
    since: float
    peak: int = 0
    most_others: int = 0
    places: list[tuple[float, int]] = field(default_factory=list)


class Limits:
    """Sees every change of the world, and every change that a pass makes to instances of a limited
    syncer."""

    def __init__(self, truth: Truth, ours: Callable[[State], Iterator[Key]]) -> None:
        self._truth = truth
        self._ours = ours
        self._known: dict[str, _History] = {}
        self._peaks: dict[tuple[str, Limit], int] = {}
        """By UID and limit, the most places that such a limit had before another was set."""
        self._seen: dict[str, list[tuple[float, list[int]]]] = {}
        """How many instances of others each server held, and since when, by UID."""
        self._written: dict[Key, tuple[str, float]] = {}
        self.lost_up: dict[Key, float] = {}
        """When each key last stopped being UP."""

    def look(self, states: Sequence[State], now: float) -> None:
        """Notes how many instances each limit allows now."""
        for syncer in self._truth.syncers.values():
            counts = [self._others(syncer, state) for state in states]
            seen = self._seen.setdefault(syncer.uid, [])
            if not seen or seen[-1][1] != counts:
                seen.append((now, counts))
            limit = syncer.asked.limit
            if limit is None:
                self._known.pop(syncer.uid, None)
                continue
            history = self._known.get(syncer.uid)
            if history is None or history.limit != limit:
                raised = (
                    history is not None
                    and history.limit.kind == limit.kind
                    and history.limit.value < limit.value
                )
                kept = history.peak if history is not None and raised else 0
                if history is not None:
                    self._peaks[syncer.uid, history.limit] = history.peak
                # What was let in under this very limit, and still stands, stays.
                let_in = self._peaks.get((syncer.uid, limit), 0)
                kept = max(
                    kept, min(let_in, max(self._count_up(syncer, state) for state in states))
                )
                history = _History(limit=limit, since=now, peak=kept)
                self._known[syncer.uid] = history
                self._begin(history, syncer, now)
            others = max(counts) if limit.kind == "share" else 0
            history.most_others = max(history.most_others, others)
            pods = self._truth.pod_count.get(syncer.ref, 0)
            places = limit.places(pods=pods, others=others)
            history.peak = max(
                history.peak, places, limit.places(pods=pods, others=history.most_others)
            )
            if not history.places or history.places[-1][1] != places:
                history.places.append((now, places))

    def _begin(self, history: _History, syncer: SyncerTruth, now: float) -> None:
        """Begins the history of a limit. A list that is read right after it was set may still show
        earlier instances of others."""
        if history.limit.kind != "share":
            return
        pods = self._truth.pod_count.get(syncer.ref, 0)
        seen = self._seen[syncer.uid]
        before = [one for one in seen if one[0] <= now - _LIST_IS_OLD][-1:]
        for when, counts in [*before, *(one for one in seen if now - _LIST_IS_OLD < one[0] < now)]:
            history.most_others = max(history.most_others, *counts)
            history.places.append((when, history.limit.places(pods=pods, others=min(counts))))

    def wrote(self, view: PassView, key: Key, ref: Ref) -> None:
        """Notes that a pass wrote the instance for a syncer."""
        syncer = self._truth.syncers.get(ref)
        self._written[key] = (syncer.uid if syncer else "", view.specs)

    def least(self, syncer: SyncerTruth, since: float) -> int:
        """The fewest places since that moment."""
        places = self._known[syncer.uid].places
        before = [count for when, count in places if when <= since][-1:]
        return min([*before, *(count for when, count in places if when > since)], default=0)

    def most(self, syncer: SyncerTruth) -> int:
        """The most places since the limit was set."""
        return self._known[syncer.uid].peak

    def now(self, syncer: SyncerTruth) -> int:
        """The places now."""
        return self._known[syncer.uid].places[-1][1]

    def judge_brought(
        self, view: PassView, key: Key, state: State, up_since: Mapping[Key, float]
    ) -> None:
        """Judges that a pass made it UP."""
        syncer = self._limited(view, key)
        if syncer is None:
            return
        stand = [
            one
            for one in self._standing(syncer, state)
            if is_up(state[one])
            and (up_since.get(one, 0.0) <= view.begun or one in view.brought)
            and (claimed := self._truth.eligible.get(one))
            and claimed.holder == syncer.ref  # what it gave up by another name is another's by now
            and claimed.since <= view.moment
        ]
        if len(stand) > self.most(syncer):
            what = (
                f"{key} was brought UP as number {len(stand)} of {named(syncer.ref)}, whose "
                "limit is"
            )
            raise Violation("limit", f"{what} {syncer.asked.limit}: {self.most(syncer)}")

    def judge_taken(self, view: PassView, key: Key, state: State) -> None:
        """Judges that a pass cancelled it or turned it DOWN; `state` is the state before."""
        syncer = self._limited(view, key)
        held = self._truth.eligible.get(key)
        if syncer is None or held is None or held.since > view.moment:
            return
        limit = self._known[syncer.uid]
        uid, specs = self._written.get(key, ("", 0.0))
        # What another copy let in since this pass looked is no news that it could have.
        if limit.limit.kind != "count" and uid == syncer.uid and limit.since <= specs <= view.specs:
            raise Violation(
                "limit",
                f"{key} was taken out, and the limit {limit.limit} it was let in by still stands",
            )
        # It may have stood as another syncer's, whose claim this one takes over.
        stand = [
            one
            for one in {key, *self._standing(syncer, state)}
            if status_of(state[one]) in ("UP", OUT)
            and (
                one in self._truth.eligible
                or self._truth.eligible_until.get(one, 0.0) >= view.moment - _LIST_IS_OLD
            )
        ]
        lost = [
            one
            for one, when in self.lost_up.items()
            if when >= view.begun - _LIST_IS_OLD
            and one not in view.taken
            and one not in stand
            and one.app == key.app
        ]
        count = len(stand) + len(lost)
        least = self.least(syncer, min(view.moment, view.eureka or view.begun) - _LIST_IS_OLD)
        if count <= least:
            raise Violation(
                "limit", f"{key} was taken out, and only {count} of {limit.limit} stood"
            )

    def _limited(self, view: PassView, key: Key) -> SyncerTruth | None:
        """The syncer that claims it, if that has a limit that the pass must have seen."""
        held = self._truth.eligible.get(key)
        syncer = self._truth.syncers.get(held.holder) if held else None
        if syncer is None or syncer.uid not in self._known or syncer.asked.suspend:
            return None
        since = max(syncer.since["limit"], syncer.since["suspend"])
        return syncer if since <= min(view.specs, view.moment) else None

    def _standing(self, syncer: SyncerTruth, state: State) -> Iterator[Key]:
        return (key for key in self._ours(state) if syncer_of(state[key][0]) == syncer.ref)

    def _count_up(self, syncer: SyncerTruth, state: State) -> int:
        return sum(is_up(state[key]) for key in self._standing(syncer, state))

    def _others(self, syncer: SyncerTruth, state: State) -> int:
        """UP instances under its VIP that callers find, and that are not the syncer's own, now or
        soon."""
        vip = syncer.app_name.lower()
        mine = set(self._standing(syncer, state))
        return sum(
            is_up(listed)
            and (listed[0].vip_address or "").lower() == vip
            and key not in mine
            and not (key in self._truth.eligible and self._truth.eligible[key].holder == syncer.ref)
            for key, listed in state.items()
        )
