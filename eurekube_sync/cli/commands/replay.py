"""`replay`: what recorded passes saw and decided, planned again from the same values. Nobody is asked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import click

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.options.report import ReportForm, report_options
from eurekube_sync.cli.output.replayed import Replayed, pass_again_table, replay_data, replay_table
from eurekube_sync.cli.recording import RecordFile, record_files
from eurekube_sync.cli.values import NAME, File, Value
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.record import replayed
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.wording import rfc_3339

_MOMENT = re.compile(r"(?:(\d{4}-\d\d-\d\d)[T ])?(\d\d:\d\d)(:\d\d)?Z?")


def _end(text: str) -> datetime:
    """Of the minute, or second, that is given in UTC: `03:12`, `2026-11-23 03:12` or `2026-11-23T03:12:05Z`. Without a
    day it is the last such time before now."""
    found, now = _MOMENT.fullmatch(text.strip()), datetime.fromtimestamp(SystemClock().now(), UTC)
    try:
        if not found:
            raise ValueError
        begin = datetime.fromisoformat(f"{found[1] or now.date()}T{found[2]}{found[3] or ':00'}+00:00")
        begin -= timedelta(days=not found[1] and begin > now)
        return begin + timedelta(seconds=1 if found[3] else 60)  # no calendar ends later than the year 9999
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a time; write 03:12 or 2026-11-23T03:12:05Z, in UTC") from None


@click.command(cls=Command, short_help="Say what recorded passes decided, and why.")
@click.argument("folder", metavar="DIR", type=File())
@click.argument("what", metavar="[WHAT]", required=False, type=NAME)
@option(
    "--at",
    variable=False,
    type=Value("time", _end),
    default=None,
    help="Show the last pass that began at or before this time, such as 03:12 or 2026-11-23T03:12:05Z. Times are UTC.",
)
@report_options
def command(folder: str, what: str | None, at: datetime | None, form: ReportForm) -> ExitCode:
    """Say what recorded passes decided, and why. DIR is a folder of run --record. No server is asked.

    WHAT is an app, an address, an instance id, a syncer, or a part of one of these. Only decisions about it are shown.
    With --at, one recorded pass is planned again.
    """
    form.set_up_logs()
    files, what = record_files(Path(folder)), what or ""
    found = [_as_recorded(file, what) for file in files] if at is None else [_again(_last_before(files, at), what)]
    code = ExitCode.INCOMPLETE if any(one.differs for one in found) else ExitCode.OK
    code = ExitCode.CONFIGURATION if any(one.damaged for one in found) else code
    table = partial(replay_table, found) if at is None else partial(pass_again_table, found[0])
    return form.answer(code, table, lambda: replay_data(found))


def _last_before(files: Sequence[RecordFile], end: datetime) -> RecordFile:
    found = [one for one in files if one.at < end]
    if not found:
        first = rfc_3339(files[0].at.timestamp())
        raise ConfigurationError(f"no pass was recorded before {rfc_3339(end.timestamp())}; the first is of {first}")
    return found[-1]


def _as_recorded(file: RecordFile, what: str) -> Replayed:
    """One that is damaged does not hide the others."""
    try:
        record = file.read(whole=False)
    except ConfigurationError as error:
        return Replayed(at=file.at.timestamp(), damaged=str(error))
    return Replayed(at=record.at, what=what, record=record)


def _again(file: RecordFile, what: str) -> Replayed:
    record = file.read()
    try:
        again = replayed(record.basis, record.at) if record.basis else None
    except Exception as error:
        raise ConfigurationError(f"{file.path} is damaged, or of another version: {type(error).__name__}") from error
    return Replayed(at=record.at, what=what, record=record, again=again)
