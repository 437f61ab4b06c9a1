"""Whether a former installation (`--former-owner`, `--former-cluster`) has ended, before what it
left is moved. Pure.

Only uncached readings tell, because a renewal does not refresh Eureka's list. An installation
serves a syncer whole. So one instance of each syncer tells of every part of the old installation,
whichever namespaces, labels or class it had.

| the readings of a syncer's instances           | what is known                      | the pass   |
|------------------------------------------------|------------------------------------|------------|
| one was renewed in the last 90 s               | its installation may be at work    | is refused |
| none was, and at least one tells it            | its installation has ended         |            |
| all are gone, or bear another mark             | nothing is left to move            |            |
| else: a read failed, or an answer has no times | nothing                            | is refused |

While passes are refused, perhaps nobody else renews these leases. But a renewal of ours looks like
one of the former installation. So they are renewed only if one of them ends soon, and then
together. After that there is time to see for 90 s that nobody renews them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from eurekube_sync.desired.claims import Desired
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import CLUSTER, OWNER, Ownership, syncer_of
from eurekube_sync.model.text import counted
from eurekube_sync.observe.eureka import Observed, Unread

LATELY = 90.0
"""Seconds: three renewals. An instance that was not renewed for so long may belong to an owner that
has ended. To wait until it expires would leave callers without instances."""

_DONE = "the leases that would end were renewed, and nothing else was done"

Readings: TypeAlias = Mapping[InstanceKey, ObservedInstance | Unread | None]


class FormerRenewed(Struct, frozen=True, kw_only=True):
    """Somebody renewed instances with a former mark: their installation, or a refused pass of
    ours."""

    name: str  # of the former installation, such as `owner demo`
    syncers: tuple[SyncerRef, ...]  # those whose instances were renewed, sorted

    @property
    def sentence(self) -> str:
        """The problem, and what a person should do."""
        syncers = counted(len(self.syncers), "syncer")
        first = self.syncers[0]
        return (
            f"owner clash: instances of {self.name} were renewed in the last {LATELY:.0f} s: "
            f"those of {syncers}, such as {first}. Stop the old installation, and run again "
            f"{LATELY:.0f} s later. This pass is refused: {_DONE}"
        )


class FormerUnread(Struct, frozen=True, kw_only=True):
    """It could not be seen whether somebody renews instances with a former mark."""

    name: str  # as in `FormerRenewed`
    syncers: tuple[SyncerRef, ...]  # those of which no reading tells, sorted
    why: str  # why the first of them could not be read

    @property
    def sentence(self) -> str:
        """The problem. The next pass tries again."""
        syncers = counted(len(self.syncers), "syncer")
        first = self.syncers[0]
        return (
            f"it is not known whether {self.name} still renews the instances of {syncers}, such "
            f"as {first}. This pass is refused: {_DONE}. Why it is not known: {self.why}"
        )


FormerVerdict: TypeAlias = FormerRenewed | FormerUnread
"""Why nothing of a former installation may be moved."""


class Judgement(Struct, frozen=True, kw_only=True):
    """What the readings tell of all former installations."""

    verdicts: tuple[FormerVerdict, ...]  # none if all have ended
    left_alone: frozenset[InstanceKey]  # what a refused pass must not renew


NOTHING_TO_MOVE = Judgement(verdicts=(), left_alone=frozenset())


class _Part(NamedTuple):
    """A part of a former installation that is renewed as a whole."""

    installation: str
    syncer: SyncerRef


def waiting_to_move(observed: Observed, desired: Desired) -> Sequence[ObservedInstance]:
    """Return the instances with a former mark that a first pass would move; none once the move has
    begun.

    From then on, this installation renews what it does not move yet, and its renewals look like
    those of the former one. A former installation that is started again finds our instances at its
    addresses, and refuses itself."""
    former: list[ObservedInstance] = []
    for instance in observed.ours.values():
        if not observed.ownership.is_former(instance):
            return []
        former.append(instance)
    waiting: list[ObservedInstance] = []
    for instance in former:
        new_key = observed.ownership.key_of(instance)
        claim = desired.server_of(new_key)
        if claim is None or claim.spec.suspend:
            continue
        # Eureka keeps a person's override with the id, so such an instance is not moved.
        if instance.instance.override is InstanceStatus.UNKNOWN:
            waiting.append(instance)
    return waiting


def to_read_first(waiting: Iterable[ObservedInstance], ownership: Ownership) -> list[InstanceKey]:
    """Return one instance of each syncer: the one with the latest renewal in the list, because it
    is the least likely to be gone by now."""
    keys: list[InstanceKey] = []
    for instances in _parts(waiting, ownership).values():
        latest = max(instances, key=lambda instance: (instance.renewed, instance.key))
        keys.append(latest.key)
    return keys


def to_read_next(
    waiting: Iterable[ObservedInstance], readings: Readings, ownership: Ownership
) -> list[InstanceKey]:
    """Return the other instances of the syncers of which the first readings do not tell."""
    keys: list[InstanceKey] = []
    for instances in _parts(waiting, ownership).values():
        told = _told_of_part(instances, readings, ownership)
        if isinstance(told, float):
            continue
        for instance in instances:
            if instance.key not in readings:
                keys.append(instance.key)
    return keys


def judge(
    waiting: Sequence[ObservedInstance], readings: Readings, ownership: Ownership
) -> Judgement:
    """Return why nothing may be moved, and which leases a refused pass leaves alone."""
    renewed: dict[str, list[SyncerRef]] = {}
    unread: dict[str, dict[SyncerRef, str]] = {}
    left_alone: set[InstanceKey] = set()
    parts = _parts(waiting, ownership)
    for part, instances in sorted(parts.items()):
        told = _told_of_part(instances, readings, ownership)
        if isinstance(told, str):
            reasons = unread.setdefault(part.installation, {})
            reasons[part.syncer] = told
        elif told is not None and told <= LATELY:
            renewed.setdefault(part.installation, []).append(part.syncer)
            for instance in instances:
                left_alone.add(instance.key)
    if not _one_ends_soon(waiting, readings):
        for instance in waiting:
            left_alone.add(instance.key)

    verdicts: list[FormerVerdict] = []
    for name, syncers in renewed.items():
        verdicts.append(FormerRenewed(name=name, syncers=tuple(syncers)))
    for name, reasons in unread.items():
        not_told = tuple(reasons)
        why = reasons[not_told[0]]
        verdicts.append(FormerUnread(name=name, syncers=not_told, why=why))
    return Judgement(verdicts=tuple(verdicts), left_alone=frozenset(left_alone))


def _one_ends_soon(waiting: Iterable[ObservedInstance], readings: Readings) -> bool:
    """Say whether a lease ends within its duration. The list tells it of what was not read: it may
    hide a renewal, and shows none that was not made. Without a time of Eureka's, each lease may
    end."""
    now = 0
    for reading in readings.values():
        if isinstance(reading, ObservedInstance):
            now = max(now, reading.read_at)
    for instance in waiting:
        latest = instance
        reading = readings.get(instance.key)
        if isinstance(reading, ObservedInstance):
            latest = reading
        # `Lease.renew` adds the duration to the time of the last renewal.
        if not now or latest.last_renewal < now:
            return True
    return False


def _parts(
    waiting: Iterable[ObservedInstance], ownership: Ownership
) -> Mapping[_Part, Sequence[ObservedInstance]]:
    """Group the instances by the part that they tell of."""
    parts: dict[_Part, list[ObservedInstance]] = {}
    for instance in waiting:
        part = _part_of(instance, ownership)
        parts.setdefault(part, []).append(instance)
    return parts


def _part_of(instance: ObservedInstance, ownership: Ownership) -> _Part:
    """Return the part that registered the instance, by its marks."""
    syncer = syncer_of(instance)
    assert syncer is not None  # `Observed.ours` holds none without
    name = f"owner {instance.metadata[OWNER]}"
    cluster = instance.metadata[CLUSTER]
    if cluster != ownership.cluster:
        name += f" of cluster {cluster}"
    return _Part(name, syncer)


def _told_of_part(
    instances: Iterable[ObservedInstance], readings: Readings, ownership: Ownership
) -> float | str | None:
    """Return the same as `_told` for all instances of a part: the shortest silence, else why no
    reading tells."""
    silences: list[float] = []
    whys: list[str] = []
    for instance in instances:
        told = _told(readings.get(instance.key), ownership)
        if isinstance(told, float):
            silences.append(told)
        elif told is not None:
            whys.append(told)
    if silences:
        return min(silences)
    if whys:
        return whys[0]
    return None


def _told(reading: ObservedInstance | Unread | None, ownership: Ownership) -> float | str | None:
    """Return for how many seconds nobody had renewed the instance, or why the reading does not
    tell. None if nothing is left to move: Eureka answered 404, or the instance has another mark by
    now.

    Both times are of Eureka's clock, because ours may be wrong by minutes."""
    if isinstance(reading, Unread):
        return reading.why
    if reading is None or not ownership.is_former(reading):
        return None
    if not reading.last_renewal:
        return "Eureka's answer does not say when the instance was renewed"
    if not reading.read_at:
        return "Eureka's answer has no time (Date)"
    read_at = reading.read_at / 1000  # in seconds, as `renewed` is
    return read_at - reading.renewed
