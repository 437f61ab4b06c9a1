"""An instance that a batch registered on one of two Eureka servers, while the other server refused
it."""

from __future__ import annotations

import pytest

from eurekube_sync.adapters.eureka.batches import ASK_SECONDS
from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.model.actions import Result
from eurekube_sync.model.ports import Batched, Dated
from tests.unit.adapters.eureka.test_eureka_batches import BATCH, Server, Site, Story
from tests.unit.worlds.build import OWNERSHIP, endpoint, instance, key, piece

NOW = 2_000_000_000_000
APP = f"/eureka/apps/{key(1).app}"
REFUSED = Response(status=403, body=b"{}")


def refuse_registrations(server: Server) -> None:
    """Let the server refuse each batch with a registration, and accept other batches."""
    real = server.eureka.handle

    def handle(request: Request) -> Response:
        return REFUSED if request.path == BATCH and b'"Register"' in request.body else real(request)

    server.eureka.handle = handle  # type: ignore[method-assign]


def partly(number: int = 2) -> Site:
    """A site whose last server refused a batch of one registration that the other servers
    accepted."""
    site = Site(number).listed()
    batches = site.registry.batches()
    assert batches is not None
    refuse_registrations(site.servers[-1])
    assert batches.register([Dated(instance(1), NOW)]) == [Batched.UNSETTLED]
    return site


def test_the_renewal_of_a_partly_registered_instance_says_absent_once() -> None:
    """So the pass registers it by a single call, which the server replicates. Later renewals are
    normal."""
    site = partly()
    site.forget()
    assert not site.registry.renew(key(1))
    assert [call.method for call in site.servers[0].calls] == ["PUT"], (
        "the server that has it keeps it"
    )
    assert site.registry.renew(key(1))


@pytest.mark.parametrize("how", ["registered", "cancelled"])
def test_a_single_call_settles_it(how: str) -> None:
    """The server replicates a single call."""
    site = partly()
    if how == "cancelled":
        site.registry.cancel(key(1), ours=OWNERSHIP.holds)
        site.servers[0].put(1)
    else:
        site.registry.register(instance(1), dirty_timestamp=NOW + 1)
    assert site.registry.renew(key(1))


def test_a_batch_that_all_servers_take_settles_it() -> None:
    """The refusing server got the instance by replication, and accepts batches again."""
    site = partly()
    site.clock.sleep(ASK_SECONDS)
    for server in site.servers:
        server.client.register(instance(1), dirty_timestamp=NOW)
    site.listed()
    assert site.renew(1) == [Batched.DONE]
    assert site.registry.renew(key(1))


def test_a_single_server_has_it_or_not() -> None:
    """A single server has no replica."""
    site = partly(1)
    site.servers[0].put(1)
    assert site.registry.renew(key(1))


def test_the_replaced_instance_stays_on_a_server_that_lacks_the_new_one() -> None:
    """The next pass finds the new instance on the first server. It registers it again before it
    cancels the old one. Otherwise callers of the second server would find neither instance."""
    story = Story((1,))
    for _ in range(2):
        story.run()
    one, two = story.site.servers
    refuse_registrations(two)
    one.answers[APP] = two.answers[APP] = REFUSED
    story.world.cluster.apply(piece(endpoint(2)))
    story.site.clock.sleep(30)
    story.world.run()
    assert story.held() == [{key(1), key(2)}, {key(1)}], "no single call was taken either"

    del one.answers[APP]
    report = story.run()
    assert report.outcomes.by_key[key(2)].result is Result.REGISTERED_AGAIN
    assert story.held() == [{key(2)}, {key(1)}], "the first server hands on both, in this order"
