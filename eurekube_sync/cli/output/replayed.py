"""Recorded passes as lines, as the table of one, and as data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from eurekube_sync import __version__
from eurekube_sync.cli.output.table import Diff, Line, marked, rows_of
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.controller.record import Record, decisions
from eurekube_sync.model.foreign_text import printable
from eurekube_sync.model.values import dataclass
from eurekube_sync.model.wording import counted, rfc_3339


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One recorded pass."""

    at: float  # Unix seconds
    what: str = ""  # what is shown of it; empty for all
    damaged: str = ""  # why it cannot be read
    record: Record | None = None  # as it was recorded; None where it is damaged
    again: PassReport | None = None  # planned again; None where that was not asked for, or the pass had no plan

    @property
    def report(self) -> Mapping[str, Any]:
        return self.record.report if self.record else {}

    @property
    def in_short(self) -> str:
        """When it was, and its one line."""
        return f"{rfc_3339(self.at)}  {self.report.get('summary', '')}"

    @property
    def differs(self) -> bool:
        """Whether this version plans otherwise."""
        if self.record is None or self.again is None or self.again.basis is None:
            return False
        return sorted(decisions(self.again.basis.braked)) != sorted(self.record.decided)

    @property
    def decided(self) -> list[Mapping[str, Any]]:
        """What was changed or held, and what could not be, as it was reported."""
        actions = [one for one in self._entries("actions") if one.get("action") != "renew"]
        held = [{**one, "held": True} for one in self._entries("held")]
        blocked = [{**one, "action": "blocked"} for one in self._entries("blocked")]
        return [
            one
            for one in (*actions, *held, *blocked)
            if self.concerns(one.get("app"), one.get("id"), one.get("syncer"))
        ]

    def concerns(self, *names: object) -> bool:
        """Whether it is shown: 10.0.0.7 is not in 10.0.0.70."""
        before = r"(?<![0-9.])" if self.what[:1].isdigit() else ""
        after = r"(?![0-9])" if self.what[-1:].isdigit() else ""
        pattern = f"{before}{re.escape(self.what)}{after}"
        return any(re.search(pattern, str(name or ""), re.IGNORECASE) for name in names)

    def _entries(self, key: str) -> list[Mapping[str, Any]]:
        found = self.report.get(key)
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def replay_table(found: Sequence[Replayed]) -> RenderableType:
    """A line for each pass that decided something; of what was asked about a line for each decision."""
    parts: list[RenderableType] = []
    quiet = blind = 0
    for one in found:
        if one.damaged:
            parts.append(marked(one.damaged))
        elif not one.decided and one.report.get("unknown"):
            blind += 1
        elif not one.decided:
            quiet += 1
        elif one.what:
            parts += [Line(f"{rfc_3339(one.at)}  {_decision(entry)}") for entry in one.decided]
        else:
            parts.append(Line(one.in_short))
    about = f" about {found[0].what}" if found[0].what else ""
    passes, range_ = counted(len(found), "pass", "passes"), f"{rfc_3339(found[0].at)} to {rfc_3339(found[-1].at)}"
    last = f"{passes} recorded, {range_}; {quiet} decided nothing{about}"
    last += f", {blind} could not plan everything" if blind else ""
    return Group(*parts, Text(printable(last), style="bold"))


def _decision(entry: Mapping[str, Any]) -> str:
    action, detail = entry.get("action"), entry.get("detail")
    done = "held" if entry.get("held") else entry.get("result") or action
    return (
        f"{action}  {entry.get('app')}/{entry.get('id')}  {done}: {entry.get('why')}{f' ({detail})' if detail else ''}"
    )


def pass_again_table(one: Replayed) -> RenderableType:
    """One pass: what it decided, and every sentence that it said."""
    parts: list[RenderableType] = []
    rows = [row for row in (rows_of(one.again) if one.again else ()) if one.concerns(row.app, row.id, row.syncer)]
    if rows:
        parts.append(Diff(rows))
    elif one.what:
        parts.append(Line(f"nothing was planned for {one.what}"))
    messages = one.report.get("messages")
    said = messages if isinstance(messages, list) else ()
    parts += [Line(str(sentence), mark=Text("-", style="dim")) for sentence in said]
    if one.again is None:
        parts.append(marked("this pass could not make a plan; the lines above say why"))
    elif one.record and one.differs:
        other = f"version {one.record.version} planned this pass differently"
        parts.append(marked(f"{other}; this is the plan of version {__version__}"))
    return Group(*parts, Text(printable(one.in_short), style="bold"))


def replay_data(found: Sequence[Replayed]) -> dict[str, Any]:
    return {
        "passes": [
            {
                "at": rfc_3339(one.at),
                "damaged": one.damaged or None,
                "decided": [dict(entry) for entry in one.decided],
                "samePlan": None if one.again is None else not one.differs,
                "report": dict(one.report) if not one.what else None,
            }
            for one in found
        ]
    }
