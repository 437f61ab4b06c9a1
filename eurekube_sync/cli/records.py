"""The records of passes: `run --record` writes them, and `--from` makes the same pass again from
one, as a dry run."""

from __future__ import annotations

import gzip
import logging
import os
import random
import re
import secrets
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from eurekube_sync import __version__
from eurekube_sync.adapters.clock import Moment, SavedClock
from eurekube_sync.adapters.eureka.saved import (
    KeptRegistry,
    SavedRegistry,
    all_documents,
    reading_data,
    reading_of,
)
from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.adapters.kubernetes.connection import Connection
from eurekube_sync.adapters.kubernetes.saved import KeptAnswers, SavedAnswer, SavedConnection
from eurekube_sync.adapters.no_answer import UNREADABLE
from eurekube_sync.apply.leases import RenewalLedger
from eurekube_sync.brake.confirm import Sightings
from eurekube_sync.cli.output.passes import as_data
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import Memory, PassReport, PassSettings, World
from eurekube_sync.controller.record import Hiding, decisions, without_logins
from eurekube_sync.desired.claims import Desired
from eurekube_sync.files import open_regular, write_new
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.errors import ConfigurationError, RegistryError
from eurekube_sync.model.eureka import RENEWAL_INTERVAL, InstanceKey
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ports import Clock, EurekaServer, Registry, Workers
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import rfc_3339
from eurekube_sync.observe.eureka import LastSeen, OwnWrites, Write

FORMAT = "eurekube.io/record/v1"
_NAME = re.compile(r"pass-\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{8}\.json\.(gz|part)")
"""A `.part` is a record that is being written, or whose writer was killed."""
_TIME = "%Y%m%dT%H%M%S.%f"
# Of one record, unpacked: more than a pass of 100,000 instances takes
_MOST_BYTES = 512 * 1024 * 1024
_DAMAGED = (KeyError, TypeError, ValueError, AttributeError, OverflowError, OSError)
"""What the code that reads a record's parts raises for values of another kind."""
_log = logging.getLogger(__name__)


class Remembered(Struct, frozen=True, kw_only=True):
    """What the process remembered of earlier passes. Times in monotonic seconds."""

    writes: tuple[tuple[float, int, dict[str, Any]], ...] = ()
    """`Write.at`, `Write.since` and the write as JSON."""
    seen: tuple[tuple[SyncerRef, str, float | None], ...] | None = None
    """The removals that await confirmation, and when each was first seen; None: at any time."""
    looked: float = 0.0
    import_seen: tuple[tuple[SyncerRef, str, float | None], ...] | None = None
    import_looked: float = 0.0
    """The same of the removals of imports."""
    first_pass: bool = True
    last_up: frozenset[InstanceKey] = frozenset()


class Record(Struct, frozen=True, kw_only=True):
    """One pass: all that it read, and its decisions for people."""

    format: str
    version: str  # of the program that wrote it
    at: float  # Unix seconds: when it planned
    begun: float
    monotonic: float  # when it began, in monotonic seconds
    settings: PassSettings
    kubernetes_server: str
    eureka_servers: tuple[str, ...]
    kubernetes: tuple[SavedAnswer, ...]
    eureka: dict[str, Any]
    remembered: Remembered
    decided: tuple[tuple[str, str, str, str], ...]
    report: dict[str, Any]


_RECORD = msgspec.json.Decoder(Record)


def encoded(record: Record) -> bytes:
    return without_logins(msgspec.json.encode(record))


def decoded(text: bytes) -> Record:
    """Return the record in a text. Raises one of `UNREADABLE`."""
    return _RECORD.decode(text)


class Recording:
    """Keeps what each pass reads, and what the process remembered when it began."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: KeptAnswers
        self._registry: KeptRegistry
        self._servers: tuple[str, ...] = ()
        self._begun = 0.0
        self._monotonic = 0.0
        self._remembered = Remembered()

    def connection(self, connection: Connection) -> Connection:
        """Wrap the connection to Kubernetes, so that its answers are kept."""
        self._answers = KeptAnswers(connection, self._clock)
        return self._answers

    def registry(self, registry: Registry) -> Registry:
        """Wrap the registry, so that its answers are kept."""
        self._registry = KeptRegistry(registry, self._clock)
        return cast(Registry, self._registry)

    def servers(self, servers: Mapping[str, EurekaServer]) -> Mapping[str, EurekaServer]:
        """Wrap the single servers of the registry, so that their lists are kept."""
        return self._registry.servers(servers)

    def begin(self, world: World) -> None:
        """Begin the record of a pass."""
        self._begun = self._clock.now()
        self._monotonic = self._clock.monotonic()
        self._servers = tuple(world.servers)
        self._registry.begin()
        self._answers.begin()
        memory = world.memory
        writes: list[tuple[float, int, dict[str, Any]]] = []
        for key, write in memory.own_writes.writes.items():
            document = reading_data(key, write.wrote)
            writes.append((write.at, write.since, document))
        self._remembered = Remembered(
            writes=tuple(writes),
            seen=_seen(memory.sightings),
            looked=memory.sightings.looked,
            import_seen=_seen(memory.import_sightings),
            import_looked=memory.import_sightings.looked,
            first_pass=memory.first_pass,
        )

    def of(self, report: PassReport, code: ExitCode) -> Record:
        """Return the record of the pass that has just ended, without secrets."""
        answers = self._answers.answers()
        eureka = self._registry.data()
        data = as_data(report, code)
        told = msgspec.to_builtins(data)
        settings = report.settings
        remembered = self._remembered
        if report.basis is not None:
            remembered = replace(remembered, last_up=report.basis.last_seen_up)
        # Secrets are hidden in place: in what was read, and then in the report of it.
        objects: dict[str, list[Any]] = {}
        for answer in answers:
            of_path = objects.setdefault(answer.path, [])
            of_path += answer.objects
        writes = [document for _, _, document in remembered.writes]
        documents = all_documents(eureka, writes)
        owners = {settings.owner, *settings.former.owners}
        hiding = Hiding(objects, documents, owners)
        hiding.read()
        hiding.report(told)
        return Record(
            format=FORMAT,
            version=__version__,
            at=report.at,
            begun=self._begun,
            monotonic=self._monotonic,
            settings=settings,
            kubernetes_server=self._answers.server,
            eureka_servers=self._servers,
            kubernetes=tuple(answers),
            eureka=eureka,
            remembered=remembered,
            decided=tuple(decisions(report)),
            report=told,
        )


def _seen(sightings: Sightings) -> tuple[tuple[SyncerRef, str, float | None], ...] | None:
    """Return `Remembered.seen`. JSON has no infinite numbers."""
    if sightings.first is None:
        return None
    seen: list[tuple[SyncerRef, str, float | None]] = []
    for (syncer, mark), at in sightings.first.items():
        if at == -inf:
            seen.append((syncer, mark, None))
        else:
            seen.append((syncer, mark, at))
    return tuple(seen)


class Recorder:
    """Writes a file for each pass into a folder, whose size is limited. Raises ConfigurationError
    if it is a file."""

    def __init__(self, folder: Path, recording: Recording, *, most_bytes: int) -> None:
        self._folder = folder
        self.recording = recording
        self._most = most_bytes
        self._failing = False
        if os.path.isfile(folder):
            raise ConfigurationError(f"--record {folder} is a file, and not a folder")
        probe = folder / f".probe-{secrets.token_hex(4)}"
        self._write(partial(probe.touch, mode=0o600), probe.unlink)

    def keep(self, report: PassReport, code: ExitCode) -> None:
        """Write the record of a pass, and delete the oldest records beyond the limit."""
        at = datetime.fromtimestamp(report.at, UTC)
        moment = at.strftime(_TIME)[:-3]  # with milliseconds
        record = self.recording.of(report, code)
        packed = gzip.compress(encoded(record), compresslevel=6, mtime=0)
        # Two processes may write into the same folder at the same time.
        suffix = secrets.token_hex(4)
        path = self._folder / f"pass-{moment}Z-{suffix}.json.gz"
        part = path.with_suffix(".part")
        write = partial(write_new, path, part, packed, mode=0o600)
        self._write(write, partial(self._prune, path))

    def unwritten(self) -> bool:
        """Say whether the last record could not be written."""
        return self._failing

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
                    "cannot write records to %s: %s",
                    self._folder,
                    error.strerror,
                )
            self._failing = True
        else:
            if self._failing:
                _log.info("records are written to %s again", self._folder)
            self._failing = False

    def _prune(self, path: Path) -> None:
        """Keep the new record and the latest others within the limit.

        A record that seems later than the new one comes from a wrong clock. If it is too large,
        only it is deleted.
        """
        left = self._most - path.stat().st_size
        for file in reversed(_files(self._folder)):
            if file.path == path:
                continue
            with suppress(FileNotFoundError):  # deleted by another process
                size = file.path.stat().st_size
                if size <= left:
                    left -= size
                    continue
                file.path.unlink()
                if file.path < path:
                    left = -1


class RecordFile(Struct, frozen=True):
    """The file of a record, and the time in its name."""

    path: Path
    at: datetime

    def read(self) -> Record:
        """Read the record. Raises ConfigurationError."""
        try:
            with open_regular(self.path) as file, gzip.GzipFile(fileobj=file) as unpacked:
                text = unpacked.read(_MOST_BYTES + 1)
            if len(text) > _MOST_BYTES:
                raise ConfigurationError(f"--from {self.path} is too large for a record")
            record = decoded(text)
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or "it is cut"
            raise ConfigurationError(f"--from {self.path} cannot be read: {reason}") from error
        except UNREADABLE as error:
            raise ConfigurationError(
                f"--from {self.path} is damaged, or a record of another version than {__version__}"
            ) from error
        if record.format != FORMAT:
            raise ConfigurationError(
                f"--from {self.path} is not a record of a pass (format {FORMAT})"
            )
        return record


def record_at(folder: Path, at: datetime | None) -> Record:
    """Read the record of the last pass before this time; without one, of the newest pass. Raises
    ConfigurationError."""
    try:
        files = [file for file in _files(folder) if file.path.suffix == ".gz"]
    except OSError as error:
        raise ConfigurationError(f"--from {folder} cannot be read: {error.strerror}") from error
    if not files:
        raise ConfigurationError(
            f"there is no record in {folder}: run --record {folder} writes them"
        )
    if at is None:
        return files[-1].read()
    before = [file for file in files if file.at < at]
    if not before:
        end = rfc_3339(at.timestamp())
        first = rfc_3339(files[0].at.timestamp())
        raise ConfigurationError(f"no pass was recorded before {end}; the first is of {first}")
    return before[-1].read()


def _files(folder: Path) -> list[RecordFile]:
    """Return all records, the oldest first, with those that are being written. Links are left
    out."""
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
    files: list[RecordFile] = []
    for name in names:
        if not _NAME.fullmatch(name):
            continue
        moment = name[5:24]  # between `pass-` and `Z`
        with suppress(ValueError):  # the name is not a valid date
            at = datetime.strptime(moment, _TIME).replace(tzinfo=UTC)
            files.append(RecordFile(folder / name, at))
    return files


# --- The same pass once more ----------------------------------------------------------------------


class RecordedPass(Struct, frozen=True, kw_only=True):
    """A record, and the world in which its pass can be made again. No server is called."""

    record: Record
    connection: SavedConnection
    registry: SavedRegistry
    memory: Memory
    clock: SavedClock

    def world(self, workers: Workers) -> World:
        limit = TimeLimit(self.clock)
        cluster = KubernetesCluster(
            self.connection, clock=self.clock, random=random.Random(), limit=limit
        )
        return World(
            registry=self.registry,
            cluster=cluster,
            imports=cluster.imports,
            clock=self.clock,
            workers=workers,
            renewals=RenewalLedger(period=RENEWAL_INTERVAL, slack=RENEWAL_INTERVAL),
            time_limit=limit,
            servers=self.registry.servers(self.record.eureka_servers),
            memory=self.memory,
        )

    def compare(self, report: PassReport, code: ExitCode) -> None:
        """Log a warning if this version plans otherwise. Reasons are not compared: their wording
        may change."""
        now = sorted(decision[:3] for decision in decisions(report))
        then = sorted(decision[:3] for decision in self.record.decided)
        if now != then:
            _log.warning("version %s planned this pass differently", self.record.version)


def recorded_pass(record: Record) -> RecordedPass:
    """Return the world of a record. Raises ConfigurationError if a part of it is damaged."""
    clock = SavedClock(Moment(record.begun, record.monotonic))
    try:
        for moment in (record.begun, record.at):
            rfc_3339(moment)  # raises for a number that is no date
        registry = SavedRegistry(record.eureka, moved=clock.move)
        memory = _memory(record.remembered, record.settings.registry_cache)
    except (*_DAMAGED, RegistryError) as error:
        raise ConfigurationError(f"the record is damaged: {type(error).__name__}") from error
    connection = SavedConnection(
        record.kubernetes, server=record.kubernetes_server, moved=clock.move
    )
    return RecordedPass(
        record=record, connection=connection, registry=registry, memory=memory, clock=clock
    )


def _memory(remembered: Remembered, cache: float) -> Memory:
    writes: dict[InstanceKey, Write] = {}
    for at, since, document in remembered.writes:
        key, wrote = reading_of(document)
        if not isinstance(wrote, str):
            writes[key] = Write(at, since, wrote)
    return Memory(
        own_writes=OwnWrites(writes, seconds=cache),
        sightings=_sightings(remembered.seen, remembered.looked),
        import_sightings=_sightings(remembered.import_seen, remembered.import_looked),
        last_seen=_LastUp(remembered.last_up),
        first_pass=remembered.first_pass,
    )


def _sightings(
    seen: tuple[tuple[SyncerRef, str, float | None], ...] | None, looked: float
) -> Sightings:
    """Return what `_seen` told."""
    if seen is None:
        return Sightings(None, looked)
    first: dict[tuple[SyncerRef, str], float] = {}
    for syncer, mark, at in seen:
        if at is None:
            at = -inf
        first[syncer, mark] = at
    return Sightings(first, looked)


class _LastUp(LastSeen):
    """The instances that the recorded pass found to have been UP."""

    def __init__(self, keys: frozenset[InstanceKey]) -> None:
        super().__init__()
        self._keys = keys

    def still_wanted(self, desired: Desired, renewed: object) -> frozenset[InstanceKey]:
        return self._keys
