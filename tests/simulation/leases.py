"""When leases were renewed, when they run out, and the promises about that.

lease       no lease of ours expires while the program runs and Eureka answers
renewed     a pass in which nothing went wrong renews every lease in time
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.embedded.instances import Listed

from .view import PassView, Violation
from .world import Key

if TYPE_CHECKING:
    from .judge import Judge

_CACHE = 30.0
"""Seconds that Eureka's list may be old."""


class Leases:
    """Sees each instance that expired, and the end of every pass."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def judge_end(self, key: Key, was: Listed, peer: int) -> None:
        """Judges that one of our instances is gone from this server without a cancel."""
        clock = self._judge.world.clock
        ran_out = expiry(was) - clock.now() + clock.time
        # A pod that is not ready is not registered anew, so nothing is to be renewed for it.
        left_over = key not in self._judge.truth.eligible and self._is_gone_elsewhere(key, peer)
        if ran_out < clock.time and self._judge.calm_since + 120 < ran_out and not left_over:
            raise Violation("lease", f"the lease of {key} ran out at {ran_out:.0f} s")

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
            if gap > allowed + cached:
                raise Violation("renewed", f"a whole pass left {key}, not renewed for {gap:.0f} s")


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
