"""The installed program in a world of its own, or in a shared one that stays in sync."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command.program import IDS, Program, rating

# A shell starts background programs with SIGINT ignored, and the tests' programs would inherit
# that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """A world in which nothing was registered yet."""
    with rating(tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """One world for a module whose tests remove nothing."""
    with rating(tmp_path_factory.mktemp("shared")) as found:
        assert found.run().code == 0
        yield found


@pytest.fixture
def settled(shared: Program) -> Iterator[Program]:
    """Both instances are UP before the test and after it. Eureka and Kubernetes then work again."""
    yield shared
    playground = shared.playground
    playground.kubernetes.access.tokens.clear()
    playground.kubernetes.access.denials.clear()
    playground.eureka.credentials = None
    playground.eureka.refuse_writes = playground.eureka.warming_up = False
    assert [shared.status(id_) for id_ in IDS] == ["UP", "UP"]
