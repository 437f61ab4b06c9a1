"""`orphans` and the `owner` commands, as a table and as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType

from eurekube_sync.cli.output.rows import Row, row_of, rows_table
from eurekube_sync.model.actions import Result
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.ownership import syncer_of
from eurekube_sync.owner.moves import OwnerReport
from eurekube_sync.owner.orphans import Fate, Orphans

_FATES = {Fate.CANCEL: "-", Fate.HOLD: "=", Fate.RENEW: "=", Fate.UPDATE: "~", Fate.EXPIRE: "="}


def orphans_table(orphans: Orphans) -> RenderableType:
    """Each with what becomes of it; then what could not be read; then the summary."""
    rows = (
        row_of(one.instance.key, _FATES[one.fate], one.instance.status.value, one.why, syncer_of(one.instance))
        for one in orphans.found
    )
    return rows_table(rows, orphans.unknown, orphans.summary)


def orphans_data(orphans: Orphans) -> dict[str, Any]:
    return {
        "summary": orphans.summary,
        "orphans": [{**_instance(one.instance), "run": one.fate.value, "why": one.why} for one in orphans.found],
        "unknown": list(orphans.unknown),
    }


def owner_table(report: OwnerReport) -> RenderableType:
    """Each instance that moves or is cancelled; then what to see to; then the summary."""
    return rows_table(_rows(report), report.sentences, report.summary)


def _rows(report: OwnerReport) -> Iterator[Row]:
    for one in report.moves:
        sign, status = "~", one.source.status.value
        why = one.why if one.in_place else f"{one.why}; as {one.target.id}"
        if one.failed:
            sign, why = "!", one.detail
        elif one.result is Result.GONE:
            sign, status = " ", "gone"
        elif not one.put:
            sign, status = "-", f"{status} > gone"
        yield row_of(one.source.key, sign, status, why, one.syncer)


def owner_data(report: OwnerReport) -> dict[str, Any]:
    return {
        "command": report.command,
        "dryRun": report.dry_run,
        "summary": report.summary,
        "instances": [
            {
                **_instance(one.source),
                "syncer": str(one.syncer) if one.syncer else None,
                "becomes": one.target.id if one.put else None,
                "why": one.why,
                "result": one.result.value if one.result else None,
                "detail": one.detail,
            }
            for one in report.moves
        ],
        "messages": list(report.sentences),
    }


def _instance(one: ObservedInstance) -> dict[str, Any]:
    syncer = syncer_of(one)
    return {"app": one.key.app, "id": one.key.id, "status": one.status.value, "syncer": str(syncer) if syncer else None}
