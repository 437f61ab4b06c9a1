"""The schema in docs/: it describes the report as the program writes it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eurekube_sync import __version__
from eurekube_sync.brake.holds import HOLD_REASONS, BrakeLimits
from eurekube_sync.cli.output.passes import as_data
from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.model.actions import Grounds, Result
from eurekube_sync.model.eureka import InstanceStatus
from eurekube_sync.model.sources import Cause, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Headroom
from tests.report_schema import SCHEMA, faults
from tests.unit.controller.test_keepalive import run as kept
from tests.unit.controller.test_reconcile import add_app
from tests.unit.worlds.build import endpoint, piece, syncer
from tests.unit.worlds.fakes import FakeWorld


@pytest.fixture
def world() -> FakeWorld:
    """Three apps with three registered pods each."""
    world = FakeWorld()
    for number in range(3):
        add_app(world, f"app{number}", 0)
        world.cluster.apply(
            piece(*(endpoint(10 * number + pod) for pod in range(1, 4)), service=f"app{number}")
        )
    world.run()
    world.later(60)
    return world


def trouble(world: FakeWorld) -> None:
    """Cause a removal, an update, a conflict and new pods, and add a broken syncer."""
    world.cluster.apply(
        syncer("broken", selector={"app": "none"}),
        syncer("elsewhere", selector={"app": "none"}, syncerClass="other"),
        piece(endpoint(1), endpoint(2, ready=False), service="app0"),
        piece(endpoint(11), endpoint(12), endpoint(13), endpoint(14), service="app1"),
        piece(service="app2"),
    )


def data_of(report: PassReport, *, with_renewals: bool = False) -> dict[str, Any]:
    """Return the report as a file has it."""
    room = Headroom(ours=9, others=1, interval=30)
    found = as_data(report, ExitCode.OK, room, with_renewals=with_renewals)
    return dict(json.loads(json.dumps(found)))


@pytest.mark.parametrize("dry_run", [True, False])
def test_reports_of_all_kinds_are_as_the_schema_says(world: FakeWorld, dry_run: bool) -> None:
    """The reports have every kind of action, held removals, and a Eureka that cannot be read."""
    trouble(world)
    world.brake = BrakeLimits(loss_floor=0, loss_percent=1)
    held = world.run(dry_run=dry_run)
    world.brake = BrakeLimits(loss_percent=100, apps_percent=100, confirm_after=0)
    assert held.held is not None
    assert faults(data_of(held, with_renewals=True)) == []
    whole = world.run(dry_run=dry_run)
    kinds = {
        action["action"] for data in (data_of(held), data_of(whole)) for action in data["actions"]
    }
    assert kinds == {"register", "update", "cancel"}
    assert faults(data_of(whole)) == []
    away = replace(whole, registry=Unknown(cause=Cause.UNAVAILABLE, message="away"), cluster=None)
    assert faults(data_of(away)) == []


def test_the_schema_refuses_what_is_not_in_it(world: FakeWorld) -> None:
    """A schema that accepts everything would prove nothing."""
    data = data_of(world.run(dry_run=True))
    assert faults({**data, "more": 1})
    assert faults({key: value for key, value in data.items() if key != "syncers"})
    assert faults({**data, "renewals": 3})


def test_its_words_are_the_programs() -> None:
    """The schema lists every word of the program."""
    action, top = SCHEMA["$defs"]["action"]["properties"], SCHEMA["properties"]
    assert action["grounds"]["enum"] == [one.value for one in Grounds]
    assert action["result"]["enum"] == [one.value for one in Result]
    assert action["status"]["enum"] == [*(one.value for one in InstanceStatus), None]
    assert top["exitCode"]["enum"] == [int(code) for code in ExitCode]
    assert top["holds"]["items"]["properties"]["reason"]["enum"] == [
        one.value for one in HOLD_REASONS
    ]
    assert top["unknown"]["items"]["properties"]["cause"]["enum"] == [one.value for one in Cause]


def test_renewals_are_a_number_unless_they_are_asked_for(world: FakeWorld) -> None:
    """They would fill a daemon's log. A failed renewal is always listed."""
    report = world.run()
    data = data_of(report)
    assert (data["apiVersion"], data["version"]) == ("eurekube.io/report/v1", __version__)
    assert (data["actions"], data["renewals"]) == ([], {"planned": 9, "done": 9})
    assert len(data_of(report, with_renewals=True)["actions"]) == 9
    world.later(60)
    assert data_of(world.run(dry_run=True))["renewals"] == {"planned": 9, "done": 0}


def test_a_pass_of_keepalive_is_as_the_schema_says(world: FakeWorld) -> None:
    """It knows neither a cluster nor a syncer."""
    assert faults(data_of(kept(world), with_renewals=True)) == []
