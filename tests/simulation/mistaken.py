"""Defects in reusing results of the pass before: each reuses a result although it changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from eurekube_sync.adapters.eureka.wire import Decoded
from eurekube_sync.adapters.kubernetes.calls import Calls
from eurekube_sync.adapters.kubernetes.connection import Connection
from eurekube_sync.adapters.tries import AnswerTime
from eurekube_sync.apply import status
from eurekube_sync.controller import reconcile
from eurekube_sync.desired.resolve import Made
from eurekube_sync.model.struct import replace
from eurekube_sync.plan.earlier import EarlierPlan

from .defect import Defect


@contextmanager
def _by_its_id(self: Decoded, afresh: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    before: dict[Any, Any] = vars(self)["_known"] or {}
    now: dict[Any, Any] = {}

    def read(document: Any, app: str | None) -> Any:
        key = (document.app or app, document.instance_id)
        return now.setdefault(key, before.get(key) or afresh(document, app))

    yield read
    vars(self)["_known"] = now


def _as_before(observe: Callable[..., Any]) -> Callable[..., Any]:
    def wrong(
        registry: Any, ownership: Any, scope: Any, *, asked: float, before: Any = None
    ) -> Any:
        found = observe(registry, ownership, scope, asked=asked)
        same = before is not None and len(before.ours) == len(found.ours)
        return replace(found, ours=before.ours) if same else found

    return wrong


def _whatever_is_registered(self: EarlierPlan, desired: Any, observed: Any) -> Any:
    plan = self._plan
    same = {action.key for action in plan.renewals} == set(observed.ours)
    return plan if same and not plan.changes and not plan.blocked else None


class _NeverRenewed:
    """A connection that keeps the credentials of its beginning."""

    def __init__(self, connection: Connection) -> None:
        self.server, self.send = connection.server, connection.send

    def renew(self, within: AnswerTime) -> None:
        """Keeps them."""


def _with_its_first_token(begin: Callable[..., None]) -> Callable[..., None]:
    return lambda self, connection, tries: begin(self, _NeverRenewed(connection), tries)


def mistaken() -> tuple[Defect, ...]:
    """All of these defects, in the order of the table."""
    return (
        Defect(
            name="an instance of Eureka's list is known by its id",
            patches=((Decoded, "reading", _by_its_id),),
        ),
        Defect(
            name="a list that is as long as the last one is taken for the same",
            patches=((reconcile, "observe", _as_before(vars(reconcile)["observe"])),),
        ),
        Defect(
            name="credentials are read once",
            about="credentials",
            patches=((Calls, "__init__", _with_its_first_token(vars(Calls)["__init__"])),),
        ),
        Defect(
            name="a claim is known by its syncer", patches=((Made, "of_the_same", lambda *_: True),)
        ),
        Defect(
            name="a plan is known by its keys",
            patches=((EarlierPlan, "again", _whatever_is_registered),),
        ),
        Defect(
            name="a status that is not written yet is taken for written",
            patches=((status, "_is_steady", lambda claim, status: True),),
        ),
    )
