"""How many of something, in the words of a sentence. Knows no Eureka and no Kubernetes."""

from __future__ import annotations


def counted(number: float, noun: str, more: str | None = None) -> str:
    """`1 instance`, `2 instances`; `more` is the noun for every other number than one, by default with an s."""
    return f"{number:.12g} {one_or_more(number, noun, more or f'{noun}s')}"


def one_or_more(number: float, one: str, more: str) -> str:
    """The words that go with this number, such as `is` or `are`."""
    return one if number == 1 else more
