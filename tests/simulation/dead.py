"""The promises about dead pods, at the end of every pass of the program.

dead        no dead pod is UP for more than three good passes in a row, and 20 s, unless its pod
            may live, or the installation cancels nothing; this also holds while other removals
            are held, and for instances that an abandoned deletion left
address     if another ready pod of the same namespace has the address and port of a dead one, be it
            its own or its node's, the dead one is UP there under its app for at most one good pass,
            whatever is held; else as long as any dead pod
held app    a removal that a test of the whole pass holds is of an app that loses instances in
            this pass

A good pass read everything, and no call of it failed. A pod is dead when its object is gone. The
deletion of one of several pods, a rollout during a hold, or a hold of another team must not keep it
UP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING

from tests.embedded.instances import Listed

from .story import Mode
from .troubles import Call
from .truth import Ref
from .view import PassView, State, Violation, is_up, pod_of, syncer_of
from .world import TEAMS, Key, app_apart

if TYPE_CHECKING:
    from eurekube_sync.controller.one_pass import PassReport

    from .judge import Judge

_MOST = 3
"""Good passes that may leave a dead pod UP."""
_CONFIRM = 21.0
"""Seconds from the first of them to a pass that must not: a removal may wait 20 s for a second
look."""
_LIST_IS_OLD = 31.0
"""Seconds that Eureka's list may be old."""
_RECENT = 60.0
_OF_THE_PASS = "TooManyRemovals"
_OF_AN_EARLIER_CRD = "CRDInstalled"


class Dead:
    """Remembers when each pod ended, and how long its instance stayed registered after that."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._known: frozenset[str] = frozenset()
        self._ended: dict[str, float] = {}
        """When each pod ended, by its UID."""
        self._apps: dict[str, tuple[str, str]] = {}
        """The namespace and label of each pod that ever existed, by its UID."""
        self._heard: dict[str, dict[str, tuple[float, float]]] = {}
        """The ready pods seen to listen at each address, each with its latest first and its last
        moment."""
        self._listening: frozenset[str] = frozenset()
        self._crds: dict[str, float] = {}
        """Since when each CRD exists, by its UID."""
        self._dead: dict[Key, tuple[float, int]] = {}
        """Since when, and for how many good passes, each dead instance is registered."""
        self._sets: dict[Ref, frozenset[Key]] = {}
        """The dead instances of each syncer after the last good pass."""
        self._orphaned: frozenset[Ref] = frozenset()
        """Those of these syncers that did not exist."""
        self._process: object | None = None
        self._misled: dict[Key, int] = {}

    def look(self, now: float) -> None:
        """Notes the pods that live now."""
        truth = self._judge.truth
        self._ended.update(dict.fromkeys(self._known - truth.pods, now))
        self._known = truth.pods
        self._apps.update(truth.labels)
        for uid, address in [*truth.listening.items(), *truth.hosted.items()]:
            since, _ = self._heard.setdefault(address, {}).get(uid, (now, now))
            if uid not in self._listening:
                since = now
            self._heard[address][uid] = (since, now)
        self._listening = frozenset(truth.listening)
        self._crds.setdefault(truth.crd_uid, now)

    def clock_is_wrong(self) -> None:
        """Notes that the wall clock changed, by which a wait may begin again."""
        self._dead.clear()

    # --- What other promises ask ------------------------------------------------------------------

    def ended(self, uid: str) -> float:
        """When the pod ended."""
        return self._ended.get(uid, inf)

    def may_serve(self, view: PassView, key: Key) -> bool:
        """Whether a removed instance may still have served, as far as the pass could know."""
        uid = view.taken_pods[key]
        return self.ended(uid) > self.listed(view, uid) and not self.is_anothers(view, key)

    def listed(self, view: PassView, uid: str) -> float:
        """The latest moment that this pass's lists of pods show, if the pod would be in them; else
        before all time."""
        return max(view.pods_listed.get(self._namespace(uid), -1.0), view.pods_listed.get("", -1.0))

    def is_anothers(self, view: PassView, key: Key) -> bool:
        """Whether another ready pod of its namespace has the address of a removed instance, or had
        it when the pass looked. A pod of another namespace proves nothing."""
        uid, looked = (
            view.taken_pods[key],
            min(view.lists.get(Call.SLICES, view.moment), view.begun),
        )
        now = self._judge.truth.listening
        there = self._at(key).items()
        return any(
            self._apps[other][0] == self._namespace(uid)
            and other != uid
            and (other in now or until >= looked)
            for other, (_, until) in there
        )

    def _at(self, key: Key) -> dict[str, tuple[float, float]]:
        """The pods that listen, or listened, where callers of an instance reach it: at an address of
        their own, or at a port of their node."""
        address, port = _place(key)[:2]
        return {**self._heard.get(address, {}), **self._heard.get(f"{address}:{port}", {})}

    def _namespace(self, uid: str) -> str:
        return self._apps.get(uid, ("", ""))[0]

    # --- The end of a pass ------------------------------------------------------------------------

    def judge_pass(self, view: PassView, report: PassReport) -> None:
        """Judges the end of a pass."""
        daemon = self._judge.story.installation.mode is Mode.DAEMON
        begins_anew = daemon and view.process is not self._process
        self._process = view.process
        if begins_anew or not self.is_good(view):
            self._dead.clear()
            self._misled.clear()
        if not self.is_good(view):
            return
        holds = report.held.holds if report.held else ()
        reasons = {Key(*one.key): hold.reason.value for hold in holds for one in hold.removals}
        if not self._judge.story.installation.upsert_only:
            self._judge_dead(view, reasons)
            self._judge_addresses(view)
        self._judge_hostages(view, reasons)

    def is_good(self, view: PassView) -> bool:
        """Whether the pass read everything, in time, and no call of it failed."""
        judge, now = self._judge, self._judge.world.clock.time
        struck = (
            view.troubled
            or view.troubled_cluster
            or view.older
            or view.strayed
            or view.found_elsewhere
        )
        listed = {
            Call.SYNCERS,
            Call.SERVICES,
            Call.SLICES,
        } <= view.lists.keys() and view.eureka is not None
        in_time = now - view.begun < judge.story.installation.pass_seconds / 2
        crd = judge.truth.crd_lives and self._crds[judge.truth.crd_uid] <= view.begun
        calm = judge.calm_since <= view.begun
        return listed and in_time and crd and calm and not struck and not judge.refused(view)

    def _judge_dead(self, view: PassView, reasons: dict[Key, str]) -> None:
        reached = self._judge.reached
        stands: dict[Key, tuple[float, int]] = {}
        found = list(self._of_the_dead(view))
        self._begin_anew_where_more_died(found)
        self._begin_anew_where_the_syncer_comes_or_goes(found)
        for key, listed in found:
            if self._is_excused(view, key, listed, reasons.get(key, "")):
                continue
            first, count = self._dead.get(key, (view.begun, 0))
            stands[key] = first, count + 1
            reached["a dead pod that a good pass left UP"] += 1
            if count >= _MOST and view.begun - first >= _CONFIRM:
                why = f"held ({reasons[key]})" if key in reasons else "not held"
                raise Violation(
                    "dead",
                    f"{key} is UP after {count + 1} good passes, its pod is gone, and it is {why}",
                )
        self._dead = stands
        meanwhile = " during a hold" if reasons else ""
        for key in view.taken:
            if self.is_anothers(view, key):
                reached[f"what had another pod's address, and went{meanwhile}"] += 1
            elif not self.may_serve(view, key):
                reached[f"a dead pod that went{meanwhile}"] += 1

    def _begin_anew_where_more_died(self, found: list[tuple[Key, Listed]]) -> None:
        """Lets waits begin again. A process of one or two passes knows of earlier passes only a
        condition, which covers all dead pods of a syncer together. A daemon remembers each."""
        sets: dict[Ref, set[Key]] = {}
        for key, listed in found:
            sets.setdefault(syncer_of(listed[0]), set()).add(key)
        now = {ref: frozenset(keys) for ref, keys in sets.items()}
        if self._judge.story.installation.mode is not Mode.DAEMON:
            for ref, keys in now.items():
                if self._sets.get(ref) != keys:
                    for key in keys:
                        self._dead.pop(key, None)
        self._sets = now

    def _begin_anew_where_the_syncer_comes_or_goes(self, found: list[tuple[Key, Listed]]) -> None:
        """Begins waits again where a syncer came or went. A single pass knows nothing of the wait
        of an orphan whose syncer exists again. And where a syncer went with an earlier CRD, a
        missing endpoint counts no more: two passes have to see the pod dead."""
        daemon = self._judge.story.installation.mode is Mode.DAEMON
        orphaned: set[Ref] = set()
        for key, listed in found:
            ref = syncer_of(listed[0])
            if not self._exists(ref):
                orphaned.add(ref)
            came = ref in self._orphaned and ref not in orphaned and not daemon
            went = (
                ref in orphaned and ref not in self._orphaned and self._is_of_an_earlier_crd(listed)
            )
            if came or went:
                self._dead.pop(key, None)
        self._orphaned = frozenset(orphaned)

    def _is_of_an_earlier_crd(self, listed: Listed) -> bool:
        clock = self._judge.world.clock
        written = listed[0].last_dirty / 1000 - clock.now() + clock.time
        return written <= self._crds[self._judge.truth.crd_uid] + 1

    def _of_the_dead(self, view: PassView) -> Iterator[tuple[Key, Listed]]:
        """The instances that are UP on every server since before the pass listed it, and whose pod
        was gone when the pass began."""
        for key, listed in self._ups(view):
            if (
                self.ended(pod_of(listed[0])) <= view.begun
                and key not in self._judge.truth.eligible
            ):
                yield key, listed

    def _ups(self, view: PassView) -> Iterator[tuple[Key, Listed]]:
        known = self._judge.known
        for key in sorted(self._judge.ours_of(known[0])):
            there = [state[key] for state in known if key in state]
            standing = len(there) == len(known) and all(is_up(one) for one in there)
            if (
                standing
                and self._judge.up_since(key) <= view.begun - _LIST_IS_OLD
                and self._is_served(there[0])
            ):
                yield key, there[0]

    def _is_served(self, listed: Listed) -> bool:
        """Whether the program has to remove it: it is not of the other half of an installation, and
        its pod is not a neighbour's invention."""
        if self._judge.tenants.is_theirs(listed) or not pod_of(listed[0]):
            return False
        ref = syncer_of(listed[0])
        syncer = self._judge.truth.syncers.get(ref)
        app = syncer.app if syncer is not None else app_apart(ref[1])
        halves = self._judge.story.installation.halves
        return not halves or app not in TEAMS or TEAMS[app] == "one"

    def _is_excused(self, view: PassView, key: Key, listed: Listed, reason: str) -> bool:
        """Whether something other than a brake may keep it: its syncer is suspended, a stranger has
        the place of its successor, a CRD went so that its syncer may come back, or nobody could
        remember the first look."""
        truth = self._judge.truth
        if self._is_suspended(view, listed):
            return True
        for other, claim in truth.eligible.items():
            succeeds = other.app == key.app or claim.holder == syncer_of(
                listed[0]
            )  # by another name
            if succeeds and self._judge.duplicates(other):
                return True
        if self._exists(syncer_of(listed[0])):
            return False
        if reason == _OF_AN_EARLIER_CRD and self._is_of_an_earlier_crd(listed):
            self._judge.reached["a dead pod whose syncer went with an earlier CRD"] += 1
            return True
        alone = self._judge.story.installation.mode is Mode.ONCE and bool(reason)
        if alone:
            self._judge.reached["a dead orphan that single passes hold"] += 1
        return alone

    def _exists(self, ref: Ref) -> bool:
        return ref in self._judge.truth.syncers or ref in self._judge.truth.apart

    def _is_suspended(self, view: PassView, listed: Listed) -> bool:
        syncer = self._judge.truth.syncers.get(syncer_of(listed[0]))
        return (
            syncer is not None
            and not syncer.deleting
            and (syncer.asked.suspend or syncer.since["suspend"] > view.specs)
        )

    def _judge_addresses(self, view: PassView) -> None:
        stands: dict[Key, int] = {}
        for key, listed in self._ups(view):
            uid = pod_of(listed[0])
            others = [
                other
                for other, (since, _) in self._at(key).items()
                if other in self._judge.truth.listening
                and since <= view.begun
                and self._apps[other][0] == self._namespace(uid)
                and self._apps[other] != self._apps[uid]
            ]
            if not others or self._is_suspended(view, listed):
                continue
            stands[key] = self._misled.get(key, 0) + 1
            self._judge.reached["an address of another app's pod that a good pass left UP"] += 1
            if stands[key] > 1:
                other = "/".join(self._apps[others[0]])
                raise Violation(
                    "address",
                    f"{key} is UP after {stands[key]} good passes, and a pod of {other} is there",
                )
        self._misled = stands

    def _judge_hostages(self, view: PassView, reasons: dict[Key, str]) -> None:
        held = set(reasons)
        lost = Counter(key.app for key in held | view.taken.keys())
        # What Eureka lost by itself and has again is nothing that came.
        since, lost_up = view.begun - _RECENT, self._judge.limits.lost_up
        brought = Counter(key.app for key in view.brought if lost_up.get(key, -inf) < since)
        for key in sorted(key for key, reason in reasons.items() if reason == _OF_THE_PASS):
            self._judge.reached["a removal that a test of the whole pass held"] += 1
            moved = self._moved(key.app, held, listed_since=view.begun - _LIST_IS_OLD)
            if lost[key.app] - moved <= brought[key.app]:
                raise Violation(
                    "held app", f"{key} is held, and app {key.app} loses nothing by what goes"
                )

    def _moved(self, app: str, held: set[Key], *, listed_since: float) -> int:
        """How many held instances of an app are UP under another name, which stays, and have been
        for so long that every list shows that."""
        moved = 0
        for key in held:
            if key.app != app:
                continue
            there = [state for state in self._judge.known if key in state]
            if not there:
                # An earlier pass cancelled it, and this one read a peer that did not know yet. It
                # shows no more whose pod it was.
                self._judge.reached["a held instance that is gone when its pass ends"] += 1
                continue
            moved += all(self._has_another_name(key, state, held, listed_since) for state in there)
        return moved

    def _has_another_name(
        self, key: Key, state: State, held: set[Key], listed_since: float
    ) -> bool:
        """Whether the same syncer has the same pod UP in another app of this server."""
        own = state[key][0]
        for other, listed in state.items():
            stays = other.app != key.app and other not in held and is_up(listed)
            if not stays or not self._judge.ours(listed):
                continue
            same_pod = _place(other) == _place(key) and pod_of(listed[0]) == pod_of(own)
            same_syncer = syncer_of(listed[0]) == syncer_of(own)
            if same_pod and same_syncer and self._judge.up_since(other) <= listed_since:
                return True
        return False


def _place(key: Key) -> list[str]:
    """Address and port."""
    return key.id.split(":")[3:]
