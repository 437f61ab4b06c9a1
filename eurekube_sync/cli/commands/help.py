"""`help`: what --help says of a command, and two topics that belong to all of them."""

from __future__ import annotations

import click

from eurekube_sync.cli.options.command import Command, suggestion
from eurekube_sync.cli.options.declare import ENVIRONMENT_PREFIX, variable_of
from eurekube_sync.cli.variables import all_commands, options_of
from eurekube_sync.controller.exit_codes import ExitCode

_OTHERS = (
    (f"{ENVIRONMENT_PREFIX}EUREKA_PASSWORD", "The password for Eureka. There is no option for it."),
    (f"{ENVIRONMENT_PREFIX}DEBUG", "With 1, an internal error shows its traceback."),
    ("KUBECONFIG", "The kubeconfig, where --kubeconfig is not given."),
    ("NO_COLOR", "No colours."),
    ("FORCE_COLOR", "Colours even where stdout is not a terminal."),
    ("COLUMNS", "The width of the report and of the help, instead of the terminal's."),
)
_TOPICS = ("exit-codes", "environment")


@click.command(cls=Command, short_help="Show help for a command or a topic.")
@click.argument("topic", nargs=-1, metavar="[COMMAND|TOPIC]")
@click.pass_context
def command(context: click.Context, topic: tuple[str, ...]) -> None:
    """Show help for a command or a topic.

    The topic exit-codes lists what each exit code means. The topic environment lists the variables.
    """
    formatter = context.make_formatter()
    match topic:
        case ("exit-codes",):
            _write_exit_codes(formatter)
        case ("environment",):
            _write_variables(formatter, context)
        case (name, *_) if name in _TOPICS:
            raise click.UsageError(f"{name!r} is a topic, and takes no other word")
        case _:
            formatter.write(_of_command(context.find_root(), topic))
    click.echo(formatter.getvalue(), nl=False)


def _of_command(context: click.Context, names: tuple[str, ...]) -> str:
    for name in names:
        group = context.command
        found = group.get_command(context, name) if isinstance(group, click.Group) else None
        if found is None:
            known = group.list_commands(context) if isinstance(group, click.Group) else []
            topics = _TOPICS if context.parent is None else ()
            raise click.UsageError(f"No such command or topic {name!r}.{suggestion(name, [*known, *topics])}")
        context = click.Context(found, info_name=name, parent=context)
    return f"{context.get_help()}\n"


def _write_exit_codes(formatter: click.HelpFormatter) -> None:
    formatter.write_text(
        "The exit code is that of the last pass. If several codes apply, it is the one to act on first."
    )
    formatter.write_paragraph()
    formatter.write_dl([(f"{code.value:3} {code.name}", code.meaning.replace("`", "")) for code in ExitCode])


def _write_variables(formatter: click.HelpFormatter, context: click.Context) -> None:
    """Each option once, with the first sentence of its help in the first command that has it."""
    options = [one for _, command in all_commands(context.find_root()) for one in options_of(command)]
    variables = {variable_of(one.opts): (one.help or "").split(". ")[0] for one in reversed(options) if one.envvar}
    formatter.write_text(
        "Each variable sets the option of the same name. An option on the command line overrides its variable. "
        "The limits of the brake have no variable. Options that decide something once, such as --approve, have none "
        "either."
    )
    with formatter.section("Options"):
        formatter.write_dl([(name, f"{text.rstrip('.')}.") for name, text in sorted(variables.items())], col_max=48)
    with formatter.section("Others"):
        formatter.write_dl(_OTHERS, col_max=48)
    with formatter.section("Options without a variable, in one command or more"):
        formatter.write_text(", ".join(sorted({max(one.opts, key=len) for one in options if not one.envvar})))
