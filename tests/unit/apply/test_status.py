"""The status of each syncer after a pass, and which changes give an event."""

from __future__ import annotations

from typing import Any

import pytest

from eurekube_sync.apply.status import EarlierStatuses, flips, statuses
from eurekube_sync.apply.tally import PassResult
from eurekube_sync.brake.approval import APPROVE_ANNOTATION
from eurekube_sync.brake.holds import Held, Hold
from eurekube_sync.desired.claims import Desired, Incomplete, Kept, Serving
from eurekube_sync.desired.spec import ABANDON_ANNOTATION, parse
from eurekube_sync.model.actions import (
    Cancel,
    Grounds,
    Outcome,
    Outcomes,
    Register,
    Renew,
    Result,
    Update,
)
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import ConditionStatus, SyncerRef, SyncerStatus
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Observed
from eurekube_sync.plan.value import Blocked, Obstacle, Plan
from tests.unit.worlds.build import (
    DENIED,
    DOWN,
    NS,
    OUT,
    PROOF,
    REF,
    UP,
    desired,
    endpoint,
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

NOW = 2000.7
TWO = (piece(endpoint(1), endpoint(2)),)
BOTH = (stored(instance(1)), stored(instance(2)))


def claims(*, slices: Any = TWO, services: Any = None, **rest: Any) -> Desired:
    """The claims of one syncer with two pods."""
    return desired([syncer(**rest)], [service()] if services is None else services, slices)


def status(
    of: Desired,
    *stands: ObservedInstance,
    registry: Complete[Observed] | Unknown | None = None,
    plan: Plan | None = None,
    held: Held | None = None,
    outcomes: tuple[Outcome, ...] = (),
    waiting: str | None = None,
    now: float = NOW,
) -> SyncerStatus:
    """Return the status of the syncer `rating` after such a pass."""
    result = PassResult(
        desired=of,
        registry=registry or Complete(data=observed(*stands)),
        plan=plan or Plan(),
        held=held,
        outcomes=Outcomes.of(outcomes),
        now=now,
    )
    return statuses(result, {REF: waiting} if waiting else {})[REF]


def conditions(found: SyncerStatus) -> dict[str, tuple[str, str]]:
    """Return value and reason of each condition."""
    return {c.type: (c.status.value, c.reason) for c in found.conditions}


def message(found: SyncerStatus, type_: str = "Ready") -> str:
    """Return the message of one condition."""
    condition = found.condition(type_)
    assert condition is not None
    return condition.message


def failed(number: int, detail: str = "refused", result: Result = Result.FAILED) -> Outcome:
    """A failed registration."""
    return Outcome(
        action=Register(instance=instance(number), syncer=REF, why=""), result=result, detail=detail
    )


def test_a_syncer_in_order_is_ready() -> None:
    """All its pods are UP. No condition reports a problem."""
    found = status(claims(), *BOTH)
    assert conditions(found) == {
        "Ready": ("True", "InSync"),
        "Synced": ("True", "InSync"),
        "Conflict": ("False", "NoConflict"),
        "RemovalHeld": ("False", "NothingHeld"),
    }
    assert (found.ready, found.desired, found.registered, found.up, found.down) == (
        "2/2",
        2,
        2,
        2,
        0,
    )
    assert (found.app_name, found.vip_address, found.apps, found.errors) == (
        "RATING",
        "rating",
        ("RATING",),
        (),
    )
    assert message(found) == "2 of 2 UP as RATING"
    assert {c.last_transition for c in found.conditions} == {2000}


@pytest.mark.parametrize(
    ("stands", "ready", "expected"),
    [
        ((UP, DOWN), "1/2", ("True", "Differs")),
        ((DOWN, DOWN), "0/2", ("False", "NoneUp")),
        ((), "0/2", ("False", "NoneUp")),
    ],
)
def test_ready_means_that_callers_reach_something(
    stands: tuple[Any, ...], ready: str, expected: tuple[str, str]
) -> None:
    """One UP instance is enough."""
    found = status(claims(), *(stored(instance(n), status=one) for n, one in enumerate(stands, 1)))
    assert (found.ready, found.registered, conditions(found)["Ready"]) == (
        ready,
        len(stands),
        expected,
    )


def test_without_endpoints_it_is_not_ready() -> None:
    """It is Synced all the same."""
    found = conditions(status(claims(slices=(piece(),))))
    assert (found["Ready"], found["Synced"]) == (("False", "NoEndpoints"), ("True", "InSync"))


def test_an_instance_that_a_person_set_out_of_service_is_reported() -> None:
    """The instance is not changed."""
    found = status(claims(), stored(instance(1)), stored(instance(2), status=OUT))
    assert message(found) == "1 of 2 UP as RATING; 1 instance is set OUT_OF_SERVICE by hand"
    assert (found.up, found.down) == (1, 1)


def test_a_warning_is_in_the_message() -> None:
    """The syncer works, but the result may be unexpected."""
    assert "ra_ting is not a legal host name" in message(
        status(claims(vipAddress="ra_ting:8080"), *BOTH)
    )
    assert "not a legal host name" not in message(status(claims(vipAddress="rating:8080"), *BOTH))


def test_outcomes_count_over_what_was_listed() -> None:
    """A cancelled instance no longer counts. An unlisted instance without a syncer does not count
    either."""
    cancel = Cancel(key=key(2), syncer=REF, why="", grounds=Grounds.ABSENCE, proof=PROOF, was=UP)
    renew = Renew(key=key(1), syncer=REF, why="")
    done = (
        Outcome(action=renew, result=Result.DONE, status=UP),
        Outcome(action=cancel, result=Result.DONE),
        Outcome(action=Renew(key=key(9), syncer=None, why=""), result=Result.DONE, status=UP),
    )
    found = status(claims(), *BOTH, outcomes=done)
    assert (found.registered, found.up) == (1, 1)


def test_instances_of_a_missing_syncer_are_in_no_status() -> None:
    stands = stored(instance(5, ref=SyncerRef(NS, "gone")))
    assert status(claims(), *BOTH, stands).registered == 2


@pytest.mark.parametrize("result", [Result.FAILED, Result.HELD_BACK])
def test_failures_are_reported_in_a_limited_sample(result: Result) -> None:
    """Synced is False. Its message has the first failure, and the list has five."""
    found = status(
        claims(), *BOTH, outcomes=tuple(failed(n, "x" * 1100, result) for n in range(3, 10))
    )
    assert conditions(found)["Synced"] == ("False", "PartlyFailed")
    assert conditions(found)["Ready"] == ("False", "PartlyFailed")
    assert (len(found.errors), {len(error) for error in found.errors}) == (5, {1000})
    assert found.errors[0].endswith("...")


def test_a_single_failure_is_the_message() -> None:
    """With several failures, the message has the first and the number of the others."""
    assert message(status(claims(), outcomes=(failed(1),)), "Synced") == f"{key(1)}: refused"
    two = status(claims(), outcomes=(failed(2), failed(1)))
    assert message(two, "Synced") == f"{key(1)}: refused (and 1 more)"


def test_a_conflict_is_its_own_condition() -> None:
    """The conflict comes from the plan, from a registration that was repeated, or from an older
    syncer. Ready reports it rather than failures."""
    blocked = Blocked(
        key=key(1),
        syncer=REF,
        why="an instance without an owner is registered with the id that ours needs",
        obstacle=Obstacle.TAKEN,
    )
    renew = Renew(key=key(1), syncer=REF, why="")
    healed = Outcome(action=renew, result=Result.CONFLICT, detail="another's")
    for found in (
        status(claims(), plan=Plan(blocked=(blocked,)), outcomes=(failed(2),)),
        status(claims(), outcomes=(healed,)),
        status(desired([syncer(created=9), syncer("older", created=1)], [service()], TWO)),
    ):
        assert conditions(found)["Conflict"] == ("True", "Conflict")
        assert conditions(found)["Ready"] == ("False", "Conflict")


def test_an_instance_that_could_not_be_read_is_a_failure_not_a_conflict() -> None:
    """The next pass reads it again."""
    blocked = Blocked(key=key(1), syncer=REF, why="timeout", obstacle=Obstacle.UNREAD)
    found = conditions(status(claims(), plan=Plan(blocked=(blocked,))))
    assert (found["Synced"], found["Conflict"]) == (
        ("False", "PartlyFailed"),
        ("False", "NoConflict"),
    )


def test_a_command_with_many_namespaces_is_not_cut() -> None:
    """A person copies the command."""
    removal = Cancel(key=key(3), syncer=REF, why="", grounds=Grounds.ABSENCE, proof=PROOF, was=UP)
    hold = Hold(reason=Reason.TOO_MANY_REMOVALS, why="11 of 20 would go" * 10, removals=(removal,))
    result = PassResult(
        desired=claims(),
        registry=Complete(data=observed(*BOTH)),
        plan=Plan(),
        held=Held(plan_id="abc", holds=(hold,)),
        outcomes=Outcomes.of(()),
        now=NOW,
        options=[part for number in range(25) for part in ("-n", f"namespace-{number:03}")],
    )
    found = statuses(result, {})[REF]
    assert message(found, "RemovalHeld").endswith(" -n namespace-024 --approve abc")


def test_held_removals_are_reported_with_their_numbers_and_how_to_release_them() -> None:
    """Other syncers do not report them."""
    removal = Cancel(key=key(3), syncer=REF, why="", grounds=Grounds.ABSENCE, proof=PROOF, was=UP)
    hold = Hold(reason=Reason.TOO_MANY_REMOVALS, why="11 of 20 would go", removals=(removal,))
    held = Held(plan_id="abc", holds=(hold,))
    found = status(claims(), *BOTH, held=held)
    assert conditions(found)["RemovalHeld"] == ("True", "TooManyRemovals")
    assert conditions(found)["Ready"] == ("False", "TooManyRemovals")
    assert "The instance keeps its status and is renewed." in message(found, "RemovalHeld")
    assert message(found, "RemovalHeld").endswith(
        " of all syncers now: eurekube-sync run --approve abc"
    )
    theirs = replace(hold, removals=(replace(removal, syncer=SyncerRef(NS, "other")),))
    others = replace(held, holds=(theirs,))
    assert conditions(status(claims(), *BOTH, held=others))["RemovalHeld"] == (
        "False",
        "NothingHeld",
    )


def test_a_syncer_that_is_not_served_says_why_and_keeps_its_counts() -> None:
    """Its instances are still registered."""
    before = status(claims(), *BOTH)
    found = status(claims(services=(), status=before), *BOTH)
    assert (
        conditions(found)["Ready"] == conditions(found)["Synced"] == ("False", "NoMatchingService")
    )
    assert (found.ready, found.desired, found.registered) == ("2/2", 2, 2)
    assert (found.app_name, found.vip_address, found.apps) == ("RATING", "rating", ("RATING",))


def test_an_unknown_source_is_unknown_not_false() -> None:
    """An unknown source does not show whether the syncer is ready."""
    found = status(claims(slices=nowhere(DENIED)), *BOTH)
    assert conditions(found)["Ready"] == conditions(found)["Synced"] == ("Unknown", "SourceUnknown")


def test_while_eureka_cannot_be_read_the_last_counts_stay() -> None:
    before = status(claims(), *BOTH, stored(instance(3)))
    found = status(claims(status=before), registry=DENIED)
    assert (found.ready, found.registered, found.up, found.down) == ("2/2", 3, 3, 0)
    assert (
        conditions(found)["Ready"] == conditions(found)["Synced"] == ("Unknown", "RegistryUnknown")
    )
    fresh = status(claims(), registry=DENIED)
    assert (fresh.ready, fresh.registered) == ("0/2", 0)


@pytest.mark.parametrize(
    ("waiting", "expected"),
    [("Eureka is away", "Eureka is away"), (None, "Eureka still holds 2 instances of it")],
)
def test_a_deletion_says_what_it_waits_for(waiting: str | None, expected: str) -> None:
    """A deleted syncer desires no instances."""
    found = status(claims(deleted=1.0), *BOTH, waiting=waiting)
    assert conditions(found)["Ready"] == conditions(found)["Synced"] == ("False", "Deleting")
    assert message(found).endswith(expected)
    assert (found.ready, found.desired) == ("2/0", 0)


def test_a_deletion_that_waits_for_somebody_else_says_what_was_seen() -> None:
    """Only a list shows that the instances are gone."""
    assert message(status(claims(deleted=1.0))) == "its instances are gone"
    assert message(status(claims(deleted=1.0), registry=DENIED)).startswith(
        "it is not known whether its instances"
    )


def held_removals(*removals: Cancel | Update) -> Held:
    """Held removals of one pass that would remove too much."""
    hold = Hold(reason=Reason.TOO_MANY_REMOVALS, why="11 of 20 would go", removals=removals)
    return Held(plan_id="abc", holds=(hold,))


def test_held_removals_are_not_in_sync() -> None:
    """Eureka holds instances that should be removed. Synced says what the brake says."""
    gone = Cancel(key=key(3), syncer=REF, why="", grounds=Grounds.ABSENCE, proof=PROOF, was=UP)
    down = Update(
        instance=instance(2, status=DOWN),
        syncer=REF,
        why="",
        changes=(),
        was=UP,
        stored_timestamp=1,
        proof=PROOF,
    )
    found = status(claims(), *BOTH, stored(instance(3)), held=held_removals(gone))
    assert conditions(found)["Synced"] == conditions(found)["Ready"] == ("False", "TooManyRemovals")
    found = status(claims(), *BOTH, stored(instance(3)), held=held_removals(gone, down))
    assert message(found, "Synced") == message(found, "RemovalHeld")
    assert message(found, "Synced").startswith("2 removals of this syncer are held")


@pytest.mark.parametrize(
    ("stands", "spec", "expected"),
    [
        (BOTH[:1], {}, "1 instance is not registered yet"),
        (
            (BOTH[0], stored(instance(2), status=DOWN)),
            {},
            "1 instance is registered with the wrong status",
        ),
        (
            (BOTH[0], stored(instance(2), status=OUT)),
            {},
            "1 instance is set OUT_OF_SERVICE by hand",
        ),
        ((*BOTH, stored(instance(3))), {}, "1 instance is registered and no longer wanted"),
    ],
)
def test_in_sync_is_said_of_what_is_equal_alone(
    stands: tuple[ObservedInstance, ...], spec: dict[str, Any], expected: str
) -> None:
    """Any difference makes Synced False. Ready stays True while callers reach an instance."""
    found = status(claims(**spec), *stands)
    assert (conditions(found)["Synced"], message(found, "Synced")) == (
        ("False", "Differs"),
        expected,
    )
    assert conditions(found)["Ready"] == ("True", "Differs")


def test_an_instance_that_was_never_ready_is_missed_by_nobody() -> None:
    """An endpoint is registered only after it was ready once, so nothing differs."""
    found = status(claims(slices=(piece(endpoint(1), endpoint(2, ready=False)),)), BOTH[0])
    assert conditions(found)["Synced"] == ("True", "InSync")


def test_a_conflict_is_not_in_sync() -> None:
    """Another owner's instance is registered in place of ours."""
    for obstacle, reason in (
        (Obstacle.TAKEN, "Conflict"),
        (Obstacle.DUPLICATE, "DuplicateRegistration"),
    ):
        blocked = Blocked(key=key(1), syncer=REF, why="another's", obstacle=obstacle)
        found = status(claims(), BOTH[1], plan=Plan(blocked=(blocked,)))
        assert conditions(found)["Synced"] == conditions(found)["Ready"] == ("False", reason)
        all_of_it = tuple(replace(blocked, key=key(n)) for n in (1, 2))
        found = status(claims(), plan=Plan(blocked=all_of_it))
        assert (found.ready, conditions(found)["Synced"]) == ("0/2", ("False", reason))


def test_an_endpoint_that_is_not_understood_is_not_in_sync() -> None:
    """Its registered instance is renewed, and the syncer stays Ready."""
    of = claims(slices=(piece(endpoint(1)),))
    claim = of.claims[REF]
    assert isinstance(claim, Serving)
    kept = {key(2): Kept(why="its labels are not known", host="10.0.0.2", port=8080)}
    found = status(
        replace(of, claims={REF: replace(claim, verdicts={**claim.verdicts, **kept})}), *BOTH
    )
    assert conditions(found)["Synced"] == ("False", "EndpointUnclear")
    assert message(found, "Synced") == "its labels are not known; registered instances are renewed"
    assert conditions(found)["Ready"] == ("True", "EndpointUnclear")


def test_an_invalid_annotation_of_the_syncer_is_reported() -> None:
    """This does not depend on whether the syncer is being deleted. A valid annotation is not
    mentioned."""
    typed = claims(deleted=1.0, annotations={ABANDON_ANNOTATION: "yes" * 20})
    told = (
        f'annotation {ABANDON_ANNOTATION}: {("yes" * 20)[:40] + "..."!r} is ignored: write "true"'
    )
    assert message(status(typed), "Synced") == f"its instances are gone; {told}"
    assert message(status(typed)) == message(status(typed), "Synced")
    alive = claims(annotations={ABANDON_ANNOTATION: "True"})
    assert message(status(alive, *BOTH)).endswith("'True' is ignored: write \"true\"")
    assert (
        message(status(claims(annotations={ABANDON_ANNOTATION: "false"}), *BOTH))
        == "2 of 2 UP as RATING"
    )


def test_only_the_first_ten_apps_are_listed() -> None:
    """A selector may match many Services."""
    services = [service(f"app{number:02}") for number in range(12)]
    slices = [piece(endpoint(number), service=f"app{number:02}") for number in range(12)]
    found = status(desired([syncer(selector={"matchLabels": {"app": "rating"}})], services, slices))
    assert (len(found.apps), found.app_name) == (10, "APP00")


def test_a_pass_that_changes_nothing_gives_the_same_status() -> None:
    """So the status is not written. A condition's time changes only with its value."""
    for of in (claims(), claims(services=()), claims(slices=nowhere(DENIED)), claims(deleted=1.0)):
        before = status(of, *BOTH)
        (claim,) = of.claims.values()
        told = replace(
            of, claims={REF: replace(claim, syncer=replace(claim.syncer, status=before))}
        )
        assert status(told, *BOTH, now=NOW + 1000) == before


def test_the_time_of_a_condition_moves_when_its_value_flips_and_only_then() -> None:
    """A new reason or message alone is no transition. The new generation is reported."""
    before = status(claims(), *BOTH)
    less = status(claims(status=before, generation=2), stored(instance(1)), now=3000)
    ready = less.condition("Ready")
    assert ready is not None
    assert (ready.last_transition, ready.observed_generation, less.observed_generation) == (
        2000,
        2,
        2,
    )
    none = status(claims(status=less), now=4000).condition("Ready")
    assert none is not None
    assert (none.status, none.last_transition) == (ConditionStatus.FALSE, 4000)


def events(
    before: SyncerStatus | None, of: Desired, found: SyncerStatus
) -> list[tuple[str, bool, str]]:
    """Return reason, warning and key of each event."""
    (claim,) = of.claims.values()
    told = replace(claim, syncer=replace(claim.syncer, status=before))
    return [(event.reason, event.warning, event.key) for event in flips(told.syncer, found)]


def test_events_are_written_on_flips_only() -> None:
    """The first Ready gives an event. A condition that begins without a problem gives none, and
    neither does an equal status."""
    good = status(claims(), *BOTH)
    assert events(None, claims(), good) == [("InSync", False, "Ready=True")]
    assert events(good, claims(), good) == []
    assert events(good, claims(), status(claims(), stored(instance(1)))) == []


def test_trouble_that_comes_and_goes_is_an_event_each() -> None:
    """The start is a warning. The end is a normal event."""
    good = status(claims(), *BOTH)
    blocked = Blocked(key=key(1), syncer=REF, why="another's", obstacle=Obstacle.TAKEN)
    bad = status(claims(), plan=Plan(blocked=(blocked,)))
    assert events(good, claims(), bad) == [("Conflict", True, "Conflict=True")], (
        "Ready=False has the same text"
    )
    assert events(bad, claims(), good) == [
        ("InSync", False, "Ready=True"),
        ("NoConflict", False, "Conflict=False"),
    ]
    assert events(None, claims(), bad) == events(good, claims(), bad)


def test_one_trouble_is_one_event() -> None:
    """Ready reports one problem in the same words, without another event. A second problem has its
    own event."""
    good = status(claims(), *BOTH)
    gone = Cancel(key=key(3), syncer=REF, why="", grounds=Grounds.ABSENCE, proof=PROOF, was=UP)
    held = status(claims(), *BOTH, stored(instance(3)), held=held_removals(gone))
    assert events(good, claims(), held) == [("TooManyRemovals", True, "RemovalHeld=True")]
    twin = Blocked(key=key(1), syncer=REF, why="another's", obstacle=Obstacle.DUPLICATE)
    both = status(
        claims(), *BOTH, stored(instance(3)), held=held_removals(gone), plan=Plan(blocked=(twin,))
    )
    assert events(good, claims(), both) == [
        ("DuplicateRegistration", True, "Conflict=True"),
        ("TooManyRemovals", True, "RemovalHeld=True"),
    ]


def test_the_end_of_a_trouble_is_an_event_with_words() -> None:
    """Its condition needs none, but an event without a message says nothing in a list of events."""
    good = status(claims(), *BOTH)
    gone = Cancel(key=key(3), syncer=REF, why="", grounds=Grounds.ABSENCE, proof=PROOF, was=UP)
    twin = Blocked(key=key(1), syncer=REF, why="another's", obstacle=Obstacle.DUPLICATE)
    both = status(
        claims(), *BOTH, stored(instance(3)), held=held_removals(gone), plan=Plan(blocked=(twin,))
    )
    (told,) = claims(status=both).claims.values()
    messages = {event.reason: event.message for event in flips(told.syncer, good)}
    assert messages["NothingHeld"] == "no removal is held any more"
    assert messages["NoConflict"] == "no other instance or syncer is in the way any more"


def test_not_knowing_is_a_warning() -> None:
    """Ready changes from True to Unknown."""
    good, unknown = status(claims(), *BOTH), status(claims(), registry=DENIED)
    assert events(good, claims(), unknown) == [("RegistryUnknown", True, "Ready=Unknown")]


def test_an_event_names_its_syncer() -> None:
    """The event's name comes from uid, reason and key. So an equal event is counted, not
    repeated."""
    (claim,) = claims().claims.values()
    (event,) = flips(claim.syncer, status(claims(), *BOTH))
    assert (event.syncer, event.uid, event.message) == (
        REF,
        claim.syncer.uid,
        "2 of 2 UP as RATING",
    )


@pytest.mark.parametrize(
    ("result", "cause", "expected"),
    [
        (
            Result.FAILED,
            Cause.UNAVAILABLE,
            "1 call to Eureka for this syncer did not succeed: Eureka was unavailable, or no time "
            "was left",
        ),
        (Result.FAILED, Cause.DENIED, "1 call to Eureka for this syncer got a refusal"),
        (
            Result.NOT_TRIED,
            None,
            "1 call to Eureka for this syncer did not succeed: Eureka was unavailable, or no time "
            "was left",
        ),
        (Result.FAILED, None, f"{key(1)}: timeout 17"),
        (Result.HELD_BACK, None, f"{key(1)}: timeout 17"),
    ],
)
def test_trouble_of_the_whole_server_is_counted_not_quoted(
    result: Result, cause: Cause | None, expected: str
) -> None:
    """The texts differ with each call. A quoted text would cause a write of the status in each
    pass."""
    action = Register(instance=instance(1), syncer=REF, why="")
    outcome = Outcome(action=action, result=result, detail="timeout 17", cause=cause)
    assert status(claims(), outcomes=(outcome,)).errors == (expected,)


def test_instances_that_could_not_be_read_are_counted() -> None:
    """Their texts differ with each call, too."""
    blocked = tuple(
        Blocked(key=key(n), syncer=REF, why=f"timeout {n}", obstacle=Obstacle.UNREAD)
        for n in (1, 2)
    )
    assert status(claims(), plan=Plan(blocked=blocked)).errors == (
        "2 instances were not changed, because they could not be read again",
    )


def test_an_address_that_is_awaited_is_a_condition() -> None:
    """Ready and Synced report it, and registered instances are renewed."""
    waiting = Incomplete(reason=Reason.ADDRESS_PENDING, message="Service rating waits")
    claim = Serving(
        syncer=syncer(),
        spec=parse(syncer()),
        proof=PROOF,
        incomplete=(waiting,),
        apps=("RATING",),
        vip_address="rating",
    )
    of = Desired(claims={REF: claim}, wanted_by={}, syncers=listed([syncer()]))
    found = status(of, *BOTH)
    assert conditions(found)["Ready"] == conditions(found)["Synced"] == ("False", "AddressPending")
    assert message(found) == "Service rating waits; registered instances are renewed"
    assert (found.ready, found.desired, found.registered, found.app_name) == ("2/2", 2, 2, "RATING")
    later = status(Desired(claims={REF: replace(claim, syncer=syncer(status=found))}, wanted_by={}, syncers=of.syncers),
                   registry=DENIED)  # fmt: skip
    assert (later.ready, later.desired) == ("2/2", 2)


def test_a_kept_instance_counts_as_desired() -> None:
    """An instance that terminates does not count."""
    kept = {key(2): Kept(why="its labels are not known", host="10.0.0.2", port=8080)}
    of = claims(slices=(piece(endpoint(1), endpoint(3, ready=False, terminating=True)),))
    claim = of.claims[REF]
    assert isinstance(claim, Serving)
    of = replace(of, claims={REF: replace(claim, verdicts={**claim.verdicts, **kept})})
    assert status(of, *BOTH, stored(instance(3))).ready == "2/2"


def test_waiting_for_an_address_warns_nobody() -> None:
    """The event is a normal one, because the wait ends by itself."""
    waiting = Incomplete(reason=Reason.ADDRESS_PENDING, message="Service rating waits")
    claim = Serving(syncer=syncer(), spec=parse(syncer()), proof=PROOF, incomplete=(waiting,))
    of = Desired(claims={REF: claim}, wanted_by={}, syncers=listed([syncer()]))
    assert [(event.reason, event.warning) for event in flips(claim.syncer, status(of))] == [
        ("AddressPending", False)
    ]


def written(of: Desired, found: SyncerStatus) -> Desired:
    """The same claim after its status was written."""
    claim = of.claims[REF]
    return replace(of, claims={REF: replace(claim, syncer=replace(claim.syncer, status=found))})


def twice(
    of: Desired, *stands: ObservedInstance, then: tuple[ObservedInstance, ...], later: Any = None
) -> bool:
    """Return whether a second pass reuses the first pass's status object, instead of computing an
    equal one."""
    earlier = EarlierStatuses()
    results = [
        PassResult(
            desired=of,
            registry=registry,
            plan=Plan(),
            held=None,
            outcomes=Outcomes.of(()),
            now=NOW + at,
        )
        for at, registry in enumerate(
            (Complete(data=observed(*stands)), later or Complete(data=observed(*then)))
        )
    ]
    stood = of.claims[REF].syncer.status
    first, second = (statuses(result, {}, earlier=earlier)[REF] for result in results)
    assert second == statuses(results[1], {})[REF]
    assert first is not stood
    return second is stood


def test_an_unchanged_status_is_used_again() -> None:
    """The claim and the registered instances are the same."""
    steady = written(claims(), status(claims(), *BOTH))
    assert twice(steady, *BOTH, then=BOTH)
    assert not twice(steady, *BOTH, then=(BOTH[0], stored(instance(2), status=DOWN)))
    assert not twice(steady, *BOTH, then=BOTH, later=DENIED)


@pytest.mark.parametrize(
    "annotation",
    [{APPROVE_ANNOTATION: "1970-01-01T00:33:21Z"}, {APPROVE_ANNOTATION: "2026-01-31T12:00:00Z"}],
)
def test_a_status_that_the_clock_changes_is_worked_out(annotation: dict[str, str]) -> None:
    """A status that is not written yet depends on the time of its change. A release ends at its
    time."""
    assert not twice(claims(), *BOTH, then=BOTH)
    released = claims()
    claim = released.claims[REF]
    released = replace(
        released, claims={REF: replace(claim, syncer=replace(claim.syncer, annotations=annotation))}
    )
    assert not twice(written(released, status(released, *BOTH)), *BOTH, then=BOTH)


def test_kept_instances_are_counted_again() -> None:
    """The syncer's claim does not list them."""
    kept = claims(services=[service(), service("second")])
    assert not twice(written(kept, status(kept, *BOTH)), *BOTH, then=BOTH)


def test_a_status_is_not_used_again_after_more_than_renewals() -> None:
    """Nor if Eureka could not be read. The plan is the same each time."""
    steady, plan, earlier = written(claims(), status(claims(), *BOTH)), Plan(), EarlierStatuses()
    cancel = Cancel(key=key(2), syncer=REF, why="", grounds=Grounds.ABSENCE, proof=PROOF, was=UP)
    changes = Outcomes.of([Outcome(action=cancel, result=Result.DONE)])

    def after(outcomes: Outcomes, registry: Any = None) -> SyncerStatus:
        registry = registry or Complete(data=observed(*BOTH))
        result = PassResult(
            desired=steady, registry=registry, plan=plan, held=None, outcomes=outcomes, now=NOW
        )
        found = statuses(result, {}, earlier=earlier)[REF]
        assert found == statuses(result, {})[REF]
        return found

    first = after(Outcomes.of(()))
    assert after(Outcomes.of(())) is steady.claims[REF].syncer.status is not first
    assert after(changes).registered == 1
    assert after(Outcomes.of(()), DENIED).registered == 2
    assert after(Outcomes.of(())) == first
