"""What an heir may claim costs as much as there are syncers and instances, not their product: a
list that fails must not make a pass slow. Calls of functions are counted, not seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from eurekube_sync.desired.claims import Desired
from eurekube_sync.desired.heirs import kept_for
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import (
    EndpointPort,
    EndpointSlice,
    Service,
    ServicePort,
    SyncerRef,
)
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import NS, desired, endpoint, instance, piece, service, stored, syncer

GONE = SyncerRef(NS, "gone")
OF_PODS: dict[str, Any] = {"metadataFrom": [{"key": "version", "podLabel": "version"}]}
"""What needs the list of Pods, which these worlds lack."""


def calls_of(work: Callable[[], object]) -> int:
    """Count the calls of functions, of Python's and of C's."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


World = tuple[Desired, list[ObservedInstance]]


def apps(number: int) -> tuple[list[Service], list[EndpointSlice], list[ObservedInstance]]:
    """As many apps of one pod each, whose instances have the mark of a syncer that is gone."""
    services, slices, instances = [], [], []
    for n in range(number):
        name = f"app-{n}"
        services.append(service(name, labels={"app": name}))
        slices.append(piece(endpoint(n), service=name))
        instances.append(stored(instance(n, app=name, ref=GONE)))
    return services, slices, instances


def unread(number: int) -> World:
    """One syncer for each app, which could not be read."""
    services, slices, instances = apps(number)
    syncers = [syncer(one.name, selector={"app": one.name}, **OF_PODS) for one in services]
    return desired(syncers, services, slices), instances


def lacking_a_slice(number: int) -> World:
    """One syncer for each app, with a second Service that has no slice."""
    services, slices, instances = apps(number)
    second = [replace(one, name=f"{one.name}-2") for one in services]
    syncers = [syncer(one.name, selector={"app": one.name}) for one in services]
    others = [replace(one, endpoints=()) for one in slices]
    return desired(syncers, [*services, *second], others), instances


def lacking_a_port(number: int) -> World:
    """One syncer for each app, with a pod that lacks one of the two ports."""
    services, slices, instances = apps(number)
    ports = (ServicePort(name="http", port=80, target=8080), ServicePort(name="https", port=443))
    https = EndpointPort(name="https", port=8443)
    second = [
        replace(one, name=f"{one.name}-2", ports=(https,), endpoints=(endpoint(-1),))
        for one in slices
    ]
    both = [replace(one, ports=ports) for one in services]
    syncers = [
        syncer(one.name, selector={"app": one.name}, port="http", securePort="https")
        for one in services
    ]
    return desired(syncers, both, [*slices, *second]), instances


WORLDS = [unread, lacking_a_slice, lacking_a_port]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("kept", [True, False])
def test_ten_times_as_many_syncers_cost_about_ten_times_as_much(
    world: Callable[[int], World], kept: bool
) -> None:
    """For instances that an heir may claim, and for those of an app that nobody names."""

    def cost(number: int) -> int:
        found, instances = world(number)
        if not kept:
            instances = [of_nobodys_app(one) for one in instances]
        answers: list[str | None] = []
        counted = calls_of(lambda: answers.extend(kept_for(one, found) for one in instances))
        assert [answer is not None for answer in answers] == [kept] * number
        return counted

    assert cost(1000) < 12 * cost(100)


def of_nobodys_app(one: ObservedInstance) -> ObservedInstance:
    """The same instance under the name of an app that no syncer has."""
    return stored(replace(one.instance, key=InstanceKey("NOBODYS", one.key.id)))


def test_the_count_sees_each_call() -> None:
    """Else the test above would compare nothing."""
    known = {1: "a"}
    assert calls_of(lambda: [known.get(number) for number in range(100)]) > 100
