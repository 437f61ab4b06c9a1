"""Approvals by a person: what they release, and what they do not."""

from __future__ import annotations

import pytest

from eurekube_sync.brake.approval import (
    APPROVE_ANNOTATION,
    PlanId,
    annotation_refused,
    annotation_releases,
    approved_by,
    parse_plan_id,
    refusal,
)
from eurekube_sync.model.actions import Cancel, Grounds, Removal, Update
from eurekube_sync.model.text import rfc_3339
from eurekube_sync.plan.value import removal_id
from tests.unit.worlds.build import DOWN, PROOF, REF, UP, instance, key, syncer

NOW = 1_800_000_000.0


def cancel(number: int) -> Cancel:
    """A cancel of an UP instance."""
    return Cancel(key=key(number), syncer=REF, why="", grounds=Grounds.ABSENCE, proof=PROOF, was=UP)


def down(number: int) -> Update:
    """A change from UP to DOWN."""
    wanted = instance(number, status=DOWN)
    return Update(
        instance=wanted, syncer=REF, why="", changes=(), was=UP, stored_timestamp=1, proof=PROOF
    )


def test_a_plan_id_is_twelve_hex_digits() -> None:
    """Anything else, such as the name of a file, is a wrong command line."""
    assert parse_plan_id(" 0123456789ab ") == str(PlanId("0123456789ab")) == "0123456789ab"
    for text in ("0123456789AB", "plan.json", "", "0123456789abc"):
        with pytest.raises(ValueError, match="is not a plan id; write its 12 hex digits"):
            parse_plan_id(text)


def test_a_plan_id_releases_exactly_the_set_that_is_held_or_planned() -> None:
    """It releases the held removals, or all planned removals. It never releases a part of them."""
    one, two, three = cancel(1), down(2), cancel(3)
    held: list[Removal] = [one, two]
    planned: list[Removal] = [one, two, three]
    assert approved_by(PlanId(removal_id(held)), planned, held) == {one.key, two.key}
    assert approved_by(PlanId(removal_id(planned)), planned, held) == {one.key, two.key, three.key}
    assert approved_by(PlanId(removal_id([one])), planned, held) == frozenset()
    assert approved_by(PlanId(removal_id([])), [], []) == frozenset()
    assert approved_by(None, planned, held) == frozenset()


def test_a_plan_id_is_valid_for_an_hour() -> None:
    """A plan id without a time is from this moment."""
    assert refusal(None, NOW) is None
    assert refusal(PlanId("0123456789ab"), NOW) is None
    assert refusal(PlanId("0123456789ab", given=NOW), NOW + 3600) is None
    assert "61 minutes ago" in str(refusal(PlanId("0123456789ab", given=NOW), NOW + 3660))


@pytest.mark.parametrize(
    ("text", "released", "why"),
    [
        (rfc_3339(NOW + 1), True, ""),
        (rfc_3339(NOW + 3600), True, ""),
        ("2027-01-15T09:30:00+01:00", True, ""),
        ("2027-01-15t08:30:00.5z", True, ""),
        (rfc_3339(NOW), False, "it expired at 2027-01-15T08:00:00Z"),
        (rfc_3339(NOW + 3601), False, "more than an hour ahead"),
        ("true", False, "'true' is not a time such as"),
        ("2027-01-15", False, "is not a time such as"),
        ("2027-01-15T08:30:00", False, "is not a time such as"),
        ("2027-13-15T08:30:00Z", False, "is not a time such as"),
        ("", False, "is not a time such as"),
        ("x" * 40, False, f"'{'x' * 40}' is not a time"),
        ("x" * 41, False, f"'{'x' * 40}...' is not a time"),
        ("x" * 300, False, f"'{'x' * 40}...' is not a time"),
    ],
)
def test_an_annotation_releases_for_an_hour_at_most(text: str, released: bool, why: str) -> None:
    """The condition gives the reason why an annotation is refused. The time here is
    2027-01-15T08:00:00Z."""
    asked = syncer(annotations={APPROVE_ANNOTATION: text})
    refused = annotation_refused(asked, NOW)
    assert annotation_releases(asked, NOW) is (refused is None) is released
    assert why in (refused or "")


def test_a_syncer_without_the_annotation_releases_nothing() -> None:
    """The condition mentions no annotation."""
    without = syncer(annotations={"eurekube.io/abandon": "true"})
    assert (annotation_refused(without, NOW), annotation_releases(without, NOW)) == (None, False)
