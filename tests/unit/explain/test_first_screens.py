"""What a person on call reads first: since when, which other port, what happens next, and what else a
question may name."""

from __future__ import annotations

from typing import Any, cast

import pytest

from eurekube_sync.controller.diagnosis import problems_of
from eurekube_sync.controller.look import Deployed
from eurekube_sync.controller.one_pass import PassReport
from eurekube_sync.explain.links import Outcome
from eurekube_sync.explain.overview import Row, chosen
from eurekube_sync.explain.what import Kind, What, parse_what
from eurekube_sync.model.eureka import InstanceStatus
from eurekube_sync.model.kubernetes import LockName, PodCondition, PodDetail, ServiceSelector
from eurekube_sync.model.ownership import CLUSTER as CLUSTER_MARK
from eurekube_sync.model.ports import LockStore
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.asked import Asked, broken, text
from tests.unit.worlds.build import (
    NS,
    changed,
    endpoint,
    instance,
    key,
    piece,
    service,
    stored,
    syncer,
)


def row_of(asked: Asked) -> Row:
    """The row of the one syncer."""
    (row,) = asked.overview().rows
    return row


def registered(*numbers: int, **spec: Any) -> Asked:
    """A syncer whose pods were registered some minutes ago."""
    asked = Asked(*(endpoint(number) for number in numbers), one=syncer(**spec))
    asked.fake.run()
    for _ in range(10):
        asked.fake.later(60)
        asked.fake.run()
    return asked


# --- An app that callers do not find ---------------------------------------------------------------


@pytest.mark.parametrize("port", [9000, 9001])
def test_a_lost_app_is_named_in_its_row(port: int) -> None:
    """Its syncer resolves no port any more, so only its status knows the app. The row says how many
    instances it should have, and that callers find none."""
    asked = registered(1, 2)
    asked.add(replace(asked.syncer, spec={**asked.syncer.spec, "port": "no-such-port"}))
    asked.fake.cluster.slices = [piece(endpoint(3), endpoint(4), port=port)]
    asked.fake.cluster.ended.update({"uid-of-rating-1", "uid-of-rating-2"})
    for _ in range(3):
        asked.fake.later(60)
        asked.fake.run()
    row = row_of(asked)
    assert (row.reason, row.apps, row.explanation.up, row.desired) == (
        "NoSuchPort",
        ("RATING",),
        0,
        2,
    )
    assert row.why.endswith(
        "; LastInstanceLost: app RATING has no UP instance in Eureka, and 2 ready endpoints of it "
        "wait"
    )
    assert chosen(asked.overview(), app="rating", condition="LastInstanceLost").rows == (row,)


# --- The last pass ----------------------------------------------------------------------------------


class _NoLease:
    """A lock that no process ever took."""

    def read(self) -> None:
        return None


def of_last_pass(asked: Asked) -> str:
    return asked.overview().last_pass.text


DESCRIBE = "see why: kubectl describe deployment sync -n ops"


@pytest.mark.parametrize(
    ("installation", "says", "next_"),
    [
        (
            "",
            "no pass was made yet; see what one would do: eurekube-sync run --dry-run",
            "make a pass: eurekube-sync run",
        ),
        ("deployment sync -n ops", f"no pass was made yet; {DESCRIBE}", "wait for the next pass"),
    ],
    ids=["newcomer", "installed"],
)
@pytest.mark.parametrize("lease", [True, False])
def test_before_the_first_pass_the_screen_says_how_to_make_one(
    installation: str, says: str, next_: str, lease: bool
) -> None:
    """Whoever has an installation looks at it, and makes no pass by hand."""
    asked = Asked(endpoint(1))
    asked.deployed = Deployed(resource=installation)
    if lease:
        asked.locks.append((LockName(namespace="ops", name="prod"), cast(LockStore, _NoLease())))
    assert of_last_pass(asked) == says
    assert asked.why().fix.startswith(next_)


def test_a_syncer_that_waits_for_the_first_pass_for_long_says_how_to_make_it() -> None:
    """A newcomer is the operator."""
    asked = Asked(endpoint(1))
    asked.fake.later(600)
    found = asked.why()
    assert broken(found).reason == "NoInstallation"
    assert found.fix.endswith("or make a pass: eurekube-sync run")
    asked.deployed = Deployed(resource="deployment sync -n ops")
    assert "make a pass" not in asked.why().fix


def test_after_a_pass_without_a_lease_the_screen_says_how_to_record_one() -> None:
    asked = registered(1)
    assert of_last_pass(asked) == (
        "last pass: not recorded, because this installation uses no lock"
    )
    asked.locks.append((LockName(namespace="ops", name="prod"), cast(LockStore, _NoLease())))
    assert of_last_pass(asked) == (
        "last pass: not recorded in the Lease ops/prod; give run and this command the same --lock"
    )
    asked.deployed = Deployed(resource="deployment sync -n ops")
    assert of_last_pass(asked) == f"last pass: not recorded in the Lease ops/prod; {DESCRIBE}"


@pytest.mark.parametrize("of", ["status", "Eureka"])
def test_what_is_left_of_a_pass_shows_that_there_was_one(of: str) -> None:
    """A status, or an instance of ours, is enough."""
    asked = registered(1)
    if of == "status":
        asked.fake.registry.held.clear()
    else:
        asked.add(replace(asked.syncer, status=None))
    assert "not recorded" in of_last_pass(asked)


def test_no_pass_is_denied_where_something_could_not_be_read() -> None:
    """What was not read is not empty."""
    asked = Asked(endpoint(1))
    assert "no pass was made yet" in of_last_pass(asked)
    failed = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
    asked.fake.registry.unreadable = failed
    assert "no pass was made yet" not in of_last_pass(asked)
    asked.fake.registry.unreadable = None
    asked.fake.cluster.unknown["syncers", NS] = failed
    assert "no pass was made yet" not in of_last_pass(asked)


def test_saved_files_and_an_unknown_owner_promise_no_pass() -> None:
    asked = Asked(endpoint(1))
    asked.offline = True
    assert of_last_pass(asked) == "last pass: the files do not say when it was"
    assert asked.why().fix.startswith("wait for the next pass")
    asked.owner = ""
    assert of_last_pass(asked) == "last pass: not known without the owner; give --owner"


# --- Since when -----------------------------------------------------------------------------------


def test_a_deletion_is_as_old_as_its_request() -> None:
    """And not as old as the condition Ready of the time before."""
    asked = registered(1)
    now = asked.fake.clock.now()
    asked.add(replace(asked.syncer, deleted=now - 1))
    row = row_of(asked)
    assert (row.reason, row.since) == ("Deleting", now - 1)


def test_the_age_of_an_override_is_unknown() -> None:
    """Nothing shows when the person set it, of the last instance or of one of several. After a
    pass, the condition shows since when none is UP."""
    for numbers in ((1,), (1, 2)):
        asked = registered(*numbers)
        asked.fake.registry.override(key(1), InstanceStatus.OUT_OF_SERVICE)
        row = row_of(asked)
        assert (row.reason, row.since) == ("OutOfService", None)
    asked = registered(1)
    asked.fake.registry.override(key(1), InstanceStatus.OUT_OF_SERVICE)
    asked.fake.run()
    seen = int(asked.fake.clock.now())
    asked.fake.later(60)
    assert row_of(asked).since == seen


def test_leases_are_unrenewed_since_the_last_renewal() -> None:
    """As the sentence in the same row says."""
    asked = registered(1)
    renewed = asked.fake.clock.now()
    asked.fake.later(180)
    row = row_of(asked)
    assert (row.reason, row.since) == ("NotRenewed", renewed)
    assert "for 3 min" in row.why


def test_a_reason_of_the_condition_is_as_old_as_the_condition() -> None:
    """The pod has not been ready for minutes."""
    asked = Asked(endpoint(1, ready=False))
    asked.fake.run()
    first = int(asked.fake.clock.now())
    asked.fake.later(300)
    asked.fake.run()
    row = row_of(asked)
    assert (row.reason, row.since) == ("NotReady", first)


def test_what_began_after_the_last_pass_has_no_age_of_before() -> None:
    """The condition says InSync, which is another reason."""
    asked = registered(1)
    asked.fake.cluster.services = []
    row = row_of(asked)
    assert (row.reason, row.since) == ("NoMatchingService", None)


def test_pods_are_not_ready_as_long_as_their_own_conditions_say() -> None:
    """The first of them, where the Pods were read."""
    asked = Asked(endpoint(1, ready=False), endpoint(2, ready=False))
    asked.fake.run()
    pods = []
    for number, since in ((1, 500.0), (2, 400.0)):
        ready = PodCondition(type="Ready", true=False, since=since)
        name = f"rating-{number}"
        pods.append(PodDetail(name=name, uid=f"uid-of-{name}", conditions=(ready,)))
    asked.details.pods = Complete(data=tuple(pods))
    assert row_of(asked).since == 400.0


# --- The same address, another port ---------------------------------------------------------------


def test_an_address_with_another_port_is_named() -> None:
    """A caller's colleague asks for the port that the container declares."""
    asked = registered(1)
    found = asked.why("10.0.0.1:9090")
    assert broken(found).reason == "NothingFound"
    assert f"EurekaSyncer {NS}/rating registers 10.0.0.1:8080 as RATING" in text(found)
    assert found.fix == "eurekube-sync explain 10.0.0.1"


def test_a_port_that_no_container_declares_is_noted() -> None:
    """To declare it is optional, so this breaks no link. Without any declaration nothing is noted."""
    asked = registered(1)
    pod = PodDetail(name="rating-1", uid="uid-of-rating-1", ports=(9090,))
    asked.details.pods = Complete(data=(pod,))
    found = asked.why()
    assert found.outcome is Outcome.REGISTERED
    said = "no container of pod rating-1 declares port 8080; declared: 9090"
    assert said in text(found)
    asked.details.pods = Complete(data=(replace(pod, ports=(9090, 8080)),))
    assert "declare" not in text(asked.why())
    asked.details.pods = Complete(data=(replace(pod, ports=()),))
    assert "declare" not in text(asked.why())


# --- What happens next ----------------------------------------------------------------------------


def test_of_a_terminating_pod_it_is_said_what_happens_next() -> None:
    """It is the pod asked for that terminates; the others stay."""
    asked = registered(1, 2, 3)
    ends = (endpoint(1, ready=False, terminating=True), endpoint(2), endpoint(3))
    asked.fake.cluster.slices = [piece(*ends)]
    for what in ("10.0.0.1:8080", f"pod/{NS}/rating-1"):
        found = asked.why(what)
        link = broken(found)
        assert link.reason == "Terminating"
        assert "the next pass cancels its instance" in link.text
        assert "callers follow within 95 s" in link.text
        assert "2 other endpoints stay" in link.text
        assert found.fix.startswith("wait for the next pass; ")


def test_a_deletion_that_hangs_says_that_it_waits_for_a_pass() -> None:
    """And what to do if none runs."""
    asked = registered(1)
    now = asked.fake.clock.now()
    asked.add(replace(asked.syncer, deleted=now - 200))
    found = asked.why()
    assert "was deleted 3 min ago" in broken(found).text
    assert "no pass has seen the deletion yet" in broken(found).text
    assert "see that eurekube-sync runs" in found.fix


# --- What a question may name ---------------------------------------------------------------------


def test_callers_look_up_a_vip_address() -> None:
    """It may be another name than the app's."""
    asked = registered(1, vipAddress="seat-v2,seat-old")
    for vip in ("seat-v2", "SEAT-OLD"):
        found = asked.why(vip)
        assert (found.syncer, found.outcome) == (f"{NS}/rating", Outcome.REGISTERED)


def test_an_app_that_callers_do_not_find_by_its_name_is_noted() -> None:
    """Nothing else stands out if the VIP address is another one."""
    said = "callers find app RATING under the VIP address seat-v2, and not under rating"
    assert said in text(registered(1, vipAddress="seat-v2").why("rating"))
    assert "callers find app" not in text(registered(1).why("rating"))
    assert "callers find app" not in text(registered(1, vipAddress="a,rating").why("rating"))


def test_a_pods_name_alone_is_enough() -> None:
    """It has no namespace, so the slices tell where it is."""
    asked = registered(1, 2)
    found = asked.why("rating-2")
    assert (found.about, found.of) == (f"pod/{NS}/rating-2", 1)


def of_deployment(number: int, controller: str) -> PodDetail:
    name = f"rating-{number}"
    labels = {"app": "rating"}
    return PodDetail(name=name, uid=f"uid-of-{name}", labels=labels, controller=controller)


@pytest.mark.parametrize(
    ("what", "number"),
    [
        (f"deploy/{NS}/rating", 2),
        (f"deployment/{NS}/pay-api", 1),
        (f"sts/{NS}/db", 1),
    ],
)
def test_a_workload_is_its_pods(what: str, number: int) -> None:
    """Those of its ReplicaSets, and no other pod of the Service."""
    asked = registered(1, 2, 3, 4)
    controllers = {
        1: "ReplicaSet rating-6c9f",
        2: "ReplicaSet rating-7d88",
        3: "ReplicaSet pay-api-5b5b",
        4: "StatefulSet db",
    }
    pods = [of_deployment(pod, controller) for pod, controller in controllers.items()]
    asked.details.pods = Complete(data=tuple(pods))
    found = asked.why(what)
    assert (found.outcome, found.up, found.of) == (Outcome.REGISTERED, number, number)


def test_a_workload_without_pods_or_without_a_service() -> None:
    """What is missing is named, with similar names."""
    asked = registered(1)
    asked.details.pods = Complete(data=(of_deployment(1, "ReplicaSet rating-6c9f"),))
    found = asked.why(f"deploy/{NS}/ratings")
    assert broken(found).reason == "NothingFound"
    assert "similar: rating" in text(found)
    other = replace(of_deployment(7, "ReplicaSet bills-6c9f"), labels={"app": "bills"})
    asked.details.pods = Complete(data=(other,))
    selects = ServiceSelector(name="bills", labels={"app": "b"}, selector={"app": "bill"})
    asked.details.selectors = Complete(data=(selects,))
    found = asked.why(f"deploy/{NS}/bills")
    assert broken(found).reason == "NotSelected"
    assert "pod rating-7 is selected by no Service" in text(found)


def test_the_forms_are_read_and_named() -> None:
    """Each kind is written as kubectl does."""
    assert parse_what("deploy/shop/orders") == What(Kind.DEPLOYMENT, "orders", "shop")
    assert str(parse_what("deployments/shop/orders")) == "deploy/shop/orders"
    with pytest.raises(ValueError, match="deploy/NAMESPACE/NAME"):
        parse_what("node/shop/orders")


# --- Limits and hints -----------------------------------------------------------------------------


def test_a_limit_shows_how_many_pods_it_leaves_out() -> None:
    """In the verdict of `explain`, and in the row of `status`, which is shown without -a."""
    asked = registered(1, 2, 3, 4, limit="50%")
    assert asked.why().sentence == "Registered: 2 of 4 ready pods (limit 50%)"
    row = row_of(asked)
    assert (row.explanation.outcome, row.explanation.up, row.explanation.of) == (
        Outcome.REGISTERED,
        2,
        2,
    )
    assert row.why == "2 of 4 ready pods (limit 50%)"
    assert row_of(registered(1, 2, limit=2)).why == ""


def test_the_hint_of_a_similar_label_has_the_users_form_and_keeps_the_app() -> None:
    """Another value of `selector.app` is another name of the app."""
    asked = Asked(one=syncer(selector={"app": "cart"}), services=[])
    asked.fake.cluster.services = [service("cart", labels={"app": "carts"})]
    assert asked.why().fix == (
        "write selector: {app: carts} in its spec, and appName: cart if the app should stay CART "
        f"and not become CARTS: kubectl edit esync rating -n {NS}"
    )
    now = asked.fake.clock.now()
    asked.add(syncer(selector={"app": "cart"}, appName="cart", created=now))
    assert asked.why().fix.startswith("write selector: {app: carts} in its spec: kubectl edit ")


def test_the_hint_of_another_label_says_which_app_it_gives() -> None:
    """Without the shorthand, the Service names the app."""
    asked = Asked(one=syncer(selector={"app": "cart"}), services=[])
    asked.fake.cluster.services = [service("cart", labels={"name": "cart"})]
    assert asked.why().fix.startswith(
        "write selector: {matchLabels: {name: cart}} in its spec: kubectl edit "
    )
    asked.fake.cluster.services = [service("trolley", labels={"name": "cart"})]
    assert "appName: cart if the app should stay CART and not become TROLLEY" in asked.why().fix


# --- One cure, once -------------------------------------------------------------------------------


def test_a_similar_label_is_told_by_a_pass_and_by_the_condition() -> None:
    """For who sees only `kubectl describe`, or the log."""
    asked = Asked(one=syncer(selector={"app": "cart"}), services=[])
    asked.fake.cluster.services = [
        service("cart", labels={"app": "carts"}),
        service("other", labels={"x": "y"}),
    ]
    report = asked.fake.run()
    (problem,) = [
        problem for problem in problems_of(report) if problem.reason == "NoMatchingService"
    ]
    assert problem.text.endswith("correct spec.selector; Service cart has app=carts")
    assert said_by_the_condition(report) == problem.text
    # The hint follows the Services, though none of them is selected.
    asked.fake.cluster.services = [service("cart", labels={"app": "cards"})]
    assert said_by_the_condition(asked.fake.run()).endswith("; Service cart has app=cards")
    asked.fake.cluster.services = [service("other", labels={"x": "y"})]
    assert said_by_the_condition(asked.fake.run()).endswith("or correct spec.selector")


def said_by_the_condition(report: PassReport) -> str:
    """Return the message of the only syncer's condition Ready."""
    (status,) = report.all_statuses.values()
    ready = status.condition("Ready")
    assert ready is not None
    return ready.message


def test_a_service_of_a_similar_label_has_no_second_line() -> None:
    """A row names it, so the line about Services without a syncer does not."""
    asked = Asked(one=syncer(selector={"app": "cart"}), services=[])
    asked.fake.cluster.services = [
        service("cart", labels={"app": "carts"}),
        service("other", labels={"x": "y"}),
    ]
    selectors = []
    for listed in asked.fake.cluster.services:
        selectors.append(ServiceSelector(name=listed.name, labels=listed.labels))
    asked.details.selectors = Complete(data=tuple(selectors))
    asked.in_scope(namespaces=frozenset({NS}))
    assert asked.overview().unselected == (f"{NS}/other",)


def test_labels_are_not_compared_in_a_namespace_with_many_services() -> None:
    """A pass would take longer for each syncer that selects nothing."""
    asked = Asked(one=syncer(selector={"app": "cart"}), services=[])
    labels = {"app": "carts"}
    asked.fake.cluster.services = [
        service(f"cart-{number}", labels=labels) for number in range(201)
    ]
    texts = [problem.text for problem in problems_of(asked.fake.run())]
    assert [text for text in texts if text.endswith("or correct spec.selector")]


def test_status_shows_an_owner_clash_with_its_cure() -> None:
    """The same sentence as `run`, without what only a pass does."""
    asked = registered(1)
    asked.fake.registry.put(
        changed(stored(instance(2)), metadata={**instance(2).metadata, CLUSTER_MARK: "another"})
    )
    (problem,) = asked.overview().problems
    assert problem.reason == "OwnerClash"
    assert "eurekube-sync run --former-cluster another" in problem.text
    assert "were renewed" not in problem.text


def test_a_service_that_lacks_two_labels_is_no_hint() -> None:
    """It may be any other app."""
    labels = {"app": "cart", "tier": "web"}
    asked = Asked(one=syncer(selector={"matchLabels": labels}), services=[])
    asked.fake.cluster.services = [service("other", labels={"app": "carts"})]
    assert "Service other" not in text(asked.why())


def test_a_service_of_an_import_is_no_hint() -> None:
    """It has nearly the labels, but no syncer registers it."""
    asked = Asked(one=syncer(selector={"app": "rating"}))
    near = service("rating", labels={"app": "ratings"})
    asked.fake.cluster.services = [near]
    (detail,) = broken(asked.why()).details
    assert detail == "Service rating has app=ratings"
    asked.fake.cluster.services = [replace(near, controller="EurekaImport")]
    assert broken(asked.why()).details == ()
    assert "ratings" not in "".join(problem.text for problem in problems_of(asked.fake.run()))
