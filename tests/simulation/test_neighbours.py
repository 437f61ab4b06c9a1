"""A claim of another namespace removes no instance of an app's own namespace, and keeps none of it
out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from . import events as e
from .chance import story
from .neighbours import NeighbourClaims, NeighbourLeaves
from .run import run
from .story import Story
from .test_stories import assert_kept, plain, setting

SEEDS = 40
RATING = ("10.0.0.10", "10.0.0.11")
"""The addresses of the pods of `rating`, in the namespace `shop`."""


@pytest.mark.parametrize("first", range(0, SEEDS, 10))
def test_every_promise_is_kept_beside_neighbours(first: int) -> None:
    """Holds in the stories of these seeds."""
    for seed in range(first, first + 10):
        assert_kept(run(story(seed, "neighbours")))


def claim(how: str, *hosts: str, at: float = 0, **fields: bool) -> NeighbourClaims:
    """Gives a claim of the namespace `bank`, whose syncers come first among those of one age."""
    return NeighbourClaims(
        at=at, app="rating", namespace="bank", how=how, hosts=hosts or RATING, **fields
    )


def beside(*claims: e.Event, after: tuple[e.Event, ...] = ()) -> Story:
    """Gives a story in which the claims are there before the app, or come later."""
    early = [one for one in claims if one.at == 0]
    later = [one for one in claims if one.at > 0]
    return replace(plain((*early, *setting("rating", "cart"), *later, *after)), ends=120)


@pytest.mark.parametrize("how", ["host", "external", "slice", "pods", "their pods"])
@pytest.mark.parametrize("ready", [True, False])
@pytest.mark.parametrize("at", [0, 15])
def test_a_neighbours_claim_removes_nothing(how: str, ready: bool, at: float) -> None:
    """The claim is there before the app, or comes later."""
    hosts = RATING[:1] if how == "host" else RATING
    assert_kept(run(beside(claim(how, *hosts, at=at, ready=ready))))


@pytest.mark.parametrize("how", ["external", "slice", "pods"])
def test_a_claim_keeps_no_new_pod_out(how: str) -> None:
    """This holds even if the app's syncer is suspended by then."""
    claims = (claim(how, "10.0.0.5"), claim(how, "10.0.0.5", at=20, suspend=True))
    pods = (
        e.PodStarted(at=30, app="rating", number=5, ip="10.0.0.5"),
        NeighbourLeaves(at=60, app="rating", namespace="bank"),
    )
    assert_kept(run(beside(*claims, after=pods)))


def test_two_namespaces_behind_one_ingress() -> None:
    """The first namespace has it. When it leaves, the other gets it."""
    ingress = "in.example.com"
    first = NeighbourClaims(
        at=0, app="rating", namespace="shop", how="host", hosts=(ingress,), number=5
    )
    leaves = NeighbourLeaves(at=50, app="rating", namespace="shop", number=5)
    assert_kept(run(beside(first, claim("host", ingress, at=20), after=(leaves,))))
