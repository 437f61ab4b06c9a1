"""The spec of a syncer: what it means, and which specs cannot be served."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given

from eurekube_sync.desired.selector import Expression, Selector
from eurekube_sync.desired.spec import check_app_name, host_name_warning, parse
from eurekube_sync.manifests.crd import object_schema
from eurekube_sync.manifests.schema import conformed
from eurekube_sync.model.errors import InvalidSyncer
from eurekube_sync.model.struct import replace
from tests.cases import Case, syncer_cases, validate_object
from tests.cases.specs import specs
from tests.unit.worlds.build import NS, REF, service, syncer

LABELS = {"app": "rating", "tier": "web"}


def selects(**selector: Any) -> bool:
    """Whether the selector matches the Service `rating` with the labels app=rating and tier=web."""
    return parse(syncer(selector=selector)).selector.matches(service(labels=LABELS))


def refused(**spec: Any) -> tuple[str, str]:
    """Why the spec cannot be served."""
    with pytest.raises(InvalidSyncer) as caught:
        parse(syncer(**spec))
    return caught.value.reason, str(caught.value)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"app": "rating"}, True),
        ({"app": "other"}, False),
        ({"matchLabels": {"tier": "web"}}, True),
        ({"matchLabels": {"tier": "web", "app": "other"}}, False),
        ({"matchLabels": {"missing": ""}}, False),
        ({"app": "rating", "matchLabels": {"tier": "web"}}, True),
        ({"app": "rating", "matchLabels": {"app": "rating"}}, True),
        ({"app": "rating", "matchLabels": {"tier": "db"}}, False),
        ({"service": "rating"}, True),
        ({"service": "other"}, False),
        ({"service": "rating", "app": "other"}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["web", "db"]}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["db"]}]}, False),
        ({"matchExpressions": [{"key": "missing", "operator": "In", "values": [""]}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["db"]}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "missing", "operator": "NotIn", "values": ["x"]}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "missing", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "missing", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_a_selector_means_services_that_meet_all_its_parts(
    selector: dict[str, Any], expected: bool
) -> None:
    """`app` is short for a label. NotIn and DoesNotExist match an absent label, as in the API
    server."""
    assert selects(**selector) is expected


@pytest.mark.parametrize(
    "selector",
    [
        {},
        {"app": ""},
        {"service": ""},
        {"matchLabels": {}},
        {"matchExpressions": []},
        {"app": "rating", "matchLabels": {}},
        {"app": "rating", "matchLabels": {"app": "other"}},
        {"matchExpressions": [{"key": "a", "operator": "In"}]},
        {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": []}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
        {"matchExpressions": [{"key": "a", "operator": "Is", "values": ["x"]}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists", "extra": 1}]},
        {"unknown": "x"},
        *(
            {"matchLabels": {key: "x"}}
            for key in ("", "a/b/c", "Example.com/x", "tier\n", "a" * 64, f"{'a' * 316}/b")
        ),
    ],
)
def test_a_selector_that_could_mean_everything_or_nothing_is_refused(
    selector: dict[str, Any],
) -> None:
    """No part may be empty, at least one must be there, and none may contradict another."""
    assert refused(selector=selector)[0] == "InvalidSpec"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"mode": "pods"}, 'spec.mode must be pod or service, not "pods"; did you mean "pod"?'),
        ({"selector": {"app": 5}}, "spec.selector.app must be a string, not 5: put it in quotes"),
        (
            {"selector": {"app": True}},
            "spec.selector.app must be a string, not true (YAML reads on, off, yes, no, y and n "
            "as true or false): "
            "put it in quotes",
        ),
        ({"selector": "rating"}, 'spec.selector must be a mapping, not "rating"'),
        ({"selector": None}, 'spec.selector: field "selector" is missing'),
        (
            {"selector": {"matchExpressions": [None]}},
            "spec.selector.matchExpressions[0] must be a mapping, not null",
        ),
        ({"suspend": "yes"}, 'spec.suspend must be true or false, not "yes", which is a string'),
        ({"port": 80.5}, "spec.port must be a whole number or a string, not 80.5"),
        (
            {"paths": {"managementPort": 8081.5}},
            "spec.paths.managementPort must be a whole number, not 8081.5",
        ),
        ({"port": [80]}, "spec.port must be a whole number or a string, not [80]"),
        ({"notReady": "Perhaps"}, 'spec.notReady must be Cancel or Down, not "Perhaps"'),
        ({"weight": 1}, 'spec.weight: unknown field "weight"'),
        ({"prot": "http"}, 'spec.prot: unknown field "prot"; did you mean "port"?'),
        ({"zone": {}}, 'spec.zone.fromEndpoint: field "fromEndpoint" is missing'),
        (
            {"zone": {"fromEndpoint": True, "map": {"a/b": 1}}},
            "spec.zone.map['a/b'] must be a string, not 1: put it in quotes",
        ),
        (
            {"selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
            'spec.selector.matchExpressions[0].operator must be DoesNotExist, Exists, In or NotIn, not "Is"',
        ),
        (
            {"mode": 1, "suspend": 1, "onDuplicate": "Never", "weight": 1, "paths": 7},
            "spec.mode must be a string, not 1: put it in quotes; spec.suspend must be true or "
            "false, not 1; "
            'spec.onDuplicate must be Skip or Warn, not "Never"; and 2 more faults',
        ),
    ],
    ids=str,
)
def test_a_spec_of_the_wrong_shape_is_reported_in_the_words_of_validate(
    spec: dict[str, Any], message: str
) -> None:
    """The condition names each field as a person wrote it, and says what to write."""
    assert refused(**spec) == ("InvalidSpec", message)


def test_all_faults_are_reported_at_once() -> None:
    """Otherwise a person would apply a syncer once for each fault."""
    spec: dict[str, Any] = {
        "mode": "service",
        "selector": {"app": "x", "matchLabels": {"a/b/c": "x"}},
        "readinessGate": True,
        "metadata": {"a b": "x", "class": "x"},
        "metadataFrom": [{"key": "c"}],
    }
    with pytest.raises(InvalidSyncer) as caught:
        parse(syncer(**spec))
    assert [path for path, _ in caught.value.faults] == [
        ("spec", "readinessGate"),
        ("spec", "selector", "matchLabels", "a/b/c"),
        ("spec", "metadata", "a b"),
        ("spec", "metadata", "class"),
        ("spec", "metadataFrom", 0),
    ]
    assert str(caught.value).startswith(
        "spec.readinessGate: readinessGate is only for mode pod; spec.selector."
    )
    assert str(caught.value).endswith("; and 2 more faults")


ALIKE = (
    "must be ",
    "unknown field",
    'field "',
)
"""The beginnings of sentences that a condition shares with `validate`. A pattern, a bound or a
limit has its own."""


REFUSED = [
    case
    for case in syncer_cases()
    if not case.accepted and isinstance(case.manifest.get("spec"), dict)
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_the_condition_and_validate_use_the_same_words(case: Case) -> None:
    """An older CRD may have let a faulty spec in. The condition then has the sentence of
    `validate`."""
    findings = [
        one for one in validate_object(case.manifest) if re.match(r"\$\.spec\.(?!limit)", one.path)
    ]
    alike = [one.reason for one in findings if one.reason.startswith(ALIKE)]
    told = ""
    try:
        parse(replace(syncer(), spec=conformed(case.manifest, object_schema())[0]["spec"]))
    except InvalidSyncer as error:
        told = str(error)
    assert [reason for reason in alike if told and reason not in told] == []


@given(spec=specs())
def test_every_spec_that_cannot_be_read_is_reported_in_our_words(spec: Any) -> None:
    """Each spec that the reader refuses has a fault with a sentence of ours."""
    told = ""
    try:
        parse(replace(syncer(), spec=spec))
    except InvalidSyncer as error:
        told = str(error)
    assert "Expected `" not in told
    assert "Object contains" not in told


@pytest.mark.parametrize(
    "spec",
    [
        {"hostName": "ip"},
        {"mode": "service", "service": {}},
        {"mode": "service", "readinessGate": False},
        {"onDuplicate": "Skip"},
        {"suspend": False},
        {"readinessGate": False},
        {"limit": None},
        {"selector": {"app": "rating", "namespace": NS}},
    ],
)
def test_a_value_that_asks_for_what_is_done_anyway_is_served(spec: dict[str, Any]) -> None:
    """A default that is written out changes nothing."""
    assert parse(syncer(**spec)).ref == REF


def test_unset_fields_are_left_to_the_service() -> None:
    """Only the mode and the two reactions have defaults here."""
    spec = parse(syncer(selector={"service": "rating"}))
    assert (spec.mode, spec.not_ready, spec.terminating) == ("pod", "Down", "Cancel")
    assert (spec.app_name, spec.vip_address, spec.secure_vip_address, spec.port) == (
        None,
        None,
        None,
        None,
    )
    assert (spec.metadata, spec.address_family) == ({}, None)


def test_each_supported_field_is_parsed() -> None:
    spec = parse(
        syncer(
            mode="service",
            appName="Rating_2",
            vipAddress="rating,rating-v2:8080",
            secureVipAddress="safe",
            port="http",
            metadata={"version": "2.1"},
            addressFamily="IPv6",
            notReady="Cancel",
            terminating="KeepWhileServing",
        )
    )
    assert (spec.mode, spec.not_ready, spec.terminating) == (
        "service",
        "Cancel",
        "KeepWhileServing",
    )
    assert (spec.app_name, spec.vip_address, spec.secure_vip_address) == (
        "Rating_2",
        "rating,rating-v2:8080",
        "safe",
    )
    assert (spec.port, spec.metadata, spec.address_family) == ("http", {"version": "2.1"}, "IPv6")


def test_the_app_is_the_selected_one_unless_it_has_a_name() -> None:
    """It is appName, otherwise selector.app."""
    assert parse(syncer()).app_name == "rating"
    assert parse(syncer(appName="other")).app_name == "other"


@pytest.mark.parametrize(
    "name", ["", "a" * 129, "-rating", "rating-", "ra ting", "ra/ting", "räting", "a\n"]
)
def test_an_app_name_that_eureka_could_not_hold_is_refused(name: str) -> None:
    """The name becomes a path segment and a part of the id."""
    with pytest.raises(InvalidSyncer, match="cannot be an app name") as caught:
        check_app_name("spec.appName", name)
    assert caught.value.reason == "InvalidName"
    assert len(str(caught.value)) < 220


@pytest.mark.parametrize("name", ["a", "Rating_2.x-y", "a" * 128])
def test_an_app_name_of_letters_digits_dots_underscores_and_hyphens_is_fine(name: str) -> None:
    """It has at most 128 characters, with a letter or digit at both ends."""
    assert check_app_name("spec.appName", name) == name


@pytest.mark.parametrize("app", ["\u00fcn\u00ef", "-a", "a" * 64, "a\n"])
def test_a_selected_app_that_no_label_can_be_is_a_fault_of_the_selector(app: str) -> None:
    """Eureka would not refuse the name, but no Service can have this label."""
    reason, message = refused(selector={"app": app})
    assert reason == "InvalidSpec"
    assert message.startswith("spec.selector.app: ")
    assert "is not a label's value" in message


@pytest.mark.parametrize("vip", ["", "a,,b", "a, b", ",a", "a:http", "a" * 513, "a\n"])
@pytest.mark.parametrize("field", ["vipAddress", "secureVipAddress"])
def test_a_vip_that_nobody_could_look_up_is_refused(field: str, vip: str) -> None:
    """A VIP consists of names with commas between, and has at most 512 characters."""
    reason, message = refused(**{field: vip})
    assert reason == "InvalidName"
    assert message.startswith(f"spec.{field} must be names of ")


@pytest.mark.parametrize("port", ["", 0, -1, 65536])
def test_a_port_that_is_none_is_refused(port: str | float) -> None:
    """A port is a name, or a number in 1..65535."""
    assert refused(port=port) == (
        "InvalidSpec",
        f"spec.port: {port!r} is neither a port's name nor a number in 1..65535",
    )


@pytest.mark.parametrize("port", ["http", 1, 65535, 8080.0])
def test_a_port_is_a_name_or_a_number(port: str | float) -> None:
    """Both ends of the range are valid."""
    assert parse(syncer(port=port)).port == port


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"": "x"}, "becomes an XML element name"),
        ({"a b": "x"}, "becomes an XML element name"),
        ({"-a": "x"}, "becomes an XML element name"),
        ({"k:v": "x"}, "becomes an XML element name"),
        ({"1a": "x"}, "becomes an XML element name"),
        ({"@class": "x"}, "becomes an XML element name"),
        ({"a" * 129: "x"}, "becomes an XML element name"),
        ({"eurekube.owner": "x"}, "eurekube-sync itself writes such keys"),
        ({"class": "x"}, "mean something else in Eureka"),
        ({"instanceId": "x"}, "mean something else in Eureka"),
        ({"a": "b\x00"}, "control character"),
        ({"a": "b\n"}, "control character"),
        ({"a": "\ud800"}, "control character"),
        ({"a": "\uffff"}, "control character"),
        ({"a": "x" * 1025}, "longer than 1024"),
    ],
)
def test_metadata_that_would_break_the_registry_for_every_reader_is_refused(
    metadata: dict[str, str], message: str
) -> None:
    """One bad key or value makes the XML of the whole registry unreadable."""
    reason, found = refused(metadata=metadata)
    assert reason == "InvalidMetadata"
    assert message in found


@pytest.mark.parametrize(
    "metadata", [{"management.port": "8081"}, {"a-b": "<&\"'>"}, {"a": "x" * 1024}, {"a": ""}]
)
def test_metadata_of_plain_text_is_fine(metadata: dict[str, str]) -> None:
    """Eureka escapes text where XML needs it."""
    assert parse(syncer(metadata=metadata)).metadata == metadata


@pytest.mark.parametrize(
    ("name", "warned"), [("rating", False), ("ra.ting-2", False), ("ra_ting", True), ("-a", True)]
)
def test_a_name_that_is_no_host_name_is_a_warning(name: str, warned: bool) -> None:
    """Feign refuses it in a URL, and Eureka does not."""
    assert (host_name_warning(name) is not None) is warned


def test_a_selector_reads_as_people_write_it() -> None:
    """Every part is named, in a stable order."""
    expression = Expression(key="tier", operator="In", values=frozenset({"web", "db"}))
    selector = Selector(service="rating", app="rating", match_expressions=(expression,))
    assert str(selector) == "app=rating, tier in (db, web), name rating"
    assert str(Selector(match_labels={"app": "rating"})) == "app=rating"


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        ({"securePort": 0}, "InvalidSpec", "spec.securePort"),
        ({"limit": None, "securePort": []}, "InvalidSpec", "spec.securePort"),
        (
            {"port": 8080, "securePort": 8080},
            "InvalidSpec",
            "spec.securePort: securePort must differ from port (both are 8080)",
        ),
        ({"service": {"address": "ClusterIP"}}, "InvalidSpec", "only for mode service"),
        ({"service": {}}, "InvalidSpec", "spec.service: service is only for mode service"),
        (
            {"mode": "service", "readinessGate": True},
            "InvalidSpec",
            "readinessGate is only for mode pod",
        ),
        (
            {"mode": "service", "service": {"address": "Nowhere"}},
            "InvalidSpec",
            "spec.service.address",
        ),
        (
            {"mode": "service", "service": {"hostname": "a.b", "address": "Auto"}},
            "InvalidSpec",
            "hostname and address exclude each other",
        ),
        (
            {"mode": "service", "service": {"hostname": "a.b", "nodeAddress": "InternalIP"}},
            "InvalidSpec",
            "only for address NodePort",
        ),
        (
            {"mode": "service", "service": {"hostname": "A.b"}},
            "InvalidName",
            "spec.service.hostname",
        ),
        (
            {"mode": "service", "service": {"hostname": "a" * 254}},
            "InvalidName",
            "spec.service.hostname",
        ),
        (
            {
                "mode": "service",
                "service": {"address": "LoadBalancer", "nodeAddress": "InternalIP"},
            },
            "InvalidSpec",
            "only for address NodePort",
        ),
    ],
)
def test_an_address_that_contradicts_itself_is_refused(
    spec: dict[str, Any], reason: str, message: str
) -> None:
    """An older CRD may have let it through."""
    found = refused(**spec)
    assert found[0] == reason
    assert message in found[1]


def test_the_address_of_a_service_is_set_or_follows_from_its_type() -> None:
    """Each part of the setting is used."""
    spec = parse(syncer(mode="service", service={"nodeAddress": "InternalIP"}, securePort="https"))
    assert (spec.service.address, spec.service.node_address) == (None, "InternalIP")
    assert (spec.secure_port, spec.service.hostname) == ("https", None)
    assert parse(syncer(mode="service", service={"hostname": "a.b"})).service.hostname == "a.b"
    assert (
        parse(syncer(mode="service", service={"address": "NodePort"})).service.address == "NodePort"
    )
