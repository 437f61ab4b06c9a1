"""The commands that need no server: `validate`, `crd`, `completion` and `help`."""

from __future__ import annotations

import json
import re
import sys

import click
import msgspec
import yaml
from click.shell_completion import ShellComplete, get_completion_class

from eurekube_sync.cli.options.command import Command, suggestion, write_options
from eurekube_sync.cli.options.declare import (
    COMMON,
    ENVIRONMENT_PREFIX,
    check_present,
    option,
    options_of,
)
from eurekube_sync.cli.output.streams import discard_output
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.explain.links import Check
from eurekube_sync.manifests.crd import crd_texts
from eurekube_sync.manifests.documents import Report
from eurekube_sync.manifests.files import validate_paths
from eurekube_sync.model.docs import help_on, page
from eurekube_sync.model.reasons import Reason, Topic
from eurekube_sync.model.sanitize import json_printable, printable
from eurekube_sync.model.text import counted

_TOPICS = ("exit-codes", "environment", "options", "reasons")
_WORDS = {word.value.lower(): word for word in (*Reason, *Check)}
"""The reasons and checks, by their names in lower case."""
_LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
_OTHER_VARIABLES = (
    (f"{ENVIRONMENT_PREFIX}EUREKA_PASSWORD", "The password for Eureka. There is no option for it."),
    (f"{ENVIRONMENT_PREFIX}DEBUG", "With 1, an internal error shows its traceback."),
    ("KUBECONFIG", "The kubeconfig, where --kubeconfig is not given."),
    ("NO_COLOR", "No colours."),
    ("FORCE_COLOR", "Colours even where stdout is not a terminal."),
    (
        "COLUMNS",
        "The width of the report at a terminal, and of the help. In a file each row is one line.",
    ),
)


@click.command(
    cls=Command, short_help="Validate EurekaSyncers and EurekaImports in files, offline."
)
@click.argument("files", nargs=-1, required=True, type=click.Path())
@option(
    "--output",
    "-o",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    help="Output format.",
)
@option(
    "--allow-empty",
    variable=False,
    is_flag=True,
    help="Exit 0 even if there is no EurekaSyncer or EurekaImport.",
)
def validate_command(files: tuple[str, ...], output: str, allow_empty: bool) -> ExitCode:
    """Validate EurekaSyncers and EurekaImports in FILES offline, as the API server and run would.

    FILES are files of YAML or JSON documents, folders (searched for *.yaml, *.yml and *.json), or -
    for standard input. Objects of other kinds are skipped. It is an error if there is none of
    these two.
    """
    for name in files:
        check_present(name, "FILES")
    report = validate_paths(files, stdin=sys.stdin.buffer, allow_empty=allow_empty)
    try:
        _write(report, output)
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
    if not report.ok:
        return ExitCode.INVALID_MANIFEST
    return ExitCode.OK


def _write(report: Report, output: str) -> None:
    data = msgspec.to_builtins(report)
    data["ok"] = report.ok
    match output:
        case "json":
            text = json.dumps(data, indent=2, ensure_ascii=False)
            click.echo(json_printable(text))
        case "yaml":
            click.echo(yaml.safe_dump(data, sort_keys=False), nl=False)
        case _:
            for finding in report.findings:
                click.echo(printable(str(finding)))
            click.echo(_summary(report))


def _summary(report: Report) -> str:
    """Return the line that says what was checked, and whether it is valid."""
    verdict = "valid"
    if not report.ok:
        verdict = counted(report.errors, "error")
    if report.warnings:
        warnings = counted(report.warnings, "warning")
        verdict = f"{verdict}, {warnings}"
    checked: list[str] = []
    if report.syncers or not report.imports:
        checked.append(counted(report.syncers, "syncer"))
    if report.imports:
        checked.append(counted(report.imports, "import"))
    objects = ", ".join(checked)
    files = counted(report.files, "file")
    summary = f"{verdict}: {objects} in {files}"
    if report.others:
        others = counted(report.others, "other object")
        summary = f"{summary}, {others} skipped"
    return summary


@click.command(cls=Command, short_help="Print the CRDs.")
def crd_command() -> None:
    """Print the CustomResourceDefinitions of EurekaSyncers and EurekaImports."""
    click.echo(crd_texts(), nl=False)


@click.command(cls=Command, short_help="Print the completion script for bash, zsh or fish.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print a script that lets a shell complete commands, options, contexts, namespaces and
    syncers.

    Namespaces and syncers come from the cluster. If it cannot be asked within two seconds, none is
    offered.
    """
    completion = get_completion_class(shell)
    assert completion is not None
    # Not the source of bash's own class, which runs bash to learn its version: this machine may
    # have no bash.
    command = context.find_root().command
    program = completion(command, {}, "eurekube-sync", "_EUREKUBE_SYNC_COMPLETE")
    click.echo(ShellComplete.source(program))


@click.command(cls=Command, short_help="Show help for a command or a topic.")
@click.argument("topic", nargs=-1, metavar="[COMMAND|TOPIC]")
@click.pass_context
def help_command(context: click.Context, topic: tuple[str, ...]) -> None:
    """Show help for a command or a topic.

    The topic exit-codes lists what each exit code means. The topic environment lists the variables.
    The topic options lists the options of login, TLS and calls, which most commands have. The topic
    reasons lists the reasons of conditions and events; each of them is a topic, too.
    """
    formatter = context.make_formatter()
    match topic:
        case ("exit-codes",):
            _write_exit_codes(formatter)
        case ("environment",):
            _write_variables(formatter, context)
        case ("options",):
            options = options_of(context.find_root().command, context)
            common = {option.name: option for option in options if option.section in COMMON}
            write_options(common.values(), context, formatter)
        case ("reasons",):
            _write_reasons(formatter)
        case (name,) if name.lower() in _WORDS:
            _write_word(formatter, _WORDS[name.lower()])
        case (name, *_) if name in _TOPICS or name.lower() in _WORDS:
            raise click.UsageError(f"{name!r} is a topic, and takes no other word")
        case _:
            formatter.write(_of_command(context.find_root(), topic))
    click.echo(formatter.getvalue(), nl=False)


def _write_exit_codes(formatter: click.HelpFormatter) -> None:
    """Write each exit code with its meaning."""
    formatter.write_text(
        "The exit code is that of the last pass. If several codes apply, it is the one to act on "
        "first."
    )
    formatter.write_paragraph()
    codes: list[tuple[str, str]] = []
    for code in ExitCode:
        meaning = code.meaning.replace("`", "")
        codes.append((f"{code.value:3} {code.name}", meaning))
    formatter.write_dl(codes)


def _write_reasons(formatter: click.HelpFormatter) -> None:
    """Write each reason with its meaning, under its group."""
    for topic in Topic:
        with formatter.section(topic.value):
            rows = []
            for reason in Reason:
                if reason.topic is topic:
                    rows.append((reason.value, _plain(reason.meaning)))
            formatter.write_dl(rows)


def _write_word(formatter: click.HelpFormatter, word: Reason | Check) -> None:
    """Write what a reason or check means, what to do, and where it is in the docs."""
    meaning = _plain(word.meaning)
    formatter.write_text(f"{word.value}: {meaning}")
    formatter.write_paragraph()
    if word.cure:
        cure = _plain(word.cure)
        formatter.write_text(f"Do: {cure}")
    else:
        formatter.write_text("Nothing is to be done.")
    formatter.write_paragraph()
    formatter.write(f"See {help_on(word.value)}\n")


def _plain(markdown: str) -> str:
    """Return a text of the docs without its markup, and with the addresses of its links."""
    with_addresses = _LINK.sub(_with_address, markdown)
    return with_addresses.replace("`", "")


def _with_address(link: re.Match[str]) -> str:
    text = link[1]
    name, _, anchor = link[2].partition("#")
    if not name:  # another reason, which has its own help
        return text
    address = page(name.removesuffix(".md"), anchor)
    return f"{text} ({address})"


def _of_command(context: click.Context, names: tuple[str, ...]) -> str:
    """Return the help of a command. Raises click.UsageError for an unknown name."""
    for name in names:
        known: list[str] = []
        command = None
        if isinstance(context.command, click.Group):
            known = [*context.command.list_commands(context), *_TOPICS]
            known += [word.value for word in _WORDS.values()]
            command = context.command.get_command(context, name)
        if command is None:
            hint = suggestion(name, known)
            raise click.UsageError(f"No such command or topic {name!r}.{hint}")
        context = command.context_class(command, info_name=name, parent=context)
    return f"{context.get_help()}\n"


def _write_variables(formatter: click.HelpFormatter, context: click.Context) -> None:
    """Write each option once, with the first sentence of its help in the first command that has
    it."""
    options = options_of(context.find_root().command, context)
    variables: dict[str, str] = {}
    without: set[str] = set()
    for declared in options:
        if not declared.envvar:
            without.add(declared.long_name)
            continue
        help_text = declared.help or ""
        sentence, _, _ = help_text.partition(". ")
        sentence = sentence.rstrip(".")
        variables.setdefault(declared.variable, f"{sentence}.")
    formatter.write_text(
        "Each variable sets the option of the same name. An option on the command line overrides "
        "its variable."
    )
    with formatter.section("Options"):
        formatter.write_dl(sorted(variables.items()), col_max=48)
    with formatter.section("Others"):
        formatter.write_dl(_OTHER_VARIABLES, col_max=48)
    with formatter.section("Options that have no variable in some or all of their commands"):
        formatter.write_text(", ".join(sorted(without)))
