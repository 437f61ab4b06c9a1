"""One Eureka server: its address, its clients, and all that this process knows of it. For how long
it rests after a failure is decided here. Begin and end of a rest are logged."""

from __future__ import annotations

import logging
import threading
from math import inf
from typing import NamedTuple

from msgspec import Struct, field

from eurekube_sync.adapters.eureka import replication
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.model.errors import RegistryError, unknown_from
from eurekube_sync.model.eureka import Instance, InstanceKey, ObservedInstance, vip_names
from eurekube_sync.model.ports import Clock
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.text import duration

# After a first failure, which may be one lost call; each further rest is twice as long ...
FIRST_REST_SECONDS = 10.0
REST_SECONDS = 300.0  # ... up to this: the warm-up of an empty server
# How long after its last failure a peer is not called, even if its answer is needed
_ASKED_AGAIN_SECONDS = 10.0
_log = logging.getLogger(__name__)


class Trouble(NamedTuple):
    """A peer failed, and has not worked since."""

    since: float  # the first failure, in monotonic seconds
    failed: float  # the last failure, which began the rest
    length: float  # of the rest
    refusing: bool  # it answered, but refused us, as by 401, 403 or a web page
    resting: bool = True  # False: the time of the rest is over, so it is tried again
    back: bool = False  # it has answered during the rest


class Silence(NamedTuple):
    """A server did not answer."""

    since: float  # in monotonic seconds
    why: str  # a clause


class Peer(Struct, eq=False, kw_only=True):
    """One Eureka server. Safe in several threads, because each change is a single one of a value,
    or is made under the lock.

    | the peer             | calls go to it     | its list is asked for         |
    |----------------------|--------------------|-------------------------------|
    | works, or has rested | in the given order | in the given order            |
    | rests: it refuses us | after all others   | in the given order            |
    | rests: it is down    | after all others   | after all others              |
    | rests, but is back   | after all others   | also after another's, at once |

    The list of one that refuses us keeps its turn, because another's would hide the mistake. If it
    works, it does not end the rest, because writes may still fail. Any other list does.
    """

    url: str  # without a login: it may be printed
    client: EurekaClient
    asked: EurekaClient  # the same with short timeouts, for questions about batches
    clock: Clock

    trouble: Trouble | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    # What its lists, and its answers about single instances, said
    shown: bool = False  # it was listed since the last list began
    owed: bool = False  # to be listed before the next sweep: back, unlisted, or with strays
    unlisted: bool = False  # its last list failed, which is logged once
    passed_over: bool = False  # neither the last list nor a cancel since has reached it
    strays: dict[InstanceKey, ObservedInstance] = field(default_factory=dict)
    """Instances that it holds, and the peer that gave the list does not."""
    differing: set[InstanceKey] = field(default_factory=set)
    """Instances whose timestamp differs from the one in that list."""
    shown_singly: set[InstanceKey] = field(default_factory=set)
    """Instances that it showed, or whose absence, since the last list."""
    registered: float = -inf
    """The last registration of an UP instance on it that is known, in monotonic seconds."""
    registered_as: dict[str, float] = field(default_factory=dict)
    """The same for each name and address of these instances."""

    # Whether it takes batches, and what they left undone there
    said: replication.ServerStatus | str | None = None
    """Its last answer to the question about batches; a sentence is against them."""
    in_use: bool = False  # it takes batches, and has not failed since the last list
    batch_size: int = replication.SIZE  # less if it did not answer so many items in time
    silent: Silence | None = None  # its last batch failed
    lost: Silence | None = None  # the question about batches found it away
    returned: bool = False  # it may have missed batches, and was not asked since
    lacking: set[InstanceKey] = field(default_factory=set)
    """Instances that it lacked at their last renewal."""

    def failed(self, error: RegistryError) -> None:
        self.rest(unknown_from(error))

    def rest(self, why: Unknown) -> None:
        """Begin a rest. It is twice as long if the peer has not worked since its last one."""
        now = self.clock.monotonic()
        refusing = why.cause is not Cause.UNAVAILABLE
        with self.lock:
            before = self.trouble
            since, length = now, FIRST_REST_SECONDS
            if before is not None:
                since, length = before.since, before.length
                if not before.resting:
                    length = min(2 * length, REST_SECONDS)
            self.trouble = Trouble(since=since, failed=now, length=length, refusing=refusing)
        if before is None or before.refusing is not refusing:
            _log.warning("skipping Eureka peer %s until it works: %s", self.url, why.message)

    def worked(self, *, listed: bool = False) -> None:
        """Note that a call worked, which ends a rest. A list does not end a refusal."""
        with self.lock:
            before = self.trouble
            if before is None or (listed and before.refusing):
                return
            self.trouble = None
        if before.resting:
            self.owed = True
        lasted = duration(round(self.clock.monotonic() - before.since))
        _log.info("Eureka peer %s works again, after %s", self.url, lasted)

    def came_back(self) -> None:
        """Note that it has answered. If it rests, it is used again when it gives its list."""
        with self.lock:
            if self.trouble is not None and self.trouble.resting:
                self.trouble = self.trouble._replace(back=True)

    def end_rest(self) -> None:
        """End the rest if its time is over."""
        now = self.clock.monotonic()
        with self.lock:
            trouble = self.trouble
            if trouble is None or not trouble.resting or trouble.failed + trouble.length > now:
                return
            self.trouble = trouble._replace(resting=False, back=False)
        self.owed = True

    @property
    def is_resting(self) -> bool:
        trouble = self.trouble
        return trouble is not None and trouble.resting

    @property
    def is_down(self) -> bool:
        """Whether it rests because it could not be reached, and not because it refuses us."""
        trouble = self.trouble
        return trouble is not None and trouble.resting and not trouble.refusing

    @property
    def is_back(self) -> bool:
        trouble = self.trouble
        return trouble is not None and trouble.back

    @property
    def is_reachable(self) -> bool:
        """Whether a call that only this peer can answer is worth a try."""
        return not self.is_down or self.is_back

    @property
    def has_just_failed(self) -> bool:
        """Whether it is down since a moment ago, so that another call now would fail, too."""
        trouble = self.trouble
        if trouble is None or not self.is_down:
            return False
        return trouble.failed > self.clock.monotonic() - _ASKED_AGAIN_SECONDS

    def note_registration(self, instance: Instance, at: float) -> None:
        """Note that it took an instance at this time, in monotonic seconds."""
        with self.lock:
            self.registered = max(self.registered, at)
            for name in _found_by(instance):
                self.registered_as[name] = max(self.registered_as.get(name, -inf), at)

    def forget_old_registrations(self) -> None:
        """Forget what all servers have by now."""
        with self.lock:
            if not self.has_just_registered:
                self.registered_as.clear()

    @property
    def has_just_registered(self) -> bool:
        """Whether it took a registration that the other servers may lack: a server replicates
        single calls a moment later."""
        return self._is_recent(self.registered)

    def has_just_registered_for(self, lost: Instance) -> bool:
        """Whether it took a registration, which the other servers may lack, of an instance that the
        callers of the `lost` one would find instead, or of its pod."""
        times = [self.registered_as.get(name, -inf) for name in _found_by(lost)]
        return self._is_recent(max(times))

    def _is_recent(self, registered: float) -> bool:
        return self.clock.monotonic() - registered < replication.REPLICATION_SECONDS


def _found_by(instance: Instance) -> list[str]:
    """Return the names by which callers find an instance, and its address: under another name it is
    the same pod."""
    vips = vip_names(instance.vip_address) | vip_names(instance.secure_vip_address)
    names = [f"VIP {vip}" for vip in vips]
    return [f"app {instance.key.app}", f"address {instance.ip_addr}", *names]
