"""Slow things: an instance that a policy never cancels expires, and a gate waits for Eureka for
minutes."""

from __future__ import annotations

from collections import Counter

import pytest

from .chance import story
from .run import run
from .test_stories import assert_kept

REACHED = {
    "an expiry": "an instance that a policy left to expire",
    "a long silence": "a gate that opened without Eureka",
}


@pytest.mark.parametrize("about", REACHED)
def test_every_promise_is_kept(about: str) -> None:
    """Holds in the stories of these seeds, and some of them reach the situation that they are
    about."""
    reached: Counter[str] = Counter()
    for seed in range(16):
        verdict = run(story(seed, about))
        assert_kept(verdict)
        reached.update(verdict.reached)
    assert reached[REACHED[about]]
