"""Who we are."""

from __future__ import annotations

from eurekube_sync.cli.options.declare import option
from eurekube_sync.cli.values import Owner

owner_option = option(
    "--owner",
    type=Owner(),
    required=True,
    help="Name of this installation, part of each instance id; another one for each cluster.",
)
