"""Writes of imports that the Kubernetes API refuses: each is an error of its own kind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eurekube_sync.embedded.http import Response
from eurekube_sync.model.errors import (
    ClusterConflict,
    ClusterDenied,
    ClusterError,
    ClusterExists,
    ClusterRejected,
    ClusterUnavailable,
)
from eurekube_sync.model.imports import (
    ImportObject,
    ImportPort,
    ImportService,
    ImportSlice,
    ImportWrites,
)
from tests.unit.adapters.kubernetes.world import World, answer

OWNER = ImportObject(
    namespace="shop", name="review", uid="u", generation=1, resource_version="7", created=0.0
)
SERVICE = ImportService(owner=OWNER, name="review", ports=(ImportPort(name="http", port=80),))
SLICE = ImportSlice(
    namespace="shop",
    name="review-0",
    service="review",
    address_type="IPv4",
    ports=(ImportPort(name="http", port=8080),),
    endpoints=("10.20.0.1",),
    uid="s",
    resource_version="8",
)
WRITES: dict[str, Callable[[ImportWrites], object]] = {
    "create Service": lambda imports: imports.create_service(SERVICE),
    "ports": lambda imports: imports.write_service_ports(SERVICE, resource_version="7"),
    "create slice": lambda imports: imports.create_slice(OWNER, SLICE),
    "write slice": lambda imports: imports.write_slice(SLICE),
    "delete slice": lambda imports: imports.delete_slice(SLICE),
}
ENDING = {
    "kind": "Status",
    "message": "namespace shop is being terminated",
    "details": {"causes": [{"reason": "NamespaceTerminating"}]},
}
ANSWERS: dict[str, tuple[Response, type[ClusterError]]] = {
    "forbidden": (answer(403, {"kind": "Status", "message": "you may not"}), ClusterDenied),
    "invalid": (answer(422, {"kind": "Status", "message": "it is invalid"}), ClusterRejected),
    "busy": (answer(503, "busy"), ClusterUnavailable),
    "conflict": (answer(409, {"kind": "Status", "message": "modified"}), ClusterConflict),
}


@pytest.mark.parametrize("refusal", ANSWERS)
@pytest.mark.parametrize("write", WRITES)
def test_each_refusal_is_an_error_of_its_kind(write: str, refusal: str) -> None:
    """Nothing that was not done counts as done."""
    given, error = ANSWERS[refusal]
    world = World()
    world.fault = lambda request, number: given
    with pytest.raises(error) as told:
        WRITES[write](world.cluster.imports)
    assert type(told.value) is error


@pytest.mark.parametrize("write", ["create Service", "create slice"])
@pytest.mark.parametrize("given", [answer(403, ENDING), answer(404, {"kind": "Status"})])
def test_a_namespace_that_ends_is_no_lack_of_rights(write: str, given: Response) -> None:
    """It refuses what is new; or it is gone already."""
    world = World()
    world.fault = lambda request, number: given
    with pytest.raises(ClusterConflict, match="its namespace is deleted"):
        WRITES[write](world.cluster.imports)


def test_an_answer_that_is_no_service_is_refused() -> None:
    """A proxy may answer 201 in the place of the API."""
    world = World()
    world.fault = lambda request, number: answer(201, "<html>")
    with pytest.raises(ClusterRejected, match="is not a Service"):
        world.cluster.imports.create_service(SERVICE)


EXISTS = {"kind": "Status", "reason": "AlreadyExists", "message": "it already exists"}
QUOTA = {"kind": "Status", "reason": "Conflict", "message": "the quota has been modified"}


@pytest.mark.parametrize("write", ["create Service", "create slice"])
@pytest.mark.parametrize(("body", "error"), [(EXISTS, ClusterExists), (QUOTA, ClusterConflict)])
def test_a_name_that_exists_is_no_other_conflict(
    write: str, body: dict[str, str], error: type[ClusterError]
) -> None:
    """Only then another name is tried. A quota that others use at the same time is a 409, too."""
    world = World()
    world.fault = lambda request, number: answer(409, body)
    with pytest.raises(ClusterConflict) as told:
        WRITES[write](world.cluster.imports)
    assert type(told.value) is error
