"""A command whose help has headings, examples, and the rule of the variables once; it reports all missing options at
once.

The headings are made with a hook of click, because the extensions that have them cost every start: cloup 35 ms, and
rich-click 11 ms.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

import click

from eurekube_sync.cli.options.declare import Option, Section, variable_of
from eurekube_sync.cli.options.examples import EXAMPLES

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 200}
"""Help is as wide as the terminal: a sentence of an option is better read whole."""
_MORE = "See also: eurekube-sync help exit-codes, eurekube-sync help environment"


class Command(click.Command):
    """One that has options of ours."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reports every missing option, not only the first."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as error:
            missing = self._missing(ctx, given)
            if len(missing) < 2:
                raise
            names = " and ".join(f"'{parameter.opts[0]}'" for parameter in missing)
            raise click.UsageError(f"Missing options {names}.", ctx) from error

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples come first: a terminal shows the beginning of a long help, and a person wants a line to copy."""
        super().format_help_text(ctx, formatter)
        write_examples(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Under their headings; what has none is what the command is for."""
        shown: dict[Section, list[tuple[str, str]]] = {}
        others = []
        for one in self.get_params(ctx):
            record = one.get_help_record(ctx)
            if record is None:
                continue
            if isinstance(one, Option):
                shown.setdefault(one.section or Section.COMMAND, []).append(record)
            else:
                others.append(record)
        for section in Section:
            if records := shown.get(section):
                with formatter.section(section):
                    formatter.write_dl(records)
        with formatter.section("Help"):
            formatter.write_dl(others)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The rule, once: a third of the text would be the names of the variables."""
        super().format_epilog(ctx, formatter)
        ours = [one for one in self.params if isinstance(one, click.Option)]
        if given := {max(one.opts, key=len): variable_of(one.opts) for one in ours if one.envvar}:
            name = "--eureka-url" if "--eureka-url" in given else next(iter(given))
            without = ", ".join(one.opts[0] for one in ours if not one.envvar)
            but = f", except {without}" if without else ""
            formatter.write_paragraph()
            formatter.write_text(f"Each option is also a variable, such as {given[name]} for {name}{but}.")
        formatter.write(f"\n{_MORE}\n")

    def _missing(self, ctx: click.Context, args: list[str]) -> list[click.Parameter]:
        given, _, _ = self.make_parser(ctx).parse_args(args)
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option) and one.required]
        return [one for one in options if one.value_is_missing(one.consume_value(ctx, given)[0])]


def write_examples(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """What each does, and below it the line to copy, never broken."""
    _, _, name = ctx.command_path.partition(" ")
    examples = EXAMPLES.get(name, ())
    if examples:
        with formatter.section("Examples"):
            for what, line in examples:
                formatter.write_text(f"# {what}")
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def suggestion(name: str, commands: Iterable[str]) -> str:
    """What somebody may have meant who typed a command that is not there; empty for nothing alike."""
    alike = get_close_matches(name, sorted(commands), n=1)
    return f" Did you mean {alike[0]!r}?" if alike else ""


class Group(click.Group):
    """Commands, of which one that is mistyped is guessed."""

    command_class = Command

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """With the examples."""
        super().format_help_text(ctx, formatter)
        write_examples(ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Refuses an unknown command with the one that is most like it."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            ctx.fail(f"No such command {name!r}.{suggestion(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)
