"""How the demo speaks: a heading, a sentence, a command as a person would type it, a list."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.segment import Segment, Segments
from rich.text import Text

from eurekube_sync.cli.output.passes import pass_table
from eurekube_sync.controller.one_pass import PassReport


class Stage:
    """Prints the demo's story to a console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._chapter = 0

    def chapter(self, title: str, *sentences: str) -> None:
        """A numbered heading, and what it is about."""
        self._chapter += 1
        self.line()
        self._console.print(Text(f"{self._chapter}. {title}", style="bold cyan"))
        for sentence in sentences:
            self.line(f"   {sentence}")

    def command(self, line: str) -> None:
        self._console.print(Text.assemble(("   $ ", "dim"), (line, "bold")))

    def report(self, report: PassReport) -> None:
        """The report of a pass, as `run` prints it."""
        narrower = self._console.options.update(width=self._console.width - 3)
        for line in self._console.render_lines(pass_table(report), narrower, pad=False):
            self._console.print(Segments([Segment("   "), *line, Segment.line()]))

    def listing(self, title: str, lines: Sequence[tuple[str, str]]) -> None:
        """What somebody sees: a name and a state a line; nothing is said to be nothing."""
        self.line(f"   {title}")
        for name, state in lines:
            self._console.print(Text.assemble(f"     {name:<24}", (state, "green" if state == "UP" else "yellow")))
        if not lines:
            self._console.print(Text("     nothing", style="dim"))

    def line(self, text: str = "") -> None:
        self._console.print(Text(text))
