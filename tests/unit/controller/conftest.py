"""Both ways to write to Eureka, for tests that must hold for either."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.worlds.fakes import Registry


@pytest.fixture(scope="module", params=[None, 2], ids=["singly", "batches"])
def both_ways(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every registry of the module takes single calls alone, or batches of two."""
    Registry.batch_size_of_all = request.param
    yield
    Registry.batch_size_of_all = None
