"""Which options no variable sets, and which variables cause a warning."""

from __future__ import annotations

import click
import pytest

from eurekube_sync.cli.command_line import cli
from eurekube_sync.cli.options.declare import warn_of_unknown

ROOT = click.Context(cli)


def _commands() -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    for name in cli.list_commands(ROOT):
        command = cli.get_command(ROOT, name)
        assert command is not None
        inner = command.commands if isinstance(command, click.Group) else {}
        found |= {f"{name} {each}": one for each, one in inner.items()} or {name: command}
    return found


COMMANDS = _commands()
BRAKE = {"--brake"}
FROM_NO_VARIABLE = {
    "run": {"--approve", "--filename", "--from", "--at", *BRAKE},
    "orphans": BRAKE,
    "explain": {"--from", "--at", *BRAKE},
    "status": {"--all", "--app", "--condition", "--watch", "--from", "--at", *BRAKE},
    "validate": {"--allow-empty"},
    "check": {"--pre"},
    "version": {"--client"},
    "purge": {"--cluster", "--yes"},
}
"""Options that decide something once, or weaken the brake. A variable in a profile would apply to
all later commands."""


@pytest.mark.parametrize("name", COMMANDS)
def test_options_that_decide_something_once_have_no_variable(name: str) -> None:
    """Such options release a plan, take over a cluster or skip a question. All other options have a
    variable."""
    options = [option for option in COMMANDS[name].params if isinstance(option, click.Option)]
    assert {
        max(one.opts, key=len) for one in options if one.envvar is None
    } == FROM_NO_VARIABLE.get(name, set())


WARNED = {
    "DRYRUN": "is unknown and ignored; did you mean EUREKUBE_SYNC_DRY_RUN?",
    "EUREKA_URLS": "is unknown and ignored; did you mean EUREKUBE_SYNC_EUREKA_URL?",
    "XYZZY": "is unknown and ignored",
    "YES": "has no effect: use --yes on the command line",
    "APPROVE": "has no effect: use --approve on the command line",
}


KNOWN = {
    "EUREKUBE_SYNC_DRY_RUN": "1",
    "EUREKUBE_SYNC_SERVE": "1",
    "EUREKUBE_SYNC_CLUSTER": "for-keepalive",
    "EUREKUBE_SYNC_EUREKA_PASSWORD": "s3cr3t",
    "EUREKUBE_SYNC_DEBUG": "1",
    "EUREKUBE_SYNC_TEST_CACHE": "/tmp",
    "EUREKUBE_SYNC_SERVICE_HOST": "10.0.0.1",
    "EUREKUBE_SYNC_METRICS_SERVICE_PORT_HTTP": "80",
    "EUREKUBE_SYNC_PORT": "tcp://10.0.0.1:80",
    "EUREKUBE_SYNC_PORT_80_TCP_ADDR": "10.0.0.1",
    "KUBECONFIG": "/tmp/config",
}


@pytest.mark.parametrize("name", ["run", "purge", "keepalive"])
def test_a_variable_that_does_nothing_is_warned_of(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A mistyped variable for a dry run lets the run write. Variables of other commands, of the
    program, and of a Kubernetes Service are known."""
    strange = {f"EUREKUBE_SYNC_{each}": "s3cr3t" for each in WARNED}
    with click.Context(COMMANDS[name], parent=ROOT):
        warn_of_unknown({**KNOWN, **strange})
    assert [record.message for record in caplog.records] == [
        f"the variable EUREKUBE_SYNC_{each} {words}" for each, words in sorted(WARNED.items())
    ]


def test_without_a_strange_variable_no_other_command_is_loaded() -> None:
    """Other commands are slow to import."""

    class Unloaded(click.Group):
        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
            raise AssertionError(cmd_name)

    with click.Context(COMMANDS["run"], parent=click.Context(Unloaded())):
        warn_of_unknown({"EUREKUBE_SYNC_OWNER": "a", "EUREKUBE_SYNC_EUREKA_PASSWORD": "b"})
    warn_of_unknown({"EUREKUBE_SYNC_NONE": "outside of any command"})
