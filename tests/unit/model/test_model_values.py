"""Values of the model: what they answer about themselves."""

from __future__ import annotations

import pytest

from eurekube_sync.model.actions import Outcome, Outcomes, Result
from eurekube_sync.model.errors import (
    ClusterConflict,
    ClusterDenied,
    ClusterRejected,
    ClusterUnavailable,
    EurekubeError,
    InvalidSyncer,
    RegistryDenied,
    RegistryRejected,
    RegistryUnavailable,
    RegistryUnusable,
)
from eurekube_sync.model.eureka import InstanceKey
from eurekube_sync.model.kubernetes import Condition, ConditionStatus, SyncerRef, SyncerStatus
from eurekube_sync.model.reasons import Reason
from eurekube_sync.model.sources import Cause, Complete, Listed, Proof
from tests.unit.apply.test_apply import renew
from tests.unit.worlds.build import DENIED, NS, REF, key, service, syncer


def test_only_a_complete_source_proves_anything() -> None:
    """An Unknown is refused even where no type checker looks. All proofs are equal."""
    assert Complete(data=1).proof == Proof(Complete(data=()))
    assert len({Complete(data=1).proof, Complete(data=2).proof}) == 1
    assert Complete(data=1).proof != Complete(data=1)
    for nothing in (DENIED, None, ()):
        with pytest.raises(TypeError, match="a removal cannot rest on"):
            Proof(nothing)  # type: ignore[arg-type]


def test_a_namespace_without_an_entry_holds_what_the_whole_list_says() -> None:
    """After a complete list of the cluster a namespace without objects is empty. After a failed
    list it is Unknown."""
    whole: Listed[int] = Listed(by_namespace={}, elsewhere=Complete(data=()))
    failed: Listed[int] = Listed(by_namespace={NS: Complete(data=(1,))}, elsewhere=DENIED)
    assert whole.of(NS) == Complete(data=())
    assert failed.of(NS) == Complete(data=(1,))
    assert failed.of("another") == DENIED


def test_references_and_keys_read_as_people_write_them() -> None:
    """A syncer is written `namespace/name`, and an instance `APP/id`."""
    assert str(SyncerRef("a", "b")) == "a/b"
    assert str(InstanceKey("A", "b")) == "A/b"
    assert syncer().ref == REF


def test_only_the_address_none_makes_a_service_headless() -> None:
    """A Service that waits for its address is not headless."""
    assert service(cluster_ips=("None",)).headless
    assert not service(cluster_ips=()).headless


def test_a_condition_is_found_by_its_type() -> None:
    """For a type that the status does not have, there is none."""
    ready = Condition(
        type="Ready",
        status=ConditionStatus.TRUE,
        reason="InSync",
        message="",
        observed_generation=1,
        last_transition=0,
    )
    status = SyncerStatus(observed_generation=1, conditions=(ready,))
    assert status.condition("Ready") is ready
    assert status.condition("Synced") is None


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RegistryUnavailable(""), Cause.UNAVAILABLE),
        (ClusterUnavailable(""), Cause.UNAVAILABLE),
        (RegistryDenied(""), Cause.DENIED),
        (ClusterDenied(""), Cause.DENIED),
        (RegistryUnusable(""), Cause.UNUSABLE),
        (RegistryRejected(""), None),
        (ClusterRejected(""), None),
        (ClusterConflict(""), None),
        (InvalidSyncer(Reason.INVALID_SPEC, ""), None),
    ],
)
def test_an_error_has_a_cause_or_is_one_refusal(
    error: EurekubeError, expected: Cause | None
) -> None:
    """An error of the whole server has a cause. A refusal of one thing has none."""
    assert error.cause is expected


def test_registering_again_replaces_the_outcome_of_its_renewal() -> None:
    """Each key has one outcome, the last."""
    outcomes = Outcomes.of(
        [
            Outcome(action=renew(), result=Result.GONE),
            Outcome(action=renew(), result=Result.REGISTERED_AGAIN),
        ],
    )
    assert outcomes.by_key[key()].result is Result.REGISTERED_AGAIN
    assert (outcomes.count(Result.GONE), outcomes.succeeded) == (0, 1)


def test_the_outcomes_list_actions_that_the_next_pass_has_to_repeat() -> None:
    """Failed, held back and not tried are failures. Done, gone and conflict are not."""
    results = list(Result)
    outcomes = Outcomes.of(
        [
            Outcome(action=renew(number), result=result)
            for number, result in reversed(list(enumerate(results)))
        ]
    )
    assert [outcome.result for outcome in outcomes.failures] == [
        Result.FAILED,
        Result.HELD_BACK,
        Result.NOT_TRIED,
    ]
