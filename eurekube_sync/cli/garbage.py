"""When Python looks for reference cycles.

A pass builds hundreds of thousands of objects that live to its end, and hardly a cycle among them. Python's own rule
walks all of them again and again while they grow: of 60,000 instances it took a third of the processor time of a pass.
"""

from __future__ import annotations

import gc

from eurekube_sync.controller.loop import Between
from eurekube_sync.model.eureka import InstanceKey

_YOUNG, _MIDDLE, _ALL = 50_000, 20, 1_000
"""Objects until the youngest are looked at, and how often that is until the older, and all, are: never in a pass."""

_PASSES = 100
"""From one look at all that there is to the next."""


def look_rarely_for_cycles() -> None:
    """To be called once, when all is imported; `looking_for_cycles` then looks at all between passes."""
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _ALL)


def looking_for_cycles(between: Between | None) -> Between:
    """Looks after each pass, when hardly anything is left of it, and then does what is to be done between passes. What
    a pass keeps for the next is looked at once: to walk all of it took an eighth of the processor time of a pass."""
    passes = 0

    def look(registered: tuple[InstanceKey, ...], until: float) -> int:
        nonlocal passes
        passes += 1
        gc.collect(1 if passes % _PASSES else 2)
        return between(registered, until) if between is not None else 0

    return look
