"""Help under headings, the topics of help, and the completion script of a shell."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from eurekube_sync.cli.command_line import cli
from eurekube_sync.cli.options.declare import COMMON, Section, options_of
from eurekube_sync.controller.exit_codes import ExitCode


def said(*arguments: str, columns: int = 80) -> str:
    """Return what the command line prints at this width."""
    result = CliRunner().invoke(
        cli, list(arguments), env={"COLUMNS": str(columns)}, terminal_width=columns
    )
    assert result.exit_code == ExitCode.OK, result.output
    return result.output


def test_the_options_of_run_are_under_headings() -> None:
    """Each heading comes once, in a fixed order. Options that decide about one run are next to
    --dry-run."""
    lines = said("run", "--help").splitlines()
    headings = [
        line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith(" ")
    ]
    assert headings == ["Examples", *(name for name in Section if name not in COMMON), "Help"]
    under = lines[lines.index("Options:") : lines.index("Passes:")]
    assert [line.split()[0] for line in under if line.startswith("  -")] == [
        "--dry-run",
        "--from",
        "--at",
        "-f,",
        "--detailed-exitcode",
        "--fail-on-held",
    ]


def shown(*arguments: str) -> set[str]:
    """Return the options that a help text shows."""
    lines = [line for line in said(*arguments).splitlines() if line.startswith("  -")]
    return {name.strip(",") for line in lines for name in line.split() if name.startswith("--")}


def test_each_option_is_shown_by_its_command_or_as_common() -> None:
    """No command shows more options than a person reads."""
    common = shown("help", "options")
    assert common
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        names = {max(option.opts, key=len) for option in options_of(command)}
        own = names & shown(name, "--help")
        assert names - own == names & common
        assert len(own) <= 40


@pytest.mark.parametrize(
    "arguments", [("run", "--help"), ("purge", "--help"), ("help", "run"), ("help", "environment")]
)
@pytest.mark.parametrize("columns", range(60, 130, 10))
def test_no_line_ends_within_the_name_of_an_option(
    arguments: tuple[str, ...], columns: int
) -> None:
    """A name in two lines can neither be searched for nor be copied."""
    assert not [
        line for line in said(*arguments, columns=columns).splitlines() if line.endswith("-")
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "json", "status"], "-o follows its command: eurekube-sync status -o"),
        (["--owner", "x", "run"], "--owner follows its command: eurekube-sync run --owner"),
        (["--daemon", "status"], click.NoSuchOption("--daemon").format_message()),
        (["-o", "json"], click.NoSuchOption("-o").format_message()),
    ],
)
def test_an_option_before_its_command_is_told_where_it_goes(
    arguments: list[str], said: str
) -> None:
    """As kubectl's users write it, whose options may stand anywhere."""
    result = CliRunner().invoke(cli, arguments, prog_name="eurekube-sync")
    assert result.exit_code == 2
    assert f"Error: {said}\n" in result.output


def test_help_of_a_command_is_its_help_option() -> None:
    """This also holds for a command in a group, and for the program."""
    assert said("help", "purge") == said("purge", "--help")
    assert said("help") == said("--help")


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_the_topics_have_every_code_and_every_variable(columns: int) -> None:
    """They fit the width of the terminal."""
    codes = said("help", "exit-codes", columns=columns)
    assert [f"{code.value:3} {code.name}" in codes for code in ExitCode] == [True] * len(ExitCode)
    variables = said("help", "environment", columns=columns)
    for name in (
        "EUREKUBE_SYNC_OWNER",
        "EUREKUBE_SYNC_KUBECONFIG",
        "EUREKUBE_SYNC_EUREKA_PASSWORD",
        "NO_COLOR",
    ):
        assert name in variables
    assert (
        "--approve"
        in variables.split("Options that have no variable in some or all of their commands:")[1]
    )
    assert max(map(len, (codes + variables).splitlines())) <= columns


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_printed_without_that_shell(
    shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script calls the program itself."""
    monkeypatch.setenv("PATH", "/nowhere")
    assert "_EUREKUBE_SYNC_COMPLETE" in said("completion", shell)
