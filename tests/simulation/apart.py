"""The promise about syncers that are served in another way than the pods of most stories: machines,
pods at the host ports of their nodes.

reach       an endpoint is an address and a port where callers reach it: at rest each ready one is
            UP, one that is not ready is not, and no other is registered; no pass registers one that
            was not ready when it looked, and none removes one that is ready since before the pass
            looked. What stands of a syncer that is not served stays, as long as nothing proves that
            it is gone
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from tests.embedded.instances import Listed

from .troubles import Call
from .truth import Ref
from .view import OUT, PassView, State, Violation, change, is_up, status_of, syncer_of
from .world import Key

if TYPE_CHECKING:
    from .judge import Judge


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

    @abstractmethod
    def stays(self, ref: Ref, key: Key, listed: Listed) -> bool:
        """Whether an instance at rest may stay although nothing asks for it."""

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

    def look(self, now: float) -> None:
        """Notes what is ready now."""
        if not self._judge.truth.apart and not self._ready:
            return
        ready = {key for key, is_ready in self._written().items() if is_ready}
        self._ready_until.update(dict.fromkeys(self._ready, now))
        self._ready = {key: self._ready.get(key, now) for key in ready}

    def are(self, listed: Listed) -> bool:
        """Whether an instance is of such a syncer."""
        return self._way_of(listed) is not None

    def judge_new(self, view: PassView, key: Key, stands: Listed) -> None:
        """Judges that a pass registered an instance."""
        way = self._way_of(stands)
        self._judge.reached[f"a registration of a syncer {way.kind if way else ''}"] += 1
        looked = min(view.specs, view.lists.get(Call.SLICES, view.moment))
        if key not in self._ready and self._ready_until.get(key, -1.0) < looked and is_up(stands):
            raise Violation("reach", f"{key} was registered, and nothing says that it is ready")

    def judge_removal(self, view: PassView, key: Key, was: Listed, stands: Listed | None) -> None:
        """Judges that a pass cancelled an instance, or turned it DOWN."""
        since = self._ready.get(key)
        if since is not None and since <= view.moment:
            told = f"it is ready since {since:.1f} s, and the pass looked at {view.moment:.1f} s"
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
        if way.stays(syncer_of(listed[0]), key, listed):
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
