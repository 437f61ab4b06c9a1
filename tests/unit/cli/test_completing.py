"""The words that a shell gets to complete."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from eurekube_sync.cli.command_line import cli
from eurekube_sync.cli.values import complete_contexts


@pytest.mark.parametrize("odd", ["t\x1b[2Jwo", "t\nwo", "t\u202ewo"])
def test_a_word_that_a_terminal_would_obey_is_not_completed(tmp_path: Path, odd: str) -> None:
    """A kubeconfig may come from a stranger."""
    file = tmp_path / "config"
    file.write_text(json.dumps({"contexts": [{"name": "two"}, {"name": odd}, {"name": "three"}]}))
    context = click.Context(cli)
    context.params = {"kubeconfig": str(file)}
    assert complete_contexts(context, click.Option(["--context"]), "t") == ["three", "two"]
