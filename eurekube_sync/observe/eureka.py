"""Eureka's list, divided into our instances and others'; what this process wrote to Eureka lately;
what it last saw UP.

A list may be 30 s old, because Eureka caches it. So a pass reads each instance that it would change
again, uncached (`Observed.refreshed`). Only a daemon has memories, and no removal depends on them.

A list may also be much older, if a cache stands before Eureka, or the server's own cache stands
still. Then it may agree with the cluster by chance. A registration that it does not show, though it
should, tells its age."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct, field

from eurekube_sync.desired.claims import Desired, Kept, Serving, Wanted, is_suspended
from eurekube_sync.desired.limit import LIMIT
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Cancel, Outcome, Outcomes, Result
from eurekube_sync.model.eureka import (
    Instance,
    InstanceKey,
    InstanceStatus,
    LeaseTimes,
    ObservedInstance,
)
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import CLUSTER, CLUSTER_PATTERN, OWNER, POD, Ownership, syncer_of
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import counted

_OLDEST = 300.0
"""Seconds. Eureka keeps an answer for 180 s and a tick of 30 s where only renewals come, and those
come each 30 s."""


class Unread(Struct, frozen=True, kw_only=True):
    """An uncached read that failed: the instance may exist or not."""

    why: str
    late: bool = False  # the pass ended before the read was tried


class Observed(Struct, frozen=True, kw_only=True, dict=True):
    """A complete list of Eureka's instances; each key is either in `ours` or in `others`."""

    ownership: Ownership
    scope: Scope
    ours: Mapping[InstanceKey, ObservedInstance]
    """Those whose owner and cluster match, and whose syncer is in scope: see `is_ours`."""
    others: Mapping[InstanceKey, ObservedInstance]
    """Never changed: foreign instances, and ours of another scope or with an unreadable mark."""
    clashes: tuple[str, ...] = ()  # UIDs of other clusters that use our owner name
    listed: Mapping[SyncerRef, int] = field(default_factory=dict)
    """How many instances of each syncer the list showed, before any uncached read."""
    unread: Mapping[InstanceKey, Unread] = field(default_factory=dict)
    """The keys whose uncached read failed."""
    asked: float
    """Unix seconds of the request for the list; the server's cache may have made the list
    earlier."""
    outdated: float | None = None
    """When the newest instance was registered that the list should show and does not, in Unix
    seconds: the list is at least as old. None: nothing shows that the list is older than Eureka's
    own cache makes it."""
    newest: float = 0.0
    """The latest renewal in the list, in Unix seconds of the server's clock. The list of a server
    with few changes may be minutes old, so the age of a renewal is measured from this time."""

    @cached_property
    def keys_by_syncer(self) -> Mapping[SyncerRef, frozenset[InstanceKey]]:
        """The keys of `ours`, grouped by the syncer that their mark names."""
        grouped: dict[SyncerRef, set[InstanceKey]] = {}
        for key, instance in self.ours.items():
            syncer = syncer_of(instance)
            assert syncer is not None  # `ours` holds none without
            grouped.setdefault(syncer, set()).add(key)
        return {syncer: frozenset(keys) for syncer, keys in grouped.items()}

    @cached_property
    def former(self) -> Mapping[InstanceKey, ObservedInstance]:
        """The instances with a former mark, by the key that they get from this owner."""
        if not self.ownership.former:
            return {}
        former: dict[InstanceKey, ObservedInstance] = {}
        for instance in self.ours.values():
            if self.ownership.is_former(instance):
                key = self.ownership.key_of(instance)
                former[key] = instance
        return former

    def registered(self, key: InstanceKey) -> ObservedInstance | None:
        """Return our instance of this key, also one that is still registered under its former
        id."""
        return self.ours.get(key) or self.former.get(key)

    def silent(self, instance: ObservedInstance) -> float:
        """Return for how many seconds nobody had renewed or registered the instance when the list
        was made. 0 where Eureka gives no renewal time."""
        if instance.last_renewal:
            return self.newest - instance.renewed
        return 0.0

    def refreshed(
        self, readings: Mapping[InstanceKey, ObservedInstance | Unread | None]
    ) -> Observed:
        """Return the list with each reading in place of what it showed; None means that Eureka
        answered 404."""
        if not readings:
            return self
        ours = dict(self.ours)
        others = dict(self.others)
        unread = dict(self.unread)
        for key, reading in readings.items():
            if isinstance(reading, Unread):
                unread[key] = reading
                continue
            ours.pop(key, None)
            others.pop(key, None)
            if reading is None:
                continue
            if is_ours(reading, self.ownership, self.scope):
                ours[key] = reading
            else:
                others[key] = reading
        return replace(self, ours=ours, others=others, unread=unread)

    def dated(
        self, readings: Mapping[InstanceKey, ObservedInstance | Unread | None], cache: float
    ) -> Observed:
        """Return the list with its age, as far as uncached readings of our instances tell it. A
        list may hide for `cache` seconds what was registered."""
        outdated = self.outdated
        for key, reading in readings.items():
            if not isinstance(reading, ObservedInstance):
                continue
            listed = self.ours.get(key) or self.others.get(key)
            if listed is not None and listed.last_dirty_timestamp >= reading.last_dirty_timestamp:
                continue
            registered = reading.last_dirty_timestamp / 1000
            if not registered or self.asked - registered < cache:
                continue  # without a time, or so new that the cache may hide it
            is_newest = outdated is None or registered > outdated
            if is_newest and is_ours(reading, self.ownership, self.scope):
                outdated = registered
        if outdated == self.outdated:
            return self
        return replace(self, outdated=outdated)

    def remembering(self, written: Mapping[InstanceKey, ObservedInstance | None]) -> Observed:
        """Return the list with our recent registrations added. Another owner's instance under the
        same key is newer than our write. An instance that we cancelled and that is still listed may
        have been registered again, so it stays, and is read again later."""
        registered: dict[InstanceKey, ObservedInstance] = {}
        for key, wrote in written.items():
            if wrote is not None and key not in self.others:
                registered[key] = wrote
        return self.refreshed(registered)

    def beside(
        self, elsewhere: Iterable[ObservedInstance], syncers: Collection[SyncerRef]
    ) -> Observed:
        """Return the list with the instances of these syncers that other Eureka servers hold. Only
        for deleted syncers, because nothing new is registered for them. Any other instance may have
        been registered since Kubernetes was listed, and would look undesired."""
        added: dict[InstanceKey, ObservedInstance] = {}
        for instance in elsewhere:
            if instance.key in self.ours or instance.key in self.others:
                continue
            if syncer_of(instance) in syncers and is_ours(instance, self.ownership, self.scope):
                added[instance.key] = instance
        if not added:
            return self
        listed = _counted(added.values(), self.listed)
        return replace(self, ours={**self.ours, **added}, listed=listed)

    def narrowed(self, scope: Scope) -> Observed:
        """Move instances whose syncers `scope` does not cover to `others`; `scope` knows the
        syncers' labels."""
        if scope == self.scope:
            return self
        ours: dict[InstanceKey, ObservedInstance] = {}
        others = dict(self.others)
        for key, instance in self.ours.items():
            if is_ours(instance, self.ownership, scope):
                ours[key] = instance
            else:
                others[key] = instance
        return replace(self, scope=scope, ours=ours, others=others)


def observe(
    registry: Complete[tuple[ObservedInstance, ...]],
    ownership: Ownership,
    scope: Scope,
    *,
    asked: float,
    before: Observed | None = None,
) -> Observed:
    """Divide a complete list. An Unknown registry has no `Observed`, so nothing can be removed from
    it. `asked` is the time of the request, in Unix seconds. `before` is the result of the previous
    pass: an instance that was ours, and of which only the last renewal changed, is still ours."""
    ours: dict[InstanceKey, ObservedInstance] = {}
    others: dict[InstanceKey, ObservedInstance] = {}
    clashes: set[str] = set()
    if before is not None and (before.ownership != ownership or before.scope != scope):
        before = None
    known: Mapping[InstanceKey, ObservedInstance] = {}
    if before is not None:
        known = before.ours
    # How many of `ours` were ours in the pass before, with nothing changed but their last renewal
    unchanged = 0
    for instance in registry.data:
        key = instance.key
        was = known.get(key)
        if was is not None and was.instance is instance.instance and key not in ours:
            unchanged += 1
            ours[key] = instance
        elif is_ours(instance, ownership, scope):
            ours[key] = instance
        else:
            others[key] = instance
            if ownership.clashes(instance):
                clashes.add(instance.metadata.get(CLUSTER, ""))
    # What was counted and grouped for exactly these instances is still right.
    same: Observed | None = None
    listed: Mapping[SyncerRef, int]
    if before is not None and unchanged == len(ours) == len(known):
        same = before
        listed = before.listed
    else:
        listed = _counted(ours.values(), {})
    observed = Observed(
        ownership=ownership,
        scope=scope,
        ours=ours,
        others=others,
        clashes=tuple(sorted(clashes)),
        listed=listed,
        asked=asked,
        newest=newest_renewal(registry.data),
    )
    if same is not None:
        vars(observed)["keys_by_syncer"] = same.keys_by_syncer
    return observed


def newest_renewal(instances: Iterable[ObservedInstance]) -> float:
    """Return the latest renewal in a list, in Unix seconds. Of the instances with the same lease,
    `last_renewal` tells which one has it."""
    latest: dict[LeaseTimes, ObservedInstance] = {}
    for instance in instances:
        lease = instance.instance.lease
        known = latest.get(lease)
        if known is None or instance.last_renewal > known.last_renewal:
            latest[lease] = instance
    return max((instance.renewed for instance in latest.values()), default=0.0)


def _counted(
    ours: Iterable[ObservedInstance], before: Mapping[SyncerRef, int]
) -> Mapping[SyncerRef, int]:
    """Return how many instances each syncer has, together with those counted before."""
    counts = Counter(before)
    for instance in ours:
        syncer = syncer_of(instance)
        assert syncer is not None  # `is_ours` has read it
        counts[syncer] += 1
    return counts


def is_ours(instance: ObservedInstance, ownership: Ownership, scope: Scope) -> bool:
    """Say whether a pass may change the instance: owner and cluster match, and its syncer is in
    scope."""
    syncer = syncer_of(instance)
    return syncer is not None and ownership.holds(instance) and scope.covers(syncer)


def of_doubtful_age(desired: Desired, observed: Observed) -> list[InstanceKey]:
    """Return the instances that tell a new process whether the list is older than Eureka's own
    cache makes it.

    They are all of ours if nobody was renewed for long in the list, else those of syncers whose
    last status counts other instances than the list shows. A new process remembers nothing else of
    the last pass."""
    if observed.newest and observed.asked - observed.newest > _OLDEST:
        return sorted(observed.ours)
    doubtful: list[InstanceKey] = []
    for ref, claim in sorted(desired.claims.items()):
        status = claim.syncer.status
        if status is None or not isinstance(claim, Serving):
            continue
        if status.eureka_unknown_since is not None:
            continue
        listed = observed.keys_by_syncer.get(ref, frozenset())
        up = 0
        for key in listed:
            if observed.ours[key].status is InstanceStatus.UP:
                up += 1
        if len(listed) != status.registered or up != status.up:
            doubtful += sorted(listed.union(claim.wanted))
    return doubtful


def marked_cluster(
    registry: Complete[tuple[ObservedInstance, ...]] | Unknown, owner: str
) -> Complete[str]:
    """Return the UID of the only cluster in which the owner has instances; "" if there is no such
    cluster."""
    uids: set[str] = set()
    if isinstance(registry, Complete):
        for instance in registry.data:
            if instance.metadata.get(OWNER) == owner:
                uids.add(instance.metadata.get(CLUSTER, ""))
    if len(uids) == 1:
        uid = uids.pop()
        if CLUSTER_PATTERN.fullmatch(uid):
            return Complete(data=uid)
    return Complete(data="")


def held_by_owners(
    registry: Complete[tuple[ObservedInstance, ...]],
    owners: frozenset[str] | set[str],
    scope: Scope,
) -> tuple[ObservedInstance, ...]:
    """Return the instances with one of the owners' names in scope, of any cluster."""
    held: list[ObservedInstance] = []
    for instance in registry.data:
        if instance.metadata.get(OWNER) not in owners:
            continue
        syncer = syncer_of(instance)
        if syncer is not None and scope.covers(syncer):
            held.append(instance)
    return tuple(held)


EXPECTED_INTERVAL = 30.0  # seconds: `expectedClientRenewalIntervalSeconds`
THRESHOLD = 0.85  # `renewalPercentThreshold`


class Headroom(Struct, frozen=True, kw_only=True):
    """How near Eureka is to self-preservation, if all instances live and ours are renewed every
    `interval` seconds. A server without peers counts one client more than it holds
    (`openForTraffic`); that is left out."""

    ours: int
    others: int
    interval: float

    @property
    def expected(self) -> float:
        """Renewals a minute that the server expects."""
        return (self.ours + self.others) * 60 / EXPECTED_INTERVAL

    @property
    def threshold(self) -> int:
        """Renewals a minute at or below which Eureka evicts nothing."""
        return int(self.expected * THRESHOLD)

    @property
    def renewals(self) -> float:
        """Renewals a minute that Eureka receives: two of each other instance, and ours."""
        from_others = self.others * 60 / EXPECTED_INTERVAL
        from_us = self.ours * 60 / self.interval
        return from_others + from_us

    @property
    def blocks_eviction(self) -> bool:
        """Say whether our interval alone keeps Eureka in self-preservation, so that it never evicts
        anything."""
        is_longer = self.interval > EXPECTED_INTERVAL and self.ours > 0
        return is_longer and self.renewals <= self.threshold

    @property
    def warning(self) -> str:
        """Return what a person should know and do if our interval blocks evictions."""
        renewals = counted(self.renewals, "renewal")
        return (
            f"self-preservation: with passes every {self.interval:g}s Eureka gets {renewals} a "
            f"minute, not above its threshold of {self.threshold}. So it evicts nobody. Use "
            "--interval 30s or less."
        )


def headroom(observed: Observed, interval: float) -> Headroom:
    """Return the headroom of a complete list; instances with our owner's name count as ours, in any
    scope."""
    # `count` is quicker than a loop over each instance of the registry.
    owners = [instance.metadata.get(OWNER) for instance in observed.others.values()]
    elsewhere = owners.count(observed.ownership.owner)
    ours = len(observed.ours) + elsewhere
    others = len(observed.others) - elsewhere
    return Headroom(ours=ours, others=others, interval=interval)


def interval_of(pass_interval: float, *, slack: float) -> float:
    """Return the seconds between two renewals of a lease, if each pass renews what is due."""
    wait = EXPECTED_INTERVAL - slack
    passes = -(-wait // pass_interval)  # rounded up: a lease falls due between two passes
    return pass_interval * max(1, passes)


class Write(NamedTuple):
    at: float  # in monotonic seconds
    since: int  # Unix milliseconds: what was registered has this timestamp or a newer one
    wrote: ObservedInstance | None  # None: cancelled


class OwnWrites:
    """Our writes that Eureka's lists may not show yet. Times in monotonic seconds.

    They are those of the last `seconds`, and older registrations until a list has shown them."""

    def __init__(
        self, writes: Mapping[InstanceKey, Write] = MappingProxyType({}), *, seconds: float
    ) -> None:
        self._seconds = seconds
        self._writes = dict(writes)

    @property
    def writes(self) -> Mapping[InstanceKey, Write]:
        """All that is remembered, by key."""
        return self._writes

    def note(self, outcomes: Outcomes, now: float, *, since: float = 0) -> None:
        """Remember what a pass wrote that began at `since`, in Unix seconds. Forget the key of a
        failed call, which may have had its effect or not."""
        for outcome in outcomes.others:
            key = outcome.action.key
            if outcome.failed or outcome.result in (Result.GONE, Result.CONFLICT):
                self._writes.pop(key, None)
            else:
                self._writes[key] = Write(now, int(since * 1000), _left_by(outcome))

    def recent(self, now: float) -> Mapping[InstanceKey, ObservedInstance | None]:
        """Return the writes of the last seconds by key; None means cancelled."""
        recent: dict[InstanceKey, ObservedInstance | None] = {}
        for key, write in self._writes.items():
            if now - write.at < self._seconds:
                recent[key] = write.wrote
        return recent

    def unshown(self, now: float, listed: Observed) -> Mapping[InstanceKey, ObservedInstance]:
        """Return older registrations that the list should show, and does not, the newest first.
        Forget the others."""
        unshown: dict[InstanceKey, ObservedInstance] = {}
        newest_first = sorted(self._writes.items(), key=lambda item: -item[1].at)
        for key, write in newest_first:
            if now - write.at < self._seconds:
                continue
            shown = listed.ours.get(key) or listed.others.get(key)
            is_shown = shown is not None and shown.last_dirty_timestamp >= write.since
            if write.wrote is None or is_shown:
                del self._writes[key]
            else:
                unshown[key] = write.wrote
        return unshown

    def settle(
        self, readings: Mapping[InstanceKey, ObservedInstance | Unread | None]
    ) -> list[InstanceKey]:
        """Forget what an uncached read did not find. Return what it found with an older timestamp
        than ours: our clock went back, or another process registered it later. No list can show a
        newer one, so from now on one that shows this one shows our write."""
        older: list[InstanceKey] = []
        for key, reading in readings.items():
            if reading is None:
                self._writes.pop(key, None)
            elif isinstance(reading, ObservedInstance) and key in self._writes:
                stands = reading.last_dirty_timestamp
                if stands < self._writes[key].since:
                    self._writes[key] = self._writes[key]._replace(since=stands)
                    older.append(key)
        return older


def _left_by(outcome: Outcome) -> ObservedInstance | None:
    """Return the instance as the call left it; None if it was cancelled."""
    if isinstance(outcome.action, Cancel):
        return None
    instance = outcome.registered
    assert instance  # `Outcomes.others` has no plain renewal
    status = outcome.status or instance.status
    return ObservedInstance(instance=replace(instance, status=status))


class LastSeen:
    """The instances that were UP after the last pass that could read Eureka. They let an instance
    be registered again where a suspend, a limit or a drain otherwise forbids it: if Eureka lost the
    instance of a suspended syncer, or if Eureka cannot be read."""

    def __init__(self) -> None:
        self._up: Mapping[InstanceKey, Instance] = {}
        self._syncers: Mapping[InstanceKey, str] = {}
        """The UID of the syncer that wanted each of these when it was UP. Another object of that
        name, or an heir, may have come after the instance was cancelled for the deletion of the
        first."""
        self._unwanted_once: frozenset[InstanceKey] = frozenset()
        """Those that nothing wanted, or not under this limit, in a pass that could not read Eureka.
        Another process may have cancelled them, and no call has proven since that they stand."""

    def note(
        self,
        observed: Observed,
        outcomes: Outcomes,
        renewed: Collection[InstanceKey],
        desired: Desired,
    ) -> Sequence[InstanceKey]:
        """Remember the instances that the pass left UP, and forget all others. An instance that
        Eureka lost is remembered while this process renewed it lately, unless its syncer no longer
        wants it, or has another limit: then another process may have cancelled it. Return those to
        renew in the next pass, because only that shows whether they stand for the syncer that wants
        them now."""
        ours = observed.ours
        up: dict[InstanceKey, Instance] = {}
        for key, instance in ours.items():
            if instance.status is InstanceStatus.UP:
                up[key] = instance.instance
        for key in self._lost_and_wanted(ours, renewed, desired):
            up[key] = self._up[key]

        # The list is older than the calls of the pass, so what they did comes last.
        for outcome in outcomes.others:
            key = outcome.action.key
            registered = outcome.registered
            if registered is None and key in ours:
                registered = ours[key].instance
            if outcome.status is InstanceStatus.UP and registered is not None:
                up[key] = registered
            elif key in ours or isinstance(outcome.action, Cancel):
                up.pop(key, None)
        self._up = up

        unwanted_once: set[InstanceKey] = set()
        for key in self._unwanted_once:
            if key in up and not _is_proven(key, outcomes):
                unwanted_once.add(key)
        self._unwanted_once = frozenset(unwanted_once)
        return self._note_syncers(outcomes, desired)

    def _lost_and_wanted(
        self,
        ours: Mapping[InstanceKey, ObservedInstance],
        renewed: Collection[InstanceKey],
        desired: Desired,
    ) -> list[InstanceKey]:
        """Return what Eureka lost although this process `renewed` it lately, and what is wanted as
        before."""
        lost = [key for key in self._up if key not in ours]
        if not lost:
            return []  # nearly always
        wanted: list[InstanceKey] = []
        for key in set(renewed).intersection(lost):
            if not _is_unwanted(self._up[key], desired):
                wanted.append(key)
        return wanted

    def note_unread(self, desired: Desired) -> None:
        """Remember what a pass does not want that could not read Eureka."""
        unwanted_once = set(self._unwanted_once)
        for key, up in self._up.items():
            if _is_unwanted(up, desired):
                unwanted_once.add(key)
        self._unwanted_once = frozenset(unwanted_once)

    def _note_syncers(self, outcomes: Outcomes, desired: Desired) -> Sequence[InstanceKey]:
        """Remember the syncers, and return the instances that stay another syncer's until a call
        proves that they still stand: the list may be older than a cancel."""
        uids = {ref: claim.syncer.uid for ref, claim in desired.claims.items()}
        syncers: dict[InstanceKey, str] = {}
        unproven: list[InstanceKey] = []
        for key in self._up:
            before = self._syncers.get(key)
            uid = before
            syncer = desired.wanted_by.get(key)
            if syncer is not None:
                uid = uids[syncer]
            if before is not None and uid != before and not _is_proven(key, outcomes):
                unproven.append(key)
                uid = before
            if uid is not None:
                syncers[key] = uid
        self._syncers = syncers
        return unproven

    def still_wanted(
        self, desired: Desired, renewed: Iterable[InstanceKey]
    ) -> frozenset[InstanceKey]:
        """Return the lately `renewed` instances that were UP and are wanted by the same syncer, for
        the same pod and under the same limit. Another limit may leave fewer places, and the mark of
        an instance that is registered again would hide that."""
        still_wanted: set[InstanceKey] = set()
        for key in renewed:
            up = self._up.get(key)
            wanted = desired.wanted(key)
            if up is None or wanted is None or wanted.elsewhere:
                continue
            claim = desired.claims[desired.wanted_by[key]]
            if is_suspended(claim) and key in self._unwanted_once:
                continue
            uid = claim.syncer.uid
            if self._syncers.get(key, uid) != uid:
                continue
            marks = wanted.instance.metadata
            is_same_pod = marks.get(POD) == up.metadata.get(POD)
            is_same_limit = marks.get(LIMIT) == up.metadata.get(LIMIT)
            if is_same_pod and is_same_limit:
                still_wanted.add(key)
        return frozenset(still_wanted)


def _is_proven(key: InstanceKey, outcomes: Outcomes) -> bool:
    """Say whether a call of the pass showed that the instance is UP."""
    outcome = outcomes.by_key.get(key)
    return outcome is not None and not outcome.failed and outcome.status is InstanceStatus.UP


def _is_unwanted(instance: Instance, desired: Desired) -> bool:
    """Say whether the instance's syncer does not want it UP any more: it has no endpoint for it, or
    one that is not ready, drained, over the limit or another syncer's; or the limit changed, which
    may leave it without a place."""
    syncer = syncer_of(instance)
    claim = desired.claims.get(syncer) if syncer is not None else None
    if not isinstance(claim, Serving) or claim.spec.suspend:
        return False
    verdict = claim.verdicts.get(instance.key)
    if verdict is None:
        return not claim.keeps_any
    if not isinstance(verdict, Wanted):
        return not isinstance(verdict, Kept)
    wanted = verdict.instance
    if wanted.status is not InstanceStatus.UP:
        return True
    return wanted.metadata.get(LIMIT) != instance.metadata.get(LIMIT)
