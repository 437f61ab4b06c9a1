"""A line with an indent and a mark, whose further lines begin below its first; nothing is padded to the right. What to
do next, whose command stays in one piece. And the marks: signs, or letters that every terminal can show."""

from __future__ import annotations

import re
import sys

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from eurekube_sync.explain.links import Mark
from eurekube_sync.model.foreign_text import printable

_COMMAND = re.compile(r"(?P<before>.*?[:,] )?(?P<command>(?:kubectl|curl|eurekube-sync) .*)")


class Line:
    """What somebody wrote is made printable here."""

    def __init__(self, text: str, *, mark: Text | None = None, indent: int = 0, style: str = "") -> None:
        self._text = Text(printable(text), style=style)
        self._head = Text(" " * indent) + (mark + Text(" ") if mark is not None else Text(""))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(10, options.max_width - self._head.cell_len)
        first, *rest = self._text.wrap(console, room) or [Text("")]
        for head, line in ((self._head, first), *((Text(" " * self._head.cell_len), one) for one in rest)):
            line.rstrip()
            yield head + line


class Next:
    """What to do next. A command that is longer than its line gets one of its own, which only the terminal folds: so it
    can be copied and pasted."""

    def __init__(self, text: str, *, indent: int = 0) -> None:
        self._text = printable(text)
        self._indent = indent

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        mark = Text("Next:", style="bold")
        found = _COMMAND.fullmatch(self._text)
        if found is None or self._indent + mark.cell_len + 1 + len(self._text) <= options.max_width:
            yield Line(self._text, mark=mark, indent=self._indent)
            return
        before = (found["before"] or "").rstrip(", ")
        yield Line(before, mark=mark, indent=self._indent) if before else Text(" " * self._indent) + mark
        yield Text(f"{' ' * self._indent}  {found['command']}", no_wrap=True, overflow="ignore")


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
