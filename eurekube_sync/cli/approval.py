"""The value of `--approve`: a plan id, or the file of a saved dry run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from eurekube_sync.brake.approval import Approval, PlanId, from_dry_run, is_plan_id
from eurekube_sync.model.errors import ConfigurationError

_MOST_BYTES = 256 * 1024 * 1024
"""More than a dry run of 100,000 instances takes."""


def read_approval(text: str, *, now: float) -> Approval:
    """A plan id is 12 hex digits; whatever else is given is the name of a file. `now` in Unix seconds, when it is
    given. Raises ConfigurationError."""
    if is_plan_id(text):
        return PlanId(text, given=now)
    try:
        return from_dry_run(_read(Path(text)), text)
    except ConfigurationError as error:
        raise ConfigurationError(f"--approve {text} {error}") from error


def _read(path: Path) -> Any:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ConfigurationError("is too large for a dry run")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigurationError("is neither a plan id, which is 12 hex digits, nor a file") from error
    except OSError as error:
        raise ConfigurationError(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError("is not text: save a dry run with run --dry-run -o json") from error
    try:
        return json.loads(text) if text.lstrip().startswith("{") else yaml.load(text, Loader=_Plain)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise ConfigurationError("is cut, or neither JSON nor YAML: save it again") from error


class _Plain(yaml.SafeLoader):
    """Takes times for the texts that they are."""


_Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
