"""The promise about the last UP instance of an app, at the end of every pass of the program.

last        a pass that takes the last UP instance of an app does not end as if all were well
            while a ready pod that a syncer of the app selects is not registered, whatever the
            reason; unless a person asked for it with a limit, a suspension, a drain or a
            deletion
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .truth import SyncerTruth
from .view import PassView, Violation, is_up, named
from .world import TEAMS, Key

if TYPE_CHECKING:
    from .judge import Judge


class LastOnes:
    """Sees the end of every pass."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def judge_pass(self, view: PassView, *, well: bool) -> None:
        """Judges the end of a pass; `well` says whether it reported that all is well."""
        judge = self._judge
        if judge.eureka_lost_all > view.begun:
            return  # what the pass registered, or left, went with it
        up = {key.app for state in judge.known for key in judge.ours_of(state) if is_up(state[key])}
        lost = {key.app for key in view.taken} - up
        for key, wanted in sorted(judge.truth.up.items()):
            if key.app not in lost or wanted.since > min(view.begun, view.moment) or view.older:
                continue
            syncer = judge.truth.syncers[wanted.holder]
            if not self._waits(view, key, syncer):
                continue
            judge.reached["an app that lost its last UP instance while a ready pod waits"] += 1
            if well:
                told = f"{key}, a ready pod of {named(syncer.ref)}, is not registered"
                raise Violation(
                    "last", f"a pass took the last of app {key.app}, {told}, and the exit code is 0"
                )

    def _waits(self, view: PassView, key: Key, syncer: SyncerTruth) -> bool:
        """Whether the pass must have seen that this pod is to be registered, and it is not."""
        judge = self._judge
        if judge.story.installation.halves and TEAMS[syncer.app] != "one":
            return False  # it is for the other half, which makes passes of its own
        registered = any(key in state for state in judge.known)
        told = max(syncer.since.values()) <= view.specs
        return (
            told and not registered and not judge.duplicates(key) and not judge.overrides.ever(key)
        )
