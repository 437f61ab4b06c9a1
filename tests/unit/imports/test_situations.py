"""Each situation of an import, in whole passes: what is written, and what stays."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.controller.diagnosis import problems_of
from eurekube_sync.desired.scope import Policy
from eurekube_sync.desired.spec import ABANDON_ANNOTATION, CLEANUP_FINALIZER
from eurekube_sync.model.errors import (
    ClusterConflict,
    ClusterDenied,
    ClusterExists,
    ClusterUnavailable,
)
from eurekube_sync.model.eureka import InstanceStatus
from eurekube_sync.model.imports import ImportRef
from eurekube_sync.model.kubernetes import (
    CrdAge,
    Endpoint,
    EndpointPort,
    EndpointSlice,
    ServicePort,
)
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.imports.test_when_nothing_is_removed import Server
from tests.unit.worlds.build import CLUSTER, DENIED, DOWN, OUT, service
from tests.unit.worlds.imports import REVIEW, SHOP, ImportWorld, dc, import_object

OTHERS = [dc(number, app="other") for number in range(100, 103)]
"""A registry that is not young or empty, whatever becomes of the app."""


def world(*instances: int, **spec: Any) -> ImportWorld:
    """An import whose endpoints are written, after a pass."""
    there = ImportWorld(import_object(**spec))
    there.lists(*OTHERS, *(dc(number) for number in instances))
    there.passes()
    return there


def hand_made(**fields: object) -> EndpointSlice:
    """A slice that no import wrote."""
    piece = EndpointSlice(
        namespace=SHOP,
        name="by-hand",
        service="other",
        address_type="IPv4",
        ports=(EndpointPort(name="http", port=8080),),
        endpoints=(Endpoint(address="10.20.0.1"),),
    )
    return replace(piece, **fields)  # type: ignore[arg-type]


def test_the_smallest_import_gets_a_service_and_its_slices() -> None:
    """In one pass: finalizer, Service, slice, status. The next one writes nothing."""
    there = world(1, 2)
    assert there.wire.writes() == [
        f"add_import_finalizer {REVIEW}",
        "create_service review",
        f"create_slice {there.cluster.slices[0].name}",
        f"record_event {REVIEW}",
        f"write_import_status {REVIEW}",
    ]
    assert there.endpoints() == ["10.20.0.1:8080", "10.20.0.2:8080"]
    assert there.condition() == "True InSync"
    made = there.imports.service()
    assert made is not None
    assert made.ports == (ServicePort(name="http", port=80),)
    there.passes()
    assert there.wire.writes() == []


def test_without_networks_imports_are_off() -> None:
    """No list of them is made, and no right is needed."""
    there = ImportWorld(import_object(), networks=())
    there.lists(dc(1))
    assert there.run().imports is None
    assert "list_imports" not in there.wire.calls


def test_a_dry_run_tells_what_it_would_write_and_writes_nothing() -> None:
    there = ImportWorld(import_object())
    there.lists(dc(1))
    report = there.passes(dry_run=True)
    assert there.wire.writes() == []
    assert [str(add.wanted.socket) for add in report.plan.adds] == ["10.20.0.1:8080"]
    assert report.all_statuses[REVIEW].ready == "0/1"


@pytest.mark.parametrize("gone", [[], [dc(2, status=DOWN)], [dc(2, status=OUT)]])
def test_an_instance_that_is_gone_or_not_up_leaves_in_this_pass(gone: list[object]) -> None:
    """Others are left. It is one write of one slice."""
    there = world(1, 2)
    there.lists(*OTHERS, dc(1), *gone)  # type: ignore[arg-type]
    there.passes()
    assert there.endpoints() == ["10.20.0.1:8080"]
    (slice_write, *_) = there.wire.writes()
    assert slice_write == f"write_slice {there.cluster.slices[0].name}"


def test_an_instance_that_changes_its_port_is_replaced_in_one_pass() -> None:
    """No loss is counted, even of the only one."""
    there = world(1)
    there.lists(*OTHERS, dc(1, port=9090))
    report = there.passes()
    assert there.endpoints() == ["10.20.0.1:9090"]
    assert report.held is None


def test_an_app_that_nobody_has_seen_gets_a_service_without_endpoints() -> None:
    """Its ClusterIP is stable then, and callers are refused at once."""
    there = world()
    assert there.imports.service() is not None
    assert there.cluster.slices == []
    assert there.condition() == "False NoInstances"


def test_an_app_that_goes_alone_is_emptied_by_a_second_pass() -> None:
    """20 s later, whoever makes it. The Service stays, and is served again."""
    there = world(1)
    made = there.imports.service()
    there.lists(*OTHERS)
    there.passes()
    assert there.endpoints() == ["10.20.0.1:8080"]
    assert there.condition("RemovalHeld") == "True AwaitingConfirmation"
    there.later(10)
    there.passes()
    assert there.endpoints() == ["10.20.0.1:8080"]
    there.later(15)
    there.passes()
    assert there.endpoints() == []
    assert there.condition() == "False NoInstances"
    there.lists(*OTHERS, dc(1))
    there.passes()
    assert there.endpoints() == ["10.20.0.1:8080"]
    assert there.imports.service() == made


def test_when_all_instances_are_left_out_ready_has_the_reason() -> None:
    """It takes a second pass as well."""
    there = world(1)
    there.lists(*OTHERS, dc(1, status=DOWN))
    there.passes()
    there.later(30)
    there.passes()
    assert there.endpoints() == []
    assert there.condition() == "False NotUp"
    status = there.imports.imports[REVIEW].status
    assert status is not None
    assert (status.instances, status.left_out) == (1, {"NotUp": 1})


def test_a_service_that_is_not_ours_is_never_written() -> None:
    """Nothing is added, and what is gone still leaves."""
    there = ImportWorld(import_object())
    there.cluster.apply(service("review", namespace=SHOP))
    there.lists(*OTHERS, dc(1))
    there.passes()
    assert there.cluster.slices == []
    assert there.condition("Conflict") == "True ServiceExists"
    assert there.condition() == "False ServiceExists"

    there = world(1, 2)
    there.cluster.services.clear()
    there.cluster.apply(service("review", namespace=SHOP))
    there.lists(*OTHERS, dc(1), dc(3))
    there.passes()
    assert there.endpoints() == ["10.20.0.1:8080"]
    assert there.imports.service() == service("review", namespace=SHOP)


@pytest.mark.parametrize(
    ("existing", "reason"),
    [
        (None, "NoService"),
        (service("rating", namespace=SHOP, type="ExternalName"), "NoService"),
        (service("rating", ServicePort(name="grpc", port=9000), namespace=SHOP), "NoSuchPort"),
        (
            service(
                "rating",
                ServicePort(name="a", port=8080),
                ServicePort(name="b", port=80, target=8080),
                namespace=SHOP,
            ),
            "",
        ),
    ],
)
def test_an_adopted_service_must_exist_and_have_the_port(existing: object, reason: str) -> None:
    """Else nothing is added. What was added before stays while its instance is UP."""
    spec = {"name": "rating", "adopt": True, "port": 8080}
    there = ImportWorld(import_object(service=spec))
    there.cluster.apply(service("rating", ServicePort(name="http", port=8080), namespace=SHOP))
    there.lists(*OTHERS, dc(1), dc(2))
    there.passes()
    assert there.endpoints() == ["10.20.0.1:8080", "10.20.0.2:8080"]
    there.cluster.services.clear()
    if existing is not None:
        there.cluster.apply(existing)  # type: ignore[arg-type]
    there.lists(*OTHERS, dc(2), dc(3))
    there.passes()
    assert "create_service rating" not in there.wire.calls
    if reason:
        assert there.condition() == f"False {reason}"
        assert there.endpoints() == ["10.20.0.2:8080"]
    else:
        assert there.endpoints() == ["10.20.0.2:8080", "10.20.0.3:8080"]
        (piece,) = there.cluster.slices
        assert piece.ports == (EndpointPort(name="a", port=8080),)


def test_slices_of_an_adopted_service_stand_beside_its_own() -> None:
    """The Service is never changed, and its pods' addresses are not imported."""
    there = ImportWorld(import_object(service={"name": "rating", "adopt": True}))
    mixed = service("rating", namespace=SHOP)
    there.cluster.apply(mixed, hand_made(service="rating"))
    there.lists(*OTHERS, dc(1), dc(2))
    there.passes()
    assert there.endpoints() == ["10.20.0.2:8080"]
    assert there.cluster.services == [mixed]
    status = there.imports.imports[REVIEW].status
    assert status is not None
    assert status.left_out == {"InCluster": 1}


def test_a_service_that_got_a_selector_is_left_to_its_pods() -> None:
    """A team applied its own Service over the import's: writing the ports would take its pods'
    target port away. Nothing is added, what is gone still leaves, and `adopt` shares it."""
    there = world(1, 2)
    (made,) = there.cluster.services
    theirs = replace(made, selects=True, ports=(ServicePort(name="http", port=80, target=8080),))
    there.cluster.apply(theirs)
    there.lists(*OTHERS, dc(1), dc(3))
    there.passes()
    assert [service.ports for service in there.cluster.services] == [theirs.ports]
    assert there.endpoints() == ["10.20.0.1:8080"]
    assert there.condition("Conflict") == "True ServiceExists"

    adopting = import_object(service={"adopt": True})
    there.imports.apply(adopting)
    there.passes()
    assert [service.ports for service in there.cluster.services] == [theirs.ports]
    assert len(there.endpoints()) == 2
    assert there.condition("Conflict") == "False NoConflict"


def test_of_two_imports_that_make_one_service_the_older_has_it() -> None:
    """The other one adds nothing. With `adopt`, both write slices."""
    younger = import_object("younger", created=2000, app="other", service={"name": "review"})
    there = ImportWorld(import_object(), younger)
    there.lists(*OTHERS, dc(1))
    for _ in range(2):
        there.passes()
        assert there.endpoints() == ["10.20.0.1:8080"]
        assert there.condition("Conflict", younger.ref) == "True ServiceExists"
        assert there.condition() == "True InSync"

    adopting = replace(younger, spec={"app": "other", "service": {"name": "review", "adopt": True}})
    there.imports.apply(adopting)
    there.passes()
    assert len(there.endpoints()) == 4


def test_the_import_that_has_the_service_keeps_it_whoever_is_older() -> None:
    """It was alone when it made the Service, and then an older one named the same."""
    younger = import_object("younger", created=2000, app="other", service={"name": "review"})
    there = ImportWorld(younger)
    there.lists(*OTHERS, dc(1))
    there.passes()
    there.imports.apply(import_object())
    there.passes()
    assert len(there.endpoints()) == 3
    assert there.condition("Ready", younger.ref) == "True InSync"
    assert there.condition("Conflict") == "True ServiceExists"


def test_a_service_that_a_person_deletes_is_made_again() -> None:
    """An event tells of its new ClusterIP."""
    there = world(1)
    there.cluster.services.clear()
    there.cluster.events.clear()
    there.passes()
    assert there.imports.service() is not None
    assert [event.reason for event in there.cluster.events] == ["ServiceMade"]


def test_what_a_person_edits_is_written_again() -> None:
    """The ports of our Service, and our slices."""
    there = world(1)
    made = there.imports.service()
    assert made is not None
    (piece,) = there.cluster.slices
    there.cluster.apply(
        replace(made, ports=(ServicePort(name="web", port=81),)),
        replace(piece, service="other"),
    )
    there.passes()
    mended = there.imports.service()
    assert mended is not None
    assert mended.ports == made.ports
    assert there.cluster.slices[0].service == "review"
    there.passes()
    assert there.wire.writes() == []


def test_a_deleted_import_goes_with_all_that_it_owns() -> None:
    """Only the finalizer is taken off; the garbage collector does the rest."""
    there = world(1)
    there.imports.delete(REVIEW, there.clock.now())
    there.passes()
    assert there.wire.writes() == [f"remove_import_finalizer {REVIEW}"]
    assert (there.imports.imports, there.cluster.slices, there.cluster.services) == ({}, [], [])


def test_the_deletion_of_many_imports_is_held() -> None:
    """More than ten, and more than 20 % of all. One team's namespace may go."""
    names = [f"app-{number}" for number in range(12)]
    there = ImportWorld(*(import_object(name) for name in names))
    there.lists(*(dc(number, app=name) for number, name in enumerate(names)))
    there.passes()
    for name in names:
        there.imports.delete(ImportRef(SHOP, name), there.clock.now())
    report = there.passes()
    assert len(there.endpoints()) == 12
    assert report.held is not None
    assert "12 of 12 imports would have no endpoint left" in report.held.reason
    assert "because their imports are being deleted" in report.held.reason
    assert len(there.imports.imports) == 12
    there.passes(approved=report.held.plan_id)
    assert there.imports.imports == {}


def test_while_the_crd_is_deleted_nothing_goes() -> None:
    """Nobody deleted that import. With the annotation it may go."""
    there = world(1)
    there.imports.delete(REVIEW, there.clock.now())
    there.imports.crd = Unknown(cause=Cause.CRD_TERMINATING, message="it is being deleted")
    there.passes()
    assert there.endpoints() == ["10.20.0.1:8080"]
    assert there.condition() == "Unknown CRDTerminating"
    there.imports.crd = Complete(data=CrdAge(there.clock.now() + 60, there.clock.now()))
    there.passes()
    assert there.endpoints() == ["10.20.0.1:8080"]
    kept = there.imports.imports[REVIEW]
    there.imports.apply(replace(kept, annotations={ABANDON_ANNOTATION: "true"}))
    there.passes()
    assert there.imports.imports == {}


def test_a_withdrawn_grant_adds_nothing_and_empties_nothing() -> None:
    there = ImportWorld(import_object())
    there.scope = replace(there.scope, granted_only=True)
    there.cluster.annotations[SHOP] = {"eurekube.io/allowed-imports": "rating, REV*"}
    there.lists(*OTHERS, dc(1))
    there.passes()
    assert there.condition() == "True InSync"
    there.cluster.annotations[SHOP] = {"eurekube.io/allowed-apps": "*"}
    there.lists(*OTHERS, dc(1), dc(2))
    there.passes()
    assert there.endpoints() == ["10.20.0.1:8080"]
    assert there.condition() == "False NotGranted"


@pytest.mark.parametrize("servers", [1, 2])
def test_a_withdrawn_grant_takes_no_endpoint_whose_instance_has_another_port_as_well(
    servers: int,
) -> None:
    """The endpoint with both ports would be a new one. What is gone leaves, and so does an
    instance that moved."""
    there = ImportWorld(import_object())
    there.scope = replace(there.scope, granted_only=True)
    there.cluster.annotations[SHOP] = {"eurekube.io/allowed-imports": "*"}
    listed = [dc(number, secure=8443) for number in range(1, 6)]
    there.lists(*OTHERS, *listed)
    there.passes()
    there.cluster.annotations[SHOP] = {}
    there.imports.apply(import_object(service={"securePort": 443}))
    now = [*OTHERS, *listed[:3], dc(4, port=8081, secure=8443)]
    there.lists(*now)
    if servers == 2:
        there.servers = {"a": Server(*now), "b": Server(*now)}
    there.passes()
    assert there.endpoints() == [f"10.20.0.{number}:8080" for number in range(1, 4)]


@pytest.mark.parametrize("servers", [1, 2])
@pytest.mark.parametrize("edited", ["the import", "the instances"])
def test_a_withdrawn_grant_takes_no_endpoint_whose_instance_has_one_port_less(
    edited: str, servers: int
) -> None:
    """The endpoint with one port would be a new one. Calls to that port succeed."""
    there = ImportWorld(import_object(service={"securePort": 443}))
    there.scope = replace(there.scope, granted_only=True)
    there.cluster.annotations[SHOP] = {"eurekube.io/allowed-imports": "*"}
    listed = [dc(number, secure=8443) for number in range(1, 4)]
    there.lists(*OTHERS, *listed)
    there.passes()
    before = there.endpoints()
    there.cluster.annotations[SHOP] = {}
    if edited == "the import":
        there.imports.apply(import_object())
    else:
        listed = [dc(number) for number in range(1, 4)]
        there.lists(*OTHERS, *listed)
    if servers == 2:
        there.servers = {"a": Server(*OTHERS, *listed), "b": Server(*OTHERS, *listed)}
    for _ in range(3):
        there.passes()
        there.later(30)
    assert len(before) == 3
    assert there.endpoints() == before


def test_a_withdrawn_grant_hides_no_conflict() -> None:
    """The Service is somebody else's, whether the app is granted or not. Both are told."""
    there = ImportWorld(import_object())
    there.scope = replace(there.scope, granted_only=True)
    there.cluster.apply(service("review", namespace=SHOP))
    there.cluster.annotations[SHOP] = {"eurekube.io/allowed-imports": "review"}
    there.lists(*OTHERS, dc(1))
    there.passes()
    assert there.condition("Conflict") == "True ServiceExists"
    assert there.condition("Synced") == "False ServiceExists"
    there.cluster.annotations[SHOP] = {}
    report = there.run()
    assert there.condition("Conflict") == "True ServiceExists"
    assert there.condition("Synced") == "False NotGranted"
    told = [str(problem.reason) for problem in problems_of(report)]
    assert told == ["NotGranted", "ServiceExists"]


def test_an_import_without_a_grant_names_a_missing_service_as_well() -> None:
    there = ImportWorld(import_object(service={"adopt": True}))
    there.scope = replace(there.scope, granted_only=True)
    there.cluster.annotations[SHOP] = {}
    there.lists(*OTHERS, dc(1))
    told = [str(problem.reason) for problem in problems_of(there.run())]
    assert told == ["NotGranted", "NoService"]
    assert there.condition("Conflict") == "False NoConflict"


def test_a_grant_names_the_vip_of_an_import_by_vip() -> None:
    there = ImportWorld(import_object(vipAddress="review-v2"))
    there.scope = replace(there.scope, granted_only=True)
    there.cluster.annotations[SHOP] = {"eurekube.io/allowed-imports": "review"}
    there.lists(*OTHERS, dc(1, vip="review-v1,REVIEW-v2"))
    there.passes()
    assert there.condition() == "False NotGranted"
    assert there.imports.service() is None
    there.cluster.annotations[SHOP] = {"eurekube.io/allowed-imports": "review-*"}
    there.passes()
    assert there.endpoints() == ["10.20.0.1:8080"]


def test_endpoints_of_a_withdrawn_network_leave_under_the_brake() -> None:
    """One alone waits for a second pass; of several imports a person decides."""
    there = world(1)
    there.networks = ("10.0.0.0/8",)
    there.passes()
    assert there.endpoints() == ["10.20.0.1:8080"]
    there.networks = ("10.30.0.0/16",)
    there.passes()
    assert there.endpoints() == ["10.20.0.1:8080"]
    there.later(30)
    there.passes()
    assert there.endpoints() == []
    assert there.condition() == "False OutsideNetworks"


@pytest.mark.parametrize("kind", ["services", "slices", "namespaces"])
def test_while_a_list_of_the_namespace_is_unknown_nothing_is_written_there(kind: str) -> None:
    """Not even a finalizer, and the condition says so."""
    there = ImportWorld(import_object())
    there.scope = replace(there.scope, granted_only=True)
    there.cluster.annotations[SHOP] = {"eurekube.io/allowed-imports": "*"}
    there.cluster.apply(hand_made(endpoints=()))  # so that the list names the namespace
    there.cluster.unknown[kind, SHOP] = DENIED
    there.lists(*OTHERS, dc(1))
    there.passes()
    assert there.condition() == "Unknown SourceUnknown"
    assert {"create_service review", f"add_import_finalizer {REVIEW}"}.isdisjoint(there.wire.calls)


def test_a_namespace_that_is_not_found_grants_nothing_and_takes_nothing() -> None:
    there = ImportWorld(import_object())
    there.scope = replace(there.scope, granted_only=True)
    there.lists(*OTHERS, dc(1))
    there.passes()
    assert there.condition() == "Unknown SourceUnknown"


def test_a_suspended_import_gets_only_its_status() -> None:
    """And its deletion is not blocked."""
    there = world(1)
    there.imports.apply(import_object(suspend=True))
    there.lists(*OTHERS, dc(2))
    there.passes()
    assert there.endpoints() == ["10.20.0.1:8080"]
    assert {call.split()[0] for call in there.wire.writes()} <= {
        "write_import_status",
        "record_event",
    }
    assert there.condition("Synced") == "False Suspended"
    there.imports.delete(REVIEW, there.clock.now())
    there.passes()
    assert there.imports.imports == {}


def test_without_removals_what_is_not_listed_any_more_stays() -> None:
    """As an instance of a dead pod does in Eureka. What is DOWN leaves, and what a person deletes
    goes."""
    there = world(1, 2, 4)
    there.scope = replace(there.scope, policy=Policy.UPSERT_ONLY)
    there.lists(*OTHERS, dc(1), dc(3), dc(4, status=DOWN))
    there.passes()
    assert there.endpoints() == ["10.20.0.1:8080", "10.20.0.2:8080", "10.20.0.3:8080"]
    there.imports.delete(REVIEW, there.clock.now())
    there.passes()
    assert there.imports.imports == {}


def test_an_invalid_import_changes_nothing() -> None:
    there = world(1)
    there.imports.apply(import_object(apps="review"))
    there.lists(*OTHERS)
    for _ in range(2):
        there.passes()
        there.later(30)
    assert there.endpoints() == ["10.20.0.1:8080"]
    assert there.condition() == "False InvalidSpec"


def test_an_import_of_another_class_or_label_is_left_alone() -> None:
    """Another installation serves it."""
    there = world(1)
    there.imports.apply(import_object(syncerClass="other"))
    there.lists(*OTHERS)
    assert there.passes().claims == {}
    assert there.wire.writes() == []


def test_imports_that_cannot_be_listed_keep_all_they_have() -> None:
    """As if the CRD were missing."""
    there = world(1)
    there.imports.unknown = DENIED
    there.lists(*OTHERS)
    assert there.passes().claims == {}
    assert there.endpoints() == ["10.20.0.1:8080"]


@pytest.mark.parametrize(
    "unreadable",
    [
        Unknown(cause=Cause.UNAVAILABLE, message="no answer"),
        Unknown(cause=Cause.UNUSABLE, message="a web page answered"),
    ],
)
def test_while_eureka_is_unknown_neither_service_nor_slice_is_written(unreadable: Unknown) -> None:
    """The status tells since when, and keeps its counts."""
    there = ImportWorld(import_object(), import_object("rating"))
    there.lists(*OTHERS, dc(1))
    there.passes()
    there.imports.apply(import_object("later"))
    there.cluster.services.clear()
    there.registry.unreadable = unreadable
    report = there.passes()
    assert report.registry == unreadable
    assert {call.split()[0] for call in there.wire.writes()} <= {
        "write_import_status",
        "record_event",
    }
    assert there.condition() == "Unknown RegistryUnknown"
    status = there.imports.imports[REVIEW].status
    assert status is not None
    assert (status.ready, status.eureka_unknown_since) == ("1/1", int(there.clock.now()))
    since = int(there.clock.now())
    there.later(100)
    there.passes()
    status = there.imports.imports[REVIEW].status
    assert status is not None
    assert status.eureka_unknown_since == since


def test_instances_of_this_cluster_are_imported_only_where_asked_for() -> None:
    """They are in the slices of their own Service, too."""
    ours = {"eurekube.cluster": CLUSTER}
    theirs = {"eurekube.cluster": "another"}
    there = ImportWorld(
        import_object(), import_object("all", app="review", select={"thisCluster": True})
    )
    there.cluster.apply(hand_made())
    there.lists(*OTHERS, dc(1, metadata=ours), dc(2, metadata=theirs))
    report = there.passes()
    found = {str(ref.name): sorted(map(str, claim.wanted)) for ref, claim in report.claims.items()}  # type: ignore[union-attr]
    assert found == {
        "review": ["10.20.0.2:8080"],
        "all": ["10.20.0.1:8080", "10.20.0.2:8080"],
    }


def test_a_slice_of_another_name_is_tried_where_an_unlisted_one_has_it() -> None:
    """Somebody took the label away that names its Service, so no list shows it."""
    there = ImportWorld(import_object())
    there.daemon = True
    there.lists(*OTHERS, dc(1))
    name = there.passes(dry_run=True).work[0].slices[0].slice.name
    there.imports.refuse["create_slice"] = ClusterExists("it exists already")
    there.passes()
    assert there.condition("Synced") == "False PartlyFailed"
    del there.imports.refuse["create_slice"]
    there.passes()
    assert [piece.name for piece in there.cluster.slices] == [name.replace("-0", "-1")]
    assert there.condition() == "True InSync"


def test_a_failed_write_ends_those_of_its_import_alone() -> None:
    """What would be replaced is not removed, and another import is written."""
    there = ImportWorld(import_object(), import_object("other"))
    there.lists(*OTHERS, *(dc(number) for number in range(1, 5)))
    there.passes()
    there.lists(*OTHERS[:2], dc(4), dc(9, port=9090), dc(8, app="other"))
    there.imports.refuse["create_slice"] = ClusterDenied("403")
    report = there.run()
    assert report.imports is not None
    assert len(report.imports.failures) == 1
    assert len([each for each in there.endpoints() if each.endswith(":8080")]) == 4 + 3
    assert there.condition("Synced") == "False PartlyFailed"
    assert there.condition("Synced", ImportRef(SHOP, "other")) == "True InSync"


def test_a_server_that_hangs_is_not_called_for_each_import() -> None:
    names = [f"app-{number}" for number in range(30)]
    there = ImportWorld(*(import_object(name) for name in names))
    there.lists(*OTHERS)
    there.imports.refuse["add_import_finalizer"] = ClusterUnavailable("no answer")
    there.passes()
    tried = [call for call in there.wire.calls if call.startswith("add_import_finalizer")]
    assert 0 < len(tried) < 30


def test_without_a_finalizer_nothing_is_made() -> None:
    """Else the deletion of the CRD would take the slices at once."""
    there = ImportWorld(import_object())
    there.lists(*OTHERS, dc(1))
    there.imports.refuse["add_import_finalizer"] = ClusterDenied("403")
    there.passes()
    assert there.cluster.services == []
    assert CLEANUP_FINALIZER not in there.imports.imports[REVIEW].finalizers


def test_slices_wait_while_the_family_of_a_new_service_is_another_one() -> None:
    """The API server chose IPv6; the next pass knows that."""
    there = ImportWorld(import_object())
    there.imports.family = "IPv6"
    there.lists(*OTHERS, dc(1))
    there.passes()
    assert there.cluster.slices == []
    there.passes()
    assert there.condition() == "False NoUsableAddress"


@pytest.mark.parametrize("adopt", [False, True])
def test_a_family_that_the_service_lacks_takes_no_endpoint_away(adopt: bool) -> None:
    """Its address is of the other family, and callers reach only endpoints of that one."""
    there = ImportWorld(import_object(service={"adopt": adopt}))
    if adopt:
        there.cluster.apply(service("review", namespace=SHOP))
    there.lists(*OTHERS, dc(1), dc(2))
    there.passes()
    there.imports.apply(import_object(service={"adopt": adopt}, addressFamily="IPv6"))
    for _ in range(3):
        there.later(30)
        there.passes()
        assert there.endpoints() == ["10.20.0.1:8080", "10.20.0.2:8080"]
    assert there.condition() == "False NoService"


@pytest.mark.parametrize("adopt", [False, True])
def test_a_missing_service_takes_no_endpoint_away(adopt: bool) -> None:
    """It had addresses of IPv6, and somebody makes it again."""
    networks = ("10.20.0.0/16", "fd00::/64")
    there = ImportWorld(import_object(service={"adopt": adopt}), networks=networks)
    there.imports.family = "IPv6"
    made = service("review", namespace=SHOP, ip_families=("IPv6",))
    if adopt:
        there.cluster.apply(made)
    there.lists(*OTHERS, dc(1, address="fd00::1"))
    there.passes()
    there.passes()
    there.cluster.services.clear()
    there.imports.refuse["create_service"] = ClusterDenied("a quota")
    for _ in range(3):
        there.later(30)
        there.passes()
        assert there.endpoints() == ["fd00::1:8080"]
    there.wire.calls.clear()
    del there.imports.refuse["create_service"]
    if adopt:
        there.cluster.apply(made)
    there.passes()
    assert there.condition() == "True InSync"
    assert not [call for call in there.wire.calls if "slice " in call]


def test_the_name_of_the_service_may_change() -> None:
    """The slices follow, as far as the new one is ours."""
    there = world(1)
    there.imports.apply(import_object(app="review", service={"name": "ratings"}))
    there.passes()
    assert there.cluster.slices[0].service == "ratings"
    assert there.imports.service("ratings") is not None


def test_in_another_cluster_no_import_is_written() -> None:
    """The kubeconfig leads elsewhere since the lists were read."""
    there = ImportWorld(import_object())
    there.daemon = True
    there.lists(*OTHERS, dc(1))
    there.cluster.remembered = Complete(data=there.cluster.uid.data)  # type: ignore[union-attr]
    there.cluster.uid = Complete(data="99999999-2222-3333-4444-555555555555")
    report = there.run()
    assert "create_service review" not in there.wire.calls
    assert report.imports is None or report.imports.doubt is not None


def test_what_changes_in_status_alone_is_told_once() -> None:
    """An instance that is DOWN from the begin changes counts, and no slice."""
    there = world(1)
    there.lists(*OTHERS, dc(1), dc(2, status=InstanceStatus.STARTING))
    there.passes()
    assert there.wire.writes() == [f"write_import_status {REVIEW}"]


def test_a_conflict_of_another_kind_makes_no_name_of_a_slice_taken() -> None:
    """Such as of a namespace that is deleted. Else a name would be remembered in each pass."""
    there = ImportWorld(import_object())
    there.daemon = True
    there.lists(*OTHERS, dc(1))
    there.imports.refuse["create_slice"] = ClusterConflict("its namespace is deleted")
    for _ in range(3):
        there.passes()
    assert there.world.memory.slice_names == set()
    there.imports.refuse["create_slice"] = ClusterExists("it exists already")
    there.passes()
    assert len(there.world.memory.slice_names) == 1
    del there.imports.refuse["create_slice"]
    there.passes()
    assert there.cluster.slices[0].name.endswith("-1")


def test_a_service_that_cannot_be_made_again_is_not_told_as_made() -> None:
    """The event would be wrong, and come with each pass."""
    there = world(1)
    there.cluster.services.clear()
    there.imports.refuse["create_service"] = ClusterDenied("a quota")
    there.passes()
    report = there.passes()
    assert not any(outcome.made for outcome in report.outcomes.values())
    assert [call for call in there.wire.calls if call.startswith("record_event")] == []
