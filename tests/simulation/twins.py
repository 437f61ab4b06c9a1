"""The promise about what a pod registers of itself beside ours.

twin        at rest none of ours is UP beside what its pod registered itself, and that is UP, unless its syncer asks for
            both, or is suspended and says so
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eurekube_sync.embedded.eureka.instance import Listed

from .view import PassView, State, Violation, is_up, named
from .world import Key

if TYPE_CHECKING:
    from .judge import Judge

_MARK = "eurekube.owner"


class Twins:
    """Sees every uncached read, and every instance of ours that a pass takes out."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def saw(self, view: PassView, key: Key, listed: Listed) -> None:
        """A pass read this uncached."""
        if _MARK not in listed[0].metadata and is_up(listed):
            view.serve_themselves.add((key.app, listed[0].ip_addr or ""))

    def gives_way(self, view: PassView, key: Key) -> bool:
        """Whether ours may go, for this pass has seen that its pod's own is UP: callers lose nothing by it."""
        truth = self._judge.truth
        held = truth.eligible.get(key)
        if held is None and truth.eligible_until.get(key, -1.0) < view.moment:
            return False  # it went for a reason of its own
        syncer = truth.syncers.get(held.holder) if held else None
        warns = syncer and syncer.asked.on_duplicate == "Warn" and syncer.since["on_duplicate"] <= view.specs
        if warns or (key.app, _address(key)) not in view.serve_themselves:
            return False
        view.gave_way.add(key)
        self._judge.reached["an instance that gave way to its pod's own"] += 1
        return True

    def stands_beside(self, key: Key, state: State) -> Key | None:
        """What its pod has registered itself, when that is UP."""
        ip = _address(key)
        for other, listed in state.items():
            own = other.app == key.app and listed[0].ip_addr == ip and _MARK not in listed[0].metadata
            if own and other != key and is_up(listed):
                return other
        return None

    def judge_rest(self) -> None:
        """At the end of a story."""
        truth = self._judge.truth
        for state in self._judge.known:
            for key in sorted(key for key in self._judge.ours_of(state) if is_up(state[key])):
                other = self.stands_beside(key, state) if key in truth.eligible else None
                if other is None:
                    continue
                syncer = truth.syncers[truth.eligible[key].holder]
                self._judge.reached["ours beside its pod's own at rest"] += 1
                if syncer.asked.on_duplicate == "Warn":
                    continue
                told = syncer.conditions.get("Conflict", ("", ""))[0] == "True"
                if not (syncer.asked.suspend and told):
                    raise Violation("twin", f"{key} of {named(syncer.ref)} is UP beside {other}, its pod's own")


def _address(key: Key) -> str:
    return key.id.split(":")[3]
