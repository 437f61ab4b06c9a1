"""The hint on what to do next, in a narrow terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from eurekube_sync.cli.output.table import Next


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("kubectl get svc -n s5", ["Next: kubectl get svc -n s5"]),
        (
            f"curl -X DELETE http://{'e' * 60}/eureka",
            ["Next:", f"  curl -X DELETE http://{'e' * 60}/eureka"],
        ),
        (
            f"see that eurekube-sync runs: kubectl get {'x' * 40} | grep eurekube",
            ["Next: see that eurekube-sync runs:", f"  kubectl get {'x' * 40} | grep eurekube"],
        ),
        (
            "turn its Eureka client off, or delete the syncer",
            ["Next: turn its Eureka client off, or", "      delete the syncer"],
        ),
    ],
)
def test_a_command_stays_in_one_piece(text: str, lines: list[str]) -> None:
    """Only the terminal breaks a command's line, so that a person can copy it. Other text is
    wrapped."""
    written = io.StringIO()
    Console(file=written, width=40).print(Next(text), crop=False)
    assert written.getvalue().splitlines() == lines
