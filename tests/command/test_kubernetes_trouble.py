"""Failures of the Kubernetes API: each has one sentence and its exit code. All instances are
renewed, and none is removed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.embedded.http import Handler, Request, Response
from tests.command.program import LONG_SECONDS, WEB_PAGE, Ended, Program, rating

TOKEN = "t0ken-of-mine"

ODD_ANSWERS = {
    "web page": ("/api", WEB_PAGE, ExitCode.KUBERNETES_UNREAD, "web page"),
    "cut list": (
        "eurekasyncers",
        Response(status=200, body=b'{"kind":"EurekaSyncerList","items":[{"metadata"'),
        ExitCode.KUBERNETES_UNREAD,
        "with no complete list",
    ),
    "410 for ever": (
        "endpointslices",
        Response(status=410, body=b'{"kind":"Status","reason":"Expired","message":"too old"}'),
        ExitCode.KUBERNETES_UNREAD,
        "expired",
    ),
    "empty body": (
        "services",
        Response(status=200),
        ExitCode.KUBERNETES_UNREAD,
        "with no complete list",
    ),
    "another kind": (
        "services",
        Response(
            status=200, body=b'{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[]}'
        ),
        ExitCode.KUBERNETES_UNREAD,
        "a PodList",
    ),
    "redirect": (
        "services",
        Response(status=302, headers={"Location": "https://sso.example.com/"}),
        ExitCode.KUBERNETES_UNREAD,
        "302",
    ),
    "500": (
        "services",
        Response(status=500, body=b"{}"),
        ExitCode.KUBERNETES_UNREAD,
        "answered 500",
    ),
}


def assert_only_renewed(ended: Ended) -> None:
    """Both leases were renewed, and Eureka got no other write."""
    assert ended.eureka == {"GET": 1, "PUT": 2}, ended.out + ended.err


@pytest.mark.parametrize("name", ODD_ANSWERS)
def test_an_unusable_answer_removes_nothing(settled: Program, name: str) -> None:
    """The pass reports an unusable answer in one sentence, and only renews."""
    where, answer, code, words = ODD_ANSWERS[name]

    def proxy(request: Request, api: Handler) -> Response:
        return answer if where in request.path and request.method == "GET" else api(request)

    with settled.kubernetes_behind(proxy) as kubeconfig:
        ended = settled.run("--kubeconfig", kubeconfig)
    assert ended.code == code, ended.out
    assert words in ended.sentence
    assert_only_renewed(ended)


def test_a_closed_port_is_one_sentence(settled: Program) -> None:
    """The sentence has the address once, and the leases are renewed."""
    ended = settled.run("--kubeconfig", settled.kubeconfig_of("http://127.0.0.1:1"))
    assert ended.code == ExitCode.KUBERNETES_UNREAD
    assert "http://127.0.0.1:1" in ended.sentence
    assert_only_renewed(ended)


@pytest.mark.parametrize(
    "where", ["/api/v1/namespaces/kube-system", "eurekasyncers", "endpointslices", "/nodes"]
)
def test_leases_are_renewed_while_the_kubernetes_api_hangs(settled: Program, where: str) -> None:
    """It gets a part of the pass's time, and Eureka gets the rest."""

    over = threading.Event()

    def proxy(request: Request, api: Handler) -> Response:
        if where in request.path:
            over.wait(LONG_SECONDS)
        return api(request)

    begun = time.monotonic()
    with settled.kubernetes_behind(proxy) as kubeconfig:
        limits = ("--pass-timeout", "5s", "--call-timeout", "100s")
        ended = settled.run("--kubeconfig", kubeconfig, "--drain-annotations", "all", *limits)
        assert time.monotonic() - begun < 100, "it waited for as long as a call may take"
        over.set()
    assert ended.code == ExitCode.KUBERNETES_UNREAD, ended.out
    assert_only_renewed(ended)


def test_a_bad_token_is_one_sentence(settled: Program) -> None:
    """The sentence asks for a new login and does not show the token. The leases are renewed."""
    settled.playground.kubernetes.access.tokens["good"] = "alice"
    kubeconfig = settled.kubeconfig(users=[{"name": "embedded", "user": {"token": TOKEN}}])
    ended = settled.run("-v", "--kubeconfig", kubeconfig)
    assert ended.code == ExitCode.KUBERNETES_DENIED
    assert "log in again" in ended.sentence
    assert TOKEN not in ended.out + ended.err
    assert_only_renewed(ended)


@pytest.mark.parametrize("resource", ["eurekasyncers", "services", "endpointslices"])
def test_a_forbidden_list_is_reported_in_one_sentence(settled: Program, resource: str) -> None:
    """It names the missing right, and what depends on it is renewed."""
    settled.playground.kubernetes.deny(resource, "list")
    ended = settled.run()
    assert ended.code == ExitCode.KUBERNETES_DENIED
    assert f'cannot list resource "{resource}"' in ended.sentence
    assert_only_renewed(ended)


@pytest.mark.parametrize("resource", ["pods", "nodes"])
def test_a_right_that_only_drains_need_is_one_sentence_and_no_failure(
    settled: Program, resource: str
) -> None:
    """The sentence names the option that avoids it. Everything else continues."""
    settled.playground.kubernetes.deny(resource, "list")
    ended = settled.run("--drain-annotations", "all")
    assert ended.code == ExitCode.OK
    assert f'cannot list resource "{resource}"' in ended.sentence
    assert "or set --drain-annotations" in ended.sentence
    assert_only_renewed(ended)


def test_a_pass_that_was_not_asked_to_looks_at_no_pods_and_no_nodes(settled: Program) -> None:
    """By default only Services are checked for drains, so neither right is needed."""
    for resource in ("pods", "nodes"):
        settled.playground.kubernetes.deny(resource, "list")
    ended = settled.run()
    assert (ended.code, "cannot list" in ended.out) == (ExitCode.OK, False), ended.out
    assert_only_renewed(ended)


def test_a_cluster_without_a_readable_uid_is_reported_in_one_sentence(settled: Program) -> None:
    """Without the UID of kube-system, our instances of this cluster are unknown. All instances of
    our owner are renewed."""
    settled.playground.kubernetes.deny("namespaces", "get")
    ended = settled.run()
    assert ended.code == ExitCode.KUBERNETES_DENIED
    assert "kube-system" in ended.sentence
    assert_only_renewed(ended)


MEANWHILE = {
    "forbidden": (
        Response(
            status=403, body=b'{"kind":"Status","reason":"Forbidden","message":"not for you"}'
        ),
        ExitCode.KUBERNETES_DENIED,
        "it is unknown whether the Kubernetes API still serves the same cluster: the Kubernetes "
        "API forbids",
    ),
    "another": (
        Response(status=200, body=b'{"metadata":{"name":"kube-system","uid":"of-another"}}'),
        ExitCode.KUBERNETES_UNREAD,
        "the Kubernetes API now serves another cluster",
    ),
}


@pytest.mark.parametrize("name", MEANWHILE)
def test_a_uid_that_cannot_be_read_again_is_reported_in_one_sentence(
    settled: Program, name: str
) -> None:
    """The UID was known when the pass began. It cannot be read when a pod is to be turned DOWN."""
    answer, code, words = MEANWHILE[name]
    asked: list[str] = []

    def proxy(request: Request, api: Handler) -> Response:
        if request.path == "/api/v1/namespaces/kube-system":
            asked.append(request.method)
            return answer if len(asked) > 1 else api(request)
        return api(request)

    settled.playground.set_ready("rating", "rating-2", ready=False)
    with settled.kubernetes_behind(proxy) as kubeconfig:
        ended = settled.run("--kubeconfig", kubeconfig)
    assert (ended.code, len(asked)) == (code, 2), ended.out + ended.err
    assert words in ended.sentence
    assert ended.sentence.partition("; ")[2].startswith("our instances are only renewed")
    assert (ended.eureka["PUT"], ended.eureka["POST"], ended.eureka["DELETE"]) == (2, 0, 0)
    assert ended.kubernetes["PATCH"] == 0
    settled.playground.set_ready("rating", "rating-2", ready=True)
    assert settled.run().code == ExitCode.OK


def test_a_status_that_may_not_be_written_is_reported_once(settled: Program) -> None:
    """Eureka gets its changes all the same."""
    settled.playground.kubernetes.deny("eurekasyncers/status", "patch")
    settled.playground.set_ready("rating", "rating-2", ready=False)
    ended = settled.run()
    settled.playground.kubernetes.access.denials.clear()
    settled.playground.set_ready("rating", "rating-2", ready=True)
    assert settled.run().code == ExitCode.OK
    assert ended.code == ExitCode.KUBERNETES_DENIED
    assert "eurekasyncers/status" in ended.sentence
    assert "1 turned DOWN" in ended.out


@pytest.fixture
def without_crd(program: Program) -> Iterator[Program]:
    """Two instances are registered. Then somebody deletes the CRD."""
    assert program.run().code == ExitCode.OK
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/eurekasyncers.eurekube.io"
    program.playground.kubernetes.call("DELETE", path)
    yield program
    assert program.status() == "UP"


def test_a_crd_that_is_being_deleted_or_is_gone_removes_nothing(without_crd: Program) -> None:
    """Each pass has its own exit code, during the deletion and after it. All is renewed."""
    ended = without_crd.run()
    assert ended.code == ExitCode.KUBERNETES_UNREAD
    assert "being deleted" in ended.sentence
    assert_only_renewed(ended)
    path = "/apis/eurekube.io/v1/namespaces/rating/eurekasyncers/rating"
    without_crd.playground.kubernetes.call("PATCH", path, {"metadata": {"finalizers": None}})
    ended = without_crd.run()
    assert ended.code == ExitCode.KUBERNETES_UNREAD
    assert "kubectl apply" in ended.sentence
    assert_only_renewed(ended)


def test_everything_down_is_two_sentences(settled: Program) -> None:
    """Kubernetes and Eureka cannot be reached, and each has one sentence."""
    closed = "http://127.0.0.1:1"
    ended = settled.run(
        "--kubeconfig", settled.kubeconfig_of(closed), "--eureka-url", f"{closed}/eureka"
    )
    assert ended.code == ExitCode.KUBERNETES_UNREAD
    assert len(ended.sentences) == 2, ended.out


KUBECONFIGS = {
    "missing": (None, "there is no kubeconfig"),
    "empty": ("", "is not a kubeconfig"),
    "broken": ("a: [b\nc: {", "line 2"),
    "no current context": (
        "contexts: [{name: a, context: {cluster: a, user: a}}]",
        "no current context: give --context",
    ),
    "dangling context": (
        "current-context: b\ncontexts: [{name: a}]",
        "has no context 'b'; it has: a",
    ),
    "no cluster": (
        "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]",
        "cannot be used",
    ),
    "no scheme": (
        "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nusers: "
        "[{name: a, user: {}}]\n"
        "clusters: [{name: a, cluster: {server: 'api.example.com:6443'}}]",
        "http",
    ),
}


@pytest.mark.parametrize("name", KUBECONFIGS)
def test_a_wrong_kubeconfig_is_one_sentence(settled: Program, name: str) -> None:
    """The sentence names the kubeconfig, and no server is called."""
    text, words = KUBECONFIGS[name]
    path = settled.folder / "given"
    path.unlink(missing_ok=True)
    if text is not None:
        path.write_text(text)
    ended = settled.run("--kubeconfig", path)
    assert ended.code == ExitCode.CONFIGURATION, ended.out + ended.err
    assert words in ended.sentence
    assert str(path) in ended.sentence
    assert not ended.out
    assert not ended.eureka + ended.kubernetes


def test_an_unknown_context_lists_those_there_are(settled: Program) -> None:
    """The sentence has the contexts of the kubeconfig."""
    ended = settled.run("--context", "prod")
    assert ended.code == ExitCode.CONFIGURATION
    assert "no context 'prod'; it has: embedded" in ended.sentence


def test_no_kubeconfig_at_all_asks_for_one(settled: Program) -> None:
    """Outside of a cluster and without a file, the sentence names the option."""
    ended = settled.run(KUBECONFIG=None)
    assert ended.code == ExitCode.CONFIGURATION
    assert "give --kubeconfig FILE" in ended.sentence


def test_a_slow_cluster_is_waited_for(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A 503 with Retry-After needs no action."""
    answers = [Response(status=503, headers={"Retry-After": "0"})]

    def proxy(request: Request, api: Handler) -> Response:
        return answers.pop() if answers else api(request)

    with (
        rating(tmp_path_factory.mktemp("slow")) as program,
        program.kubernetes_behind(proxy) as kubeconfig,
    ):
        ended = program.run("--kubeconfig", kubeconfig)
    assert (ended.code, ended.sentences) == (ExitCode.OK, []), ended.out
