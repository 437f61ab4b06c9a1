"""Standard output and error, and the logs on standard error: as text, or one JSON object a line."""

from __future__ import annotations

import errno
import io
import json
import logging
import os
import sys
from datetime import UTC, datetime

from eurekube_sync.model.sanitize import json_printable, printable

# Logs method, path and status of each call, without headers or credentials
_CALLS = "urllib3.connectionpool"
_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
_ended = False  # whether stdout takes no more, so that the rest is discarded
_lost = False  # whether that is because a write failed


def prepare_streams() -> None:
    """Replace a closed stream by /dev/null, and escape characters that an output's encoding
    lacks."""
    global _ended, _lost
    _ended = False
    _lost = False
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - for the rest of the process
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for the rest of the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def is_of_output(error: BaseException) -> bool:
    """Say whether an error that no other code handled is of stdout: each writer of another file
    handles its own."""
    return isinstance(error, OSError) and error.errno in _UNWRITABLE


def output_ended() -> bool:
    """Say whether nobody gets what is written from now on."""
    return _ended


def output_lost() -> bool:
    """Say whether a part of the output was lost."""
    return _lost


def discard_output(*, lost: bool = False) -> None:
    """Send the rest of stdout to /dev/null, because the reader has closed the pipe, or because the
    output failed and is `lost`."""
    global _ended, _lost
    _ended = True
    _lost = _lost or lost
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


class _Lines(logging.Formatter):
    """Formats `2026-11-22T03:15:53.197Z WARNING ...` with the traceback on further lines, or one
    JSON object."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        time = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        message = record.getMessage()
        trace = ""
        if record.exc_info:
            trace = self.formatException(record.exc_info)
        if not self._as_json:
            lines = [f"{time} {record.levelname} {printable(message)}"]
            if trace:
                lines += [printable(line) for line in trace.split("\n")]
            return "\n".join(lines)
        entry = {
            "time": time,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message,
        }
        if trace:
            entry["traceback"] = trace
        text = json.dumps(entry, ensure_ascii=False)
        return json_printable(text)


def set_up_logs(*, as_json: bool, verbose: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines(as_json=as_json))
    names = ["eurekube_sync"]
    level = logging.INFO
    if verbose:
        names.append(_CALLS)
        level = logging.DEBUG
    for name in names:
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
