"""A Service that is the instance is registered where callers reach it, and stays while a new
address is awaited."""

from __future__ import annotations

from dataclasses import replace

import pytest

from . import events as e
from .addresses import HeadlessTwinApplied, ServiceGetsAddresses
from .asked import Asked
from .chance import story
from .run import run
from .test_stories import assert_kept, plain, setting

SEEDS = 40
BALANCED = Asked(mode="service", address="LoadBalancer")


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_every_promise_is_kept_while_addresses_come_and_go(first: int) -> None:
    """Holds in the stories of these seeds."""
    for seed in range(first, first + 10):
        assert_kept(run(story(seed, "addresses")))


@pytest.mark.parametrize("hosts", [(), ("192.0.2.2",), ("192.0.2.1", "lb.example.com")])
def test_a_load_balancer_gets_other_addresses(hosts: tuple[str, ...]) -> None:
    """It gets no address for the rest of the story, another one, or one more."""
    events = (
        *setting("rating", "cart"),
        e.SyncerApplied(at=0, name="rating", app="rating", asked=BALANCED),
        ServiceGetsAddresses(at=0, app="rating", hosts=("192.0.2.1",)),
        ServiceGetsAddresses(at=20, app="rating", hosts=hosts),
    )
    assert_kept(run(replace(plain(events), ends=90)))


def test_a_headless_service_beside_another_adds_no_instance() -> None:
    """It adds none beside the Service's own address, and none beside its pods'."""
    for asked in (BALANCED, Asked()):
        events = (
            *setting("rating"),
            e.SyncerApplied(at=0, name="rating", app="rating", asked=asked),
            ServiceGetsAddresses(at=0, app="rating", hosts=("192.0.2.1",)),
            HeadlessTwinApplied(at=12, app="rating"),
        )
        assert_kept(run(plain(events)))
