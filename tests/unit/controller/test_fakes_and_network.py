"""Unit tests cannot reach a network, and the fakes follow the servers' rules that the program
relies on."""

from __future__ import annotations

import socket

import pytest

from eurekube_sync.model.eureka import InstanceStatus
from tests.unit.worlds.build import DOWN, OUT, UP, instance, key
from tests.unit.worlds.fakes import Clock, Registry, Wire


@pytest.mark.parametrize("host", ["192.0.2.1", "127.0.0.1"])
def test_a_unit_test_that_opens_a_socket_fails(host: str) -> None:
    """This includes sockets on this machine."""
    with socket.socket() as one, pytest.raises(RuntimeError, match="must not use the network"):
        one.connect((host, 9))
    with pytest.raises(RuntimeError, match="must not use the network"):
        socket.getaddrinfo("example.com", 80)


@pytest.mark.loopback
def test_a_marked_test_may_speak_to_this_machine_alone() -> None:
    """Tests of the embedded servers need it."""
    with socket.socket() as server, socket.socket() as one:
        server.bind(("127.0.0.1", 0))
        server.listen()
        one.connect(server.getsockname())
    with socket.socket() as one, pytest.raises(RuntimeError, match="must not use the network"):
        one.connect(("192.0.2.1", 9))


@pytest.fixture
def registry() -> Registry:
    return Registry(Wire(), Clock())


def test_an_older_register_is_ignored(registry: Registry) -> None:
    """Eureka answers it with 204. An equally old one is taken."""
    for timestamp, status, expected in ((5, UP, UP), (4, DOWN, UP), (5, DOWN, DOWN)):
        registry.register(instance(status=status), dirty_timestamp=timestamp)
        assert registry.held[key()].status is expected


@pytest.mark.parametrize(
    ("override", "posted", "expected"),
    [
        (OUT, UP, OUT),
        (OUT, DOWN, DOWN),
        (DOWN, UP, DOWN),
        (InstanceStatus.STARTING, UP, InstanceStatus.STARTING),
    ],
)
def test_an_override_wins_over_all_but_down(
    registry: Registry, override: InstanceStatus, posted: InstanceStatus, expected: InstanceStatus
) -> None:
    """Eureka trusts DOWN first. The override stays until a cancel forgets it."""
    registry.register(instance(), dirty_timestamp=1)
    registry.override(key(), override)
    registry.register(instance(status=posted), dirty_timestamp=2)
    assert registry.held[key()].status is expected
    registry.register(instance(), dirty_timestamp=3)
    assert registry.held[key()].status is override
    registry.cancel(key())
    registry.register(instance(), dirty_timestamp=4)
    assert registry.held[key()].status is UP


def test_a_renewal_of_an_unknown_status_is_a_404(registry: Registry) -> None:
    """A DELETE of an override without a value leaves that status."""
    registry.register(instance(), dirty_timestamp=1)
    registry.override(key(), InstanceStatus.UNKNOWN)
    assert not registry.renew(key())
    assert registry.cancel(key())
    assert not registry.cancel(key())
