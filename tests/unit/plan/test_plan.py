"""The plan: which action each instance gets, and which it never gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eurekube_sync.desired.claims import Desired, Incomplete, Kept, Leaving, Serving
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.spec import DRAIN_ANNOTATION, parse
from eurekube_sync.model.actions import (
    Action,
    Cancel,
    Change,
    Grounds,
    Register,
    Renew,
    Update,
    brings_up,
    comes_last,
)
from eurekube_sync.model.eureka import (
    InstanceKey,
    InstanceStatus,
    LeaseTimes,
    ObservedInstance,
    Port,
)
from eurekube_sync.model.kubernetes import Service, ServicePort, SyncerObject, SyncerRef
from eurekube_sync.model.ownership import CLUSTER, OWNER, SYNCER
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete, Listed
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Unread
from eurekube_sync.plan.make import make_plan, plan_blind, plan_renewals
from eurekube_sync.plan.ours import differences, overridden
from eurekube_sync.plan.value import Blocked, Obstacle, Plan, removal_id, sorted_plan
from tests.unit.worlds.build import (
    DENIED,
    DOWN,
    NS,
    OUT,
    PROOF,
    REF,
    TERMINATING,
    UP,
    changed,
    desired,
    endpoint,
    foreign,
    instance,
    key,
    listed,
    nowhere,
    observed,
    piece,
    service,
    stored,
    syncer,
)

SERVICE = (service(),)
POD = (piece(endpoint()),)
UNMARKED = {k: v for k, v in instance().metadata.items() if k != "eurekube.pod"}
OTHER_POD_THERE = (piece(endpoint(pod="rating-9"), service="another", name="another"),)
UNMATCHED = (service(labels={}), service("another", labels={}))
"""No syncer selects these Services, but their slices are kept up to date."""
STARTING = InstanceStatus.STARTING
NOTHING = InstanceStatus.UNKNOWN


def plan_for(
    *instances: ObservedInstance,
    services: Any = SERVICE,
    slices: Any = POD,
    syncers: Any = None,
    **spec: Any,
) -> Plan:
    """The plan of one syncer for these registered instances."""
    return make_plan(
        desired([syncer(**spec)] if syncers is None else syncers, services, slices),
        observed(*instances),
    )


def only(plan: Plan) -> Action:
    """The one action of the plan."""
    (action,) = plan.actions
    return action


# --- Instances that must stay ---------------------------------------------------------------------

FROZEN: dict[str, dict[str, Any]] = {
    "no Service matches": {"services": ()},
    "ambiguous port": {"services": (service("rating", *(service("a").ports * 2)),), "port": 80},
    "no such port": {"port": "grpc"},
    "no such port in the slices": {"slices": (piece(endpoint(2), port_name="other"),)},
    "forbidden namespace": {"selector": {"app": "rating", "namespace": "another"}},
    "invalid spec": {"selector": {}},
    "an unknown field": {"weight": 5},
}
UNKNOWN: dict[str, dict[str, Any]] = {
    "Services denied": {"services": nowhere(DENIED)},
    "slices denied": {"slices": nowhere(DENIED)},
    "syncers denied": {"syncers": nowhere(DENIED)},
    "syncers of the namespace denied": {
        "syncers": Listed(by_namespace={NS: DENIED}, elsewhere=Complete(data=()))
    },
}


@pytest.mark.parametrize("case", [*FROZEN.values(), *UNKNOWN.values()], ids=[*FROZEN, *UNKNOWN])
def test_instances_of_a_syncer_not_served_or_unknown_are_only_renewed(case: dict[str, Any]) -> None:
    """Without an endpoint an instance stays as it is, UP or DOWN. After a 404 it is not registered
    again."""
    for status in (UP, DOWN, OUT):
        action = only(plan_for(stored(instance(status=status)), **{"slices": (), **case}))
        assert isinstance(action, Renew)
        assert (action.if_gone, action.status, action.syncer) == (None, status, REF)


@pytest.mark.parametrize("case", [*FROZEN.values(), *UNKNOWN.values()], ids=[*FROZEN, *UNKNOWN])
def test_a_syncer_not_served_or_unknown_adds_nothing(case: dict[str, Any]) -> None:
    """Incomplete knowledge registers nothing."""
    assert plan_for(**case) == Plan()


def test_the_instance_of_an_empty_service_is_cancelled() -> None:
    """A Service that matches and has no endpoints is empty, and its instances are removed."""
    action = only(plan_for(stored(instance()), slices=(piece(),)))
    assert isinstance(action, Cancel)
    assert (action.grounds, action.why) == (Grounds.ABSENCE, "it has no endpoint any more")


def test_a_kept_instance_is_cancelled_when_another_pod_has_its_address_and_port() -> None:
    """This is evidence from a complete list."""
    action = only(plan_for(stored(instance()), services=UNMATCHED, slices=OTHER_POD_THERE))
    assert isinstance(action, Cancel)
    assert (action.grounds, action.why) == (
        Grounds.REPLACED,
        "another pod has its address and port",
    )


def test_a_kept_instance_is_cancelled_when_a_complete_list_lacks_its_pod() -> None:
    """It stays while its pod is in the list."""
    frozen = desired([syncer()], [], [])
    for living, goes in (("uid-of-rating-1", False), ("uid-of-another", True)):
        found = replace(frozen, living_pods={NS: Complete(data=frozenset({living}))})
        action = only(make_plan(found, observed(stored(instance()))))
        why = (action.grounds, action.why) if isinstance(action, Cancel) else None
        assert why == ((Grounds.POD_GONE, "its pod is gone") if goes else None)


@pytest.mark.parametrize(
    ("services", "slices"),
    [
        (UNMATCHED, (piece(endpoint(pod="rating-9"), service="another", namespace="other"),)),
        (
            (*UNMATCHED, service("another", namespace="other")),
            (replace(OTHER_POD_THERE[0], namespace="other"),),
        ),
        ((replace(UNMATCHED[1], selects=False),), OTHER_POD_THERE),
        ((replace(UNMATCHED[1], type="ExternalName"),), OTHER_POD_THERE),
        ((), OTHER_POD_THERE),
    ],
    ids=[
        "another namespace, no Service",
        "another namespace",
        "no selector",
        "ExternalName",
        "the Service is gone",
    ],
)
def test_slices_that_anybody_may_have_written_prove_nothing(services: Any, slices: Any) -> None:
    """Slices of another namespace may name any address. Nobody updates the slices of a Service
    without a selector."""
    assert isinstance(only(plan_for(stored(instance()), services=services, slices=slices)), Renew)


@pytest.mark.parametrize(
    ("slices", "metadata"),
    [
        (POD, instance().metadata),  # the pod itself is still there
        (OTHER_POD_THERE, UNMARKED),  # its pod is unknown
        ((piece(endpoint(2), service="another"),), instance().metadata),  # another address
        (
            (piece(endpoint(pod="rating-9"), service="another", port=9090),),
            instance().metadata,
        ),  # another port
        (
            (piece(endpoint(pod=None), service="another"),),
            instance().metadata,
        ),  # a bare address proves nothing
        (
            (piece(endpoint(pod="rating-9", ready=False), service="another"),),
            instance().metadata,
        ),  # it is not ready
    ],
)
def test_a_kept_instance_stays_without_proof(slices: Any, metadata: dict[str, str]) -> None:
    """Pods on the host's network share an address. Only another pod with the same address and port
    proves something."""
    found = plan_for(stored(instance(), metadata=metadata), services=UNMATCHED, slices=slices)
    assert isinstance(only(found), Renew)


def test_unknown_source_outweighs_a_pod_that_took_the_address() -> None:
    """While a source of the syncer is unknown nothing of it is removed, even if another pod has its
    address."""
    other = syncer("other", namespace="other")
    taken = piece(endpoint(pod="other-9"), namespace="other")
    services: Listed[Service] = Listed(by_namespace={NS: DENIED}, elsewhere=Complete(data=()))
    assert isinstance(
        only(
            plan_for(
                stored(instance()), syncers=[syncer(), other], services=services, slices=[taken]
            )
        ),
        Renew,
    )


def test_nothing_is_removed_while_the_crd_is_being_deleted() -> None:
    """Every syncer is being deleted, and no person intended that."""
    claims = desired([syncer(deleted=1)], [service()], POD, crd_live=TERMINATING)
    action = only(make_plan(claims, observed(stored(instance()))))
    assert isinstance(action, Renew)
    assert action.why == "not served: CRDTerminating"


def test_an_unread_instance_is_renewed_and_not_changed() -> None:
    """After a failed uncached read, the list alone is no reason to change or cancel an instance."""
    for slices in (POD, ()):
        found = observed(stored(instance(), status=DOWN)).refreshed({key(): Unread(why="timeout")})
        action = only(make_plan(desired([syncer()], [service()], slices), found))
        assert action == Renew(
            key=key(), syncer=REF, why="the instance could not be read again: timeout", status=DOWN
        )


@pytest.mark.parametrize("late", [True, False])
def test_an_instance_that_could_not_be_read_is_not_registered(late: bool) -> None:
    """The first registration of an id needs an uncached 404. The report counts instances that
    nobody tried to read separately."""
    found = observed().refreshed({key(): Unread(why="timeout", late=late)})
    plan = make_plan(desired([syncer()], [service()], POD), found)
    assert plan.actions == ()
    assert [(blocked.why, blocked.conflict, blocked.late) for blocked in plan.blocked] == [
        ("timeout", False, late)
    ]


def test_a_pass_without_eurekas_list_renews_wanted_instances_and_removes_nothing() -> None:
    """After a 404 an UP instance is registered again. For a DOWN one that would be a first
    registration."""
    slices = (piece(endpoint(1), endpoint(2, ready=False)),)
    plan = plan_blind(desired([syncer(), syncer("gone", deleted=1)], [service()], slices))
    renewals = plan.of(Renew)
    assert plan.changes == ()
    assert [(r.key, r.if_gone is not None, r.status) for r in renewals] == [
        (key(1), True, None),
        (key(2), False, None),
    ]


def test_a_pass_without_eurekas_list_skips_what_no_claim_wants() -> None:
    """This is defence in depth: the key's holder is not served."""
    unserved = replace(desired([syncer()], [], []), wanted_by={key(): REF})
    assert plan_blind(unserved) == Plan()
    assert make_plan(unserved, observed()) == Plan()
    pods_own = changed(foreign(), port=Port(8080, True))
    assert make_plan(unserved, observed(pods_own)) == Plan()


# --- Desired instances ----------------------------------------------------------------------------


def test_a_ready_endpoint_is_registered() -> None:
    """An endpoint that was never ready is not registered."""
    plan = plan_for(slices=(piece(endpoint(1), endpoint(2, ready=False)),))
    assert only(plan) == Register(
        instance=replace(instance(1), metadata=instance(1).metadata),
        syncer=REF,
        why="pod rating-1 is ready",
    )


def test_an_instance_that_is_as_desired_is_renewed() -> None:
    """After a 404 it is registered again while it is UP. For a DOWN one that would be a first
    registration."""
    assert only(plan_for(stored(instance()))) == Renew(
        key=key(), syncer=REF, why="pod rating-1 is ready", if_gone=instance(), status=UP
    )
    down = only(plan_for(stored(instance(status=DOWN)), slices=(piece(endpoint(ready=False)),)))
    assert isinstance(down, Renew)
    assert down.if_gone is None


@pytest.mark.parametrize(
    ("ready", "was", "becomes"), [(True, DOWN, UP), (False, UP, DOWN), (True, NOTHING, UP)]
)
def test_a_status_that_differs_is_updated(
    ready: bool, was: InstanceStatus, becomes: InstanceStatus
) -> None:
    """The whole instance is registered, with a newer time than the stored one."""
    action = only(
        plan_for(
            stored(instance(), status=was, timestamp=77), slices=(piece(endpoint(ready=ready)),)
        )
    )
    assert isinstance(action, Update)
    assert (action.instance.status, action.was, action.stored_timestamp) == (becomes, was, 77)
    assert [(change.field, change.was, change.becomes) for change in action.changes] == [
        ("status", was, becomes)
    ]


@pytest.mark.parametrize(
    ("drain", "grounds"), [({}, Grounds.ABSENCE), ({DRAIN_ANNOTATION: "true"}, Grounds.DRAINED)]
)
def test_an_update_gives_the_brake_its_grounds(drain: dict[str, str], grounds: Grounds) -> None:
    """A person causes a drain, and an unready pod may be the cluster's error. An override survives
    a registration."""
    services = (replace(service(), annotations=drain),)
    stands = stored(instance(), overridden=STARTING)
    action = only(plan_for(stands, services=services, slices=(piece(endpoint(ready=False)),)))
    assert isinstance(action, Update)
    assert (action.grounds, action.override, action.becomes) == (grounds, STARTING, DOWN)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"host_name": "x"}, "hostName"),
        ({"ip_addr": "x"}, "ipAddr"),
        ({"port": Port(1, True)}, "port"),
        ({"port": Port(8080, False)}, "port"),
        ({"secure_port": Port(443, True)}, "securePort"),
        ({"vip_address": "x"}, "vipAddress"),
        ({"secure_vip_address": "x"}, "secureVipAddress"),
        ({"home_page_url": "x"}, "homePageUrl"),
        ({"status_page_url": "x"}, "statusPageUrl"),
        ({"health_check_url": "x"}, "healthCheckUrl"),
        ({"lease": LeaseTimes(30, 90)}, "lease"),
    ],
)
def test_a_field_that_differs_is_a_change(change: dict[str, Any], field: str) -> None:
    """Each field has its name in Eureka."""
    assert [
        found.field for found in differences(instance(), changed(stored(instance()), **change))
    ] == [field]


def test_the_number_of_a_disabled_port_means_nothing() -> None:
    """Eureka fills in that number."""
    assert differences(instance(), changed(stored(instance()), secure_port=Port(7002, False))) == ()


@pytest.mark.parametrize(
    ("ours", "theirs", "fields"),
    [
        ({"a": "1"}, {}, []),
        ({"a": "1"}, {"added": "by hand"}, []),
        ({"a": "1"}, {"a": "2"}, ["metadata.a"]),
        ({"a": ""}, {}, []),
    ],
)
def test_metadata_that_others_added_is_theirs(
    ours: dict[str, str], theirs: dict[str, str], fields: list[str]
) -> None:
    """Only keys that we wrote are compared."""
    wanted = instance(metadata=ours)
    found = stored(wanted, metadata={**wanted.metadata, **theirs})
    assert [change.field for change in differences(wanted, found)] == fields


def test_metadata_that_is_removed_from_the_spec_is_removed_from_eureka() -> None:
    """A key that is empty already counts as removed, because Eureka can empty a key but not delete
    it."""
    before = stored(instance(metadata={"a": "1", "b": ""}))
    assert [change.field for change in differences(instance(), before)] == ["metadata.a"]


@pytest.mark.parametrize(
    ("status", "override", "wanted", "expected"),
    [
        (OUT, OUT, UP, True),
        (OUT, OUT, DOWN, True),
        (OUT, NOTHING, UP, True),
        (DOWN, DOWN, UP, True),
        (STARTING, STARTING, UP, True),
        (STARTING, STARTING, DOWN, False),
        (DOWN, OUT, UP, False),  # our own DOWN hides it, and an UP shows it again
        (UP, UP, DOWN, False),  # Eureka trusts our DOWN first
        (DOWN, NOTHING, UP, False),
        (UP, NOTHING, DOWN, False),
    ],
)
def test_a_persons_override_is_not_fought(
    status: InstanceStatus, override: InstanceStatus, wanted: InstanceStatus, expected: bool
) -> None:
    """OUT_OF_SERVICE always stays. Any other override stays only against an UP."""
    assert overridden(stored(instance(), status=status, overridden=override), wanted) is expected
    changes = differences(
        instance(status=wanted), stored(instance(), status=status, overridden=override)
    )
    assert bool(changes) is not expected


@pytest.mark.parametrize(("was", "shown"), [("old-one", "***"), ("", "")], ids=["changed", "new"])
def test_a_password_in_metadata_is_not_shown(was: str, shown: str) -> None:
    """Only the fact of its change is shown. Other metadata is shown as it is."""
    there = {"user.password": was, "version": "1"} if was else {"version": "1"}
    wanted = {"user.password": "new-one", "version": "2"}
    changes = differences(instance(metadata=wanted), stored(instance(metadata=there)))
    found = {one.field: (one.was, one.becomes) for one in changes}
    assert found["metadata.user.password"] == (shown, "***")
    assert found["metadata.version"] == ("1", "2")


# --- Instances that are not desired ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "status", "spec", "expected"),
    [
        (endpoint(ready=False, terminating=True), UP, {}, Grounds.TERMINATING),
        (endpoint(ready=False, terminating=True), OUT, {}, Grounds.TERMINATING),
        (endpoint(ready=False), UP, {"notReady": "Cancel"}, Grounds.ABSENCE),
        (endpoint(ready=False), OUT, {"notReady": "Cancel"}, None),
        (endpoint(2), UP, {}, Grounds.ABSENCE),
        (endpoint(2), OUT, {}, None),
    ],
)
def test_an_endpoint_that_leaves_is_cancelled_on_its_grounds(
    found: Any, status: InstanceStatus, spec: dict[str, Any], expected: Grounds | None
) -> None:
    """An instance that a person put out of service is not cancelled for an endpoint that is unready
    or missing, because a cancel would forget that."""
    plan = plan_for(stored(instance(), status=status), slices=(piece(found),), **spec)
    action = next(action for action in plan.actions if action.key == key())
    assert (action.grounds if isinstance(action, Cancel) else None) == expected


def test_instances_of_a_deleted_syncer_are_cancelled() -> None:
    """They need not be listed, because a registration may be younger than the list."""
    slices = (piece(endpoint(1), endpoint(2)),)
    plan = plan_for(stored(instance(1)), stored(instance(3)), slices=slices, deleted=1.0)
    cancels = plan.of(Cancel)
    assert [(c.key, c.was, c.grounds) for c in cancels] == [
        (key(1), UP, Grounds.SYNCER_DELETED),
        (key(2), None, Grounds.SYNCER_DELETED),
        (key(3), UP, Grounds.SYNCER_DELETED),
    ]
    assert {c.why for c in cancels} == {"its syncer is being deleted"}
    assert plan.suspects == (key(1), key(2), key(3))


def test_blocking_instances_are_read_in_the_same_order_by_every_process() -> None:
    """Sets of strings have another order in each process. Two runs of a recorded pass would
    otherwise make different calls."""
    others = [foreign(f"itself-{number}").key for number in range(1, 9)]
    in_the_way = [
        Blocked(key=key(number), syncer=REF, why="", obstacle=Obstacle.DUPLICATE, other=other)
        for number, other in enumerate(others, start=1)
    ]
    suspects = sorted_plan((), in_the_way).suspects
    assert list(suspects) == [
        one for number, other in enumerate(others, start=1) for one in (key(number), other)
    ]
    same = Blocked(key=key(), syncer=REF, why="", obstacle=Obstacle.TAKEN, other=key())
    assert sorted_plan((), [same]).suspects == (key(),)


def test_a_deleted_syncers_id_is_not_cancelled_when_it_belongs_to_others() -> None:
    """An instance of others has it, a successor wants it, or it could not be read."""
    theirs = changed(foreign(), key=key(1))
    slices = (piece(endpoint(1), endpoint(2), endpoint(3)),)
    syncers = [
        syncer(deleted=1),
        syncer("successor", selector={"service": "successor"}, appName="rating"),
    ]
    claims = desired(
        syncers,
        [service(), service("successor", labels={})],
        [*slices, piece(endpoint(2), service="successor")],
    )
    plan = make_plan(claims, observed(theirs).refreshed({key(3): Unread(why="timeout")}))
    assert [(type(action), action.key) for action in plan.actions] == [(Register, key(2))]


def test_a_successor_takes_over_in_the_same_pass() -> None:
    """A deleted syncer claims nothing. The mark changes, and no instance is removed."""
    action = only(plan_for(stored(instance()), syncers=[syncer(deleted=1), syncer("successor")]))
    assert isinstance(action, Update)
    assert [change.field for change in action.changes] == [f"metadata.{SYNCER}"]
    assert action.syncer == SyncerRef(NS, "successor")


def test_plan_has_one_action_for_a_key_that_two_deletions_share() -> None:
    """Two deleted syncers of the same pods need one DELETE, not two."""
    plan = plan_for(syncers=[syncer(deleted=1), syncer("twin", deleted=1)])
    assert [action.key for action in plan.actions] == [key()]


# --- Scope, orphans, conflicts --------------------------------------------------------------------


def test_an_orphan_is_cancelled_when_its_namespace_was_listed_completely() -> None:
    """No syncer of that name is in this namespace. Another namespace may have one."""
    action = only(plan_for(stored(instance(ref=SyncerRef(NS, "gone"))), syncers=[]))
    assert isinstance(action, Cancel)
    assert (action.grounds, action.why) == (Grounds.ORPHANED, "there is no syncer rating/gone")


@pytest.mark.parametrize(
    ("written", "grounds"), [(999_999, Grounds.SWEPT), (1_000_000, Grounds.ORPHANED)]
)
def test_an_orphan_that_was_written_before_the_crd_was_installed_may_have_lost_its_syncer_with_an_earlier_one(
    written: int, grounds: Grounds
) -> None:
    """The instance has a time in milliseconds, and the CRD in seconds."""
    found = replace(desired([], [service()], POD), crd_installed=1000)
    action = only(make_plan(found, observed(stored(instance(), timestamp=written))))
    assert isinstance(action, Cancel)
    assert (action.grounds, action.why) == (grounds, "there is no syncer rating/rating")


def test_an_orphan_of_a_namespace_that_was_not_listed_stays() -> None:
    """It is unknown whether its syncer exists."""
    syncers: Listed[SyncerObject] = Listed(by_namespace={NS: Complete(data=())}, elsewhere=DENIED)
    action = only(plan_for(stored(instance(ref=SyncerRef("other", "rating"))), syncers=syncers))
    assert isinstance(action, Renew)
    assert action.why == "its syncers could not be listed"


def test_an_instance_out_of_scope_is_not_touched() -> None:
    """It is neither renewed nor cancelled, because it belongs to others."""
    found = observed(
        stored(instance(ref=SyncerRef("other", "rating"))), scope=Scope(namespaces=frozenset({NS}))
    )
    assert make_plan(desired([]), found) == Plan()


@pytest.mark.parametrize(
    ("metadata", "holder"),
    [
        ({}, "an instance without an owner"),
        (
            {OWNER: "test", CLUSTER: "c", SYNCER: "a/b"},
            "another installation's instance (owner test, syncer a/b)",
        ),
        ({OWNER: "prod"}, "another installation's instance (owner prod, syncer unknown)"),
    ],
)
def test_our_id_with_anothers_mark_or_none_is_a_conflict(
    metadata: dict[str, str], holder: str
) -> None:
    """It is read again, and never changed."""
    plan = plan_for(stored(instance(), metadata=metadata))
    (blocked,) = plan.blocked
    assert (plan.actions, plan.suspects) == ((), (key(),))
    assert (blocked.why, blocked.conflict, blocked.syncer) == (
        f"{holder} is registered with the id that ours needs",
        True,
        REF,
    )


def test_a_foreign_instance_is_in_no_action() -> None:
    """Its app does not matter."""
    assert {action.key for action in plan_for(foreign(), stored(instance())).actions} == {key()}


# --- The plan as a value --------------------------------------------------------------------------

ACTIONS: dict[str, Action] = {
    "renew": Renew(key=key(), syncer=REF, why="", status=UP),
    "register": Register(instance=instance(), syncer=REF, why=""),
    "register down": Register(instance=instance(status=DOWN), syncer=REF, why=""),
    "up again": Update(
        instance=instance(),
        syncer=REF,
        why="",
        changes=(Change(field="status", was="DOWN", becomes="UP"),),
        was=DOWN,
        stored_timestamp=1,
        proof=PROOF,
    ),
    "out of service": Update(
        instance=instance(),
        syncer=REF,
        why="",
        changes=(),
        was=OUT,
        stored_timestamp=1,
        proof=PROOF,
    ),
    "still up": Update(
        instance=instance(), syncer=REF, why="", changes=(), was=UP, stored_timestamp=1, proof=PROOF
    ),
    "down": Update(
        instance=instance(status=DOWN),
        syncer=REF,
        why="",
        changes=(),
        was=UP,
        stored_timestamp=1,
        proof=PROOF,
    ),
    "cancel up": Cancel(
        key=key(), syncer=REF, why="", grounds=Grounds.TERMINATING, proof=PROOF, was=UP
    ),
    "cancel down": Cancel(
        key=key(), syncer=REF, why="", grounds=Grounds.TERMINATING, proof=PROOF, was=DOWN
    ),
}


@pytest.mark.parametrize(
    ("test", "names"),
    [
        (lambda action: Plan(actions=(action,)).removals, {"down", "cancel up"}),
        (brings_up, {"register", "up again"}),
        (comes_last, {"down", "cancel up", "cancel down"}),
    ],
    ids=["removes", "brings up", "comes last"],
)
def test_each_action_is_a_gain_a_loss_or_neither(
    test: Callable[[Action], object], names: set[str]
) -> None:
    """A removal is what callers lose: the cancel of an UP instance, or a change from UP to DOWN."""
    assert {name for name, action in ACTIONS.items() if test(action)} == names


@pytest.mark.parametrize("name", ["down", "cancel up"])
def test_a_not_ready_endpoint_is_no_positive_evidence(name: str) -> None:
    """The grounds of a cancel are its own."""
    action = ACTIONS[name]
    assert isinstance(action, Update | Cancel)
    assert action.grounds.positive is (name == "cancel up")


def test_only_a_removal_that_somebody_wanted_has_evidence() -> None:
    """These are a terminating endpoint, a deleted syncer, a lowered limit and a drain. An orphan or
    a missing endpoint may be the cluster's error."""
    wishes = {Grounds.TERMINATING, Grounds.SYNCER_DELETED, Grounds.OVER_LIMIT, Grounds.DRAINED}
    assert {grounds for grounds in Grounds if grounds.positive} == wishes


def test_a_plan_is_in_the_order_of_its_work() -> None:
    """Renewals come first, then registrations and updates, and removals last. Each kind is sorted
    by key."""
    slices = (piece(*(endpoint(n) for n in (1, 2, 3, 4)), endpoint(5, ready=False)),)
    stands = [stored(instance(n)) for n in (6, 5, 4, 2)]
    plan = plan_for(*stands, stored(instance(3), status=DOWN), slices=slices)
    assert [(type(action), action.key) for action in plan.actions] == [
        (Renew, key(2)),
        (Renew, key(4)),
        (Register, key(1)),
        (Update, key(3)),
        (Update, key(5)),
        (Cancel, key(6)),
    ]
    assert [action.key for action in plan.changes] == [key(1), key(3), key(5), key(6)]
    assert [action.key for action in plan.removals] == [key(5), key(6)]


def test_removals_come_after_every_other_change_and_cancels_come_last() -> None:
    """The order of their keys does not matter."""
    stands = [stored(instance(1)), stored(instance(2)), stored(instance(3), status=DOWN)]
    plan = plan_for(*stands, slices=(piece(endpoint(2, ready=False), endpoint(3)),))
    assert [action.key for action in plan.actions] == [key(3), key(2), key(1)]


def test_a_plan_id_is_a_checksum_over_the_removals_alone() -> None:
    """The same removals give the same id in any order, whatever else a pass does."""
    down, gone = (
        ACTIONS["down"],
        Cancel(key=key(2), syncer=REF, why="", grounds=Grounds.ABSENCE, proof=PROOF, was=UP),
    )
    assert isinstance(down, Update)
    id_ = removal_id([down, gone])
    others = [ACTIONS["renew"], ACTIONS["register"], ACTIONS["cancel down"]]
    assert id_ == removal_id(Plan(actions=(gone, *others, down)).removals)
    assert id_ == removal_id([replace(gone, why="another", grounds=Grounds.ORPHANED), down])
    assert len({id_, removal_id([down]), removal_id([gone]), removal_id([])}) == 4
    assert (len(id_), int(id_, 16) >= 0) == (12, True)


def test_an_update_to_down_and_a_cancel_are_different_removals() -> None:
    """An approval of one is no approval of the other."""
    down, cancel = ACTIONS["down"], ACTIONS["cancel up"]
    assert isinstance(down, Update)
    assert isinstance(cancel, Cancel)
    cancel = replace(cancel, key=down.key)
    assert removal_id([down]) != removal_id([cancel])


def test_a_pass_of_renewals_renews_all_and_nothing_else() -> None:
    """It is used while the cluster's identity is unknown."""
    plan = plan_renewals([stored(instance(2), status=DOWN), stored(instance(1))], "why")
    assert plan == Plan(
        actions=(
            Renew(key=key(1), syncer=REF, why="why", status=UP),
            Renew(key=key(2), syncer=REF, why="why", status=DOWN),
        )
    )


def test_conflicts_are_sorted() -> None:
    """They are sorted by key, whatever the order of the registry."""
    others = [changed(foreign(), key=key(n)) for n in (2, 1)]
    plan = plan_for(*others, slices=(piece(endpoint(1), endpoint(2)),))
    assert [blocked.key for blocked in plan.blocked] == [key(1), key(2)]
    assert InstanceKey("A", "b") < InstanceKey("A", "c")


def test_the_instance_of_an_unclear_endpoint_is_only_renewed() -> None:
    """A pod is in its slice but not in the list of pods. Its instance is neither changed nor
    cancelled."""
    claim = Serving(
        syncer=syncer(),
        spec=parse(syncer()),
        proof=PROOF,
        verdicts={key(1): Kept(why="not known", host="10.0.0.1", port=8080)},
    )
    claims = Desired(claims={REF: claim}, wanted_by={}, syncers=listed([syncer()]))
    action = only(make_plan(claims, observed(stored(instance(1)))))
    assert isinstance(action, Renew)
    assert (action.why, action.if_gone) == ("not known", None)


@pytest.mark.parametrize("absent", [True, False])
def test_nothing_is_cancelled_as_missing_while_endpoints_may_be_incomplete(absent: bool) -> None:
    """An address is awaited. The instance of a terminating endpoint is still cancelled."""
    claim = Serving(
        syncer=syncer(),
        spec=parse(syncer()),
        proof=PROOF,
        verdicts={} if absent else {key(1): Leaving(why="terminates", terminating=True)},
        incomplete=(Incomplete(reason=Reason.ADDRESS_PENDING, message="it waits"),),
    )
    claims = Desired(claims={REF: claim}, wanted_by={}, syncers=listed([syncer()]))
    action = only(make_plan(claims, observed(stored(instance(1)))))
    assert (type(action), action.why) == ((Renew, "it waits") if absent else (Cancel, "terminates"))


def test_a_syncer_not_served_keeps_an_instance_that_a_younger_one_wants() -> None:
    """The older syncer may be served again. Its instance is renewed as it is, and the younger one
    is blocked."""
    older, younger = syncer(port="grpc", created=1), syncer("young", created=2)
    claims = desired([older, younger], [service()], [piece(endpoint(1))])
    for status in (UP, DOWN):
        plan = make_plan(claims, observed(stored(instance(1), status=status)))
        why = (
            f"syncer {REF} is older and has the address, and keeps it although that syncer "
            "cannot be served now"
        )
        assert only(plan) == Renew(key=key(1), syncer=REF, why=why, status=status)
        assert plan.blocked == (
            Blocked(key=key(1), syncer=younger.ref, why=why, obstacle=Obstacle.TAKEN),
        )


def test_an_older_syncer_takes_over_from_a_younger_one_not_served() -> None:
    """Age decides, as among syncers that are served."""
    older, younger = syncer("old", created=1), syncer(port="grpc", created=2)
    claims = desired([older, younger], [service()], [piece(endpoint(1))])
    assert isinstance(only(make_plan(claims, observed(stored(instance(1))))), Update)


def test_the_younger_takes_over_when_the_older_is_deleted_without_a_gap() -> None:
    """An update in the same pass changes the owner, so the instance is never missing."""
    older, younger = syncer(created=1, deleted=5), syncer("young", created=2)
    claims = desired([older, younger], [service()], [piece(endpoint(1))])
    action = only(make_plan(claims, observed(stored(instance(1)))))
    assert isinstance(action, Update)
    assert ([c.field for c in action.changes], action.syncer.name) == (
        ["metadata.eurekube.syncer"],
        "young",
    )


def test_a_pod_that_registers_its_secure_port_itself_is_a_duplicate() -> None:
    """It does not matter which of its ports our instance has."""
    secure = ServicePort(name="https", port=443, target=8443)
    claims = desired(
        [syncer(securePort="https")],
        [service("rating", secure)],
        [piece(endpoint(1), port_name="https")],
    )
    own = changed(foreign(), ip_addr="10.0.0.1", port=Port(80, False), secure_port=Port(8080, True))
    (blocked,) = make_plan(claims, observed(own)).blocked
    assert blocked.obstacle is Obstacle.DUPLICATE


def test_another_pod_at_a_secure_port_is_evidence_too() -> None:
    """Only the enabled port counts."""
    was = changed(stored(instance(1)), port=Port(80, False), secure_port=Port(8080, True))
    claims = desired([syncer(port="grpc")], [service()], [piece(endpoint(1, pod="other"))])
    action = only(make_plan(claims, observed(was)))
    assert isinstance(action, Cancel)
    assert action.grounds is Grounds.REPLACED
