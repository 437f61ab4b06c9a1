"""Details for the commands that explain: the schema of the CRD, and the selectors of Services."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eurekube_sync.adapters.kubernetes.details import KubernetesDetails
from eurekube_sync.embedded.http import Response
from eurekube_sync.model.deadline import TimeLimit
from eurekube_sync.model.sources import Cause, Complete, Unknown
from tests.unit.adapters.kubernetes.world import DEFINITION, Half, World


def details_of(answer: Any) -> KubernetesDetails:
    """The details, from an API that gives this answer to each call."""
    world = World()
    world.fault = lambda request, number: Response(status=200, body=json.dumps(answer).encode())
    return KubernetesDetails(
        world.connection, clock=world.clock, random=Half(), limit=TimeLimit(world.clock)
    )


def schema_of(definition: Any) -> Any:
    """The schema that is read from this definition."""
    return details_of(definition).schema()


def services_of(service: Any) -> Any:
    """The selectors that are read from a list of this one Service."""
    listed = {"kind": "ServiceList", "metadata": {"resourceVersion": "1"}, "items": [service]}
    return details_of(listed).list_service_selectors("shop")


def test_a_service_names_the_kind_of_its_controller() -> None:
    """That of an import is nothing to select."""
    meta = {"name": "review", "namespace": "shop"}
    owners = [
        {"kind": "Other", "name": "a", "uid": "1"},
        {"kind": "EurekaImport", "name": "b", "uid": "2", "controller": True},
    ]
    (made,) = services_of({"metadata": {**meta, "ownerReferences": owners}}).data
    (plain,) = services_of({"metadata": meta}).data
    assert (made.controller, plain.controller) == ("EurekaImport", "")


def test_the_schema_is_that_of_the_stored_version() -> None:
    """Other versions are only served."""
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
        {
            "spec": {
                "versions": [
                    {"storage": False},
                    {"storage": True, "schema": {"openAPIV3Schema": {}}},
                ]
            }
        },
        {"spec": []},
        [],
        None,
    ],
)
def test_a_definition_that_lacks_its_schema_is_unknown(definition: Any) -> None:
    """An empty schema would count as a difference to this version's schema."""
    found = schema_of(definition)
    assert isinstance(found, Unknown)
    assert found.cause is Cause.UNUSABLE


@pytest.mark.parametrize(
    "spec", [None, [], {"selector": 0}, {"selector": False}, {"selector": ""}, {"selector": []}]
)
def test_a_selector_that_is_none_is_not_an_empty_one(spec: Any) -> None:
    """A Service without a selector has another meaning: no check of its pods would follow."""
    found = services_of({"metadata": {"name": "rating", "namespace": "shop"}, "spec": spec})
    assert isinstance(found, Unknown)
    assert found.cause is Cause.UNUSABLE


@pytest.mark.parametrize(
    "service", [{}, {"spec": {}}, {"spec": {"selector": None}}, {"spec": {"selector": {}}}]
)
def test_a_service_may_have_no_selector(service: Any) -> None:
    """Another controller or a person makes its slices then."""
    found = services_of({"metadata": {"name": "rating", "namespace": "shop"}, **service})
    assert isinstance(found, Complete)
    assert [one.selector for one in found.data] == [{}]


def test_an_api_without_service_cidrs_does_not_say_that_there_are_none() -> None:
    """Before 1.33 it answers 404, and it has networks of Services all the same."""
    world = World()
    world.fault = lambda request, number: Response(status=404, body=b"404 page not found\n")
    details = KubernetesDetails(
        world.connection, clock=world.clock, random=Half(), limit=TimeLimit(world.clock)
    )
    found = details.service_networks()
    assert isinstance(found, Unknown)
    assert found.cause is Cause.UNUSABLE
