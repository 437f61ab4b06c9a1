"""Every option, given on the command line and as an environment variable, and what is refused."""

from __future__ import annotations

import json
import re

import click
import pytest

from eurekube_sync.cli.command_line import cli
from eurekube_sync.controller.exit_codes import ExitCode
from tests.command.program import Program

CONTEXT = click.Context(cli)
GROUPED = {name: cli.get_command(CONTEXT, name) for name in cli.list_commands(CONTEXT)}
COMMANDS = {name: one for name, one in GROUPED.items() if not isinstance(one, click.Group)} | {
    f"{name} {inner}": one
    for name, group in GROUPED.items()
    if isinstance(group, click.Group)
    for inner, one in group.commands.items()
}
OPTIONS = [
    pytest.param(name, option, id=f"{name} {option.opts[-1]}")
    for name, command in COMMANDS.items()
    if command is not None
    for option in command.params
    if isinstance(option, click.Option)
]
_WHERE = ["--owner=a", "--eureka-url=http://e/eureka"]
NEEDED = {
    "run": _WHERE,
    "keepalive": _WHERE,
    "validate": ["-"],
    "explain": ["a/b"],
    "orphans": _WHERE,
    "purge": _WHERE,
    "completion": ["bash"],
}


def long_name(option: click.Option) -> str:
    """The first `--name` of an option."""
    return next(name for name in option.opts if name.startswith("--"))


def another_value(option: click.Option) -> str:
    """A value, as text, that is not the default."""
    if option.name == "eureka_url":
        return "http://f/eureka"
    match option.type:
        case click.Choice() as choice:
            return str(next(c for c in choice.choices if c != option.default))
        case click.IntRange() | click.FloatRange():
            return "7"
        case click.types.BoolParamType():
            return "true"
    values = {
        "duration": "99s",
        "namespace[,...]": "one,two",
        "name": "another",
        "i/n": "1/3",
        "from:to[,...]": "a:*",
    }
    values |= {"host:port": "10.0.0.7:8080", "namespace/name": "one/two", "count,share": "7,7%"}
    values |= {"auto|off|namespace/name": "one/two", "[host]:port": ":7", "url": "http://f:7"}
    return values.get(option.type.name, "some-text")


@pytest.mark.parametrize(
    ("name", "option"),
    [one for one in OPTIONS if one.values[1].envvar is not None],  # type: ignore[union-attr]
)
def test_each_option_is_read_from_its_variable(
    name: str, option: click.Option, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable is EUREKUBE_SYNC_ and the long name. Its value means the same as on the command
    line."""
    command = COMMANDS[name]
    assert command is not None
    flag, value = long_name(option), another_value(option)
    needed = [given for given in NEEDED.get(name, []) if not given.startswith(flag)]
    for variable in ("KUBECONFIG", "EUREKUBE_SYNC_KUBECONFIG"):
        monkeypatch.delenv(variable, raising=False)
    # As for completion, each option has a value of its own, and not each group of options.
    arguments = [*needed, flag] if option.is_flag else [*needed, flag, value]
    given = command.make_context(name, arguments, resilient_parsing=True)
    monkeypatch.setenv("EUREKUBE_SYNC_" + flag.removeprefix("--").upper().replace("-", "_"), value)
    read = command.make_context(name, list(needed), resilient_parsing=True)
    assert read.params == given.params
    assert given.params[str(option.name)] != option.default


def test_all_of_run_works_from_the_environment_alone(program: Program) -> None:
    """The only argument is `run`, because a pod's manifest may hold only variables."""
    ended = program.run(
        EUREKUBE_SYNC_DRY_RUN="1",
        EUREKUBE_SYNC_DETAILED_EXITCODE="true",
        EUREKUBE_SYNC_OUTPUT="json",
        EUREKUBE_SYNC_NAMESPACE="rating,other",
        EUREKUBE_SYNC_LOG_FORMAT="json",
        EUREKUBE_SYNC_VERBOSE="yes",
    )
    assert ended.code == ExitCode.CHANGES_PENDING, ended.err
    assert len(json.loads(ended.out)["actions"]) == 2


def test_verbose_logs_each_call_on_stderr_as_json(program: Program) -> None:
    """With -v and --log-format json each line of stderr is an object. Stdout has only the
    report."""
    ended = program.run("-v", "--log-format", "json", "-o", "json")
    json.loads(ended.out)
    entries = [json.loads(line) for line in ended.err.splitlines()]
    assert all(entry.keys() == {"time", "level", "logger", "message"} for entry in entries)
    for call in (
        r'"GET /eureka/apps\?\S+ HTTP/1.1" 200',
        r'"POST /eureka/apps/RATING HTTP/1.1" 204',
    ):
        assert sum(re.search(call, entry["message"]) is not None for entry in entries) >= 1
    assert not program.run().err, "without -v there is nothing to say"


REFUSED = {
    "no owner": (["run"], "Missing option '--owner'"),
    "bad owner": (
        ["run", "--owner", "Prod_1"],
        "'Prod_1' is not an owner name: 1 to 32 of a-z, 0-9 and '-'",
    ),
    "no url": (["run"], "Missing option '--eureka-url'"),
    "no number": (["run", "--passes", "many"], "--passes"),
    "no pass": (["run", "--passes", "0"], "x>=1"),
    "bad duration": (["run", "--interval", "soon"], "write 30s, 2m or 1h"),
    "hot loop": (["run", "--interval", "0"], "too short; at least 1s"),
    "no unit": (["run", "--interval", "1h30"], "is not a duration; write 30s, 2m or 1h30m"),
    "a long unit": (["run", "--interval", "1d"], "is not a duration; write 30s, 2m or 1h30m"),
    "no end": (["run", "--lease-duration", "9" * 400], "too long; at most 576h"),
    "leases that Eureka cannot count": (
        ["run", "--lease-duration", "2147484s"],
        "too long; at most 576h",
    ),
    "kept leases": (["keepalive", "--lease-duration", "600h"], "too long; at most 576h"),
    "for ever": (["keepalive", "--daemon", "--interval", "9" * 400], "too long; at most 87600h"),
    "empty plan": (["run", "--approve", ""], "is not a plan id"),
    "blank plan": (["run", "--approve", " "], "is not a plan id"),
    "empty context": (["run", "--context", ""], "it is empty"),
    "empty kubeconfig": (["orphans", "--kubeconfig", ""], "it is empty"),
    "no patience": (["run", "--call-timeout", "0"], "too short"),
    "no time": (["run", "--pass-timeout", "0s"], "too short"),
    "bad namespace": (["run", "-n", "Not_One"], "'Not_One' is not the name of a namespace"),
    "empty namespace": (["run", "--namespace", ""], "'' is not the name of a namespace"),
    "bad selector": (
        ["run", "--selector", "team in a"],
        "'team in a' is no valid part of a label selector",
    ),
    "empty selector": (["run", "-l", ""], "'' is no valid part of a label selector"),
    "bad class": (["run", "--syncer-class", "Edge"], "'Edge' is not a class"),
    "no pair": (
        ["run", "--allow-namespace", "shop"],
        "'shop' is not a pair of namespaces; write FROM:TO",
    ),
    "half a pair": (["run", "--allow-namespace", "a:b,a:"], "'a:' is not a pair of namespaces"),
    "both": (["run", "--daemon", "--passes", "2"], "are mutually exclusive"),
    "rare passes": (
        ["run", "--daemon", "--interval", "151s"],
        "more than half of --lease-duration",
    ),
    "rare keepalive": (
        ["keepalive", "--daemon", "--interval", "151s"],
        "more than half of --lease-duration 5m",
    ),
    "short leases": (["keepalive", "--lease-duration", "60s"], "too short; at least 1m30s"),
    "half seconds": (["run", "--lease-duration", "100500ms"], "whole seconds"),
    "a port to listen on": (
        ["run", "--listen", ":99999"],
        "':99999' has the port 99999, and a port is a number from 1 to 65535",
    ),
    "unknown form": (["run", "-o", "xml"], "'table', 'json', 'yaml'"),
    "unknown option": (["run", "--dryrun"], "--dry-run"),
    "unknown command": (["sync"], "No such command 'sync'"),
    "extra word": (["run", "now"], "unexpected extra argument"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_command_line_is_refused_in_one_sentence(settled: Program, name: str) -> None:
    """The exit code is 2, one `Error:` names the option, and no server is called."""
    arguments, words = REFUSED[name]
    absent = {"no owner": "EUREKUBE_SYNC_OWNER", "no url": "EUREKUBE_SYNC_EUREKA_URL"}.get(
        name, "EUREKUBE_SYNC_NONE"
    )
    ended = settled.command(*arguments, stdin="", **{absent: None})
    assert ended.code == ExitCode.USAGE
    assert words in ended.sentence
    assert not ended.out
    assert not ended.eureka + ended.kubernetes


WRONG_URLS = {
    "ftp://eureka.example.com/eureka": "'ftp://eureka.example.com/eureka' needs http or https and "
    "a host",
    "eureka.example.com:8761/eureka": "'eureka.example.com:8761/eureka' needs http or https and a "
    "host",
    "http://": "'http://' needs http or https and a host",
    "http://a/eureka,b:8761/eureka": "'b:8761/eureka' needs http or https and a host",
    "http://127.0.0.1:99999/eureka": "'http://127.0.0.1:99999/eureka' has the port 99999, and a "
    "port is a number from 1 to 65535",
    "http://joe:s3cr3t@[::1]:70000": "'http://***@[::1]:70000' has the port 70000, and a port is",
    "http://127.0.0.1:0/eureka": "has the port 0, and a port is a number from 1 to 65535",
    "http://joe:77777/more@a/eureka": "'http://***@a/eureka' cannot be read",
    "http://joe:s3cr3t@a:port/eureka": "'http://***@a:***/eureka' cannot be read",
    "http://joe:s3cr3t,more@a/eureka": "'http://joe:***' cannot be read",
    "http://joe:s3cr3t/more@a/eureka": "'http://***@a/eureka' cannot be read",
}


@pytest.mark.parametrize("url", WRONG_URLS)
def test_a_wrong_url_is_a_wrong_command_line(settled: Program, url: str) -> None:
    """The exit code is 2 before any call, as for a wrong owner. The message has the URL without its
    password."""
    ended = settled.run("--eureka-url", url)
    assert ended.code == ExitCode.USAGE
    assert WRONG_URLS[url] in ended.sentence
    assert "s3cr3t" not in ended.out + ended.err
    assert not ended.eureka + ended.kubernetes


def test_a_user_without_a_password_is_a_wrong_setting(settled: Program) -> None:
    """The sentence names the missing variable."""
    ended = settled.run(
        "--eureka-username", "joe", EUREKUBE_SYNC_EUREKA_URL=settled.playground.eureka_url
    )
    assert ended.code == ExitCode.CONFIGURATION
    assert "EUREKUBE_SYNC_EUREKA_PASSWORD" in ended.sentence


def test_a_login_given_twice_is_refused(settled: Program) -> None:
    """It is unknown which login is meant, and neither is printed."""
    url = settled.playground.eureka_url.replace("://", "://ann:s3cr3t@")
    ended = settled.run(
        "--eureka-url", url, "--eureka-username", "joe", EUREKUBE_SYNC_EUREKA_PASSWORD="0ther"
    )
    assert ended.code == ExitCode.CONFIGURATION
    assert "given twice" in ended.sentence
    assert not re.search("s3cr3t|0ther", ended.err)


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_fits_and_names_each_option(settled: Program, name: str) -> None:
    """The --help of every command fits 80 columns, and has each option. Those that most commands
    have are shown by `help options`."""
    ended = settled.command(*name.split(), "--help", stdin="", COLUMNS="80")
    assert ended.code == ExitCode.OK
    assert all(len(line) <= 80 for line in ended.out.splitlines())
    assert name or not re.search(r"\w\.\.\.$", ended.out, re.MULTILINE), (
        "no command's summary is cut"
    )
    common = settled.command("help", "options", stdin="", COLUMNS="80").out
    command = COMMANDS.get(name)
    for option in command.params if command else ():
        if isinstance(option, click.Option):
            assert long_name(option) in ended.out + common
            assert option.help
            assert option.help.strip().endswith((".", "...", "/eureka", "]"))


def test_no_argument_at_all_shows_the_commands(settled: Program) -> None:
    ended = settled.command()
    assert ended.code == ExitCode.USAGE
    assert all(name in ended.err for name in GROUPED)


def test_the_version_is_the_packages(settled: Program) -> None:
    """--version prints the program and its version."""
    ended = settled.command("--version")
    assert (
        ended.code,
        bool(re.fullmatch(r"eurekube-sync, version \d+\.\d+\.\d+\S*\n", ended.out)),
    ) == (0, True)
