"""A batch of cancels to two Eureka servers: an instance is cancelled if every server that answers
lacks it, or has another owner's instance in its place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.model.ports import Batched
from tests.unit.adapters.eureka.test_eureka_batches import BATCH, Server, Site
from tests.unit.worlds.build import OWNERSHIP, key

ANOTHERS = {"eurekube.owner": "another"}
DONE, UNSETTLED = Batched.DONE, Batched.UNSETTLED


def prepared(states: Sequence[str]) -> Site:
    """Two servers in these states. Each holds our instances 1 and 2, but its state may say
    something else of instance 1."""
    site = Site(2).listed()
    for server, state in zip(site.servers, states, strict=True):
        server.put(2)
        if state == "another's":
            server.put(1, metadata=ANOTHERS)
        elif state != "absent":
            server.put(1)
    for server, state in zip(site.servers, states, strict=True):
        if state == "away":
            server.plugged = False
        elif state == "unread":
            server.answers[path_of_1()] = Response(status=403)
        elif state == "refuses":
            answer_cancels_of_1(server, 500)
        elif state == "had it":
            answer_cancels_of_1(server, 404)
    return site


def path_of_1() -> str:
    return f"/eureka/apps/{key(1).app}/{key(1).id}"


def answer_cancels_of_1(server: Server, code: int) -> None:
    """Let the server answer each cancel of instance 1 in a batch with this code, without cancelling
    it."""
    real = server.eureka.handle

    def handle(request: Request) -> Response:
        if (
            request.path != BATCH
            or b'"Cancel"' not in request.body
            or key(1).id.encode() not in request.body
        ):
            return real(request)
        items = request.body.decode().count('"action"')
        answers = [f'{{"statusCode": {code if index == 0 else 200}}}' for index in range(items)]
        return Response(status=200, body=f'{{"responseList": [{", ".join(answers)}]}}'.encode())

    server.eureka.handle = handle  # type: ignore[method-assign]


def cancel(site: Site) -> list[Batched]:
    batches = site.registry.batches()
    assert batches is not None
    return batches.cancel([key(1), key(2)], ours=OWNERSHIP.holds)


SETTLED = ("ours", "absent", "another's", "had it")
OPEN = ("unread", "refuses")


@pytest.mark.parametrize("first", [*SETTLED, *OPEN, "away"])
@pytest.mark.parametrize("second", [*SETTLED, *OPEN, "away"])
def test_an_instance_is_cancelled_when_no_server_that_answers_may_still_have_it(
    first: str, second: str
) -> None:
    """A server that does not answer is ignored, unless no server answers. The other instance of the
    batch has its own result."""
    site = prepared((first, second))
    found = cancel(site)
    answering = [state for state in (first, second) if state != "away"]
    assert found[0] is (DONE if answering and not set(answering) & set(OPEN) else UNSETTLED)
    for server, state in zip(site.servers, (first, second), strict=True):
        if state in ("ours", "absent"):
            assert server.holds() == set()
        elif state == "another's":
            assert server.holds() == {key(1)}


@pytest.mark.parametrize("state", ["refuses", "unread"])
@pytest.mark.parametrize("order", [1, -1])
def test_an_instance_that_stays_does_not_hide_that_another_is_gone(state: str, order: int) -> None:
    """Each item of a batch has its own result."""
    assert cancel(prepared(("ours", state)[::order])) == [UNSETTLED, DONE]


def test_a_server_is_asked_about_its_own_instances_and_not_about_anothers() -> None:
    """An instance that only the second server holds is cancelled there. The first server gets no
    batch."""
    site = prepared(("absent", "ours"))
    site.servers[0].put(3)
    site.forget()
    batches = site.registry.batches()
    assert batches is not None
    assert batches.cancel([key(1)], ours=OWNERSHIP.holds) == [DONE]
    assert [server.sent() for server in site.servers] == [[], ["Cancel"]]
