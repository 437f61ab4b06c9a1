"""Several Eureka servers that replicate to each other, as one `Registry`. Calls go to the first
peer that does not rest, and Eureka replicates writes to the others. Only strays, which the first
peer lacks, are changed where they are.
"""

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
from eurekube_sync.model.ownership import CLUSTER, OWNER
from eurekube_sync.model.ports import Clock, Elsewhere, Registry
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown

SWEEP_SECONDS = 480.0  # a sweep lists all peers once in each such stretch of the wall clock ...
SWEEP_MARGIN_SECONDS = (
    90.0  # ... and a new process only in this first part of it: a CronJob starts one each minute
)
SWEEP_SLACK_SECONDS = 30.0  # for a pass, from its sweep until it renews strays
_STRAY_RENEWAL_SECONDS = (
    25.0  # strays are renewed in the first pass after this, about as often as others
)

_UNNAMED = "no Eureka server was named: give --eureka-url to look there as well"
_log = logging.getLogger(__name__)
A = TypeVar("A")


def sweep_seconds(lease_duration: float) -> float:
    """Return how often to sweep. A stray is renewed after each sweep, and expires after two lease
    durations."""
    return max(
        1.0, min(SWEEP_SECONDS, 2 * lease_duration - SWEEP_MARGIN_SECONDS - SWEEP_SLACK_SECONDS)
    )


class EurekaPeers(Registry):
    """Calls the first peer that works; safe in several threads.

    - A peer that cannot be reached, answers 5xx or warms up rests, and calls go to the next one.
      A rest ends only with a list, so that a pass does not change its peer half-way. While all
      rest, all are tried.
    - If a peer refuses our login, or a web page answers, its list is Unknown and nothing is
      removed, because the list of another peer would hide the mistake. Renewals and
      registrations go to the next peer, so that no lease expires. A refused cancel has failed,
      because callers may still find the instance there.
    - If a peer rejects one instance (RegistryRejected), no other peer is asked. After a 500
      (RegistryStumbled), which may be the peer's fault, the next one is asked, but the peer does
      not rest.
    - A registration goes only to a peer that has shown, since the last list, that the id is free
      or ours. Another peer is read first, because what it could not show before may be another
      owner's.
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
        """`peers`: by printable address, in the order of preference. `limit`: that of their
        clients."""
        self._peers = dict(peers)
        self._clock = clock
        self._limit = limit or TimeLimit(clock)
        self._rests = rests or Rests(clock)
        self._doubts = doubts or Doubts()
        self._sweeps = Schedule(sweep_seconds, first_part=SWEEP_MARGIN_SECONDS)
        self._registered = -inf  # the last registration known to this process, in monotonic seconds
        self._owed: set[str] = (
            set()
        )  # peers to list before the next sweep: back from a rest, unlisted, or with strays
        self._unlisted: set[str] = set()  # peers whose last list failed, which is logged once
        self._strays: dict[
            str, dict[InstanceKey, ObservedInstance]
        ] = {}  # by peer, from their last lists
        self._shown: set[str] = set()  # peers that were listed since the last list began
        self._to_renew: dict[
            InstanceKey, list[str]
        ] = {}  # strays to renew after the next list, with their peers
        self._strays_renewed = -inf  # in monotonic seconds
        self._answered: dict[
            InstanceKey, set[str]
        ] = {}  # peers that showed an instance, or its absence
        self._passed_over: set[str] = (
            set()
        )  # peers that the last list or a cancel since did not reach

    def list_instances(self) -> Source[tuple[ObservedInstance, ...]]:
        """Return the list of the first peer that gives one, and strays with an owner's mark."""
        self._owed.update(self._rests.end())
        self._shown.clear()
        self._answered.clear()
        failed: dict[str, str] = {}
        for name in self._order(last=self._rests.down()):
            if self._limit.left() <= 0:
                break
            listed = self._peers[name].list_instances()
            if isinstance(listed, Complete):
                self._worked(name, listed=True)
                self.renew_strays()
                self._sweep(name, listed.data)
                self._passed_over = {*self._down(), *self._unlisted} - {name}
                if any(
                    self._strays.values()
                ):  # also between two sweeps, so that held ones are renewed
                    for one in listed.data:
                        self._forget_stray(one.key)
                    return Complete(data=(*listed.data, *self._all_strays()))
                return listed
            failed[name] = listed.message
            self._rests.begin(name, listed)
            if listed.cause is not Cause.UNAVAILABLE:
                why = (
                    f"{listed.message} No other peer's list is taken instead; renewals go to "
                    "the next peer."
                )
                return Unknown(cause=listed.cause, message=why)
        return Unknown(cause=Cause.UNAVAILABLE, message=_none_left(failed))

    def list_elsewhere(self, listed: Complete[tuple[ObservedInstance, ...]]) -> Elsewhere:
        """Return all strays, after a list of each peer that the sweep left out. A resting peer is
        listed, too, because the deletion of a syncer waits for it, unless it failed a moment
        ago."""
        of_first = [one for one in listed.data if not self._holders(one.key)]
        asked = self._peers.keys() - self._shown - self._rests.just_failed()
        self._list_others([name for name in self._peers if name in asked], of_first)
        unlisted = tuple(name for name in self._peers if name not in self._shown)
        self._passed_over.update(unlisted)
        return Elsewhere(self._all_strays(), unlisted)

    def read_instance(self, key: InstanceKey) -> ObservedInstance | None:
        """Read an instance on the first peer; if absent, on the peers that have it as a stray."""
        return self._read(key, self._holders(key))

    def read_everywhere(self, key: InstanceKey) -> ObservedInstance | None:
        """Read an instance on the first peer; if absent, on all others that can be reached. Raise
        RegistryError if a peer rejects the instance, or no time is left, because it may then
        exist."""
        return self._read(key, self._peers)

    def _read(self, key: InstanceKey, others: Container[str]) -> ObservedInstance | None:
        name, found = self._first(lambda name: self._peers[name].read_instance(key))
        answered = self._answered.setdefault(key, set())
        answered.add(name)
        if found is not None:
            # Another process may have registered it a moment ago, too, by a clock that may be ahead
            # of ours.
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
                answered.add(other)
                self._strays.get(other, {}).pop(key, None)
        return None

    def register(self, instance: Instance, *, dirty_timestamp: int) -> None:
        def register(name: str) -> None:
            if name not in self._answered.get(instance.key, ()):
                self._refuse_strangers(name, instance)
            self._peers[name].register(instance, dirty_timestamp=dirty_timestamp)

        self._first(register)
        self._registered = self._clock.monotonic()
        self._forget_stray(instance.key)

    def renew(self, key: InstanceKey) -> bool:
        """Renew on the first peer, and return whether it has the lease. A stray is renewed after
        the next list, unless registered or cancelled before: a renewal would bring it to all peers
        (`PeerEurekaNode.heartbeat`)."""
        name, renewed = self._first(lambda name: self._peers[name].renew(key))
        if not renewed:
            self._answered.setdefault(key, set()).add(name)
        if not renewed and (holders := self._holders(key)):
            self._to_renew[key] = holders
        return renewed

    def cancel(self, key: InstanceKey, *, ours: Callable[[ObservedInstance], bool]) -> bool:
        """Cancel on the first peer, then on each other that has it, after a read there: a 404 is
        not replicated, and a late heartbeat can bring a cancelled instance back
        (`PeerAwareInstanceRegistryImpl.cancel`).

        Right after a registration, only the first peer is called: the others must get the
        registration before they lose what it replaces, and the first peer replicates both in order.
        It does not replicate a stray's cancel."""
        stray = bool(self._holders(key))
        self._forget_stray(key)
        replicating = self._clock.monotonic() - self._registered < REPLICATION_SECONDS
        name, done = self._first(
            lambda name: self._peers[name].cancel(key, ours=ours), alone=replicating
        )
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

    def _refuse_strangers(self, name: str, instance: Instance) -> None:
        """Read the instance on this peer. Raise RegistryRejected if it is another owner's."""
        registered = self._peers[name].read_instance(instance.key)
        if registered is None:
            return
        if any(
            registered.metadata.get(mark) != instance.metadata.get(mark)
            for mark in (OWNER, CLUSTER)
        ):
            raise errors.RegistryRejected(
                f"{name} has another owner's instance with the id that ours needs."
            )

    def _first(self, call: Callable[[str], A], *, alone: bool = False) -> tuple[str, A]:
        failures: dict[str, errors.RegistryError] = {}
        for name in self._order(last=self._rests.resting())[: 1 if alone else None]:
            if self._limit.left() <= 0:
                break
            try:
                answer = call(name)
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
        # Errors that a person has to fix come first, peers that are away last.
        kinds = (errors.RegistryDenied, errors.RegistryUnusable, errors.RegistryRejected)
        worst = (
            kind for kind in kinds if any(isinstance(error, kind) for error in failures.values())
        )
        why = _none_left({name: str(error) for name, error in failures.items()})
        raise next(worst, errors.RegistryUnavailable)(why)

    def _order(self, *, last: Container[str]) -> list[str]:
        return sorted(self._peers, key=lambda name: name in last)

    def _down(self) -> frozenset[str]:
        return self._rests.down() - self._rests.back()

    def _reachable(self, *, without: str = "") -> list[str]:
        down = self._down()
        return [name for name in self._peers if name != without and name not in down]

    def renew_strays(self) -> None:
        """Renew strays that are due: after a list, or before the process ends."""
        now = self._clock.monotonic()
        due, self._to_renew = self._to_renew, {}
        if not due or now - self._strays_renewed < _STRAY_RENEWAL_SECONDS:
            return
        self._strays_renewed = now
        for key, holders in due.items():
            for name in (
                name for name in self._reachable() if name in holders and self._limit.left() > 0
            ):
                try:
                    if not self._peers[name].renew(key):
                        self._strays.get(name, {}).pop(key, None)
                except errors.RegistryError as error:
                    self._rests.failed(name, error)

    def _holders(self, key: InstanceKey) -> list[str]:
        """Return the peers that have it as a stray."""
        return [name for name, held in self._strays.items() if key in held]

    def _all_strays(self) -> tuple[ObservedInstance, ...]:
        one_of_each = {key: one for held in self._strays.values() for key, one in held.items()}
        return tuple(one_of_each.values())

    def _forget_stray(self, key: InstanceKey) -> None:
        """Forget a stray that is now on the first peer, or cancelled on all."""
        self._to_renew.pop(key, None)
        for held in self._strays.values():
            held.pop(key, None)

    def _worked(self, name: str, *, listed: bool = False) -> None:
        if self._rests.worked(name, listed=listed):
            self._owed.add(name)

    def _sweep(self, first: str, listed: Iterable[ObservedInstance]) -> None:
        """List the other peers if a sweep is due, or only those that are owed a list."""
        due = self._sweeps.due(self._clock.now())
        self._shown.add(first)
        self._strays.pop(first, None)  # its own list says what it holds
        self._owed |= self._rests.back() | {
            name for name, held in self._strays.items() if held
        }  # may have expired
        self._list_others(
            [name for name in self._reachable(without=first) if due or name in self._owed], listed
        )
        self._owed.discard(first)

    def _list_others(self, names: Iterable[str], of_first: Iterable[ObservedInstance]) -> None:
        """List these peers, and note what the list of the first peer lacks or shows with another
        timestamp."""
        known = {one.key: one.last_dirty_timestamp for one in of_first}
        for name in names:
            if self._limit.left() <= 0:
                self._owed.add(name)
                continue
            theirs = self._peers[name].list_instances()
            if isinstance(theirs, Unknown):
                if name not in self._unlisted:
                    what = "could not be listed, so instances that only it holds are unknown"
                    _log.warning("the Eureka peer %s %s: %s", name, what, theirs.message)
                self._unlisted.add(
                    name
                )  # its known strays still count as registered, until an uncached read
                self._owed.add(name)
                if (
                    theirs.cause is Cause.UNAVAILABLE
                ):  # else each of the next passes waits for its timeout
                    self._rests.begin(name, theirs)
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
    """For commands without a Eureka URL: each call fails and says so."""

    def list_instances(self) -> Unknown:
        return Unknown(cause=Cause.NOT_READ, message=_UNNAMED)

    def _refused(self, *_: object, **_more: object) -> Any:
        error = errors.RegistryError(_UNNAMED)
        error.cause = Cause.NOT_READ
        raise error

    read_instance = register = renew = cancel = _refused


def _none_left(messages: Mapping[str, str]) -> str:
    """Join the messages of the peers, by address, with the same messages only once."""
    if not messages:
        return "No Eureka peer was tried: no time was left for it."
    if len(messages) == 1:
        return next(iter(messages.values()))
    alike: dict[str, list[str]] = {}
    for name, message in messages.items():
        alike.setdefault(message.replace(name, ""), []).append(name)
    sentences = []
    for first, *others in alike.values():
        both = f"{' and '.join([first, *others])} failed in the same way: " if others else ""
        sentences.append(both + messages[first].removesuffix("."))
    return f"No Eureka peer could be used: {'; and '.join(sentences)}."
