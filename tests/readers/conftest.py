"""One story before all readers, for all tests."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.readers.story import Found, play
from tests.servers.eureka import EurekaServer
from tests.servers.plugin import pytest_configure

__all__ = ["pytest_configure"]


@pytest.fixture(scope="session")
def found(
    eureka_fast: EurekaServer, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Found]:
    """What each reader found, with everything refreshed every second."""
    return play(eureka_fast, tmp_path_factory.mktemp("readers"), fast=True)
