"""Odd calls to the demo's own servers, which any `curl` can make. They are refused, and later calls
still work."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eurekube_sync.embedded.eureka import EmbeddedEureka
from eurekube_sync.embedded.http import Request
from eurekube_sync.embedded.kubernetes.server import EmbeddedKubernetes
from eurekube_sync.manifests.crd import load_crd

NOW = 1_800_000_000.0
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SYNCERS = "/apis/eurekube.io/v1/namespaces/shop/eurekasyncers"
SYNCER = {
    "apiVersion": "eurekube.io/v1",
    "kind": "EurekaSyncer",
    "spec": {"selector": {"app": "a"}},
}


@pytest.mark.parametrize(
    "odd",
    [
        {"status": {}},
        {"lastDirtyTimestamp": "abc"},
        {"leaseInfo": {"durationInSecs": "soon"}},
        {"leaseInfo": 3},
    ],
)
def test_an_instance_that_no_list_could_show_is_refused(odd: dict[str, Any]) -> None:
    """The next list is answered as before."""
    eureka = EmbeddedEureka(lambda: NOW)

    def post(**more: Any) -> int:
        body = json.dumps(
            {"instance": {"instanceId": "a", "hostName": "a", "app": "A", **more}}
        ).encode()
        return eureka.handle(Request(method="POST", path="/eureka/apps/A", body=body)).status

    assert post(**odd) == 500
    assert post(leaseInfo={"durationInSecs": "90"}) == 204
    assert eureka.handle(Request(method="PUT", path="/eureka/apps/A/a")).status == 200
    assert eureka.handle(Request(method="GET", path="/eureka/apps")).status == 200


@pytest.fixture
def kubernetes() -> EmbeddedKubernetes:
    """An API with the CRD and a namespace."""
    made = EmbeddedKubernetes(lambda: NOW, definitions=[load_crd()])
    assert made.call("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})[0] == 201
    return made


@pytest.mark.parametrize("metadata", ["rating", ["rating"], 3])
def test_metadata_of_another_type_is_refused(kubernetes: EmbeddedKubernetes, metadata: Any) -> None:
    assert kubernetes.call("POST", SYNCERS, {**SYNCER, "metadata": metadata})[0] == 400


def test_a_syncer_is_deleted_with_its_definition(kubernetes: EmbeddedKubernetes) -> None:
    """A new CRD does not bring it back, and its namespace can be deleted."""
    assert kubernetes.call("POST", SYNCERS, {**SYNCER, "metadata": {"name": "rating"}})[0] == 201
    assert kubernetes.call("DELETE", f"{CRD}/{load_crd()['metadata']['name']}")[0] == 200
    assert kubernetes.call("POST", CRD, load_crd())[0] == 201
    assert kubernetes.call("GET", SYNCERS)[1]["items"] == []
    assert kubernetes.call("DELETE", "/api/v1/namespaces/shop")[0] == 200
    assert kubernetes.call("GET", "/api/v1/namespaces/shop")[0] == 404
