"""Random clusters and registries, small and with many collisions: few names, addresses and
ports."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from msgspec import Struct

from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.model.eureka import InstanceStatus, ObservedInstance
from eurekube_sync.model.kubernetes import Endpoint as EndpointOf
from eurekube_sync.model.kubernetes import (
    EndpointPort,
    EndpointSlice,
    PodRef,
    Service,
    ServicePort,
    SyncerObject,
    SyncerRef,
)
from eurekube_sync.model.ownership import CLUSTER, OWNER, SYNCER
from tests.unit.worlds.build import NS, changed, foreign, instance, stored, syncer

NAMES = ("rating", "other")
NAMESPACES = (NS, "second")
STATUSES = tuple(InstanceStatus)


class Scenery(Struct, frozen=True):
    """The objects of a cluster."""

    syncers: tuple[SyncerObject, ...]
    services: tuple[Service, ...]
    slices: tuple[EndpointSlice, ...]


@st.composite
def endpoints(draw: st.DrawFn, family: str) -> EndpointOf:
    """A pod with one address of each family, or a bare address. Its conditions are random."""
    number = draw(st.integers(1, 4))
    terminating = draw(st.sampled_from((False, False, True)))
    serving = draw(st.booleans())
    return EndpointOf(
        address=f"10.0.0.{number}" if family == "IPv4" else f"fd00::{number}",
        ready=serving and not terminating,
        serving=serving,
        terminating=terminating,
        pod=draw(
            st.sampled_from(
                (None, *(PodRef(f"{n}-{number}", f"uid-{n}-{number}") for n in ("a", "b")))
            )
        ),
    )


@st.composite
def slices(draw: st.DrawFn, number: int) -> EndpointSlice:
    """A slice of a Service that may not exist."""
    family = draw(st.sampled_from(("IPv4", "IPv4", "IPv6")))
    return EndpointSlice(
        namespace=draw(st.sampled_from(NAMESPACES)),
        name=f"slice-{number}",
        service=draw(st.sampled_from(NAMES)),
        address_type=family,
        ports=(
            EndpointPort(
                name=draw(st.sampled_from(("http", "http", "metrics"))), port=draw(PORT_NUMBERS)
            ),
        ),
        endpoints=tuple(draw(st.lists(endpoints(family), max_size=4))),
    )


PORT_NUMBERS = st.sampled_from((8080, 8080, 9090, None))
PORTS = st.sampled_from(
    (
        (ServicePort(name="http", port=80, target=8080),),
        (ServicePort(name="http", port=80, target=8080), ServicePort(name="metrics", port=9090)),
        (),
    )
)


@st.composite
def services(draw: st.DrawFn, namespace: str, name: str) -> Service:
    """A Service, perhaps headless, perhaps with unready addresses published."""
    families = draw(st.sampled_from((("IPv4",), ("IPv6", "IPv4"))))
    addresses = {"IPv4": "10.96.0.1", "IPv6": "fd00:96::1"}
    return Service(
        namespace=namespace,
        name=name,
        labels=draw(st.sampled_from(({"app": "rating"}, {"app": "rating", "tier": "web"}, {}))),
        cluster_ips=draw(
            st.sampled_from((("None",), tuple(addresses[family] for family in families)))
        ),
        ip_families=families,
        ports=draw(PORTS),
        publish_not_ready=draw(st.booleans()),
    )


SPECS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "selector": st.sampled_from(
            ({"app": "rating"}, {"matchLabels": {"tier": "web"}}, {"service": "other"})
        )
    },
    optional={
        "mode": st.sampled_from(("pod", "pod", "service")),
        "port": st.sampled_from(("http", 80, 9090, "grpc")),
        "appName": st.sampled_from(("rating", "app")),
        "vipAddress": st.just("a,b"),
        "metadata": st.sampled_from(({}, {"a": "1"}, {"b": "2"})),
        "addressFamily": st.sampled_from(("IPv4", "IPv6")),
        "notReady": st.sampled_from(("Down", "Cancel")),
        "terminating": st.sampled_from(("Cancel", "KeepWhileServing")),
    },
)


@st.composite
def syncers(draw: st.DrawFn, namespace: str, name: str) -> SyncerObject:
    """A syncer, perhaps deleted."""
    deleted = draw(st.sampled_from((None, None, None, 1.0)))
    return syncer(
        name,
        namespace=namespace,
        created=draw(st.integers(1, 2)),
        deleted=deleted,
        finalizers=(CLEANUP_FINALIZER,) if deleted else (),
        **draw(SPECS),
    )


@st.composite
def sceneries(draw: st.DrawFn) -> Scenery:
    """Two namespaces with up to two syncers, two Services and some slices."""
    places = [(namespace, name) for namespace in NAMESPACES for name in NAMES]
    some = st.lists(st.sampled_from(places), unique=True)
    return Scenery(
        syncers=tuple(draw(syncers(*place)) for place in draw(some)),
        services=tuple(draw(services(*place)) for place in draw(some)),
        slices=tuple(draw(slices(number)) for number in range(draw(st.integers(0, 5)))),
    )


@st.composite
def registered(draw: st.DrawFn) -> ObservedInstance:
    """An instance in Eureka: ours, an orphan, one with marks of others or without, often under an
    id of ours."""
    ref = SyncerRef(
        draw(st.sampled_from((*NAMESPACES, "third"))), draw(st.sampled_from((*NAMES, "gone")))
    )
    wanted = instance(
        draw(st.integers(1, 5)),
        app=draw(st.sampled_from(("rating", "app", "other"))),
        ref=ref,
        port=draw(st.sampled_from((8080, 9090))),
    )
    found = stored(
        wanted,
        status=draw(st.sampled_from(STATUSES)),
        timestamp=draw(st.sampled_from((1, 10**16))),
        metadata=draw(
            st.sampled_from(
                (
                    wanted.metadata,
                    wanted.metadata,
                    {**wanted.metadata, "added": "by hand"},
                    {},
                    {OWNER: "test", CLUSTER: "c", SYNCER: str(ref)},
                    {OWNER: wanted.metadata[OWNER], CLUSTER: wanted.metadata[CLUSTER]},
                )
            )
        ),
    )
    return draw(st.sampled_from((found, found, changed(foreign(), key=found.key), foreign())))


REGISTRIES = st.lists(registered(), max_size=8, unique_by=lambda one: one.key)
