"""The chain of an explanation: what breaks each link, its text, and the fix."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.controller.exit_codes import ExitCode
from eurekube_sync.desired.catalog import DRAINED
from eurekube_sync.desired.selector import parse_selector
from eurekube_sync.desired.spec import DRAIN_ANNOTATION
from eurekube_sync.explain.chain import code_of
from eurekube_sync.explain.links import Outcome, Part
from eurekube_sync.model.eureka import InstanceStatus
from eurekube_sync.model.kubernetes import PodCondition, PodDetail, ServicePort, ServiceSelector
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.asked import Asked, broken, text
from tests.unit.worlds.build import NS, endpoint, foreign, key, service, syncer
from tests.unit.worlds.fakes import FakeWorld

DENIED = Unknown(cause=Cause.DENIED, message="403: you may not")


def _registered(*numbers: int, **spec: Any) -> Asked:
    asked = Asked(
        *(endpoint(number) for number in numbers),
        one=syncer(created=FakeWorld().clock.now(), **spec),
    )
    asked.fake.run()
    return asked


def test_a_registered_syncer_breaks_no_link() -> None:
    asked = _registered(1, 2)
    found = asked.why()
    assert (found.outcome, found.up, found.of, found.fix) == (Outcome.REGISTERED, 2, 2, "")
    assert found.sentence == "Registered: 2 of 2 UP as RATING"
    assert code_of([found], asked.look(f"{NS}/rating")) == ExitCode.OK


def test_it_is_explained_without_a_write() -> None:
    """Neither server gets a write."""
    asked = Asked(endpoint(1))
    before = dict(asked.fake.registry.held)
    asked.why()
    assert asked.fake.registry.held == before
    assert asked.syncer.status is None


@pytest.mark.parametrize(
    ("what", "up"),
    [
        (f"svc/{NS}/rating", 2),
        (f"pod/{NS}/rating-1", 1),
        ("rating", 2),
        ("10.0.0.2:8080", 1),
        ("10.0.0.2", 1),
        (key(1).id, 1),
    ],
)
def test_each_question_is_about_its_instances_alone(what: str, up: int) -> None:
    """A pod has its own instance. A Service has all of them."""
    found = _registered(1, 2).why(what)
    assert (found.syncer, found.outcome, found.up) == (f"{NS}/rating", Outcome.REGISTERED, up)


def test_an_invalid_spec_is_named() -> None:
    """The sentence is that of the condition."""
    found = Asked(endpoint(1), one=syncer(mode="pods")).why()
    assert (broken(found).part, broken(found).reason) == (Part.SPEC, "InvalidSpec")
    assert "spec.mode must be" in broken(found).text


def test_a_port_that_is_not_there_is_named() -> None:
    """The answer lists the ports that exist."""
    found = Asked(endpoint(1), one=syncer(port="grpc")).why()
    assert (broken(found).part, broken(found).reason) == (Part.PORT, "NoSuchPort")
    assert "http (80)" in text(found)


@pytest.mark.parametrize(
    ("selector", "labels", "near"),
    [
        ({"app": "ratng"}, {"app": "rating"}, "Service rating has app=rating"),
        ({"app": "rating"}, {"name": "rating"}, "Service rating has name=rating"),
    ],
)
def test_a_service_that_nearly_matches_is_shown(
    selector: dict[str, str], labels: dict[str, str], near: str
) -> None:
    """The label differs by one letter, or is under another key."""
    one = syncer(selector={"matchLabels": selector})
    found = Asked(endpoint(1), one=one, services=[service(labels=labels)]).why()
    assert broken(found).reason == "NoMatchingService"
    assert near in text(found)


def test_a_label_on_the_pods_alone_is_shown() -> None:
    """The answer has the command that labels their Service."""
    asked = Asked(endpoint(1), services=[service(labels={"team": "a"})])
    asked.details.pods = Complete(
        data=(PodDetail(name="rating-1", uid="u", labels={"app": "rating"}),)
    )
    asked.details.selectors = Complete(
        data=(ServiceSelector(name="rating", selector={"app": "rating"}),)
    )
    found = asked.why()
    assert "1 pod has app=rating, but no Service does" in text(found)
    assert found.fix == f"kubectl label service rating -n {NS} app=rating"


def test_a_pod_that_is_not_ready_says_why_and_since_when() -> None:
    """Only the explanation reads the conditions of the pod."""
    asked = Asked(endpoint(1, ready=False))
    since = asked.fake.clock.now() - 41 * 60
    ready = PodCondition(
        type="Ready", true=False, message="containers with unready status: [app]", since=since
    )
    asked.details.pods = Complete(data=(PodDetail(name="rating-1", uid="u", conditions=(ready,)),))
    found = asked.why()
    assert (
        broken(found).text
        == "pod rating-1 is not ready: containers with unready status: [app] (41 min)"
    )
    assert found.sentence == "Not registered: its pod is not ready"
    assert found.fix == f"kubectl describe pod rating-1 -n {NS}"


def test_of_several_pods_those_that_are_not_ready_are_named() -> None:
    """The syncer is registered in part, and the exit code says so."""
    asked = Asked(endpoint(1), endpoint(2, ready=False))
    asked.fake.run()
    found = asked.why()
    assert (found.outcome, found.up, found.of) == (Outcome.PARTLY, 1, 2)
    assert found.sentence == "Registered in part: 1 of 2 UP as RATING; 1 of its 2 pods is not ready"
    assert code_of([found], asked.look(f"{NS}/rating")) == ExitCode.NOT_REGISTERED


def test_pods_that_may_not_be_looked_at_are_unknown_and_not_missing() -> None:
    """The verdict of the pass does not change."""
    asked = Asked(endpoint(1, ready=False))
    asked.details.pods = asked.details.selectors = DENIED
    assert "the reason could not be read: 403" in text(asked.why())


def test_a_service_that_selects_no_pod_shows_the_nearest() -> None:
    """The answer counts the pods with that label."""
    asked = Asked()
    asked.details.pods = Complete(data=(PodDetail(name="a", uid="u", labels={"app": "ratings"}),))
    asked.details.selectors = Complete(
        data=(ServiceSelector(name="rating", selector={"app": "rating"}),)
    )
    found = asked.why()
    assert broken(found).reason == "NoEndpoints"
    assert "Service rating selects app=rating: no pod has it; similar: app=ratings (1 pod)" in text(
        found
    )


def test_a_pod_without_an_address_says_what_it_waits_for() -> None:
    """The Service selects it, but it is no endpoint yet."""
    asked = Asked()
    waits = PodCondition(type="PodScheduled", true=False, message="0/1 nodes are available")
    asked.details.pods = Complete(
        data=(
            PodDetail(
                name="a", uid="u", labels={"app": "rating"}, phase="Pending", conditions=(waits,)
            ),
        )
    )
    asked.details.selectors = Complete(
        data=(ServiceSelector(name="rating", selector={"app": "rating"}),)
    )
    assert "pod a: not scheduled: 0/1 nodes are available" in text(asked.why())
    assert broken(asked.why(f"pod/{NS}/a")).reason == "NoEndpoints"


def test_a_limit_breaks_what_it_leaves_out_alone() -> None:
    """For the syncer the limit is a note. For the pod that has no place it is the cause."""
    asked = _registered(1, 2, limit=1)
    assert "2 pods are ready" in text(asked.why())
    whole = asked.why()
    assert whole.up == 1
    outside = [one for one in (asked.why(f"pod/{NS}/rating-{n}") for n in (1, 2)) if one.reason]
    assert [broken(one).reason for one in outside] == ["OverLimit"]
    assert "raise spec.limit" in outside[0].fix


def test_a_limit_of_zero_and_a_suspension_are_named() -> None:
    """Each has a reason of its own."""
    assert broken(_registered(1, limit=0).why()).reason == "LimitZero"
    assert broken(_registered(1, suspend=True).why()).reason == "Suspended"


def test_an_older_syncer_is_named_with_the_next_question() -> None:
    """The younger syncer's answer says who has the address."""
    asked = Asked(endpoint(1), one=syncer("older", created=1))
    asked.add(syncer(created=asked.fake.clock.now() + 5))
    asked.fake.run()
    found = asked.why()
    assert broken(found).reason == "Conflict"
    assert found.otherwise == f"eurekube-sync explain {NS}/older"
    both = {one.syncer: one.reason for one in asked.all(f"svc/{NS}/rating")}
    assert both == {f"{NS}/older": "", f"{NS}/rating": "Conflict"}


def test_a_deletion_is_reported() -> None:
    """The chain ends there."""
    asked = _registered(1)
    asked.add(replace(asked.syncer, deleted=asked.fake.clock.now()))
    assert broken(asked.why()).reason == "Deleting"


def test_a_held_removal_is_reported_before_its_cause() -> None:
    """The answer has the command to paste."""
    asked = _registered(1)
    asked.fake.cluster.slices = [
        replace(asked.fake.cluster.slices[0], endpoints=(endpoint(1, ready=False),))
    ]
    found = asked.why()
    assert broken(found).part is Part.BRAKE
    assert found.sentence.startswith("Still registered: 1 of 1 UP")
    assert "eurekube-sync run --approve " in found.fix
    assert "pod rating-1 is not ready" in text(found)


def test_a_class_that_nobody_serves_is_reported_at_once() -> None:
    """The syncer's options are for others, and no pass has written a status."""
    found = Asked(endpoint(1), one=syncer(syncerClass="internal")).why()
    assert (broken(found).part, broken(found).reason) == (Part.SERVED, "NoInstallation")
    assert "class internal" in found.sentence


def test_a_class_that_another_installation_serves_is_in_order() -> None:
    """The syncer's status shows that passes see it."""
    asked = Asked(endpoint(1), one=syncer(syncerClass="internal"))
    asked.in_scope(syncer_class="internal")
    asked.fake.run()
    asked.in_scope()
    assert asked.why().outcome is Outcome.REGISTERED


def test_a_syncer_that_no_pass_has_seen_for_minutes_is_not_served() -> None:
    """A new syncer waits for its first pass."""
    asked = Asked(endpoint(1))
    assert broken(asked.why()).reason == "NotYetRegistered"
    asked.fake.later(600)
    assert broken(asked.why()).reason == "NoInstallation"


def test_a_syncer_that_left_every_scope_is_not_served_once_its_leases_have_ended() -> None:
    """Its status still says that it is UP. While an instance is registered, another installation
    may serve it."""
    asked = _registered(1)
    asked.add(replace(asked.syncer, labels={"team": "nobody"}))
    asked.in_scope(selector=parse_selector("team=one"))
    assert asked.why().outcome is Outcome.REGISTERED
    asked.fake.registry.held.clear()
    assert broken(asked.why()).reason == "NoInstallation"


def test_eureka_without_an_instance_that_the_status_shows_means_that_it_expired() -> None:
    """No pass runs any more."""
    asked = _registered(1)
    asked.fake.registry.held.clear()
    found = asked.why()
    assert broken(found).reason == "Expired"
    assert "the leases expired, or Eureka lost its list" in found.sentence


def test_a_persons_status_is_reported_with_the_call_that_ends_it() -> None:
    """No pass would change it."""
    asked = _registered(1)
    held = asked.fake.registry.held[key(1)]
    out = InstanceStatus.OUT_OF_SERVICE
    asked.fake.registry.held[key(1)] = replace(
        held, instance=replace(held.instance, status=out, override=out)
    )
    found = asked.why()
    assert broken(found).reason == "OutOfService"
    assert found.sentence == "Registered, but not UP: a person set it OUT_OF_SERVICE"
    assert found.fix == f"curl -X DELETE http://eureka-1/eureka/apps/RATING/{key(1).id}/status"


def test_servers_that_differ_are_shown() -> None:
    """The answer gives the addresses. One server does not hold the instance."""
    asked = _registered(1)
    asked.servers["http://eureka-2/eureka"] = FakeWorld().registry
    assert "http://eureka-2/eureka does not hold it" in text(asked.why())


def test_instances_that_callers_still_find_in_a_cached_list_are_reported() -> None:
    """The answer says until when, at the latest."""
    asked = Asked(endpoint(1))
    asked.fake.registry = type(asked.fake.registry)(asked.fake.wire, asked.fake.clock, cache=30)
    asked.servers = {"http://eureka-1/eureka": asked.fake.registry}
    asked.fake.run()
    asked.fake.later(31)
    asked.fake.registry.list_instances()
    del asked.fake.registry.held[key(1)]
    assert "callers may still call 1 instance" in text(asked.why())


def test_without_eureka_the_links_of_the_cluster_are_reported() -> None:
    """The content of Eureka is unknown, and the exit code is Eureka's."""
    asked = _registered(1)
    asked.fake.registry.unreadable = DENIED
    found = asked.why()
    assert (found.outcome, found.up) == (Outcome.UNKNOWN, None)
    assert "what Eureka holds could not be looked at: 403" in text(found)
    assert code_of([found], asked.look(f"{NS}/rating")) == ExitCode.EUREKA_DENIED


def test_a_fault_in_the_cluster_does_not_say_what_eureka_holds() -> None:
    """An invalid spec keeps registered instances, and nobody could look for them."""
    asked = Asked(endpoint(1), one=syncer(mode="pods"))
    asked.fake.registry.unreadable = DENIED
    assert asked.why().sentence == "What Eureka holds is unknown; its spec is invalid"


def test_a_list_that_is_denied_is_unknown_and_the_rest_goes_on() -> None:
    """A denied list of slices is not an empty one. Eureka is read all the same."""
    asked = _registered(1)
    asked.fake.cluster.unknown[("slices", "*")] = DENIED
    asked.details.pods = Complete(data=(PodDetail(name="rating-1", uid="uid-of-rating-1"),))
    found = asked.why()
    assert (found.outcome, found.up) == (Outcome.UNKNOWN, 1)
    assert "could not be looked at: 403" in text(found)
    assert "Eureka holds 1 instance of this syncer, 1 UP" in text(found)


def test_syncers_that_may_not_be_listed_are_not_missing() -> None:
    """The same holds for other objects that nobody could read."""
    asked = _registered(1)
    asked.fake.cluster.unknown[("syncers", "*")] = DENIED
    found = asked.why()
    assert found.outcome is Outcome.UNKNOWN
    assert "there is no" not in text(found)


def test_a_cluster_that_may_not_say_who_it_is_is_explained_all_the_same() -> None:
    """The marks in Eureka name the cluster."""
    asked = _registered(1)
    asked.fake.cluster.uid = DENIED
    assert asked.why().outcome is Outcome.REGISTERED


def test_an_owner_that_nobody_names_is_found_in_eureka() -> None:
    """It is the only owner with marks there."""
    asked = _registered(1)
    asked.owner = ""
    assert asked.look(f"{NS}/rating").owner == asked.fake.owner
    assert asked.why().outcome is Outcome.REGISTERED


def test_an_unknown_owner_is_no_obstacle() -> None:
    """Eureka shows no owner, so the next pass registers the instance."""
    asked = Asked(endpoint(1))
    asked.owner = ""
    assert broken(asked.why()).reason == "NotYetRegistered"


@pytest.mark.parametrize(
    ("what", "reason", "says"),
    [
        (f"{NS}/ratin", "NoSyncer", f"there is {NS}/rating"),
        (f"svc/{NS}/nothing", "NothingFound", f"there is no Service {NS}/nothing"),
        (f"pod/{NS}/nothing", "NothingFound", f"there is no pod {NS}/nothing"),
        ("RATINGS", "NothingFound", f"EurekaSyncer {NS}/rating registers as RATING"),
        ("10.9.9.9", "NothingFound", "no syncer wants 10.9.9.9"),
    ],
)
def test_a_missing_object_is_reported_with_similar_ones(what: str, reason: str, says: str) -> None:
    """The answer explains nothing else."""
    found = _registered(1).why(what)
    assert (broken(found).reason, found.outcome) == (reason, Outcome.NOT_REGISTERED)
    assert says in text(found)


def test_a_service_that_no_syncer_selects_gets_the_smallest_one() -> None:
    """It can be applied as it is."""
    asked = Asked(endpoint(1))
    asked.remove()
    asked.details.selectors = Complete(
        data=(ServiceSelector(name="rating", selector={"app": "rating"}),)
    )
    found = asked.why(f"svc/{NS}/rating")
    assert broken(found).reason == "NoSyncer"
    assert found.manifest["spec"] == {"selector": {"service": "rating"}}


def test_a_workload_that_no_syncer_registers_gets_the_smallest_syncer_of_its_service() -> None:
    """As its pod and its Service do."""
    asked = Asked(endpoint(1))
    asked.remove()
    labels = {"app": "rating"}
    pod = PodDetail(
        name="rating-1", uid="uid-1", labels=labels, controller="ReplicaSet rating-6c9f"
    )
    asked.details.pods = Complete(data=(pod,))
    selects = ServiceSelector(name="ratings", selector=labels)
    asked.details.selectors = Complete(data=(selects,))
    of_pod, of_deployment = asked.why(f"pod/{NS}/rating-1"), asked.why(f"deploy/{NS}/rating")
    assert of_deployment.manifest["metadata"] == {"name": "ratings", "namespace": NS}
    assert of_deployment.manifest == of_pod.manifest


def test_a_syncer_that_nearly_selects_a_service_is_shown_instead() -> None:
    """The answer does not propose a second syncer."""
    asked = Asked(endpoint(1), services=[service(labels={"app": "ratings"})])
    asked.details.selectors = Complete(
        data=(ServiceSelector(name="rating", labels={"app": "ratings"}),)
    )
    found = asked.why(f"svc/{NS}/rating")
    assert not found.manifest
    assert f"EurekaSyncer {NS}/rating selects app=rating, and the Service has app=ratings" in text(
        found
    )


def test_a_pod_that_no_service_selects_is_reported() -> None:
    """The answer names the Service that nearly selects it."""
    asked = Asked(endpoint(1))
    asked.details.pods = Complete(data=(PodDetail(name="a", uid="u", labels={"app": "ratings"}),))
    asked.details.selectors = Complete(
        data=(ServiceSelector(name="rating", selector={"app": "rating"}),)
    )
    found = asked.why(f"pod/{NS}/a")
    assert broken(found).reason == "NotSelected"
    assert "Service rating selects app=rating, and the pod has app=ratings" in text(found)


def test_anothers_instance_is_not_ours() -> None:
    """It is registered, but by no syncer."""
    asked = _registered(1)
    other = foreign("dc-1", app="BILLING")
    asked.fake.registry.held[other.key] = other
    found = asked.why("BILLING")
    assert broken(found).reason == "NoSyncer"
    assert found.sentence.startswith("Registered, but by no syncer in scope")


def test_a_service_without_the_port_keeps_the_rest_of_the_chain() -> None:
    """The Service has two ports, and neither is http."""
    ports = (ServicePort(name="web", port=80), ServicePort(name="admin", port=9000))
    found = Asked(endpoint(1), services=[service("rating", *ports)]).why()
    assert broken(found).reason in ("AmbiguousPort", "NoSuchPort")
    assert "web (80), admin (9000)" in text(found)


@pytest.mark.parametrize("numbers", [(1,), (1, 2)])
def test_an_unknown_drain_is_reported_without_a_command_to_end_it(numbers: tuple[int, ...]) -> None:
    """The list of Pods fails, and the mark says that a pod was drained. It is unknown which
    annotation to remove."""
    asked = _registered(*numbers)
    asked.fake.pod_drains = True
    for one, held in list(asked.fake.registry.held.items()):
        marked = {**held.instance.metadata, DRAINED: "pod"}
        drained = replace(held.instance, status=InstanceStatus.DOWN, metadata=marked)
        asked.fake.registry.held[one] = replace(held, instance=drained)
    asked.fake.cluster.unknown["pods", NS] = DENIED
    found = next(link for link in asked.why().links if link.part is Part.DRAIN)
    assert (found.reason, found.fix) == ("Drained", "see that eurekube-sync can list Pods")
    assert found.text.startswith(
        "a person drained an instance, and it is unknown whether it is still drained"
    )
    assert ("(and 1 more)" in found.text) is (len(numbers) > 1)


@pytest.mark.parametrize("numbers", [(1,), (1, 2)])
def test_a_drain_names_the_object_and_the_command_that_ends_it(numbers: tuple[int, ...]) -> None:
    """All pods of a Service are drained by its annotation."""
    asked = _registered(*numbers)
    drained = replace(asked.fake.cluster.services[0], annotations={DRAIN_ANNOTATION: "true"})
    asked.fake.cluster.services[0] = drained
    found = broken(asked.why())
    more = " (and 1 more)" if len(numbers) > 1 else ""
    assert found.text == f"Service rating{more} has the annotation {DRAIN_ANNOTATION}"
    assert found.fix == f"kubectl annotate service rating -n {NS} {DRAIN_ANNOTATION}-"


@pytest.mark.parametrize(
    ("mark", "by", "what"),
    [
        ("pod", "a pod", "the pod"),
        ("service,pod", "a service and a pod", "the service and the pod"),
    ],
)
def test_a_drain_of_which_only_the_mark_is_left_names_the_kinds(
    mark: str, by: str, what: str
) -> None:
    """The annotation is gone, and no pass has followed yet."""
    asked = _registered(1)
    for one, held in list(asked.fake.registry.held.items()):
        marked = {**held.instance.metadata, DRAINED: mark}
        down = replace(held.instance, status=InstanceStatus.DOWN, metadata=marked)
        asked.fake.registry.held[one] = replace(held, instance=down)
    found = broken(asked.why())
    assert (found.reason, found.cause) == ("Drained", f"it is drained by {by}")
    assert found.fix == f"remove the annotation {DRAIN_ANNOTATION} from {what}"


def test_an_api_that_is_not_installed_is_no_fault_of_the_servers() -> None:
    """The answer is known, so the link is broken, and the fix is not to grant or to wait."""
    asked = Asked(endpoint(1), one=syncer(mode="service", service={"address": "Gateway"}))
    missing = Unknown(cause=Cause.API_MISSING, message="the Gateway API is not installed")
    asked.fake.cluster.unknown["routes", NS] = missing
    found = asked.why()
    assert (broken(found).part, found.reason) == (Part.ENDPOINTS, "APIMissing")
    assert missing.message in found.sentence
    assert found.fix == f"install the API, or kubectl edit esync rating -n {NS}"
    assert code_of([found], asked.look(f"{NS}/rating")) == ExitCode.NOT_REGISTERED
