"""How long something has lasted, and until when, as a person says it."""

from __future__ import annotations


def span(seconds: float) -> str:
    """`12 s`, `41 min`, `3 h`, `5 d`: one unit, rounded down."""
    whole = max(0, int(seconds))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if whole >= (2 * size if size > 60 else size):
            return f"{whole // size} {unit}"
    return f"{whole} s"
