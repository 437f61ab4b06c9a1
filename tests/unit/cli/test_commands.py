"""The output for a mistyped command, for a missing option, and for --help."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner, Result

from eurekube_sync.cli.command_line import cli, exit_code
from eurekube_sync.controller.exit_codes import ExitCode

WHERE = ["--owner", "a", "--eureka-url", "http://e/eureka"]


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """Restore the logger, because a command changes it for the whole process."""
    logger = logging.getLogger("eurekube_sync")
    handlers, level, propagate = logger.handlers[:], logger.level, logger.propagate
    yield
    logger.handlers[:], logger.level, logger.propagate = handlers, level, propagate


def said(*arguments: str) -> Result:
    """Return the result of a command line without variables."""
    clean = {"EUREKUBE_SYNC_OWNER": None, "EUREKUBE_SYNC_EUREKA_URL": None}
    return CliRunner().invoke(cli, list(arguments), env=clean)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["runn"], "No such command 'runn'. Did you mean 'run'?"),
        (["hlep"], "No such command 'hlep'. Did you mean 'help'?"),
        (["verison"], "No such command 'verison'. Did you mean 'version'?"),
        (["help", "rnu"], "No such command or topic 'rnu'. Did you mean 'run'?"),
        (["help", "exit-code"], "No such command or topic 'exit-code'. Did you mean 'exit-codes'?"),
        (["help", "exit-codes", "x"], "'exit-codes' is a topic, and takes no other word"),
        (["help", "purg"], "No such command or topic 'purg'. Did you mean 'purge'?"),
        (["help", "run", "now"], "No such command or topic 'now'."),
        (["xyz"], "No such command 'xyz'."),
        (["orphan"], "No such command 'orphan'. Did you mean 'orphans'?"),
    ],
)
def test_a_mistyped_command_is_guessed(arguments: list[str], expected: str) -> None:
    """The suggestions are like those for a mistyped option."""
    result = said(*arguments)
    assert result.exit_code == ExitCode.USAGE
    assert result.output.splitlines()[-1] == f"Error: {expected}"


def test_a_mistyped_option_is_guessed() -> None:
    """By click, whose sentence has quotes from 8.2 on."""
    result = said("run", "--dry-rn")
    assert result.exit_code == ExitCode.USAGE
    assert re.search(r"--dry-rn\b.* Did you mean '?--dry-run'?\?$", result.output.strip())


def test_all_missing_options_are_reported_at_once() -> None:
    """For a single missing option, the message is that of click."""
    assert (
        said("run").output.splitlines()[-1]
        == "Error: Missing options '--owner' and '--eureka-url'."
    )
    assert (
        said("run", "--owner", "a").output.splitlines()[-1]
        == "Error: Missing option '--eureka-url'."
    )


@pytest.mark.parametrize("command", ["run", "keepalive"])
def test_passes_that_come_too_late_for_the_leases_are_refused(command: str) -> None:
    """This applies to runs of many passes. Leases are in whole seconds."""
    result = said(command, *WHERE, "--interval", "200s", "--daemon")
    assert result.exit_code == ExitCode.USAGE
    assert "--interval 3m20s is more than half of --lease-duration 5m" in result.output
    result = said(command, *WHERE, "--lease-duration", "300.5s")
    assert result.exit_code == ExitCode.USAGE
    assert "--lease-duration must be whole seconds" in result.output


def test_a_code_of_a_dry_run_asks_for_one() -> None:
    """Exit code 5 has a meaning only for a dry run."""
    result = said("run", *WHERE, "--detailed-exitcode")
    assert result.exit_code == ExitCode.USAGE
    assert "--detailed-exitcode requires --dry-run" in result.output


@pytest.mark.parametrize("former", ["--former-owner", "--former-cluster"])
def test_a_move_is_refused_where_nothing_is_cancelled(
    former: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each instance would be registered twice, without end. The policy may come from its
    variable."""
    monkeypatch.setenv("EUREKUBE_SYNC_POLICY", "upsert-only")
    result = said("run", *WHERE, former, "old")
    assert result.exit_code == ExitCode.USAGE
    assert "--policy upsert-only cancels no former id: move with --policy sync" in result.output


@pytest.mark.parametrize("command", [["run"], ["keepalive"], ["orphans"], ["purge"], ["validate"]])
def test_help_is_as_wide_as_the_terminal_and_names_the_variables_once(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rule is at the end, with one of the command's options as the example. No option shows its
    own variable."""

    def shown(columns: int) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        assert exit_code([*command, "--help"]) == ExitCode.OK
        return capsys.readouterr().out

    wide, narrow = shown(200), shown(80)
    assert max(map(len, narrow.splitlines())) <= 80
    assert len(wide.splitlines()) < len(narrow.splitlines())
    assert "env var" not in wide
    assert ("--brake, --approve." in wide) is (command == ["run"])
    offline = command[0] == "validate"
    example = (
        "EUREKUBE_SYNC_OUTPUT for --output"
        if offline
        else "EUREKUBE_SYNC_EUREKA_URL for --eureka-url"
    )
    assert f"such as {example}" in wide.splitlines()[-3]


def test_the_help_of_a_command_without_options_says_nothing_of_variables() -> None:
    """`crd` has no options."""
    assert "EUREKUBE_SYNC_" not in said("crd", "--help").output
    assert isinstance(cli, click.Group)
