"""docs/report.schema.json, as a program that reads reports would use it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "docs" / "report.schema.json").read_text()
)
_VALIDATOR = Draft202012Validator(SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER)


def faults(report: Any) -> list[str]:
    """What the schema does not allow, a line each."""
    return [f"{error.json_path}: {error.message}" for error in _VALIDATOR.iter_errors(report)]
