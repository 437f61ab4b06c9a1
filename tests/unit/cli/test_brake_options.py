"""The numbers that `--brake` accepts."""

from __future__ import annotations

import click
import pytest

from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.passes import brake_option
from eurekube_sync.model.struct import replace


def read(*arguments: str) -> BrakeLimits:
    """Return the limits that the command line reads."""

    @click.command(cls=Command)
    @brake_option
    def braked(brake: BrakeLimits) -> BrakeLimits:
        return brake

    limits = braked.main(list(arguments), standalone_mode=False)
    assert isinstance(limits, BrakeLimits)
    return limits


def test_each_number_of_the_brake_has_a_key() -> None:
    """What is not given has its default, and the default that is shown gives the same."""
    assert read() == BrakeLimits()
    every = "too-much=5,too-much-count=3,emptied=2,emptied-count=4,asked-for=6,asked-for-count=7"
    assert read("--brake", f"{every},confirm=1m") == BrakeLimits(
        loss_percent=5,
        loss_floor=3,
        app_loss_floor=3,
        apps_percent=2,
        apps_floor=4,
        asked_percent=6,
        asked_floor=7,
        confirm_after=60,
    )
    assert read("--brake", " emptied = 9 ") == replace(BrakeLimits(), apps_percent=9)
    assert read("--brake", brake_option_default()) == BrakeLimits()


def brake_option_default() -> str:
    """Return the default as `--help` shows it."""

    @click.command(cls=Command)
    @brake_option
    def braked(brake: BrakeLimits) -> None: ...

    return str(braked.params[0].default)


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("12.5", 12.5), (".5", 0.5), ("1e1", 10), ("0030", 30)]
)
def test_a_percentage_is_a_number_in_0_to_100(text: str, number: float) -> None:
    """Scripts may write it in different forms."""
    assert read("--brake", f"emptied={text}").apps_percent == number


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *((f"emptied={text}", "is not a percentage") for text in ("nan", "inf", "-1", "101", "")),
        ("too-much-count=-1", "too-much-count: '-1' is not a number"),
        ("too-much-count=1.5", "is not a number"),
        ("confirm=soon", "confirm: 'soon' is not a duration"),
        ("", "'' is not KEY=VALUE; the keys are too-much, too-much-count, emptied"),
        ("loss=3", "'loss=3' is not KEY=VALUE"),
        ("emptied", "'emptied' is not KEY=VALUE"),
        ("emptied=3,emptied=4", "it has emptied twice"),
    ],
)
def test_a_number_that_would_switch_the_brake_off_is_refused(text: str, words: str) -> None:
    """No number is greater than `nan`, so no loss would exceed it."""
    with pytest.raises(click.BadParameter, match=words):
        read("--brake", text)
