"""The program keeps its promises in random stories, and if it is killed at any call of some short
ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from . import drains, imports
from . import events as e
from .chance import families, story
from .run import Verdict, run
from .story import Installation, Mode, Story
from .tale import tell
from .troubles import ALL_CALLS, Kind, Trouble

SEEDS = 120


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_every_promise_is_kept(first: int) -> None:
    """Holds in the stories of these seeds."""
    for seed in range(first, first + 10):
        assert_kept(run(story(seed)))


def test_a_seed_is_one_story_and_ends_alike() -> None:
    """Played twice, the same calls are made at the same times with the same answers."""
    for seed in (3, 17, 28):
        assert story(seed) == story(seed)
        assert run(story(seed), telling=True) == run(story(seed), telling=True)


def test_stories_differ() -> None:
    """Random stories meet each kind of event and of trouble. Drains and imports have stories of
    their own."""
    stories = [story(seed) for seed in range(1000)]
    apart = (drains.__name__, imports.__name__)
    known = {
        kind.__name__ for kind in e.Event.__subclasses__() if not kind.__module__.startswith(apart)
    }
    met = {type(event) for one in stories for event in one.events}
    assert {
        kind.__name__ for kind in met if not kind.__module__.startswith(imports.__name__)
    } == known
    assert {trouble.kind for one in stories for trouble in one.troubles} == set(Kind)
    assert {one.installation.mode for one in stories} == set(Mode)


def test_each_family_has_its_share() -> None:
    """Of two thousand random stories at least four have each subject that is added to some."""
    counts = Counter(story(seed).subject for seed in range(2000))
    assert counts.keys() - {""} == set(families())
    assert min(counts.values()) >= 4


def setting(*apps: str) -> tuple[e.Event, ...]:
    """Gives the events that make these apps, of two ready pods each."""
    return tuple(
        event
        for number, app in enumerate(apps, start=1)
        for event in (
            e.ServiceApplied(at=0, app=app),
            e.SyncerApplied(at=0, name=app, app=app),
            e.PodStarted(at=0, app=app, number=0, ip=f"10.0.0.{number}0"),
            e.PodStarted(at=0, app=app, number=1, ip=f"10.0.0.{number}1"),
        )
    )


SHORT: dict[str, tuple[e.Event, ...]] = {
    "a first pass": setting("rating"),
    "a rolling update": (
        *setting("rating"),
        e.PodStarted(at=5, app="rating", number=2, ip="10.0.0.12"),
        e.PodEnds(at=5, app="rating", number=0, grace=20),
        e.PodTurns(at=5, app="rating", number=1, ready=False),
    ),
    "a renaming": (
        *setting("rating"),
        e.SyncerApplied(at=5, name="rating", app="rating", app_name="fresh"),
    ),
    "a deletion": (*setting("rating", "cart"), e.SyncerDeleted(at=5, name="rating", app="rating")),
    "a succession": (
        *setting("rating"),
        e.SyncerApplied(at=5, name="rating-next", app="rating"),
        e.SyncerDeleted(at=5, name="rating", app="rating"),
    ),
    "all unready at once": (*setting("rating", "pay"), e.AllPodsTurn(at=5, ready=False)),
}


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize("kind", [Kind.KILL_BEFORE, Kind.KILL_AFTER, Kind.TIMEOUT_AFTER])
def test_the_program_may_die_at_any_call(name: str, kind: Kind) -> None:
    """It is killed before or after each of its calls in turn, or gets no answer to it."""
    for one in struck_everywhere(SHORT[name], kind):
        assert_kept(run(one))


def struck_everywhere(events: tuple[e.Event, ...], kind: Kind) -> Iterator[Story]:
    """Gives the story with one trouble, at each call of the 25 seconds from the event on, or from
    the beginning."""
    for begun in {max(event.at for event in events)}:
        calls = run(plain(events)).calls
        for skip in range(min(calls, 45)):
            trouble = Trouble(at=begun, until=30, calls=ALL_CALLS, kind=kind, skip=skip, strikes=1)
            yield plain(events, trouble)


def plain(events: tuple[e.Event, ...], *troubles: Trouble) -> Story:
    """Gives a story of a daemon."""
    return Story(seed=1, installation=Installation(), events=events, troubles=troubles, ends=50)


def assert_kept(verdict: Verdict) -> None:
    """Fails with the story told, if a promise is broken."""
    assert verdict.kept, tell(verdict)
