"""A problem: what is wrong, and with what. It is made where it is decided; reports, logs,
conditions, explanations and exit codes only show it."""

from __future__ import annotations

from msgspec import Struct

from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Server


class Problem(Struct, frozen=True, kw_only=True):
    """Something that a person may have to see to, or to know."""

    reason: Reason
    subject: str  # what it is about, such as `Pods of shop`; empty if the text names it
    text: str  # what is so, and what to do
    # What fails as a whole, such as `Pods`, for the log of outages; empty for single objects
    source: str = ""
    server: Server | None = None  # the server that could not be read or written
    syncer: bool = False  # whether the subject is a syncer, so that `kubectl` shows the reason, too
    unknown: bool = False  # whether too little could be read to say yes or no
    note: bool = False  # nothing is wrong, but somebody may wonder
    in_rows: bool = False  # whether a table of instances says the same
    # With another one, such as another plan id, the problem is worth telling again
    edition: str = ""

    @property
    def name(self) -> str:
        """What it is about, and the reason, without its words of now."""
        if self.syncer:
            return f"syncer {self.subject}: {self.reason}"
        if self.subject:
            return f"{self.subject}: {self.reason}"
        return str(self.reason)

    @property
    def sentence(self) -> str:
        """The subject and the text, as a report and a log show them."""
        if self.syncer:
            return f"syncer {self.subject}: {self.reason}: {self.text}"
        if self.subject:
            return f"{self.subject}: {self.text}"
        return self.text
