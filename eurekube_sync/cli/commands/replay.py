"""`replay`: what recorded passes saw and decided, planned again from the same values. Nobody is asked."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import click

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.options.report import ReportForm, report_options
from eurekube_sync.cli.output.replayed import Replayed, found_in, line_of, replay_data, replay_table
from eurekube_sync.cli.recording import RecordFile, record_files
from eurekube_sync.cli.values import NAME, File, Value
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.replay import decisions, replayed
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.wording import rfc_3339

_MOMENT = re.compile(r"(?:(\d{4}-\d\d-\d\d)[T ])?(\d\d:\d\d)(:\d\d)?Z?")
_log = logging.getLogger(__name__)


class _Moment:
    """`03:12`, `2026-11-23 03:12` or `2026-11-23T03:12:05Z`, in UTC; without a day the last such time before now."""

    def __init__(self, text: str) -> None:
        found = _MOMENT.fullmatch(text.strip())
        try:
            if not found:
                raise ValueError
            given = f"{found[1] or '2000-01-01'}T{found[2]}{found[3] or ':00'}+00:00"
            self._begin = datetime.fromisoformat(given)
            self._lasts = timedelta(seconds=1 if found[3] else 60)
            self._begin + self._lasts  # no calendar ends later than the year 9999
        except (ValueError, OverflowError):
            raise ValueError(f"{text!r} is not a time; write 03:12 or 2026-11-23T03:12:05Z, in UTC") from None
        self._has_day = bool(found[1])

    def day(self, now: datetime) -> date:
        """That a reader thinks of: today, if none is given."""
        return self._begin.date() if self._has_day else now.date()

    def end(self, now: datetime) -> datetime:
        """Of that second, or minute."""
        begin = self._begin
        if not self._has_day:
            begin = begin.replace(year=now.year, month=now.month, day=now.day)
            begin -= timedelta(days=begin > now)
        return begin + self._lasts


@click.command(cls=Command, short_help="Say what recorded passes decided, and why.")
@click.argument("folder", metavar="DIR", type=File())
@click.argument("what", metavar="[WHAT]", required=False, type=NAME)
@option(
    "--at",
    variable=False,
    type=Value("time", _Moment),
    default=None,
    help="Show the last pass that began at or before this time, such as 03:12 or 2026-11-23T03:12:05Z. Times are UTC.",
)
@report_options
def command(folder: str, what: str | None, at: _Moment | None, form: ReportForm) -> ExitCode:
    """Say what recorded passes decided, and why. DIR is a folder of run --record. No server is asked.

    WHAT is a part of an app, an address, an instance id or a syncer. It limits the output to decisions about it. With
    --at, one recorded pass is planned again.
    """
    form.set_up_logs()
    files = record_files(Path(folder))
    shown = list(_all(files)) if at is None else [_planned_again(_last_before(files, at))]
    found = [found_in(one, what) for one in shown] if what else shown
    form.write(lambda: replay_table(found, whole=at is not None, what=what), lambda: replay_data(found))
    if any(one.damaged for one in found):
        return ExitCode.CONFIGURATION
    return ExitCode.INCOMPLETE if any(one.differs for one in found) else ExitCode.OK


def _last_before(files: Sequence[RecordFile], at: _Moment) -> RecordFile:
    now = datetime.fromtimestamp(SystemClock().now(), UTC)
    end = at.end(now)
    found = [one for one in files if one.at < end]
    if not found:
        first = rfc_3339(files[0].at.timestamp())
        raise ConfigurationError(f"no pass was recorded before {rfc_3339(end.timestamp())}; the first is of {first}")
    shown = found[-1]
    if shown.at.date() != at.day(now):
        _log.warning("this is the pass of %s; there is none of %s", rfc_3339(shown.at.timestamp()), at.day(now))
    return shown


def _all(files: Sequence[RecordFile]) -> Iterator[Replayed]:
    """Each as it was recorded; one that is damaged does not hide the others."""
    for file in files:
        try:
            yield line_of(file.read(whole=False))
        except ConfigurationError as error:
            yield Replayed(at=file.at.timestamp(), damaged=str(error))


def _planned_again(file: RecordFile) -> Replayed:
    record = file.read()
    seen = line_of(record)
    if record.basis is None:
        return seen
    try:
        report = replayed(record.basis, record.at)
    except Exception as error:
        raise ConfigurationError(f"{file.path} is damaged, or of another version: {type(error).__name__}") from error
    assert report.basis is not None
    return seen.planned(report, same=sorted(decisions(report.basis.braked)) == sorted(record.decided))
