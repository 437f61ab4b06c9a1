"""`demo`: the whole story in a minute, and both servers for people to try."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.cli.commands import demo as story
from eurekube_sync.cli.connect import Installation, connect
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import World
from eurekube_sync.embedded.playground import Playground
from eurekube_sync.model.errors import EurekubeError, Stopped
from tests.command.program import IDS, Program
from tests.embedded import playground

EXPORT = re.compile(r"^export (\w+)=(\S+)$", re.MULTILINE)


def test_the_demo_shows_each_step_and_ends(settled: Program) -> None:
    """It goes from a dry run to an empty registry, in order, within a minute. The environment's
    settings do not matter."""
    begun = time.monotonic()
    ended = settled.command(
        "demo", stdin="", KUBECONFIG="/nowhere", EUREKUBE_SYNC_EUREKA_URL="nonsense"
    )
    assert not ended.eureka + ended.kubernetes
    assert (ended.code, ended.err) == (ExitCode.OK, "")
    assert time.monotonic() - begun < 60
    told = [
        "dry run: 2 to register",
        "2 registered",
        "10.0.0.2:8080           UP",
        "in sync, 2 renewed",
        "UP > DOWN",
        "1 turned DOWN",
        "10.0.0.2:8080           DOWN",
        "1 registered, 1 cancelled, 1 renewed",
        "10.0.0.3:8080           UP",
        "All pods vanish",
        "HELD",
        "2 of 2 apps would have no UP instance left",
        "3 held",
        "10.0.0.1:8080           UP",
        "run --approve",
        "3 cancelled",
        "is undone",
        "3 registered",
        "10.0.0.3:8080           UP",
        "kubectl delete esync rating",
        "2 cancelled",
        "nothing",
        "The other way round",
        "rating/billing",
        "1 endpoint added",
        "192.0.2.17:8080         UP",
        "BILLING, which is not ours, was never touched",
        "demo --serve",
    ]
    rest = ended.out
    for words in told:
        assert words in rest, words
        rest = rest.split(words, 1)[1]
    lines = [
        line for line in ended.out.splitlines() if not line.startswith("   ! ")
    ]  # a terminal wraps the others
    assert all(len(line) <= 120 and line == line.rstrip() for line in lines)


@pytest.mark.parametrize(
    "heard",
    ["eurekube-sync:", "2. What would happen?", "$ eurekube-sync run --dry-run", "3. Do it"],
)
def test_ctrl_c_leaves_the_demo(settled: Program, heard: str) -> None:
    """It ends with exit code 130 and one word, at any point of the story. At a terminal the demo
    pauses so that people can read."""
    controller, terminal = os.openpty()
    process = settled.start("demo", stdout=terminal, TERM="dumb")
    os.close(terminal)
    with open(controller, errors="replace") as told:
        while heard not in (line := told.readline()):
            assert line, f"{heard!r} was never told"
        process.send_signal(signal.SIGINT)
        ended = settled.end(process)
    assert (ended.code, ended.err) == (ExitCode.INTERRUPTED, "interrupted\n")


class _Interrupts(story.Story):
    """Ctrl-C comes with the command of this number, so during its pass."""

    def __init__(
        self, clock: SystemClock, number: int, playground: Playground, world: World
    ) -> None:
        super().__init__(Console(file=StringIO()), playground, world, lambda _: None)
        self._clock, self._left = clock, number

    def command(self, line: str) -> None:
        """Type the command."""
        super().command(line)
        self._left -= 1
        if self._left == 0:
            self._clock.stop()


@pytest.mark.parametrize("number", range(1, 9))
def test_a_signal_during_a_pass_ends_the_demo_without_an_error(number: int) -> None:
    clock = SystemClock()
    with story.new_playground() as playground:
        installation = Installation(
            eureka_url=playground.eureka_url,
            kubeconfig=str(playground.kubeconfig),
            concurrency=4,
        )
        with connect(installation, clock) as world, pytest.raises(Stopped):
            _Interrupts(clock, number, playground, world).tell()


@pytest.fixture(scope="module")
def served(shared: Program) -> Iterator[dict[str, str]]:
    """The environment that `demo --serve` prints, while it serves."""
    process = shared.start("demo", "--serve")
    assert process.stdout is not None
    printed = ""
    while "curl" not in printed:
        line = process.stdout.readline()
        assert line, printed
        printed += line
    yield dict(EXPORT.findall(printed)) | {"curl": printed.splitlines()[-1]}
    process.send_signal(signal.SIGTERM)
    ended = shared.end(process)
    assert (ended.code, "Traceback" in ended.err) == (ExitCode.OK, False), ended.err


def test_run_works_with_the_served_environment(settled: Program, served: dict[str, str]) -> None:
    """`run` needs only the printed exports."""
    variables = {name: value for name, value in served.items() if name != "curl"}
    ended = settled.command("run", "-o", "json", stdin="", **variables)
    assert ended.code == ExitCode.OK, ended.err
    assert json.loads(ended.out)["summary"] == "2 registered, 0 renewed"


def test_check_finds_no_fault_in_the_served_pair(settled: Program, served: dict[str, str]) -> None:
    """Both stand-ins answer what it asks, also its registration that Eureka has to refuse; nothing
    of that stays."""
    variables = {name: value for name, value in served.items() if name != "curl"}
    ended = settled.command("check", stdin="", **variables)
    assert ended.code == ExitCode.OK, ended.out + ended.err
    url = f"{served['EUREKUBE_SYNC_EUREKA_URL']}/apps/EUREKUBE-SYNC-PROBE"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(url, timeout=60)


def test_curl_works_as_printed(served: dict[str, str]) -> None:
    """The address in the printed curl command answers JSON."""
    found = re.search(r"curl -H '(\S+): (\S+)' (http\S+)$", served["curl"])
    assert found is not None
    with urllib.request.urlopen(
        urllib.request.Request(found[3], headers={found[1]: found[2]}), timeout=60
    ) as answer:
        assert "applications" in json.load(answer)


def test_a_story_that_does_not_come_true_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    """The demo ends at the first pass that fails."""
    with playground.TestedPlayground(cache_seconds=0) as refusing:
        refusing.eureka.refuse_writes = True
        with pytest.raises(EurekubeError, match="the demo did not go as planned: Eureka refused"):
            story._tell(refusing, SystemClock())
    told = capsys.readouterr().out
    assert "3. Do it" in told
    assert "4. " not in told


def test_without_a_folder_for_its_kubeconfig_the_demo_names_the_folder(tmp_path: Path) -> None:
    """A container with a read-only root has no /tmp."""
    nowhere = (
        "import tempfile; tempfile._candidate_tempdir_list = lambda: "
        f"[{str(tmp_path / 'missing')!r}]"
    )
    program = f"{nowhere}; from eurekube_sync.cli.main import main; main(['demo'])"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == ExitCode.CONFIGURATION, ended.stdout + ended.stderr
    assert "the demo could not start (No usable temporary directory found" in ended.stderr
    assert "TMPDIR" in ended.stderr


GOOD = (
    "apiVersion: eurekube.io/v1\nkind: EurekaSyncer\nmetadata: {name: a}\nspec: {selector: "
    "{app: b}}\n"
)
UNKNOWN_FIELD = GOOD.replace("app: b}", "app: b}, limits: 1")
VALIDATED = {
    "good": (GOOD, ExitCode.OK, "valid: 1 syncer in 1 file"),
    "stream": (f"{GOOD}---\n{GOOD}---\n", ExitCode.OK, "2 syncers"),
    "others": (
        f"{GOOD}---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\n",
        ExitCode.OK,
        "1 other object skipped",
    ),
    "nothing": ("", ExitCode.INVALID_MANIFEST, "no EurekaSyncer or EurekaImport was found"),
    "unknown field": (
        UNKNOWN_FIELD,
        ExitCode.INVALID_MANIFEST,
        ":4: error: document 1: $.spec.limits: unknown field",
    ),
    "second": (f"{GOOD}---\n{UNKNOWN_FIELD}", ExitCode.INVALID_MANIFEST, ":9: error: document 2: "),
    "no yaml": ("a: [b", ExitCode.INVALID_MANIFEST, "not YAML"),
    "binary": ("\x00\x01", ExitCode.INVALID_MANIFEST, "error"),
}


@pytest.mark.parametrize("name", VALIDATED)
def test_validate_judges_standard_input(settled: Program, name: str) -> None:
    """The exit code is 0 or 4, with file, line, document and path of an error. No server is
    needed."""
    text, code, words = VALIDATED[name]
    ended = settled.command("validate", "-", stdin=text, KUBECONFIG=None)
    assert ended.code == code, ended.out
    assert words in ended.out
    assert not ended.err


def test_validate_judges_files_and_folders(settled: Program, tmp_path: Path) -> None:
    """Each finding has its file. All files are judged, the worst decides, and JSON and YAML give
    the same result."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yml").write_text(UNKNOWN_FIELD)
    ended = settled.command("validate", tmp_path, tmp_path / "deep" / "good.yaml")
    assert ended.code == ExitCode.INVALID_MANIFEST
    assert ended.out.startswith(f"{tmp_path / 'bad.yml'}:4: error: ")
    assert settled.command("validate", tmp_path / "deep").code == ExitCode.OK
    as_json = settled.command("validate", "-o", "json", tmp_path)
    assert as_json.code == ExitCode.INVALID_MANIFEST
    assert json.loads(as_json.out)["ok"] is False


def test_validate_of_a_file_that_is_not_there_is_a_wrong_command(
    settled: Program, tmp_path: Path
) -> None:
    """The exit code is 2, as without a file. A typing error must not look like a verdict."""
    for arguments in ((tmp_path / "typo.yaml",), ()):
        ended = settled.command("validate", *arguments)
        assert ended.code == ExitCode.USAGE
        assert "FILES" in ended.sentence


def test_validate_of_a_file_that_cannot_be_read_is_a_finding(settled: Program) -> None:
    """Its name is longer than a file's name may be."""
    ended = settled.command("validate", "a" * 300)
    assert ended.code == ExitCode.INVALID_MANIFEST
    assert "error: $: cannot be read: File name too long" in ended.out


def test_validate_of_nothing_fails(settled: Program, tmp_path: Path) -> None:
    """`helm template x | eurekube-sync validate -` must not succeed when helm failed."""
    for arguments in (["-"], [tmp_path]):
        ended = settled.command("validate", *arguments, stdin="")
        assert ended.code == ExitCode.INVALID_MANIFEST
        assert (
            "no EurekaSyncer or EurekaImport was found, nothing at all; if that is right, give --allow-empty"
            in ended.out
        )
        assert (
            settled.command("validate", "--allow-empty", *arguments, stdin="").code == ExitCode.OK
        )
    ended = settled.command("validate", "-", tmp_path, stdin="")
    assert (ended.code, ended.out.partition(":")[0]) == (ExitCode.INVALID_MANIFEST, "error")


def test_validate_heeds_the_output_variable_of_run(settled: Program) -> None:
    """Both commands have the same variable, so `validate` accepts each form that `run` accepts."""
    ended = settled.command("validate", "-", stdin=GOOD, EUREKUBE_SYNC_OUTPUT="yaml")
    assert (ended.code, ended.out.splitlines()[-1]) == (ExitCode.OK, "ok: true")


def test_crd_prints_what_validate_judges_by(settled: Program) -> None:
    """The API server takes the printed CRD, and its fields are those that `validate` accepts."""
    ended = settled.command("crd")
    assert ended.code == ExitCode.OK
    assert "name: eurekasyncers.eurekube.io" in ended.out
    for field in ("readinessGate", "onDuplicate"):
        assert f"{field}:" in ended.out
    again = settled.command("validate", "-", "--allow-empty", stdin=ended.out)
    assert "2 other objects skipped" in again.out
    assert settled.status(IDS[0]) == "UP"
