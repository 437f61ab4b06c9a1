"""What 600 instances cost: requests and memory, which are the same on every machine, and no seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.measure import Measuring
from bench.row import EMPTIED, FIRST, STEADY, Row
from bench.servers import embedded

INSTANCES, SYNCERS = 600, 60
LISTS = 14
"""Of Kubernetes: which cluster it is, the syncers, and the Services and slices of 6 namespaces."""
MB = 75


@pytest.fixture(scope="module")
def rows() -> Iterator[dict[str, Row]]:
    """A first registration, a pass that finds all in sync, and one after Eureka lost its memory."""
    with embedded(INSTANCES) as servers:
        measuring = Measuring(servers, rounds=1, loop=False, shards=(), extra=(), say=lambda _: None)
        measuring.warm_up()
        servers.objects.create()
        found = {scenario: measuring.ours(scenario) for scenario in (FIRST, STEADY)}
        servers.eureka.empty()
        found[EMPTIED] = measuring.ours(EMPTIED)
        yield found


@pytest.mark.parametrize(
    ("scenario", "eureka", "kubernetes"),
    [
        # The list, the probe of batches; then three batches: what is absent, the registrations, their first renewals.
        (FIRST, 2 + 3 * 3, LISTS + 1 + 3 * SYNCERS),  # a finalizer, a status; an event of some
        (STEADY, 2 + 3, LISTS),
        (EMPTIED, 2 + 3 * 3, LISTS + 1),
    ],
)
def test_calls_are_few(rows: dict[str, Row], scenario: str, eureka: int, kubernetes: int) -> None:
    """Batches for Eureka, and for Kubernetes nothing but lists and what changed."""
    row = rows[scenario]
    calls = [load.requests for load in (row.eureka, row.kubernetes) if load is not None and load.requests is not None]
    assert len(calls) == 2
    assert calls[0] <= eureka
    assert calls[1] <= kubernetes


@pytest.mark.parametrize("scenario", [FIRST, STEADY, EMPTIED])
def test_memory_is_little(rows: dict[str, Row], scenario: str) -> None:
    """The peak of the whole process, most of it Python and the libraries."""
    assert rows[scenario].memory < MB
