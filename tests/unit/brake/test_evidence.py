"""What the pods behind held removals say to the person who decides."""

from __future__ import annotations

import pytest

from eurekube_sync.brake.evidence import Advice, Evidence, PodState, evidence_of, pod_states
from eurekube_sync.brake.holds import Hold, held_of, held_together
from eurekube_sync.model.actions import Cancel, Grounds, Removal, Update
from eurekube_sync.model.kubernetes import PodReadiness
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Cause, Complete, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import DOWN, NS, PROOF, REF, UP, instance, key, stored

READY, NOT_READY, GONE = PodState.READY, PodState.NOT_READY, PodState.GONE


def cancel(number: int, grounds: Grounds = Grounds.ABSENCE) -> Cancel:
    return Cancel(key=key(number), syncer=REF, why="", grounds=grounds, proof=PROOF, was=UP)


def to_down(number: int) -> Update:
    return Update(
        instance=instance(number, status=DOWN),
        syncer=REF,
        why="",
        changes=(),
        was=UP,
        stored_timestamp=1,
        proof=PROOF,
    )


def of(*pods: PodState | None, removals: tuple[Removal, ...] = ()) -> Evidence:
    """The evidence of cancels without evidence of their own, one for each of these pods."""
    removals = removals or tuple(cancel(number) for number, _ in enumerate(pods))
    states = {}
    for removal, state in zip(removals, pods, strict=True):
        if state is not None:
            states[removal.key] = state
    return evidence_of(removals, states)


@pytest.mark.parametrize(
    ("pods", "advice", "sentence"),
    [
        ((READY,), Advice.WRONG_SELECTOR, "1 of 1 pod still runs and is Ready: "),
        ((READY, READY), Advice.WRONG_SELECTOR, "2 of 2 pods still run and are Ready: "),
        ((READY, GONE), Advice.SOME_RUN, "1 of 2 pods still runs and is Ready (1 gone): "),
        ((READY, None), Advice.SOME_RUN, "1 of 2 pods still runs and is Ready (1 unknown): "),
        ((NOT_READY, GONE), Advice.LOOK, "0 of 2 pods still run and are Ready (1 gone): "),
        ((GONE, GONE), Advice.GONE, "0 of 2 pods still run and are Ready (2 gone): "),
        ((GONE, None), Advice.UNKNOWN, "0 of 2 pods still run and are Ready (1 gone, 1 unknown): "),
        ((None, None), Advice.UNKNOWN, "it is unknown whether the pods still run: "),
        ((None,), Advice.UNKNOWN, "it is unknown whether the pod still runs: "),
    ],
)
def test_removals_that_nobody_asked_for(
    pods: tuple[PodState | None, ...], advice: Advice, sentence: str
) -> None:
    """While a pod may still serve, nobody is told that an approval does no harm."""
    found = of(*pods)
    assert found.advice is advice
    assert found.sentence == f"{sentence}{advice.text}"


@pytest.mark.parametrize(
    ("removals", "advice"),
    [
        ((to_down(0), to_down(1)), Advice.SLICES_BEHIND),
        ((to_down(0), cancel(1)), Advice.WRONG_SELECTOR),
        ((cancel(0, Grounds.SWEPT), cancel(1, Grounds.SWEPT)), Advice.SYNCER_MISSING),
        ((cancel(0, Grounds.ORPHANED), cancel(1)), Advice.SYNCER_MISSING),
        ((cancel(0, Grounds.SYNCER_DELETED), cancel(1, Grounds.DRAINED)), Advice.ASKED_FOR),
        ((cancel(0, Grounds.OVER_LIMIT), cancel(1)), Advice.WRONG_SELECTOR),
    ],
)
def test_pods_that_run_say_what_is_wrong(removals: tuple[Removal, ...], advice: Advice) -> None:
    """By the grounds of the removals. Somebody may have asked for all of them."""
    assert of(READY, READY, removals=removals).advice is advice


def pod(number: int, **changes: object) -> PodReadiness:
    name = f"rating-{number}"
    whole = PodReadiness(
        namespace=NS,
        name=name,
        uid=f"uid-of-{name}",
        ready=True,
        registered=False,
        running=True,
        addresses=(f"10.0.0.{number}",),
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def test_a_pod_is_known_by_its_uid_or_its_address() -> None:
    """A pod that took the address of the instance's pod serves its callers as well as before."""
    removals = [cancel(number) for number in range(5)]
    ours = {removal.key: stored(instance(number)) for number, removal in enumerate(removals)}
    pods = (
        pod(0, addresses=()),
        pod(1, uid="another"),
        pod(2, running=False),
        pod(3, uid="old", running=False),
        pod(3, uid="new"),
        pod(3, uid="ended", running=False),
    )
    states = pod_states(removals, ours, {NS: Complete(data=pods)})
    assert list(states.values()) == [READY, READY, NOT_READY, READY, GONE]


def test_a_namespace_that_was_not_read_says_nothing() -> None:
    """Neither does one that was not asked for."""
    ours = {key(1): stored(instance(1))}
    unread = Unknown(cause=Cause.DENIED, message="403")
    assert pod_states([cancel(1)], ours, {NS: unread}) == {}
    assert pod_states([cancel(1)], ours, {"bills": Complete(data=())}) == {}


def test_what_is_held_later_in_the_pass_keeps_what_was_read_before() -> None:
    """Adds that failed may hold more."""
    early = held_of([Hold(reason=Reason.TOO_MANY_REMOVALS, why="", removals=(cancel(1),))])
    late = held_of([Hold(reason=Reason.TOO_MANY_REMOVALS, why="", removals=(cancel(2),))])
    assert early is not None
    both = held_together(replace(early, pods={key(1): READY}), late)
    assert both is not None
    evidence = both.evidence()
    assert evidence is not None
    assert (evidence.counts[READY], evidence.counts[PodState.UNKNOWN]) == (1, 1)
