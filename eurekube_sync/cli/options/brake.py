"""Where the brake takes hold, and what a person releases."""

from __future__ import annotations

import click

from eurekube_sync.brake import BrakeLimits
from eurekube_sync.cli.options.declare import group, option
from eurekube_sync.cli.values import CountAndShare, Duration, Name, Percent


def _limits(
    brake_percent: float,
    brake_count: int,
    brake_ceiling: int,
    brake_apps_percent: float,
    brake_apps: int,
    brake_deletions: tuple[int, float],
    brake_confirm: float,
) -> BrakeLimits:
    return BrakeLimits(
        loss_percent=brake_percent,
        loss_floor=brake_count,
        loss_ceiling=brake_ceiling,
        apps_percent=brake_apps_percent,
        apps_floor=brake_apps,
        deleted_floor=brake_deletions[0],
        deleted_percent=brake_deletions[1],
        confirm_after=brake_confirm,
    )


brake_options = group(
    "brake",
    _limits,
    option("--brake-percent", type=Percent(), default=30.0, help="Hold above this, and ..."),
    option("--brake-count", type=click.IntRange(0), default=10, help="... above this many instances."),
    option("--brake-ceiling", type=click.IntRange(0), default=500, help="Hold above this many in any case."),
    option(
        "--brake-apps-percent",
        type=Percent(),
        default=5.0,
        help="Hold when more of the apps lose their last UP instance, or ...",
    ),
    option("--brake-apps", type=click.IntRange(0), default=1, help="... this many, whichever is more."),
    option(
        "--brake-deletions",
        type=CountAndShare(),
        metavar="COUNT,SHARE%",
        default="10,20%",
        help="Hold when deleted syncers take the last UP instance of more apps than both numbers.",
    ),
    option(
        "--brake-confirm",
        type=Duration(),
        default="20s",
        help="An app that goes to nothing without evidence waits for a pass this much later, as do dead pods among "
        "too many removals; 0: for none.",
    ),
)
"""The command gets them as `brake`, one `BrakeLimits`."""

approve_option = option(
    "--approve",
    variable=False,
    type=Name(),
    metavar="PLAN_ID|FILE",
    default=None,
    help="Release held removals: this very set of them, as a dry run or a held pass named it; or, of a "
    "dry run saved with -o json, what is still planned.",
)
