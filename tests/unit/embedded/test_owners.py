"""What the garbage collector of the embedded Kubernetes deletes, and when."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.embedded.kubernetes.server import EmbeddedKubernetes
from eurekube_sync.manifests.crd import load_crds

IMPORTS = "/apis/eurekube.io/v1/namespaces/shop/eurekaimports"
SERVICES = "/api/v1/namespaces/shop/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/eurekaimports.eurekube.io"


@pytest.fixture
def server() -> EmbeddedKubernetes:
    made = EmbeddedKubernetes(lambda: 1_800_000_000.0, definitions=load_crds())
    ask(made, "POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    return made


def ask(server: EmbeddedKubernetes, method: str, path: str, body: Any = None, **query: str) -> Any:
    status, answer = server.call(method, path, body, **query)
    assert status < 300, answer
    return answer


def new_import(server: EmbeddedKubernetes, name: str, **metadata: Any) -> Any:
    head = {"apiVersion": "eurekube.io/v1", "kind": "EurekaImport"}
    return ask(
        server, "POST", IMPORTS, {**head, "metadata": {"name": name, **metadata}, "spec": {}}
    )


def owned_by(*owners: Any) -> dict[str, Any]:
    references = []
    for owner in owners:
        reference = {key: owner[key] for key in ("apiVersion", "kind")}
        reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
        references.append(reference)
    return {"ownerReferences": references}


def piece(name: str, *owners: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, **owned_by(*owners)},
        "addressType": "IPv4",
        "endpoints": [],
        "ports": [],
    }


def names(server: EmbeddedKubernetes, path: str = SLICES) -> list[str]:
    return [item["metadata"]["name"] for item in ask(server, "GET", path)["items"]]


def test_an_object_goes_with_the_last_of_its_owners(server: EmbeddedKubernetes) -> None:
    """One owner that is there is enough."""
    first, second = new_import(server, "a"), new_import(server, "b")
    ask(server, "POST", SLICES, piece("both", first, second))
    ask(server, "POST", SLICES, piece("one", first))
    ask(server, "DELETE", f"{IMPORTS}/a")
    assert names(server) == ["both"]
    ask(server, "DELETE", f"{IMPORTS}/b")
    assert names(server) == []


def test_an_owner_that_is_made_again_is_another_one(server: EmbeddedKubernetes) -> None:
    """Its UID counts, not its name."""
    first = new_import(server, "a")
    ask(server, "DELETE", f"{IMPORTS}/a")
    new_import(server, "a")
    ask(server, "POST", SLICES, piece("late", first))
    assert names(server) == []


def test_a_kind_that_nobody_serves_may_be_there(server: EmbeddedKubernetes) -> None:
    """So nothing is collected for it."""
    stranger = {
        "apiVersion": "apps.example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "a", "uid": "u"},
    }
    ask(server, "POST", SLICES, piece("kept", stranger))
    assert names(server) == ["kept"]


def test_an_object_that_loses_its_references_is_nobodys(server: EmbeddedKubernetes) -> None:
    """It stays when the former owner goes; one that is given to another owner goes with that."""
    first, second = new_import(server, "a"), new_import(server, "b")
    for name in ("left", "given"):
        ask(server, "POST", SLICES, piece(name, first))
    ask(server, "PATCH", f"{SLICES}/left", {"metadata": {"ownerReferences": None}})
    ask(server, "PATCH", f"{SLICES}/given", {"metadata": owned_by(second)})
    ask(server, "DELETE", f"{IMPORTS}/a")
    assert names(server) == ["given", "left"]
    ask(server, "DELETE", f"{IMPORTS}/b")
    assert names(server) == ["left"]


def test_what_a_dependent_owns_goes_as_well(server: EmbeddedKubernetes) -> None:
    """A slice of a Service of an import."""
    owner = new_import(server, "a")
    spec = {"ports": [{"port": 80}]}
    made = ask(
        server, "POST", SERVICES, {"metadata": {"name": "a", **owned_by(owner)}, "spec": spec}
    )
    ask(server, "POST", SLICES, piece("of-the-service", {**made, "apiVersion": "v1"}))
    ask(server, "DELETE", f"{IMPORTS}/a")
    assert (names(server, SERVICES), names(server)) == ([], [])


def test_a_definition_takes_what_its_objects_own(server: EmbeddedKubernetes) -> None:
    """Without finalizers, at once."""
    first, second = new_import(server, "a"), new_import(server, "b")
    ask(server, "POST", SLICES, piece("ours", first))
    ask(server, "POST", SLICES, piece("both", first, second))
    ask(server, "DELETE", CRD)
    assert names(server) == []


def test_a_dry_run_collects_nothing(server: EmbeddedKubernetes) -> None:
    """Neither of a DELETE nor of an object without an owner."""
    owner = new_import(server, "a")
    ask(server, "POST", SLICES, piece("ours", owner))
    ask(server, "DELETE", f"{IMPORTS}/a", dryRun="All")
    assert names(server) == ["ours"]
