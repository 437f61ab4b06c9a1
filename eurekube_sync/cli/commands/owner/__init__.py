"""`owner adopt`, `rename` and `purge`: who owns the instances, changed by a person; a file per command."""

from __future__ import annotations

import click

from eurekube_sync.cli.commands.owner.adopt import adopt_command
from eurekube_sync.cli.commands.owner.purge import purge_command
from eurekube_sync.cli.commands.owner.rename import rename_command
from eurekube_sync.cli.options.command import Group


@click.group(name="owner", cls=Group, short_help="Change who owns instances: adopt, rename, purge.")
def command() -> None:
    """Change who owns instances in Eureka: adopt, rename, purge.

    Each command has --dry-run. You may kill it at any point and repeat it.
    """


for _each in (adopt_command, rename_command, purge_command):
    command.add_command(_each)
