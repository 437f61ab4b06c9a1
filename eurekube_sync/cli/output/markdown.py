"""A dry run as Markdown, for a comment of a pull request: the table, the sentences and the summary line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from eurekube_sync import __version__
from eurekube_sync.cli.output.rows import Danger, Row, folded, rows_of, signs_in
from eurekube_sync.cli.output.summary import summary
from eurekube_sync.cli.output.words import gathered, told
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.foreign_text import printable
from eurekube_sync.model.wording import rfc_3339

_MOST_CHARACTERS = 60_000
"""Of the rows: GitHub refuses a comment of more than 65,536 characters, and GitLab one of more than a million."""
_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#!~])")
_LINK = re.compile(r"(?<=@)|(?<=:)(?=//)|(?<=www)(?=\.)", re.IGNORECASE)
"""The places where a space without width parts what would be a mention or a link."""


def pass_markdown(report: PassReport, notices: Sequence[str] = ()) -> str:
    """Held rows are folded, and registrations stand under a heading that opens. Only registrations are ever cut, and
    the last line of their table says how many."""
    rows = list(folded(rows_of(report)))
    dangerous = [row for row in rows if row.danger is not Danger.REGISTER]
    registrations = [row for row in rows if row.danger is Danger.REGISTER]
    lines = [f"### eurekube-sync: {_text(summary(report))}", ""]
    lines += [*_table(dangerous), ""] if dangerous else []
    if registrations:
        left = _MOST_CHARACTERS - sum(map(len, lines))
        lines += [f"<details><summary>{len(registrations)} to register</summary>", ""]
        lines += [*_cut(list(_table(registrations)), left), "", "</details>", ""]
    sentences = [*notices, *(one.text for one in gathered([one for one in told(report) if not one.in_a_row]))]
    lines += [*(f"- {_text(one)}" for one in sentences), ""] if sentences else []
    cluster = f", cluster {_text(report.cluster)}" if report.cluster else ""
    legend = ", ".join(f"`{sign}` {meaning}" for sign, meaning in signs_in(rows))
    lines += [f"{legend}", ""] if legend else []
    lines += [f"owner `{report.owner}`{cluster}, {rfc_3339(report.at)}, eurekube-sync {__version__}"]
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield "| | app | instance | status | why | syncer |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        cells = (row.app, row.id, row.status, row.why, row.syncer)
        yield f"| `{row.sign}` | {' | '.join(map(_text, cells))} |"


def _cut(lines: list[str], most: int) -> Iterator[str]:
    """As many whole rows as fit, and how many do not."""
    used = 0
    for number, line in enumerate(lines):
        used += len(line) + 1
        if used > most and number > 1:
            yield f"\n... and {len(lines) - number} more; `-o json` has them all"
            return
        yield line


def _text(words: str) -> str:
    """What somebody wrote is text: neither markup, nor a link, nor a mention that would call a person."""
    escaped = _MARKUP.sub(r"\\\1", printable(words).replace("&", "&amp;"))
    return _LINK.sub("\u200b", escaped)
