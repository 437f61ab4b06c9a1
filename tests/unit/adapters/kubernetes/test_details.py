"""What a person who asks is told of the CRD."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eurekube_sync.adapters.kubernetes.details import KubernetesDetails
from eurekube_sync.embedded.http import Response
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.sources import Cause, Complete, Unknown
from tests.unit.adapters.kubernetes.world import DEFINITION, Half, World


def schema_of(definition: Any) -> Any:
    """What is read of a definition that the API gives so."""
    world = World()
    world.fault = lambda request, number: Response(status=200, body=json.dumps(definition).encode())
    details = KubernetesDetails(world.connection, clock=world.clock, random=Half(), limit=TimeLimit(world.clock))
    return details.schema()


def test_the_schema_is_that_of_the_stored_version() -> None:
    """Others are only served."""
    (stored,) = DEFINITION["spec"]["versions"]
    other = {"name": "v0", "storage": False, "schema": {"openAPIV3Schema": {"type": "object"}}}
    found = schema_of({**DEFINITION, "spec": {**DEFINITION["spec"], "versions": [other, stored]}})
    assert found == Complete(data=stored["schema"]["openAPIV3Schema"])


@pytest.mark.parametrize(
    "definition",
    [
        {},
        {"spec": None},
        {"spec": {}},
        {"spec": {"versions": None}},
        {"spec": {"versions": {}}},
        {"spec": {"versions": []}},
        {"spec": {"versions": [None]}},
        {"spec": {"versions": [{}]}},
        {"spec": {"versions": [{"storage": "true", "schema": {"openAPIV3Schema": {}}}]}},
        {"spec": {"versions": [{"storage": True}]}},
        {"spec": {"versions": [{"storage": True, "schema": {"openAPIV3Schema": None}}]}},
        {"spec": {"versions": [{"storage": False}, {"storage": True, "schema": {"openAPIV3Schema": {}}}]}},
        {"spec": []},
        [],
        None,
    ],
)
def test_a_definition_that_lacks_its_schema_is_unknown(definition: Any) -> None:
    """It is no empty schema, which would be another than this version's."""
    found = schema_of(definition)
    assert isinstance(found, Unknown)
    assert found.cause is Cause.UNUSABLE
