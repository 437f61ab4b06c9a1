"""Loads the programs in `docs/` that write its pages; they belong to no package."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

_DOCS = Path(__file__).parents[2] / "docs"


def program(name: str) -> ModuleType:
    """The program `docs/NAME.py`."""
    found = importlib.util.spec_from_file_location(name, _DOCS / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module
