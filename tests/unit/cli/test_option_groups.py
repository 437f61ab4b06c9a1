"""A group of options: it gives one value, or is refused as a whole in one sentence."""

from __future__ import annotations

from dataclasses import dataclass

import click
import pytest

from eurekube_sync.cli.options.command import Command
from eurekube_sync.cli.options.declare import group, option


@dataclass(frozen=True)
class Pair:
    """Two numbers. The first is not greater than the second."""

    low: int
    high: int


def parse(low: int, high: int) -> Pair:
    """Raise for options that contradict each other."""
    if low > high:
        raise click.UsageError(f"--low {low} is above --high {high}")
    return Pair(low, high)


@click.command(cls=Command)
@group("pair", parse, option("--low", type=int, default=1), option("--high", type=int, default=9))
@option("--after", is_flag=True)
def command(pair: Pair, after: bool) -> tuple[Pair, bool]:
    """Return the values of the options."""
    return pair, after


def test_the_command_gets_one_value_and_its_other_options() -> None:
    """--help lists the options in the order of their declaration."""
    assert command.main(["--low", "3", "--after"], standalone_mode=False) == (Pair(3, 9), True)
    assert [one.name for one in command.params] == ["low", "high", "after"]


def test_options_that_do_not_fit_together_give_one_sentence() -> None:
    """The value is not created."""
    with pytest.raises(click.UsageError, match="--low 3 is above --high 2"):
        command.main(["--low", "3", "--high", "2"], standalone_mode=False)
