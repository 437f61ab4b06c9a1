"""Where the brake takes hold, and what a person releases."""

from __future__ import annotations

import click

from eurekube_sync.brake import BrakeLimits
from eurekube_sync.cli.options.declare import Section, group, option
from eurekube_sync.cli.values import NAME, Percent

_DEFAULT = BrakeLimits()


def _limits(loss_percent: float, loss_floor: float, loss_ceiling: float, apps_percent: float) -> BrakeLimits:
    return BrakeLimits(
        loss_percent=loss_percent,
        loss_floor=loss_floor,
        app_loss_floor=loss_floor,
        loss_ceiling=loss_ceiling,
        apps_percent=apps_percent,
    )


brake_options = group(
    "brake",
    _limits,
    option(
        "--brake-percent",
        "loss_percent",
        variable=False,
        type=Percent(),
        default=_DEFAULT.loss_percent,
        help="Hold removals if they are more than this percentage of our UP instances, or of those of one app, and "
        "more than --brake-count.",
    ),
    option(
        "--brake-count",
        "loss_floor",
        variable=False,
        type=click.IntRange(0),
        default=_DEFAULT.loss_floor,
        help="With this number of removals or fewer, --brake-percent holds nothing.",
    ),
    option(
        "--brake-ceiling",
        "loss_ceiling",
        variable=False,
        type=click.IntRange(0),
        default=_DEFAULT.loss_ceiling,
        help="Hold removals of more than this number of UP instances, whatever their percentage.",
    ),
    option(
        "--brake-apps-percent",
        "apps_percent",
        variable=False,
        type=Percent(),
        default=_DEFAULT.apps_percent,
        help="Hold removals if more than this percentage of our apps, and more than one app, would have no UP "
        "instance left.",
    ),
    section=Section.BRAKE,
)
"""The command gets them as `brake`, one `BrakeLimits`. A variable of a whole session would weaken every command."""

approve_option = option(
    "--approve",
    variable=False,
    section=Section.BRAKE,
    type=NAME,
    metavar="PLAN_ID|FILE",
    default=None,
    help="Release held removals. A plan id releases exactly its set. A file is a dry run saved with -o json. It "
    "releases the removals in it that are still planned.",
)
