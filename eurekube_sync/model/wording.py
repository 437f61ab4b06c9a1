"""Numbers, times and lists, in the words of a sentence. Knows no Eureka and no Kubernetes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime


def counted(number: float, noun: str, more: str | None = None) -> str:
    """`1 instance`, `2 instances`; `more` is the noun for every other number than one, by default with an s."""
    return f"{number:.12g} {one_or_more(number, noun, more or f'{noun}s')}"


def one_or_more(number: float, one: str, more: str) -> str:
    """The words that go with this number, such as `is` or `are`."""
    return one if number == 1 else more


def listed(words: Sequence[str], last: str) -> str:
    """`a`, `a or b`, `a, b or c`; `last` is the word before the last one."""
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def duration(seconds: float) -> str:
    """`30s`, `20m`, `1h30m`, as an option takes it; parts of a second stay as they are."""
    if seconds < 60 or seconds != int(seconds):
        return f"{seconds:g}s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return "".join(f"{number}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if number)


def rfc_3339(unix_seconds: float) -> str:
    """A time to the second, in UTC: `2026-01-31T12:00:00Z`."""
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def cut(text: str, most: int) -> str:
    """No more than so many characters of it."""
    return text if len(text) <= most else f"{text[:most]}..."


def span(seconds: float) -> str:
    """`12 s`, `41 min`, `3 h`, `5 d`: one unit, rounded down."""
    whole = max(0, int(seconds))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if whole >= (2 * size if size > 60 else size):
            return f"{whole // size} {unit}"
    return f"{whole} s"
