"""What people do to the Service and the slices of an import: callers keep their endpoints, and
what was edited is as it was two passes later."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.controller.reconcile import reconcile
from tests.unit.imports.test_both_directions import IMPORTS, SERVICES, SLICES, Servers, manifest

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
FOREIGN = {"addresses": ["10.20.0.9"], "conditions": {"ready": True}}
SLICE_EDITS: dict[str, Any] = {
    "no endpoints": {"endpoints": []},
    "one more endpoint": {"endpoints": [FOREIGN]},
    "other ports": {"ports": [{"name": "web", "port": 9}]},
    "another Service": {"metadata": {"labels": {SERVICE_NAME: "other"}}},
    "no Service": {"metadata": {"labels": {SERVICE_NAME: None}}},
    "no manager": {"metadata": {"labels": {MANAGED_BY: None}}},
    "another manager": {"metadata": {"labels": {MANAGED_BY: "someone.example.com"}}},
    "no owner": {"metadata": {"ownerReferences": None}},
    "no label of the import": {"metadata": {"labels": {"eurekube.io/import": None}}},
    "deleted": None,
}


LOST = {"no manager": "InCluster", "another manager": "InCluster", "no owner": "InSync"}
"""After these the slice is another's. The condition's reason: its addresses are not written again,
or are in a slice of our own as well."""


def labels_of(piece: Any) -> Any:
    """The labels by which a slice serves."""
    return {
        label: value
        for label, value in piece["metadata"]["labels"].items()
        if label in (SERVICE_NAME, MANAGED_BY)
    }


def served(there: Servers) -> set[str]:
    """The addresses that callers of the Service reach, as kube-proxy reads the slices."""
    names = {port["name"] for port in there.ask("GET", f"{SERVICES}/review")["spec"]["ports"]}
    found = set()
    for piece in there.ask("GET", SLICES)["items"]:
        if piece["metadata"]["labels"].get(SERVICE_NAME) != "review":
            continue
        if names & {port["name"] for port in piece["ports"] or ()}:
            for endpoint in piece["endpoints"] or ():
                found.update(endpoint["addresses"])
    return found


@pytest.fixture
def there() -> Servers:
    """An import of two instances, at rest."""
    servers = Servers()
    servers.ask("POST", IMPORTS, manifest("EurekaImport", "review", {}))
    for number in (1, 2):
        servers.register(number)
    servers.clock.sleep(600)
    servers.register(99, app="OTHER")
    servers.passes()
    servers.passes()
    assert servers.writes == []
    return servers


BOTH = {"10.20.0.1", "10.20.0.2"}


@pytest.mark.parametrize("edit", SLICE_EDITS)
def test_an_edited_slice_leads_to_all_instances_again(there: Servers, edit: str) -> None:
    """And then nothing more is written."""
    (piece,) = there.ask("GET", SLICES)["items"]
    path, body = f"{SLICES}/{piece['metadata']['name']}", SLICE_EDITS[edit]
    there.ask("DELETE" if body is None else "PATCH", path, body)
    for _ in range(3):
        there.clock.sleep(60)
        there.writes.clear()
        reconcile(there.world, there.settings)
    assert served(there) == BOTH
    assert there.writes == []
    if edit in LOST:
        assert there.ready()[1] == LOST[edit]
    else:
        (item,) = there.ask("GET", SLICES)["items"]
        assert labels_of(item) == labels_of(piece)


SERVICE_EDITS: dict[str, Any] = {
    "other ports": {"spec": {"ports": [{"name": "web", "port": 81}]}},
    "one more port": {
        "spec": {"ports": [{"name": "http", "port": 80}, {"name": "web", "port": 81}]}
    },
    "another label": {"metadata": {"labels": {"eurekube.io/import": None}}},
    "another type": {"spec": {"type": "NodePort"}},
    "a selector": {"spec": {"selector": {"app": "review"}}},
    "deleted": None,
}


@pytest.mark.parametrize("edit", SERVICE_EDITS)
def test_an_edited_service_leads_to_all_instances_again(there: Servers, edit: str) -> None:
    """And then nothing more is written."""
    body = SERVICE_EDITS[edit]
    there.ask("DELETE" if body is None else "PATCH", f"{SERVICES}/review", body)
    for _ in range(3):
        there.passes()
    assert served(there) == BOTH
    assert there.writes == []
    ports = there.ask("GET", f"{SERVICES}/review")["spec"]["ports"]
    assert [port["port"] for port in ports] == [80]
