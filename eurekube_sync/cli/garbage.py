"""When Python looks for reference cycles.

A pass builds hundreds of thousands of objects that live to its end, and hardly a cycle among them. Python's own rule
walks all of them again and again while they grow: of 60,000 instances it took a third of the processor time of a pass.
"""

from __future__ import annotations

import gc

_YOUNG, _MIDDLE, _ALL = 50_000, 20, 1_000
"""Objects until the youngest are looked at, and how often that is until the older, and all, are: never in a pass."""


def look_rarely_for_cycles() -> None:
    """To be called once, when all is imported; `loop` looks at all after each pass, when hardly anything is left."""
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _ALL)
