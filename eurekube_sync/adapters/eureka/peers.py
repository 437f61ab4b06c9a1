"""Several Eureka servers that replicate to each other, as one `Registry`. Every call goes to the first peer that is not
resting; a write reaches the others by Eureka's own replication, so a peer is changed by itself only where it holds what
the others do not: a stray."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Mapping
from math import inf
from typing import Any, TypeVar

from eurekube_sync.adapters.eureka.everywhere import Doubts
from eurekube_sync.adapters.eureka.replication import REPLICATION_SECONDS
from eurekube_sync.adapters.eureka.rests import Rests
from eurekube_sync.model import errors
from eurekube_sync.model.deadline import Schedule, TimeLimit
from eurekube_sync.model.eureka import Instance, InstanceKey, ObservedInstance
from eurekube_sync.model.ownership import OWNER
from eurekube_sync.model.ports import Clock, Elsewhere, Registry
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown

SWEEP_SECONDS = 480.0  # all peers are listed once in each such stretch of the wall clock ...
SWEEP_MARGIN_SECONDS = 90.0  # ... by every process that begins in its first part: one of a CronJob remembers nothing
SWEEP_SLACK_SECONDS = 30.0  # what a pass may take until it renews what a sweep has found, with some to spare
_STRAY_RENEWAL_SECONDS = 25.0  # a stray is renewed in the first pass after this: about as often as all others

_UNNAMED = "no Eureka server was named: give --eureka-url to look there as well"
_log = logging.getLogger(__name__)
A = TypeVar("A")


def sweep_seconds(lease_duration: float) -> float:
    """A stray is renewed once a list of all peers has shown it, and expires twice the duration of a lease later."""
    return max(1.0, min(SWEEP_SECONDS, 2 * lease_duration - SWEEP_MARGIN_SECONDS - SWEEP_SLACK_SECONDS))


class EurekaPeers(Registry):
    """Calls the first peer that works; safe in several threads.

    A peer that cannot be reached, answers 5xx or still warms up rests: this call and those after it go to the next one.
    A rest ends with a list, so a pass does not change its peer back half-way. While all rest, all are tried.

    A peer that refuses our login, or where a web page answers, is a mistake that the next one would hide. So its **list
    is Unknown**, and nothing is removed. But renewals and registrations go on to the next peer, with a warning: a
    password that was changed on one of them first must not let every lease expire. A cancel that a peer refuses has
    failed, for callers may still find the instance there.

    A refusal of one instance (RegistryRejected) is the instance's fault, and no other peer is asked; but after a 500
    (RegistryStumbled), which may be the peer's fault, the next one is, and none rests for it.
    """

    def __init__(
        self,
        peers: Mapping[str, Registry],
        *,
        clock: Clock,
        limit: TimeLimit | None = None,
        rests: Rests | None = None,
        doubts: Doubts | None = None,
        sweep_seconds: float = SWEEP_SECONDS,
    ) -> None:
        """`peers` by printable address, the preferred one first; `limit` is the one that their clients keep."""
        self._peers = dict(peers)
        self._clock = clock
        self._limit = limit or TimeLimit(clock)
        self._rests = rests or Rests(clock)
        self._doubts = doubts or Doubts()
        self._sweeps = Schedule(sweep_seconds, first_part=SWEEP_MARGIN_SECONDS)
        self._registered = -inf  # when something was registered last, as far as this process knows (monotonic)
        self._owed: set[str] = set()  # peers to list also between sweeps: back from a rest, not listed, or with strays
        self._unlisted: set[str] = set()  # peers that could not be listed in a sweep, which is said once
        self._strays: dict[str, dict[InstanceKey, ObservedInstance]] = {}  # by peer, as their last lists showed them
        self._shown: set[str] = set()  # peers that were listed with the last list, or since
        self._to_renew: dict[InstanceKey, list[str]] = {}  # strays to renew with the next list, and where
        self._strays_renewed = -inf  # in monotonic seconds
        self._passed_over: set[str] = set()

    def list_instances(self) -> Source[tuple[ObservedInstance, ...]]:
        """The list of the first peer that gives one, and the strays that have an owner's mark: they are registered
        again, or read uncached, counted by the brake and cancelled."""
        self._owed.update(self._rests.end())
        self._shown.clear()
        failed: dict[str, str] = {}
        for name in self._order(to_list=True):
            if self._limit.left() <= 0:
                break
            listed = self._peers[name].list_instances()
            if isinstance(listed, Complete):
                self._worked(name, listed=True)
                self.renew_strays()
                self._sweep(name, listed.data)
                self._passed_over = {*self._down(), *self._unlisted} - {name}
                if any(self._strays.values()):  # also between two sweeps: a held one is renewed on its peer
                    for one in listed.data:
                        self._settle(one.key)
                    return Complete(data=(*listed.data, *self._all_strays()))
                return listed
            failed[name] = listed.message
            refusing = listed.cause is not Cause.UNAVAILABLE
            self._rests.begin(name, listed.message, refusing=refusing)
            if refusing:
                why = f"{listed.message} No other peer's list is taken instead; renewals go to the next peer."
                return Unknown(cause=listed.cause, message=why)
        return Unknown(cause=Cause.UNAVAILABLE, message=_none_left(failed))

    def list_elsewhere(self, listed: Complete[tuple[ObservedInstance, ...]]) -> Elsewhere:
        """The strays of now: peers that were not swept with the list are listed, also one that rests: a deletion waits
        for it. One that fails, or has failed a moment ago, is not listed."""
        of_first = [one for one in listed.data if not self._holders(one.key)]
        asked = self._peers.keys() - self._shown - self._rests.just_failed()
        self._look_at([name for name in self._peers if name in asked], of_first)
        unlisted = tuple(name for name in self._peers if name not in self._shown)
        self._passed_over.update(unlisted)
        return Elsewhere(self._all_strays(), unlisted)

    def read_instance(self, key: InstanceKey) -> ObservedInstance | None:
        """The first peer's answer; what is absent there is read on the peers that the last list found it on."""
        return self._read(key, self._holders(key))

    def read_everywhere(self, key: InstanceKey) -> ObservedInstance | None:
        """The first peer's answer; what is absent there is read on all others. A server that cannot be
        reached is passed over. Raises RegistryError if one refuses this instance, or no time is left: then it is not
        known to be absent."""
        return self._read(key, self._peers)

    def _read(self, key: InstanceKey, others: Container[str]) -> ObservedInstance | None:
        name, found = self._first(lambda peer: peer.read_instance(key))
        if found is not None:
            # What another process registered a moment ago is on its way to the other peers as well. By another
            # machine's clock it may be younger than none.
            age = self._clock.now() - found.last_dirty_timestamp / 1000
            if abs(age) < REPLICATION_SECONDS:
                self._registered = max(self._registered, self._clock.monotonic() - max(age, 0.0))
            return found
        for other in (one for one in self._reachable(without=name) if one in others):
            if self._limit.left() <= 0:
                raise errors.RegistryUnavailable(f"{other} was not asked for it: no time was left.")
            try:
                found = self._peers[other].read_instance(key)
            except errors.RegistryError as error:
                if isinstance(error, errors.RegistryRejected) or self._limit.left() <= 0:
                    raise
                self._rests.failed(other, error)
            else:
                if found is not None:
                    return found
                self._strays.get(other, {}).pop(key, None)
        return None

    def register(self, instance: Instance, *, dirty_timestamp: int) -> None:
        self._first(lambda peer: peer.register(instance, dirty_timestamp=dirty_timestamp))
        self._registered = self._clock.monotonic()
        self._settle(instance.key)

    def renew(self, key: InstanceKey) -> bool:
        """Whether the first peer holds the lease. A stray is renewed on its own peer with the next list, unless it was
        registered or cancelled before: what is held or not served must not expire. Not at once, for a peer hands on a
        renewal, and all peers would then hold the stray (PeerEurekaNode.heartbeat)."""
        _, renewed = self._first(lambda peer: peer.renew(key))
        if not renewed and (holders := self._holders(key)):
            self._to_renew[key] = holders
        return renewed

    def cancel(self, key: InstanceKey, *, ours: Callable[[ObservedInstance], bool]) -> bool:
        """On the first peer, then on each other that can be reached and holds it: a 404 is not replicated, and a late
        heartbeat can bring a cancelled instance back (PeerAwareInstanceRegistryImpl.cancel). There it is read first.

        Not right after a registration: what it replaces must not be removed on a peer that has not heard of it yet. The
        first peer hands on both, in that order, also where its 404 is the second answer to a cancel whose first one was
        lost; but a stray's cancel it does not hand on."""
        stray = bool(self._holders(key))
        self._settle(key)
        replicating = self._clock.monotonic() - self._registered < REPLICATION_SECONDS
        name, done = self._first(lambda peer: peer.cancel(key, ours=ours), alone=replicating)
        if (done or not stray) and replicating:
            return done
        refusal: errors.RegistryError | None = None
        self._passed_over.update(self._down() - {name})
        for other in self._reachable(without=name):
            peer = self._peers[other]
            try:
                registered = peer.read_instance(key)
                if registered is not None and ours(registered):
                    done = peer.cancel(key, ours=ours) or done
            except errors.RegistryUnavailable as error:
                self._rests.failed(other, error)
                self._passed_over.add(other)
            except errors.RegistryError as error:
                refusal = error
        if refusal is not None:
            raise refusal
        return done

    def unreached(self) -> tuple[str, ...]:
        return tuple(name for name in self._peers if name in self._passed_over)

    def _first(self, call: Callable[[Registry], A], *, alone: bool = False) -> tuple[str, A]:
        failures: dict[str, errors.RegistryError] = {}
        for name in self._order()[: 1 if alone else None]:
            if self._limit.left() <= 0:
                break
            try:
                answer = call(self._peers[name])
            except errors.RegistryStumbled as error:
                failures[name] = error
            except errors.RegistryRejected:
                raise
            except errors.RegistryError as error:
                self._rests.failed(name, error)
                failures[name] = error
            else:
                self._worked(name)
                return name, answer
        # What a person has to see to comes first, then what a peer broke down over: one that is away tells nothing.
        kinds = (errors.RegistryDenied, errors.RegistryUnusable, errors.RegistryRejected)
        worst = (kind for kind in kinds if any(isinstance(error, kind) for error in failures.values()))
        why = _none_left({name: str(error) for name, error in failures.items()})
        raise next(worst, errors.RegistryUnavailable)(why)

    def _order(self, *, to_list: bool = False) -> list[str]:
        """The resting ones last. A peer that refuses is asked for its list all the same."""
        resting = self._rests.down() if to_list else self._rests.resting()
        return sorted(self._peers, key=lambda name: name in resting)

    def _down(self) -> frozenset[str]:
        return self._rests.down() - self._rests.back()

    def _reachable(self, *, without: str = "") -> list[str]:
        down = self._down()
        return [name for name in self._peers if name != without and name not in down]

    def renew_strays(self) -> None:
        """With a list, or when none comes any more: a process of one pass would never renew them."""
        now = self._clock.monotonic()
        due, self._to_renew = self._to_renew, {}
        if not due or now - self._strays_renewed < _STRAY_RENEWAL_SECONDS:
            return
        self._strays_renewed = now
        for key, holders in due.items():
            for name in (name for name in self._reachable() if name in holders and self._limit.left() > 0):
                try:
                    if not self._peers[name].renew(key):
                        self._strays.get(name, {}).pop(key, None)
                except errors.RegistryError as error:
                    self._rests.failed(name, error)

    def _holders(self, key: InstanceKey) -> list[str]:
        """The other peers that hold it, where the first one does not."""
        return [name for name, held in self._strays.items() if key in held]

    def _all_strays(self) -> tuple[ObservedInstance, ...]:
        found: dict[InstanceKey, ObservedInstance] = {}
        for held in self._strays.values():
            found |= held
        return tuple(found.values())  # one copy of each

    def _settle(self, key: InstanceKey) -> None:
        """It is on the first peer, or cancelled on all: a stray no longer."""
        self._to_renew.pop(key, None)
        for held in self._strays.values():
            held.pop(key, None)

    def _worked(self, name: str, *, listed: bool = False) -> None:
        if self._rests.worked(name, listed=listed):
            self._owed.add(name)

    def _sweep(self, first: str, listed: Iterable[ObservedInstance]) -> None:
        """List the other peers when a sweep is due, or those that are owed one, for what the first one lacks."""
        due = self._sweeps.due(self._clock.now())
        self._shown.add(first)
        self._strays.pop(first, None)  # its own list says what it holds
        self._owed |= self._rests.back() | {name for name, held in self._strays.items() if held}  # they may be gone
        self._look_at([name for name in self._reachable(without=first) if due or name in self._owed], listed)
        self._owed.discard(first)

    def _look_at(self, names: Iterable[str], of_first: Iterable[ObservedInstance]) -> None:
        """What these peers hold and the list of the first does not show."""
        known = {one.key: one.last_dirty_timestamp for one in of_first}
        for name in names:
            if self._limit.left() <= 0:
                self._owed.add(name)
                continue
            theirs = self._peers[name].list_instances()
            if isinstance(theirs, Unknown):
                # Its strays are still taken for registered: only an uncached read ends that.
                if name not in self._unlisted:
                    _log.warning(
                        "the Eureka peer %s could not be listed, so instances that only it holds are unknown: %s",
                        name,
                        theirs.message,
                    )
                self._unlisted.add(name)
                self._owed.add(name)
                if theirs.cause is Cause.UNAVAILABLE:  # it would cost the next passes a timeout each
                    self._rests.begin(name, theirs.message, refusing=False)
                continue
            self._worked(name, listed=True)
            self._owed.discard(name)
            self._unlisted.discard(name)
            self._shown.add(name)
            unknown = (one for one in theirs.data if one.key not in known)
            self._strays[name] = {one.key: one for one in unknown if OWNER in one.metadata}
            ages = ((one.key, one.last_dirty_timestamp) for one in theirs.data)
            self._doubts.differing[name] = {key for key, age in ages if known.get(key, age) != age}


class UnnamedEureka(Registry):
    """A Eureka that nobody named: every read says so, and nothing is written. For commands that can do without."""

    def list_instances(self) -> Unknown:
        return Unknown(cause=Cause.NOT_READ, message=_UNNAMED)

    def _refused(self, *_: object, **_more: object) -> Any:
        error = errors.RegistryError(_UNNAMED)
        error.cause = Cause.NOT_READ
        raise error

    read_instance = register = renew = cancel = _refused


def _none_left(messages: Mapping[str, str]) -> str:
    """What each peer said, by its address; what several say alike is said once."""
    if not messages:
        return "No Eureka peer was tried: no time was left for it."
    alike: dict[str, list[str]] = {}
    for name, message in messages.items():
        alike.setdefault(message.replace(name, ""), []).append(name)
    sentences = []
    for first, *others in alike.values():
        also = f" (and the same for {', '.join(others)})" if others else ""
        sentences.append(messages[first].removesuffix(".") + also)
    return f"No Eureka peer could be used: {'; and '.join(sentences)}."
