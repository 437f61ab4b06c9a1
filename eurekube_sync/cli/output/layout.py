"""How lines and columns stand on a terminal, and in a file: nothing is padded to the right, and what somebody wrote is
made printable. And the marks: signs, or letters that every terminal can show."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import IO, TypeAlias

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.text import Text

from eurekube_sync.explain.links import Mark
from eurekube_sync.model.foreign_text import printable

Cell: TypeAlias = tuple[str, str]
"""A text and its style."""
_UNBOUNDED = 10_000
"""Columns of what is no terminal: one line a row and a sentence, for grep."""
_GAP = "  "
_ROOM = 36
"""Columns in which a reason is wrapped beside its row; with fewer it goes below."""
_COMMAND = re.compile(r"(?P<before>.*?[:,] )?(?P<command>(?:kubectl|curl|eurekube-sync) .*)")
_SIGNS = {
    Mark.OK: ("√", "+", "green"),
    Mark.BROKEN: ("×", "x", "bold red"),  # noqa: RUF001 - it is meant
    Mark.UNKNOWN: ("?", "?", "yellow"),
    Mark.NOTE: ("-", "-", "dim"),
}


def console_for(stream: IO[str], *, width: int | None = None) -> Console:
    """A console that colours at a terminal only (NO_COLOR and FORCE_COLOR are honoured) and wraps nothing elsewhere."""
    console = Console(file=stream, highlight=False, soft_wrap=False, width=width)
    if not console.is_terminal and width is None:
        console.width = _UNBOUNDED
    return console


def sign_of(mark: Mark) -> Text:
    """One character, which the terminal's character set has."""
    sign, plain, style = _SIGNS[mark]
    try:
        sign.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        sign = plain
    return Text(sign, style=style)


class Line:
    """A line with an indent and a mark, whose further lines begin below its first."""

    def __init__(self, text: str, *, mark: Text | None = None, indent: int = 0, style: str = "") -> None:
        self._text = Text(printable(text), style=style)
        self._head = Text(" " * indent) + (mark + Text(" ") if mark is not None else Text(""))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head = self._head
        for line in self._text.wrap(console, max(10, options.max_width - head.cell_len)) or [Text("")]:
            line.rstrip()
            yield head + line
            head = Text(" " * head.cell_len)


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


def marked(sentence: str) -> Line:
    """A sentence for a person to see to."""
    return Line(sentence, mark=Text("!", style="bold red"))


class Columns:
    """Rows of cells. The last cell is long: it stands beside the others if it fits or if there is much room, else below
    them. A row of fewer cells than the others is a heading, which is not aligned."""

    def __init__(self, rows: Sequence[tuple[Cell, ...]], headings: Sequence[str] = ()) -> None:
        shown = [tuple((printable(text), style) for text, style in row) for row in rows]
        self._rows = rows = [tuple((heading, "bold dim") for heading in headings), *shown] if headings else shown
        self._headings = headings
        self._number = max(map(len, rows))
        others = zip(*(row[:-1] for row in rows if len(row) == self._number), strict=True)
        self._widths = [max(cell_len(text) for text, _ in column) for column in others]
        self._taken = sum(self._widths) + len(_GAP) * len(self._widths)
        self._longest = max(cell_len(row[-1][0]) for row in rows)

    def beside(self, width: int) -> bool:
        """Whether the last cells stand beside the others in so many columns of the terminal."""
        return width - self._taken >= min(_ROOM, self._longest)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width - self._taken
        if self._headings and not self.beside(options.max_width):
            self._rows = [(*self._rows[0][:-1], ("", "")), *self._rows[1:]]
        if not console.is_terminal and room >= self._longest:  # with 10,000 rows rich takes longer than their pass
            plain = ([*(text + " " * pad for text, _, pad in self._padded(row)), row[-1][0]] for row in self._rows)
            yield Segment("".join(f"{''.join(parts).rstrip()}\n" for parts in plain))
            return
        for row in self._rows:
            line = Text.assemble(*((text + " " * pad, style) for text, style, pad in self._padded(row)))
            if len(row) == self._number and cell_len(row[-1][0]) > room < _ROOM:
                line.rstrip()
                yield line
                yield Line(row[-1][0], indent=4)
                continue
            for part in Text(*row[-1]).wrap(console, max(_ROOM, room)) or [Text("")]:
                line.append_text(part)
                line.rstrip()
                yield line
                line = Text(" " * self._taken)

    def _padded(self, row: tuple[Cell, ...]) -> Iterator[tuple[str, str, int]]:
        """Each cell but the last: its text, its style, and how many spaces follow it."""
        whole = len(row) == self._number
        for (text, style), width in zip(row[:-1], self._widths, strict=False):
            yield text, style, (max(0, width - cell_len(text)) if whole else 0) + len(_GAP)
