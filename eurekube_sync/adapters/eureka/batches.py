"""Whether writes may go in batches, and to which servers. A batch is a message of Eureka's
replication, which no server replicates. So it is safe only if we know every server, which the
servers are asked; else each write is a single call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from urllib.parse import urlsplit

from eurekube_sync.adapters.eureka.everywhere import (
    SINGLY,
    SIZE,
    EverywhereBatches,
    probed,
    refused,
)
from eurekube_sync.adapters.eureka.replication import ServerStatus
from eurekube_sync.model.deadline import Schedule
from eurekube_sync.model.errors import RegistryError, RegistryUnavailable
from eurekube_sync.model.eureka import OUR_LEASE, Batching, Instance, InstanceKey, ObservedInstance
from eurekube_sync.model.ports import Batches, Registry
from eurekube_sync.model.sources import Complete, Source

ASK_SECONDS = 480.0  # all servers are asked again once in each such stretch of the wall clock
TROUBLED_SECONDS = (
    60.0  # servers that were against batches are asked so often: they may be fixed by now
)
AWAY_PART = 0.4
"""If a server is away for this part of a lease's duration, 2 minutes by default, writes are single
calls, which other servers replicate to it: it may be away from us alone, and our leases expire
there after twice the duration."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_NETFLIX_PORT = (
    80  # what Netflix's own server gives as its port, unless `eureka.port` says otherwise
)
_log = logging.getLogger(__name__)


class BatchingRegistry:
    """A `Registry` with batches where they are safe; `inner` makes all other calls. Both share
    servers and doubts.

    With `required` no server is asked for its replicas. With `dry_run` there are no batches and no
    probes."""

    def __init__(
        self,
        inner: Registry,
        batches: EverywhereBatches,
        *,
        required: bool = False,
        dry_run: bool = False,
        ask_seconds: float = ASK_SECONDS,
        lease_duration: float = OUR_LEASE.duration,
    ) -> None:
        self.list_elsewhere, self.unreached = inner.list_elsewhere, inner.unreached
        self.read_instance, self.read_everywhere = inner.read_instance, inner.read_everywhere
        self._inner = inner
        self._batches = batches
        self._required = required
        self._dry_run = dry_run
        self._questions = Schedule(ask_seconds)
        self._away_seconds = AWAY_PART * lease_duration
        self._asked_troubled = (
            0.0  # when servers against batches were last asked, in monotonic seconds
        )
        self._said: dict[
            str, ServerStatus | str
        ] = {}  # each server's last answer; a sentence is against batches
        self._lost: dict[
            str, tuple[float, str]
        ] = {}  # servers without an answer: since when (monotonic), and why
        self._batching: Batching | None = None

    def list_instances(self) -> Source[tuple[ObservedInstance, ...]]:
        """List, then ask the servers whether batches are safe if they have not answered yet, or
        were away."""
        away = self._away()
        listed = self._inner.list_instances()
        just_failed = self._away() - away
        if isinstance(listed, Complete) or self._said:
            self._ask_servers(away, just_failed)
        return listed

    def register(self, instance: Instance, *, dirty_timestamp: int) -> None:
        """Register by a single call. The next renewal checks whether the other servers have it."""
        self._inner.register(instance, dirty_timestamp=dirty_timestamp)
        doubts = self._batches.doubts
        doubts.end_partly(instance.key)
        if len(self._batches.asked) > 1:
            doubts.posted.add(instance.key)
            doubts.last_posted = self._batches.clock.monotonic()

    def renew(self, key: InstanceKey) -> bool:
        """Renew by a single call. Return False, once, also if a batch may have reached some servers
        only: the caller then registers it by a single call, which is replicated before the instance
        that it replaces is cancelled."""
        return self._inner.renew(key) and not self._batches.doubts.end_partly(key)

    def cancel(self, key: InstanceKey, *, ours: Callable[[ObservedInstance], bool]) -> bool:
        self._batches.doubts.settle(key)
        return self._inner.cancel(key, ours=ours)

    def batches(self) -> Batches | None:
        on = self.batching().on and not self._dry_run and self._batches.usable()
        return self._batches if on else None

    def batching(self) -> Batching:
        if self._batches.trouble is not None:
            return Batching(on=False, why=f"{self._batches.trouble} {SINGLY}")
        return self._batching or Batching(
            on=False, why="No Eureka server has said yet whether batches are safe."
        )

    def _away(self) -> frozenset[str]:
        return self._batches.rests.down() if self._batches.rests is not None else frozenset()

    def _ask_servers(self, away: frozenset[str], just_failed: frozenset[str]) -> None:
        asked, silent = self._batches.asked, self._batches.silent
        everybody = self._questions.due(self._batches.clock.now())
        now = self._batches.clock.monotonic()
        called = set(asked) if everybody else {*away, *self._lost, *(asked.keys() - self._said)}
        if everybody or now - self._asked_troubled >= TROUBLED_SECONDS:
            called |= {name for name, said in self._said.items() if isinstance(said, str)}
            self._asked_troubled = now
        due = [name for name in asked if name in called - just_failed]
        if everybody:
            self._batches.forget_failures()
        for name, silence in silent.items():
            self._lost.setdefault(name, silence)
        failed = dict.fromkeys(just_failed, "its list could not be read")
        for name, said in zip(due, self._batches.workers.each(self._ask, due), strict=True):
            if isinstance(said, RegistryUnavailable):
                failed[name] = str(said).removesuffix(".")
            else:
                self._said[name] = said
            if name not in silent and name not in failed:
                self._lost.pop(name, None)
        now = self._batches.clock.monotonic()
        for name, why in failed.items():
            self._lost[name] = (self._lost[name][0] if name in self._lost else now), why
            silent.pop(name, None)  # it was away: a later silence is another one
        admitted = {name for name, said in self._said.items() if not isinstance(said, str)}
        self._batches.use(admitted - failed.keys())
        self._report(self._trouble_now(now))

    def _ask(self, name: str) -> ServerStatus | str | RegistryUnavailable:
        """Return a server's status, a sentence against batches, or why it does not answer."""
        try:
            said = (
                ServerStatus(instance_id="", replicas=())
                if self._required
                else self._question(name)
            )
            if (
                not isinstance(said, str)
                and not self._dry_run
                and (code := probed(self._batches.asked[name])) != 404
            ):
                said = (
                    f"{name} answered a batch of one unknown instance with {code} instead of 404."
                )
        except RegistryUnavailable as error:
            return error
        except RegistryError as error:
            said = refused(error)
        if self._batches.rests is not None:
            self._batches.rests.came_back(name)
        return said

    def _question(self, name: str) -> ServerStatus | str:
        try:
            status = self._batches.asked[name].server_status()
        except RegistryUnavailable:
            raise
        except RegistryError as error:
            why = f"{name} does not say which replicas it has ({str(error).removesuffix('.')})"
            return f"{why}; if --eureka-url names all of them, use --eureka-batch on."
        ours = {_place(one) for one in self._batches.asked}
        others = [replica for replica in status.replicas if not _is_itself(replica, name, status)]
        status = status._replace(replicas=tuple(others))
        replicas = {_place(replica): replica for replica in others}
        if _place(name) in replicas:
            host = urlsplit(name).hostname
            why = (
                f"{name} replicates to this same address, so several servers may be behind a "
                "load balancer there"
            )
            fix = "If they are, give each server's own address as --eureka-url."
            alone = (
                f"If it is one server, set its eureka.instance.hostname to {host}, or use "
                "--eureka-batch on."
            )
            return f"{why}. {fix} {alone}"
        strange = sorted(url for place, url in replicas.items() if place not in ours)
        if strange:
            fix = (
                "name every server in --eureka-url, by the address that the other servers use "
                "for it."
            )
            why = f"{name} replicates to {', '.join(strange)}, which --eureka-url does not name"
            return f"{why}. Servers do not pass batches on: {fix}"
        return status

    def _trouble_now(self, now: float) -> str | None:
        if against := [said for said in self._said.values() if isinstance(said, str)]:
            return against[0]
        for name, (since, why) in (
            self._lost.items() if len(self._batches.asked) > 1 or not self._said else ()
        ):
            if name not in self._said or now - since >= self._away_seconds:
                said = f"Batches are off, because {name} gave no usable answer ({why})."
                return (
                    f"{said} Other servers can pass single calls on to it." if self._said else said
                )
        selves = [
            (one.instance_id, {*one.replicas})
            for one in self._said.values()
            if not isinstance(one, str)
        ]
        for one in selves:
            if one[0] and selves.count(one) > 1:
                both = f"Two addresses of --eureka-url lead to the same server, {one[0]}"
                return f"{both}: give each server's own address, once."
        return None

    def _report(self, trouble: str | None) -> None:
        number = len(self._batches.asked)
        where = f"to each of {number} Eureka servers" if number > 1 else "to the Eureka server"
        because = "--eureka-batch is on" if self._required else "--eureka-url names every server"
        why = (
            f"{trouble} {SINGLY}"
            if trouble
            else f"Renewals go {where} in batches of {SIZE}: {because}."
        )
        found = Batching(on=trouble is None, why=why)
        if self._batching != found:
            without = logging.WARNING if self._required else logging.INFO
            _log.log(
                logging.DEBUG if found.on else without, "%s", why
            )  # that batches are on is no news
        self._batching = found


def _is_itself(replica: str, name: str, status: ServerStatus) -> bool:
    """Whether a replica of the server at `name` is this server, and so no other one that would miss
    batches.

    A server takes itself for a replica if its host name is not the one in its own `serviceUrl`,
    which is `localhost` by default. Behind a load balancer, the address of all servers has another
    host or port than each."""
    _, host, port, _ = place = _place(replica)
    if host not in {*_LOOPBACK, status.ip_addr}:
        return False
    unset = status.ports <= {_NETFLIX_PORT}
    return port in status.ports or (unset and place == _place(name))


def _place(url: str) -> tuple[str, str, int | None, str]:
    """Return an address in one form, with the default port if it has none."""
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return (
        parts.scheme,
        (parts.hostname or "").rstrip("."),
        parts.port or usual,
        parts.path.rstrip("/"),
    )
