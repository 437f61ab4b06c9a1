"""Unit tests make no network call: a socket that connects, binds or resolves a name ends the test.

An audit hook sees every socket, however it was made. Mark a test `loopback` to let it speak to this
machine.
"""

from __future__ import annotations

import logging
import re
import resource
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

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
_CASES = 100_000
_MOST_MEGABYTES = 300
"""A fuzz run peaks at 200: more is a leak, or an input that takes far more memory than it has
bytes."""
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
    config.addinivalue_line(
        "markers", "loopback: may open sockets on this machine, and nowhere else"
    )
    sys.addaudithook(_audit)


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """A command sets up the logs of its process, which is that of the next test."""
    logger = logging.getLogger("eurekube_sync")
    handlers, level, propagates = list(logger.handlers), logger.level, logger.propagate
    yield
    logger.handlers[:], logger.propagate = handlers, propagates
    logger.setLevel(level)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Forbids sockets from the first fixture of a test to the last; tests of other folders may have
    them."""
    if not item.path.is_relative_to(_HERE):
        return (yield)
    _Guard.on, _Guard.loopback = True, item.get_closest_marker("loopback") is not None
    try:
        return (yield)
    finally:
        _Guard.on = False


def _fuzzing() -> bool:
    return settings.get_current_profile_name() == "fuzz"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many cases a fuzz run tried, in what time, and how large the process became."""
    if _fuzzing():
        terminalreporter.write_line(f"{sum(_Fuzzed.cases)} cases, peak memory {_peak()} MB")
        for fault in _Fuzzed.faults:
            terminalreporter.write_line(fault, red=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fuzzing fails when it tried too few cases, or the process grew beyond what its largest input
    explains."""
    if not _fuzzing():
        return
    _Fuzzed.cases = [_passing(item) for item in session.items]
    if sum(_Fuzzed.cases) < _CASES and not session.config.getoption("keyword"):
        _Fuzzed.faults.append(f"less than {_CASES} cases are too few")
    if _peak() > _MOST_MEGABYTES:
        _Fuzzed.faults.append(f"the process may take {_MOST_MEGABYTES} MB")
    if _Fuzzed.faults:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


class _Fuzzed:
    """What a fuzz run came to."""

    cases: ClassVar[list[int]] = []
    faults: ClassVar[list[str]] = []


def _passing(item: pytest.Item) -> int:
    """The examples of a test that passed, as Hypothesis describes them; 0 for a test without
    any."""
    found = re.findall(r"(\d+) passing", getattr(item, "hypothesis_statistics", ""))
    return sum(map(int, found))


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


# The same examples each run, so that nobody meets another's failure; `--hypothesis-profile=explore`
# looks further.
settings.register_profile("unit", deadline=None, derandomize=True, database=None, max_examples=100)
settings.register_profile("quick", deadline=None, derandomize=True, database=None, max_examples=20)
settings.register_profile(  # an example that fails is not made smaller: to fail is enough
    "mutation",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=5,
    phases=[Phase.explicit, Phase.generate],
)
settings.register_profile("explore", deadline=None, database=None, max_examples=2000)
# 26 tests or more; a case that takes 10 s of a machine, however busy, hangs.
settings.register_profile("fuzz", deadline=timedelta(seconds=10), database=None, max_examples=5000)
if settings.get_current_profile_name() == "default":
    settings.load_profile("unit")
