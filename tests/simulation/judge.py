"""The promises, held against the true state of the servers at every call that a copy of the program
makes.

other owner an instance of another owner is never changed, if the program could have seen it
unread      nothing is written that the same pass did not read uncached before
removed     an instance that should be UP, since before the pass looked, is not removed
bare        nothing is registered for a syncer without our finalizer
unwanted    nothing is registered that should not be UP when the pass looked, but instances of a
            suspended syncer that Eureka lost
drained     while a person drains an instance, and its mark says so, it does not become UP,
            whichever lists fail
returned    at rest a suspended syncer has the instances that it had when it was suspended
            (`suspensions`)
crash       no pass ends with an exception

The other promises: `last`, `losses`, `confirmations` and `crowds` judge what apps lose; `dead` dead
pods; `flaps` second looks; `twins` pods that register themselves; `neighbours` claims of another
namespace; `apart` syncers that are served in another way; `leases` the ends of leases; `deletions` finalizers;
`strays` another cluster's lists; `conduct` and `limits` the other fields of specs; `overrides`
instances that a person put out of service; `steady` needless writes; `sharing` gates of two
syncers; `starving` a stage without time; `unlisted` conditions without events; `rest` the end of a
story.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING

from eurekube_sync.embedded.http import Request
from tests.embedded.instances import Listed

from .ambiguous import Anchors
from .apart import Apart
from .conduct import Conduct
from .confirmations import Confirmations
from .crowds import Sizes
from .dead import Dead
from .deletions import Deletions
from .entries import AtEntries
from .evidence import Evidence
from .flaps import SecondLooks
from .heirs import Heirs
from .hostports import AtHosts
from .imports.promises import Imports
from .last import LastOnes
from .leases import Leases
from .limits import Limits
from .losses import Losses
from .machines import Machines
from .neighbours import Tenants
from .nodeports import AtNodes
from .overrides import Overrides
from .releases import Releases
from .sharing import SharedGates
from .starving import Starving
from .steady import Steady
from .story import Story
from .strays import Strays
from .suspensions import Suspensions
from .troubles import Call, Kind
from .truth import FINALIZER, Ref, Truth
from .twins import Twins
from .unlisted import Told
from .view import (
    OUT,
    OWNER,
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
from .world import Key, World

if TYPE_CHECKING:
    from eurekube_sync.controller.one_pass import PassReport

_LOOK_HOLDS = 150.0
"""Seconds that an uncached read may be old at a write: no pass is longer."""


class Judge:
    """Sees every call; raises `Violation`."""

    def __init__(self, world: World, story: Story) -> None:
        self.world = world
        self.story = story
        self.truth = Truth(world, OWNER)
        status, namespace = world.kubernetes.call("GET", "/api/v1/namespaces/kube-system")
        assert status == 200
        self.cluster: str = namespace["metadata"]["uid"]
        self.limits = Limits(self.truth, self.ours_of)
        self.conduct = Conduct(
            self.truth, self.ours_of, self.serves_itself, cancels=not story.installation.upsert_only
        )
        self.releases = Releases()
        self.losses = Losses(self)
        self.reached: Counter[str] = self.conduct.reached
        """How often each situation that a promise is about came up."""
        self.calm_since = 0.0
        """Since when the program runs and Eureka answers."""
        self.held_by: dict[str, frozenset[Key]] = {}
        """The held removals that each copy's last whole pass reported."""
        self.strays = Strays(self.reached)
        self._deletions = Deletions(self)
        self.suspensions = Suspensions(self.truth, self.ours_of, self.reached)
        self.leases = Leases(self)
        self.too_late: set[Key] = set()
        """The instances registered by lists from before the deletion of their syncer."""
        self.dead = Dead(self)
        self.evidence = Evidence(self.truth)
        self.sizes = Sizes(self.evidence, self.reached)
        self.confirmations = Confirmations(self.truth, self.evidence, self.dead, self.reached)
        self.overrides = Overrides(self.truth, self.reached)
        self.twins = Twins(self)
        self.tenants = Tenants(self)
        self.apart = Apart(self, (Machines(self), AtHosts(self), AtNodes(self), AtEntries(self)))
        self.anchors = Anchors(self)
        self.steady = Steady(self.reached)
        self.last_ones = LastOnes(self)
        self.heirs = Heirs(self)
        self.told = Told(self)
        self.second_looks = SecondLooks(self)
        self.shared_gates = SharedGates(self.truth, self.serves_itself, self.reached)
        self.starving = Starving(self)
        self.imports = Imports(self)
        self._arrived: dict[Key, float] = {}
        self._known: list[State] = [{} for _ in world.eurekas]
        self.eureka_lost_all = -inf
        """When a server last restarted without its leases."""
        self._up_since: list[dict[Key, float]] = [{} for _ in world.eurekas]
        self.clock_right = True
        """Whether the program's wall clock was never wrong."""

    @property
    def known(self) -> list[State]:
        """The instances that each Eureka server holds."""
        return self._known

    # --- What the world tells ---------------------------------------------------------------------

    def world_changed(self) -> None:
        """Notes the state of the world after an event; the next call is compared with it."""
        changed = self.truth.look()
        for peer in range(len(self.world.eurekas)):
            changed = self._look_at_eureka(peer) or changed
        self._deletions.look()
        if changed:
            self.steady.changed(self.world.clock.time)
            self._look_at_wishes()

    def _look_at_wishes(self) -> None:
        now = self.world.clock.time
        self.dead.look(now)
        self.limits.look(self._known, now)
        self.conduct.look(self._known, now)
        self.releases.look(self.truth.syncers, now)
        self.suspensions.look(self._known, now)
        self.evidence.look(now)
        left = {
            key
            for key, kept in self.truth.frozen.items()
            if any(
                key in state and self._is_left_behind(state[key], kept.holder)
                for state in self._known
            )
        }
        self.confirmations.look(self.truth.eligible.keys() | (self.truth.frozen.keys() - left), now)
        self.overrides.look(now)
        self.tenants.look(now)
        self.anchors.look()
        self.apart.look(now)
        self.imports.look(now)

    def clock_is_wrong(self, by: float) -> None:
        """Notes that the wall clock of the program's machine changed."""
        self.clock_right = self.clock_right and not by
        self.dead.clock_is_wrong()
        self.steady.changed(self.world.clock.time)
        self.releases.clock_is_wrong(self.world.clock.time, by)
        self.imports.releases.clock_is_wrong(self.world.clock.time, by)

    def eureka_restarted(self, peer: int, warm_up: float) -> None:
        """Notes that a server lost all leases; that is not the program's fault."""
        self._note_ups(peer, self._known[peer], {})
        self._known[peer] = {}
        self.eureka_lost_all = self.world.clock.time
        self.imports.look(self.world.clock.time)
        if warm_up:
            self.imports.holds.eureka_warms_up(self.world.clock.time + warm_up)
        self.anchors.eureka_restarted()
        self.not_calm(warm_up)

    def not_calm(self, until_later: float = 0.0) -> None:
        """Notes that the program or Eureka is away for so many seconds."""
        self.calm_since = max(self.calm_since, self.world.clock.time + until_later)
        self.steady.changed(self.world.clock.time)

    @property
    def held(self) -> frozenset[Key]:
        """The keys of all removals that are held and reported."""
        return frozenset().union(*self.held_by.values())

    def stands_in_part(self, key: Key) -> bool:
        """Whether some servers hold it, and not all."""
        return 0 < sum(key in state for state in self._known) < len(self._known)

    def _any_stands_in_part(self) -> bool:
        """Whether only some servers hold an instance of ours. A process of one pass lists the other
        servers only sometimes, so a status may count such an instance in one pass and not in the
        next."""
        return len(self._known) > 1 and any(
            self.stands_in_part(key) for state in self._known for key in state
        )

    def up_since(self, key: Key) -> float:
        """Since when it is UP on every server that holds it as UP."""
        return max((since[key] for since in self._up_since if key in since), default=inf)

    def ours_of(self, state: State) -> Iterator[Key]:
        """The keys of our instances in it."""
        return (key for key, listed in state.items() if self.ours(listed))

    def ours(self, listed: Listed) -> bool:
        """Whether it has both marks of ours."""
        metadata = listed[0].metadata
        return (
            metadata.get("eurekube.owner") == OWNER
            and metadata.get("eurekube.cluster") == self.cluster
        )

    # --- What the program does --------------------------------------------------------------------

    def before(self) -> None:
        """Notes what changed by itself since the last call, right before this call takes effect."""
        self.world_changed()

    def after(self, view: PassView, call: Call, request: Request, peer: int | None) -> None:
        """Judges a call right after its effect."""
        if peer is None:
            if request.method != "GET":
                view.writes.append(f"{request.method} {request.path}")
                if not self._any_stands_in_part():
                    self.steady.wrote(
                        view, f"{request.method} {request.path}", self.world.clock.time
                    )
                self._judge_kubernetes(view, request)
            return
        if request.method == "GET":
            return
        before, now = self._known[peer], self.world.standing(peer)
        self._known[peer] = now
        # A DELETE that meets a 404 makes sure, no more: with peers, and as long as a deletion
        # waits.
        awaited = len(self.world.eurekas) > 1 or self.truth.a_deletion_waits
        made_sure = call is Call.CANCEL and before.keys() == now.keys() and awaited
        if (call not in (Call.READ, Call.RENEW) and not made_sure) or before.keys() != now.keys():
            view.writes.append(f"{request.method} {request.path}")
        changed = [
            key for key in before.keys() | now.keys() if _differ(before.get(key), now.get(key))
        ]
        excused = bool(changed) and self.strays.excuses(view)
        for key in sorted(changed):
            if not excused:
                self._judge_change(view, key, before, now, peer)
            self.conduct.left(key, now.get(key))
        self._note_ups(peer, before, now)
        self.overrides.judge_states(list(self.ours_of(now)), now)
        if call is not Call.RENEW and not excused:
            self.losses.judge(view, before, now)
        if changed:
            self.steady.changed(self.world.clock.time)
            self._look_at_wishes()

    def saw(
        self, view: PassView, call: Call, key: Key | None, *, now: float, as_of: float | None
    ) -> None:
        """Notes that the program got a complete answer at `now`. `as_of` is the moment that an old
        answer shows."""
        if call is Call.LIST:
            # A later one shows no more than other peers' instances of syncers that are deleted.
            if view.eureka is None or view.kubernetes is None:
                view.eureka = now
            self.conduct.listed(view, now)
        elif call is Call.IMPORTS:
            view.lists[call] = min(now if as_of is None else as_of, view.lists.get(call, now))
        elif call in (Call.SYNCERS, Call.SERVICES, Call.SLICES):
            told_of = now if as_of is None else as_of
            view.lists[call] = min(told_of, view.lists.get(call, told_of))
            self.confirmations.saw(view, told_of, now)
            if as_of is not None:
                view.older = True
                view.kubernetes = min(
                    as_of, view.kubernetes if view.kubernetes is not None else as_of
                )
            elif view.kubernetes is None:
                view.kubernetes = now
        elif key is not None:
            view.looked[key] = now
            for state in self._known:
                listed = state.get(key)
                if listed is not None and not self.ours(listed):
                    self.twins.saw(view, key, listed)
                if listed is not None and self.ours(listed):
                    view.stood.add(key)
                    if status_of(listed) in ("UP", OUT):
                        view.looked_up.add(pod_of(listed[0]))
                        view.looked_up_keys.add(key)

    def _judge_change(self, view: PassView, key: Key, before: State, now: State, peer: int) -> None:
        was, stands = before.get(key), now.get(key)
        self.strays.judge_change(view, f"{key} was {change(was, stands) if was else 'registered'}")
        if was is not None and not self.ours(was):
            if not self._came_after_the_look(view, key, self._arrived.get(key, 0.0)):
                raise Violation(
                    "other owner", f"{key} is somebody else's, and was {change(was, stands)}"
                )
            return
        if key not in view.looked:
            raise Violation(
                "unread",
                f"{key} was {change(was, stands) if was else 'registered'} without a look at it",
            )
        if stands is not None and not self.ours(stands):
            raise Violation("other owner", f"{key} is ours, and was made somebody else's")
        if (
            was is None
            and self.is_taken(key)
            and self._arrived[key] <= view.looked[key]
            and not self.story.troubles
        ):
            raise Violation(
                "other owner", f"{key} was registered, and is somebody else's on another server"
            )
        self.conduct.judge(view, key, was, stands, now)
        if was is not None and stands is None:
            self.overrides.judge_cancel(view, key, before)
        if was is not None and is_up(was) and not is_up(stands) and status_of(stands) != OUT:
            self._judge_removal(view, key, was, before, now, peer)
        if stands is not None:
            self.limits.wrote(view, key, stands)
        if was is None and stands is not None:
            self._judge_new(view, key, stands)
        if is_up(stands) and not is_up(was):
            view.brought.add(key)
            if self.up_since(key) <= view.begun:
                # It is in already, on another server, and what goes for it goes after it came here.
                self.reached["an instance that one server had UP, and comes to another"] += 1
            else:
                self.limits.judge_brought(view, key, now, self._up_since[peer])
            if was is not None and stands is not None:
                self._judge_return(view, key, was, stands)

    def _judge_return(self, view: PassView, key: Key, was: Listed, stands: Listed) -> None:
        mark, pod = "eurekube.drained", "eurekube.pod"
        uid = pod_of(was[0])
        marked = (
            was[0].metadata.get(mark, "").split(",")
            if was[0].metadata.get(pod) == stands[0].metadata.get(pod)
            else ()
        )
        since = self.truth.drained.get(uid)
        if since is not None and "pod" in marked and since <= view.moment:
            raise Violation(
                "drained", f"{key} was brought up, and its pod is drained since {since:.1f} s"
            )

    def _came_after_the_look(self, view: PassView, key: Key, came: float) -> bool:
        """Whether it came after the pass read it uncached, not long ago. No client can win that
        race, because Eureka has no condition for a write."""
        looked = view.looked.get(key)
        return looked is not None and came > looked >= self.world.clock.time - _LOOK_HOLDS

    def _judge_removal(
        self, view: PassView, key: Key, was: Listed, before: State, now: State, peer: int
    ) -> None:
        ref = syncer_of(was[0])
        if self.twins.gives_way(view, key, ref):
            return
        self.heirs.judge_removal(view, key, was, now.get(key))
        if self.apart.are(was):
            self.apart.judge_removal(view, key, was, now.get(key))
        if self._was_behind_its_gate(view, was):
            self.reached["a removal by slices from before a gate was open"] += 1
            return
        since = self._protected_since(view, key, was)
        syncer = self.truth.syncers.get(ref)
        if (
            syncer
            and self.truth.terminated_since(key, view.moment)
            and syncer.since["terminating"] > view.specs
        ):
            return  # by the spec that it read, the pod's instance was to go
        if since is not None and since <= view.moment and not self.is_taken(key):
            told = (
                f"its pod is ready since {since:.1f} s, and the pass looked at {view.moment:.1f} s"
            )
            self.tenants.judge_loss(key)
            raise Violation("removed", f"{key} was {change(was, now.get(key))}; {told}")
        # Another copy brought it UP after this pass read it, for a pod that is ready since: a
        # cancel may be late on its way, or be repeated for want of an answer. By what the pass
        # read, it takes nothing that was UP.
        if key not in view.brought and self._came_after_the_look(
            view, key, self._up_since[peer].get(key, 0.0)
        ):
            view.unseen.add(key)
            self.reached[
                "a removal of an instance that another copy brought UP after the look"
            ] += 1
            return
        if not self.duplicates(key):
            self.limits.judge_taken(view, key, before)
        view.taken[key], view.taken_pods[key] = ref, pod_of(was[0])

    def _was_behind_its_gate(self, view: PassView, was: Listed) -> bool:
        """Whether the pass was shown slices from before a pod's gate was open, and may have read a
        spec from after them, which has no gate: by both, the pod is not ready."""
        syncer, slices = self.truth.syncers.get(syncer_of(was[0])), view.lists.get(Call.SLICES)
        if syncer is None or slices is None or syncer.asked.readiness_gate:
            return False
        opened = self.truth.opened.get(pod_of(was[0]), 0.0)
        return opened > slices and syncer.since["readiness_gate"] > slices

    def _protected_since(self, view: PassView, key: Key, was: Listed) -> float | None:
        """Since when it must not be removed. If its syncer is not served, it stays as long as its
        pod, unless another pod has its address. A successor that is not served cannot take it
        over."""
        if key in self.truth.up:
            return self.truth.up[key].since
        syncer = self.truth.syncers.get(syncer_of(was[0]))
        if syncer is not None and syncer.deleting:
            return None  # a person's wish, whoever is to succeed it
        pod = pod_of(was[0])
        kept = self.truth.frozen.get(key)
        if (
            kept is None
            or (pod or "no pod") not in self.truth.pods
            or self.truth.replaced(key, pod)
        ):
            return None
        if self._is_left_behind(was, kept.holder):
            return None
        if kept.frozen_at is None or view.lists.get(Call.SERVICES, view.moment) >= kept.frozen_at:
            return kept.since
        # Whoever was shown the Service still goes by what the pod says, which may be read later,
        # and by the spec of now.
        if self._asked_since_for_fewer(view, kept.holder, kept.frozen_at):
            self.reached["a removal by a spec from after the Service that the pass was shown"] += 1
            return None
        return kept.serves_since

    def _asked_since_for_fewer(self, view: PassView, ref: Ref, gone: float) -> bool:
        """Whether a pass that was shown a Service may have read a spec from after its end, by which
        fewer endpoints of it, or other addresses, are to be UP."""
        syncer = self.truth.syncers[ref]
        limited = syncer.asked.limit is not None or syncer.since["limit"] > view.specs
        return limited or syncer.since["address"] > gone

    def _is_left_behind(self, listed: Listed, frozen_for: Ref) -> bool:
        """Whether its own syncer is gone, and the next one that wanted it is not served, so that it
        cannot take it over."""
        ref = syncer_of(listed[0])
        return ref != frozen_for and ref not in self.truth.syncers

    def _judge_new(self, view: PassView, key: Key, stands: Listed) -> None:
        self.imports.judge_registered(key, stands)
        if self.apart.are(stands):
            self.apart.judge_new(view, key, stands)
            return
        if self.tenants.is_theirs(stands):
            self.tenants.judge_new(view, key, stands[0])
            return
        if key in view.stood and not is_up(stands):
            return  # it was to be DOWN, and Eureka lost it between the read and the write
        claimed, ready = (view.lists.get(call, view.moment) for call in (Call.SYNCERS, Call.SLICES))
        wanted = self.truth.wanted_since(key, claimed=claimed, ready=ready)
        if not wanted and not self.conduct.has_it_back(view, key, stands):
            raise Violation(
                "unwanted", f"{key} was registered, and nothing in the cluster wants it"
            )
        ref = syncer_of(stands[0])
        syncer = self.truth.syncers.get(ref)
        if view.older and syncer is not None and syncer.going:
            self.too_late.add(key)
        if syncer is None or FINALIZER not in syncer.finalizers:
            bare = self.truth.bare_since.get(ref)
            if bare is None or bare <= view.moment:
                raise Violation(
                    "bare", f"{key} was registered for {named(ref)}, which is without our finalizer"
                )

    def _note_ups(self, peer: int, before: State, now: State) -> None:
        moment, since = self.world.clock.time, self._up_since[peer]
        for key in before.keys() | now.keys():
            is_now = is_up(now.get(key))
            if is_now:
                since.setdefault(key, moment)
            elif since.pop(key, None) is not None:
                self.limits.lost_up[key] = moment

    def _judge_kubernetes(self, view: PassView, request: Request) -> None:
        before, gates = self.truth.syncers, self.truth.gates
        if not self.truth.look():
            return
        if not self.strays.excuses(view):
            if "/pods/" in request.path:
                self.conduct.judge_gates(
                    view, gates, now=self.world.clock.time, clock_right=self.clock_right
                )
                self.shared_gates.judge(view, gates)
            self._deletions.judge(before)
        self.imports.judge_write(view, request)
        self._look_at_wishes()

    # --- What passes by itself, and at the end of a pass ------------------------------------------

    def _look_at_eureka(self, peer: int) -> bool:
        """Looks at Eureka; returns whether anything changed there by itself."""
        now = self.world.standing(peer)
        before = self._known[peer]
        if now is before:
            return False
        moment = self.world.clock.time
        changed = False
        for key, listed in now.items():
            changed = changed or _differ(before.get(key), listed)
            if not self.ours(listed) and (key not in before or self.ours(before[key])):
                self._arrived[key] = moment
        for key, was in before.items():
            changed = changed or key not in now
            if key not in now and self.ours(was):
                self.leases.judge_end(key, was, peer)
        self._known[peer] = now
        if changed:
            self._note_ups(peer, before, now)
        return changed

    def pass_ended(self, view: PassView, report: PassReport, *, period: float) -> None:
        """Judges the end of a pass: each instance that was registered all through it was renewed in
        time."""
        self.world_changed()
        self.dead.judge_pass(view, report)
        self.second_looks.judge_pass(view, report)
        self.heirs.judge_pass(view)
        self.suspensions.judge_pass(view)
        self._deletions.judge_pass(view)
        self.steady.pass_ended(view, self.world.clock.time)
        self.starving.pass_ended(view)
        self.imports.judge_pass(view, report)
        self.leases.judge_pass(view, period=period)
        installation = self.story.installation
        had_time = self.world.clock.time - view.begun < installation.pass_seconds / 2
        self.told.judge_pass(view, in_time=had_time)
        unread = view.eureka is None and not view.troubled_cluster and self.clock_right
        if unread and had_time and not installation.halves:
            self.conduct.judge_waiting(view)

    def refused(self, view: PassView) -> bool:
        """Whether another cluster's instance may have stopped the pass."""
        return self._deletions.refused(view)

    def serves_itself(self, key: Key) -> bool:
        """Whether its pod has registered itself for the same app."""
        ip = key.id.split(":")[3]
        return any(
            other.app == key.app and listed[0].ip_addr == ip and not self.ours(listed)
            for known in self._known
            for other, listed in known.items()
        )

    def duplicates(self, key: Key) -> bool:
        """Whether ours need not, or cannot, be registered beside the pod's own instance."""
        held = self.truth.eligible.get(key)
        syncer = self.truth.syncers.get(held.holder) if held else None
        warns = syncer is not None and syncer.asked.on_duplicate == "Warn"
        return self.is_taken(key) or (not warns and self.serves_itself(key))

    def is_taken(self, key: Key) -> bool:
        """Whether another client's instance has this key."""
        return any(key in state and not self.ours(state[key]) for state in self._known)


def _differ(was: Listed | None, stands: Listed | None) -> bool:
    return was is None or stands is None or was[0] is not stands[0]


STRIKES_AT_CALM = frozenset(set(Kind) - {Kind.SLOW})
"""Troubles that end the calm in which no lease may expire: all but slow answers."""
