"""`python -m tests.compatibility [ROW ...]` runs the tests of rows, by default of all, and writes
docs/compatibility.json. `--quick` runs the rows of plain `tox`, and writes nothing."""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

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
    parser.add_argument("--quick", action="store_true", help="the rows of plain tox alone")
    arguments = parser.parse_args()
    if arguments.quick:
        results = {name: _run(row, pair=False) for name, row in ROWS.items() if row.quick}
    else:
        results = {}
        for name in arguments.rows or ROWS:
            results[name] = _run(ROWS[name], pair=True)
            _keep(name, results[name])
    good = all(part["failed"] == 0 for row in results.values() for part in row["parts"].values())
    return 0 if good else 1


def _run(row: Row, *, pair: bool) -> dict[str, Any]:
    """Run the tests of a row; return the numbers of each part, and the seconds of all."""
    begun = time.monotonic()
    files = [file for part in row.parts.values() for file in part]
    marked = "servers" if row.name in NEWEST_ROWS else "servers and not newest_alone"
    # The story on stock timings waits for minutes, and shows nothing more of an old server.
    # The CRD's tests start the oldest Kubernetes by themselves.
    numbers = _pytest(
        row.variables, [*files, "-m", marked, "-k", "not eureka_stock and not oldest"]
    )
    parts = {name: _sum(numbers, files) for name, files in row.parts.items()}
    if pair and row.pair is not None:
        numbers = _pytest(row.pair, [PEERS, "-k", _PAIR_TEST])
        parts["pair"] = _sum(numbers, [PEERS])
    seconds = round(time.monotonic() - begun)
    say(f"{row.name}: {seconds} s, {parts}")
    return {"at": f"{datetime.now(UTC):%Y-%m-%d}", "seconds": seconds, "parts": parts}


def _sum(numbers: Mapping[str, Counter[str]], files: Sequence[str]) -> dict[str, int]:
    """The tests of some files. A part in which no test ran has failed."""
    total: Counter[str] = sum((numbers.get(file, Counter()) for file in files), Counter())
    failed = total["failed"] if total["passed"] else max(total["failed"], 1)
    return {"passed": total["passed"], "failed": failed}


def _pytest(variables: Mapping[str, str], arguments: Sequence[str]) -> dict[str, Counter[str]]:
    """Run pytest with a server chosen; return how many tests of each file passed and failed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        command = [
            *(sys.executable, "-m", "pytest", "-q", "-n", str(_WORKERS), "--dist", "loadfile"),
            *("-o", "junit_family=xunit1", f"--junitxml={report}"),
            *arguments,
        ]
        subprocess.run(command, env={**os.environ, **variables}, check=False)
        numbers: dict[str, Counter[str]] = {}
        for case in ElementTree.parse(report).iter("testcase"):
            bad = any(case.find(kind) is not None for kind in ("failure", "error", "skipped"))
            name = case.get("file") or f"{case.get('classname', '')}"
            numbers.setdefault(name, Counter())["failed" if bad else "passed"] += 1
    return numbers


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
