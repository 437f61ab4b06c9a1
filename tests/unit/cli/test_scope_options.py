"""The options of a scope: given back to the command line, they give the same scope. So a copied
command has it, too."""

from __future__ import annotations

import click
import pytest

from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.scope import scope_options
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.selector import parse_selector

SCOPES = {
    "all": Scope(),
    "namespaces": Scope(namespaces=frozenset({"shop", "pay"})),
    "class": Scope(syncer_class="edge"),
    "labels": Scope(selector=parse_selector("team=a,tier in (x, y),!old")),
    "other namespaces": Scope(allowed=frozenset({("shop", "*"), ("pay", "bank")})),
    "grants": Scope(granted_only=True),
    "all of them": Scope(
        namespaces=frozenset({"shop"}),
        selector=parse_selector("!old"),
        syncer_class="edge",
        allowed=frozenset({("shop", "*")}),
    ),
}


@pytest.mark.parametrize("name", SCOPES)
def test_a_command_to_paste_has_the_same_scope(name: str) -> None:
    """Each option is tried alone, and several together."""
    found: list[Scope] = []

    @click.command(cls=Command)
    @scope_options
    def command(scope: Scope) -> None:
        found.append(scope)

    command.main(list(SCOPES[name].options), standalone_mode=False)
    assert found == [SCOPES[name]]
