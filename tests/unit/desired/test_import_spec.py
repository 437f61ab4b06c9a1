"""The spec of an EurekaImport: its defaults, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from eurekube_sync.desired.import_spec import (
    Import,
    Select,
    Target,
    changed,
    class_of,
    parse,
    service_name,
)
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.imports import ImportObject, ImportRef
from eurekube_sync.model.reasons import Reason


def an_import(spec: Any, name: str = "review") -> ImportObject:
    return ImportObject(
        namespace="shop",
        name=name,
        uid="u",
        generation=1,
        resource_version="1",
        created=0.0,
        spec=spec,
    )


def read(**spec: Any) -> Import:
    return parse(an_import(spec))


def whole(name: str = "review", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def test_its_name_is_the_default_of_app_and_service() -> None:
    """The smallest import has an empty spec."""
    spec = read()
    assert spec.ref == ImportRef("shop", "review")
    assert (spec.app, spec.vip_address) == ("REVIEW", None)
    assert spec.service == Target(name="review", port=80)
    assert spec.select == Select(zones=None, metadata={}, this_cluster=False)
    assert (spec.address_family, spec.suspend, spec.syncer_class) == (None, False, None)


def test_each_field_is_read() -> None:
    spec = read(
        app="Review_2",
        service={"name": "reviews", "port": 8080.0, "securePort": 8443, "headless": True},
        select={"zones": ["dc1"], "metadata": {"version": "2"}, "thisCluster": True},
        addressFamily="IPv6",
        suspend=True,
        syncerClass="internal",
    )
    assert spec.app == "REVIEW_2"
    assert spec.service == Target(name="reviews", port=8080, secure_port=8443, headless=True)
    assert spec.select == Select(zones=("dc1",), metadata={"version": "2"}, this_cluster=True)
    assert (spec.address_family, spec.suspend, spec.syncer_class) == ("IPv6", True, "internal")


def test_a_vip_address_takes_the_place_of_the_app() -> None:
    """Also one with a port, as Eureka has it."""
    spec = read(vipAddress="review:8080")
    assert (spec.app, spec.vip_address, spec.service.name) == (None, "review:8080", "review")


def test_an_adopted_service_has_ports_by_name_or_by_its_own_rule() -> None:
    """No port is given to a Service that is never changed."""
    assert read(service={"adopt": True}).service.port is None
    service = read(service={"adopt": True, "port": "web", "securePort": "web-tls"}).service
    assert (service.port, service.secure_port) == ("web", "web-tls")


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"app": "a/b"}, "spec.app must be 1 to 128 letters"),
        ({"app": ""}, "spec.app must be 1 to 128 letters"),
        ({"vipAddress": "a,b"}, "spec.vipAddress must be one name"),
        ({"vipAddress": "a" * 129}, "spec.vipAddress must be one name"),
        ({"app": "a", "vipAddress": "a"}, "spec.vipAddress: app and vipAddress exclude"),
        ({"service": {"name": "Review"}}, "spec.service.name must be a lower-case letter"),
        ({"service": {"name": "1review"}}, "spec.service.name must be a lower-case letter"),
        ({"service": {"port": 0}}, "spec.service.port: 0 is neither"),
        ({"service": {"port": "8080"}}, "without quotes: port: 8080"),
        ({"service": {"port": "http"}}, "spec.service.port: a port by name is only for adopt"),
        ({"service": {"securePort": "x"}}, "spec.service.securePort: a port by name is only"),
        ({"service": {"securePort": 80}}, "securePort must differ from port (both are 80)"),
        (
            {"service": {"adopt": True, "port": "a", "securePort": "a"}},
            "securePort must differ from port (both are a)",
        ),
        ({"service": {"headless": True, "adopt": True}}, "headless and adopt exclude each other"),
        ({"select": {"zones": []}}, "spec.select.zones must not be empty"),
        ({"select": {"metadata": {"a b": "c"}}}, "a metadata key is a letter"),
        ({"select": {"zone": "dc1"}}, 'unknown field "zone"; did you mean "zones"?'),
        ({"appName": "review"}, 'spec.appName: unknown field "appName"'),
        ({"service": {"port": [80]}}, "spec.service.port must be a whole number or a string"),
    ],
)
def test_a_spec_that_means_nothing_is_refused(spec: dict[str, Any], fault: str) -> None:
    """By the field, although an older CRD may have let it in."""
    with pytest.raises(InvalidSyncer, match=re.escape(fault)):
        read(**spec)


@pytest.mark.parametrize("name", ["re.view", "1review", "review-", "a" * 64])
def test_its_name_is_a_label(name: str) -> None:
    """It is the value of a label, and by default the name of a Service."""
    with pytest.raises(InvalidSyncer, match=r"metadata\.name: an import's name is a label") as told:
        parse(an_import({}, name))
    assert told.value.reason is Reason.INVALID_NAME


@pytest.mark.parametrize(
    ("spec", "name", "of_class"),
    [
        ({}, "review", None),
        ({"service": {"name": "reviews"}, "syncerClass": "a"}, "reviews", "a"),
        ({"service": "reviews", "syncerClass": 7}, "review", None),
        ({"service": {"name": ""}, "syncerClass": ""}, "review", None),
    ],
)
def test_names_are_read_of_an_invalid_spec(
    spec: dict[str, Any], name: str, of_class: str | None
) -> None:
    """So that an invalid import still has its Service and its installation."""
    raw = an_import(spec)
    assert (service_name(raw), class_of(raw)) == (name, of_class)


def test_what_is_immutable() -> None:
    """The Service's name and whether it is headless, with their defaults."""
    plain, same = whole(), whole(service={"name": "review", "headless": False, "port": 81})
    assert list(changed(same, plain)) == []
    other = whole(service={"name": "reviews", "headless": True})
    assert [fault for _, fault in changed(other, plain)] == [
        "service.headless is immutable, as in a Service",
        "service.name is immutable, because the Service of before would stay",
    ]
