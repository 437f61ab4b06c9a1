"""`python -m tests.compatibility [ROW ...]` runs the tests of rows, by default of all, and writes
docs/compatibility.json. `--quick` runs the rows of `tox -m wide`, and writes nothing."""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.compatibility.results import Results, read_results
from tests.compatibility.rows import NEWEST_ROWS, PEERS, ROWS, Row
from tests.servers.cache import say
from tests.servers.toolchains import java, java_version

RESULT = Path(__file__).parents[2] / "docs" / "compatibility.json"
_WORKERS = 3
_PAIR_TEST = "test_a_peer_dies_and_comes_back_empty and auto"
"""In batches, if the servers allow it: the calls that peers make to each other."""


def main() -> int:
    """Run rows; return the exit code: 1 if a test failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.compatibility", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"one of: {', '.join(ROWS)}")
    parser.add_argument("--quick", action="store_true", help="the rows of `tox -m wide` alone")
    arguments = parser.parse_args()
    chosen = arguments.rows or list(ROWS)
    if arguments.quick:
        chosen = [name for name, row in ROWS.items() if row.quick]
    failures: list[str] = []
    for name in chosen:
        row, begun = ROWS[name], time.monotonic()
        parts = _run(row, failures, pair=not arguments.quick)
        seconds = round(time.monotonic() - begun)
        say(f"{name}: {seconds} s, {parts}")
        if not arguments.quick:
            _keep(name, {"at": f"{datetime.now(UTC):%Y-%m-%d}", "seconds": seconds, "parts": parts})
    # At the very end, where they are found: pytest has told them between thousands of other lines
    for failure in failures:
        say(failure)
    return 1 if failures else 0


def _run(row: Row, failures: list[str], *, pair: bool) -> dict[str, dict[str, int]]:
    """Run the tests of a row; return the numbers of each part. What failed is added to
    `failures`."""
    files = [file for part in row.parts.values() for file in part]
    marked = "servers" if row.name in NEWEST_ROWS else "servers and not newest_alone"
    # The story on stock timings waits for minutes, and shows nothing more of an old server.
    chosen = [*files, "-m", marked, "-k", "not eureka_stock"]
    results = _pytest(row.variables, chosen)
    parts = {name: results.sum(files) for name, files in row.parts.items()}
    failures += [f"{row.name}: {failure}" for failure in results.failures]
    if pair and row.pair is not None:
        results = _pytest(row.pair, [PEERS, "-k", _PAIR_TEST])
        parts["pair"] = results.sum([PEERS])
        failures += [f"{row.name}, as a pair: {failure}" for failure in results.failures]
    for name, numbers in parts.items():
        if numbers["passed"] == 0:
            failures.append(f"{row.name}: no test of {name} passed")
    return parts


def _pytest(variables: Mapping[str, str], arguments: Sequence[str]) -> Results:
    """Run pytest with a server chosen."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        command = [
            *(sys.executable, "-m", "pytest", "-q", "-n", str(_WORKERS), "--dist", "loadfile"),
            *("-o", "junit_family=xunit1", f"--junitxml={report}"),
            *arguments,
        ]
        done = subprocess.run(command, env={**os.environ, **variables}, check=False)
        return read_results(report, done.returncode)


def _keep(name: str, result: Mapping[str, Any]) -> None:
    """Write the result of a row, beside those of the others."""
    kept = json.loads(RESULT.read_text()) if RESULT.is_file() else {}
    rows = {**kept.get("rows", {}), name: result}
    document = {"machine": _machine(), "rows": {name: rows[name] for name in ROWS if name in rows}}
    RESULT.write_text(json.dumps(document, indent=2) + "\n")


def _machine() -> dict[str, Any]:
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "java": java_version(java()),
    }


def _processor() -> str:
    """The name that Linux has for it."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    sys.exit(main())
