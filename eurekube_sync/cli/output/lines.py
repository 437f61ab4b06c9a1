"""A line with an indent and a mark, whose further lines begin below its first; nothing is padded to the right."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from eurekube_sync.model.foreign_text import printable


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
