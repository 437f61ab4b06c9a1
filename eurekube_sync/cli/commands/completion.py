"""`completion`: a script that lets a shell complete commands, options, contexts, namespaces and syncers."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from eurekube_sync.cli.options.command import Command

_PROGRAM = "eurekube-sync"
_VARIABLE = "_EUREKUBE_SYNC_COMPLETE"
"""Where click's script says that it asks for words."""


@click.command(cls=Command, short_help="Print a script for bash, zsh or fish.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print a script that lets a shell complete commands, options, contexts, namespaces and syncers.

    Namespaces and syncers come from the cluster. If it cannot be asked within two seconds, none is offered.
    """
    found = get_completion_class(shell)
    assert found is not None
    # The source of bash's class starts bash to learn its version, which the machine that prints need not have.
    click.echo(ShellComplete.source(found(context.find_root().command, {}, _PROGRAM, _VARIABLE)))
