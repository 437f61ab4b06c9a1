"""The search for secrets: every way to show one fails the test that does it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.command.program import LONG_SECONDS, Program

_QUIET = (
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-c",
    "/dev/null",
    "--tb=line",
    "--show-capture=no",
    "-rN",
)
ROOT = Path(__file__).parents[2]
SHOWN = {
    "its own output": "print(planted.METADATA_PASSWORD)",
    "a log": "logging.getLogger().error('cannot log in as %s', planted.LOGIN)",
    "a process": "subprocess.run([sys.executable, '-c', 'import os; print(os.environ[\"P\"])'], "
    "env={'P': planted.EUREKA_PASSWORD}, capture_output=True)",
    "a process that goes on": "with subprocess.Popen([sys.executable, '-c', 'import os; "
    'print(os.environ["P"])\'], '
    "env={'P': planted.EUREKA_PASSWORD}, stdout=subprocess.PIPE, text=True) as one: "
    "next(one.stdout)",
    "an encoded login": "print(base64.b64encode(planted.LOGIN.encode()))",
    "a status": "planted.search_call(Request(method='PATCH', path='/apis/x/status', headers={}, "
    "body=planted.METADATA_PASSWORD.encode()))",
    "a call to Eureka": "planted.search_call(Request(method='POST', path='/eureka/apps/X', "
    "headers={}, "
    "body=planted.KUBERNETES_TOKEN.encode()))",
    "a record": "gzip.open(tmp_path / 'x.json.gz', 'wb').write(planted.EUREKA_PASSWORD.encode()); "
    "subprocess.run([sys.executable, '-c', '', '--record', tmp_path], capture_output=True)",
}
FINE = (
    "planted.search_call(Request(method='POST', path='/eureka/apps/X', "
    "body=planted.METADATA_PASSWORD.encode()))"
)
HEAD = """
import base64, gzip, logging, subprocess, sys
from eurekube_sync.embedded.http import Request
from tests import planted

"""


def test_a_test_that_shows_a_secret_fails(tmp_path: Path) -> None:
    """Each of these tests asserts nothing. All but the last fail, and the message does not repeat
    the secret."""
    lines = [*SHOWN.values(), FINE]
    tests = [f"def test_{number}(tmp_path):\n    {line}\n" for number, line in enumerate(lines)]
    (tmp_path / "test_it.py").write_text(HEAD + "\n".join(tests))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "tests.planted"),
            *_QUIET,
            "--rootdir",
            tmp_path,
            tmp_path,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LONG_SECONDS,
        check=False,
    )
    assert f"{len(SHOWN)} failed, 1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("form", ["table", "json", "markdown"])
def test_a_password_in_metadata_is_not_shown_when_it_changes(program: Program, form: str) -> None:
    """Callers need it in Eureka. The report says that it changes, and the search checks the
    rest."""
    assert program.run().code == 0
    metadata = {"user.password": "another-one", "version": "2"}
    program.playground.change("EurekaSyncer", "rating", "rating", {"spec": {"metadata": metadata}})
    shown = program.run("--dry-run", "-o", form).out
    assert "metadata.user.password" in shown.replace("\\", "")
    assert "another-one" not in shown
    assert "metadata.version" in shown.replace("\\", "")
