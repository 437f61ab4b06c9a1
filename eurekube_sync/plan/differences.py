"""Whether an instance that is registered is updated, and in what. It leaves what others set: a person's OUT_OF_SERVICE
or other override, and metadata."""

from __future__ import annotations

from eurekube_sync.desired.conduct import GONE, LIMIT, POLICY
from eurekube_sync.desired.drain import DRAINED
from eurekube_sync.model.actions import Change
from eurekube_sync.model.eureka import Instance, InstanceStatus, LeaseTimes, ObservedInstance, Port
from eurekube_sync.model.foreign_text import HIDDEN, sounds_secret
from eurekube_sync.model.ownership import CLASS, our_keys


def differences(instance: Instance, observed: ObservedInstance) -> tuple[Change, ...]:
    """What a new register would change. Metadata that others added is theirs; a person's override is not fought."""
    there = observed.instance
    if instance is there or instance == there:  # nearly all are, in nearly every pass
        return ()
    pairs = [
        ("hostName", there.host_name, instance.host_name),
        ("ipAddr", there.ip_addr, instance.ip_addr),
        ("port", _shown(there.port), _shown(instance.port)),
        ("securePort", _shown(there.secure_port), _shown(instance.secure_port)),
        ("vipAddress", there.vip_address, instance.vip_address),
        ("secureVipAddress", there.secure_vip_address, instance.secure_vip_address),
        ("homePageUrl", there.home_page_url, instance.home_page_url),
        ("statusPageUrl", there.status_page_url, instance.status_page_url),
        ("healthCheckUrl", there.health_check_url, instance.health_check_url),
        ("lease", _seconds(there.lease), _seconds(instance.lease)),
    ]
    names = our_keys(there.metadata) - our_keys(instance.metadata)
    keys = {*instance.metadata, *names, CLASS, LIMIT, POLICY, GONE, DRAINED}
    pairs += [(f"metadata.{key}", there.metadata.get(key, ""), instance.metadata.get(key, "")) for key in sorted(keys)]
    if not overridden(observed, instance.status):
        pairs.append(("status", there.status.value, instance.status.value))
    return tuple(_change(field, was, becomes) for field, was, becomes in pairs if was != becomes)


def _change(field: str, was: str, becomes: str) -> Change:
    """A change is shown: a password that callers read in the metadata is not."""
    if field.startswith("metadata.") and sounds_secret(field):
        was, becomes = was and HIDDEN, becomes and HIDDEN
    return Change(field=field, was=was, becomes=becomes)


def overridden(observed: ObservedInstance, wanted: InstanceStatus) -> bool:
    """Whether a person's or a tool's override stands against the wanted status: it is left alone and reported.

    OUT_OF_SERVICE always (a register of UP would be ignored, InstanceStatusOverrideRule); any other override only
    against an UP: a DOWN of ours is trusted first (DownOrStartingRule) and must reach the callers.
    """
    if observed.status is InstanceStatus.OUT_OF_SERVICE:
        return True
    forced = override_of(observed) is not None
    return forced and observed.status is observed.instance.override and wanted is InstanceStatus.UP


def override_of(observed: ObservedInstance) -> InstanceStatus | None:
    """What a person or a tool set, and a cancel would forget, though a DOWN of ours may hide it."""
    if observed.status is InstanceStatus.OUT_OF_SERVICE:
        return observed.status
    kept = observed.instance.override
    return None if kept in (InstanceStatus.UNKNOWN, InstanceStatus.UP) else kept


def _shown(port: Port) -> str:
    return str(port.number) if port.enabled else "off"


def _seconds(lease: LeaseTimes) -> str:
    return f"{lease.renewal}/{lease.duration} s"
