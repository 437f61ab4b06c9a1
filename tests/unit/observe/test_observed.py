"""The observed instances: how a list of Eureka is divided, and how uncached reads change it."""

from __future__ import annotations

import pytest

from eurekube_sync.desired.scope import Scope
from eurekube_sync.model.eureka import ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.ownership import CLUSTER, OWNER, SYNCER
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Unread, held_by_owners, marked_cluster, observe
from eurekube_sync.observe.installations import served_by_others
from tests.unit.worlds.build import (
    DOWN,
    NS,
    OWNERSHIP,
    REF,
    changed,
    foreign,
    instance,
    key,
    observed,
    stored,
)

OURS = stored(instance())
ELSEWHERE = stored(instance(2, ref=SyncerRef("elsewhere", "rating")))
TWIN = stored(instance(3), metadata={OWNER: "prod", CLUSTER: "another", SYNCER: "rating/rating"})
UNMARKED = stored(instance(4), metadata={OWNER: "prod", CLUSTER: OURS.metadata[CLUSTER]})
HERE = Scope(namespaces=frozenset({NS}))


def test_our_instances_are_those_with_our_marks_and_a_syncer_in_scope() -> None:
    """All others are never changed: instances of others, out of scope, or with an unreadable
    mark."""
    found = observed(OURS, ELSEWHERE, UNMARKED, foreign(), scope=HERE)
    assert set(found.ours) == {OURS.key}
    assert set(found.others) == {ELSEWHERE.key, UNMARKED.key, foreign().key}
    assert (found.clashes, found.listed) == ((), {REF: 1})


def test_without_chosen_namespaces_every_syncer_is_in_scope() -> None:
    """Without a choice every namespace is in scope."""
    assert set(observed(OURS, ELSEWHERE).ours) == {OURS.key, ELSEWHERE.key}
    assert not HERE.covers(SyncerRef("elsewhere", "rating"))


def test_another_cluster_under_our_name_is_reported() -> None:
    """Each such cluster is reported once, and its instances are not ours."""
    found = observed(TWIN, changed(TWIN, key=key(5)))
    assert (found.clashes, found.ours) == (("another",), {})


def test_another_owner_without_a_readable_mark_contests_no_syncer() -> None:
    """Of the instances of other owners in this cluster, only the mark says which syncer is meant."""
    marks = {**OURS.metadata, OWNER: "typo"}
    theirs = stored(instance(5), metadata=marks)
    unmarked = stored(instance(6), metadata={**marks, SYNCER: "rating"})
    assert served_by_others(observed(OURS, unmarked)) == frozenset()
    assert served_by_others(observed(OURS, unmarked, theirs)) == {REF}


def test_the_cluster_that_the_marks_name() -> None:
    """There must be one cluster in the marks, with a valid UID."""
    assert marked_cluster(Complete(data=(OURS, foreign())), "prod") == Complete(
        data=OURS.metadata[CLUSTER]
    )
    assert marked_cluster(Complete(data=(OURS, TWIN)), "prod") == Complete(data="")
    odd = stored(instance(6), metadata={OWNER: "prod", CLUSTER: "`<b>"})
    assert marked_cluster(Complete(data=(odd,)), "prod") == Complete(data="")
    assert marked_cluster(Unknown(cause=Cause.DENIED, message="no"), "prod") == Complete(data="")


@pytest.mark.parametrize(
    "later",
    [
        (OURS, foreign()),
        (replace(OURS, last_renewal=9000), foreign()),
        (foreign(), OURS),
        (OURS,),
        (changed(OURS, metadata={}), foreign()),
        (OURS, stored(instance(7)), foreign()),
        (stored(instance(7)), foreign()),
        (),
    ],
)
def test_a_list_is_divided_alike_whatever_was_listed_before(
    later: tuple[ObservedInstance, ...],
) -> None:
    """This holds if the marks or the scope have changed."""
    before = observed(OURS, foreign())
    for ownership, scope in (
        (OWNERSHIP, Scope()),
        (OWNERSHIP, HERE),
        (replace(OWNERSHIP, owner="test"), Scope()),
    ):
        anew, again = (
            observe(Complete(data=later), ownership, scope, asked=1, before=known)
            for known in (None, before)
        )
        assert again == anew
        assert again.keys_by_syncer == anew.keys_by_syncer


def test_an_instance_that_is_listed_twice_counts_once() -> None:
    """Another instance has changed its syncer, which the counts of the last list do not show."""
    other = stored(instance(2))
    moved = changed(other, metadata={**other.metadata, SYNCER: f"{NS}/another"})
    listed: tuple[ObservedInstance, ...] = (OURS, OURS, moved)
    anew, again = (
        observe(Complete(data=listed), OWNERSHIP, Scope(), asked=1, before=known)
        for known in (None, observed(OURS, other))
    )
    assert (again, again.keys_by_syncer) == (anew, anew.keys_by_syncer)


def test_the_index_of_the_same_instances_is_made_once() -> None:
    """Renewals in between do not matter."""
    before = observed(OURS, foreign())
    again = observe(
        Complete(data=(replace(OURS, last_renewal=9),)), OWNERSHIP, Scope(), asked=1, before=before
    )
    assert again.keys_by_syncer is before.keys_by_syncer


def test_a_fresh_read_replaces_what_the_list_showed() -> None:
    """One instance has changed, and others are gone, new, taken over or unreadable."""
    taken = changed(foreign(), key=key(3))
    before = observed(*(stored(instance(number)) for number in (1, 2, 3, 5)))
    after = before.refreshed(
        {
            key(1): stored(instance(1), status=DOWN),
            key(2): None,
            key(3): taken,
            key(4): stored(instance(4)),
            key(5): Unread(why="timeout"),
        }
    )
    assert after.ours[key(1)].status is DOWN
    assert set(after.ours) == {key(1), key(4), key(5)}
    assert after.others == {key(3): taken}
    assert set(after.unread) == {key(5)}
    assert after.listed == {REF: 4}  # the count of the list stays


def test_recent_writes_of_this_process_replace_what_the_list_shows() -> None:
    """An instance of others under our id is younger than our write. A cancelled instance that is
    listed may have come back."""
    theirs = changed(foreign(), key=key(3))
    before = observed(stored(instance(1)), stored(instance(2)), theirs)
    after = before.remembering(
        {key(1): stored(instance(1), status=DOWN), key(2): None, key(3): stored(instance(3))}
    )
    assert (set(after.ours), after.ours[key(1)].status) == ({key(1), key(2)}, DOWN)
    assert after.others == {key(3): theirs}


def test_an_instance_found_to_be_out_of_scope_is_no_longer_ours() -> None:
    """The scope has more information by then."""
    found = observed(OURS, ELSEWHERE).narrowed(HERE)
    assert (set(found.ours), set(found.others), found.scope) == ({OURS.key}, {ELSEWHERE.key}, HERE)


def test_while_the_cluster_is_unknown_whatever_bears_our_name_may_be_renewed() -> None:
    """It must be in scope and have a readable mark. Its cluster does not matter."""
    everything: Complete[tuple[ObservedInstance, ...]] = Complete(
        data=(OURS, ELSEWHERE, TWIN, UNMARKED, foreign())
    )
    assert held_by_owners(everything, {"prod"}, HERE) == (OURS, TWIN)
    assert held_by_owners(everything, {"other"}, Scope()) == ()


def test_instances_of_a_deleted_syncer_on_other_servers_are_ours_and_listed() -> None:
    """They count as listed too. Those of living syncers may be newer than the list, and are left
    out."""
    living = stored(instance(2, ref=SyncerRef(NS, "living")))
    before = observed(OURS, foreign())
    found = before.beside(
        (stored(instance(3)), OURS, living, foreign("other"), changed(TWIN, key=key(6))), {REF}
    )
    assert set(found.ours) == {OURS.key, key(3)}
    assert (found.others, found.listed) == (before.others, {REF: 2})
    assert before.beside((living,), {REF}) is before


def test_an_instance_that_was_just_registered_is_not_silent() -> None:
    """Eureka adds the lease's duration to the time of a renewal, and not to that of a registration.
    A server that restarts registers what another server holds, with the timestamps of before."""
    now = 1_000_000
    new = changed(
        stored(instance(1)), last_dirty_timestamp=0, last_renewal=now * 1000, registered=now * 1000
    )
    old = changed(new, key=key(2), last_renewal=(now - 200) * 1000, registered=(now - 900) * 1000)
    seen = replace(observed(new, old), newest=float(now))
    assert (seen.silent(new), seen.silent(old)) == (0.0, 500.0)
    assert seen.silent(replace(old, last_renewal=0)) == 0.0  # Eureka gives no time
