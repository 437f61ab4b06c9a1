"""Blue-green and canary releases through whole passes: docs/rollout.md has the syncers."""

from __future__ import annotations

from eurekube_sync.model.eureka import InstanceStatus
from eurekube_sync.model.kubernetes import SyncerRef
from tests.unit.worlds.build import NS, REF, endpoint, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld

ACTIVE, PREVIEW = "rating-active", "rating-preview"


def up(world: FakeWorld) -> list[str]:
    """The addresses that are UP in Eureka."""
    found = []
    for stored in world.registry.held.values():
        if stored.status is InstanceStatus.UP:
            found.append(stored.instance.ip_addr)
    return sorted(found)


def of(name: str, *numbers: int, ready: bool = True) -> tuple[object, ...]:
    """A Service labelled `app: rating`, and its slice."""
    pods = [endpoint(number, ready=ready) for number in numbers]
    return service(name), piece(*pods, service=name)


def ready(world: FakeWorld, ref: SyncerRef = REF) -> str:
    """The message of the syncer's condition Ready."""
    status = world.cluster.syncers[ref].status
    condition = status.condition("Ready") if status else None
    return condition.message if condition else ""


def test_a_promotion_moves_callers_in_one_pass() -> None:
    """The active Service has the new pods at once. The app loses nothing, so no removal waits."""
    world = FakeWorld()
    active = syncer(selector={"service": ACTIVE}, appName="rating")
    world.cluster.apply(*of(ACTIVE, 1, 2), *of(PREVIEW, 3, 4), active)  # type: ignore[arg-type]
    world.run()
    assert up(world) == ["10.0.0.1", "10.0.0.2"]
    assert "in common" not in ready(world)
    world.cluster.apply(*of(ACTIVE, 3, 4))  # type: ignore[arg-type]
    report = world.run()
    assert up(world) == ["10.0.0.3", "10.0.0.4"]
    assert not report.held


def test_preview_pods_behind_the_same_label_are_told() -> None:
    """The condition names both Services while their pods differ, and no longer."""
    world = FakeWorld()
    world.cluster.apply(*of(ACTIVE, 1), *of(PREVIEW, 2), syncer())  # type: ignore[arg-type]
    world.run()
    assert up(world) == ["10.0.0.1", "10.0.0.2"]
    assert f"Services {ACTIVE} and {PREVIEW} have no pod in common" in ready(world)
    world.cluster.apply(*of(PREVIEW, 1))  # type: ignore[arg-type]
    world.run()
    assert "in common" not in ready(world)


def test_a_service_that_shares_a_pod_or_has_none_is_not_told() -> None:
    """As a headless Service beside the app's, or one whose pods are all gone."""
    for others in ((1, 2), ()):
        world = FakeWorld()
        world.cluster.apply(*of(ACTIVE, 1), *of(PREVIEW, *others), syncer())  # type: ignore[arg-type]
        world.run()
        assert "in common" not in ready(world)


def test_a_canary_has_its_share_beside_the_stable_pods() -> None:
    """While both Services select the same pods, each is registered once, by the older syncer."""
    canary = SyncerRef(NS, "canary")
    world = FakeWorld()
    world.cluster.apply(
        *of("stable", 1, 2, 3),  # type: ignore[arg-type]
        *of("canary", 4, 5, 6),  # type: ignore[arg-type]
        syncer(selector={"service": "stable"}, appName="rating"),
        syncer(
            "canary",
            created=2000,
            selector={"service": "canary"},
            appName="rating",
            limit={"share": "10%"},
        ),
    )
    world.run()
    world.run()
    assert {"10.0.0.1", "10.0.0.2", "10.0.0.3"} < set(up(world))
    assert len(up(world)) == 4
    world.cluster.apply(*of("canary", 1, 2, 3))  # type: ignore[arg-type]
    world.run()
    world.run()
    assert up(world) == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    owners = {stored.metadata["eurekube.syncer"] for stored in world.registry.held.values()}
    assert owners == {str(REF)}
    assert canary in world.cluster.syncers
