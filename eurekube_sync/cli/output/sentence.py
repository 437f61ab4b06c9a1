"""A sentence of the report, and what it is about."""

from __future__ import annotations

from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One thing to see to, whole."""

    text: str
    note: bool = False
    """Nothing is wrong: it is good to know."""
    in_a_row: bool = False
    """A row of the table says the same."""
    reason: str = ""
    """A machine word that several syncers may share; empty where the sentence has none."""
    about: str = ""
    """The syncer, where there is a reason."""


def of_syncer(ref: SyncerRef, reason: str, message: str, *, note: bool = False) -> Sentence:
    """A sentence about one syncer, under a machine word."""
    return Sentence(text=f"syncer {ref}: {reason}: {message}", note=note, reason=reason, about=str(ref))
