"""Metrics, health and the status page of the installed command. They are not loaded if nobody asks
for them."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
import requests

from eurekube_sync.embedded.http import LoopbackServer, Request, Response
from tests.command.program import LONG_SECONDS, Program, rating
from tests.waiting import wait_until

LEASES = "/apis/coordination.k8s.io/v1/namespaces/rating/leases"


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    with rating(tmp_path) as found:
        yield found


def test_a_daemon_serves_metrics_health_and_a_page(program: Program) -> None:
    """The log names the free port. Calls to both servers are counted."""
    away = "http://127.0.0.1:9/eureka"  # the first is asked for its list, and the other gives it
    process = program.start(
        "run",
        "--daemon",
        "--interval=1s",
        "--listen=127.0.0.1:0",
        f"--eureka-url={away},{program.playground.eureka_url}",
    )
    assert process.stderr is not None
    found = re.search(r"listening on (http://\S+) ", process.stderr.readline())
    assert found is not None
    url = found[1]
    wait_until(
        lambda: requests.get(f"{url}/readyz", timeout=10).status_code == 200, "no pass ended"
    )
    assert requests.get(f"{url}/livez", timeout=10).status_code == 200
    metrics = requests.get(f"{url}/metrics", timeout=10).text
    assert 'eurekube_sync_instances{app="RATING",state="UP"} 2.0' in metrics
    assert 'eurekube_sync_passes_total{result="OK"}' in metrics
    assert 'eurekube_sync_calls_total{code="204",server="Eureka"} 2.0' in metrics
    assert 'eurekube_sync_calls_total{code="200",server="Kubernetes"}' in metrics
    page = requests.get(url, timeout=10).text
    assert "0 of 1</strong> syncer is not ready" in page
    assert re.search(rf'{program.playground.eureka_url} <span class="good">answered 20\d, ', page)
    assert f'{away} <span class="bad">gave no answer, ' in page
    assert "<dt>Next pass</dt>" in page
    single = requests.get(f"{url}/syncer/rating/rating", timeout=10).text
    assert "Registered: 2 of 2 UP as RATING." in single
    assert "last good pass: 0 s ago by this process: " in single
    process.send_signal(signal.SIGTERM)
    assert program.end(process).code == 0


def test_a_single_run_leaves_a_file(program: Program, tmp_path: Path) -> None:
    """A failed run does too, and its file keeps the time of the last good pass."""
    path = tmp_path / "sync.prom"
    assert program.run(f"--metrics-to={path}").code == 0
    good = [
        line for line in path.read_text().splitlines() if line.startswith("eurekube_sync_last_good")
    ]
    assert len(good) == 1
    program.eureka_url = "http://127.0.0.1:9/eureka"
    assert program.run(f"--metrics-to={path}").code == 20
    text = path.read_text()
    assert "eurekube_sync_last_pass_exit_code 20.0" in text
    assert good[0] in text
    assert 'eurekube_sync_calls_total{code="none",server="Eureka"}' in text


def test_a_record_that_cannot_be_written_is_in_the_metrics_of_the_same_pass(
    program: Program, tmp_path: Path
) -> None:
    """The process of a CronJob has no later pass to tell it. The pass itself succeeds."""
    path, in_the_way = tmp_path / "sync.prom", tmp_path / "disk"
    in_the_way.write_text("no folder")
    done = program.run(f"--metrics-to={path}", f"--record={in_the_way / 'records'}")
    assert done.code == 0
    assert done.err.count("cannot write records") == 1
    assert "eurekube_sync_record_unwritten 1.0" in path.read_text()
    assert program.run(f"--metrics-to={path}", f"--record={tmp_path / 'records'}").code == 0
    assert "eurekube_sync_record_unwritten 0.0" in path.read_text()


def test_the_lease_and_the_metric_say_the_same_of_the_last_good_pass(
    program: Program, tmp_path: Path
) -> None:
    """The time is that of its end, not of its beginning."""
    path = tmp_path / "sync.prom"

    def slow(request: Request) -> Response:
        if request.method == "POST":
            time.sleep(2)
        return program.playground.eureka.handle(request)

    with LoopbackServer(slow) as server:
        done = program.run(
            "--eureka-url", f"{server.url}/eureka", "--lock=rating/sync", f"--metrics-to={path}"
        )
    assert done.code == 0, done.err
    ended = re.search(
        r"^eurekube_sync_last_good_pass_timestamp_seconds\S* (\S+)", path.read_text(), re.MULTILINE
    )
    assert ended is not None
    _, lease = program.playground.kubernetes.call("GET", f"{LEASES}/sync")
    noted = datetime.fromisoformat(lease["metadata"]["annotations"]["eurekube.io/last-good-pass"])
    assert abs(noted.timestamp() - float(ended[1])) < 1.5


def test_an_address_that_is_taken_ends_it_at_once(program: Program) -> None:
    """It ends before any write."""
    url = program.playground.eureka_url
    host = url.removeprefix("http://").partition("/")[0]
    done = program.run(f"--listen={host}")
    assert done.code == 3
    assert done.sentence == f"Error: --listen cannot open {host}: Address already in use"
    assert not done.eureka


def test_a_run_that_nobody_watches_loads_no_server_and_no_client_of_prometheus(
    program: Program,
) -> None:
    """They would cost time and memory at each start of a CronJob."""
    code = (
        "import sys; from eurekube_sync.cli.command_line import exit_code; code = "
        "exit_code(sys.argv[1:]);"
        "print(sorted({'prometheus_client', 'jinja2', 'http.server', 'socketserver'} & set(sys.modules"
        ")), file=sys.stderr);"
        "sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "run"],
        cwd=program.folder,
        env=program.environment(),
        capture_output=True,
        text=True,
        timeout=LONG_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"
