"""How many of something, in the words of a sentence. Knows no Eureka and no Kubernetes."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: float, noun: str, more: str | None = None) -> str:
    """`1 instance`, `2 instances`; `more` is the noun for every other number than one, by default with an s."""
    return f"{number:.12g} {one_or_more(number, noun, more or f'{noun}s')}"


def one_or_more(number: float, one: str, more: str) -> str:
    """The words that go with this number, such as `is` or `are`."""
    return one if number == 1 else more


def listed(words: Sequence[str], last: str) -> str:
    """`a`, `a or b`, `a, b or c`; `last` is the word before the last one."""
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
