"""Makes passes of a story again from their records.

record      a pass that is made again from its record decides and holds the same, for the same
            reasons

A record has the answers and their times. So a pass is not made again during which the machine's clock
was set, or that came near its deadline, and then had no time for a call.
"""

from __future__ import annotations

from collections.abc import Mapping

from eurekube_sync.adapters.clock import moment_of
from eurekube_sync.adapters.kubernetes.connection import Connection
from eurekube_sync.cli.records import Recording, decoded, encoded, recorded_pass
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import PassReport, World
from eurekube_sync.controller.reconcile import reconcile
from eurekube_sync.controller.record import decisions
from eurekube_sync.model.ports import Clock, EurekaServer, Registry
from eurekube_sync.model.struct import replace
from tests.in_process.workers import InTurn

from .view import Violation

_FEW = 5
"""Of this many passes that decided nothing, one is made again."""
_STEP = 0.001  # seconds by which a clock that nobody sets may seem to differ
_NEARLY_ALL = 0.3  # of a pass's time: each stage has a part of it, the first a tenth


class Records:
    """The records of one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._recording = Recording(clock)
        self._passes = 0
        self._begun = moment_of(clock)

    def connection(self, connection: Connection) -> Connection:
        return self._recording.connection(connection)

    def registry(self, registry: Registry) -> Registry:
        return self._recording.registry(registry)

    def servers(self, servers: Mapping[str, EurekaServer]) -> Mapping[str, EurekaServer]:
        return self._recording.servers(servers)

    def begin(self, world: World) -> None:
        """Begin the record of a pass."""
        self._recording.begin(world)
        self._begun = moment_of(self._clock)

    def check(self, report: PassReport) -> None:
        """Make the pass again from its record: each pass that decided something, and a few
        others."""
        self._passes += 1
        ended = moment_of(self._clock)
        took = ended.monotonic - self._begun.monotonic
        stepped = abs(ended.unix - self._begun.unix - took) > _STEP
        if stepped or took > _NEARLY_ALL * report.settings.deadline:
            return
        then = decisions(report)
        held = report.basis.braked.held if report.basis is not None else None
        if not then and held is None and self._passes % _FEW:
            return
        record = decoded(encoded(self._recording.of(report, ExitCode.OK)))
        again = reconcile(
            recorded_pass(record).world(InTurn()), replace(record.settings, dry_run=True)
        )
        if decisions(again) != then:
            raise Violation(
                "record", f"a pass decided {then}, and from its record {decisions(again)}"
            )
        if held is not None and (again.basis is None or again.basis.braked.held != held):
            raise Violation("record", f"a pass held {held}, and from its record {again.basis}")
