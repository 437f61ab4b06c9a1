"""The signs before a line, where the terminal can show them; else letters that every one can."""

from __future__ import annotations

import sys

from rich.text import Text

from eurekube_sync.explain.links import Mark

_SIGNS = {
    Mark.OK: ("√", "+", "green"),
    Mark.BROKEN: ("×", "x", "bold red"),  # noqa: RUF001 - it is meant
    Mark.UNKNOWN: ("?", "?", "yellow"),
    Mark.NOTE: ("-", "-", "dim"),
}


def sign_of(mark: Mark, encoding: str | None = None) -> Text:
    """One character; `encoding` is the terminal's, by default that of standard output."""
    sign, plain, style = _SIGNS[mark]
    encoding = encoding or getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        sign.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        sign = plain
    return Text(sign, style=style)
