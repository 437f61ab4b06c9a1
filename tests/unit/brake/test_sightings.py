"""Sightings: what a pass remembers of an unconfirmed removal, and what a new process reads in a
syncer's status."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from eurekube_sync.brake.confirm import Sightings, Statuses, unread_of
from eurekube_sync.brake.holds import BrakeLimits, Held, Hold, held_of
from eurekube_sync.model.kubernetes import SyncerRef, SyncerStatus
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.struct import replace
from eurekube_sync.plan.value import sorted_plan
from tests.unit.apply.test_status import status as status_of
from tests.unit.brake.test_brake import cancel, weigh
from tests.unit.worlds.build import (
    NS,
    REF,
    desired,
    endpoint,
    instance,
    observed,
    piece,
    service,
    stored,
    syncer,
)

NOW = 2_000_000.0
OTHER = SyncerRef(NS, "other")
A, B = "aaaaaaaaaaaa", "bbbbbbbbbbbb"


def held(*marks: str, syncer: SyncerRef | None = REF) -> Held:
    """A removal of the syncer for each of these marks, which awaits its confirmation."""
    found = held_of(
        Hold(
            reason=Reason.AWAITING_CONFIRMATION,
            why="app RATING would have no UP instance left",
            removals=(cancel(number),),
            syncer=syncer,
            mark=mark,
        )
        for number, mark in enumerate(marks)
    )
    assert found is not None
    return found


def told(mark: str, at: float | None, *, name: str = REF.name) -> Statuses:
    """The statuses of two syncers. One has this mark of a removal, first seen at this time."""
    since = None if at is None else int(at)
    status = SyncerStatus(observed_generation=1, unconfirmed_removal=mark, unconfirmed_since=since)
    return {REF: None, OTHER: None, SyncerRef(NS, name): status}


def first_look(of: Statuses, *, within: float = 620) -> dict[tuple[SyncerRef, str], float]:
    """Return what a process knows before its first pass."""
    return dict(Sightings().before(of, begun=5.0, now=NOW, within=within))


def whole(seen: Mapping[tuple[SyncerRef, str], float]) -> dict[tuple[SyncerRef, str], float]:
    """Keep the sightings of whole removals, without those of single instances."""
    return {(syncer, mark): age for (syncer, mark), age in seen.items() if mark in (A, B)}


NOTHING = told("", None)


def test_a_new_process_learns_of_the_first_pass_from_each_syncers_status() -> None:
    """One second is subtracted, because the status has whole seconds."""
    assert first_look(told(A, NOW - 30)) == {(REF, A): 29}
    assert first_look(told(B, NOW - 100, name="other")) == {(OTHER, B): 99}


@pytest.mark.parametrize(
    "of",
    [NOTHING, told(A, NOW), told(A, NOW + 10), told(A, None), told("", NOW - 30)],
    ids=["nothing awaited", "just now", "ahead", "no time", "no mark"],
)
def test_a_status_that_names_no_earlier_removal_counts_for_nothing(of: Statuses) -> None:
    """A time in the future comes from another machine's clock."""
    assert first_look(of) == {}


@pytest.mark.parametrize(("age", "counts"), [(619, True), (620, True), (621, False), (5000, False)])
def test_a_status_that_is_too_old_counts_for_nothing(age: float, counts: bool) -> None:
    """The outage may have ended meanwhile. A first pass is valid for 620 s."""
    assert bool(first_look(told(A, NOW - age))) is counts


def test_a_process_counts_from_its_first_look_as_long_as_it_sees_the_same() -> None:
    """Each pass keeps the age of a removal. A removal that it does not see again is forgotten at
    once."""
    memory = Sightings()
    memory.note(held(A), {}, begun=100, looked=100)
    for moment in (110, 120, 150):
        before = memory.before(NOTHING, begun=moment, now=NOW, within=620)
        assert whole(before) == {(REF, A): moment - 100}
        memory.note(held(A), before, begun=moment, looked=moment)
    memory.note(held(A, B), before, begun=150, looked=150)
    before = memory.before(NOTHING, begun=160, now=NOW, within=620)
    assert whole(before) == {(REF, A): 60, (REF, B): 10}
    memory.note(held(B), before, begun=160, looked=160)
    before = memory.before(NOTHING, begun=170, now=NOW, within=620)
    assert whole(before) == {(REF, B): 20}
    memory.note(None, before, begun=170, looked=170)
    assert memory.before(NOTHING, begun=180, now=NOW, within=620) == {}
    memory.note(held(B), {}, begun=180, looked=180)
    assert whole(memory.before(NOTHING, begun=181, now=NOW, within=620)) == {(REF, B): 1}


def test_only_the_time_between_two_passes_counts() -> None:
    """A new sighting counts from the time when its pass had read everything, to the begin of a
    later pass. A pass that takes long makes no known sighting younger."""
    memory = Sightings()
    memory.note(held(A), {}, begun=100, looked=112)
    before = memory.before(NOTHING, begun=120, now=NOW, within=620)
    assert whole(before) == {(REF, A): 8}
    memory.note(held(A, B), before, begun=120, looked=135)
    before = memory.before(NOTHING, begun=140, now=NOW, within=620)
    assert whole(before) == {(REF, A): 28, (REF, B): 5}


@pytest.mark.parametrize("looks", [[], ["note"], ["nothing"]])
def test_a_process_that_made_a_pass_heeds_no_status(looks: list[str]) -> None:
    """Its own sightings count, even if it saw nothing or could not look."""
    memory = Sightings()
    for look in looks:
        if look == "note":
            memory.note(None, {}, begun=1, looked=1)
        else:
            memory.nothing_seen()
    before = memory.before(told(A, NOW - 30), begun=2, now=NOW, within=620)
    assert before == ({} if looks else {(REF, A): 29})


def test_a_pass_that_could_not_look_confirms_nothing_that_was_seen_before_it() -> None:
    """The wait for the removal starts again."""
    memory = Sightings()
    memory.note(held(A), {}, begun=100, looked=100)
    memory.nothing_seen()
    assert memory.before(NOTHING, begun=130, now=NOW, within=620) == {}


def test_a_pass_keeps_what_it_could_not_look_at() -> None:
    """The time of the first look stays. Anything else that it does not see again is forgotten, and
    so is what was seen too long ago."""
    other = SyncerRef(REF.namespace, "other")
    seen = {(REF, A): 100.0, (REF, B): 620.0, (other, A): 100.0}
    memory = Sightings()
    memory.note(None, seen, begun=700, looked=710, unread=unread_of(seen, REF.__eq__, within=620))
    before = memory.before(NOTHING, begun=720, now=NOW, within=620)
    assert before == {(REF, A): 120}


@pytest.mark.parametrize(("pause", "counts"), [(119, True), (120, False), (500, False)])
def test_a_look_counts_for_a_while_after_the_last_one(pause: float, counts: bool) -> None:
    """Only the time since the last sighting matters, not the time since the first."""
    memory = Sightings()
    memory.note(held(A), {}, begun=100, looked=100)
    memory.note(held(A), {(REF, A): 100}, begun=200, looked=200)
    before = memory.before(NOTHING, begun=200 + pause, now=NOW, within=120)
    assert whole(before) == ({(REF, A): 100 + pause} if counts else {})


def test_an_orphan_has_no_syncer_and_a_hold_of_sizes_no_mark() -> None:
    """Neither is remembered as a whole removal of a syncer."""
    memory = Sightings()
    sizes = held_of(replace(hold, mark="") for hold in held(A).holds)
    for one in (held(A, syncer=None), sizes):
        memory.note(one, {}, begun=100, looked=100)
        assert memory.before(NOTHING, begun=130, now=NOW, within=620) == {}


def test_a_removal_has_a_mark_of_its_own() -> None:
    """Another set of instances is another removal, because the outage is larger, smaller or a new
    one."""
    marks = []
    for up in range(1, 6):
        for first in range(4):
            numbers = range(first, first + up)
            stands = observed(
                *(stored(instance(number)) for number in numbers),
                *(stored(instance(20 + number, app="web", ref=OTHER)) for number in range(9)),
            )
            found = weigh(
                sorted_plan([cancel(number) for number in numbers]), stands, BrakeLimits()
            ).held
            assert found is not None
            marks.append(found.holds[0].mark)
    assert len(set(marks)) == len(marks) == 20


def after(before: SyncerStatus | None, now: float, *holds: Hold) -> SyncerStatus:
    """Return the syncer's status after a pass with these holds at this time."""
    claims = desired([syncer(status=before)], [service()], [piece(endpoint(0))])
    return status_of(claims, stored(instance(0)), held=held_of(holds) if holds else None, now=now)


def waits(status: SyncerStatus) -> tuple[str, int | None]:
    return status.unconfirmed_removal, status.unconfirmed_since


def test_a_status_counts_the_wait_of_the_removal_that_it_names() -> None:
    """The wait starts again for another removal, or if its time is in the future. Otherwise the
    confirmation would come too early or too late."""
    (first,), (second,) = held(A).holds, held(B).holds
    sizes = replace(first, reason=Reason.TOO_MANY_REMOVALS, mark="")
    assert waits(after(None, 1000, first)) == (A, 1000)
    assert waits(after(after(None, 1000, first), 1030, first)) == (A, 1000)
    assert waits(after(after(None, 1000, first), 1000, first)) == (A, 1000)
    assert waits(after(after(None, 1000, first), 1030, second)) == (B, 1030)
    assert waits(after(after(None, 1000, sizes), 1030, first)) == (A, 1030)
    assert waits(after(after(None, 1000, first), 1030, replace(first, first=True))) == (A, 1030)
    assert waits(after(after(None, 2000, first), 1030, first)) == (A, 1030)
    assert waits(after(after(None, 1000), 1030, first)) == (A, 1030)
    assert waits(after(after(None, 1000, first), 1030, sizes)) == ("", None)
    assert waits(after(after(None, 1000, first), 1030)) == ("", None)


def test_removals_that_await_confirmation_are_named_beside_too_many_removals() -> None:
    """A syncer has pods that live among too many removals, and dead pods that await their
    confirmation."""
    sizes = replace(
        held(A).holds[0], reason=Reason.TOO_MANY_REMOVALS, mark="", removals=(cancel(3),)
    )
    found = after(None, 1000, sizes, *held(A).holds)
    assert waits(found) == (A, 1000)
    condition = found.condition("RemovalHeld")
    assert condition is not None
    assert condition.reason == "TooManyRemovals"


def test_a_condition_keeps_its_time_until_it_flips() -> None:
    """Its message may change. This is how Kubernetes defines lastTransitionTime."""
    (first,), (second,) = held(A).holds, held(B).holds

    def time_of(status: SyncerStatus) -> int:
        condition = status.condition("RemovalHeld")
        assert condition is not None
        return condition.last_transition

    held_first = after(None, 1000, first)
    assert time_of(after(held_first, 1030, second)) == 1000
    assert time_of(after(held_first, 1030, replace(first, first=True))) == 1000
    assert time_of(after(after(None, 1000), 1030, first)) == 1030
    assert time_of(after(held_first, 1030)) == 1030
