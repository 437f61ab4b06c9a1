"""The promises about the instance that a pod registers itself beside ours.

duplicate   at rest no instance of ours is UP beside one that its pod registered itself, that its
            client renews, and that is UP under its address, unless the syncer asks for both, or
            is suspended and its condition says so, or the removal is held
resolved    no instance of ours gives way to a host name that callers outside do not resolve; at
            rest ours is registered beside it, whichever came first, and the condition says why
removed     (of `judge`) ours does not give way to an instance whose client ended long ago
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.embedded.instances import Listed

from .truth import Ref, SyncerTruth
from .view import PassView, State, Violation, is_up, named
from .world import Key

if TYPE_CHECKING:
    from .judge import Judge

_MARK = "eurekube.owner"
_NOTICED = 180.0
"""Seconds after the end of a client in which a pass may still take its instance for a renewed one:
two periods of renewal, beside an instance of ours that is renewed in each pass."""


class Twins:
    """Sees every uncached read, and every removal of an instance of ours."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def saw(self, view: PassView, key: Key, listed: Listed) -> None:
        """Notes that a pass read this uncached."""
        ended = self._judge.world.ended.get(key)
        renewed = ended is None or self._judge.world.clock.time - ended < _NOTICED
        if _MARK not in listed[0].metadata and is_up(listed) and _resolved(listed) and renewed:
            view.serve_themselves.add((key.app, listed[0].ip_addr or ""))

    def gives_way(self, view: PassView, key: Key, ref: Ref) -> bool:
        """Whether ours may be removed: this pass has seen that the pod's own instance is UP, so
        callers lose nothing."""
        truth = self._judge.truth
        held = truth.eligible.get(key)
        if held is None and truth.eligible_until.get(key, -1.0) < view.moment:
            return False  # it went for a reason of its own
        syncer = truth.syncers.get(held.holder) if held else None
        warns = (
            syncer
            and syncer.asked.on_duplicate == "Warn"
            and syncer.since["on_duplicate"] <= view.specs
        )
        if warns or (key.app, _address(key)) not in view.serve_themselves:
            return False
        view.gave_way[key] = ref
        self._judge.reached["an instance that gave way to its pod's own"] += 1
        return True

    def stands_beside(self, key: Key, state: State) -> Key | None:
        """The pod's own instance, if it is UP and callers resolve its host name."""
        return next(
            (other for other, listed in self._of_its_own(key, state) if _resolved(listed)), None
        )

    def is_out_of_reach(self, key: Key) -> bool:
        """Whether all instances at its address, on any server, are its pod's own, UP, and out of
        reach for callers."""
        ip = _address(key)
        there = [
            listed
            for state in self._judge.known
            for other, listed in state.items()
            if other.app == key.app and other != key and listed[0].ip_addr == ip
        ]
        return bool(there) and all(
            _MARK not in one[0].metadata and is_up(one) and not _resolved(one) for one in there
        )

    def _of_its_own(self, key: Key, state: State) -> Iterator[tuple[Key, Listed]]:
        ip = _address(key)
        for other, listed in state.items():
            own = (
                other.app == key.app and listed[0].ip_addr == ip and _MARK not in listed[0].metadata
            )
            if own and other != key and is_up(listed):
                yield other, listed

    def judge_rest(self) -> None:
        """Judges the end of a story."""
        truth = self._judge.truth
        for state in self._judge.known:
            for key in sorted(key for key in self._judge.ours_of(state) if is_up(state[key])):
                if key not in truth.eligible:
                    continue
                syncer = truth.syncers[truth.eligible[key].holder]
                other = self.stands_beside(key, state)
                if other is None:
                    self._judge_unresolved(key, state, syncer)
                    continue
                if other in self._judge.world.ended:
                    self._judge.reached["ours beside an instance whose client ended"] += 1
                    continue
                self._judge.reached["ours beside its pod's own at rest"] += 1
                if syncer.asked.on_duplicate == "Warn" or key in self._judge.held:
                    continue
                told = syncer.conditions.get("Conflict", ("", ""))[0] == "True"
                # Neither a suspended syncer nor --policy upsert-only cancels ours.
                stays = syncer.asked.suspend or self._judge.story.installation.upsert_only
                if not (stays and told):
                    raise Violation(
                        "duplicate",
                        f"{key} of {named(syncer.ref)} is UP beside {other}, its pod's own",
                    )

    def _judge_unresolved(self, key: Key, state: State, syncer: SyncerTruth) -> None:
        """Judges that ours is registered beside a host name that nobody resolves, and that a person
        can read so."""
        other = next((other for other, _ in self._of_its_own(key, state)), None)
        if other is None or syncer.asked.on_duplicate == "Warn" or syncer.asked.suspend:
            return
        self._judge.reached["ours beside a host name that nobody resolves"] += 1
        status, _ = syncer.conditions.get("Conflict", ("", ""))
        if status != "True":
            raise Violation(
                "resolved",
                f"{key} of {named(syncer.ref)} is UP beside {other}, and nothing says so",
            )


def _resolved(listed: Listed) -> bool:
    """Whether callers outside reach it: under its address, and not under the name of a pod."""
    return listed[0].host_name == listed[0].ip_addr


def _address(key: Key) -> str:
    return key.id.split(":")[3]
