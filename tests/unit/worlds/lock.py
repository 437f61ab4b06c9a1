"""The lock's object in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from eurekube_sync.model.kubernetes import LockName, LockRecord
from eurekube_sync.model.struct import replace

NAME = LockName(namespace="eurekube-sync", name="shop")


@dataclass
class Store:
    """The object with the API server's rule: a write with an old version is refused."""

    record: LockRecord | None = None
    version: int = 0
    trouble: Callable[[], None] = lambda: None
    """It is called before each call's effect."""
    back: Callable[[], None] = lambda: None
    """It is called after a write, before the answer."""
    calls: list[str] = field(default_factory=list)

    def read(self) -> LockRecord | None:
        self.calls.append("read")
        self.trouble()
        return self.record

    def create(self, record: LockRecord) -> LockRecord | None:
        self.calls.append("create")
        self.trouble()
        if self.record is not None:
            return None
        return self._store(record)

    def replace(self, record: LockRecord) -> LockRecord | None:
        self.calls.append("replace")
        self.trouble()
        if self.record is None or self.record.version != record.version:
            return None
        return self._store(record)

    def _store(self, record: LockRecord) -> LockRecord:
        self.version += 1
        before = self.record or LockRecord(holder="")
        good, failed = record.good, record.failed
        if good is None:
            good, failed = before.good, failed or before.failed
        self.record = replace(record, version=str(self.version), good=good, failed=failed)
        written = self.record
        self.back()
        return written
