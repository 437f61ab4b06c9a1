"""One defect, and the product that has it for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """One mistake. `patches` are (where, name, what stands there instead)."""

    name: str
    patches: tuple[tuple[Any, str, Any], ...]
    about: str = ""
    """What the stories are about that are to show it; empty: whatever comes."""


@contextmanager
def made_wrong(defect: Defect) -> Iterator[None]:
    """The product has this defect meanwhile. A patch of a name that is not there is an error of the table."""
    before = [(where, name, vars(where)[name]) for where, name, _ in defect.patches]
    for where, name, wrong in defect.patches:
        setattr(where, name, wrong)
    try:
        yield
    finally:
        for where, name, right in before:
            setattr(where, name, right)
