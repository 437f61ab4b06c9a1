"""The output at a terminal, narrow or wide, and in a pipe."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.embedded.http import Handler, Request, Response
from tests.command.program import BINARY, IDS, LONG_SECONDS, Program, rating, syncer
from tests.command.terminal import ESCAPE, at_terminal

LONG_URL_ERROR = Response(status=400, body=b"x" * 300)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A world with eleven pods to register, and a broken syncer."""
    with rating(tmp_path_factory.mktemp("terminal"), pods=11) as program:
        program.playground.create(syncer("broken", {"selector": {"app": "nothing"}}))
        yield program


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_table_fits_its_terminal_and_breaks_no_id(world: Program, columns: int) -> None:
    """No line is wider than the terminal, and each id can be copied in one piece."""
    code, shown = at_terminal(world, "run", "--dry-run", columns=columns)
    plain = ESCAPE.sub("", shown)
    assert code == ExitCode.OK
    assert all(len(line.rstrip()) <= columns for line in plain.splitlines())
    assert all(id_ in plain for id_ in IDS)
    assert plain.index("10.0.0.9:8080") < plain.index("10.0.0.10:8080"), "sorted as people count"
    assert ("INSTANCE" in plain) == (columns == 200), "columns where they fit, else lines"
    assert "dry run: 11 to register, 0 to renew; 1" in plain


def test_colours_are_for_terminals_that_want_them(world: Program) -> None:
    """A terminal gets colours unless NO_COLOR is set. A pipe gets none."""
    _, coloured = at_terminal(world, "run", "--dry-run", columns=120)
    _, asked_not_to = at_terminal(world, "run", "--dry-run", columns=120, NO_COLOR="1")
    assert "\x1b[32m" in coloured, "what comes is green"
    assert not re.search(r"\x1b\[(\d+;)*3[1-7]m", asked_not_to)
    assert "\x1b" not in world.run("--dry-run").out


def test_a_pipe_gets_whole_lines(world: Program) -> None:
    """A row or a sentence is one line, without spaces at the end, whatever COLUMNS says."""
    ended = world.run("--dry-run", COLUMNS="40")
    lines = ended.out.splitlines()
    assert len(lines) == 1 + 11 + 1 + 1
    assert lines == [line.rstrip() for line in lines]
    assert lines[-2].startswith("! syncer rating/broken: NoMatchingService: ")


def test_a_person_at_a_terminal_is_warned_that_leases_expire(tmp_path: Path) -> None:
    """A person needs more than one pass. A CronJob's log has no such warning."""
    with rating(tmp_path) as program:
        _, shown = at_terminal(program, "run", columns=100)
        assert "leases expire in 10 minutes" in shown
        assert "leases expire" not in program.run().out


def test_a_long_refusal_stays_readable(tmp_path: Path) -> None:
    """A long answer of a server is cut, and wrapped below its mark."""

    def refuse(request: Request, registry: Handler) -> Response:
        return LONG_URL_ERROR if request.method == "POST" else registry(request)

    with rating(tmp_path) as program, program.eureka_behind(refuse):
        code, shown = at_terminal(program, "run", columns=60)
    plain = ESCAPE.sub("", shown)
    assert code == ExitCode.INCOMPLETE
    assert all(len(line.rstrip()) <= 60 for line in plain.splitlines())
    assert "x" * 200 not in "".join(plain.split())


@pytest.mark.parametrize(
    "arguments", ["run --passes 2 --interval 1s", "run -o json", "crd", "run --help", "demo"]
)
def test_a_closed_pipe_is_no_error(world: Program, arguments: str) -> None:
    """`| true` closes the pipe at once. The exit code is 0, stderr is empty, and the passes
    continue."""
    world.playground.calls.clear()
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.run(
        [BINARY, *arguments.split()],
        cwd=world.folder,
        env=world.environment(),
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=LONG_SECONDS,
        check=False,
    )
    os.close(writer)
    assert (process.returncode, process.stderr) == (ExitCode.OK, "")
    lists = [
        call
        for call in world.playground.calls
        if (call.method, call.path) == ("GET", "/eureka/apps")
    ]
    assert len(lists) == {"run --passes 2 --interval 1s": 2, "run -o json": 1}.get(arguments, 0)


def test_a_closed_pipe_does_not_change_the_exit_code_of_validate(world: Program) -> None:
    """`set -o pipefail; eurekube-sync validate - | head -0` must not succeed."""
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.run(
        [BINARY, "validate", "-"],
        env=world.environment(),
        input="kind: EurekaSyncer",
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=LONG_SECONDS,
        check=False,
    )
    os.close(writer)
    assert (process.returncode, process.stderr) == (ExitCode.INVALID_MANIFEST, "")


@pytest.mark.parametrize(
    ("arguments", "code"), [("validate -", ExitCode.INVALID_MANIFEST), ("purge", ExitCode.USAGE)]
)
def test_a_closed_standard_input_is_an_empty_one(
    world: Program, arguments: str, code: ExitCode
) -> None:
    """Some services are started without a standard input."""
    process = subprocess.run(
        ["sh", "-c", f'exec "$0" {arguments} <&-', BINARY],
        env=world.environment(),
        capture_output=True,
        text=True,
        timeout=LONG_SECONDS,
        check=False,
    )
    assert process.returncode == code, process.stderr


def test_a_full_disk_spoils_no_pass(world: Program) -> None:
    """The report cannot be written. A warning says so, and so does the exit code; the pass is
    made."""
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            [BINARY, "run"],
            cwd=world.folder,
            env=world.environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert process.returncode == ExitCode.NOT_WRITTEN
    assert b"cannot write the report: No space left on device" in process.stderr
    assert [world.status(id_) for id_ in IDS] == ["UP", "UP"]


@pytest.mark.parametrize(
    "command",
    [
        ["crd"],
        ["help", "exit-codes"],
        ["run", "--help"],
        ["--version"],
        ["completion", "bash"],
        ["version", "--client"],
        ["status", "-o", "json", "-a"],
    ],
    ids=" ".join,
)
def test_output_that_cannot_be_written_is_no_success(world: Program, command: list[str]) -> None:
    """It is one sentence, and no bug."""
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            [BINARY, *command],
            cwd=world.folder,
            env=world.environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    looked = command[0] == "status"  # whose own code says more: nothing is registered yet
    assert process.returncode == (ExitCode.NOT_REGISTERED if looked else ExitCode.NOT_WRITTEN)
    (line,) = process.stderr.decode().splitlines()
    assert line.endswith("No space left on device")


@pytest.mark.parametrize(
    "command", [["orphans"], ["purge", "--yes"], ["validate", "-"]], ids=" ".join
)
@pytest.mark.parametrize("library", ["click", "yaml"])
def test_an_interrupt_in_the_first_second_is_one_word(
    world: Program, library: str, command: list[str]
) -> None:
    """The libraries are being imported, which takes long on a busy machine. Nothing else has
    begun."""
    folder = world.folder / f"slow-{library}" / library
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text(
        "import time\nprint('importing', flush=True)\ntime.sleep(60)\n"
    )
    path = os.pathsep.join([str(folder.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = world.start(*command, PYTHONPATH=path)
    assert process.stdout is not None
    assert process.stdout.readline() == "importing\n"
    process.send_signal(signal.SIGINT)
    ended = world.end(process)
    assert (ended.code, ended.out, ended.err) == (ExitCode.INTERRUPTED, "", "interrupted\n")
    assert not ended.eureka + ended.kubernetes


@pytest.mark.parametrize("place", ["a full disk", "a closed pipe"])
def test_watching_ends_when_nobody_gets_what_it_shows(world: Program, place: str) -> None:
    if place == "a full disk":
        with Path("/dev/full").open("w") as full:
            process = world.start("status", "--watch", stdout=full)
    else:
        reading, writing = os.pipe()
        os.close(reading)
        process = world.start("status", "--watch", stdout=writing)
        os.close(writing)
    ended = world.end(process, seconds=30)
    assert ended.code == ExitCode.NOT_REGISTERED, ended.err
    assert len(ended.err.splitlines()) == (1 if place == "a full disk" else 0)


def test_a_bug_is_a_sentence_and_a_traceback_on_demand(world: Program) -> None:
    """An unexpected error gives exit code 1 and one sentence, which says how to see more."""
    folder = world.folder / "broken" / "yaml"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text("raise RuntimeError('a planted bug')\n")
    path = os.pathsep.join([str(folder.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    for variables, shows in (({}, False), ({"EUREKUBE_SYNC_DEBUG": "1"}, True)):
        ended = world.command("validate", "-", PYTHONPATH=path, **variables)
        assert ended.code == ExitCode.INTERNAL_ERROR
        assert "Internal error: RuntimeError: a planted bug" in ended.err
        assert "EUREKUBE_SYNC_DEBUG=1" in ended.err
        assert ("Traceback" in ended.err) is shows


def test_a_narrow_character_set_is_no_error(tmp_path: Path) -> None:
    """Text that the terminal's character set lacks is escaped."""
    with rating(tmp_path) as program:
        with program.playground.kubernetes.older_definition():
            program.playground.create(
                syncer(
                    "bad",
                    {"selector": {"app": "rating"}, "port": "http", "metadata": {"ключ": "1"}},
                )
            )
        ended = program.run(PYTHONIOENCODING="ascii")
    assert ended.code == ExitCode.OK, ended.err
    assert "InvalidMetadata" in ended.sentence
