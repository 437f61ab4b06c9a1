"""One story from its beginning to its verdict."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from eurekube_sync.adapters.kubernetes import calls

from .reuse import compared
from .stage import Stage
from .story import Story
from .view import Violation

_PAGE = 2
"""Objects in a page of a list: few, so that small worlds have lists of several pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a story ended. `promise` is empty if all were kept."""

    story: Story
    promise: str = ""
    what: str = ""
    passes: int = 0
    calls: int = 0
    seconds: float = 0.0
    """Virtual seconds."""
    digest: str = ""
    """A digest of every call that the program made; see `wire.Digest`."""
    reached: Mapping[str, int] = field(default_factory=dict)
    """How often each situation that a promise is about came up."""
    tale: tuple[tuple[float, str], ...] = ()

    @property
    def kept(self) -> bool:
        """Whether every promise was kept."""
        return not self.promise


def run(story: Story, *, telling: bool = False) -> Verdict:
    """Plays the story."""
    stage = Stage(story, telling=telling)
    promise = what = ""
    logs = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # the tale tells it all
    page, calls.PAGE = calls.PAGE, _PAGE
    try:
        with compared():
            stage.play()
    except Violation as violation:
        promise, what = violation.promise, violation.what
    finally:
        logging.disable(logs)
        calls.PAGE = page
    return Verdict(
        story=story,
        promise=promise,
        what=what,
        passes=stage.passes,
        calls=stage.calls,
        seconds=stage.clock.time,
        digest=stage.digest.hexdigest()[:16],
        reached=dict(stage.judge.reached),
        tale=tuple(stage.tale),
    )
