"""How one syncer's endpoints become Eureka instances: names, addresses, metadata."""

from __future__ import annotations

from dataclasses import dataclass

from eurekube_sync.model import Instance, InstanceKey, InstanceStatus, LeaseTimes, PodRef, Port, Service
from eurekube_sync.ownership import Ownership, instance_id
from eurekube_sync.syncer import Mode, Syncer, check_app_name, host_name_warning

_SECURE_PORT_OFF = Port(443, False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """What every instance of a pass carries alike."""

    ownership: Ownership
    lease: LeaseTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """An instance that should stand, and why in words."""

    instance: Instance
    why: str


class Builder:
    """Builds the instances of one syncer, and remembers the app names it met."""

    def __init__(self, spec: Syncer, naming: Naming) -> None:
        self._spec = spec
        self._naming = naming
        self._apps: set[str] = set()

    def app_name(self, service: Service) -> str:
        """The syncer's own name, else the Service's. Raises InvalidSyncer for one that Eureka could not hold."""
        name = self._spec.app_name or check_app_name(f"Service {service.name}", service.name)
        self._apps.add(name.upper())
        return name

    def key(self, app: str, address: str, port: int) -> InstanceKey:
        """What the instance at this address is known by."""
        owner = self._naming.ownership.owner
        id_ = instance_id(owner=owner, namespace=self._spec.ref.namespace, app=app, address=address, port=port)
        return InstanceKey(app.upper(), id_)

    def wanted(self, key: InstanceKey, address: str, port: int, *, up: bool, why: str, pod: PodRef | None) -> Wanted:
        """The whole instance. An IPv6 address is bracketed where clients put it into a URL, and bare elsewhere."""
        vip = self._spec.vip_address or key.app.lower()
        return Wanted(
            why=why,
            instance=Instance(
                key=key,
                host_name=f"[{address}]" if ":" in address else address,
                ip_addr=address,
                port=Port(port, True),
                secure_port=_SECURE_PORT_OFF,
                vip_address=vip,
                secure_vip_address=self._spec.secure_vip_address or vip,
                status=InstanceStatus.UP if up else InstanceStatus.DOWN,
                lease=self._naming.lease,
                metadata=self._naming.ownership.marked(
                    self._spec.metadata,
                    self._spec.ref,
                    pod,
                    pod_namespace=self._spec.namespace,
                    syncer_class=self._spec.syncer_class,
                ),
            ),
        )

    @property
    def apps(self) -> tuple[str, ...]:
        """The app names met so far, sorted."""
        return tuple(sorted(self._apps))

    @property
    def vip_address(self) -> str:
        """The VIP to show: the spec's, or that of the first app."""
        return self._spec.vip_address or (self.apps[0].lower() if self._apps else "")

    def warnings(self) -> tuple[str, ...]:
        """What a person should know although it works."""
        vips = [name for name in self.vip_address.split(",") if name]
        found = [warning for name in vips if (warning := host_name_warning(name))]
        if self._spec.mode is Mode.SERVICE:
            found.append("a ClusterIP is rarely reachable from outside the cluster")
        return tuple(found)


def better(one: Wanted, other: Wanted) -> Wanted:
    """The one to keep where an address stands for two pods, as while a new pod takes over an IP: the UP one, then by
    pod, so that the order of slices does not matter."""
    return min(one, other, key=_standing)


def _standing(wanted: Wanted) -> tuple[bool, str, tuple[tuple[str, str], ...]]:
    return (
        wanted.instance.status is not InstanceStatus.UP,
        wanted.why,
        tuple(sorted(wanted.instance.metadata.items())),
    )
