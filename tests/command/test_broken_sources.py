"""Incomplete sources, through whole passes: lists that break off. No instance is removed because of
what they lack."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.embedded.http import Handler, Request, Response
from eurekube_sync.model.struct import replace
from tests.command.program import IDS, Program

Proxy = Callable[[Request, Handler], Response]
THIRD = "demo:rating:rating:10.0.0.3:8080"
EXPIRED = Response(status=410, body=b'{"kind":"Status","reason":"Expired","message":"too old"}')
SLICE = {
    "apiVersion": "discovery.k8s.io/v1",
    "kind": "EndpointSlice",
    "metadata": {
        "name": "a-first",
        "namespace": "rating",
        "labels": {"kubernetes.io/service-name": "rating"},
    },
    "addressType": "IPv4",
    "ports": [{"name": "http", "port": 8080}],
    "endpoints": [{"addresses": ["10.0.0.3"], "conditions": {"ready": True}}],
}
SECOND_PAGES = {
    "410 for ever": (EXPIRED, ExitCode.KUBERNETES_UNREAD, "SourceUnknown"),
    "500": (Response(status=500, body=b"{}"), ExitCode.KUBERNETES_UNREAD, "SourceUnknown"),
    "403": (Response(status=403, body=b"{}"), ExitCode.KUBERNETES_DENIED, "SourceUnknown"),
    "404": (Response(status=404, body=b"{}"), ExitCode.KUBERNETES_UNREAD, "SourceUnknown"),
    "cut": (
        Response(status=200, body=b'{"kind":"EndpointSliceList","items":['),
        ExitCode.KUBERNETES_UNREAD,
        "SourceUnknown",
    ),
}


def in_pages(answer: Response | None, *, times: int = 1000) -> Proxy:
    """List slices one a page. The second page gets this answer, this many times."""
    left = [times]

    def proxy(request: Request, api: Handler) -> Response:
        if "endpointslices" not in request.path or request.method != "GET":
            return api(request)
        if answer is not None and request.query.get("continue") and left[0]:
            left[0] -= 1
            return answer
        return api(replace(request, query={**request.query, "limit": "1"}))

    return proxy


@pytest.fixture
def paged(program: Program) -> Iterator[Program]:
    """Three instances. The first page of slices has one of them, and the second page has the
    others. In the end all are UP."""
    status, _ = program.playground.kubernetes.call(
        "POST", "/apis/discovery.k8s.io/v1/namespaces/rating/endpointslices", SLICE
    )
    assert status == 201
    assert program.run().code == ExitCode.OK
    yield program
    assert [program.status(id_) for id_ in (*IDS, THIRD)] == ["UP"] * 3


@pytest.mark.parametrize("name", SECOND_PAGES)
def test_a_list_whose_second_page_fails_removes_nothing(paged: Program, name: str) -> None:
    """The second page expires, fails or is cut. Instances that only it has are renewed, and the
    condition says why. After a complete list, all is in sync."""
    answer, code, reason = SECOND_PAGES[name]
    with paged.kubernetes_behind(in_pages(answer)) as kubeconfig:
        ended = paged.run("--kubeconfig", kubeconfig)
    assert ended.code == code, ended.out
    assert ended.eureka == {"GET": 1, "PUT": 3}
    assert paged.conditions("rating")["Ready"] == ("Unknown", reason)
    with paged.kubernetes_behind(in_pages(None)) as kubeconfig:
        ended = paged.run("--kubeconfig", kubeconfig)
    assert (ended.code, ended.eureka) == (ExitCode.OK, {"GET": 1, "PUT": 3}), ended.out
    assert paged.conditions("rating")["Ready"] == ("True", "InSync")


def test_a_list_that_expires_once_is_started_again(paged: Program) -> None:
    """A 410 in the middle only costs the pages that were read."""
    with paged.kubernetes_behind(in_pages(EXPIRED, times=1)) as kubeconfig:
        ended = paged.run("--kubeconfig", kubeconfig)
    assert (ended.code, ended.eureka) == (ExitCode.OK, {"GET": 1, "PUT": 3}), ended.out


def test_a_restarted_eureka_that_refuses_lists_gets_its_instances_again(program: Program) -> None:
    """It answers lists with 403, and takes writes. A renewal with a 404 registers the instance, and
    nothing is removed until Eureka can be listed."""
    assert program.run().code == ExitCode.OK
    for id_ in IDS:
        path = f"/eureka/apps/RATING/{id_}"
        program.playground.eureka.handle(Request(method="DELETE", path=path))
    program.playground.eureka.warming_up = True
    ended = program.run()
    assert ended.code == ExitCode.EUREKA_UNREAD, ended.out
    assert (ended.eureka["POST"], ended.eureka["DELETE"]) == (2, 0)
    assert [program.status(id_) for id_ in IDS] == ["UP", "UP"]
    program.playground.delete("Pod", "rating", "rating-2", grace_seconds=0)
    assert program.run().eureka["DELETE"] == 0
    assert program.status(IDS[1]) == "UP"
    program.playground.eureka.warming_up = False
    ended = program.run()
    assert (ended.code, ended.eureka["DELETE"]) == (ExitCode.OK, 1), ended.out
