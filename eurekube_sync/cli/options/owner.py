"""Who we are."""

from __future__ import annotations

import click
from click.core import ParameterSource

from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.values import Owner

owner_option = option(
    "--owner",
    type=Owner(),
    required=True,
    help="Name of this installation. It is part of each instance id; use another one for each cluster.",
)


def named_owner(owner: str) -> tuple[str, ...]:
    """The option as it was given on this command line; whoever has it in a variable has it in the next shell, too."""
    given = click.get_current_context().get_parameter_source("owner") is ParameterSource.COMMANDLINE
    return ("--owner", owner) if given else ()
