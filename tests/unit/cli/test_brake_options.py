"""The numbers that the brake's options accept."""

from __future__ import annotations

import click
import pytest

from eurekube_sync.cli.values import PERCENT


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("12.5", 12.5), (".5", 0.5), ("1e1", 10), ("0030", 30), (" 100", 100), (30.0, 30)],
)
def test_a_percentage_is_a_number_in_0_to_100(text: str | float, number: float) -> None:
    """Scripts may write it in different forms."""
    assert PERCENT.convert(text, None, None) == number


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "100.1", "30%", "x", ""])
def test_a_percentage_that_would_switch_the_brake_off_is_refused(text: str) -> None:
    """No number is greater than `nan`, so no loss would exceed it."""
    with pytest.raises(click.BadParameter):
        PERCENT.convert(text, None, None)
