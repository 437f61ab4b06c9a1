"""Pods that register themselves: what callers would lack without our instance, and whether ours is
cancelled. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from eurekube_sync.desired.claims import Desired, Serving
from eurekube_sync.desired.rivals import sockets_of
from eurekube_sync.model.actions import Action, Grounds
from eurekube_sync.model.eureka import (
    DEFAULT_LEASE,
    Instance,
    InstanceKey,
    InstanceStatus,
    ObservedInstance,
)
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import OWNER
from eurekube_sync.model.wording import counted, one_or_more
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.ours import cancel, for_ours, override_of
from eurekube_sync.plan.value import Blocked, Obstacle

TURN_OFF = "eureka.client.register-with-eureka=false"
"""The setting of a pod's own Eureka client."""


def registered_by_themselves(
    desired: Desired, observed: Observed
) -> Mapping[InstanceKey, ObservedInstance]:
    """Return, by our key, the instance at the same address and port of the same app that no
    installation of this program registered: it belongs to the same process. If there are several,
    the one that callers can use best."""
    selves: dict[tuple[str, str, int], list[ObservedInstance]] = {}
    for key, other in observed.others.items():
        its = other.instance
        for port in {its.secure_port, its.port} if OWNER not in its.metadata else ():
            if port.enabled:
                selves.setdefault((key.app, its.ip_addr, port.number), []).append(other)
    found: dict[InstanceKey, ObservedInstance] = {}
    for key in desired.wanted_by if selves else ():
        wanted = desired.wanted(key)
        doubles = (
            [one for s in sockets_of(wanted.instance) for one in selves.get(s, ())]
            if wanted
            else []
        )
        if wanted and doubles:
            mine, ours = wanted.instance, observed.ours.get(key)
            found[key] = min(doubles, key=lambda one: (lacks(one, mine, ours) is not None, one.key))
    return found


def lacks(
    other: ObservedInstance, wanted: Instance, ours: ObservedInstance | None = None
) -> str | None:
    """Return what callers would lack with only the pod's own instance (`other`) instead of
    `wanted`; None for nothing. With `ours` as registered, also check that a client still renews the
    other."""
    if other.status is not InstanceStatus.UP:
        return f"the pod's own instance is {other.status.value}"
    if unreached := unreached_by_callers(other.instance, wanted):
        return unreached
    if ours is not None and other.last_renewal:
        # Each pass renews ours, so a living client renewed the other at most two of its periods
        # before, by the server's clock.
        renewal, duration = other.instance.lease
        period = min(renewal or DEFAULT_LEASE.renewal, duration or DEFAULT_LEASE.duration)
        # A registration proves no client: a server that restarts registers what another server
        # holds.
        if other.last_renewal <= other.registered or other.renewed < ours.renewed - 2 * period:
            return "nobody renews the pod's own instance, which can therefore expire"
    return None


def unreached_by_callers(its: Instance, wanted: Instance) -> str | None:
    """Return why callers of `wanted` do not reach the pod's own instance; None if they do. Callers
    use the host name. By default Spring registers the pod's own name, which nothing outside of the
    cluster can resolve."""
    named = vip_names(wanted.vip_address) <= vip_names(its.vip_address)
    if wanted.secure_port.enabled:
        named = named and vip_names(wanted.secure_vip_address) <= vip_names(its.secure_vip_address)
    if not named:
        return "the pod's own instance lacks the VIP address of ours"
    pairs = ((wanted.port, its.port), (wanted.secure_port, its.secure_port))
    if any(mine.enabled and mine != other_port for mine, other_port in pairs):
        return "the pod's own instance has other ports"
    host, *ours = (
        name.strip("[]").casefold() for name in (its.host_name, wanted.host_name, wanted.ip_addr)
    )
    if host in ours:
        return None
    if not host:
        return "the pod's own instance has no host name"
    return (
        f"callers outside may be unable to resolve {its.host_name}, the host name of the pod's "
        "own instance"
    )


def vip_names(vip: str) -> frozenset[str]:
    """Return the names in a VIP address; callers look them up without regard to case."""
    return frozenset(name.casefold() for name in vip.split(",") if name)


def to_give_way_to(desired: Desired, observed: Observed) -> Mapping[InstanceKey, ObservedInstance]:
    """Return, by our key, the pods' own instances for which the syncer asks us to cancel ours
    (`onDuplicate: Skip`)."""
    return {
        key: other
        for key, other in registered_by_themselves(desired, observed).items()
        if (claim := desired.server_of(key)) and claim.conduct.on_duplicate == "Skip"
    }


def beside_its_own(
    key: InstanceKey, other: ObservedInstance, desired: Desired, observed: Observed
) -> Iterator[Blocked | Action]:
    """Cancel our instance once uncached reads of both show that callers need only the pod's own.
    Until then ours is treated as wanted, or callers could lose both."""
    claim, found, instance = desired.server_of(key), desired.wanted(key), observed.ours[key]
    assert claim is not None  # `to_give_way_to` has only wanted keys
    assert found is not None
    wanted = found.instance
    stays = lacks(other, wanted, instance)
    if key in observed.unread or other.key in observed.unread:
        stays = "one of the two could not be read again"
    elif wanted.status is not InstanceStatus.UP:
        stays = "the pod is not ready or is drained, so ours is to be DOWN"
    elif (override := override_of(instance)) is not None:
        stays = f"a person set it {override.value}, and a cancel would delete that"
    yield duplicate(key, claim.syncer.ref, other, stays=stays)
    if stays is not None:
        yield for_ours(key, desired, observed)
    else:
        gone = cancel(
            instance, f"its pod registers itself as {other.key.id}", Grounds.DUPLICATE, claim.proof
        )
        yield replace(gone, syncer=claim.syncer.ref)


def duplicate(
    key: InstanceKey, syncer: SyncerRef, other: ObservedInstance, stays: str | None = None
) -> Blocked:
    """Return the report of a pod that registers itself; `stays` says why ours stays registered as
    well."""
    beside = f". Ours is registered as well, because {stays}" if stays else ""
    advice = f"Turn off the pod's registration ({TURN_OFF}), or delete the syncer"
    why = f"its pod registers itself as {other.key.id}{beside}. {advice}"
    return Blocked(key=key, syncer=syncer, why=why, obstacle=Obstacle.DUPLICATE, other=other.key)


def warned(desired: Desired, observed: Observed) -> Desired:
    """Return the claims, with a warning where pods register themselves and `onDuplicate` is
    Warn."""
    doubles: dict[SyncerRef, list[str]] = {}
    for key, other in registered_by_themselves(desired, observed).items():
        text = f"the pod of {key.id} registers itself as {other.key.id} as well"
        doubles.setdefault(desired.wanted_by[key], []).append(text)
    claims = dict(desired.claims)
    for ref, texts in doubles.items():
        claim = claims[ref]
        if isinstance(claim, Serving) and claim.conduct.on_duplicate == "Warn":
            others = len(texts) - 1
            more = (
                f"; so {one_or_more(others, 'does', 'do')} {counted(others, 'more pod')}"
                if others
                else ""
            )
            claims[ref] = replace(
                claim, warnings=(*claim.warnings, f"{min(texts)}, and gets twice the calls{more}")
            )
    return replace(desired, claims=claims)
