"""Writes the notes of a release to `dist/notes.md`: `python .github/release_notes.py v0.1.0`.

They are the version's part of CHANGELOG.md, with addresses in place of its relative links. A tag
that is not the program's version, and a version without a date, are refused, because a release
cannot be taken back.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "eurekube_sync" / "__init__.py"
CHANGELOG = ROOT / "CHANGELOG.md"
NOTES = ROOT / "dist" / "notes.md"


def program_version() -> str:
    """Return what `eurekube-sync --version` says."""
    found = re.search(r'^__version__ = "(.+?)"', PROGRAM.read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{PROGRAM} has no __version__")
    return found[1]


def notes_of(version: str) -> str:
    """Return the part of CHANGELOG.md below the heading `## VERSION - DATE`."""
    for part in CHANGELOG.read_text().split("\n## ")[1:]:
        heading, _, text = part.partition("\n")
        named, _, date = heading.partition(" - ")
        if named != version:
            continue
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", date) is None:
            raise SystemExit(f"CHANGELOG.md: give the heading of {version} its date: {heading}")
        return text.strip() + "\n"
    raise SystemExit(f"CHANGELOG.md has no part for {version}")


def linked(notes: str, tag: str) -> str:
    """Return the notes with each relative link as an address of the tagged file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    folder = f"{project['urls']['Repository']}/blob/{tag}/"
    return re.sub(r"\]\((?!\w+:)", f"]({folder}", notes)


def main() -> None:
    """Check the tag, and write the notes."""
    if len(sys.argv) != 2:
        raise SystemExit("give the tag: python .github/release_notes.py v0.1.0")
    tag, version = sys.argv[1], program_version()
    if tag != f"v{version}":
        raise SystemExit(f"the tag {tag} is not v{version}, the version of the program")
    NOTES.parent.mkdir(exist_ok=True)
    NOTES.write_text(linked(notes_of(version), tag))


if __name__ == "__main__":
    main()
