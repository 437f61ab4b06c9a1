"""Where the annotation that drains is looked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from eurekube_sync.cli.options.declare import option
from eurekube_sync.desired.drain import Kind

F = TypeVar("F", bound=Callable[..., Any])

_CHOICES = {"on": frozenset({Kind.POD, Kind.NODE}), "pods": frozenset({Kind.POD}), "off": frozenset[Kind]()}


def drain_option(command: F) -> F:
    """The command gets the kinds beside Services, named `drains`."""
    return option(
        "--drain-annotations",
        "drains",
        type=click.Choice(list(_CHOICES)),
        default="on",
        callback=lambda _context, _parameter, chosen: _CHOICES[chosen],
        help="Look for the annotation eurekube.io/drain on Pods and Nodes too, or on Pods, or on Services alone.",
    )(command)
