"""The costs of 600 instances: calls and memory, which are the same on every machine, but no
times."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.measure import Measuring
from bench.row import EMPTIED, FIRST, STEADY, Row
from bench.servers import embedded

INSTANCES, SYNCERS = 600, 60
LISTS = 14
"""The Kubernetes lists: the cluster's identity, the syncers, and the Services and slices of 6
namespaces."""
MB = 75


@pytest.fixture(scope="module")
def rows() -> Iterator[dict[str, Row]]:
    """A first registration, a pass that finds all in sync, and one after Eureka lost its memory."""
    with embedded(INSTANCES) as servers:
        measuring = Measuring(servers, rounds=1, loop=False, extra=(), say=lambda _: None)
        measuring.warm_up()
        servers.objects.create()
        found = {scenario: measuring.ours(scenario) for scenario in (FIRST, STEADY)}
        servers.eureka.empty()
        found[EMPTIED] = measuring.ours(EMPTIED)
        yield found


@pytest.mark.parametrize(
    ("scenario", "eureka", "kubernetes"),
    [
        # The list and the probe of batches. Then three batches: absent ids, registrations, their
        # first renewals.
        (
            FIRST,
            2 + 3 * 3,
            LISTS + 1 + 3 * SYNCERS,
        ),  # a finalizer and a status, and an event for some
        (STEADY, 2 + 3, LISTS),
        (EMPTIED, 2 + 3 * 3, LISTS + 1),
    ],
)
def test_calls_are_few(rows: dict[str, Row], scenario: str, eureka: int, kubernetes: int) -> None:
    """Eureka gets batches. Kubernetes gets only lists, and writes of what changed."""
    row = rows[scenario]
    calls = [
        load.requests
        for load in (row.eureka, row.kubernetes)
        if load is not None and load.requests is not None
    ]
    assert len(calls) == 2
    assert calls[0] <= eureka
    assert calls[1] <= kubernetes


@pytest.mark.parametrize("scenario", [FIRST, STEADY, EMPTIED])
def test_memory_is_little(rows: dict[str, Row], scenario: str) -> None:
    """This is the peak of the whole process, mostly Python and the libraries."""
    assert rows[scenario].memory < MB
