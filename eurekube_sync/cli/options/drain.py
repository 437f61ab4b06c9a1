"""Where the annotation that drains is looked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from eurekube_sync.cli.options.declare import Section, option
from eurekube_sync.desired.drain import Kind

_CHOICES = {
    "services": frozenset[Kind](),
    "pods": frozenset({Kind.POD}),
    "all": frozenset({Kind.POD, Kind.NODE}),
}


def _option(default: str, more: str = "") -> Callable[[Any], Any]:
    return option(
        "--drain-annotations",
        "drains",
        section=Section.SCOPE,
        type=click.Choice(list(_CHOICES)),
        default=default,
        callback=lambda _context, _parameter, chosen: _CHOICES[chosen],
        help="Objects on which the annotation eurekube.io/drain counts: Services; Services and Pods; or Services, "
        "Pods and Nodes (all)." + more,
    )


drain_option = _option("services")
"""The command gets the kinds beside Services, named `drains`."""

look_for_drains_option = _option("all", " Give the same value as run, whose default is services.")
"""The same for a person who asks what is drained."""
