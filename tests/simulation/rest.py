"""The end of a story: two good passes after the last trouble everything is as it should be, or a
condition says why not.

rest        every instance that should be UP is UP, no unwanted instance is registered, and no
            finalizer stays without need
limit       as many of a limited syncer are UP as its limit asks for, and no more
policy      of an installation that cancels nothing, no deletion waits
gate        the gate of a pod that has its containers ready, and its syncers in order, is open,
            unless a stranger has its id in one of their apps
reported    each held removal is reported by the condition of its syncer, or of the one that
            claims the instance now
approved    a removal that an annotation releases is not held
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.embedded.instances import Listed

from .truth import FINALIZER, Ref, Since, SyncerTruth
from .view import OUT, PassView, State, Violation, is_up, named, status_of, syncer_of
from .world import Key

if TYPE_CHECKING:
    from .judge import Judge

_FROZEN = frozenset({"NoMatchingService", "AddressPending", "NoAddress"})
"""Reasons for which a registered instance is left as it is."""


class Rest:
    """Judges the end of a story."""

    def __init__(self, judge: Judge, view: PassView) -> None:
        self._judge = judge
        self._truth = judge.truth
        self._view = view
        self._upsert_only = judge.story.installation.upsert_only

    def all(self) -> None:
        """Judges everything once; raises Violation."""
        for state in self._judge.known:
            for key, wanted in sorted(self._truth.up.items()):
                self._expect_up(key, state, wanted)
            for key, listed in sorted(state.items()):
                if self._judge.ours(listed) and key not in self._truth.up:
                    self._expect_reason(key, listed)
            for _, syncer in sorted(self._truth.syncers.items()):
                if (
                    syncer.asked.limit is not None
                    and not syncer.deleting
                    and not syncer.asked.suspend
                ):
                    self._expect_limit(syncer, state)
        for ref, syncer in sorted(self._truth.syncers.items()):
            left = any(
                syncer_of(listed[0]) == ref
                for state in self._judge.known
                for listed in state.values()
            )
            waits = syncer.deleting and FINALIZER in syncer.finalizers
            if waits and not left:
                raise Violation(
                    "rest", f"{named(ref)} keeps our finalizer, and nothing of it is left"
                )
            if waits and self._upsert_only:
                raise Violation(
                    "policy", f"{named(ref)} keeps our finalizer, and none of its instances will go"
                )
        self._judge.suspensions.judge_rest(self._judge.known, self._judge.world.clock.time)
        self._judge.twins.judge_rest()
        self._judge.tenants.judge_rest()
        self._judge.apart.judge_rest()
        self._judge.imports.judge_rest(self._view)
        self._expect_told()
        self._expect_gates()

    def _expect_up(self, key: Key, state: State, wanted: Since) -> None:
        listed = state.get(key)
        if listed is None:
            if self._judge.anchors.adrift(key):
                self._judge.reached["a ready pod whose port nothing tells"] += 1
                return
            if not self._judge.duplicates(key) or self._judge.twins.is_out_of_reach(key):
                self._judge.tenants.judge_loss(key)
                raise Violation("rest", f"{key} is ready and not registered")
            return
        syncer = self._truth.syncers.get(syncer_of(listed[0]))
        if not self._judge.ours(listed):
            self._expect_condition(key, "Conflict")
        elif not is_up(listed) and not self._is_out(key, listed):
            self._judge.tenants.judge_loss(key)
            raise Violation("rest", f"{key} is ready, and Eureka says {status_of(listed)}")
        elif self._upsert_only and self._judge.duplicates(key):
            # It would be cancelled for its pod's own instance, and stays as it is, with its marks.
            self._judge.reached["ours beside its pod's own, which no policy lets go"] += 1
        elif listed[0].vip_address != wanted.vip or syncer is None:
            raise Violation(
                "rest",
                f"{key} stands as it should not: VIP {listed[0].vip_address}, "
                f"{syncer_of(listed[0])}",
            )
        version = listed[0].metadata.get("version", "")
        changes = syncer is not None and not self._truth.rivals(syncer)
        changes = changes and key not in self._judge.held  # what is held is renewed as it is
        if (
            syncer is not None
            and changes
            and self._judge.ours(listed)
            and version != syncer.asked.version
        ):
            raise Violation("rest", f"{key} stands with version {version!r}")

    def _is_out(self, key: Key, listed: Listed) -> bool:
        return status_of(listed) == OUT and key in self._judge.overrides.out

    def _expect_reason(self, key: Key, listed: Listed) -> None:
        held = key in self._judge.held
        syncer = self._truth.syncers.get(syncer_of(listed[0]))
        if self._judge.tenants.is_theirs(listed) or self._judge.apart.are(listed):
            return
        if syncer is not None and syncer.asked.suspend and not syncer.deleting:
            return
        # What is over a limit stays as it is, also if its pod turns unready. A limit of 0 keeps none.
        limit = syncer.asked.limit if syncer is not None else None
        over_limit = limit is not None and limit.value == 0
        if self._upsert_only and (over_limit or key not in self._truth.down):
            self._judge.reached["an instance that nothing wants, and that stays"] += 1
            return
        if key in self._truth.eligible:  # within a limit; see there
            claimed = self._truth.syncers[self._truth.eligible[key].holder].asked
            claims_nothing = claimed.limit is not None and claimed.limit.value == 0
            if claims_nothing and not held and status_of(listed) != OUT:
                raise Violation("limit", f"{key} stands, and its limit is 0")
            return
        # The last ones stay while a stranger keeps their successor from being registered.
        blocked = [
            one
            for one in self._truth.syncers.values()
            if one.conditions.get("Conflict", ("",))[0] == "True"
        ]
        waits = syncer is not None and any(
            one.app == syncer.app and not one.deleting and not self._serves_still(one.ref)
            for one in blocked
        )
        if key in self._truth.down:
            if is_up(listed) and not held and not waits:
                raise Violation("rest", f"{key} is not ready, and Eureka says UP")
            return
        reason = syncer.conditions.get("Synced", ("", ""))[1] if syncer else ""
        frozen = syncer is not None and not syncer.served and reason in _FROZEN
        if not held and not frozen and status_of(listed) != OUT and not waits:
            raise Violation(
                "rest",
                f"{key} stands as {status_of(listed)}, nothing wants it, and nothing says why",
            )

    def _expect_condition(self, key: Key, type_: str) -> None:
        apps = {s.app_name.upper(): s for s in self._truth.syncers.values() if not s.deleting}
        syncer = apps.get(key.app)
        if syncer is not None and syncer.conditions.get(type_, ("", ""))[0] != "True":
            raise Violation("rest", f"{key} is somebody else's, and no condition {type_} says so")

    def _expect_limit(self, syncer: SyncerTruth, state: State) -> None:
        claimed = {key for key, one in self._truth.eligible.items() if one.holder == syncer.ref}
        free = [key for key in claimed if key not in state or self._judge.ours(state[key])]
        free = [
            key
            for key in free
            if not self._judge.duplicates(key) and not self._judge.overrides.ever(key)
        ]
        ups = [
            key
            for key in claimed
            if key in state and self._judge.ours(state[key]) and is_up(state[key])
        ]
        conflict = syncer.conditions.get("Conflict", ("", ""))[0] == "True"
        least = min(self._judge.limits.now(syncer), len(free))
        self._judge.reached["a limit at rest"] += 1
        # What a person put out of service keeps its place: it comes back.
        out = [
            key
            for key in claimed
            if key in state and self._judge.ours(state[key]) and self._is_out(key, state[key])
        ]
        if len(ups) + len(out) < least and not conflict:
            raise Violation(
                "limit", f"{len(ups)} of {named(syncer.ref)} are UP, and its limit lets {least} in"
            )
        more = len([key for key in ups if key not in self._judge.held]) > self._judge.limits.most(
            syncer
        )
        if more and not self._upsert_only:
            raise Violation(
                "limit",
                f"{len(ups)} of {named(syncer.ref)} are UP, and its limit is {syncer.asked.limit}",
            )

    def _expect_told(self) -> None:
        for key in sorted(self._judge.held):
            listed = self._judge.known[0].get(key)
            syncers = (
                self._may_tell(key, listed)
                if listed is not None and self._judge.ours(listed)
                else []
            )
            if not syncers:
                continue
            self._judge.reached["a removal held at rest"] += 1
            if not any(one.conditions.get("RemovalHeld", ("", ""))[0] == "True" for one in syncers):
                raise Violation(
                    "reported",
                    f"{key} is held, and no condition of {named(syncers[0].ref)} says so",
                )
            now = self._judge.world.clock.time
            if all(self._judge.releases.must_free(self._view, syncer, now) for syncer in syncers):
                raise Violation(
                    "approved",
                    f"{key} is held, and an annotation of {named(syncers[0].ref)} releases it",
                )

    def _may_tell(self, key: Key, listed: Listed) -> list[SyncerTruth]:
        """The syncers that may report it: the one that its mark names, and those that claim the
        same or claim this now."""
        syncer = self._truth.syncers.get(syncer_of(listed[0]))
        if syncer is None:
            return []
        rivals = [
            one for one in self._truth.syncers.values() if self._truth.are_rivals(one, syncer)
        ]
        where = key.id.split(":")[1:3]
        heirs = [
            one
            for one in self._truth.syncers.values()
            if [one.ref[0], one.app_name.lower()] == where
            and one.app == syncer.app
            and not one.deleting
        ]
        return [syncer, *rivals, *heirs]

    def _expect_gates(self) -> None:
        for ref, syncer in sorted(self._truth.syncers.items()):
            if not syncer.asked.readiness_gate or syncer.deleting or not syncer.served:
                continue
            for key, wanted in sorted(self._truth.eligible.items()):
                for uid in sorted(wanted.pods) if wanted.holder == ref else ():
                    if not self._truth.gates.get(uid, True) and not self._waits_for_a_stranger(uid):
                        raise Violation("gate", f"the gate of a ready pod behind {key} is shut")

    def _waits_for_a_stranger(self, uid: str) -> bool:
        """Whether a stranger has the id of a pod in an app for which its gate waits. The gate of a
        pod that several syncers serve waits for all of them."""
        for key, wanted in self._truth.eligible.items():
            syncer = self._truth.syncers[wanted.holder]
            waits_for = uid in wanted.pods and syncer.asked.readiness_gate
            if waits_for and self._judge.is_taken(key):
                self._judge.reached["a gate that waits for a stranger to leave"] += 1
                return True
        return False

    def _serves_still(self, ref: Ref) -> bool:
        """Whether a syncer has an instance that should be UP and is."""
        return any(
            key in self._truth.up
            and is_up(listed)
            and self._judge.ours(listed)
            and syncer_of(listed[0]) == ref
            for known in self._judge.known
            for key, listed in known.items()
        )
