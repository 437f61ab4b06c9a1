"""Words for messages: numbers, times and lists."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime


def counted(number: float, noun: str, more: str | None = None) -> str:
    """Return `1 instance`, `2 instances`; `more` is the plural, by default the noun with an s."""
    return f"{number:.12g} {one_or_more(number, noun, more or f'{noun}s')}"


def one_or_more(number: float, one: str, more: str) -> str:
    """Return the singular or the plural for a number, such as `is` or `are`."""
    if number == 1:
        return one
    return more


def port_fault(place: str) -> str:
    """Return what is wrong with the number after the last colon of `host:port`, as the end of a
    sentence; empty if nothing is, or if there is no number."""
    _, _, port = place.rpartition(":")
    digits = port.lstrip("0")[:6]  # int() refuses thousands of digits
    if not port.isdecimal() or 1 <= int(digits or 0) <= 65535:
        return ""
    return f"has the port {port[:20]}, and a port is a number from 1 to 65535"


def listed(words: Sequence[str], last: str) -> str:
    """Return `a`, `a or b`, `a, b or c`; `last` is the conjunction."""
    *first, final = words
    if first:
        return f"{', '.join(first)} {last} {final}"
    return final


def some_of(words: Sequence[str], most: int = 3) -> str:
    """Return `a, b, c and 4 more`."""
    shown = ", ".join(words[:most])
    if len(words) > most:
        return f"{shown} and {len(words) - most} more"
    return shown


def and_more(number: int) -> str:
    """Return ` (and 3 more)` for a sentence about the first of 4 things."""
    if number > 1:
        return f" (and {number - 1} more)"
    return ""


def duration(seconds: float) -> str:
    """Return `30s`, `20m`, `1h30m`, `1h0m5s`, as in an option; a fraction of a second stays."""
    if seconds < 60 or seconds != int(seconds):
        return f"{seconds:.10g}s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours}h" if hours else ""
    if minutes or (hours and rest):
        text += f"{minutes}m"
    if rest:
        text += f"{rest}s"
    return text


def rfc_3339(unix_seconds: float) -> str:
    """Return `2026-01-31T12:00:00Z`: the time in UTC, to the second."""
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]}..."


def span(seconds: float) -> str:
    """Return `12 s`, `41 min`, `3 h`, `5 d`: one unit, rounded down."""
    whole = max(0, int(seconds))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if whole >= (2 * size if size > 60 else size):
            return f"{whole // size} {unit}"
    return f"{whole} s"
