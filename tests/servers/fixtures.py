"""The servers as pytest fixtures, one each for a whole test session; a plugin for a conftest to
name.

A server that cannot be had fails the tests that ask for it; they are never skipped. Tests share
these servers, so each makes its own namespaces and app names. A test that wants other options
starts its own.
"""

from collections.abc import Iterator

import pytest

from .eureka import EurekaServer, eureka_pair
from .kube import KubernetesServers
from .toxiproxy import Toxiproxy
from .world import KubernetesWorld


@pytest.fixture(scope="session")
def kubernetes_servers() -> Iterator[KubernetesServers]:
    """A real Kubernetes API with its controllers, without nodes."""
    with KubernetesServers() as servers:
        yield servers


@pytest.fixture(scope="session")
def kubernetes_world(kubernetes_servers: KubernetesServers) -> KubernetesWorld:
    """The administrator's hands in that API."""
    return KubernetesWorld(
        kubernetes_servers.url,
        token=kubernetes_servers.admin_token,
        ca_file=kubernetes_servers.ca_file,
    )


@pytest.fixture(scope="session")
def eureka_fast() -> Iterator[EurekaServer]:
    """A real Eureka server with 1 s cache and 1 s eviction, without self-preservation."""
    with EurekaServer() as server:
        yield server


@pytest.fixture(scope="session")
def eureka_stock() -> Iterator[EurekaServer]:
    """A real Eureka server with its own timings: 30 s cache, 60 s eviction, self-preservation."""
    with EurekaServer(stock_timings=True) as server:
        yield server


@pytest.fixture(scope="session")
def eureka_peers() -> Iterator[tuple[EurekaServer, EurekaServer]]:
    """Two real Eureka servers that replicate to each other, as fast as `eureka_fast`. A test that
    stops one starts it again."""
    with eureka_pair() as pair:
        yield pair


@pytest.fixture(scope="session")
def toxiproxy() -> Iterator[Toxiproxy]:
    """A real toxiproxy without any proxy: a test makes its own, and removes them."""
    with Toxiproxy() as server:
        yield server
