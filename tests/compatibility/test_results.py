"""What a run of pytest tells the matrix, by runs of pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.compatibility.results import Results, read_results

_TESTS = """
import pytest

def test_good() -> None:
    pass

def test_bad() -> None:
    status = "DOWN"
    assert status == "UP"

@pytest.mark.skip(reason="no server")
def test_skipped() -> None:
    pass

@pytest.fixture
def server() -> None:
    raise OSError("it does not start")

def test_without_a_server(server: None) -> None:
    pass
"""


def results(folder: Path, *arguments: str) -> Results:
    """What pytest finds in a file of tests."""
    (folder / "test_some.py").write_text(_TESTS)
    (folder / "pytest.ini").write_text("[pytest]\n")
    report = folder / "junit.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-o", "junit_family=xunit1", f"--junitxml={report}", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=60)
    return read_results(report, done.returncode)


def test_each_test_that_did_not_pass_is_named(tmp_path: Path) -> None:
    """With the end of its error, also if its server did not start, or if it was skipped."""
    found = results(tmp_path)
    assert found.sum(["test_some.py"]) == {"passed": 1, "failed": 3}
    text = "\n".join(found.failures)
    for words in (
        "test_some.py::test_bad\n",
        "AssertionError: assert 'DOWN' == 'UP'",
        "test_some.py::test_without_a_server\n",
        "OSError: it does not start",
        "test_some.py::test_skipped\n",
        "no server",
    ):
        assert words in text
    assert "test_good" not in text


def test_a_file_in_which_nothing_passed_has_failed(tmp_path: Path) -> None:
    """None of its tests was chosen, or the file is not there."""
    assert results(tmp_path, "-k", "good").sum(["test_other.py"]) == {"passed": 0, "failed": 1}


def test_a_run_that_fails_without_a_failing_test_has_no_numbers(tmp_path: Path) -> None:
    """A warning at the end, a plugin that fails, or pytest does not start at all."""
    (tmp_path / "conftest.py").write_text(
        "def pytest_sessionfinish(session): session.exitstatus = 3\n"
    )
    for arguments in (["-k", "good"], ["--no-such-option"]):
        (tmp_path / "junit.xml").unlink(missing_ok=True)
        found = results(tmp_path, *arguments)
        assert found.sum(["test_some.py"]) == {"passed": 0, "failed": 1}
        assert found.failures[0].startswith("pytest ended with exit code")
