"""Compares, in every pass of every story, what a pass reuses with a full computation.

reuse       a value that a pass reuses equals a newly computed one
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from types import ModuleType
from typing import Any

from eurekube_sync.adapters.eureka import wire
from eurekube_sync.adapters.kubernetes import calls
from eurekube_sync.adapters.kubernetes.calls import digest
from eurekube_sync.apply import kubernetes as settle
from eurekube_sync.controller import reconcile
from eurekube_sync.desired.claims import Desired
from eurekube_sync.model.struct import replace
from eurekube_sync.plan.earlier import EarlierPlan
from eurekube_sync.plan.make import make_plan

from .view import Violation

_REUSING: tuple[tuple[ModuleType, str, str], ...] = (
    (wire, "decode_list", "decoded"),
    (reconcile, "observe", "before"),
    (reconcile, "claim_all", "earlier"),
    (settle, "statuses", "earlier"),
)
"""Functions that reuse a result, and the argument that has it. Without the argument they compute
everything."""


@contextmanager
def compared() -> Iterator[None]:
    """Makes every difference a broken promise while this context lasts."""
    seen: dict[bytes, bytes] = {}

    def known_by(raw: bytes | memoryview) -> bytes:
        name = digest(raw)
        if seen.setdefault(name, bytes(raw)) != bytes(raw):
            raise Violation("reuse", "an item of a list was taken for another")
        return name

    made = {(module, name): getattr(module, name) for module, name, _ in _REUSING}
    for module, name, argument in _REUSING:
        setattr(module, name, _comparing(made[module, name], argument))
    setattr(calls, "digest", known_by)  # noqa: B010 - mypy knows it as that module's own alone
    plan = EarlierPlan.plan

    def planned(self: EarlierPlan, *inputs: Any) -> Any:
        found = plan(self, *inputs)
        if found != make_plan(*inputs):
            raise Violation("reuse", "a plan took for the same what had changed")
        return found

    setattr(EarlierPlan, "plan", planned)  # noqa: B010
    try:
        yield
    finally:
        setattr(EarlierPlan, "plan", plan)  # noqa: B010
        for (module, name), function in made.items():
            setattr(module, name, function)
        setattr(calls, "digest", digest)  # noqa: B010


def _comparing(function: Callable[..., Any], argument: str) -> Callable[..., Any]:
    position = list(signature(function).parameters).index(argument)

    @wraps(function)
    def comparing(*given: Any, **named: Any) -> Any:
        found = function(*given, **named)
        anew = {name: value for name, value in named.items() if name != argument}
        if _comparable(found) != _comparable(function(*given[:position], **anew)):
            raise Violation("reuse", f"{function.__name__} took for the same what had changed")
        return found

    return comparing


def _comparable(result: Any) -> Any:
    """The result without what only computes more on request, which is another object each time."""
    if isinstance(result, Desired):
        return replace(result, sockets=dict, heirs=None)
    return result
