"""Lines of the log: the time is UTC, each entry is one line, and control characters are escaped."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator

import pytest

from eurekube_sync.cli.output.streams import set_up_logs

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@pytest.fixture
def ours() -> Iterator[logging.Logger]:
    """Our logger, restored afterwards."""
    logger = logging.getLogger("eurekube_sync")
    before = (logger.handlers[:], logger.level, logger.propagate)
    yield logger
    logger.handlers[:], logger.level, logger.propagate = before


@pytest.mark.parametrize("as_json", [False, True])
def test_the_time_is_utc_in_every_form(
    ours: logging.Logger,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    as_json: bool,
) -> None:
    """Reports have the same form. A local time without a zone cannot be compared with a
    server's."""
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    set_up_logs(as_json=as_json, verbose=False)
    ours.handle(
        logging.makeLogRecord(
            {"levelno": 30, "levelname": "WARNING", "msg": "x", "created": 1_795_248_000.5}
        )
    )
    line = capsys.readouterr().err
    assert (
        json.loads(line)["time"] if as_json else line.split(" ")[0]
    ) == "2026-11-21T08:00:00.500Z"


def test_a_line_is_one_line(ours: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    """Text from others cannot start a false log line, and cannot move the cursor."""
    set_up_logs(as_json=False, verbose=False)
    ours.warning("a\n2026-11-22T00:00:00.000Z ERROR b\x1b[2J\u202e")
    (line,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(
        TIME + r" WARNING a\\x0a2026-11-22T00:00:00.000Z ERROR b\\x1b\[2J\\u202e", line
    )


@pytest.mark.parametrize("as_json", [False, True])
def test_a_bug_is_logged_with_its_place(
    ours: logging.Logger, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    """In JSON, the traceback has its own key."""
    set_up_logs(as_json=as_json, verbose=False)
    try:
        raise ZeroDivisionError("of nothing\x9b\u200b")
    except ZeroDivisionError:
        ours.exception("a bug\x9b")
    written = capsys.readouterr().err
    assert not {"\x9b", "\u200b"} & set(written)
    entry = json.loads(written) if as_json else {"message": written, "traceback": written}
    assert "a bug" in entry["message"]
    assert "ZeroDivisionError: of nothing" in entry["traceback"]
    assert "test_logs.py" in entry["traceback"]
