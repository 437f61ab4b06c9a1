"""How syncers, Services and slices become claims."""

from __future__ import annotations

import pytest

from eurekube_sync.desired import Deleting, Frozen, Serving
from eurekube_sync.model import Complete, Endpoint, Listed, ServicePort, SyncerRef, Unknown
from eurekube_sync.plan import make_plan

from .build import (
    DENIED,
    DOWN,
    NS,
    REF,
    TERMINATING,
    UP,
    desired,
    endpoint,
    instance,
    key,
    nowhere,
    observed,
    piece,
    service,
    stored,
    syncer,
)


def test_a_vanished_syncer_makes_no_orphans_while_the_crd_goes() -> None:
    """When the CRD is being deleted, an absent syncer proves nothing: its instances are renewed."""
    claims = desired([syncer("other", deleted=1)], [service()], [piece(endpoint())], crd_live=TERMINATING)
    (action,) = make_plan(claims, observed(stored(instance()))).actions
    assert action.why == "its syncers could not be listed"
