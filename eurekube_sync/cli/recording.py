"""A folder of records, one file a pass: written by `run --record`, read by `replay`. It never grows above its limit.

A record that cannot be written is logged once, and changes nothing of the pass.
"""

from __future__ import annotations

import gzip
import logging
import os
import re
import secrets
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from eurekube_sync import __version__
from eurekube_sync.adapters.no_answer import UNREADABLE
from eurekube_sync.brake import Braked
from eurekube_sync.cli.new_file import write_new
from eurekube_sync.cli.output.passes import as_data
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import Basis, PassReport
from eurekube_sync.controller.record import Record, decisions, from_data, to_data
from eurekube_sync.files import open_regular
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.values import dataclass
from eurekube_sync.plan import Plan

_NAME = re.compile(r"pass-(\d{8}T\d{6}\.\d{3})Z-[0-9a-f]{8}\.json\.(gz|part)")
"""A part is a record that is being written, or was when its process was killed."""
_MOST_BYTES = 512 * 1024 * 1024
"""Of one record, unpacked: more than a pass of 100,000 instances takes."""
_log = logging.getLogger(__name__)


class Recorder:
    """Writes a file for each pass. Raises ConfigurationError where a file stands in place of the folder."""

    def __init__(self, folder: Path, *, most_bytes: int) -> None:
        self._folder = folder
        self._most = most_bytes
        self._failing = False
        if os.path.isfile(folder):
            raise ConfigurationError(f"--record {folder} is a file, and not a folder")
        with self._warned():
            self._make()
            probe = folder / f".probe-{_mark()}"
            probe.touch(mode=0o600)
            probe.unlink()

    def beside(self, tell: Callable[[PassReport, ExitCode], None]) -> Callable[[PassReport, ExitCode], None]:
        """Records a pass, and then tells of it."""

        def both(report: PassReport, code: ExitCode) -> None:
            self.keep(report, code)
            tell(report, code)

        return both

    def keep(self, report: PassReport, code: ExitCode) -> None:
        """Writes the record of a pass, and deletes the oldest that are too many."""
        basis = report.basis
        record = Record(
            version=__version__,
            at=report.at,
            report=as_data(report, code),
            decided=decisions(basis.braked) if basis else [],
            basis=basis,
        )
        with self._warned():
            self._make()
            self._prune(self._write(report.at, msgspec.json.encode(to_data(record))))

    @contextmanager
    def _warned(self) -> Iterator[None]:
        """The renewals matter more than the records: a folder that fails is told once, and tried again."""
        try:
            yield
        except OSError as error:
            if not self._failing:
                _log.warning("no record of the passes can be written into %s: %s", self._folder, error.strerror)
            self._failing = True
        else:
            if self._failing:
                _log.info("records can be written into %s again", self._folder)
            self._failing = False

    def _make(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _write(self, at: float, text: bytes) -> Path:
        moment = datetime.fromtimestamp(at, UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
        path = self._folder / f"pass-{moment}Z-{_mark()}.json.gz"
        write_new(path, path.with_suffix(".part"), gzip.compress(text, compresslevel=6, mtime=0), mode=0o600)
        return path

    def _prune(self, written: Path) -> None:
        """What was just written stays, whatever its size. One of a wrong clock, which seems later, may go alone."""
        kept = written.stat().st_size
        for one in reversed(_files(self._folder)):
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
            return from_data(_unpacked(self.path, whole=whole), partial(Basis, braked=Braked(plan=Plan(), held=None)))
        except ConfigurationError as error:
            raise ConfigurationError(f"{self.path} {error}") from error


def record_files(folder: Path) -> Sequence[RecordFile]:
    """The records of a folder, the oldest first. Raises ConfigurationError where there is none."""
    try:
        found = [RecordFile(path, _moment(path.name)) for path in _files(folder) if path.suffix == ".gz"]
    except OSError as error:
        raise ConfigurationError(f"the folder {folder} cannot be read: {error.strerror}") from error
    if not found:
        raise ConfigurationError(f"there is no record in {folder}: run --record {folder} writes them")
    return found


def _files(folder: Path) -> list[Path]:
    """By time, which is how their names sort; with those that are being written. A link is not followed."""
    with os.scandir(folder) as entries:
        names = [one.name for one in entries if _is_ours(one.name) and one.is_file(follow_symlinks=False)]
    return [folder / name for name in sorted(names)]


def _is_ours(name: str) -> bool:
    try:
        _moment(name)
    except ValueError:
        return False
    return True


def _moment(name: str) -> datetime:
    found = _NAME.fullmatch(name)
    if not found:
        raise ValueError(name)
    return datetime.strptime(found[1], "%Y%m%dT%H%M%S.%f").replace(tzinfo=UTC)


def _unpacked(path: Path, *, whole: bool) -> Any:
    try:
        with open_regular(path) as file, gzip.GzipFile(fileobj=file) as unpacked:
            text = unpacked.read(_MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigurationError(f"cannot be read: {getattr(error, 'strerror', None) or 'it is cut'}") from error
    if len(text) > _MOST_BYTES:
        raise ConfigurationError("is too large for a record")
    try:
        found = msgspec.json.decode(text)
    except UNREADABLE as error:
        raise ConfigurationError("is cut, or not a record") from error
    return found if whole or not isinstance(found, dict) else {**found, "basis": None}


def _mark() -> str:
    """Two processes may write into one folder in the same moment."""
    return secrets.token_hex(4)
