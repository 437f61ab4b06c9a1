"""`replay`: what recorded passes saw and decided, planned again from the same values. Nobody is asked."""

from __future__ import annotations

import gzip
import logging
import os
import re
import secrets
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import click
import msgspec

from eurekube_sync import __version__
from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.no_answer import UNREADABLE
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.options.report import ReportForm, report_options
from eurekube_sync.cli.output.passes import as_data
from eurekube_sync.cli.output.replayed import Replayed, pass_again_table, replay_data, replay_table
from eurekube_sync.cli.values import NAME, File, Value
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.controller.record import Record, decisions, from_data, replayed, to_data
from eurekube_sync.files import open_regular, write_new
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import rfc_3339

_NAME = re.compile(r"pass-(\d{8}T\d{6}\.\d{3})Z-[0-9a-f]{8}\.json\.(gz|part)")
"""A part is a record that is being written, or was when its process was killed."""
_TIME = "%Y%m%dT%H%M%S.%f"
_MOST_BYTES = 512 * 1024 * 1024  # of one record, unpacked: more than a pass of 100,000 instances takes
_log = logging.getLogger(__name__)


class Recorder:
    """Writes a file for each pass into a folder, which never grows above its limit. A record that cannot be written is
    logged once, and changes nothing of the pass. Raises ConfigurationError where a file stands in place of the folder.
    """

    def __init__(self, folder: Path, *, most_bytes: int) -> None:
        self._folder, self._most, self._failing = folder, most_bytes, False
        if os.path.isfile(folder):
            raise ConfigurationError(f"--record {folder} is a file, and not a folder")
        probe = folder / f".probe-{secrets.token_hex(4)}"
        self._write(partial(probe.touch, mode=0o600), probe.unlink)

    def keep(self, report: PassReport, code: ExitCode) -> None:
        """Writes the record of a pass, and deletes the oldest that are too many."""
        basis, moment = report.basis, datetime.fromtimestamp(report.at, UTC).strftime(_TIME)[:-3]
        record = Record(
            version=__version__,
            at=report.at,
            report=as_data(report, code),
            decided=decisions(basis.braked) if basis else [],
            basis=basis,
        )
        # Two processes may write into one folder in the same moment.
        path = self._folder / f"pass-{moment}Z-{secrets.token_hex(4)}.json.gz"
        packed = gzip.compress(msgspec.json.encode(to_data(record)), compresslevel=6, mtime=0)

        part = path.with_suffix(".part")
        self._write(partial(write_new, path, part, packed, mode=0o600), partial(self._prune, path))

    def _write(self, *steps: Callable[[], object]) -> None:
        """Makes the folder if it is not there. The renewals matter more than the records: a folder that fails is told
        once, and tried again."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for step in steps:
                step()
        except OSError as error:
            if not self._failing:
                _log.warning("no record of the passes can be written into %s: %s", self._folder, error.strerror)
            self._failing = True
        else:
            if self._failing:
                _log.info("records can be written into %s again", self._folder)
            self._failing = False

    def _prune(self, written: Path) -> None:
        """What was just written stays, whatever its size. One of a wrong clock, which seems later, may go alone."""
        kept = written.stat().st_size
        for one in (file.path for file in reversed(_files(self._folder))):
            with suppress(FileNotFoundError):  # another process works here, too
                size = 0 if one == written else one.stat().st_size
                if kept + size <= self._most or one == written:
                    kept += size
                    continue
                one.unlink()
                if one < written:
                    kept = self._most + 1


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A record that is there, and may be read."""

    path: Path
    at: datetime

    def read(self, *, whole: bool = True) -> Record:
        """Raises ConfigurationError for one that cannot be read, is too large, or is no record. `whole`: with what it
        planned from, which is most of it."""
        try:
            with open_regular(self.path) as file, gzip.GzipFile(fileobj=file) as unpacked:
                text = unpacked.read(_MOST_BYTES + 1)
            if len(text) > _MOST_BYTES:
                raise ConfigurationError("is too large for a record")
            found = msgspec.json.decode(text)
            data = found if whole or not isinstance(found, dict) else {**found, "basis": None}
            return from_data(data)
        except ConfigurationError as error:
            raise ConfigurationError(f"{self.path} {error}") from error
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or "it is cut"
            raise ConfigurationError(f"{self.path} cannot be read: {reason}") from error
        except UNREADABLE as error:
            raise ConfigurationError(f"{self.path} is cut, or not a record") from error


def record_files(folder: Path) -> Sequence[RecordFile]:
    """The records of a folder, the oldest first. Raises ConfigurationError where there is none."""
    try:
        found = [one for one in _files(folder) if one.path.suffix == ".gz"]
    except OSError as error:
        raise ConfigurationError(f"the folder {folder} cannot be read: {error.strerror}") from error
    if not found:
        raise ConfigurationError(f"there is no record in {folder}: run --record {folder} writes them")
    return found


def _files(folder: Path) -> list[RecordFile]:
    """By time, which is how their names sort; with those that are being written. A link is not followed."""
    with os.scandir(folder) as entries:
        names = sorted(one.name for one in entries if one.is_file(follow_symlinks=False))
    return [RecordFile(folder / name, at) for name in names if (at := _moment(name))]


def _moment(name: str) -> datetime | None:
    found = _NAME.fullmatch(name)
    try:
        return datetime.strptime(found[1], _TIME).replace(tzinfo=UTC) if found else None
    except ValueError:  # no such day
        return None


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
@option("--at", variable=False, type=Value("time", _end))
@report_options
def replay_command(folder: str, what: str | None, at: datetime | None, form: ReportForm) -> ExitCode:
    """Say what recorded passes decided, and why. DIR is a folder of run --record. No server is asked.

    WHAT is an app, an address, an instance id, a syncer, or a part of one of these. Only decisions about it are shown.
    With --at, one recorded pass is planned again.
    """
    files, what = record_files(Path(folder)), what or ""
    if at is None:
        found = [_as_recorded(file, what) for file in files]
    else:
        before = [one for one in files if one.at < at]
        if not before:
            first, end = rfc_3339(files[0].at.timestamp()), rfc_3339(at.timestamp())
            raise ConfigurationError(f"no pass was recorded before {end}; the first is of {first}")
        found = [_again(before[-1], what)]
    code = ExitCode.INCOMPLETE if any(one.differs for one in found) else ExitCode.OK
    code = ExitCode.CONFIGURATION if any(one.damaged for one in found) else code
    table = partial(replay_table, found) if at is None else partial(pass_again_table, found[0])
    return form.answer(code, table, lambda: replay_data(found))


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
