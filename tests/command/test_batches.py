"""`--eureka-batch` as a user meets it: used by itself where it is safe, in a dry run, switched off,
and in keepalive."""

from __future__ import annotations

import json

import pytest

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.embedded.http import LoopbackServer, Request, Response
from tests.command.program import Program


@pytest.mark.parametrize("command", ["run", "keepalive"])
def test_by_default_a_single_server_takes_batches(settled: Program, command: str) -> None:
    """The pass makes a list and the probe, a batch for an absent instance, and one with the
    renewals."""
    ended = settled.command(command, "--verbose", EUREKUBE_SYNC_EUREKA_BATCH=None)
    assert ended.code == ExitCode.OK, ended.out + ended.err
    assert "2 renewed" in ended.out
    assert ended.eureka == {"GET": 2, "POST": 2}
    assert "renewals go to the Eureka server in batches of 250" in ended.err


def test_a_dry_run_shows_which_way_it_is_and_writes_nothing(settled: Program) -> None:
    """JSON has it, and so has the log with --verbose. A report for people leaves it out."""
    ended = settled.run("--dry-run", "--eureka-batch", "auto")
    assert "batches" not in ended.out + ended.err
    assert ended.eureka == {"GET": 2}
    told = settled.run("--dry-run", "--eureka-batch", "auto", "--verbose").err
    assert (
        "renewals go to the Eureka server in batches of 250: --eureka-url names every server"
        in told
    )
    found = json.loads(settled.run("--dry-run", "--eureka-batch", "on", "-o", "json").out)[
        "eurekaBatch"
    ]
    assert found == {
        "enabled": True,
        "why": "renewals go to the Eureka server in batches of 250: --eureka-batch is on",
    }
    ended = settled.run("--dry-run", "--eureka-batch", "off", "-o", "json")
    assert json.loads(ended.out)["eurekaBatch"] is None
    assert ended.eureka == {"GET": 1}


def test_a_load_balancer_ends_as_plain_renewals(settled: Program) -> None:
    """Its servers name each other by addresses that were not given."""
    page = (
        b"<s><applicationStats><registered-replicas>http://joe:s3cr3t@eureka-2:8761/eureka/</registered-replicas>"
        b"</applicationStats></s>"
    )

    def forward(request: Request) -> Response:
        if request.path == "/eureka/status":
            return Response(status=200, body=page, content_type="application/xml")
        return settled.playground.eureka.handle(request)

    with LoopbackServer(forward) as balancer:
        url = f"{balancer.url}/eureka"
        ended = settled.run("--eureka-url", url, "--eureka-batch", "auto", "-o", "json")
    assert ended.code == ExitCode.OK, ended.out + ended.err
    told = json.loads(ended.out)
    assert not told["eurekaBatch"]["enabled"]
    assert (
        f"{url} replicates to http://eureka-2:8761/eureka, which --eureka-url does not name"
        in ended.err
    )
    assert "s3cr3t" not in ended.out + ended.err
    assert "2 renewed" in told["summary"]


def test_a_refused_batch_path_falls_back_and_says_what_to_allow(settled: Program) -> None:
    """All instances are renewed all the same."""

    def guarded(request: Request) -> Response:
        if "peerreplication" in request.path:
            return Response(status=403, body=b"{}")
        return settled.playground.eureka.handle(request)

    with LoopbackServer(guarded) as server:
        ended = settled.run("--eureka-url", f"{server.url}/eureka", "--eureka-batch", "on")
    assert ended.code == ExitCode.OK, ended.out + ended.err
    assert "2 renewed" in ended.out
    assert ended.err.count("/eureka/peerreplication/**") == 1
