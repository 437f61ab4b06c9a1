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


def look_rarely_for_cycles() -> None:
    """To be called once, when all is imported; `looking_for_cycles` then looks at all between passes."""
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _ALL)


def looking_for_cycles(between: Between | None) -> Between:
    """Looks after each pass, when hardly anything is left of it, and then does what is to be done between passes."""

    def look(registered: tuple[InstanceKey, ...], until: float) -> int:
        gc.collect()
        return between(registered, until) if between is not None else 0

    return look
