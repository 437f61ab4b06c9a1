"""The file of `--snapshot`: read when it has changed, replaced whole and never in part."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

from eurekube_sync.actions import Withdrawal
from eurekube_sync.errors import ConfigurationError
from eurekube_sync.one_pass import PassReport
from eurekube_sync.scope import Scope
from eurekube_sync.snapshot import Snapshot, Source, from_text, source_of, take, to_text, without, without_withdrawn

log = logging.getLogger(__name__)

_REWRITE_AFTER = 600
"""Seconds after which a snapshot is written again although nothing but its time has changed."""

_Identity = tuple[int, int, int]


class SnapshotFile:
    """One file, by name; a symbolic link is followed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._path = Path(os.path.realpath(name))
        self._known: tuple[_Identity, Snapshot] | None = None

    def load(self) -> Snapshot:
        """The snapshot as it is now; raises ConfigurationError, one sentence."""
        try:
            identity = self._identity()
            if self._known is not None and self._known[0] == identity:
                return self._known[1]
            text = self._path.read_bytes()
        except OSError as error:
            raise ConfigurationError(f"the snapshot {self._name} cannot be read: {error.strerror}") from error
        try:
            snapshot = from_text(text)
        except ConfigurationError as error:
            raise ConfigurationError(f"the snapshot {self._name} {error}") from error
        self._known = (identity, snapshot)
        return snapshot

    def before(self, source: Source) -> Snapshot | None:
        """What it holds of this source; None when it is not there yet, or empty. Raises ConfigurationError for a file
        that must not be written over."""
        if not os.path.lexists(self._path) or (self._path.is_file() and not self._path.stat().st_size):
            return None
        snapshot = self.load()
        if snapshot.source != source:
            raise ConfigurationError(
                f"the snapshot {self._name} is of another installation ({snapshot.source}; this is {source}): give "
                "each its own file, or delete this one"
            )
        return snapshot

    def replace(self, snapshot: Snapshot) -> None:
        """Writes a file beside it and puts it in its place; only its owner may read it. Raises OSError, and then the
        old file is as it was."""
        number, beside = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.", suffix=".tmp")
        try:
            with open(number, "wb") as file:
                file.write(to_text(snapshot))
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self._path)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside)
            raise
        self._known = (self._identity(), snapshot)
        with suppress(OSError):  # not every file system can do it, and the new file is in its place either way
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _identity(self) -> _Identity:
        stat = self._path.stat()
        if not S_ISREG(stat.st_mode):  # a device or a pipe could be read for ever
            raise ConfigurationError(f"the snapshot {self._name} is no regular file")
        return stat.st_ino, stat.st_size, stat.st_mtime_ns


class SnapshotKeeper:
    """Keeps the file after each pass of `run`. What goes wrong is a warning, said once: the pass has done its work."""

    def __init__(self, name: str, scope: Scope) -> None:
        self._name = name
        self._file = SnapshotFile(name)
        self._scope = scope
        self._said = ""

    def keep(self, report: PassReport, now: float) -> None:
        """Writes a new snapshot after a good pass, and takes out of the old one what another pass has withdrawn."""
        self._write(
            report,
            lambda before, source: take(report, source, now) or (before and without_withdrawn(before, report.outcomes)),
        )

    def forget(self, report: PassReport, withdrawals: Iterable[Withdrawal]) -> None:
        """Takes out what the pass is about to withdraw, so that no `keepalive` brings it back while the pass lasts."""
        self._write(report, lambda before, _: before and without(before, withdrawals))

    def _write(self, report: PassReport, change: Callable[[Snapshot | None, Source], Snapshot | None]) -> None:
        source = source_of(report, self._scope)
        if source is None or report.dry_run:
            return
        try:
            before = self._file.before(source)
            after = change(before, source)
            if after is not None and _worth_writing(before, after):
                self._file.replace(after)
        except ConfigurationError as error:
            self._warn(f"no snapshot was written: {error}")
        except OSError as error:
            self._warn(f"no snapshot was written to {self._name}: {error.strerror}")
        else:
            self._said = ""

    def _warn(self, sentence: str) -> None:
        if sentence != self._said:
            log.warning("%s", sentence)
        self._said = sentence


def _worth_writing(before: Snapshot | None, after: Snapshot) -> bool:
    if before is None or before.instances != after.instances:
        return True
    return not 0 <= after.taken - before.taken < _REWRITE_AFTER and after is not before
