"""When no endpoint of an import is removed: the rules in their order, in whole passes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eurekube_sync.adapters.eureka import wire
from eurekube_sync.brake.approval import APPROVE_ANNOTATION
from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.desired.scope import Policy
from eurekube_sync.model.errors import ClusterConflict
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.imports import ImportRef
from eurekube_sync.model.kubernetes import Endpoint, EndpointPort, EndpointSlice
from eurekube_sync.model.ports import EurekaServer
from eurekube_sync.model.sources import Cause, Complete, Source, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.model.text import rfc_3339
from eurekube_sync.observe.imports import registry_age
from tests.unit.worlds.build import CLUSTER, DOWN
from tests.unit.worlds.imports import REVIEW, SHOP, START, ImportWorld, dc, import_object

OTHERS = [dc(number, app="other") for number in range(200, 240)]


def apps(number: int, *, of: int = 1) -> ImportWorld:
    """So many imports of so many instances each, with all of them written."""
    there = ImportWorld(*(import_object(f"app-{index}") for index in range(number)))
    there.daemon = True
    there.lists(*OTHERS, *instances(number, of=of))
    there.passes()
    return there


def instances(number: int, *, of: int = 1, **fields: Any) -> list[ObservedInstance]:
    found = []
    for index in range(number):
        for one in range(of):
            place = index * of + one
            address = f"10.20.{place // 200}.{place % 200}"
            instance = dc(place, app=f"app-{index}", address=address, **fields)
            found.append(instance)
    return found


def held(report: Any) -> list[str]:
    """The reasons of the holds, each with the number of its removals."""
    return [
        f"{hold.reason} {len(hold.removals)}" for hold in (report.held.holds if report.held else ())
    ]


# --- 2. The registry is young -----------------------------------------------------------------------


@given(st.lists(st.sampled_from([0, 1, 5, 700]), max_size=4), st.floats(0, 1000))
def test_the_age_of_a_registry_is_that_of_its_oldest_registration(
    times: list[int], newest: float
) -> None:
    """Without any time it is unknown, and an empty registry has none."""
    listed = [dc(number, registered=time) for number, time in enumerate(times)]
    age = registry_age(listed, newest)
    known = [time for time in times if time]
    if not times:
        assert age == 0
    elif not known:
        assert age is None
    else:
        assert age == max(0, newest - min(known))


def test_an_empty_registry_empties_nothing() -> None:
    """Eureka has just started. This needs no memory, and no approval."""
    there = apps(3, of=2)
    before = there.endpoints()
    there.lists()
    for _ in range(3):
        report = there.passes()
        assert held(report) == ["RegistryYoung 6"]
        there.later(60)
    assert there.endpoints() == before
    assert there.condition("RemovalHeld", ImportRef(SHOP, "app-0")) == "True RegistryYoung"


@pytest.mark.parametrize("part", [0.3, 0.7, 1.0])
def test_while_instances_register_again_nothing_is_removed_and_others_are_added(
    part: float,
) -> None:
    """Calls go on, and no slice is written for what is there already."""
    there = apps(10)
    before = there.endpoints()
    back = instances(int(10 * part), registered=START + 2000, renewed=START + 2020)
    new = dc(199, app="app-0", registered=START + 2000, renewed=START + 2020)
    there.lists(*back, new)
    there.passes()
    assert there.endpoints() == sorted([*before, "10.20.0.199:8080"])
    assert sum(call.startswith("write_slice") for call in there.wire.calls) == 1


def test_what_a_young_registry_lists_as_down_leaves() -> None:
    """It is listed, so it is not missing."""
    there = apps(2, of=2)
    listed = instances(2, of=2, registered=START + 2000, renewed=START + 2020)
    there.lists(replace(listed[0], instance=replace(listed[0].instance, status=DOWN)), *listed[1:3])
    report = there.passes()
    assert held(report) == ["RegistryYoung 1"]
    assert len(there.endpoints()) == 3


def test_after_300_s_the_registry_is_believed() -> None:
    """What is missing then is weighed like anything else."""
    there = apps(1, of=4)
    young = {"registered": START + 2000}
    there.lists(*instances(1, of=3, **young, renewed=START + 2299))
    assert held(there.passes()) == ["RegistryYoung 1"]
    there.lists(*instances(1, of=3, **young, renewed=START + 2300))
    assert held(there.passes()) == []
    assert len(there.endpoints()) == 3


def test_without_times_of_registration_absence_is_seen_twice() -> None:
    there = apps(1, of=4)
    listed = instances(1, of=3, registered=0, renewed=0)
    there.lists(*listed)
    report = there.passes()
    assert held(report) == ["AwaitingConfirmation 1"]
    assert report.held is not None
    assert "Eureka gives no time of registration" in report.held.reason
    there.later(25)
    assert held(there.passes()) == []
    assert len(there.endpoints()) == 3


# --- 3. Several Eureka servers ----------------------------------------------------------------------


class Server(EurekaServer):
    """A single Eureka server that only lists."""

    def __init__(self, *listed: ObservedInstance, unknown: Unknown | None = None) -> None:
        self.listed: Source[tuple[ObservedInstance, ...]] = unknown or Complete(data=listed)
        self.lists = 0

    def list_instances(self) -> Source[tuple[ObservedInstance, ...]]:
        self.lists += 1
        return self.listed

    def read_instance(self, key: InstanceKey) -> ObservedInstance | None:
        raise NotImplementedError

    def renew(self, key: InstanceKey) -> bool:
        raise NotImplementedError

    def try_registration(self) -> None:
        raise NotImplementedError

    def ahead(self) -> float:
        raise NotImplementedError


AWAY = Unknown(cause=Cause.UNAVAILABLE, message="no answer")


def test_what_is_up_on_another_server_stays() -> None:
    """The servers have not replicated it. What none has goes, and DOWN is not UP."""
    there = apps(1, of=4)
    first, down, *_ = instances(1, of=4)
    there.servers = {
        "a": Server(*OTHERS),
        "b": Server(*OTHERS, first, replace(down, instance=replace(down.instance, status=DOWN))),
    }
    there.lists(*OTHERS, *instances(1, of=4)[3:])
    there.passes()
    assert there.endpoints() == ["10.20.0.0:8080", "10.20.0.3:8080"]


@pytest.mark.parametrize(("zone", "stays"), [("a", True), ("b", False), (None, False)])
def test_what_the_import_does_not_select_stays_on_no_server(zone: str | None, stays: bool) -> None:
    """The first server lists it no more, and the other one says that it is of another zone, or of
    none."""
    there = ImportWorld(import_object(select={"zones": ["a"]}))
    there.lists(*OTHERS, *(dc(number, metadata={"zone": "a"}) for number in range(1, 5)))
    there.passes()
    first = dc(1, metadata={} if zone is None else {"zone": zone})
    there.servers = {"a": Server(*OTHERS), "b": Server(*OTHERS, first)}
    there.lists(*OTHERS, *(dc(number, metadata={"zone": "a"}) for number in range(2, 5)))
    there.passes()
    assert ("10.20.0.1:8080" in there.endpoints()) is stays
    assert len(there.endpoints()) == 3 + stays


BY_HAND = EndpointSlice(
    namespace=SHOP,
    name="by-hand",
    service="other",
    address_type="IPv4",
    ports=(EndpointPort(name="http", port=8080),),
    endpoints=(Endpoint(address="10.20.0.1"),),
)
"""A slice of somebody else with the address of an instance."""
OTHER_NETWORKS = ("10.20.0.2/31",)


def lacks_the_first(listed: ObservedInstance) -> ImportWorld:
    """An import of three instances. The first server lists one of them no more; the other server
    lists it like this."""
    there = ImportWorld(import_object())
    there.lists(*OTHERS, *(dc(number) for number in range(1, 4)))
    there.passes()
    there.servers = {"a": Server(*OTHERS), "b": Server(*OTHERS, listed)}
    there.lists(*OTHERS, *(dc(number) for number in range(2, 4)))
    return there


@pytest.mark.parametrize(
    ("listed", "networks", "slices"),
    [
        (dc(1, metadata={"eurekube.cluster": CLUSTER}), None, ()),
        (dc(1), OTHER_NETWORKS, ()),
        (dc(1), None, (BY_HAND,)),
        (dc(1, plain=False), None, ()),
        (dc(1, status=DOWN), None, ()),
        (dc(1, port=8081), None, ()),
        (replace(dc(1), unread=frozenset({"metadata"})), OTHER_NETWORKS, ()),
        (replace(dc(1), unread=frozenset({"ip_addr"})), OTHER_NETWORKS, ()),
    ],
    ids=[
        *("own cluster", "other networks", "in the cluster", "no port", "DOWN", "moved"),
        *("malformed in other networks", "without an address, and other networks"),
    ],
)
def test_what_the_import_leaves_out_stays_on_no_server(
    listed: ObservedInstance, networks: tuple[str, ...] | None, slices: tuple[EndpointSlice, ...]
) -> None:
    """What another server lists is judged by the rules for the first one's list."""
    there = lacks_the_first(listed)
    there.networks = networks or there.networks
    there.cluster.apply(*slices)
    there.passes()
    assert there.endpoints() == ["10.20.0.2:8080", "10.20.0.3:8080"]


@pytest.mark.parametrize(
    ("before", "after"), [({}, {"securePort": 443}), ({"securePort": 443}, {})]
)
def test_an_endpoint_stays_whose_instance_offers_more_or_fewer_ports_by_now(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    """The spec offers the secure port, or does so no more. One port is the same, and calls to it
    succeed. What the first server lists as well needs no second endpoint."""
    there = ImportWorld(import_object(service=before))
    listed = [dc(number, secure=8443) for number in range(1, 4)]
    there.lists(*OTHERS, *listed)
    there.passes()
    there.imports.apply(import_object(service=after))
    there.servers = {"a": Server(*OTHERS), "b": Server(*OTHERS, *listed)}
    there.lists(*OTHERS, *listed[1:])
    there.passes()
    ports = {False: "8080", True: "8080,8443"}
    old, new = ports["securePort" in before], ports["securePort" in after]
    assert there.endpoints() == [f"10.20.0.1:{old}", f"10.20.0.2:{new}", f"10.20.0.3:{new}"]


def test_an_instance_whose_secure_port_moved_on_all_servers_is_one_endpoint() -> None:
    there = ImportWorld(import_object(service={"securePort": 443}))
    there.lists(*OTHERS, *(dc(number, secure=8443) for number in range(1, 4)))
    there.passes()
    moved = [dc(number, secure=8444) for number in range(1, 4)]
    there.servers = {"a": Server(*OTHERS), "b": Server(*OTHERS, *moved)}
    there.lists(*OTHERS, *moved)
    there.passes()
    assert there.endpoints() == [f"10.20.0.{number}:8080,8444" for number in range(1, 4)]


def test_an_instance_that_is_down_at_another_port_stays_on_no_server() -> None:
    """The first server has the newer registration: without its secure port, and DOWN."""
    there = ImportWorld(import_object(service={"securePort": 443}))
    listed = [dc(number, secure=8443) for number in range(1, 4)]
    there.lists(*OTHERS, *listed)
    there.passes()
    there.servers = {"a": Server(*OTHERS), "b": Server(*OTHERS, dc(1))}
    there.lists(*OTHERS, dc(1, status=DOWN), *listed[1:])
    there.passes()
    assert there.endpoints() == ["10.20.0.2:8080,8443", "10.20.0.3:8080,8443"]


@pytest.mark.parametrize("written", ["010.20.0.1", "review.example.com"])
def test_an_address_that_somebody_wrote_into_a_slice_ends_no_pass(written: str) -> None:
    """It is in no network, so a malformed instance on another server keeps nothing there."""
    there = lacks_the_first(replace(dc(1), unread=frozenset({"ip_addr"})))
    own = there.cluster.slices[0]
    there.cluster.apply(replace(own, endpoints=(*own.endpoints, Endpoint(address=written))))
    there.passes()
    assert [place.partition(":")[0] for place in there.endpoints()] == [
        *("10.20.0.1", "10.20.0.2", "10.20.0.3"),
    ]


def test_another_app_at_the_address_keeps_no_endpoint() -> None:
    """The machine serves another app by now, and its registration is not replicated yet. Callers
    would reach that app."""
    there = apps(1, of=4)
    successor = dc(500, app="other", address="10.20.0.0")
    there.servers = {"a": Server(*OTHERS), "b": Server(*OTHERS, successor)}
    there.lists(*OTHERS, *instances(1, of=4)[1:])
    there.passes()
    assert "10.20.0.0:8080" not in there.endpoints()


def test_the_other_servers_are_listed_only_before_a_removal_for_absence() -> None:
    """And not while the registry is young, when that stays anyway."""
    there = apps(1, of=3)
    server = Server(*OTHERS)
    there.servers = {"a": Server(*OTHERS), "b": server}
    there.passes()
    listed = instances(1, of=3)
    there.lists(
        *OTHERS, *listed[1:], replace(listed[0], instance=replace(listed[0].instance, status=DOWN))
    )
    there.passes()
    there.lists()
    there.passes()
    assert server.lists == 0
    assert len(there.endpoints()) == 2
    there.servers = {"a": server}
    there.lists(*OTHERS, *listed[1:2])
    there.passes()
    assert server.lists == 0


def test_what_a_server_may_have_that_could_not_be_listed_stays() -> None:
    """Without an end: the server comes back, or leaves --eureka-url. DOWN goes all the same."""
    there = apps(1, of=4)
    there.servers = {"a": Server(*OTHERS), "b": Server(unknown=AWAY)}
    listed = instances(1, of=4)
    there.lists(
        *OTHERS, *listed[2:], replace(listed[1], instance=replace(listed[1].instance, status=DOWN))
    )
    for _ in range(3):
        report = there.passes()
        there.later(60)
        assert held(report) == ["ServerUnseen 1"]
    assert len(there.endpoints()) == 3
    assert report.held is not None
    assert report.held.reason.startswith("b could not be listed")


def test_a_server_that_could_not_be_listed_is_not_asked_in_each_pass() -> None:
    """It may hang, and would take its time from each pass of a daemon while its hold lasts."""
    there = apps(1, of=4)
    away = Server(unknown=AWAY)
    there.servers = {"a": Server(*OTHERS), "b": away}
    there.lists(*OTHERS, *instances(1, of=3))
    for _ in range(7):
        assert held(there.passes()) == ["ServerUnseen 1"]
        there.later(10)
    assert away.lists == 2


@pytest.mark.parametrize("back", [0, 2])
def test_another_server_that_has_just_started_does_not_show_what_is_missing(back: int) -> None:
    """It lost what only it had, as a cut between the servers leaves it, and gets it back by the
    instances' next heartbeats. When it is older, its list counts."""
    there = apps(1, of=4)
    young = instances(1, of=back, registered=START + 900)
    there.servers = {"a": Server(*OTHERS), "b": Server(*young)}
    there.lists(*OTHERS, *instances(1, of=3))
    report = there.passes()
    assert held(report) == ["RegistryYoung 1"]
    assert report.held is not None
    assert report.held.reason.startswith("b lists nothing that was registered more than 300 s ago")
    assert len(there.endpoints()) == 4
    old = instances(1, of=3, registered=START + 900, renewed=START + 1200)
    there.servers = {"a": Server(*OTHERS), "b": Server(*old)}
    assert held(there.passes()) == []
    assert len(there.endpoints()) == 3


# --- 4. The brake -----------------------------------------------------------------------------------


def test_too_much_of_one_import_is_held_and_no_other() -> None:
    """More than 30 % and more than 10 of its endpoints. Another import goes on."""
    there = apps(2, of=40)
    listed = instances(2, of=40)
    there.lists(*OTHERS, *listed[12:40], *listed[41:])
    report = there.passes()
    assert held(report) == []
    there.lists(*OTHERS, *listed[24:40], *listed[42:])
    report = there.passes()
    assert held(report) == ["TooManyRemovals 12"]
    assert report.held is not None
    assert report.held.reason == (
        "import shop/app-0 would lose 12 of its 28 endpoints, more than 30 %"
    )
    assert len(there.endpoints()) == 28 + 38


def test_too_much_of_all_endpoints_is_held() -> None:
    there = apps(12, of=3)
    listed = [each for number, each in enumerate(instances(12, of=3)) if number % 3]
    there.lists(*OTHERS, *listed)
    report = there.passes()
    assert held(report) == ["TooManyRemovals 12"]
    assert report.held is not None
    assert (
        report.held.reason == "this installation would lose 12 of its 36 endpoints, more than 30 %"
    )


def test_several_imports_are_not_emptied_at_once() -> None:
    """More than one, and more than 5 % of all. When they come back, nothing is written."""
    there = apps(31)
    before = there.endpoints()
    there.lists(*OTHERS, *instances(31)[8:])
    report = there.passes()
    assert there.endpoints() == before
    assert report.held is not None
    assert "8 of 31 imports would have no endpoint left" in report.held.reason
    there.lists(*OTHERS, *instances(31))
    there.passes()
    assert not [call for call in there.wire.calls if "slice " in call]


def test_what_is_held_is_released_by_its_own_plan_id_alone() -> None:
    there = apps(31)
    there.lists(*OTHERS, *instances(31)[20:])
    report = there.passes()
    assert report.held is not None
    assert there.passes(approved="0" * 12).held is not None
    done = there.passes(approved=report.held.plan_id)
    assert len(done.approved) == 20
    assert done.held is None
    assert len(there.endpoints()) == 11
    assert there.run(approved=report.held.plan_id).imports is not None


def test_an_approval_is_not_spent_by_a_pass_that_wrote_nothing() -> None:
    """Another cluster may have answered in between, so the next pass needs the approval, too."""
    there = apps(31)
    there.lists(*OTHERS, *instances(31)[20:])
    report = there.passes()
    assert report.held is not None
    plan_id = report.held.plan_id
    uid = there.cluster.uid

    def another() -> None:
        there.cluster.uid = Complete(data="another") if there.wire.verbs()[1:] else uid

    there.wire.then = another
    doubtful = there.run(approved=plan_id)
    assert doubtful.imports is not None
    assert doubtful.imports.doubt is not None
    assert not doubtful.approval_spent
    there.wire.then = lambda: None
    there.cluster.uid = uid
    assert there.run(approved=plan_id).approval_spent
    assert len(there.endpoints()) == 11


def test_an_annotation_releases_the_removals_of_one_import() -> None:
    """They are neither counted nor held."""
    there = apps(3)
    until = rfc_3339(there.clock.now() + 600)
    freed = ImportRef(SHOP, "app-0")
    there.imports.apply(
        replace(there.imports.imports[freed], annotations={APPROVE_ANNOTATION: until})
    )
    there.lists(*OTHERS, *instances(3)[2:])
    report = there.passes()
    assert held(report) == ["AwaitingConfirmation 1"]
    assert len(there.endpoints()) == 2


@pytest.mark.parametrize("unseen", [True, False])
def test_an_annotation_releases_nothing_of_what_may_only_be_missing(unseen: bool) -> None:
    """It stands for up to an hour, in which Eureka may start again: then nobody knows what is gone.
    The instance that says it is DOWN leaves."""
    there = apps(3, of=2)
    until = rfc_3339(there.clock.now() + 600)
    for ref, import_ in there.imports.imports.items():
        there.imports.imports[ref] = replace(import_, annotations={APPROVE_ANNOTATION: until})
    if unseen:
        there.servers = {"a": Server(*OTHERS), "b": Server(unknown=AWAY)}
        there.lists(*OTHERS, dc(0, app="app-0", status=DOWN))
    else:
        young = dc(0, app="app-0", status=DOWN, registered=START + 2000, renewed=START + 2020)
        there.lists(young)
    report = there.passes()
    assert held(report) == [f"{'ServerUnseen' if unseen else 'RegistryYoung'} 5"]
    assert len(there.endpoints()) == 5


def test_an_annotation_without_effect_is_told() -> None:
    there = ImportWorld(import_object(annotations={APPROVE_ANNOTATION: "now"}))
    there.lists(*OTHERS, dc(1))
    there.passes()
    status = there.imports.imports[REVIEW].status
    assert status is not None
    held_ = status.condition("RemovalHeld")
    assert held_ is not None
    assert held_.message.startswith(f"the annotation {APPROVE_ANNOTATION} has no effect")
    there.lists(*OTHERS)
    there.passes()
    status = there.imports.imports[REVIEW].status
    assert status is not None
    held_ = status.condition("RemovalHeld")
    assert held_ is not None
    assert "has no effect" in held_.message
    assert "1 endpoint of this import stays" in held_.message


def test_the_limits_are_those_of_the_installation() -> None:
    there = apps(1, of=4)
    there.brake = BrakeLimits(loss_percent=10, app_loss_floor=0, loss_floor=0)
    there.lists(*OTHERS, *instances(1, of=4)[1:])
    assert held(there.passes()) == ["TooManyRemovals 1"]


# --- 5. The last endpoint ---------------------------------------------------------------------------


def test_the_wait_begins_anew_when_the_instance_was_back() -> None:
    there = apps(1)
    there.lists(*OTHERS)
    there.passes()
    there.lists(*OTHERS, *instances(1))
    there.later(30)
    there.passes()
    there.lists(*OTHERS)
    there.later(30)
    assert held(there.passes()) == ["AwaitingConfirmation 1"]
    assert len(there.endpoints()) == 1


def test_a_pass_that_could_not_look_lets_the_wait_begin_anew() -> None:
    """Eureka was unknown in between, or the pass was refused."""
    there = apps(1)
    there.lists(*OTHERS)
    there.passes()
    there.registry.unreadable = AWAY
    there.later(15)
    there.passes()
    there.registry.unreadable = None
    there.later(15)
    assert held(there.passes()) == ["AwaitingConfirmation 1"]
    there.cluster.uid = AWAY
    there.later(15)
    assert there.run().imports is None
    there.cluster.uid = Complete(data=CLUSTER)
    there.later(15)
    assert held(there.passes()) == ["AwaitingConfirmation 1"]
    assert len(there.endpoints()) == 1


@pytest.mark.parametrize("daemon", [True, False])
@pytest.mark.parametrize("source", ["imports", "services", "slices", "namespaces"])
def test_a_list_that_fails_in_every_second_pass_keeps_no_endpoint(
    daemon: bool, source: str
) -> None:
    """Such a pass confirms nothing, and forgets nothing. The passes that read all lists confirm
    each other."""
    there = apps(1)
    there.daemon = daemon
    there.scope = replace(there.scope, granted_only=True)
    there.cluster.annotations[SHOP] = {"eurekube.io/allowed-imports": "*"}
    there.lists(*OTHERS)
    left = []
    for _ in range(2):
        there.passes()
        left.append(len(there.endpoints()))
        there.later(11)
        fail(there, source)
        there.passes()
        left.append(len(there.endpoints()))
        there.later(11)
        read_again(there)
    assert left == [1, 1, 0, 0]


@pytest.mark.parametrize("daemon", [True, False])
def test_a_pass_that_could_not_read_eureka_either_starts_the_wait_again(daemon: bool) -> None:
    """It forgets the first look, whatever else it could not read."""
    there = apps(1)
    there.daemon = daemon
    there.lists(*OTHERS)
    there.passes()
    there.later(30)
    fail(there, "slices")
    there.registry.unreadable = AWAY
    there.passes()
    read_again(there)
    there.registry.unreadable = None
    there.later(30)
    assert held(there.passes()) == ["AwaitingConfirmation 1"]
    assert len(there.endpoints()) == 1


def fail(there: ImportWorld, source: str) -> None:
    if source == "imports":
        there.imports.unknown = AWAY
    else:
        there.cluster.unknown[source, "*"] = AWAY


def read_again(there: ImportWorld) -> None:
    there.imports.unknown = None
    there.cluster.unknown.clear()


@pytest.mark.parametrize("daemon", [True, False])
def test_a_pass_without_a_list_does_not_shorten_the_wait(daemon: bool) -> None:
    """The second look comes at least 20 s after the first one."""
    there = apps(1)
    there.daemon = daemon
    there.lists(*OTHERS)
    there.passes()
    there.later(10)
    fail(there, "slices")
    there.passes()
    read_again(there)
    for seconds, left in ((9, 1), (2, 0)):
        there.later(seconds)
        there.passes()
        assert len(there.endpoints()) == left


@pytest.mark.parametrize("daemon", [True, False])
def test_what_was_seen_before_lists_failed_for_long_is_forgotten(daemon: bool) -> None:
    """No pass could list the slices for longer than a first look counts."""
    there = apps(1)
    there.daemon = daemon
    there.lists(*OTHERS)
    there.passes()
    for _ in range(11):
        there.later(60)
        fail(there, "slices")
        there.passes()
        read_again(there)
    for seconds, left in ((1, 1), (19, 1), (2, 0)):
        there.later(seconds)
        there.passes()
        assert len(there.endpoints()) == left


def test_a_deleted_import_forgets_what_it_waited_for() -> None:
    """Its list was read, and has it no more. It may come again with the same name."""
    there = apps(2)
    there.lists(*OTHERS, *instances(2)[1:])
    there.passes()
    before = there.imports.imports.pop(ImportRef(SHOP, "app-0"))
    there.later(11)
    there.passes()
    there.imports.imports[before.ref] = before
    there.later(11)
    assert held(there.passes()) == ["AwaitingConfirmation 1"]


def test_what_was_seen_twice_and_failed_waits_no_longer() -> None:
    """Its write was a conflict, as somebody edited the slice."""
    there = apps(1)
    there.lists(*OTHERS)
    there.passes()
    there.later(25)
    there.imports.refuse["write_slice"] = ClusterConflict("it changed")
    report = there.passes()
    assert len(report.failures) == 1
    del there.imports.refuse["write_slice"]
    assert held(there.passes()) == []
    assert there.endpoints() == []


def test_what_a_young_registry_lacks_nobody_has_seen_gone() -> None:
    """The wait begins when the registry is old enough: what it lacked before may have lived."""
    there = apps(1)
    there.lists(dc(150, app="other", registered=START + 2000, renewed=START + 2290))
    assert held(there.passes()) == ["RegistryYoung 1"]
    there.later(25)
    there.lists(dc(150, app="other", registered=START + 2000, renewed=START + 2310))
    assert held(there.passes()) == ["AwaitingConfirmation 1"]
    there.later(25)
    assert held(there.passes()) == []
    assert there.endpoints() == []


@pytest.mark.parametrize("daemon", [True, False])
def test_an_instance_that_is_down_after_a_young_registry_is_seen_twice(daemon: bool) -> None:
    """It lived while the registry lacked it, and may be UP again in a moment."""
    there = apps(1)
    there.daemon = daemon
    for _ in range(4):
        there.lists()
        assert held(there.passes()) == ["RegistryYoung 1"]
        there.later(10)
    there.lists(*instances(1, registered=START + 2000, renewed=START + 2020, status=DOWN))
    assert held(there.passes()) == ["AwaitingConfirmation 1"]
    assert len(there.endpoints()) == 1
    there.later(25)
    assert held(there.passes()) == []
    assert there.endpoints() == []


def test_what_a_server_may_have_nobody_has_seen_gone() -> None:
    there = apps(1)
    there.servers = {"a": Server(*OTHERS), "b": Server(unknown=AWAY)}
    there.lists(*OTHERS)
    assert held(there.passes()) == ["ServerUnseen 1"]
    there.later(65)
    there.servers = {"a": Server(*OTHERS), "b": Server(*OTHERS)}
    assert held(there.passes()) == ["AwaitingConfirmation 1"]
    assert len(there.endpoints()) == 1


@pytest.mark.parametrize("daemon", [True, False])
def test_a_doubt_in_between_does_not_let_the_wait_begin_anew(daemon: bool) -> None:
    """A server that fails now and then would keep what is gone for ever."""
    there = apps(1)
    there.daemon = daemon
    there.lists(*OTHERS)
    assert held(there.passes()) == ["AwaitingConfirmation 1"]
    there.later(10)
    there.servers = {"a": Server(*OTHERS), "b": Server(unknown=AWAY)}
    assert held(there.passes()) == ["ServerUnseen 1"]
    there.later(65)
    there.servers = {"a": Server(*OTHERS), "b": Server(*OTHERS)}
    assert held(there.passes()) == []
    assert there.endpoints() == []


def test_where_a_malformed_instance_may_be_nobody_has_seen_one_gone() -> None:
    there = apps(1)
    there.lists(*OTHERS, *spoilt(*instances(1), status=5))
    assert held(there.passes()) == ["Malformed 1"]
    there.later(25)
    there.lists(*OTHERS)
    assert held(there.passes()) == ["AwaitingConfirmation 1"]
    assert len(there.endpoints()) == 1


def test_a_clock_that_went_back_lets_a_process_wait_anew() -> None:
    """The time in the status is in its future."""
    there = ImportWorld(import_object())
    there.lists(*OTHERS, dc(1))
    there.passes()
    there.lists(*OTHERS)
    there.passes()
    status = there.imports.imports[REVIEW].status
    assert status is not None
    later = replace(status, unconfirmed_since=int(there.clock.now()) + 1000)
    there.imports.write_import_status(there.imports.imports[REVIEW], later)
    there.later(30)
    assert held(there.passes()) == ["AwaitingConfirmation 1"]
    status = there.imports.imports[REVIEW].status
    assert status is not None
    assert status.unconfirmed_since == int(there.clock.now())


# --- An instance is malformed -----------------------------------------------------------------------


def spoilt(*listed: ObservedInstance, at: int = 0, **changes: Any) -> tuple[ObservedInstance, ...]:
    """Eureka's list of these instances, as it is decoded, with other fields of one of them."""
    documents = []
    for instance in listed:
        documents.append({"instance": wire.observed_document(instance)})
    documents[at]["instance"] |= changes
    return wire.decode_list(
        json.dumps({"applications": {"application": documents}}).encode()
    ).instances


@pytest.mark.parametrize(
    "changes",
    [
        {"ipAddr": {}},
        {"port": 8080},
        {"port": {"$": []}},
        {"status": 5},
        {"status": 5, "ipAddr": 6},
        {"metadata": {"zone": []}},
        {"app": [], "ipAddr": []},
    ],
)
def test_a_malformed_instance_is_not_gone(changes: dict[str, Any]) -> None:
    """It lives, and its endpoint stays for as long as the list does not show where it is. The
    import says which instance it is, and another import is not concerned."""
    there = apps(2, of=2)
    before = there.endpoints()
    there.lists(*spoilt(*instances(2, of=2), *OTHERS, **changes))
    for _ in range(3):
        report = there.passes()
        assert held(report) == ["Malformed 1"]
        there.later(60)
    assert there.endpoints() == before
    ref = ImportRef(SHOP, "app-0")
    status = there.imports.imports[ref].status
    assert status is not None
    assert status.ready == "2/2"
    assert status.left_out == {"Malformed": 1}
    message = status.condition("RemovalHeld")
    assert message is not None
    assert "dc-0:app-0:8080" in message.message
    there.lists(*spoilt(*instances(2, of=2)[1:], *OTHERS))
    there.passes()
    assert len(there.endpoints()) == 3


def test_what_is_malformed_at_an_address_holds_nothing_at_others() -> None:
    """The other instance of the app is gone, and leaves."""
    there = apps(1, of=3)
    listed = instances(1, of=3)
    there.lists(*spoilt(*listed[:2], *OTHERS, port=8080))
    report = there.passes()
    assert held(report) == ["Malformed 1"]
    assert there.endpoints() == ["10.20.0.0:8080", "10.20.0.1:8080"]


@pytest.mark.parametrize("changes", [{"homePageUrl": []}, {"securePort": []}, {"leaseInfo": 5}])
def test_a_malformed_field_that_no_import_needs_is_no_matter(changes: dict[str, Any]) -> None:
    """The instance is an endpoint like any other, and none while it is DOWN."""
    there = apps(1, of=2)
    first, second = instances(1, of=2)
    there.lists(*spoilt(first, second, *OTHERS, **changes))
    assert held(there.passes()) == []
    assert len(there.endpoints()) == 2
    there.lists(*spoilt(first, second, *OTHERS, **changes, status="DOWN"))
    there.passes()
    assert there.endpoints() == ["10.20.0.1:8080"]


def test_an_instance_whose_names_are_malformed_may_be_any_apps() -> None:
    """So it may be of an import of a VIP, too. It is no endpoint, and holds what it may be."""
    vip = import_object("by-vip", vipAddress="app-0")
    there = ImportWorld(import_object("app-0"), vip)
    there.daemon = True
    listed = instances(1, of=2)
    there.lists(*OTHERS, *listed)
    there.passes()
    before = there.endpoints()
    assert len(before) == 2
    there.lists(*spoilt(*listed, *OTHERS, vipAddress=[]))
    assert held(there.passes()) == ["Malformed 1"]
    there.lists(*spoilt(*listed, *OTHERS, app=[], vipAddress=[]))
    assert held(there.passes()) == ["Malformed 1", "Malformed 1"]
    assert there.endpoints() == before


def test_what_is_malformed_on_another_server_stays() -> None:
    """The first server does not list it. The other one does, without its port."""
    there = apps(1, of=2)
    first, second = instances(1, of=2)
    there.lists(second, *OTHERS)
    there.servers = {
        "a": Server(second, *OTHERS),
        "b": Server(*spoilt(first, second, *OTHERS, port=8080)),
    }
    there.passes()
    assert len(there.endpoints()) == 2


# --- What is held is served ------------------------------------------------------------------------


def test_endpoints_that_are_held_count_as_served() -> None:
    """Callers reach them, so the column READY has them."""
    there = apps(1, of=2)
    there.lists()
    report = there.passes()
    ref = ImportRef(SHOP, "app-0")
    assert report.all_statuses[ref].ready == "2/2"
    assert there.condition(ref=ref) == "False RegistryYoung"


def test_endpoints_that_a_policy_keeps_count_as_served() -> None:
    """Nothing is held, and the import is ready, although Eureka does not list its instances."""
    there = apps(1, of=2)
    there.scope = replace(there.scope, policy=Policy.UPSERT_ONLY)
    there.lists(*OTHERS)
    report = there.passes()
    ref = ImportRef(SHOP, "app-0")
    assert report.all_statuses[ref].ready == "2/2"
    assert there.condition(ref=ref) == "True InSync"


def test_an_endpoint_that_is_held_and_one_that_comes_are_both_wanted() -> None:
    there = apps(1, of=2)
    young, renewed = START + 2000, START + 2020
    there.lists(
        *instances(1, of=1, registered=young, renewed=renewed),
        dc(199, app="app-0", registered=young, renewed=renewed),
    )
    there.imports.refuse["write_slice"] = ClusterConflict("it changed")
    report = there.passes()
    assert report.all_statuses[ImportRef(SHOP, "app-0")].ready == "2/3"


def test_what_is_held_of_a_withdrawn_network_is_never_written_anew() -> None:
    """It stays in the slice in which it is, and what comes is in the networks. So the policy at
    admission, which knows what a slice had before, refuses no write."""
    there = ImportWorld(import_object(), networks=("10.20.0.0/16", "10.21.0.0/16"))
    there.daemon = True
    withdrawn = [dc(300 + number, address=f"10.21.0.{number}") for number in range(1, 120)]
    there.lists(*OTHERS, *withdrawn, dc(1))
    there.passes()
    before = {}
    for piece in there.cluster.slices:
        before[piece.name] = {endpoint.address for endpoint in piece.endpoints}
    assert len(before) == 2
    there.networks = ("10.20.0.0/16",)
    there.lists(*OTHERS, *withdrawn, *(dc(number) for number in range(1, 22)))
    report = there.passes()
    assert held(report) == ["TooManyRemovals 119"]
    for piece in there.cluster.slices:
        added = {endpoint.address for endpoint in piece.endpoints} - before.get(piece.name, set())
        assert not [address for address in added if address.startswith("10.21.")]
    assert len(there.endpoints()) == 120 + 20
