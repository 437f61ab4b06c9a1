"""Several Eureka servers that replicate to each other, as one `Registry`. Calls go to the first
peer that does not rest, and Eureka replicates writes to the others. Only strays, which the first
peer lacks, are changed where they are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import inf
from typing import Any, TypeVar

from eurekube_sync.adapters.eureka.peer import Peer
from eurekube_sync.adapters.eureka.replication import REPLICATION_SECONDS
from eurekube_sync.model import errors
from eurekube_sync.model.deadline import Schedule, TimeLimit
from eurekube_sync.model.eureka import Instance, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.ownership import CLUSTER, OWNER
from eurekube_sync.model.ports import Clock, Elsewhere, Registry
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown

# A sweep lists all peers once in each such stretch of the wall clock ...
SWEEP_SECONDS = 480.0
# ... and a new process only in this first part of it: a CronJob starts one each minute
SWEEP_MARGIN_SECONDS = 90.0
SWEEP_SLACK_SECONDS = 30.0  # for a pass, from its sweep until it renews strays
# Strays are renewed in the first pass after this, about as often as others
_STRAY_RENEWAL_SECONDS = 25.0
# The most urgent first: what a person has to fix; peers that are away come after all of these
_WORST = (errors.RegistryDenied, errors.RegistryUnusable, errors.RegistryRejected)

UNNAMED = "no Eureka server was named: give --eureka-url to look there as well"
_log = logging.getLogger(__name__)
A = TypeVar("A")


def sweep_seconds(lease_duration: float) -> float:
    """Return how often to sweep. A stray is renewed after each sweep, and expires after two lease
    durations."""
    expired = 2 * lease_duration
    return max(1.0, min(SWEEP_SECONDS, expired - SWEEP_MARGIN_SECONDS - SWEEP_SLACK_SECONDS))


class _MayLackSuccessors(errors.RegistryRejected):
    """A removal has to wait, because this peer may lack what replaces the instance."""


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
    - A removal goes to no peer that may lack what another one registered a moment ago in place of
      the instance. Its callers would find neither the new instance nor the old one.
    """

    def __init__(
        self,
        peers: Sequence[Peer],
        *,
        clock: Clock,
        limit: TimeLimit | None = None,
        sweep_seconds: float = SWEEP_SECONDS,
    ) -> None:
        """`peers`: in the order of preference. `limit`: that of their clients."""
        self._peers = tuple(peers)
        self._clock = clock
        self._limit = limit or TimeLimit(clock)
        self._sweeps = Schedule(sweep_seconds, first_part=SWEEP_MARGIN_SECONDS)
        # Strays to renew after the next list, with the peers that hold them
        self._to_renew: dict[InstanceKey, list[Peer]] = {}
        self._strays_renewed = -inf  # in monotonic seconds

    def list_instances(self) -> Source[tuple[ObservedInstance, ...]]:
        """Return the list of the first peer that gives one, and strays with an owner's mark."""
        for peer in self._peers:
            peer.end_rest()
            peer.forget_old_registrations()
            peer.shown = False
            peer.shown_singly.clear()
        failed: dict[str, str] = {}
        for peer in sorted(self._peers, key=lambda peer: peer.is_down):
            if self._limit.left() <= 0:
                break
            listed = peer.client.list_instances()
            if isinstance(listed, Complete):
                return self._with_strays(peer, listed)
            failed[peer.url] = listed.message
            peer.rest(listed)
            # It answered, so a person has to see to it. Another's list would hide that.
            if listed.cause is not Cause.UNAVAILABLE:
                why = (
                    f"{listed.message}. No other peer's list is taken instead; renewals go to "
                    "the next peer"
                )
                return Unknown(cause=listed.cause, message=why)
        return Unknown(cause=Cause.UNAVAILABLE, message=_none_left(failed))

    def _with_strays(
        self, first: Peer, listed: Complete[tuple[ObservedInstance, ...]]
    ) -> Complete[tuple[ObservedInstance, ...]]:
        """Return the list of the first peer and the strays of the others, after a sweep if one is
        due. Strays are shown between two sweeps as well, so that held ones are renewed."""
        first.worked(listed=True)
        self.renew_strays()
        self._sweep(first, listed.data)
        for peer in self._peers:
            missed = peer.unlisted or not peer.is_reachable
            peer.passed_over = missed and peer is not first
        if not any(peer.strays for peer in self._peers):
            return listed
        for instance in listed.data:
            self._forget_stray(instance.key)
        return Complete(data=(*listed.data, *self._all_strays()))

    def list_elsewhere(self, listed: Complete[tuple[ObservedInstance, ...]]) -> Elsewhere:
        """Return all strays, after a list of each peer that the sweep left out. A resting peer is
        listed, too, because the deletion of a syncer waits for it, unless it failed a moment
        ago."""
        of_first = [instance for instance in listed.data if not self._holders(instance.key)]
        left_out = [peer for peer in self._peers if not peer.shown]
        self._list_others([peer for peer in left_out if not peer.has_just_failed], of_first)
        unlisted = [peer for peer in self._peers if not peer.shown]
        for peer in unlisted:
            peer.passed_over = True
        return Elsewhere(self._all_strays(), tuple(peer.url for peer in unlisted))

    def read_instance(self, key: InstanceKey) -> ObservedInstance | None:
        """Read an instance on the first peer; if absent, on the peers that have it as a stray."""
        return self._read(key, self._holders(key))

    def read_everywhere(self, key: InstanceKey) -> ObservedInstance | None:
        """Read an instance on the first peer; if absent, on all others that can be reached. Raise
        RegistryError if a peer rejects the instance, or no time is left, because it may then
        exist."""
        return self._read(key, self._peers)

    def _read(self, key: InstanceKey, others: Collection[Peer]) -> ObservedInstance | None:
        first, registered = self._first(lambda peer: peer.client.read_instance(key))
        first.shown_singly.add(key)
        if registered is not None:
            self._note_registration(first, registered)
            return registered
        for peer in self._reachable(without=first):
            if peer not in others:
                continue
            # None would mean that no peer has it, which nobody knows without time to ask.
            if self._limit.left() <= 0:
                raise errors.RegistryUnavailable(
                    f"{peer.url} was not asked for it: no time was left"
                )
            try:
                registered = peer.client.read_instance(key)
            except errors.RegistryError as error:
                if isinstance(error, errors.RegistryRejected) or self._limit.left() <= 0:
                    raise
                peer.failed(error)
                continue
            if registered is not None:
                return registered
            peer.shown_singly.add(key)
            peer.strays.pop(key, None)
        return None

    def _note_registration(self, peer: Peer, registered: ObservedInstance) -> None:
        """Note when a new instance was registered on this peer. Another process may have done it a
        moment ago, by a clock that may be ahead of ours."""
        age = self._clock.now() - registered.last_dirty_timestamp / 1000
        if abs(age) < REPLICATION_SECONDS:
            peer.note_registration(registered.instance, self._clock.monotonic() - max(age, 0.0))

    def register(self, instance: Instance, *, dirty_timestamp: int) -> None:
        is_up = instance.status is InstanceStatus.UP

        def register(peer: Peer) -> None:
            if not is_up:  # it may have been UP
                self._refuse_removal(peer, instance)
            # The caller has seen what the first peer holds; of another one nobody knows it yet.
            if instance.key not in peer.shown_singly:
                _refuse_strangers(peer, instance)
            peer.client.register(instance, dirty_timestamp=dirty_timestamp)

        first, _ = self._first(register)
        if is_up:  # else nothing is removed for it
            first.note_registration(instance, self._clock.monotonic())
        self._forget_stray(instance.key)

    def _refuse_removal(self, peer: Peer, instance: Instance) -> None:
        """Raise _MayLackSuccessors if this peer may lack what replaces the instance, which is not
        UP any more. A third peer may have it UP, and gets the registration from this one."""
        if not self._may_lack_registrations(peer):
            return
        self._refuse_loss(peer, instance)
        registered = peer.client.read_instance(instance.key)
        if registered is not None:  # perhaps under other VIP addresses
            self._refuse_loss(peer, registered.instance)

    def _may_lack_registrations(self, peer: Peer) -> bool:
        others = [other for other in self._peers if other is not peer]
        return any(other.has_just_registered for other in others)

    def _refuse_loss(self, peer: Peer, lost: Instance) -> None:
        """Raise _MayLackSuccessors if another peer took what replaces this instance a moment ago.
        What has neither a name nor the address of this instance replaces it for no caller. If its
        removal waited for that as well, it could wait for ever."""
        for other in self._peers:
            if other is not peer and other.has_just_registered_for(lost):
                raise _MayLackSuccessors(
                    f"it stays for the moment: {peer.url} may lack the new instances that "
                    f"{other.url} has not yet replicated"
                )

    def renew(self, key: InstanceKey) -> bool:
        """Renew on the first peer, and return whether it has the lease. A stray is renewed after
        the next list, unless registered or cancelled before: a renewal would bring it to all peers
        (`PeerEurekaNode.heartbeat`)."""
        first, renewed = self._first(lambda peer: peer.client.renew(key))
        if not renewed:
            first.shown_singly.add(key)
            holders = self._holders(key)
            if holders:
                self._to_renew[key] = holders
        return renewed

    def cancel(self, key: InstanceKey, *, ours: Callable[[ObservedInstance], bool]) -> bool:
        """Cancel on the first peer, then on each other that has it, after a read there: a 404 is
        not replicated, and a late heartbeat can bring a cancelled instance back
        (`PeerAwareInstanceRegistryImpl.cancel`).

        Right after a registration, what it replaces is cancelled only on the peer that took it:
        the others must get the registration first, and this peer replicates both in order. It does
        not replicate a stray's cancel, which is sent to its holders at once."""

        def cancel(peer: Peer) -> bool:
            # The caller has seen what the first peer holds; of another one nobody knows it yet.
            if key not in peer.shown_singly or self._may_lack_registrations(peer):
                registered = peer.client.read_instance(key)
                if registered is not None:
                    if not ours(registered):
                        return False
                    self._refuse_loss(peer, registered.instance)
            return peer.client.cancel(key, ours=ours)

        first, done = self._first(cancel)
        is_stray = not done and bool(self._holders(key))
        # The answer to a cancel may have been lost, before the next try got a 404.
        replicated = done or first.has_just_registered
        others = self._cancel_on_others(first, key, ours, is_stray=is_stray, replicated=replicated)
        self._forget_stray(key)
        return done or others

    def _cancel_on_others(
        self,
        first: Peer,
        key: InstanceKey,
        ours: Callable[[ObservedInstance], bool],
        *,
        is_stray: bool,
        replicated: bool,
    ) -> bool:
        """Cancel where it is ours; return whether a peer had it. Raise the last refusal, after all
        were tried. Unless it is a stray, a peer that may lack what replaces it is refused, or left
        to the replication of the first peer's cancel."""
        done = False
        refusal: errors.RegistryError | None = None
        for peer in self._peers:
            if peer is not first and not peer.is_reachable:
                peer.passed_over = True
        for peer in self._reachable(without=first):
            # Each has to answer: callers may find the instance on any of them.
            try:
                registered = peer.client.read_instance(key)
                if registered is not None and ours(registered):
                    if not is_stray:
                        self._refuse_loss(peer, registered.instance)
                    done = peer.client.cancel(key, ours=ours) or done
            except errors.RegistryUnavailable as error:
                peer.failed(error)
                peer.passed_over = True
            except _MayLackSuccessors as error:
                if not replicated:
                    refusal = error
            except errors.RegistryError as error:
                refusal = error
        if refusal is not None:
            raise refusal
        return done

    def unreached(self) -> tuple[str, ...]:
        return tuple(peer.url for peer in self._peers if peer.passed_over)

    def _first(self, call: Callable[[Peer], A]) -> tuple[Peer, A]:
        """Return the answer of the first peer that gives one, and this peer."""
        failures: dict[str, errors.RegistryError] = {}
        for peer in sorted(self._peers, key=lambda peer: peer.is_resting):
            if self._limit.left() <= 0:
                break
            try:
                answer = call(peer)
            except errors.RegistryStumbled as error:
                failures[peer.url] = error  # of this instance alone, so the peer does not rest
            except _MayLackSuccessors:
                if failures:
                    break  # the peer that has them failed, which says more
                raise
            except errors.RegistryRejected:
                raise
            except errors.RegistryError as error:
                peer.failed(error)  # the next calls begin with another peer
                failures[peer.url] = error
            else:
                peer.worked()
                return peer, answer
        raise _worst_of(failures)

    def _reachable(self, *, without: Peer | None = None) -> list[Peer]:
        others = [peer for peer in self._peers if peer is not without]
        return [peer for peer in others if peer.is_reachable]

    def renew_strays(self) -> None:
        """Renew strays that are due: after a list, or before the process ends."""
        now = self._clock.monotonic()
        due, self._to_renew = self._to_renew, {}
        if not due or now - self._strays_renewed < _STRAY_RENEWAL_SECONDS:
            return
        self._strays_renewed = now
        for key, holders in due.items():
            for peer in self._reachable():
                if peer not in holders or self._limit.left() <= 0:
                    continue
                try:
                    if not peer.client.renew(key):
                        peer.strays.pop(key, None)
                except errors.RegistryError as error:
                    peer.failed(error)

    def _holders(self, key: InstanceKey) -> list[Peer]:
        """Return the peers that have it as a stray."""
        return [peer for peer in self._peers if key in peer.strays]

    def _all_strays(self) -> tuple[ObservedInstance, ...]:
        strays: dict[InstanceKey, ObservedInstance] = {}
        for peer in self._peers:
            strays |= peer.strays
        return tuple(strays.values())

    def _forget_stray(self, key: InstanceKey) -> None:
        """Forget a stray that is now on the first peer, or cancelled on all."""
        self._to_renew.pop(key, None)
        for peer in self._peers:
            peer.strays.pop(key, None)

    def _sweep(self, first: Peer, listed: Iterable[ObservedInstance]) -> None:
        """List the other peers if a sweep is due, or only those that are owed a list."""
        due = self._sweeps.due(self._clock.now())
        first.shown = True
        first.strays = {}  # its own list says what it holds
        for peer in self._peers:
            # One that is back is used only after its list. Strays may have expired since the last.
            if peer.is_back or peer.strays:
                peer.owed = True
        others = self._reachable(without=first)
        self._list_others([peer for peer in others if due or peer.owed], listed)
        first.owed = False

    def _list_others(self, peers: Iterable[Peer], of_first: Iterable[ObservedInstance]) -> None:
        """List these peers, and note what the list of the first peer lacks or shows with another
        timestamp."""
        known = {instance.key: instance.last_dirty_timestamp for instance in of_first}
        for peer in peers:
            if self._limit.left() <= 0:
                peer.owed = True
                continue
            listed = peer.client.list_instances()
            if isinstance(listed, Unknown):
                _note_unlisted(peer, listed)
                continue
            peer.worked(listed=True)
            peer.owed = peer.unlisted = False
            peer.shown = True
            _compare(peer, listed.data, known)


def _note_unlisted(peer: Peer, why: Unknown) -> None:
    """Note that its list failed. Its known strays still count as registered, until an uncached
    read."""
    if not peer.unlisted:
        what = "could not be listed, so instances that only it holds are unknown"
        _log.warning("the Eureka peer %s %s: %s", peer.url, what, why.message)
    peer.unlisted = peer.owed = True
    if why.cause is Cause.UNAVAILABLE:  # else each of the next passes waits for its timeout
        peer.rest(why)


def _compare(
    peer: Peer, listed: Iterable[ObservedInstance], known: Mapping[InstanceKey, int]
) -> None:
    """Note how its list differs from the first peer's, which knows these timestamps."""
    strays: dict[InstanceKey, ObservedInstance] = {}
    differing: set[InstanceKey] = set()
    for instance in listed:
        timestamp = known.get(instance.key)
        if timestamp == instance.last_dirty_timestamp:
            continue  # nearly always
        if timestamp is not None:
            differing.add(instance.key)
        elif OWNER in instance.metadata:
            strays[instance.key] = instance
    peer.strays, peer.differing = strays, differing


def _refuse_strangers(peer: Peer, instance: Instance) -> None:
    """Read the instance on this peer. Raise RegistryRejected if it is another owner's."""
    registered = peer.client.read_instance(instance.key)
    if registered is None:
        return
    for mark in (OWNER, CLUSTER):
        if registered.metadata.get(mark) != instance.metadata.get(mark):
            raise errors.RegistryRejected(
                f"{peer.url} has another owner's instance with the id that ours needs"
            )


class UnnamedEureka(Registry):
    """For commands without a Eureka URL, or without its login: each call fails and says why."""

    def __init__(self, why: str = "") -> None:
        self._why = why or UNNAMED

    def list_instances(self) -> Unknown:
        return Unknown(cause=Cause.NOT_READ, message=self._why)

    def _refused(self, *_: object, **_more: object) -> Any:
        error = errors.RegistryError(self._why)
        error.cause = Cause.NOT_READ
        raise error

    read_instance = register = renew = cancel = _refused


def _worst_of(failures: Mapping[str, errors.RegistryError]) -> errors.RegistryError:
    """Return the error for calls that failed on every peer, by address."""
    why = _none_left({url: str(error) for url, error in failures.items()})
    for kind in _WORST:
        if any(isinstance(error, kind) for error in failures.values()):
            return kind(why)
    return errors.RegistryUnavailable(why)


def _none_left(messages: Mapping[str, str]) -> str:
    """Join the messages of the peers, by address, with the same messages only once."""
    if not messages:
        return "no Eureka peer was tried: no time was left for it"
    if len(messages) == 1:
        return next(iter(messages.values()))
    alike: dict[str, list[str]] = {}
    for url, message in messages.items():
        alike.setdefault(message.replace(url, ""), []).append(url)
    clauses = []
    for urls in alike.values():
        clause = messages[urls[0]]
        if len(urls) > 1:
            clause = f"{' and '.join(urls)} failed in the same way: {clause}"
        clauses.append(clause)
    return f"no Eureka peer could be used: {'; and '.join(clauses)}"
