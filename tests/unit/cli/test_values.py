"""Option values that are more than a word or a number."""

from __future__ import annotations

import click
import pytest

from eurekube_sync.cli.values import Duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30),
        ("0.5", 0.5),
        ("30s", 30),
        ("2m", 120),
        ("500ms", 0.5),
        ("1h30m", 5400),
        ("1m30s", 90),
        ("1.5h", 5400),
    ],
)
def test_a_duration_is_written_as_kubernetes_writes_it(text: str, seconds: float) -> None:
    """Several units after one another, or a number of seconds."""
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "h", "1h30", "1 h", "-1s", "1d", "1e3s", "nan"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """One sentence says how it is written."""
    with pytest.raises(click.BadParameter, match="write 30s, 2m or 1h30m"):
        Duration().convert(text, None, None)


def test_a_duration_has_bounds() -> None:
    """They are told as durations, too."""
    with pytest.raises(click.BadParameter, match="at least 1m"):
        Duration(least=60).convert("30s", None, None)
    with pytest.raises(click.BadParameter, match="at most 576h"):
        Duration(most=576 * 3600).convert("600h", None, None)
