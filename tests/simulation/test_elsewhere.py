"""The objects that another cluster behind our address lists are nobody's wish, and nothing is
written there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from .chance import story
from .elsewhere import AddressLeadsElsewhere, Twin
from .run import run
from .story import Installation, Mode
from .test_stories import assert_kept, plain, setting

SEEDS = 40
TWINS = (Twin(app="rating", ips=("10.0.0.5",)), Twin(app="cart", ips=("10.0.0.10",), deleting=True))


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_every_promise_is_kept_while_the_address_leads_elsewhere(first: int) -> None:
    """Holds in the stories of these seeds."""
    for seed in range(first, first + 10):
        assert_kept(run(story(seed, "another cluster")))


@pytest.mark.parametrize("skip", range(9))
def test_it_may_lead_there_from_any_call_on(skip: int) -> None:
    """It leads there for some passes. Meanwhile pods of ours come and go, and are seen when it
    leads home."""
    begins = AddressLeadsElsewhere(at=9, lasts=25, skip=skip, twins=TWINS)
    verdict = run(plain((*setting("rating", "cart"), begins)))
    assert_kept(verdict)
    assert verdict.reached["a list of another cluster"]


def test_a_process_that_begins_meanwhile_serves_its_own_cluster() -> None:
    """A process that has not learned whom it serves would be the other cluster's program, which is
    another story."""
    begins = AddressLeadsElsewhere(at=5, lasts=60, twins=TWINS)
    once = Installation(mode=Mode.ONCE, interval=30)
    assert_kept(run(replace(plain((*setting("rating"), begins)), installation=once, ends=90)))
