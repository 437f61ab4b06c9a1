"""How long a call takes, on however busy a machine."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def processor_seconds(call: Callable[[], object]) -> float:
    """The time of this process alone, without the collection of other tests' garbage."""
    gc.disable()
    try:
        begun = time.process_time()
        call()
        return time.process_time() - begun
    finally:
        gc.enable()
