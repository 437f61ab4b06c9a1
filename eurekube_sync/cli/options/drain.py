"""Where the annotation that drains is looked for."""

from __future__ import annotations

import click

from eurekube_sync.cli.options.declare import option
from eurekube_sync.desired.drain import Kind

_CHOICES = {
    "services": frozenset[Kind](),
    "pods": frozenset({Kind.POD}),
    "all": frozenset({Kind.POD, Kind.NODE}),
}

drain_option = option(
    "--drain-annotations",
    "drains",
    type=click.Choice(list(_CHOICES)),
    default="services",
    callback=lambda _context, _parameter, chosen: _CHOICES[chosen],
    help="Where the annotation eurekube.io/drain is looked for: on Services, also on Pods, or also on Nodes (all).",
)
"""The command gets the kinds beside Services, named `drains`."""
