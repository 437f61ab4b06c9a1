"""Several Eureka servers that replicate to each other, as one `Registry`.

Owns which peer is called. Every call goes to the first peer that is not resting; a write reaches the others by Eureka's
own replication, so a peer is changed by itself only where it holds what the others do not: a ghost.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from eurekube_sync.deadline import TimeLimit
from eurekube_sync.errors import (
    ConfigurationError,
    RegistryDenied,
    RegistryError,
    RegistryRejected,
    RegistryUnavailable,
    RegistryUnusable,
)
from eurekube_sync.eureka.address import EurekaAddress
from eurekube_sync.model import Cause, Complete, Instance, InstanceKey, ObservedInstance, Source, Unknown
from eurekube_sync.ownership import OWNER
from eurekube_sync.ports import Clock, Registry

REST_SECONDS = 300.0
"""How long a peer that failed is left alone: as long as an empty server keeps its list to itself."""
SWEEP_SECONDS = 480.0
"""All peers are listed once in each such stretch of the wall clock ..."""
SWEEP_MARGIN_SECONDS = 90.0
"""... by every process that begins in its first part: a process of a CronJob remembers nothing, and one begins each
minute. Two sweeps are thus never more than 10 minutes apart."""

_log = logging.getLogger(__name__)

A = TypeVar("A")


class _Rest(NamedTuple):
    """Why and until when (monotonic seconds) a peer is left alone."""

    until: float
    refusing: bool
    """It answered, but not as Eureka does to us: 401, 403, a web page."""


def parse_addresses(text: str) -> tuple[EurekaAddress, ...]:
    """One address, or several with commas between, as in Spring's `defaultZone`; each may carry its own login.

    One that is given twice counts once; with another login the second time it is a ConfigurationError.
    """
    parts = [part for part in text.split(",") if part.strip()] or [text]
    found: dict[str, EurekaAddress] = {}
    for number, part in enumerate(parts, start=1):
        try:
            address = EurekaAddress.parse(part)
        except ConfigurationError as error:
            if len(parts) == 1:
                raise
            raise ConfigurationError(
                f"Of {len(parts)} Eureka URLs, number {number}: {error} A comma in a password is written %2C."
            ) from None
        if found.setdefault(address.url, address) != address:
            raise ConfigurationError(f"The Eureka URL {address.url} is given twice, with different logins.")
    return tuple(found.values())


class EurekaPeers:
    """Calls the first peer that works; safe in several threads.

    A peer that cannot be reached, answers 5xx or still warms up is left alone for a while: the call goes to the next
    one at once, and so do those after it. A rest ends with a list, so a pass does not change its peer back half-way.
    While all rest, all are tried.

    A peer that refuses our login, or where a web page answers, is a mistake that a person has to see to, and that the
    next peer would hide until it is needed. So its **list is Unknown**: nothing is withdrawn, and exit code and status
    say why, pass after pass. But renewals and registrations go on to the next peer, with a warning: the peers are one
    registry, and a password that was changed on one of them first must not let every lease lapse. A cancel that a peer
    refuses has failed, for callers may still find the instance there.

    A refusal of one instance (RegistryRejected) is the instance's fault, and no other peer is asked.
    """

    def __init__(
        self,
        peers: Mapping[str, Registry],
        *,
        clock: Clock,
        limit: TimeLimit | None = None,
        rest_seconds: float = REST_SECONDS,
        sweep_seconds: float = SWEEP_SECONDS,
    ) -> None:
        """`peers` by printable address, the preferred one first; `limit` is the one that their clients keep."""
        self._peers = dict(peers)
        self._clock = clock
        self._limit = limit or TimeLimit(clock)
        self._rest_seconds = rest_seconds
        self._sweep_seconds = sweep_seconds
        self._lock = threading.Lock()
        self._rests: dict[str, _Rest] = {}
        self._swept: int | None = None
        self._strays: Mapping[InstanceKey, tuple[str, ...]] = {}
        self._lapsing: dict[InstanceKey, tuple[str, ...]] = {}

    def list_instances(self) -> Source[tuple[ObservedInstance, ...]]:
        """The list of the first peer that gives one; when a sweep is due, also what stands on another peer alone.

        Such strays bear an owner's mark and are not in that list. A desired one is healed like any other that the first
        peer lacks; one that is not desired is a ghost, which is read uncached, counted by the brake and cancelled.
        """
        self._strays = {}
        self._end_rests()
        failed: dict[str, Unknown] = {}
        for name in self._order(to_list=True):
            if self._limit.left() <= 0:
                break
            listed = self._peers[name].list_instances()
            if isinstance(listed, Complete):
                self._worked(name, listed=True)
                self._renew_lapsing()
                return self._with_strays(name, listed, without=failed) if self._sweep_due() else listed
            failed[name] = listed
            refusing = listed.cause is not Cause.UNAVAILABLE
            self._let_rest(name, listed.message, refusing=refusing)
            if refusing:
                return Unknown(
                    cause=listed.cause,
                    message=f"{listed.message} No other peer's list is taken instead; renewals go to the next peer.",
                )
        return Unknown(cause=Cause.UNAVAILABLE, message=_none_left([one.message for one in failed.values()]))

    def read_instance(self, key: InstanceKey) -> ObservedInstance | None:
        """The first peer's answer; what is absent there is read on the peers that the last list found it on.

        A peer that does not answer by now holds nothing that could be changed: the next sweep looks again.
        """
        name, found = self._first(lambda peer: peer.read_instance(key))
        for other in self._holders(key, without=name) if found is None else ():
            try:
                found = self._peers[other].read_instance(key)
            except RegistryError as error:
                self._failed(other, error)
            if found is not None:
                break
        return found

    def register(self, instance: Instance, *, dirty_timestamp: int) -> None:
        """On the first peer, which tells the others."""
        self._first(lambda peer: peer.register(instance, dirty_timestamp=dirty_timestamp))
        self._lapsing.pop(instance.key, None)

    def renew(self, key: InstanceKey) -> bool:
        """Whether the first peer holds the lease. One that stands on another alone is renewed there with the next list,
        unless it was registered or cancelled by then: what is held or frozen must not lapse. Not at once, for a peer
        hands on a renewal, and a ghost would then come to stand on all (PeerEurekaNode.heartbeat)."""
        _, renewed = self._first(lambda peer: peer.renew(key))
        if not renewed and key in self._strays:
            self._lapsing[key] = self._strays[key]
        return renewed

    def cancel(self, key: InstanceKey, *, ours: Callable[[ObservedInstance], bool]) -> bool:
        """On the first peer, then on each other that can be reached and holds it: a 404 is not replicated, and a late
        heartbeat can bring a cancelled instance back (PeerAwareInstanceRegistryImpl.cancel). There it is read first."""
        self._lapsing.pop(key, None)
        name, done = self._first(lambda peer: peer.cancel(key, ours=ours))
        refusal: RegistryError | None = None
        for other in self._reachable(without=name):
            peer = self._peers[other]
            try:
                stands = peer.read_instance(key)
                if stands is not None and ours(stands):
                    done = peer.cancel(key, ours=ours) or done
            except RegistryUnavailable as error:
                self._failed(other, error)
            except RegistryError as error:
                refusal = error
        if refusal is not None:
            raise refusal
        return done

    def _first(self, call: Callable[[Registry], A]) -> tuple[str, A]:
        errors: list[RegistryError] = []
        for name in self._order():
            if self._limit.left() <= 0:
                break
            try:
                answer = call(self._peers[name])
            except RegistryRejected:
                raise
            except RegistryError as error:
                self._failed(name, error)
                errors.append(error)
            else:
                self._worked(name)
                return name, answer
        raise _worst(errors)(_none_left([str(error) for error in errors]))

    def _order(self, *, to_list: bool = False) -> list[str]:
        """The resting ones last. A peer that refuses is asked for its list all the same."""
        with self._lock:
            resting = {name for name, rest in self._rests.items() if not (to_list and rest.refusing)}
        return sorted(self._peers, key=lambda name: name in resting)

    def _reachable(self, *, without: str) -> list[str]:
        with self._lock:
            down = {name for name, rest in self._rests.items() if not rest.refusing}
        return [name for name in self._peers if name != without and name not in down]

    def _holders(self, key: InstanceKey, *, without: str) -> list[str]:
        holders = self._strays.get(key, ())
        return [name for name in self._reachable(without=without) if name in holders] if holders else []

    def _renew_lapsing(self) -> None:
        lapsing, self._lapsing = self._lapsing, {}
        for key, holders in lapsing.items():
            for name in self._reachable(without=""):
                if name not in holders or self._limit.left() <= 0:
                    continue
                try:
                    self._peers[name].renew(key)
                except RegistryError as error:
                    self._failed(name, error)

    def _failed(self, name: str, error: RegistryError) -> None:
        self._let_rest(name, str(error), refusing=not isinstance(error, RegistryUnavailable))

    def _let_rest(self, name: str, why: str, *, refusing: bool) -> None:
        with self._lock:
            before = self._rests.get(name)
            self._rests[name] = _Rest(until=self._clock.monotonic() + self._rest_seconds, refusing=refusing)
        if before is None or before.refusing is not refusing:
            _log.warning("the Eureka peer %s is not used for %g s: %s", name, self._rest_seconds, why)

    def _worked(self, name: str, *, listed: bool = False) -> None:
        """A list says nothing of writes, which may be refused all the same."""
        with self._lock:
            rest = self._rests.get(name)
            if rest is None or (listed and rest.refusing):
                return
            del self._rests[name]
        _log.warning("the Eureka peer %s is used again", name)

    def _end_rests(self) -> None:
        now = self._clock.monotonic()
        with self._lock:
            ended = [name for name, rest in self._rests.items() if rest.until <= now]
            for name in ended:
                del self._rests[name]
        for name in ended:
            _log.warning("the Eureka peer %s is tried again", name)

    def _sweep_due(self) -> bool:
        now = self._clock.now()
        stretch = int(now // self._sweep_seconds)
        swept, self._swept = self._swept, stretch
        if swept is None:  # this process has just begun; those before it may have swept in this stretch
            return now % self._sweep_seconds < SWEEP_MARGIN_SECONDS
        return stretch != swept

    def _with_strays(
        self, first: str, listed: Complete[tuple[ObservedInstance, ...]], *, without: Mapping[str, Unknown]
    ) -> Complete[tuple[ObservedInstance, ...]]:
        known = {instance.key for instance in listed.data}
        strays: dict[InstanceKey, ObservedInstance] = {}
        holders: dict[InstanceKey, tuple[str, ...]] = {}
        for name, peer in self._peers.items():
            if name == first or name in without:
                continue
            theirs = peer.list_instances()
            if isinstance(theirs, Unknown):
                _log.warning("what stands on the Eureka peer %s alone is not seen: %s", name, theirs.message)
                continue
            for instance in theirs.data:
                if instance.key not in known and OWNER in instance.metadata:
                    strays.setdefault(instance.key, instance)
                    holders[instance.key] = (*holders.get(instance.key, ()), name)
        self._strays = holders
        return Complete(data=(*listed.data, *strays.values()))


def _worst(errors: list[RegistryError]) -> type[RegistryError]:
    """What a person has to see to first."""
    for kind in (RegistryDenied, RegistryUnusable):
        if any(isinstance(error, kind) for error in errors):
            return kind
    return RegistryUnavailable


def _none_left(messages: list[str]) -> str:
    if not messages:
        return "No Eureka peer was tried: no time was left for it."
    return f"No Eureka peer could be used: {'; and '.join(message.removesuffix('.') for message in messages)}."
