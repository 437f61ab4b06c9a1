"""Services at addresses that a load balancer or a person gives them, and stories about them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .asked import Asked
from .events import Event, PodTurns, ServiceApplied, SyncerApplied
from .story import QUIET, Story
from .world import APPS, FEW, service_manifest

if TYPE_CHECKING:
    from .stage import Stage

_HOSTS = ("192.0.2.1", "192.0.2.2", "192.0.2.3", "lb.example.com")


def reached_at(service: Mapping[str, Any], asked: Asked) -> tuple[str, ...]:
    """Gives where callers reach a Service, by the words of the contract; nothing while it has no
    such address."""
    spec = service["spec"]
    balanced = spec.get("type") == "LoadBalancer"
    match asked.address:
        case "ExternalIP":
            return tuple(spec.get("externalIPs", ()))
        case "LoadBalancer" | "Auto" if balanced:
            entries = service.get("status", {}).get("loadBalancer", {}).get("ingress", ())
            return tuple(entry.get("ip") or entry["hostname"] for entry in entries)
        case "LoadBalancer":
            return ()
    # A headless Service is the twin of another, and has no address.
    return () if spec["clusterIP"] == "None" else (spec["clusterIP"],)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceGetsAddresses(Event):
    """A load balancer gives the Service of an app these addresses, or a person gives them as
    external ones."""

    app: str
    hosts: tuple[str, ...]
    external: bool = False

    def happen(self, stage: Stage) -> str:
        call = stage.world.kubernetes.call
        path = f"/api/v1/namespaces/{APPS[self.app]}/services/{self.app}"
        if self.external:
            told = [host for host in self.hosts if host[0].isdigit()]
            status, _ = call("PATCH", path, {"spec": {"externalIPs": told}})
        else:
            status, _ = call("PATCH", path, {"spec": {"type": "LoadBalancer"}})
            ingress = [{"ip" if host[0].isdigit() else "hostname": host} for host in self.hosts]
            call("PATCH", f"{path}/status", {"status": {"loadBalancer": {"ingress": ingress}}})
        how = "its load balancer" if not self.external else "a person"
        return (
            f"Service {self.app} has {', '.join(self.hosts) or 'no address'} from {how}"
            if status < 300
            else ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlessTwinApplied(Event):
    """A second Service of the same pods, without an address, appears beside the Service of an
    app."""

    app: str

    def happen(self, stage: Stage) -> str:
        manifest = service_manifest(self.app, f"{self.app}-headless")
        done = stage.world.apply(
            "api/v1/services", {**manifest, "spec": {**manifest["spec"], "clusterIP": "None"}}
        )
        return f"headless Service {self.app}-headless is {done}" if done == "created" else ""


def with_addresses(base: Story) -> Story:
    """Adds an app whose Service is the instance, at outside addresses that come and go."""
    dice = random.Random(f"addresses {base.seed}")
    last = base.ends - QUIET
    app = dice.choice(
        sorted({event.app for event in base.events if isinstance(event, ServiceApplied)})
    )
    kind = dice.choice(("LoadBalancer", "LoadBalancer", "Auto", "ExternalIP"))
    events: list[Event] = [
        SyncerApplied(at=0.0, name=app, app=app, asked=Asked(mode="service", address=kind))
    ]
    times = [0.0, *sorted(round(dice.uniform(3, last), 1) for _ in range(dice.randint(1, 3)))]
    given = [(at, tuple(sorted(dice.sample(_HOSTS, dice.choice((0, 1, 1, 2, 3)))))) for at in times]
    if dice.random() < 0.4:
        given = [
            given[0],
            (round(dice.uniform(3, last / 2), 1), ()),
        ]  # and gets none for the rest of the story
    events += [
        ServiceGetsAddresses(at=at, app=app, hosts=hosts, external=kind == "ExternalIP")
        for at, hosts in given
    ]
    events += [
        PodTurns(
            at=round(dice.uniform(3, last), 1),
            app=app,
            number=dice.randint(0, 2),
            ready=dice.random() < 0.6,
        )
        for _ in range(dice.randint(0, 3))
    ]
    if dice.random() < 0.5:
        events.append(
            HeadlessTwinApplied(at=round(dice.uniform(0, last), 1), app=dice.choice((app, *FEW)))
        )
    if dice.random() < 0.4:
        asked = Asked(
            mode="service", address=dice.choice(("ClusterIP", "LoadBalancer", "ExternalIP", "Auto"))
        )
        events.append(
            SyncerApplied(at=round(dice.uniform(3, last), 1), name=app, app=app, asked=asked)
        )
    return replace(base, events=tuple(sorted((*base.events, *events), key=lambda event: event.at)))
