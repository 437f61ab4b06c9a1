"""The calls that Eureka servers make to each other, made by a client: batches of writes, and the
status page."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from eurekube_sync.adapters.clock import SystemClock
from eurekube_sync.adapters.eureka import replication as ours
from eurekube_sync.adapters.eureka.address import ConnectionOptions, EurekaAddress
from eurekube_sync.adapters.eureka.client import EurekaClient
from eurekube_sync.cli.connect import Installation, connect_registry
from eurekube_sync.model.eureka import (
    Instance,
    InstanceKey,
    InstanceStatus,
    LeaseTimes,
    ObservedInstance,
    Port,
)
from eurekube_sync.model.ports import Dated
from eurekube_sync.model.struct import replace
from tests.contract.eureka_subject import (
    JSON,
    Document,
    EurekaSubject,
    embedded,
    embedded_guarded,
    instance_body,
    real,
    real_guarded,
    timed,
)
from tests.contract.otherwise import Otherwise
from tests.servers.eureka import EurekaServer

SERVERS = ["embedded", pytest.param("real", marks=pytest.mark.servers)]
PATH = "/peerreplication/batch/"


@pytest.fixture(scope="module", params=SERVERS)
def eureka(request: pytest.FixtureRequest) -> Iterator[EurekaSubject]:
    """A server with fast timings."""
    if request.param == "embedded":
        with embedded(stock=False) as subject:
            yield subject
    else:
        yield real(request.getfixturevalue("eureka_fast").url, stock=False)


@pytest.fixture(scope="module", params=SERVERS)
def stock(request: pytest.FixtureRequest) -> Iterator[EurekaSubject]:
    """A server with stock timings: its lists are up to 30 s old."""
    if request.param == "embedded":
        with embedded(stock=True) as subject:
            yield subject
    else:
        yield real(request.getfixturevalue("eureka_stock").url, stock=True)


@pytest.fixture
def app(request: pytest.FixtureRequest) -> str:
    """An app of the test's own."""
    return f"BATCH{abs(hash(request.node.nodeid)) % 10**8}"


def item(action: str, app: str, id_: str, **more: Any) -> Document:
    return {"appName": app, "id": id_, "action": action, **more}


def registration(app: str, id_: str, **changes: object) -> Document:
    body = instance_body(app, id_, **changes)
    return item(
        "Register", app, id_, lastDirtyTimestamp=int(body["lastDirtyTimestamp"]), instanceInfo=body
    )


def send(eureka: EurekaSubject, *items: Document) -> requests.Response:
    eureka.posted.update(
        (one["appName"], one["id"]) for one in items if one.get("action") == "Register"
    )
    return requests.post(
        eureka.url(PATH), json={"replicationList": list(items)}, headers=JSON, timeout=60
    )


def codes(eureka: EurekaSubject, *items: Document) -> list[int]:
    answer = send(eureka, *items)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    document = answer.json()
    assert list(document) == ["responseList"]
    assert all(list(one) == ["statusCode"] for one in document["responseList"])
    return [one["statusCode"] for one in document["responseList"]]


def without_times(instance: ObservedInstance) -> ObservedInstance:
    """Without the moments of its lease and of the answer, which two reads need not share."""
    return replace(instance, last_renewal=0, registered=0, read_at=0)


def told(eureka: EurekaSubject, *items: Document) -> list[tuple[int, Document | None]]:
    """The code of each item, and the instance that it shows."""
    return [
        (one["statusCode"], one.get("responseEntity"))
        for one in send(eureka, *items).json()["responseList"]
    ]


def test_the_answers_have_the_order_of_the_items(eureka: EurekaSubject, app: str) -> None:
    """Items are carried out in this order, too: an item sees what the one before it did."""
    items = [
        item("Heartbeat", app, "a:1"),
        registration(app, "a:1"),
        item("Heartbeat", app, "a:1"),
        item("Cancel", app, "a:1"),
        item("Cancel", app, "a:1"),
        item("Heartbeat", app, "a:1"),
    ]
    assert codes(eureka, *items) == [404, 200, 200, 200, 404, 404]
    assert codes(eureka) == []


def test_a_heartbeat_of_an_unknown_status_is_a_404(eureka: EurekaSubject, app: str) -> None:
    """Though the instance stands: somebody took an override off without a value."""
    assert codes(eureka, registration(app, "a"), item("Heartbeat", app, "a")) == [200, 200]
    eureka.put(f"/apps/{app}/a/status", value="OUT_OF_SERVICE")
    assert codes(eureka, item("Heartbeat", app, "a")) == [200]
    eureka.delete(f"/apps/{app}/a/status")
    assert codes(eureka, item("Heartbeat", app, "a")) == [404]
    assert eureka.get(f"/apps/{app}/a").status_code == 200


def test_a_heartbeat_with_an_older_timestamp_tells_the_instance(
    stock: EurekaSubject, app: str
) -> None:
    """Exactly as an uncached read does, also right after a write that no list shows yet; and it
    renews the lease. What is not registered, or has the status UNKNOWN, is a 404."""
    eureka = stock
    items = [registration(app, "up", metadata={"a": "1"}), registration(app, "down", status="DOWN")]
    items += [
        registration(app, "epoch", lastDirtyTimestamp="0"),
        registration(app, "unknown", status="UNKNOWN"),
    ]
    assert codes(eureka, *items) == [200] * 4
    listed = sorted(eureka.listed(app), key=lambda instance: str(instance["instanceId"]))
    there = ("up", "down", "epoch")
    asked = [
        item("Heartbeat", app, id_, lastDirtyTimestamp=-1) for id_ in (*there, "unknown", "nothing")
    ]
    assert (
        told(eureka, *asked)
        == [(409, eureka.instance(app, id_)) for id_ in there] + [(404, None)] * 2
    )
    eureka.put(f"/apps/{app}/up/status", value="OUT_OF_SERVICE")
    changes = [
        registration(app, "down", status="UP"),
        registration(app, "epoch", vipAddress="other"),
    ]
    assert codes(eureka, *changes, item("Cancel", app, "unknown")) == [200] * 3
    before = eureka.instance(app, "up")
    eureka.wait(0.1)
    answers = told(eureka, *asked)
    assert answers == [(409, eureka.instance(app, id_)) for id_ in there] + [(404, None)] * 2
    assert (
        sorted(eureka.listed(app), key=lambda instance: str(instance["instanceId"])) == listed
    )  # it is cached
    up, down, epoch = (instance for _, instance in answers[:3] if instance)
    assert (up["status"], down["status"], epoch["vipAddress"]) == ("OUT_OF_SERVICE", "UP", "other")
    assert up["leaseInfo"]["lastRenewalTimestamp"] > before["leaseInfo"]["lastRenewalTimestamp"]


def test_a_heartbeat_with_another_timestamp_tells_nothing(eureka: EurekaSubject, app: str) -> None:
    """An equal one is a 200. A newer one is a 404, though the instance is registered."""
    assert codes(eureka, registration(app, "a", lastDirtyTimestamp="1795248000785")) == [200]
    asked = [
        item("Heartbeat", app, "a", lastDirtyTimestamp=1795248000785 + more) for more in (0, 1)
    ]
    assert told(eureka, *asked) == [(200, None), (404, None)]


@timed
def test_a_status_update_without_a_status_says_whether_an_instance_is_registered(
    eureka: EurekaSubject, app: str
) -> None:
    """Exactly as an uncached read does: a 404 where nothing is, or what is has expired; else a 500.
    It changes nothing, also not the lease."""
    lease = {"renewalIntervalInSecs": 1, "durationInSecs": 2}
    items = [registration(app, "up"), registration(app, "short", leaseInfo=lease)]
    items += [
        registration(app, status, status=status)
        for status in ("UNKNOWN", "DOWN", "OUT_OF_SERVICE", "STARTING")
    ]
    assert codes(eureka, *items) == [200] * 6
    eureka.put(f"/apps/{app}/up/status", value="OUT_OF_SERVICE")
    there = ["up", "UNKNOWN", "DOWN", "OUT_OF_SERVICE", "STARTING"]
    before = [eureka.instance(app, id_) for id_ in there]
    asked = [item("StatusUpdate", app, id_) for id_ in (*there, "short", "nothing")]
    assert codes(eureka, *asked) == [500] * 6 + [404]
    assert codes(eureka, item("StatusUpdate", f"{app}X", "up")) == [404]
    assert [eureka.instance(app, id_) for id_ in there] == before
    eureka.wait(3)
    assert codes(eureka, *asked) == [500] * 5 + [404] * 2


def test_a_registration_that_is_refused_is_a_200(eureka: EurekaSubject, app: str) -> None:
    """Only the heartbeat after it shows that it is not there; the others of the batch are."""
    items = [
        registration(app, "a", ipAddr=""),
        registration(app, "b"),
        item("Register", f"{app}X", "c", instanceInfo=instance_body(app, "c")),
    ]
    beats = [item("Heartbeat", app, id_) for id_ in "abc"]
    assert codes(eureka, *items, *beats) == [200, 200, 200, 404, 200, 404]


def test_one_instance_that_cannot_be_parsed_makes_the_whole_batch_a_400(
    eureka: EurekaSubject, app: str
) -> None:
    """Nothing of the batch is carried out."""
    assert (
        send(eureka, registration(app, "a"), registration(app, "b", port=8080)).status_code == 400
    )
    assert codes(eureka, item("Heartbeat", app, "a")) == [404]
    assert send(eureka, item("Rename", app, "a")).status_code == 400


def test_an_incomplete_item_gets_a_500_and_the_others_are_done(
    eureka: EurekaSubject, app: str
) -> None:
    """The others are carried out."""
    assert codes(eureka, registration(app, "a"), {"appName": app, "action": "Heartbeat"}) == [
        200,
        500,
    ]
    assert codes(eureka, {"appName": app, "id": "a"}, item("Heartbeat", app, "a")) == [500, 200]


def test_an_older_registration_is_ignored_with_a_200(eureka: EurekaSubject, app: str) -> None:
    """As by POST; and a heartbeat tells no difference."""
    newer, older = (
        registration(app, "a", vipAddress="new"),
        registration(app, "a", vipAddress="old"),
    )
    older["instanceInfo"]["lastDirtyTimestamp"] = "1"
    assert codes(eureka, newer, older, item("Heartbeat", app, "a")) == [200, 200, 200]
    assert eureka.instance(app, "a")["vipAddress"] == "new"


@timed
def test_a_heartbeat_makes_a_lease_last_twice_its_duration(eureka: EurekaSubject, app: str) -> None:
    """A registration alone lasts once."""
    lease = {"renewalIntervalInSecs": 1, "durationInSecs": 2}
    items = [registration(app, id_, leaseInfo=lease) for id_ in "ab"]
    assert codes(eureka, *items, item("Heartbeat", app, "b")) == [200, 200, 200]
    eureka.wait(3)
    assert [eureka.get(f"/apps/{app}/{id_}").status_code for id_ in "ab"] == [404, 200]
    eureka.wait(2.5)
    assert eureka.get(f"/apps/{app}/b").status_code == 404


def test_a_heartbeat_does_not_change_the_time_of_the_last_update(
    eureka: EurekaSubject, app: str
) -> None:
    """As a PUT does not."""
    assert codes(eureka, registration(app, "a")) == [200]
    before = eureka.instance(app, "a")
    eureka.wait(0.1)
    assert codes(eureka, item("Heartbeat", app, "a")) == [200]
    assert eureka.instance(app, "a")["lastUpdatedTimestamp"] == before["lastUpdatedTimestamp"]


def test_a_body_has_to_be_json_and_the_method_post(eureka: EurekaSubject) -> None:
    """What is no batch is a 400, 405 or 415; with or without a slash at the end it is the same
    call."""
    url = eureka.url(PATH)
    typed = JSON | {"Content-Type": "application/json"}
    assert requests.post(url, data="xx", headers=typed, timeout=60).status_code == 400
    assert (
        requests.post(
            url, data="{}", headers=JSON | {"Content-Type": "text/plain"}, timeout=60
        ).status_code
        == 415
    )
    assert requests.get(url, headers=JSON, timeout=60).status_code == 405
    bare = requests.post(url.rstrip("/"), json={"replicationList": []}, headers=JSON, timeout=60)
    assert (bare.status_code, bare.json()) == (200, {"responseList": []})


def test_the_status_page_is_only_xml_and_a_single_server_names_no_replica(
    eureka: EurekaSubject,
) -> None:
    """As JSON it is a 500."""
    answer = requests.get(eureka.url("/status"), headers={"Accept": "application/xml"}, timeout=60)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("application/xml")
    status = ours.decode_status(answer.content)
    assert status.replicas == ()
    if Otherwise.NO_SPRING not in eureka.otherwise:
        assert status.instance_id.endswith(f":eureka-server:{eureka.root.rsplit(':', 1)[1]}")
    expected = 200 if Otherwise.STATUS_AS_JSON in eureka.otherwise else 500
    assert eureka.get("/status").status_code == expected


@pytest.fixture
def client(eureka: EurekaSubject) -> Iterator[EurekaClient]:
    with connect(eureka.url("")) as connected:
        yield connected


def connect(url: str) -> EurekaClient:
    options = ConnectionOptions(address=EurekaAddress.parse(url))
    return EurekaClient(options, clock=SystemClock(), random=random.Random(0))


def wanted(app: str, id_: str) -> Instance:
    return Instance(
        key=InstanceKey(app, id_),
        host_name="10.0.0.1",
        ip_addr="10.0.0.1",
        port=Port(8080, True),
        secure_port=Port(443, False),
        vip_address=app.lower(),
        secure_vip_address=app.lower(),
        status=InstanceStatus.UP,
        lease=LeaseTimes(30, 300),
        metadata={"eurekube.owner": "prod", "text": "ä <&\"' 你好 🙂"},
    )


def sent(client: EurekaClient, items: list[bytes]) -> list[int]:
    """Our client's answers to items in our client's form."""
    assert ours.fitting(items) == items
    return client.replicate(items)


def test_250_of_ours_are_registered_renewed_and_cancelled(client: EurekaClient, app: str) -> None:
    """Each of them in one call, with every field that a POST writes."""
    instances = [
        wanted(app, f"prod:shop:{app.lower()}:10.0.0.{number}:8080") for number in range(250)
    ]
    assert (
        sent(client, [ours.register(Dated(one, 1_795_248_000_785)) for one in instances])
        == [200] * 250
    )
    assert sent(client, [ours.heartbeat(one.key) for one in instances]) == [200] * 250
    batched = client.read_instance(instances[7].key)
    client.register(instances[7], dirty_timestamp=1_795_248_000_785)
    posted = client.read_instance(instances[7].key)
    assert batched is not None
    assert posted is not None
    assert without_times(posted) == without_times(batched)
    assert sent(client, [ours.cancel(one.key) for one in instances]) == [200] * 250
    assert sent(client, [ours.heartbeat(one.key) for one in instances]) == [404] * 250


def test_250_of_ours_are_read_in_one_call(client: EurekaClient, app: str) -> None:
    """As an uncached read of each shows them. One that is absent shows nothing."""
    keys = [
        InstanceKey(app, f"prod:shop:{app.lower()}:10.0.0.{number}:8080") for number in range(250)
    ]
    items = [ours.register(Dated(wanted(*key), 1_795_248_000_785)) for key in keys[:249]]
    assert sent(client, items) == [200] * 249
    readings = client.read_instances([ours.reading(key) for key in keys])
    for key, reading in zip(keys[:249], readings, strict=False):
        single = client.read_instance(key)
        assert single is not None
        assert reading == replace(single, read_at=0), "a batch does not say when"
    assert readings[249] is None


def test_ids_may_contain_characters_that_a_path_may_not(client: EurekaClient, app: str) -> None:
    """A batch has no path: such ids of others do no harm beside ours."""
    keys = [InstanceKey(app, id_) for id_ in ("a/b", "x y%;é<", '"\\')]
    assert sent(client, [ours.register(Dated(wanted(*key), 1)) for key in keys]) == [200] * 3
    assert sent(client, [ours.heartbeat(key) for key in keys]) == [200] * 3
    assert sent(client, [ours.cancel(key) for key in keys]) == [200] * 3


@pytest.mark.newest_alone
@pytest.mark.parametrize("kind", SERVERS)
def test_batches_need_a_login_and_work_during_warm_up(kind: str) -> None:
    """Both calls are a 401 without it; in warm-up both work, while lists are a 403."""
    with (embedded_guarded if kind == "embedded" else real_guarded)("ann", "s3cret") as url:
        body = {"replicationList": [item("Heartbeat", "APP", "nothing")]}
        for login, expected in ((None, 401), (("ann", "s3cret"), 200)):
            batch = requests.post(f"{url}{PATH}", json=body, headers=JSON, auth=login, timeout=60)
            status = requests.get(
                f"{url}/status", headers={"Accept": "application/xml"}, auth=login, timeout=60
            )
            assert (batch.status_code, status.status_code) == (expected, expected)
        assert (
            requests.get(
                f"{url}/apps", headers=JSON, auth=("ann", "s3cret"), timeout=60
            ).status_code
            == 403
        )


@pytest.mark.servers
def test_a_server_that_replicates_to_itself_gets_batches() -> None:
    """Its host name is not the one in its `defaultZone`, which is `localhost`. It names itself as a
    replica."""
    with EurekaServer(extra_properties={"eureka.instance.hostname": "elsewhere"}) as server:
        page = requests.get(
            f"{server.url}/status", headers={"Accept": "application/xml"}, timeout=60
        ).text
        assert f"<registered-replicas>{server.url}/" in page
        with connect_registry(
            Installation(eureka_url=server.url, eureka_batch="auto"), SystemClock()
        ) as world:
            world.registry.list_instances()
            batching = world.registry.batching()
            assert batching is not None
            assert batching.on, batching.why
