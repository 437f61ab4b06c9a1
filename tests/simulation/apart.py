"""The promise about syncers that are served in another way than the pods of most stories: machines,
pods at the host ports of their nodes, Services at node ports, Ingresses and Gateways.

reach       an endpoint is an address and a port where callers reach it: at rest each ready one is
            UP, one that is not ready is not, and no other is registered; no pass registers one that
            was not ready when it looked, and none removes one that is ready since before the pass
            looked. What stands of a syncer that is not served stays, and its condition says why, as
            long as nothing else proves that it is gone
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from tests.embedded.instances import Listed

from .events import Event
from .troubles import Call, Kind, Trouble
from .truth import Ref
from .view import OUT, PassView, State, Violation, change, is_up, status_of, syncer_of
from .world import APPS, PORT, TEAMS, Key, apart_name, syncer_path

if TYPE_CHECKING:
    from .judge import Judge
    from .stage import Stage

_SYNCERS = "apis/eurekube.io/v1/eurekasyncers"
_UNREAD = (
    Kind.FORBIDDEN,
    Kind.ERROR_503,
    Kind.TIMEOUT_BEFORE,
    Kind.EMPTY,
    Kind.CUT,
    Kind.PAGE,
    Kind.GONE_410,
)

_UNSERVED = frozenset({"NoMatchingService", "AddressPending", "NoAddress"})
"""Reasons of a condition for which a registered instance is left as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodBehind(Event):
    """A pod behind such a Service starts; one that runs turns ready, or not."""

    kind: str
    app: str
    node: str = "node-1"
    ready: bool = True

    def happen(self, stage: Stage) -> str:
        label = apart_name(self.kind, self.app)
        name = f"{label}-at-{self.node}"
        how = "ready" if self.ready else "not ready"
        if stage.world.turn(APPS[self.app], name, ready=self.ready):
            return f"pod {name} turns {how}"
        ip = stage.world.start_pod(
            self.app, name, "10.0.9.1", ready=self.ready, label=label, node=self.node
        )
        return f"pod {name} starts, {how}" if ip else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncerLeaves(Event):
    """A person deletes such a syncer."""

    kind: str
    app: str

    def happen(self, stage: Stage) -> str:
        name = apart_name(self.kind, self.app)
        there = stage.world.delete(syncer_path(APPS[self.app], name))
        return f"a person deletes syncer {name}" if there else ""


def serve(
    stage: Stage,
    kind: str,
    app: str,
    service: Mapping[str, Any],
    spec: Mapping[str, Any],
    **labels: str,
) -> str:
    """Makes the Service of such a syncer, with its pods behind it unless it says otherwise, and the
    syncer."""
    name = apart_name(kind, app)
    place = {"namespace": APPS[app], "name": name}
    behind = {
        "selector": {"app": name},
        "ports": [{"name": "http", "port": 80, "targetPort": PORT}],
    }
    metadata = {**place, "labels": {"app": name, **labels}}
    stage.world.apply("api/v1/services", {"metadata": metadata, "spec": {**behind, **service}})
    syncer = {
        "apiVersion": "eurekube.io/v1",
        "kind": "EurekaSyncer",
        "metadata": {**place, "labels": {"team": TEAMS[app]}},
        "spec": {"selector": {"app": name}, "appName": name, **spec},
    }
    return f"syncer {name} is {stage.world.apply(_SYNCERS, syncer)}"


def unread(dice: random.Random, call: Call, last: float) -> Trouble:
    """Gives a list that fails for a while."""
    at = round(dice.uniform(3, last), 1)
    until = round(min(last, at + dice.choice((12.0, 25.0, 60.0, 150.0))), 1)
    return Trouble(at=at, until=until, calls=frozenset({call}), kind=dice.choice(_UNREAD))


class Way(ABC):
    """One way in which syncers are served: the oracle of where callers reach what is behind
    them."""

    kind: ClassVar[str]
    """The first part of their names."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    @abstractmethod
    def written(self) -> Iterator[tuple[Key, bool]]:
        """Yields each endpoint that living syncers ask for, and whether it is ready. Of two with
        one key, the ready one counts."""

    def is_unserved(self, ref: Ref) -> bool:
        """Whether nothing tells where callers reach what is behind a living syncer. Its Service is
        gone, as after a CRD was restored, or its addresses are."""
        return ref not in self.services()

    def is_gone(self, listed: Listed) -> bool:
        """Whether something else proves that callers do not reach an instance any more."""
        return False

    def living(self) -> Iterator[tuple[Ref, Mapping[str, Any]]]:
        """Yields the syncers that are not being deleted."""
        for ref, syncer in self._judge.truth.apart.items():
            if ref[1].startswith(f"{self.kind}-") and "deletionTimestamp" not in syncer["metadata"]:
                yield ref, syncer

    def is_living(self, ref: Ref) -> bool:
        """Whether a syncer exists and is not being deleted."""
        return any(ref == known for known, _ in self.living())

    def reason(self, ref: Ref) -> str:
        """The reason of a syncer's condition Synced."""
        status = self._judge.truth.apart[ref].get("status", {})
        reasons = {told["type"]: told["reason"] for told in status.get("conditions", ())}
        return str(reasons.get("Synced", ""))

    def services(self) -> set[Ref]:
        """The namespaces and names of all Services."""
        return {named(service) for service in self._judge.world.objects("/api/v1/services")}


class Apart:
    """Remembers since when each endpoint of all ways is ready."""

    def __init__(self, judge: Judge, ways: tuple[Way, ...]) -> None:
        self._judge = judge
        self._ways = ways
        self._ready: dict[Key, float] = {}
        """Since when each endpoint is ready."""
        self._ready_until: dict[Key, float] = {}
        """When each endpoint was last ready."""
        self._unserved: dict[Ref, float] = {}
        """Since when nothing tells where callers reach what is behind each syncer."""
        self._deleted: dict[Ref, float] = {}
        """When a person deleted a syncer that waits for its finalizer."""

    def look(self, now: float) -> None:
        """Notes what is ready now."""
        if not self._judge.truth.apart and not self._ready:
            return
        ready = {key for key, is_ready in self._written().items() if is_ready}
        self._ready_until.update(dict.fromkeys(self._ready, now))
        self._ready = {key: self._ready.get(key, now) for key in ready}
        unserved = [ref for way in self._ways for ref, _ in way.living() if way.is_unserved(ref)]
        self._unserved = {ref: self._unserved.get(ref, now) for ref in unserved}
        for ref, syncer in self._judge.truth.apart.items():
            if "deletionTimestamp" in syncer["metadata"]:
                self._deleted.setdefault(ref, now)

    def are(self, listed: Listed) -> bool:
        """Whether an instance is of such a syncer."""
        return self._way_of(listed) is not None

    def judge_new(self, view: PassView, key: Key, stands: Listed) -> None:
        """Judges that a pass registered an instance."""
        way = self._way_of(stands)
        self._judge.reached[f"a registration of a syncer {way.kind if way else ''}"] += 1
        if self._deleted.get(syncer_of(stands[0]), -inf) > view.specs:
            # The pass read the syncer before that, and its addresses later.
            self._judge.reached["a registration of a syncer that was deleted meanwhile"] += 1
            return
        looked = min(view.specs, view.lists.get(Call.SLICES, view.moment))
        if key not in self._ready and self._ready_until.get(key, -1.0) < looked and is_up(stands):
            raise Violation("reach", f"{key} was registered, and nothing says that it is ready")

    def judge_removal(self, view: PassView, key: Key, was: Listed, stands: Listed | None) -> None:
        """Judges that a pass cancelled an instance, or turned it DOWN."""
        since = self._ready.get(key)
        if since is not None and since <= view.moment:
            told = f"it is ready since {since:.1f} s, and the pass looked at {view.moment:.1f} s"
            raise Violation("reach", f"{key} was {change(was, stands)}; {told}")
        way, unserved = self._way_of(was), self._unserved.get(syncer_of(was[0]))
        if way is None or unserved is None or unserved > view.begun or way.is_gone(was):
            return
        told = f"since {unserved:.1f} s nothing tells where callers reach its syncer's Service"
        raise Violation("reach", f"{key} was {change(was, stands)}; {told}")

    def judge_rest(self) -> None:
        """Judges the end of a story."""
        written = self._written()
        for state in self._judge.known:
            for key in sorted(self._ready):
                self._expect_up(key, state)
            for key in sorted(self._judge.ours_of(state)):
                way = self._way_of(state[key])
                if way is not None and key not in self._ready:
                    self._expect_reason(key, state[key], way, written)
        if self._has_two_at_one_address():
            self._judge.reached["two ports at one address at rest"] += 1

    def _expect_up(self, key: Key, state: State) -> None:
        if self._judge.is_taken(key) or key in self._judge.overrides.out:
            return
        if not is_up(state.get(key)):
            says = status_of(state.get(key)) or "nothing"
            raise Violation("reach", f"{key} is ready, and Eureka says {says}")

    def _expect_reason(
        self, key: Key, listed: Listed, way: Way, written: Mapping[Key, bool]
    ) -> None:
        """Judges an instance that is not ready."""
        if key in self._judge.held or status_of(listed) == OUT:
            return
        if key in written:
            if is_up(listed):
                raise Violation("reach", f"{key} is not ready, and Eureka says UP")
            return
        ref = syncer_of(listed[0])
        unserved = ref in self._unserved and not way.is_gone(listed)
        if unserved and way.reason(ref) in _UNSERVED:
            self._judge.reached[f"what stays of a syncer {way.kind} that is not served"] += 1
            return
        raise Violation("reach", f"{key} stands, and nothing has its address and port")

    def _has_two_at_one_address(self) -> bool:
        hosts = [key.id.rpartition(":")[0] for key in self._ready]
        return len(set(hosts)) < len(hosts)

    def _way_of(self, listed: Listed) -> Way | None:
        name = syncer_of(listed[0])[1]
        for way in self._ways:
            if name.startswith(f"{way.kind}-"):
                return way
        return None

    def _written(self) -> dict[Key, bool]:
        """The endpoints of all ways."""
        written: dict[Key, bool] = {}
        for way in self._ways:
            for key, ready in way.written():
                written[key] = written.get(key, False) or ready
        return written


def named(found: Mapping[str, Any]) -> Ref:
    """The namespace and name of an object."""
    return found["metadata"]["namespace"], found["metadata"]["name"]
