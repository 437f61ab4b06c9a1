"""What the program registers is found by those who read Eureka, and they follow its changes."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import pytest

from tests.readers.cases import CASES, CHANGES, READERS, Case
from tests.readers.story import Found

pytestmark = pytest.mark.servers

EVERY_READER = pytest.mark.parametrize("reader", READERS)


@pytest.fixture(autouse=True)
def started(reader: str, found: Mapping[str, Found]) -> None:
    """The reader could be started."""
    assert not found[reader].trouble, found[reader].trouble


@EVERY_READER
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_reader_finds_what_is_registered(
    found: Mapping[str, Found], reader: str, case: Case
) -> None:
    """Or what docs/readers.md says of it."""
    assert case.seen(found[reader].apps) == case.expected_of(reader)


@EVERY_READER
@pytest.mark.parametrize("change", CHANGES)
def test_a_reader_follows_a_change(found: Mapping[str, Found], reader: str, change: str) -> None:
    """An instance that is registered is called, and a cancelled one is not; a DOWN one is left out
    or shown as DOWN."""
    assert found[reader].after[change] < inf
