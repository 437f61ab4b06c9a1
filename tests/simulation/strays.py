"""The promise about another cluster behind our address, at every call.

elsewhere   a pass that was answered by another cluster changes nothing in Eureka, and nothing is
            ever written there; one that asked whose its lists are, which it need not if it has
            nothing to write, does not end as if all were well

A call that leads elsewhere after the last answer that the pass had of Kubernetes is a race that no
client can win, and so is an address that leads home again before the pass asks once more whose it
is.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from eurekube_sync.embedded.http import Request

from .troubles import Call
from .view import PassView, Violation

if TYPE_CHECKING:
    from .world import World

_FOUND_HOME = "what a pass did that asked when its address led home"


class Strays:
    """Sees each answer of another cluster, and what the pass does then."""

    def __init__(self, reached: Counter[str]) -> None:
        self._reached = reached

    def answered(self, view: PassView, call: Call, *, elsewhere: bool) -> None:
        """Notes that a read of Kubernetes was answered with 200."""
        view.last_elsewhere = elsewhere
        if call is Call.IDENTITY:
            view.found_home = view.strayed and not elsewhere
            view.found_elsewhere = view.found_elsewhere or elsewhere
        elif elsewhere:
            view.strayed = True
            view.found_home = False
            self._reached["a list of another cluster"] += 1

    def excuses(self, view: PassView) -> bool:
        """Whether the pass could not know that its lists are another cluster's."""
        if view.strayed and view.found_home:
            self._reached[_FOUND_HOME] += 1
        return view.strayed and view.found_home

    def judge_change(self, view: PassView, what: str) -> None:
        """Judges a change in Eureka."""
        if view.strayed:
            raise Violation("elsewhere", f"{what}, by a pass that another cluster answered")

    def judge_write(self, view: PassView, request: Request, other: World, before: int) -> None:
        """Judges a write that another cluster answered; `before` is the revision of its objects
        before the write."""
        if other.kubernetes.revision == before or self.excuses(view):
            return
        raced = not view.strayed and not view.last_elsewhere and request.method == "POST"
        if not raced:
            raise Violation("elsewhere", f"{request.method} {request.path} changed another cluster")
        self._reached["an event that another cluster got"] += 1

    def judge_pass(self, view: PassView, *, well: bool) -> None:
        """Judges the end of a pass; `well` says whether it reported that all is well."""
        if view.found_elsewhere and well:
            raise Violation(
                "elsewhere",
                "a pass that found another cluster behind its address said that all is well",
            )
