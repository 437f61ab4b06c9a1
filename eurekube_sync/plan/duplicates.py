"""What pods register of themselves beside ours, and whether callers need no more than that. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from eurekube_sync.desired.claims import Desired
from eurekube_sync.desired.rivals import sockets_of
from eurekube_sync.model.eureka import DEFAULT_LEASE, Instance, InstanceKey, InstanceStatus, ObservedInstance
from eurekube_sync.model.ownership import OWNER
from eurekube_sync.observe.eureka import Observed


def registered_by_themselves(desired: Desired, observed: Observed) -> Mapping[InstanceKey, ObservedInstance]:
    """By our key of it, the instance that is registered at the same address and port for the same app, and that no
    installation of this program wrote. Beside it ours would be a second one of the same process, and get twice the
    calls. Of several, one that lacks nothing."""
    selves: dict[tuple[str, str, int], list[ObservedInstance]] = {}
    for key, other in observed.others.items():
        its = other.instance
        for port in {its.secure_port, its.port} if OWNER not in its.metadata else ():
            if port.enabled:
                selves.setdefault((key.app, its.ip_addr, port.number), []).append(other)
    found: dict[InstanceKey, ObservedInstance] = {}
    for key in desired.wanted_by if selves else ():
        wanted = desired.wanted(key)
        doubles = [one for s in sockets_of(wanted.instance) for one in selves.get(s, ())] if wanted else []
        if wanted and doubles:
            mine, ours = wanted.instance, observed.ours.get(key)
            found[key] = min(doubles, key=lambda one: (lacks(one, mine, ours) is not None, one.key))
    return found


def lacks(other: ObservedInstance, wanted: Instance, ours: ObservedInstance | None = None) -> str | None:
    """What callers would miss if only the pod's own instance stood, and not `wanted`, in words; None: nothing. With
    `ours`, as it is, a client has to be there that renews the other."""
    if other.status is not InstanceStatus.UP:
        return f"it is {other.status.value}"
    if unreached := unreached_by_callers(other, wanted):
        return unreached
    if ours is not None and not _lives(other, ours):
        return "nobody renews it"
    return None


def unreached_by_callers(other: ObservedInstance, wanted: Instance) -> str | None:
    """Why callers of `wanted` do not reach the other although it is UP, in words; None: they do, or it is not UP."""
    if other.status is not InstanceStatus.UP:
        return None
    its = other.instance
    secure = wanted.secure_port.enabled and not _names(wanted.secure_vip_address) <= _names(its.secure_vip_address)
    if secure or not _names(wanted.vip_address) <= _names(its.vip_address):
        return "it is under another VIP"
    pairs = ((wanted.port, its.port), (wanted.secure_port, its.secure_port))
    if any(mine.enabled and mine != other_port for mine, other_port in pairs):
        return "it has other ports"
    if not _reached_alike(its, wanted):
        return f"callers outside may not resolve the host name {its.host_name}"
    return None


def _reached_alike(other: Instance, wanted: Instance) -> bool:
    """Whether callers, who go by the host name, reach the pod by the other as by ours. Spring registers a pod under its
    own name by default, which nobody outside of the cluster resolves."""
    host = _host(other.host_name)
    return host == _host(wanted.host_name) or host == _host(wanted.ip_addr)


def _host(name: str) -> str:
    return name.strip("[]").casefold()


def _names(vip: str) -> frozenset[str]:
    return frozenset(name.casefold() for name in vip.split(",") if name)


def _lives(other: ObservedInstance, ours: ObservedInstance) -> bool:
    """Whether it was renewed within two of its own periods, by the server's clock: each pass renews ours, so that this
    is what the other's time is held against. What `owner adopt` is about to take over nobody renews."""
    renewal, duration = other.instance.lease
    period = min(renewal or DEFAULT_LEASE.renewal, duration or DEFAULT_LEASE.duration)
    return not other.last_renewal or other.renewed >= ours.renewed - 2 * period
