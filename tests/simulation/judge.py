"""The promises, held against the true state of the servers at every call that a copy of the program makes.

stranger    an instance of somebody else is never changed, if the program could have seen it
withdrawn   what is to be UP, and was since before the pass looked, is not withdrawn
emptied     no app or VIP of ours goes to nothing while an instance that was to be added is not there
brake       no pass takes the last UP instance of more than one app, or of all, without a person's wish
lapsed      no lease of ours runs out while the program runs and Eureka answers
renewed     a pass in which nothing went wrong leaves no lease that it did not renew in time
bare        nothing is registered for a syncer without our finalizer
finalizer   it goes only when no instance of its syncer is left, and nobody else's goes at all
unwanted    nothing is registered that was not to be UP when the pass looked
drained     what a person drains, and its mark says so, is not brought up meanwhile, whichever lists fail
override    nothing is out of service but what a person put there
rest        two good passes after the last trouble, all is as it should be, or a condition says why not
quiet       the pass after that sends nothing but reads and renewals
crash       no pass ends with an exception
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eurekube_sync.embedded.eureka.instance import InstanceInfo, Listed
from eurekube_sync.embedded.http import Request

from .story import Story
from .troubles import Call, Kind
from .truth import FINALIZER, Ref, Truth
from .world import Key, World

OWNER = "prod"
UP, OUT = "UP", "OUT_OF_SERVICE"
_LOOK_HOLDS = 150.0
"""Seconds that an uncached read may be old when something is written: no pass goes on for longer."""
_CACHE = 30.0


class Violation(BaseException):
    """A promise that was broken. No part of the program can catch it."""

    def __init__(self, promise: str, what: str) -> None:
        super().__init__(f"{promise}: {what}")
        self.promise = promise
        self.what = what


@dataclass(slots=True)
class PassView:
    """What one pass of one copy has seen so far; times are seconds of the story, None for never."""

    begun: float
    eureka: float | None = None
    kubernetes: float | None = None
    older: bool = False
    """Whether a list was answered as it was a while ago; `kubernetes` is then that moment."""
    lists: dict[Call, float] = field(default_factory=dict)
    """The moment that each list of Kubernetes told of."""
    looked: dict[Key, float] = field(default_factory=dict)
    """When each instance was last read uncached."""
    emptied: set[str] = field(default_factory=set)
    troubled: bool = False
    paused: bool = False
    writes: list[str] = field(default_factory=list)

    @property
    def moment(self) -> float:
        """What was true at this moment and stayed so, the pass must have seen."""
        if self.older and self.kubernetes is not None:
            return self.kubernetes
        return max(self.kubernetes if self.kubernetes is not None else self.begun, self.eureka or 0.0)


State = dict[Key, Listed]


class Judge:
    """Sees every call; raises `Violation`."""

    def __init__(self, world: World, story: Story) -> None:
        self.world = world
        self.story = story
        self.truth = Truth(world, OWNER)
        status, namespace = world.kubernetes.call("GET", "/api/v1/namespaces/kube-system")
        assert status == 200
        self.cluster: str = namespace["metadata"]["uid"]
        self.out_of_service: set[Key] = set()
        """What a person put out of service."""
        self.calm_since = 0.0
        """Since when the program runs and Eureka answers."""
        self.held_by: dict[str, frozenset[Key]] = {}
        """What each copy's last whole pass said it holds."""
        self._was_out: set[Key] = set()
        self._arrived: dict[Key, float] = {}
        self._known: list[State] = [{} for _ in world.eurekas]

    # --- What the world tells -----------------------------------------------------------------------------------------

    def world_changed(self) -> None:
        """After every event: what stands now is what the next call is measured against."""
        self.truth.look()
        for peer in range(len(self.world.eurekas)):
            self._look_at_eureka(peer)

    def asked_out(self, key: Key) -> None:
        """A person put it out of service; Eureka keeps such a wish by id, in one app alone if ids differ by app."""
        self.out_of_service.add(key)
        self._was_out.add(key)

    def eureka_restarted(self, peer: int, warm_up: float) -> None:
        """All leases are lost by the server, not by us."""
        self._known[peer] = {}
        self.not_calm(warm_up)

    def not_calm(self, until_later: float = 0.0) -> None:
        """The program, or Eureka, is not there, for so many seconds."""
        self.calm_since = max(self.calm_since, self.world.clock.time + until_later)

    @property
    def held(self) -> frozenset[Key]:
        """All that is held, and said to be."""
        return frozenset().union(*self.held_by.values())

    def ours(self, listed: Listed) -> bool:
        """By both marks."""
        metadata = listed[0].metadata
        return metadata.get("eurekube.owner") == OWNER and metadata.get("eurekube.cluster") == self.cluster

    # --- What the program does --------------------------------------------------------------------------------------

    def before(self) -> None:
        """Right before a call takes effect: what changed by itself since the last one."""
        self.world_changed()

    def after(self, view: PassView, call: Call, request: Request, peer: int | None) -> None:
        """Right after its effect."""
        if peer is None:
            if request.method != "GET":
                view.writes.append(f"{request.method} {request.path}")
                self._judge_kubernetes(request)
            return
        if request.method == "GET":
            return
        before, now = self._known[peer], self.world.standing(peer)
        self._known[peer] = now
        # A DELETE that meets a 404 makes sure, no more: with peers, and as long as a deletion waits.
        awaited = len(self.world.eurekas) > 1 or any(syncer.deleting for syncer in self.truth.syncers.values())
        made_sure = call is Call.CANCEL and before.keys() == now.keys() and awaited
        if (call is not Call.RENEW and not made_sure) or before.keys() != now.keys():
            view.writes.append(f"{request.method} {request.path}")
        for key in before.keys() | now.keys():
            was, stands = before.get(key), now.get(key)
            if was is None or stands is None or was[0] is not stands[0]:
                self._judge_change(view, key, was, stands)
        self._judge_overrides(now)
        if call is not Call.RENEW:
            self._judge_emptied(view, before, now)

    def saw(self, view: PassView, call: Call, key: Key | None, *, now: float, as_of: float | None) -> None:
        """The program got a whole answer, given at `now`. `as_of` is the moment of an older one."""
        if call is Call.LIST:
            view.eureka = now
        elif call in (Call.SYNCERS, Call.SERVICES, Call.SLICES):
            told_of = now if as_of is None else as_of
            view.lists[call] = min(told_of, view.lists.get(call, told_of))
            if as_of is not None:
                view.older = True
                view.kubernetes = min(as_of, view.kubernetes if view.kubernetes is not None else as_of)
            elif view.kubernetes is None:
                view.kubernetes = now
        elif key is not None:
            view.looked[key] = now

    def _judge_change(self, view: PassView, key: Key, was: Listed | None, stands: Listed | None) -> None:
        if was is not None and not self.ours(was):
            looked = view.looked.get(key)
            seen = looked is None or self._arrived.get(key, 0.0) <= looked
            fresh = looked is not None and self.world.clock.time - looked <= _LOOK_HOLDS
            if seen or not fresh:
                raise Violation("stranger", f"{key} is somebody else's, and was {_change(was, stands)}")
            return
        if key not in view.looked:
            raise Violation("unseen", f"{key} was {_change(was, stands) if was else 'registered'} without a look at it")
        if stands is not None and not self.ours(stands):
            raise Violation("stranger", f"{key} is ours, and was made somebody else's")
        if was is not None and _is_up(was) and not _is_up(stands):
            if _status(stands) == OUT:
                return
            since = self._protected_since(key, was)
            if since is not None and since <= view.moment and not self._serves_itself(key):
                told = f"its pod is ready since {since:.1f} s, and the pass looked at {view.moment:.1f} s"
                raise Violation("withdrawn", f"{key} was {_change(was, stands)}; {told}")
        if was is None and stands is not None:
            self._judge_new(view, key, stands)
        if was is not None and stands is not None and not _is_up(was) and _is_up(stands):
            self._judge_return(view, key, was, stands)

    def _judge_return(self, view: PassView, key: Key, was: Listed, stands: Listed) -> None:
        mark, pod = "eurekube.drained", "eurekube.pod"
        uid = was[0].metadata.get(pod, "").rpartition("/")[2]
        marked = (
            was[0].metadata.get(mark, "").split(",") if was[0].metadata.get(pod) == stands[0].metadata.get(pod) else ()
        )
        for kind, since in self.truth.drained.get(uid, {}).items():
            if kind in marked and since <= view.moment:
                raise Violation("drained", f"{key} was brought up, and its {kind} is drained since {since:.1f} s")

    def _protected_since(self, key: Key, was: Listed) -> float | None:
        """Since when it is not to be taken out. While its syncer is frozen, it stays as long as the pod that it was
        registered for, not as a later one at its address. A successor that is frozen itself cannot take it over."""
        if key in self.truth.up:
            return self.truth.up[key].since
        syncer = self.truth.syncers.get(_syncer(was[0]))
        if syncer is not None and syncer.deleting:
            return None  # a person's wish, whoever is to succeed it
        pod = was[0].metadata.get("eurekube.pod", "").rpartition("/")[2]
        return self.truth.frozen[key].since if key in self.truth.frozen and pod in self.truth.pods else None

    def _judge_new(self, view: PassView, key: Key, stands: Listed) -> None:
        claimed, ready = (view.lists.get(call, view.moment) for call in (Call.SYNCERS, Call.SLICES))
        if not self.truth.wanted_since(key, claimed=claimed, ready=ready):
            raise Violation("unwanted", f"{key} was registered, and nothing in the cluster wants it")
        ref = _syncer(stands[0])
        syncer = self.truth.syncers.get(ref)
        if syncer is None or FINALIZER not in syncer.finalizers:
            bare = self.truth.bare_since.get(ref)
            if bare is None or bare <= view.moment:
                raise Violation("bare", f"{key} was registered for {'/'.join(ref)}, which is without our finalizer")

    def _judge_emptied(self, view: PassView, before: State, now: State) -> None:
        ups_before = [key for key, listed in before.items() if self.ours(listed) and _is_up(listed)]
        ups_now = {key for key, listed in now.items() if self.ours(listed) and _is_up(listed)}
        left = {key.app for key in ups_now}
        for app in sorted({key.app for key in ups_before} - left):
            for key, wanted in self.truth.up.items():
                missing = key.app == app and wanted.since <= view.moment and key not in ups_now
                if missing and not self._serves_itself(key) and key not in self._was_out:
                    raise Violation("emptied", f"app {app} went to nothing, and {key}, which is ready, is not there")
            self._judge_brake(view, app, left)

    def _judge_brake(self, view: PassView, app: str, left: set[str]) -> None:
        view.emptied.add(app)
        if len(view.emptied) > 1 and len(view.emptied) * 20 > len(view.emptied | left):
            raise Violation("brake", f"one pass took the last UP instance of {', '.join(sorted(view.emptied))}")

    def _judge_overrides(self, now: State) -> None:
        for key, listed in now.items():
            if self.ours(listed) and listed[0].status.value == OUT and key not in self._was_out:
                raise Violation("override", f"{key} is out of service, and nobody put it there")

    def _judge_kubernetes(self, request: Request) -> None:
        before = self.truth.syncers
        if not self.truth.look():
            return
        for ref, was in before.items():
            still = self.truth.syncers.get(ref)
            kept = still.finalizers if still is not None and still.uid == was.uid else ()
            lost = set(was.finalizers) - set(kept)
            if lost - {FINALIZER}:
                raise Violation("finalizer", f"another's finalizer of {'/'.join(ref)} was taken off")
            if FINALIZER in lost:
                self._judge_finalizer(ref)

    def _judge_finalizer(self, ref: Ref) -> None:
        for peer in range(len(self.world.eurekas)):
            for key, listed in self.world.standing(peer).items():
                if self.ours(listed) and _syncer(listed[0]) == ref:
                    raise Violation("finalizer", f"{'/'.join(ref)} lost our finalizer while {key} stands")

    # --- Leases -----------------------------------------------------------------------------------------------------

    def _look_at_eureka(self, peer: int) -> None:
        now = self.world.standing(peer)
        before = self._known[peer]
        moment = self.world.clock.time
        for key, listed in now.items():
            if not self.ours(listed) and (key not in before or self.ours(before[key])):
                self._arrived[key] = moment
        for key, was in before.items():
            if key not in now and self.ours(was) and len(self.world.eurekas) == 1:
                ran_out = _expiry(was) - self.world.clock.now() + moment
                if ran_out < moment and self.calm_since + 120 < ran_out:
                    raise Violation("lapsed", f"the lease of {key} ran out at {ran_out:.0f} s")
        self._known[peer] = now

    def pass_ended(self, view: PassView, *, period: float) -> None:
        """A pass is over: whatever stood all through it was renewed in time."""
        self.world_changed()
        if view.troubled or len(self.world.eurekas) > 1:
            return
        now = self.world.clock.time
        allowed = period + self.story.installation.interval + (now - view.begun)
        for key, listed in self._known[0].items():
            gap = self.world.clock.now() - _renewed(listed)
            # A process that begins after another registered it does not find it in the cached list yet.
            age = self.world.clock.now() - listed[1].registered / 1000
            cached = _CACHE if age <= allowed + _CACHE else 0.0
            if self.ours(listed) and gap > allowed + cached:
                raise Violation("renewed", f"a whole pass left {key}, not renewed for {gap:.0f} s")

    # --- Rest -------------------------------------------------------------------------------------------------------

    def at_rest(self) -> None:
        """After two good passes: everything is as it should be, or it is said why not."""
        for peer in range(len(self.world.eurekas)):
            standing = self._known[peer]
            ours = {key: listed for key, listed in standing.items() if self.ours(listed)}
            for key, wanted in sorted(self.truth.up.items()):
                self._expect_up(key, standing, wanted.vip)
            for key, listed in sorted(ours.items()):
                if key not in self.truth.up:
                    self._expect_reason(key, listed)
        for ref, syncer in sorted(self.truth.syncers.items()):
            if syncer.deleting and FINALIZER in syncer.finalizers:
                left = [key for key, listed in self._known[0].items() if _syncer(listed[0]) == ref]
                if not left:
                    raise Violation("rest", f"{'/'.join(ref)} keeps our finalizer, and nothing of it is left")

    def _expect_up(self, key: Key, standing: Mapping[Key, Listed], vip: str) -> None:
        listed = standing.get(key)
        if listed is None:
            if not self._serves_itself(key):
                raise Violation("rest", f"{key} is ready and not registered")
        elif not self.ours(listed):
            self._expect_condition(key, "Conflict")
        elif not _is_up(listed) and not (listed[0].status.value == OUT and key in self.out_of_service):
            raise Violation("rest", f"{key} is ready, and Eureka says {listed[0].status.value}")
        elif listed[0].vip != vip or _syncer(listed[0]) not in self.truth.syncers:
            raise Violation("rest", f"{key} stands as it should not: VIP {listed[0].vip}, {_syncer(listed[0])}")

    def _expect_reason(self, key: Key, listed: Listed) -> None:
        if key in self.truth.down:
            if _is_up(listed) and key not in self.held:
                raise Violation("rest", f"{key} is not ready, and Eureka says UP")
            return
        syncer = self.truth.syncers.get(_syncer(listed[0]))
        reason = syncer.conditions.get("Synced", ("", ""))[1] if syncer else ""
        frozen = syncer is not None and not syncer.served and reason == "NoMatchingService"
        out = listed[0].status.value == OUT
        # The last ones stay while a stranger keeps their successor from being registered.
        waits = syncer is not None and syncer.conditions.get("Conflict", ("", ""))[0] == "True" and not syncer.deleting
        waits = waits and not self._serves_still(_syncer(listed[0]))
        if key not in self.held and not frozen and not out and not waits:
            raise Violation("rest", f"{key} stands, nothing wants it, and nothing says why")

    def _expect_condition(self, key: Key, type_: str) -> None:
        apps = {s.app_name.upper(): s for s in self.truth.syncers.values() if not s.deleting}
        syncer = apps.get(key.app)
        if syncer is not None and syncer.conditions.get(type_, ("", ""))[0] != "True":
            raise Violation("rest", f"{key} is somebody else's, and no condition {type_} says so")

    def _serves_still(self, ref: Ref) -> bool:
        """Whether a syncer has an instance that is to be UP, and is."""
        return any(
            key in self.truth.up and _is_up(listed) and self.ours(listed) and _syncer(listed[0]) == ref
            for known in self._known
            for key, listed in known.items()
        )

    def _serves_itself(self, key: Key) -> bool:
        ip = key.id.split(":")[3]
        return any(
            other.app == key.app and listed[0].ip_addr == ip and not self.ours(listed)
            for known in self._known
            for other, listed in known.items()
        )


def _syncer(instance: InstanceInfo) -> Ref:
    namespace, _, name = instance.metadata.get("eurekube.syncer", "").partition("/")
    return namespace, name


def _is_up(listed: Listed | None) -> bool:
    return _status(listed) == UP


def _status(listed: Listed | None) -> str:
    return listed[0].status.value if listed is not None else ""


def _change(was: Listed, stands: Listed | None) -> str:
    if stands is None:
        return "cancelled"
    return f"written anew, {was[0].status.value} to {stands[0].status.value}"


def _duration(listed: Listed) -> float:
    return listed[0].lease.duration if listed[0].lease else 90.0


def _renewed(listed: Listed) -> float:
    """Unix seconds of the last renewal, or of the registration."""
    times = listed[1]
    renewed = times.renewed if times.renewed == times.registered else times.renewed - _duration(listed) * 1000
    return renewed / 1000


def _expiry(listed: Listed) -> float:
    return listed[1].renewed / 1000 + _duration(listed)


STRIKES_AT_CALM = frozenset(set(Kind) - {Kind.SLOW})
"""Troubles that end the calm in which no lease may run out: all but slow answers."""
