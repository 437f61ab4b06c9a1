"""The record of a pass: it is read back unchanged, gives the same plan, and holds no secret."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eurekube_sync import __version__
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.cli.output.passes import as_data
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.controller.record import Record, decisions, from_data, replayed, to_data
from eurekube_sync.desired.selector import Expression
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.sources import Complete
from tests.unit.controller.test_properties import world_of
from tests.unit.controller.test_reconcile import add_app
from tests.unit.controller.test_report import eureka
from tests.unit.worlds.build import changed, endpoint, foreign, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld
from tests.unit.worlds.strategies import REGISTRIES, Scenery, sceneries

pytestmark = pytest.mark.usefixtures("both_ways")

PLANTED = "hunter2-s3cr3t"


def recorded(report: PassReport) -> Any:
    """The record as a file holds it."""
    assert report.basis is not None
    record = Record(
        version=__version__,
        at=report.at,
        report=as_data(report, ExitCode.OK),
        decided=decisions(report.basis.braked),
        basis=report.basis,
    )
    return json.loads(json.dumps(to_data(record), allow_nan=False))


def planned_again(data: Any) -> list[tuple[str, str, str, str]]:
    """The plan of a replay."""
    record = from_data(data)
    assert record.basis is not None
    found = replayed(record.basis, record.at).basis
    assert found is not None
    return decisions(found.braked)


@given(
    sceneries(),
    REGISTRIES,
    st.sampled_from([BrakeLimits(), BrakeLimits(loss_floor=0, loss_percent=5)]),
)
def test_every_pass_plans_the_same_from_its_record(
    scenery: Scenery, registry: list[ObservedInstance], brake: BrakeLimits
) -> None:
    """It does so after any failure, and for a second pass, which remembers the first one."""
    world = world_of(scenery, registry, cache=0)
    world.brake = brake
    for _ in range(2):
        report = world.run()
        if report.basis is None:
            continue
        data = recorded(report)
        assert planned_again(data) == [tuple(one) for one in data["decided"]]
        world.later(46)


def test_the_record_of_a_pass_over_some_labels_keeps_which() -> None:
    """The form is that of earlier versions, so their records can be read as well."""
    world = FakeWorld()
    add_app(world, "app", 1)
    some = Expression(key="team", operator="NotIn", values=frozenset({"red", "blue"}))
    any_ = Expression(key="team", operator="DoesNotExist")
    world.scope = replace(world.scope, selector=(some, any_))
    data = recorded(world.run())
    assert [kind for kind, *_ in data["decided"]] == ["register"]
    assert planned_again(data) == [tuple(one) for one in data["decided"]]
    assert data["basis"]["scope"][""]["selector"] == [
        {
            "@": "Expression",
            "": {"key": "team", "operator": "NotIn", "values": {"{": ["blue", "red"]}},
        },
        {"@": "Expression", "": {"key": "team", "operator": "DoesNotExist"}},
    ]


def test_a_pass_that_cannot_read_eureka_has_a_record_too() -> None:
    """The pass renews what it may, and plans nothing else."""
    world = FakeWorld()
    add_app(world, "app", 1)
    world.run()
    world.later(60)
    eureka(world)
    assert planned_again(recorded(world.run())) == []


@pytest.fixture
def world() -> FakeWorld:
    """A world with secrets in every place where somebody could have put one."""
    world = FakeWorld()
    add_app(world, "app", 0)
    world.cluster.apply(
        syncer(
            "app",
            selector={"app": "app"},
            metadata={"user.password": PLANTED, "page": f"http://joe:@{PLANTED}-too@intern/"},
        ),
        piece(endpoint(1), endpoint(2), service="app"),
    )
    world.run()
    admin = foreign()
    world.registry.put(
        changed(admin, metadata={"management.user": "x", "anything": f"{PLANTED}-of-others"})
    )
    world.later(60)
    world.cluster.apply(piece(endpoint(1), endpoint(3), service="app"))
    return world


def test_no_secret_is_in_a_record(world: FakeWorld) -> None:
    """None is under a secret-sounding key, in a URL, or in metadata of others. Equal values stay
    equal, so the plan is the same."""
    report = world.run()
    assert report.basis is not None
    view = report.basis.view
    noisy = replace(
        view,
        syncers=replace(
            view.syncers,
            by_namespace={
                name: Complete(data=tuple(_annotated(one) for one in source.data))
                for name, source in view.syncers.by_namespace.items()
                if isinstance(source, Complete)
            },
        ),
    )
    report = replace(report, basis=replace(report.basis, view=noisy))
    data = recorded(report)
    assert PLANTED in repr(report.basis)
    text = json.dumps(data)
    assert PLANTED not in text
    assert "hidden-" in text
    assert [kind for kind, *_ in data["decided"]] == ["register", "cancel"]
    assert planned_again(data) == [tuple(one) for one in data["decided"]]


def _annotated(one: Any) -> Any:
    return replace(
        one,
        annotations={
            "kubectl.kubernetes.io/last-applied-configuration": f'{{"password": "{PLANTED}"}}',
            "note": f"the login is {PLANTED}",
        },
    )


def test_a_short_secret_hides_only_itself(world: FakeWorld) -> None:
    """Otherwise each `a` of the record would be hidden."""
    world.cluster.apply(
        syncer("app", selector={"app": "app"}, metadata={"token": "UP", "other.token": "a"})
    )
    data = recorded(world.run())
    assert planned_again(data) == [tuple(one) for one in data["decided"]]
    assert data["report"]["apiVersion"] == "eurekube.io/report/v1"


@pytest.mark.parametrize(
    "value", ["record", "rating", "register", "eurekube.io/report/v1", "endpoint"]
)
@pytest.mark.parametrize("key", ["author", "auth", "user.password"])
def test_text_that_others_write_does_not_falsify_a_record(key: str, value: str) -> None:
    """It is hidden under its own key and nowhere else. The name `author` is no secret key."""
    world = FakeWorld()
    add_app(world, "app", 0)
    for number in range(2):
        metadata = {key: value if number else "another"}
        world.cluster.apply(
            syncer("app", selector={"app": "app"}, metadata=metadata),
            piece(endpoint(1), service="app"),
        )
        report = world.run()
        assert report.basis is not None
        data = recorded(report)
        assert data["decided"] == [list(one) for one in decisions(report.basis.braked)]
        assert planned_again(data) == [tuple(one) for one in data["decided"]]
        (change,) = data["report"]["actions"]
        assert {**change, "changes": 0} == {
            **as_data(report, ExitCode.OK)["actions"][0],
            "changes": 0,
        }
        assert (f'"{key}", "{value}"' in json.dumps(data)) == (number == 1 and key == "author")
        world.later(60)


def test_a_label_or_a_field_is_not_hidden_because_a_secret_key_has_its_name() -> None:
    """A plan compares labels with selectors, so they stay. An annotation that two keys refer to is
    hidden under both."""
    world = FakeWorld()
    entries = [
        {"key": "api-token", "serviceLabel": "app"},
        {"key": "other-token", "serviceAnnotation": "namespace"},
        {"key": "team", "serviceAnnotation": "namespace"},
        {"key": "zone.of", "serviceAnnotation": "example.com/auth"},
        {"key": "a-token", "serviceAnnotation": "status"},
    ]
    annotations = {"namespace": "n-value", "example.com/auth": "a-value", "status": "UP"}
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["rating-app"]}]}
    world.cluster.apply(
        replace(service("app", labels={"app": "rating-app"}), annotations=annotations),
        syncer("app", selector=selector, metadataFrom=entries),
        piece(endpoint(1), service="app"),
    )
    for expected in (["register"], [], ["update"]):
        if expected == ["update"]:
            world.cluster.apply(piece(endpoint(1, ready=False), service="app"))
        data = recorded(world.run())
        assert [kind for kind, *_ in data["decided"]] == expected
        assert planned_again(data) == [tuple(one) for one in data["decided"]]
        text = json.dumps(data)
        assert ('"field": "status", "was": "UP"' in text) == (expected == ["update"])
        assert ("n-value" in text, "a-value" in text, '"rating-app"' in text) == (
            False,
            False,
            True,
        )
        world.later(60)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: [],
        lambda data: {**data, "format": "other/v1"},
        lambda data: {key: value for key, value in data.items() if key != "decided"},
        lambda data: {**data, "basis": {"view": 1}},
        lambda data: {
            **data,
            "basis": {**data["basis"], "brake": {"@": "Popen", "": {"args": "ls"}}},
        },
        lambda data: {**data, "basis": {**data["basis"], "lease": {"#": ["LeaseTimes"]}}},
        lambda data: {**data, "basis": {**data["basis"], "lease": {"?": 1}}},
        *(lambda data, at=at: {**data, "at": at} for at in ("noon", 1e300, -1e11, "nan", "inf")),
    ],
)
def test_data_that_is_no_record_is_refused(world: FakeWorld, damage: Any) -> None:
    """One sentence says why. Only the classes of a record are read back."""
    with pytest.raises(
        ConfigurationError, match=r"is not a record of a pass|is damaged, or of another version"
    ):
        from_data(damage(recorded(world.run())))


@pytest.mark.parametrize("value", ["tiny", "a-value-that-is-long"])
def test_a_record_keeps_annotation_values_and_hides_those_of_secret_keys(value: str) -> None:
    """The plan stays the same before and after such a value changes. Other annotations are not in
    the record."""
    world = FakeWorld()
    add_app(world, "app", 0)
    entries = [
        {"key": "team", "serviceAnnotation": "example.com/team"},
        {"key": "api-key", "serviceAnnotation": "example.com/plain"},
    ]
    world.cluster.apply(
        syncer("app", selector={"app": "app"}, metadataFrom=entries),
        piece(endpoint(1), service="app"),
    )
    annotations = {
        "example.com/team": "blue",
        "example.com/plain": value,
        "example.com/other": "not-for-a-record",
    }
    for number in range(3):
        if number == 2:
            annotations = {
                **annotations,
                "example.com/team": "red",
                "example.com/plain": f"{value}2",
            }
        world.cluster.apply(replace(service("app", labels={"app": "app"}), annotations=annotations))
        data = recorded(world.run())
        world.later(60)
        assert planned_again(data) == [tuple(one) for one in data["decided"]]
        assert [kind for kind, *_ in data["decided"]] == [["register"], [], ["update"]][number]
        text = json.dumps(data)
        assert "not-for-a-record" not in text
        assert value not in text
        assert ('"blue"' in text, '"red"' in text) == (True, number == 2)
