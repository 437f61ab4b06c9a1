"""Decoded instances are reused: an instance is the same object in the next list if only its last
renewal changed."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.adapters.eureka import wire
from eurekube_sync.adapters.eureka.wire import Decoded
from eurekube_sync.model.errors import RegistryUnusable
from eurekube_sync.model.eureka import ObservedInstance
from tests.unit.adapters.eureka.test_eureka_wire import OURS, THEIRS, changed, listing


def later(decoded: Decoded, *instances: Any) -> tuple[ObservedInstance, ...]:
    """The list as a process decodes it that has listed before. It equals what a first list
    gives."""
    found = wire.decode_list(listing(*instances), decoded).instances
    assert found == wire.decode_list(listing(*instances)).instances
    return found


def renewed(instance: dict[str, Any], at: object) -> dict[str, Any]:
    return changed(instance, leaseInfo={**instance["leaseInfo"], "lastRenewalTimestamp": at})


def test_a_process_that_lists_once_remembers_nothing() -> None:
    """Only a process that lists again can reuse decoded instances."""
    decoded = Decoded()
    first, second, third = (later(decoded, OURS)[0] for _ in range(3))
    assert first.instance is not second.instance
    assert third is second


def test_a_renewal_changes_its_own_time_alone() -> None:
    """The time may be a number or text."""
    decoded = Decoded()
    before = [later(decoded, OURS, THEIRS) for _ in range(2)][1]
    after = later(decoded, renewed(OURS, 7), renewed(THEIRS, "8"))
    assert [one.last_renewal for one in after] == [7, 8]
    assert all(one.instance is was.instance for one, was in zip(after, before, strict=True))


@pytest.mark.parametrize(
    "change",
    [
        {"status": "DOWN"},
        {"overriddenStatus": "OUT_OF_SERVICE"},
        {"metadata": {"eurekube.owner": "test"}},
        {"port": {"$": 8081, "@enabled": "true"}},
        {"port": None},
        {"leaseInfo": None},
        {"leaseInfo": {**OURS["leaseInfo"], "durationInSecs": 90}},
        {"leaseInfo": {**OURS["leaseInfo"], "registrationTimestamp": 9}},
        {"lastDirtyTimestamp": "1795248000786"},
        {"vipAddress": "other"},
        {"app": "OTHER"},
        {"instanceId": "prod:shop:rating:10.0.0.2:8080"},
    ],
)
def test_anything_else_makes_it_anew(change: dict[str, Any]) -> None:
    """The newest list is what counts."""
    decoded = Decoded()
    before = [later(decoded, OURS)[0] for _ in range(2)][1]
    assert later(decoded, changed(OURS, **change))[0].instance is not before.instance


def test_a_number_is_not_taken_for_what_equals_it() -> None:
    """1 and true are equal in Python, but give different texts."""
    decoded = Decoded()
    for value in (1, 1, True, 1.0):
        later(decoded, changed(THEIRS, metadata={"weight": value}))


def test_an_instance_that_is_no_longer_listed_is_forgotten() -> None:
    decoded = Decoded()
    before = [later(decoded, OURS, THEIRS) for _ in range(2)][1]
    later(decoded, OURS)
    again = later(decoded, OURS, THEIRS)
    assert [one is was for one, was in zip(again, before, strict=True)] == [True, False]


def test_a_list_that_cannot_be_read_changes_nothing() -> None:
    """The next list is compared with the last readable one."""
    decoded = Decoded()
    before = [later(decoded, OURS)[0] for _ in range(2)][1]
    with pytest.raises(RegistryUnusable):
        wire.decode_list(listing(renewed(OURS, 9))[:-9], decoded)
    assert later(decoded, OURS)[0] is before
