"""The picture in the README shows the program's present output."""

from __future__ import annotations

import html
import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMAND = "python docs/picture.py"
_LINE = re.compile(r'<text [^>]*clip-path="url\(#[\w-]+-line-(\d+)\)">(.*?)</text>')


def shown(svg: str) -> list[str]:
    """The lines of the picture without spaces, whose number depends on the font."""
    lines: dict[int, str] = {}
    for number, text in _LINE.findall(svg):
        lines[int(number)] = lines.get(int(number), "") + "".join(html.unescape(text).split())
    return [lines[number] for number in sorted(lines) if lines[number]]


def test_the_picture_is_what_the_program_prints() -> None:
    """The command that makes the picture prints the same text when it runs again."""
    console = runpy.run_path(str(ROOT / "docs" / "picture.py"))["draw"]()
    printed = ["".join(line.split()) for line in console.export_text().splitlines()]
    assert shown((ROOT / "docs" / "terminal.svg").read_text()) == [line for line in printed if line]


def test_the_readme_says_how_the_picture_is_made() -> None:
    """The command is below the picture."""
    readme = (ROOT / "README.md").read_text()
    assert "](docs/terminal.svg)" in readme
    assert f"`{COMMAND}`" in readme


def test_the_picture_loads_nothing() -> None:
    """It has no font, image or script from elsewhere."""
    svg = (ROOT / "docs" / "terminal.svg").read_text()
    assert not re.search(r"url\([\"']?http|href=|<script|<image", svg)
