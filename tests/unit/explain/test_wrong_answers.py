"""Former faults in the answers of `explain`."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.desired.scope import ALLOWED_APPS
from eurekube_sync.desired.selector import parse_selector
from eurekube_sync.explain.chain import code_of
from eurekube_sync.explain.links import Mark, Outcome, Part
from eurekube_sync.explain.what import parse_what
from eurekube_sync.model.eureka import InstanceKey, InstanceStatus, LeaseTimes
from eurekube_sync.model.kubernetes import (
    Condition,
    ConditionStatus,
    PodCondition,
    PodDetail,
    ServicePort,
    ServiceSelector,
    SyncerStatus,
)
from eurekube_sync.model.ownership import CLUSTER, OWNER, SYNCER
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.asked import Asked, broken, text
from tests.unit.worlds.build import NS, changed, endpoint, key, piece, service, syncer
from tests.unit.worlds.fakes import FakeWorld

DENIED = Unknown(cause=Cause.DENIED, message="403: you may not")


def _two_services(*, empty: bool = True) -> Asked:
    """A syncer that selects `rating`, which has a pod, and `bills`, which has none."""
    one = syncer(created=FakeWorld().clock.now(), selector={"matchLabels": {"team": "a"}})
    services = [service(labels={"team": "a"}), service("bills", labels={"team": "a"})]
    asked = Asked(one=one, services=services)
    other = () if empty else (endpoint(2),)
    asked.fake.cluster.slices = [piece(endpoint(1)), piece(*other, service="bills")]
    asked.fake.run()
    return asked


@pytest.mark.parametrize("what", [f"svc/{NS}/bills", "BILLS"])
def test_a_service_without_endpoints_is_not_registered_because_another_is(what: str) -> None:
    """Another Service of the same syncer has an instance, and this one has none."""
    found = _two_services().why(what)
    assert (found.outcome, found.up, broken(found).reason) == (
        Outcome.NOT_REGISTERED,
        0,
        "NoEndpoints",
    )
    assert "Service bills has no endpoints" in text(found)


def test_of_two_services_each_has_its_own_instances() -> None:
    """The syncer has both."""
    asked = _two_services(empty=False)
    assert [
        asked.why(what).up
        for what in (f"svc/{NS}/bills", "BILLS", f"svc/{NS}/rating", f"{NS}/rating")
    ] == [
        1,
        1,
        1,
        2,
    ]


@pytest.mark.parametrize("names", [("web",), ("web", "admin")])
@pytest.mark.parametrize("mode", ["pod", "service"])
def test_an_app_may_have_another_name_than_its_service(names: tuple[str, ...], mode: str) -> None:
    """The name is the label `app` of the selector, whatever the Services are called."""
    services = [
        service(name, cluster_ips=(f"10.96.0.{number}",)) for number, name in enumerate(names, 1)
    ]
    asked = Asked(services=services, one=syncer(mode=mode))
    asked.fake.cluster.slices = [
        piece(endpoint(number), service=name) for number, name in enumerate(names, 1)
    ]
    asked.fake.run()
    assert asked.why("RATING").sentence == f"Registered: {len(names)} of {len(names)} UP as RATING"
    assert asked.why(f"svc/{NS}/web").outcome is Outcome.REGISTERED


@pytest.mark.parametrize(
    ("spec", "reason"), [({"port": "grpc"}, "NoSuchPort"), ({"mode": "x"}, "InvalidSpec")]
)
def test_an_app_is_wanted_by_a_syncer_that_is_not_served(spec: dict[str, Any], reason: str) -> None:
    """The answer names the syncer's own fault, and does not say that no syncer exists."""
    asked = Asked(endpoint(1), one=syncer(**spec))
    found = asked.why("RATING")
    assert (found.syncer, broken(found).reason) == (f"{NS}/rating", reason)


def test_a_service_of_mode_service_has_its_own_instance() -> None:
    """Its app is the Service's name."""
    one = syncer(
        created=FakeWorld().clock.now(), selector={"matchLabels": {"team": "a"}}, mode="service"
    )
    services = [
        service(labels={"team": "a"}),
        service("bills", labels={"team": "a"}, cluster_ips=("10.96.0.2",)),
    ]
    asked = Asked(one=one, services=services)
    asked.fake.cluster.slices = [
        piece(endpoint(1)),
        piece(endpoint(2, ready=False), service="bills"),
    ]
    asked.fake.run()
    assert asked.why(f"svc/{NS}/rating").up == 1
    assert asked.why(f"svc/{NS}/bills").outcome is Outcome.NOT_REGISTERED


def test_a_service_without_the_port_has_endpoints_all_the_same() -> None:
    """Only the port is missing."""
    one = syncer(
        created=FakeWorld().clock.now(), selector={"matchLabels": {"team": "a"}}, port="http"
    )
    web = service("web", ServicePort(name="web", port=90, target=9090), labels={"team": "a"})
    asked = Asked(one=one, services=[service(labels={"team": "a"}), web])
    asked.fake.cluster.slices = [
        piece(endpoint(1)),
        piece(endpoint(2), service="web", port=9090, port_name="web"),
    ]
    asked.fake.run()
    found = asked.why(f"svc/{NS}/web")
    assert (broken(found).reason, broken(found).part) == ("NoSuchPort", Part.PORT)
    assert "no endpoints" not in text(found)


@pytest.mark.parametrize(
    ("spec", "reason"), [({"port": "grpc"}, "NoSuchPort"), ({"mode": "pods"}, "InvalidSpec")]
)
@pytest.mark.parametrize("what", [f"svc/{NS}/rating", f"pod/{NS}/rating-1"])
def test_a_service_whose_syncer_is_wrong_is_selected_all_the_same(
    what: str, spec: dict[str, Any], reason: str
) -> None:
    """The answer names the syncer's own fault, and does not say that no syncer exists."""
    asked = Asked(endpoint(1), one=syncer(**spec))
    asked.details.selectors = Complete(
        data=(ServiceSelector(name="rating", selector={"app": "rating"}),)
    )
    asked.details.pods = Complete(
        data=(PodDetail(name="rating-1", uid="u", labels={"app": "rating"}),)
    )
    found = asked.why(what)
    assert "selected by no EurekaSyncer" not in text(found) or "but its spec is invalid" in text(
        found
    )
    assert found.syncer == f"{NS}/rating" or f"explain {NS}/rating" in found.fix
    assert broken(found).reason == reason or f"explain {NS}/rating" in found.fix


def test_a_service_that_a_syncer_of_another_scope_selects_is_not_served_by_this_one() -> None:
    """The scope of this installation leaves out its syncer."""
    asked = Asked(endpoint(1), one=syncer(port="grpc", syncerClass="internal"))
    asked.details.selectors = Complete(
        data=(ServiceSelector(name="rating", labels={"app": "rating"}),)
    )
    found = asked.why(f"svc/{NS}/rating")
    assert found.syncer == f"{NS}/rating"
    assert "selected by no EurekaSyncer" not in text(found)


@pytest.mark.parametrize("what", ["RATING", "10.0.0.1:8080", key(1).id])
def test_where_services_may_not_be_listed_nobody_knows_what_is_wanted(what: str) -> None:
    """The answer is unknown, and does not say that no syncer wants the app."""
    asked = Asked(endpoint(1))
    asked.fake.cluster.unknown[("services", "*")] = DENIED
    found = asked.why(what)
    assert found.outcome is Outcome.UNKNOWN
    assert "no syncer wants it" not in text(found)
    assert "could not be looked at: 403" in text(found)
    assert code_of([found], asked.look(what)) == ExitCode.KUBERNETES_DENIED


@pytest.mark.parametrize("what", ["RATING", "10.0.0.1:8080"])
def test_our_own_instance_outside_of_the_namespaces_is_not_anothers(what: str) -> None:
    """The next question names its syncer."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    asked.in_scope(namespaces=frozenset({"elsewhere"}))
    found = asked.why(what)
    assert "another's instance" not in text(found)
    assert (found.outcome, found.fix) == (
        Outcome.UNKNOWN,
        f"eurekube-sync explain {NS}/rating -n {NS}",
    )
    assert code_of([found], asked.look(what)) == ExitCode.INCOMPLETE


def test_a_command_to_paste_runs_nothing_that_others_wrote() -> None:
    """The marks and ids in Eureka may hold any text of others."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    asked.in_scope(namespaces=frozenset({"elsewhere"}))
    ours = asked.fake.registry.held[key(1)]
    asked.fake.registry.put(changed(ours, metadata={**ours.metadata, SYNCER: "a; reboot;/b"}))
    assert asked.why("RATING").fix == "eurekube-sync explain 'a; reboot;/b' -n 'a; reboot;'"
    asked.in_scope()
    asked.owner = ""
    marks = {CLUSTER: ours.metadata[CLUSTER], SYNCER: f"{NS}/rating"}
    odd = changed(ours, key=InstanceKey("RATING", "a; reboot"), ip_addr="10.0.0.9", metadata=marks)
    asked.fake.registry.held = {odd.key: changed(odd, status=InstanceStatus.OUT_OF_SERVICE)}
    assert (
        asked.why().fix == "curl -X DELETE http://eureka-1/eureka/apps/RATING/a%3B%20reboot/status"
    )


def test_an_instance_whose_syncer_is_gone_is_an_orphan() -> None:
    """It is ours, and the next pass removes it."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    asked.remove()
    found = asked.why("RATING")
    assert f"there is no EurekaSyncer {NS}/rating any more" in text(found)
    assert found.fix == "eurekube-sync orphans"


@pytest.mark.parametrize("what", ["RATING", "10.0.0.1", "10.0.0.1:8080"])
def test_an_instance_of_another_class_is_no_orphan(what: str) -> None:
    """An app or an address names no namespace with other classes. The instance's syncer is listed
    all the same."""
    asked = Asked(endpoint(1), one=syncer(syncerClass="internal"))
    asked.in_scope(syncer_class="internal")
    asked.fake.run()
    asked.in_scope()
    found = asked.why(what)
    assert (found.outcome, found.syncer) == (Outcome.REGISTERED, f"{NS}/rating")
    assert "another installation serves it (class internal)" in text(found)


def test_an_instance_of_another_owner_names_it() -> None:
    """The answer does not say that a syncer is missing."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    asked.remove()
    asked.owner = "typo"
    found = asked.why("RATING")
    assert f"owner {asked.fake.owner} registered it" in text(found)


def test_a_wrong_owner_is_no_expired_lease() -> None:
    """Eureka holds the instances under another name, and they are renewed."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    asked.owner = "typo"
    found = asked.why()
    assert broken(found).reason == "OwnerClash"
    assert "expired" not in text(found)
    assert f"owner {asked.fake.owner}" in text(found)


def test_a_wrong_owner_beside_leases_that_nobody_renewed_lately_is_reported_too() -> None:
    """The answer does not say that the instances are gone."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    asked.fake.later(120)
    asked.owner = "typo"
    found = asked.why()
    assert broken(found).reason == "OwnerClash"
    assert (
        found.fix
        == f"give --owner {asked.fake.registry.held[key(1)].metadata[OWNER]}, if that is right"
    )


def test_pods_that_a_limit_leaves_out_are_not_missing() -> None:
    """Only one of the two pods is wanted."""
    asked = Asked(endpoint(1), endpoint(2), one=syncer(created=FakeWorld().clock.now(), limit=1))
    asked.fake.run()
    found = asked.why()
    assert (found.outcome, found.up, found.of) == (Outcome.REGISTERED, 1, 1)
    assert [link.mark for link in found.links if link.part is Part.LIMIT] == [Mark.NOTE]
    assert code_of([found], asked.look(f"{NS}/rating")) == ExitCode.OK


def test_the_next_question_has_the_scope_of_this_one() -> None:
    """It shows the same syncers."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    asked.remove()
    asked.in_scope(namespaces=frozenset({NS}), selector=parse_selector("team in (a, b)"))
    options = f"-n {NS} --selector 'team in (a, b)'"
    assert asked.why("NOTHING-LIKE-IT").fix == f"eurekube-sync status -a {options}"
    assert asked.why("RATING").fix == f"eurekube-sync orphans {options}"


def test_a_pod_that_is_in_no_slice_is_reported() -> None:
    """Its Service has other endpoints."""
    asked = Asked(endpoint(1))
    waits = PodCondition(type="PodScheduled", true=False, message="0/1 nodes are available")
    pods = (
        PodDetail(name="rating-1", uid="uid-of-rating-1", labels={"app": "rating"}),
        PodDetail(name="b", uid="u", labels={"app": "rating"}, conditions=(waits,)),
    )
    asked.details.pods = Complete(data=pods)
    asked.details.selectors = Complete(
        data=(ServiceSelector(name="rating", selector={"app": "rating"}),)
    )
    asked.fake.run()
    found = asked.why(f"pod/{NS}/b")
    assert "Service rating has no endpoints" not in text(found)
    assert broken(found).text.startswith("pod b is in no EndpointSlice of Service rating")
    assert "not scheduled: 0/1 nodes are available" in text(found)
    assert found.fix == f"kubectl describe pod b -n {NS}"


def test_a_syncer_of_a_namespace_named_like_a_kind_can_be_asked_for() -> None:
    """The error says how to ask."""
    with pytest.raises(ValueError, match="a syncer of namespace pods: esync/pods/orders"):
        parse_what("pods/orders")
    assert str(parse_what("esync/pods/orders")) == "pods/orders"


def test_a_namespace_that_does_not_exist_has_no_syncers_for_that_reason() -> None:
    """`status` reports that the namespace does not exist."""
    asked = Asked(endpoint(1))
    asked.in_scope(namespaces=frozenset({"nosuch"}))
    found = asked.overview()
    assert found.look.report.absent == ("nosuch",)


def test_another_cluster_of_the_same_owner_is_reported_beside_the_chain() -> None:
    """A pass would refuse to work. The answer goes on, and does not say that a syncer is
    missing."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    one = asked.fake.registry.held[key(1)]
    marks = {**one.metadata, CLUSTER: "99999999-2222-3333-4444-555555555555"}
    other = replace(one, instance=replace(one.instance, key=key(9), metadata=marks))
    asked.fake.registry.held[other.key] = other
    found = asked.why()
    assert broken(found).reason == "OwnerClash"
    assert "cluster 99999999" in text(found)


def _not_granted() -> Asked:
    """An installation with `--require-app-grant` lost its grant. The question comes without that
    option."""
    asked = Asked(endpoint(1))
    asked.in_scope(granted_only=True)
    asked.fake.cluster.annotations[NS] = {ALLOWED_APPS: "rating"}
    asked.fake.run()
    asked.fake.cluster.annotations[NS] = {}
    asked.fake.cluster.apply(piece(endpoint(1), endpoint(2)))
    asked.fake.run()
    asked.in_scope()
    return asked


def test_a_missing_grant_that_only_the_installation_asks_for_is_reported() -> None:
    """The next pass does not register the second pod."""
    found = _not_granted().why()
    assert (found.outcome, broken(found).reason) == (Outcome.PARTLY, "NotGranted")
    assert "app RATING is not granted to namespace rating" in broken(found).text
    assert found.fix == f"kubectl describe namespace {NS}"


def test_a_syncer_that_is_not_granted_is_not_in_sync() -> None:
    """All its earlier instances are UP."""
    asked = _not_granted()
    asked.fake.cluster.apply(piece(endpoint(1)))
    (row,) = asked.overview().rows
    assert (row.explanation.outcome, row.reason, row.explanation.up) == (
        Outcome.PARTLY,
        "NotGranted",
        1,
    )


def test_who_asks_for_grants_sees_a_new_one_before_the_next_pass() -> None:
    """Somebody wrote the annotation just before."""
    asked = _not_granted()
    asked.in_scope(granted_only=True)
    asked.fake.cluster.annotations[NS] = {ALLOWED_APPS: "rating"}
    assert broken(asked.why()).reason != "NotGranted"


def test_an_old_status_says_nothing_of_grants() -> None:
    """The spec was changed after that, perhaps to a name that is granted."""
    asked = _not_granted()
    asked.add(replace(asked.syncer, generation=2))
    assert broken(asked.why()).reason != "NotGranted"


def test_the_option_holds_for_syncers_of_another_class_as_well() -> None:
    """Somebody may ask about their installation with the options of this one."""
    asked = Asked(endpoint(1), one=syncer(syncerClass="edge"))
    asked.in_scope(granted_only=True)
    asked.fake.cluster.annotations[NS] = {}
    assert [link.reason for link in asked.why().links if link.broken] == ["NotGranted"]


def test_a_bare_endpoint_has_no_reason_that_a_list_of_pods_could_show() -> None:
    """A failed list of Pods is not the cause."""
    asked = Asked(replace(endpoint(1, ready=False), pod=None), endpoint(2, ready=False))
    asked.details.pods = asked.details.selectors = DENIED
    details = broken(asked.why()).details
    assert "endpoint 10.0.0.1 is not ready" in details
    assert "pod rating-2 is not ready: the reason could not be read: 403: you may not" in details


def test_a_service_is_not_unready_for_the_reason_of_a_pod_of_its_name() -> None:
    """Only a sentence about a pod names a pod."""
    asked = Asked(endpoint(1, ready=False), one=syncer(mode="service"))
    of_that_name = PodDetail(name="rating", uid="u", waiting=("app: CrashLoopBackOff",))
    asked.details.pods = Complete(data=(of_that_name,))
    assert "CrashLoopBackOff" not in text(asked.why())


def test_a_long_list_of_pods_is_cut_and_says_how_many_more() -> None:
    asked = Asked(*(endpoint(number, ready=False) for number in range(1, 9)))
    assert "and 3 more" in text(asked.why())
    asked = Asked(*(endpoint(number) for number in range(1, 9)))
    asked.fake.run()
    assert "and 2 more" in text(asked.why())


def test_a_status_that_no_pass_wrote_is_no_sign_of_an_installation() -> None:
    """Its observed generation is 0. The fix is to ask whether the program runs at all."""
    asked = Asked(endpoint(1))
    asked.add(replace(asked.syncer, status=SyncerStatus(observed_generation=0)))
    asked.fake.later(600)
    found = asked.why()
    assert broken(found).reason == "NoInstallation"
    assert found.fix.startswith("ask the operator whether eurekube-sync runs, and ")


def test_a_refusal_without_a_message_is_a_refusal() -> None:
    """An empty message counts as a refusal."""
    asked = Asked(endpoint(1))
    refused = Condition(
        type="Ready",
        status=ConditionStatus.FALSE,
        reason="NotGranted",
        message="",
        observed_generation=1,
        last_transition=0,
    )
    asked.add(
        replace(asked.syncer, status=SyncerStatus(observed_generation=1, conditions=(refused,)))
    )
    assert broken(asked.why()).reason == "NotGranted"


def test_the_longest_time_without_a_renewal_is_reported() -> None:
    """It may be another lease than the one that ends first."""
    asked = Asked(endpoint(1), endpoint(2))
    asked.fake.run()
    asked.fake.later(3000)
    held = asked.fake.registry.held
    for one, seconds, lease in ((key(1), 2000, 3600), (key(2), 160, 200)):
        instance = replace(held[one].instance, lease=LeaseTimes(renewal=30, duration=lease))
        stamp = asked.fake.clock.now() + lease - seconds
        held[one] = replace(held[one], instance=instance, last_renewal=int(stamp * 1000))
    assert (
        "nobody renewed 10.0.0.1:8080 (and 1 more) for 33 min; the first lease ends in 4 min"
        in text(asked.why())
    )
