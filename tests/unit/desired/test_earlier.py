"""Reuse of claims: a pass uses an earlier claim again only if everything behind it is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from eurekube_sync.desired.catalog import Catalog
from eurekube_sync.desired.claims import Claim, Deleting, Desired, NotServed, Serving
from eurekube_sync.desired.resolve import EarlierClaims, claim_all
from eurekube_sync.desired.scope import Scope
from eurekube_sync.desired.selector import Selector
from eurekube_sync.model.eureka import LeaseTimes
from eurekube_sync.model.kubernetes import ClusterView, PodReadiness, Service, SyncerRef
from eurekube_sync.model.sources import Cause, Complete, Listed, Unknown
from eurekube_sync.model.struct import replace
from tests.unit.worlds.build import (
    DENIED,
    NAMING,
    NS,
    REF,
    endpoint,
    listed,
    nowhere,
    piece,
    service,
    syncer,
    view,
)

YOUNGER = SyncerRef(NS, "younger")
SYNCERS = (syncer(), syncer("younger", created=2000))
OTHER = service("second")
NOSUCH = {"app": "nosuch"}
SERVICE, SLICE = service(), piece(endpoint(1), endpoint(2, ready=False))


def of_the_article(**changes: object) -> ClusterView:
    """Two syncers that claim the same two pods, so that one of them has a rival. Each call gives
    the same objects."""
    return replace(view(SYNCERS, [SERVICE], [SLICE]), **changes)  # type: ignore[arg-type]


def serving(desired: Desired, ref: SyncerRef = REF) -> Serving:
    found = desired.claims[ref]
    assert isinstance(found, Serving)
    return found


def claimed(earlier: EarlierClaims, seen: ClusterView) -> Desired:
    """The claims with earlier ones to reuse, which must equal those without."""
    found = claim_all(seen, NAMING, Scope(), earlier)
    anew = claim_all(seen, NAMING, Scope())
    # These two compute more on request, and are other objects each time.
    assert found == replace(anew, sockets=found.sockets, heirs=found.heirs)
    return found


def test_the_same_objects_give_the_same_verdicts() -> None:
    """The very same objects are reused, including those that rivals changed. The proof is the
    present pass's own."""
    earlier = EarlierClaims()
    first, second = (claimed(earlier, of_the_article()) for _ in range(2))
    assert serving(second).rivals or serving(second, YOUNGER).rivals
    for ref in (REF, YOUNGER):
        assert serving(first, ref).verdicts is serving(second, ref).verdicts
        assert serving(first, ref).proof is not serving(second, ref).proof
    assert first.wanted_by is second.wanted_by


@pytest.mark.parametrize(
    "changed",
    [
        lambda: of_the_article(syncers=listed([replace(SYNCERS[0]), SYNCERS[1]])),
        lambda: of_the_article(services=listed([replace(SERVICE)])),
        lambda: of_the_article(services=listed([SERVICE, service("second")])),
        lambda: of_the_article(slices=listed([replace(SLICE)])),
        lambda: of_the_article(slices=listed([SLICE, piece(endpoint(3), name="more")])),
        lambda: of_the_article(pod_drains=nowhere(DENIED)),
    ],
)
def test_anything_new_makes_it_anew(changed: Callable[[], ClusterView]) -> None:
    """An equal object that was read from other bytes counts as new. Another list that is read as
    well counts too."""
    earlier = EarlierClaims()
    first = claimed(earlier, of_the_article())
    assert serving(claimed(earlier, changed())).verdicts is not serving(first).verdicts


def test_a_selector_is_matched_again_only_against_other_services(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A large selector of many syncers takes long. Only what the last pass found is used again."""
    looked: list[Selector] = []
    matching = Catalog.matching

    def counted(self: Catalog, selector: Selector) -> tuple[Service, ...]:
        looked.append(selector)
        return matching(self, selector)

    monkeypatch.setattr(Catalog, "matching", counted)
    earlier = EarlierClaims()
    more = of_the_article(services=listed([SERVICE, OTHER]))
    for seen, number in ((of_the_article(), 2), (of_the_article(), 0), (more, 2), (more, 0)):
        looked.clear()
        claim_all(seen, NAMING, Scope(), earlier)
        assert len(looked) == number
    assert serving(claim_all(more, NAMING, Scope(), earlier), YOUNGER).services == (
        "rating",
        "second",
    )


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"selector": NOSUCH}, "NoMatchingService"),
        ({"port": "nosuch"}, "NoSuchPort"),
        ({"limit": "much"}, "InvalidSpec"),
        ({"deleted": 5.0}, "Deleting"),
        ({"deleted": 5.0, "limit": "much"}, "Deleting"),
    ],
)
def test_the_claim_of_a_syncer_not_served_is_not_made_again_either(
    spec: dict[str, Any], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenant may have thousands of them. Another Service, or another object, makes a new
    claim."""
    one, earlier = listed([syncer(**spec)]), EarlierClaims()

    def claim() -> Claim:
        return claim_all(of_the_article(syncers=one), NAMING, Scope(), earlier).claims[REF]

    first = claim()
    assert getattr(first, "reason", "Deleting") == found
    with monkeypatch.context() as made:
        for name in ("parse", "serve_pods"):
            made.setattr(f"eurekube_sync.desired.resolve.{name}", None)
        made.setattr(Catalog, "matching", None)
        again = claim()
        if isinstance(first, Deleting) and isinstance(again, Deleting):
            again = replace(again, proof=first.proof)  # the proof of this pass
        assert again == first
    claimed(
        earlier,
        of_the_article(
            syncers=one, services=listed([replace(SERVICE), service("b", labels=NOSUCH)])
        ),
    )


UNREAD = nowhere(Unknown(cause=Cause.NOT_READ, message="no syncer needs this namespace"))


def test_a_claim_is_not_made_again_for_what_another_syncer_needs() -> None:
    """Pods, nodes and readiness are read only for the other syncer."""
    earlier = EarlierClaims()
    first = claimed(earlier, of_the_article())
    beside = of_the_article(pods=UNREAD, readiness=UNREAD, nodes=Complete(data=()))
    assert serving(claimed(earlier, beside)).verdicts is serving(first).verdicts


def test_a_syncer_that_asks_for_more_is_made_anew() -> None:
    """Its pods may have become ready while the slices stayed the same."""
    earlier = EarlierClaims()
    gated = listed([syncer(readinessGate=True)])
    one = PodReadiness(
        namespace=NS, name="rating-2", uid="uid-of-rating-2", ready=True, registered=False
    )
    seen = []
    for pods in ((), (one,)):
        readiness: Listed[PodReadiness] = Listed(
            by_namespace={NS: Complete(data=pods)}, elsewhere=Complete(data=())
        )
        seen.append(claimed(earlier, of_the_article(syncers=gated, readiness=readiness)))
    assert serving(seen[0]).verdicts != serving(seen[1]).verdicts
    assert not earlier.made


def test_another_lease_makes_all_anew() -> None:
    """The lease is part of each instance."""
    earlier = EarlierClaims()
    first = claimed(earlier, of_the_article())
    second = claim_all(
        of_the_article(), replace(NAMING, lease=LeaseTimes(30, 60)), Scope(), earlier
    )
    assert serving(second).verdicts is not serving(first).verdicts


def test_a_list_that_failed_in_between_changes_no_object() -> None:
    """Nothing is reused while the list cannot be read. Afterwards the same bytes give the same
    objects."""
    earlier = EarlierClaims()
    first = claimed(earlier, of_the_article())
    unread = claimed(earlier, of_the_article(slices=nowhere(DENIED)))
    assert isinstance(unread.claims[REF], NotServed)
    assert serving(claimed(earlier, of_the_article())).verdicts is serving(first).verdicts


def test_a_syncer_that_is_gone_is_forgotten() -> None:
    """The wanted instances of the other one change."""
    earlier = EarlierClaims()
    first = claimed(earlier, of_the_article())
    claimed(earlier, of_the_article(syncers=listed(SYNCERS[1:])))
    assert set(earlier.made) == {YOUNGER}
    assert serving(claimed(earlier, of_the_article())).verdicts is not serving(first).verdicts


def test_what_was_made_of_a_syncer_that_became_invalid_is_forgotten() -> None:
    """It would keep the lists of that pass in memory for as long as the syncer is invalid."""
    earlier = EarlierClaims()
    claimed(earlier, of_the_article())
    assert REF in earlier.made
    invalid = (syncer(nosuch=1), SYNCERS[1])
    desired = claimed(earlier, replace(of_the_article(), syncers=listed(invalid)))
    assert isinstance(desired.claims[REF], NotServed)
    assert REF not in earlier.made
    serving(claimed(earlier, of_the_article()))
