"""Options that `owner` commands share. What only they have comes from no variable."""

from __future__ import annotations

from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.values import NAME, Duration

dry_run_option = option("--dry-run", is_flag=True, help="Show what would be done, and write nothing.")

observe_option = option(
    "--observe",
    variable=False,
    type=Duration(least=1),
    default=None,
    help="How long to watch whether somebody renews them.  [default: two of their renewal periods, and 5s]",
    show_default=False,
)

which_cluster_option = option(
    "--cluster",
    variable=False,
    type=NAME,
    metavar="UID",
    default=None,
    help="UID of the cluster. No cluster is then asked.",
)
