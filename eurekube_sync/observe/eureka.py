"""Eureka's list, divided into our instances and others'; what this process wrote to Eureka lately;
what it last saw UP.

A list may be 30 s old, because Eureka caches it. So a pass reads each instance that it would change
again, uncached (`Observed.refreshed`). Only a daemon has memories, and no removal depends on them.

A list may also be much older, if a cache stands before Eureka, or the server's own cache stands
still. Then it may agree with the cluster by chance. A registration that it does not show, though it
should, tells its age."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import NamedTuple

from eurekube_sync.desired.claims import Desired, Serving
from eurekube_sync.desired.conduct import LIMIT, is_gone
from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.actions import Cancel, Outcomes, Result
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
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted

_OLDEST = 300.0
"""Seconds. Eureka keeps an answer for 180 s and a tick of 30 s where only renewals come, and those
come each 30 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """An uncached read that failed: the instance may exist or not."""

    why: str
    late: bool = False  # the pass ended before the read was tried


@dataclass(frozen=True, kw_only=True)  # without slots: it keeps its index
class Observed:
    """A complete list of Eureka's instances; each key is either in `ours` or in `others`."""

    ownership: Ownership
    scope: Scope
    ours: Mapping[
        InstanceKey, ObservedInstance
    ]  # owner and cluster match, and the syncer is in scope: see `is_ours`
    others: Mapping[InstanceKey, ObservedInstance]
    """Never changed: foreign instances, and ours of another scope or with an unreadable mark."""
    clashes: tuple[str, ...] = ()  # UIDs of other clusters that use our owner name
    listed: Mapping[SyncerRef, int] = field(default_factory=dict)
    """How many instances of each syncer the list showed, before any uncached read, without those
    left to expire."""
    unread: Mapping[InstanceKey, Unread] = field(
        default_factory=dict
    )  # keys whose uncached read failed
    # Unix seconds of the request for the list; the server's cache may have made the list earlier
    asked: float
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
        found: dict[SyncerRef, set[InstanceKey]] = {}
        for key, instance in self.ours.items():
            syncer = syncer_of(instance)
            assert syncer is not None  # `ours` holds none without
            found.setdefault(syncer, set()).add(key)
        return {syncer: frozenset(keys) for syncer, keys in found.items()}

    @cached_property
    def former(self) -> Mapping[InstanceKey, ObservedInstance]:
        """The instances with a former mark, by the key that they get from this owner."""
        if not self.ownership.former:
            return {}
        return {
            self.ownership.key_of(instance): instance
            for instance in self.ours.values()
            if self.ownership.is_former(instance)
        }

    def registered(self, key: InstanceKey) -> ObservedInstance | None:
        """Return our instance of this key, also one that is still registered under its former
        id."""
        return self.ours.get(key) or self.former.get(key)

    def silent(self, instance: ObservedInstance) -> float:
        """Return for how many seconds nobody had renewed or registered the instance when the list
        was made. 0 where Eureka gives no renewal time."""
        return self.newest - instance.renewed if instance.last_renewal else 0.0

    def refreshed(
        self, readings: Mapping[InstanceKey, ObservedInstance | Unread | None]
    ) -> Observed:
        """Return the list with each reading in place of what it showed; None means that Eureka
        answered 404."""
        if not readings:
            return self
        ours, others, unread = dict(self.ours), dict(self.others), dict(self.unread)
        for key, reading in readings.items():
            if isinstance(reading, Unread):
                unread[key] = reading
                continue
            ours.pop(key, None)
            others.pop(key, None)
            if reading is not None:
                (ours if is_ours(reading, self.ownership, self.scope) else others)[key] = reading
        return replace(self, ours=ours, others=others, unread=unread)

    def dated(
        self, readings: Mapping[InstanceKey, ObservedInstance | Unread | None], cache: float
    ) -> Observed:
        """Return the list with its age, as far as uncached readings of our instances tell it. A
        list may hide for `cache` seconds what was registered."""
        unshown = [self.outdated] if self.outdated is not None else []
        for key, reading in readings.items():
            if not isinstance(reading, ObservedInstance) or not is_ours(
                reading, self.ownership, self.scope
            ):
                continue
            listed = self.ours.get(key) or self.others.get(key)
            shown = listed.last_dirty_timestamp if listed else 0
            registered = reading.last_dirty_timestamp / 1000
            if reading.last_dirty_timestamp > shown and self.asked - registered >= cache:
                unshown.append(registered)
        return replace(self, outdated=max(unshown)) if unshown else self

    def remembering(self, written: Mapping[InstanceKey, ObservedInstance | None]) -> Observed:
        """Return the list with our recent registrations added. Another owner's instance under the
        same key is newer than our write. An instance that we cancelled and that is still listed may
        have been registered again, so it stays, and is read again later."""
        return self.refreshed(
            {key: wrote for key, wrote in written.items() if wrote and key not in self.others}
        )

    def beside(
        self, elsewhere: Iterable[ObservedInstance], syncers: Collection[SyncerRef]
    ) -> Observed:
        """Return the list with the instances of these syncers that other Eureka servers hold. Only
        for deleted syncers, because nothing new is registered for them. Any other instance may have
        been registered since Kubernetes was listed, and would look undesired."""
        known = self.ours.keys() | self.others.keys()
        found = [
            i for i in elsewhere if i.key not in known and is_ours(i, self.ownership, self.scope)
        ]
        mine = {i.key: i for i in found if syncer_of(i) in syncers}
        return (
            replace(self, ours={**self.ours, **mine}, listed=_counted(mine.values(), self.listed))
            if mine
            else self
        )

    def narrowed(self, scope: Scope) -> Observed:
        """Move instances whose syncers `scope` does not cover to `others`; `scope` knows the
        syncers' labels."""
        if scope == self.scope:
            return self
        theirs = {key: i for key, i in self.ours.items() if not is_ours(i, self.ownership, scope)}
        ours = {key: i for key, i in self.ours.items() if key not in theirs}
        return replace(self, scope=scope, ours=ours, others={**self.others, **theirs})


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
    latest: dict[LeaseTimes, ObservedInstance] = {}
    if before and (before.ownership, before.scope) != (ownership, scope):
        before = None
    known = before.ours if before else {}
    # How many of `ours` were ours in the pass before, with nothing changed but their last renewal
    unchanged = 0
    for one in registry.data:
        instance, key = one.instance, one.instance.key
        was, last = known.get(key), latest.get(instance.lease)
        if last is None or one.last_renewal > last.last_renewal:
            latest[instance.lease] = one
        if was is not None and was.instance is instance and key not in ours:
            unchanged += 1
            ours[key] = one
        elif is_ours(one, ownership, scope):
            ours[key] = one
        else:
            others[key] = one
            if ownership.clashes(one):
                clashes.add(one.metadata.get(CLUSTER, ""))
    same = before if before and unchanged == len(ours) == len(known) else None
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


def _counted(
    ours: Iterable[ObservedInstance], before: Mapping[SyncerRef, int]
) -> Mapping[SyncerRef, int]:
    found = Counter(before)
    for instance in ours:
        syncer = syncer_of(instance)
        assert syncer is not None  # `is_ours` has read it
        found[syncer] += not is_gone(instance)
    return found


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
    found: list[InstanceKey] = []
    for ref, claim in sorted(desired.claims.items()):
        status = claim.syncer.status
        if (
            not isinstance(claim, Serving)
            or status is None
            or status.eureka_unknown_since is not None
        ):
            continue
        listed = observed.keys_by_syncer.get(ref, frozenset())
        up = sum(observed.ours[key].status is InstanceStatus.UP for key in listed)
        if (len(listed), up) != (status.registered, status.up):
            found += sorted({*listed, *claim.wanted})
    return found


def marked_cluster(
    registry: Complete[tuple[ObservedInstance, ...]] | Unknown, owner: str
) -> Complete[str]:
    """Return the UID of the only cluster in which the owner has instances; "" if there is no such
    cluster."""
    listed = registry.data if isinstance(registry, Complete) else ()
    found = {one.metadata.get(CLUSTER, "") for one in listed if one.metadata.get(OWNER) == owner}
    uid = found.pop() if len(found) == 1 else ""
    return Complete(data=uid if CLUSTER_PATTERN.fullmatch(uid) else "")


def held_by_owners(
    registry: Complete[tuple[ObservedInstance, ...]],
    owners: frozenset[str] | set[str],
    scope: Scope,
) -> tuple[ObservedInstance, ...]:
    """Return the instances with one of the owners' names in scope, of any cluster."""
    held: list[ObservedInstance] = []
    for instance in registry.data:
        syncer = syncer_of(instance)
        if instance.metadata.get(OWNER) in owners and syncer is not None and scope.covers(syncer):
            held.append(instance)
    return tuple(held)


EXPECTED_INTERVAL = 30.0  # seconds: `expectedClientRenewalIntervalSeconds`
THRESHOLD = 0.85  # `renewalPercentThreshold`


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
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
        return self.others * 60 / EXPECTED_INTERVAL + self.ours * 60 / self.interval

    @property
    def blocks_eviction(self) -> bool:
        """Whether our interval alone keeps Eureka in self-preservation, so that it never evicts
        anything."""
        return (
            self.interval > EXPECTED_INTERVAL and self.ours > 0 and self.renewals <= self.threshold
        )

    @property
    def warning(self) -> str:
        return (
            f"self-preservation: with passes every {self.interval:g}s Eureka gets "
            f"{counted(self.renewals, 'renewal')} "
            f"a minute, not above its threshold of {self.threshold}. So it evicts nobody. Use "
            "--interval 30s or less."
        )


def headroom(observed: Observed, interval: float) -> Headroom:
    """Return the headroom of a complete list; instances with our owner's name count as ours, in any
    scope."""
    owner = observed.ownership.owner
    elsewhere = sum(instance.metadata.get(OWNER) == owner for instance in observed.others.values())
    return Headroom(
        ours=len(observed.ours) + elsewhere,
        others=len(observed.others) - elsewhere,
        interval=interval,
    )


def interval_of(pass_interval: float, *, slack: float) -> float:
    """Return the seconds between two renewals of a lease, if each pass renews what is due."""
    wait = EXPECTED_INTERVAL - slack
    return pass_interval * max(1, -(-wait // pass_interval))


class _Write(NamedTuple):
    at: float  # in monotonic seconds
    since: int  # Unix milliseconds: what was registered has this timestamp or a newer one
    wrote: ObservedInstance | None  # None: cancelled


class OwnWrites:
    """Our writes that Eureka's lists may not show yet. Times in monotonic seconds.

    They are those of the last `seconds`, and older registrations until a list has shown them."""

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        self._writes: dict[InstanceKey, _Write] = {}

    def note(self, outcomes: Outcomes, now: float, *, since: float = 0) -> None:
        """Remember what a pass wrote that began at `since`, in Unix seconds. Forget the key of a
        failed call, which may have had its effect or not."""
        for outcome in outcomes.others:
            key = outcome.action.key
            if outcome.failed or outcome.result in (Result.GONE, Result.CONFLICT):
                self._writes.pop(key, None)
            elif isinstance(outcome.action, Cancel):
                self._writes[key] = _Write(now, int(since * 1000), None)
            else:
                wrote = outcome.registered
                assert wrote  # `others` has no plain renewal
                status = outcome.status or wrote.status
                instance = ObservedInstance(instance=replace(wrote, status=status))
                self._writes[key] = _Write(now, int(since * 1000), instance)

    def recent(self, now: float) -> Mapping[InstanceKey, ObservedInstance | None]:
        """Return the writes of the last seconds by key; None means cancelled."""
        writes = self._writes.items()
        return {key: write.wrote for key, write in writes if now - write.at < self._seconds}

    def unshown(self, now: float, listed: Observed) -> Mapping[InstanceKey, ObservedInstance]:
        """Return older registrations that the list should show, and does not, the newest first.
        Forget the others."""
        found: dict[InstanceKey, _Write] = {}
        for key, write in list(self._writes.items()):
            if now - write.at < self._seconds:
                continue
            shown = listed.ours.get(key) or listed.others.get(key)
            if write.wrote is None or (
                shown is not None and shown.last_dirty_timestamp >= write.since
            ):
                del self._writes[key]
            else:
                found[key] = write
        newest_first = sorted(found.items(), key=lambda item: -item[1].at)
        return {key: write.wrote for key, write in newest_first if write.wrote is not None}

    def settle(self, readings: Mapping[InstanceKey, ObservedInstance | Unread | None]) -> None:
        """Forget what an uncached read did not find."""
        for key, reading in readings.items():
            if reading is None:
                self._writes.pop(key, None)


class LastSeen:
    """The instances that were UP after the last pass that could read Eureka. They let an instance
    be registered again where a suspend, a limit or a drain otherwise forbids it: if Eureka lost the
    instance of a suspended syncer, or if Eureka cannot be read."""

    def __init__(self) -> None:
        self._up: Mapping[InstanceKey, Instance] = {}

    def note(
        self,
        observed: Observed,
        outcomes: Outcomes,
        renewed: Collection[InstanceKey],
        desired: Desired,
    ) -> None:
        """Remember the instances that the pass left UP, and forget all others. An instance that
        Eureka lost is remembered while this process renewed it lately, unless its syncer no longer
        wants it: then another process may have cancelled it."""
        ours = observed.ours
        up = {key: one.instance for key, one in ours.items() if one.status is InstanceStatus.UP}
        if lost := [key for key in self._up if key not in ours]:
            kept = set(renewed).intersection(lost)
            up |= {key: self._up[key] for key in kept if not _is_unwanted(self._up[key], desired)}
        for outcome in outcomes.others:
            key = outcome.action.key
            registered = outcome.registered or (ours[key].instance if key in ours else None)
            if outcome.status is InstanceStatus.UP and registered is not None:
                up[key] = registered
            elif key in ours or isinstance(outcome.action, Cancel):
                up.pop(key, None)
        self._up = up

    def still_wanted(
        self, desired: Desired, renewed: Iterable[InstanceKey]
    ) -> frozenset[InstanceKey]:
        """Return the lately `renewed` instances that were UP and are wanted for the same pod and
        under the same limit. Another limit may leave fewer places, and the mark of an instance that
        is registered again would hide that."""
        found = set()
        for key in renewed:
            up, one = self._up.get(key), desired.wanted(key)
            if up and one and not one.elsewhere:
                now, then = one.instance.metadata, up.metadata
                if now.get(POD) == then.get(POD) and now.get(LIMIT) == then.get(LIMIT):
                    found.add(key)
        return frozenset(found)


def _is_unwanted(instance: Instance, desired: Desired) -> bool:
    """Say whether the instance's syncer has no endpoint for it any more."""
    syncer = syncer_of(instance)
    claim = desired.claims.get(syncer) if syncer is not None else None
    if not isinstance(claim, Serving) or claim.keeps_any or claim.conduct.suspend:
        return False
    return instance.key not in claim.verdicts
