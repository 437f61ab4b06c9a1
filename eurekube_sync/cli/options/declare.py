"""The one way to declare an option: its variable, its heading in `--help`, and a group of options that become one
value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

import click
from click.core import ParameterSource

ENVIRONMENT_PREFIX = "EUREKUBE_SYNC_"

F = TypeVar("F", bound=Callable[..., Any])


class Section(StrEnum):
    """The headings of `--help`, in the order in which they come."""

    WHERE = "Who and where"
    SCOPE = "Which syncers"
    COMMAND = "What to do"
    PASSES = "Passes"
    BRAKE = "The brake"
    LOGIN = "Login to Eureka, and TLS"
    LEASES = "Leases"
    CALLS = "Calls"
    WATCHING = "Watching it"
    REPORT = "Report and logs"


class Option(click.Option):
    """One that knows under which heading it stands."""

    section: Section | None = None


def option(*names: str, variable: bool = True, section: Section | None = None, **settings: Any) -> Callable[[F], F]:
    """A click option that can also be set as `EUREKUBE_SYNC_` and its long name. Without `section` it stands under that
    of its group, else among what the command is for.

    Not so without `variable`: what decides something once, such as `--yes`, has to stand in the command itself. A
    variable that is set for a whole session would decide it for every command.
    """
    if variable:
        settings.setdefault("envvar", variable_of(names))
    settings.setdefault("show_default", True)
    declare = click.option(*names, cls=Option, **settings)
    return declare if section is None else _under(section, declare)


def _under(section: Section, declare: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Declares an option, and puts it there if it has no heading yet."""

    def declared(command: Any) -> Any:
        decorated = declare(command)
        newest = decorated.__click_params__[-1]
        newest.section = newest.section or section
        return decorated

    return declared


def variable_of(names: Sequence[str]) -> str:
    long_name = next(name for name in names if name.startswith("--")).split("/")[0].removeprefix("--")
    return ENVIRONMENT_PREFIX + long_name.upper().replace("-", "_")


def on_command_line(parameter: str) -> bool:
    """Whether it was given there, and not by a variable or a default."""
    context = click.get_current_context(silent=True)
    return context is not None and context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE


def group(
    name: str, parse: Callable[..., object], *options: Callable[[Any], Any], section: Section | None = None
) -> Callable[[F], F]:
    """Declares the options, in the order of `--help`; the command gets them as one value called `name`.

    `parse` makes it of theirs, which it takes by name, and raises click.UsageError for what does not go together. A
    parameter without an option keeps its default.
    """
    taken = tuple(signature(parse).parameters)

    def decorate(command: F) -> F:
        @wraps(command)
        def with_one_value(**given: Any) -> Any:
            value = parse(**{parameter: given.pop(parameter) for parameter in taken if parameter in given})
            return command(**{name: value}, **given)

        decorated: Any = with_one_value
        for declare in reversed(options):
            decorated = (declare if section is None else _under(section, declare))(decorated)
        result: F = decorated
        return result

    return decorate
