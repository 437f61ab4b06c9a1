"""A few stories of `tests/simulation`, for fast checks. `tox -e simulation` runs thousands."""

from __future__ import annotations

import pytest

from tests.simulation.chance import story
from tests.simulation.run import run
from tests.simulation.tale import tell


@pytest.mark.parametrize("seed", range(2))
def test_every_promise_is_kept(seed: int) -> None:
    """The seed decides what happens."""
    verdict = run(story(seed))
    assert verdict.kept, tell(verdict)
