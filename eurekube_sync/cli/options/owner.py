"""Who we are, and what the `owner` commands share."""

from __future__ import annotations

from eurekube_sync.cli.options.declare import Section, on_command_line, option
from eurekube_sync.cli.values import NAME, OWNER, Duration

owner_option = option(
    "--owner",
    section=Section.WHERE,
    type=OWNER,
    required=True,
    help="Name of this installation. It is part of each instance id; use a different one in each cluster.",
)

optional_owner_option = option(
    "--owner",
    section=Section.WHERE,
    type=OWNER,
    default=None,
    callback=lambda _context, _parameter, given: given or "",
    show_default=False,
    help="Name of this installation. Default: the only one whose instances Eureka shows.",
)


def named_owner(owner: str) -> tuple[str, ...]:
    """The option as it was given on this command line; whoever has it in a variable has it in the next shell, too."""
    return ("--owner", owner) if on_command_line("owner") else ()


dry_run_option = option("--dry-run", is_flag=True, help="Show what would be done, and write nothing.")

observe_option = option(
    "--observe",
    variable=False,
    type=Duration(least=1),
    default=None,
    help="How long to watch whether somebody still renews the instances.  [default: twice the renewal period of the "
    "instances, plus 5s]",
    show_default=False,
)

which_cluster_option = option(
    "--cluster",
    variable=False,
    type=NAME,
    metavar="UID",
    default=None,
    help="UID of the cluster. With it, the command makes no call to Kubernetes.",
)
