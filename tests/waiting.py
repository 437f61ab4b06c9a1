"""Waiting for something to be so, instead of for a while: a busy machine takes as long as it
takes."""

from __future__ import annotations

import time
from collections.abc import Callable

_POLL_SECONDS = 0.05


def wait_until(
    reached: Callable[[], bool], tell: str | Callable[[], str], *, seconds: float = 180
) -> None:
    """Polls until it is so. AssertionError after so long, with what did not come: a sentence, or
    what `tell` gives then."""
    deadline = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > deadline:
            raise AssertionError(
                f"after {seconds:g} s: {tell if isinstance(tell, str) else tell()}"
            )
        time.sleep(_POLL_SECONDS)
