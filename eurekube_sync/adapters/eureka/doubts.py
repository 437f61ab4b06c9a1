"""Which instances may differ between Eureka servers. A heartbeat in a batch cannot show it: it has no timestamp.

A single renewal can: its server replicates it with the instance's timestamp, and servers that differ then
exchange the younger copy (`PeerEurekaNode.heartbeat`). So what is in doubt is renewed singly until all copies are the
same age.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable

from eurekube_sync.model.eureka import InstanceKey


class Doubts:
    """The instances in doubt; safe in several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._posted: set[InstanceKey] = set()
        self._partly: set[InstanceKey] = set()
        self._differing: dict[str, set[InstanceKey]] = {}
        self.last_posted = -math.inf
        """When one server alone was written to last, in monotonic seconds."""

    def __contains__(self, key: InstanceKey) -> bool:
        with self._lock:
            return key in self._posted or any(key in keys for keys in self._differing.values())

    def posted(self, key: InstanceKey, now: float) -> None:
        """It was written to one server, and the others may not have heard of it; `now` in monotonic seconds."""
        with self._lock:
            self._posted.add(key)
            self.last_posted = now

    def partly(self, key: InstanceKey) -> None:
        """A batch may have brought it to some servers only, and no server hands a batch on."""
        with self._lock:
            self._partly.add(key)

    def end_partly(self, key: InstanceKey) -> bool:
        """Whether that was so; from now on it is not."""
        with self._lock:
            was = key in self._partly
            self._partly.discard(key)
        return was

    def differing(self, name: str, keys: Iterable[InstanceKey]) -> None:
        """What this server's list showed with another age than the preferred one's, this time."""
        with self._lock:
            self._differing[name] = set(keys)

    def settle(self, key: InstanceKey) -> None:
        """All servers hold the same, or it is cancelled."""
        with self._lock:
            self._posted.discard(key)
            self._partly.discard(key)
            for keys in self._differing.values():
                keys.discard(key)
