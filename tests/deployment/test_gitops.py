"""Argo CD's health script, from docs/install.md, in the Lua that Argo CD runs: 5.1, without most of
its libraries."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_documentation import blocks

PAGE = Path(__file__).parents[2] / "docs" / "install.md"
FORBIDDEN = ("string", "io", "os", "math", "debug", "package", "require", "python")


def health(document: dict[str, Any]) -> tuple[str, str]:
    """The status and the message of an object."""
    lua = import_module("lupa.lua51").LuaRuntime()  # it has no types
    for name in FORBIDDEN:
        lua.globals()[name] = None
    lua.globals().obj = lua.table_from(document, recursive=True)
    (script,) = blocks(PAGE.read_text(), "lua")
    found = lua.execute(script)
    return found.status, found.message


def syncer(
    conditions: dict[str, str] | None, *, generation: int = 2, **spec: Any
) -> dict[str, Any]:
    """One whose last pass saw generation 2, with the status of each condition."""
    listed = [
        {"type": kind, "status": value, "message": f"about {kind}"}
        for kind, value in (conditions or {}).items()
    ]
    status = (
        {} if conditions is None else {"status": {"observedGeneration": 2, "conditions": listed}}
    )
    return {"metadata": {"name": "rating", "generation": generation}, "spec": spec, **status}


WELL = {"Ready": "True", "Synced": "True", "Conflict": "False", "RemovalHeld": "False"}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (syncer(None), ("Progressing", "no pass has seen this syncer yet")),
        (syncer(WELL, generation=3), ("Progressing", "the last pass saw an older spec")),
        (syncer({}), ("Progressing", "no pass has seen this syncer yet")),
        (syncer(WELL), ("Healthy", "about Ready")),
        (syncer(WELL, suspend=True), ("Suspended", "about Ready")),
        (syncer({**WELL, "Ready": "False"}), ("Degraded", "about Ready")),
        (syncer({**WELL, "Conflict": "True"}), ("Degraded", "about Conflict")),
        (
            syncer({**WELL, "RemovalHeld": "True", "Ready": "False"}),
            ("Degraded", "about RemovalHeld"),
        ),
        (syncer({**WELL, "RemovalHeld": "True"}, suspend=True), ("Degraded", "about RemovalHeld")),
    ],
)
def test_argo_cd_reads_the_conditions(document: dict[str, Any], expected: tuple[str, str]) -> None:
    """What a person has to see to is Degraded, and an older spec's conditions say nothing of the
    newest."""
    assert health(document) == expected
