"""The addresses of the docs site, for messages: the wheel, the image and the chart have no docs."""

from __future__ import annotations

# An installed program has no pyproject.toml. A test compares this with it.
SITE = "https://eurekube-sync.example.com"


def page(name: str, anchor: str = "") -> str:
    """Return the address of a page, such as `running`, and of a heading on it."""
    if anchor:
        return f"{SITE}/{name}/#{anchor}"
    return f"{SITE}/{name}/"


def help_on(word: str) -> str:
    """Return the address of the help for a reason or a check."""
    return page("troubleshooting", word.lower())
