"""Writes to the Kubernetes API: each requires the version that it was made for, and is tried at
most three times."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from eurekube_sync.desired.spec import CLEANUP_FINALIZER
from eurekube_sync.embedded.http import Request, Response
from eurekube_sync.model.docs import help_on
from eurekube_sync.model.errors import (
    ClusterConflict,
    ClusterDenied,
    ClusterRejected,
    ClusterUnavailable,
)
from eurekube_sync.model.kubernetes import (
    Condition,
    ConditionStatus,
    EventRecord,
    SyncerRef,
    SyncerStatus,
)
from eurekube_sync.model.struct import replace
from tests.unit.adapters.kubernetes.world import START, SYNCERS, World, answer

STATUS = SyncerStatus(observed_generation=1, ready="1/1", desired=1, registered=1, up=1)
OBJECT = f"{SYNCERS}/rating"
EVENTS = "/api/v1/namespaces/shop/events"


@pytest.fixture
def world() -> World:
    return World()


def before_each_patch(world: World, change: Callable[[], object], times: int) -> None:
    """Let somebody else change the object just before our patch arrives, that many times."""
    left = iter(range(times))

    def interfere(request: Request, number: int) -> None:
        if request.method == "PATCH" and next(left, None) is not None:
            change()

    world.fault = interfere


def label(world: World, name: str) -> Callable[[], object]:
    counter = iter(range(100))
    return lambda: world.patch(OBJECT, {"metadata": {"labels": {name: str(next(counter))}}})


class TestFinalizer:
    def test_it_is_added_beside_others(self, world: World) -> None:
        """Other people's finalizers stay, in their order."""
        made = world.make_syncer(finalizers=["x.io/a"])
        assert world.cluster.add_finalizer(made).finalizers == ("x.io/a", CLEANUP_FINALIZER)
        assert world.read().finalizers == ("x.io/a", CLEANUP_FINALIZER)

    def test_it_is_added_once(self, world: World) -> None:
        """An object that has the finalizer costs no call."""
        made = world.cluster.add_finalizer(world.make_syncer())
        before = len(world.requests)
        assert world.cluster.add_finalizer(made) == made
        assert len(world.requests) == before

    def test_a_status_after_it_meets_no_conflict(self, world: World) -> None:
        """The finalizer gave the listed object a new version, which is no conflict. Another change
        after it is a conflict."""
        made = world.make_syncer()
        world.cluster.add_finalizer(made)
        before = len(world.requests)
        world.cluster.write_status(made, STATUS)
        world.cluster.write_status(made, replace(STATUS, up=0))
        assert world.methods(before) == ["PATCH", "PATCH", "GET", "PATCH"]
        assert world.read().status == replace(STATUS, up=0)

    def test_a_change_in_between_is_read_and_kept(self, world: World) -> None:
        """After a 422 of the `test` operation, the object is read and the finalizer is added again.
        The other finalizer stays."""
        made = world.make_syncer()
        before_each_patch(
            world, lambda: world.patch(OBJECT, {"metadata": {"finalizers": ["x.io/late"]}}), 1
        )
        assert world.cluster.add_finalizer(made).finalizers == ("x.io/late", CLEANUP_FINALIZER)

    def test_the_fourth_change_gives_up(self, world: World) -> None:
        """There are at most three tries. The next pass reads the object again."""
        made = world.make_syncer()
        before_each_patch(world, label(world, "a"), 3)
        with pytest.raises(ClusterConflict, match="3 times"):
            world.cluster.add_finalizer(made)

    def test_it_is_never_added_to_a_deleting_object(self, world: World) -> None:
        """If the deletion is known, no call is made. If it happens meanwhile, no finalizer is
        added."""
        made = world.make_syncer(finalizers=["x.io/a"])
        before_each_patch(world, lambda: world.server.call("DELETE", OBJECT), 1)
        with pytest.raises(ClusterConflict):
            world.cluster.add_finalizer(made)
        assert world.read().finalizers == ("x.io/a",)
        before = len(world.requests)
        with pytest.raises(ClusterConflict):
            world.cluster.add_finalizer(world.read())
        assert world.methods(before) == ["GET"]

    def test_a_syncer_of_another_cluster_is_not_touched_despite_the_same_version(
        self, world: World
    ) -> None:
        """Each cluster counts its versions separately. Only the UID identifies the object."""
        bare = world.make_syncer()
        with pytest.raises(ClusterConflict):
            world.cluster.add_finalizer(replace(bare, uid="another"))
        assert world.read() == bare
        world.patch(OBJECT, {"metadata": {"finalizers": [CLEANUP_FINALIZER]}})
        theirs = world.read()
        world.cluster.remove_finalizer(replace(theirs, uid="another"))
        assert world.read() == theirs

    def test_a_changed_spec_or_a_successor_is_a_conflict(self, world: World) -> None:
        """A plan for the old spec must not be applied."""
        made = world.make_syncer()
        before_each_patch(
            world, lambda: world.patch(OBJECT, {"spec": {"selector": {"app": "other"}}}), 1
        )
        with pytest.raises(ClusterConflict):
            world.cluster.add_finalizer(made)
        world.fault = lambda request, number: None
        world.server.call("DELETE", OBJECT)
        with pytest.raises(ClusterConflict):
            world.cluster.add_finalizer(made)
        world.make_syncer()
        with pytest.raises(ClusterConflict):
            world.cluster.add_finalizer(made)
        assert world.read().finalizers == ()

    def test_our_finalizer_is_removed_and_others_stay(self, world: World) -> None:
        """Somebody else may change the object meanwhile."""
        made = world.make_syncer(finalizers=["x.io/a", CLEANUP_FINALIZER, "x.io/b"])
        before_each_patch(world, label(world, "a"), 2)
        world.cluster.remove_finalizer(made)
        assert world.read().finalizers == ("x.io/a", "x.io/b")

    def test_removing_it_lets_a_deleted_object_go(self, world: World) -> None:
        """A second removal, or one on a successor, changes nothing."""
        made = world.make_syncer(finalizers=[CLEANUP_FINALIZER])
        world.server.call("DELETE", OBJECT)
        world.cluster.remove_finalizer(made)
        assert world.server.call("GET", OBJECT)[0] == 404
        world.cluster.remove_finalizer(made)
        world.make_syncer(finalizers=[CLEANUP_FINALIZER])
        world.cluster.remove_finalizer(made)
        assert world.read().finalizers == (CLEANUP_FINALIZER,)

    def test_an_answer_that_was_lost_is_no_harm(self, world: World) -> None:
        """The write is committed, but the connection breaks. The second try finds the finalizer."""
        made = world.make_syncer()
        lost = iter([True])

        def commit_then_drop(request: Request, number: int) -> Response | None:
            if request.method == "PATCH" and next(lost, False):
                world.server.handle(request)
                raise ConnectionResetError("reset")
            return None

        world.fault = commit_then_drop
        assert world.cluster.add_finalizer(made).finalizers == (CLEANUP_FINALIZER,)

    def test_a_denied_patch_is_said(self, world: World) -> None:
        """A 403 is ClusterDenied with the server's sentence."""
        made = world.make_syncer()
        world.server.deny("eurekasyncers", "patch")
        with pytest.raises(ClusterDenied, match='cannot patch resource "eurekasyncers"'):
            world.cluster.add_finalizer(made)


class TestStatus:
    def test_a_label_in_between_is_no_obstacle(self, world: World) -> None:
        """After a 409 the object is read again. If its spec is the same, the status is written
        again."""
        made = world.make_syncer()
        before_each_patch(world, label(world, "a"), 2)
        world.cluster.write_status(made, STATUS)
        assert world.read().status == STATUS

    def test_the_fourth_conflict_gives_up(self, world: World) -> None:
        """There are at most three tries."""
        made = world.make_syncer()
        before_each_patch(world, label(world, "a"), 3)
        with pytest.raises(ClusterConflict, match="3 times"):
            world.cluster.write_status(made, STATUS)

    def test_a_status_of_an_old_spec_is_not_written(self, world: World) -> None:
        """The generation has changed. The next pass reports on the new spec."""
        made = world.make_syncer()
        before_each_patch(
            world, lambda: world.patch(OBJECT, {"spec": {"selector": {"app": "other"}}}), 1
        )
        with pytest.raises(ClusterConflict):
            world.cluster.write_status(made, STATUS)
        assert world.read().status is None

    def test_an_object_that_is_gone_is_fine(self, world: World) -> None:
        """A deleted object needs no status."""
        made = world.make_syncer()
        world.server.call("DELETE", OBJECT)
        world.cluster.write_status(made, STATUS)

    def test_a_lost_answer_is_not_written_twice(self, world: World) -> None:
        """The second try is a 409. The object that is read then has our status."""
        made = world.make_syncer()
        lost = iter([True])

        def commit_then_drop(request: Request, number: int) -> Response | None:
            if request.method == "PATCH" and next(lost, False):
                world.server.handle(request)
                raise TimeoutError("timed out")
            return None

        world.fault = commit_then_drop
        world.cluster.write_status(made, STATUS)
        assert world.methods()[-3:] == ["PATCH", "PATCH", "GET"]

    def test_a_server_that_stays_away_is_unavailable(self, world: World) -> None:
        """The write raises after a limited time."""
        made = world.make_syncer()
        world.fault = lambda request, number: answer(503, "")
        with pytest.raises(ClusterUnavailable, match="503"):
            world.cluster.write_status(made, STATUS)

    def test_what_an_older_crd_drops_is_written_of_one_syncer_a_pass(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """It shows whether the CRD has the field by now. The real servers are asked the same in
        tests/contract."""
        world = World(without=("vipAddress",))
        made = [world.make_syncer(name) for name in ("a", "b", "c")]
        status = replace(STATUS, vip_address="pay")
        for _ in range(2):
            before = len(world.requests)
            for syncer in made:
                world.cluster.write_status(syncer, status)
            made = [world.read(name) for name in ("a", "b", "c")]
            assert [syncer.status for syncer in made] == [STATUS] * 3
        writes = [one.method for one in world.requests[before:]].count("PATCH")
        assert writes == 1
        world.cluster.write_status(made[0], status)
        world.cluster.write_status(made[1], replace(status, ready="0/1"))
        assert world.read("b").status == replace(STATUS, ready="0/1")
        assert len(caplog.records) == 1
        assert "drops what it does not know of a status: vipAddress. " in caplog.text

    def test_a_field_that_is_stored_in_another_way_is_not_dropped(self) -> None:
        """If a CRD lacks a part of a condition, its status and message are still written."""
        world = World(without=("conditions", "items", "properties", "observedGeneration"))
        made = [world.make_syncer(name) for name in ("a", "b")]
        ready = Condition(
            type="Ready",
            status=ConditionStatus.TRUE,
            reason="InSync",
            message="1 of 1 UP",
            observed_generation=1,
            last_transition=int(START),
        )
        for message in ("1 of 1 UP", "another message"):
            said = replace(ready, message=message)
            for syncer in made:
                world.cluster.write_status(syncer, replace(STATUS, conditions=(said,)))
            made = [world.read(name) for name in ("a", "b")]
            for syncer in made:
                assert syncer.status is not None
                assert [condition.message for condition in syncer.status.conditions] == [message]

    def test_a_status_that_the_schema_refuses_is_rejected(self, world: World) -> None:
        """A 422 is reported and not tried again."""
        made = world.make_syncer()
        world.fault = lambda request, number: answer(
            422, {"kind": "Status", "message": "status.up: Invalid value"}
        )
        with pytest.raises(ClusterRejected, match=r"status\.up: Invalid value"):
            world.cluster.write_status(made, STATUS)


def refuses(world: World, *causes: tuple[str, str]) -> None:
    """Answer each patch as Kubernetes 1.28 does for a stored syncer that the CRD refuses."""
    message = 'EurekaSyncer.eurekube.io "rating" is invalid'
    listed = [
        {"reason": "FieldValueInvalid", "message": why, "field": field} for field, why in causes
    ]
    details = {"name": "rating", "group": "eurekube.io", "kind": "EurekaSyncer", "causes": listed}
    status = {
        "kind": "Status",
        "message": message,
        "reason": "Invalid",
        "details": details,
        "code": 422,
    }
    world.fault = lambda request, number: answer(422, status) if request.method == "PATCH" else None


class TestStoredSpecThatTheDefinitionRefuses:
    PATTERN = ("spec.selector.app", "Invalid value: \"rating\": should match '^pay'")
    RULE = ("spec", 'Invalid value: "object": hostName is not allowed any more')
    UNCHECKED = ("<nil>", 'Invalid value: "null": some validation rules were not checked')

    @pytest.mark.parametrize("cause", [PATTERN, RULE, ("spec.ports[0]", "Required value")], ids=str)
    def test_no_write_is_tried_again_and_the_field_is_named(
        self, world: World, cause: tuple[str, str]
    ) -> None:
        """Another try would meet the same refusal. Only a person can mend the spec."""
        bare = world.make_syncer()
        ours = world.cluster.add_finalizer(world.make_syncer("other"))
        refuses(world, cause, self.UNCHECKED)
        before = len(world.requests)
        named = (
            "of syncer shop/[a-z]+ cannot be written until somebody mends its spec, .*: "
            f"{re.escape(': '.join(cause))}$"
        )
        with pytest.raises(ClusterRejected, match=f"the finalizer {named}"):
            world.cluster.add_finalizer(bare)
        with pytest.raises(ClusterRejected, match=f"the finalizer {named}"):
            world.cluster.remove_finalizer(ours)
        with pytest.raises(ClusterRejected, match=f"the status {named}"):
            world.cluster.write_status(bare, STATUS)
        assert world.methods(before) == ["PATCH"] * 3

    @pytest.mark.parametrize("field", ["metadata.finalizers", "specification", "status.spec"])
    def test_a_refused_field_elsewhere_is_not_taken_for_it(self, world: World, field: str) -> None:
        """Such as a finalizer of a syncer that is being deleted since: a new read tells that."""
        made = world.make_syncer()
        refuses(world, (field, "Forbidden"))
        with pytest.raises(ClusterConflict, match="3 times"):
            world.cluster.add_finalizer(made)


MESSAGE = f"12 removals held. See {help_on('Held')}"


class TestEvents:
    def event(self, **changes: str) -> EventRecord:
        fields = {
            "reason": "Held",
            "message": "12 removals held",
            "key": "held",
            "uid": "u",
            **changes,
        }
        return EventRecord(syncer=SyncerRef("shop", "rating"), warning=True, **fields)

    def events(self, world: World) -> list[tuple[str, int, str]]:
        items = world.server.call("GET", EVENTS)[1]["items"]
        return [(item["message"], item["count"], item["lastTimestamp"]) for item in items]

    def test_the_same_event_is_one_object(self, world: World) -> None:
        """Within five minutes it is not sent again. Later its count rises, even from another
        process."""
        world.cluster.record_event(self.event(), at=START)
        before = len(world.requests)
        world.cluster.record_event(self.event(message="13 removals held"), at=START + 299)
        assert len(world.requests) == before
        world.cluster.record_event(self.event(message="14 removals held"), at=START + 301)
        assert self.events(world) == [(MESSAGE.replace("12", "14"), 2, "2026-01-02T03:09:06Z")]

    def test_another_process_does_not_count_within_five_minutes(self) -> None:
        """A process with no memory of it reads the time in the event."""
        world = World()
        world.cluster.record_event(self.event(), at=START)
        world.cluster._events._counted.clear()
        world.cluster.record_event(self.event(message="other"), at=START + 200)
        assert self.events(world) == [(MESSAGE, 1, "2026-01-02T03:04:05Z")]

    def test_another_reason_or_class_or_object_is_another_event(self, world: World) -> None:
        """The event's name comes from uid, reason and key."""
        for changes in ({}, {"reason": "Released"}, {"key": "other"}, {"uid": "v"}):
            world.cluster.record_event(self.event(**changes), at=START)
        assert len(self.events(world)) == 4

    def test_it_needs_no_get(self, world: World) -> None:
        """The role holds only create and patch."""
        world.server.deny("events", "get")
        world.cluster.record_event(self.event(), at=START)
        world.cluster.record_event(self.event(), at=START + 400)
        assert self.events(world)[0][1] == 2

    def test_a_terminating_namespace_is_no_error(self, world: World) -> None:
        """The API answers 403 with the cause NamespaceTerminating, or 404 if the namespace is
        gone."""
        world.make_syncer(finalizers=["x.io/a"])
        world.server.call("DELETE", "/api/v1/namespaces/shop")
        world.cluster.record_event(self.event(), at=START)
        world.server.call("PATCH", OBJECT, {"metadata": {"finalizers": None}})
        world.cluster.record_event(self.event(key="later"), at=START)

    def test_a_missing_permission_is_one(self, world: World) -> None:
        """A 403 of RBAC is ClusterDenied."""
        world.server.deny("events", "create")
        with pytest.raises(ClusterDenied):
            world.cluster.record_event(self.event(), at=START)

    def test_a_long_message_is_cut(self, world: World) -> None:
        """The API accepts 1,024 characters."""
        world.cluster.record_event(self.event(message="x" * 5000), at=START)
        assert len(self.events(world)[0][0]) == 1024
