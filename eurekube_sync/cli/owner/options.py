"""Options that `owner` commands share, and which of two that exclude each other counts."""

from __future__ import annotations

from collections.abc import Callable

import click
from click.core import ParameterSource

from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.values import Duration, Name

dry_run_option = option("--dry-run", is_flag=True, help="Show what would be done; write nothing anywhere.")

observe_option = option(
    "--observe",
    type=Duration(least=1),
    default=None,
    help="How long to watch whether somebody renews them.  [default: two of their renewal periods, and 5s]",
    show_default=False,
)

which_cluster_option = option(
    "--cluster",
    type=Name(),
    metavar="UID",
    default=None,
    help="The cluster that is meant; no cluster is asked then.",
)


def command_line_first(*names: str) -> Callable[[str], bool]:
    """Of options that exclude each other, which count: those of the command line alone when it has any. A variable may
    stand there for another command."""
    given = on_command_line(*names)
    return lambda name: not given or name in given


def on_command_line(*names: str) -> frozenset[str]:
    """Which of these parameters were given there."""
    context = click.get_current_context()
    return frozenset(name for name in names if context.get_parameter_source(name) is ParameterSource.COMMANDLINE)
