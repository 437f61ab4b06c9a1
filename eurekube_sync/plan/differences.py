"""What a new register would change of an instance that stands, and what it leaves as others set it."""

from __future__ import annotations

from eurekube_sync.desired.drain import DRAINED
from eurekube_sync.desired.policy import GONE, LIMIT, POLICY
from eurekube_sync.model.actions import Change
from eurekube_sync.model.eureka import Instance, InstanceStatus, ObservedInstance, Port
from eurekube_sync.model.ownership import CLASS, our_keys


def differences(instance: Instance, observed: ObservedInstance) -> tuple[Change, ...]:
    """What a new register would change. Metadata that others added is theirs; a person's override is not fought."""
    if _same(instance, observed):  # nearly all are, in nearly every pass
        return ()
    pairs = [
        ("hostName", observed.host_name, instance.host_name),
        ("ipAddr", observed.ip_addr, instance.ip_addr),
        ("port", _shown(observed.port), _shown(instance.port)),
        ("securePort", _shown(observed.secure_port), _shown(instance.secure_port)),
        ("vipAddress", observed.vip_address, instance.vip_address),
        ("secureVipAddress", observed.secure_vip_address, instance.secure_vip_address),
        ("homePageUrl", observed.home_page_url, instance.home_page_url),
        ("statusPageUrl", observed.status_page_url, instance.status_page_url),
        ("healthCheckUrl", observed.health_check_url, instance.health_check_url),
        (
            "lease",
            f"{observed.lease.renewal}/{observed.lease.duration} s",
            f"{instance.lease.renewal}/{instance.lease.duration} s",
        ),
    ]
    names = our_keys(observed.metadata) - our_keys(instance.metadata)
    keys = {*instance.metadata, *names, CLASS, LIMIT, POLICY, GONE, DRAINED}
    pairs += [
        (f"metadata.{key}", observed.metadata.get(key, ""), instance.metadata.get(key, "")) for key in sorted(keys)
    ]
    if not overridden(observed, instance.status):
        pairs.append(("status", observed.status.value, instance.status.value))
    return tuple(Change(field=field, was=was, becomes=becomes) for field, was, becomes in pairs if was != becomes)


def _same(instance: Instance, observed: ObservedInstance) -> bool:
    return (
        instance.status is observed.status
        and instance.metadata == observed.metadata
        and instance.host_name == observed.host_name
        and instance.ip_addr == observed.ip_addr
        and instance.port == observed.port
        and instance.secure_port == observed.secure_port
        and instance.vip_address == observed.vip_address
        and instance.secure_vip_address == observed.secure_vip_address
        and instance.lease == observed.lease
        and instance.home_page_url == observed.home_page_url
        and instance.status_page_url == observed.status_page_url
        and instance.health_check_url == observed.health_check_url
    )


def overridden(observed: ObservedInstance, wanted: InstanceStatus) -> bool:
    """Whether a person's or a tool's override stands against the wanted status: it is left alone and reported.

    OUT_OF_SERVICE always (a register of UP would be ignored, InstanceStatusOverrideRule); any other override only
    against an UP: a DOWN of ours is trusted first (DownOrStartingRule) and must reach the callers.
    """
    if observed.status is InstanceStatus.OUT_OF_SERVICE:
        return True
    forced = override_of(observed) is not None
    return forced and observed.status is observed.overridden_status and wanted is InstanceStatus.UP


def override_of(observed: ObservedInstance) -> InstanceStatus | None:
    """What a person or a tool set, and a cancel would forget, though a DOWN of ours may hide it."""
    if observed.status is InstanceStatus.OUT_OF_SERVICE:
        return observed.status
    kept = observed.overridden_status
    return None if kept in (InstanceStatus.UNKNOWN, InstanceStatus.UP) else kept


def _shown(port: Port) -> str:
    return str(port.number) if port.enabled else "off"
