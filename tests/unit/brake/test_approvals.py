"""Approvals by a person: what they release, and what they do not."""

from __future__ import annotations

import time
from typing import Any

import pytest

from eurekube_sync.brake.approval import (
    APPROVE_ANNOTATION,
    PlanId,
    SavedDryRun,
    annotation_refused,
    annotation_releases,
    from_dry_run,
    is_plan_id,
    refusal,
    released_by,
)
from eurekube_sync.model.actions import Cancel, Grounds, Removal, Update
from eurekube_sync.model.errors import ConfigurationError
from eurekube_sync.model.ownership import Ownership
from eurekube_sync.model.wording import rfc_3339
from eurekube_sync.plan.value import removal_id
from tests.unit.worlds.build import (
    CLUSTER,
    DOWN,
    OWNER,
    OWNERSHIP,
    PROOF,
    REF,
    UP,
    instance,
    key,
    syncer,
)

NOW = 1_800_000_000.0
NO_DRY_RUN = "is not a dry run: save one with run --dry-run -o json"
OTHER_VERSION = "is not a dry run of this version: save a new one"
NO_REMOVAL = "shows no removal, so there is nothing to release"


def cancel(number: int) -> Cancel:
    """A cancel of an UP instance."""
    return Cancel(key=key(number), syncer=REF, why="", grounds=Grounds.ABSENCE, proof=PROOF, was=UP)


def down(number: int) -> Update:
    """A change from UP to DOWN."""
    wanted = instance(number, status=DOWN)
    return Update(
        instance=wanted, syncer=REF, why="", changes=(), was=UP, stored_timestamp=1, proof=PROOF
    )


def dry_run(**rest: Any) -> dict[str, Any]:
    """The document of a dry run that shows a cancel of instance 1 and holds an update of instance
    2."""
    shown = [
        {"action": "cancel", "app": key(n).app, "id": key(n).id, "removal": removal}
        for n, removal in ((1, True), (3, False))
    ]
    held = [{"action": "update", "app": key(2).app, "id": key(2).id, "removal": True}]
    whole = {
        "dryRun": True,
        "owner": OWNER,
        "cluster": CLUSTER,
        "at": rfc_3339(NOW),
        "actions": shown,
    }
    return {**whole, "held": held, **rest}


def saved(**rest: Any) -> SavedDryRun:
    """The same dry run, read from its file."""
    return from_dry_run(dry_run(**rest), "plan.json")


@pytest.mark.parametrize(
    ("text", "expected"), [("0123456789ab", True), ("0123456789AB", False), ("plan.json", False)]
)
def test_a_plan_id_is_twelve_hex_digits(text: str, expected: bool) -> None:
    """Any other text is a file name."""
    assert is_plan_id(text) is expected


def test_a_plan_id_releases_exactly_the_set_that_is_held_or_planned() -> None:
    """It releases the held removals, or all planned removals. It never releases a part of them."""
    one, two, three = cancel(1), down(2), cancel(3)
    held: list[Removal] = [one, two]
    planned: list[Removal] = [one, two, three]
    assert released_by(PlanId(removal_id(held)), planned, held) == {one.key, two.key}
    assert released_by(PlanId(removal_id(planned)), planned, held) == {one.key, two.key, three.key}
    assert released_by(PlanId(removal_id([one])), planned, held) == frozenset()
    assert released_by(PlanId(removal_id([])), [], []) == frozenset()
    assert released_by(None, planned, held) == frozenset()


def test_a_saved_dry_run_releases_what_it_showed_and_is_still_planned() -> None:
    """It does not matter whether the dry run held the removal. The kind and the instance must be
    the same. New removals stay held."""
    assert released_by(saved(), [cancel(1), down(2), cancel(4)], []) == {key(1), key(2)}
    assert released_by(saved(), [down(1), cancel(2), cancel(3)], []) == frozenset()
    assert str(saved()) == "plan.json"
    assert str(PlanId("0123456789ab")) == "0123456789ab"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (None, NO_DRY_RUN),
        ([], NO_DRY_RUN),
        ({}, NO_DRY_RUN),
        (dry_run(dryRun=False), NO_DRY_RUN),
        (dry_run(dryRun="true"), NO_DRY_RUN),
        (dry_run(at=None), OTHER_VERSION),
        (dry_run(at="yesterday"), OTHER_VERSION),
        ({key: value for key, value in dry_run().items() if key != "cluster"}, OTHER_VERSION),
        (dry_run(actions=["x"]), OTHER_VERSION),
        (dry_run(actions=[{"removal": True}]), OTHER_VERSION),
        (dry_run(actions=[], held=None), NO_REMOVAL),
        (dry_run(actions="x", held=None), NO_REMOVAL),
        (dry_run(held=["x"]), OTHER_VERSION),
    ],
)
def test_a_file_that_is_no_dry_run_with_removals_is_refused(data: Any, expected: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        from_dry_run(data, "plan.json")
    assert str(raised.value) == expected


def test_a_dry_run_says_its_time_in_utc_wherever_it_was_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may be approved on another machine."""
    try:
        monkeypatch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        assert rfc_3339(NOW) == "2027-01-15T08:00:00Z"
        assert saved().at == NOW
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_dry_run_of_another_owner_or_cluster_releases_nothing() -> None:
    """An old dry run releases nothing either, and neither does one from the future. A plan id is
    valid for an hour."""
    assert refusal(saved(), OWNERSHIP, NOW + 3600) is None
    assert refusal(PlanId("0123456789ab"), OWNERSHIP, NOW) is None
    assert refusal(PlanId("0123456789ab", given=NOW), OWNERSHIP, NOW + 3600) is None
    assert "61 minutes ago" in str(
        refusal(PlanId("0123456789ab", given=NOW), OWNERSHIP, NOW + 3660)
    )
    assert refusal(None, OWNERSHIP, NOW) is None
    for other in (
        Ownership(owner="test", cluster=CLUSTER),
        Ownership(owner=OWNER, cluster="another"),
    ):
        found = refusal(saved(), other, NOW)
        assert found is not None
        assert found.startswith(
            f"is a dry run of owner {OWNER} in cluster {CLUSTER}, and this is owner {other.owner}"
        )
    assert (
        refusal(saved(), OWNERSHIP, NOW + 7200)
        == "is 120 minutes old, and may be 60 at most: save a new one"
    )
    future = "was saved in the future: the clocks of both machines differ"
    assert [refusal(saved(), OWNERSHIP, NOW - ahead) for ahead in (60, 61)] == [None, future]


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
