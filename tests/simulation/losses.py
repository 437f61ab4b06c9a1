"""The promises about what an app may lose, at every call of a pass.

emptied     on no server an app of ours loses its last instance while an instance to be added is
            missing; nor does a syncer while one of its pods should move to another name. A limit
            adds none if instances that a person put out of service, and pods that register
            themselves, have all its places
brake       no pass removes the last UP instance that may serve of more than one app and 5 % of
            them, unless a person asked for it by a deletion, a drain or a limit; then not of
            more than ten apps and 20 % of them
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .crowds import FLOOR
from .troubles import Call
from .truth import Since
from .view import OUT, PassView, State, Violation, is_up, status_of, syncer_of
from .world import Key, is_apart

if TYPE_CHECKING:
    from .judge import Judge

_ASKED_APPS = 10
_ASKED_PERCENT = 20
"""Number of apps, or part of them, that may go at once because a person asked for it."""
_LIST_IS_OLD = 60.0
"""Seconds in which a pass may not yet see what another copy did."""


class Losses:
    """Compares the state before and after each call."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def judge(self, view: PassView, before: State, now: State) -> None:
        """Judges a call of this pass, unless it only renewed."""
        ups_before = [
            key
            for key in self._judge.ours_of(before)
            if is_up(before[key]) and key not in view.unseen
        ]
        ups_now = {key for key in self._judge.ours_of(now) if is_up(now[key])}
        left = {key.app for key in (*ups_now, *view.gave_way)}  # callers have the pods' own
        for app in sorted({key.app for key in ups_before} - left):
            if self._gone_elsewhere(now, app):
                continue  # what was done on one peer, and its others are about to hear of
            for key, wanted in self._judge.truth.eligible.items():
                known = wanted.since <= view.moment and self._is_told(view, key, wanted)
                missing = key.app == app and known and key not in ups_now
                if (
                    missing
                    and self._is_to_come(view, key)
                    and not self._judge.duplicates(key)
                    and not self._judge.anchors.adrift(key)
                    and not self._cannot_follow_the_dead(view, app, wanted)
                    and not self._judge.overrides.ever(key)
                    and not self._judge.overrides.since_looked(view, app)
                    and not self._has_no_place(view, key, now)
                ):
                    raise Violation(
                        "emptied",
                        f"app {app} went to nothing, and {key}, which is ready, is not there",
                    )
            unreleased = self._unreleased(view, app)
            if unreleased or not any(key.app == app for key in view.taken):
                self._judge_brake(view, app, unreleased, left)
            if self._judge.clock_right:
                self._judge.confirmations.judge(
                    view, unreleased, self._judge.known, self._judge.limits.lost_up
                )
        for key in sorted(view.taken.keys() & set(ups_before) - ups_now):
            self._judge_moved(view, key, ups_now)
        if len(view.taken) + len(view.gave_way) > FLOOR:
            self._judge_size(view)

    def _judge_size(self, view: PassView) -> None:
        judge = self._judge
        stands = {key for state in judge.known for key in judge.ours_of(state) if is_up(state[key])}
        unreleased = [
            key
            for app in sorted({key.app for key in view.taken})
            for key in self._unreleased(view, app)
        ]
        counted = [key for key in unreleased if not self.is_no_loss(view, key)]
        gave_way = [key for key in view.gave_way if not self.released(view, key)]
        judge.sizes.judge(view, counted, gave_way, stands, judge.limits.lost_up)

    def is_no_loss(self, view: PassView, key: Key) -> bool:
        """Whether callers lose nothing by a removal: another pod has its address, its pod is served
        under another name, or another pass saw before that it is dead."""
        judge = self._judge
        seen = (
            judge.confirmations.saw_dead(view, key) or not judge.clock_right
        )  # a wrong clock shortens the wait
        dead = not judge.dead.may_serve(view, key) and seen
        return (
            dead
            or judge.dead.is_anothers(view, key)
            or judge.confirmations.lives_on(key, judge.known)
        )

    def _unreleased(self, view: PassView, app: str) -> list[Key]:
        """The removals of the pass in an app, without those that a person may have released and
        those that the pod's own instance replaces."""
        return [
            key
            for key in view.taken
            if key.app == app
            and not is_apart(view.taken[key][1])
            and not self.released(view, key)
            and not self._judge.duplicates(key)
        ]

    def _judge_moved(self, view: PassView, key: Key, ups_now: set[Key]) -> None:
        """Judges that a pod of a syncer without UP instances should be registered under another
        name."""
        ref, states = view.taken[key], self._judge.known
        of_it = (
            one
            for state in states
            for one in self._judge.ours_of(state)
            if syncer_of(state[one][0]) == ref
        )
        recent = view.begun - _LIST_IS_OLD
        lost = (
            one
            for one, when in self._judge.limits.lost_up.items()
            if when > recent and one not in view.taken
        )
        if any(one in ups_now for one in of_it) or any(lost) or self._judge.duplicates(key):
            return
        if self._is_gone_elsewhere(key):
            return
        for other, wanted in self._judge.truth.eligible.items():
            if (
                other.app == key.app
                or other.id.split(":")[3:] != key.id.split(":")[3:]
                or wanted.holder != ref
            ):
                continue
            if other in ups_now:
                # Callers find it; that it is another syncer's by its mark is for a later write to
                # mend
                continue
            told = wanted.since <= min(view.specs, view.moment) and self._is_to_come(view, other)
            if told and not self._judge.duplicates(other) and not self._judge.overrides.ever(other):
                raise Violation(
                    "emptied",
                    f"{key} went, and {other}, which its pod was to have instead, is not there",
                )

    def _is_gone_elsewhere(self, key: Key) -> bool:
        """Whether another server lacks it already. Only the server where it went first is
        judged."""
        return (
            sum(is_up(state.get(key)) for state in self._judge.known) < len(self._judge.known) - 1
        )

    def _gone_elsewhere(self, now: State, app: str) -> bool:
        """Whether another server has no UP instance of the app already."""
        return any(
            not any(is_up(state[key]) and key.app == app for key in self._judge.ours_of(state))
            for state in self._judge.known
            if state is not now
        )

    def _is_told(self, view: PassView, key: Key, wanted: Since) -> bool:
        """Whether the pass could know the syncer that claims it, and of a pod that ends, that it
        stays."""
        truth = self._judge.truth
        since = truth.syncers[wanted.holder].since
        ends = truth.terminated_since(key, view.moment) and since["terminating"] > view.specs
        return min(since.values()) <= view.specs and not ends

    def _cannot_follow_the_dead(self, view: PassView, app: str, wanted: Since) -> bool:
        """Whether a list failed without which its syncer cannot be served, and only dead pods of
        the app went."""
        judge = self._judge
        if not judge.heirs.is_unread(view, judge.truth.syncers[wanted.holder]):
            return False
        # The list that failed may be that of pods. Slices show that a pod is gone, too.
        sliced = view.lists.get(Call.SLICES, -1.0)
        for key in view.taken:
            gone = judge.dead.ended(view.taken_pods[key]) <= sliced
            if key.app == app and not gone and judge.dead.may_serve(view, key):
                return False
        judge.reached["a last UP instance that went dead before its heir could be read"] += 1
        return True

    def _is_to_come(self, view: PassView, key: Key) -> bool:
        """Whether it, or one in its place, is to be added."""
        if (up := self._judge.truth.up.get(key)) is not None:
            return up.since <= view.moment  # before that a limit of 0 may have taken it out
        syncer = self._judge.truth.syncers[self._judge.truth.eligible[key].holder]
        limit = syncer.asked.limit
        if limit is None or limit.value == 0 or syncer.asked.suspend:
            return False
        since = max(syncer.since["limit"], syncer.since["suspend"])
        return (
            since <= min(view.specs, view.moment)
            and self._judge.limits.least(syncer, view.moment - _LIST_IS_OLD) > 0
        )

    def _has_no_place(self, view: PassView, key: Key, now: State) -> bool:
        """Whether all places of its limit are kept, and no wanted UP instance was removed. A place
        is kept for an instance that a person put out of service, and for a pod that callers reach
        by its own instance. No limit is exceeded for a pod that serves nobody."""
        truth = self._judge.truth
        syncer = truth.syncers[truth.eligible[key].holder]
        gone = [one for one in view.taken if one.app == key.app]
        live = any(
            one in truth.eligible and truth.eligible[one].since <= view.moment for one in gone
        )
        if syncer.asked.limit is None or not gone or live:
            return False
        kept = 0
        for ours in self._judge.ours_of(now):
            if status_of(now[ours]) == OUT and syncer_of(now[ours][0]) == syncer.ref:
                kept += 1
        for pod, wanted in truth.eligible.items():
            itself = (pod.app, pod.id.split(":")[3]) in view.serve_themselves
            if itself and wanted.holder == syncer.ref and self._judge.duplicates(pod):
                kept += 1
        no_place = kept >= self._judge.limits.least(syncer, view.moment - _LIST_IS_OLD)
        self._judge.reached["a last UP instance that went beside a place that is kept"] += no_place
        return no_place

    def _judge_brake(self, view: PassView, app: str, unreleased: list[Key], left: set[str]) -> None:
        moved = [
            key for key in unreleased if self._judge.confirmations.lives_on(key, self._judge.known)
        ]
        if moved and len(moved) == len(unreleased):
            self._judge.reached["an app that changed its name"] += 1
            return
        lost = [key for key in unreleased if self._judge.dead.may_serve(view, key)]
        if unreleased and not lost:
            self._judge.reached["an app of dead pods that went to nothing"] += 1
            return
        apps = len(left | {key.app for key in view.taken} | {app})
        evidence = self._judge.evidence
        if lost and all(evidence.asked_for(view, key) for key in lost):
            if not any(evidence.deleted(view, view.taken[key]) for key in lost):
                self._judge.reached["an app that went to nothing by a drain or a limit"] += 1
            view.emptied_as_asked.add(app)
            count = len(view.emptied_as_asked)
            if count > 1:
                self._judge.reached[
                    "one of several apps that one pass took, and a person asked for"
                ] += 1
            if count > _ASKED_APPS and count * 100 > _ASKED_PERCENT * apps:
                raise Violation(
                    "brake", f"one pass took all of {count} apps of {apps}, as a person asked for"
                )
            return
        view.emptied.add(app)
        if len(view.emptied) > 1 and len(view.emptied) * 20 > apps:
            raise Violation(
                "brake", f"one pass took the last UP instance of {', '.join(sorted(view.emptied))}"
            )

    def released(self, view: PassView, key: Key) -> bool:
        """Whether a person may have released this removal."""
        ref = view.taken[key] if key in view.taken else view.gave_way[key]
        syncer = self._judge.truth.syncers.get(ref)
        annotated = syncer is not None and self._judge.releases.may_free(
            view, syncer, self._judge.world.clock.time
        )
        if annotated:
            self._judge.reached["a removal that an annotation may release"] += 1
        return annotated or key in self._judge.releases.approved(view)
