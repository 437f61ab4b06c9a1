"""Whether writes may go in batches, and to which servers. A batch is a message of Eureka's
replication, which no server replicates. So it is safe only if we know every server, which the
servers are asked; else each write is a single call.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from urllib.parse import urlsplit

from eurekube_sync.adapters.eureka.everywhere import SINGLY, EverywhereBatches, probed, refused
from eurekube_sync.adapters.eureka.peer import Peer, Silence
from eurekube_sync.adapters.eureka.replication import SIZE, ServerStatus
from eurekube_sync.model.deadline import Schedule
from eurekube_sync.model.errors import RegistryError, RegistryUnavailable
from eurekube_sync.model.eureka import OUR_LEASE, Batching, Instance, InstanceKey, ObservedInstance
from eurekube_sync.model.ports import Batches, Registry
from eurekube_sync.model.sources import Complete, Source

ASK_SECONDS = 480.0  # all servers are asked again once in each such stretch of the wall clock
# Servers that were against batches are asked so often: they may be fixed by now
TROUBLED_SECONDS = 60.0
AWAY_PART = 0.4
"""If a server is away for this part of a lease's duration, 2 minutes by default, writes are single
calls, which other servers replicate to it: it may be away from us alone, and our leases expire
there after twice the duration."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# What Netflix's own server gives as its port, unless `eureka.port` says otherwise
_NETFLIX_PORT = 80
_log = logging.getLogger(__name__)


class BatchingRegistry:
    """A `Registry` with batches where they are safe; `inner` makes all other calls to the same
    peers.

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
        self._peers = batches.peers
        self._required = required
        self._dry_run = dry_run
        self._questions = Schedule(ask_seconds)
        self._away_seconds = AWAY_PART * lease_duration
        # When servers against batches were last asked, in monotonic seconds
        self._asked_troubled = 0.0
        self._batching: Batching | None = None

    def list_instances(self) -> Source[tuple[ObservedInstance, ...]]:
        """List, then ask the servers whether batches are safe if they have not answered yet, or
        were away."""
        away = self._away()
        listed = self._inner.list_instances()
        just_failed = self._away() - away
        if isinstance(listed, Complete) or self._has_answers():
            self._ask_servers(away, just_failed)
        return listed

    def register(self, instance: Instance, *, dirty_timestamp: int) -> None:
        """Register by a single call. The next renewal checks whether the other servers have it."""
        self._inner.register(instance, dirty_timestamp=dirty_timestamp)
        self._batches.note_posted(instance.key)

    def renew(self, key: InstanceKey) -> bool:
        """Renew by a single call. Return False, once, also if a batch may have reached some servers
        only: the caller then registers it by a single call, which is replicated before the instance
        that it replaces is cancelled."""
        return self._inner.renew(key) and not self._batches.end_partly(key)

    def cancel(self, key: InstanceKey, *, ours: Callable[[ObservedInstance], bool]) -> bool:
        self._batches.settle(key)
        return self._inner.cancel(key, ours=ours)

    def batches(self) -> Batches | None:
        on = self.batching().on and not self._dry_run and self._batches.usable()
        if on:
            return self._batches
        return None

    def batching(self) -> Batching:
        if self._batches.trouble is not None:
            return Batching(on=False, why=f"{self._batches.trouble}. {SINGLY}")
        return self._batching or Batching(
            on=False, why="no Eureka server has said yet whether batches are safe"
        )

    def _away(self) -> frozenset[Peer]:
        return frozenset(peer for peer in self._peers if peer.is_down)

    def _has_answers(self) -> bool:
        return any(peer.said is not None for peer in self._peers)

    def _ask_servers(self, away: frozenset[Peer], just_failed: frozenset[Peer]) -> None:
        """Ask the servers that are due, and use those for batches that admit them."""
        everybody = self._questions.due(self._batches.clock.now())
        # One whose list has just failed would fail again, and take the time of a pass.
        due = [peer for peer in self._due(away, everybody) if peer not in just_failed]
        if everybody:
            self._batches.forget_failures()
        for peer in self._peers:
            peer.lost = peer.lost or peer.silent  # away since its first silence, of either kind
        failed = dict.fromkeys(just_failed, "its list could not be read")
        for peer, failure in zip(due, self._batches.workers.each(self._ask, due), strict=True):
            if failure is not None:
                failed[peer] = str(failure)
            elif peer.silent is None:
                peer.lost = None
        now = self._batches.clock.monotonic()
        for peer, why in failed.items():
            peer.lost = Silence(peer.lost.since if peer.lost else now, why)
            peer.silent = None  # it was away: a later silence is another one
        admitting = [peer for peer in self._peers if isinstance(peer.said, ServerStatus)]
        self._batches.use([peer for peer in admitting if peer not in failed])
        self._report(self._trouble_now(now))

    def _due(self, away: frozenset[Peer], everybody: bool) -> list[Peer]:
        """Return the servers to ask now: all from time to time, else those without an answer, those
        that were away, and from time to time those that were against batches."""
        now = self._batches.clock.monotonic()
        troubled = everybody or now - self._asked_troubled >= TROUBLED_SECONDS
        if troubled:
            self._asked_troubled = now
        due: list[Peer] = []
        for peer in self._peers:
            unknown = peer.said is None or peer.lost is not None or peer in away
            if everybody or unknown or (troubled and isinstance(peer.said, str)):
                due.append(peer)
        return due

    def _ask(self, peer: Peer) -> RegistryUnavailable | None:
        """Ask a server for its status, or what is against batches; return why it does not
        answer."""
        said: ServerStatus | str = ServerStatus(instance_id="", replicas=())
        try:
            if not self._required:
                said = self._question(peer)
            if isinstance(said, ServerStatus) and not self._dry_run:
                code = probed(peer.asked)
                if code != 404:
                    said = (
                        f"{peer.url} answered a batch of one unknown instance with {code} instead "
                        "of 404"
                    )
        except RegistryUnavailable as error:
            return error
        except RegistryError as error:
            said = refused(error)
        peer.came_back()
        peer.said = said
        return None

    def _question(self, peer: Peer) -> ServerStatus | str:
        """Ask for the replicas. Batches are safe if they are those of --eureka-url, because no
        server passes them on."""
        try:
            status = peer.asked.server_status()
        except RegistryUnavailable:
            raise
        except RegistryError as error:
            return (
                f"{peer.url} does not say which replicas it has ({error}); if --eureka-url names "
                "all of them, use --eureka-batch on"
            )
        others = [url for url in status.replicas if not _is_itself(url, peer.url, status)]
        ours = {_place(named.url) for named in self._peers}
        replicas = {_place(url): url for url in others}
        if _place(peer.url) in replicas:
            host = urlsplit(peer.url).hostname
            return (
                f"{peer.url} replicates to this same address, so several servers may be behind a "
                "load balancer there. If they are, give each server's own address as --eureka-url. "
                f"If it is one server, set its eureka.instance.hostname to {host}, or use "
                "--eureka-batch on"
            )
        strange = sorted(url for place, url in replicas.items() if place not in ours)
        if strange:
            return (
                f"{peer.url} replicates to {', '.join(strange)}, which --eureka-url does not name. "
                "Servers do not pass batches on: name every server in --eureka-url, by the address "
                "that the other servers use for it"
            )
        return status._replace(replicas=tuple(others))

    def _trouble_now(self, now: float) -> str | None:
        """Return what is against batches to any server: its own answer, that it is away, or that
        two addresses are one server."""
        for peer in self._peers:
            if isinstance(peer.said, str):
                return peer.said
        # If a single server is away, no other one could pass single calls on to it.
        if len(self._peers) > 1 or not self._has_answers():
            for peer in self._peers:
                if peer.lost is not None and self._is_missed(peer, peer.lost, now):
                    return self._of_missed(peer.url, peer.lost.why)
        servers = Counter(_server(peer.said) for peer in self._peers)
        for (instance_id, _), times in servers.items():
            if instance_id and times > 1:
                return (
                    f"two addresses of --eureka-url lead to the same server, {instance_id}: give "
                    "each server's own address, once"
                )
        return None

    def _is_missed(self, peer: Peer, lost: Silence, now: float) -> bool:
        return peer.said is None or now - lost.since >= self._away_seconds

    def _of_missed(self, url: str, why: str) -> str:
        trouble = f"batches are off, because {url} gave no usable answer ({why})"
        if not self._has_answers():
            return trouble
        return f"{trouble}. Other servers can pass single calls on to it"

    def _report(self, trouble: str | None) -> None:
        """Remember whether batches are on, and log it if that changed."""
        number = len(self._peers)
        where = f"to each of {number} Eureka servers" if number > 1 else "to the Eureka server"
        because = "--eureka-batch is on" if self._required else "--eureka-url names every server"
        why = f"renewals go {where} in batches of {SIZE}: {because}"
        level = logging.DEBUG  # that batches are on is no news
        if trouble is not None:
            why = f"{trouble}. {SINGLY}"
            level = logging.WARNING if self._required else logging.INFO
        batching = Batching(on=trouble is None, why=why)
        if self._batching != batching:
            _log.log(level, "%s", why)
        self._batching = batching


def _server(said: ServerStatus | str | None) -> tuple[str, frozenset[str]]:
    """Return what identifies a server. Copies of one id may replicate to different servers."""
    if isinstance(said, ServerStatus):
        return said.instance_id, frozenset(said.replicas)
    return "", frozenset()


def _is_itself(replica: str, name: str, status: ServerStatus) -> bool:
    """Say whether a replica of the server at `name` is this server, and so no other one that would
    miss batches.

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
