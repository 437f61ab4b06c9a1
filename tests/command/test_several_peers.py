"""Several Eureka peers as a user gives them: one or all are down, one refuses, or one is given
twice."""

from __future__ import annotations

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.embedded.http import LoopbackServer, Request, Response
from tests.command.program import Program

SECRET = "s3cr3t"
DEAD, DEAD_TOO = "http://127.0.0.1:1/eureka", "http://127.0.0.1:2/eureka"


def test_the_next_peer_takes_over(settled: Program) -> None:
    """The peers come from a repeated option, a list with commas, or the variable. A first peer that
    is down gives a warning, and the pass is good."""
    live = settled.playground.eureka_url
    for ended in (
        settled.run("--eureka-url", DEAD, "--eureka-url", live),
        settled.run("--eureka-url", f"{DEAD},{live}/"),
        settled.run(EUREKUBE_SYNC_EUREKA_URL=f"{DEAD}, {live}/"),
    ):
        assert ended.code == ExitCode.OK, ended.out + ended.err
        assert ended.eureka == {"GET": 1, "PUT": 2}
        assert (
            ended.err.count(f"skipping Eureka peer {DEAD} until it works: GET {DEAD}/apps failed")
            == 1
        )


def test_when_all_are_down_each_is_named(settled: Program) -> None:
    """The exit code is the same as for a single peer."""
    ended = settled.run("--eureka-url", f"{DEAD},{DEAD_TOO}")
    assert ended.code == ExitCode.EUREKA_UNREAD
    assert f"GET {DEAD}/apps failed" in ended.sentence
    assert f"and {DEAD_TOO} failed in the same way" in ended.sentence


def test_a_peer_that_refuses_is_said_while_the_other_renews(settled: Program) -> None:
    """A wrong password for the first peer gives exit code 21, and is not shown. The second peer
    gets the renewals."""
    with LoopbackServer(lambda _: Response(status=401)) as other:
        refusing = other.url.replace("://", f"://joe:{SECRET}@") + "/eureka"
        ended = settled.run("-v", "--eureka-url", f"{refusing},{settled.playground.eureka_url}")
    assert ended.code == ExitCode.EUREKA_DENIED
    assert f"GET {other.url}/eureka/apps was answered 401" in ended.sentence
    assert "renewals go to the next peer" in ended.sentence
    assert ended.eureka == {"PUT": 3}, (
        "one of an id that cannot exist: there is no list of this server"
    )
    assert SECRET not in ended.out + ended.err


def test_a_web_page_in_a_peers_place_is_said_while_the_other_renews(settled: Program) -> None:
    """The exit code is 20. If a load balancer answers for one peer, the list of another is not
    trusted without a message."""

    def page(request: Request) -> Response:
        return Response(
            status=200, body=b"<!doctype html><html>welcome</html>", content_type="text/html"
        )

    with LoopbackServer(page) as other:
        ended = settled.run("--eureka-url", f"{other.url}/eureka,{settled.playground.eureka_url}")
    assert ended.code == ExitCode.EUREKA_UNREAD
    assert "web page" in ended.sentence
    assert ended.eureka == {"PUT": 3}, (
        "one of an id that cannot exist: there is no list of this server"
    )


def test_one_peer_with_two_logins_is_refused(settled: Program) -> None:
    """No server is called, and neither password is shown."""
    url = settled.playground.eureka_url
    given = [url.replace("://", f"://joe:{secret}@") for secret in (SECRET, "0ther")]
    ended = settled.run(EUREKUBE_SYNC_EUREKA_URL=",".join(given))
    assert ended.code == ExitCode.USAGE
    assert f"{url} is given twice, with different logins" in ended.sentence
    assert not ended.eureka + ended.kubernetes
    assert SECRET not in ended.out + ended.err


def test_one_peer_given_twice_is_a_single_one(settled: Program) -> None:
    url = settled.playground.eureka_url
    ended = settled.run("--eureka-url", f"{url},{url}/")
    assert ended.code == ExitCode.OK
    assert ended.eureka == {"GET": 1, "PUT": 2}
