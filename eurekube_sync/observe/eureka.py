"""What is registered in Eureka, seen with our eyes: ours in scope, ours elsewhere, another cluster's under our name,
others'. And what this process remembers of it: what it wrote a moment ago, and what it last saw UP.

A list is up to 30 s old by the server's cache, so whatever a pass would change is read again, uncached, and laid over
the list (`Observed.refreshed`). Only a daemon has memories, and no removal rests on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property

from eurekube_sync.desired.claims import Desired, Serving
from eurekube_sync.desired.conduct import LIMIT, is_gone
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Cancel, Outcomes, Result
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, LeaseTimes, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import CLUSTER, CLUSTER_PATTERN, OWNER, POD, Ownership, syncer_of
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """An uncached read that failed: the instance may be there or not."""

    why: str
    late: bool = False  # the pass ended before it was tried


@dataclass(frozen=True, kw_only=True)  # without slots: it keeps its index
class Observed:
    """A complete list of the registry, divided; each key is in one of `ours` and `others`."""

    ownership: Ownership
    scope: Scope
    ours: Mapping[InstanceKey, ObservedInstance]  # owner and cluster match, and the syncer is in scope
    others: Mapping[InstanceKey, ObservedInstance]
    """Never changed: foreign, or ours in another scope, or with an unreadable mark."""
    clashes: tuple[str, ...] = ()  # UIDs of other clusters under our owner name
    listed: Mapping[SyncerRef, int] = field(default_factory=dict)
    """How many of a syncer's instances the list itself showed, before any fresh read, but for those left to expire."""
    unread: Mapping[InstanceKey, Unread] = field(default_factory=dict)  # keys whose uncached read failed
    asked: float  # when the list was asked for, in Unix seconds; the server's cache may have made it somewhat before
    newest: float = 0.0
    """The latest renewal in the list, in Unix seconds of the server's clock. A quiet server's list may be minutes old,
    so how long nobody renewed an instance is reported by what is registered beside it."""

    @cached_property
    def keys_by_syncer(self) -> Mapping[SyncerRef, frozenset[InstanceKey]]:
        """The keys of `ours` by the syncer that their mark names. Made once, in one walk, when first asked for."""
        found: dict[SyncerRef, set[InstanceKey]] = {}
        for key, instance in self.ours.items():
            syncer = syncer_of(instance)
            assert syncer is not None  # `ours` holds none without
            found.setdefault(syncer, set()).add(key)
        return {syncer: frozenset(keys) for syncer, keys in found.items()}

    def silent(self, instance: ObservedInstance) -> float:
        """Seconds for which nobody had renewed or registered the instance when the list was made; 0 where Eureka gives
        no time. Eureka adds the duration to the time of a renewal alone (Lease.renew): right after a registration only
        `last_dirty_timestamp` tells that somebody serves it."""
        seen = max(instance.renewed, instance.last_dirty_timestamp / 1000)
        return self.newest - seen if instance.last_renewal else 0.0

    def refreshed(self, readings: Mapping[InstanceKey, ObservedInstance | Unread | None]) -> Observed:
        """The same with uncached reads laid over it; None is a 404: not there."""
        known = {key: reading for key, reading in readings.items() if not isinstance(reading, Unread)}
        unread = {key: reading for key, reading in readings.items() if isinstance(reading, Unread)}
        return replace(self._laid_over(known), unread={**self.unread, **unread})

    def remembering(self, written: Mapping[InstanceKey, ObservedInstance | None]) -> Observed:
        """The same with our late writes laid over it, but under another owner's instance, which is younger. What was
        cancelled and is still listed may have come back: it stays, to be read again."""
        return self._laid_over({key: wrote for key, wrote in written.items() if wrote and key not in self.others})

    def beside(self, elsewhere: Iterable[ObservedInstance], syncers: Collection[SyncerRef]) -> Observed:
        """The same with what other servers list for these syncers. Only for those that are deleted: what was registered
        since the cluster was listed would look undesired, and nothing is registered for them."""
        known = self.ours.keys() | self.others.keys()
        found = [i for i in elsewhere if i.key not in known and is_ours(i, self.ownership, self.scope)]
        mine = {i.key: i for i in found if syncer_of(i) in syncers}
        return replace(self, ours={**self.ours, **mine}, listed=_counted(mine.values(), self.listed)) if mine else self

    def narrowed(self, scope: Scope) -> Observed:
        """The same in a scope that knows more now: what turned out to be somebody else's is `others`."""
        if scope == self.scope:
            return self
        theirs = {key: i for key, i in self.ours.items() if not is_ours(i, self.ownership, scope)}
        ours = {key: i for key, i in self.ours.items() if key not in theirs}
        return replace(self, scope=scope, ours=ours, others={**self.others, **theirs})

    def _laid_over(self, written: Mapping[InstanceKey, ObservedInstance | None]) -> Observed:
        if not written:
            return self
        ours, others = dict(self.ours), dict(self.others)
        for key, instance in written.items():
            ours.pop(key, None)
            others.pop(key, None)
            if instance is not None:
                (ours if is_ours(instance, self.ownership, self.scope) else others)[key] = instance
        return replace(self, ours=ours, others=others)


def observe(
    registry: Complete[tuple[ObservedInstance, ...]],
    ownership: Ownership,
    scope: Scope,
    *,
    asked: float,
    before: Observed | None = None,
) -> Observed:
    """Divides a complete list. There is no `Observed` of an Unknown registry, so nothing can be removed from one.
    `asked` is when it was asked for, in Unix seconds. `before` is what the pass before made of its list: an instance
    of which nothing but its last renewal changed is ours if it was."""
    ours: dict[InstanceKey, ObservedInstance] = {}
    others: dict[InstanceKey, ObservedInstance] = {}
    clashes: set[str] = set()
    latest: dict[LeaseTimes, ObservedInstance] = {}
    if before and (before.ownership, before.scope) != (ownership, scope):
        before = None
    known = before.ours if before else {}
    again = 0
    for one in registry.data:
        instance, key = one.instance, one.instance.key
        was, last = known.get(key), latest.get(instance.lease)
        if last is None or one.last_renewal > last.last_renewal:
            latest[instance.lease] = one
        if was is not None and was.instance is instance and key not in ours:
            again += 1
            ours[key] = one
        elif is_ours(one, ownership, scope):
            ours[key] = one
        else:
            others[key] = one
            if ownership.clashes(one):
                clashes.add(one.metadata.get(CLUSTER, ""))
    same = before if before and again == len(ours) == len(known) else None
    found = Observed(
        ownership=ownership,
        scope=scope,
        ours=ours,
        others=others,
        clashes=tuple(sorted(clashes)),
        listed=same.listed if same else _counted(ours.values(), {}),
        asked=asked,
        newest=max((one.renewed for one in latest.values()), default=0.0),
    )
    if same:
        vars(found)["keys_by_syncer"] = same.keys_by_syncer
    return found


def _counted(ours: Iterable[ObservedInstance], before: Mapping[SyncerRef, int]) -> Mapping[SyncerRef, int]:
    found = dict(before)
    for instance in ours:
        syncer = syncer_of(instance)
        assert syncer is not None  # is_ours has read it
        found[syncer] = found.get(syncer, 0) + (not is_gone(instance))
    return found


def is_ours(instance: ObservedInstance, ownership: Ownership, scope: Scope) -> bool:
    """Whether a pass may change the instance: owner and cluster match, and its syncer is in scope."""
    syncer = syncer_of(instance)
    return syncer is not None and ownership.holds(instance) and scope.covers(syncer)


def marked_cluster(registry: Complete[tuple[ObservedInstance, ...]] | Unknown, owner: str) -> Complete[str]:
    """The UID of the one cluster where the owner has instances; empty for none, for several's, and for no UID."""
    listed = registry.data if isinstance(registry, Complete) else ()
    found = {one.metadata.get(CLUSTER, "") for one in listed if one.metadata.get(OWNER) == owner}
    uid = found.pop() if len(found) == 1 else ""
    return Complete(data=uid if CLUSTER_PATTERN.fullmatch(uid) else "")


def held_by_owner(
    registry: Complete[tuple[ObservedInstance, ...]], owner: str, scope: Scope
) -> tuple[ObservedInstance, ...]:
    """What carries the owner's name and lies in scope, of whichever cluster: all that may be renewed while the cluster
    does not tell who it is."""
    return tuple(
        instance
        for instance in registry.data
        if instance.metadata.get(OWNER) == owner and (syncer := syncer_of(instance)) and scope.covers(syncer)
    )


EXPECTED_INTERVAL = 30.0  # seconds: `expectedClientRenewalIntervalSeconds`
THRESHOLD = 0.85  # `renewalPercentThreshold`


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """A registry of `ours` and `others` while all live, and ours are renewed every `interval` seconds. A server that is
    alone counts one client more than it holds (`openForTraffic`); that is left out."""

    ours: int
    others: int
    interval: float

    @property
    def expected(self) -> float:
        """Renewals a minute that the server counts on."""
        return (self.ours + self.others) * 60 / EXPECTED_INTERVAL

    @property
    def threshold(self) -> int:
        """Renewals a minute at or below which nobody is evicted."""
        return int(self.expected * THRESHOLD)

    @property
    def renewals(self) -> float:
        """Renewals a minute that it gets: two of each of the others, and ours."""
        return self.others * 60 / EXPECTED_INTERVAL + self.ours * 60 / self.interval

    @property
    def blocks_eviction(self) -> bool:
        """Whether our interval alone keeps the server in self-preservation: nobody is ever evicted."""
        return self.interval > EXPECTED_INTERVAL and self.ours > 0 and self.renewals <= self.threshold

    @property
    def warning(self) -> str:
        """What a person should do about it."""
        return (
            f"self-preservation: with passes every {self.interval:g}s Eureka gets {counted(self.renewals, 'renewal')} "
            f"a minute, not above its threshold of {self.threshold}. So it evicts nobody. Use --interval 30s or less."
        )


def headroom(observed: Observed, interval: float) -> Headroom:
    """The headroom of a complete list; ours is all that bears our owner's name, of whichever scope."""
    owner = observed.ownership.owner
    elsewhere = sum(instance.metadata.get(OWNER) == owner for instance in observed.others.values())
    return Headroom(ours=len(observed.ours) + elsewhere, others=len(observed.others) - elsewhere, interval=interval)


def interval_of(pass_interval: float, *, slack: float) -> float:
    """Seconds between two renewals of a lease, when passes come every `pass_interval` and each renews what is due."""
    wait = EXPECTED_INTERVAL - slack
    return pass_interval * max(1, -(-wait // pass_interval))


class OwnWrites:
    """The writes of the last `seconds`, which the server's cached lists may still hide; all times monotonic seconds.
    Laid over the list, so that a stale one neither hides a fresh instance nor shows a cancelled one."""

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        self._writes: dict[InstanceKey, tuple[float, ObservedInstance | None]] = {}

    def note(self, outcomes: Outcomes, now: float) -> None:
        """Remember what a pass wrote. A failed call may have had its effect or not: that key is forgotten."""
        for outcome in outcomes.others:
            key = outcome.action.key
            if outcome.failed or outcome.result in (Result.GONE, Result.CONFLICT):
                self._writes.pop(key, None)
            elif isinstance(outcome.action, Cancel):
                self._writes[key] = (now, None)
            else:
                wrote = outcome.registered
                assert wrote  # what only renewed is none of the others
                status = outcome.status or wrote.status
                self._writes[key] = (now, ObservedInstance(instance=replace(wrote, status=status)))

    def recent(self, now: float) -> Mapping[InstanceKey, ObservedInstance | None]:
        """What was written lately, by key; None: it was cancelled."""
        self._writes = {key: (at, wrote) for key, (at, wrote) in self._writes.items() if now - at < self._seconds}
        return {key: wrote for key, (_, wrote) in self._writes.items()}


class LastSeen:
    """What was UP after the last pass that could read Eureka. It comes back to a suspended syncer when Eureka lost it,
    and while Eureka cannot be read, though a limit or a drain that cannot be read lets nothing else in."""

    def __init__(self) -> None:
        self._up: Mapping[InstanceKey, Instance] = {}

    def note(self, observed: Observed, outcomes: Outcomes, renewed: Collection[InstanceKey], desired: Desired) -> None:
        """Remember what such a pass left, and forget all else. What Eureka has no more may come back in a later pass
        while this process renewed it lately; but not where it was to be cancelled, as another process did then."""
        ours = observed.ours
        up = {key: one.instance for key, one in ours.items() if one.status is InstanceStatus.UP}
        if lost := [key for key in self._up if key not in ours]:
            kept = set(renewed).intersection(lost)
            up |= {key: self._up[key] for key in kept if not _was_to_go(self._up[key], desired)}
        for outcome in outcomes.others:
            key = outcome.action.key
            is_now = outcome.registered or (ours[key].instance if key in ours else None)
            if outcome.status is InstanceStatus.UP and is_now is not None:
                up[key] = is_now
            elif key in ours or isinstance(outcome.action, Cancel):
                up.pop(key, None)
        self._up = up

    def still_wanted(self, desired: Desired, renewed: Iterable[InstanceKey]) -> frozenset[InstanceKey]:
        """What of the lately `renewed` was UP, and is wanted for the same pod and under the same limit: another limit
        may leave fewer places, and the mark of what comes back would hide that."""
        found = set()
        for key in renewed:
            up, one = self._up.get(key), desired.wanted(key)
            if up and one and not one.elsewhere:
                now, then = one.instance.metadata, up.metadata
                if all(now.get(mark) == then.get(mark) for mark in (POD, LIMIT)):
                    found.add(key)
        return frozenset(found)


def _was_to_go(instance: Instance, desired: Desired) -> bool:
    """Whether its syncer has no endpoint for it any more."""
    syncer = syncer_of(instance)
    claim = desired.claims.get(syncer) if syncer is not None else None
    if not isinstance(claim, Serving) or claim.keeps_any or claim.conduct.suspend:
        return False
    return instance.key not in claim.verdicts
