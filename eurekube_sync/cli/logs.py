"""Logs go to stderr, as text or as one JSON object a line; the report goes to stdout."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

_CALLS = "urllib3.connectionpool"
"""Tells of each call to either server: method, path and status, neither header nor credential."""


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        return json.dumps(entry, ensure_ascii=False)


def set_up_logs(*, as_json: bool, verbose: bool) -> None:
    """Call once, before anything is logged."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines() if as_json else logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name in ("eurekube_sync", _CALLS) if verbose else ("eurekube_sync",):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(logging.DEBUG if verbose else logging.INFO)
        logger.propagate = False
