"""Where the brake takes hold, and what a person releases: a plan id, or the file of a saved dry run."""

from __future__ import annotations

import json
from typing import Any

import click
import yaml

from eurekube_sync.brake import BrakeLimits
from eurekube_sync.brake.approval import Approval, PlanId, from_dry_run, is_plan_id
from eurekube_sync.cli.options.declare import Section, group, option
from eurekube_sync.cli.values import NAME, Percent
from eurekube_sync.files import open_named
from eurekube_sync.model.errors import ConfigurationError

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
        help="Hold removals if they are more than this percentage of all our UP instances, or of the UP instances of "
        "one app. Removals with evidence, such as a terminating pod, do not count.",
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
    help="Release held removals. A plan id releases exactly the removals that were held under it. A file is a dry run "
    "saved with -o json; it releases those of its removals that are still planned.",
)


_MOST_BYTES = 256 * 1024 * 1024
"""More than a dry run of 100,000 instances takes."""


def read_approval(text: str, *, now: float) -> Approval:
    """A plan id is 12 hex digits; whatever else is given is the name of a file. `now` in Unix seconds, when it is
    given. Raises ConfigurationError."""
    if is_plan_id(text):
        return PlanId(text, given=now)
    try:
        return from_dry_run(_read(text), text)
    except ConfigurationError as error:
        raise ConfigurationError(f"--approve {text} {error}") from error


def _read(path: str) -> Any:
    try:
        with open_named(path) as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ConfigurationError("is too large for a dry run")
        text = content.decode()
    except FileNotFoundError as error:
        raise ConfigurationError("is neither a plan id, which is 12 hex digits, nor a file") from error
    except OSError as error:
        raise ConfigurationError(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError("is not text: save a dry run with run --dry-run -o json") from error
    try:
        return json.loads(text) if text.lstrip().startswith("{") else yaml.load(text, Loader=_Plain)
    except (ValueError, LookupError, AttributeError, RecursionError, yaml.YAMLError) as error:
        raise ConfigurationError("is cut, or neither JSON nor YAML: save it again") from error


class _Plain(yaml.SafeLoader):
    """Takes times for the texts that they are."""


_Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
