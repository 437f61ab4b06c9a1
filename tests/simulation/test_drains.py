"""A drained instance stays DOWN in all events, also while the list that shows the drain fails."""

from __future__ import annotations

import pytest

from eurekube_sync.desired import pods
from eurekube_sync.desired.catalog import NO_DRAIN
from eurekube_sync.desired.claims import Desired
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan import left_out, make
from eurekube_sync.plan.value import UNCHANGED, Ruling

from .defect import Defect, made_wrong
from .drains import PodDrained, story
from .run import run
from .test_stories import assert_kept

SEEDS = 60
MOST = 150
"""Stories in which a defect has to show."""


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_every_promise_is_kept_while_somebody_drains(first: int) -> None:
    """Holds in the stories of these seeds."""
    for seed in range(first, first + 10):
        assert_kept(run(story(seed)))


def test_somebody_drains_in_each_story() -> None:
    """A person drains pods, and in most stories the list that shows the drains fails."""
    stories = [story(seed) for seed in range(100)]
    assert all(any(isinstance(event, PodDrained) for event in one.events) for one in stories)
    assert story(7) == story(7)


def _no_mark_counts(_desired: Desired, _observed: Observed) -> Ruling:
    return UNCHANGED


_RULES = tuple(_no_mark_counts if rule is left_out.still_drained else rule for rule in make.RULES)
DEFECTS = {
    "what cannot be read is not drained": (
        "drained",
        Defect(name="", patches=((make, "RULES", _RULES),)),
    ),
    "nobody is drained": (
        "rest",
        Defect(name="", patches=((pods, "drain_of", lambda *_, **_perhaps: NO_DRAIN),)),
    ),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_caught(name: str) -> None:
    """It breaks the promise about drains."""
    promise, defect = DEFECTS[name]
    with made_wrong(defect):
        assert any(run(story(seed)).promise == promise for seed in range(MOST))
