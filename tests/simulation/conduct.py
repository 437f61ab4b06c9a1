"""The promises about what a syncer asks to be done and left undone, at every call.

policy      an installation that cancels nothing takes no instance of ours out
suspended   while a syncer is suspended its instances stay as they are, and it gets no more than
            it had
open gate   a readiness gate that is open stays open
gate        a gate opens only when an uncached read shows the pod's instance UP, when the pod
            gets no instance on purpose, or when Eureka could not be read for five minutes; then
            it must open
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tests.embedded.instances import InstanceInfo, Listed

from .truth import Ref, SyncerTruth, Truth
from .view import (
    OUT,
    PassView,
    State,
    Violation,
    change,
    is_up,
    named,
    pod_of,
    status_of,
    syncer_of,
)
from .world import Key

_UNREADABLE = 290.0
"""Seconds for which Eureka must be unreadable before a gate opens for that reason."""
_LONGEST = 305.0
"""Seconds after which it must open for that reason."""


class Outage(NamedTuple):
    """An outage of Eureka as a syncer's status reports it."""

    since: float
    told: bool
    """Whether the status has a time since when Eureka cannot be read."""


class Conduct:
    """Sees every change that a pass makes to our instances and to the gates of pods."""

    def __init__(
        self,
        truth: Truth,
        ours: Callable[[State], Iterator[Key]],
        serves_itself: Callable[[Key], bool],
        *,
        cancels: bool,
    ) -> None:
        self._truth = truth
        self._cancels = cancels
        self._ours = ours
        self._serves_itself = serves_itself
        self._alive: dict[Ref, SyncerTruth] = {}
        self._most: dict[str, int] = {}
        self._deleting: set[tuple[str, str]] = set()
        self._deleted: dict[tuple[str, str], float] = {}
        self._left: dict[Key, Listed] = {}
        self._outages: dict[str, Outage] = {}
        """What each syncer reports while Eureka cannot be read, by UID."""
        self._read: dict[bool, float] = {}
        self.reached: Counter[str] = Counter()

    def look(self, states: Sequence[State], now: float) -> None:
        """Notes what is registered now, and which syncers are gone."""
        alive = {ref: one for ref, one in self._truth.syncers.items() if not one.deleting}
        for ref, was in self._alive.items():
            if ref not in alive or alive[ref].uid != was.uid:
                self._deleted[ref[0], was.app] = now  # without a finalizer it is gone at once
        self._alive = alive
        self._outages = {
            syncer.uid: self._outage_of(syncer, now)
            for syncer in self._truth.syncers.values()
            if syncer.conditions.get("Synced") == ("Unknown", "RegistryUnknown")
        }
        self._deleted.update(dict.fromkeys(self._deleting, now))
        self._deleting = {
            (one.ref[0], one.app) for one in self._truth.syncers.values() if one.deleting
        }
        for syncer in self._truth.syncers.values():
            if not syncer.asked.suspend:
                self._most.pop(syncer.uid, None)
                continue
            standing = max(len(list(self._up_of(syncer.ref, state))) for state in states)
            self._most[syncer.uid] = max(
                standing, syncer.registered_up, self._most.get(syncer.uid, 0)
            )

    def _outage_of(self, syncer: SyncerTruth, now: float) -> Outage:
        """The outage of Eureka that the syncer reports. Its condition still tells of one for some
        passes that can read Eureka, but the next five minutes begin when its status says so."""
        before = self._outages.get(syncer.uid, Outage(now, told=True))
        told = bool(syncer.unknown_since)
        was_read = max(self._read.values(), default=0.0) > before.since
        begins = (was_read and not told) or (told and not before.told)
        return Outage(now if begins else before.since, told)

    def listed(self, view: PassView, now: float) -> None:
        """Notes that a copy that serves these syncers could read Eureka."""
        self._read[view.other_half] = now

    # --- Policy and suspend -----------------------------------------------------------------------

    def judge(
        self, view: PassView, key: Key, was: Listed | None, stands: Listed | None, state: State
    ) -> None:
        """Judges a change of one instance; `state` is what is registered now."""
        if was is not None:
            syncer = self._living(syncer_of(was[0]))
            self._judge_suspended(view, key, syncer, was, stands)
            if stands is None and not self._cancels:
                raise Violation(
                    "policy", f"{key} was cancelled, and the installation cancels nothing"
                )
        if stands is not None:
            syncer = self._living(syncer_of(stands[0]))
            if was is None and syncer is not None and self._is_suspended(view, syncer):
                count = len(list(self._up_of(syncer.ref, state)))
                if count > self._most.get(syncer.uid, 0) and not self.has_it_back(
                    view, key, stands
                ):
                    raise Violation(
                        "suspended", f"{key} was registered, and {named(syncer.ref)} is suspended"
                    )

    def left(self, key: Key, stands: Listed | None) -> None:
        """How the program left an instance when it last changed it."""
        if stands is None:
            self._left.pop(key, None)
        else:
            self._left[key] = stands

    def has_it_back(self, view: PassView, key: Key, stands: Listed) -> bool:
        """Whether a suspended syncer got back an instance that Eureka lost and nobody cancelled: UP,
        and of the same pod. It is registered by the spec of now, which may have changed since."""
        syncer, was = self._living(syncer_of(stands[0])), self._left.get(key)
        if syncer is None or was is None:
            return False
        suspended = syncer.asked.suspend or syncer.since["suspend"] > view.specs
        same = pod_of(was[0]) == pod_of(stands[0])
        return suspended and same and is_up(was) and is_up(stands)

    def _judge_suspended(
        self,
        view: PassView,
        key: Key,
        syncer: SyncerTruth | None,
        was: Listed,
        stands: Listed | None,
    ) -> None:
        if syncer is None or not self._is_suspended(view, syncer) or self._truth.rivals(syncer):
            return
        self.reached["a change to a suspended syncer's"] += 1
        kept = (
            stands is not None
            and status_of(stands) == status_of(was)
            and _content(stands[0]) == _content(was[0])
        )
        if not kept and not (status_of(stands) == OUT):
            raise Violation(
                "suspended",
                f"{key} was {change(was, stands)}, and {named(syncer.ref)} is suspended",
            )

    def _is_suspended(self, view: PassView, syncer: SyncerTruth) -> bool:
        return syncer.asked.suspend and syncer.since["suspend"] <= view.specs

    # --- Gates ------------------------------------------------------------------------------------

    def judge_gates(
        self, view: PassView, before: Mapping[str, bool], *, now: float, clock_right: bool
    ) -> None:
        """Judges a write to a pod's status."""
        for uid, is_open in before.items():
            if is_open and not self._truth.gates.get(uid, True):
                raise Violation("open gate", f"the gate of pod {uid} was shut again")
        for uid, is_open in self._truth.gates.items():
            if is_open and not before.get(uid, True):
                self._judge_open(view, uid, now, clock_right)

    def _judge_open(self, view: PassView, uid: str, now: float, clock_right: bool) -> None:
        self.reached["a gate opened"] += 1
        if uid in view.looked_up:
            return
        where = self._truth.labels.get(uid, ("", ""))
        ends = (
            where in self._deleting or self._deleted.get(where, -1.0) >= view.specs
        )  # its last act, perhaps
        on_purpose = ends or any(
            one.asked.limit
            or one.asked.suspend
            or max(one.since["limit"], one.since["suspend"]) > view.specs
            for one in self._truth.syncers.values()
            if (one.ref[0], one.app) == where
        )
        unreadable = view.eureka is None and (
            now - self._read.get(view.other_half, 0.0) >= _UNREADABLE or not clock_right
        )
        if uid in self._truth.drained:
            return
        beside = [
            one
            for one in self._truth.syncers.values()
            if (one.ref[0], one.app) == where and not one.deleting
        ]
        oldest = min(beside, key=lambda one: (min(one.since.values()), one.ref), default=None)
        if oldest is not None and not oldest.asked.readiness_gate:
            return  # the older one has the address, and the one with a gate registers nothing
        if unreadable and not on_purpose:
            self.reached["a gate that opened without Eureka"] += 1
        if (
            not on_purpose
            and not unreadable
            and not any(map(self._serves_itself, self._truth.keys_of(uid)))
        ):
            raise Violation(
                "gate", f"the gate of pod {uid} was opened, and no read showed its instance UP"
            )

    def judge_waiting(self, view: PassView) -> None:
        """Judges a pass that could not read Eureka, and had time for everything else."""
        for key, wanted in sorted(self._truth.eligible.items()):
            for uid in sorted(wanted.pods) if wanted.since <= view.moment else ():
                if self._truth.gates.get(uid, True) or not self._has_waited(uid, view):
                    continue
                raise Violation(
                    "gate",
                    f"the gate of a ready pod behind {key} is shut, for Eureka cannot be read",
                )

    def _has_waited(self, uid: str, view: PassView) -> bool:
        """Whether every syncer with a gate in this pod has reported for so long that Eureka cannot
        be read."""
        where = self._truth.labels.get(uid, ("", ""))
        syncers = [
            one
            for one in self._truth.syncers.values()
            if (one.ref[0], one.app) == where and not one.deleting
        ]
        gated = [syncer for syncer in syncers if syncer.asked.readiness_gate]
        outages = [self._outages.get(syncer.uid) for syncer in gated]
        since = [outage.since if outage else view.begun for outage in outages]
        return (
            bool(since)
            and view.begun - max(since) >= _LONGEST
            and all(syncer.served for syncer in syncers)
        )

    # --- Names ------------------------------------------------------------------------------------

    def _living(self, ref: Ref) -> SyncerTruth | None:
        syncer = self._truth.syncers.get(ref)
        return syncer if syncer is not None and not syncer.deleting else None

    def _up_of(self, ref: Ref, state: State) -> Iterator[Key]:
        return (
            key
            for key in self._ours(state)
            if syncer_of(state[key][0]) == ref and is_up(state[key])
        )


def _content(instance: InstanceInfo) -> tuple[object, ...]:
    """All fields that a person's spec decides, but the status."""
    users = {
        key: value for key, value in instance.metadata.items() if not key.startswith("eurekube.")
    }
    return (instance.vip_address, instance.ip_addr, instance.port, instance.host_name, users)
