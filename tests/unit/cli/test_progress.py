"""The progress line of a pass that waits for a server."""

from __future__ import annotations

import io
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from eurekube_sync.cli.process import Waits, waiting
from tests.waiting import wait_until


class Screen(io.StringIO):
    """stderr, at a terminal or not."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def screen(monkeypatch: pytest.MonkeyPatch, *, terminal: bool = True) -> Screen:
    """Replace stderr."""
    found = Screen(terminal=terminal)
    monkeypatch.setattr(sys, "stderr", found)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return found


def test_a_wait_is_shown_and_erased_when_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line shows how long the wait has lasted. It is erased at the end."""
    shown = screen(monkeypatch)
    with waiting("waiting for Eureka", after=0):
        wait_until(lambda: "waiting for Eureka" in shown.getvalue(), "nothing is told")
        assert "0:00:0" in shown.getvalue()
    assert shown.getvalue().endswith("\x1b[2K"), "the line is erased"


def test_the_running_calls_are_shown_during_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line shows the running call and the number of such calls. Each call returns its own
    result."""
    shown = screen(monkeypatch)
    waits, goes_on = Waits(), threading.Event()

    class Server:
        """A server that waits for an event before it answers."""

        def list_services(self, namespaces: None) -> tuple[str, None]:
            """A call of a port."""
            goes_on.wait(60)
            return "answer", namespaces

        def size(self) -> int:
            """A method without a wait."""
            return 3

    server = waits.of(Server(), "the Kubernetes API")
    assert (str(waits), server.size()) == ("waiting for an answer", 3)
    with waiting(waits, after=0), ThreadPoolExecutor(2) as workers:
        calls = [workers.submit(server.list_services, None) for _ in range(2)]
        wait_until(
            lambda: "the Kubernetes API: list services (2 calls)" in shown.getvalue(),
            "nothing is told",
        )
        goes_on.set()
        assert [call.result() for call in calls] == [("answer", None)] * 2
    assert str(waits) == "waiting for an answer"


@pytest.mark.parametrize(
    ("terminal", "after"), [(True, 60.0), (False, 0.0)], ids=["a quick pass", "no terminal"]
)
def test_a_short_wait_or_no_terminal_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, after: float
) -> None:
    """No control sequence is written either."""
    shown = screen(monkeypatch, terminal=terminal)
    with waiting("waiting for Eureka", after=after):
        pass
    assert shown.getvalue() == ""


def test_an_interrupt_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is erased."""
    shown = screen(monkeypatch)

    def interrupted() -> None:
        with waiting("waiting for Eureka", after=0):
            wait_until(lambda: "waiting" in shown.getvalue(), "nothing is told")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert shown.getvalue().endswith("\x1b[2K")
