"""Unit tests make no network call: a socket that connects, binds or resolves a name ends the test.

An audit hook sees every socket, however it was made. Mark a test `loopback` to let it speak to this machine.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, settings

_FORBIDDEN = frozenset(
    {
        "socket.bind",
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyaddr",
        "socket.gethostbyname",
        "socket.sendmsg",
        "socket.sendto",
    }
)
_MOST_MEGABYTES = 500
_HERE = Path(__file__).parent
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class _Guard:
    """Whether sockets are forbidden at the moment; an audit hook cannot be taken off again."""

    on = False
    loopback = False


def _audit(event: str, args: tuple[object, ...]) -> None:
    if not _Guard.on or event not in _FORBIDDEN:
        return
    address = args[0] if event.startswith("socket.get") else args[1]
    host = address[0] if isinstance(address, tuple) else address
    if not (_Guard.loopback and host in _LOOPBACK):
        raise RuntimeError(f"a unit test must not use the network: {event} {address!r}")


def pytest_configure(config: pytest.Config) -> None:
    """Adds the marker and the hook."""
    config.addinivalue_line("markers", "loopback: may open sockets on this machine, and nowhere else")
    sys.addaudithook(_audit)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Forbids sockets from the first fixture of a test to the last; tests of other folders may have them."""
    if not item.path.is_relative_to(_HERE):
        return (yield)
    _Guard.on, _Guard.loopback = True, item.get_closest_marker("loopback") is not None
    try:
        return (yield)
    finally:
        _Guard.on = False


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fuzzing fails when the process grew beyond what its largest input explains."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    if settings.get_current_profile_name() == "fuzz" and peak > _MOST_MEGABYTES:
        sys.stderr.write(f"the process took {peak} MB, and {_MOST_MEGABYTES} are allowed\n")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


# The same examples each run, so that nobody meets another's failure; `--hypothesis-profile=explore` looks further.
settings.register_profile("unit", deadline=None, derandomize=True, database=None, max_examples=100)
settings.register_profile("quick", deadline=None, derandomize=True, database=None, max_examples=20)
settings.register_profile(  # an example that fails is not made smaller: to fail is enough
    "mutation", deadline=None, derandomize=True, database=None, max_examples=5, phases=[Phase.explicit, Phase.generate]
)
settings.register_profile("explore", deadline=None, database=None, max_examples=2000)
settings.register_profile("fuzz", deadline=None, database=None, max_examples=2000)
if settings.get_current_profile_name() == "default":
    settings.load_profile("unit")
