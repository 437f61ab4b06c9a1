"""The values of the `owner` commands: a move of an instance to a new key and new marks, and the report. Status,
override, lease, URLs and others' metadata move along."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from shlex import quote
from typing import TypeVar

from eurekube_sync.controller.exit_codes import ExitCode, of_error, of_failures
from eurekube_sync.model.actions import Result
from eurekube_sync.model.errors import ClusterError, EurekubeError, OwnerClash, SourceUnknown
from eurekube_sync.model.eureka import DEFAULT_LEASE, Instance, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import CLUSTER, Ownership, syncer_of
from eurekube_sync.model.sources import Cause, Server, Source, Unknown
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import and_more, some_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One instance that gets other marks, and perhaps another id. Without marks to put, it is cancelled."""

    source: ObservedInstance
    target: InstanceKey
    expects: Mapping[str, str | None]  # marks that the source must still have; None: it must not have this mark
    put: Mapping[str, str]  # marks that the target gets
    why: str
    result: Result | None = None  # None: it is only planned
    detail: str = ""
    cause: Cause | None = None

    def ended(self, result: Result, detail: str = "", error: EurekubeError | None = None) -> Move:
        return replace(self, result=result, detail=detail, cause=error.cause if error else None)

    @property
    def failed(self) -> bool:
        """Whether the instance was not moved, and is still there."""
        return self.result in (Result.FAILED, Result.CONFLICT, Result.NOT_TRIED)

    @property
    def in_place(self) -> bool:
        """Whether it keeps its id."""
        return self.target == self.source.key

    @property
    def syncer(self) -> SyncerRef | None:
        """The syncer that the target will belong to."""
        return syncer_of(self.made_of(self.source))

    def may_take(self, current: ObservedInstance) -> bool:
        """Whether the source still has the expected marks."""
        return all(current.metadata.get(mark) == value for mark, value in self.expects.items())

    def made(self, current: ObservedInstance) -> bool:
        """Whether an instance under the target has the marks that this move puts."""
        return all(current.metadata.get(mark) == value for mark, value in self.put.items())

    def made_of(self, current: ObservedInstance) -> Instance:
        """Makes the instance to register of the registered one."""
        return replace(
            current.unchanged(),
            key=self.target,
            status=current.status,
            metadata={**current.metadata, **self.put},
            # Eureka keeps the override of an id. Sent again, it could bring back an override that was just removed.
            override=InstanceStatus.UNKNOWN if self.in_place else current.instance.override,
        )


def known(source: Source[T], server: Server) -> T:
    """Gives the data of a source; raises SourceUnknown for an Unknown one."""
    if isinstance(source, Unknown):
        raise SourceUnknown(server, source)
    return source.data


def refuse_clash(registry: Iterable[ObservedInstance], ownership: Ownership) -> None:
    """Raises OwnerClash if another cluster uses the owner's name."""
    others = [one for one in in_order(registry) if ownership.clashes(one)]
    if others:
        other = others[0].metadata[CLUSTER]
        raise OwnerClash(
            f"owner {ownership.owner} is used by cluster {other} ({names(others)}): take another name. If this cluster "
            f"replaces it: eurekube-sync owner adopt --cluster {quote(other)}"
        )


def duration_of(one: ObservedInstance) -> int:
    """Gives the seconds that its lease lasts after a registration."""
    return one.instance.lease.duration or DEFAULT_LEASE.duration


def observation_time(moves: Sequence[Move], observe: float | None) -> float:
    """Gives the seconds to watch for renewals: as asked for, or two renewal periods of the slowest instance."""
    if observe is not None:
        return observe
    sources = [move.source for move in moves]
    periods = [min(one.instance.lease.renewal or DEFAULT_LEASE.renewal, duration_of(one)) for one in sources]
    return 2.0 * max(periods, default=DEFAULT_LEASE.renewal) + 5


def names(instances: Sequence[ObservedInstance]) -> str:
    return some_of([str(one.key) for one in instances], 5)


def in_order(registry: Iterable[ObservedInstance]) -> list[ObservedInstance]:
    return sorted(registry, key=lambda one: one.key)


_VERBS = {
    "owner adopt": ("to adopt", "adopted"),
    "owner rename": ("to rename", "renamed"),
    "owner purge": ("to cancel", "cancelled"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerReport:
    """What an `owner` command found and did, or would do."""

    command: str
    dry_run: bool = False
    moves: Sequence[Move] = ()
    nothing: str = ""  # the summary if there are no moves
    of: str = ""  # whose instances a dry run of a purge would cancel
    observe: float | None = None  # seconds to watch, as for `observation_time`
    after: Sequence[str] = ()  # further sentences for a person
    errors: tuple[ClusterError, ...] = ()  # writes to Kubernetes that failed; the sentences mention them
    unreached: tuple[str, ...] = ()  # Eureka servers that may hold an instance that was not seen or not cancelled

    @property
    def summary(self) -> str:
        would, done = _VERBS[self.command]
        if not self.moves:
            return self.nothing or f"nothing {would}"
        if self.dry_run:
            return f"dry run: {len(self.moves)} {would}{self.of}"
        results = Counter(one.result for one in self.moves)
        words = {
            Result.DONE: done,
            Result.GONE: "already gone",
            Result.CONFLICT: "in conflict",
            Result.FAILED: "failed",
            Result.NOT_TRIED: "not tried",
        }
        return ", ".join(f"{results[result]} {word}" for result, word in words.items() if results[result])

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences for a person, with one for each cause for which moves failed."""
        failed: dict[str, list[Move]] = {}
        for one in self.moves:
            if one.failed:
                failed.setdefault(one.detail, []).append(one)
        troubles = [f"{some[0].source.key}{and_more(len(some))}: {why}" for why, some in failed.items()]
        if self.dry_run and self.moves and self.command != "owner purge":
            seconds = observation_time(self.moves, self.observe)
            troubles.append(f"it would first watch for {seconds:.0f} s whether somebody renews them")
        until = "the instances there stay until they expire; repeat the command later"
        away = [f"{', '.join(self.unreached)} could not be reached: {until}"] if self.unreached else []
        return (*troubles, *self.after, *away)

    @property
    def code(self) -> ExitCode:
        """The exit code. If several things are wrong, the first to see to decides."""
        failures = [one for one in self.moves if one.failed]
        if any(one.result is Result.NOT_TRIED for one in failures):
            return ExitCode.INCOMPLETE
        if failures:
            return of_failures([one.cause for one in failures], succeeded=len(self.moves) - len(failures))
        if self.errors:
            return of_error(self.errors[0])
        return ExitCode.INCOMPLETE if self.unreached and not self.dry_run else ExitCode.OK
