"""The writes of imports: what is left when the time is over, what is listed, and what is told."""

from __future__ import annotations

import pytest

from eurekube_sync.brake.approval import PlanId
from eurekube_sync.desired.spec import ABANDON_ANNOTATION
from eurekube_sync.model.actions import Register
from eurekube_sync.model.errors import ClusterDenied
from eurekube_sync.model.imports import ImportRef
from eurekube_sync.model.kubernetes import EndpointPort, ServicePort
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import NS, endpoint, piece, service, syncer
from tests.unit.worlds.imports import REVIEW, SHOP, ImportWorld, dc, import_object

OTHERS = [dc(number, app="other") for number in range(100, 103)]


def slow(there: ImportWorld, call: str) -> None:
    """From this call on, no time is left."""

    def then() -> None:
        if there.wire.calls[-1].startswith(call):
            there.clock.sleep(1000)

    there.wire.then = then


@pytest.mark.parametrize(
    ("call", "left"),
    [
        ("list_slices", "add_import_finalizer"),
        ("create_service", "create_slice"),
        ("create_slice", "write_import_status"),
    ],
)
def test_what_has_no_time_is_left_for_the_next_pass(call: str, left: str) -> None:
    """The report says so, and the next pass goes on."""
    there = ImportWorld(import_object())
    there.lists(*OTHERS, dc(1))
    slow(there, call)
    report = there.run()
    assert report.cut_short
    assert left not in there.wire.verbs()
    there.wire.then = lambda: None
    there.clock.sleep(-1000)
    there.passes()
    assert there.endpoints() == ["10.20.0.1:8080"]
    assert there.condition() == "True InSync"


def test_a_late_write_is_told_in_the_status() -> None:
    """The statuses have a share of the time of their own."""
    there = ImportWorld(import_object())
    there.lists(*OTHERS, dc(1))

    def then() -> None:
        if there.wire.calls[-1].startswith("create_service"):
            there.clock.sleep(116)

    there.wire.then = then
    there.passes()
    assert there.condition("Synced") == "False PartlyFailed"


def test_the_exports_come_first() -> None:
    """Leases expire, slices do not."""
    there = ImportWorld(import_object())
    there.cluster.apply(syncer(), service(), piece(endpoint(1)))
    there.lists(*OTHERS, dc(1))
    report = there.run()
    registered = [action for action in report.plan.changes if isinstance(action, Register)]
    calls = there.wire.calls
    assert calls.index(f"register {registered[0].key}") < calls.index("create_service review")
    assert there.condition() == "True InSync"


def test_lists_of_the_syncers_are_used_again() -> None:
    """Of the same namespaces, or of the whole cluster."""
    there = ImportWorld(import_object(namespace=NS))
    there.scope = replace(there.scope, namespaces=frozenset({NS}))
    there.cluster.apply(syncer(), service(), piece(endpoint(1)))
    there.lists(*OTHERS, dc(1))
    there.passes()
    assert there.wire.verbs().count("list_services") == 1
    assert there.wire.verbs().count("list_slices") == 1

    there = ImportWorld(import_object())
    for number in range(25):
        namespace = f"ns-{number}"
        there.cluster.apply(
            syncer(namespace=namespace),
            service(namespace=namespace),
            piece(endpoint(number), namespace=namespace),
        )
    there.lists(*OTHERS, dc(1))
    there.passes()
    assert there.wire.verbs().count("list_services") == 1
    assert there.wire.verbs().count("list_slices") == 1


def test_other_namespaces_are_listed_beside_those_of_the_syncers() -> None:
    """Together, so that the adapter keeps to know what did not change."""
    there = ImportWorld(import_object())
    there.cluster.apply(syncer(), service(), piece(endpoint(1)))
    there.lists(*OTHERS, dc(1))
    report = there.passes()
    assert sorted(report.view.services.by_namespace) == [NS, SHOP]
    assert there.wire.verbs().count("list_services") == 2


def test_a_list_that_is_known_to_be_old_changes_nothing() -> None:
    """An uncached read showed what the list should show."""
    there = ImportWorld(import_object())
    there.cluster.apply(syncer(), service(), piece(endpoint(1)))
    there.lists(*OTHERS, dc(1))
    there.registry.cached_for(10_000)
    there.passes()
    there.later(400)
    there.cluster.apply(piece(endpoint(1), endpoint(2)))
    report = there.run()
    there.later(400)
    report = there.run()
    assert report.imports is not None
    assert report.imports.registry is not None
    assert report.imports.registry.message.startswith("Eureka's list does not show")


def test_a_slice_that_goes_counts_no_endpoint() -> None:
    """The status tells what is served after the pass."""
    there = ImportWorld(import_object())
    there.lists(*OTHERS, dc(1), dc(2, port=9090))
    there.passes()
    there.lists(*OTHERS, dc(1))
    there.passes()
    assert "delete_slice" in there.wire.verbs()
    status = there.imports.imports[REVIEW].status
    assert status is not None
    assert status.ready == "1/1"


def test_without_the_service_slices_of_two_ports_stay_as_they_are() -> None:
    """What is held, and what is UP, is in the groups in which it was."""
    there = ImportWorld(import_object(service={"name": "rating", "adopt": True, "securePort": 443}))
    there.cluster.apply(
        service(
            "rating",
            ServicePort(name="http", port=80),
            ServicePort(name="tls", port=443),
            namespace=SHOP,
        )
    )
    there.lists(*OTHERS, dc(1, secure=8443), dc(2), dc(3))
    there.passes()
    assert there.endpoints() == ["10.20.0.1:8080,8443", "10.20.0.2:8080", "10.20.0.3:8080"]
    there.cluster.services.clear()
    there.lists(*OTHERS, dc(1, secure=8443), dc(3))
    there.passes()
    assert there.endpoints() == ["10.20.0.1:8080,8443", "10.20.0.3:8080"]
    names = {port.name for each in there.cluster.slices for port in each.ports}
    assert names == {"http", "tls"}


def test_a_port_without_a_number_serves_nobody() -> None:
    """A person wrote it into our slice, while nothing may be added."""
    there = ImportWorld(import_object())
    there.lists(*OTHERS, dc(1), dc(2))
    there.passes()
    (mine,) = there.cluster.slices
    there.cluster.apply(replace(mine, ports=(*mine.ports, EndpointPort(name="odd", port=None))))
    there.cluster.services.clear()
    there.cluster.apply(service("review", namespace=SHOP))
    there.lists(*OTHERS, dc(1))
    there.passes()
    assert [each.ports for each in there.cluster.slices] == [mine.ports]
    assert there.endpoints() == ["10.20.0.1:8080"]


def test_a_held_endpoint_follows_the_name_of_its_port() -> None:
    """Somebody renamed the port of the adopted Service; a port without a number is left out."""
    there = ImportWorld(import_object(service={"name": "rating", "adopt": True}))
    there.cluster.apply(service("rating", ServicePort(name="http", port=80), namespace=SHOP))
    there.lists(*OTHERS, dc(1), dc(2, port=9090))
    there.passes()
    there.cluster.apply(service("rating", ServicePort(name="web", port=80), namespace=SHOP))
    there.lists()
    there.passes()
    there.lists(*(replace(each, registered=10**9 * 2) for each in (dc(1), *OTHERS)))
    there.passes()
    ports = {each.ports[0] for each in there.cluster.slices}
    assert EndpointPort(name="web", port=8080) in ports
    assert EndpointPort(name="http", port=9090) in ports
    assert len(there.endpoints()) == 2


def test_an_approval_is_spent_when_the_released_endpoints_are_gone() -> None:
    """It must not release the same set on another day."""
    names = [f"app-{number}" for number in range(4)]
    there = ImportWorld(*(import_object(name) for name in names))
    there.lists(*OTHERS, *(dc(number, app=name) for number, name in enumerate(names)))
    there.passes()
    there.lists(*OTHERS)
    report = there.passes()
    assert report.held is not None
    plan_id = PlanId(report.held.plan_id)
    there.imports.refuse["write_slice"] = ClusterDenied("403")
    assert not there.run(approved=plan_id).approval_spent
    there.imports.refuse.clear()
    assert there.run(approved=plan_id).approval_spent


def test_an_ignored_annotation_is_told() -> None:
    there = ImportWorld(import_object(annotations={ABANDON_ANNOTATION: "yes"}))
    there.lists(*OTHERS, dc(1))
    there.passes()
    status = there.imports.imports[REVIEW].status
    assert status is not None
    for type_ in ("Ready", "Synced"):
        condition = status.condition(type_)
        assert condition is not None
        assert "is ignored" in condition.message


def test_the_reasons_of_instances_are_told_without_their_addresses() -> None:
    """A tenant may read the status. `explain` shows each instance."""
    there = ImportWorld(import_object())
    there.lists(*OTHERS, dc(1, plain=False), dc(2, address="dc"), dc(3, address="dc-3"))
    there.passes()
    status = there.imports.imports[REVIEW].status
    assert status is not None
    ready = status.condition("Ready")
    assert ready is not None
    assert ready.reason == "NoUsableAddress"
    assert ready.message == (
        "none of 3 instances is an endpoint: 2 NoUsableAddress and 1 NoEnabledPort. To see each: "
        "eurekube-sync explain import/shop/review"
    )


def test_what_is_left_out_beside_endpoints_is_counted() -> None:
    there = ImportWorld(import_object())
    there.lists(*OTHERS, dc(1), dc(2, plain=False))
    there.passes()
    status = there.imports.imports[REVIEW].status
    assert status is not None
    ready = status.condition("Ready")
    assert ready is not None
    assert ready.message == "1 of 1 endpoint written; left out: 1 NoEnabledPort"


def test_an_import_that_is_gone_without_our_finalizer_needs_no_write() -> None:
    """Somebody took it off; another finalizer keeps the import."""
    there = ImportWorld(import_object())
    there.lists(*OTHERS, dc(1))
    there.passes()
    kept = there.imports.imports[REVIEW]
    there.imports.imports[REVIEW] = replace(
        kept, deleted=there.clock.now(), finalizers=("other.example.com/x",)
    )
    there.passes()
    assert there.wire.writes() == []


def test_a_failed_status_is_an_error_of_the_pass() -> None:
    there = ImportWorld(import_object(), import_object("other"))
    there.lists(*OTHERS)
    there.imports.refuse["write_import_status"] = ClusterDenied("403")
    report = there.passes()
    assert len(report.failures) == 2
    assert report.statuses == {}
    assert ImportRef(SHOP, "other") in report.all_statuses
