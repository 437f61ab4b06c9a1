"""Failures of Eureka: each has one sentence with a fix and its exit code. Renewals continue, and no
instance is removed."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.embedded.http import Handler, Request, Response
from tests.command.program import IDS, LONG_SECONDS, WEB_PAGE, Ended, Program, lists_answered

SECRET = "s3cr3t-of-mine"

ODD_LISTS = {
    "web page": (WEB_PAGE, ExitCode.EUREKA_UNREAD, "web page"),
    "login redirect": (
        Response(
            status=302, headers={"Location": f"https://sso.example.com/login?ticket={SECRET}"}
        ),
        ExitCode.EUREKA_DENIED,
        "login page",
    ),
    "moved": (
        Response(status=301, headers={"Location": "https://eureka.example.com/eureka/apps"}),
        ExitCode.EUREKA_UNREAD,
        "give the final URL",
    ),
    "empty body": (Response(status=200), ExitCode.EUREKA_UNREAD, "empty body"),
    "half an answer": (
        Response(status=200, body=b'{"applications":{"application":[{"name":"RATING","inst'),
        ExitCode.EUREKA_UNREAD,
        "cut",
    ),
    "empty object": (Response(status=200, body=b"{}"), ExitCode.EUREKA_UNREAD, "not a registry"),
    "null": (
        Response(status=200, body=b'{"applications":null}'),
        ExitCode.EUREKA_UNREAD,
        "not a registry",
    ),
    "list": (Response(status=200, body=b"[]"), ExitCode.EUREKA_UNREAD, "JSON that is no object"),
    "500": (Response(status=500, body=b"{}"), ExitCode.EUREKA_UNREAD, "log of the Eureka server"),
    "403 warm-up": (Response(status=403, body=b"{}"), ExitCode.EUREKA_UNREAD, "just started"),
}


def assert_safe(ended: Ended) -> None:
    """No instance was cancelled, no status was overridden, and no credential was shown."""
    assert ended.eureka["DELETE"] == 0
    assert SECRET not in ended.out + ended.err


@pytest.mark.parametrize("name", ODD_LISTS)
def test_an_unusable_list_removes_nothing_and_leases_are_renewed(
    settled: Program, name: str
) -> None:
    """The pass reports an unusable list in one sentence, and renews the registered instances."""
    answer, code, words = ODD_LISTS[name]
    with settled.eureka_behind(lists_answered(answer)):
        ended = settled.run()
    assert ended.code == code, ended.out
    assert words in ended.sentence
    assert ended.eureka.keys() <= {"GET", "PUT"}
    assert ended.eureka["PUT"] == 3, (
        "one of an id that cannot exist: without a list, a 200 alone proves nothing"
    )
    assert_safe(ended)


def test_during_warm_up_instances_are_only_renewed(settled: Program) -> None:
    """The 403 of a starting Eureka is not reported as a missing right."""
    settled.playground.eureka.warming_up = True
    ended = settled.run()
    assert ended.code == ExitCode.EUREKA_UNREAD
    assert "just started" in ended.sentence
    assert ended.eureka["PUT"] == 3, "one of an id that cannot exist"
    assert_safe(ended)


def test_a_registry_that_hangs_is_given_up(settled: Program) -> None:
    """Without an answer before the timeout it counts as an outage, in one sentence. That is long
    before a pass has to end."""

    over = threading.Event()

    def hang(request: Request, registry: Handler) -> Response:
        over.wait(LONG_SECONDS)
        return Response(status=503)

    started = time.monotonic()
    with settled.eureka_behind(hang):
        ended = settled.run("--call-timeout", "1s")  # the cluster has to answer in this time too
        over.set()
    assert ended.code == ExitCode.EUREKA_UNREAD
    assert "no answer in time" in ended.sentence
    assert "2 renewals failed for the same reason" in ended.sentence
    assert time.monotonic() - started < 60
    assert_safe(ended)


def test_a_closed_port_is_named(settled: Program) -> None:
    """The sentence has the address once."""
    ended = settled.run("--eureka-url", "http://127.0.0.1:1/eureka")
    assert ended.code == ExitCode.EUREKA_UNREAD
    assert "http://127.0.0.1:1/eureka/apps failed: the connection was refused" in ended.sentence
    assert_safe(ended)


def test_a_url_without_its_path_is_explained(settled: Program) -> None:
    """Without /eureka the sentence asks for it."""
    ended = settled.run("--eureka-url", settled.playground.eureka_url.removesuffix("/eureka"))
    assert ended.code == ExitCode.EUREKA_UNREAD
    assert "check that the URL ends in /eureka" in ended.sentences[0]
    assert_safe(ended)


@pytest.mark.parametrize("form", ["url", "username"])
def test_a_wrong_password_is_one_sentence(settled: Program, form: str) -> None:
    """The sentence names the login as the cause of the 401. No output or log shows the password."""
    settled.playground.eureka.credentials = ("joe", "another")
    url = settled.playground.eureka_url
    if form == "url":
        options, variables = ("--eureka-url", url.replace("://", f"://joe:{SECRET}@")), {}
    else:
        options, variables = ("--eureka-username", "joe"), {"EUREKUBE_SYNC_EUREKA_PASSWORD": SECRET}
    ended = settled.run("-v", *options, **variables)
    assert ended.code == ExitCode.EUREKA_DENIED
    assert "refuses this user or password" in ended.sentence
    assert_safe(ended)
    assert set(ended.eureka) <= {"GET", "PUT"}


def test_the_right_password_works(settled: Program) -> None:
    """It comes from its variable."""
    settled.playground.eureka.credentials = ("joe", SECRET)
    ended = settled.run("--eureka-username", "joe", EUREKUBE_SYNC_EUREKA_PASSWORD=SECRET)
    assert (ended.code, ended.eureka) == (ExitCode.OK, Counter(GET=1, PUT=2)), ended.out


def test_refused_writes_are_reported_once(settled: Program) -> None:
    """The sentence names CSRF protection as the likely cause, once for all instances."""
    settled.playground.eureka.refuse_writes = True
    ended = settled.run()
    assert ended.code == ExitCode.EUREKA_DENIED
    assert "CSRF" in ended.sentence
    assert "(and 1 more)" in ended.sentence
    assert_safe(ended)


def test_a_web_page_in_answer_to_every_call_is_reported(settled: Program) -> None:
    """A login page that answers every call with 200 renews nothing. The program does not trust
    it."""
    with settled.eureka_behind(lambda request, registry: WEB_PAGE):
        ended = settled.run()
    assert ended.code == ExitCode.EUREKA_UNREAD
    assert "renewals failed for the same reason" in ended.sentence
    assert "0 renewed" in ended.out
    assert_safe(ended)


def test_one_refused_instance_stops_no_other(program: Program) -> None:
    """Eureka refuses one registration, and the other is made. The exit code says that something
    failed."""

    def refuse_one(request: Request, registry: Handler) -> Response:
        if request.method == "POST" and b"10.0.0.1:8080" in request.body:
            return Response(status=400, body=b'{"error":"no"}')
        return registry(request)

    with program.eureka_behind(refuse_one):
        ended = program.run()
    assert ended.code == ExitCode.INCOMPLETE, ended.out
    assert "Eureka refuses the instance" in ended.sentence
    assert "1 registered" in ended.out
    assert program.status("demo:rating:rating:10.0.0.2:8080") == "UP"


def test_another_cluster_with_our_owner_is_refused(settled: Program) -> None:
    """Another cluster has an instance with our owner. Only renewals continue."""
    body = (
        b'{"instance":{"instanceId":"demo:x:x:10.9.9.9:1","hostName":"h","ipAddr":"10.9.9.9","app":"X",'
        b'"vipAddress":"x","status":"UP","port":{"$":1,"@enabled":"true"},'
        b'"metadata":{"eurekube.owner":"demo","eurekube.cluster":"elsewhere","eurekube.syncer":"x/x"},'
        b'"dataCenterInfo":{"@class":"com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo","name":"MyOwn"}}}'
    )
    headers = {"content-type": "application/json"}
    path = "/eureka/apps/X"
    settled.playground.eureka.handle(Request(method="POST", path=path, headers=headers, body=body))
    time.sleep(0.1)
    ended = settled.run()
    settled.playground.eureka.handle(Request(method="DELETE", path=f"{path}/demo:x:x:10.9.9.9:1"))
    assert ended.code == ExitCode.OWNER_CLASH, ended.out
    assert "owner clash: the cluster with UID elsewhere" in ended.sentence
    assert "eurekube-sync run --former-cluster elsewhere" in ended.sentence, "the way out"
    assert ended.eureka == {"GET": 1, "PUT": 2}


@pytest.mark.parametrize("options", [(), ("--dry-run",), ("--passes", "2", "--interval", "1s")])
def test_a_typo_in_the_owner_registers_nothing_twice(
    settled: Program, options: tuple[str, ...]
) -> None:
    """The marks show that another owner serves these syncers in this cluster. One sentence says so,
    and nothing is written."""
    ended = settled.run("--owner", "demoo", *options)
    assert ended.code == ExitCode.OWNER_CLASH, ended.out
    assert "2 instances of this cluster are registered under owner demo," in ended.sentences[0]
    assert "Is --owner demoo right?" in ended.sentences[0]
    assert "eurekube-sync run --owner demoo --former-owner demo" in ended.sentences[0], (
        "the way out"
    )
    assert set(ended.eureka) == {"GET"}
    assert set(ended.kubernetes) == {"GET"}
    assert settled.status("demoo:rating:rating:10.0.0.1:8080") is None


UNREADABLE = {
    "forbidden": Response(status=403, body=b"{}"),
    "broken": Response(status=500, body=b"{}"),
    "web page": WEB_PAGE,
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_instance_that_cannot_be_read_again_is_not_reported_as_in_sync(
    program: Program, name: str
) -> None:
    """A pod ends while Eureka can be listed but single instances cannot be read. Its instance
    stays, and report, exit code, condition and event say why. When it can be read again, it is
    removed."""

    def lists_alone(request: Request, registry: Handler) -> Response:
        single = request.method == "GET" and request.path.startswith("/eureka/apps/")
        return UNREADABLE[name] if single else registry(request)

    assert program.run().code == ExitCode.OK
    time.sleep(0.1)
    program.playground.delete("Pod", "rating", "rating-2", grace_seconds=0)
    with program.eureka_behind(lists_alone):
        planned = program.run("--dry-run", "--detailed-exitcode")
        ended = program.run()
    for told in (planned, ended):
        assert told.code == ExitCode.INCOMPLETE, told.out
        assert "in sync" not in told.out
        assert "1 not changed, because not read again" in told.out
        assert IDS[1] in told.sentence
    assert_safe(ended)
    assert program.conditions("rating")["Synced"] == ("False", "PartlyFailed")
    assert "PartlyFailed" in program.events("rating")
    assert "1 cancelled" in program.run().out
    assert program.conditions("rating")["Synced"] == ("True", "InSync")
