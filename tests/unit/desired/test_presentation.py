"""Host names, paths and metadata: what they mean, and which the program refuses although the API
server took them."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.desired.instance import Builder, Site, family_of
from eurekube_sync.desired.spec import MetadataFrom, Paths, Zone, parse
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.kubernetes import PodRef
from tests.unit.worlds.build import NAMING, syncer


def refused(**spec: Any) -> tuple[str, str]:
    """Why the spec cannot be served."""
    with pytest.raises(InvalidSyncer) as caught:
        parse(syncer(**spec))
    return caught.value.reason, str(caught.value)


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("ip", "10.0.0.1", "10.0.0.1"),
        ("ip", "fd00::1", "[fd00::1]"),
        ("ip.example.com", "10.0.0.1", "10-0-0-1.example.com"),
        ("ip-x", "fd00::1", "fd00--1-x"),
        ("ip.example.com", "::1", "0--1.example.com"),
        ("ip.example.com", "fd00::", "fd00--0.example.com"),
        ("podName", "rating-1", "rating-1"),
        ("podName.a.b", "rating-1", "rating-1.a.b"),
        ("nodeName-x", "node-a", "node-a-x"),
    ],
)
def test_a_host_name_is_a_name_with_a_suffix(text: str, name: str, expected: str) -> None:
    """An address before a suffix is one label, as in sslip.io and in the cluster's own DNS."""
    builder = Builder(parse(syncer(hostName=text)), NAMING)
    address = name if text.startswith("ip") else "10.0.0.1"
    site = Site(host=address, port=80, secure_port=None, pod=PodRef(name, "uid"), node=name)
    assert (
        builder.wanted(builder.key("rating", site), site, up=True, why="").instance.host_name
        == expected
    )


def test_without_settings_an_instance_has_its_address_and_nothing_more() -> None:
    """It has no URLs, no metadata and no zone."""
    found = parse(syncer())
    assert (found.host_name, found.paths, found.metadata, found.metadata_from) == (
        "ip",
        Paths(),
        {},
        (),
    )
    assert (found.zone, found.needs_pods) == (Zone(from_endpoint=False), False)


def test_each_field_of_the_presentation_is_parsed() -> None:
    found = parse(
        syncer(
            hostName="podName.a",
            paths={"home": "/", "status": "/s", "health": "/h", "managementPort": 8081.0},
            metadataFrom=[{"key": "a", "podLabel": "l"}, {"key": "b", "serviceAnnotation": "n"}],
            zone={"fromEndpoint": True, "map": {"a": "b"}},
        )
    )
    assert found.host_name == "podName.a"
    assert found.paths == Paths(home="/", status="/s", health="/h", management_port=8081)
    assert found.metadata_from == (
        MetadataFrom(key="a", pod_label="l"),
        MetadataFrom(key="b", service_annotation="n"),
    )
    assert (found.zone, found.needs_pods) == (Zone(from_endpoint=True, map={"a": "b"}), True)


@pytest.mark.parametrize("source", ["podLabel", "podAnnotation"])
def test_pods_are_needed_for_their_own_labels_and_annotations(source: str) -> None:
    """No other source needs them."""
    assert parse(syncer(metadataFrom=[{"key": "a", source: "l"}])).needs_pods
    assert not parse(syncer(metadataFrom=[{"key": "a", "serviceLabel": "l"}])).needs_pods


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        ({"hostName": "pod"}, "InvalidSpec", "not ip, podName or nodeName"),
        ({"hostName": "ip.A"}, "InvalidSpec", "not ip, podName or nodeName"),
        ({"hostName": "ip.a\n"}, "InvalidSpec", "not ip, podName or nodeName"),
        ({"hostName": "podName", "mode": "service"}, "InvalidSpec", "only for mode pod"),
        ({"zone": {"fromEndpoint": True}, "mode": "service"}, "InvalidSpec", "only for mode pod"),
        ({"zone": {}}, "InvalidSpec", "fromEndpoint"),
        (
            {"zone": {"fromEndpoint": True, "map": {"a": "\x01"}}},
            "InvalidMetadata",
            "spec.zone.map.a: the value has",
        ),
        (
            {"zone": {"fromEndpoint": True, "map": {"a": ""}}},
            "InvalidMetadata",
            "spec.zone.map.a: the value is empty",
        ),
        ({"paths": {"home": "actuator"}}, "InvalidSpec", "spec.paths.home"),
        ({"paths": {"status": "/a b"}}, "InvalidSpec", "spec.paths.status"),
        ({"paths": {"health": ""}}, "InvalidSpec", "spec.paths.health"),
        ({"paths": {"managementPort": 0}}, "InvalidSpec", "1..65535"),
        ({"paths": {"managementPort": 65536}}, "InvalidSpec", "1..65535"),
        ({"metadataFrom": [{"key": "a"}]}, "InvalidSpec", "exactly one of podLabel"),
        (
            {"metadataFrom": [{"key": "a", "podLabel": "x", "serviceLabel": "y"}]},
            "InvalidSpec",
            "exactly one of podLabel",
        ),
        (
            {"metadataFrom": [{"key": "a", "podLabel": "x"}], "mode": "service"},
            "InvalidSpec",
            "only for mode pod",
        ),
        (
            {"metadataFrom": [{"key": "1a", "podLabel": "x"}]},
            "InvalidMetadata",
            "becomes an XML element name",
        ),
        (
            {"metadataFrom": [{"key": "eurekube.x", "podLabel": "x"}]},
            "InvalidMetadata",
            "eurekube-sync itself writes such keys",
        ),
        (
            {"metadata": {"a": "1"}, "metadataFrom": [{"key": "a", "podLabel": "x"}]},
            "InvalidMetadata",
            "spec.metadataFrom[0].key: a key must not be in both metadata and metadataFrom",
        ),
        (
            {"metadataFrom": [{"key": "a", "podLabel": "x"}, {"key": "a", "podLabel": "y"}]},
            "InvalidMetadata",
            "spec.metadataFrom[1].key: another entry has the same key",
        ),
        (
            {"metadataFrom": [{"key": "management.address", "podAnnotation": "x"}]},
            "InvalidMetadata",
            "spec.metadataFrom[0].key: callers act on keys such as zone, password",
        ),
        (
            {"metadata": {"zone": "a"}, "zone": {"fromEndpoint": True}},
            "InvalidMetadata",
            "must not have the key zone if",
        ),
        (
            {"metadata": {"management.port": "1"}, "paths": {"managementPort": 2}},
            "InvalidMetadata",
            "must not have the key management.port if",
        ),
    ],
)
def test_a_spec_that_an_older_crd_may_have_accepted_is_refused(
    spec: dict[str, Any], reason: str, message: str
) -> None:
    """The program checks every spec itself."""
    found = refused(**spec)
    assert found[0] == reason
    assert message in found[1]


def test_a_zone_that_is_not_taken_leaves_the_key_free() -> None:
    """`fromEndpoint: false` sets no key."""
    spec = parse(syncer(zone={"fromEndpoint": False}, metadata={"zone": "a"}))
    assert (spec.zone.from_endpoint, spec.metadata) == (False, {"zone": "a"})


@pytest.mark.parametrize(
    ("address", "family"),
    [
        ("10.0.0.1", "IPv4"),
        ("fd00::1", "IPv6"),
        ("a.example.com", None),
        ("fe80::1%eth0", None),
        ("", None),
    ],
)
def test_an_address_is_of_a_family_and_a_name_of_none(address: str, family: str | None) -> None:
    """Its form shows the family."""
    assert family_of(address) == family
