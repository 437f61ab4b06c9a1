"""The records of passes by `run --record`, and the command `replay`, which plans recorded passes
again, offline."""

from __future__ import annotations

import gzip
import logging
import os
import re
import secrets
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from eurekube_sync import __version__
from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.no_answer import UNREADABLE
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.options.report import ReportForm, report_options
from eurekube_sync.cli.output.passes import as_data
from eurekube_sync.cli.output.table import Diff, Line, marked, rows_of
from eurekube_sync.cli.values import NAME, File, Value
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.controller.record import Record, decisions, from_data, replayed, to_data
from eurekube_sync.files import open_regular, write_new
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.foreign_text import printable
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted, rfc_3339

_NAME = re.compile(r"pass-\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{8}\.json\.(gz|part)")
"""A `.part` is a record that is being written, or whose writer was killed."""
_TIME = "%Y%m%dT%H%M%S.%f"
_MOST_BYTES = (
    512 * 1024 * 1024
)  # of one record, unpacked: more than a pass of 100,000 instances takes
_log = logging.getLogger(__name__)


class Recorder:
    """Writes a file for each pass into a folder, whose size is limited. Raises ConfigurationError
    if it is a file."""

    def __init__(self, folder: Path, *, most_bytes: int) -> None:
        self._folder, self._most, self._failing = folder, most_bytes, False
        if os.path.isfile(folder):
            raise ConfigurationError(f"--record {folder} is a file, and not a folder")
        probe = folder / f".probe-{secrets.token_hex(4)}"
        self._write(partial(probe.touch, mode=0o600), probe.unlink)

    def keep(self, report: PassReport, code: ExitCode) -> None:
        """Write the record of a pass, and delete the oldest records beyond the limit."""
        basis, moment = report.basis, datetime.fromtimestamp(report.at, UTC).strftime(_TIME)[:-3]
        record = Record(
            version=__version__,
            at=report.at,
            report=as_data(report, code),
            decided=decisions(basis.braked) if basis else [],
            basis=basis,
        )
        # Two processes may write into the same folder at the same time.
        path = self._folder / f"pass-{moment}Z-{secrets.token_hex(4)}.json.gz"
        packed = gzip.compress(msgspec.json.encode(to_data(record)), compresslevel=6, mtime=0)
        part = path.with_suffix(".part")
        self._write(partial(write_new, path, part, packed, mode=0o600), partial(self._prune, path))

    def _write(self, *steps: Callable[[], object]) -> None:
        """Make the folder if necessary, and do the steps. An error is logged once: passes matter
        more than records."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for step in steps:
                step()
        except OSError as error:
            if not self._failing:
                _log.warning(
                    "no record of the passes can be written into %s: %s",
                    self._folder,
                    error.strerror,
                )
            self._failing = True
        else:
            if self._failing:
                _log.info("records can be written into %s again", self._folder)
            self._failing = False

    def _prune(self, written: Path) -> None:
        """Keep the new record and the latest others within the limit.

        A record that seems later than the new one comes from a wrong clock. If it is too large,
        only it is deleted.
        """
        left = self._most - written.stat().st_size
        for one in (file.path for file in reversed(_files(self._folder)) if file.path != written):
            with suppress(FileNotFoundError):  # deleted by another process
                if (size := one.stat().st_size) <= left:
                    left -= size
                else:
                    one.unlink()
                    left = left if one > written else -1


@dataclass(frozen=True, slots=True)
class RecordFile:
    """The file of a record, and the time in its name."""

    path: Path
    at: datetime

    def read(self, *, whole: bool = True) -> Record:
        """Read the record; without `whole`, leave out what the pass planned from. Raises
        ConfigurationError."""
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
    """Return the records of a folder, the oldest first. Raises ConfigurationError if there is
    none."""
    try:
        found = [one for one in _files(folder) if one.path.suffix == ".gz"]
    except OSError as error:
        raise ConfigurationError(f"the folder {folder} cannot be read: {error.strerror}") from error
    if not found:
        raise ConfigurationError(
            f"there is no record in {folder}: run --record {folder} writes them"
        )
    return found


def _files(folder: Path) -> list[RecordFile]:
    """Return all records, the oldest first, with those that are being written. Links are left
    out."""
    with os.scandir(folder) as entries:
        names = sorted(one.name for one in entries if one.is_file(follow_symlinks=False))
    found = []
    for name in filter(_NAME.fullmatch, names):
        with suppress(ValueError):  # the name is not a valid date
            found.append(
                RecordFile(folder / name, datetime.strptime(name[5:24], _TIME).replace(tzinfo=UTC))
            )
    return found


_MOMENT = re.compile(r"(?:(\d{4}-\d\d-\d\d)[T ])?(\d\d:\d\d)(:\d\d)?Z?")


def _end(text: str) -> datetime:
    """Return the end of a minute or second in UTC: `03:12`, `2026-11-23 03:12` or
    `2026-11-23T03:12:05Z`.

    Without a date it is the last such time before now.
    """
    found, now = _MOMENT.fullmatch(text.strip()), datetime.fromtimestamp(SystemClock().now(), UTC)
    try:
        if not found:
            raise ValueError
        begin = datetime.fromisoformat(
            f"{found[1] or now.date()}T{found[2]}{found[3] or ':00'}+00:00"
        )
        begin -= timedelta(days=not found[1] and begin > now)
        return begin + timedelta(seconds=1 if found[3] else 60)  # OverflowError after the year 9999
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r} is not a time; write 03:12 or 2026-11-23T03:12:05Z, in UTC"
        ) from None


@click.command(cls=Command, short_help="Say what recorded passes decided, and why.")
@click.argument("folder", metavar="DIR", type=File())
@click.argument("what", metavar="[WHAT]", required=False, type=NAME)
@option("--at", variable=False, type=Value("time", _end))
@report_options
def replay_command(
    folder: str, what: str | None, at: datetime | None, form: ReportForm
) -> ExitCode:
    """Say what recorded passes decided, and why. DIR is a folder of run --record. No server is
    asked.

    WHAT is an app, an address, an instance id, a syncer, or a part of one of these. Only decisions
    about it are shown. With --at, one pass is planned again from its record.
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
    """Read what a pass decided. A damaged record does not hide the others."""
    try:
        record = file.read(whole=False)
    except ConfigurationError as error:
        return Replayed(at=file.at.timestamp(), what=what, damaged=str(error))
    return Replayed(at=record.at, what=what, record=record)


def _again(file: RecordFile, what: str) -> Replayed:
    record = file.read()
    try:
        again = replayed(record.basis, record.at) if record.basis else None
    except Exception as error:
        raise ConfigurationError(
            f"{file.path} is damaged, or of another version: {type(error).__name__}"
        ) from error
    return Replayed(at=record.at, what=what, record=record, again=again)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One recorded pass."""

    at: float  # Unix seconds
    what: str = ""  # only decisions about it are shown; empty for all
    damaged: str = ""  # why the record cannot be read
    record: Record | None = None  # None if it is damaged
    again: PassReport | None = (
        None  # the new plan; None if not asked for, or if the pass had no plan
    )

    @property
    def report(self) -> Mapping[str, Any]:
        return self.record.report if self.record else {}

    @property
    def in_short(self) -> str:
        """The time and the summary of the pass."""
        return f"{rfc_3339(self.at)}  {self.report.get('summary', '')}"

    @property
    def differs(self) -> bool:
        """Whether this version plans differently. Reasons are not compared: their wording may
        change."""
        if self.record is None or self.again is None or self.again.basis is None:
            return False
        now, then = decisions(self.again.basis.braked), self.record.decided
        return sorted(one[:3] for one in now) != sorted(one[:3] for one in then)

    @property
    def decided(self) -> list[Mapping[str, Any]]:
        """The recorded actions but renewals, then the held and blocked ones."""
        actions = [one for one in self._entries("actions") if one.get("action") != "renew"]
        held = [{**one, "held": True} for one in self._entries("held")]
        blocked = [{**one, "action": "blocked"} for one in self._entries("blocked")]
        entries = (*actions, *held, *blocked)
        return [
            one
            for one in entries
            if self.concerns(one.get("app"), one.get("id"), one.get("syncer"))
        ]

    def concerns(self, *names: object) -> bool:
        """Return whether one of the names contains `what`. 10.0.0.70 does not contain 10.0.0.7."""
        before = r"(?<![0-9.])" if self.what[:1].isdigit() else ""
        after = r"(?![0-9])" if self.what[-1:].isdigit() else ""
        pattern = f"{before}{re.escape(self.what)}{after}"
        return any(re.search(pattern, str(name or ""), re.IGNORECASE) for name in names)

    def _entries(self, key: str) -> list[Mapping[str, Any]]:
        found = self.report.get(key)
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def replay_table(found: Sequence[Replayed]) -> RenderableType:
    """Return a line for each pass that decided something, or with `what` a line for each decision
    about it."""
    parts: list[RenderableType] = []
    quiet = blind = 0
    for one in found:
        decided = one.decided
        if one.damaged:
            parts.append(marked(one.damaged))
        elif decided and one.what:
            parts += [Line(f"{rfc_3339(one.at)}  {_decision(entry)}") for entry in decided]
        elif decided:
            parts.append(Line(one.in_short))
        elif one.report.get("unknown"):
            blind += 1
        else:
            quiet += 1
    about = f" about {found[0].what}" if found[0].what else ""
    passes, range_ = (
        counted(len(found), "pass", "passes"),
        f"{rfc_3339(found[0].at)} to {rfc_3339(found[-1].at)}",
    )
    last = f"{passes} recorded, {range_}"
    last += f"; {quiet} decided nothing{about}" if quiet else ""
    last += f"; {blind} could not plan everything" if blind else ""
    return Group(*parts, Text(printable(last), style="bold"))


def _decision(entry: Mapping[str, Any]) -> str:
    action = entry.get("action")
    done = "held" if entry.get("held") else entry.get("result") or action
    detail = f" ({entry['detail']})" if entry.get("detail") else ""
    return f"{action}  {entry.get('app')}/{entry.get('id')}  {done}: {entry.get('why')}{detail}"


def pass_again_table(one: Replayed) -> RenderableType:
    """Return the new plan of one pass, and its recorded sentences."""
    parts: list[RenderableType] = []
    rows = [
        row
        for row in (rows_of(one.again) if one.again else ())
        if one.concerns(row.app, row.id, row.syncer)
    ]
    if rows:
        parts.append(Diff(rows))
    elif one.what:
        parts.append(Line(f"nothing was planned for {one.what}"))
    messages = one.report.get("messages")
    sentences = messages if isinstance(messages, list) else ()
    parts += [Line(str(sentence), mark=Text("-", style="dim")) for sentence in sentences]
    if one.again is None:
        parts.append(marked("this pass could not make a plan; the lines above say why"))
    elif one.record and one.differs:
        other = f"version {one.record.version} planned this pass differently"
        parts.append(marked(f"{other}; this is the plan of version {__version__}"))
    return Group(*parts, Text(printable(one.in_short), style="bold"))


def replay_data(found: Sequence[Replayed]) -> dict[str, Any]:
    return {
        "passes": [
            {
                "at": rfc_3339(one.at),
                "damaged": one.damaged or None,
                "decided": [dict(entry) for entry in one.decided],
                "samePlan": None if one.again is None else not one.differs,
                "report": dict(one.report) if not one.what else None,
            }
            for one in found
        ]
    }
