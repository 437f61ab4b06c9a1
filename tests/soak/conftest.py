"""How long to soak, and the cluster for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.conftest import create_crd, remove_crd
from tests.servers.world import KubernetesWorld


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--minutes N`."""
    parser.addoption(
        "--minutes", type=float, default=15.0, help="how long the main soak lasts (default: 15)"
    )


@pytest.fixture(scope="session")
def minutes(request: pytest.FixtureRequest) -> float:
    """How long the main soak lasts."""
    return float(request.config.getoption("--minutes"))


@pytest.fixture(scope="session")
def crd(kubernetes_world: KubernetesWorld) -> Iterator[None]:
    """The CRD, established."""
    create_crd(kubernetes_world)
    yield
    remove_crd(kubernetes_world)
