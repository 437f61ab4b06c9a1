"""What is done about each instance, and what never is."""

from __future__ import annotations

from eurekube_sync.actions import Renew
from eurekube_sync.model import Complete, Listed
from eurekube_sync.plan import make_plan

from .build import (
    DENIED,
    NS,
    desired,
    endpoint,
    instance,
    key,
    observed,
    piece,
    service,
    stored,
    syncer,
)


def test_unknown_source_outweighs_a_pod_that_took_the_address() -> None:
    """While a source of the syncer is Unknown nothing of it is withdrawn, not even what another pod replaced."""
    other = syncer("other", namespace="other")
    taken = piece(endpoint(pod="other-9"), namespace="other")
    claims = desired(
        [syncer(), other],
        Listed(by_namespace={NS: DENIED}, elsewhere=Complete(data=())),
        [taken],
    )
    (action,) = make_plan(claims, observed(stored(instance()))).actions
    assert isinstance(action, Renew)


def test_plan_has_one_action_for_a_key_that_two_deletions_share() -> None:
    """Two deleted syncers of the same pods ask for one DELETE, not two."""
    claims = desired([syncer(deleted=1, created=1), syncer("twin", deleted=1)], [service()], [piece(endpoint())])
    assert [action.key for action in make_plan(claims, observed()).actions] == [key()]
