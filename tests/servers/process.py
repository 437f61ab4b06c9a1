"""Owns one server process: a free port, start, readiness, its log, stop; and that it is always
ended.

Knows nothing of what the server does. A server may be stopped, killed, paused and restarted at the
same address.
"""

import atexit
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import IO, ClassVar, Self

import requests

from .cache import tail

LOOPBACK = "127.0.0.1"
_ATTEMPTS = 4
_POLL_SECONDS = 0.1
# Below the range that Linux takes outgoing ports from, so that no client connection can sit on
# ours.
_PORTS = range(10_000, 30_000)
# Hypothesis seeds the module's own generator: two workers would then look at the same ports.
_CHANCE = random.SystemRandom()
_PORT_TAKEN = ("already in use", "already be in use", "address in use")
"""In the words of Go, of Java, and of Spring Boot 1."""


class ServerError(Exception):
    """A server did not start, or died; the message ends with the tail of its log."""


class _PortTaken(ServerError):
    """Another process took the port between our look and the server's start."""


def free_port(host: str = LOOPBACK) -> int:
    """Return a TCP port on which nothing listens at `host`."""
    for port in _CHANCE.sample(_PORTS, 200):
        with socket.socket() as probe:
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
    raise ServerError(f"no free port at {host}")


def temporary_directory(name: str) -> Path:
    """Make a directory that is removed, at the latest, when this process is gone."""
    directory = Path(tempfile.mkdtemp(prefix=f"eurekube-{name}-"))
    _reaper.remove(directory)
    return directory


class Server(ABC):
    """A server process on loopback; a context manager that starts and stops it."""

    name: ClassVar[str]
    start_seconds: ClassVar[float] = 400.0
    """How long a start may take."""
    stop_seconds: ClassVar[float] = 4.0
    """How long SIGTERM may take before SIGKILL; an API server with watchers would take up to a
    minute."""

    def __init__(self, *, host: str = LOOPBACK, port: int | None = None) -> None:
        """`port` None: a free one, another one when it turns out to be taken."""
        self.host = host
        self._chosen_port = port
        self.port = port or free_port(host)
        self.directory = temporary_directory(self.name)
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def _command(self) -> list[str]:
        """Return the command line for `self.host` and `self.port`."""

    @abstractmethod
    def _is_ready(self) -> bool:
        """Tell whether it serves; False or `requests.RequestException` while it does not."""

    @property
    def log_file(self) -> Path:
        """Its stdout and stderr, of all its starts; gone after `close`."""
        return self.directory / "server.log"

    @property
    def pid(self) -> int | None:
        """The process id while it runs, else None."""
        return (
            self._process.pid
            if self._process is not None and self._process.poll() is None
            else None
        )

    def start(self) -> Self:
        """Start it and wait until it is ready. Raises ServerError when it dies or takes too
        long."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._launch()
                self._wait_until_ready()
            except _PortTaken:
                if attempt == _ATTEMPTS or self._chosen_port is not None:
                    raise
                self.port = free_port(self.host)
            except BaseException:
                self.kill()
                raise
            else:
                self._chosen_port = self.port  # a restart is at the same address
                return self
        raise AssertionError("unreachable")

    def stop(self) -> None:
        """End it with SIGTERM, after `stop_seconds` with SIGKILL. Nothing happens when it does not
        run."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it with SIGKILL: a crash."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop it if it runs, and start it at the same address."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Freeze it with SIGSTOP: connections are accepted and never answered, until `resume`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """End it at once and remove its directory, log included."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _launch(self) -> None:
        if self.pid is not None:
            raise ServerError(f"{self.name} runs already")
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                start_new_session=True,  # Ctrl-C at a terminal reaches only us; we end it
            )
        _reaper.watch(self._process.pid)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + self.start_seconds
        while time.monotonic() < deadline:
            if self.pid is None:
                end = tail(self.log_file)
                kind = (
                    _PortTaken
                    if any(words in end.lower() for words in _PORT_TAKEN)
                    else ServerError
                )
                raise kind(f"{self.name} ended while starting; the end of its log:\n{end}")
            try:
                if self._is_ready():
                    return
            except requests.RequestException:
                pass  # not listening yet
            time.sleep(_POLL_SECONDS)
        end = tail(self.log_file)
        raise ServerError(
            f"{self.name} is not ready after {self.start_seconds:.0f} s; the end of its log:\n{end}"
        )

    def _signal(self, number: signal.Signals) -> None:
        # Never reaches another process: ours stays a zombie, and keeps its pid, until `poll` has
        # seen its end.
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, number)

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._signal(number)
        self._signal(signal.SIGCONT)  # a paused one could not end
        try:
            self._process.wait(self.stop_seconds)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._process.wait()
        _reaper.forget(self._process.pid)
        self._process = None


class _Reaper:
    """Our side of `reaper.py`, which is started with the first server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pipe: IO[bytes] | None = None

    def watch(self, pid: int) -> None:
        self._write(f"+{pid}\n")

    def forget(self, pid: int) -> None:
        self._write(f"-{pid}\n")

    def remove(self, directory: Path) -> None:
        self._write(f"{directory.resolve()}\n")

    def _write(self, line: str) -> None:
        with self._lock:
            if self._pipe is None:
                command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("reaper.py"))]
                process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
                self._process, self._pipe = process, process.stdin
                atexit.register(self._end)
            assert self._pipe is not None
            self._pipe.write(line.encode())
            self._pipe.flush()

    def _end(self) -> None:
        assert self._pipe is not None
        self._pipe.close()
        self._process.wait()


_reaper = _Reaper()
