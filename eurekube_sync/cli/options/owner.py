"""Who we are."""

from __future__ import annotations

from eurekube_sync.cli.options.declare import on_command_line, option
from eurekube_sync.cli.values import OWNER

owner_option = option(
    "--owner",
    type=OWNER,
    required=True,
    help="Name of this installation. It is part of each instance id; use another one for each cluster.",
)


def named_owner(owner: str) -> tuple[str, ...]:
    """The option as it was given on this command line; whoever has it in a variable has it in the next shell, too."""
    return ("--owner", owner) if on_command_line("owner") else ()
