"""The judge works: each defect of the table breaks a promise within a bounded number of stories."""

from __future__ import annotations

import pytest

from .chance import story
from .defect import Defect, made_wrong
from .defects import catch, defects
from .page import PAGE, RUN_BEGINS, RUN_ENDS, first_stories, with_run
from .run import run
from .shrink import shrink

FIRST_STORIES = first_stories()
MOST = 1000
"""Stories in which a defect has to show."""


@pytest.mark.parametrize("defect", defects(), ids=lambda defect: defect.name)
def test_a_defect_is_caught(defect: Defect) -> None:
    """Any promise may be the broken one, but that no pass ends with an exception: a defect that
    raises one does not fit the code any more, and nothing shows that a promise would catch it."""
    first = FIRST_STORIES.get(defect.name, 0)
    assert catch(defect, first=first, most=MOST).promise not in ("", "crash")


def test_the_first_stories_are_of_defects() -> None:
    assert FIRST_STORIES.keys() <= {defect.name for defect in defects()}


def test_a_run_takes_the_place_of_the_one_before() -> None:
    """Nothing else of the page changes."""
    page = with_run(PAGE.read_text(), 1, 7, 2, ["1 stories"])
    assert "$ python -m tests.simulation --runs 1 --seed 7 --jobs 2 --record\n1 stories\n" in page
    assert with_run(page, 1, 7, 2, ["1 stories"]) == page
    assert page.partition(RUN_BEGINS)[0] == PAGE.read_text().partition(RUN_BEGINS)[0]
    assert page.partition(RUN_ENDS)[2] == PAGE.read_text().partition(RUN_ENDS)[2]


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
    """What was patched is as before."""
    before = [vars(where)[name] for one in defects() for where, name, _ in one.patches]
    for one in defects():
        with made_wrong(one):
            pass
    assert [vars(where)[name] for one in defects() for where, name, _ in one.patches] == before
