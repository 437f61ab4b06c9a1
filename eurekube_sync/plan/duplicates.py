"""Pods that register themselves: what callers would lack without our instance, and whether ours is
cancelled. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from eurekube_sync.desired.claims import Desired, Serving
from eurekube_sync.desired.rivals import Socket, sockets_of
from eurekube_sync.model.actions import Cancel, Grounds
from eurekube_sync.model.eureka import (
    DEFAULT_LEASE,
    Instance,
    InstanceKey,
    InstanceStatus,
    ObservedInstance,
    vip_names,
)
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import OWNER
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import counted, one_or_more
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.ours import cancel, override_of
from eurekube_sync.plan.value import Blocked, Obstacle, Ruling

TURN_OFF = "eureka.client.register-with-eureka=false"
"""The setting of a pod's own Eureka client."""


class _Double(NamedTuple):
    """A wanted instance whose pod registers itself."""

    key: InstanceKey
    claim: Serving
    other: ObservedInstance  # the pod's own


def _doubles(desired: Desired, observed: Observed) -> Iterator[_Double]:
    """Yield each wanted instance with the one at the same address and port of the same app that no
    installation of this program registered: it belongs to the same process. If there are several,
    the one that callers can use best."""
    selves = _by_socket(observed)
    if not selves:
        return  # nearly always
    for key, claim, wanted in desired.each_wanted():
        others: list[ObservedInstance] = []
        for socket in sockets_of(wanted.instance):
            others += selves.get(socket, ())
        if others:
            ours = observed.ours.get(key)
            best = _best(others, wanted.instance, ours)
            yield _Double(key, claim, best)


def _by_socket(observed: Observed) -> Mapping[Socket, list[ObservedInstance]]:
    """Group the instances that no installation of this program registered."""
    selves: dict[Socket, list[ObservedInstance]] = {}
    for key, other in observed.others.items():
        instance = other.instance
        if OWNER in instance.metadata:
            continue
        for port in {instance.secure_port, instance.port}:
            if port.enabled:
                socket = (key.app, instance.ip_addr, port.number)
                selves.setdefault(socket, []).append(other)
    return selves


def _best(
    others: Iterable[ObservedInstance], wanted: Instance, ours: ObservedInstance | None
) -> ObservedInstance:
    """Return the instance with which callers lack nothing; if there are several, or none, the first
    by key."""

    def rank(other: ObservedInstance) -> tuple[bool, InstanceKey]:
        return lacks(other, wanted, ours) is not None, other.key

    return min(others, key=rank)


def lacks(
    other: ObservedInstance, wanted: Instance, ours: ObservedInstance | None = None
) -> str | None:
    """Return what callers would lack with only the pod's own instance (`other`) instead of
    `wanted`; None for nothing. With `ours` as registered, also check that a client still renews the
    other."""
    if other.status is not InstanceStatus.UP:
        return f"the pod's own instance is {other.status.value}"
    unreached = unreached_by_callers(other.instance, wanted)
    if unreached is not None:
        return unreached
    if ours is not None and other.last_renewal and not _is_renewed(other, ours):
        return "nobody renews the pod's own instance, which can therefore expire"
    return None


def _is_renewed(other: ObservedInstance, ours: ObservedInstance) -> bool:
    """Say whether a client still renews the pod's own instance."""
    # A registration proves no client: a server that restarts registers what another server holds.
    if other.last_renewal <= other.registered:
        return False
    lease = other.instance.lease
    renewal = lease.renewal or DEFAULT_LEASE.renewal
    duration = lease.duration or DEFAULT_LEASE.duration
    period = min(renewal, duration)
    # Each pass renews ours, so a living client renewed the other at most two of its periods before,
    # by the server's clock.
    return other.renewed >= ours.renewed - 2 * period


def unreached_by_callers(own: Instance, wanted: Instance) -> str | None:
    """Return why callers of `wanted` do not reach the pod's own instance; None if they do. Callers
    use the host name. By default Spring registers the pod's own name, which nothing outside of the
    cluster can resolve."""
    named = vip_names(wanted.vip_address) <= vip_names(own.vip_address)
    if wanted.secure_port.enabled and named:
        named = vip_names(wanted.secure_vip_address) <= vip_names(own.secure_vip_address)
    if not named:
        return "the pod's own instance lacks the VIP address of ours"
    ports = ((wanted.port, own.port), (wanted.secure_port, own.secure_port))
    for ours, theirs in ports:
        if ours.enabled and ours != theirs:
            return "the pod's own instance has other ports"
    host = _host(own.host_name)
    if host in (_host(wanted.host_name), _host(wanted.ip_addr)):
        return None
    if not host:
        return "the pod's own instance has no host name"
    return (
        f"callers outside may be unable to resolve {own.host_name}, the host name of the pod's "
        "own instance"
    )


def _host(name: str) -> str:
    return name.strip("[]").casefold()


def to_give_way_to(desired: Desired, observed: Observed) -> Mapping[InstanceKey, ObservedInstance]:
    """Return, by our key, the pods' own instances for which the syncer asks us to cancel ours
    (`onDuplicate: Skip`)."""
    selves: dict[InstanceKey, ObservedInstance] = {}
    for key, claim, other in _doubles(desired, observed):
        if claim.spec.on_duplicate == "Skip":
            selves[key] = other
    return selves


def stays_beside(
    instance: ObservedInstance, other: ObservedInstance, claim: Serving, observed: Observed
) -> str | None:
    """Return why our instance stays registered beside the pod's own (`other`); None if callers need
    only that, as uncached reads of both show. Until then ours is treated as wanted, or callers
    could lose both."""
    wanted = claim.wanted[instance.key].instance
    override = override_of(instance)
    if instance.key in observed.unread or other.key in observed.unread:
        return "one of the two could not be read again"
    if wanted.status is not InstanceStatus.UP:
        return "the pod is not ready or is drained, so ours is to be DOWN"
    if override is not None:
        return f"a person set it {override.value}, and a cancel would delete that"
    return lacks(other, wanted, instance)


def give_way(instance: ObservedInstance, other: ObservedInstance, claim: Serving) -> Cancel:
    """Cancel our instance, because its pod registers itself."""
    why = f"its pod registers itself as {other.key.id}"
    ours = cancel(instance, why, Grounds.DUPLICATE, claim.proof)
    return replace(ours, syncer=claim.syncer.ref)


def duplicate(
    key: InstanceKey, syncer: SyncerRef, other: ObservedInstance, stays: str | None = None
) -> Blocked:
    """Return the report of a pod that registers itself; `stays` says why ours stays registered as
    well."""
    why = f"its pod registers itself as {other.key.id}"
    if stays:
        why = f"{why}. Ours is registered as well, because {stays}"
    instead = otherwise([other])
    why = f"{why}. Turn off the pod's registration ({TURN_OFF}), or {instead}"
    return Blocked(key=key, syncer=syncer, why=why, obstacle=Obstacle.DUPLICATE, other=other.key)


def otherwise(others: Iterable[ObservedInstance]) -> str:
    """Return what a person may do who leaves the pods' own registrations on. Without the syncer,
    callers get only these, so all of them have to be UP."""
    if all(other.status is InstanceStatus.UP for other in others):
        return "delete the syncer"
    return "register ours beside it (spec.onDuplicate: Warn)"


def warned(desired: Desired, observed: Observed) -> Ruling:
    """Add a warning where pods register themselves and `onDuplicate` is Warn."""
    texts_of: dict[SyncerRef, list[str]] = {}
    for key, claim, other in _doubles(desired, observed):
        if claim.spec.on_duplicate == "Warn":
            text = f"the pod of {key.id} registers itself as {other.key.id} as well"
            texts_of.setdefault(claim.syncer.ref, []).append(text)
    claims: dict[SyncerRef, Serving] = {}
    for ref, texts in texts_of.items():
        serving = desired.claims[ref]
        assert isinstance(serving, Serving)  # it wants an instance
        warnings = (*serving.warnings, _warning(texts))
        claims[ref] = replace(serving, warnings=warnings)
    return Ruling(claims=claims)


def _warning(texts: Sequence[str]) -> str:
    """Return the warning about some pods of a syncer; it shows the first text."""
    warning = f"{min(texts)}, and gets twice the calls"
    others = len(texts) - 1
    if not others:
        return warning
    do = one_or_more(others, "does", "do")
    pods = counted(others, "more pod")
    return f"{warning}; so {do} {pods}"
