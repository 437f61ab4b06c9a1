"""An explanation counts only what is true of its syncer, and its next command leads to the cure."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.brake.holds import BrakeLimits
from eurekube_sync.desired.selector import parse_selector
from eurekube_sync.explain.links import Outcome, Part
from eurekube_sync.model.eureka import InstanceStatus
from eurekube_sync.model.kubernetes import PodDetail, PodReadiness
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.asked import Asked, broken, text
from tests.unit.worlds.build import NS, changed, endpoint, key, piece, syncer

# --- Another syncer has the addresses -------------------------------------------------------------


def _two_syncers(older: dict[str, Any] | None = None, **younger: Any) -> Asked:
    """The older of two syncers has registered both pods; the younger one gets nothing."""
    asked = Asked(endpoint(1), endpoint(2), one=syncer("older", **(older or {})))
    asked.fake.run()
    asked.fake.later(60)
    asked.add(syncer(created=asked.fake.clock.now(), **younger))
    asked.fake.run()
    asked.fake.later(5)
    return asked


def test_the_instances_of_an_older_syncer_are_not_those_of_the_younger_one() -> None:
    """Both would have the same ids."""
    asked = _two_syncers(vipAddress="blue")
    found = asked.why()
    assert (found.outcome, found.up, found.of) == (Outcome.NOT_REGISTERED, 0, 2)
    assert found.sentence == (f"Not registered: syncer {NS}/older is older and has the address")
    assert "Eureka holds no instance of this syncer" in text(found)
    assert "callers do not see" not in text(found)
    older = asked.why(f"{NS}/older")
    assert (older.outcome, older.up) == (Outcome.REGISTERED, 2)
    both = {explanation.syncer: explanation.up for explanation in asked.all("10.0.0.1")}
    assert both == {f"{NS}/older": 1, f"{NS}/rating": 0}


def test_an_instance_that_the_next_pass_gives_to_the_syncer_counts_as_its_own() -> None:
    """A syncer that was renamed has the instances of the old one."""
    asked = Asked(endpoint(1), one=syncer("older"))
    asked.fake.run()
    asked.remove()
    asked.add(syncer(created=asked.fake.clock.now()))
    found = asked.why()
    assert (found.outcome, found.up) == (Outcome.REGISTERED, 1)


def test_a_second_vip_address_is_given_to_the_syncer_that_has_the_addresses() -> None:
    """The other way is an app of its own."""
    found = _two_syncers(vipAddress="blue").why()
    assert broken(found).details == ("so nothing of it is registered under VIP blue",)
    assert found.fix == (
        "to have all VIP addresses, set spec.vipAddress to rating,blue in the other syncer, and "
        f"delete this one: kubectl edit esync older -n {NS}"
    )
    assert found.otherwise == (
        f"give this syncer an app of its own with spec.appName: kubectl edit esync rating -n {NS}"
    )


@pytest.mark.parametrize("older", ["rating", "blue,rating"])
def test_two_syncers_with_one_vip_address_need_two_apps_or_two_selections(older: str) -> None:
    found = _two_syncers({"vipAddress": older}).why()
    assert not broken(found).details
    assert found.fix == (
        "give this syncer an app of its own with spec.appName, or other Services, or delete it: "
        f"kubectl edit esync rating -n {NS}"
    )
    assert found.otherwise == f"eurekube-sync explain {NS}/older"


def test_the_syncer_of_another_namespace_is_not_edited() -> None:
    """Its team decides about it."""
    asked = _two_syncers()
    asked.remove()
    abroad = {"namespace": NS, "app": "rating"}
    asked.in_scope(allowed=frozenset({("shop", NS)}))
    asked.add(syncer("older", created=1))
    asked.add(syncer(namespace="shop", selector=abroad, vipAddress="blue"))
    asked.fake.run()
    found = asked.why("shop/rating")
    assert (found.outcome, found.up, found.reason) == (Outcome.NOT_REGISTERED, 0, "Conflict")
    assert found.fix.endswith(": kubectl edit esync rating -n shop")
    assert found.otherwise == f"eurekube-sync explain {NS}/older"


def test_an_older_syncer_that_is_suspended_is_named_as_such() -> None:
    """It registers nothing, and keeps others from doing it."""
    asked = Asked(endpoint(1), endpoint(2), one=syncer("older", suspend=True))
    asked.add(syncer(created=asked.fake.clock.now()))
    asked.fake.run()
    asked.fake.later(5)
    found = asked.why()
    assert (found.outcome, found.up) == (Outcome.NOT_REGISTERED, 0)
    assert broken(found).details == (f"syncer {NS}/older is suspended",)
    assert found.fix == (
        "set spec.suspend to false in the other syncer, or delete it: "
        f"kubectl edit esync older -n {NS}"
    )


# --- No installation serves it --------------------------------------------------------------------


def _moved(**spec: Any) -> Asked:
    """A syncer with two registered pods was given another class. Then the pods were replaced."""
    asked = Asked(endpoint(1), endpoint(2), one=syncer(**spec))
    asked.in_scope(syncer_class=spec.get("syncerClass"))
    asked.fake.run()
    asked.fake.later(60)
    new = {**asked.syncer.spec, "syncerClass": "" if spec else "dc-west"}
    asked.add(replace(asked.syncer, spec=new, generation=2))
    asked.fake.run()
    asked.fake.cluster.slices = [piece(endpoint(3), endpoint(4))]
    asked.fake.later(5)
    return asked


@pytest.mark.parametrize("spec", [{}, {"syncerClass": "internal"}], ids=["given", "taken"])
@pytest.mark.parametrize("what", [f"{NS}/rating", "RATING", "10.0.0.1:8080", key(1).id])
def test_a_class_that_no_installation_has_serves_nothing_whoever_renews(
    spec: dict[str, Any], what: str
) -> None:
    """The installation of the former class goes on renewing the instances of dead pods. Both
    screens say so, for each form of the question."""
    asked = _moved(**spec)
    found = asked.why(what)
    assert (broken(found).part, found.reason) == (Part.SERVED, "NoInstallation")
    assert found.outcome in (Outcome.NOT_REGISTERED, Outcome.PARTLY)
    assert "an installation of " in broken(found).details[0]
    (row,) = asked.overview().rows
    assert row.reason == "NoInstallation"


def test_before_the_pods_change_the_screens_say_the_same() -> None:
    """All that is desired is UP, and nobody will follow the next change."""
    asked = _moved()
    asked.fake.cluster.slices = [piece(endpoint(1), endpoint(2))]
    (row,) = asked.overview().rows
    assert (asked.why().reason, row.reason) == ("NoInstallation", "NoInstallation")


def test_a_class_that_another_installation_has_is_served_before_the_status_is_written() -> None:
    """Its instances have the class, and are renewed. The spec was changed a moment ago."""
    asked = Asked(endpoint(1), one=syncer(syncerClass="dc-west"))
    asked.in_scope(syncer_class="dc-west")
    asked.fake.run()
    asked.in_scope()
    asked.add(replace(asked.syncer, generation=2))
    found = asked.why("RATING")
    assert (found.outcome, found.syncer) == (Outcome.REGISTERED, f"{NS}/rating")
    assert "another installation serves it (class dc-west)" in text(found)
    (row,) = asked.overview().rows
    assert row.explanation.outcome is Outcome.REGISTERED


def test_labels_that_no_installation_selects_are_told_when_the_renewals_end() -> None:
    """Until then another installation may be at work: labels change no generation."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    asked.add(replace(asked.syncer, labels={"team": "nobody"}))
    asked.in_scope(selector=parse_selector("team=one"))
    asked.fake.later(100)
    assert asked.why().outcome is Outcome.REGISTERED
    asked.fake.later(100)
    (row,) = asked.overview().rows
    assert (asked.why().reason, row.reason) == ("NoInstallation", "NoInstallation")
    failed = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
    asked.fake.registry.unreadable = failed
    assert asked.why().reason == ""


# --- A deletion that is held ----------------------------------------------------------------------


def _deletion(ready: bool) -> Asked:
    """The removal of the only app's instances is held, because their syncer was deleted."""
    asked = Asked(endpoint(1), endpoint(2))
    asked.fake.run()
    asked.fake.brake = BrakeLimits(asked_percent=0, asked_floor=0)
    asked.fake.cluster.delete(asked.syncer.ref)
    asked.fake.later(10)
    if not ready:
        for name in ("rating-1", "rating-2"):
            uid = f"uid-of-{name}"
            asked.fake.cluster.readiness[uid] = PodReadiness(
                namespace=NS, name=name, uid=uid, ready=False, registered=False, running=False
            )
    return asked


@pytest.mark.parametrize("ready", [True, False])
def test_a_held_deletion_promises_no_removal_and_says_how_to_undo_it(ready: bool) -> None:
    """Both screens have the reason of the hold. While the pods run, the undo comes first."""
    asked = _deletion(ready)
    found = asked.why()
    assert (broken(found).part, found.reason) == (Part.BRAKE, "TooManyRemovals")
    assert "the syncer was deleted 10 s ago, and stays until its instances are gone" in text(found)
    assert "the next pass removes" not in text(found)
    ways = [found.fix, found.otherwise]
    if not ready:
        ways.reverse()
    undo, approve = ways
    assert undo.startswith(
        f"to keep the instances, kubectl annotate esync rating -n {NS} eurekube.io/abandon=true"
    )
    assert undo.endswith("/brake/#undoing-a-deletion")
    assert approve.startswith("if all held removals are right, eurekube-sync run --approve ")
    (row,) = asked.overview().rows
    assert (row.reason, row.explanation.up) == ("TooManyRemovals", 2)


def test_a_deletion_that_nothing_holds_is_waited_for() -> None:
    asked = Asked(endpoint(1))
    asked.fake.run()
    asked.fake.cluster.delete(asked.syncer.ref)
    found = asked.why()
    assert found.reason == "Deleting"
    assert found.fix.startswith("wait for the next pass")


def test_without_a_look_at_the_brake_a_held_deletion_promises_no_removal_either() -> None:
    """Eureka cannot be read. The condition of the last pass says that the removals are held."""
    asked = _deletion(ready=True)
    asked.fake.run()
    asked.fake.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
    found = asked.why()
    assert broken(found).part is Part.BRAKE
    assert broken(found).text.startswith("the last pass said: ")
    assert "the next pass removes" not in text(found)


# --- Instances of pods that are gone --------------------------------------------------------------


def _pods(*numbers: int) -> Complete[tuple[PodDetail, ...]]:
    pods = [PodDetail(name=f"rating-{n}", uid=f"uid-of-rating-{n}") for n in numbers]
    return Complete(data=tuple(pods))


def _replaced(asked: Asked, *numbers: int) -> Asked:
    """After a pass, these are the pods and the endpoints."""
    asked.fake.run()
    asked.fake.later(5)
    asked.fake.cluster.slices = [piece(*(endpoint(number) for number in numbers))]
    asked.details.pods = _pods(*numbers)
    return asked


@pytest.mark.parametrize("what", [f"{NS}/rating", "RATING"])
def test_dead_addresses_do_not_count_as_up(what: str) -> None:
    """All pods were replaced and no pass followed: nothing that is desired is registered."""
    asked = _replaced(Asked(endpoint(1), endpoint(2)), 3, 4)
    found = asked.why(what)
    assert (found.outcome, found.up, found.of) == (Outcome.NOT_REGISTERED, 0, 2)
    assert (
        "callers still call 10.0.0.1:8080, 10.0.0.2:8080: UP in Eureka, but their pods are gone"
        in text(found)
    )
    assert found.sentence == (
        "Not registered: no pass has registered it yet; 2 instances that are UP are of pods that "
        "are gone"
    )
    (row,) = asked.overview().rows
    assert (row.explanation.outcome, row.explanation.up, row.explanation.of) == (
        Outcome.NOT_REGISTERED,
        0,
        2,
    )


def test_the_living_instances_count() -> None:
    """One of two pods was replaced. A question about the other one names no dead address."""
    asked = _replaced(Asked(endpoint(1), endpoint(2)), 1, 3)
    found = asked.why()
    assert (found.outcome, found.up, found.of) == (Outcome.PARTLY, 1, 2)
    assert "callers still call 10.0.0.2:8080: UP in Eureka, but its pod is gone" in text(found)
    assert found.sentence == (
        "Registered in part: 1 of 2 UP as RATING; no pass has registered it yet; 1 instance that "
        "is UP is of a pod that is gone"
    )
    assert "gone" not in text(asked.why(f"pod/{NS}/rating-1"))


def test_without_the_pods_the_endpoints_decide() -> None:
    """Pods may not be listed. The next pass removes what has no endpoint."""
    asked = _replaced(Asked(endpoint(1)), 3)
    asked.details.pods = Unknown(cause=Cause.DENIED, message="403: you may not")
    found = asked.why()
    assert (found.outcome, found.up, found.of) == (Outcome.NOT_REGISTERED, 0, 1)
    assert "callers still call 10.0.0.1:8080: UP in Eureka, but it has no endpoint" in text(found)


def test_dead_addresses_of_a_syncer_that_nobody_serves_are_named() -> None:
    """The installation of the former class goes on renewing them."""
    asked = _moved()
    asked.details.pods = _pods(3, 4)
    found = asked.why()
    assert (found.reason, found.outcome, found.up) == (
        "NoInstallation",
        Outcome.NOT_REGISTERED,
        0,
    )
    assert "callers still call 10.0.0.1:8080, 10.0.0.2:8080" in text(found)


@pytest.mark.parametrize("spec", [{"suspend": True}, {"port": "admin"}], ids=str)
def test_dead_addresses_that_no_pass_removes_are_named(spec: dict[str, Any]) -> None:
    """The syncer is suspended, or not served."""
    asked = Asked(endpoint(1), endpoint(2))
    asked.fake.run()
    asked.add(replace(asked.syncer, spec={**asked.syncer.spec, **spec}, generation=2))
    found = _replaced(asked, 1, 3).why()
    assert found.up == 1
    assert "callers still call 10.0.0.2:8080: UP in Eureka, but its pod is gone" in text(found)


def test_what_the_brake_holds_counts_for_now() -> None:
    """It stays, and the link of the brake says what its pods do."""
    asked = _replaced(Asked(endpoint(1)))
    found = asked.why()
    assert (broken(found).part, found.outcome, found.up) == (Part.BRAKE, Outcome.PARTLY, 1)
    assert "callers still call" not in text(found)


# --- A status that a person set -------------------------------------------------------------------


def _put_out(*numbers: int) -> Asked:
    """Of three pods, a person set these OUT_OF_SERVICE in Eureka."""
    asked = Asked(endpoint(1), endpoint(2), endpoint(3))
    asked.fake.run()
    for number in numbers:
        asked.fake.registry.override(key(number), InstanceStatus.OUT_OF_SERVICE)
    asked.fake.run()
    return asked


def _status_of(number: int) -> str:
    return f"http://eureka-1/eureka/apps/RATING/{key(number).id}/status"


def test_the_command_ends_the_status_of_each_instance_in_question() -> None:
    asked = _put_out(1, 3)
    for what in (f"{NS}/rating", "RATING"):
        found = asked.why(what)
        assert found.reason == "OutOfService"
        assert found.fix == f"curl -X DELETE {_status_of(1)} {_status_of(3)}"
        assert found.otherwise == ""


@pytest.mark.parametrize("what", [key(3).id, f"pod/{NS}/rating-3", "10.0.0.3:8080"])
def test_a_question_about_one_instance_names_the_others_with_such_a_status(what: str) -> None:
    """Otherwise one would be cured, and the others forgotten."""
    found = _put_out(1, 2, 3).why(what)
    assert (
        "2 more instances of this syncer have such a status: 10.0.0.1:8080, 10.0.0.2:8080"
        in broken(found).details
    )
    assert found.fix == f"curl -X DELETE {_status_of(3)}"
    assert found.otherwise == (
        f"for all 3: curl -X DELETE {_status_of(1)} {_status_of(2)} {_status_of(3)}"
    )


def test_a_status_that_a_person_set_comes_before_one_that_ends_by_itself() -> None:
    """The first of them is DOWN, as before its next pass."""
    asked = _put_out(3)
    held = asked.fake.registry.held
    held[key(1)] = changed(held[key(1)], status=InstanceStatus.DOWN)
    found = asked.why()
    assert (found.reason, found.fix) == ("OutOfService", f"curl -X DELETE {_status_of(3)}")


def test_a_command_for_many_instances_has_an_end() -> None:
    numbers = range(1, 9)
    asked = Asked(*(endpoint(number) for number in numbers))
    asked.fake.run()
    for number in numbers:
        asked.fake.registry.override(key(number), InstanceStatus.OUT_OF_SERVICE)
    found = asked.why()
    assert found.fix == " ".join(["curl -X DELETE", *map(_status_of, range(1, 7))])
    assert "the command is for the first 6 of 8; explain again after it" in broken(found).details


# --- A namespace that left the installation -------------------------------------------------------


@pytest.mark.parametrize("what", [f"{NS}/rating", f"svc/{NS}/rating", f"pod/{NS}/rating-1"])
def test_a_namespace_out_of_scope_has_the_next_question(what: str) -> None:
    """The installation serves other namespaces."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    asked.in_scope(namespaces=frozenset({"shop", "pay"}))
    found = asked.why(what)
    assert found.outcome is Outcome.UNKNOWN
    assert found.sentence == (
        f"Unknown whether it is registered: namespace {NS} is outside of the scope of the "
        "installation: --namespace is pay, shop"
    )
    assert found.fix == f"eurekube-sync explain {what} -n {NS}"


def _left_behind(seconds: float) -> Asked:
    """No installation serves the namespace of a syncer that was deleted that long ago."""
    asked = Asked(endpoint(1))
    asked.fake.run()
    asked.fake.later(60)
    asked.fake.cluster.delete(asked.syncer.ref)
    asked.fake.later(seconds)
    asked.in_scope(namespaces=frozenset({NS}))
    asked.details.pods = _pods(1)
    return asked


RUN = f"eurekube-sync run -n {NS} --passes 3"


def test_a_deletion_that_no_pass_has_seen_yet_promises_nothing() -> None:
    found = _left_behind(10).why()
    assert found.reason == "Deleting"
    assert "stays until its instances are gone: no pass has seen the deletion yet" in text(found)
    assert found.fix == f"wait for the next pass; if none comes, make some: {RUN}"


def test_the_dead_addresses_of_a_deleted_syncer_are_named() -> None:
    """Its namespace is Terminating, and the pods are gone."""
    asked = _left_behind(10)
    asked.details.pods = _pods()
    found = asked.why()
    assert (found.outcome, found.up) == (Outcome.NOT_REGISTERED, 0)
    assert "callers still call 10.0.0.1:8080: UP in Eureka, but its pod is gone" in text(found)


def test_a_deletion_that_no_pass_sees_for_minutes_is_served_by_nobody() -> None:
    """A person has to make the passes, as the installation has no rights there any more."""
    found = _left_behind(200).why()
    assert (found.reason, broken(found).part) == ("NoInstallation", Part.SERVED)
    assert found.sentence == ("Registered in part: 1 of 1 UP; no installation seems to serve it")
    assert found.fix == (
        f"see that eurekube-sync runs, and for which namespaces, or make passes for it: {RUN}"
    )


def test_a_deletion_that_a_pass_has_seen_goes_on() -> None:
    """However long it waits, such as for a peer of Eureka that is away."""
    asked = _left_behind(10)
    asked.fake.registry.unreadable = Unknown(cause=Cause.UNAVAILABLE, message="no answer")
    asked.fake.run()
    asked.fake.later(300)
    asked.fake.run()
    found = asked.why()
    assert found.reason == "Deleting"
    assert "the next pass removes its instances" in text(found)


# --- A limit that follows others ------------------------------------------------------------------

FOLLOWS = "; so a release may leave out pods whose predecessors were registered"


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ({"share": "50%"}, f"the share counts the VIP's other UP instances of now{FOLLOWS}"),
        ("50%", f"the percentage counts the pods of now{FOLLOWS}"),
        (2, ""),
    ],
    ids=str,
)
def test_a_limit_that_others_change_says_so(limit: object, says: str) -> None:
    """Nothing removes what is registered when the others stop, so the loss comes with a release."""
    asked = Asked(endpoint(1), endpoint(2), endpoint(3), one=syncer(limit=limit))
    asked.fake.run()
    asked.fake.later(60)
    asked.fake.run()
    (note,) = [link for link in asked.why().links if link.part is Part.LIMIT]
    assert note.details == ((says,) if says else ())


def test_a_syncer_of_another_class_that_has_no_instance_is_served_by_its_status() -> None:
    """Its pod is not ready, as the installation of its class says."""
    asked = Asked(endpoint(1, ready=False), one=syncer(syncerClass="internal"))
    asked.in_scope(syncer_class="internal")
    asked.fake.run()
    asked.in_scope()
    found = asked.why("RATING")
    assert found.reason == "NotReady"
    assert "another installation serves it (class internal)" in text(found)
