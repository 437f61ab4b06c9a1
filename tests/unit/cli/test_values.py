"""Option values with a form of their own: durations."""

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
    """It has one or more units, or is a number of seconds."""
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "h", "1h30", "1 h", "-1s", "1d", "1e3s", "nan"])
def test_a_text_that_is_no_duration_is_refused(text: str) -> None:
    """The sentence shows the valid forms."""
    with pytest.raises(click.BadParameter, match="write 30s, 2m or 1h30m"):
        Duration().convert(text, None, None)


def test_a_duration_has_bounds() -> None:
    """The error shows them as durations."""
    with pytest.raises(click.BadParameter, match="at least 1m"):
        Duration(least=60).convert("30s", None, None)
    with pytest.raises(click.BadParameter, match="at most 576h"):
        Duration(most=576 * 3600).convert("600h", None, None)
