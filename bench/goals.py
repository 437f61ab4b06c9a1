"""What the program is to cost at most, and whether a run met it."""

from __future__ import annotations

from bench.row import DELETED, EMPTIED, FIRST, PASS, PROGRAM, REPLACED, STEADY, Row

_SECONDS = {
    (FIRST, 10_000): 4.0,
    (FIRST, 60_000): 25.0,
    (EMPTIED, 10_000): 4.0,
    (EMPTIED, 60_000): 25.0,
    (STEADY, 10_000): 1.1,
    (STEADY, 60_000): 5.0,
    (REPLACED, 10_000): 3.5,
    (REPLACED, 60_000): 25.0,
    (DELETED, 10_000): 10.0,
    (DELETED, 60_000): 60.0,
}
"""On the wall clock, from the start of the process to its end."""
_PROCESSOR = {(PASS, 1_000): 0.045, (PASS, 10_000): 0.3, (PASS, 60_000): 1.5}
"""Seconds, of one pass."""
_MEMORY = {(PASS, 1_000): 75, (STEADY, 10_000): 100, (STEADY, 60_000): 250}
"""MB."""
_REQUESTS = {(PASS, 1_000): 2}
"""To Eureka, of one pass: 40 a minute at a 3 s poll."""
_WAIT_TIMES = 2.0
"""Another client's 99th percentile during a first registration, beside that of an idle Eureka."""


def goal(size: int, row: Row) -> str:
    """In words, and whether it was met; empty where there is none."""
    if row.failed:
        return f"failed: {row.failed}"
    if row.program != PROGRAM:
        return ""
    place = row.scenario, size
    found = [
        _judged(f"{limit:g} s", value, limit)
        for limits, value in ((_SECONDS, row.wall), (_PROCESSOR, row.cpu))
        if (limit := limits.get(place)) is not None
    ]
    found += [
        _judged(f"{limit} MB", row.memory, limit)
        for limit in [_MEMORY.get(place)]
        if limit is not None
    ]
    if place in _REQUESTS and row.eureka is not None and row.eureka.requests is not None:
        found.append(_judged(f"{_REQUESTS[place]} requests", row.eureka.requests, _REQUESTS[place]))
    if row.stranger_ms and row.idle_ms:
        limit = _WAIT_TIMES * row.idle_ms[1]
        found.append(_judged(f"other client {limit:.1f} ms", row.stranger_ms[1], limit))
    return ", ".join(found)


def _judged(named: str, value: float, limit: float) -> str:
    return f"{named}: {'met' if value <= limit else f'{value / limit:.1f} times'}"
