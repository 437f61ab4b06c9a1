"""When leases were renewed, when they run out, and the promises about that.

lease       no lease of ours expires while the program runs and Eureka answers
renewed     a pass in which nothing went wrong renews every lease in time
expires     an instance that a policy never cancels is DOWN and not renewed, so that it expires
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.embedded.instances import Listed

from .asked import SYNC
from .clock import EPOCH
from .conduct import POLICY
from .view import PassView, State, Violation, is_up, syncer_of
from .world import Key

if TYPE_CHECKING:
    from .judge import Judge

_CACHE = 30.0
"""Seconds that Eureka's list may be old."""
_SEEN = 60.0
"""Seconds after which every list shows a write, and a pass with an older list is over."""
_GONE = "eurekube.gone"
"""The mark of an instance that was turned DOWN instead of cancelled."""
_EVICTION = 60.0


class Leases:
    """Sees each instance that expired, and the end of every pass."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def judge_end(self, key: Key, was: Listed, peer: int) -> None:
        """Judges that one of our instances is gone from this server without a cancel."""
        clock = self._judge.world.clock
        ran_out = expiry(was) - clock.now() + clock.time
        wanted = key in self._judge.truth.eligible or key in self._judge.truth.down
        left_over = not wanted and self._is_gone_elsewhere(key, peer)
        left = is_left(was)
        if (
            ran_out < clock.time
            and self._judge.calm_since + 120 < ran_out
            and not left
            and not left_over
        ):
            raise Violation("lease", f"the lease of {key} ran out at {ran_out:.0f} s")
        if ran_out < clock.time and left:
            self._judge.reached["an instance that a policy left to expire"] += 1

    def judge_renewals(self, view: PassView, before: State, now: State) -> None:
        """Judges a call of this pass that renews."""
        for key, listed in now.items():
            if not is_left(listed) or key not in before or not self._judge.ours(listed):
                continue
            seen = written(listed) + _SEEN < view.begun and not self._may_be_suspended(view, listed)
            if self._judge.truth.is_claimed_by_sync(key):
                continue  # while it cannot be read, it is renewed as it is
            if seen and view.eureka is not None and renewed(listed) > renewed(before[key]):
                raise Violation(
                    "expires", f"{key} was renewed, and is to expire since {written(listed):.0f} s"
                )

    def _may_be_suspended(self, view: PassView, listed: Listed) -> bool:
        syncer = self._judge.truth.syncers.get(syncer_of(listed[0]))
        return syncer is not None and (syncer.asked.suspend or syncer.since["suspend"] > view.specs)

    def judge_rest(self, view: PassView) -> None:
        """Judges the end of a story: an instance left to expire long ago is gone, or its lease is
        over."""
        clock = self._judge.world.clock
        for state in self._judge.known:
            for key in self._judge.ours_of(state):
                listed = state[key]
                if not is_left(listed) or self._may_be_suspended(view, listed):
                    continue
                latest = written(listed) + _SEEN + 2 * duration(listed) + _EVICTION
                if latest < clock.time and expiry(listed) > clock.now():
                    raise Violation("expires", f"{key} stands, and was to expire by {latest:.0f} s")

    def _is_gone_elsewhere(self, key: Key, peer: int) -> bool:
        """Whether another server no longer holds it: an instance that a late renewal of another
        server brought back is left to a sweep."""
        return any(
            key not in state for number, state in enumerate(self._judge.known) if number != peer
        )

    def judge_pass(self, view: PassView, *, period: float) -> None:
        """Judges the end of a pass: each instance that was registered all through it was renewed in
        time."""
        if view.troubled:
            return
        clock, known = self._judge.world.clock, self._judge.known
        allowed = period + self._judge.story.installation.interval + (clock.time - view.begun)
        for key in sorted(self._judge.ours_of(known[0])):
            # Peers tell each other of a renewal, and of a cancel, a moment later: the freshest
            # counts.
            there = [state[key] for state in known if key in state and self._judge.ours(state[key])]
            if len(there) < len(known):
                continue
            gap = clock.now() - max(map(renewed, there))
            # A process that begins after another registered it does not find it in the cached list
            # yet.
            age = clock.now() - min(listed[1].registered for listed in there) / 1000
            cached = _CACHE if age <= allowed + _CACHE else 0.0
            if gap > allowed + cached and not all(map(is_left, there)):
                raise Violation("renewed", f"a whole pass left {key}, not renewed for {gap:.0f} s")


def may_lapse(listed: Listed) -> bool:
    """Whether it may be left to expire: its policy cancels nothing, and it is DOWN."""
    return listed[0].metadata.get(POLICY, SYNC) != SYNC and not is_up(listed)


def is_left(listed: Listed) -> bool:
    """Whether it was turned DOWN instead of cancelled."""
    return _GONE in listed[0].metadata and may_lapse(listed)


def written(listed: Listed) -> float:
    """The second of the story at which it was last registered."""
    return listed[1].registered / 1000 - EPOCH


def duration(listed: Listed) -> float:
    """The seconds of its lease, as registered."""
    return float(listed[0].lease.duration)


def renewed(listed: Listed) -> float:
    """Unix seconds of its last renewal, or of its registration."""
    times = listed[1]
    renewed = (
        times.renewed
        if times.renewed == times.registered
        else times.renewed - duration(listed) * 1000
    )
    return renewed / 1000


def expiry(listed: Listed) -> float:
    """Unix seconds at which its lease ends."""
    return listed[1].renewed / 1000 + duration(listed)
