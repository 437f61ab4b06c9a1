"""Writes down what the CRD of a release accepts: `python -m tests.cases.release 0.1.0`.

A later CRD has to accept all of it. A stored syncer that it refused would be stuck before
Kubernetes 1.30: the API server would take no write of its finalizer or status.
"""

from __future__ import annotations

import sys

import yaml

from tests.cases import RELEASED, all_cases


def main(version: str) -> None:
    """Write the accepted cases of today's tables."""
    accepted = {case.name: case.manifest for case in all_cases() if case.accepted}
    text = yaml.safe_dump(accepted, allow_unicode=True, sort_keys=False, width=100)
    (RELEASED / f"{version}.yaml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
