"""What an `owner` command found and did, and the sentences that all of them say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eurekube_sync.controller.exit_codes import ExitCode, of_error, of_failures
from eurekube_sync.model.errors import ClusterError
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.outcomes import Result
from eurekube_sync.model.values import dataclass
from eurekube_sync.owner.moves import Affected, Move, duration_of
from eurekube_sync.owner.world import OwnerWorld, observation_time


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerReport:
    command: str
    dry_run: bool
    summary: str
    """The one line."""
    affected: tuple[Affected, ...] = ()
    sentences: tuple[str, ...] = ()
    """What a person should know or see to."""
    errors: tuple[ClusterError, ...] = ()
    """Writes to Kubernetes that failed; the sentences tell of them."""
    unreached: tuple[str, ...] = ()
    """Eureka servers that may hold something that was not seen, or not cancelled."""

    @property
    def code(self) -> ExitCode:
        """What a person has to see to first."""
        failures = [one for one in self.affected if one.failed]
        if any(one.result is Result.NOT_TRIED for one in failures):
            return ExitCode.INCOMPLETE
        if failures:
            return of_failures([one.cause for one in failures], succeeded=len(self.affected) - len(failures))
        if self.errors:
            return of_error(self.errors[0])
        return ExitCode.INCOMPLETE if self.unreached and not self.dry_run else ExitCode.OK


def told_whole(world: OwnerWorld, report: OwnerReport) -> OwnerReport:
    """The same with the servers that were away."""
    away = world.registry.unreached()
    if not away:
        return report
    sentence = (
        f"{', '.join(away)} could not be reached: the instances there stay until they expire; repeat the command later"
    )
    return replace(report, unreached=away, sentences=(*report.sentences, sentence))


def planned(
    command: str,
    moves: Sequence[Move],
    observe: float | None,
    *,
    nothing: str,
    dry_run: bool,
    before: Sequence[str] = (),
) -> OwnerReport:
    """What would be done; `before` are sentences that come first."""
    seconds = observation_time(moves, observe)
    watch = (f"it would first watch for {seconds:.0f} s whether somebody renews them",) if moves else ()
    return OwnerReport(
        command=command,
        dry_run=dry_run,
        summary=f"dry run: {len(moves)} to {command.split()[1]}" if moves else nothing,
        affected=tuple(
            Affected(instance=move.source, target=move.target, syncer=move.syncer, why=move.why) for move in moves
        ),
        sentences=(*before, *watch),
    )


def moved(
    command: str,
    done: str,
    affected: Sequence[Affected],
    *,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
    errors: tuple[ClusterError, ...] = (),
) -> OwnerReport:
    """What was done; sentences `before` and `after` those on what failed."""
    return OwnerReport(
        command=command,
        dry_run=False,
        summary=counted(affected, done),
        affected=tuple(affected),
        sentences=(*before, *troubles(affected), *after),
        errors=errors,
    )


def counted(affected: Sequence[Affected], done: str) -> str:
    """How many were done, and how many not, in one line."""
    counts = [
        (sum(one.result is Result.DONE for one in affected), done),
        (sum(one.result is Result.GONE for one in affected), "already gone"),
        (sum(one.result is Result.CONFLICT for one in affected), "in conflict"),
        (sum(one.result is Result.FAILED for one in affected), "failed"),
        (sum(one.result is Result.NOT_TRIED for one in affected), "not tried"),
    ]
    return ", ".join(f"{number} {what}" for number, what in counts if number) or f"nothing {done}"


def troubles(affected: Sequence[Affected]) -> list[str]:
    """One sentence for each way in which some failed."""
    first: dict[str, list[Affected]] = {}
    for one in affected:
        if one.failed:
            first.setdefault(one.detail, []).append(one)
    more = {why: f" (and {len(some) - 1} more)" if len(some) > 1 else "" for why, some in first.items()}
    return [f"{some[0].instance.key}: {why}{more[why]}" for why, some in first.items()]


def lives(instances: Sequence[ObservedInstance]) -> str:
    """When they expire if nobody renews them: twice the duration after a renewal, until the next eviction."""
    seconds = 2 * max((duration_of(one) for one in instances), default=0)
    shown = f"{seconds // 60} minutes" if seconds >= 120 and seconds % 60 == 0 else f"{seconds} s"
    return f"they expire in {shown} unless something renews them"
