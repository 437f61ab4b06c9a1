"""Writes down what a release promises: `python -m tests.cases.release 0.1.0`.

What its CRD accepts, a later CRD has to accept: a stored syncer that it refused would be stuck before
Kubernetes 1.30, because the API server would take no write of its finalizer or status. What programs
read and Eureka keeps stays as docs/versions.md says: exit codes, reasons, keys of the report, ids.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.model.ownership import instance_id
from eurekube_sync.model.reasons import Reason
from tests.cases import RELEASED, all_cases

NAMES = RELEASED / "names"
_SCHEMA = Path(__file__).parents[2] / "docs" / "report.schema.json"
_ADDRESSES = ("10.0.0.1", "2001:db8::1", "lb.example.com")


def names() -> dict[str, Any]:
    """Return what programs read, and the ids of a few instances."""
    report = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    ids = []
    for address in _ADDRESSES:
        id_ = instance_id(owner="a", namespace="shop", app="rating", address=address, port=8080)
        ids.append(id_)
    return {
        "exitCodes": {code.name: code.value for code in ExitCode},
        "reasons": sorted(reason.value for reason in Reason),
        report["properties"]["apiVersion"]["const"]: sorted(report["properties"]),
        "ids": ids,
    }


def main(version: str) -> None:
    """Write the accepted cases of today's tables, and today's names."""
    accepted = {case.name: case.manifest for case in all_cases() if case.accepted}
    for folder, content in ((RELEASED, accepted), (NAMES, names())):
        folder.mkdir(exist_ok=True)
        text = yaml.safe_dump(content, allow_unicode=True, sort_keys=False, width=100)
        (folder / f"{version}.yaml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
