"""A defect, and a context in which the product has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """One defect. `patches` are (where, name, replacement)."""

    name: str
    patches: tuple[tuple[Any, str, Any], ...]
    about: str = ""
    """The subject of the stories that should show it; empty for any."""


@contextmanager
def made_wrong(defect: Defect) -> Iterator[None]:
    """Patches the product with the defect meanwhile. Raises KeyError for a patch of a name that
    does not exist."""
    before = [(where, name, vars(where)[name]) for where, name, _ in defect.patches]
    for where, name, wrong in defect.patches:
        setattr(where, name, wrong)
    try:
        yield
    finally:
        for where, name, right in before:
            setattr(where, name, right)
