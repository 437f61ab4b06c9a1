"""Lists of the Kubernetes API, page by page: a source is complete or Unknown, and never silently
shorter."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import pytest

from eurekube_sync.adapters.kubernetes.client import KubernetesCluster
from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.model.kubernetes import CrdAge
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown
from tests.unit.adapters.kubernetes.world import START, Half, World, answer
from tests.unit.worlds.clock import Clock

METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
EMPTY = {
    "kind": "ServiceList",
    "apiVersion": "v1",
    "metadata": {"resourceVersion": "7"},
    "items": [],
}


@pytest.fixture
def world() -> World:
    return World()


def cause(source: Source[Any]) -> Cause:
    assert isinstance(source, Unknown)
    return source.cause


def names(source: Source[Any]) -> list[str]:
    assert isinstance(source, Complete)
    return [each.name for each in source.data]


def page(items: list[Any], token: str = "", revision: str = "7") -> dict[str, Any]:
    return {**EMPTY, "metadata": {"resourceVersion": revision, "continue": token}, "items": items}


def service(name: str, namespace: str = "shop", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"ports": [{"port": 80}], **spec},
    }


def scripted(world: World, *answers: Response) -> None:
    """Answer the next requests with these answers, and repeat the last one."""
    first = len(world.requests)
    world.fault = lambda request, number: answers[min(number - first, len(answers)) - 1]


def test_a_list_is_walked_in_pages_of_500(world: World) -> None:
    """1,001 Services come in three calls. No call has a resourceVersion."""
    for number in range(1001):
        world.make_service(f"svc-{number:04}")
    before = len(world.requests)
    listed = world.cluster.list_services(None)
    queries = [request.query for request in world.requests[before:]]
    assert len(names(listed.of("shop"))) == 1001
    assert [query["limit"] for query in queries] == ["500"] * 3
    assert not any("resourceVersion" in query for query in queries)


def test_pods_are_walked_in_pages_of_metadata(world: World) -> None:
    """501 Pods come in two calls that accept metadata only. A denied namespace alone is Unknown."""
    for number in range(501):
        body = {
            "metadata": {"name": f"p-{number:03}"},
            "spec": {"containers": [{"name": "c", "image": "c"}]},
        }
        world.make("/api/v1/namespaces/shop/pods", body)
    world.server.deny("pods", "list", "secret")
    before = len(world.requests)
    listed = world.cluster.list_pods(["shop", "secret"])
    asked = world.requests[before:]
    assert names(listed.of("shop")) == [f"p-{number:03}" for number in range(501)]
    assert cause(listed.of("secret")) is Cause.DENIED
    assert len(asked) == 3
    assert {request.headers["accept"] for request in asked} == {METADATA}


@pytest.mark.parametrize("uid", [{}, {"uid": ""}, {"uid": 7}])
def test_a_pod_without_a_uid_makes_its_namespace_unknown(world: World, uid: dict[str, Any]) -> None:
    """A list of Pods is evidence for dead pods, so each Pod needs an identity."""
    items = [{"metadata": {"name": "p", "namespace": "shop", **uid}}]
    scripted(world, answer(200, {**page(items), "kind": "PartialObjectMetadataList"}))
    assert cause(world.cluster.list_pods(["shop"]).of("shop")) is Cause.UNUSABLE


def test_a_server_that_sends_whole_pods_is_not_understood(world: World) -> None:
    """A list of another kind than requested is unusable."""
    scripted(world, answer(200, {**page([]), "kind": "PodList"}))
    assert cause(world.cluster.list_pods(["shop"]).of("shop")) is Cause.UNUSABLE


def test_a_namespace_without_objects_is_complete_and_empty(world: World) -> None:
    """After a complete list of the cluster, objects that it lacks do not exist."""
    assert world.cluster.list_services(None).of("elsewhere") == Complete(data=())


def test_a_scope_of_namespaces_says_nothing_about_others(world: World) -> None:
    """Namespaces outside the scope are Unknown, not empty."""
    world.make_service("a")
    listed = world.cluster.list_services(["shop"])
    assert names(listed.of("shop")) == ["a"]
    assert cause(listed.of("other")) is Cause.NOT_READ


def test_a_denied_namespace_alone_is_unknown(world: World) -> None:
    """A 403 in one namespace leaves the others Complete."""
    world.make_service("a")
    world.server.deny("services", "list", "secret")
    listed = world.cluster.list_services(["shop", "secret"])
    assert cause(listed.of("secret")) is Cause.DENIED
    assert names(listed.of("shop")) == ["a"]


@pytest.mark.parametrize("failing", [1, 2, 3])
@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        (answer(403, {"kind": "Status", "message": "no"}), Cause.DENIED),
        (answer(500, "oops"), Cause.UNAVAILABLE),
        (answer(404, "404 page not found\n"), Cause.UNUSABLE),
        (answer(400, {"kind": "Status", "message": "bad"}), Cause.UNUSABLE),
        (answer(200, "<html>log in</html>"), Cause.UNUSABLE),
        (Response(status=200), Cause.UNUSABLE),
        (answer(200, json.dumps(page([service("c")]))[:-30]), Cause.UNUSABLE),
        (answer(200, {**EMPTY, "kind": "PodList"}), Cause.UNUSABLE),
        (answer(200, {"kind": "Status", "status": "Success"}), Cause.UNUSABLE),
        (
            answer(200, {"kind": "ServiceList", "metadata": {"resourceVersion": "7"}}),
            Cause.UNUSABLE,
        ),
        (answer(200, []), Cause.UNUSABLE),
        (answer(302, "", Location="/login"), Cause.UNUSABLE),
    ],
)
def test_a_page_that_fails_makes_the_source_unknown(
    world: World, failing: int, broken: Response, expected: Cause
) -> None:
    """The first, second or last page is unusable for any reason. No page of the list counts."""
    good = [answer(200, page([service(f"svc-{number}")], f"token-{number}")) for number in range(2)]
    scripted(world, *good[: failing - 1], broken)
    listed = world.cluster.list_services(None)
    assert cause(listed.of("shop")) is expected
    assert cause(listed.of("any other")) is expected


def test_a_lost_connection_is_tried_again(world: World) -> None:
    """One reset costs a short wait. The pass continues."""

    def reset_once(request: Request, number: int) -> None:
        if number == before + 1:
            raise ConnectionResetError("reset")

    world.make_service("a")
    before = len(world.requests)
    world.fault = reset_once
    assert names(world.cluster.list_services(None).of("shop")) == ["a"]
    assert world.clock.slept == [0.125]


def test_tries_are_bounded_and_further_apart(world: World) -> None:
    """There are four tries, with waits up to 0.25, 0.5 and 1 s. After them the source is Unknown
    with the reason."""
    scripted(world, answer(503, {"kind": "Status", "message": "etcd leader changed"}))
    found = world.cluster.list_services(None).elsewhere
    assert isinstance(found, Unknown)
    assert (
        found.message
        == "the Kubernetes API answered 503 to GET /api/v1/services: etcd leader changed"
    )
    assert world.clock.slept == [0.125, 0.25, 0.5]


def test_retry_after_is_waited_for_within_bounds(world: World) -> None:
    """`Retry-After` is in seconds or is a date. If it is more than ten seconds, the next pass tries
    again."""
    later = format_datetime(datetime.fromtimestamp(world.clock.now() + 8, UTC))
    scripted(
        world,
        answer(429, "", Retry_After="2"),
        answer(503, "", Retry_After=later),
        answer(200, EMPTY),
    )
    assert world.cluster.list_services(None).elsewhere == Complete(data=())
    assert world.clock.slept == [2, pytest.approx(6, abs=1)]
    scripted(world, answer(429, "", Retry_After="3600"), answer(200, EMPTY))
    assert cause(world.cluster.list_services(None).elsewhere) is Cause.UNAVAILABLE
    assert len(world.clock.slept) == 2


def test_an_expired_token_restarts_the_list_once(world: World) -> None:
    """After a 410 for a later page, the list starts again. Items of the first attempt are
    dropped."""
    expired = answer(
        410, {"kind": "Status", "reason": "Expired", "metadata": {"continue": "inconsistent"}}
    )
    scripted(
        world,
        answer(200, page([service("old")], "t")),
        expired,
        answer(200, page([service("new")])),
    )
    assert names(world.cluster.list_services(None).of("shop")) == ["new"]
    assert [request.query.get("continue") for request in world.requests] == [None, "t", None]


def test_an_embedded_server_that_compacts_restarts_the_walk(world: World) -> None:
    """Here a server itself gives the 410."""
    for number in range(501):
        world.make_service(f"svc-{number:03}")
    before = len(world.requests)

    def compact_once(request: Request, number: int) -> None:
        if number == before + 2:
            world.server.expire_continue_tokens()

    world.fault = compact_once
    assert len(names(world.cluster.list_services(None).of("shop"))) == 501
    assert len(world.requests) - before == 4


def test_a_second_expiry_is_unknown(world: World) -> None:
    """After a second 410 the source is Unknown. The server's token for an inconsistent list is
    never used."""
    expired = answer(
        410, {"kind": "Status", "reason": "Expired", "metadata": {"continue": "inconsistent"}}
    )
    scripted(
        world,
        answer(200, page([service("a")], "t")),
        expired,
        answer(200, page([service("a")], "t")),
        expired,
    )
    assert cause(world.cluster.list_services(None).elsewhere) is Cause.UNAVAILABLE
    assert len(world.requests) == 4


def test_pages_of_two_revisions_are_no_list(world: World) -> None:
    """A page with another resourceVersion shows another state. So the list starts again."""
    scripted(
        world,
        answer(200, page([service("a")], "t")),
        answer(200, page([service("b")], revision="8")),
        answer(200, page([service("c")], revision="9")),
    )
    assert names(world.cluster.list_services(None).of("shop")) == ["c"]


def test_a_token_that_leads_nowhere_ends_the_walk(world: World) -> None:
    """A repeated token would make the list endless."""
    scripted(world, answer(200, page([service("a")], "t")))
    assert cause(world.cluster.list_services(None).elsewhere) is Cause.UNUSABLE


def test_one_malformed_item_makes_its_namespace_unknown(world: World) -> None:
    """The item may hide an object, so nothing in its namespace is removed. The other namespaces are
    Complete."""
    items = [
        service("a"),
        service("bad", "other", ports="none"),
        service("b", "other"),
        service("c", "third"),
    ]
    scripted(world, answer(200, page(items)))
    listed = world.cluster.list_services(None)
    found = listed.of("other")
    assert isinstance(found, Unknown)
    assert "services other/bad cannot be read" in found.message
    assert names(listed.of("shop")) == ["a"]
    assert names(listed.of("third")) == ["c"]


@pytest.mark.parametrize(
    "item", [7, None, {}, {"metadata": {"name": 5}}, {"metadata": {}}, service("a", "")]
)
def test_an_item_without_a_name_makes_the_whole_walk_unknown(world: World, item: Any) -> None:
    """The item's namespace is unknown."""
    scripted(world, answer(200, page([service("a"), item])))
    assert cause(world.cluster.list_services(None).of("shop")) is Cause.UNUSABLE


def test_an_item_of_another_namespace_is_no_answer(world: World) -> None:
    """A list of one namespace must not hold another's objects."""
    scripted(world, answer(200, page([service("a", "other")])))
    assert cause(world.cluster.list_services(["shop"]).of("shop")) is Cause.UNUSABLE


def test_null_items_are_none(world: World) -> None:
    """Go writes a nil slice as null."""
    scripted(world, answer(200, {**EMPTY, "items": None}))
    assert world.cluster.list_services(None).elsewhere == Complete(data=())


def test_without_the_crd_the_syncers_are_unknown(world: World) -> None:
    """A 404 in plain text is CRDMissing, for the cluster and for a namespace."""
    world.server.call(
        "DELETE",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/eurekasyncers.eurekube.io",
    )
    assert cause(world.cluster.list_syncers(None).elsewhere) is Cause.CRD_MISSING
    assert cause(world.cluster.list_syncers(["shop"]).of("shop")) is Cause.CRD_MISSING
    assert cause(world.cluster.crd_live()) is Cause.CRD_MISSING


def test_a_web_page_with_a_404_does_not_say_that_an_api_is_missing(world: World) -> None:
    """A proxy answers in the API's place. Only the API itself knows what is installed."""
    scripted(world, answer(404, "<html>no such page</html>"))
    assert cause(world.cluster.list_routes(["shop"]).of("shop")) is Cause.UNUSABLE
    scripted(world, answer(404, "404 page not found"))
    assert cause(world.cluster.list_routes(["shop"]).of("shop")) is Cause.API_MISSING


def test_a_crd_that_is_being_deleted_is_noticed(world: World) -> None:
    """While a finalizer keeps an object, the list is Complete with deleted items. crd_live gives
    the reason."""
    assert isinstance(world.cluster.crd_live(), Complete)
    world.make_syncer(finalizers=["eurekube.io/cleanup"])
    world.server.call(
        "DELETE",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/eurekasyncers.eurekube.io",
    )
    assert world.read().deleted is not None
    assert cause(world.cluster.crd_live()) is Cause.CRD_TERMINATING


def test_a_crd_says_when_it_was_created(world: World) -> None:
    """The time is in Unix seconds. An API server never sends a CRD without it."""
    crd = {"metadata": {"name": "x", "creationTimestamp": "2026-01-02T03:04:05Z"}}
    scripted(world, answer(200, crd, Date="Fri, 02 Jan 2026 03:04:05 GMT"))
    assert world.cluster.crd_live() == Complete(data=CrdAge(1767323045.0, 1767323045.0))
    scripted(world, answer(200, {"metadata": {"name": "eurekasyncers.eurekube.io"}}))
    assert cause(world.cluster.crd_live()) is Cause.UNUSABLE


@pytest.mark.parametrize(("ours", "later"), [(0, 0), (600, 600), (1, 0), (-600, 0)])
def test_the_age_of_a_crd_is_told_by_a_clock_of_ours_that_is_ahead(
    world: World, ours: float, later: float
) -> None:
    """Instances have times of our clock. A clock that is behind makes them only older."""
    clock = Clock(time=world.clock.now() + ours)
    cluster = KubernetesCluster(world.connection, clock=clock, random=Half())
    assert cluster.crd_live() == Complete(data=CrdAge(START, START + later))


def test_a_crd_of_a_server_that_tells_no_time_counts_as_new(world: World) -> None:
    """Then each instance is older, and none is removed as an orphan."""
    crd = {"metadata": {"name": "x", "creationTimestamp": "2025-01-02T03:04:05Z"}}
    scripted(world, answer(200, crd))
    age = world.cluster.crd_live()
    assert isinstance(age, Complete)
    assert age.data.by_ours == world.clock.now()
    assert age.data.by_server < world.clock.now()


def test_a_denied_crd_is_unknown(world: World) -> None:
    """Without the right to `get` it, nothing shows whether a person deleted the syncers or the
    CRD."""
    world.server.deny("customresourcedefinitions", "get")
    assert cause(world.cluster.crd_live()) is Cause.DENIED


def test_identity_is_the_uid_of_kube_system(world: World) -> None:
    """The identity is Unknown if the read is denied or the UID is invalid."""
    scripted(world, answer(200, {"metadata": {"name": "kube-system"}}))
    assert cause(world.cluster.identity()) is Cause.UNUSABLE
    for uid in ("", "`<b>", "a b", "a\n", "-", "a" * 129):
        scripted(world, answer(200, {"metadata": {"name": "kube-system", "uid": uid}}))
        assert cause(world.cluster.identity()) is Cause.UNUSABLE
    scripted(world, answer(403, {"kind": "Status", "message": "no"}))
    assert cause(world.cluster.identity()) is Cause.DENIED
    world.fault = lambda request, number: None
    status, namespace = world.server.call("GET", "/api/v1/namespaces/kube-system")
    assert status == 200
    assert world.cluster.identity() == Complete(data=namespace["metadata"]["uid"])


def test_a_401_renews_the_credentials_once() -> None:
    """An expired token is read again. A second 401 is Denied."""
    world = World(tokens={"secret": "admin"})
    rejections = iter([True, False])
    world.fault = lambda request, number: answer(401) if next(rejections) else None
    assert isinstance(world.cluster.crd_live(), Complete)
    world.fault = lambda request, number: answer(401)
    before = len(world.requests)
    assert cause(world.cluster.crd_live()) is Cause.DENIED
    assert len(world.requests) - before == 2
