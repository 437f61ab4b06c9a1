"""How many instances each limit allows as the world changes, and the promises about limits.

limit       while a limit is the same, no pass makes more instances UP than it allows, but what one
            server has UP may come to the others; none removes instances that it allows; a
            percentage that falls to fewer places by itself removes nothing. What a percentage let
            in may stay if the syncer is created again, if an heir has the same limit or a higher
            one, or if the limit was gone for a moment that no pass saw
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.embedded.instances import Listed

from .asked import Limit
from .truth import Ref, SyncerTruth, Truth
from .view import OUT, PassView, State, Violation, is_up, named, status_of, syncer_of
from .world import Key

_LIST_IS_OLD = 50.0
"""Seconds that Eureka's cached list may be old."""
_HAS_A_PLACE = ("UP", OUT)
"""Statuses that count in a limit."""


@dataclass(slots=True)
class _History:
    """The numbers that one syncer's limit allowed since it was set."""

    limit: Limit
    since: float
    peak: int = 0
    most_others: int = 0
    places: list[tuple[float, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Written:
    """For whom an instance was last written."""

    uid: str
    """The syncer's; empty if it did not exist any more."""
    specs: float
    """The moment of the specs that the pass had read."""
    limit: Limit | None
    """The syncer's limit at that moment."""

    def stays_under(self, limit: Limit) -> bool:
        """Whether the instance may stay under this limit, whatever that allows by now. A number is
        exact, so nothing stays for it."""
        before = self.limit
        if before is None or before.kind != limit.kind or limit.kind == "count":
            return False
        return before.value <= limit.value


class Limits:
    """Sees every change of the world, and every change that a pass makes to instances of a limited
    syncer."""

    def __init__(self, truth: Truth, ours: Callable[[State], Iterator[Key]]) -> None:
        self._truth = truth
        self._ours = ours
        self._known: dict[str, _History] = {}
        self._asked: dict[Ref, list[tuple[float, Limit | None]]] = {}
        """The limits that syncers of each name had, and since when."""
        self._seen: dict[str, list[tuple[float, list[int]]]] = {}
        """How many instances of others each server held, and since when, by UID."""
        self._written: dict[Key, _Written] = {}
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
            asked = self._asked.setdefault(syncer.ref, [])
            if not asked or asked[-1][1] != limit:
                asked.append((now, limit))
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
                # What was let in under this very limit or a lower one, and still stands, stays.
                kept = max(kept, self._let_in(syncer, limit, states))
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
            # So does what was let in for an earlier syncer, of this name or another.
            history.peak = max(history.peak, self._let_in(syncer, limit, states, by_others=True))
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

    def wrote(self, view: PassView, key: Key, listed: Listed) -> None:
        """Notes that a pass wrote the instance for the syncer that its mark names. A limit lets in
        none that is DOWN."""
        if status_of(listed) not in _HAS_A_PLACE:
            self._written.pop(key, None)
            return
        ref = syncer_of(listed[0])
        syncer = self._truth.syncers.get(ref)
        asked = [limit for when, limit in self._asked.get(ref, ()) if when <= view.specs]
        self._written[key] = _Written(
            uid=syncer.uid if syncer else "",
            specs=view.specs,
            limit=asked[-1] if asked else None,
        )

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
        written = self._written.get(key)
        if (
            limit.limit.kind != "count"
            and written is not None
            and written.uid == syncer.uid
            # What another copy let in since this pass looked is no news that it could have.
            and limit.since <= written.specs <= view.specs
        ):
            raise Violation(
                "limit",
                f"{key} was taken out, and the limit {limit.limit} it was let in by still stands",
            )
        # It may have stood as another syncer's, whose claim this one takes over.
        stand = [
            one
            for one in {key, *self._standing(syncer, state)}
            if status_of(state[one]) in _HAS_A_PLACE
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

    def _let_in(
        self,
        syncer: SyncerTruth,
        limit: Limit,
        states: Sequence[State],
        *,
        by_others: bool = False,
    ) -> int:
        """How many instances that it claims are UP, and were last written under this limit or a
        lower one; with `by_others`, only those that were written for another syncer."""
        return max(
            sum(
                self._claims(syncer, key, state[key])
                and is_up(state[key])
                and key in self._written
                and self._written[key].stays_under(limit)
                and not (by_others and self._written[key].uid == syncer.uid)
                for key in self._ours(state)
            )
            for state in states
        )

    def _claims(self, syncer: SyncerTruth, key: Key, listed: Listed) -> bool:
        """Whether an instance has its mark, or is of a pod that it has to register."""
        claim = self._truth.eligible.get(key)
        return syncer_of(listed[0]) == syncer.ref or (
            claim is not None and claim.holder == syncer.ref
        )

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
