"""Whether a status is written again when only its words changed.

A server that fails may say so differently each time, with a request id or the moment. To copy each of these sentences
into every status would be a write per syncer and pass, to an API server that may be failing itself.
"""

from __future__ import annotations

from dataclasses import replace

from eurekube_sync.apply.conditions import PARTLY_FAILED
from eurekube_sync.model.kubernetes import Condition, ConditionStatus, SyncerStatus

REWORDED_SECONDS = 300.0
"""A failure that goes on is reported in its latest words once in each such stretch of the wall clock ..."""
FIRST_PART_SECONDS = 60.0
"""... and by a process that begins, only in its first part."""


def worth_writing(before: SyncerStatus | None, after: SyncerStatus, *, words: bool) -> bool:
    """Whether a status says something new. Other `words` of a failure that goes on count only where they are asked
    for; those about removals that are held, which name what releases them, always do."""
    if before is None or words:
        return before != after
    return before != after and _without_words(before) != _without_words(after)


def _without_words(status: SyncerStatus) -> SyncerStatus:
    if not any(_repeats_server(condition) for condition in status.conditions):
        return status
    conditions = tuple(replace(one, message="") if _repeats_server(one) else one for one in status.conditions)
    return replace(status, conditions=conditions, errors=("",) * len(status.errors))


def _repeats_server(condition: Condition) -> bool:
    """Whether its message may be a server's own."""
    return condition.status is ConditionStatus.UNKNOWN or condition.reason == PARTLY_FAILED
