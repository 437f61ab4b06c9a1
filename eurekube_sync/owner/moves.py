"""What an `owner` command would move, as values: which instance, its new key and marks, and why.

A move changes the marks, and the id where it has to; status, override, lease, URLs and everybody's metadata go along.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from shlex import quote
from typing import NamedTuple

from eurekube_sync.model.errors import OwnerClash
from eurekube_sync.model.eureka import DEFAULT_LEASE, Instance, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.outcomes import Result
from eurekube_sync.model.ownership import CLUSTER, Ownership, syncer_of
from eurekube_sync.model.sources import Cause
from eurekube_sync.model.values import dataclass

DEFAULT_PERIOD, DEFAULT_DURATION = DEFAULT_LEASE
SHOWN = 5
"""The most names in one sentence."""


class Address(NamedTuple):
    """Where an instance is called: an address or host name, and its port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def fits(self, instance: Instance) -> bool:
        """Whether the instance is called there."""
        hosts = {instance.ip_addr, instance.host_name.strip("[]")}
        ports = {port.number for port in (instance.port, instance.secure_port) if port.enabled}
        return self.host.strip("[]") in hosts and self.port in ports


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One instance that gets other marks, and perhaps another id."""

    source: ObservedInstance
    target: InstanceKey
    expects: Mapping[str, str | None]
    """Marks that the source must still have when it is its turn; None: must not have."""
    put: Mapping[str, str]
    why: str

    @property
    def in_place(self) -> bool:
        """Whether it keeps its id."""
        return self.target == self.source.key

    @property
    def syncer(self) -> SyncerRef | None:
        """Whose it will be."""
        return syncer_of(self.made_of(self.source))

    def may_take(self, current: ObservedInstance) -> bool:
        """Whether the source is still what it was when the move was thought of."""
        return all(current.metadata.get(mark) == value for mark, value in self.expects.items())

    def made(self, current: ObservedInstance) -> bool:
        """Whether an instance under the target has the marks of this move."""
        return all(current.metadata.get(mark) == value for mark, value in self.put.items())

    def made_of(self, current: ObservedInstance) -> Instance:
        """The instance to register, from what is registered now."""
        return replace(
            current.unchanged(),
            key=self.target,
            status=current.status,
            metadata={**current.metadata, **self.put},
            # Under its own id the server still knows the override, and an echo could bring back one just removed.
            override=InstanceStatus.UNKNOWN if self.in_place else current.instance.override,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    instance: ObservedInstance
    target: InstanceKey | None
    """Its key then; None: it is cancelled."""
    syncer: SyncerRef | None
    why: str
    result: Result | None = None
    """None: a dry run."""
    detail: str = ""
    cause: Cause | None = None

    @property
    def failed(self) -> bool:
        """Whether it was not done, and nothing has done it before."""
        return self.result in (Result.FAILED, Result.CONFLICT, Result.NOT_TRIED)


def refuse_clash(registry: Iterable[ObservedInstance], ownership: Ownership) -> None:
    """Raises OwnerClash when another cluster uses the owner's name."""
    others = [one for one in in_order(registry) if ownership.clashes(one)]
    if others:
        other = others[0].metadata[CLUSTER]
        raise OwnerClash(
            f"owner {ownership.owner} is used by cluster {other} ({names(others)}): take another name. If this cluster "
            f"replaces it: eurekube-sync owner adopt --cluster {quote(other)}"
        )


def duration_of(one: ObservedInstance) -> int:
    """Seconds that its lease lasts after a register."""
    return one.instance.lease.duration or DEFAULT_DURATION


def names(instances: Sequence[ObservedInstance]) -> str:
    """A few of them, and how many more there are."""
    shown = ", ".join(str(one.key) for one in instances[:SHOWN])
    more = len(instances) - SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def in_order(registry: Iterable[ObservedInstance]) -> list[ObservedInstance]:
    return sorted(registry, key=lambda one: one.key)
