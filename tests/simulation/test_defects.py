"""The judge is no fig leaf: each defect of the table breaks a promise within a bounded number of stories."""

from __future__ import annotations

import pytest

from .chance import story
from .defects import Defect, catch, defects, made_wrong
from .run import run
from .shrink import shrink

MOST = 400
"""Stories that may go by before a defect has to show."""


@pytest.mark.parametrize("defect", defects(), ids=lambda defect: defect.name)
def test_a_defect_is_caught(defect: Defect) -> None:
    """Whatever promise it breaks."""
    assert catch(defect, most=MOST).promise


def test_a_failing_story_becomes_small_and_still_fails() -> None:
    """It breaks the same promise with fewer events and troubles, and ends alike each time."""
    defect = next(one for one in defects() if one.name == "the brake does not count UP to DOWN")
    with made_wrong(defect):
        broken = run(story(catch(defect).seed))
        small = shrink(broken, runs=80)
        assert small.promise == broken.promise
        assert len(small.story.events) < len(broken.story.events)
        assert run(small.story) == small
    assert run(small.story).kept


def test_a_defect_is_gone_afterwards() -> None:
    """What was patched is what it was before."""
    before = [vars(where)[name] for one in defects() for where, name, _ in one.patches]
    for one in defects():
        with made_wrong(one):
            pass
    assert [vars(where)[name] for one in defects() for where, name, _ in one.patches] == before
