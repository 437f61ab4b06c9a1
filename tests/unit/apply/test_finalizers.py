"""When our finalizer is removed from a deleted syncer, and what it waits for."""

from __future__ import annotations

import pytest

from eurekube_sync.apply.kubernetes import look_elsewhere, waits_for
from eurekube_sync.apply.tally import PassResult
from eurekube_sync.desired.claims import Claim, Deleting, NotServed
from eurekube_sync.desired.spec import ABANDON_ANNOTATION, CLEANUP_FINALIZER, abandoned
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
from eurekube_sync.model.eureka import InstanceKey, ObservedInstance
from eurekube_sync.model.kubernetes import SyncerRef
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Complete, Unknown
from eurekube_sync.model.struct import replace
from eurekube_sync.observe.eureka import Observed, Unread
from eurekube_sync.plan.value import Plan
from tests.unit.worlds.build import (
    DENIED,
    PROOF,
    REF,
    UP,
    changed,
    desired,
    instance,
    key,
    observed,
    stored,
    syncer,
)

DELETED = 1000.0
SUCCESSOR = SyncerRef("rating", "successor")
CLAIM = Deleting(syncer=syncer(deleted=DELETED), spec=None, proof=PROOF, keys=frozenset({key()}))
CANCEL = Cancel(
    key=key(), syncer=REF, why="deleted", grounds=Grounds.SYNCER_DELETED, proof=PROOF, was=UP
)
UPDATE = Update(
    instance=instance(ref=SUCCESSOR),
    syncer=SUCCESSOR,
    why="",
    changes=(),
    was=UP,
    stored_timestamp=1,
    proof=PROOF,
)
REGISTER = Register(instance=instance(ref=SUCCESSOR), syncer=SUCCESSOR, why="")
OURS = stored(instance())
THEIRS = stored(instance(ref=SUCCESSOR))


def waits(
    *outcomes: Outcome,
    registry: Complete[Observed] | Unknown | None = None,
    wanted_by: dict[InstanceKey, SyncerRef] | None = None,
    claim: Deleting = CLAIM,
    plan: Plan = Plan(),  # noqa: B008 - immutable
    now: float = DELETED + 45,
    unseen: tuple[str, ...] | None = (),
) -> str | None:
    """Return what the deletion waits for, 45 s after it began."""
    result = PassResult(
        desired=replace(desired(), wanted_by=wanted_by or {}),
        registry=registry if isinstance(registry, Unknown) else asked_at(now, registry),
        plan=plan,
        held=None,
        outcomes=Outcomes.of(outcomes),
        now=now,
        unseen=unseen,
        cache=45,
        expires_after=600,
    )
    return waits_for(claim, result)


def asked_at(when: float, registry: Complete[Observed] | None) -> Complete[Observed]:
    """A list that was requested at this time, by default an empty one."""
    return Complete(data=replace(registry.data if registry else observed(), asked=when))


def fresh(*instances: ObservedInstance) -> Complete[Observed]:
    """A registry in which uncached reads found these instances, although the list did not show
    them."""
    return Complete(data=observed().refreshed({one.key: one for one in instances}))


def done(action: Cancel | Register | Renew | Update) -> Outcome:
    return Outcome(action=action, result=Result.DONE)


def failed(action: Cancel | Register | Renew | Update) -> Outcome:
    return Outcome(action=action, result=Result.FAILED, detail="Eureka did not answer")


def test_the_finalizer_is_removed_when_no_instance_is_left_or_can_be_hidden() -> None:
    """Every id was answered after its DELETE, the list shows none of them, and the deletion is 45 s
    old."""
    assert waits(done(CANCEL)) is None


def test_the_finalizer_stays_while_the_deletion_is_younger_than_the_list() -> None:
    """The server's cache may still hide a registration from just before the deletion."""
    assert "45 s old, so the finalizer stays until 45 s after the deletion began" in str(
        waits(done(CANCEL), now=DELETED + 44.9)
    )


def test_it_stays_until_the_other_servers_were_asked() -> None:
    """A deletion may become old enough during a pass. Then the next pass asks the other servers."""
    assert "45 s old, so the finalizer stays until 45 s after the deletion began" in str(
        waits(done(CANCEL), unseen=None)
    )


def test_the_finalizer_stays_while_a_server_may_hold_an_unlisted_instance() -> None:
    """The wait for a server that cannot be listed lasts as long as a lease without renewals."""
    away = ("http://two", "http://three")
    assert waits(done(CANCEL), unseen=away, now=DELETED + 599) == (
        "http://two and http://three could not be listed and may still hold an instance, "
        "which expires at the latest 600 s after the deletion began"
    )
    assert waits(done(CANCEL), unseen=away, now=DELETED + 600) is None


ENDING = replace(CLAIM, syncer=syncer(deleted=DELETED, finalizers=(CLEANUP_FINALIZER,)))
YOUNGER = replace(
    CLAIM, syncer=syncer("younger", deleted=DELETED + 40, finalizers=(CLEANUP_FINALIZER,))
)


def asked_about(*claims: Claim, registry: Observed | None = None) -> set[SyncerRef]:
    """Return the syncers about which other servers are asked, 45 s after the first deletion."""
    deleting = [claim.syncer for claim in claims if isinstance(claim, Deleting)]
    return set(
        look_elsewhere(
            deleting, replace(registry or observed(), asked=DELETED + 45), cache_seconds=45
        )
    )


def test_other_servers_are_asked_about_all_deletions_once_one_may_end() -> None:
    """Before that, all finalizers stay anyway."""
    living = NotServed(syncer=syncer("living"), spec=None, reason=Reason.INVALID_SPEC, message="")
    assert asked_about(ENDING, YOUNGER, living) == {REF, YOUNGER.syncer.ref}
    assert asked_about(YOUNGER, living) == set()


def test_no_other_server_is_asked_while_the_list_shows_an_instance() -> None:
    """The finalizer stays, whatever the other servers hold."""
    assert asked_about(ENDING, registry=observed(OURS)) == set()


def test_no_other_server_is_asked_about_what_does_not_wait() -> None:
    """One deletion is abandoned. The other has only another controller's finalizer."""
    abandon = replace(ENDING.syncer, annotations={ABANDON_ANNOTATION: "true"})
    theirs = replace(ENDING.syncer, finalizers=("example.com/theirs",))
    assert asked_about(*(replace(ENDING, syncer=one) for one in (abandon, theirs))) == set()


def test_every_pass_says_in_the_same_words_why_a_deletion_waits() -> None:
    """A message that counts seconds would cause a write of the status in every pass."""
    for passed, unseen in ((0, ()), (0, ("http://two",)), (45, ("http://two",))):
        said = {
            waits(done(CANCEL), unseen=unseen, now=DELETED + passed + later)
            for later in (0, 7, 31.5)
        }
        assert len(said) == 1
        assert None not in said


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_that_are_still_to_go_the_same_one_is_named(order: int) -> None:
    """The order of Eureka's list does not matter."""
    more = [stored(instance(number)) for number in (3, 2, 9, 1)][::order]
    said = str(waits(registry=fresh(*more), claim=replace(CLAIM, keys=frozenset())))
    assert (
        said == f"the deletion waits for 4 instances, such as {key(1)}: its removal was not tried"
    )


def test_the_finalizer_stays_while_eureka_cannot_be_read() -> None:
    """The message gives the reason why the registry is Unknown."""
    assert waits(done(CANCEL), registry=DENIED) == "Eureka could not be read: 403: grant list"


def test_the_finalizer_stays_while_the_list_still_shows_an_instance() -> None:
    """The list itself must show none, whatever the answers to the DELETEs."""
    shown = Complete(data=observed(OURS).refreshed({OURS.key: None}))
    assert "still shows instances of this syncer" in str(waits(done(CANCEL), registry=shown))


def test_the_finalizer_stays_when_a_cancel_failed() -> None:
    """Every id needs an answer, even if no list shows it."""
    assert (
        waits(failed(CANCEL))
        == f"the deletion waits for 1 instance, {key()}: Eureka did not answer"
    )


def test_it_stays_when_a_delete_was_not_tried() -> None:
    """An id without an outcome has no answer."""
    assert waits() == f"the deletion waits for 1 instance, {key()}: its removal was not tried"


def test_it_stays_while_the_brake_holds_the_cancel() -> None:
    """A renewal replaces the held cancel, and is no DELETE. This holds even if the list does not
    show the instance."""
    held = Renew(key=key(), syncer=REF, why="the removal of the instance is held (abc)", status=UP)
    assert "the removal of the instance is held (abc)" in str(
        waits(done(held), registry=fresh(OURS))
    )


def test_it_stays_when_a_read_failed() -> None:
    """The instance may still be registered."""
    unread = Complete(data=observed().refreshed({key(): Unread(why="timeout")}))
    why = (
        f"syncer {SUCCESSOR} claims it, and could not take it over: the instance could not be "
        "read again: timeout"
    )
    said = waits(registry=unread, wanted_by={key(): SUCCESSOR})
    assert said == f"the deletion waits for 1 instance, {key()}: {why}"


def test_the_finalizer_is_removed_when_a_successor_took_the_instance_over() -> None:
    """The successor registered the instance under its own mark, and must clean it up itself."""
    assert waits(done(UPDATE), registry=fresh(OURS)) is None


@pytest.mark.parametrize("due", [True, False], ids=["renewed", "not due"])
def test_it_stays_while_a_successor_only_renews_what_bears_our_mark(due: bool) -> None:
    """The successor is suspended, or its change is held. The message is the same whether the lease
    is due or not."""
    renewal = Renew(key=key(), syncer=SUCCESSOR, why="suspended", status=UP)
    said = waits(
        *([done(renewal)] if due else []),
        registry=fresh(OURS),
        wanted_by={key(): SUCCESSOR},
        plan=Plan(actions=(renewal,)),
    )
    why = f"syncer {SUCCESSOR} claims it, and could not take it over: suspended"
    assert said == f"the deletion waits for 1 instance, {key()}: {why}"


def test_it_stays_when_the_successor_failed_to_take_over() -> None:
    """The instance still has our mark."""
    assert "the deletion waits for" in str(waits(failed(UPDATE), registry=fresh(OURS)))


@pytest.mark.parametrize(
    "action", [REGISTER, Renew(key=key(), syncer=SUCCESSOR, why="", status=UP)]
)
def test_the_finalizer_is_removed_although_eureka_refuses_the_successor(
    action: Register | Renew,
) -> None:
    """No instance has our mark, so the refused successor does not hold up the deletion."""
    registry = fresh() if isinstance(action, Register) else fresh(THEIRS)
    assert waits(failed(action), registry=registry) is None


def test_the_finalizer_is_removed_while_a_successor_waits_for_a_ready_pod() -> None:
    """An endpoint that is never ready is never registered, so its id gets no answer. The successor
    is responsible for it."""
    assert waits(wanted_by={key(): SUCCESSOR}) is None


def test_the_finalizer_is_removed_when_the_id_belongs_to_others() -> None:
    """Another owner's instance is never cancelled, and does not delay the deletion."""
    assert waits(registry=fresh(changed(OURS, metadata={}))) is None


def test_nothing_is_waited_for_where_the_instances_stay() -> None:
    """Under `--policy upsert-only` no DELETE will come, and Eureka need not be read."""
    stay = replace(CLAIM, instances_stay=True)
    assert waits(claim=stay, registry=fresh(OURS), now=DELETED + 1) is None
    assert waits(claim=stay, registry=DENIED) is None


def test_a_renewal_of_its_own_is_no_delete_though_nothing_was_listed() -> None:
    """The removal is held or undecided. The renewal shows that the instance is registered."""
    held = Renew(key=key(), syncer=REF, why="the removal of the instance is held (abc)", status=UP)
    assert "the removal of the instance is held (abc)" in str(waits(done(held)))


def test_the_deletion_waits_for_instances_that_no_endpoint_gives_any_more() -> None:
    """Instances with the syncer's mark are cancelled even if its Services are gone."""
    claim = replace(CLAIM, keys=frozenset())
    assert "the deletion waits for" in str(waits(failed(CANCEL), registry=fresh(OURS), claim=claim))
    assert waits(done(CANCEL), registry=fresh(OURS), claim=claim) is None


@pytest.mark.parametrize(
    ("deleted", "value", "expected"),
    [
        (DELETED, "true", True),
        (DELETED, "yes", False),
        (None, "true", False),
        (DELETED, None, False),
    ],
)
def test_abandon_counts_only_on_a_deletion(
    deleted: float | None, value: str | None, expected: bool
) -> None:
    """The annotation ends a deletion without its clean-up. It has no effect on a syncer that is not
    being deleted."""
    annotations = {} if value is None else {ABANDON_ANNOTATION: value}
    assert abandoned(syncer(deleted=deleted, annotations=annotations)) is expected
