"""The embedded Kubernetes API: what a real one cannot do, such as a given clock, faults, equal
runs, and calls without HTTP."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from eurekube_sync.embedded.http import Request
from tests.embedded.kubernetes import FullKubernetes

DEFINITION: Any = yaml.safe_load(
    (Path(__file__).parents[3] / "crds" / "eurekasyncer.yaml").read_text()
)
NAMESPACE = "/api/v1/namespaces/shop"
SYNCERS = "/apis/eurekube.io/v1/namespaces/shop/eurekasyncers"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"


def start(**options: Any) -> FullKubernetes:
    server = FullKubernetes(lambda: 1_767_323_045.0, definitions=[DEFINITION], **options)
    ok(server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}}))
    return server


def ok(answer: tuple[int, Any]) -> Any:
    assert answer[0] in (200, 201), answer
    return answer[1]


def make_syncer(server: FullKubernetes, name: str = "rating", **spec: Any) -> tuple[int, Any]:
    head = {"apiVersion": "eurekube.io/v1", "kind": "EurekaSyncer", "metadata": {"name": name}}
    return server.call("POST", SYNCERS, {**head, "spec": {"selector": {"app": name}, **spec}})


def make_service(server: FullKubernetes, **spec: Any) -> Any:
    full = {
        "selector": {"app": "rating"},
        "ports": [{"name": "http", "port": 80, "targetPort": "web"}],
        **spec,
    }
    return ok(
        server.call("POST", f"{NAMESPACE}/services", {"metadata": {"name": "rating"}, "spec": full})
    )


def make_pod(
    server: FullKubernetes, name: str, *ips: str, web: int = 8080, node: str = "n1"
) -> None:
    container = {"name": "a", "image": "i", "ports": [{"name": "web", "containerPort": web}]}
    metadata = {"name": name, "labels": {"app": "rating"}}
    body = {"metadata": metadata, "spec": {"nodeName": node, "containers": [container]}}
    ok(server.call("POST", f"{NAMESPACE}/pods", body))
    ready = [{"type": "Ready", "status": "True"}]
    status = {
        "phase": "Running",
        "podIP": ips[0],
        "podIPs": [{"ip": ip} for ip in ips],
        "conditions": ready,
    }
    ok(server.call("PATCH", f"{NAMESPACE}/pods/{name}/status", {"status": status}))


def slices(server: FullKubernetes) -> list[Any]:
    found: list[Any] = ok(server.call("GET", SLICES))["items"]
    return found


def test_two_runs_are_equal() -> None:
    """The same calls give the same bytes. UIDs, names and addresses come from counters."""

    def run(seed: int) -> list[bytes]:
        server = start(seed=seed)
        ok(server.call("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}}))
        make_service(server)
        make_pod(server, "p1", "10.0.0.1")
        make_syncer(server)
        paths = (SLICES, SYNCERS, f"{NAMESPACE}/services")
        return [server.handle(Request(method="GET", path=path)).body for path in paths]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_time_comes_from_the_given_clock() -> None:
    """It reads no other clock."""
    assert ok(make_syncer(start()))["metadata"]["creationTimestamp"] == "2026-01-02T03:04:05Z"


def test_a_denial_can_be_of_a_verb_a_resource_or_a_namespace() -> None:
    """Nothing else is refused, and clearing the denials ends them."""
    server = start()
    server.deny("services", "list", "shop")
    server.deny("eurekasyncers/status", "patch")
    ok(make_syncer(server))
    assert server.call("GET", f"{NAMESPACE}/services")[0] == 403
    assert server.call("GET", "/api/v1/services")[0] == 200
    assert server.call("PATCH", f"{SYNCERS}/rating", {"metadata": {"labels": {"a": "b"}}})[0] == 200
    status, body = server.call("PATCH", f"{SYNCERS}/rating/status", {"status": {}})
    assert status == 403
    assert body["message"] == (
        'eurekasyncers.eurekube.io "rating" is forbidden: User "admin" cannot patch resource "eurekasyncers/status" '
        'in API group "eurekube.io" in the namespace "shop"'
    )
    server.access.denials.clear()
    assert server.call("PATCH", f"{SYNCERS}/rating/status", {"status": {}})[0] == 200


def test_an_access_review_knows_the_denials() -> None:
    """`check` asks before it calls."""
    server = start()
    server.deny("services", "list")
    attributes = {"verb": "list", "resource": "services", "namespace": "shop"}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    review = ok(server.call("POST", path, {"spec": {"resourceAttributes": attributes}}))
    assert review["status"]["allowed"] is False


def test_tokens_can_be_taken_away() -> None:
    """A call with a removed token is a 401."""
    server = start(tokens={"one": "admin"})
    headers = {"authorization": "Bearer one"}
    assert server.handle(Request(method="GET", path="/api", headers=headers)).status == 200
    server.access.tokens = {"two": "admin"}
    assert server.handle(Request(method="GET", path="/api", headers=headers)).status == 401


def test_a_validator_can_be_given() -> None:
    """Its findings become the causes of a 422, on create and on update."""

    def validate(new: Any, old: Any) -> list[tuple[str, str, str]]:
        unsupported = ("spec.mode", "FieldValueNotSupported", "Unsupported value")
        return [unsupported] if new["spec"]["mode"] == "none" else []

    server = start(validate=validate)
    status, body = make_syncer(server, mode="none")
    cause = {
        "field": "spec.mode",
        "reason": "FieldValueNotSupported",
        "message": "Unsupported value",
    }
    assert (status, body["details"]["causes"]) == (422, [cause])
    ok(make_syncer(server))
    assert server.call("PATCH", f"{SYNCERS}/rating", {"spec": {"mode": "none"}})[0] == 422


def test_dual_stack_gives_a_slice_for_each_family() -> None:
    """Each slice has the pods' addresses of its family."""
    server = start(families=("IPv4", "IPv6"))
    ok(server.call("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}}))
    spec = make_service(server, ipFamilyPolicy="PreferDualStack")["spec"]
    assert (spec["ipFamilies"], len(spec["clusterIPs"])) == (["IPv4", "IPv6"], 2)
    make_pod(server, "p1", "10.0.0.1", "fd00::1")
    found = {each["addressType"]: each["endpoints"][0]["addresses"] for each in slices(server)}
    assert found == {"IPv4": ["10.0.0.1"], "IPv6": ["fd00::1"]}


def test_pods_with_other_named_ports_are_in_another_slice() -> None:
    """Ports belong to a slice, so each set of resolved ports has slices of its own."""
    server = start()
    ok(server.call("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}}))
    make_service(server)
    make_pod(server, "p1", "10.0.0.1", web=8080)
    make_pod(server, "p2", "10.0.0.2", web=9090)
    found = {
        each["ports"][0]["port"]: [e["addresses"][0] for e in each["endpoints"]]
        for each in slices(server)
    }
    assert found == {8080: ["10.0.0.1"], 9090: ["10.0.0.2"]}


def test_a_slice_holds_100_endpoints() -> None:
    """More pods make more slices, and fewer pods make fewer."""
    server = start()
    ok(server.call("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}}))
    make_service(server)
    for number in range(101):
        make_pod(server, f"p{number:03}", f"10.0.{number}.1")
    assert sorted(len(each["endpoints"]) for each in slices(server)) == [1, 100]
    ok(server.call("DELETE", f"{NAMESPACE}/pods/p000", {"gracePeriodSeconds": 0}))
    assert [len(each["endpoints"]) for each in slices(server)] == [100]


def test_a_node_that_comes_lets_its_pods_in() -> None:
    """Their zone is that of the node."""
    server = start()
    make_service(server)
    make_pod(server, "p1", "10.0.0.1")
    assert slices(server)[0]["endpoints"] is None
    labels = {"topology.kubernetes.io/zone": "a"}
    ok(server.call("POST", "/api/v1/nodes", {"metadata": {"name": "n1", "labels": labels}}))
    assert slices(server)[0]["endpoints"][0]["zone"] == "a"


def test_a_no_op_leaves_the_revision_alone() -> None:
    """A soak test sees by the revision that nothing was written."""
    server = start()
    ok(make_syncer(server))
    before = server.revision
    ok(server.call("PATCH", f"{SYNCERS}/rating", {"spec": {"mode": "pod"}}))
    ok(server.call("PATCH", f"{SYNCERS}/rating", {}))
    assert server.revision == before


def test_a_stored_object_is_never_changed_in_place() -> None:
    """Objects of an earlier page or of a snapshot stay as they were."""
    server = start()
    for name in ("a", "b"):
        ok(make_syncer(server, name))
    first = ok(server.call("GET", SYNCERS, limit="1"))
    ok(server.call("PATCH", f"{SYNCERS}/b", {"metadata": {"labels": {"x": "y"}}}))
    rest = ok(server.call("GET", SYNCERS, **{"continue": first["metadata"]["continue"]}))
    assert "labels" not in rest["items"][0]["metadata"]
    assert "labels" in ok(server.call("GET", f"{SYNCERS}/b"))["metadata"]


def test_a_watch_shows_what_changed_and_ends() -> None:
    """This is enough for `kubectl delete` and `kubectl wait`, which ask again."""
    server = start(watch_seconds=0)
    ok(make_syncer(server))
    since = str(server.revision)
    ok(server.call("DELETE", f"{SYNCERS}/rating"))
    query = {"watch": "true", "resourceVersion": since, "fieldSelector": "metadata.name=rating"}
    response = server.handle(Request(method="GET", path=SYNCERS, query=query))
    assert [b'"DELETED"' in line for line in response.body.splitlines()] == [True]


def test_many_threads_at_once() -> None:
    """Calls are answered one after the other, and each resourceVersion is given once."""
    server = start()
    made: list[str] = []

    def work(number: int) -> None:
        for index in range(20):
            made.append(
                ok(make_syncer(server, f"s-{number}-{index}"))["metadata"]["resourceVersion"]
            )

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 160


@pytest.mark.parametrize(
    "path", ["/", "/apis/eurekube.io/v2/eurekasyncers", "/api/v2", "/metrics", "/apis/none"]
)
def test_a_path_that_nobody_serves_is_page_not_found(path: str) -> None:
    """The answer is plain text."""
    response = start().handle(Request(method="GET", path=path))
    assert (response.status, response.body) == (404, b"404 page not found\n")
