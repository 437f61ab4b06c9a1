"""What a pass may have known as evidence for a removal: a terminating pod, a deleted syncer, a
limit, a drain."""

from __future__ import annotations

from .troubles import Call
from .truth import Ref, Truth
from .view import PassView
from .world import Key


class Evidence:
    """Remembers for which syncers a removal is a person's wish."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._wished: set[Ref] = set()
        self._deleting: set[Ref] = set()
        self._deleted: dict[Ref, float] = {}
        """Until when a person's deletion of each syncer went on."""
        self._until: dict[Ref, float] = {}

    def look(self, now: float) -> None:
        """Notes which syncers are being deleted, and which have a limit."""
        self._until.update(dict.fromkeys(self._wished, now))
        self._deleted.update(dict.fromkeys(self._deleting, now))
        self._deleting = {ref for ref, one in self._truth.syncers.items() if one.deleting}
        self._wished = {
            ref
            for ref, one in self._truth.syncers.items()
            if one.deleting or one.asked.limit is not None
        }

    def deleted(self, view: PassView, ref: Ref) -> bool:
        """Whether a pass may have seen that a person deletes this syncer."""
        return ref in self._deleting or self._deleted.get(ref, -1.0) >= view.specs

    def of(self, view: PassView, key: Key) -> bool:
        """Whether there may be evidence for what the pass removed."""
        slices = min(view.lists.get(Call.SLICES, view.moment), view.begun)
        return self.asked_for(view, key) or self._truth.terminated_since(key, slices)

    def asked_for(self, view: PassView, key: Key) -> bool:
        """Whether a person may have asked for it: by a drain, a limit or a deletion."""
        ref = view.taken[key]
        return (
            self._truth.world.drains
            or ref in self._wished
            or self._until.get(ref, -1.0) >= view.specs
        )
